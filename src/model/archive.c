/* An archive of rows: see archive.h.
 *
 * Workload: a look-up compares a row's known cells with all rows, column after column, 5,000 x 10 comparisons of integers for each row of a table with
 * holes, which with the weights of donors takes some 70 µs; EM does that for ASKED rows in each of ROUNDS rounds. */
#include "model/archive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ASKED 800  /* rows that EM looks up, evenly spread */
#define ROUNDS 10
#define FAR 36.0   /* nats: what fits so much worse has no weight in double */
#define LEAST 1e-3 /* of ε and 1 - ε */

/* ---- memory ---------------------------------------------------------------------------------------------------------------- */

acf_status acf_archive_room(int64_t N, int64_t D, int64_t values, acf_archive **out) {
    acf_archive *m = acf_alloc_zero(sizeof *m, "an archive of rows");
    if (!m) return ACF_EMEMORY;
    const size_t n = (size_t)N, d = (size_t)D, v = (size_t)values;
    m->N = N, m->D = D;
    m->id = acf_alloc_zero(n * sizeof *m->id, "an archive of rows");
    m->code = acf_alloc_zero(n * d * sizeof *m->code, "an archive of rows");
    m->first = acf_alloc_zero((d + 1) * sizeof *m->first, "an archive of rows");
    m->value = acf_alloc_zero(2 * v * sizeof *m->value, "an archive of rows");
    m->number = acf_alloc_zero(d * sizeof *m->number, "an archive of rows");
    m->width = acf_alloc_zero(5 * d * sizeof *m->width, "an archive of rows");
    if (!m->id || !m->code || !m->first || !m->value || !m->number || !m->width) {
        acf_archive_free(m);
        return ACF_EMEMORY;
    }
    m->share = m->value + v;
    m->differ = m->width + D, m->scale = m->width + 2 * D, m->shift = m->width + 3 * D, m->closer = m->width + 4 * D;
    *out = m;
    return ACF_OK;
}

void acf_archive_free(acf_archive *m) {
    if (!m) return;
    acf_release(m->id), acf_release(m->code), acf_release(m->first), acf_release(m->value), acf_release(m->number), acf_release(m->width);
    acf_release(m);
}

/* ---- what is remembered ---------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The place of x among the n ascending values, -1 where it is none of them. */
static int32_t place_of(const double *value, int64_t n, double x) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (value[middle] < x) low = middle + 1;
        else high = middle;
    }
    return low < n && value[low] == x ? (int32_t)low : -1;
}

/* The present cells of column j, ascending; returns how many. */
static int64_t sorted_cells(const acf_table *t, int64_t j, double *x) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->N; i++)
        if (acf_tab_present(acf_tab_row(t, i)[j])) x[n++] = acf_tab_row(t, i)[j];
    qsort(x, (size_t)n, sizeof *x, by_value);
    return n;
}

static int64_t count_values(const double *x, int64_t n) {
    int64_t values = 0;
    for (int64_t i = 0; i < n; i++) values += i == 0 || x[i] != x[i - 1];
    return values;
}

/* Values of column j from its n sorted cells, their shares, and how wide a value is. */
static void set_values(acf_archive *m, int64_t j, const double *x, int64_t n, const acf_encoder *e) {
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
    m->differ[j] = 0.3, m->scale[j] = e->scale[j];
}

static void set_codes(acf_archive *m, const acf_table *t) {
    for (int64_t i = 0; i < m->N; i++) {
        m->id[i] = acf_tab_id(t, i);
        for (int64_t j = 0; j < m->D; j++) {
            const double x = acf_tab_row(t, i)[j];
            m->code[j * m->N + i] = acf_tab_present(x) ? place_of(m->value + m->first[j], m->first[j + 1] - m->first[j], x) : -1;
        }
    }
}

/* ---- EM ----------------------------------------------------------------------------------------------------------------------- */

/* What one round adds up over the rows it looks up. */
typedef struct sums {
    double *same, *both, *away, *apart; /* (D) weight of donors that were copied, of all, of those that differ, and of distances to these */
    double copies;                      /* rows that repeat another */
} sums;

/* What row i of the memory itself says, its cells at the columns it has. */
static void own_row(const acf_archive *m, int64_t i, double *x, uint8_t *known) {
    for (int64_t j = 0; j < m->D; j++) {
        const int32_t c = m->code[j * m->N + i];
        known[j] = c >= 0, x[j] = c >= 0 ? m->value[m->first[j] + c] : 0;
    }
}

/* Weights of all rows, which sum to the probability that the row looked up repeats one; returns that. prior: odds. */
static double weigh_all(acf_recall *r, double prior) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < r->m->N; i++) most = fmax(most, r->fit[i]), r->weight[i] = 0;
    if (!isfinite(most)) return 0;
    for (int64_t i = 0; i < r->m->N; i++) sum += r->weight[i] = exp(r->fit[i] - most);
    const double odds = prior * exp(fmin(most, 600)) * sum / (double)r->m->N, copy = odds / (1 + odds);
    for (int64_t i = 0; i < r->m->N; i++) r->weight[i] *= copy / sum;
    return copy;
}

