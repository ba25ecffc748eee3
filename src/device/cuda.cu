/* A GPU as a device: memory, copies, streams, and failure messages. See device.h for the contract and cuda.cuh for
 * the functions that kernels use.
 *
 * All work goes to one stream, in order. Only sync (and a copy to pageable host memory) waits for it. The work
 * between two syncs can be captured in a CUDA graph if it has run once before: arenas then have their blocks, and
 * products have their plans. */
#include "device/cuda.cuh"

#include <stdio.h>
#include <string.h>

#define OLDEST_MAJOR 8 /* compute capability: the oldest that the machine code and PTX are built for */

/* The state of an acf_device. */
typedef struct cuda_state {
    int n, processors;
    char name[sizeof((acf_device_facts *)0)->name];
    cudaStream_t stream; /* the device's own */
    bool capturing;      /* enqueued work is recorded in a CUDA graph and does not run */
    cudaStream_t beside; /* second stream, for work that runs beside the main stream in a captured step */
    cudaEvent_t forked, joined, marks[ACF_MARKS];
    bool aside, left_behind; /* work goes to the second stream now; that stream has pending work */
    acf_products *products;
    acf_dnn *dnn;
    void *scratch, *scratch_beside;
    struct shared {
        unsigned tickets[ACF_TICKETS], tickets_beside[ACF_TICKETS];
        int32_t left_out;
        acf_fault fault;
    } * shared;       /* shared by kernels, in device memory */
    acf_fault *fault; /* pinned: sync copies the device's fault record here */
} cuda_state;

struct acf_stream {
    cudaStream_t stream;
};

static cuda_state *state_of(const acf_device *dev) { return (cuda_state *)dev->state; }

cudaStream_t acf_cuda_stream(const acf_device *dev) {
    cudaSetDevice(state_of(dev)->n); /* fails only where the next call fails, too */
    if (state_of(dev)->aside) return state_of(dev)->beside;
    return dev->stream ? dev->stream->stream : state_of(dev)->stream;
}

int acf_cuda_processors(const acf_device *dev) { return state_of(dev)->processors; }
unsigned *acf_cuda_tickets(const acf_device *dev) {
    return state_of(dev)->aside ? state_of(dev)->shared->tickets_beside : state_of(dev)->shared->tickets;
}
int32_t *acf_cuda_left_out(const acf_device *dev) { return &state_of(dev)->shared->left_out; }
acf_fault *acf_cuda_fault(const acf_device *dev) { return &state_of(dev)->shared->fault; }
void *acf_cuda_scratch(const acf_device *dev) {
    return state_of(dev)->aside ? state_of(dev)->scratch_beside : state_of(dev)->scratch;
}
acf_products *acf_cuda_products(const acf_device *dev) { return state_of(dev)->products; }
acf_dnn *acf_cuda_dnn(const acf_device *dev) { return state_of(dev)->dnn; }
bool acf_cuda_is_aside(const acf_device *dev) { return state_of(dev)->aside; }

/* ---- failures -------------------------------------------------------------------------------------------------- */

acf_status acf_cuda_status(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return ACF_OK;
    cudaGetLastError(); /* clears the error, where it can be cleared */
    return acf_fail(error == cudaErrorMemoryAllocation ? ACF_EMEMORY : ACF_EDEVICE, "cuda: %s: %s (%s)", what,
                    cudaGetErrorString(error), cudaGetErrorName(error));
}

