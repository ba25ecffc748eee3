/* Categories: see categorical.h; formulas in docs/math.md, 8.
 *
 * Workload: T = 1e3 to 3e4 elements with slices of 2 to some thousands of classes, one exp a class. The slice is
 * contiguous and the loops over it are vectorised, in double. Elements are independent and divided among threads. */
#include "ops/categorical.h"

#include "base/vmath.h"

#include <math.h>

/* ---- log-probability -------------------------------------------------------------------------------------------- */

/* The slice's largest logit, ignoring NaN, and *sum = Σ e^(logit - largest), in which a NaN propagates. */
static double exp_sum(const acf_real *logit, int64_t n, double *sum) {
    double top = -(double)INFINITY, total = 0.0;
    for (int64_t k = 0; k < n; k++) top = (double)logit[k] > top ? (double)logit[k] : top;
    ACF_PRAGMA(omp simd reduction(+ : total))
    for (int64_t k = 0; k < n; k++) total += acf_exp_double((double)logit[k] - top);
    *sum = total;
    return top;
}

void acf_categorical_logp_fwd_cpu(const acf_device *dev, acf_real *logp, const acf_real *logits, const int32_t *codes,
                                  const int32_t *column, const int32_t *first, const int32_t *count, int64_t T,
                                  int64_t W) {
    ACF_PARALLEL_UNEVEN(dev, T * W * 4)
    for (int64_t i = 0; i < T; i++) {
        const acf_real *logit = logits + i * W + first[column[i]];
        double sum, top = exp_sum(logit, count[column[i]], &sum);
        logp[i] = acf_real_from(((double)logit[codes[i]] - top) - log(sum));
    }
}

/* d logp / d logit_k = [k = code] - softmax_k. The softmax is computed again in double: from a float logp it would
 * be off by a thousandth where the log-probability is -1e4. */
void acf_categorical_logp_bwd_cpu(const acf_device *dev, acf_real *dlogits, const acf_real *dlogp,
                                  const acf_real *logits, const int32_t *codes, const int32_t *column,
                                  const int32_t *first, const int32_t *count, int64_t T, int64_t W) {
    ACF_PARALLEL_UNEVEN(dev, T * W * 4)
    for (int64_t i = 0; i < T; i++) {
        int64_t at = i * W + first[column[i]], n = count[column[i]];
        const acf_real *logit = logits + at;
        acf_real *d = dlogits + at;
        double sum, top = exp_sum(logit, n, &sum), g = (double)dlogp[i], scale = g / sum;
        ACF_SIMD
        for (int64_t k = 0; k < n; k++) d[k] -= (acf_real)(scale * acf_exp_double((double)logit[k] - top));
        d[codes[i]] += dlogp[i];
    }
}

/* ---- most probable class, sample -------------------------------------------------------------------------------- */

/* The first largest of n numbers, -1 if one is NaN. */
static int32_t first_largest(const acf_real *x, int32_t n) {
    int32_t best = 0;
    for (int32_t k = 0; k < n; k++) {
        if (isnan(x[k])) return -1;
        if (x[k] > x[best]) best = k;
    }
    return best;
}

void acf_categorical_argmax_fwd_cpu(const acf_device *dev, int32_t *codes, const acf_real *logits,
                                    const int32_t *column, const int32_t *first, const int32_t *count, int64_t T,
                                    int64_t W) {
    ACF_PARALLEL_UNEVEN(dev, T * W)
    for (int64_t i = 0; i < T; i++) codes[i] = first_largest(logits + i * W + first[column[i]], count[column[i]]);
}

/* Class k with probability softmax_k for a uniform u. Weights are computed twice, not stored: a slice may have
 * thousands. */
static int32_t pick(const acf_real *logit, int32_t n, double u) {
    double sum, top = exp_sum(logit, n, &sum), left = u * sum;
    if (!isfinite(sum)) return -1;
    int32_t last = -1;
    for (int32_t k = 0; k < n; k++) {
        double w = acf_exp_double((double)logit[k] - top);
        if (w <= 0.0) continue;
        last = k;
        left -= w;
        if (left < 0.0) break;
    }
    return last; /* a remainder of rounding: the last class with positive probability */
}

