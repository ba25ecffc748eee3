/* Tests of the tape: backward and failures. Views and memory are in tape_memory_test.c. */
#include "harness/tape_lab.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- operations that fail -------------------------------------------------------------------------------------- */

/* Fails when it runs, like an operation on a singular matrix; forward or backward. */
static acf_status fail_forward(acf_tape *t, acf_node *n) {
    (void)t, (void)n;
    return acf_fail(ACF_ENUMERIC, "row 4, column 2: the matrix is singular");
}

static acf_status copy_forward(acf_tape *t, acf_node *n) {
    return acf_device_copy(t->dev, n->out[0]->data, n->in[0]->data, sizeof(acf_real), ACF_ON_DEVICE);
}

static const acf_op op_fails = {"lu", -1, {fail_forward, NULL}};
static const acf_op op_fails_back = {"lu_back", -1, {copy_forward, fail_forward}};
static const acf_op op_constant = {"draw", -1, {copy_forward, NULL}}; /* has no derivative */

static acf_tensor *scalar_op(acf_tape *t, const acf_op *op, acf_tensor *x) {
    acf_node *n = acf_node_new(t, op, 0, 1, &x);
    if (!n) return &t->empty;
    n->out[0] = acf_tensor_new(t, 0, NULL);
    return acf_node_run(t, n);
}

/* ---- backward -------------------------------------------------------------------------------------------------- */

static void gradients_of_a_product(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    assert_int_equal(acf_tape_backward(b.t, sum(b.t, mul(b.t, b.w, b.v))), ACF_OK);
    expect(b.w->grad, 2, 2, 2, 2, 2, 2);
    expect(b.v->grad, 1, 2, 3, 4, 5, 6);
    assert_int_equal(b.t->n_nodes, 2);
    close_bench(&b);
}

/* Used twice in one node, and again later, and over two steps without clearing: gradients add up. */
static void a_weight_used_twice_accumulates(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    for (int step = 1; step <= 2; step++) {
        acf_tape_begin(b.t, true);
        acf_tensor *square = mul(b.t, b.w, b.w);
        assert_int_equal(acf_tape_backward(b.t, sum(b.t, mul(b.t, square, b.w))), ACF_OK); /* w³: 3 w² */
        expect(b.w->grad, 3 * step, 12 * step, 27 * step, 48 * step, 75 * step, 108 * step);
    }
    assert_int_equal(acf_params_zero_grad(b.ps), ACF_OK);
    expect(b.w->grad, 0, 0, 0, 0, 0, 0);
    close_bench(&b);
}

static void what_is_not_needed_is_not_computed(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_real ones[6] = {1, 1, 1, 1, 1, 1};
    acf_tensor *x = acf_tensor_input(b.t, ones, 2, b.w->dim);
    acf_tensor *unused = mul(b.t, b.w, b.v), *fixed = mul(b.t, x, x), *y = mul(b.t, fixed, b.w);
    assert_int_equal(acf_tape_backward(b.t, sum(b.t, y)), ACF_OK);
    assert_true(!unused->grad && !fixed->grad && !x->grad); /* no gradients where no parameter is */
    assert_true(!fixed->needs_grad && y->needs_grad);
    expect(b.w->grad, 1, 1, 1, 1, 1, 1);
    expect(b.v->grad, 0, 0, 0, 0, 0, 0);
    close_bench(&b);
}

/* A chain of products x ← x·v. For any length, two of its gradients are alive at a time, and all outputs can still
 * be read. */
static void gradient_memory_is_reused(void **state) {
    (void)state;
    size_t extra[2];
    for (int k = 0; k < 2; k++) {
        bench b;
        open_bench(&b);
        acf_tensor *x = b.w, *first = NULL;
        for (int i = 0; i < (k ? 50 : 5); i++) {
            x = mul(b.t, x, b.v);
            if (!first) first = x;
        }
        acf_tensor *loss = sum(b.t, x);
        size_t before = acf_arena_used(b.t->mem);
        assert_int_equal(acf_tape_backward(b.t, loss), ACF_OK);
        extra[k] = acf_arena_used(b.t->mem) - before;
        assert_true(!x->grad && !first->grad);
        expect(first->data, 2, 4, 6, 8, 10, 12);
        double power = pow(2, k ? 50 : 5); /* d(w vⁿ)/dw = vⁿ */
        expect(b.w->grad, power, power, power, power, power, power);
        close_bench(&b);
    }
    assert_int_equal(extra[0], extra[1]);
}

/* y (n) = x, a scalar, n times. */
static acf_status spread_forward(acf_tape *t, acf_node *n) {
    (void)t;
    for (int64_t i = 0; i < acf_tensor_count(n->out[0]); i++) n->out[0]->data[i] = n->in[0]->data[0];
    return ACF_OK;
}

