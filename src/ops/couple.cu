/* The affine coupling of images on the GPU: see couple.h.
 *
 * Workload: 20 to 40 times a step on N = 16 to 256 images of 1e3 to 1e4 numbers: bound by memory. Sums are double.
 * The last block of an image adds its blocks' sums in order. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/couple.h"
}

/* acf_pattern_keeps for number i of the image. */
static __device__ inline bool is_kept(const acf_couple_shape &s, int64_t i) {
    const acf_cell pixel = acf_cell_of(i, s.C);
    if (s.p.kind == ACF_QUARTER) return (4 * pixel.column / s.C % 2 != 0) == s.p.other;
    const acf_cell line = acf_cell_of(pixel.row, s.W);
    return ((line.column + line.row % s.H) % 2 != 0) == s.p.other;
}

static __device__ inline bool is_on(acf_real m) { return m > 0.5f; }

/* ---- what the network sees ------------------------------------------------------------------------------------- */

static __global__ void input_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x,
                                 const acf_real *__restrict__ b, const acf_real *__restrict__ u, acf_couple_shape s,
                                 int64_t n) {
    ACF_EACH(i, n) {
        const bool known = is_on(b[i]) || (is_on(u[i]) && is_kept(s, i));
        const acf_cell at = acf_cell_of(i, s.C);
        const acf_real v = known ? x[i] : 0;
        acf_real *to = y + 3 * at.row * s.C + at.column;
        to[0] = v < 0 ? 0 : v; /* a NaN stays one */
        to[s.C] = v > 0 ? 0 : -v;
        to[2 * s.C] = known;
    }
}

static __global__ void input_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                                 const acf_real *__restrict__ x, const acf_real *__restrict__ b,
                                 const acf_real *__restrict__ u, acf_couple_shape s, int64_t n) {
    ACF_EACH(i, n) {
        if (is_on(b[i]) || (is_on(u[i]) && is_kept(s, i))) {
            const acf_cell at = acf_cell_of(i, s.C);
            const acf_real v = x[i], *d = dy + 3 * at.row * s.C + at.column;
            dx[i] += v > 0 ? d[0] : v < 0 ? -d[s.C] : 0;
        }
    }
}

static acf_status input_forward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->in[0]);
    input_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, n->in[0]->data, n->in[1]->data, n->in[2]->data, *(const acf_couple_shape *)n->attr, count);
    return ACF_LAUNCHED("couple_input");
}

static acf_status input_backward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->in[0]);
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    input_bwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, n->out[0]->grad, n->in[0]->data, n->in[1]->data, n->in[2]->data, *(const acf_couple_shape *)n->attr, count);
    return ACF_LAUNCHED("couple_input");
}

ACF_CUDA_OP(couple_input, input_forward, input_backward);

/* ---- scale and shift ------------------------------------------------------------------------------------------- */

#define IMAGE_BLOCKS 16    /* of an image, at most */
#define BLOCK_NUMBERS 1024 /* least numbers of a block */

/* Block (n,p): every pieces-th run of threads of image n, from the p-th on. logdet may be NULL. */
static __global__ void move_fwd(acf_real *__restrict__ y, acf_real *logdet, double *part, unsigned *tickets,
                                const acf_real *__restrict__ x, const acf_real *__restrict__ st, const acf_real *gp,
                                const acf_real *g0p, const acf_real *__restrict__ u, acf_couple_shape s, int64_t size) {
    const acf_real g = *gp, g0 = *g0p;
    const int64_t n = blockIdx.x;
    double sum = 0;
    for (int64_t k = (int64_t)blockIdx.y * blockDim.x + threadIdx.x; k < size; k += (int64_t)gridDim.y * blockDim.x) {
        const int64_t i = n * size + k;
        const acf_real v = x[i];
        if (!is_on(u[i]) || is_kept(s, i)) {
            y[i] = v;
            continue;
        }
        const acf_cell at = acf_cell_of(i, s.C);
        const acf_real *raw = st + 2 * at.row * s.C + at.column, shift = raw[s.C], scale = g * tanhf(raw[0]) + g0;
        y[i] = s.inverse ? v * expf(-scale) - shift : (v + shift) * expf(scale);
        sum += (double)scale;
    }
    if (!logdet) return;
    sum = acf_block_sum(sum);
    if (gridDim.y > 1) {
        if (threadIdx.x == 0) part[n * gridDim.y + blockIdx.y] = sum;
        if (!acf_last_block(&tickets[n], gridDim.y)) return;
        sum = 0;
        for (unsigned p = 0; p < gridDim.y; p++) sum += __ldcg(&part[n * gridDim.y + p]);
    }
    if (threadIdx.x == 0) logdet[n] = acf_float_from(s.inverse ? -sum : sum);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_couple_shape *s = (const acf_couple_shape *)n->attr;
    const acf_tensor *logdet = n->out[1];
    const int64_t size = s->H * s->W * s->C;
    if (s->N == 0) return ACF_OK;
    const int64_t blocks =
        s->N > ACF_TICKETS ? 1 : acf_min(acf_max(acf_ceil_div(size, BLOCK_NUMBERS), 1), IMAGE_BLOCKS);
    const dim3 grid((unsigned)s->N, (unsigned)blocks);
    move_fwd<<<grid, ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, logdet ? logdet->data : NULL, (double *)acf_cuda_scratch(t->dev), acf_cuda_tickets(t->dev),
        n->in[0]->data, n->in[1]->data, n->in[2]->data, n->in[3]->data, n->in[4]->data, *s, size);
    return ACF_LAUNCHED("couple");
}

