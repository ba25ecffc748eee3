/* A transformer's block with bf16 between products: see transformer_block.h.
 *
 * Workload: T = 1e3 to 6e4 tokens of W = 64 to 512 numbers, 24 T W^2 FLOP forward. At 30,000 tokens of 384 the products
 * take a fifth of a millisecond, and their memory traffic as long if it is bf16. The residual stream (h, a, h'), its
 * gradients and those of parameters are float.
 *
 *     h --norm--> n1 --qkv--> qkv --attention--> mixed --out--> y --join with h, drop, norm--> a, n2
 *     n2 --up--> wide --gelu--> high --down, add a--> h'
 *
 * One kernel does all work between two products (transformer_passes.cuh); attention is in attention_bf16.cuh. */
#include "ops/transformer_block.cuh"

#include "ops/attention_bf16.cuh"
#include "ops/transformer_passes.cuh"

#define ROW_BLOCKS 264 /* of a norm's backward at most: two per multiprocessor of an H200 */
#define COLUMN_BLOCKS 1056

/* Arrays that the forward keeps, in device memory. */
typedef struct kept {
    bf16 *qkv_w, *out_w, *up_w, *down_w, *qkv_b, *up_b; /* parameters */
    bf16 *n1, *qkv, *mixed, *n2, *wide, *high;          /* (T,W), (T,3W), (T,W), (T,W), (T,4W), (T,4W) */
    float *stat[2], *lse, *a;
} kept;

/* The state of a block's forward or backward. */
typedef struct work {
    acf_tape *t;
    acf_device *dev;
    const acf_transformer_block_attrs *a;
    acf_tensor **param;
    int64_t T, W;
    const int32_t *rows;
    kept *k;
} work;

static work work_of(acf_tape *t, acf_node *n) {
    const acf_transformer_block_attrs *a = (const acf_transformer_block_attrs *)n->attr;
    return {t,
            t->dev,
            a,
            n->in + 1,
            n->in[0]->dim[0],
            n->in[0]->dim[1],
            a->told.s->first + a->told.s->D,
            (kept *)a->device};
}

static dropping dropping_of(const work *w, int i) {
    const acf_drop *d = &w->a->told.drop[i];
    return {w->a->drops[i],
            (uint32_t)(d->rate * 0x1p32),
            (float)(1 / (1 - d->rate)),
            *d,
            {w->a->told.s->row_of, w->a->told.s->col_of}};
}

static bool on_16(const void *x) { return (uintptr_t)x % 16 == 0; }

bool acf_block_narrow_fits(const acf_tape *t, const acf_node *n) {
    const acf_transformer_block_attrs *a = (const acf_transformer_block_attrs *)n->attr;
    const int64_t T = n->in[0]->dim[0], W = n->in[0]->dim[1], H = W / a->told.heads, D = a->told.s->D;
    bool fits = t->dev->precision == ACF_PRECISION_BF16 && (H == 32 || H == 64) && W <= WIDEST && T > 0 && D > 0 &&
                D <= SIDE * MOST_WARPS;
    for (int k = 0; k < n->n_in; k++) fits = fits && on_16(n->in[k]->data);
    return fits && on_16(n->out[0]->data) && (!a->told.qkv || on_16(a->told.qkv->data));
}

/* n numbers of bf16 for this step; NULL when memory ran out. */
static bf16 *numbers(acf_tape *t, int64_t n) { return (bf16 *)acf_tape_reals(t, acf_ceil_div(n, 2)); }

static acf_status allocate(work *w) {
    acf_tape *t = w->t;
    const int64_t T = w->T, W = w->W;
    kept *k = (kept *)acf_arena_alloc(t->host, sizeof *k);
    if (!k) return ACF_EMEMORY;
    k->qkv_w = numbers(t, 3 * W * W), k->out_w = numbers(t, W * W);
    k->up_w = numbers(t, 4 * W * W), k->down_w = numbers(t, 4 * W * W);
    k->qkv_b = numbers(t, 3 * W), k->up_b = numbers(t, 4 * W);
    k->n1 = numbers(t, T * W), k->qkv = numbers(t, 3 * T * W), k->mixed = numbers(t, T * W), k->n2 = numbers(t, T * W);
    k->wide = numbers(t, 4 * T * W), k->high = numbers(t, 4 * T * W);
    k->stat[0] = acf_tape_reals(t, 2 * T), k->stat[1] = acf_tape_reals(t, 2 * T);
    k->lse = acf_tape_reals(t, T * w->a->told.heads), k->a = acf_tape_reals(t, T * W);
    w->k = k;
    return acf_tape_status(t);
}

