/* A fully connected network: hidden layers of one width, one activation, a linear output. */
#ifndef ACF_NN_MLP_H
#define ACF_NN_MLP_H

#include "nn/pass.h"
#include "ops/linear.h"

#define ACF_MLP_LAYERS 8

typedef struct acf_mlp {
    int layers; /* including the output */
    acf_param *w[ACF_MLP_LAYERS], *b[ACF_MLP_LAYERS];
    acf_act_kind act;
    uint32_t site; /* of its dropout */
} acf_mlp;

/* Shape of a network. out_scale multiplies the usual initial range of the output weights; 0 makes the network start as
 * the constant 0, so that a flow starts as the identity. */
typedef struct acf_mlp_shape {
    int64_t in, width, out;
    int hidden; /* layers, 0 to ACF_MLP_LAYERS-1 */
    acf_act_kind act;
    double out_scale;
} acf_mlp_shape;

/* Declares "name.w0", "name.b0", ... Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_mlp_declare(acf_mlp *m, acf_params *ps, const char *name, const acf_mlp_shape *shape, uint32_t site);

/* x (M,in) -> (M,out); dropout behind each hidden layer while training. */
acf_tensor *acf_mlp_run(acf_tape *t, const acf_mlp *m, acf_tensor *x, const acf_pass *pass);

/* A parameter called "prefix.name", initialised as acf_param_add says; NULL on failure. For all of nn, flow and
 * like. */
acf_param *acf_declare(acf_params *ps, const char *prefix, const char *name, acf_init init, double scale, int ndim,
                       const int64_t *dim);

#endif
