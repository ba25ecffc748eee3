/* Tests of calendar.h: every day of the calendar, the formats, texts that are not dates, and ambiguous dates. */
#include "table/calendar.h"

#include "harness/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static acf_calendar pattern(const char *text) {
    acf_calendar f;
    if (!acf_calendar_from_pattern(text, &f)) fail_msg("'%s' is not a pattern", text);
    return f;
}

static double value(const char *format, const char *text) {
    double v = NAN;
    return acf_calendar_read(pattern(format), text, strlen(text), &v) ? v : (double)NAN;
}

static const char *written(const char *format, double v) {
    static char out[64];
    acf_text t = acf_text_into(out, sizeof out);
    acf_calendar_write(pattern(format), v, &t);
    return out;
}

/* Every day from the first to the last, by the plain calendar rules: no formula in common with the code. */
static void every_day_has_its_number(void **state) {
    (void)state;
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const acf_calendar iso = pattern("YYYY-MM-DD");
    int64_t day = -719162;
    char text[40], back[16];
    for (int y = 1; y <= 9999; y++)
        for (int m = 1; m <= 12; m++) {
            int n = length[m - 1] + (m == 2 && ((y % 4 == 0 && y % 100 != 0) || y % 400 == 0));
            for (int d = 1; d <= n; d++, day++) {
                double v;
                if (d > 2 && d < n - 1) continue;
                snprintf(text, sizeof text, "%04d-%02d-%02d", y, m, d);
                assert_true(acf_calendar_read(iso, text, 10, &v) && v == (double)day);
                acf_text t = acf_text_into(back, sizeof back);
                acf_calendar_write(iso, (double)day, &t);
                assert_string_equal(back, text);
            }
            snprintf(text, sizeof text, "%04d-%02d-%02d", y, m, n + 1);
            double v;
            assert_false(acf_calendar_read(iso, text, 10, &v));
        }
    assert_int_equal(day, 2932897);
}

static void formats_are_read_and_written(void **state) {
    (void)state;
    assert_true(value("YYYY-MM-DD", "1970-01-01") == 0);
    assert_true(value("DD/MM/YYYY", "09/03/2021") == value("YYYY-MM-DD", "2021-03-09"));
    assert_true(value("M/D/YYYY", "3/9/2021") == value("YYYY-MM-DD", "2021-03-09"));
    assert_true(value("D.M.YYYY", "9.3.2021") == 18695);
    assert_true(value("YYYY-MM-DDTHH:MM:SSZ", "2001-09-09T01:46:40Z") == 1e9);
    assert_true(value("YYYY/M/D H:MM", "2001/9/9 1:46") == 1e9 - 40);
    assert_true(value("HH:MM", "23:59") == 86340);
    assert_true(value("HH:MM:SS.ff", "00:00:01.25") == 1.25);
    assert_true(value("YYYY-MM-DD HH:MM:SS", "1969-12-31 23:59:59") == -1);
    assert_string_equal(written("DD/MM/YYYY", 18695.4), "09/03/2021");
    assert_string_equal(written("M/D/YYYY", 18695), "3/9/2021");
    assert_string_equal(written("YYYY-MM-DDTHH:MM:SSZ", 1e9 + 0.4), "2001-09-09T01:46:40Z");
    assert_string_equal(written("YYYY-MM-DD HH:MM", 1e9),
                        "2001-09-09 01:47"); /* 40 seconds: the next minute is nearer */
    assert_string_equal(written("YYYY-MM-DD HH:MM:SS.fff", -0.0004), "1970-01-01 00:00:00.000");
    assert_string_equal(written("H:MM", 3725), "1:02");
    assert_string_equal(written("HH:MM:SS", 86399.7), "23:59:59"); /* never 24:00:00 */
    assert_string_equal(written("HH:MM:SS", -5), "00:00:00");
    assert_string_equal(written("YYYY-MM-DD", 1e300), "9999-12-31");
    assert_string_equal(written("YYYY-MM-DD", (double)NAN), "0001-01-01");
    assert_string_equal(written("YYYY-MM-DD HH:MM", 1e300), "9999-12-31 23:59");
}

static void other_texts_are_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",           "2021",        "2021-3",     "2021-02-29",  "2021-13-01",
                                        "2021-00-10", "0000-01-01",  "2021-03/09", "2021-03-09 ", "2021-03-09T",
                                        "21-03-09",   "2021-03-091", "-021-03-09", "2021-003-09", "2021--9",
                                        "20210-3-09", "1e3-03-09"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (!isnan(value("YYYY-MM-DD", wrong[i]))) fail_msg("'%s' was taken for a date", wrong[i]);
    static const char *const clocks[] = {
        "24:00", "12:60", "12:5", "1:2:3", "12:00:60", "12:00:00.", "12:00:00.1234567890", ":12:00", "12:00z"};
    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++)
        if (!isnan(value("HH:MM:SS", clocks[i]))) fail_msg("'%s' was taken for a time", clocks[i]);
    assert_true(isnan(value("YYYY-MM-DD", "2021/03/09"))); /* another separator is another format */
    assert_true(isnan(value("YYYY-MM-DD HH:MM", "2021-03-09T10:00")));
    assert_true(isnan(value("YYYY-MM-DDTHH:MM", "2021-03-09T10:00Z")));
    assert_true(isnan(value("DD/MM/YYYY", "03/25/2021")));
    assert_true(isnan(value("HH:MM", "2021-03-09")));
}

