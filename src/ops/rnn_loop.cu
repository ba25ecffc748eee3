/* The recurrent loops on the GPU: see rnn_loop.h. A loop is one launch each way (rnn_loop_kernels.h); weight gradients
 * are products over all elements (gru.cuh).
 *
 * Precision bf16 uses the narrow form, for up to 4 layers of at most 256 units on Hopper; all else is plain float.
 * Weights of the narrow form are laid out anew in each forward (a network of 4 layers: 25 us) and kept for the
 * backward. A step that runs the loop of the same weights twice could share them. */
#include "ops/gru.cuh"
#include "ops/rnn_loop_kernels.h"

extern "C" {
#include "ops/rnn_loop.h"
}

#include <cuda_bf16.h>

static_assert(ACF_LOOP_LAYERS == ACF_RNN_LAYERS && (int)ACF_LOOP_SAMPLE == (int)ACF_RNN_SAMPLE,
              "two names of the same");

static const acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }
static const acf_rnn_attrs *attrs_of(const acf_node *n) { return (const acf_rnn_attrs *)n->attr; }

/* The loop, without the fields that one of its passes adds. */
static acf_loop loop_of(const acf_node *n) {
    const acf_rnn_attrs *a = attrs_of(n);
    const acf_subset *u = a->u;
    acf_loop f = {};
    f.s = {u->N, u->D, u->T, a->H, u->active, u->first, u->row};
    f.kind = (acf_loop_kind)a->kind, f.layers = a->layers, f.act = (int)a->act, f.E = a->E, f.F = a->F, f.O = a->O;
    f.bound = (float)a->bound, f.lo = (float)a->lo, f.hi = (float)a->hi;
    for (int l = 0; l < a->layers; l++) {
        acf_loop_layer *y = &f.layer[l];
        y->cond = data_of(acf_rnn_of_layer(n, l, ACF_RNN_COND)), y->bx = data_of(acf_rnn_of_layer(n, l, ACF_RNN_BX));
        y->wx = acf_rnn_of_layer(n, l, ACF_RNN_WX)->data;
        y->wh = acf_rnn_of_layer(n, l, ACF_RNN_WH)->data, y->bh = acf_rnn_of_layer(n, l, ACF_RNN_BH)->data;
        y->gates = a->gates[l], y->h = a->states[l];
    }
    f.w1 = acf_rnn_of_head(n, ACF_RNN_W1)->data, f.b1 = data_of(acf_rnn_of_head(n, ACF_RNN_B1));
    f.w2 = acf_rnn_of_head(n, ACF_RNN_W2)->data, f.b2 = data_of(acf_rnn_of_head(n, ACF_RNN_B2));
    f.image = a->image, f.z = data_of(n->in[ACF_RNN_Z]), f.y = n->out[0]->data, f.hidden = a->hidden, f.out = a->out;
    f.seed = a->draw.seed, f.draw = a->draw.draw, f.now = a->draw.now, f.row_id = a->draw.row_id, f.row_of = u->row_of,
    f.col_of = u->col_of;
    return f;
}

