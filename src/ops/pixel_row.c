/* One row of pixels: see pixel_row.h. This CPU version is the plain reference; on the CPU nn/pixelcnn.c composes
 * operations, with products over all images at once. */
#include "ops/pixel_row.h"

#include "base/vmath.h"
#include "ops/chain_means.h"
#include "ops/mixture.h"

#include <string.h>

bool acf_pixel_row_fits(int64_t F, int64_t C, int64_t A, int64_t K, int blocks) {
    return blocks <= ACF_ROW_BLOCKS && acf_pixel_row_numbers(F, C, A, K, blocks) <= ACF_ROW_ROOM;
}

static acf_real elu(acf_real x) { return x < 0 ? acf_expm1(x) : x; }

static void pair(acf_real *to, const acf_real *x, int64_t F) {
    for (int64_t f = 0; f < F; f++) to[f] = elu(x[f]), to[F + f] = elu(-x[f]);
}

/* y (O) = w (O,n,S) · pixels c - n + 1 to c of seen (W,S) + b + add; pixels before the row are 0. */
static void product(acf_real *y, const acf_real *w, const acf_real *b, const acf_real *add, const acf_real *seen,
                    int64_t c, int64_t O, int64_t n, int64_t S) {
    for (int64_t o = 0; o < O; o++) {
        acf_real sum = b[o] + (add ? add[o] : 0);
        for (int64_t j = acf_max(0, n - 1 - c); j < n; j++)
            for (int64_t s = 0; s < S; s++) sum += w[(o * n + j) * S + s] * seen[(c - n + 1 + j) * S + s];
        y[o] = sum;
    }
}

/* The horizontal stream's output (A) at pixel c. kept (2·blocks, W, 2F): inputs of the layers along the row. */
static void stream_at(acf_real *out, const acf_pixel_row_attrs *a, acf_real *kept, acf_real *h, acf_real *y, int64_t n,
                      int64_t c) {
    const int64_t F = a->F, S = 2 * F, V = 2 * a->C + 1, at = n * a->W + c;
    const acf_real *line = a->image + (n * a->H + a->row) * a->W * V;
    product(h, a->left, a->left_bias, a->first + at * F, line, c - 1, F, 3, V); /* excludes the pixel itself */
    for (int i = 0; i < a->blocks; i++) {
        acf_real *in = kept + 2 * i * a->W * S, *mid = in + a->W * S;
        pair(in + c * S, h, F);
        product(y, a->block[i].in, a->block[i].in_bias, a->block[i].aux + at * F, in, c, F, 3, S);
        pair(mid + c * S, y, F);
        product(y, a->block[i].out, a->block[i].out_bias, a->block[i].cond + at * S, mid, c, S, 3, S);
        for (int64_t f = 0; f < F; f++) h[f] += y[f] * acf_sigmoid(y[F + f]);
    }
    for (int64_t f = 0; f < F; f++) h[f] = elu(h[f]);
    product(out, a->head, a->head_bias, NULL, h, 0, a->A, 1, F);
}

/* Makes the numbers of pixel c of all images, channel by channel: p (N,A), m (N·C,3K), v and now (N,C). */
static void make_pixels(acf_tape *t, const acf_pixel_row_attrs *a, const acf_real *p, acf_real *m, acf_real *v,
                        acf_real *now, int64_t c) {
    const int64_t N = a->N, C = a->C;
    acf_draw d = a->draw;
    d.at = (acf_cells){a->draws ? a->draw.at.row + c * N * C : NULL, a->draws ? a->draw.at.column + c * N * C : NULL};
    for (int64_t i = 0; i < N * C; i++) now[i] = a->given[((i / C * a->H + a->row) * a->W + c) * C + i % C];
    for (int64_t k = 0; k < C; k++) {
        acf_chain_means_fwd_cpu(t->dev, m, p, now, N, C, a->K);
        if (a->draws)
            acf_mixture_sample_fwd_cpu(t->dev, v, m, &d, N * C, a->K, a->lo, a->hi);
        else
            acf_mixture_mean_fwd_cpu(t->dev, v, m, N * C, a->K);
        for (int64_t i = k; i < N * C; i += C)
            if (a->u[((i / C * a->H + a->row) * a->W + c) * C + k] > ACF_R(0.5)) now[i] = v[i];
    }
    for (int64_t i = 0; i < N * C; i++) {
        const int64_t pixel = (i / C * a->H + a->row) * a->W + c;
        a->z[pixel * C + i % C] = a->image[pixel * (2 * C + 1) + i % C] = now[i];
    }
}

