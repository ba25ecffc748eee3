/* Setup for tests of donor answers: see donor_lab.h. */
#include "harness/donor_lab.h"

#include "harness/lab.h"
#include "harness/model_file_lab.h"

#include <stdlib.h>

const acf_column acf_donor_lab_columns[COLS] = {{NULL, 0}, {NULL, CLASSES}, {NULL, 0}, {NULL, 2}, {NULL, 0}};

static acf_model *some_model(acf_donor_lab *b, int k) {
    acf_model *m = acf_lab_fitted(b->dev, b->table, NULL, &(acf_encoding){true, true}, (uint64_t)k + 3, 0.3);
    for (int j = REAL; j <= LAST;
         j += LAST - REAL) { /* draws of the networks are neither values of the table nor at its ends */
        m->encoder->resolution[j] = (acf_resolution){0, 0};
        m->encoder->least[j] = -1e9, m->encoder->most[j] = 1e9;
    }
    return m;
}

acf_session *acf_donor_lab_ask(const acf_donor_lab *b, bool donors, int64_t batch) {
    acf_session *s;
    b->m->donors = donors ? b->a : NULL;
    assert_int_equal(acf_session_open(b->dev, b->m, batch, &s), ACF_OK);
    b->m->donors = b->a;
    return s;
}

void acf_donor_lab_open(acf_donor_lab *b, int threads, int members, int64_t batch) {
    for (int i = 0; i < CELLS; i++) {
        const int j = i % COLS, of = i / COLS % FULL * COLS + j;
        const double u = acf_lab_random(1, i, 0, 1);
        b->x[i] = j == WHOLE ? floor(6 * u) : j == CLASS ? floor(3 * u) : j == COIN ? floor(2 * u) : 10 * u;
        if (i / COLS >= FULL && u < 0.7) b->x[i] = b->x[of];
        if (i / COLS >= FULL && i % 7 == 3) b->x[i] = ABSENT;
    }
    assert_int_equal(acf_device_open_cpu(threads, &b->dev), ACF_OK);
    b->table = acf_donor_lab_table(b->x, ROWS, 0);
    b->m = some_model(b, 0);
    for (int k = 1; k < members; k++) acf_model_append(b->m, some_model(b, k));
    assert_int_equal(acf_donors_make(b->table, b->m->encoder, NULL, threads, &b->a), ACF_OK);
    for (int j = 0; j < COLS; j++) b->a->shift[j] = 0.4 * j - 1;
    b->a->slope = 0.3, b->a->agree = 0.2;
    assert_int_equal(acf_donor_search_create(b->a, &b->r), ACF_OK);
    b->s = acf_donor_lab_ask(b, true, batch), b->net = acf_donor_lab_ask(b, false, batch);
}

void acf_donor_lab_close(acf_donor_lab *b) {
    acf_session_free(b->s);
    acf_session_free(b->net);
    acf_donor_search_free(b->r);
    acf_model_free(b->m);
    acf_table_free(b->table);
    acf_device_close(b->dev);
}

void acf_donor_lab_believe(acf_donor_lab *b, double shift, double differ) {
    for (int j = 0; j < COLS; j++) b->a->shift[j] = shift, b->a->differ[j] = differ;
    b->a->slope = b->a->agree = 0;
    acf_donors_ready(b->a);
}

void acf_donor_lab_only_equal(acf_donor_lab *b) {
    for (int c = FULL * COLS; c < CELLS; c++) b->a->code[c % COLS * ROWS + c / COLS] = -1;
    for (int k = 0; k < COLS * COLS; k++) b->a->near[k] = 0, b->a->other[k] = k / COLS == k % COLS ? 0 : 100;
    for (int j = 0; j < COLS; j++) b->a->apart[j] = 0;
    acf_donors_ready(b->a);
}

double acf_donor_lab_trust(acf_donor_lab *b, const acf_table *t, int64_t i, int j, const uint8_t *known) {
    return acf_donor_search_run(b->r, j, t->x + i * COLS, known, acf_table_row_id(t, i))
               ? acf_donor_search_trust(b->r, j)
               : 0;
}

acf_table *acf_donor_lab_table(const double *x, int64_t N, uint64_t first_id) {
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, N, COLS, acf_donor_lab_columns, &t), ACF_OK);
    t->first_id = first_id;
    return t;
}

acf_table *acf_donor_lab_copies(const double *row, int64_t N) {
    double *x = malloc((size_t)(N * COLS) * sizeof *x);
    assert_non_null(x);
    for (int64_t c = 0; c < N * COLS; c++) x[c] = row[c % COLS];
    acf_table *t = acf_donor_lab_table(x, N, NEW);
    free(x);
    return t;
}

acf_table acf_donor_lab_row(const acf_table *t, int64_t i) {
    acf_table one = *t;
    one.first_id = acf_table_row_id(t, i), one.id = NULL, one.N = 1, one.x = t->x + i * t->D;
    return one;
}

static bool asks_at(int64_t c) {
    return c / COLS % 4 == 0   ? false
           : c / COLS % 4 == 1 ? c % COLS == c / COLS % COLS
                               : c / COLS % 4 == 2 || c * 7 % 3 != 0;
}

void acf_donor_lab_masks(uint8_t *given, uint8_t *target, int64_t cells) {
    for (int64_t c = 0; c < cells; c++) given[c] = c * 5 % 7 < 4, target[c] = asks_at(c) ? 1 : 0;
}

bool acf_donor_lab_asks(acf_query q, acf_purpose why, const acf_table *t, int64_t c) {
    const bool present = !isnan(t->x[c]);
    if (why == ACF_TO_SCORE) return present && (!q.target || q.target[c]);
    return q.target ? q.target[c] != 0 : !present;
}

bool acf_donor_lab_gives(acf_query q, acf_purpose why, const acf_table *t, int64_t c) {
    return !isnan(t->x[c]) && !acf_donor_lab_asks(q, why, t, c) && (!q.given || q.given[c]);
}
