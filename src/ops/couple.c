/* The affine coupling of images: see couple.h; formulas in docs/math.md.
 *
 * Workload: 20 to 40 times a step on N = 16 to 64 images of 1e3 to 1e4 numbers; little time compared with its
 * network. One iteration handles one image, so that sums over an image have one order. */
#include "ops/couple.h"

#include "base/vmath.h"
#include "ops/reduce.h"

/* Marks which of a pixel's C channels are in u and on the given side: kept or moving. */
static inline bool moves(const acf_couple_shape *s, const acf_real *u, int64_t pixel, int64_t c) {
    const int64_t h = pixel / s->W % s->H, w = pixel % s->W;
    return acf_mask_on(u[pixel * s->C + c]) && !acf_pattern_keeps(s->p, h, w, c, s->C);
}

static inline bool known(const acf_couple_shape *s, const acf_real *b, const acf_real *u, int64_t pixel, int64_t c) {
    const int64_t h = pixel / s->W % s->H, w = pixel % s->W;
    return acf_mask_on(b[pixel * s->C + c]) ||
           (acf_mask_on(u[pixel * s->C + c]) && acf_pattern_keeps(s->p, h, w, c, s->C));
}

/* ---- what the network sees ------------------------------------------------------------------------------------- */

void acf_couple_input_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *b,
                              const acf_real *u, const acf_couple_shape *s) {
    const int64_t C = s->C, pixels = s->N * s->H * s->W;
    ACF_PARALLEL(dev, 8 * pixels * C)
    for (int64_t i = 0; i < pixels; i++) {
        acf_real *to = y + 3 * i * C;
        for (int64_t c = 0; c < C; c++) {
            const bool k = known(s, b, u, i, c);
            const acf_real v = k ? x[i * C + c] : 0;
            to[c] = v < 0 ? 0 : v; /* a NaN stays one */
            to[C + c] = v > 0 ? 0 : -v;
            to[2 * C + c] = k;
        }
    }
}

void acf_couple_input_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x,
                              const acf_real *b, const acf_real *u, const acf_couple_shape *s) {
    const int64_t C = s->C, pixels = s->N * s->H * s->W;
    ACF_PARALLEL(dev, 8 * pixels * C)
    for (int64_t i = 0; i < pixels; i++) {
        const acf_real *d = dy + 3 * i * C;
        for (int64_t c = 0; c < C; c++) {
            const acf_real v = x[i * C + c];
            if (known(s, b, u, i, c)) dx[i * C + c] += v > 0 ? d[c] : v < 0 ? -d[C + c] : 0;
        }
    }
}

/* ---- scale and shift ------------------------------------------------------------------------------------------- */

/* One image; returns the sum of s over the moving numbers. */
static double move_image(acf_real *y, const acf_real *x, const acf_real *st, acf_real g, acf_real g0, const acf_real *u,
                         const acf_couple_shape *s, int64_t n) {
    const int64_t C = s->C, size = s->H * s->W;
    double sum = 0;
    for (int64_t i = n * size; i < (n + 1) * size; i++) {
        const acf_real *raw = st + 2 * i * C, *shift = raw + C;
        for (int64_t c = 0; c < C; c++) {
            const acf_real v = x[i * C + c];
            if (!moves(s, u, i, c)) {
                y[i * C + c] = v;
                continue;
            }
            const acf_real scale = g * acf_tanh(raw[c]) + g0;
            y[i * C + c] = s->inverse ? v * acf_exp(-scale) - shift[c] : (v + shift[c]) * acf_exp(scale);
            sum += (double)scale;
        }
    }
    return s->inverse ? -sum : sum;
}

void acf_couple_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *logdet, const acf_real *x, const acf_real *st,
                        acf_real g, acf_real g0, const acf_real *u, const acf_couple_shape *s) {
    ACF_PARALLEL(dev, 8 * s->N * s->H * s->W * s->C)
    for (int64_t n = 0; n < s->N; n++) {
        const double sum = move_image(y, x, st, g, g0, u, s, n);
        if (logdet) logdet[n] = acf_real_sum(sum);
    }
}

