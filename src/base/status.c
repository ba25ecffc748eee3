/* Status with a sentence: see status.h. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local acf_failure last;
static _Thread_local char trace_text[ACF_TRACE_MAX];
static _Thread_local size_t trace_len;

/* One row per status, in the order of the enum. */
static const struct {
    const char *name;
    int exit_code;
} statuses[ACF_STATUS_COUNT] = {
    [ACF_OK] = {"ACF_OK", 0},
    [ACF_EINTERNAL] = {"ACF_EINTERNAL", 1},
    [ACF_EUSAGE] = {"ACF_EUSAGE", 2},
    [ACF_ESHAPE] = {"ACF_ESHAPE", 2},
    [ACF_ESPACE] = {"ACF_ESPACE", 2},
    [ACF_EDATA] = {"ACF_EDATA", 3},
    [ACF_EIO] = {"ACF_EIO", 3},
    [ACF_EMODEL] = {"ACF_EMODEL", 4},
    [ACF_EMEMORY] = {"ACF_EMEMORY", 5},
    [ACF_EDEVICE] = {"ACF_EDEVICE", 5},
    [ACF_ENUMERIC] = {"ACF_ENUMERIC", 6},
    [ACF_EINTERRUPT] = {"ACF_EINTERRUPT", 130},
};

/* Other languages pass statuses as plain integers: never use one as an index unchecked. */
static bool known(acf_status status) { return (unsigned)status < ACF_STATUS_COUNT; }

const char *acf_status_name(acf_status status) { return known(status) ? statuses[status].name : "ACF_UNKNOWN"; }

int acf_status_exit(acf_status status) { return known(status) ? statuses[status].exit_code : 1; }

const char *acf_error(void) { return last.sentence; }

acf_status acf_error_status(void) { return last.status; }

const char *acf_error_trace(void) { return trace_text; }

acf_status acf_fail(acf_status status, const char *fmt, ...) {
    /* Written to another buffer first: the arguments may point into the old sentence ("while saving: %s",
     * acf_error()). */
    char sentence[ACF_SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    memcpy(last.sentence, sentence, sizeof sentence);
    last.status = status;
    trace_len = 0;
    trace_text[0] = '\0';
    return status;
}

void acf_failure_save(acf_failure *out) { *out = last; }

acf_status acf_failure_restore(const acf_failure *f) {
    last = *f;
    trace_len = 0; /* the trace belongs to the failure that is being replaced */
    trace_text[0] = '\0';
    return f->status;
}

void acf_error_clear(void) {
    last.status = ACF_OK;
    last.sentence[0] = '\0';
    trace_len = 0;
    trace_text[0] = '\0';
}

/* Called once per ACF_TRY that forwards a failure, innermost first. When the trace is full its outer part is lost,
 * which is easier to guess. */
void acf_trace(const char *file, int line, const char *expr) {
    if (trace_len + 1 >= sizeof trace_text) return;
    int n = snprintf(trace_text + trace_len, sizeof trace_text - trace_len, "%s:%d: %s\n", file, line, expr);
    if (n > 0) trace_len += (size_t)n;
    if (trace_len >= sizeof trace_text) trace_len = sizeof trace_text - 1;
}

_Noreturn void acf_assert_failed(const char *file, int line, const char *cond) {
    fprintf(stderr, "acflow: internal error at %s:%d: %s does not hold; please report it\n", file, line, cond);
    abort();
}
