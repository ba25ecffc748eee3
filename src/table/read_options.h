/* What the user says about a file: how it is written, what marks a missing cell, what its columns are. From the options of the group
 * "file" (option_table.h) and from a schema file (docs/columns.md). Where both name a column's type, the option wins: it is nearer. */
#ifndef ACF_TABLE_READ_OPTIONS_H
#define ACF_TABLE_READ_OPTIONS_H

#include "base/options.h"
#include "table/csv.h"
#include "table/schema.h"

typedef struct acf_read_options {
    acf_csv_want want;
    acf_na_strings na_strings, added; /* all that are in force; those that the option `missing` names */
    acf_schema *types;                /* from the option: a name and a kind each; NULL: none */
    acf_schema *file;                 /* from the schema file; NULL: none */
    acf_arena *texts;
    bool fill_constants; /* missing cells of a column with one value get it */
    bool any_order;      /* columns may stand in another order than a model's */
    char point;          /* the decimal mark where a column does not tell, '.' or ','; 0: not said */
    const char *id;      /* the column whose text keys a row's random draws; NULL: none */
} acf_read_options;

/* o NULL, or without the group "file": no wishes. Gives *out; free with acf_read_options_free.
 * Fails: ACF_EUSAGE (a wrong option or schema file), ACF_EIO, ACF_EMEMORY. */
acf_status acf_read_options_read(const acf_options *o, acf_read_options **out);
void acf_read_options_free(acf_read_options *w); /* NULL is allowed */

/* Which wish concerns each of the n columns of these names: out (n), borrowed from w, NULL for none. file begins sentences.
 * Fails: ACF_EUSAGE (a wish for a column that is not there, with the nearest name). */
acf_status acf_read_options_match(const acf_read_options *w, const char *file, const char *const *name, int64_t n,
                                  const acf_field_spec **out);

/* The column that the option `id` names, -1 for none. Fails: ACF_EUSAGE (it is not there, with the nearest name). */
acf_status acf_read_options_id(const acf_read_options *w, const char *file, const char *const *name, int64_t n,
                               int64_t *out);

#endif
