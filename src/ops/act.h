/* Activations, alone or fused behind a linear layer. Each derivative is a function of the output (docs/math.md, 1), so
 * only the output is kept. */
#ifndef ACF_OPS_ACT_H
#define ACF_OPS_ACT_H

#include "device/cpu.h"
#include "ops/ops.h"

typedef enum acf_act_kind {
    ACF_IDENTITY,
    ACF_RELU,
    ACF_LEAKY_RELU, /* slope 0.01 below zero */
    ACF_TANH,
    ACF_SIGMOID,
    ACF_SOFTPLUS,
    ACF_ELU,
    ACF_ACT_COUNT
} acf_act_kind;

#define ACF_LEAKY_SLOPE ACF_R(0.01)

/* y = act(x), any shape. */
acf_tensor *acf_act(acf_tape *t, acf_act_kind kind, acf_tensor *x);

const char *acf_act_name(acf_act_kind kind);

/* y[i] = act(x[i]) on the calling thread; y may be x. */
void acf_act_fwd_cpu(acf_act_kind kind, acf_real *y, const acf_real *x, int64_t n);
/* dx[i] = dy[i] * act'(x[i]), from y = act(x); dx may be dy. */
void acf_act_bwd_cpu(acf_act_kind kind, acf_real *dx, const acf_real *dy, const acf_real *y, int64_t n);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_act_attrs {
    acf_act_kind kind;
} acf_act_attrs;

#endif
