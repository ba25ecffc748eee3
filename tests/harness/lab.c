/* The lab: inputs that survive runs, masks, results. The jobs are in jobs.c. See lab.h. */
#include "harness/lab.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool acf_lab_ran[ACF_OP_COUNT], acf_lab_checked[ACF_OP_COUNT];

double acf_lab_random(uint64_t seed, int64_t i, double lo, double hi) {
    double u = acf_rng_uniform((acf_rng_counter){.seed = seed, .row = (uint64_t)i, .stream = ACF_STREAM_TEST});
    return lo + (hi - lo) * u;
}

void acf_assert_close(double a, double b, double tol, const char *what) {
    if (fabs(a - b) <= tol * (1 + fabs(b))) return;
    fail_msg("%s: %.12g, expected %.12g (difference %.3g, allowed %.3g)", what, a, b, a - b, tol * (1 + fabs(b)));
}

/* Whether cell (i,j) is observed and present, for each kind of mask. */
static void draw_masks(acf_lab *l, acf_lab_mask kind) {
    for (int64_t i = 0; i < l->N; i++)
        for (int64_t j = 0; j < l->D; j++) {
            int64_t at = i * l->D + j;
            l->m[at] = kind != ACF_MASK_RANDOM || acf_lab_random(l->seed ^ 0x6d, at, 0, 1) < 0.85;
            l->b[at] = kind == ACF_MASK_NONE || (kind == ACF_MASK_ONE && j != (i * 7 + 3) % l->D) ||
                       (kind == ACF_MASK_RANDOM && acf_lab_random(l->seed ^ 0x62, at, 0, 1) < 0.5);
            if (!l->m[at]) l->b[at] = 0;
        }
}

void acf_lab_open(acf_lab *l, int threads, int64_t N, int64_t D, acf_lab_mask mask, uint64_t seed) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    acf_lab_open_on(l, dev, N, D, mask, seed);
}

void acf_lab_open_on(acf_lab *l, acf_device *dev, int64_t N, int64_t D, acf_lab_mask mask, uint64_t seed) {
    memset(l, 0, sizeof *l);
    l->N = N, l->D = D, l->seed = seed, l->dev = dev;
    if (acf_tape_create(l->dev, NULL, &l->t)) fail_msg("%s", acf_error());
    if (dev->plugin) assert_int_equal(acf_arena_create(NULL, 0, &l->mem), ACF_OK);
    l->b = calloc((size_t)(N * D + 1), 1);
    l->m = calloc((size_t)(N * D + 1), 1);
    assert_true(l->b && l->m);
    draw_masks(l, mask);
    acf_lab_begin(l, false);
}

void *acf_lab_copy(acf_lab *l, const void *data, size_t bytes) {
    if (l->t->failure.status) return NULL;
    void *p = acf_arena_alloc(l->t->mem, bytes);
    if (p && acf_device_copy(l->dev, p, data, bytes, ACF_TO_DEVICE) == ACF_OK) return p;
    acf_tape_fail(l->t, NULL);
    return NULL;
}

int32_t *acf_lab_ints(int64_t n) {
    int32_t *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    memset(x, 0xFF, (size_t)(n + 1) * sizeof *x);
    return x;
}

const int32_t *acf_lab_give_ints(acf_lab *l, int32_t *x, int64_t n) {
    const int32_t *there = acf_lab_copy(l, x, (size_t)n * sizeof *x);
    free(x);
    return there;
}

int64_t *acf_lab_map(const acf_lab *l, const acf_tensor *x, int64_t *count) {
    *count = acf_tensor_count(x);
    if (l->host == l->u || (!x->sub && !x->square)) return NULL;
    const acf_subset *u = l->host;
    if (x->sub) {
        int32_t T = 0; /* of a half, perhaps: asked where it is */
        assert_int_equal(acf_device_copy(l->dev, &T, x->sub->first + x->sub->D, sizeof T, ACF_TO_HOST), ACF_OK);
        assert_int_equal(acf_device_sync(l->dev), ACF_OK);
        *count = T * acf_tensor_width(x);
        return NULL;
    }
    int64_t *map = malloc((size_t)(u->S + 1) * sizeof *map);
    assert_non_null(map);
    for (int64_t i = 0; i < u->N; i++)
        for (int64_t k = u->square[i]; k < u->square[i + 1]; k++) map[k] = acf_lab_square(l, i) + k - u->square[i];
    *count = u->S;
    return map;
}