static bool is_narrow(const acf_device *dev, const acf_loop *f) {
    return dev->precision == ACF_PRECISION_BF16 && acf_loop_is_narrow(f);
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Allocates the arrays that a backward reads. */
static void keep(acf_tape *t, acf_rnn_attrs *a, int64_t T, bool narrow) {
    for (int l = 0; l < a->layers; l++) {
        a->gates[l] = (acf_real *)acf_tape_numbers(t, T * 4 * a->H, narrow);
        a->states[l] = (acf_real *)acf_tape_numbers(t, T * a->H, narrow);
    }
    a->hidden = (acf_real *)acf_tape_numbers(t, T * a->F, narrow);
    a->out = acf_tape_reals(t, T * a->O);
}

/* input (T,3H) = known (T,E) through columns 1..E of the first layer's wx. */
static acf_status project_known(acf_tape *t, const acf_node *n, acf_real *input) {
    const acf_rnn_attrs *a = attrs_of(n);
    const acf_gemm g = {false,
                        true,
                        a->u->T,
                        3 * a->H,
                        a->E,
                        1,
                        n->in[ACF_RNN_KNOWN]->data,
                        a->E,
                        acf_rnn_of_layer(n, 0, ACF_RNN_WX)->data + 1,
                        1 + a->E,
                        0,
                        input,
                        3 * a->H};
    return acf_cuda_gemm(t->dev, &g, NULL, false);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_rnn_attrs *a = (acf_rnn_attrs *)n->attr;
    const int64_t T = a->u->T;
    if (T == 0) return ACF_OK;
    const acf_loop sizes = loop_of(n);
    const bool narrow = is_narrow(t->dev, &sizes);
    acf_mark mark = acf_arena_mark(t->mem);
    if (n->save) keep(t, a, T, narrow);
    if (narrow) a->image = acf_tape_reals(t, acf_loop_image_bytes(&sizes) / 4);
    if (n->save) mark = acf_arena_mark(t->mem);
    acf_real *input = a->E ? acf_tape_reals(t, T * 3 * a->H) : NULL,
             *scratch = acf_tape_reals(t, acf_loop_scratch(&sizes, narrow));
    ACF_TRY(acf_tape_status(t));
    acf_loop f = loop_of(n);
    f.input = input, f.scratch = scratch;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (narrow) ACF_CUDA(acf_loop_image_launch(a->image, &f, stream));
    if (input) ACF_TRY(project_known(t, n, input));
    ACF_CUDA(acf_loop_forward_launch(&f, narrow, stream));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

/* ---- backward ---------------------------------------------------------------------------------------------------- */

/* x (T,ld): the first layer's inputs: the value before (prev: its packed index, -1 for none) and the known numbers
 * (T,E), then zeros. */
template <typename G>
static __global__ void first_inputs(G *__restrict__ x, const acf_real *__restrict__ y,
                                    const acf_real *__restrict__ known, const int32_t *prev, const int32_t *rows,
                                    int64_t T, int64_t E, int64_t ld) {
    const int64_t true_rows = *rows;
    ACF_EACH(i, T * ld) {
        acf_cell at = acf_cell_of(i, ld);
        acf_real v = 0;
        if (at.row >= true_rows || at.column > E)
            v = 0;
        else if (at.column > 0)
            v = known[at.row * E + at.column - 1];
        else
            v = prev[at.row] < 0 ? (acf_real)ACF_RNN_START : y[prev[at.row]];
        x[i] = (G)v;
    }
}

static acf_status fill_first_inputs(acf_tape *t, const acf_node *n, void *x, bool narrow) {
    const acf_rnn_attrs *a = attrs_of(n);
    const acf_subset *u = a->u;
    const int64_t ld = acf_number_ld(1 + a->E, narrow);
    const acf_real *y = n->out[0]->data, *known = data_of(n->in[ACF_RNN_KNOWN]);
    const unsigned blocks = acf_each_blocks(u->T * ld);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (narrow)
        first_inputs<<<blocks, ACF_THREADS, 0, stream>>>((__nv_bfloat16 *)x, y, known, u->prev, u->first + u->D, u->T,
                                                         a->E, ld);
    else
        first_inputs<<<blocks, ACF_THREADS, 0, stream>>>((acf_real *)x, y, known, u->prev, u->first + u->D, u->T, a->E,
                                                         ld);
    return ACF_LAUNCHED("first inputs");
}

/* dknown (T,E) += the first layer's gate gradients through columns 1..E of wx; wk: scratch for those as bf16. */
static acf_status known_back(acf_tape *t, const acf_node *n, acf_real *dknown, void *wk, bool narrow) {
    const acf_rnn_attrs *a = attrs_of(n);
    const acf_gru_sizes s = {narrow, a->u->T, a->H, a->E};
    const acf_real *wx = acf_rnn_of_layer(n, 0, ACF_RNN_WX)->data + 1;
    if (narrow) ACF_TRY(acf_cuda_halve_weights(t->dev, wk, wx, 1 + a->E, a->H, a->E));
    return acf_cuda_gru_dinputs(t->dev, &s, dknown, a->gates[0], narrow ? wk : wx, 1 + a->E);
}

/* Gradients of a layer's conditioning, and of its weights, which run beside the main stream: x are its inputs (T,I). */
static acf_status layer_back(acf_tape *t, acf_node *n, const acf_loop *f, int l, const void *x, acf_real *parts,
                             bool narrow) {
    const acf_rnn_attrs *a = attrs_of(n);
    const acf_gru_sizes s = {narrow, f->s.T, a->H, l ? a->H : 1 + a->E};
    acf_real *dcond = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_COND)),
             *dbx = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_BX));
    acf_real *dbh = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_BH));
    acf_real *dwx = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_WX)),
             *dwh = acf_grad(t, acf_rnn_of_layer(n, l, ACF_RNN_WH));
    ACF_CUDA(acf_loop_sums_launch(f, l, dcond, NULL, NULL, parts, narrow, acf_cuda_stream(t->dev)));
    ACF_TRY(acf_cuda_aside(t, true));
    ACF_CUDA(acf_loop_sums_launch(f, l, NULL, dbx, dbh, parts, narrow, acf_cuda_stream(t->dev)));
    ACF_TRY(acf_cuda_gru_weights(t->dev, &s, dwx, dwh, f->layer[l].gates, x, f->layer[l].past));
    return acf_cuda_aside(t, false);
}

