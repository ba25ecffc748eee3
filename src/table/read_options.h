/* Read options: what the user says about a file, namely how it is written, what marks a missing cell, and the kinds of
 * its columns. They come from the options of the group "file" (option_table.h) and from a schema file
 * (docs/columns.md). If both name a column's type, the option takes precedence. */
#ifndef ACF_TABLE_READ_OPTIONS_H
#define ACF_TABLE_READ_OPTIONS_H

#include "base/options.h"
#include "table/csv.h"
#include "table/schema.h"

typedef struct acf_read_options {
    acf_csv_want want;
    acf_na_strings na_strings, added; /* all that apply; those of the option `missing` */
    acf_schema *types;                /* from the option: a name and a kind each; NULL: none */
    acf_schema *file;                 /* from the schema file; NULL: none */
    acf_arena *texts;
    bool fill_constants; /* missing cells of a constant column get its value */
    bool any_order;      /* columns may be in another order than the model's */
    char point;          /* the decimal mark for columns that do not show it, '.' or ','; 0: not set */
    const char *id;      /* the column whose text keys a row's random draws; NULL: none */
} acf_read_options;

/* o NULL, or without the group "file": no read options. Gives *out; free with acf_read_options_free. Fails: ACF_EUSAGE
 * (a wrong option or schema file), ACF_EIO, ACF_EMEMORY. */
acf_status acf_read_options_read(const acf_options *o, acf_read_options **out);
void acf_read_options_free(acf_read_options *w); /* NULL is allowed */

/* Finds what the user says about each of the n columns of these names: out (n), borrowed from w, NULL for none.
 * Messages begin with file. Fails: ACF_EUSAGE (a column that does not exist, with the nearest name). */
acf_status acf_read_options_match(const acf_read_options *w, const char *file, const char *const *name, int64_t n,
                                  const acf_field_spec **out);

/* The number of the column that the option `id` names, -1 for none. Fails: ACF_EUSAGE (no such column, with the nearest
 * name). */
acf_status acf_read_options_id(const acf_read_options *w, const char *file, const char *const *name, int64_t n,
                               int64_t *out);

#endif