acf_real *acf_lab_fetch(acf_device *dev, const acf_real *x, int64_t n) {
    acf_real *host = calloc((size_t)n + 1, sizeof *host);
    assert_non_null(host);
    if (acf_device_copy(dev, host, x, (size_t)n * sizeof *host, ACF_TO_HOST) || acf_device_sync(dev))
        fail_msg("%s", acf_error());
    return host;
}

void acf_lab_begin(acf_lab *l, bool record) {
    acf_tape_begin(l->t, record);
    l->leaf_at = l->n_results = 0;
    const size_t cells = (size_t)(l->N * l->D);
    l->host = l->u = acf_tape_subset(l->t, acf_lab_copy(l, l->b, cells), acf_lab_copy(l, l->m, cells), l->N, l->D);
    if (!l->mem) return;
    acf_arena_reset(l->mem);
    assert_int_equal(acf_subset_build(l->mem, l->b, l->m, l->N, l->D, &l->host), ACF_OK);
}

void acf_lab_close(acf_lab *l) {
    for (int i = 0; i < l->n_leaves; i++) {
        free(l->leaf[i].value);
        free(l->leaf[i].grad);
        free(l->leaf[i].ints);
    }
    free(l->b);
    free(l->m);
    acf_tape_free(l->t);
    acf_arena_free(l->mem);
    if (l->dev != acf_test_device()) acf_device_close(l->dev);
    memset(l, 0, sizeof *l);
}

/* The next leaf of this run, made in the first run. Its values depend on (seed, position) only. */
static acf_lab_leaf *next_leaf(acf_lab *l, const char *name, int64_t count) {
    int at = l->leaf_at++;
    assert_true(at < ACF_LAB_LEAVES);
    acf_lab_leaf *f = &l->leaf[at];
    if (at < l->n_leaves) {
        assert_string_equal(f->name, name);
        assert_int_equal(f->count, count);
        return f;
    }
    l->n_leaves++;
    *f = (acf_lab_leaf){.name = name, .count = count};
    return f;
}

/* Value i of a leaf: depends on (seed, leaf, i) only. */
static acf_real value_of(const acf_lab *l, int64_t i, double lo, double hi) {
    double keep_off = lo < 0 && hi > 0 ? (hi - lo) / 20 : 0,
           x = acf_lab_random(l->seed + 1000 + (uint64_t)l->leaf_at, i, lo, hi);
    if (fabs(x) < keep_off) x = x < 0 ? x - keep_off : x + keep_off;
    return (acf_real)x;
}

/* A leaf of lists of matrices is the same list regardless of where its rows begin. */
static void fill_square(const acf_lab *l, acf_lab_leaf *f, double lo, double hi, double diagonal) {
    const acf_subset *u = l->host;
    f->is_square = true;
    for (int64_t i = 0; i < u->N; i++)
        for (int64_t k = 0, n = u->size[i]; k < n * n; k++)
            f->value[acf_lab_square(l, i) + k] =
                value_of(l, u->square[i] + k, lo, hi) + (acf_real)(k % (n + 1) ? 0 : diagonal);
}

static acf_tensor *leaf(acf_lab *l, const char *name, double lo, double hi, int ndim, const int64_t *dim, bool fixed) {
    int64_t count = 1;
    for (int i = 0; i < ndim; i++) count *= dim[i];
    if (l->t->failure.status) return &l->t->empty;
    bool fresh = l->leaf_at == l->n_leaves;
    acf_lab_leaf *f = next_leaf(l, name, count);
    if (fresh) {
        f->fixed = fixed;
        f->value = calloc((size_t)count + 1, sizeof(acf_real));
        f->grad = calloc((size_t)count + 1, sizeof(acf_real));
        assert_true(f->value && f->grad);
        for (int64_t i = 0; i < count; i++) f->value[i] = value_of(l, i, lo, hi);
    }
    acf_tensor *x = acf_tensor_input(l->t, f->value, ndim, dim);
    if (x != &l->t->empty) x->needs_grad = l->t->record && !fixed;
    l->leaf_tensor[l->leaf_at - 1] = x;
    return x;
}

