/* EM for a mixture of Gaussians, and draws of its parameters: see gmm_em.h; formulas in docs/math.md.
 *
 * Workload: up to 1e4 rows, 1 to 60 columns, 1 to 8 components, some dozens of iterations. A row costs each component a
 * Cholesky factorisation of all columns, the observed ones first: with L = [L_o 0; L_m R] and y = L_o⁻¹(x_o - μ_o), the
 * missing ones have mean μ_m + L_m y and covariance R Rᵀ. Factors and R Rᵀ depend only on which cells are observed, so
 * rows are sorted by pattern: a narrow table has a few hundred patterns for all of its rows. */
#include "train/gmm_em.h"

#include "device/cpu.h"
#include "ops/cholesky.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define PARTS 32 /* parts of the rows with sums of their own, whatever the number of threads */
#define LEAST_PIVOT 1e-12
#define HALF_LOG_2PI 0.91893853320467274178

acf_status acf_mixture_create(int64_t K, int64_t D, acf_mixture *out) {
    double *p = acf_alloc_zero((size_t)(K * (1 + D + D * D)) * sizeof *p, "a mixture");
    if (!p) return ACF_EMEMORY;
    *out = (acf_mixture){K, D, p, p + K, p + K + K * D};
    return ACF_OK;
}

void acf_mixture_free(acf_mixture *g) { acf_release(g->weight); }

/* ---- rows of one pattern ----------------------------------------------------------------------------------------- */

#define BLOCK 16   /* rows of one pattern that are processed together, at most */
#define AT_ONCE 8  /* of them, in one vector */
#define TOGETHER 4 /* of them, whose products are added at once */

typedef double lanes __attribute__((vector_size(AT_ONCE * sizeof(double)), aligned(sizeof(double)), may_alias));
static lanes *at(double *p) { return (lanes *)(void *)p; }
static const lanes *of(const double *p) { return (const lanes *)(const void *)p; }

/* n rounded up to whole vectors. */
static int64_t padded(int64_t n) { return (n + AT_ONCE - 1) / AT_ONCE * AT_ONCE; }

/* A thread's scratch. Columns are ordered seen, held out, missing; the inner index runs over rows. */
typedef struct scratch {
    const acf_sample *s;
    const acf_mixture *g;
    int64_t seen, known, n; /* columns seen; seen or held out; factorised */
    int32_t *order;         /* (D) */
    double *l, *log_l;      /* (K,D,D) factors; (K,D) sums of log L_qq up to each column */
    double *y;              /* (K,D,BLOCK) */
    double *e;              /* (BLOCK, padded(D)), zeros beyond D */
    double *lw;             /* (K,BLOCK) log p of each component and its columns; then the weights */
    double *weight;         /* (K) sums of weights of the pattern: its missing cells' covariance is added once */
} scratch;

static int64_t scratch_doubles(int64_t K, int64_t D) {
    return K * D * D + K * (D + 1) + K * D * BLOCK + padded(D) * BLOCK + K * BLOCK + K + D + 8;
}

static scratch desk_in(double *memory, const acf_sample *s, const acf_mixture *g) {
    const int64_t K = g->K, D = g->D;
    scratch d = {.s = s, .g = g, .l = memory};
    d.log_l = d.l + K * D * D, d.y = d.log_l + K * (D + 1), d.e = d.y + K * D * BLOCK;
    d.lw = d.e + padded(D) * BLOCK, d.weight = d.lw + K * BLOCK, d.order = (int32_t *)(void *)(d.weight + K);
    memset(d.e, 0, (size_t)(padded(D) * BLOCK) * sizeof *d.e);
    return d;
}

static scratch desk_at(double *memory, const acf_sample *s, const acf_mixture *g) {
    return desk_in(memory + omp_get_thread_num() * scratch_doubles(g->K, g->D), s, g);
}

/* Orders the columns by the pattern of row r. */
static void order_columns(scratch *d, int64_t r) {
    static const uint8_t kinds[3] = {ACF_GMM_CELL_SEEN, ACF_GMM_CELL_HELD, ACF_GMM_CELL_MISSING};
    int64_t n = 0, upto[3];
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < d->s->D; j++)
            if (d->s->seen[r * d->s->D + j] == kinds[i]) d->order[n++] = (int32_t)j;
        upto[i] = n;
    }
    d->seen = upto[0], d->known = upto[1];
}

