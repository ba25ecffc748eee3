/* The texts that say "no value here": the usual ones, and those the user names.
 *
 * Looked up for every cell of a file, so most cells must leave after a glance at their length and first byte. */
#ifndef ACF_DATA_MARKERS_H
#define ACF_DATA_MARKERS_H

#include "data/tally.h"

/* Compared byte for byte with a cell's text: white space around it and quotes are gone by then. */
#define ACF_MARKERS_USUAL {"", "NA", "N/A", "#N/A", "?", "NaN", "nan", "null", "NULL", "None", ".", "-"}

typedef struct acf_markers {
    acf_tally list; /* in the order they were named */
    size_t longest;
    bool first[256]; /* bytes that one of them begins with */
} acf_markers;

/* None yet; keeps texts. Free with acf_markers_clear. */
acf_markers acf_markers_make(acf_arena *texts);
void acf_markers_clear(acf_markers *m);

/* Adds one; twice is once. Fails: ACF_EMEMORY. */
acf_status acf_markers_add(acf_markers *m, const char *text, size_t n);

/* Adds the usual ones; those of a list with commas between them, "-999,unknown" ("": none). Fail: ACF_EMEMORY. */
acf_status acf_markers_add_usual(acf_markers *m);
acf_status acf_markers_add_list(acf_markers *m, const char *list);

static inline bool acf_markers_has(const acf_markers *m, const char *text, size_t n) {
    if (n > m->longest || (n > 0 && !m->first[(unsigned char)*text])) return false;
    return acf_tally_find(&m->list, text, n) >= 0;
}

#endif
