/* Decides how the columns of a file write their numbers, once all cells have been seen: between the first pass
 * (profile.h) and typing (typing.h).
 *
 * The cells of a column decide first (192,4: a decimal comma). If they do not (1.698), the option `decimal` decides.
 * Without it the other columns of the file decide, provided that those with evidence agree. Else the separator decides:
 * a table separated by commas or white space has decimal points. */
#ifndef ACF_TABLE_SETTLE_H
#define ACF_TABLE_SETTLE_H

#include "table/profile.h"
#include "table/table_file.h"

/* Sets notation and verdict of the columns that skip (columns) does not name. Clears skip for the columns that must be
 * counted again and sets it for all others. wish (columns), or NULL: what the user says of each column. Adds warnings
 * for assumptions. Fails: ACF_EMEMORY. */
acf_status acf_settle(acf_table_file *f, acf_profile *p, const acf_read_options *w, const acf_field_spec *const *wish,
                      bool *skip);

#endif