/* Factorises every component on the first n columns of the order; a component that fails is excluded (log_l = NaN). */
static void factorise(scratch *d, int64_t n) {
    const int64_t D = d->g->D;
    d->n = n;
    for (int64_t k = 0; k < d->g->K; k++) {
        double *l = d->l + k * D * D, *sum = d->log_l + k * (D + 1);
        const double *cov = d->g->cov + k * D * D;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = 0; q <= p; q++) l[p * n + q] = cov[d->order[p] * D + d->order[q]];
        const bool ok = d->g->weight[k] > 0 && acf_cholesky(l, n, LEAST_PIVOT) < 0;
        sum[0] = ok ? 0 : (double)NAN;
        for (int64_t p = 0; ok && p < n; p++) sum[p + 1] = sum[p] + log(l[p * n + p]);
    }
}

/* to (BLOCK) += by Σ_{q<n} l_q y_q of the block's first `width` rows, y (n,BLOCK). The sum stays in a vector
 * register. */
static void add_combined(double *to, double by, const double *l, const double *y, int64_t n, int64_t width) {
    for (int64_t b = 0; b < width; b += AT_ONCE) {
        lanes even = {0}, odd = {0}; /* two independent chains of additions */
        int64_t q = 0;
        for (; q + 1 < n; q += 2) even += l[q] * *of(y + q * BLOCK + b), odd += l[q + 1] * *of(y + (q + 1) * BLOCK + b);
        if (q < n) even += l[q] * *of(y + q * BLOCK + b);
        *at(to + b) += by * (even + odd);
    }
}

/* y of component k for rows r .. r+rows-1 on the first `places` columns; their log w + log p to lw. */
static void sampler(scratch *d, int64_t k, int64_t r, int64_t rows, int64_t places) {
    const int64_t D = d->g->D, n = d->n;
    const double *l = d->l + k * D * D;
    double *y = d->y + k * D * BLOCK, *lw = d->lw + k * BLOCK;
    const double constant = log(d->g->weight[k]) - d->log_l[k * (D + 1) + places] - HALF_LOG_2PI * (double)places;
    const int64_t width = padded(rows);
    for (int64_t b = 0; b < width; b++) lw[b] = constant;
    for (int64_t p = 0; p < places; p++) {
        const double mean = d->g->mean[k * D + d->order[p]], by = 1 / l[p * n + p];
        double *to = y + p * BLOCK;
        for (int64_t b = 0; b < width; b++) to[b] = b < rows ? d->s->x[(r + b) * D + d->order[p]] - mean : 0;
        add_combined(to, -1, l + p * n, y, p, width);
        ACF_SIMD
        for (int64_t b = 0; b < width; b++) to[b] *= by, lw[b] -= 0.5 * to[b] * to[b];
    }
}

/* All components on the first `places` columns: log p of each row of the block to all (BLOCK). lw becomes the
 * components' weights. */
static void weigh(scratch *d, int64_t r, int64_t rows, int64_t places, double *all) {
    const int64_t K = d->g->K;
    for (int64_t k = 0; k < K; k++) {
        if (isnan(d->log_l[k * (d->g->D + 1)]))
            for (int64_t b = 0; b < BLOCK; b++) d->lw[k * BLOCK + b] = -INFINITY;
        else
            sampler(d, k, r, rows, places);
    }
    for (int64_t b = 0; b < rows; b++) {
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < K; k++) largest = fmax(largest, d->lw[k * BLOCK + b]);
        for (int64_t k = 0; k < K; k++) sum += d->lw[k * BLOCK + b] = exp(d->lw[k * BLOCK + b] - largest);
        for (int64_t k = 0; k < K; k++) d->lw[k * BLOCK + b] /= sum;
        all[b] = largest + log(sum);
    }
}

/* End of the run of rows with row r's pattern, at most BLOCK rows on. */
static int64_t run_end(const acf_sample *s, int64_t r, int64_t end) {
    int64_t to = r + 1;
    end = acf_min(end, r + BLOCK);
    while (to < end && memcmp(s->seen + to * s->D, s->seen + r * s->D, (size_t)s->D) == 0) to++;
    return to;
}

static bool same_pattern(const acf_sample *s, int64_t a, int64_t b) {
    return memcmp(s->seen + a * s->D, s->seen + b * s->D, (size_t)s->D) == 0;
}

/* ---- one iteration --------------------------------------------------------------------------------------------- */

/* Doubles of the sums of a part of the rows, per component and around its old mean: weight, values (D), products
 * (D, padded(D); lower half); and of log p. */
