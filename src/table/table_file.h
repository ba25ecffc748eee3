/* A file read as a table: its schema, the modelled columns as numbers, and the way back to the cells of the file.
 *
 *     file      id      age     sex     city    note         text, as it stands on disk
 *     schema    identi. integer categ.  const.  empty        what each column is
 *     table             0       1                            D = 2 columns of doubles; the others are not modelled
 *
 * Two passes over the file, and the text of its cells is kept by neither: the first finds out what the columns hold (with a model at hand:
 * counts the rows and looks at columns the model does not know), the second fills the numbers in. Memory is 8 bytes for each modelled
 * cell and what the reader takes. The reader stays open, because the writer of a completed file (writer.h) copies what was observed from
 * the file itself. */
#ifndef ACF_TABLE_TABLE_FILE_H
#define ACF_TABLE_TABLE_FILE_H

#include "table/cell.h"
#include "table/reader.h"
#include "table/warnings.h"

/* Cells of modelled columns that hold a level the schema does not know: i·D + j of the table, rising. */
typedef struct acf_unseen_levels {
    int64_t *cell, n, capacity;
} acf_unseen_levels;

typedef struct acf_table_file {
    char *path;         /* as the user gave it; NULL: no file (acf_table_file_blank). Everything here is owned */
    acf_reader *reader; /* of the file; NULL without one */
    acf_schema *schema;
    int64_t columns;  /* of the file */
    int64_t *spec;    /* (columns) its place in the schema; -1: the model does not know it, and it is left alone */
    char **name;      /* (columns) */
    acf_arena *texts; /* the names */
    char **
        given; /* (columns of the schema) of a table without a file: the texts that were given, NULL for others; NULL: it has one */
    acf_warnings warnings;
    int64_t *missing; /* (columns) its missing cells in this file */
    bool known;       /* the schema is a model's: what the columns are can no longer be said */
    acf_unseen_levels unseen_levels;
    int64_t id; /* column whose text keys a row's draws (option `id`); -1: none */
} acf_table_file;

/* Reads a file of any format (reader.h), finding out what its columns are. Gives *out, with its frame; free with acf_table_free.
 * Fails: ACF_EIO, ACF_EDATA (file, line, column, what was found and expected), ACF_EUSAGE (a wish that cannot be granted), ACF_EMEMORY. */
acf_status acf_table_file_read(const char *path, const acf_read_options *w, acf_table **out);

/* The same for a file that is known to be of this format. */
acf_status acf_table_file_read_as(const acf_file_format *format, const char *path, const acf_read_options *w,
                                  acf_table **out);

/* Reads a file for a model: columns are what `known` says, found by name or, where the file or the model has no names, by position; the
 * table's columns are in the model's order. Borrows known. Fails: as above; ACF_EDATA also when a column is missing, or is one that the
 * model does not know and that is neither an identifier nor constant nor empty. */
acf_status acf_table_file_read_for(const char *path, const acf_read_options *w, const acf_schema *known,
                                   acf_table **out);

/* A table without a file: `rows` rows of missing cells but for those that `given` says ("age=40,sex=F"; NULL or "": none), the same
 * in every row. A number outside of the observed range is taken, and noted. Fails: ACF_EUSAGE (a name or value that the schema does not know, a column
 * that is given twice), ACF_ESHAPE (rows < 0), ACF_EMEMORY. */
acf_status acf_table_file_blank(const acf_schema *known, int64_t rows, const char *given, acf_table **out);

void acf_table_file_free(acf_table_file *f); /* NULL is allowed */

/* Is there anything to learn? A file of constants, identifiers and empty columns is a table of no columns: it can be described, and completed as far
 * as its constants go, but not be fitted to. Fails, then: ACF_EDATA. Of a table that has no file: ACF_OK. */
acf_status acf_table_file_learnable(const acf_table *t);

/* Missing cells of columns that have something to write there: those that are modelled, and constants that are to be
 * filled. */
int64_t acf_table_file_missing(const acf_table_file *f);

/* "41 missing cells stay as they are: uid (identifier) 41 ...": the other missing cells, and what would have them filled in; nothing where
 * there are none. */
void acf_table_file_unfilled(const acf_table_file *f, acf_text *out);

/* Calls visit with the text of every cell of the table as its file has it, without quotes, row after row, until one
 * fails: of a number the shortest text, of a table without a file that of its value. Threads may do so
 * at once, and writers be open: each has a reader of its own. Fails as reading does, and as visit. */
typedef acf_status (*acf_text_visit)(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes);
acf_status acf_table_file_texts(const acf_table *t, acf_text_visit visit, void *ctx);

/* x (N, columns of the file): NaN in its holes, also of columns that are not modelled, some number elsewhere. Only where t has a file; as above. */
acf_status acf_table_file_pattern(const acf_table *t, double *x);

/* How the file is written, in a line: "separator ';', header, decimal comma". odd: nothing where that is as in most files. Nothing, too, for a
 * file that is no text with separators. */
void acf_table_file_dialect(const acf_table_file *f, bool odd, acf_text *out);

/* Notes that the file, a table of one column, ends in so many blank lines; 0: nothing to note. Fails: ACF_EMEMORY. */
acf_status acf_table_file_say_blank(acf_table_file *f, int64_t lines);

/* The file's name in sentences. */
const char *acf_table_file_path(const acf_table_file *f);

#endif
