/* The jobs of the harness for a case: values, gradients, threads, steady, faults, nonfinite. See lab.h. */
#include "harness/lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const acf_size common_sizes[] = {
    {0, 4, ACF_MASK_RANDOM}, {1, 1, ACF_MASK_ALL},    {1, 5, ACF_MASK_NONE},   {3, 4, ACF_MASK_ONE},
    {4, 3, ACF_MASK_ALL},    {5, 7, ACF_MASK_RANDOM}, {9, 2, ACF_MASK_RANDOM}, {-1, 0, ACF_MASK_RANDOM},
};

/* ---- running a case -------------------------------------------------------------------------------------------- */

/* loss = sum of w_i y_i over all results, with fixed random weights. It is an operation of the harness itself,
 * independent of those under test. */
typedef struct weigh_attr {
    const acf_lab *l;
} weigh_attr;

static const acf_lab *lab_of(const acf_node *n) { return ((const weigh_attr *)n->attr)->l; }

static double weight_of(const acf_node *n, int k, int64_t i) {
    return acf_lab_random(lab_of(n)->seed + 77 + (uint64_t)k, i, 0.3, 1.7) * (i % 3 == 1 ? -1 : 1);
}

/* Numbers of the device to read and change: the CPU's own, or a copy that must be handed back. */
static acf_real *borrow(acf_device *dev, acf_real *x, int64_t n) { return dev->plugin ? acf_lab_fetch(dev, x, n) : x; }

static void hand_back(acf_device *dev, acf_real *x, acf_real *copy, int64_t n) {
    if (!dev->plugin) return;
    assert_int_equal(acf_device_copy(dev, x, copy, (size_t)n * sizeof *x, ACF_TO_DEVICE), ACF_OK);
    assert_int_equal(acf_device_sync(dev), ACF_OK);
    free(copy);
}

static acf_status weigh_forward(acf_tape *t, acf_node *n) {
    double sum = 0;
    for (int k = 0; k < n->n_in; k++) {
        int64_t count, all = acf_tensor_count(n->in[k]), *map = acf_lab_map(lab_of(n), n->in[k], &count);
        acf_real *x = borrow(t->dev, n->in[k]->data, all);
        for (int64_t i = 0; i < count; i++) sum += weight_of(n, k, i) * (double)x[map ? map[i] : i];
        if (t->dev->plugin) free(x);
        free(map);
    }
    return acf_device_fill(t->dev, n->out[0]->data, (acf_real)sum, 1);
}

static acf_status weigh_backward(acf_tape *t, acf_node *n) {
    acf_real *seed = borrow(t->dev, n->out[0]->grad, 1), one = seed[0];
    if (t->dev->plugin) free(seed);
    for (int k = 0; k < n->n_in; k++) {
        acf_real *grad = acf_grad(t, n->in[k]);
        if (!grad) continue;
        int64_t count, all = acf_tensor_count(n->in[k]), *map = acf_lab_map(lab_of(n), n->in[k], &count);
        acf_real *g = borrow(t->dev, grad, all);
        for (int64_t i = 0; i < count; i++) g[map ? map[i] : i] += one * (acf_real)weight_of(n, k, i);
        hand_back(t->dev, grad, g, all);
        free(map);
    }
    return acf_tape_status(t);
}

static const acf_op weigh = {"harness", -1, {weigh_forward, weigh_backward}};

static acf_tensor *weighed(acf_lab *l) {
    acf_node *n = acf_node_new(l->t, &weigh, sizeof(weigh_attr), l->n_results, l->result);
    if (!n) return &l->t->empty;
    ((weigh_attr *)n->attr)->l = l;
    n->out[0] = acf_tensor_new(l->t, 0, NULL);
    return acf_node_run(l->t, n);
}

static void note_ops(acf_lab *l, bool *seen) {
    for (acf_node *n = l->t->last; n; n = n->before)
        if (n->op->id >= 0) seen[n->op->id] = true;
}

/* A gradient that another operation might already have added to a leaf. */
static double preset_of(int64_t i) { return 3 + (double)(i % 7); }

