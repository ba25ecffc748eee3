/* Recurrent networks whose output is fed back: see rnn_loop.h; formulas in docs/math.md, 5.
 *
 * Workload: as in gru.c, but inputs cannot be projected ahead. A step of n rows costs, per layer, two products
 * (n,H)·(H,3H), and the head. The best-guess loss runs one mean loop and one inverse loop per coupling, forward and
 * back. Each thread takes its own rows through all steps and layers and waits for no other thread. Weights are laid out
 * once. While recording, gates and states of all T elements are kept. Otherwise two steps of states alternate, so that
 * sampling a wide table needs memory for one step, not for all. */
#include "ops/rnn_loop.h"

#include "base/vmath.h"
#include "ops/concat.h"
#include "ops/gather.h"
#include "ops/gaussian.h"
#include "ops/mixture.h"

#include <string.h>

static const acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }

/* First row of step s in a buffer: its packed index while recording, else 0. */
static int64_t at(const acf_rnn_attrs *a, int64_t s) { return a->all ? a->u->first[s] : 0; }
/* The states of step s. Those of the step before must be kept, so without all T two halves alternate. */
static acf_real *state(const acf_rnn_attrs *a, int l, int64_t s) {
    int64_t rows = a->all ? a->u->first[s] : (s & 1) * a->u->active[0];
    return a->states[l] + rows * a->H;
}

/* c (M,N) += aᵀ · b, a (K,M), b (K,N): a weight's gradient. */
static void add_product(const acf_device *dev, int64_t M, int64_t N, int64_t K, const acf_real *a, const acf_real *b,
                        acf_real *c) {
    acf_cpu_gemm(dev, &(acf_gemm){true, false, M, N, K, 1, a, M, b, N, 1, c, N}, NULL, NULL);
}

/* ---- weights and threads ----------------------------------------------------------------------------------------- */

/* Right factors of every product of a step, in one direction. */
typedef struct weights {
    acf_gru_rights
        layer[ACF_RNN_LAYERS]; /* the first one's wx without its column for the value before, which is a->w0 */
    acf_right w1, w2;
} weights;

/* Lays out the weights on the tape; the caller has a mark. */
static acf_status lay_out(acf_tape *t, const acf_node *n, bool forward, weights *w) {
    const acf_rnn_attrs *a = n->attr;
    int64_t H = a->H, F = a->F, O = a->O;
    for (int l = 0; l < a->layers; l++) {
        const acf_real *wx = acf_rnn_of_layer(n, l, ACF_RNN_WX)->data + !l,
                       *wh = acf_rnn_of_layer(n, l, ACF_RNN_WH)->data;
        int64_t I = l ? H : a->E, ldw = l ? H : 1 + a->E;
        acf_real *capacity = acf_tape_reals(t, acf_gru_rights_capacity(I, H));
        if (capacity)
            w->layer[l] = (forward ? acf_gru_rights_fwd : acf_gru_rights_bwd)(t->dev, capacity, wx, ldw, wh, I, H);
    }
    acf_real *room1 = acf_tape_reals(t, acf_max(acf_right_capacity(H, F), acf_right_capacity(F, H)));
    acf_real *room2 = acf_tape_reals(t, acf_max(acf_right_capacity(F, O), acf_right_capacity(O, F)));
    ACF_TRY(acf_tape_status(t));
    const acf_real *w1 = acf_rnn_of_head(n, ACF_RNN_W1)->data, *w2 = acf_rnn_of_head(n, ACF_RNN_W2)->data;
    w->w1 =
        forward ? acf_right_make(t->dev, room1, true, H, F, w1, H) : acf_right_make(t->dev, room1, false, F, H, w1, H);
    w->w2 =
        forward ? acf_right_make(t->dev, room2, true, F, O, w2, F) : acf_right_make(t->dev, room2, false, O, F, w2, F);
    return ACF_OK;
}

/* The work of all steps, for acf_threads_for. */
static int64_t work_of(const acf_rnn_attrs *a) { return a->u->T * a->H * a->H * a->layers; }

/* ---- the value of a step from the head's output ------------------------------------------------------------------ */

