/* The FLOP of the products that a table model needs for a batch, the basis of its rate. Only modelled columns count, in
 * a transformer given ones too. Work on padding, or recomputation in the backward, does not count. Gates, activations,
 * norms, mixtures, LU and Adam are not counted. */
#ifndef ACF_BENCH_ARITHMETIC_H
#define ACF_BENCH_ARITHMETIC_H

#include "tensor/params.h"

#include <math.h>
#include <string.h>

/* The counts of a batch. */
typedef struct bench_work {
    double rows;     /* N */
    double elements; /* T: modelled cells */
    double started;  /* rows with at least one of them */
    double tokens;   /* cells that are given or modelled */
    double pairs;    /* of a token and one that it attends to: in its row, itself or before it */
} bench_work;

/* The mean of Bernoulli(given) masks over N complete rows of D columns; given 0: all is modelled. */
static inline bench_work bench_work_mean(int64_t N, int64_t D, double given) {
    const double n = (double)N, d = (double)D;
    return (bench_work){n, n * d * (1 - given), n * (1 - pow(given, d)), n * d, n * d * (d + 1) / 2};
}

static inline bool bench_ends_with(const char *name, const char *end) {
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static inline bool bench_is_one_of(const char *name, const char *const *ends) {
    while (*ends && !bench_ends_with(name, *ends)) ends++;
    return *ends != NULL;
}

/* How many rows a weight matrix multiplies in one pass. Of a GRU, of the blocks of deep sets and of their heads: each
 * of the T modelled elements (recurrent matrices: except the first of a row). Of a transformer: each token, but of its
 * heads each modelled element. Of the other networks: each of the N rows. 0: it is no factor of a product. */
static inline double bench_rows_met(const char *name, bench_work w) {
    static const char *const none[] = {"base",           "columns",  "slots",           ".wi",
                                       "gmm.mean",       "gmm.load", "attention.times", "attention.plus",
                                       "attention.next", NULL};
    static const char *const element[] = {".wx", ".head.w1", ".head.w2", ".head.w", ".mixture.w", ".classes.w", NULL};
    bool block =
        strncmp(name, "likelihood.", 11) == 0 && (bench_ends_with(name, ".w1") || bench_ends_with(name, ".w2"));
    if (bench_is_one_of(name, none)) return 0;
    if (block || bench_is_one_of(name, element)) return w.elements;
    if (strncmp(name, "attention.", 10) == 0) return w.tokens;
    return bench_ends_with(name, ".wh") ? w.elements - w.started : w.rows;
}

/* FLOP of scores and sums of values, 2·W each per pair, over all heads of a block of width W. */
static inline double bench_attention_flops(int64_t W, bench_work w) { return 4 * (double)W * w.pairs; }

/* FLOP of one pass over the batch, 2·O·I for each row that a matrix (O,I) multiplies. Backward takes twice that, for
 * weights and inputs; a matrix that only multiplies the observed values needs no gradient of its input. */
static inline double bench_flops(const acf_params *ps, bench_work w, bool back) {
    double sum = 0;
    for (int i = 0; i < ps->n; i++) {
        const acf_param *p = ps->list[i];
        if (p->t.ndim != 2) continue;
        bool observed = bench_ends_with(p->name, ".wc") || bench_ends_with(p->name, ".w0");
        double once = 2 * (double)acf_tensor_count(&p->t) * bench_rows_met(p->name, w);
        if (bench_ends_with(p->name, ".qkv.w")) once += bench_attention_flops(p->t.dim[1], w);
        sum += back ? (observed ? 2 : 3) * once : once;
    }
    return sum;
}

#endif
