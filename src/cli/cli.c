/* Speaking to the user: see cli.h. The only state of the program is here: how loud to be, and whether stdout failed. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static cli_level wanted = CLI_WARN;

/* One fprintf a line: stderr is unbuffered, and lines of programs that run side by side should not mix. */
void cli_say(cli_level level, const char *fmt, ...) {
    if (level > wanted) return;
    char line[2048]; /* longer than any sentence of the library */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fprintf(stderr, "acflow: %s%s\n", level == CLI_WARN ? "warning: " : "", line);
}

/* The words are those of the option table, which has already checked the value. */
void cli_listen(const acf_options *o) {
    static const char *const names[] = {"quiet", "error", "warn", "info", "debug"};
    char word[16];
    if (acf_options_get(o, "log-level", word, sizeof word, NULL) != ACF_OK) return;
    for (int i = CLI_QUIET; i <= CLI_DEBUG; i++)
        if (strcmp(word, names[i]) == 0) wanted = (cli_level)i;
}

/* Where to read more. The command may be "", for acflow itself. */
static void hint(const char *command) {
    if (wanted >= CLI_ERROR) fprintf(stderr, "Try 'acflow %s%s--help'.\n", command, *command ? " " : "");
}

/* The library's sentence already names file, value and range; the command line only adds where to read more. */
int cli_failed(const char *command) {
    cli_say(CLI_ERROR, "%s", acf_error());
    if (acf_error_status() == ACF_EUSAGE) hint(command);
    return acf_status_exit(acf_error_status());
}

int cli_usage(const char *command, const char *fmt, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    cli_say(CLI_ERROR, "%s", line);
    hint(command);
    return acf_status_exit(ACF_EUSAGE);
}

int cli_no_memory(const char *what) {
    cli_say(CLI_ERROR, "out of memory for %s", what);
    return acf_status_exit(ACF_EMEMORY);
}

static int write_errno; /* why the first write to stdout failed; 0 while none has */

/* Everything for stdout goes through here, so that no failed write is missed. */
void cli_print(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (vprintf(fmt, ap) < 0 && write_errno == 0) write_errno = errno;
    va_end(ap);
}

int cli_close(int exit_code) {
    /* Most output is still in the buffer: a full disk shows when it is flushed. */
    if (fflush(stdout) != 0 && write_errno == 0) write_errno = errno;
    if (write_errno == 0) return exit_code;
    if (write_errno == EPIPE) return exit_code; /* `acflow ... | head` has what it wanted */
    cli_say(CLI_ERROR, "cannot write the output: %s", strerror(write_errno));
    return exit_code ? exit_code : acf_status_exit(ACF_EIO);
}
