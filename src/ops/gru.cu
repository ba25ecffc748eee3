/* The gated recurrent unit on the GPU: see gru.h. The recurrence is behind gru_kernels.h, with one launch per
 * direction if there is a fast kernel. Products that do not depend on the order of steps run over all elements
 * (gru.cuh).
 *
 *     precision   float                    tf32                           bf16
 *     H = 256     float, a launch a step   persistent, float gates        persistent, bf16 gates, weights from an image
 *     others      float, a launch a step   persistent where it fits       the same; else float with bf16 products
 *
 * A forward of the last column is four launches besides its product: image of wh, x and wx as bf16, recurrence.
 * Their results are kept for the backward. Two savings are possible. One launch could make the images and the bf16
 * weights of all layers of a step (16 layers' images: 14 us); now each layer makes its own. A layer on top of
 * another could take x as bf16 from it (acf_gru_forward.h16). */
#include "ops/gru.cuh"

/* The recurrence multiplies this few inputs itself: no separate product, no gates to read. */
#define FEW_INPUTS 4

static const acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }

static acf_gru_math math_of(const acf_device *dev) {
    static const acf_gru_math math[] = {ACF_GRU_FLOAT, ACF_GRU_TF32, ACF_GRU_BF16};
    return math[dev->precision];
}

static acf_gru_sizes sizes_of(const acf_device *dev, const acf_node *n) {
    const acf_gru_plan *p = &((const acf_gru_attrs *)n->attr)->plan;
    const acf_gru_math math = math_of(dev);
    return {math == ACF_GRU_BF16 && acf_gru_is_fast(p->H, math), acf_tensor_rows(n->out[0]), p->H, p->I};
}

static acf_gru_shape shape_of(const acf_node *n) {
    const acf_gru_attrs *a = (const acf_gru_attrs *)n->attr;
    const acf_subset *u = n->out[0]->sub;
    const int64_t T = acf_tensor_rows(n->out[0]);
    if (u) return {u->N, u->D, T, a->plan.H, u->active, u->first, u->row};
    return {T, 1, T, a->plan.H, a->counts, a->counts + 1, a->plan.row};
}

/* counts (3): active and first of a single step. */
static __global__ void count_step(int32_t *counts, int32_t n) { counts[0] = n, counts[1] = 0, counts[2] = n; }

/* x and wx as bf16, from the arena. */
static acf_status halve_inputs(acf_tape *t, acf_node *n, const acf_gru_sizes *s) {
    acf_gru_attrs *a = (acf_gru_attrs *)n->attr;
    const acf_tensor *x = n->in[ACF_GRU_X], *wx = n->in[ACF_GRU_WX];
    const int64_t ld = acf_number_ld(s->I, true);
    a->x16 = acf_tape_numbers(t, s->T * ld, true);
    a->wx16 = acf_tape_numbers(t, 3 * s->H * ld, true);
    ACF_TRY(acf_tape_status(t));
    ACF_TRY(acf_cuda_halve(t->dev, a->x16, x->data, acf_cuda_rows(n->out[0]), s->T, s->I));
    return acf_cuda_halve_weights(t->dev, a->wx16, wx->data, s->I, s->H, s->I);
}

/* Data for the recurrence that the backward needs again: counts, gates, image. Gates hold the input's side if it is
 * projected. */
