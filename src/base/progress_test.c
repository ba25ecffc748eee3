/* Tests of progress.h, on a real terminal (a pty) and on a pipe, with a clock that the test turns. */
#define _GNU_SOURCE /* posix_openpt */
#include "base/progress.h"

#include "base/json.h"
#include "harness/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static double now;
static double test_clock(void) { return now; }

/* Two ends: what the progress writes to, and where the test reads what arrived. */
typedef struct ends {
    FILE *file;
    int reader;
} ends;

static ends open_terminal(unsigned short columns) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0) acf_skip("no pseudo terminals here");
    assert_int_equal(grantpt(master), 0);
    assert_int_equal(unlockpt(master), 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    assert_true(slave >= 0);
    struct termios raw;
    assert_int_equal(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw); /* "\n" arrives as it was written */
    assert_int_equal(tcsetattr(slave, TCSANOW, &raw), 0);
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
    return (ends){fdopen(slave, "w"), master};
}

static ends open_pipe(void) {
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    return (ends){fdopen(fd[1], "w"), fd[0]};
}

/* Everything written up to now. A terminal delivers when it likes, so the test sends a mark behind it and reads on
 * until that has come. */
static const char *arrived(ends e) {
    static char text[8192];
    size_t n = 0;
    fputc('\x01', e.file);
    fflush(e.file);
    do {
        ssize_t got = read(e.reader, text + n, sizeof text - n);
        assert_true(got > 0);
        n += (size_t)got;
    } while (text[n - 1] != '\x01');
    text[n - 1] = '\0';
    return text;
}

static void close_ends(ends e) {
    fclose(e.file);
    close(e.reader);
}

static void a_terminal_gets_one_line(void **state) {
    (void)state;
    ends e = open_terminal(80);
    acf_progress p;
    now = 100.0;
    acf_progress_start(&p, e.file, ACF_PROGRESS_AUTO, "fit", "rows", 3200, test_clock);
    assert_string_equal(arrived(e), "");
    now = 102.0;
    acf_progress_update(&p, 800);
    const char *text = arrived(e);
    assert_int_equal(strlen(text), 80); /* "\r" and 79 columns */
    assert_int_equal(text[0], '\r');
    assert_null(strchr(text, '\n'));
    assert_non_null(strstr(text, "\rfit [######..................]  25%  800/3.2k rows  400/s  eta 6.0 s "));
    now = 108.0;
    acf_progress_update(&p, 3200);
    text = arrived(e);
    assert_non_null(strstr(text, "[########################] 100%  3.2k/3.2k rows  400/s  8.0 s"));
    acf_progress_finish(&p, true);
    text = arrived(e);
    assert_int_equal(text[strlen(text) - 1], '\n');
    acf_progress_finish(&p, true); /* once is enough */
    acf_progress_update(&p, 1);
    assert_string_equal(arrived(e), "");
    close_ends(e);
}

static void finish_can_clear_the_line(void **state) {
    (void)state;
    ends e = open_terminal(40);
    acf_progress p;
    now = 0.0;
    acf_progress_start(&p, e.file, ACF_PROGRESS_AUTO, "fit", "rows", 10, test_clock);
    acf_progress_finish(&p, false); /* nothing was shown: nothing to clear */
    assert_string_equal(arrived(e), "");
    acf_progress_start(&p, e.file, ACF_PROGRESS_AUTO, "fit", "rows", 10, test_clock);
    now = 1.0;
    acf_progress_update(&p, 5);
    assert_string_not_equal(arrived(e), "");
    acf_progress_finish(&p, false);
    assert_string_equal(arrived(e), "\r                                       \r"); /* 39 spaces */
    close_ends(e);
}

static void never_wider_than_the_terminal(void **state) {
    (void)state;
    for (unsigned short columns = 1; columns < 140; columns++) {
        ends e = open_terminal(columns);
        acf_progress p;
        now = 0.0;
        acf_progress_start(&p, e.file, ACF_PROGRESS_AUTO, "a label that is rather long", "rows", 123456789, test_clock);
        now = 1000.0;
        acf_progress_update(&p, 1234567);
        size_t n = strlen(arrived(e));
        assert_true(n >= 1 && n - 1 < columns); /* the "\r" takes no column */
        close_ends(e);
    }
}

