/* Nearest-neighbour donors: see donors.h.
 *
 * Workload: a search goes through all rows once for each known cell and once for the weights: about 5,000 x 10
 * distances for each target cell, three vector instructions for sixteen of them. */
#include "donors/donors.h"

#include "donors/donor_learn.h"
#include "donors/donor_link.h"
#include "donors/donor_predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_DONOR ACF_R(13.8155) /* nats above the nearest row: such rows have no weight; a thousand would have 0.1 % */
#define SUMS 4                  /* partial sums of a class's weights */
#define LANES 16                /* of a vector */
#define BLOCK 64                /* rows that are tested together */
#define STRIP 1024              /* rows whose distances are summed together */
#define FARTHEST 1e6            /* encoded values are cut here */
#define LEAST_SPREAD 0.03       /* added to the donors' spread, so that it stays above 0 */
#define LEAST_GIVEN 0.02        /* added to the known share of the distance, so that it stays above 0 */
#define GOLDEN 0.61803398874989484820
#define POINTS 16 /* quantiles of the Laplace distribution, for its mean after decoding */

/* ---- memory ---------------------------------------------------------------------------------------------------- */

acf_status acf_donors_alloc(int64_t N, const acf_encoder *e, int64_t values, acf_donors **out) {
    acf_donors *m = acf_alloc_zero(sizeof *m, "the donors");
    if (!m) return ACF_EMEMORY;
    const size_t n = (size_t)N, d = (size_t)e->D, v = (size_t)values;
    m->N = N, m->D = e->D, m->encoder = e;
    m->id = acf_alloc_zero(n * sizeof *m->id, "the donors");
    m->code = acf_alloc_zero(n * d * sizeof *m->code, "the donors");
    m->place = acf_alloc_zero(n * d * sizeof *m->place, "the donors");
    m->first = acf_alloc_zero((d + 1) * sizeof *m->first, "the donors");
    m->value = acf_alloc_zero(4 * v * sizeof *m->value, "the donors");
    m->number = acf_alloc_zero(2 * d * sizeof *m->number, "the donors");
    m->predicted = acf_alloc_zero(n * d * sizeof *m->predicted, "the donors");
    m->width = acf_alloc_zero((6 + 2 * d) * d * sizeof *m->width, "the donors");
    if (!m->id || !m->code || !m->place || !m->predicted || !m->first || !m->value || !m->number || !m->width) {
        acf_donors_free(m);
        return ACF_EMEMORY;
    }
    m->share = m->value + v, m->mean = m->value + 2 * v, m->spot = m->value + 3 * v;
    m->differ = m->width + d, m->scale = m->width + 2 * d, m->shift = m->width + 3 * d, m->gain = m->width + 4 * d;
    m->apart = m->width + 5 * d, m->full = m->number + d, m->near = m->width + 6 * d, m->other = m->near + d * d;
    *out = m;
    return ACF_OK;
}

void acf_donors_free(acf_donors *m) {
    if (!m) return;
    acf_release(m->id), acf_release(m->code), acf_release(m->place), acf_release(m->predicted), acf_release(m->first);
    acf_release(m->value), acf_release(m->number), acf_release(m->width);
    acf_predictor_free(m->predictor);
    acf_linkage_free(m->linkage);
    acf_release(m);
}

/* ---- stored rows ----------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The index of x among the n ascending values, -1 where it is none of them. */
static int32_t place_of(const double *value, int64_t n, double x) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (value[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && value[low] == x ? (int32_t)low : -1;
}

int32_t acf_donors_code(const acf_donors *m, int64_t j, double x) {
    return place_of(m->value + m->first[j], m->first[j + 1] - m->first[j], x);
}

/* The present cells of column j, ascending; returns how many. */
static int64_t sorted_cells(const acf_table *t, int64_t j, double *x) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->N; i++)
        if (acf_table_present(acf_table_row(t, i)[j])) x[n++] = acf_table_row(t, i)[j];
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n;
}

static int64_t count_values(const double *x, int64_t n) {
    int64_t values = 0;
    for (int64_t i = 0; i < n; i++) values += i == 0 || x[i] != x[i - 1];
    return values;
}