/* y (n) = (z - shift) e^-s from out (n,O) = (raw, shift) or (shift). */
static void invert(acf_real *y, const acf_real *z, const acf_real *out, int64_t O, acf_real bound, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        acf_real s = O == 2 ? bound * acf_tanh(out[2 * k] / bound) : 0, shift = out[O * k + O - 1];
        y[k] = (z[k] - shift) * acf_exp(-s);
    }
}

/* Adds to dz (n; NULL = not needed) and dout (n,O) from dy (n). */
static void dinvert(acf_real *dz, acf_real *dout, const acf_real *dy, const acf_real *y, const acf_real *out, int64_t O,
                    acf_real bound, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        acf_real th = O == 2 ? acf_tanh(out[2 * k] / bound) : 0, shrunk = dy[k] * acf_exp(-bound * th);
        if (dz) dz[k] += shrunk;
        dout[O * k + O - 1] -= shrunk;
        if (O == 2) dout[2 * k] -= dy[k] * y[k] * (1 - th * th);
    }
}

/* Rows of one thread at one step: elements [first, first + rows) of the packed order, ranks from r0 on, and their row
 * in the loop's buffers. */
typedef struct row_range {
    int64_t s, r0, rows, first, at;
} row_range;

static void feed_back(const acf_device *one, const acf_node *n, const row_range *e) {
    const acf_rnn_attrs *a = n->attr;
    acf_real *y = n->out[0]->data + e->first;
    const acf_real *out = a->out + e->at * a->O;
    acf_draw d = a->draw;
    d.at = (acf_cells){a->u->row_of + e->first, a->u->col_of + e->first};
    if (a->kind == ACF_RNN_INVERSE)
        invert(y, n->in[ACF_RNN_Z]->data + e->first, out, a->O, (acf_real)a->bound, e->rows);
    if (a->kind == ACF_RNN_MEAN) acf_mixture_mean_fwd_cpu(one, y, out, e->rows, a->K);
    if (a->kind == ACF_RNN_SAMPLE) acf_mixture_sample_fwd_cpu(one, y, out, &d, e->rows, a->K, a->lo, a->hi);
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* The first layer's input side at one step: adds the value before times its column of the weights. rz: columns r and z
 * already hold a sum; known: column n does. */
static void add_value(acf_real *gates, const acf_real *before, const acf_real *w0, bool rz, bool known, int64_t n,
                      int64_t H) {
    for (int64_t k = 0; k < n; k++) {
        acf_real *g = gates + k * 4 * H, v = before ? before[k] : ACF_R(ACF_RNN_START);
        if (!rz) memset(g, 0, (size_t)(2 * H) * sizeof *g);
        if (!known) memset(g + 3 * H, 0, (size_t)H * sizeof *g);
        ACF_SIMD
        for (int64_t j = 0; j < 2 * H; j++) g[j] += v * w0[j];
        ACF_SIMD
        for (int64_t j = 0; j < H; j++) g[3 * H + j] += v * w0[2 * H + j];
    }
}

static void layer_forward(const acf_node *n, const weights *w, int l, const row_range *e) {
    const acf_rnn_attrs *a = n->attr;
    int64_t H = a->H;
    acf_real *gates = a->gates[l] + e->at * 4 * H;
    const acf_real *past = e->s ? state(a, l, e->s - 1) + e->r0 * H : NULL;
    acf_gru_states_cpu(&w->layer[l], gates, past, e->rows);
    if (l)
        acf_gru_inputs_cpu(&w->layer[l], gates, state(a, l - 1, e->s) + e->r0 * H, past != NULL, e->rows);
    else if (a->E)
        acf_gru_inputs_cpu(&w->layer[l], gates, n->in[ACF_RNN_KNOWN]->data + e->first * a->E, past != NULL, e->rows);
    if (l == 0) {
        const acf_real *before = e->s ? n->out[0]->data + a->u->first[e->s - 1] + e->r0 : NULL;
        add_value(gates, before, a->w0, past || a->E, a->E > 0, e->rows, H);
    }
    acf_gru_gates_cpu(state(a, l, e->s) + e->r0 * H, gates, past, data_of(acf_rnn_of_layer(n, l, ACF_RNN_COND)),
                      a->u->row + e->r0, data_of(acf_rnn_of_layer(n, l, ACF_RNN_BX)),
                      acf_rnn_of_layer(n, l, ACF_RNN_BH)->data, e->rows, H);
}

static void step_forward(const acf_device *one, const acf_node *n, const weights *w, const row_range *e) {
    const acf_rnn_attrs *a = n->attr;
    int64_t H = a->H, F = a->F, O = a->O;
    for (int l = 0; l < a->layers; l++) layer_forward(n, w, l, e);
    acf_real *hidden = a->hidden + e->at * F, *out = a->out + e->at * O;
    acf_right_times(&w->w1, e->rows, state(a, a->layers - 1, e->s) + e->r0 * H, H, 0, hidden, F);
    acf_linear_finish_cpu(hidden, F, data_of(acf_rnn_of_head(n, ACF_RNN_B1)), a->act, e->rows, F);
    acf_right_times(&w->w2, e->rows, hidden, F, 0, out, O);
    acf_linear_finish_cpu(out, O, data_of(acf_rnn_of_head(n, ACF_RNN_B2)), ACF_IDENTITY, e->rows, O);
    feed_back(one, n, e);
}

/* The rows of part k of `parts` at step s; rows <= 0 if none are left. */
static row_range part_of(const acf_rnn_attrs *a, int64_t s, int k, int parts) {
    const acf_subset *u = a->u;
    int64_t r0 = acf_gru_share(u->active, u->steps, k, parts), r1 = acf_gru_share(u->active, u->steps, k + 1, parts);
    return (row_range){s, r0, acf_min(u->active[s], r1) - r0, u->first[s] + r0, at(a, s) + r0};
}

/* The caller's device with one thread, for calls within a thread's part. */
static acf_device single_thread_device(const acf_device *dev) {
    acf_device one = *dev;
    one.threads = 1;
    return one;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_rnn_attrs *a = n->attr;
    const acf_subset *u = a->u;
    a->all = n->save;
    int64_t most = u->steps ? u->active[0] : 0, kept = a->all ? u->T : most;
    acf_mark mark = acf_arena_mark(t->mem);
    for (int l = 0; l < a->layers; l++) {
        a->gates[l] = acf_tape_reals(t, kept * 4 * a->H);
        a->states[l] = acf_tape_reals(t, (a->all ? u->T : 2 * most) * a->H);
    }
    a->hidden = acf_tape_reals(t, kept * a->F);
    a->out = acf_tape_reals(t, kept * a->O);
    a->w0 = acf_tape_reals(t, 3 * a->H);
    if (n->save) mark = acf_arena_mark(t->mem);
    weights w;
    ACF_TRY(lay_out(t, n, true, &w));
    for (int64_t j = 0; j < 3 * a->H; j++) a->w0[j] = acf_rnn_of_layer(n, 0, ACF_RNN_WX)->data[j * (1 + a->E)];
    acf_device one = single_thread_device(t->dev);
    int parts = acf_threads_for(t->dev, work_of(a));
    ACF_PARALLEL(t->dev, work_of(a))
    for (int k = 0; k < parts; k++)
        for (int64_t s = 0; s < u->steps; s++) {
            row_range e = part_of(a, s, k, parts);
            if (e.rows > 0) step_forward(&one, n, &w, &e);
        }
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

typedef struct scratch {
    acf_real *dy;                    /* (T) of the values: from outside and from the next step */
    acf_real *dvalue;                /* (rows) gradient of the value before, from this step */
    acf_real *dout, *dhidden;        /* (T,O), (T,F) */
    acf_real *dtop;                  /* (rows,H) of a layer's output at one step */
    acf_real *carry[ACF_RNN_LAYERS]; /* (rows,H) */
    acf_real *past, *x0;             /* (T,H), (T,1+E) */
} scratch;

static acf_status get_scratch(acf_tape *t, const acf_node *n, scratch *w) {
    const acf_rnn_attrs *a = n->attr;
    int64_t T = a->u->T, most = a->u->steps ? a->u->active[0] : 0;
    w->dy = acf_tape_reals(t, T), w->dvalue = acf_tape_reals(t, most);
    w->dout = acf_tape_reals(t, T * a->O), w->dhidden = acf_tape_reals(t, T * a->F);
    w->dtop = acf_tape_reals(t, most * a->H);
    for (int l = 0; l < a->layers; l++) w->carry[l] = acf_tape_reals(t, most * a->H);
    w->past = acf_tape_reals(t, T * a->H), w->x0 = acf_tape_reals(t, T * (1 + a->E));
    ACF_TRY(acf_tape_status(t));
    memcpy(w->dy, n->out[0]->grad, (size_t)T * sizeof *w->dy);
    memset(w->dout, 0, (size_t)(T * a->O) * sizeof *w->dout);
    return ACF_OK;
}

/* dvalue (n): gradient of the value before, from the first layer's input side. */
static void dvalue_of(acf_real *dvalue, const acf_real *gates, const acf_real *w0, int64_t n, int64_t H) {
    for (int64_t k = 0; k < n; k++) {
        const acf_real *g = gates + k * 4 * H;
        acf_real sum = 0;
        ACF_PRAGMA(omp simd reduction(+ : sum))
        for (int64_t j = 0; j < 2 * H; j++) sum += g[j] * w0[j];
        ACF_PRAGMA(omp simd reduction(+ : sum))
        for (int64_t j = 0; j < H; j++) sum += g[3 * H + j] * w0[2 * H + j];
        dvalue[k] = sum;
    }
}

/* Gradients of the loop's inputs: of z and of the step's known numbers; NULL = not needed. */
typedef struct input_grads {
    acf_real *z, *known;
} input_grads;

/* dtop (rows,H): the gradient of the last layer's output. later: rows that have a next step. */
static void head_backward(const acf_device *one, const acf_node *n, const weights *v, const scratch *w, acf_real *dz,
                          const row_range *e, int64_t later) {
    const acf_rnn_attrs *a = n->attr;
    int64_t H = a->H, F = a->F, O = a->O;
    acf_real *dy = w->dy + e->first, *dout = w->dout + e->first * O, *dhidden = w->dhidden + e->first * F;
    for (int64_t k = 0; k < later; k++) dy[k] += w->dvalue[e->r0 + k];
    const acf_real *out = a->out + e->first * O;
    if (a->kind == ACF_RNN_MEAN)
        acf_mixture_mean_bwd_cpu(one, dout, dy, out, e->rows, a->K);
    else
        dinvert(dz ? dz + e->first : NULL, dout, dy, n->out[0]->data + e->first, out, O, (acf_real)a->bound, e->rows);
    acf_right_times(&v->w2, e->rows, dout, O, 0, dhidden, F);
    acf_act_bwd_cpu(a->act, dhidden, dhidden, a->hidden + e->first * F, e->rows * F);
    acf_right_times(&v->w1, e->rows, dhidden, F, 0, w->dtop + e->r0 * H, H);
}

static void step_backward(const acf_device *one, const acf_node *n, const weights *v, const scratch *w,
                          const input_grads *d, const row_range *e) {
    const acf_rnn_attrs *a = n->attr;
    int64_t H = a->H, later = e->s + 1 < a->u->steps ? acf_min(e->rows, a->u->active[e->s + 1] - e->r0) : 0;
    acf_real *dtop = w->dtop + e->r0 * H;
    head_backward(one, n, v, w, d->z, e, later);
    for (int l = a->layers - 1; l >= 0; l--) {
        acf_real *gates = a->gates[l] + e->first * 4 * H;
        const acf_real *past = e->s ? state(a, l, e->s - 1) + e->r0 * H : NULL;
        acf_gru_retreat_cpu(&v->layer[l], gates, w->carry[l] + e->r0 * H, dtop, past, e->rows, later);
        if (l)
            acf_gru_dinputs_cpu(&v->layer[l], dtop, gates, false, e->rows);
        else if (d->known)
            acf_gru_dinputs_cpu(&v->layer[l], d->known + e->first * a->E, gates, true, e->rows);
    }
    dvalue_of(w->dvalue + e->r0, a->gates[0] + e->first * 4 * H, a->w0, e->rows, H);
}

/* (value before, known) of every element: the first layer's input. */
static void first_inputs(const acf_tape *t, const acf_node *n, acf_real *x0) {
    const acf_rnn_attrs *a = n->attr;
    int64_t E = a->E, I = 1 + E;
    ACF_PARALLEL(t->dev, a->u->T * I)
    for (int64_t p = 0; p < a->u->T; p++) {
        x0[p * I] = a->u->prev[p] < 0 ? ACF_R(ACF_RNN_START) : n->out[0]->data[a->u->prev[p]];
        for (int64_t e = 0; e < E; e++) x0[p * I + 1 + e] = n->in[ACF_RNN_KNOWN]->data[p * E + e];
    }
}

typedef struct head_grads {
    acf_real *w1, *b1, *w2, *b2;
} head_grads;

/* Every weight gradient, each one product over all steps. */
static void weights_backward(const acf_tape *t, const acf_node *n, const acf_gru_grads *g, const head_grads *h,
                             const scratch *w) {
    const acf_rnn_attrs *a = n->attr;
    const acf_subset *u = a->u;
    int64_t T = u->T, H = a->H, F = a->F, O = a->O;
    first_inputs(t, n, w->x0);
    for (int l = 0; l < a->layers; l++) {
        acf_gru_plan plan = {u->steps, l ? H : 1 + a->E, H, u->active, u->first, u->row};
        acf_gru_weights_cpu(t->dev, &plan, &g[l], a->gates[l], w->past, a->states[l], l ? a->states[l - 1] : w->x0,
                            NULL);
    }
    if (h->w2) add_product(t->dev, O, F, T, w->dout, a->hidden, h->w2);
    if (h->b2) acf_cpu_colsum(t->dev, h->b2, w->dout, T, O, O);
    if (h->w1) add_product(t->dev, F, H, T, w->dhidden, a->states[a->layers - 1], h->w1);
    if (h->b1) acf_cpu_colsum(t->dev, h->b1, w->dhidden, T, F, F);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_rnn_attrs *a = n->attr;
    acf_gru_grads g[ACF_RNN_LAYERS];
    input_grads d = {acf_grad(t, n->in[ACF_RNN_Z]), acf_grad(t, n->in[ACF_RNN_KNOWN])};
    for (int l = 0; l < a->layers; l++)
        g[l] = (acf_gru_grads){.cond = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_COND)),
                               .wx = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_WX)),
                               .bx = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_BX)),
                               .wh = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_WH)),
                               .bh = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_BH))};
    head_grads h = {acf_grad(t, acf_rnn_of_head(n, ACF_RNN_W1)), acf_grad(t, acf_rnn_of_head(n, ACF_RNN_B1)),
                    acf_grad(t, acf_rnn_of_head(n, ACF_RNN_W2)), acf_grad(t, acf_rnn_of_head(n, ACF_RNN_B2))};
    acf_mark mark = acf_arena_mark(t->mem);
    scratch w;
    weights v;
    ACF_TRY(get_scratch(t, n, &w));
    ACF_TRY(lay_out(t, n, false, &v));
    acf_device one = single_thread_device(t->dev);
    int parts = acf_threads_for(t->dev, work_of(a));
    ACF_PARALLEL(t->dev, work_of(a))
    for (int k = 0; k < parts; k++)
        for (int64_t s = a->u->steps - 1; s >= 0; s--) {
            row_range e = part_of(a, s, k, parts);
            if (e.rows > 0) step_backward(&one, n, &v, &w, &d, &e);
        }
    weights_backward(t, n, g, &h, &w);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_rnn_inverse = {"rnn_inverse", ACF_OP_rnn_inverse, {forward, backward}};