static acf_status head_back(acf_tape *t, acf_node *n, const acf_loop *f, acf_real *parts, bool narrow) {
    const acf_rnn_attrs *a = attrs_of(n);
    const int64_t T = f->s.T, H = a->H, F = a->F, O = a->O;
    acf_real *dw1 = acf_grad(t, acf_rnn_of_head(n, ACF_RNN_W1)), *dw2 = acf_grad(t, acf_rnn_of_head(n, ACF_RNN_W2));
    acf_real *db1 = acf_grad(t, acf_rnn_of_head(n, ACF_RNN_B1)), *db2 = acf_grad(t, acf_rnn_of_head(n, ACF_RNN_B2));
    ACF_TRY(acf_cuda_aside(t, true));
    if (dw1) ACF_TRY(acf_cuda_gru_gradient(t->dev, narrow, dw1, F, H, T, f->dhidden, F, f->layer[a->layers - 1].h, H));
    if (dw2) ACF_TRY(acf_cuda_gru_gradient(t->dev, narrow, dw2, O, F, T, f->dout, O, f->hidden, F));
    ACF_CUDA(acf_loop_head_sums_launch(f, db1, db2, parts, narrow, acf_cuda_stream(t->dev)));
    return acf_cuda_aside(t, false);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_rnn_attrs *a = attrs_of(n);
    acf_loop f = loop_of(n);
    const int64_t T = a->u->T, H = a->H;
    const bool narrow = is_narrow(t->dev, &f);
    for (int i = 0; i < n->n_in; i++)
        acf_grad(t, n->in[i]); /* all before the mark: memory behind it is released with this call */
    acf_real *dknown = acf_grad(t, n->in[ACF_RNN_KNOWN]);
    if (T == 0) return acf_tape_status(t);
    acf_mark mark = acf_arena_mark(t->mem);
    for (int l = 0; l < a->layers; l++) f.layer[l].past = acf_tape_numbers(t, T * H, narrow);
    f.dout = acf_tape_numbers(t, T * a->O, narrow), f.dhidden = acf_tape_numbers(t, T * a->F, narrow);
    f.scratch = acf_tape_reals(t, acf_loop_scratch(&f, narrow));
    void *x0 = acf_tape_numbers(t, T * acf_number_ld(1 + a->E, narrow), narrow);
    void *wk = narrow && dknown ? acf_tape_numbers(t, 3 * H * acf_number_ld(a->E, true), true) : NULL;
    acf_real *parts = acf_tape_reals(t, ACF_LOOP_PARTS * acf_max(4 * H, acf_max(a->F, a->O)));
    ACF_TRY(acf_tape_status(t));
    f.dy = n->out[0]->grad, f.dz = acf_grad(t, n->in[ACF_RNN_Z]);
    ACF_CUDA(acf_loop_backward_launch(&f, narrow, acf_cuda_stream(t->dev)));
    ACF_TRY(fill_first_inputs(t, n, x0, narrow));
    for (int l = 0; l < a->layers; l++) ACF_TRY(layer_back(t, n, &f, l, l ? f.layer[l - 1].h : x0, parts, narrow));
    ACF_TRY(head_back(t, n, &f, parts, narrow));
    if (dknown) ACF_TRY(known_back(t, n, dknown, wk, narrow));
    acf_tape_done(t, mark);
    return ACF_OK;
}

ACF_CUDA_OP(rnn_inverse, forward, backward);
ACF_CUDA_OP(rnn_mean, forward, backward);
ACF_CUDA_OP(rnn_sample, forward, NULL);
