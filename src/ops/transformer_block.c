/* A transformer's block: see transformer_block.h; formulas in docs/math.md, 21.
 *
 * Workload: T = 1e3 to 6e4 tokens of W = 32 to 512 numbers: products of 24 T W^2 FLOP, and three times that with the
 * backward. Norms and outputs of gelu are computed again in the backward instead of kept, which costs a few per cent of
 * it. Of the 26 W numbers per token that single operations would keep, 10 W remain. Products add to the residual where
 * there is no dropout. */
#include "ops/transformer_block.h"

#include "ops/arith.h"
#include "ops/gelu.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"
#include "ops/rowmat.h"

#include <string.h>

typedef acf_transformer_block_attrs attrs;

/* A part of the block on T tokens of W numbers. */
typedef struct block {
    const acf_device *dev;
    attrs *a;
    int64_t T, W;
    const acf_real *param[ACF_BLOCK_PARAMS];
    acf_real *grad[ACF_BLOCK_PARAMS]; /* of the backward; NULL where none is needed */
} block;

static block block_of(acf_tape *t, acf_node *n) {
    block b = {.dev = t->dev, .a = n->attr, .T = n->in[0]->dim[0], .W = n->in[0]->dim[1]};
    for (int p = 0; p < ACF_BLOCK_PARAMS; p++) b.param[p] = n->in[1 + p]->data;
    return b;
}

static acf_cells cells_of(const block *b) { return (acf_cells){b->a->told.s->row_of, b->a->told.s->col_of}; }

/* Norm i of x, the first or the second of the block. */
static void norm(const block *b, int i, acf_real *y, acf_real *stat, const acf_real *x) {
    const int p = i ? ACF_BLOCK_SCALE2 : ACF_BLOCK_SCALE;
    acf_layer_norm_fwd_cpu(b->dev, y, stat, x, b->param[p], b->param[p + 1], b->T, b->W);
}

/* y (T,O) = x (T,I) by the weights p, plus their bias. */
static void linear(const block *b, int p, acf_real *y, const acf_real *x, int64_t I, int64_t O) {
    acf_linear_fwd_cpu(b->dev, y, x, b->param[p], b->param[p + 1], ACF_IDENTITY, b->T, I, O);
}

/* Adds a bias to finished tiles. */
typedef struct bias {
    acf_real *y;
    const acf_real *b;
    int64_t W;
} bias;
static void add_bias(void *ctx, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    const bias *f = ctx;
    acf_linear_finish_cpu(f->y + r0 * f->W + c0, f->W, f->b + c0, ACF_IDENTITY, r1 - r0, c1 - c0);
}

