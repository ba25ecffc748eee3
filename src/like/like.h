/* Likelihoods of z_u after the transformations: the last factor of p(x_u | x_o).
 *
 *     gru        z_i given those before: a GRU whose head describes a mixture of K Gaussians for each step
 *     sets       z_i given those before, as a set: a network on the known cells describes the mixture (nn/deep_sets.h)
 *     gaussian   one Gaussian for all of z_u with mean and covariance from the observed cells: a conditional linear
 *                transformation to a standard normal, covariance (Wᵀ W)⁻¹ and mean -W⁻¹ t
 *     attention  of reals and categories together, by a transformer over a row's cells (like/attention_like.h) */
#ifndef ACF_LIKE_LIKE_H
#define ACF_LIKE_LIKE_H

#include "base/options.h"
#include "flow/flow.h"
#include "nn/deep_sets.h"

typedef struct acf_like acf_like;

typedef struct acf_like_kind {
    const char *name;
    acf_status (*declare)(acf_like *k, acf_params *ps, const char *name);
    acf_tensor *(*logp)(acf_tape *t, const acf_like *k, acf_tensor *z, const acf_cond *c);       /* (N) */
    acf_tensor *(*mean)(acf_tape *t, const acf_like *k, const acf_cond *c);                      /* (T) */
    acf_tensor *(*sample)(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d); /* (T) */
    /* A stratified sample for rows that model one value: n sets (T), whose mean over the n is that of any function to
     * 1/n. */
    void (*cell_values)(acf_tape *t, const acf_like *k, const acf_cond *c, int n, acf_tensor **z);
    bool recurrent; /* it has a GRU, and so do categories beside it; otherwise they use nn/deep_sets.h */
    bool whole_row; /* one network for reals and categories (attention_like.h): no functions here */
} acf_like_kind;

/* Its networks and parameters: a kind uses those that it declares. */
struct acf_like {
    const acf_like_kind *kind;
    acf_flow_sizes size; /* units and gru_layers are those of the likelihood's own network */
    int64_t components;  /* K of `gru` and `sets` */
    double lo, hi;       /* bounds of their log-scales */
    acf_rnn rnn;         /* of `gru` */
    acf_deep_sets set;   /* of `sets`: as many blocks as gru_layers; the context begins with x·b (D) and b (D) */
    acf_param
        *slots;  /* of `sets`, (F,2D): terms of values modelled before, if they are in another space than given ones */
    bool apart;  /* true if modelled values were transformed before, so they are in another space */
    bool normal; /* `gru`, `sets`: initialised as the standard normal density (acf_like_fill) */
    acf_tensor *head; /* (3K): the bias of the mixtures' parameters; NULL: none */
    acf_flow flow;    /* of `gaussian`: a transformation of its own */
};

/* Where k->normal, fills the head: K components of one scale with means at quantiles of N(0, 0.09). Together they are
 * the standard normal density (log p within 0.01 up to 3 deviations). The head's weights are 0, so every cell has it.
 * Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_like_fill(const acf_like *k, acf_device *dev);

/* All of them in the order of the option `likelihood`, ended by NULL; and the one that the option names. */
extern const acf_like_kind *const acf_like_kinds[];
const acf_like_kind *acf_like_chosen(const acf_options *o);
#define ACF_LIKE(kind, name) extern const acf_like_kind kind;
#include "base/like_list.h"
#undef ACF_LIKE

#endif
