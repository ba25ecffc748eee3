/* Public evaluation: see acflow.h; the work is in infer/evaluate.h. */
#include "api/argument_checks.h"
#include "infer/evaluate.h"
#include "table/table_file.h"

/* What a fit inside an evaluation needs. */
typedef struct fitting {
    const acf_options *o;
    acf_fit_callback callback;
    void *ctx;
} fitting;

static acf_status fit(void *ctx, const acf_table *shown, acf_model **out) {
    const fitting *f = ctx;
    return acf_model_fit(shown, f->o, f->callback, f->ctx, out);
}

acf_status acf_eval_run(const acf_table *truth, const acf_table *shown, const acf_model *m, const acf_options *o,
                        acf_fit_callback callback, void *ctx, acf_evaluation **out) {
    ACF_NEED(truth);
    ACF_NEED(o);
    if (m) ACF_NEED_TABLE(m);
    ACF_NEED(out);
    if (acf_options_int(o, "eval-draws") < 2)
        return acf_fail(ACF_EUSAGE, "eval-draws is %lld; of a table expected 2 or more",
                        (long long)acf_options_int(o, "eval-draws"));
    ACF_TRY(acf_table_file_learnable(truth));
    fitting f = {o, callback, ctx};
    return acf_evaluate(
        &(acf_eval_job){
            .truth = truth, .shown = shown, .model = m, .fit = fit, .ctx = &f, .set = acf_eval_settings_read(o)},
        out);
}

void acf_eval_free(acf_evaluation *e) { acf_evaluation_free(e); }

int acf_eval_methods(const acf_evaluation *e) { return e ? e->methods : 0; }

const char *acf_eval_method(const acf_evaluation *e, int method) { return e ? acf_evaluation_method(method) : NULL; }

acf_status acf_eval_scores(const acf_evaluation *e, int method, int64_t column, acf_scores *out) {
    ACF_NEED(e);
    ACF_NEED(out);
    if (method < 0 || method >= e->methods)
        return acf_fail(ACF_EUSAGE, "acf_eval_scores: method %d; expected 0 to %d", method, e->methods - 1);
    if (column < -1 || column >= e->columns)
        return acf_fail(ACF_EUSAGE, "acf_eval_scores: column %lld; expected 0 to %lld, or -1 for all",
                        (long long)column, (long long)e->columns - 1);
    *out = *acf_evaluation_scores(e, method, column);
    return ACF_OK;
}

acf_status acf_eval_row_scores(const acf_evaluation *e, acf_row_scores *out) {
    ACF_NEED(e);
    ACF_NEED(out);
    *out = e->rows_alone;
    return ACF_OK;
}

acf_status acf_eval_report(const acf_evaluation *e, acf_format format, char *out, size_t cap, size_t *needed) {
    ACF_NEED(e);
    ACF_NEED_BUFFER(out, cap);
    if (format == ACF_TEXT) {
        acf_text t = acf_text_into(out, cap);
        acf_evaluation_text(e, &t);
        return acf_text_done(&t, needed);
    }
    json_t *j;
    ACF_TRY(acf_evaluation_json(e, &j));
    return acf_json_deliver(j, out, cap, needed);
}