static const float *numbers_of(const work *w, int p) { return w->param[p]->data; }

static acf_status narrow_parameters(const work *w) {
    static const int which[COPIES] = {ACF_BLOCK_QKV,  ACF_BLOCK_OUT,      ACF_BLOCK_UP,
                                      ACF_BLOCK_DOWN, ACF_BLOCK_QKV_BIAS, ACF_BLOCK_UP_BIAS};
    const kept *k = w->k;
    copies c = {{}, {k->qkv_w, k->out_w, k->up_w, k->down_w, k->qkv_b, k->up_b}, {}};
    int64_t fours = 0;
    for (int i = 0; i < COPIES; i++)
        c.from[i] = numbers_of(w, which[i]), c.end[i] = fours += acf_tensor_count(w->param[which[i]]) / 4;
    copy_parameters<<<acf_each_blocks(fours), ACF_THREADS, 0, acf_cuda_stream(w->dev)>>>(c);
    return ACF_LAUNCHED("transformer_block");
}

/* The call with K float4 of a row per lane. */
#define BY_WIDTH(W, call)                                                                                              \
    do {                                                                                                               \
        if ((W) <= 128) {                                                                                              \
            constexpr int K = 1;                                                                                       \
            call;                                                                                                      \
        } else if ((W) <= 256) {                                                                                       \
            constexpr int K = 2;                                                                                       \
            call;                                                                                                      \
        } else if ((W) <= 384) {                                                                                       \
            constexpr int K = 3;                                                                                       \
            call;                                                                                                      \
        } else {                                                                                                       \
            constexpr int K = 4;                                                                                       \
            call;                                                                                                      \
        }                                                                                                              \
    } while (0)

/* Norm i of h, or of a = h + drop(x + bias). */
static acf_status norm(const work *w, int i, bf16 *y, float *a, const float *h, const bf16 *x) {
    const int p = i ? ACF_BLOCK_SCALE2 : ACF_BLOCK_SCALE;
    const dropping d = dropping_of(w, 0);
    BY_WIDTH(w->W, (norm_fwd<K><<<acf_blocks(w->T, WARPS), 32 * WARPS, 0, acf_cuda_stream(w->dev)>>>(
                       y, w->k->stat[i], a, h, x, numbers_of(w, ACF_BLOCK_OUT_BIAS), numbers_of(w, p),
                       numbers_of(w, p + 1), d, w->rows, w->T, (int)w->W)));
    return ACF_LAUNCHED("transformer_block");
}

/* y (T,O) = x (T,I) · m (O,I)ᵀ + bias */
static acf_status linear_forward(const work *w, bf16 *y, const bf16 *x, const bf16 *m, const bf16 *bias, int64_t I,
                                 int64_t O) {
    const acf_gemm g = {false, true, w->T,          O, I, 1, (const acf_real *)x, I, (const acf_real *)m,
                        I,     0,    (acf_real *)y, O};
    return acf_cuda_gemm_bf16_onto(w->dev, &g, true, bias, NULL);
}

/* dx (T,I) = dy (T,O) · m (O,I) */
static acf_status linear_backward(const work *w, bf16 *dx, const bf16 *dy, const bf16 *m, int64_t I, int64_t O) {
    const acf_gemm g = {false, false, w->T,           I, O, 1, (const acf_real *)dy, O, (const acf_real *)m,
                        I,     0,     (acf_real *)dx, I};
    return acf_cuda_gemm_bf16(w->dev, &g, true);
}

