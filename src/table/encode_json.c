/* The encoder as JSON: see encode.h. */
#include "table/encode.h"

#include <math.h>
#include <string.h>

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Writes range, step, values and normal scores of a real column, where it has them. */
static bool shape_to_json(const acf_encoder *e, int64_t j, json_t *o) {
    const acf_normal_scores *w = &e->normal_scores[j];
    bool ok = true;
    if (isfinite(e->least[j])) ok = ok && json_object_set_new(o, "least", json_real(e->least[j])) == 0;
    if (isfinite(e->most[j])) ok = ok && json_object_set_new(o, "most", json_real(e->most[j])) == 0;
    if (e->resolution[j].every)
        ok = ok && json_object_set_new(o, "step",
                                       json_pack("{s:I, s:i}", "every", (json_int_t)e->resolution[j].every, "decimals",
                                                 e->resolution[j].decimals)) == 0;
    if (e->support[j].n)
        ok = ok && json_object_set_new(o, "values", acf_json_numbers(e->support[j].value, e->support[j].n)) == 0;
    if (w->n)
        ok = ok && json_object_set_new(o, "normal_scores",
                                       json_pack("{s:o, s:o}", "t", acf_json_numbers(w->t, w->n), "z",
                                                 acf_json_numbers(w->z, w->n))) == 0;
    return ok;
}

