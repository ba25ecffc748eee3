/* The optimiser on the GPU: the functions that acf_plugin offers; see adam.h. */
#ifndef ACF_OPS_ADAM_CUH
#define ACF_OPS_ADAM_CUH

#include "device/cuda.cuh"

acf_status acf_cuda_norm(const acf_params *ps, const acf_adam *cfg, double max_norm, double ema);
acf_status acf_cuda_adam(acf_params *ps);
acf_status acf_cuda_average(acf_params *ps, double beta);

#endif