static acf_status forward(acf_tape *t, acf_node *node) {
    const acf_pixel_row_attrs *a = node->attr;
    const int64_t S = 2 * a->F, kept = 2 * a->blocks * a->W * S, each = kept + a->F + S;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *own = acf_tape_reals(t, a->N * each), *p = acf_tape_reals(t, a->N * a->A),
             *m = acf_tape_reals(t, a->N * a->C * 3 * a->K);
    acf_real *v = acf_tape_reals(t, 2 * a->N * a->C);
    ACF_TRY(acf_tape_status(t));
    for (int64_t c = 0; c < a->W; c++) {
        ACF_PARALLEL(t->dev, a->N * S * S * a->blocks)
        for (int64_t n = 0; n < a->N; n++)
            stream_at(p + n * a->A, a, own + n * each, own + n * each + kept, own + n * each + kept + a->F, n, c);
        make_pixels(t, a, p, m, v, v + a->N * a->C, c);
    }
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_pixel_row = {"pixel_row", ACF_OP_pixel_row, {forward, NULL}};

/* True if x has these four sizes. */
static bool is(const acf_tensor *x, int64_t a, int64_t b, int64_t c, int64_t d) {
    return x->ndim == 4 && x->dim[0] == a && x->dim[1] == b && x->dim[2] == c && x->dim[3] == d;
}

static bool blocks_fit(const acf_pixel_row *r, int64_t N, int64_t W, int64_t F) {
    if (r->blocks < 0 || r->blocks > ACF_ROW_BLOCKS) return false;
    for (int i = 0; i < r->blocks; i++) {
        const acf_row_block *b = &r->block[i];
        if (!is(b->in, F, 1, 3, 2 * F) || !is(b->out, 2 * F, 1, 3, 2 * F) || !is(b->aux, N, 1, W, F) ||
            !is(b->cond, N, 1, W, 2 * F) || acf_tensor_count(b->in_bias) != F || acf_tensor_count(b->out_bias) != 2 * F)
            return false;
    }
    return true;
}

static bool fits(const acf_pixel_row *r, acf_pixel_row_attrs *a) {
    const acf_tensor *z = r->z;
    if (z->ndim != 4 || r->first->ndim != 4 || r->K < 1 || r->K > ACF_MAX_COMPONENTS || r->row < 0 ||
        r->row >= z->dim[1])
        return false;
    const int64_t N = z->dim[0], H = z->dim[1], W = z->dim[2], C = z->dim[3], F = r->first->dim[3],
                  A = acf_chain_width(C, r->K);
    *a = (acf_pixel_row_attrs){.N = N,
                               .H = H,
                               .W = W,
                               .C = C,
                               .F = F,
                               .A = A,
                               .K = r->K,
                               .row = r->row,
                               .blocks = r->blocks,
                               .lo = r->lo,
                               .hi = r->hi};
    return is(r->first, N, 1, W, F) && is(r->left, F, 1, 3, 2 * C + 1) && is(r->head, A, 1, 1, F) &&
           is(r->image, N, H, W, 2 * C + 1) && is(r->u, N, H, W, C) && is(r->given, N, H, W, C) &&
           acf_tensor_count(r->left_bias) == F && acf_tensor_count(r->head_bias) == A && blocks_fit(r, N, W, F);
}

void acf_pixel_row_run(acf_tape *t, const acf_pixel_row *r, const acf_draw *d) {
    char sz[ACF_SHAPE_TEXT], sf[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_pixel_row, sizeof(acf_pixel_row_attrs), 0, NULL);
    if (!n) return;
    acf_pixel_row_attrs *a = n->attr;
    if (!fits(r, a) || (d && (!d->at.row || !d->at.column))) {
        acf_reject(t, n->op, "row %lld of z %s, stream %s: the tensors do not fit together", (long long)r->row,
                   acf_tensor_shape(r->z, sz), acf_tensor_shape(r->first, sf));
        return;
    }
    if (d) a->draws = true, a->draw = *d;
    a->left = r->left->data, a->left_bias = r->left_bias->data, a->head = r->head->data,
    a->head_bias = r->head_bias->data;
    a->first = r->first->data, a->u = r->u->data, a->given = r->given->data, a->image = r->image->data,
    a->z = r->z->data;
    for (int i = 0; i < r->blocks; i++) {
        const acf_row_block *b = &r->block[i];
        a->block[i] = (struct acf_row_pointers){b->in->data,       b->in_bias->data, b->out->data,
                                                b->out_bias->data, b->aux->data,     b->cond->data};
    }
    acf_node_run(t, n);
}
