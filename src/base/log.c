/* Messages: see log.h. */
#include "base/log.h"

#include <stdarg.h>

#define LINE_MAX_BYTES 1024

void acf_say(const acf_log *log, acf_log_level level, const char *fmt, ...) {
    if (!log || !log->sink || level == ACF_LOG_QUIET || level > log->level) return;
    char line[LINE_MAX_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    log->sink(log->ctx, level, line);
}

void acf_log_to_file(void *file, acf_log_level level, const char *line) {
    /* Indexed by level; plain information needs no label. */
    static const char *const label[] = {"", "error: ", "warning: ", "", "debug: "};
    /* One call, so that lines of several threads do not mix. */
    fprintf(file, "acflow: %s%s\n", label[level], line);
    fflush(file);
}