static int64_t sums_each(int64_t D) { return 1 + D + D * padded(D); }
static int64_t sums_size(int64_t K, int64_t D) { return K * sums_each(D) + 1; }

/* Adds Σ_b w_b e_b, and the lower half of Σ_b w_b e_b e_bᵀ with the rest of its last vector; w (width). */
static void add_products(const scratch *d, const double *w, int64_t width, double *first, double *second) {
    const int64_t D = d->g->D, stride = padded(D);
    for (int64_t b = 0; b < width; b += TOGETHER) {
        const double *e0 = d->e + b * stride, *e1 = e0 + stride, *e2 = e1 + stride, *e3 = e2 + stride;
        for (int64_t i = 0; i < D; i++) {
            const double a0 = w[b] * e0[i], a1 = w[b + 1] * e1[i], a2 = w[b + 2] * e2[i], a3 = w[b + 3] * e3[i];
            double *to = second + i * stride;
            first[i] += a0 + a1 + a2 + a3;
            for (int64_t j = 0; j <= i; j += AT_ONCE)
                *at(to + j) += a0 * *of(e0 + j) + a1 * *of(e1 + j) + a2 * *of(e2 + j) + a3 * *of(e3 + j);
        }
    }
}

/* Adds the block's expected values to component k's sums. */
static void add_block(scratch *d, int64_t k, int64_t r, int64_t rows, double *sums) {
    const int64_t D = d->g->D, n = d->n, stride = padded(D), width = padded(rows);
    const double *l = d->l + k * D * D, *y = d->y + k * D * BLOCK, *x = d->s->x + r * D;
    double w[BLOCK] = {0}, e[BLOCK] = {0};
    memcpy(w, d->lw + k * BLOCK, (size_t)rows * sizeof *w);
    for (int64_t p = 0; p < D; p++) {
        const int64_t j = d->order[p];
        const double mean = d->g->mean[k * D + j];
        for (int64_t b = 0; b < rows; b++) e[b] = p < d->seen ? x[b * D + j] - mean : 0;
        if (p >= d->seen) add_combined(e, 1, l + p * n, y, d->seen, width);
        for (int64_t b = 0; b < width; b++) d->e[b * stride + j] = e[b];
    }
    add_products(d, w, width, sums + 1, sums + 1 + D);
    for (int64_t b = 0; b < rows; b++) sums[0] += w[b], d->weight[k] += w[b];
}

/* Adds the covariance R Rᵀ of the pattern's missing cells, for all of its rows at once. */
static void add_missing(scratch *d, double *sums) {
    const int64_t K = d->g->K, D = d->g->D, n = d->n;
    for (int64_t k = 0; k < K; k++) {
        const double *l = d->l + k * D * D;
        double *second = sums + k * sums_each(D) + 1 + D;
        for (int64_t p = d->seen; d->weight[k] > 0 && p < D; p++)
            for (int64_t q = d->seen; q <= p; q++) {
                double c = 0;
                for (int64_t t = d->seen; t <= q; t++) c += l[p * n + t] * l[q * n + t];
                const int64_t i = d->order[p], j = d->order[q];
                second[acf_max(i, j) * padded(D) + acf_min(i, j)] += d->weight[k] * c;
            }
        d->weight[k] = 0;
    }
}

/* Multiplies all sums over rows by the rows' weights, where they have any. */
static void weigh_rows(scratch *d, int64_t r, int64_t rows, double *all) {
    for (int64_t b = 0; d->s->weight && b < rows; b++) {
        all[b] *= d->s->weight[r + b];
        for (int64_t k = 0; k < d->g->K; k++) d->lw[k * BLOCK + b] *= d->s->weight[r + b];
    }
}

static void sum_part(scratch *d, int64_t from, int64_t to, double *sums) {
    const int64_t K = d->g->K, D = d->g->D, each = sums_each(D);
    for (int64_t k = 0; k < K; k++) d->weight[k] = 0;
    for (int64_t r = from, next; r < to; r = next) {
        double all[BLOCK];
        if (r == from || !same_pattern(d->s, r - 1, r)) {
            if (r > from) add_missing(d, sums);
            order_columns(d, r);
            factorise(d, D);
        }
        next = run_end(d->s, r, to);
        weigh(d, r, next - r, d->seen, all);
        weigh_rows(d, r, next - r, all);
        for (int64_t b = 0; b < next - r; b++) sums[K * each] += all[b];
        for (int64_t k = 0; k < K; k++)
            if (!isnan(d->log_l[k * (D + 1)])) add_block(d, k, r, next - r, sums + k * each);
    }
    if (to > from) add_missing(d, sums);
}

