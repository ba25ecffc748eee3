/* Completed files: the source once more, observed cells byte for byte, imputed values where cells are missing.
 *
 *     plain      the file as it is, holes filled
 *     stacked    mice's long format: the original with NA in its holes (.imp 0), then every imputation (.imp 1, 2, ...), each
 *                with the row's number in .id; both columns last
 *     intervals  behind each numeric column NAME the columns NAME.low and NAME.high: NA where the cell was observed
 *
 * The source is read again for each imputation, record by record, and is checked to be the one the table came from. Separator, quotes,
 * white space, line ends, byte order mark and header stay as they are; columns of a file without a header get one when columns are
 * added. What cannot be filled (identifiers, empty columns, constants unless the user wants them to be) keeps the
 * marker it has; in the stacked format it is NA.
 * A table that came from memory is written as plain CSV with a header, categories as their codes.
 *
 * The file appears when all of it is written: on a full disk, or when the writer is given up, there is nothing, or what was there before. */
#ifndef ACF_TABLE_WRITER_H
#define ACF_TABLE_WRITER_H

#include "table/table_file.h"

/* path "-": standard output, as it comes. A name that ends in .gz is compressed. Keeps t, whose file nobody else may write meanwhile.
 * Gives *out; end with acf_writer_finish or acf_writer_abort.
 * Fails: ACF_EUSAGE (the output is the source; a matrix under the name of a text, or the other way; a plan without imputations), ACF_EDATA (a column is called NAME.low already), ACF_EIO,
 * ACF_EMEMORY. */
acf_status acf_writer_begin(const acf_table *t, const char *path, acf_write_plan plan, acf_writer **out);

/* What acf_writer_begin would refuse, but for what only writing shows. Fails: ACF_EUSAGE, ACF_EDATA, ACF_EMEMORY. */
acf_status acf_writer_check_plan(const acf_table *t, const char *path, acf_write_plan plan);

/* The next imputation: value, low, high (N,D); NaN where there is none. low and high are NULL unless the plan has intervals. */
acf_status acf_writer_add(acf_writer *w, const double *value, const double *low, const double *high);

acf_status acf_writer_finish(acf_writer *w); /* frees w either way */

#endif
