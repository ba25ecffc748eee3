/* The optimiser: see adam.h; formulas in docs/math.md, 9.
 *
 * Workload: one slab of 1e5 to 1e8 elements a step, far more than fits in cache, and few FLOP per element: memory
 * bandwidth is the limit. Each function is therefore one pass that reads and writes every number once:
 *
 *     norm      reads g                         4 bytes an element in float
 *     adam      reads g m v w, writes m v w    28
 *     average   reads w a, writes a            12
 *
 * A step with clipping and averaging moves 44 bytes an element: at 20 GB/s, 2.2 ms for a million parameters. */
#include "ops/adam.h"

#include "device/plugin.h"

#include <math.h>

/* ---- norm ------------------------------------------------------------------------------------------------------- */

#define PARTS 256 /* partial sums at most: their number and size depend only on n */
#define LANES 32  /* independent sums within a part, so that additions do not wait for each other */

static double sum_squares(const acf_real *x, int64_t n) {
    double lane[LANES] = {0}, sum = 0;
    int64_t whole = n / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        ACF_SIMD
        for (int64_t k = 0; k < LANES; k++) lane[k] += (double)x[i + k] * (double)x[i + k];
    }
    for (int64_t i = whole; i < n; i++) lane[i - whole] += (double)x[i] * (double)x[i];
    for (int64_t k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

double acf_sum_squares_cpu(const acf_device *dev, const acf_real *x, int64_t n) {
    double part[PARTS] = {0}, sum = 0;
    int64_t size = acf_max(ACF_CHUNK, acf_ceil_div(n, PARTS)), parts = acf_ceil_div(n, size);
    ACF_PARALLEL(dev, n)
    for (int64_t k = 0; k < parts; k++) part[k] = sum_squares(x + k * size, acf_min(size, n - k * size));
    for (int64_t k = 0; k < parts; k++) sum += part[k];
    return sum;
}

/* The element to report for a norm that is not finite: the first non-finite one, else (squares overflowed) the
 * largest. */
static int64_t worst_element(const acf_real *x, int64_t n) {
    int64_t worst = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) return i;
        if (fabs((double)x[i]) > fabs((double)x[worst])) worst = i;
    }
    return worst;
}

/* Fails with the parameter of that element; grad is in host memory. */
static acf_status blame(const acf_params *ps, const acf_real *grad) {
    int64_t at = worst_element(grad, ps->total), row = 0, column = 0;
    const acf_param *p = acf_params_at(ps, at, &row, &column);
    return acf_fail(ACF_ENUMERIC, "the gradient of '%s' is %g at row %lld, column %lld; lower the step size",
                    p ? p->name : "a gap", (double)grad[at], (long long)row, (long long)column);
}