/* The message for a fault that a kernel recorded. */
static acf_status fault_status(const acf_fault *f) {
    const long long a = f->number[0], b = f->number[1], c = f->number[2], d = f->number[3];
    switch (f->kind) {
    case ACF_FAULT_INDEX:
        return acf_fail(ACF_EDATA, "%s: the index at place %lld is %lld; expected -1 to %lld", f->op, a, b, c);
    case ACF_FAULT_REPEAT: return acf_fail(ACF_EDATA, "%s: row %lld is the target of several indices", f->op, a);
    case ACF_FAULT_SINGULAR:
        return acf_fail(ACF_ENUMERIC, "%s: the matrix of row %lld is singular at column %lld", f->op, a, b);
    case ACF_FAULT_SLOT:
        return acf_fail(ACF_EDATA, "%s: the slot at place %lld is %lld; expected 0 to %lld", f->op, a, b, c);
    case ACF_FAULT_CODE:
        if (d == 0) return acf_fail(ACF_EDATA, "%s: row %lld, column %lld: the column has no classes", f->op, a, b);
        return acf_fail(ACF_EDATA,
                        "%s: row %lld, column %lld: the code is %lld, but the column has %lld classes (0 to %lld)",
                        f->op, a, b, c, d, d - 1);
    case ACF_FAULT_CHOICE:
        return acf_fail(ACF_ENUMERIC, "%s: row %lld, column %lld: the logits are not finite, no class can be chosen",
                        f->op, a, b);
    case ACF_FAULT_COVARIANCE:
        return acf_fail(
            ACF_ENUMERIC,
            "%s: row %lld: a covariance of the mixture is not positive definite on its columns (place %lld)", f->op, a,
            b);
    case ACF_FAULT_PROBABILITY: {
        const uint32_t bits = (uint32_t)c;
        float q;
        memcpy(&q, &bits, sizeof q);
        return acf_fail(ACF_EUSAGE,
                        "%s: row %lld, column %lld: the probability is %g; expected 0 < q < 1 "
                        "(the quantiles of 0 and 1 are infinite)",
                        f->op, a, b, (double)q);
    }
    default: return ACF_OK;
    }
}

static double gibibytes(size_t bytes) { return (double)bytes / 0x1p30; }

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* The context of the device's memory is the device. */
static void *cuda_alloc(void *ctx, size_t bytes) {
    void *p = NULL;
    cudaSetDevice(state_of((const acf_device *)ctx)->n);
    if (cudaMalloc(&p, bytes ? bytes : 1) == cudaSuccess) return p;
    cudaGetLastError();
    return NULL;
}

static void cuda_free(void *ctx, void *p) {
    cudaSetDevice(state_of((const acf_device *)ctx)->n);
    cudaFree(p);
}

/* Freed in stream order, after the kernels that still read it. */
static void cuda_poison(void *ctx, void *p, size_t bytes) {
    cudaMemsetAsync(p, 0xFF, bytes, acf_cuda_stream((const acf_device *)ctx));
}

static acf_status cuda_refuse(void *ctx, size_t bytes, size_t used) {
    const cuda_state *s = state_of((const acf_device *)ctx);
    size_t left = 0, all = 0;
    cudaSetDevice(s->n);
    cudaMemGetInfo(&left, &all);
    return acf_fail(ACF_EMEMORY,
                    "out of memory on cuda:%d (%s): %.3f GiB requested, %.2f GiB in use here, %.2f of %.2f GiB free; "
                    "try a smaller batch",
                    s->n, s->name, gibibytes(bytes), gibibytes(used), gibibytes(left), gibibytes(all));
}

static acf_status cuda_memory(acf_device *dev, size_t *free_bytes, size_t *total_bytes) {
    cudaSetDevice(state_of(dev)->n);
    ACF_CUDA(cudaMemGetInfo(free_bytes, total_bytes));
    return ACF_OK;
}

static acf_status refuse_captured(const char *what) {
    return acf_fail(ACF_EDEVICE, "cuda: %s; a captured step cannot do that", what);
}

/* cudaMemcpyAsync takes bytes from pageable memory before it returns, so the caller may change them afterwards. */
static acf_status cuda_copy(acf_device *dev, void *dst, const void *src, size_t bytes, acf_copy_kind kind) {
    static const cudaMemcpyKind direction[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                               cudaMemcpyDeviceToDevice};
    if (kind != ACF_ON_DEVICE && state_of(dev)->capturing)
        return refuse_captured("numbers are copied to or from the host");
    ACF_CUDA(cudaMemcpyAsync(dst, src, bytes, direction[kind], acf_cuda_stream(dev)));
    return ACF_OK;
}