const acf_op acf_op_rnn_mean = {"rnn_mean", ACF_OP_rnn_mean, {forward, backward}};
const acf_op acf_op_rnn_sample = {"rnn_sample", ACF_OP_rnn_sample, {forward, NULL}};

/* ---- front ends -------------------------------------------------------------------------------------------------- */

static bool is_matrix(const acf_tensor *x, int64_t rows, int64_t cols) {
    return x->ndim == 2 && x->dim[0] == rows && x->dim[1] == cols;
}

/* Checks the recurrent layers: H units in each, 1 + E inputs of the first. False with a failed tape. */
static bool layers_fit(acf_tape *t, const acf_op *op, const acf_rnn *w, int64_t E) {
    char a[ACF_SHAPE_TEXT], b[ACF_SHAPE_TEXT];
    if (w->layers < 1 || w->layers > ACF_RNN_LAYERS) {
        acf_reject_value(t, op, "%d layers; expected 1 to %d", w->layers, ACF_RNN_LAYERS);
        return false;
    }
    int64_t H = w->gru[0].wh->dim[1];
    if (H < 1) {
        acf_reject(t, op, "wh is %s; expected (3H, H), H at least 1", acf_tensor_shape(w->gru[0].wh, a));
        return false;
    }
    for (int l = 0; l < w->layers; l++) {
        const acf_tensor *wx = w->gru[l].wx, *wh = w->gru[l].wh;
        int64_t I = l ? H : 1 + E;
        if (!is_matrix(wx, 3 * H, I) || !is_matrix(wh, 3 * H, H)) {
            acf_reject(t, op, "layer %d: wx is %s and wh is %s; expected (%lld, %lld) and (%lld, %lld)", l,
                       acf_tensor_shape(wx, a), acf_tensor_shape(wh, b), (long long)(3 * H), (long long)I,
                       (long long)(3 * H), (long long)H);
            return false;
        }
        if (!acf_gru_sides_fit(t, op, NULL, &w->gru[l], H, 0)) return false;
    }
    return true;
}

