/* A piecewise linear function of one number; the first and last pieces extend beyond their knots: docs/math.md, Best
 * guess of an image. */
#ifndef ACF_OPS_POLYLINE_H
#define ACF_OPS_POLYLINE_H

#include "device/cpu.h"
#include "ops/ops.h"

#define ACF_KNOTS_MAX 256

/* (x[i], y[i]), x ascending, 2 <= n. Small enough to be an argument of a kernel. */
typedef struct acf_knots {
    int n;
    acf_real x[ACF_KNOTS_MAX], y[ACF_KNOTS_MAX];
} acf_knots;

/* y = f(x), any shape. Copies the knots. A NaN gives a NaN. */
acf_tensor *acf_polyline(acf_tape *t, acf_tensor *x, const acf_knots *knots);

void acf_polyline_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_knots *k, int64_t n);
void acf_polyline_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x,
                          const acf_knots *k, int64_t n); /* += */

/* ---- for kernels on other devices: the attributes are acf_knots -------------------------------------------------- */

/* The piece of v, 0 .. n - 2: the last whose first knot is not above v. */
ACF_BOTH int acf_polyline_piece(const acf_knots *k, acf_real v) {
    int i = 0;
    for (int above = k->n - 1; above - i > 1;) { /* the result is in i .. above - 1 */
        const int middle = (i + above) / 2;
        if (k->x[middle] <= v)
            i = middle;
        else
            above = middle;
    }
    return i;
}

ACF_BOTH acf_real acf_polyline_slope(const acf_knots *k, int i) {
    return (k->y[i + 1] - k->y[i]) / (k->x[i + 1] - k->x[i]);
}

#endif
