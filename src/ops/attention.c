/* Causal attention: see attention.h; formulas in docs/math.md, 21.
 *
 * Workload: 64 to 4,096 rows of 5 to 200 tokens, 2 to 8 heads of 16 to 64 numbers. One unit of work is a row and
 * head. Its keys and values are first copied to contiguous memory, keys transposed, so that every inner loop is
 * contiguous. With d tokens a row that is 2 d W multiply-adds a token, a few per cent of the products around it. The
 * backward computes the probabilities again, from the log-sum-exp that the forward saved. */
#include "ops/attention.h"

#include "base/vmath.h"
#include "ops/rowmat.h"

#include <math.h>
#include <string.h>

/* ---- one row and head -------------------------------------------------------------------------------------------- */

#define LANES 16 /* scores that are computed side by side; capacities are multiples */

/* A thread's scratch: L tokens of H numbers, matrices (L,H) or transposed (H,capacity). */
typedef struct workspace {
    int64_t L, H, capacity;
    acf_real scale;
    acf_real *kt, *vt, *k, *v; /* kt, vt: transposed */
    acf_real *p, *dp;          /* (L,capacity) probabilities, gradients of scores; the forward has one row of p */
} workspace;

static int64_t workspace_stride(const acf_attention_shape *p) {
    return acf_ceil_div(acf_max(p->steps, 1), LANES) * LANES;
}

int64_t acf_attention_scratch(const acf_attention_shape *p) {
    return (4 * (p->W / p->heads) + 2 * acf_max(p->steps, 1)) * workspace_stride(p);
}

static workspace workspace_in(acf_real *memory, const acf_attention_shape *p, int64_t L) {
    const int64_t H = p->W / p->heads, capacity = workspace_stride(p), part = H * capacity;
    workspace d = {.L = L, .H = H, .capacity = capacity, .scale = (acf_real)(1 / sqrt((double)H))};
    d.kt = memory, d.vt = d.kt + part, d.k = d.vt + part, d.v = d.k + part;
    d.p = d.v + part, d.dp = d.p + acf_max(p->steps, 1) * capacity;
    return d;
}

/* Element of token t of the row of rank k. */
static inline int64_t at(const acf_attention_shape *p, int64_t t, int64_t k) { return p->first[t] + k; }

static void load_turned(acf_real *to, const workspace *d, const acf_real *from, const acf_attention_shape *p,
                        int64_t k) {
    for (int64_t t = 0; t < d->L; t++)
        for (int64_t c = 0; c < d->H; c++) to[c * d->capacity + t] = from[at(p, t, k) * 3 * p->W + c];
    for (int64_t c = 0; c < d->H; c++)
        for (int64_t t = d->L; t < d->capacity; t++) to[c * d->capacity + t] = 0;
}

static void load(acf_real *to, const workspace *d, const acf_real *from, const acf_attention_shape *p, int64_t k) {
    for (int64_t t = 0; t < d->L; t++)
        for (int64_t c = 0; c < d->H; c++) to[t * d->H + c] = from[at(p, t, k) * 3 * p->W + c];
}

/* Callers pass H as a constant to the inlined functions, so that sums stay in registers. */
#define INLINED static inline __attribute__((always_inline))
#define MOST 64 /* the largest number of a head that has such a caller */

/* to (n, and up to LANES - 1 more) = scale Σ_c x_c t_c, t the transposed matrix (H,n). */
INLINED void dots(acf_real *to, const acf_real *x, const acf_real *turned, acf_real scale, int64_t n, int64_t H,
                  int64_t capacity) {
    for (int64_t j = 0; j < n; j += LANES) {
        acf_real sum[LANES] = {0};
        for (int64_t c = 0; c < H; c++) {
            ACF_SIMD
            for (int l = 0; l < LANES; l++) sum[l] += x[c] * turned[c * capacity + j + l];
        }
        ACF_SIMD
        for (int l = 0; l < LANES; l++) to[j + l] = scale * sum[l];
    }
}

/* to (H) += Σ_j a_j x_j; stride `apart` of a, stride `stride` of the rows of x. */
INLINED void weigh(acf_real *to, const acf_real *a, int64_t apart, const acf_real *x, int64_t stride, int64_t n,
                   int64_t H) {
    if (H > MOST) {
        for (int64_t j = 0; j < n; j++)
            for (int64_t c = 0; c < H; c++) to[c] += a[j * apart] * x[j * stride + c];
        return;
    }
    acf_real sum[MOST];
    for (int64_t c = 0; c < H; c++) sum[c] = 0;
    for (int64_t j = 0; j < n; j++) {
        ACF_SIMD
        for (int64_t c = 0; c < H; c++) sum[c] += a[j * apart] * x[j * stride + c];
    }
    for (int64_t c = 0; c < H; c++) to[c] += sum[c];
}