static acf_status spread_backward(acf_tape *t, acf_node *n) {
    acf_real *g = acf_grad(t, n->in[0]);
    for (int64_t i = 0; g && i < acf_tensor_count(n->out[0]); i++) g[0] += n->out[0]->grad[i];
    return acf_tape_status(t);
}

/* A scalar: the sum of all elements of all inputs. */
static acf_status total_forward(acf_tape *t, acf_node *n) {
    (void)t;
    n->out[0]->data[0] = 0;
    for (int k = 0; k < n->n_in; k++)
        for (int64_t i = 0; i < acf_tensor_count(n->in[k]); i++) n->out[0]->data[0] += n->in[k]->data[i];
    return ACF_OK;
}

static acf_status total_backward(acf_tape *t, acf_node *n) {
    for (int k = 0; k < n->n_in; k++) {
        acf_real *g = acf_grad(t, n->in[k]);
        for (int64_t i = 0; g && i < acf_tensor_count(n->in[k]); i++) g[i] += n->out[0]->grad[0];
    }
    return acf_tape_status(t);
}

static const acf_op op_spread = {"spread", -1, {spread_forward, spread_backward}};
static const acf_op op_total = {"total", -1, {total_forward, total_backward}};

/* Gradients of many sizes, some alive all the time, others reused: none overlaps another. With a = Σw and y = a
 * repeated s times, the loss is the sum of y + y³ over all sizes. */
static void gradients_do_not_overlap(void **state) {
    (void)state;
    static const int64_t size[] = {70, 8, 64, 9, 40, 1, 32, 33, 8, 100, 16, 24};
    enum { SIZES = sizeof size / sizeof *size };
    bench b;
    open_bench(&b);
    acf_tensor *a = sum(b.t, b.w), *part[2 * SIZES];
    double expected = 0;
    for (int k = 0; k < SIZES; k++) {
        acf_node *n = acf_node_new(b.t, &op_spread, 0, 1, &a);
        n->out[0] = acf_tensor_new(b.t, 1, &size[k]);
        acf_tensor *y = acf_node_run(b.t, n);
        part[2 * k] = y, part[2 * k + 1] = sum(b.t, mul(b.t, mul(b.t, y, y), y));
        expected += (double)size[k] * (1 + 3 * 21.0 * 21.0);
    }
    acf_node *n = acf_node_new(b.t, &op_total, 0, 2 * SIZES, part);
    n->out[0] = acf_tensor_new(b.t, 0, NULL);
    assert_int_equal(acf_tape_backward(b.t, acf_node_run(b.t, n)), ACF_OK);
    expect(b.w->grad, expected, expected, expected, expected, expected, expected);
    close_bench(&b);
}

/* Not failures: a loss without parameters, after an operation without derivative, while not recording. */
static void a_loss_that_depends_on_no_parameter(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_real one = 1;
    acf_tensor *x = acf_tensor_input(b.t, &one, 0, NULL);
    assert_int_equal(acf_tape_backward(b.t, sum(b.t, x)), ACF_OK);
    acf_tape_begin(b.t, true);
    acf_tensor *drawn = scalar_op(b.t, &op_constant, sum(b.t, b.w));
    assert_false(drawn->needs_grad);
    assert_int_equal(acf_tape_backward(b.t, drawn), ACF_OK);
    acf_tape_begin(b.t, false);
    assert_int_equal(acf_tape_backward(b.t, sum(b.t, b.w)), ACF_OK);
    expect(b.w->grad, 0, 0, 0, 0, 0, 0);
    close_bench(&b);
}

static void refuses_a_loss_that_is_not_one_number(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    assert_int_equal(acf_tape_backward(b.t, mul(b.t, b.w, b.v)), ACF_ESHAPE);
    assert_string_equal(acf_error(), "backward: the loss has shape (2, 3); expected one element");
    close_bench(&b);
}

static void refuses_a_second_backward(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_tensor *loss = sum(b.t, b.w);
    assert_int_equal(acf_tape_backward(b.t, loss), ACF_OK);
    assert_int_equal(acf_tape_backward(b.t, loss), ACF_EUSAGE);
    acf_tape_begin(b.t, true);
    assert_int_equal(acf_tape_backward(b.t, sum(b.t, b.w)), ACF_OK);
    close_bench(&b);
}

/* ---- failures -------------------------------------------------------------------------------------------------- */

