/* Warnings about columns that became text although their cells look like something else: numbers with a sign or with
 * words among them, ambiguous dates, codes. As text the values are not lost, but the user should know, and know what to
 * do. At most one warning for a column: the one that explains most of its cells. Plain text gives none. */
#ifndef ACF_TABLE_TYPING_WARNINGS_H
#define ACF_TABLE_TYPING_WARNINGS_H

#include "table/profile.h"
#include "table/schema.h"
#include "table/warnings.h"

/* c: a column of text, so a category or an identifier. The warning begins with where. Fails: ACF_EMEMORY. */
acf_status acf_typing_note(const acf_profile_column *c, const acf_kind *kind, const char *where,
                           acf_warnings *warnings);

/* Warns about NA strings that may be values, in a column of words, a category or a constant. Fails: ACF_EMEMORY. */
acf_status acf_typing_warn_na_strings(const acf_profile_column *c, const acf_kind *kind, const char *where,
                                      acf_warnings *warnings);

/* Warns about numbers that look like codes of missing cells: -999 among ages, 99 in a column that otherwise ends at 8.
 * Fails: ACF_EMEMORY. */
acf_status acf_typing_warn_sentinels(const acf_profile_column *c, const char *where, acf_warnings *warnings);

#endif
