/* Describes a schema in words: the columns of a file with kind, missing cells, range or levels, and the warnings. */
#ifndef ACF_TABLE_DESCRIBE_H
#define ACF_TABLE_DESCRIBE_H

#include "table/schema.h"
#include "table/warnings.h"

/* Lines for people. file names the source; how describes its format, "" for none. The warnings may be NULL. */
void acf_describe(const acf_schema *s, const char *file, const char *how, const acf_warnings *warnings, acf_text *out);

/* JSON that can be edited and used as a schema file. Fails: ACF_EMEMORY. */
acf_status acf_describe_json(const acf_schema *s, const char *file, const char *how, const acf_warnings *warnings,
                             acf_text *out);

#endif