static double ridge_of(const acf_sample *s) { return s->ridge > 0 ? s->ridge : ACF_GMM_RIDGE; }

/* Pseudo-rows of a covariance's prior. */
static double prior_rows(const acf_sample *s) { return 2 + 0.5 * (double)(s->D - s->hidden); }

/* M step: the next mixture from the sums of all rows. */
static void maximise(const acf_sample *s, const acf_mixture *g, acf_mixture *next, const double *sums) {
    const int64_t K = g->K, D = g->D, each = sums_each(D);
    const double prior = prior_rows(s), ridge = prior * ridge_of(s);
    for (int64_t k = 0; k < K; k++) {
        const double *w = sums + k * each, *first = w + 1, *second = first + D;
        const double n = *w, by = 1 / fmax(n, 1e-300);
        next->weight[k] = (n + 1) / ((double)s->R + (double)K);
        for (int64_t i = 0; i < D; i++) next->mean[k * D + i] = g->mean[k * D + i] + first[i] / (n + 1e-3);
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j <= i; j++) {
                const double c = second[i * padded(D) + j] - first[i] * first[j] * by;
                double *to = next->cov + k * D * D;
                to[i * D + j] = to[j * D + i] = (c + (i == j ? ridge : 0)) / (n + prior);
            }
    }
}

int64_t acf_em_doubles(const acf_device *dev, int64_t K, int64_t D) {
    return PARTS * sums_size(K, D) + dev->threads * scratch_doubles(K, D);
}

void acf_em_step_in(const acf_device *dev, const acf_sample *s, const acf_mixture *g, acf_mixture *next, double *logp,
                    double *memory) {
    const int64_t size = sums_size(g->K, g->D);
    double *sums = memory, *desks = memory + PARTS * size;
    memset(sums, 0, (size_t)(PARTS * size) * sizeof *sums);
    ACF_PARALLEL_UNEVEN(dev, s->R * g->K * g->D * g->D * g->D)
    for (int64_t part = 0; part < PARTS; part++) {
        scratch d = desk_at(desks, s, g);
        sum_part(&d, part * s->R / PARTS, (part + 1) * s->R / PARTS, sums + part * size);
    }
    for (int64_t part = 1; part < PARTS; part++)
        for (int64_t i = 0; i < size; i++) sums[i] += sums[part * size + i];
    maximise(s, g, next, sums);
    *logp = sums[size - 1] / (double)s->R;
}

acf_status acf_em_step(const acf_device *dev, const acf_sample *s, const acf_mixture *g, acf_mixture *next,
                       double *logp) {
    double *memory = acf_alloc((size_t)acf_em_doubles(dev, g->K, g->D) * sizeof *memory, "scratch of a mixture");
    if (!memory) return ACF_EMEMORY;
    acf_em_step_in(dev, s, g, next, logp, memory);
    acf_release(memory);
    return ACF_OK;
}

/* Sum of log p of the held-out cells of some rows, given the seen ones of each; their number to *cells. */
static double score_part(scratch *d, int64_t from, int64_t to, int64_t *cells) {
    double sum = 0;
    for (int64_t r = from, next; r < to; r = next) {
        double seen[BLOCK], known[BLOCK];
        if (r == from || !same_pattern(d->s, r - 1, r)) {
            order_columns(d, r);
            factorise(d, d->known);
        }
        next = run_end(d->s, r, to);
        if (d->known == d->seen) continue;
        weigh(d, r, next - r, d->seen, seen);
        weigh(d, r, next - r, d->known, known);
        for (int64_t b = 0; b < next - r; b++) sum += known[b] - seen[b];
        *cells += (next - r) * (d->known - d->seen);
    }
    return sum;
}

acf_status acf_em_score(const acf_device *dev, const acf_sample *s, const acf_mixture *g, double *logp) {
    double part_sum[PARTS] = {0}, sum = 0;
    int64_t part_cells[PARTS] = {0}, cells = 0;
    const int64_t doubles = dev->threads * scratch_doubles(g->K, g->D);
    double *memory = acf_alloc((size_t)doubles * sizeof *memory, "scratch of a mixture");
    if (!memory) return ACF_EMEMORY;
    ACF_PARALLEL_UNEVEN(dev, s->R * g->K * g->D * g->D * g->D)
    for (int64_t part = 0; part < PARTS; part++) {
        scratch d = desk_at(memory, s, g);
        part_sum[part] = score_part(&d, part * s->R / PARTS, (part + 1) * s->R / PARTS, &part_cells[part]);
    }
    for (int part = 0; part < PARTS; part++) sum += part_sum[part], cells += part_cells[part];
    acf_release(memory);
    *logp = cells ? sum / (double)cells : 0;
    return ACF_OK;
}

