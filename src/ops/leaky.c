/* The leaky-ReLU flow: see leaky.h; derivatives in docs/math.md, 7.
 *
 * Workload: T = 1e3 to 1e6 packed elements, a comparison and a product each: 8 bytes an element forward, 16
 * backward, in float. Blocks of ROWS ranks as in affine.c. The thread that owns a block sums what belongs to its
 * rows. The scalar's gradient is the sum of one double per block, added in order. */
#include "ops/leaky.h"

#include "base/vmath.h"

#define ROWS 128

/* Elements of step t in the block that begins at rank r0; 0 once its rows have ended. */
static int64_t span(const acf_subset *u, int64_t r0, int64_t t) {
    return t < u->steps ? acf_min(u->active[t] - r0, ROWS) : 0;
}

int64_t acf_leaky_blocks(const acf_subset *u) { return acf_ceil_div(u->N, ROWS); }

/* Slope below zero and its logarithm, in the direction of the flow: α and log α, or 1/α and -log α. In double, and 1/α
 * without dividing by an α that is nearly zero. */
static double slope_of(double a, bool inverse) { return inverse ? 1 + exp(-a) : 1 / (1 + exp(-a)); }
static double log_slope_of(double a, bool inverse) { return inverse ? -acf_log_sigmoid(a) : acf_log_sigmoid(a); }

void acf_leaky_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *logdet, const acf_real *x, const acf_real *a,
                       const acf_subset *u, bool inverse) {
    const acf_real slope = (acf_real)slope_of((double)*a, inverse);
    const double log_slope = log_slope_of((double)*a, inverse);
#pragma omp parallel for schedule(dynamic) num_threads(acf_threads_for(dev, u->T))
    for (int64_t r0 = 0; r0 < u->N; r0 += ROWS) {
        acf_real negative[ROWS] = {0}; /* elements below zero in each row */
        for (int64_t t = 0, n; (n = span(u, r0, t)) > 0; t++) {
            int64_t p = u->first[t] + r0;
            ACF_SIMD
            for (int64_t i = 0; i < n; i++) { /* a NaN is not below zero and passes */
                y[p + i] = x[p + i] < 0 ? slope * x[p + i] : x[p + i];
                negative[i] += x[p + i] < 0 ? ACF_R(1.0) : ACF_R(0.0);
            }
        }
        for (int64_t r = r0; logdet && r < acf_min(r0 + ROWS, u->N); r++)
            logdet[u->row[r]] = acf_real_from((double)negative[r - r0] * log_slope);
    }
}

/* One block of dx += dy slope; returns its part of Σ over x < 0 of (dy y + dl), which is da up to d log slope / da. */
static double bwd_block(acf_real *dx, const acf_real *dy, const acf_real *dl, const acf_real *x, acf_real slope,
                        const acf_subset *u, int64_t r0) {
    const acf_real none[ROWS] = {0}; /* replaces a dy that is NULL */
    double sum[ROWS] = {0}, all = 0;
    for (int64_t t = 0, n; (n = span(u, r0, t)) > 0; t++) {
        int64_t p = u->first[t] + r0;
        const acf_real *g = dy ? dy + p : none;
        if (dx) {
            ACF_SIMD
            for (int64_t i = 0; i < n; i++) dx[p + i] += x[p + i] < 0 ? slope * g[i] : g[i];
        }
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) sum[i] += x[p + i] < 0 ? (double)(g[i] * slope * x[p + i] + dl[i]) : 0.0;
    }
    for (int64_t r = 0; r < ROWS; r++) all += sum[r];
    return all;
}

void acf_leaky_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *da, const acf_real *dy, const acf_real *dlogdet,
                       const acf_real *x, const acf_real *a, double *partial, const acf_subset *u, bool inverse) {
    const acf_real slope = (acf_real)slope_of((double)*a, inverse);
#pragma omp parallel for schedule(dynamic) num_threads(acf_threads_for(dev, u->T))
    for (int64_t b = 0; b < acf_leaky_blocks(u); b++) {
        int64_t r0 = b * ROWS;
        acf_real dl[ROWS];
        for (int64_t r = 0; r < ROWS; r++) dl[r] = dlogdet && r0 + r < u->N ? dlogdet[u->row[r0 + r]] : 0;
        partial[b] = bwd_block(dx, dy, dl, x, slope, u, r0);
    }
    if (!da) return;
    double sum = 0;
    for (int64_t b = 0; b < acf_leaky_blocks(u); b++) sum += partial[b];
    /* d log α / da = 1 - α = sigmoid(-a); the inverse has the opposite sign. */
    double log_slope_per_a = (inverse ? -1 : 1) / (1 + exp((double)*a));
    *da += acf_real_from(log_slope_per_a * sum);
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_leaky_attrs *at = n->attr;
    const acf_tensor *logdet = n->out[1];
    acf_leaky_fwd_cpu(t->dev, n->out[0]->data, logdet ? logdet->data : NULL, n->in[0]->data, n->in[1]->data, at->u,
                      at->inverse);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_leaky_attrs *at = n->attr;
    acf_tensor *x = n->in[0], *a = n->in[1], *y = n->out[0], *logdet = n->out[1];
    acf_real *dx = acf_grad(t, x), *da = acf_grad(t, a);
    ACF_TRY(acf_tape_status(t));
    acf_mark mark = acf_arena_mark(t->mem);
    double *partial = acf_arena_alloc(t->mem, (size_t)acf_leaky_blocks(at->u) * sizeof *partial);
    if (!partial) return ACF_EMEMORY;
    acf_leaky_bwd_cpu(t->dev, dx, da, y->grad, logdet ? logdet->grad : NULL, x->data, a->data, partial, at->u,
                      at->inverse);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_leaky_forward = {"leaky_forward", ACF_OP_leaky_forward, {forward, backward}};
const acf_op acf_op_leaky_inverse = {"leaky_inverse", ACF_OP_leaky_inverse, {forward, backward}};

static acf_tensor *apply(acf_tape *t, const acf_op *op, acf_tensor *x, acf_tensor *a, acf_leaky_attrs at,
                         acf_tensor **logdet) {
    char sx[ACF_SHAPE_TEXT], sa[ACF_SHAPE_TEXT];
    if (logdet) *logdet = &t->empty;
    acf_node *n = acf_node_new(t, op, sizeof at, 2, (acf_tensor *[]){x, a});
    if (!n) return &t->empty;
    if (x->sub != at.u || acf_tensor_width(x) != 1)
        return acf_reject(t, op, "x is %s; expected (T), packed over the subset that was given",
                          acf_tensor_shape(x, sx));
    if (acf_tensor_count(a) != 1) return acf_reject(t, op, "a is %s; expected one element", acf_tensor_shape(a, sa));
    *(acf_leaky_attrs *)n->attr = at;
    n->out[0] = acf_tensor_packed(t, at.u, 0);
    if (logdet) n->out[1] = acf_tensor_new(t, 1, &at.u->N);
    acf_tensor *y = acf_node_run(t, n);
    if (logdet && y != &t->empty) *logdet = n->out[1];
    return y;
}

acf_tensor *acf_leaky_forward(acf_tape *t, acf_tensor *x, acf_tensor *a, const acf_subset *u, acf_tensor **logdet) {
    return apply(t, &acf_op_leaky_forward, x, a, (acf_leaky_attrs){u, false}, logdet);
}

acf_tensor *acf_leaky_inverse(acf_tape *t, acf_tensor *z, acf_tensor *a, const acf_subset *u, acf_tensor **logdet) {
    return apply(t, &acf_op_leaky_inverse, z, a, (acf_leaky_attrs){u, true}, logdet);
}