/* Scores p (n) to probabilities; their log-sum-exp. A NaN stays one. */
static acf_real softmax(acf_real *p, int64_t n) {
    acf_real most = p[0], sum = 0;
    for (int64_t j = 1; j < n; j++) most = p[j] > most ? p[j] : most;
    ACF_PRAGMA(omp simd reduction(+ : sum))
    for (int64_t j = 0; j < n; j++) sum += p[j] = acf_exp(p[j] - most);
    ACF_SIMD
    for (int64_t j = 0; j < n; j++) p[j] /= sum;
    return most + (acf_real)log((double)sum);
}

/* ---- all tokens -------------------------------------------------------------------------------------------------- */

/* Arguments of the passes, with offsets at the head's numbers. */
typedef struct pass {
    const acf_attention_shape *p;
    const acf_real *qkv, *dout, *saved; /* (T,3W), (T,W); saved: the forward's output */
    acf_real *out, *dqkv;
    acf_real *lse; /* (T,heads), at the head */
} pass;

static pass at_head(const pass *a, int64_t h) {
    const int64_t from = h * (a->p->W / a->p->heads);
    pass x = *a;
    x.qkv += from;
    if (x.lse) x.lse += h;
    if (x.out) x.out += from;
    if (x.dqkv) x.dqkv += from, x.dout += from, x.saved += from;
    return x;
}

INLINED void forward_row(const workspace *d, const pass *a, int64_t k, int64_t H) {
    const int64_t W = a->p->W;
    load_turned(d->kt, d, a->qkv + W, a->p, k);
    load(d->v, d, a->qkv + 2 * W, a->p, k);
    for (int64_t t = 0; t < d->L; t++) {
        const int64_t e = at(a->p, t, k);
        acf_real *out = a->out + e * W;
        dots(d->p, a->qkv + e * 3 * W, d->kt, d->scale, t + 1, H, d->capacity);
        const acf_real lse = softmax(d->p, t + 1);
        if (a->lse) a->lse[e * a->p->heads] = lse;
        for (int64_t c = 0; c < H; c++) out[c] = 0;
        weigh(out, d->p, 1, d->v, H, t + 1, H);
    }
}

/* Row t of p = the probabilities of token t's query; row t of dp = the gradients of its scores before the scale. */
INLINED void scores_back(const workspace *d, const acf_real *q, const acf_real *out, const acf_real *dout, acf_real lse,
                         int64_t t, int64_t H) {
    acf_real *p = d->p + t * d->capacity, *dp = d->dp + t * d->capacity, dot = 0;
    for (int64_t c = 0; c < H; c++) dot += out[c] * dout[c];
    dots(p, q, d->kt, d->scale, t + 1, H, d->capacity);
    dots(dp, dout, d->vt, 1, t + 1, H, d->capacity);
    ACF_SIMD
    for (int64_t j = 0; j <= t; j++) {
        p[j] = acf_exp(p[j] - lse);
        dp[j] = p[j] * (dp[j] - dot) * d->scale;
    }
}

/* Tokens of a row are not contiguous. Queries and gradients of outputs are therefore also copied to contiguous
 * memory, where v and vt were. */
INLINED void backward_row(const workspace *d, const pass *a, int64_t k, int64_t H) {
    const int64_t W = a->p->W, heads = a->p->heads;
    load_turned(d->kt, d, a->qkv + W, a->p, k);
    load_turned(d->vt, d, a->qkv + 2 * W, a->p, k);
    load(d->k, d, a->qkv + W, a->p, k);
    for (int64_t t = 0; t < d->L; t++) {
        const int64_t e = at(a->p, t, k);
        scores_back(d, a->qkv + e * 3 * W, a->saved + e * W, a->dout + e * W, a->lse[e * heads], t, H);
        weigh(a->dqkv + e * 3 * W, d->dp + t * d->capacity, 1, d->k, H, t + 1, H);
    }
    acf_real *q = d->v, *dout = d->vt;
    load(q, d, a->qkv, a->p, k);
    for (int64_t t = 0; t < d->L; t++)
        for (int64_t c = 0; c < H; c++) dout[t * H + c] = a->dout[at(a->p, t, k) * W + c];
    for (int64_t j = 0; j < d->L; j++) {
        acf_real *to = a->dqkv + at(a->p, j, k) * 3 * W;
        weigh(to + W, d->dp + j * d->capacity + j, d->capacity, q + j * H, H, d->L - j, H);
        weigh(to + 2 * W, d->p + j * d->capacity + j, d->capacity, dout + j * H, H, d->L - j, H);
    }
}

