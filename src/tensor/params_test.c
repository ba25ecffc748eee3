/* Tests of the parameter slabs: layout, initial values, names, failures. */
#include "tensor/params.h"

#include "harness/lab.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static acf_device *dev;

static int open_device(void **state) {
    (void)state;
    return acf_device_open_cpu(1, &dev) != ACF_OK;
}

static int close_device(void **state) {
    (void)state;
    acf_device_close(dev);
    return 0;
}

static acf_params *new_set(void) {
    acf_params *ps = NULL;
    assert_int_equal(acf_params_create(dev, &ps), ACF_OK);
    return ps;
}

static acf_param *add(acf_params *ps, const char *name, acf_init init, double scale, int64_t rows, int64_t cols) {
    acf_param *p = acf_param_add(ps, name, init, scale, cols ? 2 : 1, (int64_t[]){rows, cols});
    assert_non_null(p);
    return p;
}

/* ---- layout ----------------------------------------------------------------------------------------------------- */

static acf_params *mixed_set(void) {
    acf_params *ps = new_set();
    add(ps, "w1", ACF_INIT_NORMAL, 1, 3, 5);
    add(ps, "b1", ACF_INIT_NORMAL, 1, 3, 0);
    add(ps, "w2", ACF_INIT_NORMAL, 1, 7, 3)->decay = false; /* overrides the default */
    assert_non_null(acf_param_add(ps, "a", ACF_INIT_CONST, 2, 0, NULL));
    add(ps, "embed", ACF_INIT_UNIFORM, 1, 17, 4);
    return ps;
}

static void decayed_first_aligned_and_disjoint(void **state) {
    (void)state;
    acf_params *ps = mixed_set();
    assert_int_equal(acf_params_build(ps, 1, true), ACF_OK);
    int64_t elements = 0, line = (int64_t)(ACF_HOST_ALIGN / sizeof(acf_real));
    for (int i = 0; i < ps->n; i++) {
        const acf_param *p = ps->list[i];
        assert_int_equal(p->offset % line, 0);
        assert_int_equal((uintptr_t)p->t.data % ACF_HOST_ALIGN, 0);
        assert_true(p->t.data == ps->value + p->offset && p->t.grad == ps->grad + p->offset && p->t.needs_grad);
        assert_true(p->decay ? p->offset + acf_tensor_count(&p->t) <= ps->decayed : p->offset >= ps->decayed);
        elements += acf_tensor_count(&p->t);
    }
    assert_true(acf_params_find(ps, "w1")->decay && acf_params_find(ps, "embed")->decay);
    assert_true(!acf_params_find(ps, "b1")->decay && !acf_params_find(ps, "a")->decay);
    assert_int_equal(ps->total % line, 0);
    int64_t owned = 0, row, column;
    for (int64_t i = 0; i < ps->total; i++) {
        const acf_param *p = acf_params_at(ps, i, &row, &column);
        owned += p != NULL;
        if (!p) assert_true(ps->value[i] == 0 && ps->ema[i] == 0);
        assert_true(ps->grad[i] == 0 && ps->m[i] == 0 && ps->v[i] == 0 && ps->ema[i] == ps->value[i]);
    }
    assert_int_equal(owned, elements); /* nothing overlaps */
    acf_params_free(ps);
}

static void found_by_name_and_by_place(void **state) {
    (void)state;
    acf_params *ps = mixed_set();
    assert_int_equal(acf_params_build(ps, 1, true), ACF_OK);
    acf_param *w = acf_params_find(ps, "w2");
    int64_t row = -1, column = -1;
    assert_ptr_equal(acf_params_at(ps, w->offset + 3 * 4 + 2, &row, &column), w);
    assert_true(row == 4 && column == 2);
    acf_param *b = acf_params_find(ps, "b1");
    assert_ptr_equal(acf_params_at(ps, b->offset + 2, &row, &column), b);
    assert_true(row == 2 && column == 0);
    acf_param *a = acf_params_find(ps, "a");
    assert_ptr_equal(acf_params_at(ps, a->offset, &row, &column), a);
    assert_true(row == 0 && column == 0);
    assert_null(acf_params_at(ps, b->offset + 3, &row, &column)); /* a gap */
    assert_null(acf_params_at(ps, ps->total, &row, &column));
    assert_null(acf_params_find(ps, "w3"));
    assert_null(acf_p(NULL));
    assert_ptr_equal(acf_p(w), &w->t);
    acf_params_free(ps);
}

