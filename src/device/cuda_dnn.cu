/* Convolutions by cuDNN 9, if it is installed: see cuda_dnn.cuh.
 *
 * Workload: some dozens of different convolutions in a training step, the same in every step. Descriptors and
 * workspace sizes are found once and cached by shape.
 *
 * The library is loaded at run time by the first convolution, never linked: by name on the dynamic linker's path,
 * then from the usual folder. The environment variable ACF_CUDNN names another file; `none` disables cuDNN. Only
 * deterministic algorithms that multiply directly are used: no atomics, and no transforms, whose error is larger. */
#include "device/cuda_dnn.cuh"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#define HAVE_CUDNN (CUDNN_MAJOR == 9)
#else
#define HAVE_CUDNN 0
#endif

#if HAVE_CUDNN

/* ---- the library ----------------------------------------------------------------------------------------------- */

#define FUNCTIONS(X)                                                                                                   \
    X(GetVersion)                                                                                                      \
    X(GetErrorString)                                                                                                  \
    X(Create)                                                                                                          \
    X(Destroy)                                                                                                         \
    X(SetStream) X(CreateTensorDescriptor) X(DestroyTensorDescriptor) X(SetTensor4dDescriptor)                         \
        X(CreateFilterDescriptor) X(DestroyFilterDescriptor) X(SetFilter4dDescriptor) X(CreateConvolutionDescriptor)   \
            X(DestroyConvolutionDescriptor) X(SetConvolution2dDescriptor) X(SetConvolutionMathType)                    \
                X(CreateActivationDescriptor) X(DestroyActivationDescriptor) X(SetActivationDescriptor)                \
                    X(GetConvolutionForwardWorkspaceSize) X(ConvolutionForward) X(ConvolutionBiasActivationForward)    \
                        X(GetConvolutionBackwardDataWorkspaceSize) X(ConvolutionBackwardData)                          \
                            X(GetConvolutionBackwardFilterWorkspaceSize) X(ConvolutionBackwardFilter)

/* Its functions, without their prefix. */
typedef struct library {
#define POINTER(name) decltype(&cudnn##name) name;
    FUNCTIONS(POINTER)
#undef POINTER
} library;

