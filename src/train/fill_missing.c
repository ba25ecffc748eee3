/* Imputes missing cells for a second pass: see fill_missing.h.
 *
 * Workload: tables of up to ACF_REFIT_CELLS cells. The test goes through all pairs of columns, some 10^6 additions; the
 * draws cost as much as ACF_FILL_TABLES imputations. */
#include "train/fill_missing.h"

#include "ops/mog.h"

#include <math.h>
#include <string.h>

#define LEVEL 0.01 /* of the test, for all pairs together */
#define LEAST 10   /* rows on either side of a comparison */
#define CLASSES 16 /* classes of a category that are compared, at most: the first ones */

/* ---- the test -------------------------------------------------------------------------------------------------- */

/* Counts, sums and sums of squares of another column's cells, over rows with and without a cell of one column. */
typedef struct halves {
    double n[2], sum[2], square[2];
} halves;

static void add(halves *h, bool missing, double x) {
    h->n[missing] += 1, h->sum[missing] += x, h->square[missing] += x * x;
}

/* Difference of the two means in standard errors; 0 where there are too few rows. */
static double apart(const halves *h) {
    if (h->n[0] < LEAST || h->n[1] < LEAST) return 0;
    double mean[2], variance = 0;
    for (int k = 0; k < 2; k++)
        mean[k] = h->sum[k] / h->n[k], variance += (h->square[k] - h->sum[k] * mean[k]) / (h->n[0] + h->n[1]);
    const double of_mean = variance * (1 / h->n[0] + 1 / h->n[1]);
    return of_mean > 0 ? fabs(mean[0] - mean[1]) / sqrt(of_mean) : 0;
}

static int64_t comparisons(const acf_column *c) { return c->classes ? acf_min(c->classes, CLASSES) : 1; }

/* The largest difference of column j between rows with and without column k; of a category, over its classes. */
static double difference(const acf_table *t, const acf_rows *rows, const acf_encoder *e, int64_t j, int64_t k) {
    halves h[CLASSES] = {0};
    const int64_t n = comparisons(&e->column[j]);
    const bool classes = e->column[j].classes > 0;
    double most = 0;
    for (int64_t i = 0; i < rows->n; i++) {
        const double *x = acf_table_row(t, acf_rows_at(rows, i));
        if (!acf_table_present(x[j])) continue;
        const bool missing = !acf_table_present(x[k]);
        if (!classes) add(h, missing, (double)acf_encode(e, j, x[j]));
        for (int64_t c = 0; classes && c < n; c++) add(&h[c], missing, x[j] == (double)c);
    }
    for (int64_t c = 0; c < n; c++) most = fmax(most, apart(&h[c]));
    return most;
}

static int64_t count_holes(const acf_table *t, const acf_rows *rows, int64_t j) {
    int64_t n = 0;
    for (int64_t i = 0; i < rows->n; i++) n += !acf_table_present(acf_table_row(t, acf_rows_at(rows, i))[j]);
    return n;
}

bool acf_fill_wanted(const acf_table *t, const acf_rows *rows, const acf_encoder *e) {
    double most = 0, tests = 0;
    for (int64_t k = 0; k < t->D; k++) {
        if (count_holes(t, rows, k) < LEAST) continue;
        for (int64_t j = 0; j < t->D; j++) {
            if (j == k) continue;
            most = fmax(most, difference(t, rows, e, j, k));
            tests += (double)comparisons(&e->column[j]);
        }
    }
    return tests > 0 && most > -acf_normal_from_log_tail(log(LEVEL / 2 / tests));
}

/* ---- the draws ------------------------------------------------------------------------------------------------- */

static acf_status copy_slab(const acf_trainer *tr, acf_real *to, const acf_real *from) {
    return acf_device_copy(tr->ps->dev, to, from, (size_t)tr->ps->total * sizeof *to, ACF_ON_DEVICE);
}

static bool has_hole(const acf_table *t, int64_t row) {
    for (int64_t j = 0; j < t->D; j++)
        if (!acf_table_present(acf_table_row(t, row)[j])) return true;
    return false;
}

/* Draws every missing cell of the first n rows in tr->row, into x (N,D); cells is scratch. */
static acf_status draw_rows(acf_trainer *tr, int64_t n, uint32_t draw, acf_real *cells, double *x) {
    const acf_table *t = tr->given.table;
    const acf_encoder *e = tr->given.encoder;
    acf_batch *b = tr->batch;
    const int64_t D = t->D;
    if (n == 0) return ACF_OK;
    acf_batch_fill(tr->ps->dev, b, t, e, NULL, ACF_BATCH_TRAIN, tr->row, n);
    for (int64_t c = 0; c < n * D; c++) b->b[c] = b->m[c], b->m[c] = 1;
    acf_tape_begin(tr->tape, false);
    ACF_TRY(acf_net_draw(tr->tape, acf_net_view(tr->tape, tr->net, b, NULL),
                         &(acf_draw){.seed = tr->set.seed, .draw = draw}, cells));
    for (int64_t c = 0; c < n * D; c++)
        if (!b->b[c]) x[tr->row[c / D] * D + c % D] = acf_decode(e, c % D, cells[c]);
    return ACF_OK;
}

static acf_status draw_table(acf_trainer *tr, uint32_t draw, acf_real *cells, double *x) {
    const acf_table *t = tr->given.table;
    int64_t n = 0;
    memcpy(x, t->x, (size_t)(t->N * t->D) * sizeof *x);
    for (int64_t k = 0; k < tr->rows.n; k++) {
        const int64_t row = acf_rows_at(&tr->rows, k);
        if (!has_hole(t, row)) continue;
        tr->row[n++] = row;
        if (n < tr->sampler.size) continue;
        ACF_TRY(draw_rows(tr, n, draw, cells, x));
        n = 0;
    }
    return draw_rows(tr, n, draw, cells, x);
}

/* Uses the first pass's weights. The others are kept in the gradients' slab meanwhile, which is free between steps. */
acf_status acf_fill_rows(acf_trainer *tr) {
    const acf_table *t = tr->given.table;
    acf_params *ps = tr->ps;
    ACF_ASSERT(tr->pass == 2 && !tr->filled);
    const size_t size = (size_t)(t->N * t->D);
    double *x = acf_alloc(ACF_FILL_TABLES * size * sizeof *x, "filled rows");
    acf_real *cells = x ? acf_alloc((size_t)(tr->sampler.size * t->D) * sizeof *cells, "filled rows") : NULL;
    acf_status status = cells ? ACF_OK : ACF_EMEMORY;
    if (!status) status = copy_slab(tr, ps->grad, ps->value);
    if (!status) {
        status = copy_slab(tr, ps->value, tr->best);
        if (!status) status = acf_net_calibrate(tr->net, tr->scale_factor, tr->temperature);
        for (uint32_t k = 0; !status && k < ACF_FILL_TABLES; k++) status = draw_table(tr, k, cells, x + k * size);
        const acf_status back = copy_slab(tr, ps->value, ps->grad);
        if (!status) status = back;
    }
    acf_release(cells);
    if (status)
        acf_release(x);
    else
        tr->filled = x;
    return status;
}

/* ---- training on them ------------------------------------------------------------------------------------------ */

acf_table acf_fill_table(const acf_trainer *tr) {
    acf_table t = *tr->data.table;
    if (tr->filled) t.x = tr->filled + tr->sampler.epoch % ACF_FILL_TABLES * (t.N * t.D);
    return t;
}