static void gradients_are_cleared(void **state) {
    (void)state;
    acf_params *ps = mixed_set();
    assert_int_equal(acf_params_build(ps, 1, true), ACF_OK);
    for (int64_t i = 0; i < ps->total; i++) ps->grad[i] = 1;
    assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
    for (int64_t i = 0; i < ps->total; i++) assert_true(ps->grad[i] == 0);
    acf_params_free(ps);
}

static void inference_has_values_only(void **state) {
    (void)state;
    acf_params *ps = mixed_set(), *trained = mixed_set();
    assert_int_equal(acf_params_build(ps, 1, false), ACF_OK);
    assert_int_equal(acf_params_build(trained, 1, true), ACF_OK);
    assert_true(ps->value && !ps->grad && !ps->m && !ps->v && !ps->ema);
    for (int i = 0; i < ps->n; i++) assert_true(!ps->list[i]->t.needs_grad && !ps->list[i]->t.grad);
    assert_memory_equal(ps->value, trained->value, (size_t)ps->total * sizeof(acf_real));
    acf_params_free(ps);
    acf_params_free(trained);
}

/* A set whose values come from a file: the layout is the same, but nothing is initialised. */
static void allocated_values_are_zero(void **state) {
    (void)state;
    acf_params *ps = mixed_set(), *built = mixed_set();
    assert_int_equal(acf_params_allocate(ps), ACF_OK);
    assert_int_equal(acf_params_build(built, 1, false), ACF_OK);
    assert_true(ps->total == built->total && ps->decayed == built->decayed && !ps->grad && !ps->ema);
    for (int64_t i = 0; i < ps->total; i++) assert_true(ps->value[i] == 0);
    for (int i = 0; i < ps->n; i++) {
        const acf_tensor *t = &ps->list[i]->t;
        assert_true(t->data == ps->value + built->list[i]->offset && !t->needs_grad && !t->grad);
    }
    acf_params_free(ps);
    acf_params_free(built);
}

