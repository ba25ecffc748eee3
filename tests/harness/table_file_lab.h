/* Setup for tests of tables from files: a table in a string becomes a file, is read with options, and completed into
 * another string. */
#ifndef ACF_HARNESS_TABLE_FILE_LAB_H
#define ACF_HARNESS_TABLE_FILE_LAB_H

#include "harness/file_lab.h"
#include "table/table_file.h"
#include "table/writer.h"

/* Options are "name=value", ended by NULL; options NULL: none. */
typedef struct acf_table_file_lab {
    acf_memfile file;
    acf_read_options *read_options;
} acf_table_file_lab;

/* Writes the text to a file and reads the options, which must be valid. */
void acf_table_file_lab_open(acf_table_file_lab *l, const char *text, const char *const *options);
void acf_table_file_lab_close(acf_table_file_lab *l);

/* Reads a table that must be valid; free with acf_table_free. known NULL: its columns are detected. */
acf_table *acf_table_file_lab_read(const char *text, const char *const *options, const acf_schema *known);

/* Reads a table that must be refused with this status and message, in which FILE stands for the name of the file.
 * Nothing is left behind. */
void acf_table_file_lab_refused(const char *text, const char *const *options, const acf_schema *known,
                                acf_status status, const char *sentence);

/* Reads a table without a column to model: a fit must be refused with this message. */
void acf_table_file_lab_unlearnable(const char *text, const char *sentence);

/* The kinds of the columns, "integer category empty". */
void acf_table_file_lab_kinds(const char *text, const char *const *options, const char *kinds);

/* Writes the table and returns the text, which lives until the next call. value gives the imputed number of a cell;
 * intervals are one below and one above it. */
const char *acf_table_file_lab_write(const acf_table *t, acf_write_plan plan,
                                     double (*value)(int64_t i, int64_t j, int64_t imputation));

/* Values of imputations: 0.3 everywhere. */
double acf_table_file_lab_constant(int64_t i, int64_t j, int64_t imputation);

/* The folder of the real tables, or a skipped test. Its file `name` as a path in a static buffer. */
const char *acf_lab_real_table(const char *name);

#endif