static void add_row(sums *s, const acf_recall *r, int64_t own) {
    const acf_archive *m = r->m;
    for (int64_t j = 0; j < m->D; j++) {
        const int32_t *code = m->code + j * m->N, c = code[own];
        const double *value = m->value + m->first[j];
        double same = 0, both = 0, away = 0, apart = 0;
        if (c < 0) continue;
        for (int64_t i = 0; i < m->N; i++) {
            const double w = r->weight[i];
            if (code[i] < 0 || w < 1e-12) continue;
            both += w;
            if (code[i] == c) same += w;
            else away += w, apart += w * fabs(value[code[i]] - value[c]);
        }
        const double p = m->share[m->first[j] + c], kept = 1 - m->differ[j];
        s->same[j] += same * kept / (kept + m->differ[j] * p), s->both[j] += both, s->away[j] += away, s->apart[j] += apart;
    }
}

/* ε and the scales from the sums. */
static void update(acf_archive *m, const sums *s) {
    for (int64_t j = 0; j < m->D; j++) {
        if (s->both[j] <= 0) continue;
        m->differ[j] = fmin(fmax(1 - s->same[j] / s->both[j], LEAST), 1 - LEAST);
        if (m->number[j] && s->away[j] > 0) m->scale[j] = fmax(s->apart[j] / s->away[j], m->width[j]);
    }
}

/* Mean distance of two cells of a column, or how often two differ. */
static double usual_distance(const acf_archive *m, int64_t j) {
    double below = 0, sum = 0, same = 0;
    for (int64_t k = m->first[j]; k < m->first[j + 1]; k++) {
        same += m->share[k] * m->share[k];
        below += m->share[k];
        if (k + 1 < m->first[j + 1]) sum += 2 * below * (1 - below) * (m->value[k + 1] - m->value[k]);
    }
    return m->number[j] ? sum : 1 - same;
}

static void compare_distances(acf_archive *m, const sums *s) {
    for (int64_t j = 0; j < m->D; j++) {
        const double least = m->number[j] ? m->width[j] : 0.01, of_donors = s->both[j] > 0 ? (m->number[j] ? s->apart[j] : s->away[j]) / s->both[j] : INFINITY;
        m->closer[j] = isfinite(of_donors) ? log((usual_distance(m, j) + least) / (of_donors + least)) : 0;
    }
}

static acf_status learn(acf_archive *m) {
    acf_recall *r;
    const size_t D = (size_t)m->D;
    const int64_t asked = acf_min(m->N, ASKED);
    double odds = 0.5;
    ACF_TRY(acf_recall_create(m, &r));
    double *memory = acf_alloc(5 * D * sizeof *memory, "an archive of rows");
    uint8_t *known = memory ? acf_alloc(D, "an archive of rows") : NULL;
    for (int round = 0; known && round < ROUNDS; round++) {
        sums s = {memory, memory + D, memory + 2 * D, memory + 3 * D, 0};
        double *x = memory + 4 * D;
        memset(memory, 0, 4 * D * sizeof *memory);
        for (int64_t k = 0; k < asked; k++) {
            const int64_t i = k * m->N / asked;
            own_row(m, i, x, known);
            acf_recall_row(r, x, known, m->id[i]);
            s.copies += weigh_all(r, odds);
            add_row(&s, r, i);
        }
        update(m, &s);
        if (round == ROUNDS - 1) compare_distances(m, &s);
        const double share = fmin(fmax(s.copies / (double)asked, LEAST), 1 - LEAST);
        odds = share / (1 - share);
    }
    acf_recall_free(r);
    acf_release(memory);
    if (!known) return ACF_EMEMORY;
    acf_release(known);
    return ACF_OK;
}

acf_status acf_archive_make(const acf_table *t, const acf_encoder *e, acf_archive **out) {
    acf_archive *m = NULL;
    acf_status status = ACF_OK;
    int64_t values = 0;
    double *x = acf_alloc((size_t)acf_max(t->N, 1) * sizeof *x, "an archive of rows");
    if (!x) return ACF_EMEMORY;
    for (int64_t j = 0; j < t->D; j++) values += count_values(x, sorted_cells(t, j, x));
    ACF_TRY_DONE(acf_archive_room(t->N, t->D, values, &m));
    for (int64_t j = 0; j < t->D; j++) set_values(m, j, x, sorted_cells(t, j, x), e);
    set_codes(m, t);
    ACF_TRY_DONE(learn(m));
    *out = m;
done:
    acf_release(x);
    if (status) acf_archive_free(m);
    return status;
}

/* ---- look-ups ------------------------------------------------------------------------------------------------------------- */