acf_tensor *acf_leaf(acf_lab *l, const char *name, double lo, double hi, int ndim, const int64_t *dim) {
    return leaf(l, name, lo, hi, ndim, dim, false);
}

acf_tensor *acf_leaf_fixed(acf_lab *l, const char *name, double lo, double hi, int ndim, const int64_t *dim) {
    return leaf(l, name, lo, hi, ndim, dim, true);
}

acf_tensor *acf_leaf_packed(acf_lab *l, const char *name, double lo, double hi, int64_t C) {
    if (l->t->failure.status) return &l->t->empty;
    acf_tensor *x = leaf(l, name, lo, hi, C ? 2 : 1, (int64_t[]){l->u->T, C}, false);
    if (x != &l->t->empty) x->sub = l->u;
    return x;
}

int64_t acf_lab_square(const acf_lab *l, int64_t i) { return l->host == l->u ? l->u->square[i] : i * l->D * l->D; }

acf_tensor *acf_leaf_square(acf_lab *l, const char *name, double lo, double hi, double diagonal) {
    if (l->t->failure.status) return &l->t->empty;
    const bool fresh = l->leaf_at == l->n_leaves;
    acf_tensor *m = leaf(l, name, lo, hi, 1, &l->u->S, false);
    if (fresh) {
        acf_lab_leaf *f = &l->leaf[l->leaf_at - 1];
        memset(f->value, 0, (size_t)f->count * sizeof *f->value);
        fill_square(l, f, lo, hi, diagonal);
        if (m != &l->t->empty &&
            acf_device_copy(l->dev, m->data, f->value, (size_t)f->count * sizeof *f->value, ACF_TO_DEVICE))
            acf_tape_fail(l->t, NULL);
    }
    if (m != &l->t->empty) m->square = l->u;
    return m;
}

const int32_t *acf_leaf_ints(acf_lab *l, const char *name, int32_t lo, int32_t hi, int64_t n) {
    if (l->t->failure.status) return NULL;
    bool fresh = l->leaf_at == l->n_leaves;
    acf_lab_leaf *f = next_leaf(l, name, n);
    if (fresh) {
        f->fixed = f->is_int = true;
        f->ints = calloc((size_t)n + 1, sizeof(int32_t));
        assert_non_null(f->ints);
        for (int64_t i = 0; i < n; i++) {
            double x = acf_lab_random(l->seed + 1000 + (uint64_t)l->leaf_at, i, lo, (double)hi + 1);
            f->ints[i] = (int32_t)fmin(floor(x), hi);
        }
    }
    int32_t *on_device = acf_tape_ints(l->t, n);
    if (on_device && acf_device_copy(l->dev, on_device, f->ints, (size_t)n * sizeof(int32_t), ACF_TO_DEVICE))
        acf_tape_fail(l->t, NULL);
    return on_device;
}

void acf_result(acf_lab *l, acf_tensor *y) {
    assert_true(l->n_results < ACF_LAB_RESULTS);
    l->result[l->n_results++] = y;
}

void acf_result_ints(acf_lab *l, const int32_t *x, int64_t n, const acf_subset *u) {
    acf_real *y = calloc((size_t)n + 1, sizeof *y);
    int32_t *host = calloc((size_t)n + 1, sizeof *host);
    assert_true(y && host);
    if (x && (acf_device_copy(l->dev, host, x, (size_t)n * sizeof *host, ACF_TO_HOST) || acf_device_sync(l->dev)))
        acf_tape_fail(l->t, NULL);
    for (int64_t i = 0; i < n; i++) y[i] = (acf_real)host[i];
    acf_tensor *result = acf_tensor_input(l->t, y, 1, &n);
    if (u && result != &l->t->empty) result->sub = u;
    acf_result(l, result);
    free(y), free(host);
}
