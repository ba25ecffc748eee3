/* Layer normalisation on the GPU: see layer_norm.h.
 *
 * Workload: M = 1e3 to 6e4 rows of C = 32 to 512 numbers: bound by memory, so a warp keeps its row in registers, up
 * to 512 numbers, and reads it once. The backward sums the gradients of scale and shift in the same pass, each warp
 * for its rows. A second launch adds the blocks' sums; nothing in the step waits for it. Longer rows are read again
 * from cache. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/layer_norm.h"
}

#define WARPS 8 /* of a block, one row each at a time */
/* Maximum number of blocks of the backward, each of which writes partial sums; 396 run at once. */
#define BLOCKS(C) ((C) > 128 && (C) <= 256 ? 396 : 512)
#define HELD_MOST 512 /* most numbers of a row in registers, 32 times PER */
#define LANES 8       /* partial sums at a time, 32 columns wide */

/* Loops over this lane's numbers c of a row; the k-th is in held[k]. PER 0: any number of them, and none is in
 * registers. */
#define EACH_HELD(k, c, C)                                                                                             \
    _Pragma("unroll")                                                                                                  \
    for (int k = 0; k < (PER ? PER : (int)(((C) + 31) / 32)); k++)                                                     \
        if (const int64_t c = lane + 32 * k; c < (C))
#define HELD (PER ? PER : 1)
#define EARLY (PER > 0 && PER <= 8) /* dx is read with the others; longer rows leave too few registers */

template <int PER>
static __global__ void __launch_bounds__(32 * WARPS)
    norm_fwd(acf_real *__restrict__ y, acf_real *__restrict__ stat, const acf_real *__restrict__ x,
             const acf_real *__restrict__ scale, const acf_real *__restrict__ shift, const int32_t *rows, int64_t M,
             int64_t C) {
    const int64_t m = acf_thread() / 32;
    const int lane = threadIdx.x % 32;
    acf_real v[HELD], sum = 0, square = 0;
    if (m >= M) return;
    if (m >= acf_true_rows(rows, M)) {
        EACH_HELD(k, c, C) y[m * C + c] = 0;
        return;
    }
    EACH_HELD(k, c, C) {
        const acf_real value = x[m * C + c];
        if (PER) v[k] = value;
        sum += value;
    }
    const acf_real mean = acf_warp_sum(sum) / (acf_real)C;
    EACH_HELD(k, c, C) {
        const acf_real gap = (PER ? v[k] : x[m * C + c]) - mean;
        square += gap * gap;
    }
    const acf_real inverse = 1 / sqrtf(acf_warp_sum(square) / (acf_real)C + (acf_real)ACF_LAYER_NORM_EPS);
    EACH_HELD(k, c, C) y[m * C + c] = ((PER ? v[k] : x[m * C + c]) - mean) * inverse * scale[c] + shift[c];
    if (stat && lane == 0) stat[2 * m] = mean, stat[2 * m + 1] = inverse;
}

/* This block's part of a sum over rows: to (C) = the warps' sums (32 PER numbers each), in their order. Every thread
 * must call it. */
template <int PER> static __device__ void add_warps(acf_real *to, const acf_real *sum, acf_real *memory, int64_t C) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    __syncthreads(); /* the previous call may still be reading */
    EACH_HELD(k, c, C) memory[warp * C + c] = sum[k];
    __syncthreads();
    for (int64_t c = threadIdx.x; c < C; c += blockDim.x) {
        acf_real all = 0;
        for (int w = 0; w < WARPS; w++) all += memory[w * C + c];
        to[c] = all;
    }
}

/* dx as in layer_norm.c. part (blocks,2,C), or NULL: the terms of this block's rows in dscale and dshift; not for
 * PER 0. */
template <int PER>
static __global__ void __launch_bounds__(32 * WARPS, PER > 8 ? 2 : 3)
    norm_bwd(acf_real *__restrict__ dx, acf_real *__restrict__ part, const acf_real *__restrict__ dy,
             const acf_real *__restrict__ stat, const acf_real *__restrict__ x, const acf_real *__restrict__ scale,
             const int32_t *rows, int64_t M, int64_t C) {
    extern __shared__ acf_real memory[];
    const int lane = threadIdx.x % 32;
    const int64_t n = acf_true_rows(rows, M), per = (M + gridDim.x - 1) / gridDim.x;
    const int64_t to = min((blockIdx.x + 1) * per, n);
    acf_real dscale[HELD] = {0}, dshift[HELD] = {0}, g[HELD], h[HELD], there[HELD];
    for (int64_t m = blockIdx.x * per + threadIdx.x / 32; m < to; m += WARPS) {
        const acf_real mean = stat[2 * m], inverse = stat[2 * m + 1];
        acf_real sum = 0, product = 0;
        EACH_HELD(k, c, C) {
            const acf_real d = dy[m * C + c], normal = (x[m * C + c] - mean) * inverse, back = d * scale[c];
            if (EARLY && dx) there[k] = dx[m * C + c];
            if (PER) g[k] = back, h[k] = normal, dscale[k] += d * normal, dshift[k] += d;
            sum += back, product += back * normal;
        }
        if (!dx) continue;
        sum = acf_warp_sum(sum) / (acf_real)C, product = acf_warp_sum(product) / (acf_real)C;
        EACH_HELD(k, c, C) {
            const acf_real back = PER ? g[k] : dy[m * C + c] * scale[c];
            const acf_real normal = PER ? h[k] : (x[m * C + c] - mean) * inverse;
            dx[m * C + c] = (EARLY ? there[k] : dx[m * C + c]) + (back - sum - normal * product) * inverse;
        }
    }
    if (!PER || !part) return;
    add_warps<PER>(part + blockIdx.x * 2 * C, dscale, memory, C);
    add_warps<PER>(part + (blockIdx.x * 2 + 1) * C, dshift, memory, C);
}

