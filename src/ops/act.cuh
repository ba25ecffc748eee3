/* Activations on the GPU, for every kernel that applies one to its result: see act.h. */
#ifndef ACF_OPS_ACT_CUH
#define ACF_OPS_ACT_CUH

#include "ops/ops.cuh"

extern "C" {
#include "ops/act.h"
}

/* act(x); a NaN stays one. */
static __device__ inline float acf_act_value(acf_act_kind kind, float x) {
    switch (kind) {
    case ACF_RELU: return x < 0 ? 0 : x;
    case ACF_LEAKY_RELU: return x < 0 ? ACF_LEAKY_SLOPE * x : x;
    case ACF_TANH: return tanhf(x);
    case ACF_SIGMOID: return 1 / (1 + expf(-x));
    case ACF_SOFTPLUS: return isnan(x) ? x : fmaxf(x, 0) + log1pf(expf(-fabsf(x)));
    case ACF_ELU: return x < 0 ? expm1f(x) : x;
    default: return x;
    }
}

/* act'(x) from y = act(x). */
static __device__ inline float acf_act_slope(acf_act_kind kind, float y) {
    switch (kind) {
    case ACF_RELU: return y > 0 ? 1 : 0;
    case ACF_LEAKY_RELU: return y < 0 ? ACF_LEAKY_SLOPE : 1;
    case ACF_TANH: return 1 - y * y;
    case ACF_SIGMOID: return y * (1 - y);
    case ACF_SOFTPLUS: return -expm1f(-y);
    case ACF_ELU: return y < 0 ? y + 1 : 1;
    default: return 1;
    }
}

/* x (n) = act(x), in place. */
acf_status acf_cuda_act(acf_device *dev, acf_act_kind kind, acf_real *y, const acf_real *x, int64_t n);
/* dx (n) = dy act'(x), from y = act(x); with `add`, added to what is there. */
acf_status acf_cuda_act_back(acf_device *dev, acf_act_kind kind, acf_real *dx, const acf_real *dy, const acf_real *y,
                             int64_t n, bool add);

#endif
