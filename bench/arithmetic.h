/* The products a table model must do for a batch, in FLOP: what its rate is measured by. Only modelled columns count: what an
 * implementation computes for padding is not work. Gates, activations, mixtures, LU and Adam are not counted. */
#ifndef ACF_BENCH_ARITHMETIC_H
#define ACF_BENCH_ARITHMETIC_H

#include "tensor/params.h"

#include <math.h>
#include <string.h>

/* What there is to do in a batch. */
typedef struct bench_work {
    double rows;     /* N */
    double elements; /* T: modelled cells */
    double started;  /* rows with at least one of them */
} bench_work;

/* The mean of Bernoulli(1/2) masks over N rows of D columns. */
static inline bench_work bench_work_mean(int64_t N, int64_t D) {
    return (bench_work){(double)N, (double)N * (double)D / 2, (double)N * (1 - pow(0.5, (double)D))};
}

static inline bool bench_ends_with(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static inline bool bench_is_one_of(const char *name, const char *const *ends) {
    while (*ends && !bench_ends_with(name, *ends)) ends++;
    return *ends != NULL;
}

/* How many rows a weight matrix meets in one pass: those of a GRU, of a set's blocks and of their heads each of the T modelled elements
 * (recurrent ones not the first of a row), those of the other networks each of the N rows. 0: it is no factor of a product. */
static inline double bench_rows_met(const char *name, bench_work w) {
    static const char *const none[] = {"base", "columns", "slots", ".wi", "anchor.mean", "anchor.load", NULL};
    static const char *const element[] = {".wx", ".head.w1", ".head.w2", ".head.w", NULL};
    bool block = strncmp(name, "likelihood.", 11) == 0 && (bench_ends_with(name, ".w1") || bench_ends_with(name, ".w2"));
    if (bench_is_one_of(name, none)) return 0;
    return bench_ends_with(name, ".wh") ? w.elements - w.started : block || bench_is_one_of(name, element) ? w.elements : w.rows;
}

/* FLOP of one pass over the batch, 2·O·I for each row that a matrix (O,I) meets. Backward is twice that, for weights and inputs; but
 * what only meets the observed values needs no gradient of its input. */
static inline double bench_flops(const acf_params *ps, bench_work w, bool back) {
    double sum = 0;
    for (int i = 0; i < ps->n; i++) {
        const acf_param *p = ps->list[i];
        if (p->t.ndim != 2) continue;
        bool observed = bench_ends_with(p->name, ".wc") || bench_ends_with(p->name, ".w0");
        double once = 2 * (double)acf_tensor_count(&p->t) * bench_rows_met(p->name, w);
        sum += back ? (observed ? 2 : 3) * once : once;
    }
    return sum;
}

#endif
