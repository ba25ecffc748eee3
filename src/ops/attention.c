/* Causal attention: see attention.h; formulas in docs/math.md, 21.
 *
 * Workload: 64 to 4,096 rows of 5 to 200 tokens, 2 to 8 heads of 16 to 64 numbers. A row and head is one piece of work: its keys and values are
 * copied together first, keys turned, so that every inner loop runs over neighbours. With d tokens a row that is 2 d W multiply-adds a token,
 * a few per cent of the products around it. The backward makes the probabilities again, from the log-sum-exp that the forward kept. */
#include "ops/attention.h"

#include "base/vmath.h"
#include "ops/rowmat.h"

#include <math.h>
#include <string.h>

/* ---- one row and head ----------------------------------------------------------------------------------------------------- */

/* What a thread works on: L tokens of H numbers, matrices (L,H) or turned (H,room). */
typedef struct desk {
    int64_t L, H, room;
    acf_real scale;
    acf_real *kt, *vt, *k, *v, *dk, *dv; /* kt, vt turned */
    acf_real *p, *dp;                    /* (room) of one query */
} desk;

static int64_t desk_room(const acf_attention_shape *p) { return acf_ceil_div(acf_max(p->steps, 1), 16) * 16; }

int64_t acf_attention_scratch(const acf_attention_shape *p) { return (6 * (p->W / p->heads) + 2) * desk_room(p); }

static desk desk_in(acf_real *memory, const acf_attention_shape *p, int64_t L) {
    const int64_t H = p->W / p->heads, room = desk_room(p), part = H * room;
    desk d = {.L = L, .H = H, .room = room, .scale = (acf_real)(1 / sqrt((double)H))};
    acf_real **const at[] = {&d.kt, &d.vt, &d.k, &d.v, &d.dk, &d.dv};
    for (int i = 0; i < 6; i++) *at[i] = memory + i * part;
    d.p = memory + 6 * part, d.dp = d.p + room;
    return d;
}

/* Element of token t of the row of rank k. */
static inline int64_t at(const acf_attention_shape *p, int64_t t, int64_t k) { return p->first[t] + k; }

static void load_turned(acf_real *to, const desk *d, const acf_real *from, const acf_attention_shape *p, int64_t k) {
    for (int64_t t = 0; t < d->L; t++)
        for (int64_t c = 0; c < d->H; c++) to[c * d->room + t] = from[at(p, t, k) * 3 * p->W + c];
}

static void load(acf_real *to, const desk *d, const acf_real *from, const acf_attention_shape *p, int64_t k) {
    for (int64_t t = 0; t < d->L; t++)
        for (int64_t c = 0; c < d->H; c++) to[t * d->H + c] = from[at(p, t, k) * 3 * p->W + c];
}

/* to (n) = Σ_c x_c turned (H,n), times scale. */
static void dots(acf_real *to, const acf_real *x, const acf_real *turned, acf_real scale, int64_t n, int64_t H, int64_t room) {
    for (int64_t j = 0; j < n; j++) to[j] = 0;
    for (int64_t c = 0; c < H; c++) {
        const acf_real a = scale * x[c];
        ACF_SIMD
        for (int64_t j = 0; j < n; j++) to[j] += a * turned[c * room + j];
    }
}

