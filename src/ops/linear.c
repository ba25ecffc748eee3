/* The linear layer: see linear.h; formulas in docs/math.md, 2.
 *
 * Workload: M = 256 to 4096 rows (or packed elements), I and O from 1 to 1024: three products, 6·M·I·O FLOP for forward
 * and backward together. Bias and activation are applied tile by tile while the product is in cache. */
#include "ops/linear.h"

void acf_linear_finish_cpu(acf_real *y, int64_t ldy, const acf_real *b, acf_act_kind act, int64_t M, int64_t O) {
    for (int64_t r = 0; r < M; r++) {
        acf_real *row = y + r * ldy;
        if (b) {
            ACF_SIMD
            for (int64_t c = 0; c < O; c++) row[c] += b[c];
        }
        if (act != ACF_IDENTITY) acf_act_fwd_cpu(act, row, row, O);
    }
}

typedef struct finish {
    acf_real *y;
    const acf_real *b;
    int64_t O;
    acf_act_kind act;
} finish;

static void finish_tile(void *ctx, int64_t r0, int64_t r1, int64_t c0, int64_t c1) {
    const finish *f = ctx;
    acf_linear_finish_cpu(f->y + r0 * f->O + c0, f->O, f->b ? f->b + c0 : NULL, f->act, r1 - r0, c1 - c0);
}

void acf_linear_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                        acf_act_kind act, int64_t M, int64_t I, int64_t O) {
    finish f = {y, b, O, act};
    acf_cpu_gemm(dev,
                 &(acf_gemm){.tb = true,
                             .M = M,
                             .N = O,
                             .K = I,
                             .alpha = 1,
                             .a = x,
                             .lda = acf_max(I, 1),
                             .b = w,
                             .ldb = acf_max(I, 1),
                             .c = y,
                             .ldc = acf_max(O, 1)},
                 finish_tile, &f);
}

void acf_linear_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dw, acf_real *db, const acf_real *dy,
                        const acf_real *y, const acf_real *x, const acf_real *w, acf_real *dpre, acf_act_kind act,
                        int64_t M, int64_t I, int64_t O) {
    if (act != ACF_IDENTITY) {
        ACF_PARALLEL(dev, M * O)
        for (int64_t r = 0; r < M; r++) acf_act_bwd_cpu(act, dpre + r * O, dy + r * O, y + r * O, O);
        dy = dpre;
    }
    if (dx) /* dx (M,I) += dy (M,O) · w (O,I) */
        acf_cpu_gemm(dev,
                     &(acf_gemm){.M = M,
                                 .N = I,
                                 .K = O,
                                 .alpha = 1,
                                 .a = dy,
                                 .lda = acf_max(O, 1),
                                 .b = w,
                                 .ldb = acf_max(I, 1),
                                 .beta = 1,
                                 .c = dx,
                                 .ldc = acf_max(I, 1)},
                     NULL, NULL);
    if (dw) /* dw (O,I) += dyᵀ · x (M,I) */
        acf_cpu_gemm(dev,
                     &(acf_gemm){.ta = true,
                                 .M = O,
                                 .N = I,
                                 .K = M,
                                 .alpha = 1,
                                 .a = dy,
                                 .lda = acf_max(O, 1),
                                 .b = x,
                                 .ldb = acf_max(I, 1),
                                 .beta = 1,
                                 .c = dw,
                                 .ldc = acf_max(I, 1)},
                     NULL, NULL);
    if (db) acf_cpu_colsum(dev, db, dy, M, O, O);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    acf_linear_fwd_cpu(t->dev, n->out[0]->data, x->data, w->data, b ? b->data : NULL,
                       ((acf_linear_attrs *)n->attr)->act, acf_tensor_rows(x), w->dim[1], w->dim[0]);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2], *y = n->out[0];
    acf_act_kind act = ((acf_linear_attrs *)n->attr)->act;
    acf_real *dx = acf_grad(t, x), *dw = acf_grad(t, w), *db = acf_grad(t, b);
    /* Gradients first: memory allocated after the mark is released at the end of this call. */
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *dpre = act == ACF_IDENTITY ? NULL : acf_tape_reals(t, acf_tensor_count(y));
    ACF_TRY(acf_tape_status(t));
    acf_linear_bwd_cpu(t->dev, dx, dw, db, y->grad, y->data, x->data, w->data, dpre, act, acf_tensor_rows(x), w->dim[1],
                       w->dim[0]);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_linear = {"linear", ACF_OP_linear, {forward, backward}};

acf_tensor *acf_linear(acf_tape *t, acf_tensor *x, acf_tensor *w, acf_tensor *b, acf_act_kind act) {
    char sx[ACF_SHAPE_TEXT], sw[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_linear, sizeof(acf_linear_attrs), 3, (acf_tensor *[]){x, w, b});
    if (!n) return &t->empty;
    if (x->ndim != 2 || w->ndim != 2 || x->dim[1] != w->dim[1])
        return acf_reject(t, &acf_op_linear, "x is %s and w is %s; expected (M, I) and (O, I)", acf_tensor_shape(x, sx),
                          acf_tensor_shape(w, sw));
    if (b && acf_tensor_count(b) != w->dim[0])
        return acf_reject(t, &acf_op_linear, "the bias has %lld elements; w is %s, so expected %lld",
                          (long long)acf_tensor_count(b), acf_tensor_shape(w, sw), (long long)w->dim[0]);
    if ((unsigned)act >= ACF_ACT_COUNT)
        return acf_reject_value(t, &acf_op_linear, "there is no activation number %d", (int)act);
    ((acf_linear_attrs *)n->attr)->act = act;
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){x->dim[0], w->dim[0]});
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}