/* The gradient of parameter p (O,I) += dyᵀ (T,O) · x (T,I), parallel to later work. */
static acf_status to_weights(const work *w, int p, const bf16 *dy, const bf16 *x, int64_t I, int64_t O) {
    acf_real *dw = acf_grad(w->t, w->param[p]);
    const acf_gemm g = {true, false, O, I, w->T, 1, (const acf_real *)dy, O, (const acf_real *)x, I, 1, dw, I};
    if (!dw) return acf_tape_status(w->t);
    ACF_TRY(acf_cuda_aside(w->t, true));
    ACF_TRY(acf_cuda_gemm_bf16(w->dev, &g, false));
    return acf_cuda_aside(w->t, false);
}

/* Gradients += the parts that blocks wrote, parallel to later work. */
static acf_status add_up(const work *w, const gradients &g, const float *part, int64_t blocks, int64_t stride,
                         int64_t C) {
    ACF_TRY(acf_cuda_aside(w->t, true));
    add_parts<<<acf_blocks(stride, 32), 32 * EIGHT, 0, acf_cuda_stream(w->dev)>>>(g, part, (int)blocks, (int)stride,
                                                                                  (int)C);
    ACF_TRY(ACF_LAUNCHED("transformer_block"));
    return acf_cuda_aside(w->t, false);
}

static short_rows rows_of(const work *w) {
    const acf_subset *s = w->a->told.s;
    const int heads = w->a->told.heads;
    return {s->first, s->active, s->D, s->T, w->W, heads, (float)(1 / sqrt((double)(w->W / heads)))};
}

static acf_status attend(const work *w) {
    static void (*const kernels[2][MOST_WARPS])(bf16 *, float *, const bf16 *, short_rows) = {
        {narrow_fwd<32, 1>, narrow_fwd<32, 2>, narrow_fwd<32, 3>, narrow_fwd<32, 4>},
        {narrow_fwd<64, 1>, narrow_fwd<64, 2>, narrow_fwd<64, 3>, narrow_fwd<64, 4>}};
    const short_rows s = rows_of(w);
    const int warps = (int)acf_ceil_div(s.D, SIDE);
    void (*kernel)(bf16 *, float *, const bf16 *, short_rows) = kernels[w->W / s.heads == 64][warps - 1];
    ACF_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    kernel<<<(unsigned)(w->a->told.s->N * s.heads), 32 * warps, 0, acf_cuda_stream(w->dev)>>>(w->k->mixed, w->k->lse,
                                                                                              w->k->qkv, s);
    return ACF_LAUNCHED("transformer_block");
}

static acf_status attend_back(const work *w, bf16 *dqkv, const bf16 *dmixed) {
    static void (*const kernels[2][MOST_WARPS])(bf16 *, const bf16 *, const bf16 *, const float *, const bf16 *,
                                                short_rows) = {
        {narrow_bwd<32, 1>, narrow_bwd<32, 2>, narrow_bwd<32, 3>, narrow_bwd<32, 4>},
        {narrow_bwd<64, 1>, narrow_bwd<64, 2>, narrow_bwd<64, 3>, narrow_bwd<64, 4>}};
    const short_rows s = rows_of(w);
    const int warps = (int)acf_ceil_div(s.D, SIDE);
    void (*kernel)(bf16 *, const bf16 *, const bf16 *, const float *, const bf16 *, short_rows) =
        kernels[w->W / s.heads == 64][warps - 1];
    ACF_CUDA(
        cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared));
    kernel<<<(unsigned)(w->a->told.s->N * s.heads), 32 * warps, 0, acf_cuda_stream(w->dev)>>>(dqkv, dmixed, w->k->mixed,
                                                                                              w->k->lse, w->k->qkv, s);
    return ACF_LAUNCHED("transformer_block");
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* h' = a + drop(down). Without dropout the product adds to a itself. capacity (T,W) is scratch. */
static acf_status finish(const work *w, float *y, bf16 *capacity) {
    const kept *k = w->k;
    const int64_t T = w->T, W = w->W;
    const float *bias = numbers_of(w, ACF_BLOCK_DOWN_BIAS);
    if (!w->a->drops[1]) {
        const acf_gemm g = {false, true, T, W, 4 * W, 1, (const acf_real *)k->high, 4 * W, (const acf_real *)k->down_w,
                            4 * W, 1,    y, W};
        return acf_cuda_gemm_bf16_onto(w->dev, &g, false, bias, k->a);
    }
    ACF_TRY(linear_forward(w, capacity, k->high, k->down_w, NULL, 4 * W, W));
    join<<<acf_each_blocks(T * W / 4), ACF_THREADS, 0, acf_cuda_stream(w->dev)>>>(y, k->a, capacity, bias,
                                                                                  dropping_of(w, 1), T, (int)W);
    return ACF_LAUNCHED("transformer_block");
}