/* y (T,W) = h + drop(x (T,I) by the weights p, plus their bias); capacity (T,W) is scratch with dropout. */
static void join(const block *b, int i, int p, acf_real *y, const acf_real *h, const acf_real *x, int64_t I,
                 acf_real *capacity) {
    const int64_t W = b->W;
    if (b->a->drops[i]) {
        linear(b, p, capacity, x, I, W);
        acf_dropout_fwd_cpu(b->dev, capacity, b->a->keep[i], capacity, &b->a->told.drop[i], cells_of(b), b->T, W);
        acf_add_fwd_cpu(b->dev, y, 1, h, 1, capacity, b->T * W);
        return;
    }
    bias f = {y, b->param[p + 1], W};
    acf_add_fwd_cpu(b->dev, y, 1, h, 0, NULL, b->T * W);
    acf_cpu_gemm(b->dev,
                 &(acf_gemm){.tb = true,
                             .M = b->T,
                             .N = W,
                             .K = I,
                             .alpha = 1,
                             .a = x,
                             .lda = I,
                             .b = b->param[p],
                             .ldb = I,
                             .beta = 1,
                             .c = y,
                             .ldc = W},
                 add_bias, &f);
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Allocates what the backward reads; false when memory ran out. */
static bool keep(acf_tape *t, attrs *a, int64_t T, int64_t W) {
    for (int i = 0; i < 2; i++) {
        a->stat[i] = acf_tape_reals(t, 2 * T);
        if (a->drops[i] && !(a->keep[i] = acf_arena_alloc(t->mem, (size_t)(T * W)))) acf_tape_fail(t, NULL);
    }
    a->lse = acf_tape_reals(t, T * a->told.heads), a->qkv = acf_tape_reals(t, 3 * T * W);
    a->mixed = acf_tape_reals(t, T * W), a->a = acf_tape_reals(t, T * W), a->wide = acf_tape_reals(t, 4 * T * W);
    return t->failure.status == ACF_OK;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const block b = block_of(t, n);
    const int64_t T = b.T, W = b.W;
    const acf_attention_shape p = acf_attention_shape_of(b.a->told.s, W, b.a->told.heads);
    const acf_real *h = n->in[0]->data;
    acf_real *y = n->out[0]->data;
    if (n->save && !keep(t, b.a, T, W)) return acf_tape_status(t);
    const acf_mark mark = acf_arena_mark(t->mem); /* of scratch */
    attrs kept = *b.a;
    if (!n->save && !keep(t, &kept, T, W)) return acf_tape_status(t);
    acf_real *normed = acf_tape_reals(t, T * W), *capacity = acf_tape_reals(t, 4 * T * W);
    acf_real *scratch = acf_rows_scratch(t, acf_attention_scratch(&p));
    ACF_TRY(acf_tape_status(t));
    norm(&b, 0, normed, kept.stat[0], h);
    linear(&b, ACF_BLOCK_QKV, kept.qkv, normed, W, 3 * W);
    if (b.a->told.qkv) memcpy(b.a->told.qkv->data, kept.qkv, (size_t)(3 * T * W) * sizeof(acf_real));
    acf_attention_fwd_cpu(t->dev, kept.mixed, kept.lse, kept.qkv, &p, scratch);
    join(&b, 0, ACF_BLOCK_OUT, kept.a, h, kept.mixed, W, capacity);
    norm(&b, 1, normed, kept.stat[1], kept.a);
    linear(&b, ACF_BLOCK_UP, kept.wide, normed, W, 4 * W);
    acf_gelu_fwd_cpu(t->dev, capacity, kept.wide, 4 * T * W);
    join(&b, 1, ACF_BLOCK_DOWN, y, kept.a, capacity, 4 * W, normed);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

static acf_real *zeros(acf_real *x, int64_t n) { return memset(x, 0, (size_t)n * sizeof *x); }

/* dy through the mask of dropout i; dy itself without dropout. */
static const acf_real *dropped(const block *b, int i, acf_real *capacity, const acf_real *dy) {
    const int64_t n = b->T * b->W;
    if (!b->a->drops[i]) return dy;
    acf_dropout_bwd_cpu(b->dev, zeros(capacity, n), dy, b->a->keep[i], b->a->told.drop[i].rate, n);
    return capacity;
}

/* Adds to dx (T,I), and to the gradients of weights p and their bias. */
static void linear_back(const block *b, int p, acf_real *dx, const acf_real *dy, const acf_real *x, int64_t I,
                        int64_t O) {
    acf_linear_bwd_cpu(b->dev, dx, b->grad[p], b->grad[p + 1], dy, NULL, x, b->param[p], NULL, ACF_IDENTITY, b->T, I,
                       O);
}

/* Adds to dx (T,W), which may be NULL, and to the gradients of norm i. */
static void norm_back(const block *b, int i, acf_real *dx, acf_real *scratch, const acf_real *dy, const acf_real *x) {
    const int p = i ? ACF_BLOCK_SCALE2 : ACF_BLOCK_SCALE;
    acf_layer_norm_bwd_cpu(b->dev, dx, b->grad[p], b->grad[p + 1], scratch, dy, b->a->stat[i], x, b->param[p], b->T,
                           b->W);
}

/* da (T,W) = the gradient of a, the middle of the block; narrow (T,W) and wide (T,4W) are scratch. */
static void network_back(const block *b, acf_real *da, const acf_real *dy, acf_real *const narrow[2],
                         acf_real *const wide[2]) {
    const int64_t T = b->T, W = b->W;
    const acf_real *back = dropped(b, 1, narrow[0], dy);
    acf_gelu_fwd_cpu(b->dev, wide[0], b->a->wide, 4 * T * W);
    linear_back(b, ACF_BLOCK_DOWN, zeros(wide[1], 4 * T * W), back, wide[0], 4 * W, W);
    acf_gelu_bwd_cpu(b->dev, zeros(wide[0], 4 * T * W), wide[1], b->a->wide, 4 * T * W);
    norm(b, 1, narrow[1], NULL, b->a->a);
    linear_back(b, ACF_BLOCK_UP, zeros(narrow[0], T * W), wide[0], narrow[1], W, 4 * W);
    acf_add_fwd_cpu(b->dev, da, 1, dy, 0, NULL, T * W);
    norm_back(b, 1, da, narrow[1], narrow[0], b->a->a);
}

/* dh (T,W), or NULL, gets the gradient from the middle of the block. */
static void attention_back(const block *b, acf_real *dh, const acf_real *h, const acf_real *da,
                           acf_real *const narrow[2], acf_real *dqkv, acf_real *scratch) {
    const int64_t T = b->T, W = b->W;
    const acf_attention_shape p = acf_attention_shape_of(b->a->told.s, W, b->a->told.heads);
    const acf_real *back = dropped(b, 0, narrow[0], da);
    linear_back(b, ACF_BLOCK_OUT, zeros(narrow[1], T * W), back, b->a->mixed, W, W);
    acf_attention_bwd_cpu(b->dev, zeros(dqkv, 3 * T * W), narrow[1], b->a->mixed, b->a->lse, b->a->qkv, &p, scratch);
    norm(b, 0, narrow[1], NULL, h);
    linear_back(b, ACF_BLOCK_QKV, zeros(narrow[0], T * W), dqkv, narrow[1], W, 3 * W);
    if (dh) acf_add_bwd_cpu(b->dev, dh, NULL, da, 1, 0, T * W);
    norm_back(b, 0, dh, narrow[1], narrow[0], h);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    block b = block_of(t, n);
    const int64_t T = b.T, W = b.W;
    const acf_attention_shape p = acf_attention_shape_of(b.a->told.s, W, b.a->told.heads);
    acf_real *dh = acf_grad(t, n->in[0]);
    for (int k = 0; k < ACF_BLOCK_PARAMS; k++) b.grad[k] = acf_grad(t, n->in[1 + k]);
    const acf_mark mark = acf_arena_mark(t->mem);
    acf_real *narrow[2] = {acf_tape_reals(t, T * W), acf_tape_reals(t, T * W)};
    acf_real *wide[2] = {acf_tape_reals(t, 4 * T * W), acf_tape_reals(t, 4 * T * W)};
    acf_real *da = acf_tape_reals(t, T * W), *scratch = acf_rows_scratch(t, acf_attention_scratch(&p));
    ACF_TRY(acf_tape_status(t));
    network_back(&b, da, n->out[0]->grad, narrow, wide);
    attention_back(&b, dh, n->in[0]->data, da, narrow, wide[0], scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_transformer_block = {"transformer_block", ACF_OP_transformer_block, {forward, backward}};

/* ---- front end --------------------------------------------------------------------------------------------------- */

/* False, with a failed tape, where a parameter does not have the size that W needs. */
static bool fit(acf_tape *t, const acf_op *op, acf_tensor *const *param, int64_t W) {
    static const struct {
        const char *name;
        int out, in; /* in multiples of W; in 0: a vector */
    } want[ACF_BLOCK_PARAMS] = {{"scale", 1, 0},           {"shift", 1, 0},   {"qkv", 3, 1},
                                {"the bias of qkv", 3, 0}, {"out", 1, 1},     {"the bias of out", 1, 0},
                                {"scale 2", 1, 0},         {"shift 2", 1, 0}, {"up", 4, 1},
                                {"the bias of up", 4, 0},  {"down", 1, 4},    {"the bias of down", 1, 0}};
    char found[ACF_SHAPE_TEXT], expected[ACF_SHAPE_TEXT];
    for (int p = 0; p < ACF_BLOCK_PARAMS; p++) {
        const acf_tensor like = {.ndim = want[p].in ? 2 : 1, .dim = {want[p].out * W, want[p].in * W}};
        if (acf_tensor_same_shape(param[p], &like)) continue;
        acf_reject(t, op, "%s is %s; expected %s", want[p].name, acf_tensor_shape(param[p], found),
                   acf_tensor_shape(&like, expected));
        return false;
    }
    return true;
}

acf_tensor *acf_transformer_block(acf_tape *t, acf_tensor *h, acf_tensor *const param[ACF_BLOCK_PARAMS],
                                  const acf_block_told *told) {
    char sh[ACF_SHAPE_TEXT];
    acf_tensor *in[1 + ACF_BLOCK_PARAMS] = {h};
    for (int p = 0; p < ACF_BLOCK_PARAMS; p++) in[1 + p] = param[p];
    acf_node *n = acf_node_new(t, &acf_op_transformer_block, sizeof(attrs), 1 + ACF_BLOCK_PARAMS, in);
    if (!n) return &t->empty;
    if (told->heads < 1) return acf_reject_value(t, n->op, "%d heads; expected at least 1", told->heads);
    if (h->ndim != 2 || h->dim[0] != told->s->T || h->dim[1] < 1 || h->dim[1] % told->heads)
        return acf_reject(t, n->op, "h is %s; expected (%lld, W) with W a multiple of %d heads",
                          acf_tensor_shape(h, sh), (long long)told->s->T, told->heads);
    const int64_t W = h->dim[1];
    if (!fit(t, n->op, param, W)) return &t->empty;
    if (told->qkv && (told->qkv->ndim != 2 || told->qkv->dim[0] != h->dim[0] || told->qkv->dim[1] != 3 * W))
        return acf_reject(t, n->op, "queries, keys and values go to %s; expected (%lld, %lld)",
                          acf_tensor_shape(told->qkv, sh), (long long)h->dim[0], (long long)(3 * W));
    attrs *a = n->attr;
    *a = (attrs){.told = *told};
    n->out[0] = acf_tensor_packed(t, told->s, W);
    for (int i = 0; i < 2 && t->failure.status == ACF_OK; i++) {
        if (!acf_dropout_fits(t, n->op, n->out[0], &told->drop[i])) return &t->empty;
        a->drops[i] = t->record && told->drop[i].rate > 0;
    }
    return acf_node_run(t, n);
}
