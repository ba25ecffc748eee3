/* Selection and sums under a mask: see masked.h. Bound by memory. */
#include "ops/masked.h"

#include "ops/couple.h"
#include "ops/reduce.h"

/* ---- selection --------------------------------------------------------------------------------------------------- */

void acf_choose_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *mask, const acf_real *a, const acf_real *b,
                        int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) {
            const acf_real on = a[i], off = b[i]; /* both are read: vector code */
            y[i] = acf_mask_on(mask[i]) ? on : off;
        }
    }
}

/* dx += dy where the mask equals `on`. */
static void add_where(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *mask, bool on,
                      int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        ACF_SIMD
        for (int64_t i = c; i < acf_min(c + ACF_CHUNK, n); i++) dx[i] += acf_mask_on(mask[i]) == on ? dy[i] : 0;
    }
}

void acf_choose_bwd_cpu(const acf_device *dev, acf_real *da, acf_real *db, const acf_real *dy, const acf_real *mask,
                        int64_t n) {
    if (da) add_where(dev, da, dy, mask, true, n);
    if (db) add_where(dev, db, dy, mask, false, n);
}

static acf_status choose_forward(acf_tape *t, acf_node *n) {
    acf_choose_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, n->in[2]->data,
                       acf_tensor_count(n->out[0]));
    return ACF_OK;
}

static acf_status choose_backward(acf_tape *t, acf_node *n) {
    acf_real *da = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    ACF_TRY(acf_tape_status(t));
    acf_choose_bwd_cpu(t->dev, da, db, n->out[0]->grad, n->in[0]->data, acf_tensor_count(n->out[0]));
    return ACF_OK;
}

const acf_op acf_op_choose = {"choose", ACF_OP_choose, {choose_forward, choose_backward}};

acf_tensor *acf_choose(acf_tape *t, acf_tensor *mask, acf_tensor *a, acf_tensor *b) {
    char sm[ACF_SHAPE_TEXT], sa[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_choose, 0, 3, (acf_tensor *[]){mask, a, b});
    if (!n) return &t->empty;
    if (acf_tensor_count(mask) != acf_tensor_count(a) || acf_tensor_count(a) != acf_tensor_count(b))
        return acf_reject(t, n->op, "the mask is %s, a is %s and b is %s; expected as many numbers each",
                          acf_tensor_shape(mask, sm), acf_tensor_shape(a, sa), acf_tensor_shape(b, sb));
    n->out[0] = acf_tensor_new(t, a->ndim, a->dim);
    return acf_node_run(t, n);
}

/* ---- masked sum -------------------------------------------------------------------------------------------------- */

void acf_sum_masked_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *mask, int64_t N,
                            int64_t C) {
    ACF_PARALLEL(dev, N * C)
    for (int64_t n = 0; n < N; n++) {
        double sum = 0;
        ACF_PRAGMA(omp simd reduction(+ : sum))
        for (int64_t c = n * C; c < (n + 1) * C; c++) sum += acf_mask_on(mask[c]) ? (double)x[c] : 0;
        y[n] = acf_real_sum(sum);
    }
}

void acf_sum_masked_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *mask, int64_t N,
                            int64_t C) {
    ACF_PARALLEL(dev, N * C)
    for (int64_t n = 0; n < N; n++) {
        ACF_SIMD
        for (int64_t c = n * C; c < (n + 1) * C; c++) dx[c] += acf_mask_on(mask[c]) ? dy[n] : 0;
    }
}

static acf_status sum_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *mask = n->in[1];
    acf_sum_masked_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, mask->data, mask->dim[0], acf_tensor_width(mask));
    return ACF_OK;
}

static acf_status sum_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *mask = n->in[1];
    acf_real *dx = acf_grad(t, n->in[0]);
    ACF_TRY(acf_tape_status(t));
    if (dx) acf_sum_masked_bwd_cpu(t->dev, dx, n->out[0]->grad, mask->data, mask->dim[0], acf_tensor_width(mask));
    return ACF_OK;
}

const acf_op acf_op_sum_masked = {"sum_masked", ACF_OP_sum_masked, {sum_forward, sum_backward}};

acf_tensor *acf_sum_masked(acf_tape *t, acf_tensor *x, acf_tensor *mask) {
    char sx[ACF_SHAPE_TEXT], sm[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_sum_masked, 0, 2, (acf_tensor *[]){x, mask});
    if (!n) return &t->empty;
    if (mask->ndim < 1 || acf_tensor_count(x) != acf_tensor_count(mask))
        return acf_reject(t, n->op, "x is %s and the mask is %s; expected as many numbers, and (N, ...)",
                          acf_tensor_shape(x, sx), acf_tensor_shape(mask, sm));
    n->out[0] = acf_tensor_new(t, 1, mask->dim);
    return acf_node_run(t, n);
}
