/* Device functions of the Gaussian mixture: log tails of the normal distribution, and the work of one row that every
 * direction begins with. Included by mog.cu alone, which describes the workload. */
#ifndef ACF_OPS_MOG_PIECES_CUH
#define ACF_OPS_MOG_PIECES_CUH

#include "ops/packing.cuh"

extern "C" {
#include "ops/mog.h"
}

#define HALF_LOG_2PI 0.91893853320467274178
#define SQRT_HALF 0.70710678118654752440
#define LOG_HALF (-0.69314718055994530942)
#define LOG_LEAST (-745.0) /* log weights below this give a weight of 0, and the component is skipped */
#define WHOLE 0xffffffffu

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* log Φ(e): erfcx keeps the digits that erfc would lose far out. */
static __device__ double log_cdf(double e) {
    if (e > -1) return log(0.5 * erfc(-e * SQRT_HALF));
    return log(0.5 * erfcx(-e * SQRT_HALF)) - 0.5 * e * e;
}

/* The e with log Φ(e) = p, p <= log ½: Newton on the concave logarithm, from Hastings' approximation of three
 * digits. */
static __device__ double from_log_tail(double p) {
    const double t = sqrt(-2 * p);
    double e = (2.30753 + 0.27061 * t) / (1 + t * (0.99229 + 0.04481 * t)) - t;
    for (int i = 0; i < 4; i++) {
        const double f = log_cdf(e);
        e -= (f - p) / exp(-0.5 * e * e - HALF_LOG_2PI - f);
    }
    return e;
}

/* log Σ e^term, term by term; and over a warp, with the same result in every lane. */
typedef struct log_sum {
    double top, sum;
} log_sum;
static __device__ inline void put(log_sum *s, double term) {
    if (term == -INFINITY) return;
    if (term > s->top)
        s->sum = (s->sum > 0 ? s->sum * exp(s->top - term) : s->sum) + 1, s->top = term;
    else
        s->sum += exp(term - s->top);
}
static __device__ inline double value_of(const log_sum &s) { return s.sum == 0 ? -INFINITY : s.top + log(s.sum); }
static __device__ inline double warp_max(double x) {
    for (int lane = WARP / 2; lane > 0; lane /= 2) x = fmax(x, __shfl_xor_sync(WHOLE, x, lane));
    return x;
}
static __device__ inline double warp_log_sum(const log_sum &s) {
    const double top = warp_max(s.top);
    if (!(top > -INFINITY)) return top;
    return top + log(acf_warp_sum(s.sum == 0 ? 0.0 : s.sum * exp(s.top - top)));
}

/* ---- one row ----------------------------------------------------------------------------------------------------- */

/* A row under the mixture, as in mog.c: its given columns first, then the modelled ones; n columns in all, the first o
 * given. K components are in use. L of component c is at l + c·tri(n), row by row. */
typedef struct row_state {
    int n, o, K;
    double *l;              /* (K,tri(n)) */
    double *y;              /* (K,n): the conditional mean m of a place; once its value x is set, y = (x - m) / s */
    double *a, *b, *c, *d;  /* (K,n) each, as many as the kernel requested */
    double *lw, *lw0, *yk;  /* (K) */
    double *x, *r;          /* (n) */
    int32_t *column, *used; /* (n), (K) */
} row_state;

static __host__ __device__ inline int64_t tri(int64_t n) { return n * (n + 1) / 2; }

/* Doubles of a row's memory with `arrays` of (K,n), y included; the sizes are those of the mixture. */
static __host__ __device__ inline int64_t row_doubles(int64_t K, int64_t W, int arrays) {
    return K * (tri(W) + arrays * W + 3) + 2 * W + (W + K + 1) / 2;
}

/* Memory laid out for the largest row. */
static __device__ row_state lay_out(double *m, const acf_mog_in &in, int arrays) {
    const int64_t K = in.K, W = in.W;
    row_state s = {};
    s.l = m, m += K * tri(W);
    double **const array[5] = {&s.y, &s.a, &s.b, &s.c, &s.d};
    for (int i = 0; i < arrays; i++) *array[i] = m, m += K * W;
    s.lw = m, s.lw0 = m + K, s.yk = m + 2 * K, m += 3 * K;
    s.x = m, s.r = m + W, m += 2 * W;
    s.column = (int32_t *)m, s.used = s.column + W;
    return s;
}

static __device__ double given_value(const acf_mog_in &in, int64_t i, int32_t column) {
    const acf_mog_classes &c = in.classes;
    if (column < in.D) return (double)in.x[i * in.D + column];
    return c.code[i * c.D + c.column[column - in.D]] == c.value[column - in.D];
}

/* Appends j of every lane that has `want` set to the list, which has `at` entries. Returns the new count. */
static __device__ inline int append(int32_t *list, int at, bool want, int32_t j) {
    const unsigned all = __ballot_sync(WHOLE, want);
    if (want) list[at + __popc(all & ((1u << threadIdx.x) - 1))] = j;
    return at + __popc(all);
}

