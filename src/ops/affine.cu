/* The affine flow on the GPU: see affine.h; derivatives in docs/math.md, 7. Bound by memory: 16 bytes an element
 * forward, 40 backward. */
#include "ops/rowmat.cuh"

extern "C" {
#include "ops/affine.h"
}

#define LANES 8 /* steps at a time, for 32 neighbouring ranks */

/* An element of st, split into its parts; `inverse`: s and its slope are negated. */
typedef struct head {
    acf_real s, e, slope, shift; /* log-scale; e^s; ds/draw; t */
} head;

template <int C> static __device__ inline head read_head(const acf_real *st, int64_t p, acf_real bound, bool inverse) {
    if (C == 1) return {0, 1, 0, st[p]};
    const float2 v = ((const float2 *)st)[p];
    const acf_real sign = inverse ? -1 : 1, th = tanhf(v.x / bound), s = sign * bound * th;
    return {s, expf(s), sign * (1 - th * th), v.y};
}

/* y, and the sum of s over each row: lane j of a rank handles steps j, j + LANES ..., and the lanes' sums are added
 * in order. */
template <int C>
static __global__ void affine_fwd(acf_real *y, acf_real *logdet, const acf_real *__restrict__ x,
                                  const acf_real *__restrict__ st, acf_real bound, bool inverse, acf_subset u) {
    __shared__ double lane[LANES][32];
    const int64_t k = (int64_t)blockIdx.x * 32 + threadIdx.x % 32;
    const int j = threadIdx.x / 32;
    const int32_t r = k < u.N ? u.row[k] : 0, n = k < u.N ? u.size[r] : 0;
    acf_zero_tail(y, u);
    double sum = 0;
#pragma unroll 4
    for (int32_t t = j; t < n; t += LANES) {
        const int64_t p = u.first[t] + k;
        const head h = read_head<C>(st, p, bound, inverse);
        y[p] = inverse ? (x[p] - h.shift) * h.e : x[p] * h.e + h.shift;
        sum += (double)h.s;
    }
    if (!logdet) return;
    lane[j][threadIdx.x % 32] = sum;
    __syncthreads();
    if (j > 0 || k >= u.N) return;
    for (int q = 1; q < LANES; q++) sum += lane[q][threadIdx.x];
    logdet[r] = acf_float_from(sum);
}

/* Gradients. dy and dlogdet may be NULL (no gradient).
 *     forward   draw += (dl + dy x e^s) slope,         dt += dy
 *     inverse   draw += (dl + dy (x - t) e^s) slope,   dt -= dy e^s;      dx += dy e^s in both
 */
template <int C>
static __global__ void affine_bwd(acf_real *dx, acf_real *dst, const acf_real *__restrict__ dy,
                                  const acf_real *__restrict__ dlogdet, const acf_real *__restrict__ x,
                                  const acf_real *__restrict__ st, acf_real bound, bool inverse, acf_subset u) {
    const int64_t T = u.first[u.D];
    ACF_EACH(p, T) {
        const head h = read_head<C>(st, p, bound, inverse);
        const acf_real g = dy ? dy[p] : 0, dl = dlogdet ? dlogdet[u.row_of[p]] : 0;
        const acf_real value = inverse ? x[p] - h.shift : x[p], draw = (dl + g * value * h.e) * h.slope,
                       dt = inverse ? -g * h.e : g;
        if (dst && C == 1) dst[p] += dt;
        if (dst && C == 2) dst[2 * p] += draw, dst[2 * p + 1] += dt;
        if (dx) dx[p] += g * h.e;
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_affine_attrs *a = (const acf_affine_attrs *)n->attr;
    const acf_tensor *x = n->in[0], *st = n->in[1], *logdet = n->out[1];
    auto kernel = acf_tensor_width(st) == 1 ? affine_fwd<1> : affine_fwd<2>;
    kernel<<<acf_blocks(a->u->N, 32), 32 * LANES, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, logdet ? logdet->data : NULL, x->data, st->data, (acf_real)a->bound, a->inverse, *a->u);
    return ACF_LAUNCHED("affine");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_affine_attrs *a = (const acf_affine_attrs *)n->attr;
    acf_tensor *x = n->in[0], *st = n->in[1], *logdet = n->out[1];
    acf_real *dx = acf_grad(t, x), *dst = acf_grad(t, st);
    ACF_TRY(acf_tape_status(t));
    auto kernel = acf_tensor_width(st) == 1 ? affine_bwd<1> : affine_bwd<2>;
    kernel<<<acf_each_blocks(a->u->T), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, dst, n->out[0]->grad, logdet ? logdet->grad : NULL, x->data, st->data, (acf_real)a->bound, a->inverse,
        *a->u);
    return ACF_LAUNCHED("affine");
}

ACF_CUDA_OP(affine_forward, forward, backward);
ACF_CUDA_OP(affine_inverse, forward, backward);
