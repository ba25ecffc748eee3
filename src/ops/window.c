/* Parts of images: see window.h. Small copies, row by row. */
#include "ops/window.h"

#include <string.h>

static acf_status window_forward(acf_tape *t, acf_node *n) {
    const acf_region *r = n->attr;
    const acf_tensor *x = n->in[0], *y = n->out[0];
    const int64_t H = x->dim[1], W = x->dim[2], C = x->dim[3], from = acf_max(r->left, 0),
                  to = acf_min(r->left + r->width, W);
    const size_t line = (size_t)(r->width * C) * sizeof(acf_real);
    ACF_PARALLEL(t->dev, acf_tensor_count(y))
    for (int64_t i = 0; i < x->dim[0] * r->height; i++) {
        const int64_t h = r->top + i % r->height;
        acf_real *out = y->data + i * r->width * C;
        const bool inside = h >= 0 && h < H && from < to;
        if (!inside || to - from < r->width) memset(out, 0, line);
        if (inside)
            memcpy(out + (from - r->left) * C, x->data + ((i / r->height * H + h) * W + from) * C,
                   (size_t)((to - from) * C) * sizeof(acf_real));
    }
    return ACF_OK;
}

const acf_op acf_op_window = {"window", ACF_OP_window, {window_forward, NULL}};

acf_tensor *acf_window(acf_tape *t, acf_tensor *x, acf_region r) {
    char sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_window, sizeof r, 1, &x);
    if (!n) return &t->empty;
    if (x->ndim != 4 || r.height < 0 || r.width < 0)
        return acf_reject(t, n->op, "x is %s and the window %lld x %lld; expected (N, H, W, C) and a size",
                          acf_tensor_shape(x, sx), (long long)r.height, (long long)r.width);
    *(acf_region *)n->attr = r;
    n->out[0] = acf_tensor_new(t, 4, (int64_t[]){x->dim[0], r.height, r.width, x->dim[3]});
    return acf_node_run(t, n);
}

static acf_status paste_forward(acf_tape *t, acf_node *n) {
    const acf_paste_attrs *a = n->attr;
    const acf_tensor *y = n->in[0];
    const int64_t h = y->dim[1], run = y->dim[2] * y->dim[3];
    ACF_PARALLEL(t->dev, acf_tensor_count(y))
    for (int64_t i = 0; i < y->dim[0] * h; i++)
        memcpy(a->x + ((i / h * a->H + a->top + i % h) * a->W + a->left) * y->dim[3], y->data + i * run,
               (size_t)run * sizeof(acf_real));
    return ACF_OK;
}

const acf_op acf_op_paste = {"paste", ACF_OP_paste, {paste_forward, NULL}};

void acf_paste(acf_tape *t, acf_tensor *x, acf_tensor *y, int64_t top, int64_t left) {
    char sx[ACF_SHAPE_TEXT], sy[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_paste, sizeof(acf_paste_attrs), 1, &y);
    if (!n) return;
    const bool alike = x->ndim == 4 && y->ndim == 4 && x->dim[0] == y->dim[0] && x->dim[3] == y->dim[3];
    if (!alike || top < 0 || left < 0 || top + y->dim[1] > x->dim[1] || left + y->dim[2] > x->dim[2]) {
        acf_reject(t, n->op, "y is %s, placed at row %lld, column %lld of x %s; expected it inside x",
                   acf_tensor_shape(y, sy), (long long)top, (long long)left, acf_tensor_shape(x, sx));
        return;
    }
    *(acf_paste_attrs *)n->attr = (acf_paste_attrs){x->data, x->dim[1], x->dim[2], top, left};
    acf_node_run(t, n);
}
