/* What the kinds whose values are texts (category, ordinal, constant) have in common: levels, the list of these
 * texts with their counts. */
#ifndef ACF_TABLE_KIND_LEVELS_H
#define ACF_TABLE_KIND_LEVELS_H

#include "table/typing.h"

/* ---- what a column holds ---------------------------------------------------------------------------------------- */

/* How many different texts; at least so many when the profile stopped keeping them, which is_counted tells. */
static inline int64_t acf_levels_distinct(const acf_profile_column *c) { return c->numbers.n + c->words.n; }
static inline bool acf_levels_are_counted(const acf_profile_column *c) {
    return c->numbers.beyond + c->words.beyond + c->prose == 0;
}

/* All different texts of the column, the most frequent first; *out is released by the caller. Fails: ACF_EMEMORY. */
acf_status acf_levels_all(const acf_profile_column *c, acf_text_counts_entry **out, int64_t *n);

/* Numbers before words, numbers by value, words by their bytes: an order that does not depend on the rows. */
void acf_levels_sort(const acf_profile_column *c, acf_text_counts_entry *list, int64_t n);

/* A text with the count it has elsewhere; all texts of a list. Fail: ACF_EMEMORY. */
acf_status acf_levels_add(acf_text_counts *to, const acf_text_counts_entry *e);
acf_status acf_levels_copy(acf_text_counts *to, const acf_text_counts *from);

/* The levels that the user wrote down, counted in the data. */
acf_status acf_levels_from_user(acf_typing_column *t);

/* ---- cells, words ----------------------------------------------------------------------------------------------- */

/* The level that a text is; -1: none. */
int64_t acf_levels_find(const acf_field_spec *c, const char *text, size_t n);

void acf_levels_format(const acf_field_spec *c, int64_t level, acf_text *out);
double acf_levels_number(const acf_field_spec *c, int64_t level); /* that its text is; NaN: none */

/* "3 levels: I (1342), M (1528), F (1307)", as many as fit the line. */
void acf_levels_describe(const acf_field_spec *c, acf_text *out);

#endif