static acf_status cuda_zero(acf_device *dev, void *dst, size_t bytes) {
    ACF_CUDA(cudaMemsetAsync(dst, 0, bytes, acf_cuda_stream(dev)));
    return ACF_OK;
}

static __global__ void fill(acf_real *dst, acf_real value, int64_t n) {
    int64_t i = acf_thread();
    if (i < n) dst[i] = value;
}

static acf_status cuda_fill(acf_device *dev, acf_real *dst, acf_real value, int64_t n) {
    fill<<<acf_blocks(n, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(dev)>>>(dst, value, n);
    return ACF_LAUNCHED("fill");
}

acf_status acf_cuda_take_left_out(acf_device *dev, int64_t *out) {
    int32_t n;
    ACF_TRY(cuda_copy(dev, &n, acf_cuda_left_out(dev), sizeof n, ACF_TO_HOST));
    ACF_TRY(cuda_zero(dev, acf_cuda_left_out(dev), sizeof n));
    ACF_CUDA(cudaStreamSynchronize(acf_cuda_stream(dev)));
    *out = n;
    return ACF_OK;
}

/* ---- streams --------------------------------------------------------------------------------------------------- */

static acf_status cuda_stream_open(acf_device *dev, acf_stream **out) {
    acf_stream *s = (acf_stream *)acf_alloc(sizeof *s, "a stream");
    if (!s) return ACF_EMEMORY;
    cudaSetDevice(state_of(dev)->n);
    acf_status status = acf_cuda_status(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking), "a stream");
    if (status)
        acf_release(s);
    else
        *out = s;
    return status;
}

static void cuda_stream_close(acf_device *dev, acf_stream *s) {
    if (dev->stream == s) dev->stream = NULL;
    cudaStreamDestroy(s->stream);
    acf_release(s);
}

static acf_status cuda_sync(acf_device *dev) {
    cuda_state *s = state_of(dev);
    cudaStream_t stream = acf_cuda_stream(dev);
    if (s->capturing) return refuse_captured("the host waits");
    ACF_CUDA(cudaMemcpyAsync(s->fault, &s->shared->fault, sizeof *s->fault, cudaMemcpyDeviceToHost, stream));
    ACF_TRY(acf_cuda_status(cudaStreamSynchronize(stream), "the work before this failed"));
    if (s->fault->kind == ACF_FAULT_NONE) return ACF_OK;
    ACF_CUDA(cudaMemsetAsync(&s->shared->fault, 0, sizeof s->shared->fault, stream));
    return fault_status(s->fault);
}

static acf_status cuda_gemm(acf_device *dev, const acf_gemm *g) { return acf_cuda_gemm(dev, g, NULL, false); }

/* ---- two streams ----------------------------------------------------------------------------------------------- */

acf_status acf_cuda_turn(const acf_device *dev, bool aside) {
    cuda_state *s = state_of(dev);
    if (!s->capturing) return ACF_OK;
    if (aside) {
        ACF_CUDA(cudaEventRecord(s->forked, acf_cuda_stream(dev)));
        ACF_CUDA(cudaStreamWaitEvent(s->beside, s->forked, 0));
        s->left_behind = true;
    }
    s->aside = aside;
    return ACF_OK;
}

acf_status acf_cuda_join(acf_device *dev) {
    cuda_state *s = state_of(dev);
    if (!s->left_behind) return ACF_OK;
    s->aside = s->left_behind = false;
    ACF_CUDA(cudaEventRecord(s->joined, s->beside));
    ACF_CUDA(cudaStreamWaitEvent(acf_cuda_stream(dev), s->joined, 0));
    return ACF_OK;
}

/* ---- host memory that the device reads ------------------------------------------------------------------------- */

