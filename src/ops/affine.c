/* The affine flow: see affine.h; derivatives in docs/math.md, 7.
 *
 * Workload: T = 1e3 to 1e6 packed elements, one exp and one tanh each. Memory traffic in float is 16 bytes an
 * element forward and 40 backward, so backward computes s again instead of storing it. Work is divided into blocks
 * of ROWS ranks. Within a block every step is one contiguous span. A block owns its rows, so one thread sums their
 * log-determinants in the order of the steps:
 *
 *     step 0   [ block 0 | block 1 | block 2 ]      rows are sorted by size, so later blocks have fewer steps:
 *     step 1   [ block 0 | block 1 | bl ]           blocks are scheduled dynamically
 *     step 2   [ block 0 | b ]
 */
#include "ops/affine.h"

#include "base/vmath.h"

#define ROWS 128

/* Elements of step t in the block that begins at rank r0; 0 once its rows have ended. */
static int64_t span(const acf_subset *u, int64_t r0, int64_t t) {
    return t < u->steps ? acf_min(u->active[t] - r0, ROWS) : 0;
}

/* A span of st, split into its parts. */
typedef struct head {
    acf_real s[ROWS];     /* log-scale in the direction of the flow: s forward, -s for the inverse */
    acf_real e[ROWS];     /* e^s */
    acf_real slope[ROWS]; /* ds/draw = 1 - tanh², with the same sign */
    acf_real shift[ROWS];
} head;

static void read_head(head *h, const acf_real *st, double bound, int64_t C, bool inverse, int64_t n) {
    const acf_real sign = inverse ? -1 : 1, scale = sign * (acf_real)bound, per_bound = (acf_real)(1 / bound);
    if (C == 1) {
        for (int64_t i = 0; i < n; i++) h->s[i] = h->slope[i] = 0, h->e[i] = 1, h->shift[i] = st[i];
        return;
    }
    ACF_SIMD
    for (int64_t i = 0; i < n; i++) {
        acf_real th = acf_tanh(st[2 * i] * per_bound);
        h->s[i] = scale * th;
        h->e[i] = acf_exp(scale * th);
        h->slope[i] = sign * (1 - th * th);
        h->shift[i] = st[2 * i + 1];
    }
}

/* One span of y = x e^s + t, or (x - t) e^s with s already negated; sum (n) += s. */
static void fwd_span(acf_real *y, double *sum, const acf_real *x, const head *h, bool inverse, int64_t n) {
    if (inverse) {
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) y[i] = (x[i] - h->shift[i]) * h->e[i];
    } else {
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) y[i] = x[i] * h->e[i] + h->shift[i];
    }
    ACF_SIMD
    for (int64_t i = 0; i < n; i++) sum[i] += (double)h->s[i];
}

void acf_affine_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *logdet, const acf_real *x, const acf_real *st,
                        double bound, int64_t C, const acf_subset *u, bool inverse) {
#pragma omp parallel for schedule(dynamic) num_threads(acf_threads_for(dev, 8 * u->T))
    for (int64_t r0 = 0; r0 < u->N; r0 += ROWS) {
        double sum[ROWS] = {0};
        head h;
        for (int64_t t = 0, n; (n = span(u, r0, t)) > 0; t++) {
            int64_t p = u->first[t] + r0;
            read_head(&h, st + C * p, bound, C, inverse, n);
            fwd_span(y + p, sum, x + p, &h, inverse, n);
        }
        for (int64_t r = r0; logdet && r < acf_min(r0 + ROWS, u->N); r++)
            logdet[u->row[r]] = acf_real_from(sum[r - r0]);
    }
}

/* One span of st's gradient, s and its slope already negated for the inverse:
 *     forward   draw += (dl + dy x e^s) slope,         dt += dy
 *     inverse   draw += (dl + dy (x - t) e^s) slope,   dt -= dy e^s */
static void bwd_head(acf_real *dst, const acf_real *dy, const acf_real *dl, const acf_real *x, const head *h, int64_t C,
                     bool inverse, int64_t n) {
    acf_real draw[ROWS], dt[ROWS];
    if (inverse) {
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) {
            dt[i] = -dy[i] * h->e[i];
            draw[i] = (dl[i] - dt[i] * (x[i] - h->shift[i])) * h->slope[i];
        }
    } else {
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) {
            dt[i] = dy[i];
            draw[i] = (dl[i] + dy[i] * x[i] * h->e[i]) * h->slope[i];
        }
    }
    if (C == 1) {
        ACF_SIMD
        for (int64_t i = 0; i < n; i++) dst[i] += dt[i];
        return;
    }
    ACF_SIMD
    for (int64_t i = 0; i < n; i++) {
        dst[2 * i] += draw[i];
        dst[2 * i + 1] += dt[i];
    }
}

