/* Graphs of steps on the CPU, where every replay runs the work again; and steps in permanent memory, which have the
 * same gradients as others. gpu_model_test.c tests CUDA graphs. */
#include "tensor/tape_graph.h"

#include "harness/lab.h"
#include "ops/arith.h"
#include "ops/linear.h"
#include "ops/reduce.h"

typedef struct errand {
    acf_lab *l;
    int runs, fail_at;
} errand;

static acf_status enqueue(void *ctx) {
    errand *e = ctx;
    acf_tape_begin(e->l->t, false);
    return ++e->runs == e->fail_at ? acf_fail(ACF_ENUMERIC, "enough") : ACF_OK;
}

static void runs_as_often_as_asked(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 3, 2, ACF_MASK_ALL, 1);
    errand e = {&l, 0, 0};
    acf_tape_graph r = {0};
    assert_int_equal(acf_tape_graph_run(&r, l.t, enqueue, &e, 0), ACF_OK);
    assert_int_equal(e.runs, 0);
    assert_int_equal(acf_tape_graph_run(&r, l.t, enqueue, &e, 3), ACF_OK);
    assert_int_equal(e.runs, 3);
    assert_false(acf_tape_graph_ready(&r));
    e.fail_at = 5;
    assert_int_equal(acf_tape_graph_run(&r, l.t, enqueue, &e, 4), ACF_ENUMERIC);
    assert_int_equal(e.runs, 5);
    acf_tape_graph_free(&r, l.dev);
    acf_lab_close(&l);
}

enum { ROWS = 7, WIDE = 5 };

/* One step of a small network; its gradients to out (WIDE,WIDE). */
static void step(acf_lab *l, acf_real *out) {
    acf_lab_begin(l, true);
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 2, (int64_t[]){ROWS, WIDE}),
               *w = acf_leaf(l, "w", -1, 1, 2, (int64_t[]){WIDE, WIDE});
    acf_tensor *h = acf_linear(l->t, acf_linear(l->t, x, w, NULL, ACF_TANH), w, NULL, ACF_TANH);
    assert_int_equal(acf_tape_backward(l->t, acf_sum(l->t, acf_square(l->t, h))), ACF_OK);
    for (int i = 0; i < WIDE * WIDE; i++) out[i] = w->grad[i];
}

/* The slab has the size of the largest step so far; a larger step gets the rest elsewhere. */
static void lasting_steps_have_the_same_gradients(void **state) {
    (void)state;
    acf_lab l;
    acf_real plain[WIDE * WIDE], lasting[WIDE * WIDE];
    acf_lab_open(&l, 1, ROWS, 2, ACF_MASK_ALL, 1);
    step(&l, plain);
    assert_true(l.t->slab.asked > 0 && l.t->slab.capacity == 0);
    for (int k = 0; k < 3; k++) {
        if (k == 2) l.t->slab.capacity = 64, l.t->slab.asked = 64; /* as if the steps before had been smaller */
        assert_int_equal(acf_tape_last(l.t, true), ACF_OK);
        step(&l, lasting);
        assert_memory_equal(plain, lasting, sizeof plain);
    }
    assert_int_equal(acf_tape_last(l.t, false), ACF_OK);
    step(&l, lasting);
    assert_memory_equal(plain, lasting, sizeof plain);
    acf_lab_close(&l);
}

ACF_TESTS(replay, cmocka_unit_test(runs_as_often_as_asked), cmocka_unit_test(lasting_steps_have_the_same_gradients))
