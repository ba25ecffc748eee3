/* The encoder: see encode.h. Fitting reads the rows three times, a fraction of a second for twenty million cells. */
#include "data/encode.h"

#include <math.h>
#include <string.h>

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* An array of n zeros; NULL and ACF_EMEMORY when there is no memory. */
static void *zeros(int64_t n, size_t size) {
    size_t bytes;
    return acf_bytes(n, size, &bytes) ? acf_alloc_zero(bytes, "an encoder") : NULL;
}

/* For these columns, as if nothing had been observed. */
static acf_status create(const acf_column *column, int64_t D, acf_encoder **out) {
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
        !(e->observed = zeros(D, sizeof *e->observed)) || !(e->first = zeros(D, sizeof *e->first)) ||
        !(e->count = zeros(classes, sizeof *e->count)) ||
        !(e->categorical = zeros(e->n_categorical, sizeof *e->categorical))) {
        acf_encoder_free(e);
        return ACF_EMEMORY;
    }
    for (int64_t j = 0, n = 0, first = 0; j < D; first += column[j++].classes) {
        e->scale[j] = 1.0;
        e->first[j] = first;
        if (column[j].classes > 0) e->categorical[n++] = (int32_t)j;
    }
    *out = e;
    return ACF_OK;
}

void acf_encoder_free(acf_encoder *e) {
    if (!e) return;
    acf_release(e->column);
    acf_release(e->mean), acf_release(e->scale), acf_release(e->log_jacobian);
    acf_release(e->observed), acf_release(e->first), acf_release(e->count), acf_release(e->categorical);
    acf_release(e);
}

/* ---- fitting ---------------------------------------------------------------------------------------------------- */

/* A fit under way: a sweep over the visible cells for each of range, mean and spread. The middle of a column's range
 * and half its width map it to [-1, 1], where sums and squares of any finite values stay in range; mean and spread are
 * found there. */
typedef struct fit {
    acf_encoder *e;
    const acf_table *t;
    const acf_rows *rows;
    const acf_holdout *hold;
    uint8_t *held;                            /* (D) of the row at hand */
    double *least, *most, *middle, *half;     /* (D) */
    double *sum, *square;                     /* (D) of (x - middle) / half, and of its squared distance to the mean */
} fit;