/* ---- data augmentation ------------------------------------------------------------------------------------------- */

#define MORE_THAN_FITTED 1.3 /* the mean of the drawn covariances is at most this times the fitted one */
#define TRIES 64             /* counters reserved for a gamma variate */

int64_t acf_augment_doubles(int64_t K, int64_t D) { return scratch_doubles(K, D) + sums_size(K, D) + 2 * D * D; }

/* Draws component and missing cells of row b of the block, and adds it to the sums of that component. */
static void augment_row(scratch *d, int64_t r, int64_t b, acf_augment at, double *sums) {
    const int64_t K = d->g->K, D = d->g->D, n = d->n;
    acf_rng_counter place = {.seed = at.seed,
                             .row = d->s->id ? d->s->id[r + b] : (uint64_t)(r + b),
                             .stream = ACF_STREAM_AUGMENT,
                             .draw = at.chain << 16 | at.step};
    double u = K > 1 ? acf_rng_uniform(place) : 0;
    int64_t k = 0;
    while (k < K - 1 && u >= d->lw[k * BLOCK + b]) u -= d->lw[k++ * BLOCK + b];
    const double *l = d->l + k * D * D;
    double *y = d->y + k * D * BLOCK + b, *e = d->e;
    double *of = sums + k * sums_each(D), *first = of + 1, *second = first + D;
    for (int64_t p = 0; p < D; p++) {
        const int64_t j = d->order[p];
        if (p < d->seen) {
            e[j] = d->s->x[(r + b) * D + j] - d->g->mean[k * D + j];
            continue;
        }
        place.column = (uint32_t)(1 + j);
        y[p * BLOCK] = acf_rng_normal(place);
        e[j] = 0;
        for (int64_t q = 0; q <= p; q++) e[j] += l[p * n + q] * y[q * BLOCK];
    }
    *of += 1;
    for (int64_t i = 0; i < D; i++) {
        first[i] += e[i];
        for (int64_t j = 0; j <= i; j++) second[i * padded(D) + j] += e[i] * e[j];
    }
}