#define BY_HEAD(function, d, a, k)                                                                                     \
    switch ((d)->H) {                                                                                                  \
    case 16: function(d, a, k, 16); break;                                                                             \
    case 32: function(d, a, k, 32); break;                                                                             \
    case 64: function(d, a, k, 64); break;                                                                             \
    default: function(d, a, k, (d)->H);                                                                                \
    }

static int64_t work_of(const acf_attention_shape *p) { return p->T * (p->steps * 2 + 16) * p->W; }

void acf_attention_fwd_cpu(const acf_device *dev, acf_real *out, acf_real *lse, const acf_real *qkv,
                           const acf_attention_shape *p, acf_real *scratch) {
    const pass all = {.p = p, .qkv = qkv, .out = out, .lse = lse};
    ACF_PARALLEL_UNEVEN(dev, work_of(p))
    for (int64_t i = 0; i < p->ranks * p->heads; i++) {
        const int64_t k = i / p->heads;
        const pass one = at_head(&all, i % p->heads);
        const workspace d = workspace_in(acf_row_scratch(scratch, acf_attention_scratch(p)), p, p->size[p->row[k]]);
        BY_HEAD(forward_row, &d, &one, k)
    }
}

void acf_attention_bwd_cpu(const acf_device *dev, acf_real *dqkv, const acf_real *dout, const acf_real *out,
                           const acf_real *lse, const acf_real *qkv, const acf_attention_shape *p, acf_real *scratch) {
    const pass all = {.p = p, .qkv = qkv, .dout = dout, .saved = out, .dqkv = dqkv, .lse = (acf_real *)lse};
    ACF_PARALLEL_UNEVEN(dev, 3 * work_of(p))
    for (int64_t i = 0; i < p->ranks * p->heads; i++) {
        const int64_t k = i / p->heads;
        const pass one = at_head(&all, i % p->heads);
        const workspace d = workspace_in(acf_row_scratch(scratch, acf_attention_scratch(p)), p, p->size[p->row[k]]);
        BY_HEAD(backward_row, &d, &one, k)
    }
}

acf_attention_shape acf_attention_shape_of(const acf_subset *s, int64_t W, int heads) {
    return (acf_attention_shape){s->row,   s->rank, s->size, s->first, s->row_of, s->D ? s->active[0] : 0,
                                 s->steps, s->T,    W,       heads};
}