acf_status acf_recall_create(const acf_archive *m, acf_recall **out) {
    acf_recall *r = acf_alloc_zero(sizeof *r, "a look-up of rows");
    if (!r) return ACF_EMEMORY;
    r->m = m;
    r->fit = acf_alloc((size_t)acf_max(m->N, 1) * 2 * sizeof *r->fit, "a look-up of rows");
    r->donor = r->fit ? acf_alloc((size_t)acf_max(m->N, 1) * sizeof *r->donor, "a look-up of rows") : NULL;
    if (!r->donor) {
        acf_recall_free(r);
        return ACF_EMEMORY;
    }
    r->weight = r->fit + m->N;
    *out = r;
    return ACF_OK;
}

void acf_recall_free(acf_recall *r) {
    if (!r) return;
    acf_release(r->fit);
    acf_release(r->donor);
    acf_release(r);
}

void acf_recall_row(acf_recall *r, const double *x, const uint8_t *known, uint64_t id) {
    const acf_archive *m = r->m;
    double *restrict fit = r->fit;
    for (int64_t i = 0; i < m->N; i++) fit[i] = 0;
    for (int64_t j = 0; j < m->D; j++) {
        if (!known[j]) continue;
        const int32_t *restrict code = m->code + j * m->N, c = place_of(m->value + m->first[j], m->first[j + 1] - m->first[j], x[j]);
        const double differ = m->differ[j], other = log(differ), same = c < 0 ? 0 : log((1 - differ) / m->share[m->first[j] + c] + differ);
        if (c < 0) {
            for (int64_t i = 0; i < m->N; i++) fit[i] += code[i] < 0 ? 0 : other;
        } else {
            for (int64_t i = 0; i < m->N; i++) fit[i] += code[i] < 0 ? 0 : code[i] == c ? same : other;
        }
    }
    for (int64_t i = 0; i < m->N; i++)
        if (m->id[i] == id) fit[i] = -INFINITY;
}

double acf_recall_column(acf_recall *r, int64_t j) {
    const acf_archive *m = r->m;
    const int32_t *code = m->code + j * m->N;
    double most = -INFINITY, sum = 0;
    int64_t donors = 0;
    r->n = 0;
    for (int64_t i = 0; i < m->N; i++)
        if (code[i] >= 0 && r->fit[i] > most) most = r->fit[i];
    if (!isfinite(most)) return -INFINITY;
    for (int64_t i = 0; i < m->N; i++) {
        const bool gives = code[i] >= 0 && isfinite(r->fit[i]);
        donors += gives, r->weight[i] = 0;
        if (!gives || r->fit[i] < most - FAR) continue;
        sum += r->weight[i] = exp(r->fit[i] - most);
        r->donor[r->n++] = (int32_t)i;
    }
    for (int64_t k = 0; k < r->n; k++) r->weight[r->donor[k]] /= sum;
    return most + log(sum / (double)donors);
}

double acf_recall_trust(const acf_archive *m, int64_t j, double evidence) {
    if (!isfinite(evidence)) return 0;
    return fmin(1 / (1 + exp(-(m->shift[j] + m->slope * evidence))), ACF_RECALL_MOST);
}

double acf_recall_density(const acf_recall *r, int64_t j, double x) {
    const acf_archive *m = r->m;
    const int32_t *code = m->code + j * m->N;
    const double *value = m->value + m->first[j], differ = m->differ[j];
    const int32_t c = place_of(value, m->first[j + 1] - m->first[j], x);
    double same = 0, near = 0;
    for (int64_t k = 0; k < r->n; k++) {
        const int64_t i = r->donor[k];
        if (code[i] == c) same += r->weight[i];
        if (m->number[j]) near += r->weight[i] * exp(-fabs(x - value[code[i]]) / m->scale[j]);
    }
    near = m->number[j] ? near / (2 * m->scale[j]) : c < 0 ? 0 : m->share[m->first[j] + c];
    return (1 - differ) * same / m->width[j] + differ * near;
}

double acf_recall_mean(const acf_recall *r, int64_t j) {
    const acf_archive *m = r->m;
    const int32_t *code = m->code + j * m->N;
    double sum = 0;
    for (int64_t k = 0; k < r->n; k++) sum += r->weight[r->donor[k]] * m->value[m->first[j] + code[r->donor[k]]];
    return sum;
}

double acf_recall_draw(const acf_recall *r, int64_t j, const double u[3]) {
    const acf_archive *m = r->m;
    const int32_t *code = m->code + j * m->N;
    const double *value = m->value + m->first[j], *share = m->share + m->first[j];
    double below = 0;
    int64_t donor = -1;
    for (int64_t d = 0; d < r->n; d++) { /* rounding may leave the last one's part of the interval open */
        donor = r->donor[d], below += r->weight[donor];
        if (u[0] < below) break;
    }
    const double x = value[code[donor]], differs = m->differ[j];
    if (u[1] >= differs) return x;
    if (m->number[j]) return x + (u[2] < 0.5 ? m->scale[j] * log(2 * u[2]) : -m->scale[j] * log(2 * (1 - u[2])));
    const int64_t n = m->first[j + 1] - m->first[j];
    int64_t k = 0;
    for (below = share[0]; k < n - 1 && u[2] >= below;) below += share[++k];
    return value[k];
}
