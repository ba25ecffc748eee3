/* How a model was trained: see fit_record.h. */
#include "model/fit_record.h"

#include <math.h>
#include <string.h>

static const char *const end_name[ACF_END_COUNT] = {"steps", "epochs", "patience", "interrupted", "diverged"};
static const char *const end_text[ACF_END_COUNT] = {"all steps were taken", "all epochs were taken",
                                                    "no further improvement", "interrupted", "diverged"};
static const char *const refit_name[ACF_REFIT_COUNT] = {"none", "done", "diverged"};
static const char *const refit_text[ACF_REFIT_COUNT] = {"", "; then fitted to all cells for twice as many steps",
                                                        "; the refit to all cells diverged and was discarded"};

/* Writes the numbers up to the last column that has one. */
static json_t *donor_trust_to_json(const double *v) {
    int n = ACF_DONOR_TRUST_GIVEN;
    while (n > ACF_DONOR_TRUST_COLUMN && v[n - 1] == 0) n--;
    return acf_json_numbers(v, n);
}

acf_status acf_fit_record_to_json(const acf_fit_record *r, json_t **out) {
    json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f}", "end", end_name[r->end], "rows",
                          (json_int_t)r->rows, "held", (json_int_t)r->held, "steps", (json_int_t)r->steps, "epochs",
                          (json_int_t)r->epochs, "skipped", (json_int_t)r->skipped, "left_out", (json_int_t)r->left_out,
                          "refit", refit_name[r->refit], "seconds", r->seconds);
    bool ok = o;
    if (ok && isfinite(r->valid))
        ok = !json_object_set_new(o, "valid", json_real(r->valid)) &&
             !json_object_set_new(o, "valid_step", json_integer(r->valid_step)) &&
             !json_object_set_new(o, "widen", json_real(r->scale_factor)) &&
             !json_object_set_new(o, "soften", json_real(r->temperature));
    if (ok && r->donor_trust[ACF_DONOR_TRUST_CHANCE] > 0)
        ok = !json_object_set_new(o, "donor_trust", donor_trust_to_json(r->donor_trust)) &&
             !json_object_set_new(o, "donor_trust_given", json_real(r->donor_trust[ACF_DONOR_TRUST_GIVEN]));
    if (ok && r->ridge > 0) ok = !json_object_set_new(o, "ridge", json_real(r->ridge));
    if (ok && r->filled) ok = !json_object_set_new(o, "filled", json_true());
    if (ok && r->before) ok = !json_object_set_new(o, "before", json_integer(r->before));
    if (!ok) {
        json_decref(o);
        return acf_fail(ACF_EMEMORY, "out of memory: the training record of a model");
    }
    *out = o;
    return ACF_OK;
}

static acf_status count(acf_json_source from, const json_t *o, const char *key, int64_t *out) {
    ACF_TRY(acf_json_int(from, o, key, out));
    if (*out >= 0) return ACF_OK;
    return acf_fail(from.status, "%s: '%s' is %lld, expected 0 or more", from.name, key, (long long)*out);
}

/* Index of the text of a key in n names; `expected` lists them for the message. */
static acf_status choice(acf_json_source from, const json_t *o, const char *key, const char *const *names, int n,
                         const char *expected, int *out) {
    const char *name;
    char shown[ACF_EXCERPT_MAX];
    ACF_TRY(acf_json_text(from, o, key, &name));
    for (*out = 0; *out < n; ++*out)
        if (strcmp(name, names[*out]) == 0) return ACF_OK;
    return acf_fail(from.status, "%s: '%s' is '%s', expected %s", from.name, key, acf_text_excerpt(shown, name),
                    expected);
}

static acf_status read_donor_trust(acf_json_source from, const json_t *list, double *out) {
    const size_t n = json_array_size(list);
    if (n < ACF_DONOR_TRUST_COLUMN || n > ACF_DONOR_TRUST_GIVEN)
        return acf_fail(from.status, "%s: 'donor_trust' must be a list of %d to %d numbers", from.name,
                        ACF_DONOR_TRUST_COLUMN, ACF_DONOR_TRUST_GIVEN);
    for (size_t k = 0; k < n; k++) ACF_TRY(acf_json_to_real(from, "donor_trust", json_array_get(list, k), &out[k]));
    return ACF_OK;
}

