/* Completed files: a copy of the source, with observed cells byte for byte and imputed values in missing cells.
 *
 *     plain      the file as it is, missing cells imputed
 *     stacked    mice's long format: the original with NA in its missing cells (.imp 0), then every imputation (.imp 1,
 *                2, ...), each with the row's number in .id; both columns last
 *     intervals  after each numeric column NAME the columns NAME.low and NAME.high: NA where the cell was observed
 *
 * Each imputation reads the source again, record by record, and verifies that it is the file of the table. Separator,
 * quotes, white space, line ends, byte order mark and header stay as they are; a file without a header gets one if
 * columns are added. Cells that cannot be imputed (identifiers, empty columns, constants unless requested) keep the NA
 * string they have; in the stacked format they are NA. A table from memory is written as plain CSV with a header,
 * categories as their codes.
 *
 * The file appears when all of it is written. On a full disk, or when the writer is aborted, an existing file stays
 * unchanged. */
#ifndef ACF_TABLE_WRITER_H
#define ACF_TABLE_WRITER_H

#include "table/table_file.h"

/* path "-": standard output, written directly. A name that ends in .gz is compressed. Borrows t; nobody may write its
 * file meanwhile. Gives *out; end with acf_writer_finish or acf_writer_abort. Fails: ACF_EUSAGE (the output is the
 * source; a matrix under the name of a text, or the reverse; a plan without imputations), ACF_EDATA (a column is
 * already called NAME.low), ACF_EIO, ACF_EMEMORY. */
acf_status acf_writer_begin(const acf_table *t, const char *path, acf_write_plan plan, acf_writer **out);

/* Makes the checks of acf_writer_begin, without opening the file. Fails: ACF_EUSAGE, ACF_EDATA, ACF_EMEMORY. */
acf_status acf_writer_check_plan(const acf_table *t, const char *path, acf_write_plan plan);

/* Writes the next imputation: value, low, high (N,D); NaN where there is none. low and high are NULL unless the plan
 * has intervals. */
acf_status acf_writer_add(acf_writer *w, const double *value, const double *low, const double *high);

acf_status acf_writer_finish(acf_writer *w); /* frees w in any case */

#endif
