/* The progress of a training in one line: see report_line.h. */
#include "cli/report_line.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define WIDTH_UNKNOWN 80

int cli_terminal_width(int fd) {
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const long said = columns ? strtol(columns, NULL, 10) : 0;
    return said > 0 && said <= 10000 ? (int)said : WIDTH_UNKNOWN;
}

/* "1 m 20 s"; minutes alone where seconds do not matter, and never 0 s while time is left. */
static const char *duration(char out[32], double seconds) {
    const double s = seconds < 60 ? ceil(seconds) : round(seconds), m = floor(s / 60);
    if (s < 60)
        snprintf(out, 32, "%.0f s", s);
    else if (s < 600)
        snprintf(out, 32, "%.0f m %02.0f s", m, fmod(s, 60));
    else if (s < 3600)
        snprintf(out, 32, "%.0f m", m);
    else
        snprintf(out, 32, "%.0f h %02.0f m", floor(m / 60), fmod(m, 60));
    return out;
}

/* The time left: at most eta; eta_early if no validation improves any more. After the last step donors are searched and
 * the model is assembled. */
static void say_left(const acf_fit_report *r, char *out, size_t cap) {
    char most[32] = "", least[32] = "";
    const bool limited = isfinite(r->eta), early = isfinite(r->eta_early),
               last = r->pass == r->passes && r->member == r->members;
    if (limited) duration(most, fmax(r->eta, 0));
    if (early) duration(least, fmax(r->eta_early, 0));
    if (last && ((limited && r->eta <= 0) || (early && r->eta_early <= 0)))
        snprintf(out, cap, "almost done");
    else if (limited && early && strcmp(most, least) != 0)
        snprintf(out, cap, "%s to %s left", least, most);
    else if (limited)
        snprintf(out, cap, "%s%s left", early || last ? "" : "at most ", most);
    else if (early)
        snprintf(out, cap, "at least %s left", least);
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

enum { MEMBER, PASS, CELLS, STEP, EPOCH, LOSS, VALID, KEPT, SPEED, LEFT, PARTS };

typedef struct line {
    char part[PARTS][64]; /* "": it is not shown */
} line;

static void say(line *l, int part, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(line *l, int part, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(l->part[part], sizeof l->part[part], fmt, ap);
    va_end(ap);
}

/* Two blanks between parts. A part that belongs to the previous one has its own separator. */
static void join(const line *l, char out[CLI_LINE_MAX]) {
    size_t n = 0;
    out[0] = 0;
    for (int i = 0; i < PARTS; i++) {
        const bool apart = n > 0 && *l->part[i] && i != CELLS && i != KEPT;
        n += (size_t)snprintf(out + n, CLI_LINE_MAX - n, "%s%s", apart ? "  " : "", l->part[i]);
    }
}

char *cli_report_line(const acf_fit_report *r, const char *unit, int width, char out[CLI_LINE_MAX]) {
    static const int first_to_go[] = {SPEED, CELLS, EPOCH, KEPT, LOSS, MEMBER, PASS, VALID, LEFT};
    line l = {0};
    if (r->members > 1) say(&l, MEMBER, "member %d/%d", r->member, r->members);
    if (r->passes == 2) say(&l, PASS, "pass %d/2", r->pass);
    if (r->pass == 2) say(&l, CELLS, ", all cells");
    if (r->steps)
        say(&l, STEP, "step %lld/%lld", (long long)r->step, (long long)r->steps);
    else
        say(&l, STEP, "step %lld", (long long)r->step);
    say(&l, EPOCH, "epoch %lld", (long long)r->epoch);
    say(&l, LOSS, "loss %.4f", r->mean_loss);
    if (r->pass == 1 && isfinite(r->valid)) say(&l, VALID, "held out %.4f", r->valid);
    if (*l.part[VALID] && isfinite(r->best)) say(&l, KEPT, " (kept %.4f)", r->best);
    say(&l, SPEED, "%.0f %s/s", r->rows_per_second, unit);
    say_left(r, l.part[LEFT], sizeof l.part[LEFT]);
    join(&l, out);
    for (size_t i = 0; i < sizeof first_to_go / sizeof first_to_go[0] && strlen(out) >= (size_t)width; i++) {
        l.part[first_to_go[i]][0] = 0;
        join(&l, out);
    }
    if (strlen(out) >= (size_t)width) out[width - 1] = 0;
    return out;
}
