/* One block of a transformer as one operation: attention and a network of two layers, each behind a normalisation and
 * added to its input.
 *
 *     a = h + drop(out(attention(norm(h))))            h' = a + drop(down(gelu(up(norm(a)))))
 *
 * It equals acf_layer_norm, acf_linear, acf_attention, acf_gelu, acf_dropout and acf_add one after the other on h. As
 * one operation it keeps less for its derivative and adds products in place; on a GPU it may use bf16 between them. */
#ifndef ACF_OPS_TRANSFORMER_BLOCK_H
#define ACF_OPS_TRANSFORMER_BLOCK_H

#include "ops/attention.h"
#include "ops/dropout.h"

/* The parameters, in the order of their array. */
typedef enum acf_block_param {
    ACF_BLOCK_SCALE,
    ACF_BLOCK_SHIFT, /* (W) of the norm before attention */
    ACF_BLOCK_QKV,
    ACF_BLOCK_QKV_BIAS, /* (3W,W), (3W) */
    ACF_BLOCK_OUT,
    ACF_BLOCK_OUT_BIAS, /* (W,W), (W) */
    ACF_BLOCK_SCALE2,
    ACF_BLOCK_SHIFT2, /* (W) of the norm before the network */
    ACF_BLOCK_UP,
    ACF_BLOCK_UP_BIAS, /* (4W,W), (4W) */
    ACF_BLOCK_DOWN,
    ACF_BLOCK_DOWN_BIAS, /* (W,4W), (W) */
    ACF_BLOCK_PARAMS
} acf_block_param;

/* Inputs of a block besides numbers. */
typedef struct acf_block_told {
    const acf_subset *s; /* the rows' tokens (acf_tape_sequence) */
    int heads;           /* W is a multiple of them */
    acf_drop drop[2];    /* behind out and behind down; none on a tape that does not record */
    acf_tensor *qkv;     /* (T,3W), receives queries, keys and values, or NULL; no derivative comes from there */
} acf_block_told;

/* h (T,W) packed over told->s -> (T,W). Keeps told->s and what the drops point to. Fails: ACF_ESHAPE, ACF_EUSAGE. */
acf_tensor *acf_transformer_block(acf_tape *t, acf_tensor *h, acf_tensor *const param[ACF_BLOCK_PARAMS],
                                  const acf_block_told *told);

/* ---- for kernels on other devices -------------------------------------------------------------------------------- */

/* in[0] is h, and in[1 + p] parameter p. */
typedef struct acf_transformer_block_attrs {
    acf_block_told told;
    bool drops[2]; /* whether there is dropout */
    /* Kept for the backward; NULL if there is none. */
    acf_real *stat[2], *lse; /* (T,2) of each norm; (T,heads) */
    acf_real *qkv, *mixed;   /* (T,3W), (T,W): what attention read and wrote */
    acf_real *a, *wide;      /* (T,W), (T,4W): the middle of the block, and the input of gelu */
    uint8_t *keep[2];        /* (T,W) of each dropout */
    bool narrow;             /* another device has bf16 between products */
    void *device;            /* arrays that the device keeps */
} acf_transformer_block_attrs;

#endif