void *acf_cuda_pinned_alloc(acf_device *dev, size_t bytes) {
    void *p = NULL;
    cudaSetDevice(state_of(dev)->n);
    if (cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocDefault) == cudaSuccess) return p;
    cudaGetLastError();
    acf_fail(ACF_EMEMORY, "out of memory: %zu bytes of pinned host memory", bytes);
    return NULL;
}

void acf_cuda_pinned_free(acf_device *dev, void *p) {
    if (!p) return;
    cudaSetDevice(state_of(dev)->n);
    cudaFreeHost(p);
}

acf_status acf_cuda_mark(acf_device *dev, int mark) {
    ACF_CUDA(cudaEventRecord(state_of(dev)->marks[mark], acf_cuda_stream(dev)));
    return ACF_OK;
}

acf_status acf_cuda_wait(acf_device *dev, int mark) {
    cudaSetDevice(state_of(dev)->n);
    ACF_CUDA(cudaEventSynchronize(state_of(dev)->marks[mark]));
    return ACF_OK;
}

/* ---- captured work --------------------------------------------------------------------------------------------- */

struct acf_graph {
    cudaGraphExec_t exec;
};

acf_status acf_cuda_capture_begin(acf_device *dev) {
    ACF_CUDA(cudaStreamBeginCapture(acf_cuda_stream(dev), cudaStreamCaptureModeThreadLocal));
    state_of(dev)->capturing = true;
    return ACF_OK;
}

acf_status acf_cuda_capture_end(acf_device *dev, acf_graph **out) {
    cudaGraph_t graph = NULL;
    state_of(dev)->aside = state_of(dev)->left_behind = state_of(dev)->capturing =
        false; /* a step that failed may have left them set */
    cudaStream_t stream = acf_cuda_stream(dev);
    acf_status status = acf_cuda_status(cudaStreamEndCapture(stream, &graph), "capturing a step");
    acf_graph *g = !status && out ? (acf_graph *)acf_alloc(sizeof *g, "a captured step") : NULL;
    if (g) {
        status = acf_cuda_status(cudaGraphInstantiate(&g->exec, graph, 0), "a captured step");
        if (!status) status = acf_cuda_status(cudaGraphUpload(g->exec, stream), "a captured step");
    } else if (!status && out)
        status = ACF_EMEMORY;
    if (graph) cudaGraphDestroy(graph);
    if (status)
        acf_release(g);
    else if (out)
        *out = g;
    return status;
}

acf_status acf_cuda_graph_run(acf_device *dev, acf_graph *g) {
    ACF_CUDA(cudaGraphLaunch(g->exec, acf_cuda_stream(dev)));
    return ACF_OK;
}

void acf_cuda_graph_free(acf_device *dev, acf_graph *g) {
    if (!g) return;
    cudaSetDevice(state_of(dev)->n);
    cudaGraphExecDestroy(g->exec);
    acf_release(g);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

acf_status acf_cuda_count(int *out) {
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaErrorNoDevice)
        n = 0;
    else if (error == cudaErrorInsufficientDriver)
        return acf_fail(ACF_EDEVICE, "there is no NVIDIA driver, or one that is too old for CUDA %d",
                        CUDART_VERSION / 1000);
    else
        ACF_TRY(acf_cuda_status(error, "counting devices"));
    *out = n;
    return ACF_OK;
}

acf_status acf_cuda_facts(int n, acf_device_facts *out) {
    cudaDeviceProp p;
    ACF_CUDA(cudaGetDeviceProperties(&p, n));
    snprintf(out->name, sizeof out->name, "%s", p.name);
    out->memory = p.totalGlobalMem;
    out->major = p.major, out->minor = p.minor;
    return ACF_OK;
}

