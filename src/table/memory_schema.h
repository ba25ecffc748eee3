/* Makes a schema for a table in memory, so that it can be described and written like one from a file. */
#ifndef ACF_TABLE_MEMORY_SCHEMA_H
#define ACF_TABLE_MEMORY_SCHEMA_H

#include "table/schema.h"

/* Every column is modelled: a category of codes 0..C-1, an integer if all cells are whole, else a real with the
 * decimals of its cells. Columns without names are called V1, V2, ... Gives *out; free with acf_schema_free. Fails:
 * ACF_EMEMORY. */
acf_status acf_memory_schema(const acf_table *t, acf_schema **out);

#endif
