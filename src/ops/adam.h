/* The optimiser: Adam with decoupled weight decay, the global gradient norm for clipping, and the exponential moving
 * average of the weights.
 *
 * The functions are not operations of the tape: they run between two steps, once over the slabs of params.h.
 *
 *     double norm;
 *     ACF_TRY(acf_grad_norm(ps, &norm));
 *     ACF_TRY(acf_adam_step(ps, &(acf_adam){.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .decay = 0.01},
 *                           step, acf_clip_factor(norm, 1.0)));
 *     ACF_TRY(acf_ema_step(ps, 0.999));
 *
 * On a set that was built for inference each of them fails with ACF_EUSAGE. The bits are the same for any thread
 * count. The gaps of the slabs stay zero: there g = m = v = w = 0, and so is every update.
 *
 * On a GPU the functions also work, and acf_grad_norm waits for it. A step that is captured in a CUDA graph cannot
 * use the host: acf_optimise does all of it on the device, with the step size and the step number from ps->pace
 * (tensor/params.h). */
#ifndef ACF_OPS_ADAM_H
#define ACF_OPS_ADAM_H

#include "device/cpu.h"
#include "tensor/params.h"

typedef struct acf_adam {
    double lr;           /* step size, >= 0 */
    double beta1, beta2; /* decay rates of the two moments, in [0,1) */
    double eps;          /* > 0, also as acf_real */
    double decay;        /* weights shrink by lr·decay a step, >= 0; the first ps->decayed elements only */
} acf_adam;

/* The Euclidean norm of all gradients, summed in double. Fails: ACF_ENUMERIC (not finite; the message names the
 * parameter, row and column). */
acf_status acf_grad_norm(const acf_params *ps, double *norm);

/* The factor on gradients that limits their norm to max_norm; 1 if the norm is smaller, or max_norm <= 0. */
double acf_clip_factor(double norm, double max_norm);

/* One step, counted from 1, on gradients times `scale`. Fails: ACF_EUSAGE (a setting out of its range). */
acf_status acf_adam_step(acf_params *ps, const acf_adam *cfg, int64_t step, double scale);

/* average = beta·average + (1-beta)·value, beta in [0,1]. Fails: ACF_EUSAGE. */
acf_status acf_ema_step(acf_params *ps, double beta);

/* ---- on a GPU, without the host -------------------------------------------------------------------------------- */

/* The beta of the moving average at an update, counted from 1: min(beta, (update-1) / (update+9)). The first update
 * copies the weights, so initial ones never enter. The window is about a tenth of the run so far, until that exceeds
 * 1/(1-beta) updates. (Adam's bias correction, a division, would weigh all early weights alike; the earliest are the
 * worst.) */
ACF_BOTH double acf_ema_beta(double beta, int64_t update) {
    const double early = (double)(update - 1) / (double)(update + 9);
    return beta < early ? beta : early;
}

/* Gradient norm, clipping to max_norm (<= 0: none), Adam and, with ema > 0, the moving average by acf_ema_beta. The
 * work is enqueued; nothing waits. The step size and number come from ps->pace; cfg->lr is not read. A step changes
 * nothing if its norm or loss is not finite, or if a kernel met a matrix it could not use. Fails: ACF_EUSAGE (not a
 * GPU, a setting out of its range), ACF_EDEVICE. */
acf_status acf_optimise(acf_params *ps, const acf_adam *cfg, double max_norm, double ema);

/* The kernels, on slabs of n elements. Bytes an element in float: 4, 28 and 12. */
double acf_sum_squares_cpu(const acf_device *dev, const acf_real *x, int64_t n);
void acf_adam_cpu(const acf_device *dev, acf_real *value, acf_real *m, acf_real *v, const acf_real *grad, int64_t n,
                  int64_t decayed, const acf_adam *cfg, int64_t step, double scale);
void acf_ema_cpu(const acf_device *dev, acf_real *ema, const acf_real *value, int64_t n, double beta);

#endif