/* Values of column j from its n sorted cells, their shares, and the width of a value. */
static void set_values(acf_donors *m, int64_t j, const double *x, int64_t n) {
    const acf_encoder *e = m->encoder;
    double *value = m->value + m->first[j], *share = m->share + m->first[j], gap = INFINITY;
    int64_t k = -1;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || x[i] != x[i - 1]) value[++k] = x[i], share[k] = 0;
        share[k] += 1;
    }
    for (int64_t i = 0; i <= k; i++) share[i] /= (double)n;
    m->first[j + 1] = m->first[j] + k + 1;
    m->number[j] = e->column[j].classes == 0;
    for (int64_t i = 1; i <= k; i++) gap = fmin(gap, value[i] - value[i - 1]);
    const double step = acf_resolution_step(e->resolution[j]), least = 1e-4 * e->scale[j];
    m->width[j] = !m->number[j] ? 1 : step > 0 ? step : isfinite(gap) ? fmax(gap, least) : e->scale[j];
}

static void set_codes(acf_donors *m, const acf_table *t) {
    for (int64_t i = 0; i < m->N; i++) {
        m->id[i] = acf_table_row_id(t, i);
        for (int64_t j = 0; j < m->D; j++) {
            const double x = acf_table_row(t, i)[j];
            m->code[j * m->N + i] = acf_table_present(x) ? acf_donors_code(m, j, x) : -1;
        }
    }
}

acf_real acf_donors_position(const acf_donors *m, int64_t j, double x) {
    return m->number[j] ? (acf_real)fmin(fmax((double)acf_encode(m->encoder, j, x), -FARTHEST), FARTHEST) : (acf_real)x;
}

double acf_donors_rare(const acf_donors *m, int64_t j, int32_t c) {
    return c < 0 ? log(2 * (double)m->N) : -log(m->share[m->first[j] + c]);
}

/* The u-quantile of the Laplace distribution around 0. */
static double laplace(double scale, double u) { return u < 0.5 ? scale * log(2 * u) : -scale * log(2 * (1 - u)); }

/* Mean of the distribution around a donor with value x. Draws are decoded: bending, rounding and cuts move the mean. */
static double mean_given(const acf_donors *m, int64_t j, double x) {
    const double z = (double)acf_donors_position(m, j, x);
    double sum = 0;
    for (int k = 0; k < POINTS; k++)
        sum += acf_decode(m->encoder, j, (acf_real)(z + laplace(m->scale[j], (k + 0.5) / POINTS)));
    return (1 - m->differ[j]) * x + m->differ[j] * sum / POINTS;
}

void acf_donors_ready(acf_donors *m) {
    for (int64_t j = 0; j < m->D; j++) {
        m->full[j] = true;
        for (int64_t k = m->first[j]; k < m->first[j + 1]; k++) {
            m->spot[k] = (double)acf_donors_position(m, j, m->value[k]);
            m->mean[k] = m->number[j] ? mean_given(m, j, m->value[k]) : 0;
        }
        for (int64_t i = 0; i < m->N; i++) {
            const int32_t c = m->code[j * m->N + i];
            m->full[j] = m->full[j] && c >= 0;
            m->place[j * m->N + i] = c < 0 ? ACF_DONORS_ABSENT : (acf_real)m->spot[m->first[j] + c];
        }
    }
}

acf_status acf_donors_make(const acf_table *t, const acf_encoder *e, const acf_holdout *hold, int threads,
                           acf_donors **out) {
    acf_donors *m = NULL;
    acf_status status = ACF_OK;
    int64_t values = 0;
    double *x = acf_alloc((size_t)acf_max(t->N, 1) * sizeof *x, "the donors");
    if (!x) return ACF_EMEMORY;
    for (int64_t j = 0; j < t->D; j++) values += count_values(x, sorted_cells(t, j, x));
    ACF_TRY_DONE(acf_donors_alloc(t->N, e, values, &m));
    for (int64_t j = 0; j < t->D; j++) set_values(m, j, x, sorted_cells(t, j, x));
    set_codes(m, t);
    for (int64_t j = 0; j < t->D; j++) m->differ[j] = 0.3, m->scale[j] = 0.3;
    acf_donors_ready(m);
    ACF_TRY_DONE(acf_donors_predict_alloc(m));
    ACF_TRY_DONE(acf_donors_predict_learn(m, t, hold, threads));
    ACF_TRY_DONE(acf_donors_learn(m, t, hold, threads));
    acf_donors_ready(m);
    ACF_TRY_DONE(acf_linkage_make(m));
    *out = m;
done:
    acf_release(x);
    if (status) acf_donors_free(m);
    return status;
}