static void preset_gradients(acf_lab *l) {
    for (int k = 0; k < l->leaf_at; k++) {
        acf_real *grad = l->leaf[k].is_int ? NULL : acf_grad(l->t, l->leaf_tensor[k]);
        if (!grad) continue;
        acf_real *g = borrow(l->dev, grad, l->leaf[k].count);
        for (int64_t i = 0; i < l->leaf[k].count; i++) g[i] = (acf_real)preset_of(i);
        hand_back(l->dev, grad, g, l->leaf[k].count);
    }
}

/* One step: build, loss, and with record also backward; leaf gradients are copied out. */
static acf_status run(acf_lab *l, bool record, double *loss) {
    acf_lab_begin(l, record);
    l->c->build(l);
    acf_tensor *sum = weighed(l);
    ACF_TRY(acf_tape_status(l->t));
    note_ops(l, acf_lab_ran);
    if (loss) *loss = (double)sum->data[0]; /* asked for on the CPU only */
    if (!record) return ACF_OK;
    if (l->preset) preset_gradients(l);
    ACF_TRY(acf_tape_backward(l->t, sum));
    for (int k = 0; k < l->leaf_at; k++) {
        acf_lab_leaf *f = &l->leaf[k];
        if (f->is_int) continue;
        size_t bytes = (size_t)f->count * sizeof(acf_real);
        if (!l->leaf_tensor[k]->grad)
            memset(f->grad, 0, bytes);
        else
            ACF_TRY(acf_device_copy(l->dev, f->grad, l->leaf_tensor[k]->grad, bytes, ACF_TO_HOST));
    }
    return acf_device_sync(l->dev);
}

static void must_run(acf_lab *l, bool record, double *loss) {
    if (run(l, record, loss)) fail_msg("%s (N %d, D %d): %s", l->c->name, (int)l->N, (int)l->D, acf_error());
}

static void open_case(acf_lab *l, const acf_case *c, int threads, acf_size s) {
    acf_lab_open(l, threads, s.N, s.D, s.mask, 4711 + (uint64_t)(s.N * 31 + s.D));
    l->c = c;
}

static void open_case_on(acf_lab *l, const acf_case *c, acf_device *dev, acf_size s) {
    acf_lab_open_on(l, dev, s.N, s.D, s.mask, 4711 + (uint64_t)(s.N * 31 + s.D));
    l->c = c;
}

static const acf_size *sizes_of(const acf_case *c) { return c->sizes ? c->sizes : common_sizes; }

/* ---- the jobs -------------------------------------------------------------------------------------------------- */

static void compare_with_naive(acf_lab *l) {
    double *expected[ACF_LAB_RESULTS] = {0};
    double tol = sizeof(acf_real) == 8 ? 1e-9 : l->c->tol > 0 ? l->c->tol : 2e-5;
    for (int k = 0; k < l->n_results; k++) {
        expected[k] = calloc((size_t)acf_tensor_count(l->result[k]) + 1, sizeof(double));
        assert_non_null(expected[k]);
    }
    l->c->naive(l, expected);
    for (int k = 0; k < l->n_results; k++) {
        char what[160];
        for (int64_t i = 0; i < acf_tensor_count(l->result[k]); i++) {
            snprintf(what, sizeof what, "%s (N %d, D %d): result %d, element %d", l->c->name, (int)l->N, (int)l->D, k,
                     (int)i);
            acf_assert_close((double)l->result[k]->data[i], expected[k][i], tol, what);
        }
        free(expected[k]);
    }
}

static void job_values(const acf_case *c) {
    for (const acf_size *s = sizes_of(c); s->N >= 0; s++) {
        acf_lab l;
        open_case(&l, c, 2, *s);
        must_run(&l, false, NULL);
        for (int k = 0; k < l.n_results; k++)
            for (int64_t i = 0; i < acf_tensor_count(l.result[k]); i++)
                if (!isfinite(l.result[k]->data[i]))
                    fail_msg("%s (N %d, D %d): result %d, element %d is %g: not written?", c->name, (int)l.N, (int)l.D,
                             k, (int)i, (double)l.result[k]->data[i]);
        if (c->naive) compare_with_naive(&l);
        acf_lab_close(&l);
    }
}

