/* A Gaussian dequantisation as JSON: see image_map.h. */
#include "image/image_map.h"

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static json_t *numbers(const double *x, const int *i, int n) {
    json_t *list = json_array();
    bool ok = list != NULL;
    for (int k = 0; ok && k < n; k++) ok = json_array_append_new(list, x ? json_real(x[k]) : json_integer(i[k])) == 0;
    if (!ok) json_decref(list);
    return ok ? list : NULL;
}

acf_status acf_image_dequantiser_to_json(const acf_image_dequantiser *b, int bits, json_t **out) {
    *out = json_pack("{s:f, s:f, s:o, s:o, s:o}", "reach", b->reach, "centre", b->centre, "levels",
                     numbers(NULL, b->levels, b->n), "spread", numbers(b->spread, NULL, b->n), "weight",
                     numbers(b->weight, NULL, 1 << bits));
    return *out ? ACF_OK : acf_fail(ACF_EMEMORY, "out of memory: a map of levels");
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

typedef struct range {
    double least, most;
} range;

static acf_status within(acf_json_source from, const char *key, double x, range r) {
    if (x >= r.least && x <= r.most) return ACF_OK;
    return acf_fail(from.status, "%s: '%s' has %g, expected %g to %g", from.name, key, x, r.least, r.most);
}

static acf_status number(acf_json_source from, const json_t *o, const char *key, range r, double *out) {
    ACF_TRY(acf_json_real(from, o, key, out));
    return within(from, key, *out, r);
}

/* A list of `least` to `most` members. */
static acf_status list_of(acf_json_source from, const json_t *o, const char *key, int least, int most, json_t **out) {
    ACF_TRY(acf_json_member(from, o, key, out));
    const size_t n = json_array_size(*out); /* 0 if it is not a list */
    if (n >= (size_t)least && n <= (size_t)most) return ACF_OK;
    return acf_fail(from.status, "%s: '%s' is not a list of %d to %d numbers", from.name, key, least, most);
}

static acf_status reals(acf_json_source from, const json_t *o, const char *key, int n, range r, double *out) {
    json_t *list;
    ACF_TRY(list_of(from, o, key, n, n, &list));
    for (int k = 0; k < n; k++) {
        ACF_TRY(acf_json_to_real(from, key, json_array_get(list, (size_t)k), &out[k]));
        ACF_TRY(within(from, key, out[k], r));
    }
    return ACF_OK;
}

/* How many levels each Gaussian has. */
static acf_status read_levels(acf_json_source from, const json_t *o, int all, acf_image_dequantiser *b) {
    json_t *list;
    int sum = 0;
    ACF_TRY(list_of(from, o, "levels", 1, all, &list));
    b->n = (int)json_array_size(list);
    for (int j = 0; j < b->n; j++) {
        int64_t n;
        ACF_TRY(acf_json_to_int(from, "levels", json_array_get(list, (size_t)j), &n));
        if (n < 1 || n > all - sum)
            return acf_fail(from.status, "%s: 'levels' has %lld; expected at least 1, and %d in all", from.name,
                            (long long)n, all);
        b->levels[j] = (int)n, sum += (int)n;
    }
    return sum == all ? ACF_OK : acf_fail(from.status, "%s: 'levels' are %d in all, expected %d", from.name, sum, all);
}

acf_status acf_image_dequantiser_from_json(acf_json_source from, const json_t *object, int bits,
                                           acf_image_dequantiser *out) {
    acf_image_dequantiser b = {0};
    if (!json_is_object(object)) return acf_fail(from.status, "%s: it is not an object", from.name);
    ACF_TRY(number(from, object, "reach", (range){1, 10}, &b.reach));
    ACF_TRY(number(from, object, "centre", (range){-1e6, 1e6}, &b.centre));
    ACF_TRY(read_levels(from, object, 1 << bits, &b));
    ACF_TRY(reals(from, object, "spread", b.n, (range){1e-6, 1e6}, b.spread));
    ACF_TRY(reals(from, object, "weight", 1 << bits, (range){1e-300, 1e300}, b.weight));
    *out = b;
    return ACF_OK;
}
