/* Counts of distinct texts: the different values of a column, their counts, and the row where each was first seen.
 *
 *     texts in order of first appearance   0 'M' x 1528 from row 0     1 'F' x 1307 from row 2     2 'I' ...
 *     slots of a hash table                [ . 2 . . 0 . 1 . ]         text -> place in the list
 *
 * Exact up to `cap` different texts; once the list is full, new texts are only counted (`beyond`). A million rows add
 * to twenty of these, so adding is a hash and, mostly, one comparison. The order of the list does not depend on the
 * hash. */
#ifndef ACF_TABLE_TEXT_COUNTS_H
#define ACF_TABLE_TEXT_COUNTS_H

#include "base/arena.h"

typedef struct acf_text_counts_entry {
    const char *text; /* length bytes and a NUL */
    size_t length;
    int64_t count, first; /* cells that hold it; row of the first */
} acf_text_counts_entry;

typedef struct acf_text_counts {
    int64_t n, cap;
    acf_text_counts_entry *entry; /* (n) in order of first appearance */
    int64_t beyond;               /* cells whose text was new when the list was full */
    int64_t capacity;             /* of entry */
    int32_t *slot;                /* (2 capacity) place + 1, or 0 */
    acf_arena *texts;             /* not owned */
} acf_text_counts;

/* An arena for texts, without alignment padding. Free with acf_arena_free. */
acf_status acf_text_arena(acf_arena **out);

/* A copy of n bytes with a final NUL, in an arena; NULL and ACF_EMEMORY without memory. */
char *acf_text_keep(acf_arena *texts, const char *text, size_t n);

/* Empty counts; borrows texts, which several may share. cap is at most 2^30. Free with acf_text_counts_clear. Allocates
 * nothing yet. */
acf_text_counts acf_text_counts_make(int64_t cap, acf_arena *texts);
void acf_text_counts_clear(acf_text_counts *t);

/* Counts a text seen in this row. Fails: ACF_EMEMORY. */
acf_status acf_text_counts_add(acf_text_counts *t, const char *text, size_t n, int64_t row);

/* The place of a text in the list, -1 if it is not there. */
int64_t acf_text_counts_find(const acf_text_counts *t, const char *text, size_t n);

#endif