/* part (blocks,2,C) for rows that are not in registers: one thread per column. */
static __global__ void wide_sums(acf_real *__restrict__ part, const acf_real *__restrict__ dy,
                                 const acf_real *__restrict__ stat, const acf_real *__restrict__ x, const int32_t *rows,
                                 int64_t M, int64_t C) {
    const int64_t n = acf_true_rows(rows, M), per = (M + gridDim.y - 1) / gridDim.y;
    const int64_t to = min((blockIdx.y + 1) * per, n), c = acf_thread();
    acf_real dscale = 0, dshift = 0;
    if (c >= C) return;
#pragma unroll 4
    for (int64_t m = blockIdx.y * per; m < to; m++) {
        const acf_real d = dy[m * C + c];
        dscale += d * (x[m * C + c] - stat[2 * m]) * stat[2 * m + 1], dshift += d;
    }
    part[blockIdx.y * 2 * C + c] = dscale, part[(blockIdx.y * 2 + 1) * C + c] = dshift;
}

/* dscale and dshift += the blocks' parts, in a fixed order. */
static __global__ void add_parts(acf_real *dscale, acf_real *dshift, const acf_real *__restrict__ part, int64_t blocks,
                                 int64_t C) {
    __shared__ acf_real lane[LANES][32];
    const int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x % 32;
    const int k = threadIdx.x / 32;
    acf_real sum = 0;
    if (c < 2 * C)
#pragma unroll 8
        for (int64_t q = k; q < blocks; q += LANES) sum += part[q * 2 * C + c];
    lane[k][threadIdx.x % 32] = sum;
    __syncthreads();
    if (k > 0 || c >= 2 * C) return;
    for (int j = 1; j < LANES; j++) sum += lane[j][threadIdx.x];
    if (c < C && dscale) dscale[c] += sum;
    if (c >= C && dshift) dshift[c - C] += sum;
}

/* Calls with the smallest PER that holds a row. */
#define BY_WIDTH(kernel, C, ...)                                                                                       \
    do {                                                                                                               \
        if ((C) <= 32)                                                                                                 \
            kernel<1> __VA_ARGS__;                                                                                     \
        else if ((C) <= 64)                                                                                            \
            kernel<2> __VA_ARGS__;                                                                                     \
        else if ((C) <= 128)                                                                                           \
            kernel<4> __VA_ARGS__;                                                                                     \
        else if ((C) <= 256)                                                                                           \
            kernel<8> __VA_ARGS__;                                                                                     \
        else if ((C) <= HELD_MOST)                                                                                     \
            kernel<16> __VA_ARGS__;                                                                                    \
        else                                                                                                           \
            kernel<0> __VA_ARGS__;                                                                                     \
    } while (0)

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_layer_norm_attrs *a = (acf_layer_norm_attrs *)n->attr;
    const acf_tensor *x = n->in[0];
    const int64_t M = x->dim[0], C = x->dim[1];
    if (n->save && !(a->stat = acf_tape_reals(t, 2 * M))) return acf_tape_status(t);
    BY_WIDTH(norm_fwd, C,
             <<<acf_blocks(M, WARPS), 32 * WARPS, 0, acf_cuda_stream(t->dev)>>>(
                 n->out[0]->data, a->stat, x->data, n->in[1]->data, n->in[2]->data, acf_cuda_rows(x), M, C));
    return ACF_LAUNCHED("layer_norm");
}

/* The gradients of scale and shift from the blocks' parts. */
static acf_status add_up(const acf_tape *t, acf_real *dscale, acf_real *dshift, const acf_real *part, int64_t blocks,
                         int64_t C) {
    ACF_TRY(acf_cuda_aside(t, true));
    add_parts<<<acf_blocks(2 * C, 32), 32 * LANES, 0, acf_cuda_stream(t->dev)>>>(dscale, dshift, part, blocks, C);
    ACF_TRY(ACF_LAUNCHED("layer_norm"));
    return acf_cuda_aside(t, false);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_layer_norm_attrs *a = (const acf_layer_norm_attrs *)n->attr;
    acf_tensor *x = n->in[0];
    const int64_t M = x->dim[0], C = x->dim[1], blocks = acf_max(acf_min(acf_ceil_div(M, 2 * WARPS), BLOCKS(C)), 1);
    const acf_real *dy = n->out[0]->grad, *scale = n->in[1]->data;
    acf_real *dx = acf_grad(t, x), *dscale = acf_grad(t, n->in[1]), *dshift = acf_grad(t, n->in[2]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *part = dscale || dshift ? acf_tape_reals(t, blocks * 2 * C) : NULL;
    const int32_t *rows = acf_cuda_rows(x);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    ACF_TRY(acf_tape_status(t));
    const size_t bytes = C <= HELD_MOST && part ? WARPS * (size_t)C * sizeof(acf_real) : 0;
    if (dx || C <= HELD_MOST)
        BY_WIDTH(norm_bwd, C,
                 <<<(unsigned)blocks, 32 * WARPS, bytes, stream>>>(dx, part, dy, a->stat, x->data, scale, rows, M, C));
    if (part && C > HELD_MOST)
        wide_sums<<<dim3(acf_blocks(C, 128), (unsigned)blocks), 128, 0, stream>>>(part, dy, a->stat, x->data, rows, M,
                                                                                  C);
    ACF_TRY(ACF_LAUNCHED("layer_norm"));
    if (part) ACF_TRY(add_up(t, dscale, dshift, part, blocks, C));
    acf_tape_done(t, mark);
    return ACF_OK;
}

ACF_CUDA_OP(layer_norm, forward, backward);
