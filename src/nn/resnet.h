/* A residual network on images for couplings and embeddings: weight-normed convolutions of one width, no batch norm.
 *
 *     h = 3x3(x)              sum = 1x1(h)
 *     h = h + 1x1(relu(3x3(relu(1x1(relu(h))))))      sum = sum + 1x1(h)       for each block
 *     y = 1x1(relu(sum)) */
#ifndef ACF_NN_RESNET_H
#define ACF_NN_RESNET_H

#include "nn/conv_layer.h"

#define ACF_RESNET_BLOCKS 16

typedef struct acf_resnet_shape {
    int64_t in, width, out;
    int blocks;       /* 0 to ACF_RESNET_BLOCKS */
    double out_scale; /* of the last layer's initial weights; 0: the network starts as the constant 0 */
} acf_resnet_shape;

typedef struct acf_resnet {
    int blocks;
    acf_conv_layer first, skip, last;
    struct {
        acf_conv_layer narrow, wide, back, skip; /* 1x1, 3x3, 1x1; and 1x1 to the sum */
    } block[ACF_RESNET_BLOCKS];
} acf_resnet;

/* Declares "name.first.v" and so on. Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_resnet_declare(acf_resnet *r, acf_params *ps, const char *name, const acf_resnet_shape *shape);

/* x (N,H,W,in) -> (N,H,W,out). */
acf_tensor *acf_resnet_run(acf_tape *t, const acf_resnet *r, acf_tensor *x);

#endif
