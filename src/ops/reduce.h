/* Sums over everything, or over a row's modelled columns. Accumulated in double, in an order that the shape fixes:
 * losses and log-likelihoods are such sums. */
#ifndef ACF_OPS_REDUCE_H
#define ACF_OPS_REDUCE_H

#include "device/cpu.h"
#include "ops/ops.h"

#include <math.h>

/* A scalar: the sum of all elements of x, any shape. */
acf_tensor *acf_sum(acf_tape *t, acf_tensor *x);
/* A scalar: the mean of all elements; 0 if there are none. */
acf_tensor *acf_mean(acf_tape *t, acf_tensor *x);
/* A scalar: the sum of w[i] x[i]. w is constant, one number per element of x, in device memory, and on the tape. */
acf_tensor *acf_dot(acf_tape *t, acf_tensor *x, const acf_real *w);

/* (N) the sum of v (T) over each batch row's modelled columns; 0 for a row without modelled columns. */
acf_tensor *acf_sum_subset(acf_tape *t, acf_tensor *v, const acf_subset *u);

/* (N) the weight of each batch row in a mean over rows that model something in u or v (NULL: none): 1 / rows, with
 * per_column divided by the number of its modelled columns; 0 for a row that models nothing. No derivative. */
acf_tensor *acf_row_shares(acf_tape *t, const acf_subset *u, const acf_subset *v, bool per_column);

/* A double sum as an acf_real: a finite one stays finite (see acf_real_from), an infinite one stays infinite. */
static inline acf_real acf_real_sum(double sum) { return isinf(sum) ? (acf_real)sum : acf_real_from(sum); }

/* Sum of w[i] x[i] over n elements; w NULL: of x[i]. */
double acf_sum_fwd_cpu(const acf_device *dev, const acf_real *x, const acf_real *w, int64_t n);
/* dx[i] += g w[i]; w NULL: g. */
void acf_sum_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real g, const acf_real *w, int64_t n);

/* y (N) = sums of v (T) over each row's elements;  dv (T) += dy (N) of its row. */
void acf_sum_subset_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *v, const acf_subset *u);
void acf_sum_subset_bwd_cpu(const acf_device *dev, acf_real *dv, const acf_real *dy, const acf_subset *u);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

typedef struct acf_sum_attrs {
    const acf_real *w; /* NULL: all ones */
    bool mean;
} acf_sum_attrs;

typedef struct acf_row_shares_attrs {
    const acf_subset *u, *v;
    bool per_column;
} acf_row_shares_attrs;

#endif
