/* The GRU as matrix products: see gru.h; formulas and derivatives in docs/math.md, 5.
 *
 * Workload: H = 256, batch 256 to 4096, |u| up to 60, so T = 1,000 to 100,000 packed elements. Forward and backward
 * cost 6·T·3H·(I + H) FLOP; all but the gate arithmetic is products. The products of a step are (n_t,H)·(H,3H) and
 * its transpose, with weights that are packed once for all steps. A row's steps do not depend on other rows, so
 * every thread runs its own rows through all steps without synchronisation. Weight gradients do not depend on the
 * steps' order and are one product each over all T. The gates of element p are stored side by side, so that each of
 * these is a plain sub-matrix:
 *
 *     gates (T,4H)   | r | z | b_n | n |           forward; before the gates are computed: h whᵀ in the first three
 *                                                  columns, x wxᵀ added to r, z and n
 *                    | a_r | a_z | b_n | a_n |     backward, gradients: columns 0..3H belong to the state's side (wh),
 *                                                  columns 0..2H and 3H..4H to the input's (wx)
 */
#include "ops/gru.h"

#include "base/vmath.h"

#include <string.h>

/* c (M,N) += aᵀ · b, a (K,M), b (K,N): a weight's gradient. */
static void add_product(const acf_device *dev, int64_t M, int64_t N, int64_t K, const acf_real *a, int64_t lda,
                        const acf_real *b, int64_t ldb, acf_real *c) {
    acf_cpu_gemm(dev, &(acf_gemm){true, false, M, N, K, 1, a, lda, b, ldb, 1, c, N}, NULL, NULL);
}

/* ---- packed weights ------------------------------------------------------------------------------------------- */

int64_t acf_gru_rights_capacity(int64_t I, int64_t H) {
    int64_t forward = acf_right_capacity(I, 2 * H) + acf_right_capacity(I, H) + acf_right_capacity(H, 3 * H);
    return acf_max(forward, acf_right_capacity(2 * H, I) + acf_right_capacity(H, I) + acf_right_capacity(3 * H, H));
}

acf_gru_rights acf_gru_rights_fwd(const acf_device *dev, acf_real *memory, const acf_real *wx, int64_t ldw,
                                  const acf_real *wh, int64_t I, int64_t H) {
    acf_real *n = memory + acf_right_capacity(I, 2 * H), *h = n + acf_right_capacity(I, H);
    return (acf_gru_rights){I, H, acf_right_make(dev, memory, true, I, 2 * H, wx, ldw),
                            acf_right_make(dev, n, true, I, H, wx + 2 * H * ldw, ldw),
                            acf_right_make(dev, h, true, H, 3 * H, wh, H)};
}

acf_gru_rights acf_gru_rights_bwd(const acf_device *dev, acf_real *memory, const acf_real *wx, int64_t ldw,
                                  const acf_real *wh, int64_t I, int64_t H) {
    acf_real *n = memory + acf_right_capacity(2 * H, I), *h = n + acf_right_capacity(H, I);
    return (acf_gru_rights){I, H, acf_right_make(dev, memory, false, 2 * H, I, wx, ldw),
                            acf_right_make(dev, n, false, H, I, wx + 2 * H * ldw, ldw),
                            acf_right_make(dev, h, false, 3 * H, H, wh, H)};
}

/* ---- division of rows among threads --------------------------------------------------------------------------- */

/* Elements of the ranks below r. */
static int64_t elements_below(const int32_t *active, int64_t steps, int64_t r) {
    int64_t sum = 0;
    for (int64_t t = 0; t < steps; t++) sum += acf_min(active[t], r);
    return sum;
}