void acf_affine_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dst, const acf_real *dy, const acf_real *dlogdet,
                        const acf_real *x, const acf_real *st, double bound, int64_t C, const acf_subset *u,
                        bool inverse) {
    const acf_real none[ROWS] = {0}; /* replaces a dy that is NULL */
#pragma omp parallel for schedule(dynamic) num_threads(acf_threads_for(dev, 8 * u->T))
    for (int64_t r0 = 0; r0 < u->N; r0 += ROWS) {
        acf_real dl[ROWS];
        head h;
        for (int64_t r = 0; r < ROWS; r++) dl[r] = dlogdet && r0 + r < u->N ? dlogdet[u->row[r0 + r]] : 0;
        for (int64_t t = 0, n; (n = span(u, r0, t)) > 0; t++) {
            int64_t p = u->first[t] + r0;
            const acf_real *g = dy ? dy + p : none;
            read_head(&h, st + C * p, bound, C, inverse, n);
            if (dst) bwd_head(dst + C * p, g, dl, x + p, &h, C, inverse, n);
            if (!dx) continue;
            ACF_SIMD
            for (int64_t i = 0; i < n; i++) dx[p + i] += g[i] * h.e[i];
        }
    }
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_affine_attrs *a = n->attr;
    const acf_tensor *x = n->in[0], *st = n->in[1], *y = n->out[0], *logdet = n->out[1];
    acf_affine_fwd_cpu(t->dev, y->data, logdet ? logdet->data : NULL, x->data, st->data, a->bound, acf_tensor_width(st),
                       a->u, a->inverse);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_affine_attrs *a = n->attr;
    acf_tensor *x = n->in[0], *st = n->in[1], *y = n->out[0], *logdet = n->out[1];
    acf_real *dx = acf_grad(t, x), *dst = acf_grad(t, st);
    ACF_TRY(acf_tape_status(t));
    acf_affine_bwd_cpu(t->dev, dx, dst, y->grad, logdet ? logdet->grad : NULL, x->data, st->data, a->bound,
                       acf_tensor_width(st), a->u, a->inverse);
    return ACF_OK;
}

const acf_op acf_op_affine_forward = {"affine_forward", ACF_OP_affine_forward, {forward, backward}};
const acf_op acf_op_affine_inverse = {"affine_inverse", ACF_OP_affine_inverse, {forward, backward}};

static acf_tensor *apply(acf_tape *t, const acf_op *op, acf_tensor *x, acf_tensor *st, acf_affine_attrs a,
                         acf_tensor **logdet) {
    char sx[ACF_SHAPE_TEXT], ss[ACF_SHAPE_TEXT];
    if (logdet) *logdet = &t->empty;
    acf_node *n = acf_node_new(t, op, sizeof a, 2, (acf_tensor *[]){x, st});
    if (!n) return &t->empty;
    int64_t C = acf_tensor_width(st);
    if (x->sub != a.u || st->sub != a.u)
        return acf_reject(t, op, "x is %s and st is %s; both must be packed over the subset that was given",
                          acf_tensor_shape(x, sx), acf_tensor_shape(st, ss));
    if (acf_tensor_width(x) != 1 || C < 1 || C > 2)
        return acf_reject(t, op, "x is %s and st is %s; expected (T) and (T, 2), or (T, 1) for a shift alone",
                          acf_tensor_shape(x, sx), acf_tensor_shape(st, ss));
    if (C == 2 && !(a.bound > 0 && isfinite(a.bound)))
        return acf_reject_value(t, op, "the bound of the scale is %g; expected a positive number", a.bound);
    *(acf_affine_attrs *)n->attr = a;
    n->out[0] = acf_tensor_packed(t, a.u, 0);
    if (logdet) n->out[1] = acf_tensor_new(t, 1, &a.u->N);
    acf_tensor *y = acf_node_run(t, n);
    if (logdet && y != &t->empty) *logdet = n->out[1];
    return y;
}

acf_tensor *acf_affine_forward(acf_tape *t, acf_tensor *x, acf_tensor *st, double bound, const acf_subset *u,
                               acf_tensor **logdet) {
    return apply(t, &acf_op_affine_forward, x, st, (acf_affine_attrs){bound, u, false}, logdet);
}

acf_tensor *acf_affine_inverse(acf_tape *t, acf_tensor *z, acf_tensor *st, double bound, const acf_subset *u,
                               acf_tensor **logdet) {
    return apply(t, &acf_op_affine_inverse, z, st, (acf_affine_attrs){bound, u, true}, logdet);
}
