/* A transformer's block on the GPU: see transformer_block.h. In bf16 transformer_narrow.cu runs it where it fits.
 * Otherwise its operations run one after the other, from a list of their nodes that the backward goes through in
 * reverse. */
#include "ops/transformer_block.cuh"

#include <string.h>

extern "C" {
#include "ops/arith.h"
#include "ops/layer_norm.h"
#include "ops/linear.h"

extern const acf_kernel acf_cuda_op_layer_norm, acf_cuda_op_linear, acf_cuda_op_attention;
extern const acf_kernel acf_cuda_op_gelu, acf_cuda_op_dropout, acf_cuda_op_add;
}

#define PARTS 12 /* two norms, four products, attention, gelu, and dropout and a sum twice */

typedef struct part {
    const acf_kernel *kernel;
    acf_node node;
    acf_tensor *in[3], out;
    union {
        acf_layer_norm_attrs norm;
        acf_linear_attrs linear;
        acf_attention_attrs attention;
        acf_dropout_attrs dropout;
        acf_add_attrs add;
    } attr;
} part;

/* In host memory of the step. */
typedef struct parts {
    const acf_op *op;
    bool save;
    int n;
    part part[PARTS];
} parts;

/* The result of an operation on up to three inputs: (T,C), in the caller's memory if given. NULL after a failure. */
static acf_tensor *call(acf_tape *t, parts *all, const acf_kernel *kernel, const void *attr, size_t attr_bytes,
                        int64_t C, acf_tensor *a, acf_tensor *b, acf_tensor *c, acf_real *to) {
    if (!a) return NULL;
    part *p = &all->part[all->n++];
    const int64_t T = a->dim[0];
    *p = {kernel};
    if (attr) memcpy(&p->attr, attr, attr_bytes);
    p->in[0] = a, p->in[1] = b, p->in[2] = c;
    p->out.ndim = 2, p->out.dim[0] = T, p->out.dim[1] = C, p->out.sub = a->sub, p->out.needs_grad = all->save;
    p->out.data = to ? to : acf_tape_reals(t, T * C);
    p->node.op = all->op, p->node.in = p->in, p->node.n_in = 3;
    p->node.out[0] = &p->out, p->node.n_out = 1, p->node.save = all->save;
    p->node.attr = &p->attr;
    if (!p->out.data) return NULL;
    if (kernel->forward(t, &p->node)) {
        acf_tape_fail(t, all->op);
        return NULL;
    }
    return &p->out;
}

static acf_tensor *norm(acf_tape *t, parts *all, acf_tensor *x, acf_tensor **p) {
    return x ? call(t, all, &acf_cuda_op_layer_norm, NULL, 0, x->dim[1], x, p[0], p[1], NULL) : NULL;
}

static acf_tensor *linear(acf_tape *t, parts *all, acf_tensor *x, acf_tensor **p) {
    const acf_linear_attrs a = {ACF_IDENTITY};
    return call(t, all, &acf_cuda_op_linear, &a, sizeof a, p[0]->dim[0], x, p[0], p[1], NULL);
}

/* h + drop(x), in the caller's memory if given. */
static acf_tensor *join(acf_tape *t, parts *all, const acf_transformer_block_attrs *a, int i, acf_tensor *h,
                        acf_tensor *x, acf_real *to) {
    const acf_dropout_attrs drop = {a->told.drop[i], NULL};
    const acf_add_attrs both = {1, 1};
    if (a->drops[i] && x) x = call(t, all, &acf_cuda_op_dropout, &drop, sizeof drop, x->dim[1], x, NULL, NULL, NULL);
    return x ? call(t, all, &acf_cuda_op_add, &both, sizeof both, x->dim[1], h, x, NULL, to) : NULL;
}

