/* Recalibrates predictions: see calibrate.h.
 *
 * Workload: 11 validations for each of the two numbers; training does one each epoch. Neither number changes the
 * other's part of log p, so they are fitted one after the other. */
#include "train/calibrate.h"

#include <math.h>

#define GOLDEN 0.6180339887498949
#define ROUNDS 9 /* narrow the bracket of 1.5 to 0.02, a third of the uncertainty left by a hundred held-out cells */

static acf_status copy_slab(const acf_params *ps, acf_real *to, const acf_real *from) {
    return acf_device_copy(ps->dev, to, from, (size_t)ps->total * sizeof *to, ACF_ON_DEVICE);
}

/* The objective at this value of one of tr's two numbers; infinity if not finite. The weights before any change are in
 * the gradients' slab. */
static acf_status objective(acf_trainer *tr, double *number, double value, double *out) {
    const double expected = number == &tr->scale_factor && !acf_trainer_kept_mixture(tr) ? ACF_CALIBRATE_SCALE : 0,
                 away = (value - expected) / ACF_CALIBRATE_DEVIATION;
    double nll;
    *number = value;
    ACF_TRY(copy_slab(tr->ps, tr->ps->value, tr->ps->grad));
    ACF_TRY(acf_net_calibrate(tr->net, tr->scale_factor, tr->temperature));
    acf_status status = tr->task->score(tr, &nll);
    if (status == ACF_ENUMERIC) {
        acf_error_clear();
        status = ACF_OK, nll = INFINITY;
    }
    *out = nll * (double)tr->task->held(tr) + 0.5 * away * away;
    return status;
}

/* Golden section: of a < c < d < b one is new in each round. */
static acf_status minimise(acf_trainer *tr, double *number) {
    double a = ACF_CALIBRATE_LEAST, b = ACF_CALIBRATE_MOST, c = b - GOLDEN * (b - a), d = a + GOLDEN * (b - a), at_c,
           at_d;
    ACF_TRY(objective(tr, number, c, &at_c));
    ACF_TRY(objective(tr, number, d, &at_d));
    for (int k = 0; k < ROUNDS; k++) {
        if (at_c <= at_d) {
            b = d, d = c, at_d = at_c, c = b - GOLDEN * (b - a);
            ACF_TRY(objective(tr, number, c, &at_c));
        } else {
            a = c, c = d, at_c = at_d, d = a + GOLDEN * (b - a);
            ACF_TRY(objective(tr, number, d, &at_d));
        }
    }
    *number = !isfinite(fmin(at_c, at_d)) ? 0 : at_c <= at_d ? c : d;
    return ACF_OK;
}

/* Is calibration on, with held-out cells, and few rows for the columns (ACF_CALIBRATE_ROWS)? */
static bool is_wanted(const acf_trainer *tr) {
    return tr->net && tr->set.calibrate && tr->task->held(tr) > 0 &&
           tr->rows.n / ACF_CALIBRATE_ROWS < acf_net_columns(tr->net);
}

acf_status acf_calibrate(acf_trainer *tr) {
    acf_params *ps = tr->ps;
    acf_status status = ACF_OK;
    tr->scale_factor = tr->temperature = 0;
    if (!is_wanted(tr)) return ACF_OK;
    ACF_TRY(copy_slab(ps, ps->grad, ps->value));
    if (acf_net_widen_scale(tr->net)) status = minimise(tr, &tr->scale_factor);
    if (!status && acf_net_soften_classes(tr->net)) status = minimise(tr, &tr->temperature);
    acf_status back = copy_slab(ps, ps->value, ps->grad);
    return status ? status : back;
}
