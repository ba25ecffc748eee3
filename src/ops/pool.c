/* Pooling of 2x2 pixels: see pool.h. Bound by memory: one pass each way, channels innermost. */
#include "ops/pool.h"

/* The pixels of a window: where they begin, and their number, 4, 2 or 1. */
typedef struct window {
    int64_t at[4];
    int n;
} window;

/* Window (p,q) of an image that begins at `base`. */
static window window_at(int64_t base, int64_t p, int64_t q, int64_t H, int64_t W, int64_t C) {
    window w = {.n = 0};
    for (int64_t h = 2 * p; h < acf_min(2 * p + 2, H); h++)
        for (int64_t v = 2 * q; v < acf_min(2 * q + 2, W); v++) w.at[w.n++] = base + (h * W + v) * C;
    return w;
}

/* y (C) of one window. A NaN stays visible: no comparison with it is true. */
static void pool_pixel(acf_real *y, const acf_real *x, const window *w, acf_pool_kind kind, int64_t C) {
    const acf_real share = ACF_R(1.0) / (acf_real)w->n;
    for (int64_t c = 0; c < C; c++) {
        acf_real best = x[w->at[0] + c];
        for (int k = 1; k < w->n; k++) {
            const acf_real next = x[w->at[k] + c];
            best = kind == ACF_POOL_MEAN ? best + next : !(best >= next) ? (best != best ? best : next) : best;
        }
        y[c] = kind == ACF_POOL_MEAN ? best * share : best;
    }
}

void acf_pool_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, acf_pool_kind kind, int64_t N, int64_t H,
                      int64_t W, int64_t C) {
    const int64_t Ho = acf_ceil_div(H, 2), Wo = acf_ceil_div(W, 2);
    ACF_PARALLEL(dev, N * H * W * C)
    for (int64_t r = 0; r < N * Ho * Wo; r++) {
        const window w = window_at(r / (Ho * Wo) * H * W * C, r / Wo % Ho, r % Wo, H, W, C);
        pool_pixel(y + r * C, x, &w, kind, C);
    }
}

/* Windows do not overlap, so neither do their gradients. */
static void pool_back(acf_real *dx, const acf_real *dy, const acf_real *x, const window *w, acf_pool_kind kind,
                      int64_t C) {
    const acf_real share = ACF_R(1.0) / (acf_real)w->n;
    for (int64_t c = 0; c < C; c++) {
        int best = 0;
        for (int k = 0; k < w->n; k++) {
            if (kind == ACF_POOL_MEAN)
                dx[w->at[k] + c] += share * dy[c];
            else if (x[w->at[k] + c] > x[w->at[best] + c])
                best = k;
        }
        if (kind == ACF_POOL_MAX) dx[w->at[best] + c] += dy[c];
    }
}

void acf_pool_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x, acf_pool_kind kind,
                      int64_t N, int64_t H, int64_t W, int64_t C) {
    const int64_t Ho = acf_ceil_div(H, 2), Wo = acf_ceil_div(W, 2);
    ACF_PARALLEL(dev, N * H * W * C)
    for (int64_t r = 0; r < N * Ho * Wo; r++) {
        const window w = window_at(r / (Ho * Wo) * H * W * C, r / Wo % Ho, r % Wo, H, W, C);
        pool_back(dx, dy + r * C, x, &w, kind, C);
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    acf_pool_fwd_cpu(t->dev, n->out[0]->data, x->data, ((acf_pool_attrs *)n->attr)->kind, x->dim[0], x->dim[1],
                     x->dim[2], x->dim[3]);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0];
    acf_real *dx = acf_grad(t, x);
    ACF_TRY(acf_tape_status(t));
    acf_pool_bwd_cpu(t->dev, dx, n->out[0]->grad, x->data, ((acf_pool_attrs *)n->attr)->kind, x->dim[0], x->dim[1],
                     x->dim[2], x->dim[3]);
    return ACF_OK;
}

const acf_op acf_op_pool = {"pool", ACF_OP_pool, {forward, backward}};

acf_tensor *acf_pool(acf_tape *t, acf_pool_kind kind, acf_tensor *x) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_pool, sizeof(acf_pool_attrs), 1, &x);
    if (!n) return &t->empty;
    if (x->ndim != 4) return acf_reject(t, n->op, "x is %s; expected (N, H, W, C)", acf_tensor_shape(x, sx));
    ((acf_pool_attrs *)n->attr)->kind = kind;
    n->out[0] =
        acf_tensor_new(t, 4, (int64_t[]){x->dim[0], acf_ceil_div(x->dim[1], 2), acf_ceil_div(x->dim[2], 2), x->dim[3]});
    return acf_node_run(t, n);
}
