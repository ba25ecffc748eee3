/* Tests of thread_tuner.h: total time on simulated machines. */
#include "train/thread_tuner.h"

#include "harness/lab.h"

/* Seconds of a step with these threads, on a quiet machine or beside another program. */
static double takes(int threads, bool busy) { return threads == 1 ? 10 : busy ? 40 : 6; }

/* Seconds of so many steps, the machine busy from step `from` to step `to`. */
static double run(acf_thread_tuner *p, int64_t steps, int64_t from, int64_t to) {
    double sum = 0;
    for (int64_t i = 0; i < steps; i++) {
        const double each = takes(p->now, i >= from && i < to);
        acf_thread_tuner_step(p, each);
        sum += each;
    }
    return sum;
}

static void a_quiet_machine_uses_all_threads(void **state) {
    (void)state;
    acf_thread_tuner p = acf_thread_tuner_begin(2);
    const double spent = run(&p, 2000, 0, 0);
    if (!(spent < 1.02 * 2000 * takes(2, false))) fail_msg("%g seconds", spent);
    assert_int_equal(p.most, 2);
}

static void a_busy_machine_costs_little(void **state) {
    (void)state;
    acf_thread_tuner p = acf_thread_tuner_begin(2);
    const double first = run(&p, 200, 0, 200), then = run(&p, 2000, 0, 2000);
    assert_int_equal(p.now, 1);
    if (!(first < 1.6 * 200 * takes(1, true) && then < 1.05 * 2000 * takes(1, true)))
        fail_msg("%g and %g seconds", first, then);
}

/* A way that was slower is tried again later, and a way that was faster may become slower. */
static void a_machine_may_change(void **state) {
    (void)state;
    acf_thread_tuner p = acf_thread_tuner_begin(4);
    run(&p, 1000, 300, 700);
    assert_int_equal(p.now, 4);
    run(&p, 3000, 0, 1000);
    assert_int_equal(p.now, 4);
    run(&p, 3000, 1000, 3000);
    assert_int_equal(p.now, 1);
}

/* Steps that take nearly as long either way change nothing; with one thread there is no choice. */
static void chance_decides_nothing(void **state) {
    (void)state;
    acf_thread_tuner p = acf_thread_tuner_begin(2), one = acf_thread_tuner_begin(1);
    int64_t alone = 0;
    for (int64_t i = 0; i < 3000; i++) {
        acf_thread_tuner_step(&p, 10 + 0.4 * (double)(i % 2)), acf_thread_tuner_step(&one, 1);
        alone += p.now == 1;
        assert_int_equal(one.now, 1);
    }
    assert_in_range(alone, 1, 80);
}

ACF_TESTS(thread_tuner, cmocka_unit_test(a_quiet_machine_uses_all_threads),
          cmocka_unit_test(a_busy_machine_costs_little), cmocka_unit_test(a_machine_may_change),
          cmocka_unit_test(chance_decides_nothing))
