/* The tape: failures, backward, views, memory. With small operations of its own, so that it does not lean on src/ops. */
#include "tensor/params.h"
#include "tensor/tape.h"

#include "harness/lab.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- two operations ------------------------------------------------------------------------------------------------ */

/* z = x * y, elementwise. */
static acf_status mul_forward(acf_tape *t, acf_node *n) {
    (void)t;
    for (int64_t i = 0; i < acf_tensor_count(n->in[0]); i++) n->out[0]->data[i] = n->in[0]->data[i] * n->in[1]->data[i];
    return ACF_OK;
}

static acf_status mul_backward(acf_tape *t, acf_node *n) {
    for (int k = 0; k < 2; k++) {
        acf_real *g = acf_grad(t, n->in[k]);
        for (int64_t i = 0; g && i < acf_tensor_count(n->in[k]); i++)
            g[i] += n->out[0]->grad[i] * n->in[1 - k]->data[i];
    }
    return acf_tape_status(t);
}

static const acf_op op_mul = {"mul", -1, {mul_forward, mul_backward}};

static acf_tensor *mul(acf_tape *t, acf_tensor *x, acf_tensor *y) {
    acf_node *n = acf_node_new(t, &op_mul, 0, 2, (acf_tensor *[]){x, y});
    if (!n) return &t->empty;
    if (acf_tensor_count(x) != acf_tensor_count(y))
        return acf_reject(t, &op_mul, "%d and %d elements", (int)acf_tensor_count(x), (int)acf_tensor_count(y));
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    n->out[0]->sub = x->sub;
    return acf_node_run(t, n);
}

/* A scalar: the sum. */
static acf_status sum_forward(acf_tape *t, acf_node *n) {
    (void)t;
    double sum = 0;
    for (int64_t i = 0; i < acf_tensor_count(n->in[0]); i++) sum += (double)n->in[0]->data[i];
    n->out[0]->data[0] = (acf_real)sum;
    return ACF_OK;
}

static acf_status sum_backward(acf_tape *t, acf_node *n) {
    acf_real *g = acf_grad(t, n->in[0]);
    for (int64_t i = 0; g && i < acf_tensor_count(n->in[0]); i++) g[i] += n->out[0]->grad[0];
    return acf_tape_status(t);
}

static const acf_op op_sum = {"sum", -1, {sum_forward, sum_backward}};

static acf_tensor *sum(acf_tape *t, acf_tensor *x) {
    acf_node *n = acf_node_new(t, &op_sum, 0, 1, &x);
    if (!n) return &t->empty;
    n->out[0] = acf_tensor_new(t, 0, NULL);
    return acf_node_run(t, n);
}

/* Fails when it runs, as an operation does that meets a singular matrix; forward or backward. */
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

/* ---- a tape with two parameters ------------------------------------------------------------------------------------- */

typedef struct bench {
    acf_device *dev;
    acf_params *ps;
    acf_tape *t;
    acf_tensor *w, *v; /* (2,3) each: w = 1 2 3 4 5 6, v = 2 */
} bench;

static void open_bench(bench *b) {
    assert_int_equal(acf_device_open_cpu(1, &b->dev), ACF_OK);
    assert_int_equal(acf_params_create(b->dev, &b->ps), ACF_OK);
    int64_t dim[2] = {2, 3};
    b->w = acf_p(acf_param_add(b->ps, "w", ACF_INIT_CONST, 0, 2, dim));
    b->v = acf_p(acf_param_add(b->ps, "v", ACF_INIT_CONST, 2, 2, dim));
    assert_int_equal(acf_params_build(b->ps, 1, true), ACF_OK);
    for (int i = 0; i < 6; i++) b->w->data[i] = (acf_real)(i + 1);
    assert_int_equal(acf_tape_create(b->dev, NULL, &b->t), ACF_OK);
    acf_tape_begin(b->t, true);
}

static void close_bench(bench *b) {
    acf_tape_free(b->t);
    acf_params_free(b->ps);
    acf_device_close(b->dev);
}

static void expect(const acf_real *g, double a0, double a1, double a2, double a3, double a4, double a5) {
    const double a[6] = {a0, a1, a2, a3, a4, a5};
    for (int i = 0; i < 6; i++) acf_assert_close((double)g[i], a[i], 0, "gradient");
}

/* ---- backward ------------------------------------------------------------------------------------------------------- */

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

/* Used twice in one node, and again later; and over two steps without clearing: gradients add up. */
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
    assert_true(!unused->grad && !fixed->grad && !x->grad); /* nothing flows where no parameter is */
    assert_true(!fixed->needs_grad && y->needs_grad);
    expect(b.w->grad, 1, 1, 1, 1, 1, 1);
    expect(b.v->grad, 0, 0, 0, 0, 0, 0);
    close_bench(&b);
}

