/* The step size of each step: see schedule.h. */
#include "train/schedule.h"

#include <float.h>
#include <math.h>

#define PI 3.14159265358979323846

static double curve(const acf_schedule *s, int64_t step) {
    if (step < s->warmup) return s->lr * (double)step / (double)s->warmup;
    if (s->decay == ACF_DECAY_CONSTANT || s->total == 0) return s->lr;
    if (step >= s->total) return s->lr * s->to;
    /* Here warmup <= step < total: the quotient is in [0,1). */
    double p = (double)(step - s->warmup) / (double)(s->total - s->warmup);
    double left = s->decay == ACF_DECAY_LINEAR ? 1 - p : 0.5 * (1 + cos(PI * p));
    return s->lr * (s->to + (1 - s->to) * left);
}

double acf_schedule_at(const acf_schedule *s, int64_t step) {
    const double lr = curve(s, step);
    if (s->halve_every == 0 || step <= s->halve_every) return lr;
    return ldexp(lr, -(int)acf_min((step - 1) / s->halve_every, 2 * DBL_MAX_EXP));
}