/* Fourth-order central difference of the loss in one input element. */
static double difference(acf_lab *l, acf_real *x) {
    const double h = 1e-3 * fmax(0.3, fabs((double)*x));
    const double step[4] = {-2, -1, 1, 2};
    acf_real old = *x;
    double loss[4];
    for (int k = 0; k < 4; k++) {
        *x = old + (acf_real)(step[k] * h);
        must_run(l, false, &loss[k]);
    }
    *x = old;
    /* Differences first: a loss that does not change must give exactly zero. */
    return (8 * (loss[2] - loss[1]) - (loss[3] - loss[0])) / (12 * h);
}

static void check_leaf(acf_lab *l, acf_lab_leaf *f) {
    const int64_t most = 160; /* all of a small input, an even sample of a large one */
    double largest = 0;
    for (int64_t i = 0; i < f->count; i++) largest = fmax(largest, fabs((double)f->grad[i]));
    int64_t stride = f->count > most ? f->count / most : 1;
    for (int64_t i = 0; i < f->count; i += stride) {
        double exact = (double)f->grad[i], numeric = difference(l, &f->value[i]);
        double scale = fmax(fmax(fabs(exact), fabs(numeric)), fmax(1e-3 * largest, 1e-6));
        if (!(fabs(exact - numeric) <= 1e-6 * scale))
            fail_msg("%s (N %d, D %d): d loss / d %s[%d] is %.12g, finite differences say %.12g (relative error %.2g)",
                     l->c->name, (int)l->N, (int)l->D, f->name, (int)i, exact, numeric, fabs(exact - numeric) / scale);
    }
}

/* A backward adds: the same step on gradients that are not zero gives these plus the earlier result. */
static void check_accumulates(acf_lab *l) {
    acf_real *first[ACF_LAB_LEAVES] = {0};
    for (int k = 0; k < l->n_leaves; k++) {
        if (l->leaf[k].fixed) continue;
        size_t bytes = (size_t)(l->leaf[k].count + 1) * sizeof(acf_real);
        first[k] = malloc(bytes);
        assert_non_null(first[k]);
        memcpy(first[k], l->leaf[k].grad, bytes);
    }
    l->preset = true;
    must_run(l, true, NULL);
    l->preset = false;
    for (int k = 0; k < l->n_leaves; k++) {
        const acf_lab_leaf *f = &l->leaf[k];
        char what[160];
        for (int64_t i = 0; first[k] && i < f->count; i++) {
            snprintf(what, sizeof what, "%s (N %d, D %d): d loss / d %s[%d], added to what was there", l->c->name,
                     (int)l->N, (int)l->D, f->name, (int)i);
            acf_assert_close((double)f->grad[i], (double)first[k][i] + preset_of(i), 1e-9, what);
        }
        free(first[k]);
    }
}

static void job_gradients(const acf_case *c) {
    if (sizeof(acf_real) != 8) acf_skip("gradient checks run in double");
    for (const acf_size *s = sizes_of(c); s->N >= 0; s++) {
        acf_lab l;
        open_case(&l, c, 1, *s);
        must_run(&l, true, NULL);
        note_ops(&l, acf_lab_checked);
        for (int k = 0; k < l.n_leaves; k++)
            if (!l.leaf[k].fixed) check_leaf(&l, &l.leaf[k]);
        must_run(&l, true, NULL);
        check_accumulates(&l);
        acf_lab_close(&l);
    }
}

/* FNV hash over all results and the gradients of all leaves of a step. */
static uint64_t digest(const acf_lab *l) {
    uint64_t h = 0xcbf29ce484222325u;
    for (int pass = 0; pass < 2; pass++) {
        int n = pass ? l->n_leaves : l->n_results;
        for (int k = 0; k < n; k++) {
            if (pass && l->leaf[k].is_int) continue;
            const unsigned char *p =
                pass ? (const unsigned char *)l->leaf[k].grad : (const unsigned char *)l->result[k]->data;
            size_t bytes = (size_t)(pass ? l->leaf[k].count : acf_tensor_count(l->result[k])) * sizeof(acf_real);
            for (size_t i = 0; i < bytes; i++) h = (h ^ p[i]) * 0x100000001b3u;
        }
    }
    return h;
}

static acf_size big_size(const acf_case *c) {
    return (acf_size){c->big_N ? c->big_N : 600, c->big_D ? c->big_D : 12, ACF_MASK_RANDOM};
}

