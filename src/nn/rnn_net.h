/* A recurrent network over a row's modelled values, as parameters: GRU layers and a head (ops/rnn_loop.h runs it). */
#ifndef ACF_NN_RNN_NET_H
#define ACF_NN_RNN_NET_H

#include "nn/mlp.h"
#include "ops/rnn_loop.h"

typedef struct acf_rnn_shape {
    int64_t known;   /* inputs of each step besides the value before, E */
    int64_t context; /* width of the row's conditioning vector, C */
    int64_t units;   /* H of every layer */
    int layers;
    bool deep; /* every layer sees the conditioning vector, not only the first */
    int64_t out;
    double out_scale; /* as in acf_mlp_shape */
} acf_rnn_shape;

/* Declares "name.0.wx", "name.0.wc", ... "name.head.w1", ... and fills *w with their tensors, valid as long as ps. The
 * head's hidden layer has as many units as the GRU, and relu. Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_rnn_declare(acf_rnn *w, acf_params *ps, const char *name, const acf_rnn_shape *shape);

#endif
