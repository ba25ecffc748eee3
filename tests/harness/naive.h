/* References that several test files share: written from the definitions, in double, without regard to speed. */
#ifndef ACF_HARNESS_NAIVE_H
#define ACF_HARNESS_NAIVE_H

#include "harness/lab.h"
#include "ops/act.h"
#include "ops/dropout.h"

#include <math.h>

static inline double naive_act(int kind, double x) {
    switch (kind) {
    case ACF_RELU: return x > 0 ? x : 0;
    case ACF_LEAKY_RELU: return x > 0 ? x : 0.01 * x;
    case ACF_TANH: return tanh(x);
    case ACF_SIGMOID: return 1 / (1 + exp(-x));
    case ACF_SOFTPLUS: return log(1 + exp(x));
    case ACF_ELU: return x > 0 ? x : exp(x) - 1;
    default: return x;
    }
}

static inline double naive_dot(const acf_real *w, const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)w[i] * v[i];
    return sum;
}

/* y (O) = act(w (O,I) x + b (O)). */
static inline void naive_linear(double *y, const double *x, const acf_real *w, const acf_real *b, int act, int64_t I,
                                int64_t O) {
    for (int64_t o = 0; o < O; o++) y[o] = naive_act(act, naive_dot(w + o * I, x, I) + (double)b[o]);
}

/* The factor of number c of C, for the cell at (row, column). */
static inline double naive_drop(const acf_drop *d, int64_t row, int64_t column, int64_t c, int64_t C) {
    uint32_t word[4];
    acf_rng_bits((acf_rng_counter){.seed = d->seed,
                                   .row = d->row_id ? d->row_id[row] : (uint64_t)row,
                                   .stream = ACF_STREAM_DROPOUT + d->site,
                                   .column = (uint32_t)(column * ((C + 3) / 4) + c / 4),
                                   .draw = d->step},
                 word);
    return (double)word[c % 4] >= floor(d->rate * 4294967296.0) ? 1 / (1 - d->rate) : 0;
}

typedef struct naive_gru {
    const acf_real *wx, *wc, *bx, *wh, *bh; /* wc may be NULL */
} naive_gru;

/* next (H) from x (I), c (C; NULL: none) and old (H). */
static inline void naive_gru_step(naive_gru w, int64_t I, int64_t H, int64_t C, const double *x, const acf_real *c,
                                  const double *old, double *next) {
    for (int64_t j = 0; j < H; j++) {
        double a[3], b[3]; /* the input's and the state's sums for r, z, n */
        for (int64_t g = 0; g < 3; g++) {
            int64_t o = g * H + j;
            a[g] = naive_dot(w.wx + o * I, x, I) + (double)w.bx[o];
            for (int64_t k = 0; c && w.wc && k < C; k++) a[g] += (double)w.wc[o * C + k] * (double)c[k];
            b[g] = naive_dot(w.wh + o * H, old, H) + (double)w.bh[o];
        }
        double r = 1 / (1 + exp(-(a[0] + b[0]))), z = 1 / (1 + exp(-(a[1] + b[1]))), n = tanh(a[2] + r * b[2]);
        next[j] = (1 - z) * n + z * old[j];
    }
}

#endif
