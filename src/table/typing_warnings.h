/* Sentences about columns that became text although their cells look like something else: numbers with a sign or with words among them, dates
 * that could be read in two ways, codes. As text they are not lost, but a person should know, and be told what to do. One for a column, at
 * most: the one that explains most of its cells. Plain text has none. */
#ifndef ACF_TABLE_TYPING_WARNINGS_H
#define ACF_TABLE_TYPING_WARNINGS_H

#include "table/profile.h"
#include "table/schema.h"
#include "table/warnings.h"

/* c: a column that was judged to be text, and so is a category or an identifier. where begins the sentence. Fails: ACF_EMEMORY. */
acf_status acf_typing_note(const acf_profile_column *c, const acf_kind *kind, const char *where,
                           acf_warnings *warnings);

/* Notes the markers in a column of words, a category or a constant, that may be values there. Fails: ACF_EMEMORY. */
acf_status acf_typing_warn_na_strings(const acf_profile_column *c, const acf_kind *kind, const char *where,
                                      acf_warnings *warnings);

/* Notes numbers that look like codes of missing cells: -999 among ages, 99 in a column that else ends at 8. Fails:
 * ACF_EMEMORY. */
acf_status acf_typing_warn_sentinels(const acf_profile_column *c, const char *where, acf_warnings *warnings);

#endif