/* The norm that the device computed. If it is not finite, all gradients are copied to the host to find the cause. */
static acf_status fetch_norm(const acf_params *ps, double *norm) {
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    double found;
    ACF_TRY(ps->dev->plugin->norm(ps, NULL, 0, 0));
    ACF_TRY(acf_device_copy(ps->dev, &found, &ps->pace->norm, sizeof found, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(ps->dev));
    if (isfinite(found)) {
        *norm = found;
        return ACF_OK;
    }
    acf_real *grad = acf_alloc(bytes, "a copy of the gradients");
    if (!grad) return ACF_EMEMORY;
    acf_status status = acf_device_copy(ps->dev, grad, ps->grad, bytes, ACF_TO_HOST);
    if (!status) status = acf_device_sync(ps->dev);
    if (!status) status = blame(ps, grad);
    acf_release(grad);
    return status;
}

acf_status acf_grad_norm(const acf_params *ps, double *norm) {
    ACF_TRY(acf_params_trainable(ps, "norm"));
    if (ps->pace) return fetch_norm(ps, norm);
    double sum = acf_sum_squares_cpu(ps->dev, ps->grad, ps->total);
    if (!isfinite(sum)) return blame(ps, ps->grad);
    *norm = sqrt(sum);
    return ACF_OK;
}

double acf_clip_factor(double norm, double max_norm) { return max_norm > 0 && norm > max_norm ? max_norm / norm : 1.0; }

/* ---- Adam ------------------------------------------------------------------------------------------------------- */

static acf_adam_constants constants_of(const acf_adam *cfg, int64_t step, double scale) {
    /* 1 - β^t without cancellation. log 0 = -inf gives 1, which is correct. */
    double bias1 = -expm1((double)step * log(cfg->beta1)), bias2 = -expm1((double)step * log(cfg->beta2));
    return (acf_adam_constants){(acf_real)scale,
                                (acf_real)cfg->beta1,
                                (acf_real)cfg->beta2,
                                (acf_real)(1 - cfg->beta1),
                                (acf_real)(1 - cfg->beta2),
                                (acf_real)(cfg->lr * sqrt(bias2) / bias1),
                                (acf_real)(cfg->eps * sqrt(bias2)),
                                (acf_real)(1 - cfg->lr * cfg->decay)};
}

/* n elements; w is first multiplied by `keep`, 1 - lr·decay. */
static void adam_range(acf_real *w, acf_real *m, acf_real *v, const acf_real *grad, int64_t n, acf_real keep,
                       acf_adam_constants c) {
    ACF_SIMD
    for (int64_t i = 0; i < n; i++) {
        acf_real g = c.scale * grad[i];
        m[i] = c.beta1 * m[i] + c.left1 * g;
        acf_real square = c.beta2 * v[i] + c.left2 * g * g;
        v[i] = square > ACF_REAL_MAX ? ACF_REAL_MAX : square; /* an infinity would stay, and stop this weight forever */
        w[i] = keep * w[i] - c.rate * m[i] / ((acf_real)sqrt(v[i]) + c.floor);
    }
}

void acf_adam_cpu(const acf_device *dev, acf_real *value, acf_real *m, acf_real *v, const acf_real *grad, int64_t n,
                  int64_t decayed, const acf_adam *cfg, int64_t step, double scale) {
    const acf_adam_constants c = constants_of(cfg, step, scale);
    ACF_PARALLEL(dev, 8 * n)
    for (int64_t i = 0; i < n; i += ACF_CHUNK) {
        int64_t end = acf_min(i + ACF_CHUNK, n), edge = acf_min(acf_max(i, decayed), end);
        adam_range(value + i, m + i, v + i, grad + i, edge - i, c.keep, c);
        adam_range(value + edge, m + edge, v + edge, grad + edge, end - edge, 1, c);
    }
}

static bool in(double x, double lo, double hi) { return x >= lo && x < hi; } /* false for NaN */

static acf_status check_settings(const acf_params *ps, const acf_adam *cfg) {
    const double most = (double)FLT_MAX;
    ACF_TRY(acf_params_trainable(ps, "adam"));
    if (!in(cfg->lr, 0, most) || !in(cfg->decay, 0, most))
        return acf_fail(ACF_EUSAGE, "adam: lr is %g and decay %g; expected numbers from 0", cfg->lr, cfg->decay);
    if (!in(cfg->beta1, 0, 1) || !in(cfg->beta2, 0, 1))
        return acf_fail(ACF_EUSAGE, "adam: beta1 is %g and beta2 %g; expected 0 <= beta < 1", cfg->beta1, cfg->beta2);
    /* Below that, 0/0 occurs where a gradient was always zero; bias correction shrinks eps, at most by sqrt(1-β2). */
    if (!in(cfg->eps * sqrt(1 - cfg->beta2), (double)FLT_MIN, most))
        return acf_fail(ACF_EUSAGE, "adam: eps is %g; expected at least 1e-30", cfg->eps);
    return ACF_OK;
}

acf_status acf_adam_step(acf_params *ps, const acf_adam *cfg, int64_t step, double scale) {
    ACF_TRY(check_settings(ps, cfg));
    if (step < 1) return acf_fail(ACF_EUSAGE, "adam: step is %lld; steps count from 1", (long long)step);
    if (!isfinite(scale))
        return acf_fail(ACF_EUSAGE, "adam: gradients are scaled by %g; expected a finite number", scale);
    if (ps->pace) {
        const acf_pace now = {.lr = cfg->lr, .step = step, .finite = 1, .constants = constants_of(cfg, step, scale)};
        ACF_TRY(acf_device_copy(ps->dev, ps->pace, &now, sizeof now, ACF_TO_DEVICE));
        return ps->dev->plugin->adam(ps);
    }
    acf_adam_cpu(ps->dev, ps->value, ps->m, ps->v, ps->grad, ps->total, ps->decayed, cfg, step, scale);
    return ACF_OK;
}

/* ---- exponential moving average ---------------------------------------------------------------------------------- */

void acf_ema_cpu(const acf_device *dev, acf_real *ema, const acf_real *value, int64_t n, double beta) {
    const acf_real left = (acf_real)(1 - beta);
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        int64_t end = acf_min(c + ACF_CHUNK, n);
        ACF_SIMD /* in this form an average that has converged stays exactly there */
        for (int64_t i = c; i < end; i++) ema[i] += left * (value[i] - ema[i]);
    }
}

acf_status acf_ema_step(acf_params *ps, double beta) {
    ACF_TRY(acf_params_trainable(ps, "ema"));
    if (!(beta >= 0 && beta <= 1)) return acf_fail(ACF_EUSAGE, "ema: beta is %g; expected 0 to 1", beta);
    if (ps->pace) return ps->dev->plugin->ema(ps, beta);
    acf_ema_cpu(ps->dev, ps->ema, ps->value, ps->total, beta);
    return ACF_OK;
}

/* ---- on a GPU, without the host -------------------------------------------------------------------------------- */

acf_status acf_optimise(acf_params *ps, const acf_adam *cfg, double max_norm, double ema) {
    ACF_TRY(check_settings(ps, cfg));
    if (!ps->pace) return acf_fail(ACF_EUSAGE, "optimise: the parameters are on the CPU; expected a GPU");
    if (!(ema >= 0 && ema < 1)) return acf_fail(ACF_EUSAGE, "ema: beta is %g; expected 0 to 1", ema);
    ACF_TRY(ps->dev->plugin->norm(ps, cfg, max_norm, ema));
    return ps->dev->plugin->adam(ps);
}
