/* A vector for each image, added to all its pixels. */
#ifndef ACF_OPS_ADD_VECTOR_H
#define ACF_OPS_ADD_VECTOR_H

#include "device/cpu.h"
#include "ops/ops.h"

/* y (N,H,W,C) = x (N,H,W,C) + v (N,C). */
acf_tensor *acf_add_vector(acf_tape *t, acf_tensor *x, acf_tensor *v);

/* y, x (N,P,C), v (N,C);  dv (N,C) += the sum of dy over P. */
void acf_add_vector_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *v, int64_t N,
                            int64_t P, int64_t C);
void acf_add_vector_bwd_cpu(const acf_device *dev, acf_real *dv, const acf_real *dy, int64_t N, int64_t P, int64_t C);

#endif
