/* Predicts the numbers of the stored rows: see donor_predict.h.
 *
 * Workload: EM over up to ROWS rows; then a query for every number of every row, about 10,000 x 10 of a microsecond. */
#include "donors/donor_predict.h"

#include <math.h>
#include <omp.h>

#define FAR 6.0       /* encoded values are cut here */
#define CLASSES 24    /* of a class column that has coordinates, at most */
#define ROWS 4096     /* rows of EM, at most */
#define WORK 33554432 /* rows times squared coordinates of EM, at most */
#define ENOUGH 50     /* rows for each coordinate: with fewer, a row influences its own prediction, so ... */
#define PARTS 5       /* ... folds are predicted from one another */

static int64_t values_of(const acf_donors *m, int64_t j) { return m->first[j + 1] - m->first[j]; }

/* Coordinates of each column: numbers first, then the class columns that fit the limits. */
static void choose_widths(const acf_donors *m, int64_t *width) {
    int64_t capacity = ACF_PREDICTOR_MOST;
    for (int64_t j = 0; j < m->D; j++) {
        width[j] = m->number[j] && values_of(m, j) > 1 && capacity > 0;
        capacity -= width[j];
    }
    for (int64_t j = 0; j < m->D; j++) {
        const int64_t n = values_of(m, j);
        if (m->number[j] || n < 2 || n > CLASSES || n - 1 > capacity) continue;
        width[j] = n - 1, capacity -= n - 1;
    }
}

static bool some_number(const acf_donors *m, const int64_t *width) {
    int64_t numbers = 0, columns = 0;
    for (int64_t j = 0; j < m->D; j++) numbers += m->number[j] && width[j], columns += width[j] > 0;
    return numbers > 0 && columns > 1;
}

/* A predictor for m's columns; *out stays NULL where there is nothing to predict. */
static acf_status make(const acf_donors *m, acf_predictor **out) {
    int64_t *width = acf_alloc_zero((size_t)m->D * sizeof *width, "the donor predictor");
    if (!width) return ACF_EMEMORY;
    choose_widths(m, width);
    const acf_status status = some_number(m, width) ? acf_predictor_create(m->D, width, out) : ACF_OK;
    acf_release(width);
    return status;
}

acf_status acf_donors_predict_alloc(acf_donors *m) { return make(m, &m->predictor); }

void acf_donors_coordinates(const acf_donors *m, int64_t k, acf_real z, int32_t code, double *x) {
    const int64_t first = m->predictor->first[k], n = m->predictor->first[k + 1] - first;
    const double *share = m->share + m->first[k];
    if (m->number[k] && n) x[first] = fmin(fmax((double)z, -FAR), FAR);
    for (int64_t v = 0; !m->number[k] && v < n; v++)
        x[first + v] = ((v == code) - share[v]) / sqrt(share[v] * (1 - share[v]));
}

/* Coordinates x (P) of a row, and which columns are known (D). */
static void read_row(const acf_donors *m, const acf_table *t, const acf_holdout *hold, int64_t row, double *x,
                     uint8_t *known) {
    if (hold) acf_holdout_row(hold, t, row, known);
    for (int64_t k = 0; k < m->D; k++) {
        const int32_t code = m->code[k * m->N + row];
        known[k] = code >= 0 && !(hold && known[k]);
        acf_donors_coordinates(m, k, m->place[k * m->N + row], code, x);
    }
}

/* ---- folds ----------------------------------------------------------------------------------------------------- */

/* A fold is every PARTS-th row: it is left out of learning and then predicted. ALL: learn from all rows, predict all.
 * */
enum { ALL = -1 };
static bool of_part(int64_t part, int64_t row) { return row % PARTS == part; }

static acf_status learn(const acf_donors *m, const acf_table *t, const acf_holdout *hold, int64_t part,
                        acf_predictor *e) {
    const int64_t P = e->P, most = acf_min(acf_min(m->N, ROWS), WORK / (P * P));
    double *x = acf_alloc((size_t)(most * P) * sizeof *x, "the donor predictor");
    uint8_t *known = x ? acf_alloc((size_t)(most * m->D), "the donor predictor") : NULL;
    acf_status status = known ? ACF_OK : ACF_EMEMORY;
    int64_t n = 0;
    for (int64_t i = 0; !status && i < most; i++) {
        const int64_t row = i * m->N / most;
        if (of_part(part, row)) continue;
        read_row(m, t, hold, row, x + n * P, known + n * m->D);
        n++;
    }
    if (!status) status = acf_predictor_learn(e, x, known, n);
    acf_release(x), acf_release(known);
    return status;
}

/* One thread's scratch. */
typedef struct worker {
    acf_predictor_scratch scratch;
    double *x;      /* (P) */
    uint8_t *known; /* (D) */
} worker;

static acf_status open_seat(const acf_donors *m, worker *s) {
    ACF_TRY(acf_predictor_scratch_open(m->predictor, &s->scratch));
    s->x = acf_alloc((size_t)m->predictor->P * sizeof *s->x, "the donor predictor");
    s->known = acf_alloc((size_t)m->D, "the donor predictor");
    return s->x && s->known ? ACF_OK : ACF_EMEMORY;
}

acf_real acf_donors_predicted(const acf_predictor *e, const acf_predictor_scratch *k, const double *x,
                              const uint8_t *known, int64_t j, double *variance) {
    return (acf_real)fmin(fmax(acf_predictor_cell_both(e, k, x, known, j, variance), -ACF_PREDICTED_FARTHEST),
                          ACF_PREDICTED_FARTHEST);
}

/* Sets m->predicted by e: of the rows left out of learning e, or of all rows if none was. */
static acf_status expect_rows(acf_donors *m, const acf_table *t, const acf_holdout *hold, int64_t part,
                              const acf_predictor *e, int threads) {
    const int n = (int)acf_max(acf_min(threads, m->N), 1);
    worker *s = acf_alloc_zero((size_t)n * sizeof *s, "the donor predictor");
    acf_status status = s ? ACF_OK : ACF_EMEMORY;
    for (int k = 0; !status && k < n; k++) status = open_seat(m, &s[k]);
    if (!status) {
#pragma omp parallel for num_threads(n)
        for (int64_t i = 0; i < m->N; i++) {
            const worker *own = &s[omp_get_thread_num()];
            double left;
            if (part != ALL && !of_part(part, i)) continue;
            read_row(m, t, hold, i, own->x, own->known);
            for (int64_t j = 0; j < m->D; j++)
                if (acf_donors_predicts(m, j))
                    m->predicted[j * m->N + i] = acf_donors_predicted(e, &own->scratch, own->x, own->known, j, &left);
        }
    }
    for (int k = 0; s && k < n; k++)
        acf_predictor_scratch_close(&s[k].scratch), acf_release(s[k].x), acf_release(s[k].known);
    acf_release(s);
    return status;
}

acf_status acf_donors_predict_learn(acf_donors *m, const acf_table *t, const acf_holdout *hold, int threads) {
    acf_predictor *other = NULL;
    if (!m->predictor) return ACF_OK;
    ACF_TRY(learn(m, t, hold, ALL, m->predictor));
    if (m->N >= ENOUGH * m->predictor->P) return expect_rows(m, t, hold, ALL, m->predictor, threads);
    acf_status status = make(m, &other);
    for (int64_t part = 0; !status && part < PARTS; part++) {
        status = learn(m, t, hold, part, other);
        if (!status) status = expect_rows(m, t, hold, part, other, threads);
    }
    acf_predictor_free(other);
    return status;
}