/* More parameters than the initial capacity of the list; earlier pointers stay valid. */
static void the_list_grows(void **state) {
    (void)state;
    acf_params *ps = new_set();
    acf_param *first = add(ps, "p0", ACF_INIT_CONST, 0, 3, 0);
    for (int i = 1; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        add(ps, name, ACF_INIT_CONST, i, 3, 0);
    }
    assert_int_equal(acf_params_build(ps, 1, true), ACF_OK);
    assert_ptr_equal(acf_params_find(ps, "p0"), first);
    assert_true(acf_params_find(ps, "p77")->t.data[2] == 77);
    acf_params_free(ps);
    acf_params_free(NULL);
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

static void initial_values_have_their_distribution(void **state) {
    (void)state;
    acf_params *ps = new_set();
    acf_param *c = add(ps, "const", ACF_INIT_CONST, -1.5, 4, 3), *e = add(ps, "eye", ACF_INIT_IDENTITY, 2, 3, 4);
    acf_param *n = add(ps, "normal", ACF_INIT_NORMAL, 0.5, 200, 100),
              *u = add(ps, "uniform", ACF_INIT_UNIFORM, 2, 200, 100);
    assert_int_equal(acf_params_build(ps, 9, false), ACF_OK);
    for (int64_t i = 0; i < 12; i++) {
        assert_true(c->t.data[i] == ACF_R(-1.5));
        assert_true(e->t.data[i] == (i / 4 == i % 4 ? 2 : 0));
    }
    double sum = 0, squares = 0, usum = 0, usquares = 0, most = 0;
    for (int64_t i = 0; i < 20000; i++) {
        double x = (double)n->t.data[i], y = (double)u->t.data[i];
        sum += x, squares += x * x, usum += y, usquares += y * y, most = fmax(most, fabs(y));
    }
    /* Five standard errors of 20000 draws; the uniform is ±2/sqrt(100), with variance bound²/3. */
    assert_true(fabs(sum / 20000) < 5 * 0.5 / sqrt(20000.0) &&
                fabs(squares / 20000 / 0.25 - 1) < 5 * sqrt(2 / 20000.0));
    assert_true(fabs(usum / 20000) < 5 * 0.2 / sqrt(60000.0) &&
                fabs(usquares / 20000 / (0.04 / 3) - 1) < 5 / sqrt(20000.0));
    assert_true(most <= 0.2 && most > 0.199);
    acf_params_free(ps);
}

/* Every block of C rows of w (R,C) is orthonormal, times scale, including a last partial one. */
static void orthogonal_blocks(void **state) {
    (void)state;
    const int64_t size[][2] = {{1, 1}, {6, 6}, {48, 16}, {5, 9}, {25, 10}};
    for (size_t s = 0; s < sizeof size / sizeof size[0]; s++) {
        int64_t R = size[s][0], C = size[s][1];
        acf_params *ps = new_set();
        const acf_param *p = add(ps, "wh", ACF_INIT_ORTHO, 1.25, R, C);
        assert_int_equal(acf_params_build(ps, 4, false), ACF_OK);
        for (int64_t i = 0; i < R; i++)
            for (int64_t k = i / C * C; k <= i; k++) {
                double dot = 0;
                for (int64_t c = 0; c < C; c++) dot += (double)p->t.data[i * C + c] * (double)p->t.data[k * C + c];
                acf_assert_close(dot, i == k ? 1.25 * 1.25 : 0, 10 * (double)ACF_REAL_EPS,
                                 "rows of an orthogonal block");
            }
        acf_params_free(ps);
    }
}

/* A parameter's initial values depend only on its name and the seed, not on other parameters or on their order. */
static void initial_values_depend_on_seed_and_name_alone(void **state) {
    (void)state;
    acf_params *a = new_set(), *b = new_set(), *other = new_set();
    add(a, "w", ACF_INIT_NORMAL, 1, 9, 5), add(a, "o", ACF_INIT_ORTHO, 1, 6, 3);
    add(b, "before", ACF_INIT_NORMAL, 1, 9, 5), add(b, "o", ACF_INIT_ORTHO, 1, 6, 3),
        add(b, "w", ACF_INIT_NORMAL, 1, 9, 5);
    add(other, "w", ACF_INIT_NORMAL, 1, 9, 5);
    assert_int_equal(acf_params_build(a, 5, true), ACF_OK);
    assert_int_equal(acf_params_build(b, 5, false), ACF_OK);
    assert_int_equal(acf_params_build(other, 6, true), ACF_OK);
    const acf_real *w = acf_params_find(a, "w")->t.data, *o = acf_params_find(a, "o")->t.data;
    assert_memory_equal(w, acf_params_find(b, "w")->t.data, 45 * sizeof *w);
    assert_memory_equal(o, acf_params_find(b, "o")->t.data, 18 * sizeof *o);
    assert_memory_not_equal(w, acf_params_find(b, "before")->t.data, 45 * sizeof *w);
    assert_memory_not_equal(w, acf_params_find(other, "w")->t.data, 45 * sizeof *w);
    acf_params_free(a), acf_params_free(b), acf_params_free(other);
}

/* Parameters without elements: they occur in tables that have no columns of some kind. */
static void empty_parameters(void **state) {
    (void)state;
    acf_params *ps = new_set();
    const acf_init kinds[] = {ACF_INIT_CONST, ACF_INIT_IDENTITY, ACF_INIT_UNIFORM, ACF_INIT_NORMAL, ACF_INIT_ORTHO};
    for (int k = 0; k < 5; k++) {
        char name[16];
        snprintf(name, sizeof name, "wide%d", k);
        assert_non_null(acf_param_add(ps, name, kinds[k], 1, 2, (int64_t[]){0, 3}));
        snprintf(name, sizeof name, "tall%d", k);
        assert_non_null(acf_param_add(ps, name, kinds[k], 1, 2, (int64_t[]){3, 0}));
    }
    assert_int_equal(acf_params_build(ps, 1, true), ACF_OK);
    assert_int_equal(ps->total, 0);
    acf_params_free(ps);
}

/* ---- refusals and failures ------------------------------------------------------------------------------------- */

static void refuses_what_cannot_be_declared(void **state) {
    (void)state;
    acf_params *ps = new_set();
    add(ps, "w", ACF_INIT_NORMAL, 1, 2, 2);
    assert_null(acf_param_add(ps, "w", ACF_INIT_CONST, 0, 0, NULL));
    assert_int_equal(acf_error_status(), ACF_EUSAGE);
    assert_string_equal(acf_error(), "parameter 'w' is declared twice");
    assert_null(acf_param_add(ps, "v", ACF_INIT_ORTHO, 1, 1, (int64_t[]){4}));
    assert_int_equal(acf_error_status(), ACF_EUSAGE);
    assert_null(acf_param_add(ps, "huge", ACF_INIT_CONST, 1, 3, (int64_t[]){1 << 30, 1 << 30, 1 << 30}));
    assert_int_equal(acf_error_status(), ACF_EUSAGE);
    assert_string_equal(acf_error(),
                        "parameter 'huge' has the shape (1073741824, 1073741824, 1073741824); expected sizes "
                        "from 0, fewer than 2^32 elements in all");
    assert_null(acf_param_add(ps, "minus", ACF_INIT_CONST, 1, 2, (int64_t[]){3, -1}));
    assert_int_equal(ps->n, 1);
    assert_int_equal(acf_params_build(ps, 1, true), ACF_OK); /* declarations that succeeded still build */
    acf_params_free(ps);
}

/* One full use of a set; any allocation in it may be the one that fails. */
static acf_status live_once(acf_params *ps) {
    for (int i = ps->n; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        if (!acf_param_add(ps, name, ACF_INIT_NORMAL, 1, 1, (int64_t[]){8})) return acf_error_status();
    }
    return acf_params_build(ps, 7, true);
}

/* The n-th allocation fails, for every n: a clean error, no leak, and the set can be completed afterwards. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    int64_t live = acf_alloc_live();
    acf_params *ps = NULL;
    acf_alloc_fail_at(1);
    assert_int_equal(acf_params_create(dev, &ps), ACF_EMEMORY);
    acf_alloc_fail_at(0);
    assert_null(ps);
    int n = 0;
    for (bool done = false; !done;) {
        ps = new_set();
        acf_alloc_fail_at(++n);
        acf_status status = live_once(ps);
        acf_alloc_fail_at(0);
        done = status == ACF_OK;
        if (!done) {
            assert_int_equal(status, ACF_EMEMORY);
            assert_true(!ps->value && !ps->grad && !ps->m && !ps->v && !ps->ema);
            assert_int_equal(live_once(ps), ACF_OK);
        }
        assert_int_equal(ps->n, 40);
        acf_params_free(ps);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_true(n > 80);
}

#define WITH_DEVICE(f) cmocka_unit_test_setup_teardown(f, open_device, close_device)
ACF_TESTS(params, WITH_DEVICE(decayed_first_aligned_and_disjoint), WITH_DEVICE(found_by_name_and_by_place),
          WITH_DEVICE(gradients_are_cleared), WITH_DEVICE(inference_has_values_only),
          WITH_DEVICE(allocated_values_are_zero), WITH_DEVICE(the_list_grows),
          WITH_DEVICE(initial_values_have_their_distribution), WITH_DEVICE(orthogonal_blocks),
          WITH_DEVICE(initial_values_depend_on_seed_and_name_alone), WITH_DEVICE(empty_parameters),
          WITH_DEVICE(refuses_what_cannot_be_declared), WITH_DEVICE(every_allocation_may_fail))
