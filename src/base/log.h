/* Messages: what a long-running part says about its work, to whoever wants to hear it.
 *
 * The library never prints. Code that has something to say gets a log handle; the program decides the level and where
 * lines go. The default, and a NULL handle, is silence. Messages are rare (a few a second at most), so a line is
 * formatted only when its level is wanted, and then costs what printf costs. */
#ifndef ACF_BASE_LOG_H
#define ACF_BASE_LOG_H

#include "base/status.h"

#include <stdio.h>

/* In the order of the enum: the option "log-level" is one of these words. */
#define ACF_LOG_LEVELS "quiet|error|warn|info|debug"

typedef enum acf_log_level { ACF_LOG_QUIET, ACF_LOG_ERROR, ACF_LOG_WARN, ACF_LOG_INFO, ACF_LOG_DEBUG } acf_log_level;

/* Called with one line, without its newline. */
typedef void acf_log_sink(void *ctx, acf_log_level level, const char *line);

typedef struct acf_log {
    acf_log_level level; /* lines above it are dropped */
    acf_log_sink *sink;  /* NULL: silent */
    void *ctx;           /* keeps; handed to sink */
} acf_log;

/* Says a line. log may be NULL. A line longer than a kilobyte is cut. */
void acf_say(const acf_log *log, acf_log_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A sink for a FILE *, given as ctx: "acflow: warning: ...", in one write per line. */
void acf_log_to_file(void *file, acf_log_level level, const char *line);

#endif