/* Columns of row i, components in use, and x at the given places; `size` columns from cols on are modelled. */
static __device__ void list_columns(row_state *s, const acf_mog_in &in, int64_t i, const int32_t *cols, int size) {
    const acf_mog_classes &c = in.classes;
    const int lane = (int)threadIdx.x;
    int n = 0, K = 0;
    for (int j = lane; j - lane < in.D; j += WARP) n = append(s->column, n, j < in.D && in.b[i * in.D + j], j);
    for (int p = lane; p - lane < c.n; p += WARP)
        n = append(s->column, n, p < c.n && c.known[i * c.D + c.column[p]], (int32_t)in.D + p);
    for (int k = lane; k - lane < in.K; k += WARP) K = append(s->used, K, k < in.K && in.weight[k] > 0, k);
    s->o = n, s->n = n + size, s->K = K;
    for (int t = lane; t < size; t += WARP) s->column[n + t] = cols[t];
    __syncwarp();
    for (int p = lane; p < n; p += WARP) s->x[p] = given_value(in, i, s->column[p]);
    __syncwarp();
}

/* For each pair e = (component c, place p in [from, from + width)) of this lane. */
#define PAIRS(s, from, width)                                                                                          \
    for (int e_ = (int)threadIdx.x, w_ = (width), c = 0, p = 0;                                                        \
         e_ < (s).K * w_ && (c = e_ / w_, p = (from) + e_ % w_, true); e_ += WARP)

/* The factors, column by column, and the means. Returns the place where a factor failed, or -1; the same in every
 * lane. */
static __device__ int factorise(const row_state &s, const acf_mog_in &in) {
    const int n = s.n, size = (int)tri(n);
    const int64_t W = in.W;
    for (int e = (int)threadIdx.x; e < s.K * n * n; e += WARP) {
        const int c = e / (n * n), p = e / n % n, q = e % n;
        const int64_t k = s.used[c], i = s.column[p], j = s.column[q];
        if (q <= p) s.l[c * size + tri(p) + q] = (double)in.cov[(k * W + (i > j ? i : j)) * W + (i > j ? j : i)];
        if (q == 0) s.y[c * n + p] = (double)in.mean[k * W + i];
    }
    __syncwarp();
    int broken = -1;
    for (int j = 0; j < n && broken < 0; j++) {
        PAIRS(s, j, n - j) {
            const double *row = s.l + c * size + tri(p), *pivot = s.l + c * size + tri(j);
            double even = 0, odd = 0;
            int q = 0;
            for (; q + 1 < j; q += 2) even += row[q] * pivot[q], odd += row[q + 1] * pivot[q + 1];
            if (q < j) even += row[q] * pivot[q];
            s.l[c * size + tri(p) + j] -= even + odd; /* column j is not read in this round */
        }
        __syncwarp();
        bool bad = false;
        for (int c = (int)threadIdx.x; c < s.K; c += WARP) bad |= !(s.l[c * size + tri(j) + j] > ACF_MOG_LEAST_PIVOT);
        if (__any_sync(WHOLE, bad))
            broken = j;
        else
            PAIRS(s, j + 1, n - j - 1)
        s.l[c * size + tri(p) + j] /= sqrt(s.l[c * size + tri(j) + j]); /* the diagonal keeps the squares */
        __syncwarp();
    }
    if (broken < 0) PAIRS(s, 0, n) s.l[c * size + tri(p) + p] = sqrt(s.l[c * size + tri(p) + p]);
    __syncwarp();
    return broken;
}

/* Sets y of place p, whose value is s.x[p], in all components, and updates the conditional means of the places after
 * it. */
static __device__ inline void take(const row_state &s, int place) {
    const int n = s.n, size = (int)tri(n);
    for (int c = (int)threadIdx.x; c < s.K; c += WARP)
        s.y[c * n + place] = (s.x[place] - s.y[c * n + place]) / s.l[c * size + tri(place) + place];
    __syncwarp();
    PAIRS(s, place + 1, n - place - 1) s.y[c * n + p] += s.l[c * size + tri(p) + place] * s.y[c * n + place];
    __syncwarp();
}

/* lw = log weight at place `o`, after the given places: their part of a component's density. */
static __device__ void weigh_given(const row_state &s, const acf_mog_in &in) {
    const int n = s.n, size = (int)tri(n);
    for (int c = (int)threadIdx.x; c < s.K; c += WARP) {
        double sum = log((double)in.weight[s.used[c]]);
        for (int p = 0; p < s.o; p++) sum -= 0.5 * s.y[c * n + p] * s.y[c * n + p] + log(s.l[c * size + tri(p) + p]);
        s.lw[c] = sum;
    }
    __syncwarp();
}

/* Records the row, once. */
static __device__ void record_fault(acf_fault *fault, const char *op, int64_t i, int place) {
    if (threadIdx.x == 0) acf_report(fault, op, ACF_FAULT_COVARIANCE, i, place, 0);
}

#endif