void acf_categorical_sample_fwd_cpu(const acf_device *dev, int32_t *codes, const acf_real *logits, const acf_draw *d,
                                    const int32_t *first, const int32_t *count, int64_t T, int64_t W) {
    const int32_t *column = d->at.column;
    ACF_PARALLEL_UNEVEN(dev, T * W * 4)
    for (int64_t i = 0; i < T; i++)
        codes[i] = pick(logits + i * W + first[column[i]], count[column[i]],
                        acf_rng_uniform(acf_draw_counter(d, ACF_STREAM_CATEGORY, i)));
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* n integers copied to the tape's device memory; NULL when the tape has failed. */
static const int32_t *keep_ints(acf_tape *t, const int32_t *x, int64_t n, acf_copy_kind kind) {
    int32_t *copy = acf_tape_ints(t, n);
    if (copy && acf_device_copy(t->dev, copy, x, (size_t)n * sizeof(int32_t), kind)) {
        acf_tape_fail(t, NULL);
        return NULL;
    }
    return copy;
}

/* Number of classes of an element's column; 0 if the caller's cells name a column that the table does not have. */
static int32_t classes_at(const acf_categorical_attrs *a, int64_t i) {
    int32_t column = a->draw.at.column[i];
    return column >= 0 && column < a->classes.D ? a->classes.count[column] : 0;
}

/* The element of the lowest cell whose code is not a class of its column, -1 if all are. codes NULL: checks only
 * that the columns have classes. Elements are step-major, so the first found is not the lowest. */
static int64_t first_bad(const acf_categorical_attrs *a, const int32_t *codes, int64_t T) {
    const acf_cells *at = &a->draw.at;
    int64_t bad = -1;
    for (int64_t i = 0; i < T; i++) {
        int32_t n = classes_at(a, i), code = codes ? codes[i] : 0;
        if (code >= 0 && code < n) continue;
        if (bad < 0 || at->row[i] < at->row[bad] || (at->row[i] == at->row[bad] && at->column[i] < at->column[bad]))
            bad = i;
    }
    return bad;
}

static acf_status check_codes(const acf_categorical_attrs *a, const int32_t *codes, int64_t T) {
    int64_t i = first_bad(a, codes, T);
    if (i < 0) return ACF_OK;
    int row = a->draw.at.row[i], column = a->draw.at.column[i], n = classes_at(a, i);
    if (n == 0) return acf_fail(ACF_EDATA, "row %d, column %d: the column has no classes", row, column);
    return acf_fail(ACF_EDATA, "row %d, column %d: the code is %d, but the column has %d classes (0 to %d)", row,
                    column, (int)codes[i], n, n - 1);
}

/* Checks the results of argmax and sample, which are -1 where the logits allow no choice. */
static acf_status check_found(const acf_categorical_attrs *a, int64_t T) {
    int64_t i = first_bad(a, a->found, T);
    if (i < 0) return ACF_OK;
    return acf_fail(ACF_ENUMERIC, "row %d, column %d: the logits are not finite, no class can be chosen",
                    (int)a->draw.at.row[i], (int)a->draw.at.column[i]);
}

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    acf_categorical_attrs *a = n->attr;
    int64_t T = n->in[0]->dim[0], W = n->in[0]->dim[1];
    ACF_TRY(check_codes(a, a->given, T));
    if (n->save) a->given = keep_ints(t, a->given, T, ACF_ON_DEVICE);
    ACF_TRY(acf_tape_status(t));
    acf_categorical_logp_fwd_cpu(t->dev, n->out[0]->data, n->in[0]->data, a->given, a->draw.at.column, a->classes.first,
                                 a->classes.count, T, W);
    return ACF_OK;
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const acf_categorical_attrs *a = n->attr;
    acf_real *dlogits = acf_grad(t, n->in[0]);
    if (!dlogits) return acf_tape_status(t);
    acf_categorical_logp_bwd_cpu(t->dev, dlogits, n->out[0]->grad, n->in[0]->data, a->given, a->draw.at.column,
                                 a->classes.first, a->classes.count, n->in[0]->dim[0], n->in[0]->dim[1]);
    return ACF_OK;
}

static acf_status argmax_forward(acf_tape *t, acf_node *n) {
    acf_categorical_attrs *a = n->attr;
    int64_t T = n->in[0]->dim[0], W = n->in[0]->dim[1];
    ACF_TRY(check_codes(a, NULL, T));
    acf_categorical_argmax_fwd_cpu(t->dev, a->found, n->in[0]->data, a->draw.at.column, a->classes.first,
                                   a->classes.count, T, W);
    return check_found(a, T);
}