/* ---- distances and densities ----------------------------------------------------------------------------------- */

void acf_donors_add(acf_real *restrict cost, const acf_real *restrict place, int64_t n, acf_real z, acf_real near,
                    acf_real other, acf_real absent) {
    if (near == 0) /* classes: half the work */
        for (int64_t i = 0; i < n; i++) cost[i] += place[i] == ACF_DONORS_ABSENT ? absent : place[i] == z ? 0 : other;
    else
        for (int64_t i = 0; i < n; i++) {
            const acf_real away = z > place[i] ? z - place[i] : place[i] - z, of = near * away + (away > 0 ? other : 0);
            cost[i] += place[i] == ACF_DONORS_ABSENT ? absent : of;
        }
}

acf_real acf_donors_least(const acf_real *x, int64_t n) {
    acf_real lane[LANES], least = (acf_real)INFINITY;
    for (int k = 0; k < LANES; k++) lane[k] = least;
    for (int64_t i = 0; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) lane[k] = x[i + k] < lane[k] ? x[i + k] : lane[k];
    for (int k = 0; k < LANES; k++) least = lane[k] < least ? lane[k] : least;
    for (int64_t i = n - n % LANES; i < n; i++) least = x[i] < least ? x[i] : least;
    return least;
}

acf_donors_kernel acf_donors_kernel_at(const acf_donors *m, int64_t j, double x) {
    const double differ = m->differ[j], step = acf_resolution_step(m->encoder->resolution[j]), s = m->scale[j];
    acf_donors_kernel k = {.z = acf_donors_position(m, j, x)};
    k.from = k.to = k.z;
    if (!m->number[j]) {
        const int32_t c = acf_donors_code(m, j, x);
        k.low = k.smooth = (acf_real)(c < 0 ? 0 : differ * m->share[m->first[j] + c]);
    } else if (step > 0) { /* the interval of all values that round to x */
        k.from = acf_donors_position(m, j, x - 0.5 * step), k.to = acf_donors_position(m, j, x + 0.5 * step),
        k.rate = (acf_real)(1 / s);
        const double below = (double)(k.z - k.from) / s, above = (double)(k.to - k.z) / s;
        k.low = (acf_real)(-0.5 * differ * expm1(-below - above));
        k.smooth = (acf_real)(-0.5 * differ * (expm1(-below) + expm1(-above)));
    } else {
        k.rate = (acf_real)(1 / s);
        k.low = k.smooth = (acf_real)(0.5 * differ / s * (m->width[j] * exp(acf_encode_log_slope(m->encoder, j, x))));
    }
    k.top = (acf_real)(1 - differ) + k.smooth;
    return k;
}

void acf_donors_usual(const acf_donors *m, int64_t k, acf_real z, double *away, double *another) {
    const double *restrict share = m->share + m->first[k], *restrict spot = m->spot + m->first[k];
    const int64_t n = m->full[k] ? 0 : m->first[k + 1] - m->first[k];
    double far = 0, rest = 0;
#pragma omp simd reduction(+ : far, rest)
    for (int64_t v = 0; v < n; v++) {
        const double d = fabs((double)z - spot[v]);
        far += share[v] * d, rest += d > 0 ? share[v] : 0;
    }
    *away = far, *another = rest;
}

/* ---- search ---------------------------------------------------------------------------------------------------- */

