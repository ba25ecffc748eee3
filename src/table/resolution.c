/* Resolutions: see resolution.h. */
#include "table/resolution.h"

#include <math.h>

#define LARGEST 1099511627776.0 /* 2^40 steps from 0: beyond, doubles are too coarse for multiples */
#define SHARE 0.95              /* least share of the cells on multiples */
#define CAP 0.01                /* largest share of the cells that one value counts for */
#define FEW 8                   /* with fewer distinct values, unusual steps are not accepted */
#define REPEATS 0.05
#define CLOCK_EXACT 1e-6 /* largest error of a clock time, in steps: it never was a float */
#define CLOCK_BELOW 1    /* largest exponent of powers of ten for clock seconds: steps below 15 s are 10 s and less */

/* Steps of clock times in seconds, from coarse to fine. */
static const int64_t clock_steps[] = {86400, 43200, 21600, 10800, 7200, 3600, 1800, 900, 600, 300, 120, 60, 30, 15};
enum { CLOCK_STEPS = sizeof clock_steps / sizeof clock_steps[0] };

static double power_of_ten(int32_t n) {
    static const double power[ACF_STEP_DECIMALS_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                                            1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};
    return power[n];
}

double acf_resolution_step(acf_resolution r) { return (double)r.every / power_of_ten(r.decimals); }

/* Powers of ten up to 1e18 and whole numbers below 2^53 are exact, so the one division is the only rounding. */
double acf_resolution_round(acf_resolution r, double x) {
    if (r.every == 0) return x;
    double k = nearbyint(x * power_of_ten(r.decimals) / (double)r.every);
    if (!(fabs(k) * (double)r.every < 9007199254740992.0)) return x;
    return k * (double)r.every / power_of_ten(r.decimals) + 0.0; /* no -0 */
}

/* Values that went through a float are off by up to 6e-8 of themselves. */
static bool is_multiple(acf_resolution r, double x) {
    double q = x * power_of_ten(r.decimals) / (double)r.every;
    return fabs(q) <= LARGEST && fabs(q - nearbyint(q)) <= fmin(0.05, 1e-3 + 1e-7 * fabs(q));
}

/* End of the run of values equal to x[i]. */
static int64_t run_end(const double *x, int64_t i, int64_t n) {
    int64_t end = i + 1;
    while (end < n && x[end] == x[i]) end++;
    return end;
}

static bool is_on_clock(acf_resolution r, double x) {
    double q = x / (double)r.every;
    return fabs(q - nearbyint(q)) <= CLOCK_EXACT;
}

/* Do enough of the cells lie on multiples? Stops as soon as too many do not. */
static bool fits(acf_resolution r, const double *x, int64_t n, double total, bool (*on)(acf_resolution, double)) {
    double cap = fmax(1.0, CAP * (double)n), off = 0;
    for (int64_t i = 0, end; i < n; i = end) {
        end = run_end(x, i, n);
        if (!on(r, x[i])) off += fmin((double)(end - i), cap);
        if (off > (1 - SHARE) * total) return false;
    }
    return true;
}

/* Candidate number k, from coarse to fine: 5, 2.5, 2, 1, then a tenth of each; exponent is that of the 1. */
static bool candidate(int exponent, int k, acf_resolution *out) {
    static const int64_t tenths[4] = {50, 25, 20, 10};
    int decimals = 1 - exponent; /* `tenths` is in units of a tenth of 10^exponent */
    int64_t every = tenths[k];
    while (every % 10 == 0 && decimals > 0) every /= 10, decimals--;
    while (decimals < 0 && every < INT64_MAX / 100) every *= 10, decimals++;
    *out = (acf_resolution){every, decimals};
    return decimals >= 0 && decimals <= ACF_STEP_DECIMALS_MAX;
}

/* Minutes, hours and days are always accepted; other steps need enough distinct values, as steps of 5 do. */
static bool is_believed(int64_t step, int64_t distinct) {
    return distinct >= FEW || step == 60 || step == 3600 || step == 86400;
}

double acf_resolution_clock(const double *x, int64_t n) {
    int64_t distinct = 0;
    for (int64_t i = 0; i < n; i = run_end(x, i, n)) distinct++;
    for (int k = 0; k < CLOCK_STEPS && distinct > 1; k++) {
        const acf_resolution r = {clock_steps[k], 0};
        int64_t i = 0;
        if (!is_believed(r.every, distinct)) continue;
        while (i < n && is_on_clock(r, x[i])) i++;
        if (i == n) return (double)r.every;
    }
    return 0;
}

acf_resolution acf_resolution_find(const double *x, int64_t n, bool clock) {
    const acf_resolution none = {0, 0};
    acf_resolution r;
    double cap = fmax(1.0, CAP * (double)n), total = 0;
    int64_t distinct = 0;
    for (int64_t i = 0, end; i < n; i = end, distinct++) {
        end = run_end(x, i, n);
        total += fmin((double)(end - i), cap);
    }
    double range = n ? x[n - 1] - x[0] : 0, largest = n ? fmax(fabs(x[0]), fabs(x[n - 1])) : 0;
    if (distinct < 2 || !isfinite(range)) return none;
    for (int k = 0; clock && k < CLOCK_STEPS; k++) {
        r = (acf_resolution){clock_steps[k], 0};
        if (is_believed(r.every, distinct) && (double)r.every <= range && fits(r, x, n, total, is_on_clock)) return r;
    }
    int coarsest = (int)floor(log10(range));
    if (clock && coarsest > CLOCK_BELOW) coarsest = CLOCK_BELOW;
    for (int e = coarsest; pow(10, e) * LARGEST >= largest && e >= -ACF_STEP_DECIMALS_MAX; e--)
        for (int k = 0; k < 4; k++) {
            bool plain = k == 3 && e <= 0;
            if ((plain || distinct >= FEW) && candidate(e, k, &r) && acf_resolution_step(r) <= range &&
                fits(r, x, n, total, is_multiple))
                return r;
        }
    if ((double)(n - distinct) <= REPEATS * (double)n) return none;
    int apart = (int)floor(log10(range / (double)distinct));
    return candidate(apart, 3, &r) ? r : none;
}
