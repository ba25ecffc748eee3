/* Factor analysis for wide tables: see factors.h; formulas in docs/math.md.
 *
 * Workload: 1e2 to 1e4 rows of 57 to some thousand columns, 1 to 64 factors. Per row and column there is a product
 * of a symmetric (r,r) matrix with a vector, and a rank-1 update of the matrix: 2 r² multiply-adds in rows of r
 * contiguous doubles, all in the L1 cache. */
#include "ops/factors.h"

#include "base/vector.h"
#include "ops/rowmat.h"

#include <math.h>
#include <string.h>

/* ---- one row --------------------------------------------------------------------------------------------------- */

/* The posterior of the factors given a row's columns so far: f ~ N(f, C). All of it is in a thread's scratch. */
typedef struct posterior {
    const acf_factors_in *in;
    int64_t r;       /* index of the last used factor, plus 1 */
    double *c, *f;   /* (r,r) (r) */
    double *c0, *f0; /* the same after the given columns */
    double *l, *g;   /* (r) of the current column: loadings; C l / s */
    double *ahead;   /* (r) for the backward */
    double mean, s;  /* of the current column: conditional mean and standard deviation */
    int64_t place;   /* number of columns processed */
} posterior;

static posterior posterior_of(const acf_factors_in *in, double *scratch) {
    const int64_t R = in->R;
    posterior s = {.in = in, .c = scratch + omp_get_thread_num() * ACF_FACTORS_SCRATCH(R)};
    for (int64_t k = 0; k < R; k++)
        if (in->weight[k] > 0) s.r = k + 1;
    s.c0 = s.c + R * R, s.f = s.c0 + R * R, s.f0 = s.f + R, s.l = s.f0 + R, s.g = s.l + R, s.ahead = s.g + R;
    return s;
}

/* Loads the loadings of column j into l and computes its conditional mean. */
static void predict(posterior *s, int64_t j) {
    const acf_real *load = s->in->load + j * s->in->R;
    for (int64_t k = 0; k < s->r; k++) s->l[k] = (double)load[k];
    s->mean = (double)s->in->mean[j] + acf_inner(s->l, s->f, s->r);
}

/* Moves to column j: mean, s and g = C l / s; then C becomes the covariance given the column. False: s² is not
 * positive. */
static bool advance_to(posterior *s, int64_t j) {
    const int64_t r = s->r;
    predict(s, j);
    for (int64_t k = 0; k < r; k++) s->g[k] = 0;
    for (int64_t k = 0; k < r; k++)
        acf_add_scaled(s->g, s->l[k], s->c + k * r, r); /* C is symmetric: its rows are its columns */
    const double variance = (double)s->in->var[j] + acf_inner(s->l, s->g, r);
    if (!(variance > ACF_MOG_LEAST_PIVOT)) return false;
    s->s = sqrt(variance);
    for (int64_t k = 0; k < r; k++) s->g[k] /= s->s;
    for (int64_t k = 0; k < r; k++) acf_add_scaled(s->c + k * r, -s->g[k], s->g, r);
    s->place++;
    return true;
}

/* Updates f for a value z standard deviations from the mean. */
static void update(posterior *s, double z) { acf_add_scaled(s->f, z, s->g, s->r); }

static double indicator(const acf_mog_classes *c, int64_t i, int64_t p) {
    return c->code[i * c->D + c->column[p]] == c->value[p];
}
static bool is_known(const acf_mog_classes *c, int64_t i, int64_t p) { return c->known[i * c->D + c->column[p]]; }

/* Processes row i's given columns. Returns the position of one whose variance is not positive, or -1. */
static int32_t condition_on_given(posterior *s, int64_t i) {
    const acf_factors_in *in = s->in;
    memset(s->f, 0, (size_t)s->r * sizeof *s->f);
    memset(s->c, 0, (size_t)(s->r * s->r) * sizeof *s->c);
    for (int64_t k = 0; k < s->r; k++) s->c[k * s->r + k] = fmax((double)in->weight[k], 0);
    s->place = 0;
    for (int64_t j = 0; j < in->D; j++) {
        if (!in->b[i * in->D + j]) continue;
        if (!advance_to(s, j)) return (int32_t)s->place;
        update(s, ((double)in->x[i * in->D + j] - s->mean) / s->s);
    }
    for (int64_t p = 0; p < in->classes.n; p++) {
        if (!is_known(&in->classes, i, p)) continue;
        if (!advance_to(s, in->D + p)) return (int32_t)s->place;
        update(s, (indicator(&in->classes, i, p) - s->mean) / s->s);
    }
    return -1;
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

static int64_t work(const acf_factors_in *in, int64_t N) { return N * in->W * in->R * (2 * in->R + 8); }

void acf_factors_normal_fwd_cpu(const acf_device *dev, acf_real *z, acf_real *logdet, int32_t *bad,
                                const acf_factors_in *in, const acf_subset *u, double *scratch) {
    ACF_PARALLEL_UNEVEN(dev, work(in, u->N))
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k];
        posterior s = posterior_of(in, scratch);
        double sum = 0;
        bad[i] = u->size[i] ? condition_on_given(&s, i) : -1;
        for (int64_t t = 0; bad[i] < 0 && t < u->size[i]; t++) {
            const int64_t j = u->cols[i * u->D + t];
            if (!advance_to(&s, j)) {
                bad[i] = (int32_t)s.place;
                break;
            }
            const double e = ((double)in->x[i * in->D + j] - s.mean) / s.s;
            sum -= log(s.s);
            z[acf_subset_at(u, i, t)] = acf_real_from(e);
            update(&s, e);
        }
        logdet[i] = acf_real_from(sum);
    }
}