static int64_t count_or(const acf_tensor *b, int64_t none) { return b ? acf_tensor_count(b) : none; }

/* Checks the head, from H units to O outputs; its biases may be NULL, as in acf_linear. */
static bool head_fits(acf_tape *t, const acf_op *op, const acf_rnn *w, int64_t H, int64_t O) {
    char a[ACF_SHAPE_TEXT], b[ACF_SHAPE_TEXT];
    int64_t F = w->w1->dim[0];
    if (!is_matrix(w->w1, F, H) || !is_matrix(w->w2, O, F))
        acf_reject(t, op, "the head is %s then %s; expected (F, %lld) then (%lld, F)", acf_tensor_shape(w->w1, a),
                   acf_tensor_shape(w->w2, b), (long long)H, (long long)O);
    else if (count_or(w->b1, F) != F || count_or(w->b2, O) != O)
        acf_reject(t, op, "the head's biases have %lld and %lld elements; expected %lld and %lld",
                   (long long)count_or(w->b1, F), (long long)count_or(w->b2, O), (long long)F, (long long)O);
    else if ((unsigned)w->act >= ACF_ACT_COUNT)
        acf_reject_value(t, op, "there is no activation number %d", (int)w->act);
    return t->failure.status == ACF_OK;
}

/* False, with a failed tape, when the network does not fit itself, the known numbers, or the required outputs. */
static bool fits(acf_tape *t, const acf_op *op, const acf_rnn *w, const acf_tensor *known, int64_t O,
                 const acf_subset *u) {
    char a[ACF_SHAPE_TEXT];
    if (known && (known->ndim != 2 || known->sub != u)) {
        acf_reject(t, op, "the known numbers are %s; expected (%lld packed, E)", acf_tensor_shape(known, a),
                   (long long)u->T);
        return false;
    }
    return layers_fit(t, op, w, known ? known->dim[1] : 0) && head_fits(t, op, w, w->gru[0].wh->dim[1], O);
}

