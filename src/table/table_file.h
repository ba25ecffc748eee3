/* A file read as a table: its schema, the modelled columns as numbers, and access to the cells of the file.
 *
 *     file      id      age     sex     city    note         text, as it stands on disk
 *     schema    identi. integer categ.  const.  empty        the kind of each column
 *     table             0       1                            D = 2 columns of doubles; the others are not modelled
 *
 * Two passes over the file; neither keeps the text of its cells. The first pass profiles the columns (for a model: it
 * counts the rows and profiles the columns that the model does not have). The second stores the numbers. Memory is 8
 * bytes for each modelled cell plus the reader. The reader stays open, because the writer of a completed file
 * (writer.h) copies observed cells from the file itself. */
#ifndef ACF_TABLE_TABLE_FILE_H
#define ACF_TABLE_TABLE_FILE_H

#include "table/cell.h"
#include "table/reader.h"
#include "table/warnings.h"

/* Cells of modelled columns with a level that the schema does not have: i·D + j of the table, ascending. */
typedef struct acf_unseen_levels {
    int64_t *cell, n, capacity;
} acf_unseen_levels;

typedef struct acf_table_file {
    char *path;         /* as the user gave it; NULL: no file (acf_table_file_blank). The struct owns everything here */
    acf_reader *reader; /* of the file; NULL without one */
    acf_schema *schema;
    int64_t columns; /* of the file */
    int64_t *spec;   /* (columns) index in the schema; -1: the model does not have the column, and it stays unchanged */
    char **name;     /* (columns) */
    acf_arena *texts; /* the names */
    /* (columns of the schema) only without a file: the texts that were given, NULL for other columns; NULL: read from a
     * file */
    char **given;
    acf_warnings warnings;
    int64_t *missing; /* (columns) number of missing cells in this file */
    bool known;       /* the schema is a model's, so the kinds of columns are fixed */
    acf_unseen_levels unseen_levels;
    int64_t id; /* column whose text keys a row's random draws (option `id`); -1: none */
} acf_table_file;

/* Reads a file of any format (reader.h) and finds the kinds of its columns. Gives *out, with its file; free with
 * acf_table_free. Fails: ACF_EIO, ACF_EDATA (file, line, column, what was found and expected), ACF_EUSAGE (a read
 * option that cannot be applied), ACF_EMEMORY. */
acf_status acf_table_file_read(const char *path, const acf_read_options *w, acf_table **out);

/* The same for a file of a given format. */
acf_status acf_table_file_read_as(const acf_file_format *format, const char *path, const acf_read_options *w,
                                  acf_table **out);

/* Reads a file for a model. The kinds of columns come from `known`. They are matched by name or, if the file or the
 * model has no names, by position; the table's columns are in the model's order. Borrows known. Fails: as above;
 * ACF_EDATA also if a column is missing, or if the file has a column that the model does not have, unless that is an
 * identifier, constant or empty. */
acf_status acf_table_file_read_for(const char *path, const acf_read_options *w, const acf_schema *known,
                                   acf_table **out);

/* A table without a file: `rows` rows of missing cells except for those that `given` sets ("age=40,sex=F"; NULL or "":
 * none), the same in every row. A number outside the observed range is accepted with a warning. Fails: ACF_EUSAGE (a
 * name or value that the schema does not have, a column given twice), ACF_ESHAPE (rows < 0), ACF_EMEMORY. */
acf_status acf_table_file_blank(const acf_schema *known, int64_t rows, const char *given, acf_table **out);

void acf_table_file_free(acf_table_file *f); /* NULL is allowed */

/* Has the table a column to model? A file of constants, identifiers and empty columns is a table of no columns. It can
 * be described, and its constants completed, but it cannot be fitted. Fails then: ACF_EDATA. Without a file: ACF_OK. */
acf_status acf_table_file_learnable(const acf_table *t);

/* Number of missing cells in columns that can be filled: modelled columns, and constants that the user wants filled. */
int64_t acf_table_file_missing(const acf_table_file *f);

/* "41 missing cells stay as they are: uid (identifier) 41 ...": the other missing cells, and how to have them imputed;
 * empty if there are none. */
void acf_table_file_unfilled(const acf_table_file *f, acf_text *out);

/* Calls visit with the text of every cell of the table, row after row, until one call fails. The text is that of the
 * file, without quotes. For a stored number it is the shortest text; without a file, that of the value. Threads may
 * call this at once, also while writers are open: each has its own reader. Fails as reading does, and as visit. */
typedef acf_status (*acf_text_visit)(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes);
acf_status acf_table_file_texts(const acf_table *t, acf_text_visit visit, void *ctx);

/* x (N, columns of the file): NaN for missing cells, also in columns that are not modelled, any number elsewhere. Only
 * if t has a file. Fails as above. */
acf_status acf_table_file_pattern(const acf_table *t, double *x);

/* Describes how the file is written in a line: "separator ';', header, decimal comma". odd: only what is unusual. Empty
 * for a file that is not separated text. */
void acf_table_file_dialect(const acf_table_file *f, bool odd, acf_text *out);

/* Warns that the file, a table of one column, ends with that many blank lines; 0: no warning. Fails: ACF_EMEMORY. */
acf_status acf_table_file_say_blank(acf_table_file *f, int64_t lines);

/* The file's name in messages. */
const char *acf_table_file_path(const acf_table_file *f);

#endif