static void the_first_failure_sticks_until_begin(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_tensor *s = sum(b.t, b.w), *bad = mul(b.t, b.w, s);
    assert_ptr_equal(bad, &b.t->empty);
    assert_int_equal(acf_tensor_count(bad), 0);
    /* Later calls of every kind return the empty tensor and change nothing. */
    assert_ptr_equal(scalar_op(b.t, &op_fails, s), &b.t->empty);
    assert_ptr_equal(acf_tensor_view(b.t, bad, 1, (int64_t[]){7}), &b.t->empty);
    assert_ptr_equal(acf_tensor_as_packed(b.t, bad, NULL), &b.t->empty);
    assert_ptr_equal(acf_tensor_new(b.t, 0, NULL), &b.t->empty);
    assert_null(acf_node_new(b.t, &op_sum, 0, 1, &b.w));
    acf_reject(b.t, &op_sum, "a later complaint");
    assert_int_equal(b.t->n_nodes, 1);
    acf_fail(ACF_EIO, "something else happened on this thread");
    assert_int_equal(acf_tape_backward(b.t, bad), ACF_ESHAPE);
    assert_string_equal(acf_error(), "mul: 6 and 1 elements");
    assert_int_equal(acf_tape_check(b.t, s), ACF_ESHAPE);
    expect(b.w->grad, 0, 0, 0, 0, 0, 0);
    acf_tape_begin(b.t, true);
    assert_int_equal(acf_tape_status(b.t), ACF_OK);
    assert_int_equal(acf_tape_backward(b.t, sum(b.t, b.w)), ACF_OK);
    close_bench(&b);
}

static void a_failing_kernel_is_named(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    scalar_op(b.t, &op_fails, sum(b.t, b.w));
    assert_int_equal(acf_tape_status(b.t), ACF_ENUMERIC);
    assert_string_equal(acf_error(), "lu: row 4, column 2: the matrix is singular");
    acf_tape_begin(b.t, true);
    acf_tensor *y = scalar_op(b.t, &op_fails_back, sum(b.t, b.w));
    assert_int_equal(acf_tape_status(b.t), ACF_OK);
    assert_int_equal(acf_tape_backward(b.t, y), ACF_ENUMERIC);
    assert_string_equal(acf_error(), "lu_back: row 4, column 2: the matrix is singular");
    assert_int_equal(acf_tape_status(b.t), ACF_ENUMERIC);
    expect(b.w->grad, 0, 0, 0, 0, 0, 0); /* nothing ran after it */
    close_bench(&b);
}

/* Memory for results comes from the tape, not from the operation's own code. The message still names the operation,
 * and no operation if none was called. */
static void out_of_memory_names_the_operation(void **state) {
    (void)state;
    const int64_t many = (int64_t)1 << 20;
    bench b;
    open_bench(&b);
    acf_tensor *x = acf_tensor_new(b.t, 1, &many);
    assert_int_equal(acf_tape_status(b.t), ACF_OK);
    acf_alloc_fail_at(1);
    mul(b.t, x, x);
    acf_alloc_fail_at(0);
    assert_int_equal(acf_tape_status(b.t), ACF_EMEMORY);
    assert_int_equal(strncmp(acf_error(), "mul: out of memory: ", 20), 0);

    acf_tape_begin(b.t, true);
    sum(b.t, b.w);
    acf_alloc_fail_at(1);
    for (int i = 0; i < 64 && !b.t->failure.status; i++) acf_tensor_new(b.t, 1, &many);
    acf_alloc_fail_at(0);
    assert_int_equal(acf_tape_status(b.t), ACF_EMEMORY);
    assert_int_equal(strncmp(acf_error(), "out of memory: ", 15), 0);

    acf_tape_begin(b.t, true);
    x = acf_tensor_new(b.t, 1, &many);
    x->needs_grad = true;
    memset(x->data, 0, (size_t)many * sizeof(acf_real));
    acf_tensor *y = sum(b.t, mul(b.t, x, x));
    while (!b.t->failure.status && acf_arena_reserved(b.t->mem) - acf_arena_used(b.t->mem) > (size_t)many)
        acf_tensor_new(b.t, 1, (int64_t[]){many / 16}); /* fill the block */
    acf_alloc_fail_at(1);
    assert_int_equal(acf_tape_backward(b.t, y), ACF_EMEMORY);
    acf_alloc_fail_at(0);
    assert_int_equal(strncmp(acf_error(), "sum: out of memory: ", 20), 0);
    close_bench(&b);
}

/* Overflowing products of sizes are refused, not allocated as something small. */
static void refuses_invalid_shapes(void **state) {
    (void)state;
    const int64_t big = (int64_t)1 << 32;
    const int64_t dims[][2] = {{big, big}, {-1, -1}, {3, -2}, {big / 2, big}, {0, -1}};
    bench b;
    open_bench(&b);
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        acf_tape_begin(b.t, true);
        assert_ptr_equal(acf_tensor_new(b.t, 2, dims[i]), &b.t->empty);
        assert_int_equal(acf_tape_status(b.t), ACF_ESHAPE);
        assert_non_null(strstr(acf_error(), "a tensor cannot have the shape ("));
    }
    close_bench(&b);
}