/* The same bounds as in mixture.h, whose kernels are called directly here. */
static bool mixture_fits(acf_tape *t, const acf_op *op, int64_t K, double lo, double hi) {
    if (t->failure.status) return false;
    if (K < 1 || K > ACF_MAX_COMPONENTS)
        acf_reject_value(t, op, "K is %lld; expected 1 to %d components", (long long)K, ACF_MAX_COMPONENTS);
    else if (!acf_scale_bounds_ok(lo, hi))
        acf_reject_value(t, op, ACF_BAD_SCALE_BOUNDS, lo, hi);
    return t->failure.status == ACF_OK;
}

/* Makes and runs the node of a loop. o holds kind, K, bound, lo, hi, draw and O; the rest is filled here. */
static acf_tensor *loop(acf_tape *t, const acf_op *op, const acf_rnn *w, acf_tensor *z, acf_tensor *known,
                        acf_tensor *c, acf_rnn_attrs o, const acf_subset *u) {
    if (t->failure.status || !fits(t, op, w, known, o.O, u)) return &t->empty;
    acf_tensor *in[ACF_RNN_LAYER + ACF_RNN_LAYERS * ACF_RNN_PER_LAYER + ACF_RNN_HEAD] = {
        [ACF_RNN_Z] = z, [ACF_RNN_KNOWN] = known};
    acf_tensor **next = in + ACF_RNN_LAYER;
    for (int l = 0; l < w->layers; l++, next += ACF_RNN_PER_LAYER) {
        const acf_gru *g = &w->gru[l];
        next[ACF_RNN_COND] = acf_gru_condition(t, c, g);
        if (t->failure.status || !acf_gru_sides_fit(t, op, next[ACF_RNN_COND], g, w->gru[0].wh->dim[1], u->N))
            return &t->empty;
        next[ACF_RNN_BX] = next[ACF_RNN_COND] ? NULL : g->bx; /* cond includes the bias */
        next[ACF_RNN_WX] = g->wx, next[ACF_RNN_WH] = g->wh, next[ACF_RNN_BH] = g->bh;
    }
    next[ACF_RNN_W1] = w->w1, next[ACF_RNN_B1] = w->b1, next[ACF_RNN_W2] = w->w2, next[ACF_RNN_B2] = w->b2;
    acf_node *n =
        acf_node_new(t, op, sizeof(acf_rnn_attrs), ACF_RNN_LAYER + w->layers * ACF_RNN_PER_LAYER + ACF_RNN_HEAD, in);
    if (!n) return &t->empty;
    o.layers = w->layers, o.H = w->gru[0].wh->dim[1], o.E = known ? known->dim[1] : 0, o.F = w->w1->dim[0];
    o.act = w->act, o.u = u;
    *(acf_rnn_attrs *)n->attr = o;
    n->out[0] = acf_tensor_packed(t, u, 0);
    return acf_node_run(t, n);
}