/* Gamma variate of this shape, at least 1, by Marsaglia and Tsang. Uses TRIES counters from at.column on. */
static double gamma_variate(acf_rng_counter at, double shape) {
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (int i = 0; i < TRIES / 2; i++, at.column += 2) {
        acf_rng_counter other = at;
        other.column++;
        const double x = acf_rng_normal(at), v = pow(1 + c * x, 3);
        if (1 + c * x > 0 && log(acf_rng_uniform(other)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
    return shape; /* with probability 10^-40 */
}

/* m (D,D) = lower factor of an inverse Wishart matrix with scale C Cᵀ, c the factor C, b scratch: rows of C B⁻ᵀ, B from
 * the Bartlett decomposition. */
static void draw_factor(double *c, double *b, int64_t D, double freedom, acf_rng_counter at) {
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j <= i; j++) {
            at.column = (uint32_t)((i * D + j) * TRIES);
            b[i * D + j] = i == j ? sqrt(2 * gamma_variate(at, 0.5 * (freedom - (double)i))) : acf_rng_normal(at);
        }
    for (int64_t r = 0; r < D; r++)
        for (int64_t i = 0; i < D; i++) {
            double x = i <= r ? c[r * D + i] : 0;
            for (int64_t j = 0; j < i; j++) x -= b[i * D + j] * c[r * D + j];
            c[r * D + i] = x / b[i * D + i];
        }
}

/* Draws mean and covariance of component k of `next` from the sums of its rows: a normal inverse Wishart distribution,
 * noninformative but for the ridge, as in maximise. A component of few rows is drawn as if it had twice as many rows as
 * columns, and near the fit: heavier tails would not be supported by the table. */
static void draw_component(const acf_sample *s, const acf_mixture *g, acf_mixture *next, int64_t k, const double *sums,
                           double *capacity, acf_rng_counter at) {
    const int64_t D = g->D;
    const double *first = sums + 1, *second = first + D, n = *sums, by = 1 / fmax(n, 1);
    const double prior = prior_rows(s), ridge = prior * ridge_of(s), freedom = fmax(n - 1, 2 * (double)D + 2);
    const double shrink = fmin(1, MORE_THAN_FITTED * (freedom - (double)D - 1) / (n + prior));
    double *c = capacity, *b = capacity + D * D, *mean = next->mean + k * D, *cov = next->cov + k * D * D;
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j <= i; j++)
            c[i * D + j] = shrink * (second[i * padded(D) + j] - first[i] * first[j] * by + (i == j ? ridge : 0));
    memcpy(mean, g->mean + k * D, (size_t)D * sizeof *mean);
    memcpy(cov, g->cov + k * D * D, (size_t)(D * D) * sizeof *cov);
    if (acf_cholesky(c, D, LEAST_PIVOT) >= 0) return;
    draw_factor(c, b, D, freedom, at);
    for (int64_t i = 0; i < D; i++) {
        at.column = (uint32_t)((D * D + i) * TRIES);
        b[i] = acf_rng_normal(at) * sqrt(by);
    }
    for (int64_t i = 0; i < D; i++) {
        mean[i] += first[i] * by;
        for (int64_t q = 0; q < D; q++) mean[i] += c[i * D + q] * b[q];
        for (int64_t j = 0; j <= i; j++) {
            double sum = 0;
            for (int64_t q = 0; q < D; q++) sum += c[i * D + q] * c[j * D + q];
            cov[i * D + j] = cov[j * D + i] = sum;
        }
    }
}

/* Adds to both[k] (D,D) the number of rows of component k in which two columns are seen together, weighted by the
 * components' weights under g. */
static void count_pairs(const scratch *d, int64_t rows, double *both) {
    const int64_t K = d->g->K, D = d->g->D;
    for (int64_t k = 0; k < K; k++) {
        double sum = 0;
        for (int64_t b = 0; b < rows; b++) sum += d->lw[k * BLOCK + b];
        for (int64_t p = 0; p < d->seen; p++)
            for (int64_t q = 0; q < d->seen; q++) both[(k * D + d->order[p]) * D + d->order[q]] += sum;
    }
}

double acf_augment_rows(const acf_sample *s, const acf_mixture *g, int64_t columns, double *memory) {
    const int64_t K = g->K, D = g->D;
    double *both = memory + scratch_doubles(K, D), all[BLOCK], least = INFINITY;
    scratch d = desk_in(memory, s, g);
    memset(both, 0, (size_t)(K * D * D) * sizeof *both);
    for (int64_t r = 0, to; r < s->R; r = to) {
        if (r == 0 || !same_pattern(s, r - 1, r)) {
            order_columns(&d, r);
            factorise(&d, D);
        }
        to = run_end(s, r, s->R);
        weigh(&d, r, to - r, d.seen, all);
        count_pairs(&d, to - r, both);
    }
    for (int64_t k = 0; k < K; k++)
        for (int64_t i = 0; i < columns; i++)
            for (int64_t j = 0; j < columns; j++) least = fmin(least, both[(k * D + i) * D + j]);
    return least;
}

void acf_augment_step(const acf_sample *s, const acf_mixture *g, acf_mixture *next, acf_augment at, double *memory) {
    const int64_t K = g->K, D = g->D, each = sums_each(D);
    double *sums = memory + scratch_doubles(K, D), *capacity = sums + sums_size(K, D), all[BLOCK], total = 0;
    scratch d = desk_in(memory, s, g);
    memset(sums, 0, (size_t)sums_size(K, D) * sizeof *sums);
    for (int64_t r = 0, to; r < s->R; r = to) {
        if (r == 0 || !same_pattern(s, r - 1, r)) {
            order_columns(&d, r);
            factorise(&d, D);
        }
        to = run_end(s, r, s->R);
        weigh(&d, r, to - r, d.seen, all);
        for (int64_t b = 0; b < to - r; b++) augment_row(&d, r, b, at, sums);
    }
    for (int64_t k = 0; k < K; k++) {
        acf_rng_counter place = {
            .seed = at.seed, .row = (uint64_t)k, .stream = ACF_STREAM_POSTERIOR, .draw = at.chain << 16 | at.step};
        draw_component(s, g, next, k, sums + k * each, capacity, place);
        place.column = (uint32_t)((D * D + D) * TRIES);
        total += next->weight[k] = K > 1 ? gamma_variate(place, sums[k * each] + 1) : 1;
    }
    for (int64_t k = 0; k < K; k++) next->weight[k] /= total;
}
