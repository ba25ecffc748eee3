/* The encoder: see encode.h. Fitting reads the rows three times, a fraction of a second for twenty million cells.
 * Its JSON is in encode_json.c. */
#include "table/encode.h"

#include "base/rng.h"

#include "table/bounds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Allocates an array of n zeros; NULL and ACF_EMEMORY if there is no memory. */
static void *zeros(int64_t n, size_t size) {
    size_t bytes;
    return acf_bytes(n, size, &bytes) ? acf_alloc_zero(bytes, "an encoder") : NULL;
}

acf_status acf_encoder_create(const acf_column *column, int64_t D, acf_encoder **out) {
    acf_encoder *e = zeros(1, sizeof *e);
    if (!e) return ACF_EMEMORY;
    int64_t classes = 0;
    e->D = D;
    for (int64_t j = 0; j < D; j++) {
        e->n_categorical += column[j].classes > 0;
        classes += column[j].classes;
    }
    if (!(e->column = acf_columns_copy(column, D)) || !(e->mean = zeros(D, sizeof *e->mean)) ||
        !(e->scale = zeros(D, sizeof *e->scale)) || !(e->log_jacobian = zeros(D, sizeof *e->log_jacobian)) ||
        !(e->resolution = zeros(D, sizeof *e->resolution)) ||
        !(e->normal_scores = zeros(D, sizeof *e->normal_scores)) || !(e->support = zeros(D, sizeof *e->support)) ||
        !(e->least = zeros(D, sizeof *e->least)) || !(e->most = zeros(D, sizeof *e->most)) ||
        !(e->observed = zeros(D, sizeof *e->observed)) || !(e->first = zeros(D, sizeof *e->first)) ||
        !(e->count = zeros(classes, sizeof *e->count)) ||
        !(e->categorical = zeros(e->n_categorical, sizeof *e->categorical))) {
        acf_encoder_free(e);
        return ACF_EMEMORY;
    }
    for (int64_t j = 0, n = 0, first = 0; j < D; first += column[j++].classes) {
        e->scale[j] = 1.0;
        e->least[j] = -INFINITY, e->most[j] = INFINITY;
        e->first[j] = first;
        if (column[j].classes > 0) e->categorical[n++] = (int32_t)j;
    }
    *out = e;
    return ACF_OK;
}

void acf_encoder_free(acf_encoder *e) {
    if (!e) return;
    for (int64_t j = 0; e->normal_scores && j < e->D; j++) acf_normal_scores_free(&e->normal_scores[j]);
    for (int64_t j = 0; e->support && j < e->D; j++) acf_support_free(&e->support[j]);
    acf_release(e->column);
    acf_release(e->resolution), acf_release(e->support), acf_release(e->normal_scores), acf_release(e->least),
        acf_release(e->most);
    acf_release(e->mean), acf_release(e->scale), acf_release(e->log_jacobian);
    acf_release(e->observed), acf_release(e->first), acf_release(e->count), acf_release(e->categorical);
    acf_release(e);
}

/* ---- fitting ----------------------------------------------------------------------------------------------------- */

/* The state of a fit: one sweep over the visible cells each for range, mean and standard deviation. The midrange of
 * a column and half of its range map it to [-1, 1], where sums and squares of any finite values are finite. Mean and
 * standard deviation are computed there. */
typedef struct fit {
    acf_encoder *e;
    const acf_table *t;
    const acf_rows *rows;
    const acf_holdout *hold;
    uint8_t *held;                        /* (D) of the current row */
    double *least, *most, *middle, *half; /* (D) */
    double *sum, *square;                 /* (D) of (x - middle) / half, and of its squared distance to the mean */
} fit;

static void sweep(fit *f, void (*cell)(fit *, int64_t, double)) {
    for (int64_t k = 0; k < f->rows->n; k++) {
        int64_t row = acf_rows_at(f->rows, k);
        const double *x = acf_table_row(f->t, row);
        acf_holdout_row(f->hold, f->t, row, f->held);
        for (int64_t j = 0; j < f->t->D; j++)
            if (acf_table_present(x[j]) && !f->held[j]) cell(f, j, x[j]);
    }
}