acf_status acf_donor_search_create(const acf_donors *m, acf_donor_search **out) {
    acf_donor_search *r = acf_alloc_zero(sizeof *r, "a donor search");
    if (!r) return ACF_EMEMORY;
    const size_t n = (size_t)acf_max(m->N, 1);
    r->m = m;
    r->cost = acf_alloc(n * sizeof *r->cost, "a donor search");
    r->donor = r->cost ? acf_alloc(n * sizeof *r->donor, "a donor search") : NULL;
    r->weight = r->donor ? acf_alloc((1 + SUMS) * n * sizeof *r->weight, "a donor search") : NULL;
    r->term = r->weight ? acf_alloc((size_t)(m->D + 1) * sizeof *r->term, "a donor search") : NULL;
    r->span = r->term ? acf_alloc((size_t)m->D * sizeof *r->span, "a donor search") : NULL;
    if (!r->span) {
        acf_donor_search_free(r);
        return ACF_EMEMORY;
    }
    r->part = r->weight + n; /* no column has more values than there are rows */
    acf_status status = ACF_OK;
    if (m->predictor) {
        status = acf_predictor_scratch_open(m->predictor, &r->scratch);
        const int64_t P = m->predictor->P;
        if (!status && !(r->row = acf_alloc((size_t)(2 * P) * sizeof *r->row, "a donor search"))) status = ACF_EMEMORY;
        if (!status) acf_predictor_variances(m->predictor, &r->scratch, r->variance = r->row + P);
    }
    if (status)
        acf_donor_search_free(r);
    else
        *out = r;
    return status;
}

void acf_donor_search_free(acf_donor_search *r) {
    if (!r) return;
    acf_release(r->cost), acf_release(r->donor), acf_release(r->weight), acf_release(r->term), acf_release(r->row);
    acf_release(r->span);
    acf_predictor_scratch_close(&r->scratch);
    acf_release(r);
}

/* Cost of a row in which column k is missing: the mean over rows in which it is observed. */
static double usual_cost(const acf_donors *m, int64_t k, acf_real z, double near, double other) {
    double away, another;
    acf_donors_usual(m, k, z, &away, &another);
    return near * away + other * another;
}

/* The cost between predicted values of column j, scaled by the share of the variance that the known cells explain.
 * Stored rows are predicted from all of their cells; the prediction of a row in which little is known says little. */
static acf_donor_search_term expected_term(const acf_donor_search *r, int64_t j, const uint8_t *known) {
    const acf_donors *m = r->m;
    const int64_t p = m->predictor->first[j], P = m->predictor->P;
    double left;
    const acf_real z = acf_donors_predicted(m->predictor, &r->scratch, r->row, known, j, &left);
    const double alone = r->variance[p], least = 1 / m->predictor->precision[p * P + p];
    const double told = alone > least ? fmin(fmax((alone - left) / (alone - least), 0), 1) : 0;
    return (acf_donor_search_term){m->predicted + j * m->N, z, (acf_real)(told * m->apart[j]), 0, 0};
}

/* r->term = the terms of the rows' distance from the searched row. Returns how many. */
static int64_t list_terms(const acf_donor_search *r, int64_t j, const double *x, const uint8_t *known) {
    const acf_donors *m = r->m;
    const bool expects = m->apart[j] > 0;
    int64_t n = 0;
    for (int64_t k = 0; k < m->D; k++) {
        if (k == j || !known[k]) continue;
        const acf_real z = acf_donors_position(m, k, x[k]);
        const int32_t code = acf_donors_code(m, k, x[k]);
        const double near = m->near[j * m->D + k], other = m->other[j * m->D + k] * acf_donors_rare(m, k, code);
        r->term[n++] = (acf_donor_search_term){m->place + k * m->N, z, (acf_real)near, (acf_real)other,
                                               (acf_real)usual_cost(m, k, z, near, other)};
        if (expects) acf_donors_coordinates(m, k, z, code, r->row);
    }
    if (expects) r->term[n++] = expected_term(r, j, known);
    return n;
}

