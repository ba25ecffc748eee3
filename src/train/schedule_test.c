/* Tests of schedule.h: the corners of each curve, and that it never jumps. */
#include "train/schedule.h"

#include "ops/adam.h"

#include "harness/lab.h"

#include <math.h>

static const double tol = 1e-15;

static void warmup_rises_in_equal_steps(void **state) {
    (void)state;
    acf_schedule s = {.lr = 0.2, .warmup = 4, .total = 100, .decay = ACF_DECAY_CONSTANT, .to = 0.5};
    for (int i = 1; i <= 4; i++) acf_assert_close(acf_schedule_at(&s, i), 0.05 * i, tol, "warm-up");
    assert_true(acf_schedule_at(&s, 5) == 0.2);
    assert_true(acf_schedule_at(&s, 1000) == 0.2); /* constant: `to` means nothing */
    s.warmup = 0;
    assert_true(acf_schedule_at(&s, 1) == 0.2);
}

static void decay_ends_where_it_should(void **state) {
    (void)state;
    acf_schedule s = {.lr = 0.1, .warmup = 10, .total = 110, .to = 0.2};
    for (s.decay = ACF_DECAY_LINEAR; s.decay <= ACF_DECAY_COSINE; s.decay++) {
        acf_assert_close(acf_schedule_at(&s, 10), 0.1, tol, "begin");
        acf_assert_close(acf_schedule_at(&s, 60), 0.06, tol, "middle");
        acf_assert_close(acf_schedule_at(&s, 110), 0.02, tol, "end");
        acf_assert_close(acf_schedule_at(&s, 500), 0.02, tol, "after the end");
    }
    s.decay = ACF_DECAY_LINEAR;
    acf_assert_close(acf_schedule_at(&s, 35), 0.08, tol, "a quarter of the line");
    s.decay = ACF_DECAY_COSINE;
    acf_assert_close(acf_schedule_at(&s, 35), 0.1 * (0.2 + 0.8 * (0.5 + 0.5 * sqrt(0.5))), tol,
                     "a quarter of the cosine");
}

static void steps_change_little(void **state) {
    (void)state;
    acf_schedule s = {.lr = 1, .warmup = 50, .total = 1000, .decay = ACF_DECAY_COSINE, .to = 0};
    for (int64_t i = 1; i < 1100; i++) {
        double now = acf_schedule_at(&s, i), next = acf_schedule_at(&s, i + 1);
        assert_true(now >= 0 && now <= 1);
        assert_true(fabs(next - now) <= 1.0 / 50 + tol);
        assert_true(i < 50 || next <= now);
    }
}

/* A warm-up that the run does not outlast, and a run without a known end. */
static void odd_lengths_are_harmless(void **state) {
    (void)state;
    acf_schedule s = {.lr = 1, .warmup = 10, .total = 5, .decay = ACF_DECAY_COSINE, .to = 0.1};
    acf_assert_close(acf_schedule_at(&s, 5), 0.5, tol, "still warming up");
    acf_assert_close(acf_schedule_at(&s, 10), 0.1, tol, "beyond both");
    s.warmup = 5;
    acf_assert_close(acf_schedule_at(&s, 5), 0.1, tol, "warm-up up to the end");
    s.warmup = 0, s.total = 0;
    assert_true(acf_schedule_at(&s, 1000000) == 1);
}

/* For any curve: 1 up to step 4, then 1/2 up to step 8, ...; 0 for a huge step. */
static void halving_repeats(void **state) {
    (void)state;
    acf_schedule s = {.lr = 1, .halve_every = 4, .decay = ACF_DECAY_CONSTANT, .total = 12};
    const double expected[] = {1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.125};
    for (int i = 1; i <= 13; i++) assert_true(acf_schedule_at(&s, i) == expected[i - 1]);
    s.decay = ACF_DECAY_LINEAR;
    acf_assert_close(acf_schedule_at(&s, 6), 0.25, tol, "half of half");
    s = (acf_schedule){.lr = 1, .halve_every = 1};
    assert_true(acf_schedule_at(&s, 100000) == 0);
    assert_true(acf_schedule_at(&s, INT64_MAX) == 0);
}

static void averages_begin_at_the_first_weights(void **state) {
    (void)state;
    assert_true(acf_ema_beta(0.999, 1) == 0);
    acf_assert_close(acf_ema_beta(0.999, 11), 0.5, tol, "eleventh");
    assert_true(acf_ema_beta(0.999, 9989) < 0.999 && acf_ema_beta(0.999, 10000) == 0.999);
    for (int64_t i = 1; i < 20000; i++) assert_true(acf_ema_beta(0.999, i) <= acf_ema_beta(0.999, i + 1));
    assert_true(acf_ema_beta(0.25, 100) == 0.25);
}

ACF_TESTS(schedule, cmocka_unit_test(warmup_rises_in_equal_steps), cmocka_unit_test(decay_ends_where_it_should),
          cmocka_unit_test(halving_repeats), cmocka_unit_test(steps_change_little),
          cmocka_unit_test(odd_lengths_are_harmless), cmocka_unit_test(averages_begin_at_the_first_weights))