acf_status acf_block_narrow_fwd(acf_tape *t, acf_node *n) {
    acf_transformer_block_attrs *a = (acf_transformer_block_attrs *)n->attr;
    work w = work_of(t, n);
    const int64_t T = w.T, W = w.W, wide = 4 * T * W;
    const float *h = n->in[0]->data;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    const acf_mark all = acf_arena_mark(t->mem);
    ACF_TRY(allocate(&w));
    a->device = w.k;
    const acf_mark mark = acf_arena_mark(t->mem);
    bf16 *capacity = numbers(t, T * W);
    kept *k = w.k;
    ACF_TRY(acf_tape_status(t));
    ACF_TRY(narrow_parameters(&w));
    ACF_TRY(norm(&w, 0, k->n1, NULL, h, NULL));
    ACF_TRY(linear_forward(&w, k->qkv, k->n1, k->qkv_w, k->qkv_b, W, 3 * W));
    if (a->told.qkv)
        widen<<<acf_each_blocks(3 * T * W / 4), ACF_THREADS, 0, stream>>>(a->told.qkv->data, k->qkv, 3 * T * W);
    ACF_TRY(attend(&w));
    ACF_TRY(linear_forward(&w, capacity, k->mixed, k->out_w, NULL, W, W));
    ACF_TRY(norm(&w, 1, k->n2, k->a, h, capacity));
    ACF_TRY(linear_forward(&w, k->wide, k->n2, k->up_w, k->up_b, W, 4 * W));
    gelu_fwd<<<acf_each_blocks(wide / EIGHT), ACF_THREADS, 0, stream>>>(k->high, k->wide, wide / EIGHT);
    ACF_TRY(ACF_LAUNCHED("transformer_block"));
    ACF_TRY(finish(&w, n->out[0]->data, capacity));
    acf_arena_release(t->mem, n->save ? mark : all);
    return ACF_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* Transforms columns of numbers, and adds their sums to a bias. */
template <columns_kind KIND>
static acf_status by_column(const work *w, bf16 *to, const float *dy, const bf16 *x, int bias, int64_t C) {
    acf_real *db = acf_grad(w->t, w->param[bias]);
    const int64_t across = acf_ceil_div(C, 32 * EIGHT);
    const int64_t pieces = acf_max(acf_min(acf_ceil_div(w->T, 8 * EIGHT), COLUMN_BLOCKS / across), 1);
    float *part = acf_tape_reals(w->t, pieces * C);
    ACF_TRY(acf_tape_status(w->t));
    if (KIND == AS_IS && !db) return ACF_OK;
    if (KIND == AS_IS) ACF_TRY(acf_cuda_aside(w->t, true));
    columns<KIND><<<dim3((unsigned)across, (unsigned)pieces), 32 * EIGHT, 0, acf_cuda_stream(w->dev)>>>(
        to, part, dy, x, dropping_of(w, 1), w->rows, w->T, (int)C);
    ACF_TRY(ACF_LAUNCHED("transformer_block"));
    if (KIND == AS_IS) ACF_TRY(acf_cuda_aside(w->t, false));
    return db ? add_up(w, {{db}}, part, pieces, C, C) : ACF_OK;
}

/* The gradient of the norm's input gets base plus the gradient through the norm; with narrow, see norm_bwd. */
static acf_status norm_back(const work *w, int i, float *da, bf16 *narrow, const float *base, const bf16 *dy,
                            const float *x) {
    const int p = i ? ACF_BLOCK_SCALE2 : ACF_BLOCK_SCALE;
    const int64_t blocks = acf_max(acf_min(acf_ceil_div(w->T, 2 * WARPS), ROW_BLOCKS), 1), W = w->W;
    const gradients g = {{acf_grad(w->t, w->param[p]), acf_grad(w->t, w->param[p + 1]),
                          narrow ? acf_grad(w->t, w->param[ACF_BLOCK_OUT_BIAS]) : NULL}};
    float *part = acf_tape_reals(w->t, blocks * 3 * W);
    const size_t bytes = WARPS * (size_t)W * sizeof(float);
    cudaStream_t stream = acf_cuda_stream(w->dev);
    ACF_TRY(acf_tape_status(w->t));
    if (narrow)
        BY_WIDTH(W, (norm_bwd<K, true><<<(unsigned)blocks, 32 * WARPS, bytes, stream>>>(
                        da, narrow, part, base, dy, w->k->stat[i], x, numbers_of(w, p), dropping_of(w, 0), w->rows,
                        w->T, (int)W)));
    else
        BY_WIDTH(W, (norm_bwd<K, false><<<(unsigned)blocks, 32 * WARPS, bytes, stream>>>(
                        da, NULL, part, base, dy, w->k->stat[i], x, numbers_of(w, p), dropping_of(w, 0), w->rows, w->T,
                        (int)W)));
    ACF_TRY(ACF_LAUNCHED("transformer_block"));
    if (!g.to[0] && !g.to[1] && !g.to[2]) return ACF_OK;
    return add_up(w, g, part, blocks, 3 * W, W);
}

acf_status acf_block_narrow_bwd(acf_tape *t, acf_node *n) {
    const work w = work_of(t, n);
    const kept *k = w.k;
    const int64_t T = w.T, W = w.W;
    acf_real *dh = acf_grad(t, n->in[0]);
    for (int p = 0; p < ACF_BLOCK_PARAMS; p++) acf_grad(t, w.param[p]); /* permanent memory before scratch */
    ACF_TRY(acf_tape_status(t));
    const acf_mark mark = acf_arena_mark(t->mem);
    bf16 *dout = numbers(t, T * W), *dwide = numbers(t, 4 * T * W), *narrow = numbers(t, T * W);
    bf16 *dqkv = numbers(t, 3 * T * W), *capacity = numbers(t, T * W);
    float *da = acf_tape_reals(t, T * W);
    ACF_TRY(acf_tape_status(t));
    ACF_TRY(by_column<DROPPED>(&w, dout, n->out[0]->grad, NULL, ACF_BLOCK_DOWN_BIAS, W));
    ACF_TRY(to_weights(&w, ACF_BLOCK_DOWN, dout, k->high, 4 * W, W));
    ACF_TRY(linear_backward(&w, dwide, dout, k->down_w, 4 * W, W));
    ACF_TRY(by_column<GELU>(&w, dwide, NULL, k->wide, ACF_BLOCK_UP_BIAS, 4 * W));
    ACF_TRY(to_weights(&w, ACF_BLOCK_UP, dwide, k->n2, W, 4 * W));
    ACF_TRY(linear_backward(&w, capacity, dwide, k->up_w, W, 4 * W));
    ACF_TRY(norm_back(&w, 1, da, narrow, n->out[0]->grad, capacity, k->a));
    ACF_TRY(to_weights(&w, ACF_BLOCK_OUT, narrow, k->mixed, W, W));
    ACF_TRY(linear_backward(&w, capacity, narrow, k->out_w, W, W));
    ACF_TRY(attend_back(&w, dqkv, capacity));
    ACF_TRY(to_weights(&w, ACF_BLOCK_QKV, dqkv, k->n1, W, 3 * W));
    ACF_TRY(by_column<AS_IS>(&w, dqkv, NULL, NULL, ACF_BLOCK_QKV_BIAS, 3 * W));
    ACF_TRY(linear_backward(&w, capacity, dqkv, k->qkv_w, W, 3 * W));
    ACF_TRY(norm_back(&w, 0, dh, NULL, da, capacity, n->in[0]->data));
    acf_tape_done(t, mark);
    return ACF_OK;
}