acf_status acf_fit_record_from_json(acf_json_source from, const json_t *o, acf_fit_record *out) {
    acf_fit_record r = {.known = true, .valid = INFINITY};
    if (!json_is_object(o)) return acf_fail(from.status, "%s: it is not an object", from.name);
    int end, refit = ACF_REFIT_NONE;
    ACF_TRY(choice(from, o, "end", end_name, ACF_END_COUNT, "steps, epochs, patience, interrupted or diverged", &end));
    if (json_object_get(o, "refit"))
        ACF_TRY(choice(from, o, "refit", refit_name, ACF_REFIT_COUNT, "none, done or diverged", &refit));
    r.end = (acf_train_end)end, r.refit = (acf_refit)refit;
    ACF_TRY(count(from, o, "rows", &r.rows));
    ACF_TRY(count(from, o, "held", &r.held));
    ACF_TRY(count(from, o, "steps", &r.steps));
    ACF_TRY(count(from, o, "epochs", &r.epochs));
    ACF_TRY(count(from, o, "skipped", &r.skipped));
    if (json_object_get(o, "left_out")) ACF_TRY(count(from, o, "left_out", &r.left_out));
    ACF_TRY(acf_json_real(from, o, "seconds", &r.seconds));
    if (json_object_get(o, "valid")) {
        ACF_TRY(acf_json_real(from, o, "valid", &r.valid));
        ACF_TRY(count(from, o, "valid_step", &r.valid_step));
        if (json_object_get(o, "widen")) ACF_TRY(acf_json_real(from, o, "widen", &r.scale_factor));
        if (json_object_get(o, "soften")) ACF_TRY(acf_json_real(from, o, "soften", &r.temperature));
    }
    if (json_object_get(o, "donor_trust"))
        ACF_TRY(read_donor_trust(from, json_object_get(o, "donor_trust"), r.donor_trust));
    if (json_object_get(o, "donor_trust_given"))
        ACF_TRY(acf_json_real(from, o, "donor_trust_given", &r.donor_trust[ACF_DONOR_TRUST_GIVEN]));
    if (json_object_get(o, "ridge")) ACF_TRY(acf_json_real(from, o, "ridge", &r.ridge));
    if (r.ridge < 0) return acf_fail(from.status, "%s: 'ridge' is %g, expected 0 or more", from.name, r.ridge);
    if (json_object_get(o, "filled")) ACF_TRY(acf_json_bool(from, o, "filled", &r.filled));
    if (json_object_get(o, "before")) ACF_TRY(count(from, o, "before", &r.before));
    *out = r;
    return ACF_OK;
}

void acf_fit_record_text(const acf_fit_record *r, bool images, acf_text *t) {
    char time[ACF_NUMBER_MAX], nats[ACF_NUMBER_MAX];
    if (!r->known) {
        acf_text_add(t, "not recorded");
        return;
    }
    acf_text_addf(t, "%lld steps, %lld epochs of %lld %s in %s: %s", (long long)r->steps, (long long)r->epochs,
                  (long long)r->rows, images ? "images" : "rows", acf_text_duration(time, r->seconds),
                  end_text[r->end]);
    if (r->before) acf_text_addf(t, "; started from a model after %lld steps", (long long)r->before);
    if (isfinite(r->valid)) /* rounded here because printf follows the locale */
        acf_text_addf(t, "; best at step %lld with %s nats per held-out %s (%lld %ss)", (long long)r->valid_step,
                      acf_text_real(nats, round(r->valid * 1e4) / 1e4), images ? "image" : "cell", (long long)r->held,
                      images ? "image" : "cell");
    acf_text_add(t, refit_text[r->refit]);
    if (r->filled && r->refit == ACF_REFIT_DONE)
        acf_text_add(t, ", with missing cells filled in, because missingness depends on observed values");
    if (r->skipped) acf_text_addf(t, "; %lld non-finite steps skipped", (long long)r->skipped);
    if (r->left_out)
        acf_text_addf(t, "; %lld times a row exceeded the planned GPU capacity and was skipped in its step",
                      (long long)r->left_out);
}