static void updates_are_throttled(void **state) {
    (void)state;
    ends e = open_pipe();
    acf_progress p;
    now = 5.0;
    acf_progress_start(&p, e.file, ACF_PROGRESS_JSON, "fit", "rows", 1000, test_clock);
    int lines = 0;
    for (int i = 1; i <= 200; i++) { /* one second in steps of five milliseconds */
        now = 5.0 + i * 0.005;
        acf_progress_update(&p, i);
    }
    for (const char *c = arrived(e); *c; c++) lines += *c == '\n';
    assert_in_range(lines, 9, 10);
    acf_progress_finish(&p, false);
    assert_non_null(strstr(arrived(e), "\"done\": 200")); /* the last state always goes out */
    close_ends(e);
}

static void a_pipe_gets_nothing_by_itself(void **state) {
    (void)state;
    ends e = open_pipe();
    static const acf_progress_mode silent[] = {ACF_PROGRESS_AUTO, ACF_PROGRESS_NONE};
    for (int i = 0; i < 2; i++) {
        acf_progress p;
        now = 0.0;
        acf_progress_start(&p, e.file, silent[i], "fit", "rows", 10, test_clock);
        now = 1.0;
        acf_progress_update(&p, 5);
        acf_progress_finish(&p, true);
        assert_string_equal(arrived(e), "");
    }
    acf_progress p;
    acf_progress_start(&p, e.file, ACF_PROGRESS_BAR, "fit", "rows", 10, test_clock); /* unless it was asked for */
    now = 2.0;
    acf_progress_update(&p, 5);
    assert_int_equal(strlen(arrived(e)), 80);
    close_ends(e);
}

static void json_lines_are_json(void **state) {
    (void)state;
    ends e = open_pipe();
    acf_progress p;
    now = 0.0;
    acf_progress_start(&p, e.file, ACF_PROGRESS_JSON, "say \"hi\"", "rows", 0, test_clock);
    now = 0.5;
    acf_progress_update(&p, 4);
    const acf_json_source from = {"progress", ACF_EDATA};
    const char *text = arrived(e);
    json_t *j;
    assert_int_equal(acf_json_parse(from, text, strlen(text), 1000, &j), ACF_OK);
    int64_t done;
    double per_second;
    bool finished;
    const char *label;
    assert_int_equal(acf_json_int(from, j, "done", &done), ACF_OK);
    assert_int_equal(acf_json_real(from, j, "per_second", &per_second), ACF_OK);
    assert_int_equal(acf_json_bool(from, j, "finished", &finished), ACF_OK);
    assert_int_equal(acf_json_text(from, j, "progress", &label), ACF_OK);
    assert_true(done == 4 && per_second == 8.0 && !finished);
    assert_string_equal(label, "say \"hi\"");
    assert_true(json_is_null(json_object_get(j, "total"))); /* not known */
    json_decref(j);
    acf_progress_finish(&p, true);
    assert_non_null(strstr(arrived(e), "\"finished\": true}\n"));
    close_ends(e);
}

static void odd_counts_are_shown_sanely(void **state) {
    (void)state;
    ends e = open_terminal(100);
    acf_progress p;
    now = 0.0;
    acf_progress_start(&p, e.file, ACF_PROGRESS_BAR, "x", "rows", 10, test_clock);
    now = 1.0;
    acf_progress_update(&p, 0); /* no rate yet: no eta */
    const char *text = arrived(e);
    assert_non_null(strstr(text, "  0%"));
    assert_null(strstr(text, "eta"));
    now = 2.0;
    acf_progress_update(&p, 25); /* past its total */
    assert_non_null(strstr(arrived(e), "100%"));
    acf_progress_start(&p, e.file, ACF_PROGRESS_BAR, "x", "rows", 0, test_clock);
    now = 3.0;
    acf_progress_update(&p, 999600);
    text = arrived(e);
    assert_non_null(strstr(text, "x  1.0M rows"));
    assert_null(strchr(text, '%'));
    close_ends(e);
}

ACF_TESTS(progress, cmocka_unit_test(a_terminal_gets_one_line), cmocka_unit_test(finish_can_clear_the_line),
          cmocka_unit_test(never_wider_than_the_terminal), cmocka_unit_test(updates_are_throttled),
          cmocka_unit_test(a_pipe_gets_nothing_by_itself), cmocka_unit_test(json_lines_are_json),
          cmocka_unit_test(odd_counts_are_shown_sanely))