static void count_cell(fit *f, int64_t j, double x) {
    acf_encoder *e = f->e;
    if (e->column[j].classes > 0) e->count[e->first[j] + (int64_t)x]++;
    if (e->observed[j] == 0 || x < f->least[j]) f->least[j] = x;
    if (e->observed[j] == 0 || x > f->most[j]) f->most[j] = x;
    e->observed[j]++;
}

static double unit(const fit *f, int64_t j, double x) { return (x - f->middle[j]) / f->half[j]; }

static void sum_cell(fit *f, int64_t j, double x) { f->sum[j] += unit(f, j, x); }

static void square_cell(fit *f, int64_t j, double x) {
    double d = unit(f, j, x) - f->sum[j] / (double)f->e->observed[j];
    f->square[j] += d * d;
}

/* Halves first: most - least may exceed the largest double. */
static void ranges(fit *f) {
    for (int64_t j = 0; j < f->e->D; j++) {
        f->middle[j] = f->most[j] / 2 + f->least[j] / 2;
        f->half[j] = f->most[j] / 2 - f->least[j] / 2;
        if (!(f->half[j] > 0.0)) f->half[j] = 1.0; /* constant, empty, or two adjacent subnormal numbers */
    }
}

void acf_encoder_set_scale(acf_encoder *e, int64_t j, double scale) {
    e->scale[j] = scale;
    e->log_jacobian[j] = -log(scale);
}

static void finish(fit *f) {
    acf_encoder *e = f->e;
    for (int64_t j = 0; j < e->D; j++) {
        if (e->column[j].classes > 0 || e->observed[j] == 0) continue;
        double n = (double)e->observed[j], spread = f->half[j] * sqrt(f->square[j] / n);
        bool constant = f->least[j] == f->most[j];
        e->mean[j] = constant ? f->least[j] : f->middle[j] + f->half[j] * (f->sum[j] / n);
        acf_encoder_set_scale(e, j, constant ? 1.0 : fmax(spread, DBL_MIN));
    }
}

acf_status acf_encoder_fit(const acf_table *t, const acf_rows *rows, const acf_holdout *hold, acf_encoder **out) {
    acf_rows all = acf_rows_all(t->N);
    acf_encoder *e = NULL;
    ACF_TRY(acf_encoder_create(t->column, t->D, &e));
    double *scratch = zeros(t->D, 6 * sizeof *scratch);
    uint8_t *held = zeros(t->D, sizeof *held);
    acf_status status = scratch && held ? ACF_OK : ACF_EMEMORY;
    if (status == ACF_OK) {
        fit f = {.e = e, .t = t, .rows = rows ? rows : &all, .hold = hold, .held = held};
        double **part[6] = {&f.least, &f.most, &f.middle, &f.half, &f.sum, &f.square};
        for (int k = 0; k < 6; k++) *part[k] = scratch + k * t->D;
        sweep(&f, count_cell);
        ranges(&f);
        sweep(&f, sum_cell);
        sweep(&f, square_cell);
        finish(&f);
        *out = e;
    }
    if (status != ACF_OK) acf_encoder_free(e);
    acf_release(scratch);
    acf_release(held);
    return status;
}

/* ---- range, resolution, normal scores ---------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define OUTER 0.05 /* share of the values on either side in which a bounded column's map may be non-linear */

/* The state of shaping some columns at a time: as many as fit into BLOCK cells, which is all of most tables. */
#define BLOCK ((int64_t)1 << 22)
typedef struct shaping {
    acf_encoder *e;
    const acf_table *t;
    const acf_rows *rows;
    const acf_holdout *hold;
    const acf_encoding *how;
    int64_t capacity;     /* maximum number of cells sampled of a column */
    uint8_t *held;        /* (D) */
    double *value;        /* (columns, capacity) sampled cells */
    double *least, *most; /* (D) of all visible cells */
    int64_t *seen;        /* (D) visible cells so far */
} shaping;

