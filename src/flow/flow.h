/* Arbitrary conditional transformations: invertible maps of a row's modelled values x_u, given the observed ones.
 *
 *     kind        map                                                   network
 *     linear      z = W x + t, W = (W0 + W_c)[u,u]                      MLP -> W_c (full or rank r) and t
 *     packed      the same with W read as packed L and U                MLP
 *     lowrank     the same with W0 diagonal: for wide tables            MLP -> A, B of rank r and t
 *     leaky       z = x, or alpha x below 0                             one learned number
 *     rnn         z_i = x_i e^s_i + t_i, (s,t)_i from x before i        GRU
 *     rnn-shift   the same with s = 0                                   GRU
 *     coupling    values at odd places from those at even ones, then
 *                 the reverse                                           two MLPs
 *     affine      z = x e^s + t, (s,t) from the observed values         MLP
 *     reverse     the values in the opposite order
 *
 * All of them act on packed values, so nothing outside u can enter a log-determinant. Every network's output starts
 * near or at zero: a chain starts as the identity (up to its reverses). */
#ifndef ACF_FLOW_FLOW_H
#define ACF_FLOW_FLOW_H

#include "nn/mlp.h"
#include "nn/rnn_net.h"

/* Inputs of every transformation and likelihood. */
typedef struct acf_cond {
    acf_tensor
        *context; /* (N,C): observed values x·b (D), their mask b (D), m, then embeddings of observed categories */
    const acf_subset *u;  /* the modelled columns */
    acf_tensor *columns;  /* (D,E): embeddings of the columns, or NULL: none as inputs */
    bool mirrored;        /* an odd number of reverses came before: place t holds the t-th column from the end */
    const acf_pass *pass; /* NULL: inference */
} acf_cond;

/* Sizes of the networks. */
typedef struct acf_flow_sizes {
    int64_t D, context;       /* columns; width of acf_cond.context */
    int64_t column_embedding; /* E, width of a column's embedding; 0: no column embedding */
    int64_t width;            /* of the MLPs' hidden layers */
    int hidden;               /* their number */
    int64_t units;            /* of the GRUs */
    int gru_layers;
    bool deep;    /* every GRU layer sees the context */
    int64_t rank; /* of conditional matrices; 0: full */
    double bound; /* of log-scales, > 0 */
} acf_flow_sizes;

typedef struct acf_flow acf_flow;

typedef struct acf_flow_kind {
    const char *name; /* key in the options and in the model file */
    acf_status (*declare)(acf_flow *f, acf_params *ps, const char *name);
    /* y (T) and logdet (N), the log-determinant of this direction; logdet may be NULL. */
    acf_tensor *(*forward)(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c, acf_tensor **logdet);
    acf_tensor *(*inverse)(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c, acf_tensor **logdet);
    bool affine_alone; /* in a row that models one value z = a x + b, with a and b from the observed values */
    bool reverses;     /* puts values in the opposite order: acf_cond.mirrored changes behind it */
    bool recurrent;    /* its network is a GRU, which decides the choice of device */
} acf_flow_kind;

/* Its networks and parameters: a kind uses those that it declares. */
struct acf_flow {
    const acf_flow_kind *kind;
    acf_flow_sizes size;
    acf_mlp net[2];
    acf_rnn rnn;
    acf_param *base; /* (D,D) or (D): W0; one number: the slope */
    uint32_t site;   /* of its dropout */
};

/* A kind by its name, or NULL; and all kinds, ended by NULL. */
const acf_flow_kind *acf_flow_find(const char *name);
extern const acf_flow_kind *const acf_flow_kinds[];
#define ACF_FLOW(kind, name) extern const acf_flow_kind kind;
#include "base/flow_list.h"
#undef ACF_FLOW

/* Inputs of recurrent networks at a step besides the value before: embeddings of its column and of the one before
 * (zeros at the first), (T,2E); NULL without column embeddings. */
acf_tensor *acf_cond_known(acf_tape *t, const acf_cond *c);

/* ---- chains ------------------------------------------------------------------------------------------------------ */

#define ACF_CHAIN_MAX 64

typedef struct acf_chain {
    int n;
    acf_flow flow[ACF_CHAIN_MAX];
} acf_chain;

/* From a list of kinds such as "linear leaky rnn reverse linear leaky rnn" (separated by spaces or commas); "" is the
 * identity. Declares "name.0.linear...." and so on. Fails: ACF_EUSAGE with the nearest kind, ACF_EMEMORY. */
acf_status acf_chain_declare(acf_chain *chain, acf_params *ps, const char *name, const char *kinds,
                             const acf_flow_sizes *size);

/* z (T) from x (T), and the sum of log-determinants (N); logdet may be NULL. */
acf_tensor *acf_chain_forward(acf_tape *t, const acf_chain *chain, acf_tensor *x, const acf_cond *c,
                              acf_tensor **logdet);
/* The inverse; logdet is that of the inverse. */
acf_tensor *acf_chain_inverse(acf_tape *t, const acf_chain *chain, acf_tensor *z, const acf_cond *c,
                              acf_tensor **logdet);

/* The inverse of n sets of values z[0..n) (T) at once, in place, for rows that model one value at most. A network runs
 * twice, not n times, since its output does not depend on the value. No derivative. */
void acf_flow_inverse_alone(acf_tape *t, const acf_flow *f, int n, acf_tensor **z, const acf_cond *c);
void acf_chain_inverse_alone(acf_tape *t, const acf_chain *chain, int n, acf_tensor **z, const acf_cond *c);

/* c for the likelihood behind the chain: mirrored or not. */
acf_cond acf_chain_cond(const acf_chain *chain, const acf_cond *c);

/* True if one of these kinds is recurrent. Usable before there is a chain; words that are no kind are skipped. */
bool acf_chain_recurrent(const char *kinds);

#endif