static void cuda_close(acf_device *dev) {
    cuda_state *s = state_of(dev);
    cudaSetDevice(s->n);
    if (s->stream) cudaStreamSynchronize(s->stream);
    acf_products_free(s->products);
    acf_dnn_free(s->dnn);
    if (s->scratch) cudaFree(s->scratch);
    if (s->scratch_beside) cudaFree(s->scratch_beside);
    if (s->beside) cudaStreamDestroy(s->beside);
    if (s->forked) cudaEventDestroy(s->forked);
    if (s->joined) cudaEventDestroy(s->joined);
    for (int k = 0; k < ACF_MARKS; k++)
        if (s->marks[k]) cudaEventDestroy(s->marks[k]);
    if (s->shared) cudaFree(s->shared);
    if (s->fault) cudaFreeHost(s->fault);
    if (s->stream) cudaStreamDestroy(s->stream);
    acf_release(s);
    acf_release(dev);
}

static acf_status cuda_again(const acf_device *dev, acf_device **out) {
    return acf_cuda_open(state_of(dev)->n, dev->plugin, out);
}

static const acf_device_table cuda_table = {"cuda",    cuda_close,       cuda_copy,         cuda_zero,
                                            cuda_fill, cuda_stream_open, cuda_stream_close, cuda_sync,
                                            cuda_gemm, cuda_memory,      cuda_again};

/* Creates what the device needs besides memory for tensors. On failure cuda_close frees what exists. */
static acf_status prepare(acf_device *dev) {
    cuda_state *s = state_of(dev);
    acf_device_facts f;
    ACF_TRY(acf_cuda_facts(s->n, &f));
    memcpy(s->name, f.name, sizeof s->name);
    if (f.major < OLDEST_MAJOR)
        return acf_fail(ACF_EDEVICE, "cuda:%d (%s) has compute capability %d.%d; acflow needs %d.0 or newer", s->n,
                        f.name, f.major, f.minor, OLDEST_MAJOR);
    ACF_CUDA(cudaSetDevice(s->n));
    ACF_CUDA(cudaDeviceGetAttribute(&s->processors, cudaDevAttrMultiProcessorCount, s->n));
    ACF_CUDA(cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    ACF_CUDA(cudaStreamCreateWithFlags(&s->beside, cudaStreamNonBlocking));
    ACF_CUDA(cudaEventCreateWithFlags(&s->forked, cudaEventDisableTiming));
    ACF_CUDA(cudaEventCreateWithFlags(&s->joined, cudaEventDisableTiming));
    for (int k = 0; k < ACF_MARKS; k++)
        ACF_CUDA(cudaEventCreateWithFlags(&s->marks[k], cudaEventDisableTiming | cudaEventBlockingSync));
    s->scratch = cuda_alloc(dev, ACF_SCRATCH);
    s->scratch_beside = s->scratch ? cuda_alloc(dev, ACF_SCRATCH) : NULL;
    if (!s->scratch_beside) return cuda_refuse(dev, 2 * ACF_SCRATCH, 0);
    ACF_CUDA(cudaMalloc((void **)&s->shared, sizeof *s->shared));
    ACF_CUDA(cudaMemsetAsync(s->shared, 0, sizeof *s->shared, s->stream));
    ACF_CUDA(cudaHostAlloc((void **)&s->fault, sizeof *s->fault, cudaHostAllocDefault));
    ACF_TRY(acf_dnn_create(&s->dnn));
    return acf_products_create(&s->products);
}

acf_status acf_cuda_open(int n, const acf_plugin *plugin, acf_device **out) {
    acf_device *dev = (acf_device *)acf_alloc_zero(sizeof *dev, "a device");
    cuda_state *s = dev ? (cuda_state *)acf_alloc_zero(sizeof *s, "a device") : NULL;
    if (!s) {
        acf_release(dev);
        return ACF_EMEMORY;
    }
    s->n = n;
    dev->table = &cuda_table;
    dev->kind = ACF_DEVICE_CUDA;
    dev->threads = 1;
    dev->memory = {dev, cuda_alloc, cuda_free, 256, false, cuda_poison, cuda_refuse};
    dev->state = s;
    dev->plugin = plugin;
    acf_status status = prepare(dev);
    if (status)
        cuda_close(dev);
    else
        *out = dev;
    return status;
}