/* False if no suitable library is found. The library is never unloaded, because CUDA does not allow it. */
static bool load(library *l) {
    const char *asked = getenv("ACF_CUDNN");
    void *file = dlopen(asked ? asked : "libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!file && !asked) file = dlopen("/usr/local/cuda/lib64/libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
    if (!file) return false;
#define FIND(name)                                                                                                     \
    l->name = (decltype(l->name))dlsym(file, "cudnn" #name);                                                           \
    if (!l->name) return false;
    FUNCTIONS(FIND)
#undef FIND
    return l->GetVersion() / 10000 == CUDNN_MAJOR;
}

/* ---- plans ----------------------------------------------------------------------------------------------------- */

/* No padding: keys are compared as bytes. */
typedef struct plan_key {
    acf_dnn_shape shape;
    int32_t way, float_math;
} plan_key;

struct acf_dnn_plan {
    bool used, refused, ran, unfused;
    plan_key key;
    size_t bytes;
    cudnnTensorDescriptor_t x, y, bias;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    cudnnConvolutionFwdAlgo_t algo; /* algorithm of the forward */
};

#define PLANS 1024 /* plans kept at once: a model has some dozens */

struct acf_dnn {
    bool tried, there; /* the library was looked for; it was found */
    library lib;
    cudnnHandle_t handle[2];            /* for the device's stream, and for the second stream */
    cudnnActivationDescriptor_t act[2]; /* nothing, relu */
    int n;
    acf_dnn_plan plans[PLANS];
};

acf_status acf_dnn_create(acf_dnn **out) {
    *out = (acf_dnn *)acf_alloc_zero(sizeof **out, "plans of convolutions");
    return *out ? ACF_OK : ACF_EMEMORY;
}

static void drop_plan(const library *l, acf_dnn_plan *p) {
    if (p->x) l->DestroyTensorDescriptor(p->x);
    if (p->y) l->DestroyTensorDescriptor(p->y);
    if (p->bias) l->DestroyTensorDescriptor(p->bias);
    if (p->w) l->DestroyFilterDescriptor(p->w);
    if (p->conv) l->DestroyConvolutionDescriptor(p->conv);
    memset(p, 0, sizeof *p);
}

static void drop_plans(acf_dnn *d) {
    for (int i = 0; i < PLANS; i++) drop_plan(&d->lib, &d->plans[i]);
    d->n = 0;
}

void acf_dnn_free(acf_dnn *d) {
    if (!d) return;
    drop_plans(d);
    for (int i = 0; i < 2; i++) {
        if (d->act[i]) d->lib.DestroyActivationDescriptor(d->act[i]);
        if (d->handle[i]) d->lib.Destroy(d->handle[i]);
    }
    acf_release(d);
}

/* Loads the library and creates its handles; false if it is not available. */
static bool ready(acf_dnn *d) {
    if (d->tried) return d->there;
    d->tried = true;
    if (!load(&d->lib)) return false;
    const library *l = &d->lib;
    bool good = true;
    for (int i = 0; i < 2 && good; i++)
        good = l->Create(&d->handle[i]) == CUDNN_STATUS_SUCCESS &&
               l->CreateActivationDescriptor(&d->act[i]) == CUDNN_STATUS_SUCCESS &&
               l->SetActivationDescriptor(d->act[i], i ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                          CUDNN_PROPAGATE_NAN, 0) == CUDNN_STATUS_SUCCESS;
    cudaGetLastError(); /* if it cannot start, conv2d.cu uses its own kernels */
    return d->there = good;
}

#define GOOD(call) ((call) == CUDNN_STATUS_SUCCESS)

static bool describe(const library *l, acf_dnn_plan *p) {
    const acf_dnn_shape *s = &p->key.shape;
    const cudnnTensorFormat_t last = CUDNN_TENSOR_NHWC; /* also of weights: (Co,kh,kw,Ci) */
    return GOOD(l->CreateTensorDescriptor(&p->x)) && GOOD(l->CreateTensorDescriptor(&p->y)) &&
           GOOD(l->CreateTensorDescriptor(&p->bias)) && GOOD(l->CreateFilterDescriptor(&p->w)) &&
           GOOD(l->CreateConvolutionDescriptor(&p->conv)) &&
           GOOD(l->SetTensor4dDescriptor(p->x, last, CUDNN_DATA_FLOAT, s->N, s->Ci, s->H, s->W)) &&
           GOOD(l->SetTensor4dDescriptor(p->y, last, CUDNN_DATA_FLOAT, s->N, s->Co, s->Ho, s->Wo)) &&
           GOOD(l->SetTensor4dDescriptor(p->bias, last, CUDNN_DATA_FLOAT, 1, s->Co, 1, 1)) &&
           GOOD(l->SetFilter4dDescriptor(p->w, CUDNN_DATA_FLOAT, last, s->Co, s->Ci, s->kh, s->kw)) &&
           GOOD(l->SetConvolution2dDescriptor(p->conv, s->pad_h, s->pad_w, s->stride, s->stride, 1, 1,
                                              CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT)) &&
           GOOD(l->SetConvolutionMathType(p->conv, p->key.float_math ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH));
}

/* The workspace of the algorithm, taken from the first one that cuDNN returns. */
static bool choose(const library *l, cudnnHandle_t h, acf_dnn_plan *p) {
    switch (p->key.way) {
    case ACF_DNN_FORWARD:
        p->algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
        if (GOOD(l->GetConvolutionForwardWorkspaceSize(h, p->x, p->w, p->conv, p->y, p->algo, &p->bytes))) return true;
        p->algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
        p->unfused = true;
        return GOOD(l->GetConvolutionForwardWorkspaceSize(h, p->x, p->w, p->conv, p->y, p->algo, &p->bytes));
    case ACF_DNN_TO_X:
        return GOOD(l->GetConvolutionBackwardDataWorkspaceSize(h, p->w, p->y, p->conv, p->x,
                                                               CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, &p->bytes));
    default:
        return GOOD(l->GetConvolutionBackwardFilterWorkspaceSize(h, p->x, p->y, p->conv, p->w,
                                                                 CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &p->bytes));
    }
}

acf_dnn_plan *acf_dnn_find(const acf_device *dev, acf_dnn_way way, const acf_dnn_shape *s) {
    acf_dnn *d = acf_cuda_dnn(dev);
    acf_cuda_stream(dev); /* makes the device current for the thread */
    if (!ready(d)) return NULL;
    const plan_key key = {*s, way, dev->precision == ACF_PRECISION_FLOAT};
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < sizeof key; i++) hash = (hash ^ ((const unsigned char *)&key)[i]) * 0x100000001b3u;
    if (d->n == PLANS / 2) drop_plans(d);
    acf_dnn_plan *p = &d->plans[hash % PLANS];
    while (p->used && memcmp(&p->key, &key, sizeof key) != 0) p = p + 1 == d->plans + PLANS ? d->plans : p + 1;
    if (!p->used) {
        p->used = true, p->key = key, d->n++;
        p->refused = !describe(&d->lib, p) || !choose(&d->lib, d->handle[0], p);
        cudaGetLastError();
    }
    return p->refused ? NULL : p;
}

size_t acf_dnn_bytes(const acf_dnn_plan *p) { return p->bytes; }

/* ---- running --------------------------------------------------------------------------------------------------- */

/* The forward with fused bias and relu, where cuDNN supports it. */
static cudnnStatus_t forward(const acf_dnn *d, cudnnHandle_t h, acf_dnn_plan *p, const acf_dnn_work *k,
                             bool *finished) {
    const float one = 1, zero = 0;
    *finished = k->bias && !p->unfused;
    if (*finished) {
        cudnnStatus_t status = d->lib.ConvolutionBiasActivationForward(
            h, &one, p->x, k->x, p->w, k->w, p->conv, p->algo, k->workspace, p->bytes, &zero, p->y, k->y, p->bias,
            k->bias, d->act[k->relu], p->y, k->y);
        if (status == CUDNN_STATUS_SUCCESS || p->ran) return status;
        cudaGetLastError();
        p->unfused = true, *finished = false;
    }
    return d->lib.ConvolutionForward(h, &one, p->x, k->x, p->w, k->w, p->conv, p->algo, k->workspace, p->bytes, &zero,
                                     p->y, k->y);
}

acf_status acf_dnn_run(acf_device *dev, acf_dnn_plan *p, const acf_dnn_work *k, bool *done, bool *finished) {
    acf_dnn *d = acf_cuda_dnn(dev);
    const library *l = &d->lib;
    const float one = 1;
    cudnnHandle_t h = d->handle[acf_cuda_is_aside(dev)];
    bool epilogue = false;
    cudnnStatus_t status = l->SetStream(h, acf_cuda_stream(dev));
    if (status == CUDNN_STATUS_SUCCESS) switch (p->key.way) {
        case ACF_DNN_FORWARD: status = forward(d, h, p, k, &epilogue); break;
        case ACF_DNN_TO_X:
            status =
                l->ConvolutionBackwardData(h, &one, p->w, k->w, p->y, k->y, p->conv, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
                                           k->workspace, p->bytes, &k->beta, p->x, k->x);
            break;
        default:
            status = l->ConvolutionBackwardFilter(h, &one, p->x, k->x, p->y, k->y, p->conv,
                                                  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, k->workspace, p->bytes, &k->beta,
                                                  p->w, k->w);
        }
    *done = status == CUDNN_STATUS_SUCCESS;
    if (finished) *finished = epilogue;
    if (*done)
        p->ran = true;
    else if (p->ran)
        return acf_fail(ACF_EDEVICE, "cudnn: a convolution failed: %s", l->GetErrorString(status));
    else
        p->refused = true, cudaGetLastError(); /* cuDNN rejected the plan when it ran */
    return ACF_OK;
}

#else /* built without cuDNN's headers */

acf_status acf_dnn_create(acf_dnn **out) {
    *out = NULL;
    return ACF_OK;
}
void acf_dnn_free(acf_dnn *d) { (void)d; }
acf_dnn_plan *acf_dnn_find(const acf_device *dev, acf_dnn_way way, const acf_dnn_shape *s) {
    return (void)dev, (void)way, (void)s, (acf_dnn_plan *)NULL;
}
size_t acf_dnn_bytes(const acf_dnn_plan *p) { return (void)p, 0; }
acf_status acf_dnn_run(acf_device *dev, acf_dnn_plan *p, const acf_dnn_work *k, bool *done, bool *finished) {
    (void)dev, (void)p, (void)k, (void)finished;
    *done = false;
    return ACF_OK;
}

#endif
