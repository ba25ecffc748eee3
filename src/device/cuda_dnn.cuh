/* Convolutions by cuDNN, which may or may not be there: for src/ops/conv2d.cu, which has its own way besides.
 *
 * cuDNN pads both sides alike; images are float, channels last. Products are those of the device's precision: float multiplies in float, all others
 * in tf32, as a convolution in bf16 would first have to round its images, which are float, and that costs what it saves. */
#ifndef ACF_DEVICE_CUDA_DNN_CUH
#define ACF_DEVICE_CUDA_DNN_CUH

#include "device/cuda.cuh"

/* No member is left out between others: compared as bytes. */
typedef struct acf_dnn_shape {
    int32_t N, H, W, Ci, Ho, Wo, Co, kh, kw, stride, pad_h, pad_w;
} acf_dnn_shape;

/* y from x and w; x from y and w (the gradients dx from dy); w from x and y (dw). */
typedef enum acf_dnn_way { ACF_DNN_FORWARD, ACF_DNN_TO_X, ACF_DNN_TO_W } acf_dnn_way;

typedef struct acf_dnn_plan acf_dnn_plan;

/* One run, all in device memory: the one that `way` makes is written (beta 0), or added to (beta 1; not of the forward). */
typedef struct acf_dnn_work {
    acf_real *x, *w, *y;
    const acf_real *bias; /* (Co) of the forward; may be NULL */
    bool relu;            /* of the forward, with a bias */
    float beta;
    void *workspace; /* acf_dnn_bytes */
} acf_dnn_work;

/* The plan of a convolution; NULL where cuDNN has none, or is not there. Valid until the next call. */
acf_dnn_plan *acf_dnn_find(const acf_device *dev, acf_dnn_way way, const acf_dnn_shape *s);
size_t acf_dnn_bytes(const acf_dnn_plan *p);

/* *done false: cuDNN cannot after all, and nothing was written. *finished (may be NULL): bias and relu are in y. Fails: ACF_EDEVICE. */
acf_status acf_dnn_run(acf_device *dev, acf_dnn_plan *p, const acf_dnn_work *k, bool *done, bool *finished);

#endif
