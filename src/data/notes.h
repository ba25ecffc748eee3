/* Sentences for the user that are no failures: what was assumed, what was left out, what was odd. A handful for a table. */
#ifndef ACF_DATA_NOTES_H
#define ACF_DATA_NOTES_H

#include "base/arena.h"

#define ACF_NOTES_MAX 100 /* more would be read by nobody; the last place says how many are left out */

/* Starts as zeros. Free with acf_notes_clear. */
typedef struct acf_notes {
    int n;
    char *text[ACF_NOTES_MAX];
    int64_t left_out;
} acf_notes;

/* Adds a sentence; a long one is cut. Fails: ACF_EMEMORY. */
acf_status acf_notes_addf(acf_notes *notes, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void acf_notes_clear(acf_notes *notes);

#endif
