/* Progress: see progress.h.
 *
 * Only "\r" and spaces move the cursor and clear the line: no escape sequences, so every terminal and every recorder
 * of terminals understands it. Write errors are not looked at: losing a progress line must never stop the work. */
#include "base/progress.h"

#include "base/json.h"

#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL 0.1 /* seconds between two showings */
#define WIDTH_MAX 120
#define WIDTH_UNKNOWN 80
#define BAR_CELLS 24

/* Not the time of day, which jumps when it is set. */
static double steady_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void acf_progress_start(acf_progress *p, FILE *file, acf_progress_mode mode, const char *label, const char *unit,
                        int64_t total, double (*clock)(void)) {
    *p = (acf_progress){.file = file, .mode = mode, .label = label, .unit = unit, .total = total};
    p->clock = clock ? clock : steady_clock;
    if (mode == ACF_PROGRESS_AUTO) p->mode = isatty(fileno(file)) ? ACF_PROGRESS_BAR : ACF_PROGRESS_NONE;
    p->begun = p->mode == ACF_PROGRESS_NONE ? 0.0 : p->clock();
    p->shown = p->begun;
}

/* Asked anew at each showing: windows are resized. */
static int terminal_width(FILE *file) {
    struct winsize size;
    if (ioctl(fileno(file), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return WIDTH_UNKNOWN;
    return size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
}

/* "950", "1.2k", "34M": three figures say enough on a line that changes ten times a second. */
static void add_count(acf_text *t, double v) {
    static const char unit[] = " kMGT";
    int u = 0;
    for (; v >= 999.5 && unit[u + 1]; u++) v /= 1000.0;
    int64_t tenths = (int64_t)(v * 10.0 + 0.5);
    if (u > 0 && tenths < 100)
        acf_text_addf(t, "%d.%d", (int)(tenths / 10), (int)(tenths % 10));
    else
        acf_text_addf(t, "%d", (int)(v + 0.5));
    if (u > 0) acf_text_add_bytes(t, &unit[u], 1);
}

/* Rounded down: full and 100 % mean finished. */
static void add_bar(acf_text *t, double part) {
    char cells[BAR_CELLS + 1];
    int full = (int)(part * BAR_CELLS);
    for (int i = 0; i < BAR_CELLS; i++) cells[i] = i < full ? '#' : '.';
    cells[BAR_CELLS] = '\0';
    acf_text_addf(t, " [%s] %3d%%", cells, (int)(part * 100.0));
}

/* Share done in [0, 1]; a caller that counts past its total is shown as complete. */
static double share(const acf_progress *p) {
    if (p->done >= p->total) return 1.0;
    return p->done > 0 ? (double)p->done / (double)p->total : 0.0;
}

/* The mean since the start: steadier than a recent rate, and right for loops whose steps cost the same. */
static double rate(const acf_progress *p, double elapsed) {
    return elapsed > 0.0 && p->done > 0 ? (double)p->done / elapsed : 0.0;
}

/* Writes the line over the last one. It stops one column before the edge, where terminals wrap, and is filled with
 * spaces so that nothing of a longer line stays. */
static void draw(acf_progress *p, double elapsed) {
    char line[WIDTH_MAX + 1], number[ACF_NUMBER_MAX];
    p->width = terminal_width(p->file);
    acf_text t = acf_text_into(line, (size_t)p->width);
    acf_text_add(&t, p->label);
    if (p->total > 0) add_bar(&t, share(p));
    acf_text_add(&t, "  ");
    add_count(&t, (double)p->done);
    if (p->total > 0) {
        acf_text_add(&t, "/");
        add_count(&t, (double)p->total);
    }
    acf_text_addf(&t, " %s  ", p->unit);
    double per_second = rate(p, elapsed);
    add_count(&t, per_second);
    acf_text_add(&t, "/s");
    if (p->done >= p->total)
        acf_text_addf(&t, "  %s", acf_text_duration(number, elapsed));
    else if (per_second > 0.0)
        acf_text_addf(&t, "  eta %s", acf_text_duration(number, (double)(p->total - p->done) / per_second));
    fprintf(p->file, "\r%-*s", p->width - 1, line);
    fflush(p->file);
    p->drawn = true;
}

/* One object a line, flushed at once, so that a program that reads along can act on it. */
static void write_json(const acf_progress *p, double elapsed, bool last) {
    char line[512], seconds[ACF_NUMBER_MAX], per_second[ACF_NUMBER_MAX];
    acf_text t = acf_text_into(line, sizeof line);
    acf_text_add(&t, "{\"progress\": ");
    acf_json_write_text(&t, p->label);
    acf_text_add(&t, ", \"unit\": ");
    acf_json_write_text(&t, p->unit);
    acf_text_addf(&t, ", \"done\": %lld, \"total\": ", (long long)p->done);
    if (p->total > 0)
        acf_text_addf(&t, "%lld", (long long)p->total);
    else
        acf_text_add(&t, "null");
    acf_text_addf(&t, ", \"seconds\": %s, \"per_second\": %s, \"finished\": %s}", acf_text_real(seconds, elapsed),
                  acf_text_real(per_second, rate(p, elapsed)), last ? "true" : "false");
    fprintf(p->file, "%s\n", line);
    fflush(p->file);
}

static void show(acf_progress *p, double now, bool last) {
    p->shown = now;
    if (p->mode == ACF_PROGRESS_BAR) draw(p, now - p->begun);
    if (p->mode == ACF_PROGRESS_JSON) write_json(p, now - p->begun, last);
}

/* Called from hot loops: without a display it is one comparison. */
void acf_progress_update(acf_progress *p, int64_t done) {
    p->done = done;
    if (p->mode == ACF_PROGRESS_NONE) return;
    double now = p->clock();
    if (now - p->shown >= INTERVAL) show(p, now, false);
}

/* The last state goes out whatever the time since the one before: readers wait for "finished". */
void acf_progress_finish(acf_progress *p, bool keep) {
    if (p->mode == ACF_PROGRESS_JSON || (p->mode == ACF_PROGRESS_BAR && keep)) show(p, p->clock(), true);
    if (p->mode == ACF_PROGRESS_BAR && p->drawn) {
        if (keep)
            fputs("\n", p->file);
        else
            fprintf(p->file, "\r%*s\r", p->width - 1, "");
        fflush(p->file);
    }
    p->mode = ACF_PROGRESS_NONE; /* a second finish, or a late update, does nothing */
}
