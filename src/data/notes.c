/* Sentences for the user: see notes.h. */
#include "data/notes.h"

#include <stdarg.h>
#include <stdio.h>

/* A table of ten thousand columns may have as many remarks; the first ones tell the story. */
acf_status acf_notes_addf(acf_notes *notes, const char *fmt, ...) {
    char sentence[ACF_SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    if (notes->n == ACF_NOTES_MAX) { /* the last place now counts */
        notes->left_out++;
        snprintf(sentence, sizeof sentence, "and %lld more such remarks", (long long)notes->left_out + 1);
    }
    char *copy = acf_alloc_text(sentence, "a remark");
    if (!copy) return ACF_EMEMORY;
    if (notes->n == ACF_NOTES_MAX) acf_release(notes->text[--notes->n]);
    notes->text[notes->n++] = copy;
    return ACF_OK;
}

void acf_notes_clear(acf_notes *notes) {
    for (int i = 0; i < notes->n; i++) acf_release(notes->text[i]);
    *notes = (acf_notes){0};
}