static void sweep(fit *f, void (*cell)(fit *, int64_t, double)) {
    for (int64_t k = 0; k < f->rows->n; k++) {
        int64_t row = acf_rows_at(f->rows, k);
        const double *x = acf_tab_row(f->t, row);
        acf_holdout_row(f->hold, f->t, row, f->held);
        for (int64_t j = 0; j < f->t->D; j++)
            if (acf_tab_present(x[j]) && !f->held[j]) cell(f, j, x[j]);
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

/* Halves first: most - least may be beyond the largest double. */
static void ranges(fit *f) {
    for (int64_t j = 0; j < f->e->D; j++) {
        f->middle[j] = f->most[j] / 2 + f->least[j] / 2;
        f->half[j] = f->most[j] / 2 - f->least[j] / 2;
        if (!(f->half[j] > 0.0)) f->half[j] = 1.0; /* constant, empty, or two neighbours among the subnormals */
    }
}

static void set_scale(acf_encoder *e, int64_t j, double scale) {
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
        set_scale(e, j, constant ? 1.0 : fmax(spread, DBL_MIN));
    }
}

acf_status acf_encoder_fit(const acf_table *t, const acf_rows *rows, const acf_holdout *hold, acf_encoder **out) {
    acf_rows all = acf_rows_all(t->N);
    acf_encoder *e = NULL;
    ACF_TRY(create(t->column, t->D, &e));
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

/* ---- use -------------------------------------------------------------------------------------------------------- */

static const char *kind_of(const acf_column *c) { return c->classes > 0 ? "categorical" : "real"; }

acf_status acf_encoder_check(const acf_encoder *e, const acf_table *t) {
    if (t->D != e->D)
        return acf_fail(ACF_ESHAPE, "the table has %lld columns; the model expects %lld", (long long)t->D,
                        (long long)e->D);
    for (int64_t j = 0; j < e->D; j++) {
        char where[ACF_COLUMN_TEXT_MAX], known[ACF_EXCERPT_MAX];
        const acf_column *c = &t->column[j], *own = &e->column[j];
        acf_column_text(where, t->column, j);
        if ((c->classes > 0) != (own->classes > 0))
            return acf_fail(ACF_ESHAPE, "%s is %s; the model expects a %s one", where, kind_of(c), kind_of(own));
        if (c->classes > own->classes)
            return acf_fail(ACF_ESHAPE, "%s has %d classes; the model knows %d", where, (int)c->classes,
                            (int)own->classes);
        if (c->name && own->name && strcmp(c->name, own->name) != 0)
            return acf_fail(ACF_EDATA, "%s: the model expects '%s' here", where, acf_text_excerpt(known, own->name));
    }
    return ACF_OK;
}

double acf_decode(const acf_encoder *e, int64_t j, acf_real z) {
    int32_t classes = e->column[j].classes;
    if (classes == 0) return e->mean[j] + e->scale[j] * (double)z;
    double code = nearbyint((double)z);
    if (!(code > 0.0)) return 0.0; /* NaN too */
    return fmin(code, (double)(classes - 1));
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* jansson's failing calls leave NULLs behind, which its setters accept and report; `ok` collects them. */
static json_t *column_to_json(const acf_encoder *e, int64_t j) {
    const acf_column *c = &e->column[j];
    json_t *o = json_object();
    bool ok = o != NULL;
    if (c->name) ok = ok && json_object_set_new(o, "name", json_string(c->name)) == 0;
    ok = ok && json_object_set_new(o, "kind", json_string(kind_of(c))) == 0;
    if (c->classes == 0) {
        ok = ok && json_object_set_new(o, "mean", json_real(e->mean[j])) == 0;
        ok = ok && json_object_set_new(o, "scale", json_real(e->scale[j])) == 0;
        ok = ok && json_object_set_new(o, "observed", json_integer(e->observed[j])) == 0;
    } else {
        json_t *counts = json_array();
        ok = ok && json_object_set_new(o, "counts", counts) == 0;
        for (int32_t k = 0; ok && k < c->classes; k++)
            ok = json_array_append_new(counts, json_integer(e->count[e->first[j] + k])) == 0;
    }
    if (!ok) json_decref(o);
    return ok ? o : NULL;
}

acf_status acf_encoder_to_json(const acf_encoder *e, json_t **out) {
    json_t *object = json_object(), *columns = json_array();
    bool ok = json_object_set_new(object, "columns", columns) == 0; /* takes columns, also when it fails */
    for (int64_t j = 0; ok && j < e->D; j++) ok = json_array_append_new(columns, column_to_json(e, j)) == 0;
    if (!ok) {
        json_decref(object);
        return acf_fail(ACF_EMEMORY, "out of memory: writing an encoder");
    }
    *out = object;
    return ACF_OK;
}

/* A source whose sentences begin with the place: "model.safetensors: column 3". */
typedef struct place {
    char name[256];
    acf_json_source from;
} place;

static void place_column(place *p, acf_json_source from, size_t j) {
    acf_text t = acf_text_into(p->name, sizeof p->name);
    acf_text_addf(&t, "%s: column %zu", from.name, j);
    p->from = (acf_json_source){p->name, from.status};
}

/* Name and number of classes; the name is borrowed from the value. */
static acf_status read_column(acf_json_source from, const json_t *o, acf_column *out) {
    const char *kind;
    json_t *counts;
    ACF_TRY(acf_json_text(from, o, "kind", &kind));
    json_t *name = json_object_get(o, "name");
    if (name) ACF_TRY(acf_json_to_text(from, "name", name, &out->name));
    if (strcmp(kind, "real") == 0) return ACF_OK;
    if (strcmp(kind, "categorical") != 0) {
        char seen[ACF_EXCERPT_MAX];
        return acf_fail(from.status, "%s: 'kind' is '%s', expected real or categorical", from.name,
                        acf_text_excerpt(seen, kind));
    }
    ACF_TRY(acf_json_member(from, o, "counts", &counts));
    if (!json_is_array(counts) || json_array_size(counts) == 0 || json_array_size(counts) > INT32_MAX)
        return acf_fail(from.status, "%s: 'counts' must be a list of at least one number", from.name);
    out->classes = (int32_t)json_array_size(counts);
    return ACF_OK;
}

static acf_status count_is(acf_json_source from, const char *key, const json_t *v, int64_t *out) {
    ACF_TRY(acf_json_to_int(from, key, v, out));
    if (*out < 0 || *out > ACF_TABLE_ROWS_MAX)
        return acf_fail(from.status, "%s: '%s' is %lld, expected a number of cells", from.name, key, (long long)*out);
    return ACF_OK;
}

static acf_status read_real(acf_json_source from, const json_t *o, acf_encoder *e, int64_t j) {
    json_t *observed;
    double scale;
    ACF_TRY(acf_json_real(from, o, "mean", &e->mean[j]));
    ACF_TRY(acf_json_real(from, o, "scale", &scale));
    ACF_TRY(acf_json_member(from, o, "observed", &observed));
    ACF_TRY(count_is(from, "observed", observed, &e->observed[j]));
    if (!isfinite(e->mean[j]) || !(scale >= DBL_MIN && scale <= DBL_MAX))
        return acf_fail(from.status, "%s: 'mean' is %g and 'scale' %g, expected finite numbers and a scale above 0",
                        from.name, e->mean[j], scale);
    set_scale(e, j, scale);
    return ACF_OK;
}

static acf_status read_counts(acf_json_source from, const json_t *o, acf_encoder *e, int64_t j) {
    const json_t *counts = json_object_get(o, "counts");
    for (int32_t k = 0; k < e->column[j].classes; k++) {
        int64_t *count = &e->count[e->first[j] + k];
        ACF_TRY(count_is(from, "counts", json_array_get(counts, (size_t)k), count));
        e->observed[j] += *count;
    }
    return ACF_OK;
}

/* Twice over the list: kinds first, which give the sizes, then the numbers. */
static acf_status read_columns(acf_json_source from, const json_t *list, acf_column *column, acf_encoder **e) {
    place at;
    size_t D = json_array_size(list);
    for (size_t j = 0; j < D; j++) {
        place_column(&at, from, j);
        ACF_TRY(read_column(at.from, json_array_get(list, j), &column[j]));
    }
    if (acf_columns_check_names(column, (int64_t)D) != ACF_OK) {
        char why[ACF_SENTENCE_MAX];
        if (acf_error_status() == ACF_EMEMORY) return ACF_EMEMORY;
        acf_text t = acf_text_into(why, sizeof why);
        acf_text_add(&t, acf_error());
        return acf_fail(from.status, "%s: %s", from.name, why);
    }
    ACF_TRY(create(column, (int64_t)D, e));
    for (size_t j = 0; j < D; j++) {
        place_column(&at, from, j);
        const json_t *o = json_array_get(list, j);
        if (column[j].classes > 0) ACF_TRY(read_counts(at.from, o, *e, (int64_t)j));
        else ACF_TRY(read_real(at.from, o, *e, (int64_t)j));
    }
    return ACF_OK;
}

acf_status acf_encoder_from_json(acf_json_source from, const json_t *object, acf_encoder **out) {
    json_t *list;
    ACF_TRY(acf_json_member(from, object, "columns", &list));
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > INT32_MAX)
        return acf_fail(from.status, "%s: 'columns' must be a list of at least one column", from.name);
    acf_column *column = zeros((int64_t)json_array_size(list), sizeof *column);
    if (!column) return ACF_EMEMORY;
    acf_encoder *e = NULL;
    acf_status status = read_columns(from, list, column, &e);
    acf_release(column);
    if (status != ACF_OK) acf_encoder_free(e);
    else *out = e;
    return status;
}
