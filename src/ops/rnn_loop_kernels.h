/* The loops of rnn_loop.h on a GPU: launches on raw device pointers, no tensors. All steps, all layers, the head and
 * the values made from its output are ONE launch. A backward is one more; after it every weight gradient is a library
 * product over all elements.
 *
 * Sizes and counts are as in gru_kernels.h (acf_gru_shape). T is a capacity; the true counts are read in device memory.
 * Every launch that writes a packed tensor sets rows beyond the true count to zero; a launch that adds leaves them as
 * they are.
 *
 * Two forms. Narrow: bf16 products with float sums and float states. Gates, states, the head's hidden layer and the
 * gradients of all of them are stored as bf16 ("half" below): 10H bytes per layer and element, 2F + 4·O of the head.
 * Plain: float throughout, any size, as the reference and for sizes without a narrow form. acf_loop_is_narrow tells
 * which one a launch runs.
 *
 * After a backward, with G = gates[l] (T,4H) = gradients of [a_n | a_r | a_z | b_n], each line one product over T rows:
 *
 *     dwh_l += G[H..4H]ᵀ·past_l      dwx_l += G[0..3H]ᵀ·h_(l-1)  (rows n, r, z)
 *     dinput = G_0[0..3H] (columns n, r, z)
 *     dw1 += dhiddenᵀ·h_(L-1)        dw2 += doutᵀ·hidden         biases, dcond: acf_loop_sums_launch */
#ifndef ACF_OPS_RNN_LOOP_KERNELS_H
#define ACF_OPS_RNN_LOOP_KERNELS_H

#include "ops/gru_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACF_LOOP_LAYERS 8

typedef enum acf_loop_kind { ACF_LOOP_INVERSE, ACF_LOOP_MEAN, ACF_LOOP_SAMPLE } acf_loop_kind;

typedef struct acf_loop_layer {
    const float *cond;    /* (N,3H), includes the bias, or NULL */
    const float *wx;      /* (3H,H); of the first layer (3H,1+E), of which column 0 is read: the value before */
    const float *bx;      /* (3H) or NULL */
    const float *wh, *bh; /* (3H,H), (3H) */
    void *gates;          /* (T,4H) half: saved by a forward, made gradients by a backward; NULL: not saved */
    void *h;              /* (T,H) half: saved; NULL: not saved */
    void *past;           /* (T,H) half, from a backward: the state before each element */
} acf_loop_layer;

typedef struct acf_loop {
    acf_gru_shape s;
    acf_loop_kind kind;
    int layers, act; /* act: of the head's hidden layer, an acf_act_kind */
    int64_t E, F, O; /* O = 1 or 2 of an inverse, else 3K */
    float bound, lo, hi;
    acf_loop_layer layer[ACF_LOOP_LAYERS];
    const float *w1, *b1, *w2, *b2; /* (F,H), (F) or NULL, (O,F), (O) or NULL */
    const void *image;              /* the weights as laid out by acf_loop_image_launch; a plain loop needs none */
    const float *input; /* (T,3H) known numbers through columns 1..E of the first wx, rows r, z, n; NULL: none */
    const float *z;     /* (T) of an inverse */
    float *y;           /* (T) out */
    void *hidden;       /* (T,F) half, saved, or NULL */
    float *out;         /* (T,O) saved, or NULL */
    /* of a sample: as acf_draw */
    uint64_t seed;
    uint32_t draw;
    const uint32_t *now;            /* the same in device memory; NULL: `draw` is used */
    const uint64_t *row_id;         /* (N) or NULL */
    const int32_t *row_of, *col_of; /* (T) */
    /* of a backward */
    const float *dy;      /* (T) */
    float *dz;            /* (T) +=, of an inverse; NULL: not needed */
    void *dout, *dhidden; /* (T,O), (T,F) half, out */
    float *scratch;       /* acf_loop_scratch floats */
} acf_loop;

/* Floats of scratch that a launch needs, forward or backward; 0 for a narrow one. */
int64_t acf_loop_scratch(const acf_loop *f, bool narrow);

/* True when the narrow form exists for these sizes (layers, H, F, O) on this device. */
bool acf_loop_is_narrow(const acf_loop *f);

/* Bytes of the laid-out weights of a network, for forwards and backwards; and the launch that lays them out, once after
 * each change of the weights. */
int64_t acf_loop_image_bytes(const acf_loop *f);
cudaError_t acf_loop_image_launch(void *image, const acf_loop *f, cudaStream_t stream);

/* narrow needs acf_loop_is_narrow and laid-out weights. A forward saves the arrays whose pointers are not NULL. */
cudaError_t acf_loop_forward_launch(const acf_loop *f, bool narrow, cudaStream_t stream);
/* Backward of an inverse or a mean whose forward saved everything. */
cudaError_t acf_loop_backward_launch(const acf_loop *f, bool narrow, cudaStream_t stream);

/* Sums of a layer's gradients after the backward: dcond (N,3H) +=, dbx (3H) +=, dbh (3H) +=; each may be NULL. scratch:
 * ACF_LOOP_PARTS·4H floats. Sums run in a fixed order. */
cudaError_t acf_loop_sums_launch(const acf_loop *f, int l, float *dcond, float *dbx, float *dbh, float *scratch,
                                 bool narrow, cudaStream_t stream);

/* The same of the head: db1 (F) +=, db2 (O) +=; each may be NULL. scratch: ACF_LOOP_PARTS·max(F,O) floats. */
cudaError_t acf_loop_head_sums_launch(const acf_loop *f, float *db1, float *db2, float *scratch, bool narrow,
                                      cudaStream_t stream);
#define ACF_LOOP_PARTS 128

#ifdef __cplusplus
}
#endif

#endif
