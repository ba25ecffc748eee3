/* The bench itself: inputs that survive runs, masks, results. The jobs are in jobs.c. See lab.h. */
#include "harness/lab.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool acf_lab_ran[ACF_OP_COUNT], acf_lab_checked[ACF_OP_COUNT];

double acf_lab_random(uint64_t seed, int64_t i, double lo, double hi) {
    double u = acf_rng_uniform((acf_place){.seed = seed, .row = (uint64_t)i, .stream = ACF_STREAM_TEST});
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
    memset(l, 0, sizeof *l);
    l->N = N, l->D = D, l->seed = seed;
    assert_int_equal(acf_device_open_cpu(threads, &l->dev), ACF_OK);
    assert_int_equal(acf_tape_create(l->dev, NULL, &l->t), ACF_OK);
    l->b = calloc((size_t)(N * D + 1), 1);
    l->m = calloc((size_t)(N * D + 1), 1);
    assert_true(l->b && l->m);
    draw_masks(l, mask);
    acf_lab_begin(l, false);
}

/* A mask in device memory; NULL, and a failed tape, when there is none. */
static uint8_t *to_device(acf_lab *l, const uint8_t *mask) {
    const size_t bytes = (size_t)(l->N * l->D);
    uint8_t *p = acf_arena_alloc(l->t->mem, bytes);
    if (!p || acf_device_copy(l->dev, p, mask, bytes, ACF_TO_DEVICE)) acf_tape_fail(l->t, NULL);
    return p;
}

void acf_lab_begin(acf_lab *l, bool record) {
    acf_tape_begin(l->t, record);
    l->leaf_at = l->n_results = 0;
    l->u = acf_tape_subset(l->t, to_device(l, l->b), to_device(l, l->m), l->N, l->D);
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
    acf_device_close(l->dev);
    memset(l, 0, sizeof *l);
}

/* The next leaf of this run; on the first run it is made. Its values depend on (seed, place) only. */
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
        double keep_off = lo < 0 && hi > 0 ? (hi - lo) / 20 : 0;
        for (int64_t i = 0; i < count; i++) {
            double x = acf_lab_random(l->seed + 1000 + (uint64_t)l->leaf_at, i, lo, hi);
            if (fabs(x) < keep_off) x = x < 0 ? x - keep_off : x + keep_off;
            f->value[i] = (acf_real)x;
        }
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
