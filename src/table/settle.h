/* How the columns of a file write their numbers, once all cells have been seen: between the first look (profile.h) and
 * typing (typing.h).
 *
 * A column tells by its own cells (192,4: a decimal comma). Where it does not (1.698), the other columns of the file
 * do: where those that tell agree, it is written as they are. Else the separator does: a table that is cut at commas,
 * or at white space, has decimal points. The option `decimal` is asked before either. */
#ifndef ACF_TABLE_SETTLE_H
#define ACF_TABLE_SETTLE_H

#include "table/profile.h"
#include "table/table_file.h"

/* Sets notation and verdict of the columns that skip (columns) does not name, and skip for all but those that are to be
 * looked at again. wish (columns), or NULL: what the user wants of each column. What was assumed is noted. Fails:
 * ACF_EMEMORY. */
acf_status acf_settle(acf_table_file *f, acf_profile *p, const acf_read_options *w, const acf_field_spec *const *wish,
                      bool *skip);

#endif