/* Reads the visible cells of the columns [from, to): all of them for the range, every k-th into value. */
static void take_cells(shaping *s, int64_t from, int64_t to) {
    for (int64_t k = 0; k < s->rows->n; k++) {
        int64_t row = acf_rows_at(s->rows, k);
        const double *x = acf_table_row(s->t, row);
        acf_holdout_row(s->hold, s->t, row, s->held);
        for (int64_t j = from; j < to; j++) {
            if (!acf_table_present(x[j]) || s->held[j]) continue;
            int64_t n = s->seen[j]++, apart = acf_ceil_div(s->e->observed[j], s->capacity);
            s->least[j] = n ? fmin(s->least[j], x[j]) : x[j];
            s->most[j] = n ? fmax(s->most[j], x[j]) : x[j];
            if (n % apart == 0) s->value[(j - from) * s->capacity + n / apart] = x[j];
        }
    }
}

/* Stores the bounds of column j, and the map that stays inside them. At an end where values pile up no map is
 * needed. */
static acf_status shape_ends(acf_encoder *e, int64_t j, const acf_bounds *b, double from, double to) {
    const double margin = acf_resolution_step(e->resolution[j]) / 2;
    const acf_normal_scores_ends ends = {
        .low = b->low_filled ? -INFINITY : (b->low - margin - e->mean[j]) / e->scale[j],
        .high = b->high_filled ? INFINITY : (b->high + margin - e->mean[j]) / e->scale[j],
        .from = from,
        .to = to};
    e->least[j] = b->low, e->most[j] = b->high;
    return acf_normal_scores_bend(&e->normal_scores[j], &ends);
}

/* value: the n sampled cells of column j. */
static acf_status shape_column(shaping *s, int64_t j, double *value, int64_t n) {
    acf_encoder *e = s->e;
    if (e->column[j].classes > 0 || n == 0) return ACF_OK;
    qsort(value, (size_t)n, sizeof *value, by_value);
    value[0] = s->least[j], value[n - 1] = s->most[j]; /* also if not every cell was sampled */
    if (s->how->dequantise) {
        e->resolution[j] = acf_resolution_find(value, n, s->t->column[j].clock);
        ACF_TRY(acf_support_find(value, n, e->resolution[j], &e->support[j]));
    }
    const acf_bounds bounds =
        (s->how->normal_scores ? acf_bounds_find : acf_bounds_declared)(value, n, &s->t->column[j]);
    if (!s->how->normal_scores) {
        e->least[j] = bounds.low, e->most[j] = bounds.high;
        return ACF_OK;
    }
    for (int64_t k = 0; k < n; k++) value[k] = (value[k] - e->mean[j]) / e->scale[j];
    ACF_TRY(acf_normal_scores_fit(value, n, acf_resolution_step(e->resolution[j]) / e->scale[j], &e->normal_scores[j]));
    return shape_ends(e, j, &bounds, value[(int64_t)(OUTER * (double)(n - 1))],
                      value[(int64_t)((1 - OUTER) * (double)(n - 1))]);
}

static acf_status shape_columns(shaping *s, int64_t block) {
    for (int64_t from = 0; from < s->e->D; from += block) {
        int64_t to = acf_min(from + block, s->e->D);
        take_cells(s, from, to);
        for (int64_t j = from; j < to; j++) {
            int64_t taken = s->seen[j] ? acf_ceil_div(s->seen[j], acf_ceil_div(s->e->observed[j], s->capacity)) : 0;
            ACF_TRY(shape_column(s, j, s->value + (j - from) * s->capacity, taken));
        }
    }
    return ACF_OK;
}

