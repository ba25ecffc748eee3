/* The gated recurrent unit on a GPU: launches on raw device pointers, no tensors. The mathematics is in gru.h.
 *
 * Sizes: N rows of a batch, D steps at most, T packed elements at most, H units. The host knows only these. The
 * number of rows with a step t (active), the start of its elements (first; first[D] is the true number of elements)
 * and the batch row of rank k (row) are read in device memory. A launch therefore depends only on N, D, T and H and
 * can be captured in a CUDA graph.
 *
 * Gates of an element are side by side, in an order that makes each side one sub-matrix of (T,4H):
 *
 *     | n | r | z | b_n |     columns 0..3H: the input's side (its weights with the n rows first)
 *                             columns H..4H: the state's side
 *
 * Before a forward: x wxᵀ in n, r and z. After it: the gates. After a backward: the gradients of [a_n | a_r | a_z |
 * b_n]. Every launch that writes a packed tensor leaves zeros in rows beyond the true count. */
#ifndef ACF_OPS_GRU_KERNELS_H
#define ACF_OPS_GRU_KERNELS_H

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The precision of products (sums are float), and of stored gates. */
typedef enum acf_gru_math {
    ACF_GRU_FLOAT,     /* float products, float gates; any H */
    ACF_GRU_TF32,      /* tf32 products, float gates */
    ACF_GRU_BF16_WIDE, /* bf16 products, float gates */
    ACF_GRU_BF16       /* bf16 products, bf16 gates */
} acf_gru_math;

typedef struct acf_gru_shape {
    int64_t N, D, T, H;
    const int32_t *active, *first, *row; /* (D), (D+1), (N); row NULL: rank k is row k */
} acf_gru_shape;

/* One layer forward. Pointers may be NULL where stated. */
typedef struct acf_gru_forward {
    acf_gru_shape s;
    void *gates;     /* (T,4H) float or bf16; with `projected`, x wxᵀ on entry. NULL: neither projected nor saved */
    bool projected;  /* gates hold the input's side */
    bool save;       /* keep the gates for a backward; otherwise their content is undefined */
    const float *x;  /* (T,I), for a narrow input that was not projected, or NULL: see wx */
    const float *wx; /* (3H,I) */
    int64_t I;
    const float *cond; /* (N,3H), includes the bias, or NULL */
    const float *bx;   /* (3H), or NULL */
    const float *h0;   /* (N,H) in rank order, or NULL: zero */
    const float *wh;   /* (3H,H) */
    const void *image; /* wh as written by acf_gru_images_launch, or NULL: slower */
    const float *bh;   /* (3H) */
    float *h;          /* (T,H) */
    void *h16;         /* (T,H) the same as bf16, or NULL */
} acf_gru_forward;

/* Its backward. */
typedef struct acf_gru_backward {
    acf_gru_shape s;
    void *gates;       /* (T,4H) in place: gates to gradients */
    const float *dh;   /* (T,H) of h, from the layer above */
    const float *h;    /* (T,H) */
    const float *h0;   /* (N,H) or NULL */
    const float *wh;   /* (3H,H) */
    const void *image; /* of wh, as in the forward, or NULL */
    void *past;        /* (T,H) out: the state before each element, float or bf16 as the gates; for wh's gradient */
    float *dcond;      /* (N,3H) +=, or NULL */
    float *dbx;        /* (3H) +=, or NULL */
    float *dbh;        /* (3H) +=, or NULL */
    float *dh0;        /* (N,H) +=, or NULL */
    float *scratch;    /* acf_gru_scratch floats */
} acf_gru_backward;

/* Number of floats that a backward needs as scratch. */
int64_t acf_gru_scratch(const acf_gru_shape *s);

/* Weights in bf16, in the order that forward and backward use in shared memory: made once after each change of the
 * weights, for all layers together. Bytes of one layer's image (0: H has none, leave `image` NULL). */
int64_t acf_gru_image_bytes(int64_t H);
/* image[i] from wh[i] (3H,H), i < n; both arrays are in host memory and n is at most ACF_GRU_IMAGES. */
#define ACF_GRU_IMAGES 64
cudaError_t acf_gru_images_launch(void *const *image, const float *const *wh, int n, int64_t H, cudaStream_t stream);

/* True when a fast kernel exists for H on this device; otherwise the launches below run the plain one, in float. */
bool acf_gru_is_fast(int64_t H, acf_gru_math math);

/* Gates are bf16 for ACF_GRU_BF16 whenever acf_gru_is_fast says so, otherwise float. */
cudaError_t acf_gru_forward_launch(const acf_gru_forward *f, acf_gru_math math, cudaStream_t stream);
cudaError_t acf_gru_backward_launch(const acf_gru_backward *b, acf_gru_math math, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
