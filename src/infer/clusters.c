/* k-means: see clusters.h. */
#include "infer/clusters.h"

#include "base/rng.h"
#include "device/cpu.h"

#include <math.h>
#include <string.h>

#define STEPS 100 /* most steps of Lloyd's algorithm; usual are 10 to 40 */
#define BLOCK 64  /* numbers of a centre that one thread sums at a time */

typedef struct clusters {
    acf_device *dev;
    const acf_real *x; /* (N,F) */
    int64_t N, F;
    int K;
    acf_real *centre;  /* (K,F) */
    acf_real *product; /* (N,K) x · centre */
    double *square;    /* (N) |x|^2, then the least squared distance to a centre */
    double *half;      /* (K) |centre|^2 / 2 */
    double *sum;       /* (K,F) */
    int64_t *count;    /* (K) */
    int32_t *of;       /* (N) borrowed */
} clusters;

static double distance(const acf_real *a, const acf_real *b, int64_t F) {
    double sum = 0;
    for (int64_t k = 0; k < F; k++) {
        const double d = (double)a[k] - (double)b[k];
        sum += d * d;
    }
    return sum;
}

/* ---- start ------------------------------------------------------------------------------------------------------- */

/* k-means++: the first centre is any point. Each further one is a point drawn with probability proportional to its
 * squared distance to the nearest centre so far. If all points coincide with centres, no more are added. */
static void start(clusters *c, uint64_t seed, uint32_t run) {
    const int K = c->K;
    acf_rng_counter at = {seed, 0, ACF_STREAM_CLUSTER, 0, run};
    int64_t chosen = acf_rng_below(at, c->N);
    for (c->K = 0; chosen >= 0; chosen = c->K < K ? acf_rng_categorical(at, c->square, c->N) : -1) {
        const acf_real *centre = memcpy(c->centre + c->K * c->F, c->x + chosen * c->F, (size_t)c->F * sizeof *centre);
        const bool first = c->K++ == 0;
        ACF_PARALLEL(c->dev, c->N * c->F)
        for (int64_t i = 0; i < c->N; i++) {
            const double d = distance(c->x + i * c->F, centre, c->F);
            if (first || d < c->square[i]) c->square[i] = d;
        }
        at.column++;
    }
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* |x - c|^2 = |x|^2 - 2 (x·c - |c|^2/2): the nearest centre has the greatest x·c - |c|^2/2; of equal ones the first.
 * Returns how many points changed. */
static int64_t assign(clusters *c) {
    const int K = c->K;
    int64_t changed = 0;
    for (int k = 0; k < K; k++) {
        double sum = 0;
        for (int64_t f = 0; f < c->F; f++) sum += (double)c->centre[k * c->F + f] * (double)c->centre[k * c->F + f];
        c->half[k] = sum / 2;
    }
    acf_cpu_gemm(c->dev,
                 &(acf_gemm){.tb = true,
                             .M = c->N,
                             .N = K,
                             .K = c->F,
                             .alpha = 1,
                             .a = c->x,
                             .lda = c->F,
                             .b = c->centre,
                             .ldb = c->F,
                             .c = c->product,
                             .ldc = K},
                 NULL, NULL);
    _Pragma("omp parallel for schedule(static) num_threads(acf_threads_for(c->dev, c->N * K)) reduction(+ : changed)")
    for (int64_t i = 0; i < c->N; i++) {
        const acf_real *p = c->product + i * K;
        int best = 0;
        for (int k = 1; k < K; k++)
            if ((double)p[k] - c->half[k] > (double)p[best] - c->half[best]) best = k;
        changed += c->of[i] != best;
        c->of[i] = best;
    }
    return changed;
}

/* Moves every centre to the mean of its points; one without points stays. */
static void move(clusters *c) {
    memset(c->count, 0, (size_t)c->K * sizeof *c->count);
    memset(c->sum, 0, (size_t)(c->K * c->F) * sizeof *c->sum);
    for (int64_t i = 0; i < c->N; i++) c->count[c->of[i]]++;
    ACF_PARALLEL(c->dev, c->N * c->F)
    for (int64_t from = 0; from < c->F; from += BLOCK) {
        const int64_t to = acf_min(from + BLOCK, c->F);
        for (int64_t i = 0; i < c->N; i++)
            for (int64_t f = from; f < to; f++) c->sum[c->of[i] * c->F + f] += (double)c->x[i * c->F + f];
        for (int k = 0; k < c->K; k++)
            for (int64_t f = from; f < to && c->count[k]; f++)
                c->centre[k * c->F + f] = (acf_real)(c->sum[k * c->F + f] / (double)c->count[k]);
    }
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

acf_status acf_clusters_find(acf_device *dev, const acf_real *x, int64_t N, int64_t F, int K, uint64_t seed,
                             uint32_t run, int32_t *of, double *inertia) {
    acf_arena *capacity;
    ACF_TRY(acf_arena_create(&acf_heap, 0, &capacity));
    clusters c = {.dev = dev, .x = x, .N = N, .F = F, .K = K, .of = of};
    c.centre = acf_arena_alloc(capacity, (size_t)(K * F) * sizeof *c.centre);
    c.product = acf_arena_alloc(capacity, (size_t)(N * K) * sizeof *c.product);
    c.square = acf_arena_alloc(capacity, (size_t)N * sizeof *c.square);
    c.half = acf_arena_alloc(capacity, (size_t)K * sizeof *c.half);
    c.sum = acf_arena_alloc(capacity, (size_t)(K * F) * sizeof *c.sum);
    c.count = acf_arena_alloc(capacity, (size_t)K * sizeof *c.count);
    const bool ok = c.centre && c.product && c.square && c.half && c.sum && c.count;
    if (ok) {
        for (int64_t i = 0; i < N; i++) of[i] = -1;
        start(&c, seed, run);
        for (int step = 0; assign(&c) > 0 && step < STEPS; step++) move(&c);
        double sum = 0;
        for (int64_t i = 0; i < N && inertia; i++) sum += distance(x + i * F, c.centre + of[i] * F, F);
        if (inertia) *inertia = sum;
    }
    acf_arena_free(capacity);
    return ok ? ACF_OK : ACF_EMEMORY;
}