/* Can row i be the searched row? It can if no cell that both have differs. */
static bool may_be_same_row(const acf_donors *m, int64_t i, int64_t j, const double *x, const uint8_t *known) {
    for (int64_t k = 0; k < m->D; k++) {
        const int32_t c = m->code[k * m->N + i];
        if (k != j && known[k] && c >= 0 && m->value[m->first[k] + c] != x[k]) return false;
    }
    return true;
}

/* Among rows [from, from+n): those of this id that can be the row itself get an infinite cost. Is there one? */
static bool leave_out(const acf_donor_search *r, int64_t from, int64_t n, int64_t j, const double *x,
                      const uint8_t *known, uint64_t id) {
    const uint64_t *restrict ids = r->m->id + from;
    int some = 0;
#pragma omp simd reduction(| : some)
    for (int64_t i = 0; i < n; i++) some |= ids[i] == id;
    bool left_out = false;
    for (int64_t i = some ? 0 : n; i < n; i++)
        if (ids[i] == id && may_be_same_row(r->m, from + i, j, x, known))
            r->cost[from + i] = (acf_real)INFINITY, left_out = true;
    return left_out;
}

/* Least, sum and count of the finite costs. */
typedef struct range {
    acf_real least; /* infinite: there is none */
    double mean;
    double rows;
    bool left_out; /* the row itself was among them */
} range;

/* r->cost = C; infinite for the row itself, and for rows in which column j is missing. By strips of rows, whose sums
 * stay in the cache for all terms. */
static range costs(const acf_donor_search *r, int64_t j, const double *x, const uint8_t *known, uint64_t id) {
    const acf_donors *m = r->m;
    const int64_t terms = list_terms(r, j, x, known);
    range all = {.least = (acf_real)INFINITY};
    for (int64_t from = 0; from < m->N; from += STRIP) {
        const int64_t n = acf_min(STRIP, m->N - from);
        const acf_real *restrict place = m->place + j * m->N + from;
        acf_real *restrict cost = r->cost + from, sum = 0, rows = 0;
        for (int64_t i = 0; i < n; i++) cost[i] = place[i] == ACF_DONORS_ABSENT ? (acf_real)INFINITY : 0;
        all.left_out |= leave_out(r, from, n, j, x, known, id);
        for (int64_t k = 0; k < terms; k++) {
            const acf_donor_search_term t = r->term[k];
            acf_donors_add(cost, t.place + from, n, t.z, t.near, t.other, t.absent);
        }
#pragma omp simd reduction(+ : sum, rows)
        for (int64_t i = 0; i < n; i++) {
            const bool gives = cost[i] < (acf_real)INFINITY;
            sum += gives ? cost[i] : 0, rows += gives ? ACF_R(1.0) : 0;
        }
        const acf_real least = acf_donors_least(cost, n);
        all.least = least < all.least ? least : all.least;
        all.mean += (double)sum, all.rows += (double)rows;
    }
    all.mean /= fmax(all.rows, 1);
    return all;
}

/* Excludes the row itself under another id or after an edit, too. */
static void leave_out_copy(const acf_donor_search *r, range *all, int64_t j, const double *x, const uint8_t *known,
                           uint64_t id) {
    const int64_t i = all->left_out ? -1 : acf_linkage_find(r->m, r->cost, all->least, j, x, known, id, r->span);
    if (i < 0) return;
    if (all->rows > 1) all->mean += (all->mean - (double)r->cost[i]) / (all->rows - 1);
    all->rows--;
    r->cost[i] = (acf_real)INFINITY;
    all->least = acf_donors_least(r->cost, r->m->N);
}

/* Lists the rows of N that cost at most so much, and moves their costs to the front; returns how many there are. */
static int64_t list_donors(acf_real *cost, int32_t *donor, int64_t N, acf_real most) {
    int64_t n = 0;
    for (int64_t from = 0; from < N; from += BLOCK) { /* most blocks have none */
        const int64_t to = acf_min(from + BLOCK, N);
        int some = 0;
#pragma omp simd reduction(| : some)
        for (int64_t i = from; i < to; i++) some |= cost[i] <= most;
        for (int64_t i = some ? from : to; i < to; i++) { /* without a branch, which could not be predicted */
            const acf_real c = cost[i];
            donor[n] = (int32_t)i, cost[n] = c;
            n += c <= most;
        }
    }
    return n;
}

