/* Fitting the anchor: see anchor.h; formulas in docs/math.md.
 *
 * Workload: up to 1e4 rows, 1 to 60 columns, 1 to 8 components, some dozens of iterations. A row costs each component a Cholesky factor of
 * all columns, those it has first: with L = [L_o 0; L_m R], y = L_o⁻¹(x_o - μ_o), the missing ones have mean μ_m + L_m y and covariance R Rᵀ. Factors and R Rᵀ depend on which cells are
 * there, not on their values, so rows are sorted by pattern: a narrow table has a few hundred patterns for all of its rows. */
#include "train/anchor.h"

#include "device/cpu.h"
#include "ops/cholesky.h"
#include "train/factor_fit.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define PARTS 32          /* sums are made over so many parts of the rows, whatever the threads */
#define ITERATIONS 300
#define ROUGHLY 1e-4      /* gain of an iteration, in nats per seen cell, that ends EM while mixtures are compared, */
#define ENOUGH 1e-5       /* and of the one that was chosen */
#define WORTH 0.003       /* gain of more components, in nats per cell, that justifies them */
#define BLINDLY 0.05      /* the same of looking away from categories: where it gained less, on small tables, errors were larger with it all the same */
#define WORK 4e8          /* multiply-adds of an iteration at most: what decides how many rows stand for the table */
#define ROWS_MAX 20000
#define ROWS_MIN 500
#define WIDE_WORK 1e9     /* the same of factors, whose products run faster */
#define SHARP_RIDGE 0.03  /* the other ridge that is tried, */
#define SHARP_ROWS 5000   /* of fewer rows: more leave little of either */
#define FRUITLESS 2       /* doublings of the components without a gain that end the search */
#define CLEARLY 2.0       /* nats over all held-out cells that any further candidate must gain: of many, one fits a few cells by chance */
#define LEAST_PIVOT 1e-12
#define HALF_LOG_2PI 0.91893853320467274178

/* ---- rows of one pattern ------------------------------------------------------------------------------------------------------ */

#define BLOCK 16   /* rows of one pattern that are worked on side by side, at most */
#define AT_ONCE 8  /* of them, in one vector */
#define TOGETHER 4 /* of them, whose products are added in one go */

typedef double lanes __attribute__((vector_size(AT_ONCE * sizeof(double)), aligned(sizeof(double)), may_alias));
static lanes *at(double *p) { return (lanes *)(void *)p; }
static const lanes *of(const double *p) { return (const lanes *)(const void *)p; }

/* n elements, with those that fill up the last vector. */
static int64_t padded(int64_t n) { return (n + AT_ONCE - 1) / AT_ONCE * AT_ONCE; }

/* A thread's memory. Columns are ordered seen, held out, missing; rows stand side by side in the inner index. */
typedef struct desk {
    const acf_sample *s;
    const acf_mixture *g;
    int64_t seen, known, n;  /* columns seen; seen or held out; factorised */
    int32_t *order;          /* (D) */
    double *l, *log_l;       /* (K,D,D) factors; (K,D) sums of log L_qq below each place */
    double *y;               /* (K,D,BLOCK) */
    double *e;               /* (BLOCK, padded(D)), zeros beyond D */
    double *lw;              /* (K,BLOCK) log p of each component and its places; then the weights */
    double *weight;          /* (K) sums of weights of the pattern: its missing cells' covariance is added once */
} desk;

static int64_t desk_doubles(int64_t K, int64_t D) {
    return K * D * D + K * (D + 1) + K * D * BLOCK + padded(D) * BLOCK + K * BLOCK + K + D + 8;
}

static desk desk_in(double *memory, const acf_sample *s, const acf_mixture *g) {
    const int64_t K = g->K, D = g->D;
    desk d = {.s = s, .g = g, .l = memory};
    d.log_l = d.l + K * D * D, d.y = d.log_l + K * (D + 1), d.e = d.y + K * D * BLOCK;
    d.lw = d.e + padded(D) * BLOCK, d.weight = d.lw + K * BLOCK, d.order = (int32_t *)(void *)(d.weight + K);
    memset(d.e, 0, (size_t)(padded(D) * BLOCK) * sizeof *d.e);
    return d;
}

