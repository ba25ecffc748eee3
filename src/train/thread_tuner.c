/* Threads of a training step: see thread_tuner.h. */
#include "train/thread_tuner.h"

#include "base/real.h"

#define WORTH 0.95 /* of the time: a smaller gain may be chance */

acf_thread_tuner acf_thread_tuner_begin(int threads) {
    return (acf_thread_tuner){.most = threads, .now = threads, .period = ACF_THREAD_TUNER_FIRST};
}

static int other(const acf_thread_tuner *p) { return p->now == 1 ? p->most : 1; }

/* Continues with so many threads, for `period` steps before the next trial. */
static void go_on(acf_thread_tuner *p, int threads, int64_t period) {
    *p = (acf_thread_tuner){.most = p->most, .now = threads, .period = period};
}

void acf_thread_tuner_step(acf_thread_tuner *p, double seconds) {
    if (p->most < 2) return;
    p->counted++;
    if (p->trying || p->counted > p->period - ACF_THREAD_TUNER_TRIED) p->spent += seconds;
    if (p->trying && p->counted == ACF_THREAD_TUNER_TRIED) {
        if (p->spent < WORTH * p->usual)
            go_on(p, p->now, ACF_THREAD_TUNER_FIRST);
        else
            go_on(p, other(p), acf_min(2 * p->period, ACF_THREAD_TUNER_LAST));
    } else if (!p->trying && p->counted == p->period) {
        p->trying = true, p->usual = p->spent;
        p->now = other(p), p->counted = 0, p->spent = 0;
    }
}
