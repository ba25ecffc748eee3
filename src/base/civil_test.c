/* Tests of civil.h: known days, and a round trip over every day of a thousand years. */
#include "base/civil.h"

#include "harness/check.h"

static void known_days(void **state) {
    (void)state;
    static const struct {
        int64_t days, year;
        int month, day;
    } known[] = {{0, 1970, 1, 1},       {-1, 1969, 12, 31},   {18321, 2020, 2, 29}, {18322, 2020, 3, 1},
                 {-25509, 1900, 2, 28}, {-25508, 1900, 3, 1}, {11016, 2000, 2, 29}, {-719468, 0, 3, 1},
                 {19358, 2023, 1, 1},   {-719528, 0, 1, 1}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        acf_civil date = acf_civil_of(known[k].days);
        assert_int_equal(date.year, known[k].year);
        assert_int_equal(date.month, known[k].month);
        assert_int_equal(date.day, known[k].day);
        assert_int_equal(acf_civil_days(date), known[k].days);
    }
}

static void days_follow_each_other(void **state) {
    (void)state;
    static const int length[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    acf_civil before = acf_civil_of(-200001);
    for (int64_t d = -200000; d < 200000; d++) {
        acf_civil now = acf_civil_of(d);
        int leap = before.year % 4 == 0 && (before.year % 100 != 0 || before.year % 400 == 0);
        int last = before.day == length[before.month - 1] + (before.month == 2 && leap);
        assert_int_equal(now.day, last ? 1 : before.day + 1);
        assert_int_equal(now.month, last ? before.month % 12 + 1 : before.month);
        assert_int_equal(now.year, before.year + (last && before.month == 12));
        assert_int_equal(acf_civil_days(now), d);
        before = now;
    }
}

static void months_beyond_twelve_run_on(void **state) {
    (void)state;
    assert_int_equal(acf_civil_days((acf_civil){2020, 13, 1}), acf_civil_days((acf_civil){2021, 1, 1}));
    assert_int_equal(acf_civil_days((acf_civil){2020, 27, 5}), acf_civil_days((acf_civil){2022, 3, 5}));
    assert_int_equal(acf_civil_days((acf_civil){2020, 0, 1}), acf_civil_days((acf_civil){2019, 12, 1}));
}

ACF_TESTS(civil, cmocka_unit_test(known_days), cmocka_unit_test(days_follow_each_other),
          cmocka_unit_test(months_beyond_twelve_run_on))