static void job_threads(const acf_case *c) {
    uint64_t first = 0;
    for (int threads = 1; threads <= 3; threads++) {
        acf_lab l;
        open_case(&l, c, threads, big_size(c));
        l.big = true;
        must_run(&l, !c->no_grad, NULL);
        uint64_t h = digest(&l);
        if (threads == 1) first = h;
        if (h != first) fail_msg("%s: %d threads give other bits than one", c->name, threads);
        acf_lab_close(&l);
    }
}

static void job_steady(const acf_case *c) {
    acf_lab l;
    open_case(&l, c, 2, (acf_size){5, 7, ACF_MASK_RANDOM});
    must_run(&l, !c->no_grad, NULL);
    int64_t before = acf_alloc_count();
    for (int step = 0; step < 3; step++) must_run(&l, !c->no_grad, NULL);
    if (acf_alloc_count() != before)
        fail_msg("%s: %d allocations after the first step", c->name, (int)(acf_alloc_count() - before));
    acf_lab_close(&l);
}

static void job_faults(const acf_case *c) {
    int64_t live = acf_alloc_live();
    int n = 0;
    for (bool done = false; !done;) {
        acf_lab l;
        open_case(&l, c, 1, (acf_size){5, 7, ACF_MASK_RANDOM});
        must_run(&l, !c->no_grad, NULL); /* the leaves exist now; a fresh tape must allocate all its memory again */
        acf_tape_free(l.t);
        l.t = NULL;
        acf_alloc_fail_at(++n);
        acf_status status = acf_tape_create(l.dev, NULL, &l.t);
        if (!status) status = run(&l, !c->no_grad, NULL);
        acf_alloc_fail_at(0);
        if (status && status != ACF_EMEMORY)
            fail_msg("%s: allocation %d failed, and the step said %s: %s", c->name, n, acf_status_name(status),
                     acf_error());
        done = status == ACF_OK;
        if (l.t) must_run(&l, !c->no_grad, NULL); /* the tape is still usable */
        acf_lab_close(&l);
        assert_int_equal(acf_alloc_live(), live);
        assert_true(n < 200);
    }
    assert_true(n > 2); /* or nothing was made to fail */
}

/* Does the sentence begin with an operation's name? */
static bool names_operation(const char *sentence) {
    size_t n = strcspn(sentence, ":");
    for (int i = 0; i < ACF_OP_COUNT; i++)
        if (strlen(acf_ops[i]->name) == n && strncmp(sentence, acf_ops[i]->name, n) == 0) return true;
    return strncmp(sentence, weigh.name, n) == 0;
}

static void try_nonfinite(acf_lab *l, acf_lab_leaf *f, double bad) {
    int64_t at = f->count / 2;
    acf_real old = f->value[at];
    f->value[at] = (acf_real)bad;
    acf_status status = run(l, !l->c->no_grad, NULL);
    if (status == ACF_OK && l->c->no_grad)
        for (int k = 0; k < l->n_results && !status; k++) status = acf_tape_check(l->t, l->result[k]);
    bool refused = status && status != ACF_ENUMERIC && l->c->may_fail_nonfinite;
    if (status && status != ACF_ENUMERIC && !refused)
        fail_msg("%s: %g in %s gives %s: %s", l->c->name, bad, f->name, acf_status_name(status), acf_error());
    if (status && !(names_operation(acf_error()) && strstr(acf_error(), "row ") && strstr(acf_error(), "column ")))
        fail_msg("%s: %g in %s: the sentence names no operation, row and column: %s", l->c->name, bad, f->name,
                 acf_error());
    if (!status && isnan(bad) && !l->c->hides_nonfinite)
        fail_msg("%s: a NaN in %s[%d] went unnoticed", l->c->name, f->name, (int)at);
    f->value[at] = old;
    must_run(l, !l->c->no_grad, NULL); /* and the next step is clean */
}

static void job_nonfinite(const acf_case *c) {
    acf_lab l;
    open_case(&l, c, 2, (acf_size){5, 7, ACF_MASK_RANDOM});
    must_run(&l, !c->no_grad, NULL);
    for (int k = 0; k < l.n_leaves; k++) {
        if (l.leaf[k].is_int || l.leaf[k].count == 0) continue;
        try_nonfinite(&l, &l.leaf[k], (double)NAN);
        try_nonfinite(&l, &l.leaf[k], (double)INFINITY);
        try_nonfinite(&l, &l.leaf[k], -(double)INFINITY);
    }
    acf_lab_close(&l);
}