static acf_status plain_fwd(acf_tape *t, acf_node *n) {
    acf_transformer_block_attrs *a = (acf_transformer_block_attrs *)n->attr;
    acf_tensor *h = n->in[0], **param = n->in + 1, *x;
    const int64_t W = h->dim[1], count = acf_tensor_count(h);
    const acf_attention_attrs rows = {a->told.s, a->told.heads, NULL};
    parts *all = (parts *)acf_arena_alloc(t->host, sizeof *all);
    if (!all) return ACF_EMEMORY;
    a->device = all;
    *all = {n->op, n->save, 0};
    acf_tensor packed = *h; /* the rows of dropout are the tokens */
    packed.sub = a->told.s;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *middle = acf_tape_reals(t, count);
    acf_mark half = acf_arena_mark(t->mem);
    if (!middle) return acf_tape_status(t);
    x = linear(t, all, norm(t, all, &packed, param + ACF_BLOCK_SCALE), param + ACF_BLOCK_QKV);
    if (x && a->told.qkv)
        ACF_CUDA(cudaMemcpyAsync(a->told.qkv->data, x->data, (size_t)(3 * count) * sizeof(acf_real),
                                 cudaMemcpyDeviceToDevice, acf_cuda_stream(t->dev)));
    x = call(t, all, &acf_cuda_op_attention, &rows, sizeof rows, W, x, NULL, NULL, NULL);
    x = join(t, all, a, 0, &packed, linear(t, all, x, param + ACF_BLOCK_OUT), middle);
    if (!n->save) acf_arena_release(t->mem, half);
    acf_tensor *m = x;
    x = linear(t, all, norm(t, all, m, param + ACF_BLOCK_SCALE2), param + ACF_BLOCK_UP);
    x = call(t, all, &acf_cuda_op_gelu, NULL, 0, 4 * W, x, NULL, NULL, NULL);
    join(t, all, a, 1, m, linear(t, all, x, param + ACF_BLOCK_DOWN), n->out[0]->data);
    if (!n->save) acf_arena_release(t->mem, mark);
    for (int i = 0; i < all->n; i++)
        for (int k = 0; k < 3; k++)
            if (all->part[i].in[k] == &packed) all->part[i].in[k] = h;
    return acf_tape_status(t);
}

/* Gradients of the parts' outputs, each alive from the first addition until its part has run back; by width, in W. */
typedef struct pool {
    acf_real *spare[5][PARTS];
    int n[5];
} pool;

/* The gradient of a part's output, cleared. In a step with permanent memory it comes from memory that is already
 * cleared. */
static acf_status prepare(acf_tape *t, pool *all, acf_tensor *x, int64_t W) {
    const int64_t width = x->dim[1] / W, count = acf_tensor_count(x);
    if (x->grad) return ACF_OK;
    if (t->lasting) return acf_grad(t, x) ? ACF_OK : acf_tape_status(t);
    x->grad = all->n[width] ? all->spare[width][--all->n[width]] : acf_tape_reals(t, count);
    if (!x->grad) return acf_tape_status(t);
    return acf_cuda_status(cudaMemsetAsync(x->grad, 0, (size_t)count * sizeof(acf_real), acf_cuda_stream(t->dev)),
                           "cudaMemsetAsync");
}

static acf_status plain_bwd(acf_tape *t, acf_node *n) {
    parts *all = (parts *)((acf_transformer_block_attrs *)n->attr)->device;
    const int64_t W = n->in[0]->dim[1];
    pool grads = {};
    for (int k = 0; k < n->n_in; k++) acf_grad(t, n->in[k]); /* permanent memory before scratch */
    ACF_TRY(acf_tape_status(t));
    acf_mark mark = acf_arena_mark(t->mem);
    all->part[all->n - 1].out.grad = n->out[0]->grad;
    for (int i = all->n - 1; i >= 0; i--) {
        part *p = &all->part[i];
        for (int k = 0; k < 3; k++)
            for (int q = 0; q < i; q++)
                if (p->in[k] == &all->part[q].out) ACF_TRY(prepare(t, &grads, p->in[k], W));
        ACF_TRY(p->kernel->backward(t, &p->node));
        const int64_t width = p->out.dim[1] / W;
        if (i < all->n - 1) grads.spare[width][grads.n[width]++] = p->out.grad;
    }
    acf_tape_done(t, mark);
    return ACF_OK;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_transformer_block_attrs *a = (acf_transformer_block_attrs *)n->attr;
    a->narrow = acf_block_narrow_fits(t, n);
    return a->narrow ? acf_block_narrow_fwd(t, n) : plain_fwd(t, n);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    return ((const acf_transformer_block_attrs *)n->attr)->narrow ? acf_block_narrow_bwd(t, n) : plain_bwd(t, n);
}

ACF_CUDA_OP(transformer_block, forward, backward);