/* The values of row i, of one set; returns as condition_on_given does. */
static int32_t value_row(posterior *s, acf_real *x, const acf_real *z, const acf_subset *u, int64_t i) {
    for (int64_t t = 0; t < u->size[i]; t++) {
        const int64_t at = acf_subset_at(u, i, t);
        if (!advance_to(s, u->cols[i * u->D + t])) return (int32_t)s->place;
        x[at] = acf_real_from(s->mean + s->s * (double)z[at]);
        update(s, (double)z[at]);
    }
    return -1;
}

void acf_factors_value_fwd_cpu(const acf_device *dev, acf_real *x, int32_t *bad, const acf_factors_in *in,
                               const acf_real *z, int64_t sets, const acf_subset *u, double *scratch) {
    ACF_PARALLEL_UNEVEN(dev, work(in, u->N))
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k];
        posterior s = posterior_of(in, scratch);
        bad[i] = u->size[i] ? condition_on_given(&s, i) : -1;
        if (u->size[i] == 0 || bad[i] >= 0) continue;
        const size_t square = (size_t)(s.r * s.r) * sizeof *s.c, row = (size_t)s.r * sizeof *s.f;
        memcpy(s.c0, s.c, square), memcpy(s.f0, s.f, row);
        for (int64_t q = 0; bad[i] < 0 && q < sets; q++) {
            if (q) memcpy(s.c, s.c0, square), memcpy(s.f, s.f0, row);
            bad[i] = value_row(&s, x + q * u->T, z + q * u->T, u, i);
        }
    }
}

void acf_factors_expect_cpu(const acf_device *dev, acf_real *out, int32_t *bad, const acf_factors_in *in,
                            const acf_subset *u, double *scratch) {
    const int64_t W = in->W;
    ACF_PARALLEL_UNEVEN(dev, work(in, u->N))
    for (int64_t i = 0; i < u->N; i++) {
        posterior s = posterior_of(in, scratch);
        bad[i] = -1;
        memset(out + i * W, 0, (size_t)W * sizeof *out);
        if (u->size[i] == 0) continue;
        bad[i] = condition_on_given(&s, i);
        for (int64_t j = 0; bad[i] < 0 && j < W; j++) {
            predict(&s, j);
            double value = s.mean;
            if (j < in->D)
                value = in->b[i * in->D + j] ? (double)in->x[i * in->D + j] : value;
            else if (is_known(&in->classes, i, j - in->D))
                value = indicator(&in->classes, i, j - in->D);
            out[i * W + j] = acf_real_from(value);
        }
    }
}

/* x is linear in z: x_p = ... + l_p·f + s_p z_p, and z_p enters f with g_p. So dz_p = s_p dx_p + g_p · Σ_{q>p} l_q
 * dx_q. The sum starts as that over all modelled columns, and each column's term is subtracted in turn. */
