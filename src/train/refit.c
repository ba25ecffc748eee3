/* The second pass: see refit.h. */
#include "train/refit.h"

#include "train/calibrate.h"
#include "train/donor_trust.h"
#include "train/fill_missing.h"
#include "train/gmm_fit.h"

#include <math.h>

bool acf_refit_planned(const acf_trainer *tr) {
    return tr->set.refit && tr->all_cells > 0 && tr->all_cells <= ACF_REFIT_CELLS;
}

bool acf_refit_due(const acf_trainer *tr, acf_train_end end) {
    const bool mixture_alone = tr->state.best_step == 0, one_of_several = tr->set.members > 1;
    if (mixture_alone && one_of_several && tr->rows.n >= ACF_REFIT_APART) return false;
    return tr->pass == 1 && end <= ACF_END_PATIENCE && acf_refit_planned(tr) && isfinite(tr->state.best);
}

acf_status acf_refit_encode(const acf_table *t, const acf_rows *rows, const acf_encoding *how, acf_encoder **out) {
    acf_encoder *e = NULL;
    acf_status status = acf_encoder_fit(t, rows, NULL, &e);
    if (!status) status = acf_encoder_shape(e, t, rows, NULL, how);
    if (status)
        acf_encoder_free(e);
    else
        *out = e;
    return status;
}

acf_status acf_refit_enter(acf_trainer *tr, const acf_fit_record *first) {
    acf_encoder *e = NULL;
    ACF_ASSERT(tr->pass == 1);
    if (tr->data.valid_rows) tr->rows = acf_rows_all(tr->given.table->N);
    acf_status status = acf_refit_encode(tr->given.table, &tr->rows, &tr->set.encoding, &e);
    if (!status) status = acf_trainer_restart(tr);
    if (status) {
        tr->rows = tr->given_rows;
        acf_encoder_free(e);
        return status;
    }
    acf_trainer_forget(tr);
    tr->pass = 2, tr->first = *first, tr->scale_factor = first->scale_factor, tr->temperature = first->temperature;
    tr->all = e, tr->data.encoder = e, tr->data.hold = NULL, tr->data.valid_rows = NULL;
    tr->fills = acf_fill_wanted(tr->given.table, &tr->rows, e);
    tr->stream = tr->stream || tr->fills; /* the host makes batches with imputed cells */
    tr->state = (acf_train_state){.best = INFINITY};
    tr->set.steps = tr->set.schedule.total =
        acf_max(1, acf_min(ACF_REFIT_STEPS * first->valid_step, UINT32_MAX)); /* 0 is no limit */
    tr->set.epochs = 0;
    return ACF_OK;
}

static acf_status take_best(acf_trainer *tr) {
    acf_params *ps = tr->ps;
    return acf_device_copy(ps->dev, ps->value, tr->best, (size_t)ps->total * sizeof *tr->best, ACF_ON_DEVICE);
}

acf_status acf_refit_begin(acf_trainer *tr, acf_train_end end) {
    ACF_TRY(take_best(tr));
    ACF_TRY(acf_calibrate(tr)); /* while there are held-out cells */
    ACF_TRY(acf_donor_trust_fit(tr));
    const acf_fit_record first = acf_trainer_record(tr, end);
    ACF_TRY(acf_refit_enter(tr, &first));
    ACF_TRY(acf_net_restart(tr->net, tr->set.seed));
    return acf_gmm_fit(tr->net, tr->data.table, &tr->rows, tr->data.encoder, NULL, tr->set.seed, &tr->gmm, NULL);
}

acf_status acf_refit_check(acf_trainer *tr) {
    const acf_train_state *s = &tr->state;
    double nll;
    ACF_ASSERT(tr->pass == 2);
    if (2 * s->skipped > s->step)
        return acf_fail(ACF_ENUMERIC, "%lld of %lld steps were not finite", (long long)s->skipped, (long long)s->step);
    tr->data.hold = tr->given.hold, tr->data.valid_rows = tr->given.valid_rows; /* for this check only */
    acf_status status = acf_trainer_validate(tr, &nll);
    tr->data.hold = NULL, tr->data.valid_rows = NULL;
    return status;
}

acf_status acf_refit_drop(acf_trainer *tr) {
    ACF_ASSERT(tr->pass == 2);
    ACF_TRY(take_best(tr));
    return acf_net_calibrate(tr->net, tr->scale_factor, tr->temperature);
}

acf_encoder *acf_refit_encoder(acf_trainer *tr) {
    acf_encoder *e = tr->all;
    tr->all = NULL, tr->data.encoder = NULL;
    return e;
}