static void patterns_round_trip(void **state) {
    (void)state;
    static const char *const right[] = {"YYYY-MM-DD",
                                        "YYYY/M/D",
                                        "DD.MM.YYYY",
                                        "D/M/YYYY",
                                        "M-D-YYYY",
                                        "HH:MM",
                                        "H:MM:SS",
                                        "HH:MM:SS.fffffffff",
                                        "YYYY-MM-DDTHH:MM:SSZ",
                                        "D.M.YYYY H:MM",
                                        "HH:MMZ",
                                        "MM/DD/YYYY HH:MM:SS.f"};
    static const char *const words[] = {"DD-Mon-YYYY",          "D MON YYYY",      "YYYY/mon/DD", "D-Month-YYYY",
                                        "Mon D, YYYY",          "MONTH DD, YYYY",  "HH:MM AM",    "H:MM:SSam",
                                        "DD-Mon-YYYY HH:MM AM", "Mon D, YYYY H:MM"};
    static const char *const wrong[] = {"DD MM YYYY", "Mon-D-YYYY",  "HH:MMZ AM",  "DD-MOn-YYYY", "",
                                        "YYYY",       "YYYY-MM-DDT", "DD/MM-YYYY", "HH:MM.f",     "HH:MM:SS.ffffffffff",
                                        "THH:MM",     "YYYY-M-DD"};
    char text[ACF_CALENDAR_PATTERN_MAX];
    acf_calendar f;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_string_equal(acf_calendar_pattern(pattern(right[i]), text), right[i]);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_string_equal(acf_calendar_pattern(pattern(words[i]), text), words[i]);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) assert_false(acf_calendar_from_pattern(wrong[i], &f));
}

/* "a|b|c" are the cells of a column. Returns its pattern, after a ? if it is ambiguous. */
static const char *found(const char *cells) {
    static char out[ACF_CALENDAR_PATTERN_MAX + 1];
    acf_calendar_survey s = {0};
    acf_calendar f;
    for (const char *p = cells;; p++) {
        size_t n = strcspn(p, "|");
        acf_calendar_look(&s, p, n);
        if (!*(p += n)) break;
    }
    int64_t fit;
    acf_calendar_verdict v = acf_calendar_most(&s, &f, &fit);
    if (v == ACF_CALENDAR_NOT || fit < s.cells) return "no";
    out[0] = '?';
    acf_calendar_pattern(f, out + 1);
    return v == ACF_CALENDAR_EITHER ? out : out + 1;
}

/* Month names, AM and PM. */
static void words_are_read_and_written(void **state) {
    (void)state;
    assert_true(value("DD-Mon-YYYY", "25-Jan-2022") == value("YYYY-MM-DD", "2022-01-25"));
    assert_true(value("D MONTH YYYY", "9 March 2021") == 18695 && value("Mon D, YYYY", "Mar 9, 2021") == 18695);
    assert_string_equal(written("DD-Mon-YYYY", 18695), "09-Mar-2021");
    assert_string_equal(written("D MONTH YYYY", 18695), "9 MARCH 2021");
    assert_string_equal(written("mon D, YYYY", 18695), "mar 9, 2021");
    assert_true(value("HH:MM AM", "06:24 AM") == 23040 && value("HH:MM AM", "06:24 pm") == 66240);
    assert_true(value("HH:MM AM", "12:00 AM") == 0 && value("HH:MM AM", "12:00 PM") == 43200);
    assert_string_equal(written("HH:MM AM", 23040), "06:24 AM");
    assert_string_equal(written("H:MMam", 66240), "6:24pm");
    assert_string_equal(written("H:MM AM", 0), "12:00 AM");
    assert_string_equal(written("H:MM AM", 43260), "12:01 PM");
    assert_string_equal(found("25-Jan-2022|01-May-2022"), "DD-Mon-YYYY");
    assert_string_equal(found("1 May 2022|25 June 2022"), "D Month YYYY");
    assert_string_equal(found("03-APR-2021|04-MAY-2021"), "DD-MON-YYYY"); /* day and month are unambiguous */
    assert_string_equal(found("06:24 AM|11:05 PM"), "HH:MM AM");
    assert_string_equal(found("06:24 AM|11:05"), "no");
    assert_string_equal(found("13:24 PM"), "no");
    assert_string_equal(found("30-Feb-2021"), "no");
    assert_string_equal(found("25-Jon-2022"), "no");
}

