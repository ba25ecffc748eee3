/* Matches the columns of a file to those of a model's schema: by name, or by position if one of them has no names. */
#ifndef ACF_TABLE_MATCH_H
#define ACF_TABLE_MATCH_H

#include "table/profile.h"
#include "table/table_file.h"

/* Sets f->spec from f->name and f->schema; -1 for a column that the schema does not have. Harmless differences
 * (another order, a missing identifier) become warnings. Fails: ACF_EDATA (a modelled column is missing; without
 * names: another number of columns), ACF_EUSAGE (a read option for a column of the model), ACF_EMEMORY. */
acf_status acf_match(acf_table_file *f, const acf_read_options *w);

/* Checks the columns that the schema does not have, after they were profiled. An identifier, constant or empty
 * column is carried along with a warning, and so is one that the user calls an identifier. Fails: ACF_EDATA (any
 * other), ACF_EMEMORY. */
acf_status acf_match_unseen_levels(acf_table_file *f, const acf_read_options *w, const acf_profile *p);

/* Fails (ACF_EUSAGE) with the schema's nearest name. */
acf_status acf_match_unknown(const acf_schema *s, const char *name);

#endif