/* Weights of n costs, which sum to 1; returns the sum before normalisation. */
static double weigh(const acf_real *restrict cost, double *restrict weight, int64_t n, acf_real least) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t k = 0; k < n; k++) sum += weight[k] = (double)acf_exp(least - cost[k]);
    const double part = 1 / sum;
    for (int64_t k = 0; k < n; k++) weight[k] *= part;
    return sum;
}

/* Log of the ratio of the rows' spread in column j to the donors'. */
static double likeness(const acf_donor_search *r, int64_t j) {
    const acf_donors *m = r->m;
    const acf_real *place = m->place + j * m->N;
    const int32_t *donor = r->donor;
    const double *weight = r->weight;
    double mean = 0, square = 0, same = 0;
    if (m->number[j]) {
#pragma omp simd reduction(+ : mean, square)
        for (int64_t k = 0; k < r->n; k++) {
            const double z = (double)place[donor[k]];
            mean += weight[k] * z, square += weight[k] * z * z;
        }
        return -0.5 * log(fmax(square - mean * mean, 0) + LEAST_SPREAD * LEAST_SPREAD);
    }
    const int32_t *code = m->code + j * m->N;
    const int64_t values = m->first[j + 1] - m->first[j];
    double *part = r->part;
    for (int64_t v = 0; v < SUMS * values; v++) part[v] = 0;
    for (int64_t k = 0; k < r->n; k++)
        part[k % SUMS * values + code[donor[k]]] += weight[k]; /* partial sums: a single one would be a chain */
    for (int64_t v = 0; v < values; v++) {
        double sum = 0;
        for (int64_t k = 0; k < SUMS; k++) sum += part[k * values + v];
        same += sum * sum;
    }
    return -log(fmax(1 - same, 0) + LEAST_SPREAD);
}

/* Log of the share of column j's distance weights that these known columns carry. */
static double given_share(const acf_donors *m, int64_t j, const uint8_t *known) {
    double given = 0, all = 0;
    for (int64_t k = 0; k < m->D; k++) {
        const double of = k == j ? 0 : m->near[j * m->D + k] + m->other[j * m->D + k];
        all += of, given += known[k] ? of : 0;
    }
    return all > 0 ? log((given / all + LEAST_GIVEN) / (1 + LEAST_GIVEN)) : 0;
}

bool acf_donor_search_run(acf_donor_search *r, int64_t j, const double *x, const uint8_t *known, uint64_t id) {
    range all = costs(r, j, x, known, id);
    leave_out_copy(r, &all, j, x, known, id);
    r->n = 0, r->peak = r->alike = 0, r->given = given_share(r->m, j, known);
    if (!isfinite(all.least)) return false;
    r->n = list_donors(r->cost, r->donor, r->m->N, all.least + NO_DONOR);
    r->peak = log1p(fmax(all.mean - (double)all.least + log(weigh(r->cost, r->weight, r->n, all.least) / all.rows), 0));
    r->alike = likeness(r, j);
    return true;
}

double acf_donor_search_trust(const acf_donor_search *r, int64_t j) {
    const acf_donors *m = r->m;
    if (r->n == 0) return 0;
    return fmin(1 / (1 + exp(-(m->shift[j] + m->slope * r->peak + m->agree * r->alike + m->given * r->given))),
                ACF_DONOR_TRUST_MOST);
}

double acf_donor_search_density(const acf_donor_search *r, int64_t j, double x) {
    const acf_real *place = r->m->place + j * r->m->N;
    const acf_donors_kernel at = acf_donors_kernel_at(r->m, j, x);
    double sum = 0;
    for (int64_t k = 0; k < r->n; k++) sum += r->weight[k] * (double)acf_donors_given(&at, place[r->donor[k]]);
    return sum / r->m->width[j];
}

