/* Messages to the user: see cli.h. The only state of the program is here: the level of messages, and whether stdout
 * failed. */
#include "cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cli_level wanted = CLI_WARN;

/* Bytes of "the option '" at p, which may be broken into lines; 0: other text. *gap: the line break in it, or NULL. */
static size_t lead_at(const char *p, const char **gap) {
    static const char *const word[] = {"the", "option", "'"};
    const char *begin = p;
    *gap = NULL;
    for (int i = 0; i < 3; p += strlen(word[i++])) {
        const char *white = p;
        p += strspn(p, " \n");
        if (memchr(white, '\n', (size_t)(p - white))) *gap = white;
        if ((i > 0) != (p > white) || strncmp(p, word[i], strlen(word[i])) != 0) return 0;
    }
    return (size_t)(p - begin);
}

/* The library names options as programs set them; users of the command line know them as flags: "the option
 * 'header=no'" becomes "--header no". A line break stays in place. */
static void in_flags(const char *from, char *out, size_t cap) {
    size_t n = 0;
    while (*from && n + 1 < cap) {
        const char *gap, *name = from + lead_at(from, &gap);
        const size_t letters = name > from ? strspn(name, "abcdefghijklmnopqrstuvwxyz-") : 0;
        const char *end = letters && (name[letters] == '=' || name[letters] == '\'') ? strchr(name, '\'') : NULL;
        if (!end) {
            out[n++] = *from++;
            continue;
        }
        while (gap && n > 0 && out[n - 1] == ' ') n--;
        const int value = (int)(end - name - (ptrdiff_t)letters), white = gap ? (int)strspn(gap, " \n") : 0;
        n += (size_t)snprintf(out + n, cap - n, "%.*s--%.*s%s%.*s", white, gap ? gap : "", (int)letters, name,
                              value ? " " : "", value ? value - 1 : 0, name + letters + (value ? 1 : 0));
        from = end + 1;
    }
    out[n < cap ? n : cap - 1] = 0;
}

char *cli_in_flags(char *text) {
    const size_t capacity = text ? strlen(text) + 1 : 0;
    char *out = text ? malloc(capacity) : NULL;
    if (!out) return text;
    in_flags(text, out, capacity);
    free(text);
    return out;
}

/* One fprintf per line: stderr is unbuffered, and lines of parallel programs should not mix. */
void cli_say(cli_level level, const char *fmt, ...) {
    if (level > wanted) return;
    char said[2048], line[2048]; /* longer than any sentence of the library */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(said, sizeof said, fmt, ap);
    va_end(ap);
    in_flags(said, line, sizeof line);
    fprintf(stderr, "acflow: %s%s\n", level == CLI_WARN ? "warning: " : "", line);
}

/* The option table has already checked the word. */
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

bool cli_reader_left(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR);
}

/* The message tells whether standard output failed, or another file beside it. */
static bool has_enough(void) {
    static const char begin[] = "cannot write to standard output";
    return acf_error_status() == ACF_EIO && strncmp(acf_error(), begin, sizeof begin - 1) == 0 && cli_reader_left();
}

/* The library's message already names file, value and range; this adds where to read more. */
int cli_failed(const char *command) {
    if (has_enough()) return CLI_ENOUGH;
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

/* All output to stdout goes through here, so that no failed write is missed. */
void cli_print(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    if (vprintf(fmt, ap) < 0 && write_errno == 0) write_errno = errno;
    va_end(ap);
}

int cli_close(int exit_code) {
    /* Most output is still buffered, so a full disk shows only at the flush. */
    if (fflush(stdout) != 0 && write_errno == 0) write_errno = errno;
    if (exit_code == CLI_ENOUGH) return 0;
    if (write_errno == 0 || write_errno == EPIPE) return exit_code;
    cli_say(CLI_ERROR, "cannot write the output: %s", strerror(write_errno));
    return exit_code ? exit_code : acf_status_exit(ACF_EIO);
}
