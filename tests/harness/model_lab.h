/* Setup for tests of flows, likelihoods and models: parameters with random values on a lab's device, and a random
 * context. */
#ifndef ACF_HARNESS_MODEL_LAB_H
#define ACF_HARNESS_MODEL_LAB_H

#include "flow/flow.h"
#include "harness/lab.h"

typedef struct acf_model_lab {
    acf_lab l;
    acf_params *ps;
    acf_param *columns; /* (D,E), or NULL */
    acf_real *context;  /* (N,C) */
} acf_model_lab;

/* Small networks for D columns; identity: the networks get the column embedding. */
acf_flow_sizes acf_model_lab_sizes(int64_t D, int64_t column_embedding);

/* Opens the lab. The caller declares its parameters in m->ps and then calls acf_model_lab_ready, which builds them and
 * moves each by a random amount up to `spread`, because initial values are close to the identity and would hide
 * mistakes. */
void acf_model_lab_open(acf_model_lab *m, int64_t N, acf_lab_mask mask, const acf_flow_sizes *s, uint64_t seed);
void acf_model_lab_ready(acf_model_lab *m, double spread);
void acf_model_lab_close(acf_model_lab *m);

/* Begins a step and makes the conditioning of its rows. */
acf_cond acf_model_lab_begin(acf_model_lab *m, bool record, const acf_flow_sizes *s);

/* The derivative of a loss along a random direction in parameter space, by finite differences and from the gradients:
 * both must agree to 1e-6 (double only). Each call of `loss` builds it again. */
void acf_model_lab_check_gradient(acf_model_lab *m, acf_tensor *(*loss)(acf_model_lab *m, void *ctx), void *ctx);

#endif
