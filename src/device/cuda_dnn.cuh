/* Convolutions by cuDNN, if it is installed. Used by src/ops/conv2d.cu, which also has its own kernels.
 *
 * cuDNN pads both sides equally. Images are float, channels last. Precision float multiplies in float; all others
 * multiply in tf32. bf16 is not used: rounding the float images first costs as much as it saves. */
#ifndef ACF_DEVICE_CUDA_DNN_CUH
#define ACF_DEVICE_CUDA_DNN_CUH

#include "device/cuda.cuh"

/* No padding between fields: keys are compared as bytes. */
typedef struct acf_dnn_shape {
    int32_t N, H, W, Ci, Ho, Wo, Co, kh, kw, stride, pad_h, pad_w;
} acf_dnn_shape;

/* y from x and w; x from y and w (the gradients dx from dy); w from x and y (dw). */
typedef enum acf_dnn_way { ACF_DNN_FORWARD, ACF_DNN_TO_X, ACF_DNN_TO_W } acf_dnn_way;

typedef struct acf_dnn_plan acf_dnn_plan;

/* One convolution, all in device memory. The output that `way` selects is written (beta 0) or added to (beta 1; not
 * in the forward). */
typedef struct acf_dnn_work {
    acf_real *x, *w, *y;
    const acf_real *bias; /* (Co) for the forward; may be NULL */
    bool relu;            /* applies relu in the forward, together with a bias */
    float beta;
    void *workspace; /* acf_dnn_bytes */
} acf_dnn_work;

/* The plan of a convolution; NULL if cuDNN has none or is not installed. Valid until the next call. */
acf_dnn_plan *acf_dnn_find(const acf_device *dev, acf_dnn_way way, const acf_dnn_shape *s);
size_t acf_dnn_bytes(const acf_dnn_plan *p);

/* *done false: cuDNN rejected the convolution and wrote nothing. *finished (may be NULL): y includes bias and relu.
 * Fails: ACF_EDEVICE. */
acf_status acf_dnn_run(acf_device *dev, acf_dnn_plan *p, const acf_dnn_work *k, bool *done, bool *finished);

#endif