static acf_status prepare(acf_tape *t, acf_node *n, const acf_gru_sizes *s, bool projected) {
    acf_gru_attrs *a = (acf_gru_attrs *)n->attr;
    const acf_real *wh = n->in[ACF_GRU_WH]->data;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    const int64_t image = s->half ? acf_gru_image_bytes(s->H) : 0;
    if (!n->out[0]->sub) a->counts = acf_tape_ints(t, 3);
    if (n->save || projected) a->gates = (acf_real *)acf_tape_numbers(t, s->T * 4 * s->H, s->half);
    if (image) a->image = acf_tape_reals(t, image / 4);
    ACF_TRY(acf_tape_status(t));
    if (a->counts) count_step<<<1, 1, 0, stream>>>(a->counts, (int32_t)s->T);
    if (image) ACF_CUDA(acf_gru_images_launch(&a->image, &wh, 1, s->H, stream));
    if (!projected) return ACF_LAUNCHED("gru");
    if (s->half) ACF_TRY(halve_inputs(t, n, s));
    return acf_cuda_gru_project(t->dev, s, a->gates, s->half ? a->x16 : n->in[ACF_GRU_X]->data,
                                s->half ? a->wx16 : n->in[ACF_GRU_WX]->data);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_gru_attrs *a = (const acf_gru_attrs *)n->attr;
    const acf_gru_sizes s = sizes_of(t->dev, n);
    const bool projected = s.I > FEW_INPUTS;
    acf_gru_forward f = {};
    if (s.T == 0) return ACF_OK;
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(prepare(t, n, &s, projected));
    f.s = shape_of(n), f.gates = a->gates, f.projected = projected, f.save = n->save, f.image = a->image;
    if (!projected) f.x = n->in[ACF_GRU_X]->data, f.wx = n->in[ACF_GRU_WX]->data, f.I = s.I;
    f.cond = data_of(n->in[ACF_GRU_COND]), f.bx = data_of(n->in[ACF_GRU_BX]), f.h0 = data_of(n->in[ACF_GRU_H0]);
    f.wh = n->in[ACF_GRU_WH]->data, f.bh = n->in[ACF_GRU_BH]->data, f.h = n->out[0]->data;
    ACF_CUDA(acf_gru_forward_launch(&f, math_of(t->dev), acf_cuda_stream(t->dev)));
    if (!n->save) acf_arena_release(t->mem, mark);
    return ACF_OK;
}

/* Turns gates into gradients and adds those of biases, conditioning and the first state; writes past (T,H). */
static acf_status recur_back(acf_tape *t, acf_node *n, const acf_gru_grads *g, void *past, acf_real *scratch) {
    const acf_gru_attrs *a = (const acf_gru_attrs *)n->attr;
    acf_gru_backward b = {};
    b.s = shape_of(n), b.gates = a->gates, b.dh = n->out[0]->grad, b.h = n->out[0]->data,
    b.h0 = data_of(n->in[ACF_GRU_H0]);
    b.wh = n->in[ACF_GRU_WH]->data, b.image = a->image, b.past = past;
    b.dcond = g->cond, b.dbx = g->bx, b.dbh = g->bh, b.dh0 = g->h0, b.scratch = scratch;
    return acf_cuda_status(acf_gru_backward_launch(&b, math_of(t->dev), acf_cuda_stream(t->dev)), "gru backward");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_gru_attrs *a = (acf_gru_attrs *)n->attr;
    const acf_gru_sizes s = sizes_of(t->dev, n);
    acf_real *of[ACF_GRU_INPUTS];
    for (int i = 0; i < ACF_GRU_INPUTS; i++) of[i] = acf_grad(t, n->in[i]);
    const acf_gru_grads g = {of[ACF_GRU_X],  of[ACF_GRU_COND], of[ACF_GRU_H0], of[ACF_GRU_WX],
                             of[ACF_GRU_BX], of[ACF_GRU_WH],   of[ACF_GRU_BH]};
    if (s.T == 0) return acf_tape_status(t);
    const acf_gru_shape shape = shape_of(n);
    acf_mark mark = acf_arena_mark(t->mem);
    void *past = acf_tape_numbers(t, s.T * s.H, s.half);
    acf_real *scratch = acf_tape_reals(t, acf_gru_scratch(&shape));
    ACF_TRY(acf_tape_status(t));
    if (s.half && !a->x16 && (g.x || g.wx)) ACF_TRY(halve_inputs(t, n, &s));
    ACF_TRY(recur_back(t, n, &g, past, scratch));
    ACF_TRY(acf_cuda_aside(t, true));
    ACF_TRY(acf_cuda_gru_weights(t->dev, &s, g.wx, g.wh, a->gates, s.half ? a->x16 : n->in[ACF_GRU_X]->data, past));
    ACF_TRY(acf_cuda_aside(t, false));
    if (g.x && s.I)
        ACF_TRY(acf_cuda_gru_dinputs(t->dev, &s, g.x, a->gates, s.half ? a->wx16 : n->in[ACF_GRU_WX]->data, s.I));
    acf_tape_done(t, mark);
    return ACF_OK;
}

ACF_CUDA_OP(gru_seq, forward, backward);
ACF_CUDA_OP(gru_step, forward, backward);