void acf_donor_search_add_classes(const acf_donor_search *r, int64_t j, double part, double *probs) {
    const acf_donors *m = r->m;
    const int32_t *code = m->code + j * m->N;
    const double *value = m->value + m->first[j], *share = m->share + m->first[j], very = 1 - m->differ[j];
    for (int64_t k = 0; k < r->n; k++) probs[(int32_t)value[code[r->donor[k]]]] += part * very * r->weight[k];
    for (int64_t v = 0; v < m->first[j + 1] - m->first[j]; v++)
        probs[(int32_t)value[v]] += part * m->differ[j] * share[v];
}

double acf_donor_search_mean(const acf_donor_search *r, int64_t j) {
    const acf_donors *m = r->m;
    const int32_t *code = m->code + j * m->N;
    double sum = 0;
    for (int64_t k = 0; k < r->n; k++) sum += r->weight[k] * m->mean[m->first[j] + code[r->donor[k]]];
    return sum;
}

/* Majority vote: weights of different values cancel. What is left at the end is the only candidate for more than
 * half. */
double acf_donor_search_majority(const acf_donor_search *r, int64_t j, double *x) {
    const acf_donors *m = r->m;
    const int32_t *code = m->code + j * m->N;
    double left = 0, sum = 0;
    int32_t best = -1;
    for (int64_t k = 0; k < r->n; k++) {
        const int32_t c = code[r->donor[k]];
        if (c != best && left < r->weight[k])
            best = c, left = r->weight[k] - left;
        else
            left += c == best ? r->weight[k] : -r->weight[k];
    }
    for (int64_t k = 0; k < r->n; k++) sum += code[r->donor[k]] == best ? r->weight[k] : 0;
    if (best >= 0) *x = m->value[m->first[j] + best];
    return sum * (1 - m->differ[j]);
}

int64_t acf_donor_search_observed(const acf_donor_search *r, int64_t j, double *value, double *weight) {
    const acf_donors *m = r->m;
    const int32_t *code = m->code + j * m->N;
    const double *values = m->value + m->first[j], very = 1 - m->differ[j];
    const int64_t V = m->first[j + 1] - m->first[j];
    int64_t n = 0;
    for (int64_t v = 0; v < V; v++) r->part[v] = 0;
    for (int64_t k = 0; k < r->n; k++) r->part[code[r->donor[k]]] += very * r->weight[k];
    for (int64_t v = 0; v < V; v++)
        if (r->part[v] > 0) value[n] = acf_encoder_round(m->encoder, j, values[v]), weight[n++] = r->part[v];
    return n;
}

/* A lattice: donors evenly by weight, and evenly spaced quantiles of the Laplace distribution in the order of the
 * golden section. */
void acf_donor_search_spread(const acf_donor_search *r, int64_t j, int n, double *value) {
    const acf_donors *m = r->m;
    const acf_real *place = m->place + j * m->N;
    double below = 0;
    int64_t k = -1;
    for (int i = 0; i < n; i++) {
        while (k < r->n - 1 && (k < 0 || below <= (i + 0.5) / n)) below += r->weight[++k];
        const double away = laplace(m->scale[j], fmod((i + 0.5) * GOLDEN, 1));
        value[i] = acf_decode(m->encoder, j, (acf_real)((double)place[r->donor[k]] + away));
    }
}

double acf_donor_search_draw(const acf_donor_search *r, int64_t j, const double u[3]) {
    const acf_donors *m = r->m;
    const double *value = m->value + m->first[j], *share = m->share + m->first[j];
    double below = 0;
    int64_t donor = -1;
    for (int64_t k = 0; k < r->n; k++) { /* rounding may leave the end of the last donor's interval uncovered */
        donor = r->donor[k], below += r->weight[k];
        if (u[0] < below) break;
    }
    if (u[1] >= m->differ[j]) return acf_encoder_round(m->encoder, j, value[m->code[j * m->N + donor]]);
    if (m->number[j])
        return acf_decode(m->encoder, j, (acf_real)((double)m->place[j * m->N + donor] + laplace(m->scale[j], u[2])));
    const int64_t n = m->first[j + 1] - m->first[j];
    int64_t k = 0;
    for (below = share[0]; k < n - 1 && u[2] >= below;) below += share[++k];
    return value[k];
}