/* One moving number. With d = dy and l = dlogdet,
 *     forward   dx += d e^s,    dt += d e^s,    ds =  d (x + t) e^s + l
 *     inverse   dx += d e^-s,   dt -= d,        ds = -d x e^-s - l
 * and draw += ds g (1 - tanh²), dg += ds tanh, dg0 += ds. */
typedef struct slope {
    acf_real dx, dt, draw;
    double dg, dg0;
} slope;

static slope move_back(acf_real d, acf_real l, acf_real x, acf_real raw, acf_real shift, acf_real g, acf_real g0,
                       bool inverse) {
    const acf_real th = acf_tanh(raw), scale = g * th + g0, e = acf_exp(inverse ? -scale : scale);
    const acf_real ds = inverse ? -d * x * e - l : d * (x + shift) * e + l;
    return (slope){.dx = d * e,
                   .dt = inverse ? -d : d * e,
                   .draw = ds * g * (1 - th * th),
                   .dg = (double)(ds * th),
                   .dg0 = (double)ds};
}

void acf_couple_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dst, acf_real *dg, acf_real *dg0,
                        const acf_real *dy, const acf_real *dlogdet, const acf_real *x, const acf_real *st, acf_real g,
                        acf_real g0, const acf_real *u, const acf_couple_shape *s, double *sums) {
    const int64_t C = s->C, size = s->H * s->W;
    ACF_PARALLEL(dev, 8 * s->N * size * C)
    for (int64_t n = 0; n < s->N; n++) {
        sums[2 * n] = sums[2 * n + 1] = 0;
        for (int64_t i = n * size * C; i < (n + 1) * size * C; i++) {
            const int64_t pixel = i / C, c = i % C, at = 2 * pixel * C + c;
            const acf_real d = dy ? dy[i] : 0;
            if (!moves(s, u, pixel, c)) {
                if (dx) dx[i] += d;
                continue;
            }
            const slope k = move_back(d, dlogdet ? dlogdet[n] : 0, x[i], st[at], st[at + C], g, g0, s->inverse);
            if (dx) dx[i] += k.dx;
            if (dst) dst[at] += k.draw, dst[at + C] += k.dt;
            sums[2 * n] += k.dg, sums[2 * n + 1] += k.dg0;
        }
    }
    double total[2] = {0, 0};
    for (int64_t n = 0; n < s->N; n++) total[0] += sums[2 * n], total[1] += sums[2 * n + 1];
    if (dg) dg[0] += (acf_real)total[0];
    if (dg0) dg0[0] += (acf_real)total[1];
}

/* ---- the operations -------------------------------------------------------------------------------------------- */

static acf_status input_forward(acf_tape *t, acf_node *n) {
    acf_couple_input_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, n->in[2]->data, n->attr);
    return ACF_OK;
}