static desk desk_at(double *memory, const acf_sample *s, const acf_mixture *g) {
    return desk_in(memory + omp_get_thread_num() * desk_doubles(g->K, g->D), s, g);
}

/* Orders the columns as row r has them. */
static void order_columns(desk *d, int64_t r) {
    static const uint8_t kinds[3] = {ACF_ANCHOR_SEEN, ACF_ANCHOR_HELD, ACF_ANCHOR_MISSING};
    int64_t n = 0, upto[3];
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < d->s->D; j++)
            if (d->s->seen[r * d->s->D + j] == kinds[i]) d->order[n++] = (int32_t)j;
        upto[i] = n;
    }
    d->seen = upto[0], d->known = upto[1];
}

/* Factorises every component on the first n columns of the order; one that can't be takes no part (log_l = NaN). */
static void factorise(desk *d, int64_t n) {
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

/* to (BLOCK) += by Σ_{q<n} l_q y_q of the block's first `width` rows, y (n,BLOCK). A vector stays in a register for the whole sum. */
static void add_combined(double *to, double by, const double *l, const double *y, int64_t n, int64_t width) {
    for (int64_t b = 0; b < width; b += AT_ONCE) {
        lanes even = {0}, odd = {0}; /* two sums: neither waits for the other */
        int64_t q = 0;
        for (; q + 1 < n; q += 2) even += l[q] * *of(y + q * BLOCK + b), odd += l[q + 1] * *of(y + (q + 1) * BLOCK + b);
        if (q < n) even += l[q] * *of(y + q * BLOCK + b);
        *at(to + b) += by * (even + odd);
    }
}

/* y of component k for rows r .. r+rows-1 on the first n_places; their log w + log p to lw. */
static void walk(desk *d, int64_t k, int64_t r, int64_t rows, int64_t places) {
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

/* All components on the first `places`: log p of each row of the block to all (BLOCK). Components of a row become weights. */
static void weigh(desk *d, int64_t r, int64_t rows, int64_t places, double *all) {
    const int64_t K = d->g->K;
    for (int64_t k = 0; k < K; k++) {
        if (isnan(d->log_l[k * (d->g->D + 1)]))
            for (int64_t b = 0; b < BLOCK; b++) d->lw[k * BLOCK + b] = -INFINITY;
        else walk(d, k, r, rows, places);
    }
    for (int64_t b = 0; b < rows; b++) {
        double largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < K; k++) largest = fmax(largest, d->lw[k * BLOCK + b]);
        for (int64_t k = 0; k < K; k++) sum += d->lw[k * BLOCK + b] = exp(d->lw[k * BLOCK + b] - largest);
        for (int64_t k = 0; k < K; k++) d->lw[k * BLOCK + b] /= sum;
        all[b] = largest + log(sum);
    }
}

/* Where the run of rows with row r's pattern ends, BLOCK rows further at most. */
static int64_t run_end(const acf_sample *s, int64_t r, int64_t end) {
    int64_t to = r + 1;
    end = acf_min(end, r + BLOCK);
    while (to < end && memcmp(s->seen + to * s->D, s->seen + r * s->D, (size_t)s->D) == 0) to++;
    return to;
}

static bool same_pattern(const acf_sample *s, int64_t a, int64_t b) {
    return memcmp(s->seen + a * s->D, s->seen + b * s->D, (size_t)s->D) == 0;
}

/* ---- one iteration --------------------------------------------------------------------------------------------------------- */

/* Sums of a part of the rows, per component, around its old mean: weight, values (D), products (D, padded(D); lower half); and of log p. */
static int64_t sums_each(int64_t D) { return 1 + D + D * padded(D); }
static int64_t sums_size(int64_t K, int64_t D) { return K * sums_each(D) + 1; }

/* Adds Σ_b w_b e_b, and of Σ_b w_b e_b e_bᵀ its lower half and what lies in the last vector beside it; w (width). */
static void add_products(const desk *d, const double *w, int64_t width, double *first, double *second) {
    const int64_t D = d->g->D, stride = padded(D);
    for (int64_t b = 0; b < width; b += TOGETHER) {
        const double *e0 = d->e + b * stride, *e1 = e0 + stride, *e2 = e1 + stride, *e3 = e2 + stride;
        for (int64_t i = 0; i < D; i++) {
            const double a0 = w[b] * e0[i], a1 = w[b + 1] * e1[i], a2 = w[b + 2] * e2[i], a3 = w[b + 3] * e3[i];
            double *to = second + i * stride;
            first[i] += a0 + a1 + a2 + a3;
            for (int64_t j = 0; j <= i; j += AT_ONCE) *at(to + j) += a0 * *of(e0 + j) + a1 * *of(e1 + j) + a2 * *of(e2 + j) + a3 * *of(e3 + j);
        }
    }
}

/* Adds the block's expected values to component k's sums. */
static void add_block(desk *d, int64_t k, int64_t r, int64_t rows, double *sums) {
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

/* What the pattern's missing cells add: their covariance R Rᵀ, for all of its rows at once. */
static void add_missing(desk *d, double *sums) {
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

/* Where rows have weights, these go to all that is summed over them. */
static void weigh_rows(desk *d, int64_t r, int64_t rows, double *all) {
    for (int64_t b = 0; d->s->weight && b < rows; b++) {
        all[b] *= d->s->weight[r + b];
        for (int64_t k = 0; k < d->g->K; k++) d->lw[k * BLOCK + b] *= d->s->weight[r + b];
    }
}

static void sum_part(desk *d, int64_t from, int64_t to, double *sums) {
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

static double ridge_of(const acf_sample *s) { return s->ridge > 0 ? s->ridge : ACF_ANCHOR_RIDGE; }

/* Rows that the prior of a covariance is worth. */
static double prior_rows(const acf_sample *s) { return 2 + 0.5 * (double)(s->D - s->hidden); }

/* The next mixture from the sums of all rows. */
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

int64_t acf_em_doubles(const acf_device *dev, int64_t K, int64_t D) { return PARTS * sums_size(K, D) + dev->threads * desk_doubles(K, D); }

void acf_em_step_in(const acf_device *dev, const acf_sample *s, const acf_mixture *g, acf_mixture *next, double *logp, double *memory) {
    const int64_t size = sums_size(g->K, g->D);
    double *sums = memory, *desks = memory + PARTS * size;
    memset(sums, 0, (size_t)(PARTS * size) * sizeof *sums);
    ACF_PARALLEL_UNEVEN(dev, s->R * g->K * g->D * g->D * g->D)
    for (int64_t part = 0; part < PARTS; part++) {
        desk d = desk_at(desks, s, g);
        sum_part(&d, part * s->R / PARTS, (part + 1) * s->R / PARTS, sums + part * size);
    }
    for (int64_t part = 1; part < PARTS; part++)
        for (int64_t i = 0; i < size; i++) sums[i] += sums[part * size + i];
    maximise(s, g, next, sums);
    *logp = sums[size - 1] / (double)s->R;
}

acf_status acf_em_step(const acf_device *dev, const acf_sample *s, const acf_mixture *g, acf_mixture *next, double *logp) {
    double *memory = acf_alloc((size_t)acf_em_doubles(dev, g->K, g->D) * sizeof *memory, "scratch of a mixture");
    if (!memory) return ACF_EMEMORY;
    acf_em_step_in(dev, s, g, next, logp, memory);
    acf_release(memory);
    return ACF_OK;
}

/* Sum of log p of the held-out cells of some rows, given the seen ones of each; their number to *cells. */
static double score_part(desk *d, int64_t from, int64_t to, int64_t *cells) {
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
    double *memory = acf_alloc((size_t)(dev->threads * desk_doubles(g->K, g->D)) * sizeof *memory, "scratch of a mixture");
    if (!memory) return ACF_EMEMORY;
    ACF_PARALLEL_UNEVEN(dev, s->R * g->K * g->D * g->D * g->D)
    for (int64_t part = 0; part < PARTS; part++) {
        desk d = desk_at(memory, s, g);
        part_sum[part] = score_part(&d, part * s->R / PARTS, (part + 1) * s->R / PARTS, &part_cells[part]);
    }
    for (int part = 0; part < PARTS; part++) sum += part_sum[part], cells += part_cells[part];
    acf_release(memory);
    *logp = cells ? sum / (double)cells : 0;
    return ACF_OK;
}

/* ---- data augmentation ------------------------------------------------------------------------------------------------------ */

#define MORE_THAN_FITTED 1.3 /* times the fitted covariance, at most, is the mean of those that are drawn */
#define TRIES 64             /* counters of a gamma variate */

int64_t acf_augment_doubles(int64_t K, int64_t D) { return desk_doubles(K, D) + sums_size(K, D) + 2 * D * D; }

/* Draws component and missing cells of row b of the block, and adds it to the sums of that component. */
static void augment_row(desk *d, int64_t r, int64_t b, acf_augment at, double *sums) {
    const int64_t K = d->g->K, D = d->g->D, n = d->n;
    acf_place place = {.seed = at.seed, .row = d->s->id ? d->s->id[r + b] : (uint64_t)(r + b), .stream = ACF_STREAM_AUGMENT,
                       .draw = at.chain << 16 | at.step};
    double u = K > 1 ? acf_rng_uniform(place) : 0;
    int64_t k = 0;
    while (k < K - 1 && u >= d->lw[k * BLOCK + b]) u -= d->lw[k++ * BLOCK + b];
    const double *l = d->l + k * D * D;
    double *y = d->y + k * D * BLOCK + b, *e = d->e, *of = sums + k * sums_each(D), *first = of + 1, *second = first + D;
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

/* Gamma of this shape, at least 1, by Marsaglia and Tsang. TRIES counters from at.column on are its own. */
static double gamma_variate(acf_place at, double shape) {
    const double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (int i = 0; i < TRIES / 2; i++, at.column += 2) {
        acf_place other = at;
        other.column++;
        const double x = acf_rng_normal(at), v = pow(1 + c * x, 3);
        if (1 + c * x > 0 && log(acf_rng_uniform(other)) < 0.5 * x * x + d - d * v + d * log(v)) return d * v;
    }
    return shape; /* one time in 10^40 */
}

/* m (D,D) = lower factor of an inverse Wishart matrix with scale C Cᵀ, c the factor C, b room: rows of C B⁻ᵀ, B as Bartlett draws it. */
static void draw_factor(double *c, double *b, int64_t D, double freedom, acf_place at) {
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

/* Mean and covariance of component k of `next` from the sums of its rows: a normal inverse Wishart distribution, noninformative but for the ridge that
 * maximise adds, too. A component of few rows is drawn as if it had twice as many as columns, and near what was fitted: heavier tails would not be
 * what the table says. */
static void draw_component(const acf_sample *s, const acf_mixture *g, acf_mixture *next, int64_t k, const double *sums,
                           double *room, acf_place at) {
    const int64_t D = g->D;
    const double *first = sums + 1, *second = first + D, n = *sums, by = 1 / fmax(n, 1);
    const double prior = prior_rows(s), ridge = prior * ridge_of(s), freedom = fmax(n - 1, 2 * (double)D + 2);
    const double shrink = fmin(1, MORE_THAN_FITTED * (freedom - (double)D - 1) / (n + prior));
    double *c = room, *b = room + D * D, *mean = next->mean + k * D, *cov = next->cov + k * D * D;
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

/* Adds to both[k] (D,D), of component k, the rows in which two columns are seen together, by the weights that g gives to the components. */
static void count_pairs(const desk *d, int64_t rows, double *both) {
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
    double *both = memory + desk_doubles(K, D), all[BLOCK], least = INFINITY;
    desk d = desk_in(memory, s, g);
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
    double *sums = memory + desk_doubles(K, D), *room = sums + sums_size(K, D), all[BLOCK], total = 0;
    desk d = desk_in(memory, s, g);
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
        acf_place place = {.seed = at.seed, .row = (uint64_t)k, .stream = ACF_STREAM_POSTERIOR, .draw = at.chain << 16 | at.step};
        draw_component(s, g, next, k, sums + k * each, room, place);
        place.column = (uint32_t)((D * D + D) * TRIES);
        total += next->weight[k] = K > 1 ? gamma_variate(place, sums[k * each] + 1) : 1;
    }
    for (int64_t k = 0; k < K; k++) next->weight[k] /= total;
}

/* ---- the whole fit --------------------------------------------------------------------------------------------------------- */

acf_status acf_mixture_create(int64_t K, int64_t D, acf_mixture *out) {
    double *p = acf_alloc_zero((size_t)(K * (1 + D + D * D)) * sizeof *p, "a mixture");
    if (!p) return ACF_EMEMORY;
    *out = (acf_mixture){K, D, p, p + K, p + K + K * D};
    return ACF_OK;
}

void acf_mixture_free(acf_mixture *g) { acf_release(g->weight); }

static void mixture_copy(acf_mixture *to, const acf_mixture *from) { /* `to` has room for as many components or more */
    memset(to->weight, 0, (size_t)(to->K * (1 + to->D + to->D * to->D)) * sizeof *to->weight);
    memcpy(to->weight, from->weight, (size_t)from->K * sizeof *to->weight);
    memcpy(to->mean, from->mean, (size_t)(from->K * from->D) * sizeof *to->mean);
    memcpy(to->cov, from->cov, (size_t)(from->K * from->D * from->D) * sizeof *to->cov);
}

/* How far row r is from what a component that begins at `mean` expects: of what it has seen, in units of the whole's deviations. */
static double distance(const acf_sample *s, int64_t r, const double *mean, const acf_mixture *one) {
    const int64_t D = s->D;
    double sum = 0;
    for (int64_t j = 0; j < D; j++) {
        if (s->seen[r * D + j] != ACF_ANCHOR_SEEN) continue;
        const double e = s->x[r * D + j] - mean[j];
        sum += e * e / one->cov[j * D + j];
    }
    return sum;
}

/* The row where component k begins: far from those before it, by chance in proportion to the squared distance, so that a small group
 * apart from the others is likely to have one. near (R): the distance of each row to the nearest of them. */
static int64_t choose_row(const acf_mixture *g, const acf_sample *s, const acf_mixture *one, int64_t k, uint64_t seed, double *near) {
    double u = acf_rng_uniform((acf_place){.seed = seed, .row = (uint64_t)k, .stream = ACF_STREAM_INIT, .draw = (uint32_t)g->K}), sum = 0;
    for (int64_t r = 0; r < s->R; r++) {
        const double d = k ? distance(s, r, g->mean + (k - 1) * s->D, one) : 1;
        near[r] = k > 1 ? fmin(near[r], d) : d;
        sum += near[r];
    }
    u *= sum;
    for (int64_t r = 0; r < s->R; r++)
        if ((u -= near[r]) < 0) return r;
    return s->R - 1;
}

/* Where EM begins: one component as the prior says; several around rows of the sample, each as wide as the whole (`one`) shrunk. */
static void begin(acf_mixture *g, const acf_sample *s, const acf_mixture *one, uint64_t seed, double *near) {
    const int64_t D = g->D;
    for (int64_t k = 0; k < g->K; k++) {
        const int64_t r = one ? choose_row(g, s, one, k, seed, near) : 0;
        g->weight[k] = 1 / (double)g->K;
        for (int64_t j = 0; j < D; j++) {
            const bool seen = one && s->seen[r * D + j] == ACF_ANCHOR_SEEN;
            g->mean[k * D + j] = seen ? s->x[r * D + j] : one ? one->mean[j] : 0;
            for (int64_t i = 0; i < D; i++) g->cov[(k * D + j) * D + i] = one ? 0.5 * one->cov[j * D + i] : i == j;
        }
    }
}

/* EM until an iteration gains no more than `little` nats in a row. *logp: mean log-likelihood of a row at the end. */
static acf_status iterate(const acf_device *dev, const acf_sample *s, acf_mixture *g, double little, double *logp) {
    acf_mixture next;
    double before = -INFINITY;
    ACF_TRY(acf_mixture_create(g->K, g->D, &next));
    acf_status status = ACF_OK;
    for (int i = 0; i < ITERATIONS && !status; i++) {
        status = acf_em_step(dev, s, g, &next, logp);
        if (status) break;
        mixture_copy(g, &next);
        if (i > 5 && *logp - before < little) break;
        before = *logp;
    }
    acf_mixture_free(&next);
    return status;
}

/* How good a fitted mixture is, per cell: by the held-out cells, or the likelihood less what its parameters cost. */
static acf_status judge(const acf_device *dev, const acf_sample *s, const acf_mixture *g, double logp, double cells, bool held,
                        double *score) {
    if (held) return acf_em_score(dev, s, g, score);
    const double D = (double)g->D, numbers = (double)g->K * (1 + D + 0.5 * D * (D + 1)) - 1;
    *score = (logp - 0.5 * numbers * log((double)s->R) / (double)s->R) / cells;
    return ACF_OK;
}

/* Cells that a row has seen, in the mean. */
static double seen_cells(const acf_sample *s) {
    double cells = 0;
    for (int64_t i = 0; i < s->R * s->D; i++) cells += s->seen[i] == ACF_ANCHOR_SEEN;
    return fmax(cells / (double)s->R, 1e-9);
}

/* A search for the best mixture: the best so far and its score. */
typedef struct search {
    acf_mixture *best;
    double top, ridge;
    double clearly; /* gain per cell of whatever else is tried than more components as long as they gain */
} search;

/* What is gained per cell when all held-out cells gain so many nats. */
static double per_held(const acf_sample *s, double nats) {
    int64_t held = 0;
    for (int64_t i = 0; i < s->R * s->D; i++) held += s->seen[i] == ACF_ANCHOR_HELD;
    return held ? nats / (double)held : 0;
}

/* Tries 1, 2, 4, ... components with this ridge, or as many as are wanted, where that is not 0. A mixture that is clearly
 * better than to->best replaces it. One component always comes first: the others begin with its width. */
static acf_status search_numbers(const acf_device *dev, const acf_sample *s, uint64_t seed, int64_t wanted, search *to) {
    const double cells = seen_cells(s);
    int fruitless = 0;
    const bool held = acf_sample_held(s);
    acf_status status = ACF_OK;
    acf_mixture one = {0};
    double *near = acf_alloc((size_t)s->R * sizeof *near, "distances of rows");
    if (!near) return ACF_EMEMORY;
    for (int64_t K = 1; K <= to->best->K && fruitless < FRUITLESS && !status; K = wanted > K ? wanted : 2 * K) {
        acf_mixture g;
        double logp = 0, score = 0;
        ACF_TRY_DONE(acf_mixture_create(K, s->D, &g));
        begin(&g, s, K == 1 ? NULL : &one, seed, near);
        status = iterate(dev, s, &g, ROUGHLY * cells, &logp);
        if (!status) status = judge(dev, s, &g, logp, cells, held, &score);
        const bool first = to->top == -INFINITY;
        const double worth = fruitless || s->ridge > 0 ? fmax(WORTH, to->clearly) : WORTH;
        const bool better = !status && isfinite(score) && (score > to->top + worth || first || wanted);
        if (better) mixture_copy(to->best, &g), to->top = score, to->ridge = s->ridge;
        fruitless = better ? 0 : fruitless + 1;
        if (K == 1 && !status) one = g;
        else acf_mixture_free(&g);
        if (K == wanted) break;
    }
done:
    acf_mixture_free(&one);
    acf_release(near);
    return status;
}

/* EM to its end, for the components that best has. */
static acf_status finish(const acf_device *dev, const acf_sample *s, acf_mixture *best) {
    double logp;
    acf_mixture g = *best;
    for (g.K = 0; g.K < best->K && best->weight[g.K] > 0;) g.K++;
    return iterate(dev, s, &g, ENOUGH * seen_cells(s), &logp);
}

/* The best of all numbers of components and of both ridges, or what `as` says; *score: of the held-out cells, or by the
 * criterion without them. */
static acf_status choose(const acf_device *dev, acf_sample *s, uint64_t seed, const acf_anchor_choice *as, acf_mixture *best,
                         double *score, double *ridge) {
    search to = {.best = best, .top = -INFINITY, .clearly = per_held(s, CLEARLY)};
    s->ridge = as ? as->ridge : 0;
    acf_status status = search_numbers(dev, s, seed, as ? as->components : 0, &to);
    if (!status && !as && acf_sample_held(s) && s->R < SHARP_ROWS) {
        s->ridge = SHARP_RIDGE;
        status = search_numbers(dev, s, seed, 0, &to);
    }
    *score = to.top, *ridge = s->ridge = to.ridge;
    return status ? status : finish(dev, s, best);
}

void acf_mixture_detach(acf_mixture *g, int64_t from) {
    const int64_t D = g->D;
    for (int64_t k = 0; k < g->K; k++)
        for (int64_t i = from; i < D; i++) {
            g->mean[k * D + i] = 0;
            for (int64_t j = 0; j < D; j++) g->cov[(k * D + i) * D + j] = g->cov[(k * D + j) * D + i] = i == j;
        }
}

/* The mixture that is blind to the columns from `from` on, where that is what `as` says or clearly the better one; *best is replaced then. */
static acf_status try_blind(const acf_device *dev, acf_sample *s, uint64_t seed, const acf_anchor_choice *as, int64_t from, double score,
                            acf_mixture *best, double *ridge) {
    acf_mixture blind;
    double other, its_ridge;
    if (from == s->D || (as ? !as->blind : !acf_sample_held(s))) return ACF_OK;
    ACF_TRY(acf_mixture_create(best->K, s->D, &blind));
    acf_sample_hide(s, from);
    acf_status status = choose(dev, s, seed, as, &blind, &other, &its_ridge);
    if (!status && (as || other > score + BLINDLY)) {
        acf_mixture_detach(&blind, from);
        mixture_copy(best, &blind);
        *ridge = its_ridge;
    }
    acf_mixture_free(&blind);
    return status;
}

/* x as the numbers of a parameter. */
static acf_status store(acf_device *dev, acf_param *p, const double *x) {
    const int64_t n = acf_tensor_count(&p->t);
    acf_real *host = acf_alloc((size_t)n * sizeof *host, "a mixture");
    if (!host) return ACF_EMEMORY;
    for (int64_t j = 0; j < n; j++) host[j] = (acf_real)x[j];
    acf_status status = acf_device_copy(dev, p->t.data, host, (size_t)n * sizeof *host, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(dev);
    acf_release(host);
    return status;
}

/* The mixture of s, to the network. */
static acf_status fit_mixture(const acf_net *net, acf_device *dev, acf_sample *s, int64_t reals, uint64_t seed, const acf_anchor_choice *as, double *ridge) {
    acf_mixture best;
    double score = -INFINITY;
    acf_status status = ACF_OK;
    ACF_TRY(acf_mixture_create(acf_net_anchor_size(net), s->D, &best));
    if (!(as && as->blind)) status = choose(dev, s, seed, as, &best, &score, ridge);
    if (!status) status = try_blind(dev, s, seed, as, reals, score, &best, ridge);
    const double *from[3] = {best.weight, best.mean, best.cov};
    for (int i = 0; i < 3 && !status; i++) status = store(dev, acf_net_anchor(net)[i], from[i]);
    acf_mixture_free(&best);
    return status;
}

/* ---- wide tables ----------------------------------------------------------------------------------------------------------- */

/* The factors of s as they are asked for, and, where held-out cells may choose, those that are blind to the columns from `from` on. */
static acf_status choose_factors(const acf_device *dev, acf_sample *s, int64_t most, int64_t from, uint64_t seed, const acf_anchor_choice *as,
                                 acf_analysis *best) {
    const int64_t wanted = as ? as->components : 0;
    const bool may_be_blind = from < s->D && (as ? as->blind : acf_sample_held(s));
    double score = -INFINITY, its_score;
    *best = (acf_analysis){0};
    if (!(as && as->blind)) ACF_TRY(acf_analysis_choose(dev, s, seed, most, wanted, best, &score));
    if (!may_be_blind) return ACF_OK;
    acf_analysis blind;
    acf_sample_hide(s, from);
    acf_status status = acf_analysis_choose(dev, s, seed, most, wanted, &blind, &its_score);
    if (!status && (as || its_score > score + BLINDLY)) {
        acf_analysis_free(best);
        *best = blind;
        memset(blind.load + from * blind.r, 0, (size_t)((s->D - from) * blind.r) * sizeof *blind.load); /* exactly: that is how it is known again */
    } else if (!status) acf_analysis_free(&blind);
    if (status) acf_analysis_free(best);
    return status;
}

/* The factors of s, to the network, whose room is for `most` of them. */
static acf_status fit_factors(const acf_net *net, acf_device *dev, acf_sample *s, int64_t most, int64_t reals, uint64_t seed,
                              const acf_anchor_choice *as) {
    acf_analysis g;
    ACF_TRY(choose_factors(dev, s, most, reals, seed, as, &g));
    double *weight = acf_alloc_zero((size_t)(most * (1 + g.D)) * sizeof *weight, "factors of a table"), *load = weight ? weight + most : NULL;
    acf_status status = weight ? ACF_OK : ACF_EMEMORY;
    for (int64_t k = 0; !status && k < g.r; k++) weight[k] = 1;
    for (int64_t j = 0; !status && j < g.D; j++) memcpy(load + j * most, g.load + j * g.r, (size_t)g.r * sizeof *load);
    const double *from[4] = {weight, g.mean, load, g.var};
    for (int i = 0; i < 4 && !status; i++) status = store(dev, acf_net_anchor(net)[i], from[i]);
    acf_release(weight);
    acf_analysis_free(&g);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------------------------------------ */

/* Rows that stand for the table: what an iteration of EM may cost decides. */
static int64_t sample_rows(const acf_net *net, int64_t D, int64_t rows) {
    const int64_t K = acf_net_anchor_size(net), rank = acf_net_anchor_rank(net);
    const double mixture = WORK / (double)(K * D * D * (D + 20)), factors = WIDE_WORK / (double)(D * rank * rank);
    const int64_t n = acf_min(ROWS_MAX, (int64_t)(rank ? factors : mixture));
    return acf_min(rows, acf_max(ROWS_MIN, n));
}

acf_status acf_anchor_fit(acf_net *net, const acf_table *t, const acf_rows *rows, const acf_encoder *e, const acf_holdout *hold,
                          uint64_t seed, const acf_anchor_choice *as, acf_anchor_choice *found) {
    const int32_t *of, *value;
    const int64_t most = acf_net_anchor_rank(net);
    double ridge = 0;
    int64_t reals;
    if (found) *found = (acf_anchor_choice){0};
    if (!acf_net_anchor_size(net)) return ACF_OK;
    acf_net_reals(net, &reals);
    const int64_t D = reals + acf_net_indicators(net, &of, &value);
    acf_device *dev = acf_net_params(net)->dev;
    acf_sample s = {.D = D, .R = sample_rows(net, D, rows->n)};
    acf_status status = acf_sample_take(net, dev, t, rows, e, hold, seed, &s);
    if (!status) status = most ? fit_factors(net, dev, &s, most, reals, seed, as) : fit_mixture(net, dev, &s, reals, seed, as, &ridge);
    acf_sample_free(&s);
    if (!status && found) {
        ACF_TRY(acf_anchor_chosen(net, found));
        found->ridge = ridge;
    }
    return status;
}

/* Components, or factors, beyond those that were chosen have weight 0; a blind anchor has zeros between reals and indicators: in the rows of the
 * covariances (K,D,D), or of the loadings (D,rank), that the indicators have, up to the reals' columns or to the last. */
acf_status acf_anchor_chosen(acf_net *net, acf_anchor_choice *out) {
    const int64_t rank = acf_net_anchor_rank(net), K = rank ? 1 : acf_net_anchor_size(net);
    acf_param *const *p = acf_net_anchor(net);
    acf_device *dev = acf_net_params(net)->dev;
    int64_t reals;
    const int32_t *of, *value;
    acf_net_reals(net, &reals);
    const int64_t D = reals + acf_net_indicators(net, &of, &value), width = rank ? rank : D, upto = rank ? rank : reals;
    *out = (acf_anchor_choice){.blind = D > reals};
    if (!K) return ACF_OK;
    const int64_t numbers[2] = {rank ? rank : K, K * D * width};
    acf_real *host = acf_alloc((size_t)(numbers[0] + numbers[1]) * sizeof *host, "a mixture"), *table = host + numbers[0];
    acf_status status = host ? ACF_OK : ACF_EMEMORY;
    for (int i = 0; i < 2 && !status; i++)
        status = acf_device_copy(dev, i ? table : host, p[2 * i]->t.data, (size_t)numbers[i] * sizeof *host, ACF_TO_HOST);
    if (!status) status = acf_device_sync(dev);
    for (int64_t k = 0; !status && k < numbers[0]; k++) out->components += host[k] > 0;
    for (int64_t k = 0; !status && k < K; k++)
        for (int64_t i = reals; host[k] > 0 && i < D; i++)
            for (int64_t j = 0; j < upto; j++) out->blind &= table[(k * D + i) * width + j] == 0;
    acf_release(host);
    return status;
}
