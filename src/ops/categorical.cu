/* Categories on the GPU: see categorical.h; formulas in docs/math.md, 8.
 *
 * Workload: up to 300,000 elements with slices of 2 to some thousands of classes. One warp per element: its lanes
 * share the slice, and their sums, in double, have one order. Elements after the last of a packed tensor have column
 * -1: their log-probability is 0 and their code -1. */
#include "ops/classes.cuh"

#include "base/rng.cuh"

#define WHOLE 0xffffffffu

/* An element's slice of the logits. */
typedef struct slice {
    const acf_real *logit;
    int32_t n, row, column; /* n = 0: the element has none */
} slice;

static __device__ slice slice_at(const acf_categorical_attrs &a, const acf_real *logits, int64_t i, int64_t W) {
    const int32_t column = a.draw.at.column[i];
    const bool there = column >= 0 && column < a.classes.D;
    const int32_t n = there ? a.classes.count[column] : 0;
    return {n ? logits + i * W + a.classes.first[column] : logits, n, a.draw.at.row[i], column};
}

/* Records a fault if an element's code is not valid, once a warp. Elements after the last are skipped. */
static __device__ void refuse(const slice &s, int32_t code, acf_fault *fault, const char *op) {
    if (threadIdx.x % 32 == 0 && s.row >= 0) acf_report(fault, op, ACF_FAULT_CODE, s.row, s.column, code, s.n);
}

/* The slice's largest logit, ignoring NaN, and *sum = Σ e^(logit - largest), in which a NaN propagates; in every
 * lane. */
static __device__ double exp_sum(const slice &s, double *sum) {
    acf_real top = -INFINITY;
    double total = 0;
    for (int32_t k = threadIdx.x % 32; k < s.n; k += 32) top = s.logit[k] > top ? s.logit[k] : top;
    for (int lane = 16; lane > 0; lane /= 2) top = fmaxf(top, __shfl_xor_sync(WHOLE, top, lane));
    for (int32_t k = threadIdx.x % 32; k < s.n; k += 32) total += exp((double)s.logit[k] - (double)top);
    *sum = acf_warp_sum(total);
    return (double)top;
}

/* ---- log-probability ------------------------------------------------------------------------------------------- */

static __global__ void logp_fwd(acf_real *__restrict__ logp, acf_categorical_attrs a,
                                const acf_real *__restrict__ logits, int64_t T, int64_t W, acf_fault *fault,
                                const char *op) {
    const int64_t i = acf_thread() / 32;
    if (i >= T) return;
    const slice s = slice_at(a, logits, i, W);
    const int32_t code = a.given[i];
    double y = 0;
    if (code < 0 || code >= s.n)
        refuse(s, code, fault, op);
    else {
        double sum, top = exp_sum(s, &sum);
        y = ((double)s.logit[code] - top) - log(sum);
    }
    if (threadIdx.x % 32 == 0) logp[i] = acf_real_from_cuda(y);
}

/* dlogits += dlogp ([k = code] - softmax_k) inside the slices; the softmax is computed again, in double. */
static __global__ void logp_bwd(acf_real *__restrict__ dlogits, acf_categorical_attrs a,
                                const acf_real *__restrict__ dlogp, const acf_real *__restrict__ logits, int64_t T,
                                int64_t W) {
    const int64_t i = acf_thread() / 32;
    if (i >= T) return;
    const slice s = slice_at(a, logits, i, W);
    const int32_t code = a.given[i];
    if (code < 0 || code >= s.n) return;
    double sum, top = exp_sum(s, &sum);
    const acf_real g = dlogp[i];
    acf_real *d = dlogits + (s.logit - logits);
    for (int32_t k = threadIdx.x % 32; k < s.n; k += 32)
        d[k] += (k == code ? g : 0) - (acf_real)((double)g / sum * exp((double)s.logit[k] - top));
}

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    acf_categorical_attrs *a = (acf_categorical_attrs *)n->attr;
    const int64_t T = n->in[0]->dim[0], W = n->in[0]->dim[1];
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (n->save) { /* the caller's codes are borrowed only for the call */
        int32_t *copy = acf_tape_ints(t, T);
        ACF_TRY(acf_tape_status(t));
        ACF_CUDA(cudaMemcpyAsync(copy, a->given, (size_t)T * sizeof *copy, cudaMemcpyDeviceToDevice, stream));
        a->given = copy;
    }
    logp_fwd<<<acf_blocks(32 * T, ACF_THREADS), ACF_THREADS, 0, stream>>>(n->out[0]->data, *a, n->in[0]->data, T, W,
                                                                          acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("categorical_logp");
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const int64_t T = n->in[0]->dim[0], W = n->in[0]->dim[1];
    acf_real *dlogits = acf_grad(t, n->in[0]);
    if (!dlogits) return acf_tape_status(t);
    logp_bwd<<<acf_blocks(32 * T, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dlogits, *(const acf_categorical_attrs *)n->attr, n->out[0]->grad, n->in[0]->data, T, W);
    return ACF_LAUNCHED("categorical_logp");
}

