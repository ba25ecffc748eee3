/* A status with a sentence: how every failure is reported.
 *
 * A failing function calls acf_fail once, where it knows most, and every caller forwards the code with ACF_TRY. The
 * sentence lives in thread-local storage, the only global state of the library. In debug builds each ACF_TRY on the way
 * up adds file, line and expression to a trace. */
#ifndef ACF_BASE_STATUS_H
#define ACF_BASE_STATUS_H

#include "acflow.h"

#include <stdbool.h>

#define ACF_SENTENCE_MAX 1024
#define ACF_TRACE_MAX 2048

/* Copy of a thread's last failure: what a tape keeps, so that its first failure survives later ones. */
typedef struct acf_failure {
    acf_status status;
    char sentence[ACF_SENTENCE_MAX];
} acf_failure;

/* Records a failure and returns its code. A sentence longer than the buffer is truncated. */
acf_status acf_fail(acf_status status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Copies the last failure to *out, or makes *f the last failure again and returns its status. */
void acf_failure_save(acf_failure *out);
acf_status acf_failure_restore(const acf_failure *f);

/* Forgets the thread's last failure and its trace. */
void acf_error_clear(void);

/* The trace of the last failure, one "file:line: expression" a line. Empty in release builds. */
const char *acf_error_trace(void);
void acf_trace(const char *file, int line, const char *expr);

#ifdef ACF_DEBUG
#define ACF_TRACE(expr) acf_trace(__FILE__, __LINE__, expr)
#else
#define ACF_TRACE(expr) ((void)0)
#endif

#define ACF_TRY(expr)                                                                                                  \
    do {                                                                                                               \
        acf_status try_status_ = (expr);                                                                               \
        if (try_status_ != ACF_OK) {                                                                                   \
            ACF_TRACE(#expr);                                                                                          \
            return try_status_;                                                                                        \
        }                                                                                                              \
    } while (0)

/* Same for functions with something to release: sets `status` and jumps to `done`. */
#define ACF_TRY_DONE(expr)                                                                                             \
    do {                                                                                                               \
        status = (expr);                                                                                               \
        if (status != ACF_OK) {                                                                                        \
            ACF_TRACE(#expr);                                                                                          \
            goto done;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* A cheap check at a module border that stays on in release builds. It finds our defects, not the caller's. */
#define ACF_ASSERT(cond)                                                                                               \
    do {                                                                                                               \
        if (!(cond)) acf_assert_failed(__FILE__, __LINE__, #cond);                                                     \
    } while (0)
_Noreturn void acf_assert_failed(const char *file, int line, const char *cond);

#endif