/* Incoming and outgoing gradients; NULL: none, or not needed. */
typedef struct slopes {
    acf_real *dx, *dst, *dg, *dg0;
    const acf_real *dy, *dlogdet;
} slopes;

#define BACK_BLOCKS ACF_THREADS /* at most: their sums are added by the last */

/* With d = dy and l = dlogdet, for a moving number:
 *     forward   dx += d e^s,    dt += d e^s,    ds =  d (x + t) e^s + l
 *     inverse   dx += d e^-s,   dt -= d,        ds = -d x e^-s - l
 * and draw += ds g (1 - tanh²), dg += ds tanh, dg0 += ds. */
static __global__ void move_bwd(slopes k, double *part, unsigned *ticket, const acf_real *__restrict__ x,
                                const acf_real *__restrict__ st, const acf_real *gp, const acf_real *g0p,
                                const acf_real *__restrict__ u, acf_couple_shape s, int64_t size, int64_t n) {
    const acf_real g = *gp, g0 = *g0p;
    double dg = 0, dg0 = 0;
    for (int64_t i = acf_thread(); i < n; i += (int64_t)gridDim.x * blockDim.x) {
        const acf_real d = k.dy ? k.dy[i] : 0;
        if (!is_on(u[i]) || is_kept(s, i)) {
            if (k.dx) k.dx[i] += d;
            continue;
        }
        const acf_cell pixel = acf_cell_of(i, s.C);
        const int64_t at = 2 * pixel.row * s.C + pixel.column;
        const acf_real l = k.dlogdet ? k.dlogdet[acf_cell_of(i, size).row] : 0, th = tanhf(st[at]),
                       shift = st[at + s.C], scale = g * th + g0;
        const acf_real e = expf(s.inverse ? -scale : scale),
                       ds = s.inverse ? -d * x[i] * e - l : d * (x[i] + shift) * e + l;
        if (k.dx) k.dx[i] += d * e;
        if (k.dst) k.dst[at] += ds * g * (1 - th * th), k.dst[at + s.C] += s.inverse ? -d : d * e;
        dg += (double)(ds * th), dg0 += (double)ds;
    }
    if (!k.dg && !k.dg0) return;
    dg = acf_block_sum(dg), dg0 = acf_block_sum(dg0);
    if (threadIdx.x == 0) part[2 * blockIdx.x] = dg, part[2 * blockIdx.x + 1] = dg0;
    if (!acf_last_block(ticket, gridDim.x)) return;
    const bool mine = threadIdx.x < gridDim.x;
    dg = acf_block_sum(mine ? __ldcg(&part[2 * threadIdx.x]) : 0.0),
    dg0 = acf_block_sum(mine ? __ldcg(&part[2 * threadIdx.x + 1]) : 0.0);
    if (threadIdx.x > 0) return;
    if (k.dg) *k.dg += (acf_real)dg;
    if (k.dg0) *k.dg0 += (acf_real)dg0;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_couple_shape *s = (const acf_couple_shape *)n->attr;
    const int64_t size = s->H * s->W * s->C, count = s->N * size;
    const slopes k = {acf_grad(t, n->in[0]), acf_grad(t, n->in[1]), acf_grad(t, n->in[2]),
                      acf_grad(t, n->in[3]), n->out[0]->grad,       n->out[1] ? n->out[1]->grad : NULL};
    ACF_TRY(acf_tape_status(t));
    const unsigned blocks = (unsigned)acf_min(acf_each_blocks(count), BACK_BLOCKS);
    move_bwd<<<blocks, ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        k, (double *)acf_cuda_scratch(t->dev), acf_cuda_tickets(t->dev), n->in[0]->data, n->in[1]->data, n->in[2]->data,
        n->in[3]->data, n->in[4]->data, *s, size, count);
    return ACF_LAUNCHED("couple");
}

ACF_CUDA_OP(couple_forward, forward, backward);
ACF_CUDA_OP(couple_inverse, forward, backward);