acf_status acf_encoder_shape(acf_encoder *e, const acf_table *t, const acf_rows *rows, const acf_holdout *hold,
                             const acf_encoding *how) {
    acf_rows all = acf_rows_all(t->N);
    shaping s = {.e = e, .t = t, .rows = rows ? rows : &all, .hold = hold, .how = how};
    s.capacity = acf_max(1, acf_min(s.rows->n, ACF_ENCODE_CELLS));
    int64_t block = acf_max(1, acf_min(t->D, BLOCK / s.capacity));
    acf_status status = ACF_EMEMORY;
    if ((s.held = zeros(t->D, sizeof *s.held)) && (s.value = zeros(block * s.capacity, sizeof *s.value)) &&
        (s.least = zeros(t->D, 2 * sizeof *s.least)) && (s.seen = zeros(t->D, sizeof *s.seen))) {
        s.most = s.least + t->D;
        status = shape_columns(&s, block);
    }
    acf_release(s.held), acf_release(s.value), acf_release(s.least), acf_release(s.seen);
    return status;
}

/* ---- use --------------------------------------------------------------------------------------------------------- */

acf_status acf_encoder_check(const acf_encoder *e, const acf_table *t) {
    if (t->D != e->D)
        return acf_fail(ACF_ESHAPE, "the table has %lld columns; the model expects %lld", (long long)t->D,
                        (long long)e->D);
    for (int64_t j = 0; j < e->D; j++) {
        char where[ACF_COLUMN_TEXT_MAX], known[ACF_EXCERPT_MAX];
        const acf_column *c = &t->column[j], *own = &e->column[j];
        acf_column_text(where, t->column, j);
        if ((c->classes > 0) != (own->classes > 0))
            return acf_fail(ACF_ESHAPE, "%s is %s; the model expects a %s one", where, acf_encoder_kind(c),
                            acf_encoder_kind(own));
        if (c->classes > own->classes)
            return acf_fail(ACF_ESHAPE, "%s has %d classes; the model knows %d", where, (int)c->classes,
                            (int)own->classes);
        if (c->name && own->name && strcmp(c->name, own->name) != 0)
            return acf_fail(ACF_EDATA, "%s: the model expects '%s' here", where, acf_text_excerpt(known, own->name));
    }
    return ACF_OK;
}

double acf_dequantise(const acf_encoder *e, int64_t j, double x, uint64_t seed, uint64_t row_id, uint32_t draw) {
    if (e->resolution[j].every == 0) return x;
    acf_rng_counter at = {seed, row_id, ACF_STREAM_NOISE, (uint32_t)j, draw};
    return x + acf_resolution_step(e->resolution[j]) * (acf_rng_uniform(at) - 0.5);
}

/* Whether x is not near one of the values that the column was observed to take. Multiples of the step are allowed
 * beyond the outermost of them. */
static bool beyond_values(const acf_encoder *e, int64_t j, double x) {
    const acf_support *p = &e->support[j];
    const double margin = acf_resolution_step(e->resolution[j]) / 2;
    return !p->n || (margin > 0 && (x < p->value[0] - margin || x > p->value[p->n - 1] + margin));
}

/* Rounds before clamping, as bounds need not be multiples of the step. NaN stays NaN. */
double acf_encoder_round(const acf_encoder *e, int64_t j, double x) {
    if (!beyond_values(e, j, x)) return acf_support_nearest(&e->support[j], x);
    const double least = fmax(e->least[j], -DBL_MAX), most = fmin(e->most[j], DBL_MAX);
    x = acf_resolution_round(e->resolution[j], x);
    x = x < least ? least : x;
    return x > most ? most : x;
}

double acf_decode(const acf_encoder *e, int64_t j, acf_real z) {
    int32_t classes = e->column[j].classes;
    if (classes == 0)
        return acf_encoder_round(e, j,
                                 e->mean[j] + e->scale[j] * acf_normal_scores_inverse(&e->normal_scores[j], (double)z));
    double code = nearbyint((double)z);
    if (!(code > 0.0)) return 0.0; /* also true for NaN */
    return fmin(code, (double)(classes - 1));
}