/* ---- another device -------------------------------------------------------------------------------------------- */

/* The bound of rounding errors. A number with this many bits has a relative error of at most u = 2^-bits. n roundings
 * in sequence exceed λ sqrt(n) u with a probability that goes to 0 as exp(-λ²/2) (Higham and Mary's analysis). LAMBDA
 * also covers what operations do with the error: sums of products that are smaller than their terms, slopes of
 * activations above 1. */
#define LAMBDA 13
static double rounding(acf_precision p, double n) {
    static const int bits[] = {[ACF_PRECISION_FLOAT] = 24, [ACF_PRECISION_TF32] = 11, [ACF_PRECISION_BF16] = 8};
    return LAMBDA * sqrt(fmax(n, 1)) * ldexp(1, -bits[p]);
}

/* The error of products in the device's precision, which dominates the tolerance of a case. Their factors are rounded
 * once, and in a recurrence again by each product of at most D steps. Float has the tolerance of the case. */
static double precision_tolerance(const acf_lab *l) {
    const acf_precision p = l->dev->precision;
    return p == ACF_PRECISION_FLOAT ? 0 : rounding(p, l->c->recurrent ? (double)(l->c->recurrent * l->D) : 1);
}

/* The error allowed in float as a part of the largest gradient: a recurrence adds up T terms, each of which has come
 * through the steps, in another order than on the CPU. Other operations have the bound that they reach. */
static double gradient_floor(const acf_lab *l) {
    return l->c->recurrent ? rounding(ACF_PRECISION_FLOAT, (double)l->host->T) : 0;
}

/* Results on the device against the naive reference, if there is one and the size allows it, otherwise against the
 * CPU's. */
static void compare_results(const acf_lab *cpu, const acf_lab *dev) {
    const acf_case *c = cpu->c;
    const double tol = fmax(2 * (c->tol > 0 ? c->tol : 2e-5), precision_tolerance(dev));
    double *expected[ACF_LAB_RESULTS] = {0};
    assert_int_equal(cpu->n_results, dev->n_results);
    for (int k = 0; k < cpu->n_results; k++) {
        const int64_t n = acf_tensor_count(cpu->result[k]);
        expected[k] = calloc((size_t)n + 1, sizeof(double));
        assert_non_null(expected[k]);
        for (int64_t i = 0; (!c->naive || cpu->big) && i < n; i++) expected[k][i] = (double)cpu->result[k]->data[i];
    }
    if (c->naive && !cpu->big) c->naive(cpu, expected);
    for (int k = 0; k < cpu->n_results; k++) {
        const acf_tensor *x = dev->result[k];
        int64_t count, all = acf_tensor_count(x), *map = acf_lab_map(dev, x, &count);
        acf_real *found = acf_lab_fetch(dev->dev, x->data, all);
        char what[200];
        assert_int_equal(count, acf_tensor_count(cpu->result[k]));
        for (int64_t i = 0; i < count; i++) {
            snprintf(what, sizeof what, "%s (N %d, D %d): result %d, element %d", c->name, (int)dev->N, (int)dev->D, k,
                     (int)i);
            acf_assert_close((double)found[map ? map[i] : i], expected[k][i], tol, what);
        }
        for (int64_t i = 0; x->sub && i < all; i++)
            if (!isfinite(found[i]))
                fail_msg("%s (N %d, D %d): result %d, element %d, behind the last of %d, is %g", c->name, (int)dev->N,
                         (int)dev->D, k, (int)i, (int)count, (double)found[i]);
        free(found), free(map), free(expected[k]);
    }
}

/* Gradients of a leaf against the CPU's; `before` is their earlier content. Elements without a counterpart on the CPU
 * get none. */