static void columns_are_recognised(void **state) {
    (void)state;
    assert_string_equal(found("2021-03-09|1999-12-31"), "YYYY-MM-DD");
    assert_string_equal(found("2021-3-9|1999-12-31"), "YYYY-M-D");
    assert_string_equal(found("03/04/2021|05/06/2021"), "?DD/MM/YYYY"); /* ambiguous */
    assert_string_equal(found("03/04/2021|25/06/2021"), "DD/MM/YYYY");
    assert_string_equal(found("03/04/2021|05/26/2021"), "MM/DD/YYYY");
    assert_string_equal(found("25/04/2021|05/26/2021"), "no"); /* neither order reads both */
    assert_string_equal(found("29/02/2021|1/2/2021"), "no");   /* not a leap year */
    assert_string_equal(found("3.4.2021|05.06.2021"), "D.M.YYYY");
    assert_string_equal(found("12:30|9:05"), "H:MM");
    assert_string_equal(found("12:30|09:05:30|09:05:30.25"), "HH:MM:SS.ff");
    assert_string_equal(found("2021-03-09 10:00|2021-03-09"), "no"); /* a date is not a time stamp */
    assert_string_equal(found("2021-03-09T10:00Z|2021-03-09T10:00"), "no");
    assert_string_equal(found("2021-03-09|soon"), "no");
    assert_string_equal(found("soon|2021-03-09"), "no");
    assert_string_equal(found(""), "no");
}

/* Like found, for the most frequent form; followed by the number of its cells. */
static const char *mostly(const char *cells) {
    static char out[ACF_CALENDAR_PATTERN_MAX + 16];
    static const char *const verdict[] = {"no ", "", "?"};
    acf_calendar_survey s = {0};
    acf_calendar f;
    int64_t fit;
    for (const char *p = cells;; p++) {
        size_t n = strcspn(p, "|");
        acf_calendar_look(&s, p, n);
        if (!*(p += n)) break;
    }
    acf_text t = acf_text_into(out, sizeof out);
    char pattern_of[ACF_CALENDAR_PATTERN_MAX];
    acf_text_add(&t, verdict[acf_calendar_most(&s, &f, &fit)]);
    acf_text_addf(&t, "%s %lld", acf_calendar_pattern(f, pattern_of), (long long)fit);
    return out;
}

/* The format of most cells, whichever comes first. */
static void columns_may_contain_other_texts(void **state) {
    (void)state;
    assert_string_equal(mostly("soon|2021-03-09|2021-02-30|1999-12-31|5"), "YYYY-MM-DD 2");
    assert_string_equal(mostly("09/03/2021|2021-03-09|12:30|1999-12-31"), "YYYY-MM-DD 2");
    assert_string_equal(mostly("12:30|2021-03-09|9.3.2021|2021-03-09 12:30|1/2/2021|1/3/2021"), "HH:MM 1");
    assert_string_equal(mostly("03/04/2021|soon"), "?DD/MM/YYYY 1");
    assert_string_equal(mostly("25/04/2021|05/26/2021"), "no DD/MM/YYYY 1");
    /* One error among ten clear dates; and among nine. */
    assert_string_equal(
        mostly(
            "25/04/2021|26/04/2021|27/04/2021|28/04/2021|29/04/2021|30/04/2021|22/04/2021|23/04/2021|24/04/2021|21/04/2021|03/04/2021|05/26/2021"),
        "DD/MM/YYYY 11");
    assert_string_equal(
        mostly(
            "04/25/2021|04/26/2021|04/27/2021|04/28/2021|04/29/2021|04/30/2021|04/22/2021|04/23/2021|04/24/2021|04/21/2021|03/04/2021|26/05/2021"),
        "MM/DD/YYYY 11");
    assert_string_equal(
        mostly(
            "25/04/2021|26/04/2021|27/04/2021|28/04/2021|29/04/2021|30/04/2021|22/04/2021|23/04/2021|24/04/2021|05/26/2021"),
        "no DD/MM/YYYY 9");
}

static void steps_match_the_format(void **state) {
    (void)state;
    assert_true(acf_calendar_step(pattern("D/M/YYYY")) == 1);
    assert_true(acf_calendar_step(pattern("HH:MM")) == 60);
    assert_true(acf_calendar_step(pattern("YYYY-MM-DD HH:MM:SS")) == 1);
    assert_true(acf_calendar_step(pattern("HH:MM:SS.ff")) == 0.01);
}

ACF_TESTS(calendar, cmocka_unit_test(every_day_has_its_number), cmocka_unit_test(formats_are_read_and_written),
          cmocka_unit_test(other_texts_are_refused), cmocka_unit_test(patterns_round_trip),
          cmocka_unit_test(words_are_read_and_written), cmocka_unit_test(columns_are_recognised),
          cmocka_unit_test(columns_may_contain_other_texts), cmocka_unit_test(steps_match_the_format))
