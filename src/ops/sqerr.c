/* Squared error per row: see sqerr.h. Fused, because sub, square and sum_subset would read memory three times.
 *
 * Workload: T = 1e3 to 1e5 elements, once per step. */
#include "ops/sqerr.h"

#include "ops/reduce.h"

#define RANKS 256 /* rows summed together, as in reduce.c */

void acf_sqerr_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *a, const acf_real *b, const acf_subset *u) {
    ACF_PARALLEL(dev, u->T)
    for (int64_t k0 = 0; k0 < u->N; k0 += RANKS) {
        double sum[RANKS] = {0};
        for (int64_t s = 0; s < u->steps && k0 < u->active[s]; s++) {
            const acf_real *as = a + u->first[s] + k0, *bs = b + u->first[s] + k0;
            int64_t n = acf_min(RANKS, u->active[s] - k0);
            ACF_SIMD
            for (int64_t k = 0; k < n; k++) {
                double d = (double)as[k] - (double)bs[k];
                sum[k] += d * d;
            }
        }
        for (int64_t k = 0; k < acf_min(RANKS, u->N - k0); k++) y[u->row[k0 + k]] = acf_real_sum(sum[k]);
    }
}

void acf_sqerr_bwd_cpu(const acf_device *dev, acf_real *da, acf_real *db, const acf_real *dy, const acf_real *a,
                       const acf_real *b, const acf_subset *u) {
    ACF_PARALLEL(dev, 2 * u->T)
    for (int64_t p = 0; p < u->T; p++) {
        acf_real g = 2 * (a[p] - b[p]) * dy[u->row_of[p]];
        if (da) da[p] += g;
        if (db) db[p] -= g;
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    acf_sqerr_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, n->in[0]->sub);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *a = n->in[0], *b = n->in[1];
    acf_real *da = acf_grad(t, a), *db = acf_grad(t, b);
    ACF_TRY(acf_tape_status(t));
    acf_sqerr_bwd_cpu(t->dev, da, db, n->out[0]->grad, a->data, b->data, a->sub);
    return ACF_OK;
}

const acf_op acf_op_sqerr = {"sqerr", ACF_OP_sqerr, {forward, backward}};

acf_tensor *acf_sqerr(acf_tape *t, acf_tensor *a, acf_tensor *b, const acf_subset *u) {
    char sa[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_sqerr, 0, 2, (acf_tensor *[]){a, b});
    if (!n) return &t->empty;
    if (a->ndim != 1 || a->sub != u || !acf_tensor_same_shape(a, b))
        return acf_reject(t, &acf_op_sqerr, "a is %s and b is %s; expected both (T), packed over the given subset",
                          acf_tensor_shape(a, sa), acf_tensor_shape(b, sb));
    n->out[0] = acf_tensor_new(t, 1, &u->N);
    return acf_node_run(t, n);
}
