/* Tails of columns: see tail.h. */
#include "table/tail.h"

#include "base/real.h"

#include <math.h>

#define FEWEST 10 /* least number of values that a tail is fitted to */
#define MOST 100
#define PART 10      /* else one in PART of all values */
#define LEAST_REST 3 /* at most one in LEAST_REST */
#define PRIOR 10.0   /* number of values that the prior of the shape counts for */
#define SHAPE_LEAST (-0.5)
#define SHAPE_MOST 0.5
#define SMALL 1e-6 /* below, the formula for shape 0 is exact to rounding */

acf_tail_fit acf_tail_find(const double *sorted, int64_t n, bool upper) {
    const int64_t k = acf_min(acf_min(acf_max(n / PART, FEWEST), MOST), n / LEAST_REST);
    double mean = 0, weighted = 0;
    if (k < 2) return (acf_tail_fit){0};
    const double u = upper ? sorted[n - 1 - k] : -sorted[k];
    for (int64_t i = 0; i < k; i++) {
        const double excess = (upper ? sorted[n - k + i] : -sorted[k - 1 - i]) - u;
        mean += excess / (double)k, weighted += excess * (double)i / (double)(k - 1) / (double)k;
    }
    const double second = 2 * weighted - mean; /* the second L-moment */
    if (!(mean > 0 && second > 0 && isfinite(mean))) return (acf_tail_fit){0};
    const double own = fmin(fmax(2 - mean / second, SHAPE_LEAST), 1), shape = (double)k * own / ((double)k + PRIOR);
    const double kept = fmin(shape, SHAPE_MOST);
    return (acf_tail_fit){(double)k / (double)n, mean * (1 - kept), kept};
}

double acf_tail_beyond(const acf_tail_fit *tail, double p) {
    const double log_ratio = log(tail->share / p);
    return fabs(tail->shape) < SMALL ? tail->scale * log_ratio
                                     : tail->scale * expm1(tail->shape * log_ratio) / tail->shape;
}