void acf_factors_value_bwd_cpu(const acf_device *dev, acf_real *dz, const acf_real *dx, const acf_factors_in *in,
                               const acf_subset *u, double *scratch) {
    ACF_PARALLEL_UNEVEN(dev, work(in, u->N))
    for (int64_t k = 0; k < u->N; k++) {
        const int64_t i = u->row[k];
        posterior s = posterior_of(in, scratch);
        if (u->size[i] == 0 || condition_on_given(&s, i) >= 0)
            continue; /* a row without a variance made the forward fail */
        memset(s.ahead, 0, (size_t)s.r * sizeof *s.ahead);
        for (int64_t t = 0; t < u->size[i]; t++) {
            predict(&s, u->cols[i * u->D + t]);
            acf_add_scaled(s.ahead, (double)dx[acf_subset_at(u, i, t)], s.l, s.r);
        }
        for (int64_t t = 0; t < u->size[i]; t++) {
            const int64_t at = acf_subset_at(u, i, t);
            if (!advance_to(&s, u->cols[i * u->D + t])) break;
            acf_add_scaled(s.ahead, -(double)dx[at], s.l, s.r);
            dz[at] = acf_real_from((double)dz[at] + s.s * (double)dx[at] + acf_inner(s.g, s.ahead, s.r));
        }
    }
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

static acf_factors_in reads(const acf_node *n) {
    const acf_mog_attrs *a = n->attr;
    acf_tensor *const *in = n->in;
    return (acf_factors_in){in[ACF_FACTORS_WEIGHT]->dim[0],
                            in[ACF_FACTORS_X]->dim[1],
                            in[ACF_FACTORS_MEAN]->dim[0],
                            in[ACF_FACTORS_WEIGHT]->data,
                            in[ACF_FACTORS_MEAN]->data,
                            in[ACF_FACTORS_LOAD]->data,
                            in[ACF_FACTORS_VAR]->data,
                            in[ACF_FACTORS_X]->data,
                            a->b,
                            a->classes};
}

static double *doubles(acf_tape *t, const acf_factors_in *in) {
    double *p = acf_arena_alloc(t->mem, (size_t)(t->dev->threads * ACF_FACTORS_SCRATCH(in->R)) * sizeof *p);
    if (!p) acf_tape_fail(t, NULL);
    return p;
}

static acf_status broken(int64_t N, const int32_t *bad) {
    const int64_t i = acf_first_failure(bad, N);
    if (i < 0) return ACF_OK;
    return acf_fail(ACF_ENUMERIC, "row %lld: the variance of a column given those before it is not positive (place %d)",
                    (long long)i, bad[i]);
}

static acf_status run_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((const acf_mog_attrs *)n->attr)->u;
    const acf_factors_in in = reads(n);
    const int64_t N = n->in[ACF_FACTORS_X]->dim[0];
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *bad = acf_tape_ints(t, N);
    double *scratch = doubles(t, &in);
    ACF_TRY(acf_tape_status(t));
    if (n->op == &acf_op_factors_expect)
        acf_factors_expect_cpu(t->dev, n->out[0]->data, bad, &in, u, scratch);
    else if (n->op == &acf_op_factors_normal)
        acf_factors_normal_fwd_cpu(t->dev, n->out[0]->data, n->out[1]->data, bad, &in, u, scratch);
    else {
        const acf_tensor *z = n->in[ACF_FACTORS_Z];
        acf_factors_value_fwd_cpu(t->dev, n->out[0]->data, bad, &in, z->data, z->ndim == 2 ? z->dim[0] : 1, u, scratch);
    }
    acf_status status = broken(N, bad);
    acf_arena_release(t->mem, mark);
    return status;
}