/* jansson's failing calls return NULL, which its setters accept and report; `ok` collects the failures. */
static json_t *column_to_json(const acf_encoder *e, int64_t j) {
    const acf_column *c = &e->column[j];
    json_t *o = json_object();
    bool ok = o != NULL;
    if (c->name) ok = ok && json_object_set_new(o, "name", json_string(c->name)) == 0;
    ok = ok && json_object_set_new(o, "kind", json_string(acf_encoder_kind(c))) == 0;
    if (c->classes == 0) {
        ok = ok && json_object_set_new(o, "mean", json_real(e->mean[j])) == 0;
        ok = ok && json_object_set_new(o, "scale", json_real(e->scale[j])) == 0;
        ok = ok && json_object_set_new(o, "observed", json_integer(e->observed[j])) == 0;
        ok = ok && shape_to_json(e, j, o);
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
    bool ok = json_object_set_new(object, "columns", columns) == 0; /* takes ownership of columns, also on failure */
    for (int64_t j = 0; ok && j < e->D; j++) ok = json_array_append_new(columns, column_to_json(e, j)) == 0;
    if (!ok) {
        json_decref(object);
        return acf_fail(ACF_EMEMORY, "out of memory: writing an encoder");
    }
    *out = object;
    return ACF_OK;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

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

/* Reads a bound of the range, if present. */
static acf_status read_bound(acf_json_source from, const json_t *o, const char *key, double *out) {
    json_t *v = json_object_get(o, key);
    if (v) ACF_TRY(acf_json_to_real(from, key, v, out));
    return ACF_OK;
}

static acf_status read_step(acf_json_source from, const json_t *o, acf_resolution *out) {
    int64_t every, decimals;
    ACF_TRY(acf_json_int(from, o, "every", &every));
    ACF_TRY(acf_json_int(from, o, "decimals", &decimals));
    if (every < 1 || decimals < 0 || decimals > ACF_STEP_DECIMALS_MAX)
        return acf_fail(from.status, "%s: 'step' is %lld with %lld decimals; expected 1 or more, with 0 to %d",
                        from.name, (long long)every, (long long)decimals, ACF_STEP_DECIMALS_MAX);
    *out = (acf_resolution){every, (int32_t)decimals};
    return ACF_OK;
}

static acf_status read_numbers(acf_json_source from, const char *key, const json_t *list, double *out) {
    for (size_t k = 0; k < json_array_size(list); k++)
        ACF_TRY(acf_json_to_real(from, key, json_array_get(list, k), &out[k]));
    return ACF_OK;
}

/* The encoder owns what is read, also on failure. */
static acf_status read_normal_scores(acf_json_source from, const json_t *o, acf_normal_scores *out) {
    json_t *t, *z;
    ACF_TRY(acf_json_member(from, o, "t", &t));
    ACF_TRY(acf_json_member(from, o, "z", &z));
    size_t n = json_array_size(t);
    if (n < 2 || n > ACF_NORMAL_SCORES_KNOTS || json_array_size(z) != n)
        return acf_fail(from.status, "%s: 'normal_scores' must have two lists, 't' and 'z', of 2 to %d numbers each",
                        from.name, ACF_NORMAL_SCORES_KNOTS);
    ACF_TRY(acf_normal_scores_create((int32_t)n, out));
    ACF_TRY(read_numbers(from, "t", t, out->t));
    ACF_TRY(read_numbers(from, "z", z, out->z));
    if (!acf_normal_scores_valid(out))
        return acf_fail(from.status, "%s: the numbers of 'normal_scores' must be finite and ascend", from.name);
    return ACF_OK;
}

static acf_status read_values(acf_json_source from, const json_t *list, acf_support *out) {
    size_t n = json_array_size(list);
    if (n < 2 || n > ACF_SUPPORT_MAX)
        return acf_fail(from.status, "%s: 'values' must be a list of 2 to %d numbers", from.name, ACF_SUPPORT_MAX);
    ACF_TRY(acf_support_create((int32_t)n, out));
    ACF_TRY(read_numbers(from, "values", list, out->value));
    if (!acf_support_valid(out))
        return acf_fail(from.status, "%s: the numbers of 'values' must be finite and ascend", from.name);
    return ACF_OK;
}

/* Reads range, step, values and normal scores. Older files lack some of them. */
static acf_status read_shape(acf_json_source from, const json_t *o, acf_encoder *e, int64_t j) {
    ACF_TRY(read_bound(from, o, "least", &e->least[j]));
    ACF_TRY(read_bound(from, o, "most", &e->most[j]));
    if (!(e->least[j] <= e->most[j]))
        return acf_fail(from.status, "%s: 'least' is %g and 'most' %g; expected a range", from.name, e->least[j],
                        e->most[j]);
    const json_t *step = json_object_get(o, "step"), *values = json_object_get(o, "values"),
                 *normal_scores = json_object_get(o, "normal_scores");
    if (step) ACF_TRY(read_step(from, step, &e->resolution[j]));
    if (values) ACF_TRY(read_values(from, values, &e->support[j]));
    return normal_scores ? read_normal_scores(from, normal_scores, &e->normal_scores[j]) : ACF_OK;
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
    acf_encoder_set_scale(e, j, scale);
    return read_shape(from, o, e, j);
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

/* Two passes over the list: first the kinds, which determine the sizes, then the numbers. */
static acf_status read_columns(acf_json_source from, const json_t *list, acf_column *column, acf_encoder **e) {
    acf_json_place at;
    size_t D = json_array_size(list);
    for (size_t j = 0; j < D; j++) {
        acf_json_place_column(&at, from, (int64_t)j);
        ACF_TRY(read_column(at.from, json_array_get(list, j), &column[j]));
    }
    if (acf_columns_check_names(column, (int64_t)D) != ACF_OK) {
        char why[ACF_SENTENCE_MAX];
        if (acf_error_status() == ACF_EMEMORY) return ACF_EMEMORY;
        acf_text t = acf_text_into(why, sizeof why);
        acf_text_add(&t, acf_error());
        return acf_fail(from.status, "%s: %s", from.name, why);
    }
    ACF_TRY(acf_encoder_create(column, (int64_t)D, e));
    for (size_t j = 0; j < D; j++) {
        acf_json_place_column(&at, from, (int64_t)j);
        const json_t *o = json_array_get(list, j);
        if (column[j].classes > 0)
            ACF_TRY(read_counts(at.from, o, *e, (int64_t)j));
        else
            ACF_TRY(read_real(at.from, o, *e, (int64_t)j));
    }
    return ACF_OK;
}

acf_status acf_encoder_from_json(acf_json_source from, const json_t *object, acf_encoder **out) {
    json_t *list;
    ACF_TRY(acf_json_member(from, object, "columns", &list));
    if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > INT32_MAX)
        return acf_fail(from.status, "%s: 'columns' must be a list of at least one column", from.name);
    acf_column *column = acf_alloc_zero(json_array_size(list) * sizeof *column, "an encoder");
    if (!column) return ACF_EMEMORY;
    acf_encoder *e = NULL;
    acf_status status = read_columns(from, list, column, &e);
    acf_release(column);
    if (status != ACF_OK)
        acf_encoder_free(e);
    else
        *out = e;
    return status;
}
