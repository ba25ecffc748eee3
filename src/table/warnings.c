/* Warnings: see warnings.h. */
#include "table/warnings.h"

#include <stdarg.h>
#include <stdio.h>

/* A table of ten thousand columns may have as many warnings; the first ones suffice. */
acf_status acf_warnings_addf(acf_warnings *warnings, const char *fmt, ...) {
    char sentence[ACF_SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    if (warnings->n == ACF_WARNINGS_MAX) { /* from now on, the last place holds the count */
        warnings->left_out++;
        snprintf(sentence, sizeof sentence, "and %lld more warnings", (long long)warnings->left_out + 1);
    }
    char *copy = acf_alloc_text(sentence, "a warning");
    if (!copy) return ACF_EMEMORY;
    if (warnings->n == ACF_WARNINGS_MAX) acf_release(warnings->text[--warnings->n]);
    warnings->text[warnings->n++] = copy;
    return ACF_OK;
}

void acf_warnings_clear(acf_warnings *warnings) {
    for (int i = 0; i < warnings->n; i++) acf_release(warnings->text[i]);
    *warnings = (acf_warnings){0};
}
