/* Threads of a training step: see tempo.h. */
#include "train/tempo.h"

#include "base/real.h"

#define WORTH 0.95 /* of the time: what is hardly faster is chance */

acf_tempo acf_tempo_begin(int threads) {
    return (acf_tempo){.most = threads, .now = threads, .period = ACF_TEMPO_FIRST};
}

static int other(const acf_tempo *p) { return p->now == 1 ? p->most : 1; }

/* Goes on with so many threads, for so many steps before the other way is tried. */
static void go_on(acf_tempo *p, int threads, int64_t period) {
    *p = (acf_tempo){.most = p->most, .now = threads, .period = period};
}

void acf_tempo_step(acf_tempo *p, double seconds) {
    if (p->most < 2) return;
    p->counted++;
    if (p->trying || p->counted > p->period - ACF_TEMPO_TRIED) p->spent += seconds;
    if (p->trying && p->counted == ACF_TEMPO_TRIED) {
        if (p->spent < WORTH * p->usual) go_on(p, p->now, ACF_TEMPO_FIRST);
        else go_on(p, other(p), acf_min(2 * p->period, ACF_TEMPO_LAST));
    } else if (!p->trying && p->counted == p->period) {
        p->trying = true, p->usual = p->spent;
        p->now = other(p), p->counted = 0, p->spent = 0;
    }
}
