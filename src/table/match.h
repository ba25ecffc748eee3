/* The columns of a file against those of a model's schema: by name, or by position where one of them has no names. */
#ifndef ACF_TABLE_MATCH_H
#define ACF_TABLE_MATCH_H

#include "table/profile.h"
#include "table/table_file.h"

/* Sets f->spec from f->name and f->schema; -1 for a column the schema does not know. Harmless differences (another order, a missing
 * identifier) become notes. Fails: ACF_EDATA (a modelled column is missing; without names: another number of columns), ACF_EUSAGE (a wish
 * about a column that the model has settled), ACF_EMEMORY. */
acf_status acf_match(acf_table_file *f, const acf_read_options *w);

/* Judges the columns that the schema does not know, now that they have been looked at: an identifier, a constant or an empty one is
 * carried along with a note, and so is one the user calls an identifier. Fails: ACF_EDATA (any other), ACF_EMEMORY. */
acf_status acf_match_unseen_levels(acf_table_file *f, const acf_read_options *w, const acf_profile *p);

/* Fails (ACF_EUSAGE) with the schema's nearest name. */
acf_status acf_match_unknown(const acf_schema *s, const char *name);

#endif