static acf_status value_backward(acf_tape *t, acf_node *n) {
    const acf_factors_in in = reads(n);
    acf_real *dz = acf_grad(t, n->in[ACF_FACTORS_Z]);
    ACF_TRY(acf_tape_status(t));
    if (!dz) return ACF_OK;
    acf_mark mark = acf_arena_mark(t->mem);
    double *scratch = doubles(t, &in);
    ACF_TRY(acf_tape_status(t));
    acf_factors_value_bwd_cpu(t->dev, dz, n->out[0]->grad, &in, ((const acf_mog_attrs *)n->attr)->u, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_factors_normal = {"factors_normal", ACF_OP_factors_normal, {run_forward, NULL}};
const acf_op acf_op_factors_expect = {"factors_expect", ACF_OP_factors_expect, {run_forward, NULL}};
const acf_op acf_op_factors_values = {"factors_values", ACF_OP_factors_values, {run_forward, NULL}};
const acf_op acf_op_factors_value = {"factors_value", ACF_OP_factors_value, {run_forward, value_backward}};

static bool is_vector(const acf_tensor *x, int64_t n) { return x->ndim == 1 && x->dim[0] == n; }
static bool is_matrix(const acf_tensor *x, int64_t n, int64_t m) {
    return x->ndim == 2 && x->dim[0] == n && x->dim[1] == m;
}

/* A node on N rows of D reals, without its outputs; NULL after a failure. */
static acf_node *checked(acf_tape *t, const acf_op *op, const acf_factors *g, acf_tensor *z, int64_t N, int64_t D) {
    char sw[ACF_SHAPE_TEXT], sm[ACF_SHAPE_TEXT], sl[ACF_SHAPE_TEXT], sv[ACF_SHAPE_TEXT], sx[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, op, sizeof(acf_mog_attrs), z ? 6 : 5,
                               (acf_tensor *[]){g->weight, g->mean, g->load, g->var, g->x, z});
    if (!n) return NULL;
    const int64_t R = g->weight->ndim == 1 ? g->weight->dim[0] : -1, W = D + g->classes.n;
    if (R > ACF_FACTORS_MOST || !is_vector(g->weight, R) || !is_vector(g->mean, W) || !is_matrix(g->load, W, R) ||
        !is_vector(g->var, W) || !is_matrix(g->x, N, D)) {
        acf_reject(t, op,
                   "weight is %s, mean is %s, load is %s, var is %s, x is %s; "
                   "expected (R), (%lld), (%lld,R), (%lld) and (%lld,%lld), R <= %d",
                   acf_tensor_shape(g->weight, sw), acf_tensor_shape(g->mean, sm), acf_tensor_shape(g->load, sl),
                   acf_tensor_shape(g->var, sv), acf_tensor_shape(g->x, sx), (long long)W, (long long)W, (long long)W,
                   (long long)N, (long long)D, ACF_FACTORS_MOST);
        return NULL;
    }
    *(acf_mog_attrs *)n->attr = (acf_mog_attrs){NULL, g->b, g->classes};
    return n;
}

static bool packed(acf_tape *t, const acf_op *op, const acf_tensor *z, const acf_subset *u) {
    char sz[ACF_SHAPE_TEXT];
    if (acf_is_packed(z, u)) return true;
    acf_reject(t, op, "z is %s; expected (%lld packed) over the subset", acf_tensor_shape(z, sz), (long long)u->T);
    return false;
}

/* The node of a map between x and z, with its first output. */
static acf_node *map(acf_tape *t, const acf_op *op, const acf_factors *g, acf_tensor *z, const acf_subset *u) {
    acf_node *n = checked(t, op, g, z, u->N, u->D);
    if (!n || (z && !packed(t, op, z, u))) return NULL;
    ((acf_mog_attrs *)n->attr)->u = u;
    n->out[0] = acf_tensor_packed(t, u, 0);
    return n;
}

acf_tensor *acf_factors_expect(acf_tape *t, const acf_factors *g, const acf_subset *u) {
    if (t->failure.status) return &t->empty;
    acf_node *n = checked(t, &acf_op_factors_expect, g, NULL, u->N, g->x->dim[1]);
    if (!n) return &t->empty;
    ((acf_mog_attrs *)n->attr)->u = u;
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){u->N, g->mean->dim[0]});
    return acf_node_run(t, n);
}

acf_tensor *acf_factors_normal(acf_tape *t, const acf_factors *g, const acf_subset *u, acf_tensor **logdet) {
    *logdet = &t->empty;
    if (t->failure.status) return &t->empty;
    acf_node *n = map(t, &acf_op_factors_normal, g, NULL, u);
    if (!n) return &t->empty;
    n->out[1] = acf_tensor_new(t, 1, &u->N);
    acf_tensor *z = acf_node_run(t, n);
    if (!t->failure.status) *logdet = n->out[1];
    return z;
}

acf_tensor *acf_factors_value(acf_tape *t, const acf_factors *g, acf_tensor *z, const acf_subset *u) {
    if (t->failure.status) return &t->empty;
    acf_node *n = map(t, &acf_op_factors_value, g, z, u);
    return n ? acf_node_run(t, n) : &t->empty;
}

void acf_factors_values(acf_tape *t, const acf_factors *g, int n, acf_tensor **z, const acf_subset *u) {
    acf_tensor *all = acf_tensor_new(t, 2, (int64_t[]){n, u->T});
    for (int i = 0; i < n && !t->failure.status; i++)
        if (packed(t, &acf_op_factors_values, z[i], u) &&
            acf_device_copy(t->dev, all->data + i * u->T, z[i]->data, (size_t)u->T * sizeof(acf_real), ACF_ON_DEVICE))
            acf_tape_fail(t, NULL);
    acf_node *node = t->failure.status ? NULL : checked(t, &acf_op_factors_values, g, all, u->N, u->D);
    if (node) {
        ((acf_mog_attrs *)node->attr)->u = u;
        node->out[0] = acf_tensor_new(t, 2, all->dim);
        all = acf_node_run(t, node);
    }
    for (int i = 0; i < n; i++)
        z[i] = t->failure.status ? &t->empty
                                 : acf_tensor_as_packed(t, acf_tensor_wrap(t, all->data + i * u->T, 1, &u->T), u);
}
