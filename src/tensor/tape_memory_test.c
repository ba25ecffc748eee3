/* Tests of the tape: views, and its use of memory and time. */
#include "harness/tape_lab.h"

#include <math.h>
#include <time.h>

/* ---- views ----------------------------------------------------------------------------------------------------- */

static void views_share_data_and_gradient(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_tensor *h = mul(b.t, b.w, b.v), *flat = acf_tensor_view(b.t, h, 1, (int64_t[]){6});
    assert_true(flat->data == h->data && flat->ndim == 1 && flat->dim[0] == 6);
    acf_tensor *loss = sum(b.t, mul(b.t, flat, acf_tensor_view(b.t, h, 2, (int64_t[]){3, 2}))); /* (w v)²: 2 w v² */
    assert_true(flat->grad && flat->grad == h->grad);
    assert_int_equal(acf_tape_backward(b.t, loss), ACF_OK);
    expect(b.w->grad, 8, 16, 24, 32, 40, 48);
    close_bench(&b);
}

static void views_keep_and_change_the_packing(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 4, 3, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_leaf_packed(&l, "x", -1, 1, 2);
    assert_ptr_equal(acf_tensor_view(l.t, x, 3, (int64_t[]){12, 1, 2})->sub, l.u); /* same elements on the first axis */
    assert_null(acf_tensor_view(l.t, x, 1, (int64_t[]){24})->sub);
    acf_tensor *plain = acf_tensor_as_packed(l.t, x, NULL);
    assert_true(!plain->sub && plain->data == x->data);
    assert_ptr_equal(acf_tensor_as_packed(l.t, plain, l.u)->sub, l.u);
    assert_ptr_equal(acf_tensor_as_packed(l.t, acf_tensor_new(l.t, 1, (int64_t[]){5}), l.u), &l.t->empty);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "as_packed: x is (5); expected the 12 rows of the subset");
    acf_lab_begin(&l, false);
    x = acf_leaf_packed(&l, "x", -1, 1, 2);
    assert_ptr_equal(acf_tensor_view(l.t, x, 1, (int64_t[]){23}), &l.t->empty);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "view: x is (12 packed, 2); it cannot be viewed as (23)");
    acf_lab_close(&l);
}

static void wrapping_borrows_memory(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_real mine[2] = {3, 4};
    acf_tensor *x = acf_tensor_wrap(b.t, mine, 1, (int64_t[]){2});
    assert_true(x->data == mine && !x->needs_grad);
    assert_true(sum(b.t, x)->data[0] == 7);
    close_bench(&b);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static acf_status step(acf_tape *t, acf_tensor *w, acf_tensor *v, bool record) {
    acf_tape_begin(t, record);
    acf_tensor *h = mul(t, w, v);
    for (int i = 0; i < 4; i++) h = mul(t, h, acf_tensor_view(t, h, 2, h->dim));
    acf_tensor *loss = sum(t, h);
    return record ? acf_tape_backward(t, loss) : acf_tape_status(t);
}

/* A loop of sampling steps: memory does not grow, and the count of nodes is that of the live ones. */
static void rewinding_frees_what_came_after(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_tape_begin(b.t, false);
    acf_tensor *x = mul(b.t, b.w, b.v);
    acf_tape_mark mark = acf_tape_position(b.t);
    size_t host = acf_arena_used(b.t->host), mem = acf_arena_used(b.t->mem);
    size_t most = 0;
    for (int i = 0; i < 50; i++) {
        acf_tensor *y = mul(b.t, x, mul(b.t, x, x));
        assert_true(y->data[1] == 64);
        size_t used = acf_arena_used(b.t->mem);
        if (i == 0) most = used;
        assert_int_equal(used, most);
        acf_tape_rewind(b.t, mark);
        assert_true(acf_arena_used(b.t->host) == host && acf_arena_used(b.t->mem) == mem);
        assert_int_equal(b.t->n_nodes, 1);
        assert_ptr_equal(b.t->last->out[0], x);
    }
    assert_true(x->data[1] == 4);
    close_bench(&b);
}

static void no_allocation_after_the_first_step(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    assert_int_equal(step(b.t, b.w, b.v, true), ACF_OK);
    int64_t before = acf_alloc_count();
    for (int i = 0; i < 20; i++) assert_int_equal(step(b.t, b.w, b.v, i % 2), ACF_OK);
    assert_int_equal(acf_alloc_count(), before);
    close_bench(&b);
}

/* The n-th allocation fails, for every n of create, forward and backward: a clean error, no leak, the tape remains
 * usable. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    int64_t dim[2] = {2, 40000}, live = acf_alloc_live(); /* large, so that a step needs several blocks */
    acf_params *ps;
    assert_int_equal(acf_params_create(b.dev, &ps), ACF_OK);
    acf_tensor *w = acf_p(acf_param_add(ps, "big", ACF_INIT_CONST, 1, 2, dim));
    assert_int_equal(acf_params_build(ps, 1, true), ACF_OK);
    int64_t held = acf_alloc_live();
    int n = 0;
    for (bool done = false; !done;) {
        acf_tape *t = NULL;
        acf_alloc_fail_at(++n);
        acf_status status = acf_tape_create(b.dev, NULL, &t);
        if (!status) status = step(t, w, w, true);
        acf_alloc_fail_at(0);
        done = status == ACF_OK;
        if (!done) assert_int_equal(status, ACF_EMEMORY);
        if (!done && t) assert_int_equal(step(t, w, w, true), ACF_OK);
        acf_tape_free(t);
        assert_int_equal(acf_alloc_live(), held);
    }
    assert_true(n > 5);
    acf_params_free(ps);
    assert_int_equal(acf_alloc_live(), live);
    close_bench(&b);
}

/* A node costs below a microsecond of the tape's own time; 20 are allowed here, for sanitizers and busy machines. */
static void a_node_costs_little(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    struct timespec from, to;
    double best = 1e9;
    for (int run = 0; run < 5; run++) {
        acf_tape_begin(b.t, true);
        clock_gettime(CLOCK_MONOTONIC, &from);
        acf_tensor *x = b.v;
        for (int i = 0; i < 1000; i++) x = mul(b.t, x, b.v), x->data[0] = 1;
        clock_gettime(CLOCK_MONOTONIC, &to);
        best = fmin(best, ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 1000);
    }
    assert_int_equal(acf_tape_status(b.t), ACF_OK);
    print_message("a node costs %.0f ns\n", best);
    assert_true(best < 20e3);
    close_bench(&b);
}

ACF_TESTS(tape, cmocka_unit_test(views_share_data_and_gradient), cmocka_unit_test(views_keep_and_change_the_packing),
          cmocka_unit_test(wrapping_borrows_memory), cmocka_unit_test(rewinding_frees_what_came_after),
          cmocka_unit_test(no_allocation_after_the_first_step), cmocka_unit_test(every_allocation_may_fail),
          cmocka_unit_test(a_node_costs_little))