static acf_status sample_forward(acf_tape *t, acf_node *n) {
    acf_categorical_attrs *a = n->attr;
    int64_t T = n->in[0]->dim[0], W = n->in[0]->dim[1];
    ACF_TRY(check_codes(a, NULL, T));
    acf_categorical_sample_fwd_cpu(t->dev, a->found, n->in[0]->data, &a->draw, a->classes.first, a->classes.count, T,
                                   W);
    return check_found(a, T);
}

const acf_op acf_op_categorical_logp = {"categorical_logp", ACF_OP_categorical_logp, {logp_forward, logp_backward}};
const acf_op acf_op_categorical_argmax = {"categorical_argmax", ACF_OP_categorical_argmax, {argmax_forward, NULL}};
const acf_op acf_op_categorical_sample = {"categorical_sample", ACF_OP_categorical_sample, {sample_forward, NULL}};

/* Checks that the slices lie inside the logits and, where the logits are packed, that there is one per table column. */
static bool classes_fit(acf_tape *t, const acf_op *op, const acf_tensor *logits, const acf_classes *c) {
    if (logits->sub && logits->sub->D != c->D) {
        acf_reject(t, op, "there are classes for %lld columns; the table has %lld", (long long)c->D,
                   (long long)logits->sub->D);
        return false;
    }
    for (int64_t j = 0; j < c->D; j++)
        if (c->first[j] < 0 || c->count[j] < 0 || (int64_t)c->first[j] + c->count[j] > logits->dim[1]) {
            acf_reject(t, op, "column %lld: %d classes from logit %d on; there are %lld logits", (long long)j,
                       (int)c->count[j], (int)c->first[j], (long long)logits->dim[1]);
            return false;
        }
    return true;
}

/* The node of any of them, checked, with the classes on the tape; NULL after a failure. */
static acf_node *checked(acf_tape *t, const acf_op *op, acf_tensor *logits, const acf_classes *c, const acf_draw *d) {
    char shape[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, op, sizeof(acf_categorical_attrs), 1, &logits);
    if (!n) return NULL;
    acf_categorical_attrs *a = n->attr;
    a->draw = *d;
    if (logits->ndim != 2) {
        acf_reject(t, op, "logits are %s; expected (T, W)", acf_tensor_shape(logits, shape));
        return NULL;
    }
    if (!acf_cells_resolve(&a->draw.at, logits)) {
        acf_reject(t, op, ACF_NO_CELLS);
        return NULL;
    }
    if (!classes_fit(t, op, logits, c)) return NULL;
    if (c->there)
        a->classes = (acf_classes){c->D, c->there, c->there + c->D, c->there};
    else
        a->classes = (acf_classes){c->D, keep_ints(t, c->first, c->D, ACF_TO_DEVICE),
                                   keep_ints(t, c->count, c->D, ACF_TO_DEVICE)};
    return n;
}

acf_tensor *acf_categorical_logp(acf_tape *t, acf_tensor *logits, const int32_t *codes, const acf_classes *classes,
                                 const acf_subset *u) {
    if (logits != &t->empty && logits->sub != u)
        return acf_reject(t, &acf_op_categorical_logp, "the logits are not packed over this subset");
    acf_node *n = checked(t, &acf_op_categorical_logp, logits, classes, &(acf_draw){0});
    if (!n) return &t->empty;
    ((acf_categorical_attrs *)n->attr)->given = codes;
    n->out[0] = acf_tensor_packed(t, u, 0);
    return acf_node_run(t, n);
}

/* The result is integers, so the node has no output tensor and allocates the result itself. */
static const int32_t *run_for_codes(acf_tape *t, acf_node *n, int64_t T) {
    if (!n) return NULL;
    acf_categorical_attrs *a = n->attr;
    a->found = acf_tape_ints(t, T);
    acf_node_run(t, n);
    return t->failure.status ? NULL : a->found;
}

const int32_t *acf_categorical_argmax(acf_tape *t, acf_tensor *logits, const acf_classes *classes, acf_cells at) {
    acf_node *n = checked(t, &acf_op_categorical_argmax, logits, classes, &(acf_draw){.at = at});
    return run_for_codes(t, n, logits->dim[0]);
}

const int32_t *acf_categorical_sample(acf_tape *t, acf_tensor *logits, const acf_classes *classes, const acf_draw *d) {
    acf_node *n = checked(t, &acf_op_categorical_sample, logits, classes, d);
    return run_for_codes(t, n, logits->dim[0]);
}
