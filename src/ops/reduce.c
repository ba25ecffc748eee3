/* Sums: see reduce.h.
 *
 * Workload: T = 1e3 to 1e5 elements once per flow layer (log-determinants), N = 1e2 to 1e4 once per step (losses). */
#include "ops/reduce.h"

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

#define PIECES 64 /* of a flat sum, at most */

static double sum_piece(const acf_real *x, const acf_real *w, int64_t n) {
    double sum = 0;
    if (w) {
        ACF_PRAGMA(omp simd reduction(+ : sum))
        for (int64_t i = 0; i < n; i++) sum += (double)w[i] * (double)x[i];
    } else {
        ACF_PRAGMA(omp simd reduction(+ : sum))
        for (int64_t i = 0; i < n; i++) sum += (double)x[i];
    }
    return sum;
}

double acf_sum_fwd_cpu(const acf_device *dev, const acf_real *x, const acf_real *w, int64_t n) {
    double part[PIECES], sum = 0;
    int64_t size = acf_max(acf_ceil_div(n, PIECES), ACF_CHUNK), pieces = acf_ceil_div(n, size);
    ACF_PARALLEL(dev, n)
    for (int64_t k = 0; k < pieces; k++)
        part[k] = sum_piece(x + k * size, w ? w + k * size : NULL, acf_min(size, n - k * size));
    for (int64_t k = 0; k < pieces; k++) sum += part[k];
    return sum;
}

void acf_sum_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real g, const acf_real *w, int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) {
        int64_t end = acf_min(c + ACF_CHUNK, n);
        if (w) {
            ACF_SIMD
            for (int64_t i = c; i < end; i++) dx[i] += g * w[i];
        } else {
            ACF_SIMD
            for (int64_t i = c; i < end; i++) dx[i] += g;
        }
    }
}

#define RANKS 256 /* rows summed together: neighbours in rank are neighbours in memory at every step */

void acf_sum_subset_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *v, const acf_subset *u) {
    ACF_PARALLEL(dev, u->T)
    for (int64_t k0 = 0; k0 < u->N; k0 += RANKS) {
        double sum[RANKS] = {0};
        for (int64_t s = 0; s < u->steps && k0 < u->active[s]; s++) {
            const acf_real *step = v + u->first[s] + k0;
            int64_t n = acf_min(RANKS, u->active[s] - k0);
            ACF_SIMD
            for (int64_t k = 0; k < n; k++) sum[k] += (double)step[k];
        }
        for (int64_t k = 0; k < acf_min(RANKS, u->N - k0); k++) y[u->row[k0 + k]] = acf_real_sum(sum[k]);
    }
}

void acf_sum_subset_bwd_cpu(const acf_device *dev, acf_real *dv, const acf_real *dy, const acf_subset *u) {
    ACF_PARALLEL(dev, u->T)
    for (int64_t p = 0; p < u->T; p++) dv[p] += dy[u->row_of[p]];
}

/* ---- sum, mean, dot ---------------------------------------------------------------------------------------------- */

/* The factor of the sum. */
static double scale_of(const acf_node *n) {
    return ((const acf_sum_attrs *)n->attr)->mean ? 1 / (double)acf_max(acf_tensor_count(n->in[0]), 1) : 1;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_sum_attrs *a = n->attr;
    double sum = acf_sum_fwd_cpu(t->dev, n->in[0]->data, a->w, acf_tensor_count(n->in[0]));
    n->out[0]->data[0] = acf_real_sum(scale_of(n) * sum);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_sum_attrs *a = n->attr;
    acf_real *dx = acf_grad(t, n->in[0]);
    acf_real g = (acf_real)(scale_of(n) * (double)n->out[0]->grad[0]);
    if (dx) acf_sum_bwd_cpu(t->dev, dx, g, a->w, acf_tensor_count(n->in[0]));
    return acf_tape_status(t);
}

const acf_op acf_op_sum = {"sum", ACF_OP_sum, {forward, backward}};

static acf_tensor *weighed(acf_tape *t, acf_tensor *x, const acf_real *w, bool mean) {
    acf_node *n = acf_node_new(t, &acf_op_sum, sizeof(acf_sum_attrs), 1, &x);
    if (!n) return &t->empty;
    *(acf_sum_attrs *)n->attr = (acf_sum_attrs){w, mean};
    n->out[0] = acf_tensor_new(t, 0, NULL);
    return acf_node_run(t, n);
}

acf_tensor *acf_sum(acf_tape *t, acf_tensor *x) { return weighed(t, x, NULL, false); }
acf_tensor *acf_mean(acf_tape *t, acf_tensor *x) { return weighed(t, x, NULL, true); }
acf_tensor *acf_dot(acf_tape *t, acf_tensor *x, const acf_real *w) { return weighed(t, x, w, false); }

/* ---- sums over a row's modelled columns -------------------------------------------------------------------------- */

static acf_status subset_forward(acf_tape *t, acf_node *n) {
    acf_sum_subset_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[0]->sub);
    return ACF_OK;
}

static acf_status subset_backward(acf_tape *t, acf_node *n) {
    acf_real *dv = acf_grad(t, n->in[0]);
    if (dv) acf_sum_subset_bwd_cpu(t->dev, dv, n->out[0]->grad, n->in[0]->sub);
    return acf_tape_status(t);
}

const acf_op acf_op_sum_subset = {"sum_subset", ACF_OP_sum_subset, {subset_forward, subset_backward}};

acf_tensor *acf_sum_subset(acf_tape *t, acf_tensor *v, const acf_subset *u) {
    char sv[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_sum_subset, 0, 1, &v);
    if (!n) return &t->empty;
    if (v->ndim != 1 || v->sub != u)
        return acf_reject(t, &acf_op_sum_subset, "v is %s; expected (T) packed over the given subset",
                          acf_tensor_shape(v, sv));
    n->out[0] = acf_tensor_new(t, 1, &u->N);
    return acf_node_run(t, n);
}

/* ---- weights of rows in a mean ----------------------------------------------------------------------------------- */

static int64_t modelled(const acf_row_shares_attrs *a, int64_t i) { return a->u->size[i] + (a->v ? a->v->size[i] : 0); }

static acf_status shares_forward(acf_tape *t, acf_node *n) {
    const acf_row_shares_attrs *a = n->attr;
    int64_t rows = 0;
    (void)t;
    for (int64_t i = 0; i < a->u->N; i++) rows += modelled(a, i) > 0;
    for (int64_t i = 0; i < a->u->N; i++) {
        const int64_t size = modelled(a, i);
        n->out[0]->data[i] = size ? (acf_real)(1 / ((double)rows * (a->per_column ? (double)size : 1))) : 0;
    }
    return ACF_OK;
}

const acf_op acf_op_row_shares = {"row_shares", ACF_OP_row_shares, {shares_forward, NULL}};

acf_tensor *acf_row_shares(acf_tape *t, const acf_subset *u, const acf_subset *v, bool per_column) {
    acf_node *n = acf_node_new(t, &acf_op_row_shares, sizeof(acf_row_shares_attrs), 0, NULL);
    if (!n) return &t->empty;
    ACF_ASSERT(!v || v->N == u->N);
    *(acf_row_shares_attrs *)n->attr = (acf_row_shares_attrs){u, v, per_column};
    n->out[0] = acf_tensor_new(t, 1, &u->N);
    return acf_node_run(t, n);
}
