/* A piecewise linear function: see polyline.h. Workload: 1e4 to 1e6 numbers, each with a search in 256 knots;
 * negligible beside the convolutions of its step. */
#include "ops/polyline.h"

void acf_polyline_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_knots *k, int64_t n) {
    ACF_PARALLEL(dev, 16 * n)
    for (int64_t j = 0; j < n; j++) {
        const int i = acf_polyline_piece(k, x[j]);
        y[j] = k->y[i] + acf_polyline_slope(k, i) * (x[j] - k->x[i]);
    }
}

void acf_polyline_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x,
                          const acf_knots *k, int64_t n) {
    ACF_PARALLEL(dev, 16 * n)
    for (int64_t j = 0; j < n; j++) dx[j] += dy[j] * acf_polyline_slope(k, acf_polyline_piece(k, x[j]));
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    acf_polyline_fwd_cpu(t->dev, n->out[0]->data, x->data, n->attr, acf_tensor_count(x));
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0];
    acf_real *dx = acf_grad(t, x);
    ACF_TRY(acf_tape_status(t));
    acf_polyline_bwd_cpu(t->dev, dx, n->out[0]->grad, x->data, n->attr, acf_tensor_count(x));
    return ACF_OK;
}

const acf_op acf_op_polyline = {"polyline", ACF_OP_polyline, {forward, backward}};

acf_tensor *acf_polyline(acf_tape *t, acf_tensor *x, const acf_knots *knots) {
    acf_node *n = acf_node_new(t, &acf_op_polyline, sizeof *knots, 1, &x);
    if (!n) return &t->empty;
    bool ascending = knots->n >= 2 && knots->n <= ACF_KNOTS_MAX;
    for (int i = 1; ascending && i < knots->n; i++) ascending = knots->x[i] > knots->x[i - 1];
    if (!ascending) return acf_reject_value(t, n->op, "%d knots; expected 2 to %d, ascending", knots->n, ACF_KNOTS_MAX);
    *(acf_knots *)n->attr = *knots;
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}