acf_tensor *acf_rnn_inverse(acf_tape *t, const acf_rnn *w, acf_tensor *z, acf_tensor *known, acf_tensor *c,
                            double bound, const acf_subset *u) {
    char s[ACF_SHAPE_TEXT];
    if (t->failure.status) return &t->empty;
    int64_t O = w->w2->dim[0];
    if (z->ndim != 1 || z->sub != u)
        return acf_reject(t, &acf_op_rnn_inverse, "z is %s; expected (%lld packed)", acf_tensor_shape(z, s),
                          (long long)u->T);
    if ((O != 1 && O != 2) || !(bound > 0 && isfinite(bound)))
        return acf_reject_value(t, &acf_op_rnn_inverse,
                                "%lld outputs and bound %g; expected 1 or 2 outputs, a positive bound", (long long)O,
                                bound);
    return loop(t, &acf_op_rnn_inverse, w, z, known, c,
                (acf_rnn_attrs){.kind = ACF_RNN_INVERSE, .O = O, .bound = bound}, u);
}

acf_tensor *acf_rnn_mean(acf_tape *t, const acf_rnn *w, acf_tensor *known, acf_tensor *c, int64_t K,
                         const acf_subset *u) {
    if (!mixture_fits(t, &acf_op_rnn_mean, K, 0, 0)) return &t->empty;
    return loop(t, &acf_op_rnn_mean, w, NULL, known, c, (acf_rnn_attrs){.kind = ACF_RNN_MEAN, .O = 3 * K, .K = K}, u);
}