ACF_CUDA_OP(categorical_logp, logp_forward, logp_backward);

/* ---- most probable class, sample ------------------------------------------------------------------------------- */

/* The first largest, -1 if a logit is NaN; in every lane. */
static __device__ int32_t first_largest(const slice &s) {
    acf_real top = -INFINITY;
    int32_t best = INT32_MAX;
    bool nan = false;
    for (int32_t k = threadIdx.x % 32; k < s.n; k += 32) {
        nan |= isnan(s.logit[k]);
        if (best == INT32_MAX || s.logit[k] > top) top = s.logit[k], best = k;
    }
    for (int lane = 16; lane > 0; lane /= 2) {
        const acf_real other = __shfl_xor_sync(WHOLE, top, lane);
        const int32_t at = __shfl_xor_sync(WHOLE, best, lane);
        if (other > top || (other == top && at < best)) top = other, best = at;
    }
    return __any_sync(WHOLE, nan) ? -1 : best;
}

/* Class k with probability softmax_k for a uniform u: the first at which the sum of weights exceeds u times their
 * total. */
static __device__ int32_t pick(const slice &s, double u) {
    double sum, top = exp_sum(s, &sum), before = 0;
    int32_t last = -1;
    if (!isfinite(sum)) return -1;
    const int lane = threadIdx.x % 32;
    for (int32_t k0 = 0; k0 < s.n; k0 += 32) {
        const double w = k0 + lane < s.n ? exp((double)s.logit[k0 + lane] - top) : 0;
        double up_to = w;
        for (int d = 1; d < 32; d *= 2) {
            const double lower = __shfl_up_sync(WHOLE, up_to, d);
            if (lane >= d) up_to += lower;
        }
        const unsigned can = __ballot_sync(WHOLE, w > 0),
                       passed = __ballot_sync(WHOLE, w > 0 && before + up_to > u * sum);
        if (passed) return k0 + __ffs((int)passed) - 1;
        if (can) last = k0 + 31 - __clz((int)can);
        before += __shfl_sync(WHOLE, up_to, 31);
    }
    return last; /* a remainder of rounding: the last class with positive probability */
}

static __global__ void choose(acf_categorical_attrs a, const acf_real *__restrict__ logits, int64_t T, int64_t W,
                              bool draws, acf_fault *fault, const char *op) {
    const int64_t i = acf_thread() / 32;
    if (i >= T) return;
    const slice s = slice_at(a, logits, i, W);
    int32_t code = -1;
    if (s.n == 0)
        refuse(s, 0, fault, op);
    else if (draws) {
        const uint64_t id = a.draw.row_id ? a.draw.row_id[s.row] : (uint64_t)s.row;
        code = pick(s, acf_rng_uniform_cuda({a.draw.seed, id, ACF_STREAM_CATEGORY, (uint32_t)s.column,
                                             a.draw.now ? *a.draw.now : a.draw.draw}));
    } else
        code = first_largest(s);
    if (threadIdx.x % 32) return;
    a.found[i] = code;
    if (s.n && code < 0) acf_report(fault, op, ACF_FAULT_CHOICE, s.row, s.column, 0);
}

static acf_status choose_forward(acf_tape *t, acf_node *n, bool draws) {
    const int64_t T = n->in[0]->dim[0], W = n->in[0]->dim[1];
    choose<<<acf_blocks(32 * T, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        *(const acf_categorical_attrs *)n->attr, n->in[0]->data, T, W, draws, acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("categories");
}

static acf_status argmax_forward(acf_tape *t, acf_node *n) { return choose_forward(t, n, false); }
static acf_status sample_forward(acf_tape *t, acf_node *n) { return choose_forward(t, n, true); }

ACF_CUDA_OP(categorical_argmax, argmax_forward, NULL);
ACF_CUDA_OP(categorical_sample, sample_forward, NULL);
