/* The donors in a model file: see donor_file.h.
 *
 * Workload: up to 20,000 rows and 2,000,000 values, read once with the model. */
#include "donors/donor_file.h"

#include "donors/donor_link.h"
#include "donors/donor_predict.h"

#include <math.h>
#include <string.h>

#define IDS_ROWS "rows"
#define MOST_COST 1e6             /* nats; this times the largest distance of encoded values is a finite float */
#define ID_END ((int64_t)1 << 48) /* as of tables (table/table.h) */

/* ---- writing --------------------------------------------------------------------------------------------------- */

static json_t *values_to_json(const acf_donors *m, int64_t j) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int64_t k = m->first[j]; ok && k < m->first[j + 1]; k++) {
        const double x = m->value[k];
        ok = json_array_append_new(list, m->number[j] ? json_real(x) : json_integer((json_int_t)x)) == 0;
    }
    if (!ok) json_decref(list);
    return ok ? list : NULL;
}

/* jansson's failing calls leave NULLs behind, which its setters accept and report; `ok` collects them. */
static json_t *column_to_json(const acf_donors *m, int64_t j) {
    json_t *o = json_object();
    bool ok = json_object_set_new(o, "values", values_to_json(m, j)) == 0;
    ok = ok && json_object_set_new(o, "differ", json_real(m->differ[j])) == 0;
    ok = ok && json_object_set_new(o, "scale", json_real(m->scale[j])) == 0;
    ok = ok && json_object_set_new(o, "width", json_real(m->width[j])) == 0;
    ok = ok && json_object_set_new(o, "shift", json_real(m->shift[j])) == 0;
    ok = ok && json_object_set_new(o, "apart", json_real(m->apart[j])) == 0;
    ok = ok && json_object_set_new(o, "near", acf_json_numbers(m->near + j * m->D, m->D)) == 0;
    ok = ok && json_object_set_new(o, "other", acf_json_numbers(m->other + j * m->D, m->D)) == 0;
    if (!ok) json_decref(o);
    return ok ? o : NULL;
}

/* "rows" if the ids are the row numbers from 0 on; else a list. */
static json_t *ids_to_json(const acf_donors *m) {
    bool rows = true;
    for (int64_t i = 0; i < m->N; i++) rows = rows && m->id[i] == (uint64_t)i;
    if (rows) return json_string(IDS_ROWS);
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int64_t i = 0; ok && i < m->N; i++) ok = json_array_append_new(list, json_integer((json_int_t)m->id[i])) == 0;
    if (!ok) json_decref(list);
    return ok ? list : NULL;
}

acf_status acf_donors_to_json(const acf_donors *m, json_t **out) {
    if (m->first[m->D] > ACF_DONORS_VALUES)
        return acf_fail(ACF_EUSAGE, "the donors have %lld different values; a file holds up to %d",
                        (long long)m->first[m->D], ACF_DONORS_VALUES);
    json_t *object = json_object(), *columns = json_array();
    bool ok = json_object_set_new(object, "nearness", json_real(m->slope)) == 0 &&
              json_object_set_new(object, "agree", json_real(m->agree)) == 0;
    ok = json_object_set_new(object, "given", json_real(m->given)) == 0 && ok;
    ok = json_object_set_new(object, "columns", columns) == 0 && ok; /* takes columns, also when it fails */
    for (int64_t j = 0; ok && j < m->D; j++) ok = json_array_append_new(columns, column_to_json(m, j)) == 0;
    ok = ok && json_object_set_new(object, "ids", ids_to_json(m)) == 0;
    if (!ok) {
        json_decref(object);
        return acf_fail(ACF_EMEMORY, "out of memory: writing the donors");
    }
    *out = object;
    return ACF_OK;
}

acf_real *acf_donors_codes(const acf_donors *m) {
    acf_real *out = acf_alloc((size_t)(m->N * m->D) * sizeof *out, "the donors");
    for (int64_t i = 0; out && i < m->N; i++)
        for (int64_t j = 0; j < m->D; j++) out[i * m->D + j] = (acf_real)m->code[j * m->N + i];
    return out;
}

acf_real *acf_donors_gaussian(const acf_donors *m) {
    const int64_t n = m->predictor->P * (m->predictor->P + 1);
    acf_real *out = acf_alloc((size_t)n * sizeof *out, "the donors");
    for (int64_t i = 0; out && i < n; i++) out[i] = (acf_real)m->predictor->mean[i];
    return out;
}