/* After a failure a subset may be NULL (acf_tape_half says so). */
static void a_failed_tape_reads_no_subset(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_reject(b.t, &op_mul, "first");
    assert_ptr_equal(acf_tensor_packed(b.t, NULL, 3), &b.t->empty);
    assert_int_equal(acf_tape_status(b.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "mul: first");
    close_bench(&b);
}

/* All values are non-finite; an earlier error of the thread does not affect the tape. */
static void checking_nothing_succeeds(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_fail(ACF_EIO, "an older failure");
    assert_int_equal(acf_tape_check(b.t, acf_tensor_wrap(b.t, NULL, 1, (int64_t[]){0})), ACF_OK);
    assert_int_equal(acf_tape_status(b.t), ACF_OK);
    close_bench(&b);
}

/* A tape that was never begun behaves like one that was. */
static void usable_before_the_first_begin(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_tape *t;
    assert_int_equal(acf_tape_create(b.dev, NULL, &t), ACF_OK);
    assert_int_equal(acf_tensor_count(mul(t, b.w, sum(t, b.v))), 0);
    assert_int_equal(acf_tape_status(t), ACF_ESHAPE);
    acf_tape_free(t);
    acf_tape_free(NULL);
    close_bench(&b);
}

static void the_first_nonfinite_output_is_named(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    b.v->data[4] = (acf_real)INFINITY;
    acf_tensor *fine = mul(b.t, b.w, b.w), *first = mul(b.t, fine, b.v), *second = mul(b.t, first, first);
    assert_int_equal(acf_tape_backward(b.t, sum(b.t, second)), ACF_ENUMERIC);
    assert_string_equal(acf_error(),
                        "mul: the output is inf at row 1, column 1; look at that row's input, or lower the step size");
    expect(b.w->grad, 0, 0, 0, 0, 0, 0); /* no backward ran */
    acf_tape_begin(b.t, true);
    acf_tensor *x = acf_tensor_input(b.t, b.v->data, 2, b.v->dim);
    assert_int_equal(acf_tape_check(b.t, b.w), ACF_OK);
    assert_int_equal(acf_tape_check(b.t, x), ACF_ENUMERIC); /* made by no operation */
    assert_string_equal(
        acf_error(), "input: the output is inf at row 1, column 1; look at that row's input, or lower the step size");
    close_bench(&b);
}

/* Packed elements are named by row and column of the table. */
static void a_packed_output_is_named_by_its_cell(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 6, 5, ACF_MASK_RANDOM, 12);
    for (int64_t p = 0; p < l.u->T; p++)
        for (int64_t c = 0; c < 2; c++) {
            acf_lab_begin(&l, true);
            acf_tensor *x = acf_leaf_packed(&l, "x", 1, 2, 2);
            x->data[2 * p + c] = (acf_real)INFINITY;
            char expected[128];
            snprintf(expected, sizeof expected, "mul: the output is inf at row %d, column %d;", l.u->row_of[p],
                     l.u->col_of[p]);
            assert_int_equal(acf_tape_backward(l.t, sum(l.t, mul(l.t, x, x))), ACF_ENUMERIC);
            assert_memory_equal(acf_error(), expected, strlen(expected));
        }
    acf_lab_close(&l);
}

ACF_TESTS(tape, cmocka_unit_test(gradients_of_a_product), cmocka_unit_test(a_weight_used_twice_accumulates),
          cmocka_unit_test(what_is_not_needed_is_not_computed), cmocka_unit_test(gradient_memory_is_reused),
          cmocka_unit_test(gradients_do_not_overlap), cmocka_unit_test(a_loss_that_depends_on_no_parameter),
          cmocka_unit_test(refuses_a_loss_that_is_not_one_number), cmocka_unit_test(refuses_a_second_backward),
          cmocka_unit_test(the_first_failure_sticks_until_begin), cmocka_unit_test(a_failing_kernel_is_named),
          cmocka_unit_test(out_of_memory_names_the_operation), cmocka_unit_test(refuses_invalid_shapes),
          cmocka_unit_test(a_failed_tape_reads_no_subset), cmocka_unit_test(checking_nothing_succeeds),
          cmocka_unit_test(usable_before_the_first_begin), cmocka_unit_test(the_first_nonfinite_output_is_named),
          cmocka_unit_test(a_packed_output_is_named_by_its_cell))