static void compare_gradient(const acf_lab *cpu, const acf_lab *dev, int k, bool preset) {
    const acf_lab_leaf *f = &cpu->leaf[k], *g = &dev->leaf[k];
    const double tol = fmax(2e-4, 2 * precision_tolerance(dev));
    /* Rounded factors give an error of the same size for small and large sums, so the bound is a part of the largest
     * element. */
    const double part = fmax(precision_tolerance(dev) > 0 ? 0.25 : 0.05, gradient_floor(cpu) / tol);
    double largest = 0;
    bool *seen = calloc((size_t)g->count + 1, sizeof *seen);
    assert_non_null(seen);
    for (int64_t i = 0; i < f->count; i++) largest = fmax(largest, fabs((double)f->grad[i]));
    for (int64_t i = 0, row = 0; i < f->count; i++) {
        while (f->is_square && i >= cpu->host->square[row + 1]) row++;
        const int64_t at = f->is_square ? acf_lab_square(dev, row) + i - cpu->host->square[row] : i;
        const double expected = (double)f->grad[i], found = (double)g->grad[at] - (preset ? preset_of(at) : 0);
        seen[at] = true;
        if (!(fabs(found - expected) <= tol * fmax(fabs(expected), part * largest) + (preset ? 1e-5 : 1e-6)))
            fail_msg("%s (N %d, D %d): d loss / d %s[%d] is %.9g, on the CPU %.9g (largest %.3g)%s", dev->c->name,
                     (int)dev->N, (int)dev->D, f->name, (int)i, found, expected, largest,
                     preset ? ", added to what was there" : "");
    }
    for (int64_t i = 0; i < g->count; i++)
        if (!seen[i] && (double)g->grad[i] != (preset ? preset_of(i) : 0))
            fail_msg("%s (N %d, D %d): d loss / d %s[%d] is %g, but that place is behind the last of %d", dev->c->name,
                     (int)dev->N, (int)dev->D, f->name, (int)i, (double)g->grad[i], (int)f->count);
    free(seen);
}

static void try_on_device(const acf_case *c, acf_size s, bool big) {
    acf_lab cpu, dev;
    open_case(&cpu, c, 2, s);
    open_case_on(&dev, c, acf_test_device(), s);
    cpu.big = dev.big = big;
    must_run(&cpu, !c->no_grad, NULL);
    must_run(&dev, !c->no_grad, NULL);
    compare_results(&cpu, &dev);
    for (int pass = 0; pass < 2 && !c->no_grad; pass++) {
        dev.preset = pass == 1;
        if (pass) must_run(&dev, true, NULL);
        for (int k = 0; k < cpu.n_leaves; k++)
            if (!cpu.leaf[k].fixed) compare_gradient(&cpu, &dev, k, dev.preset);
    }
    acf_lab_close(&dev);
    acf_lab_close(&cpu);
}

static void job_device(const acf_case *c) {
    if (c->no_device) acf_skip(c->no_device);
    for (const acf_size *s = sizes_of(c); s->N >= 0; s++) try_on_device(c, *s, false);
    if (!acf_test_small()) try_on_device(c, big_size(c), true);
}

/* ---- registration ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(const acf_case *c);
    bool needs_gradient;
} jobs[] = {
    {"values", job_values, false}, {"gradients", job_gradients, true}, {"threads", job_threads, false},
    {"steady", job_steady, false}, {"faults", job_faults, false},      {"nonfinite", job_nonfinite, false},
    {"device", job_device, false},
};
enum { DEVICE_JOB = sizeof jobs / sizeof jobs[0] - 1 };

typedef struct task {
    const acf_case *c;
    size_t job;
} task;

static void run_task(void **state) {
    const task *k = *state;
    jobs[k->job].run(k->c);
}

/* Names and tasks live as long as the program; the list keeps them reachable for the leak checker. */
typedef struct kept {
    struct kept *next;
} kept;

static void *forever(size_t bytes) {
    static kept *all;
    kept *k = malloc(sizeof *k + bytes);
    if (!k) abort();
    k->next = all;
    all = k;
    return k + 1;
}

void acf_cases_add(const char *suite, const acf_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sizeof jobs / sizeof jobs[0]; j++) {
            if (jobs[j].needs_gradient && (cases[i].no_grad || sizeof(acf_real) != 8)) continue;
            task *k = forever(sizeof *k);
            *k = (task){&cases[i], j};
            size_t len = strlen(suite) + strlen(cases[i].name) + strlen(jobs[j].name) + 5;
            char *name = forever(len);
            snprintf(name, len, "%s: %s: %s", suite, cases[i].name, jobs[j].name);
            const struct CMUnitTest test = {name, run_task, NULL, NULL, k};
            if (j == DEVICE_JOB)
                acf_device_suite_add(suite, &test, 1);
            else
                acf_suite_add(suite, &test, 1);
        }
}