acf_real *acf_donors_predictions(const acf_donors *m) {
    acf_real *out = acf_alloc((size_t)(m->N * m->D) * sizeof *out, "the donors");
    for (int64_t i = 0; out && i < m->N; i++)
        for (int64_t j = 0; j < m->D; j++) out[i * m->D + j] = m->predicted[j * m->N + i];
    return out;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Allocates *out for all rows of the tensor, and for the values that each column lists. */
static acf_status make_room(acf_json_source from, const json_t *columns, const acf_safetensors *f, const char *path,
                            const acf_encoder *e, acf_donors **out) {
    const int64_t D = e->D;
    const acf_safetensors_tensor *t = acf_safetensors_find(f, ACF_DONORS_CODES);
    int64_t values = 0;
    if (!json_is_array(columns) || (int64_t)json_array_size(columns) != D)
        return acf_fail(from.status, "%s: 'columns' must be a list of %lld, as many as the encoder has", from.name,
                        (long long)D);
    if (!t) return acf_fail(ACF_EMODEL, "%s: tensor '" ACF_DONORS_CODES "' is missing", path);
    if (t->ndim != 2 || t->dim[0] < 1 || t->dim[0] > ACF_DONORS_ROWS || t->dim[1] != D)
        return acf_fail(ACF_EMODEL,
                        "%s: tensor '" ACF_DONORS_CODES
                        "' has another shape than expected: 1 to %d rows of %lld columns",
                        path, ACF_DONORS_ROWS, (long long)D);
    for (int64_t j = 0; j < D; j++) {
        acf_json_place at;
        json_t *list;
        acf_json_place_column(&at, from, j);
        ACF_TRY(acf_json_member(at.from, json_array_get(columns, (size_t)j), "values", &list));
        if (!json_is_array(list) || (int64_t)json_array_size(list) > t->dim[0])
            return acf_fail(from.status, "%s: 'values' must be a list of no more numbers than there are rows, %lld",
                            at.name, (long long)t->dim[0]);
        values += (int64_t)json_array_size(list);
    }
    return acf_donors_alloc(t->dim[0], e, values, out);
}

/* Values of column j, stored behind those of the columns before it. */
static acf_status read_values(acf_json_source from, const json_t *list, int32_t classes, acf_donors *m, int64_t j) {
    const int64_t n = (int64_t)json_array_size(list);
    double *value = m->value + m->first[j];
    m->first[j + 1] = m->first[j] + n;
    for (int64_t k = 0; k < n; k++) {
        ACF_TRY(acf_json_to_real(from, "values", json_array_get(list, (size_t)k), &value[k]));
        if (k > 0 && !(value[k] > value[k - 1]))
            return acf_fail(from.status, "%s: the numbers of 'values' must ascend", from.name);
        if (classes > 0 && !(value[k] >= 0 && value[k] < classes && value[k] == floor(value[k])))
            return acf_fail(from.status, "%s: 'values' has %g, expected codes of its classes, from 0 to %d", from.name,
                            value[k], classes - 1);
    }
    return ACF_OK;
}

static acf_status read_positive(acf_json_source from, const json_t *o, const char *key, double *out) {
    ACF_TRY(acf_json_real(from, o, key, out));
    if (!(*out >= DBL_MIN && *out <= DBL_MAX))
        return acf_fail(from.status, "%s: '%s' is %g, expected a number above 0", from.name, key, *out);
    return ACF_OK;
}

/* D numbers of at least 0: the columns' costs for target column j. */
static acf_status read_costs(acf_json_source from, const json_t *o, const char *key, int64_t D, double *out) {
    json_t *list;
    ACF_TRY(acf_json_member(from, o, key, &list));
    if (!json_is_array(list) || (int64_t)json_array_size(list) != D)
        return acf_fail(from.status, "%s: '%s' must be a list of %lld numbers, one for each column", from.name, key,
                        (long long)D);
    for (int64_t k = 0; k < D; k++) {
        ACF_TRY(acf_json_to_real(from, key, json_array_get(list, (size_t)k), &out[k]));
        if (!(out[k] >= 0 && out[k] <= MOST_COST))
            return acf_fail(from.status, "%s: '%s' has %g, expected numbers from 0 to %g", from.name, key, out[k],
                            MOST_COST);
    }
    return ACF_OK;
}

/* All numbers are finite: JSON has no others. */
static acf_status read_column(acf_json_source from, const json_t *o, const acf_encoder *e, acf_donors *m, int64_t j) {
    m->number[j] = e->column[j].classes == 0;
    ACF_TRY(read_values(from, json_object_get(o, "values"), e->column[j].classes, m, j));
    ACF_TRY(acf_json_real(from, o, "differ", &m->differ[j]));
    if (!(m->differ[j] > 0 && m->differ[j] < 1))
        return acf_fail(from.status, "%s: 'differ' is %g, expected a number between 0 and 1", from.name, m->differ[j]);
    ACF_TRY(read_positive(from, o, "scale", &m->scale[j]));
    ACF_TRY(read_positive(from, o, "width", &m->width[j]));
    ACF_TRY(acf_json_real(from, o, "shift", &m->shift[j]));
    ACF_TRY(read_costs(from, o, "near", m->D, m->near + j * m->D));
    ACF_TRY(read_costs(from, o, "other", m->D, m->other + j * m->D));
    ACF_TRY(acf_json_real(from, o, "apart", &m->apart[j]));
    if (!(m->apart[j] >= 0 && m->apart[j] <= MOST_COST))
        return acf_fail(from.status, "%s: 'apart' is %g, expected a number from 0 to %g", from.name, m->apart[j],
                        MOST_COST);
    return ACF_OK;
}

static acf_status read_ids(acf_json_source from, const json_t *ids, acf_donors *m) {
    const char *text = json_string_value(ids);
    for (int64_t i = 0; i < m->N; i++) m->id[i] = (uint64_t)i;
    if (text && strcmp(text, IDS_ROWS) == 0) return ACF_OK;
    if (!json_is_array(ids) || (int64_t)json_array_size(ids) != m->N)
        return acf_fail(from.status,
                        "%s: 'ids' must be \"" IDS_ROWS "\" or a list of %lld whole numbers, one for each row",
                        from.name, (long long)m->N);
    for (int64_t i = 0; i < m->N; i++) {
        int64_t id;
        ACF_TRY(acf_json_to_int(from, "ids", json_array_get(ids, (size_t)i), &id));
        if (id < 0 || id >= ID_END)
            return acf_fail(from.status, "%s: 'ids' has %lld, expected numbers from 0 to 2^48 - 1", from.name,
                            (long long)id);
        m->id[i] = (uint64_t)id;
    }
    return ACF_OK;
}

static acf_status read_codes(const acf_safetensors *f, const char *path, acf_donors *m) {
    acf_status status = ACF_OK;
    acf_real *code = acf_alloc((size_t)(m->N * m->D) * sizeof *code, "the donors");
    if (!code) return ACF_EMEMORY;
    ACF_TRY_DONE(acf_safetensors_reals(f, ACF_DONORS_CODES, 2, (int64_t[]){m->N, m->D}, code));
    for (int64_t i = 0; i < m->N; i++)
        for (int64_t j = 0; j < m->D; j++) {
            const double c = (double)code[i * m->D + j];
            const int64_t n = m->first[j + 1] - m->first[j];
            if (!(c >= -1 && c < (double)n && c == floor(c))) {
                status = acf_fail(ACF_EMODEL,
                                  "%s: tensor '" ACF_DONORS_CODES
                                  "' is %g at row %lld, column %lld; expected a whole number from -1 to %lld",
                                  path, c, (long long)i, (long long)j, (long long)n - 1);
                goto done;
            }
            m->code[j * m->N + i] = (int32_t)c;
        }
done:
    acf_release(code);
    return status;
}

/* Shares of the present cells. Every value must occur: one that no row has would have infinite rarity. */
static acf_status count_shares(acf_json_source from, acf_donors *m, int64_t j) {
    const int32_t *code = m->code + j * m->N;
    double *share = m->share + m->first[j], present = 0;
    for (int64_t i = 0; i < m->N; i++)
        if (code[i] >= 0) share[code[i]] += 1, present += 1;
    for (int64_t k = 0; k < m->first[j + 1] - m->first[j]; k++) {
        if (share[k] == 0)
            return acf_fail(from.status, "%s: no row has %g, which is one of its 'values'", from.name,
                            m->value[m->first[j] + k]);
        share[k] /= present;
    }
    return ACF_OK;
}

static acf_status read_columns(acf_json_source from, const json_t *columns, const acf_encoder *e, acf_donors *m) {
    for (int64_t j = 0; j < m->D; j++) {
        acf_json_place at;
        acf_json_place_column(&at, from, j);
        ACF_TRY(read_column(at.from, json_array_get(columns, (size_t)j), e, m, j));
    }
    return ACF_OK;
}

static acf_status read_shares(acf_json_source from, acf_donors *m) {
    for (int64_t j = 0; j < m->D; j++) {
        acf_json_place at;
        acf_json_place_column(&at, from, j);
        ACF_TRY(count_shares(at.from, m, j));
    }
    return ACF_OK;
}

static acf_status read_expectations(const acf_safetensors *f, const char *path, acf_donors *m) {
    acf_status status = ACF_OK;
    acf_real *value = acf_alloc((size_t)(m->N * m->D) * sizeof *value, "the donors");
    if (!value) return ACF_EMEMORY;
    ACF_TRY_DONE(acf_safetensors_reals(f, ACF_DONORS_PREDICTED, 2, (int64_t[]){m->N, m->D}, value));
    for (int64_t i = 0; i < m->N; i++)
        for (int64_t j = 0; j < m->D; j++) {
            const double x = (double)value[i * m->D + j], most = acf_donors_predicts(m, j) ? ACF_PREDICTED_FARTHEST : 0;
            if (!(fabs(x) <= most)) {
                status = acf_fail(ACF_EMODEL,
                                  "%s: tensor '" ACF_DONORS_PREDICTED
                                  "' is %g at row %lld, column %lld; expected a number from %g to %g",
                                  path, x, (long long)i, (long long)j, 0 - most, most);
                goto done;
            }
            m->predicted[j * m->N + i] = value[i * m->D + j];
        }
done:
    acf_release(value);
    return status;
}

/* The predictor and the rows' predicted values. */
static acf_status read_gaussian(acf_json_source from, const acf_safetensors *f, const char *path, acf_donors *m) {
    bool sound = false;
    ACF_TRY(acf_donors_predict_alloc(m));
    for (int64_t j = 0; j < m->D; j++)
        if (m->apart[j] > 0 && !acf_donors_predicts(m, j))
            return acf_fail(from.status, "%s: 'apart' of column %lld is above 0, but that column is not predicted",
                            from.name, (long long)j);
    if (!m->predictor) return ACF_OK;
    const int64_t P = m->predictor->P;
    acf_real *value = acf_alloc((size_t)(P * (P + 1)) * sizeof *value, "the donors");
    acf_status status = value ? ACF_OK : ACF_EMEMORY;
    if (!status) status = acf_safetensors_reals(f, ACF_DONORS_PREDICTOR, 2, (int64_t[]){P + 1, P}, value);
    for (int64_t i = 0; !status && i < P * (P + 1); i++) m->predictor->mean[i] = (double)value[i];
    acf_release(value);
    ACF_TRY(status);
    ACF_TRY(acf_predictor_sound(m->predictor, &sound));
    if (!sound)
        return acf_fail(ACF_EMODEL,
                        "%s: tensor '" ACF_DONORS_PREDICTOR
                        "' must be means and, below, a symmetric positive definite matrix of %lld",
                        path, (long long)P);
    return read_expectations(f, path, m);
}

acf_status acf_donors_from_file(acf_json_source from, const json_t *object, const acf_safetensors *f, const char *path,
                                const acf_encoder *e, acf_donors **out) {
    json_t *columns, *ids;
    acf_donors *m = NULL;
    acf_status status = ACF_OK;
    ACF_TRY(acf_json_member(from, object, "columns", &columns));
    ACF_TRY(acf_json_member(from, object, "ids", &ids));
    ACF_TRY(make_room(from, columns, f, path, e, &m));
    ACF_TRY_DONE(acf_json_real(from, object, "nearness", &m->slope));
    ACF_TRY_DONE(acf_json_real(from, object, "agree", &m->agree));
    if (json_object_get(object, "given"))
        ACF_TRY_DONE(acf_json_real(from, object, "given", &m->given)); /* files of version 0.1 may have none */
    ACF_TRY_DONE(read_columns(from, columns, e, m));
    ACF_TRY_DONE(read_ids(from, ids, m));
    ACF_TRY_DONE(read_codes(f, path, m));
    ACF_TRY_DONE(read_shares(from, m));
    acf_donors_ready(m);
    ACF_TRY_DONE(read_gaussian(from, f, path, m));
    ACF_TRY_DONE(acf_linkage_make(m));
    *out = m;
done:
    if (status) acf_donors_free(m);
    return status;
}