/* A chain of products x ← x·v: however long, two of its gradients are alive at a time, and what it made can still be read. */
static void gradients_are_used_again(void **state) {
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

/* Gradients of many sizes, some alive all the time, others handed on: none touches another. With a = Σw and y = a repeated s times,
 * the loss is the sum of y + y³ over all sizes. */
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

/* Nothing to do is not a failure: a loss without parameters, behind an operation without derivative, while not recording. */
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

/* ---- failures ------------------------------------------------------------------------------------------------------- */

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

/* Memory for results comes from the tape, not from the operation's own code; the sentence names the operation all the
 * same, and no operation when none was called. */
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

/* Products of sizes that wrap around are refused, not allocated as something small. */
static void refuses_shapes_that_cannot_be(void **state) {
    (void)state;
    const int64_t big = (int64_t)1 << 32;
    const int64_t dims[][2] = {{big, big}, {-1, -1}, {3, -2}, {big / 2, big}, {0, -1}};
    bench b;
    open_bench(&b);
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++) {
        acf_tape_begin(b.t, true);
        assert_ptr_equal(acf_tensor_new(b.t, 2, dims[i]), &b.t->empty);
        assert_int_equal(acf_tape_status(b.t), ACF_ESHAPE);
        assert_non_null(strstr(acf_error(), "there can be no tensor of shape ("));
    }
    close_bench(&b);
}

/* After a failure a subset may be NULL (acf_tape_half says so). */
static void a_failed_tape_looks_at_no_subset(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_reject(b.t, &op_mul, "first");
    assert_ptr_equal(acf_tensor_packed(b.t, NULL, 3), &b.t->empty);
    assert_int_equal(acf_tape_status(b.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "mul: first");
    close_bench(&b);
}

/* Nothing is finite; an older error of the thread is none of the tape's. */
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
    assert_string_equal(acf_error(), "mul: the output is inf at row 1, column 1; look at that row's input, or lower the step size");
    expect(b.w->grad, 0, 0, 0, 0, 0, 0); /* nothing ran back */
    acf_tape_begin(b.t, true);
    acf_tensor *x = acf_tensor_input(b.t, b.v->data, 2, b.v->dim);
    assert_int_equal(acf_tape_check(b.t, b.w), ACF_OK);
    assert_int_equal(acf_tape_check(b.t, x), ACF_ENUMERIC); /* no operation made it */
    assert_string_equal(acf_error(), "input: the output is inf at row 1, column 1; look at that row's input, or lower the step size");
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
            snprintf(expected, sizeof expected, "mul: the output is inf at row %d, column %d;", l.u->row_of[p], l.u->col_of[p]);
            assert_int_equal(acf_tape_backward(l.t, sum(l.t, mul(l.t, x, x))), ACF_ENUMERIC);
            assert_memory_equal(acf_error(), expected, strlen(expected));
        }
    acf_lab_close(&l);
}

/* ---- views ---------------------------------------------------------------------------------------------------------- */

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
    assert_string_equal(acf_error(), "as_packed: (5) has not the 12 rows of the subset");
    acf_lab_begin(&l, false);
    x = acf_leaf_packed(&l, "x", -1, 1, 2);
    assert_ptr_equal(acf_tensor_view(l.t, x, 1, (int64_t[]){23}), &l.t->empty);
    assert_int_equal(acf_tape_status(l.t), ACF_ESHAPE);
    assert_string_equal(acf_error(), "view: (12 packed, 2) cannot be seen as (23)");
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

/* ---- memory --------------------------------------------------------------------------------------------------------- */

static acf_status step(acf_tape *t, acf_tensor *w, acf_tensor *v, bool record) {
    acf_tape_begin(t, record);
    acf_tensor *h = mul(t, w, v);
    for (int i = 0; i < 4; i++) h = mul(t, h, acf_tensor_view(t, h, 2, h->dim));
    acf_tensor *loss = sum(t, h);
    return record ? acf_tape_backward(t, loss) : acf_tape_status(t);
}

/* A loop of sampling steps: memory does not grow, and the count of nodes is what is there. */
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

/* The n-th allocation fails, for every n of create, forward and backward: a clean refusal, no leak, the tape goes on. */
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

ACF_TESTS(tape, cmocka_unit_test(gradients_of_a_product), cmocka_unit_test(a_weight_used_twice_accumulates),
          cmocka_unit_test(what_is_not_needed_is_not_computed), cmocka_unit_test(gradients_are_used_again),
          cmocka_unit_test(gradients_do_not_overlap),
          cmocka_unit_test(a_loss_that_depends_on_no_parameter),
          cmocka_unit_test(refuses_a_loss_that_is_not_one_number),
          cmocka_unit_test(refuses_a_second_backward), cmocka_unit_test(the_first_failure_sticks_until_begin),
          cmocka_unit_test(a_failing_kernel_is_named),
          cmocka_unit_test(out_of_memory_names_the_operation), cmocka_unit_test(refuses_shapes_that_cannot_be),
          cmocka_unit_test(a_failed_tape_looks_at_no_subset), cmocka_unit_test(checking_nothing_succeeds),
          cmocka_unit_test(usable_before_the_first_begin),
          cmocka_unit_test(the_first_nonfinite_output_is_named), cmocka_unit_test(a_packed_output_is_named_by_its_cell),
          cmocka_unit_test(views_share_data_and_gradient), cmocka_unit_test(views_keep_and_change_the_packing),
          cmocka_unit_test(wrapping_borrows_memory), cmocka_unit_test(rewinding_frees_what_came_after),
          cmocka_unit_test(no_allocation_after_the_first_step), cmocka_unit_test(every_allocation_may_fail),
          cmocka_unit_test(a_node_costs_little))
