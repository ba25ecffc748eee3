/* The leaky-ReLU flow on the GPU: see leaky.h; derivatives in docs/math.md, 7. Bound by memory: 8 bytes an element
 * forward, 16 backward. */
#include "ops/rowmat.cuh"

extern "C" {
#include "ops/leaky.h"
}

#define LANES 8        /* steps at a time, for 32 neighbouring ranks */
#define SUM_BLOCKS 256 /* at most, in backward: the last block adds their sums */

/* Slope below zero and its logarithm, in the direction of the flow; in double, by one thread for the block. */
typedef struct bend {
    double slope, log_slope;
} bend;
static __device__ inline bend bend_of(const acf_real *a, bool inverse) {
    __shared__ bend b;
    if (threadIdx.x == 0) {
        const double x = *a, low = x < 0 ? x - log1p(exp(x)) : -log1p(exp(-x));
        b = {inverse ? 1 + exp(-x) : 1 / (1 + exp(-x)), inverse ? -low : low};
    }
    __syncthreads();
    return b;
}

static __global__ void leaky_fwd(acf_real *y, acf_real *logdet, const acf_real *__restrict__ x, const acf_real *a,
                                 bool inverse, acf_subset u) {
    __shared__ int lane[LANES][32];
    const bend b = bend_of(a, inverse);
    const acf_real slope = (acf_real)b.slope;
    const int64_t k = (int64_t)blockIdx.x * 32 + threadIdx.x % 32;
    const int j = threadIdx.x / 32;
    const int32_t r = k < u.N ? u.row[k] : 0, n = k < u.N ? u.size[r] : 0;
    acf_zero_tail(y, u);
    int negative = 0; /* elements below zero in the row; a NaN is not, and passes */
#pragma unroll 4
    for (int32_t t = j; t < n; t += LANES) {
        const int64_t p = u.first[t] + k;
        const acf_real v = x[p];
        y[p] = v < 0 ? slope * v : v;
        negative += v < 0;
    }
    lane[j][threadIdx.x % 32] = negative;
    __syncthreads();
    if (!logdet || j > 0 || k >= u.N) return;
    for (int q = 1; q < LANES; q++) negative += lane[q][threadIdx.x];
    logdet[r] = acf_float_from(negative ? negative * b.log_slope : 0);
}

/* dx += dy slope; da += d log slope / da · Σ over x < 0 of (dy y + dlogdet of its row). part (blocks) is scratch. */
static __global__ void leaky_bwd(acf_real *dx, acf_real *da, const acf_real *__restrict__ dy,
                                 const acf_real *__restrict__ dlogdet, const acf_real *__restrict__ x,
                                 const acf_real *a, bool inverse, double *part, unsigned *ticket, acf_subset u) {
    const acf_real slope = (acf_real)bend_of(a, inverse).slope;
    const int64_t T = u.first[u.D], stride = (int64_t)gridDim.x * blockDim.x;
    double sum = 0;
    for (int64_t p = acf_thread(); p < T; p += stride) {
        const acf_real v = x[p], g = dy ? dy[p] : 0;
        if (dx) dx[p] += v < 0 ? slope * g : g;
        if (v < 0) sum += (double)(g * slope * v + (dlogdet ? dlogdet[u.row_of[p]] : 0));
    }
    if (!da) return;
    sum = acf_block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
    if (!acf_last_block(ticket, gridDim.x)) return;
    sum = acf_block_sum(threadIdx.x < gridDim.x ? __ldcg(&part[threadIdx.x]) : 0.0);
    /* d log α / da = 1 - α = sigmoid(-a); the inverse has the opposite sign. */
    if (threadIdx.x == 0) *da += acf_float_from((inverse ? -1 : 1) / (1 + exp((double)*a)) * sum);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_leaky_attrs *at = (const acf_leaky_attrs *)n->attr;
    const acf_tensor *logdet = n->out[1];
    leaky_fwd<<<acf_blocks(at->u->N, 32), 32 * LANES, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, logdet ? logdet->data : NULL, n->in[0]->data, n->in[1]->data, at->inverse, *at->u);
    return ACF_LAUNCHED("leaky");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_leaky_attrs *at = (const acf_leaky_attrs *)n->attr;
    acf_tensor *x = n->in[0], *a = n->in[1], *logdet = n->out[1];
    acf_real *dx = acf_grad(t, x), *da = acf_grad(t, a);
    ACF_TRY(acf_tape_status(t));
    const unsigned blocks = (unsigned)acf_min(acf_blocks(at->u->T, ACF_THREADS), SUM_BLOCKS);
    leaky_bwd<<<blocks, ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, da, n->out[0]->grad, logdet ? logdet->grad : NULL, x->data, a->data, at->inverse,
        (double *)acf_cuda_scratch(t->dev), acf_cuda_tickets(t->dev), *at->u);
    return ACF_LAUNCHED("leaky");
}

ACF_CUDA_OP(leaky_forward, forward, backward);
ACF_CUDA_OP(leaky_inverse, forward, backward);
