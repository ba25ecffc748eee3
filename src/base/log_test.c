/* Tests of log.h: what is heard at which level, and that silence is the default. */
#include "base/log.h"

#include "harness/check.h"

#include <string.h>

typedef struct heard {
    int n;
    acf_log_level level;
    char line[2048];
} heard;

static void listen(void *ctx, acf_log_level level, const char *line) {
    heard *h = ctx;
    h->n++;
    h->level = level;
    strcpy(h->line, line);
}

static void levels_decide_what_is_heard(void **state) {
    (void)state;
    for (int at = ACF_LOG_QUIET; at <= ACF_LOG_DEBUG; at++) {
        heard h = {0};
        acf_log log = {(acf_log_level)at, listen, &h};
        for (int level = ACF_LOG_QUIET; level <= ACF_LOG_DEBUG; level++)
            acf_say(&log, (acf_log_level)level, "line %d", level);
        assert_int_equal(h.n, at); /* every level from error up to this one */
        if (at > 0) assert_int_equal(h.level, at);
    }
}

static void silence_is_the_default(void **state) {
    (void)state;
    acf_log none = {0}, no_sink = {ACF_LOG_DEBUG, NULL, NULL};
    acf_say(NULL, ACF_LOG_ERROR, "nobody %s", "listens");
    acf_say(&none, ACF_LOG_ERROR, "nobody listens");
    acf_say(&no_sink, ACF_LOG_ERROR, "nobody listens");
}

static void long_lines_are_cut(void **state) {
    (void)state;
    heard h = {0};
    acf_log log = {ACF_LOG_INFO, listen, &h};
    acf_say(&log, ACF_LOG_INFO, "%5000d", 1);
    assert_int_equal(strlen(h.line), 1023);
}

static void a_file_gets_labelled_lines(void **state) {
    (void)state;
    char text[256] = "";
    FILE *f = tmpfile();
    assert_non_null(f);
    acf_log log = {ACF_LOG_DEBUG, acf_log_to_file, f};
    acf_say(&log, ACF_LOG_ERROR, "a");
    acf_say(&log, ACF_LOG_WARN, "b");
    acf_say(&log, ACF_LOG_INFO, "%d%%", 50);
    acf_say(&log, ACF_LOG_DEBUG, "d");
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(text, "acflow: error: a\nacflow: warning: b\nacflow: 50%\nacflow: debug: d\n");
}

ACF_TESTS(log, cmocka_unit_test(levels_decide_what_is_heard), cmocka_unit_test(silence_is_the_default),
          cmocka_unit_test(long_lines_are_cut), cmocka_unit_test(a_file_gets_labelled_lines))