acf_tensor *acf_rnn_sample(acf_tape *t, const acf_rnn *w, acf_tensor *known, acf_tensor *c, int64_t K, double lo,
                           double hi, const acf_draw *d, const acf_subset *u) {
    if (!mixture_fits(t, &acf_op_rnn_sample, K, lo, hi)) return &t->empty;
    return loop(t, &acf_op_rnn_sample, w, NULL, known, c,
                (acf_rnn_attrs){.kind = ACF_RNN_SAMPLE, .O = 3 * K, .K = K, .lo = lo, .hi = hi, .draw = *d}, u);
}

acf_tensor *acf_rnn_seq(acf_tape *t, const acf_rnn *w, acf_tensor *v, acf_tensor *known, acf_tensor *c,
                        const acf_subset *u, const acf_drop *drop) {
    if (t->failure.status || !fits(t, &acf_op_gru_seq, w, known, w->w2->dim[0], u)) return &t->empty;
    acf_tensor *x = acf_gather_prev(t, v, u, ACF_RNN_START);
    x = known ? acf_concat(t, 2, (acf_tensor *[]){x, known}) : acf_tensor_view(t, x, 2, (int64_t[]){u->T, 1});
    acf_tensor *h = acf_gru_stack(t, x, c, w->layers, w->gru, u, drop);
    return acf_linear(t, acf_linear(t, h, w->w1, w->b1, w->act), w->w2, w->b2, ACF_IDENTITY);
}