static acf_real *scratch_for(acf_tape *t, const acf_attention_shape *p) {
    return acf_rows_scratch(t, acf_attention_scratch(p));
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_attention_attrs *a = n->attr;
    const acf_attention_shape p = acf_attention_shape_of(a->s, n->out[0]->dim[1], a->heads);
    if (n->save) a->lse = acf_tape_reals(t, p.T * p.heads);
    const acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, &p);
    ACF_TRY(acf_tape_status(t));
    acf_attention_fwd_cpu(t->dev, n->out[0]->data, a->lse, n->in[0]->data, &p, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_attention_attrs *a = n->attr;
    const acf_attention_shape p = acf_attention_shape_of(a->s, n->out[0]->dim[1], a->heads);
    acf_real *dqkv = acf_grad(t, n->in[0]);
    const acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, &p);
    ACF_TRY(acf_tape_status(t));
    if (dqkv)
        acf_attention_bwd_cpu(t->dev, dqkv, n->out[0]->grad, n->out[0]->data, a->lse, n->in[0]->data, &p, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_attention = {"attention", ACF_OP_attention, {forward, backward}};

/* Checks that the heads share the width evenly; on failure the tape fails and the result is false. n is the expected
 * number of rows of qkv. */
static bool fits(acf_tape *t, const acf_op *op, const acf_tensor *qkv, int heads, int64_t n) {
    char sq[ACF_SHAPE_TEXT];
    if (heads < 1)
        acf_reject_value(t, op, "%d heads; expected at least 1", heads);
    else if (qkv->ndim != 2 || qkv->dim[0] != n || qkv->dim[1] < 1 || qkv->dim[1] % (3 * heads))
        acf_reject(t, op, "queries, keys and values are %s; expected (%lld, 3 W) with W a multiple of %d heads",
                   acf_tensor_shape(qkv, sq), (long long)n, heads);
    return t->failure.status == ACF_OK;
}

acf_tensor *acf_attention(acf_tape *t, acf_tensor *qkv, int heads, const acf_subset *s) {
    acf_node *n = acf_node_new(t, &acf_op_attention, sizeof(acf_attention_attrs), 1, &qkv);
    if (!n || !fits(t, n->op, qkv, heads, s->T)) return &t->empty;
    *(acf_attention_attrs *)n->attr = (acf_attention_attrs){s, heads, NULL};
    n->out[0] = acf_tensor_packed(t, s, qkv->dim[1] / 3);
    return acf_node_run(t, n);
}

/* ---- one token of a row ------------------------------------------------------------------------------------------ */

/* The token's position among those of its row. */
static int64_t step_of(const acf_attention_shape *p, int32_t token, int64_t k) {
    int64_t t = 0;
    while (at(p, t, k) < token) t++;
    return t;
}

/* Each score is a dot product with a key in place in the cache. */
static void answer_from_cache(acf_real *out, const workspace *d, const acf_real *cache, const acf_attention_shape *p,
                              int32_t token, int64_t k) {
    const int64_t W = p->W, n = step_of(p, token, k) + 1;
    const acf_real *q = cache + token * 3 * W;
    for (int64_t j = 0; j < n; j++) {
        const acf_real *key = cache + at(p, j, k) * 3 * W + W;
        acf_real sum = 0;
        ACF_PRAGMA(omp simd reduction(+ : sum))
        for (int64_t c = 0; c < d->H; c++) sum += q[c] * key[c];
        d->p[j] = sum * d->scale;
    }
    softmax(d->p, n);
    for (int64_t c = 0; c < d->H; c++) out[c] = 0;
    for (int64_t j = 0; j < n; j++) {
        const acf_real *value = cache + at(p, j, k) * 3 * W + 2 * W;
        ACF_SIMD
        for (int64_t c = 0; c < d->H; c++) out[c] += d->p[j] * value[c];
    }
}

void acf_attention_step_cpu(const acf_device *dev, acf_real *out, const int32_t *token, int64_t n,
                            const acf_real *cache, const acf_attention_shape *p, acf_real *scratch) {
    const int64_t W = p->W, H = W / p->heads;
    ACF_PARALLEL_UNEVEN(dev, 2 * n * p->steps * W)
    for (int64_t i = 0; i < n * p->heads; i++) {
        const int64_t e = i / p->heads, h = i % p->heads;
        acf_real *to = out + e * W + h * H;
        if (token[e] < 0) {
            for (int64_t c = 0; c < H; c++) to[c] = 0;
            continue;
        }
        const workspace d = workspace_in(acf_row_scratch(scratch, acf_attention_scratch(p)), p, p->steps);
        answer_from_cache(to, &d, cache + h * H, p, token[e], p->rank[p->row_of[token[e]]]);
    }
}

static acf_status step_forward(acf_tape *t, acf_node *n) {
    const acf_attention_step_attrs *a = n->attr;
    const acf_tensor *qkv = n->in[0], *cache = n->in[1];
    const acf_attention_shape p = acf_attention_shape_of(a->s, n->out[0]->dim[1], a->heads);
    const acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, &p);
    ACF_TRY(acf_tape_status(t));
    for (int64_t e = 0; e < qkv->dim[0]; e++)
        if (a->token[e] >= 0)
            memcpy(cache->data + a->token[e] * 3 * p.W, qkv->data + e * 3 * p.W, (size_t)(3 * p.W) * sizeof(acf_real));
    acf_attention_step_cpu(t->dev, n->out[0]->data, a->token, qkv->dim[0], cache->data, &p, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_attention_step = {"attention_step", ACF_OP_attention_step, {step_forward, NULL}};

acf_tensor *acf_attention_step(acf_tape *t, acf_tensor *qkv, const int32_t *token, acf_tensor *cache, int heads,
                               const acf_subset *s) {
    char sc[ACF_SHAPE_TEXT];
    acf_node *n =
        acf_node_new(t, &acf_op_attention_step, sizeof(acf_attention_step_attrs), 2, (acf_tensor *[]){qkv, cache});
    if (!n || !fits(t, n->op, qkv, heads, qkv->dim[0])) return &t->empty;
    if (cache->ndim != 2 || cache->dim[0] != s->T || cache->dim[1] != qkv->dim[1])
        return acf_reject(t, n->op, "the cache is %s; expected (%lld, %lld)", acf_tensor_shape(cache, sc),
                          (long long)s->T, (long long)qkv->dim[1]);
    *(acf_attention_step_attrs *)n->attr = (acf_attention_step_attrs){s, heads, token};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){qkv->dim[0], qkv->dim[1] / 3});
    n->out[0]->row_of = qkv->row_of;
    return acf_node_run(t, n);
}
