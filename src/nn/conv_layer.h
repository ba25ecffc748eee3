/* A convolution with its parameters: weight-normed kernel and bias. */
#ifndef ACF_NN_CONV_LAYER_H
#define ACF_NN_CONV_LAYER_H

#include "ops/conv2d.h"

typedef struct acf_conv_layer {
    acf_param *v, *g, *b; /* (out,kh,kw,in), (out), (out) */
    acf_conv how;
} acf_conv_layer;

typedef struct acf_conv_size {
    int64_t kh, kw, in, out;
    double scale; /* initial length of each output's weights: 1 keeps the scale of numbers, 0 starts at the bias, 0 */
} acf_conv_size;

/* Declares "name.v", "name.g", "name.b". Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_conv_layer_declare(acf_conv_layer *l, acf_params *ps, const char *name, acf_conv_size size,
                                  acf_conv how);

/* x (N,H,W,in) -> (N,Ho,Wo,out). */
acf_tensor *acf_conv_layer_run(acf_tape *t, const acf_conv_layer *l, acf_tensor *x);
/* The same in two steps, for loops that use one kernel many times. */
acf_tensor *acf_conv_layer_kernel(acf_tape *t, const acf_conv_layer *l);

#endif