int64_t acf_gru_share(const int32_t *active, int64_t steps, int k, int parts) {
    int64_t most = steps ? active[0] : 0, low = 0, high = acf_ceil_div(most, ACF_GRU_SHARE);
    if (k >= parts) return most;
    int64_t wanted = elements_below(active, steps, most) * k / parts;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (elements_below(active, steps, middle * ACF_GRU_SHARE) >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return acf_min(low * ACF_GRU_SHARE, most);
}

/* ---- forward --------------------------------------------------------------------------------------------------- */

/* The gates of one element. In: gates holds h whᵀ in columns r, z and b_n, and x wxᵀ added to r, z and in n; add
 * (3H) is the row's term, bias and conditioning. Out: gates = [r, z, b_n, n], h. `first` is a constant at each call:
 * from the zero state there is no b_n and no previous state, and both forms are vector loops. */
static inline __attribute__((always_inline)) void gates_row(bool first, acf_real *restrict gates, acf_real *restrict h,
                                                            const acf_real *restrict add, const acf_real *restrict bh,
                                                            const acf_real *restrict past, int64_t H) {
    ACF_SIMD
    for (int64_t j = 0; j < H; j++) {
        acf_real bn = bh[2 * H + j] + (first ? 0 : gates[2 * H + j]), old = first ? 0 : past[j];
        acf_real r = acf_sigmoid(gates[j] + add[j] + bh[j]), z = acf_sigmoid(gates[H + j] + add[H + j] + bh[H + j]);
        acf_real n = acf_tanh(gates[3 * H + j] + add[2 * H + j] + r * bn);
        gates[j] = r, gates[H + j] = z, gates[2 * H + j] = bn, gates[3 * H + j] = n;
        h[j] = n + z * (old - n);
    }
}

void acf_gru_states_cpu(const acf_gru_rights *w, acf_real *gates, const acf_real *past, int64_t n) {
    if (past) acf_right_times(&w->h, n, past, w->H, 0, gates, 4 * w->H);
}

void acf_gru_inputs_cpu(const acf_gru_rights *w, acf_real *gates, const acf_real *x, bool add, int64_t n) {
    acf_right_times(&w->rz, n, x, w->I, add, gates, 4 * w->H);
    acf_right_times(&w->n, n, x, w->I, 0, gates + 3 * w->H, 4 * w->H);
}

void acf_gru_gates_cpu(acf_real *h, acf_real *gates, const acf_real *past, const acf_real *cond, const int32_t *row,
                       const acf_real *bx, const acf_real *bh, int64_t n, int64_t H) {
    for (int64_t k = 0; k < n; k++) {
        const acf_real *add = cond ? cond + (row ? row[k] : k) * 3 * H : bx; /* cond includes the bias */
        if (past)
            gates_row(false, gates + k * 4 * H, h + k * H, add, bh, past + k * H, H);
        else
            gates_row(true, gates + k * 4 * H, h + k * H, add, bh, NULL, H);
    }
}

typedef struct pass {
    const acf_gru_plan *p;
    const acf_gru_rights *w;
    const acf_real *x, *cond, *h0, *bx, *bh;
    acf_real *h, *gates;
} pass;

/* All steps of ranks [r0,r1). */
static void forward_rows(const pass *f, int64_t r0, int64_t r1) {
    int64_t H = f->p->H;
    for (int64_t t = 0; t < f->p->steps; t++) {
        int64_t n = acf_min(f->p->active[t], r1) - r0, at = f->p->first[t] + r0;
        if (n <= 0) return;
        const acf_real *past = t ? f->h + (f->p->first[t - 1] + r0) * H : f->h0 ? f->h0 + r0 * H : NULL;
        acf_real *gates = f->gates + at * 4 * H;
        acf_gru_states_cpu(f->w, gates, past, n);
        acf_gru_inputs_cpu(f->w, gates, f->x + at * f->p->I, past != NULL, n);
        const int32_t *row = f->p->row ? f->p->row + r0 : NULL;
        const acf_real *cond = f->cond && !row ? f->cond + r0 * 3 * H : f->cond;
        acf_gru_gates_cpu(f->h + at * H, gates, past, cond, row, f->bx, f->bh, n, H);
    }
}

void acf_gru_fwd_cpu(const acf_device *dev, const acf_gru_plan *p, const acf_gru_rights *w, acf_real *h,
                     acf_real *gates, const acf_real *x, const acf_real *cond, const acf_real *h0, const acf_real *bx,
                     const acf_real *bh) {
    pass f = {p, w, x, cond, h0, bx, bh, h, gates};
    int64_t work = p->first[p->steps] * p->H * (p->I + p->H);
    int parts = acf_threads_for(dev, work);
    ACF_PARALLEL(dev, work)
    for (int k = 0; k < parts; k++)
        forward_rows(&f, acf_gru_share(p->active, p->steps, k, parts),
                     acf_gru_share(p->active, p->steps, k + 1, parts));
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

/* Gradients of one element's gates from dh = dout + carry. gates: [r, z, b_n, n] in, gradients of [a_r, a_z, b_n,
 * a_n] out. carry: in, the gradient from the next step (unless this is the row's last); out, the part z·dh that goes
 * directly to the previous step. The two flags are constants at each call. */
static inline __attribute__((always_inline)) void dgates_row(bool first, bool last, acf_real *restrict gates,
                                                             acf_real *restrict carry, const acf_real *restrict dout,
                                                             const acf_real *restrict past, int64_t H) {
    ACF_SIMD
    for (int64_t j = 0; j < H; j++) {
        acf_real r = gates[j], z = gates[H + j], bn = gates[2 * H + j], n = gates[3 * H + j];
        acf_real old = first ? 0 : past[j];
        acf_real dh = dout[j] + (last ? 0 : carry[j]);
        acf_real dan = dh * (1 - z) * (1 - n * n);
        acf_real dz = dh * (old - n);
        gates[j] = dan * bn * r * (1 - r);
        gates[H + j] = dz * z * (1 - z);
        gates[2 * H + j] = dan * r;
        gates[3 * H + j] = dan;
        carry[j] = dh * z;
    }
}

/* The initial states of the steps, in the packed order of the steps that have one: past (T - from, H). */
static void gather_past(const acf_device *dev, const acf_gru_plan *p, acf_real *past, const acf_real *h,
                        const acf_real *h0) {
    int64_t H = p->H, from = h0 ? 0 : p->first[acf_min(1, p->steps)];
    for (int64_t t = h0 ? 0 : 1; t < p->steps; t++) {
        const acf_real *src = t ? h + p->first[t - 1] * H : h0;
        acf_real *dst = past + (p->first[t] - from) * H;
        ACF_PARALLEL(dev, p->active[t] * H)
        for (int64_t k = 0; k < p->active[t]; k++) memcpy(dst + k * H, src + k * H, (size_t)H * sizeof *dst);
    }
}

/* Sums a row's gradients of [a_r, a_z, a_n] over its steps, in the order of the steps: dcond (N,3H) += . */
static void add_cond(const acf_device *dev, const acf_gru_plan *p, acf_real *dcond, const acf_real *gates) {
    int64_t H = p->H;
    for (int64_t t = 0; t < p->steps; t++) {
        ACF_PARALLEL(dev, p->active[t] * H * 3)
        for (int64_t k = 0; k < p->active[t]; k++) {
            acf_real *d = dcond + (p->row ? p->row[k] : k) * 3 * H;
            const acf_real *g = gates + (p->first[t] + k) * 4 * H;
            ACF_SIMD
            for (int64_t j = 0; j < 2 * H; j++) d[j] += g[j];
            ACF_SIMD
            for (int64_t j = 0; j < H; j++) d[2 * H + j] += g[3 * H + j];
        }
    }
}

void acf_gru_retreat_cpu(const acf_gru_rights *w, acf_real *gates, acf_real *carry, const acf_real *dh,
                         const acf_real *past, int64_t n, int64_t later) {
    int64_t H = w->H;
    for (int64_t k = 0; k < n; k++) {
        acf_real *g = gates + k * 4 * H, *c = carry + k * H;
        const acf_real *d = dh + k * H, *old = past ? past + k * H : NULL;
        if (old && k < later)
            dgates_row(false, false, g, c, d, old, H);
        else if (old)
            dgates_row(false, true, g, c, d, old, H);
        else if (k < later)
            dgates_row(true, false, g, c, d, NULL, H);
        else
            dgates_row(true, true, g, c, d, NULL, H);
    }
    if (past) acf_right_times(&w->h, n, gates, 4 * H, 1, carry, H);
}

void acf_gru_dinputs_cpu(const acf_gru_rights *w, acf_real *dx, const acf_real *gates, bool add, int64_t n) {
    acf_right_times(&w->rz, n, gates, 4 * w->H, add, dx, w->I);
    acf_right_times(&w->n, n, gates + 3 * w->H, 4 * w->H, 1, dx, w->I);
}

void acf_gru_weights_cpu(const acf_device *dev, const acf_gru_plan *p, const acf_gru_grads *g, const acf_real *gates,
                         acf_real *past, const acf_real *h, const acf_real *x, const acf_real *h0) {
    int64_t H = p->H, I = p->I, T = p->first[p->steps], L = 4 * H;
    int64_t from = h0 ? 0 : p->first[acf_min(1, p->steps)]; /* elements before it started from zero */
    if (g->wh) {
        gather_past(dev, p, past, h, h0);
        add_product(dev, 3 * H, H, T - from, gates + from * L, L, past, H, g->wh);
    }
    if (g->bh) acf_cpu_colsum(dev, g->bh, gates, T, 3 * H, L);
    if (g->cond) add_cond(dev, p, g->cond, gates);
    if (g->bx) {
        acf_cpu_colsum(dev, g->bx, gates, T, 2 * H, L);
        acf_cpu_colsum(dev, g->bx + 2 * H, gates + 3 * H, T, H, L);
    }
    if (g->wx) {
        add_product(dev, 2 * H, I, T, gates, L, x, I, g->wx);
        add_product(dev, H, I, T, gates + 3 * H, L, x, I, g->wx + 2 * H * I);
    }
}

/* All steps of ranks [r0,r1), from the last; at the end carry holds the gradient of the initial state. */
static void backward_rows(const acf_gru_plan *p, const acf_gru_rights *w, acf_real *dx, const acf_real *dh,
                          acf_real *gates, acf_real *carry, const acf_real *h, const acf_real *h0, int64_t r0,
                          int64_t r1) {
    int64_t H = p->H;
    for (int64_t t = p->steps - 1; t >= 0; t--) {
        int64_t n = acf_min(p->active[t], r1) - r0, later = t + 1 < p->steps ? p->active[t + 1] - r0 : 0,
                at = p->first[t] + r0;
        if (n <= 0) continue;
        const acf_real *past = t ? h + (p->first[t - 1] + r0) * H : h0 ? h0 + r0 * H : NULL;
        acf_gru_retreat_cpu(w, gates + at * 4 * H, carry + r0 * H, dh + at * H, past, n, later);
        if (dx) acf_gru_dinputs_cpu(w, dx + at * p->I, gates + at * 4 * H, true, n);
    }
}

void acf_gru_bwd_cpu(const acf_device *dev, const acf_gru_plan *p, const acf_gru_rights *w, const acf_gru_grads *g,
                     const acf_real *dh, acf_real *gates, acf_real *carry, acf_real *past, const acf_real *h,
                     const acf_real *x, const acf_real *h0) {
    int64_t H = p->H, work = p->first[p->steps] * H * (p->I + H);
    int parts = acf_threads_for(dev, work);
    ACF_PARALLEL(dev, work)
    for (int k = 0; k < parts; k++)
        backward_rows(p, w, g->x, dh, gates, carry, h, h0, acf_gru_share(p->active, p->steps, k, parts),
                      acf_gru_share(p->active, p->steps, k + 1, parts));
    if (g->h0)
        for (int64_t i = 0; i < (p->steps ? p->active[0] : 0) * H; i++) g->h0[i] += carry[i];
    acf_gru_weights_cpu(dev, p, g, gates, past, h, x, h0);
}

/* ---- nodes: a sequence and a step differ only in their plan --------------------------------------------------- */

static const acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_gru_attrs *a = n->attr;
    const acf_gru_plan *p = &a->plan;
    acf_mark mark = acf_arena_mark(t->mem);
    a->gates = acf_tape_reals(t, p->first[p->steps] * 4 * p->H);
    if (n->save) mark = acf_arena_mark(t->mem);
    acf_real *memory = acf_tape_reals(t, acf_gru_rights_capacity(p->I, p->H));
    ACF_TRY(acf_tape_status(t));
    acf_gru_rights w =
        acf_gru_rights_fwd(t->dev, memory, n->in[ACF_GRU_WX]->data, p->I, n->in[ACF_GRU_WH]->data, p->I, p->H);
    acf_gru_fwd_cpu(t->dev, p, &w, n->out[0]->data, a->gates, n->in[ACF_GRU_X]->data, data_of(n->in[ACF_GRU_COND]),
                    data_of(n->in[ACF_GRU_H0]), data_of(n->in[ACF_GRU_BX]), n->in[ACF_GRU_BH]->data);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_gru_attrs *a = n->attr;
    const acf_gru_plan *p = &a->plan;
    acf_gru_grads g = {acf_grad(t, n->in[ACF_GRU_X]),  acf_grad(t, n->in[ACF_GRU_COND]), acf_grad(t, n->in[ACF_GRU_H0]),
                       acf_grad(t, n->in[ACF_GRU_WX]), acf_grad(t, n->in[ACF_GRU_BX]),   acf_grad(t, n->in[ACF_GRU_WH]),
                       acf_grad(t, n->in[ACF_GRU_BH])};
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *carry = acf_tape_reals(t, (p->steps ? p->active[0] : 0) * p->H);
    acf_real *past = acf_tape_reals(t, p->first[p->steps] * p->H);
    acf_real *memory = acf_tape_reals(t, acf_gru_rights_capacity(p->I, p->H));
    ACF_TRY(acf_tape_status(t));
    acf_gru_rights w =
        acf_gru_rights_bwd(t->dev, memory, n->in[ACF_GRU_WX]->data, p->I, n->in[ACF_GRU_WH]->data, p->I, p->H);
    acf_gru_bwd_cpu(t->dev, p, &w, &g, n->out[0]->grad, a->gates, carry, past, n->out[0]->data, n->in[ACF_GRU_X]->data,
                    data_of(n->in[ACF_GRU_H0]));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_gru_seq = {"gru_seq", ACF_OP_gru_seq, {forward, backward}};
const acf_op acf_op_gru_step = {"gru_step", ACF_OP_gru_step, {forward, backward}};

bool acf_gru_sides_fit(acf_tape *t, const acf_op *op, const acf_tensor *cond, const acf_gru *w, int64_t H, int64_t N) {
    char s[ACF_SHAPE_TEXT];
    if (acf_tensor_count(w->bx) != 3 * H || acf_tensor_count(w->bh) != 3 * H)
        acf_reject(t, op, "the biases have %lld and %lld elements; expected 3H = %lld",
                   (long long)acf_tensor_count(w->bx), (long long)acf_tensor_count(w->bh), (long long)(3 * H));
    else if (cond && (cond->ndim != 2 || cond->dim[0] != N || cond->dim[1] != 3 * H))
        acf_reject(t, op, "the conditioning is %s; expected (%lld, %lld)", acf_tensor_shape(cond, s), (long long)N,
                   (long long)(3 * H));
    return t->failure.status == ACF_OK;
}

/* True if the weights fit each other and x; otherwise the tape has failed with a message. */
static bool fits(acf_tape *t, const acf_op *op, const acf_tensor *x, const acf_tensor *cond, const acf_gru *w,
                 int64_t N) {
    char sx[ACF_SHAPE_TEXT], sw[ACF_SHAPE_TEXT], sh[ACF_SHAPE_TEXT];
    int64_t H = w->wh->ndim == 2 ? w->wh->dim[1] : -1;
    if (H < 1 || w->wh->dim[0] != 3 * H || w->wx->ndim != 2 || w->wx->dim[0] != 3 * H || x->ndim != 2 ||
        x->dim[1] != w->wx->dim[1]) {
        acf_reject(t, op, "x is %s, wx is %s and wh is %s; expected (rows, I), (3H, I) and (3H, H)",
                   acf_tensor_shape(x, sx), acf_tensor_shape(w->wx, sw), acf_tensor_shape(w->wh, sh));
        return false;
    }
    return acf_gru_sides_fit(t, op, cond, w, H, N);
}

static acf_node *node(acf_tape *t, const acf_op *op, acf_tensor *x, acf_tensor *cond, acf_tensor *h0,
                      const acf_gru *w) {
    /* cond includes the bias. */
    acf_tensor *in[ACF_GRU_INPUTS] = {[ACF_GRU_X] = x,
                                      [ACF_GRU_COND] = cond,
                                      [ACF_GRU_H0] = h0,
                                      [ACF_GRU_WX] = w->wx,
                                      [ACF_GRU_BX] = cond ? NULL : w->bx,
                                      [ACF_GRU_WH] = w->wh,
                                      [ACF_GRU_BH] = w->bh};
    return acf_node_new(t, op, sizeof(acf_gru_attrs), ACF_GRU_INPUTS, in);
}

acf_tensor *acf_gru_condition(acf_tape *t, acf_tensor *c, const acf_gru *w) {
    return c && w->wc ? acf_linear(t, c, w->wc, w->bx, ACF_IDENTITY) : NULL;
}

acf_tensor *acf_gru_seq(acf_tape *t, acf_tensor *x, acf_tensor *cond, const acf_gru *w, const acf_subset *u) {
    acf_node *n = node(t, &acf_op_gru_seq, x, cond, NULL, w);
    if (!n || !fits(t, n->op, x, cond, w, u->N)) return &t->empty;
    char sx[ACF_SHAPE_TEXT];
    if (x->sub != u)
        return acf_reject(t, n->op, "x is %s, which is not packed over the subset given (%lld elements)",
                          acf_tensor_shape(x, sx), (long long)u->T);
    int64_t H = w->wh->dim[1];
    ((acf_gru_attrs *)n->attr)->plan = (acf_gru_plan){u->steps, w->wx->dim[1], H, u->active, u->first, u->row};
    n->out[0] = acf_tensor_packed(t, u, H);
    return acf_node_run(t, n);
}

acf_tensor *acf_gru_stack(acf_tape *t, acf_tensor *x, acf_tensor *c, int layers, const acf_gru *w, const acf_subset *u,
                          const acf_drop *drop) {
    acf_drop here = drop ? *drop : (acf_drop){.rate = 0};
    for (int l = 0; l < layers; l++, here.site++)
        x = acf_dropout(t, acf_gru_seq(t, x, acf_gru_condition(t, c, &w[l]), &w[l], u), &here);
    return x;
}

acf_tensor *acf_gru_step(acf_tape *t, acf_tensor *x, acf_tensor *h, acf_tensor *cond, const acf_gru *w,
                         const acf_subset *u) {
    acf_node *n = node(t, &acf_op_gru_step, x, cond, h, w);
    if (!n || !fits(t, n->op, x, cond, w, u ? u->N : acf_tensor_rows(x))) return &t->empty;
    char sh[ACF_SHAPE_TEXT];
    int64_t H = w->wh->dim[1], rows = x->dim[0];
    if (u && rows > u->N)
        return acf_reject(t, n->op, "x has %lld rows; the subset has %lld", (long long)rows, (long long)u->N);
    if (h && (h->ndim != 2 || h->dim[0] < rows || h->dim[1] != H))
        return acf_reject(t, n->op, "the state is %s; expected at least (%lld, %lld)", acf_tensor_shape(h, sh),
                          (long long)rows, (long long)H);
    acf_gru_attrs *a = n->attr;
    a->active[0] = a->first[1] = (int32_t)rows;
    a->plan = (acf_gru_plan){1, w->wx->dim[1], H, a->active, a->first, u ? u->row : NULL};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){rows, H});
    n->out[0]->row_of = u ? u->row : NULL;
    return acf_node_run(t, n);
}
