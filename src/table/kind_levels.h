/* Levels: the list of texts with their counts, for the kinds whose values are texts (category, ordinal, constant). */
#ifndef ACF_TABLE_KIND_LEVELS_H
#define ACF_TABLE_KIND_LEVELS_H

#include "table/typing.h"

/* ---- what a column holds ----------------------------------------------------------------------------------------- */

/* The number of different texts; a lower bound if the profile stopped keeping them (see is_counted). */
static inline int64_t acf_levels_distinct(const acf_profile_column *c) { return c->numbers.n + c->words.n; }
static inline bool acf_levels_are_counted(const acf_profile_column *c) {
    return c->numbers.beyond + c->words.beyond + c->prose == 0;
}

/* All different texts of the column, the most frequent first; the caller releases *out. Fails: ACF_EMEMORY. */
acf_status acf_levels_all(const acf_profile_column *c, acf_text_counts_entry **out, int64_t *n);

/* Numbers before words, numbers by value, words by their bytes: the order does not depend on the rows. */
void acf_levels_sort(const acf_profile_column *c, acf_text_counts_entry *list, int64_t n);

/* Adds a text with its count elsewhere; all texts of a list. Fail: ACF_EMEMORY. */
acf_status acf_levels_add(acf_text_counts *to, const acf_text_counts_entry *e);
acf_status acf_levels_copy(acf_text_counts *to, const acf_text_counts *from);

/* The levels that the user listed, counted in the data. */
acf_status acf_levels_from_user(acf_typing_column *t);

/* ---- cells, words ------------------------------------------------------------------------------------------------ */

/* The level of a text; -1: none. */
int64_t acf_levels_find(const acf_field_spec *c, const char *text, size_t n);

void acf_levels_format(const acf_field_spec *c, int64_t level, acf_text *out);
double acf_levels_number(const acf_field_spec *c, int64_t level); /* the number its text stands for; NaN: none */

/* "3 levels: I (1342), M (1528), F (1307)", as many as fit into the line. */
void acf_levels_describe(const acf_field_spec *c, acf_text *out);

#endif
