/* A recurrent network over a row's modelled values, and the three loops that feed its output back into it.
 *
 * The network is a stack of GRU layers and a head with one hidden layer. At step i its inputs are the value before (-1
 * at the first), known numbers of the step (e.g. its column's embedding) and the row's conditioning vector. Its outputs
 * are `out` numbers about value i:
 *
 *     acf_rnn_seq      all values are known: every step at once                    (coupling forward, likelihood)
 *     acf_rnn_inverse  value i = (z_i - shift_i) e^(-s_i), (raw, shift) = net      (inverse of the RNN coupling)
 *     acf_rnn_mean     value i = mean of the mixture the net describes             (best guess)
 *     acf_rnn_sample   value i = a draw from it                                    (sampling, imputation)
 *
 * Dropout applies in acf_rnn_seq only, where likelihoods are trained; the loops run without, so the best-guess term of
 * a loss uses the whole network. A loop is one node with one backward through time, not steps times layers of nodes.
 * The products of a step stay small, but every weight gradient is one product over all steps. */
#ifndef ACF_OPS_RNN_LOOP_H
#define ACF_OPS_RNN_LOOP_H

#include "ops/draw.h"
#include "ops/gru.h"

#define ACF_RNN_LAYERS 8
#define ACF_RNN_START (-1.0) /* the value before at the first step; the paper's x_u^0 */

/* Weights: H units in every layer, E known numbers per step, F hidden units and O outputs of the head. */
typedef struct acf_rnn {
    int layers;
    acf_gru gru[ACF_RNN_LAYERS]; /* gru[0].wx is (3H,1+E): the value before, then the known numbers */
    acf_tensor *w1, *b1;         /* (F,H), (F); a bias may be NULL */
    acf_tensor *w2, *b2;         /* (O,F), (O) */
    acf_act_kind act;            /* of the head's hidden layer */
} acf_rnn;

/* (T,O) from the values v (T) of all steps; known (T,E) or NULL, c (N,C) or NULL. drop as in acf_gru_stack: between the
 * layers, and between the last one and the head; NULL: none. */
acf_tensor *acf_rnn_seq(acf_tape *t, const acf_rnn *w, acf_tensor *v, acf_tensor *known, acf_tensor *c,
                        const acf_subset *u, const acf_drop *drop);

/* (T): the x with z = x e^s + shift, s = bound tanh(raw / bound), (raw, shift) = net(x before); O = 2, or O = 1: s =
 * 0. */
acf_tensor *acf_rnn_inverse(acf_tape *t, const acf_rnn *w, acf_tensor *z, acf_tensor *known, acf_tensor *c,
                            double bound, const acf_subset *u);

/* (T): chained means of mixtures of K Gaussians, O = 3K (mixture.h). */
acf_tensor *acf_rnn_mean(acf_tape *t, const acf_rnn *w, acf_tensor *known, acf_tensor *c, int64_t K,
                         const acf_subset *u);

/* (T): one draw per cell, as in acf_mixture_sample; d->at is not used. No derivative. */
acf_tensor *acf_rnn_sample(acf_tape *t, const acf_rnn *w, acf_tensor *known, acf_tensor *c, int64_t K, double lo,
                           double hi, const acf_draw *d, const acf_subset *u);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

/* Inputs of a loop's node: z and the known numbers, then five per layer, then the head's four. Z, KNOWN, COND, BX, B1
 * and B2 may be NULL. */
enum { ACF_RNN_Z, ACF_RNN_KNOWN, ACF_RNN_LAYER };
enum { ACF_RNN_COND, ACF_RNN_WX, ACF_RNN_BX, ACF_RNN_WH, ACF_RNN_BH, ACF_RNN_PER_LAYER };
enum { ACF_RNN_W1, ACF_RNN_B1, ACF_RNN_W2, ACF_RNN_B2, ACF_RNN_HEAD };

typedef enum acf_rnn_kind { ACF_RNN_INVERSE, ACF_RNN_MEAN, ACF_RNN_SAMPLE } acf_rnn_kind;

typedef struct acf_rnn_attrs {
    acf_rnn_kind kind;
    int layers;
    bool all; /* buffers hold all T elements (recording), not one step */
    int64_t H, E, F, O, K;
    double bound, lo, hi;
    acf_act_kind act;
    acf_draw draw;
    const acf_subset *u;
    acf_real *gates[ACF_RNN_LAYERS];  /* (T,4H) */
    acf_real *states[ACF_RNN_LAYERS]; /* (T,H), or (2 steps,H) */
    acf_real *hidden, *out;           /* (T,F), (T,O) */
    acf_real *w0;                     /* (3H) the first column of gru[0].wx: weights of the value before */
    void *image;                      /* the GPU's layout of the weights */
} acf_rnn_attrs;

static inline acf_tensor *acf_rnn_of_layer(const acf_node *n, int l, int part) {
    return n->in[ACF_RNN_LAYER + l * ACF_RNN_PER_LAYER + part];
}
static inline acf_tensor *acf_rnn_of_head(const acf_node *n, int part) {
    return n->in[ACF_RNN_LAYER + ((const acf_rnn_attrs *)n->attr)->layers * ACF_RNN_PER_LAYER + part];
}

#endif