/* to (H) += Σ_j a_j x (n,H). */
static void weigh(acf_real *to, const acf_real *a, const acf_real *x, int64_t n, int64_t H) {
    for (int64_t j = 0; j < n; j++) {
        ACF_SIMD
        for (int64_t c = 0; c < H; c++) to[c] += a[j] * x[j * H + c];
    }
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

/* out (H) of a query that sees n tokens. */
static acf_real answer(acf_real *out, const desk *d, const acf_real *q, int64_t n) {
    dots(d->p, q, d->kt, d->scale, n, d->H, d->room);
    const acf_real lse = softmax(d->p, n);
    for (int64_t c = 0; c < d->H; c++) out[c] = 0;
    weigh(out, d->p, d->v, n, d->H);
    return lse;
}

/* ---- all tokens -------------------------------------------------------------------------------------------------------------- */

static int64_t work_of(const acf_attention_shape *p) { return p->T * (p->steps * 2 + 16) * p->W; }

void acf_attention_fwd_cpu(const acf_device *dev, acf_real *out, acf_real *lse, const acf_real *qkv, const acf_attention_shape *p,
                           acf_real *scratch) {
    const int64_t W = p->W, H = W / p->heads;
    ACF_PARALLEL_UNEVEN(dev, work_of(p))
    for (int64_t i = 0; i < p->ranks * p->heads; i++) {
        const int64_t k = i / p->heads, h = i % p->heads;
        const desk d = desk_in(acf_row_scratch(scratch, acf_attention_scratch(p)), p, p->size[p->row[k]]);
        load_turned(d.kt, &d, qkv + W + h * H, p, k);
        load(d.v, &d, qkv + 2 * W + h * H, p, k);
        for (int64_t t = 0; t < d.L; t++) {
            const int64_t e = at(p, t, k);
            const acf_real sum = answer(out + e * W + h * H, &d, qkv + e * 3 * W + h * H, t + 1);
            if (lse) lse[e * p->heads + h] = sum;
        }
    }
}

/* One query's part of the gradients: dq (H) is added to, dk and dv are the desk's. */
static void back_query(const desk *d, acf_real *dq, const acf_real *q, const acf_real *out, const acf_real *dout, acf_real lse, int64_t n) {
    acf_real dot = 0;
    for (int64_t c = 0; c < d->H; c++) dot += out[c] * dout[c];
    dots(d->p, q, d->kt, d->scale, n, d->H, d->room);
    dots(d->dp, dout, d->vt, 1, n, d->H, d->room);
    ACF_SIMD
    for (int64_t j = 0; j < n; j++) {
        d->p[j] = acf_exp(d->p[j] - lse);
        d->dp[j] = d->p[j] * (d->dp[j] - dot) * d->scale; /* of the score before the scale */
    }
    weigh(dq, d->dp, d->k, n, d->H);
    for (int64_t j = 0; j < n; j++) {
        ACF_SIMD
        for (int64_t c = 0; c < d->H; c++) {
            d->dk[j * d->H + c] += d->dp[j] * q[c];
            d->dv[j * d->H + c] += d->p[j] * dout[c];
        }
    }
}

void acf_attention_bwd_cpu(const acf_device *dev, acf_real *dqkv, const acf_real *dout, const acf_real *out, const acf_real *lse,
                           const acf_real *qkv, const acf_attention_shape *p, acf_real *scratch) {
    const int64_t W = p->W, H = W / p->heads;
    ACF_PARALLEL_UNEVEN(dev, 3 * work_of(p))
    for (int64_t i = 0; i < p->ranks * p->heads; i++) {
        const int64_t k = i / p->heads, h = i % p->heads;
        const desk d = desk_in(acf_row_scratch(scratch, acf_attention_scratch(p)), p, p->size[p->row[k]]);
        load_turned(d.kt, &d, qkv + W + h * H, p, k);
        load_turned(d.vt, &d, qkv + 2 * W + h * H, p, k);
        load(d.k, &d, qkv + W + h * H, p, k);
        for (int64_t j = 0; j < d.L * H; j++) d.dk[j] = d.dv[j] = 0;
        for (int64_t t = 0; t < d.L; t++) {
            const int64_t e = at(p, t, k), here = e * W + h * H, q = e * 3 * W + h * H;
            back_query(&d, dqkv + q, qkv + q, out + here, dout + here, lse[e * p->heads + h], t + 1);
        }
        for (int64_t t = 0; t < d.L; t++)
            for (int64_t c = 0, e = at(p, t, k) * 3 * W + h * H; c < H; c++) {
                dqkv[e + W + c] += d.dk[t * H + c];
                dqkv[e + 2 * W + c] += d.dv[t * H + c];
            }
    }
}

/* The arrays of s as the kernels want them. */
static acf_attention_shape shape_of(const acf_subset *s, int64_t W, int heads) {
    return (acf_attention_shape){s->row, s->rank, s->size, s->first, s->row_of, s->D ? s->active[0] : 0, s->steps, s->T, W, heads};
}

static acf_real *scratch_for(acf_tape *t, const acf_attention_shape *p) { return acf_rows_scratch(t, acf_attention_scratch(p)); }

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_attention_attrs *a = n->attr;
    const acf_attention_shape p = shape_of(a->s, n->out[0]->dim[1], a->heads);
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
    const acf_attention_shape p = shape_of(a->s, n->out[0]->dim[1], a->heads);
    acf_real *dqkv = acf_grad(t, n->in[0]);
    const acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, &p);
    ACF_TRY(acf_tape_status(t));
    if (dqkv) acf_attention_bwd_cpu(t->dev, dqkv, n->out[0]->grad, n->out[0]->data, a->lse, n->in[0]->data, &p, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_attention = {"attention", ACF_OP_attention, {forward, backward}};

/* False, with a failed tape, where the heads do not share the width evenly; n is the number of rows that qkv should have. */
static bool fits(acf_tape *t, const acf_op *op, const acf_tensor *qkv, int heads, int64_t n) {
    char sq[ACF_SHAPE_TEXT];
    if (heads < 1) acf_reject_value(t, op, "%d heads; expected at least 1", heads);
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

/* ---- one token of a row ----------------------------------------------------------------------------------------------------- */

/* The token's place among those of its row. */
static int64_t step_of(const acf_attention_shape *p, int32_t token, int64_t k) {
    int64_t t = 0;
    while (at(p, t, k) < token) t++;
    return t;
}

/* Each score is a dot product with a key as it lies in the cache. */
static void answer_from_cache(acf_real *out, const desk *d, const acf_real *cache, const acf_attention_shape *p, int32_t token, int64_t k) {
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
    for (int64_t j = 0; j < n; j++) weigh(out, d->p + j, cache + at(p, j, k) * 3 * W + 2 * W, 1, d->H);
}

void acf_attention_step_cpu(const acf_device *dev, acf_real *out, const int32_t *token, int64_t n, const acf_real *cache,
                            const acf_attention_shape *p, acf_real *scratch) {
    const int64_t W = p->W, H = W / p->heads;
    ACF_PARALLEL_UNEVEN(dev, 2 * n * p->steps * W)
    for (int64_t i = 0; i < n * p->heads; i++) {
        const int64_t e = i / p->heads, h = i % p->heads;
        acf_real *to = out + e * W + h * H;
        if (token[e] < 0) {
            for (int64_t c = 0; c < H; c++) to[c] = 0;
            continue;
        }
        const desk d = desk_in(acf_row_scratch(scratch, acf_attention_scratch(p)), p, p->steps);
        answer_from_cache(to, &d, cache + h * H, p, token[e], p->rank[p->row_of[token[e]]]);
    }
}

static acf_status step_forward(acf_tape *t, acf_node *n) {
    const acf_attention_step_attrs *a = n->attr;
    const acf_tensor *qkv = n->in[0], *cache = n->in[1];
    const acf_attention_shape p = shape_of(a->s, n->out[0]->dim[1], a->heads);
    const acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = scratch_for(t, &p);
    ACF_TRY(acf_tape_status(t));
    for (int64_t e = 0; e < qkv->dim[0]; e++)
        if (a->token[e] >= 0) memcpy(cache->data + a->token[e] * 3 * p.W, qkv->data + e * 3 * p.W, (size_t)(3 * p.W) * sizeof(acf_real));
    acf_attention_step_cpu(t->dev, n->out[0]->data, a->token, qkv->dim[0], cache->data, &p, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_attention_step = {"attention_step", ACF_OP_attention_step, {step_forward, NULL}};

acf_tensor *acf_attention_step(acf_tape *t, acf_tensor *qkv, const int32_t *token, acf_tensor *cache, int heads, const acf_subset *s) {
    char sc[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_attention_step, sizeof(acf_attention_step_attrs), 2, (acf_tensor *[]){qkv, cache});
    if (!n || !fits(t, n->op, qkv, heads, qkv->dim[0])) return &t->empty;
    if (cache->ndim != 2 || cache->dim[0] != s->T || cache->dim[1] != qkv->dim[1])
        return acf_reject(t, n->op, "the cache is %s; expected (%lld, %lld)", acf_tensor_shape(cache, sc), (long long)s->T,
                          (long long)qkv->dim[1]);
    *(acf_attention_step_attrs *)n->attr = (acf_attention_step_attrs){s, heads, token};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){qkv->dim[0], qkv->dim[1] / 3});
    n->out[0]->row_of = qkv->row_of;
    return acf_node_run(t, n);
}