static acf_status input_backward(acf_tape *t, acf_node *n) {
    acf_real *dx = acf_grad(t, n->in[0]);
    ACF_TRY(acf_tape_status(t));
    if (dx)
        acf_couple_input_bwd_cpu(t->dev, dx, n->out[0]->grad, n->in[0]->data, n->in[1]->data, n->in[2]->data, n->attr);
    return ACF_OK;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *logdet = n->out[1];
    acf_couple_fwd_cpu(t->dev, n->out[0]->data, logdet ? logdet->data : NULL, n->in[0]->data, n->in[1]->data,
                       n->in[2]->data[0], n->in[3]->data[0], n->in[4]->data, n->attr);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_couple_shape *s = n->attr;
    acf_real *d[4];
    for (int i = 0; i < 4; i++) d[i] = acf_grad(t, n->in[i]);
    acf_mark mark = acf_arena_mark(t->mem);
    double *sums = acf_arena_alloc(t->mem, (size_t)(2 * s->N) * sizeof *sums);
    if (!sums) acf_tape_fail(t, n->op);
    ACF_TRY(acf_tape_status(t));
    acf_couple_bwd_cpu(t->dev, d[0], d[1], d[2], d[3], n->out[0]->grad, n->out[1] ? n->out[1]->grad : NULL,
                       n->in[0]->data, n->in[1]->data, n->in[2]->data[0], n->in[3]->data[0], n->in[4]->data, s, sums);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_couple_input = {"couple_input", ACF_OP_couple_input, {input_forward, input_backward}};
const acf_op acf_op_couple_forward = {"couple_forward", ACF_OP_couple_forward, {forward, backward}};
const acf_op acf_op_couple_inverse = {"couple_inverse", ACF_OP_couple_inverse, {forward, backward}};

/* Checks that a pattern can split images of x's shape; *s receives the sizes. */
static bool splits(const acf_tensor *x, acf_pattern p, bool inverse, acf_couple_shape *s) {
    if (x->ndim != 4 || (p.kind == ACF_QUARTER && x->dim[3] % 4)) return false;
    *s = (acf_couple_shape){x->dim[0], x->dim[1], x->dim[2], x->dim[3], p, inverse};
    return true;
}
#define NO_IMAGE "x is %s; expected (N, H, W, C), and for quarters C a multiple of 4"

acf_tensor *acf_couple_input(acf_tape *t, acf_tensor *x, acf_tensor *b, acf_tensor *u, acf_pattern p) {
    char sx[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT], su[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_couple_input, sizeof(acf_couple_shape), 3, (acf_tensor *[]){x, b, u});
    if (!n) return &t->empty;
    if (!splits(x, p, false, n->attr)) return acf_reject(t, n->op, NO_IMAGE, acf_tensor_shape(x, sx));
    if (!acf_tensor_same_shape(x, b) || !acf_tensor_same_shape(x, u))
        return acf_reject(t, n->op, "x is %s, b is %s and u is %s; expected one shape", acf_tensor_shape(x, sx),
                          acf_tensor_shape(b, sb), acf_tensor_shape(u, su));
    n->out[0] = acf_tensor_new(t, 4, (int64_t[]){x->dim[0], x->dim[1], x->dim[2], 3 * x->dim[3]});
    return acf_node_run(t, n);
}

static acf_tensor *apply(acf_tape *t, const acf_op *op, acf_tensor *const in[5], acf_pattern p, acf_tensor **logdet) {
    char sx[ACF_SHAPE_TEXT], ss[ACF_SHAPE_TEXT], su[ACF_SHAPE_TEXT];
    const acf_tensor *x = in[0], *st = in[1], *u = in[4];
    if (logdet) *logdet = &t->empty;
    acf_node *n = acf_node_new(t, op, sizeof(acf_couple_shape), 5, in);
    if (!n) return &t->empty;
    if (!splits(x, p, op == &acf_op_couple_inverse, n->attr))
        return acf_reject(t, op, NO_IMAGE, acf_tensor_shape(x, sx));
    const bool fits = st->ndim == 4 && acf_tensor_lines(st) == acf_tensor_lines(x) && st->dim[3] == 2 * x->dim[3];
    if (!fits || !acf_tensor_same_shape(x, u) || acf_tensor_count(in[2]) != 1 || acf_tensor_count(in[3]) != 1)
        return acf_reject(
            t, op,
            "x is %s, st is %s and u is %s; expected (N, H, W, C), twice its channels, and its shape; g and g0 one "
            "number each",
            acf_tensor_shape(x, sx), acf_tensor_shape(st, ss), acf_tensor_shape(u, su));
    n->out[0] = acf_tensor_new(t, 4, x->dim);
    if (logdet) n->out[1] = acf_tensor_new(t, 1, x->dim);
    acf_tensor *y = acf_node_run(t, n);
    if (logdet && y != &t->empty) *logdet = n->out[1];
    return y;
}

acf_tensor *acf_couple_forward(acf_tape *t, acf_tensor *x, acf_tensor *st, acf_tensor *g, acf_tensor *g0, acf_tensor *u,
                               acf_pattern p, acf_tensor **logdet) {
    return apply(t, &acf_op_couple_forward, (acf_tensor *[]){x, st, g, g0, u}, p, logdet);
}

acf_tensor *acf_couple_inverse(acf_tape *t, acf_tensor *y, acf_tensor *st, acf_tensor *g, acf_tensor *g0, acf_tensor *u,
                               acf_pattern p, acf_tensor **logdet) {
    return apply(t, &acf_op_couple_inverse, (acf_tensor *[]){y, st, g, g0, u}, p, logdet);
}
