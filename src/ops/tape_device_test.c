/* A tape on a device other than the CPU: which kernels run, the messages for missing ones, and memory that the host
 * must not touch. */
#include "ops/act.h"
#include "ops/reduce.h"

#include "harness/lab.h"

#include <string.h>
#include <sys/mman.h>

/* ---- kernels of another device ----------------------------------------------------------------------------------- */

static acf_status seven_forward(acf_tape *t, acf_node *n) {
    return acf_device_fill(t->dev, n->out[0]->data, 7, acf_tensor_count(n->out[0]));
}

static acf_status seven_backward(acf_tape *t, acf_node *n) {
    acf_real *g = acf_grad(t, n->in[0]);
    return g ? acf_device_fill(t->dev, g, 3, acf_tensor_count(n->in[0])) : acf_tape_status(t);
}

/* A parameter (2), and a tape whose table of kernels has only these entries. */
typedef struct bench {
    acf_device *dev;
    acf_params *ps;
    acf_tape *t;
    acf_tensor *w;
    acf_kernel kernels[ACF_OP_COUNT];
} bench;

static void open_bench(bench *b) {
    *b = (bench){0};
    assert_int_equal(acf_device_open_cpu(1, &b->dev), ACF_OK);
    assert_int_equal(acf_params_create(b->dev, &b->ps), ACF_OK);
    b->w = acf_p(acf_param_add(b->ps, "w", ACF_INIT_CONST, 2, 1, (int64_t[]){2}));
    assert_int_equal(acf_params_build(b->ps, 1, true), ACF_OK);
    assert_int_equal(acf_tape_create(b->dev, b->kernels, &b->t), ACF_OK);
    acf_tape_begin(b->t, true);
}

static void close_bench(bench *b) {
    acf_tape_free(b->t);
    acf_params_free(b->ps);
    acf_device_close(b->dev);
}

static void kernels_of_the_device_run(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    b.kernels[ACF_OP_act] = (acf_kernel){seven_forward, seven_backward};
    b.kernels[ACF_OP_sum] = acf_op_sum.cpu;
    acf_tensor *loss = acf_sum(b.t, acf_act(b.t, ACF_TANH, b.w));
    assert_int_equal(acf_tape_backward(b.t, loss), ACF_OK);
    assert_true(loss->data[0] == 14 && b.w->grad[0] == 3 && b.w->grad[1] == 3);
    close_bench(&b);
}

static void a_kernel_that_is_missing_is_named(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    acf_tensor *y = acf_act(b.t, ACF_TANH, b.w);
    assert_ptr_equal(y, &b.t->empty);
    assert_int_equal(acf_tape_status(b.t), ACF_EDEVICE);
    assert_string_equal(acf_error(), "act: the operation has no kernel for cpu; use the device cpu");
    b.kernels[ACF_OP_act].forward = seven_forward; /* a missing derivative is an error */
    acf_tape_begin(b.t, true);
    acf_act(b.t, ACF_TANH, b.w);
    assert_int_equal(acf_tape_status(b.t), ACF_EDEVICE);
    assert_string_equal(acf_error(), "act: the operation has no derivative on cpu; use the device cpu");
    acf_tape_begin(b.t, false); /* nothing will need a gradient */
    assert_true(acf_act(b.t, ACF_TANH, b.w)->data[1] == 7);
    close_bench(&b);
}

/* ---- memory the host must not touch ------------------------------------------------------------------------------ */

#define BLOCK ((size_t)1 << 20)

typedef struct far {
    int blocks, most; /* allocated, and how many exist */
    size_t poisoned;
} far;

/* Address space without memory behind it: a read or write ends the process. */
static void *far_alloc(void *ctx, size_t bytes) {
    far *f = ctx;
    if (bytes > BLOCK || f->blocks == f->most) return NULL;
    void *p = mmap(NULL, BLOCK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    f->blocks++;
    return p;
}

static void far_free(void *ctx, void *p) {
    ((far *)ctx)->blocks--;
    munmap(p, BLOCK);
}

static void far_poison(void *ctx, void *p, size_t bytes) {
    (void)p;
    ((far *)ctx)->poisoned += bytes;
}

static acf_status far_refuse(void *ctx, size_t bytes, size_t used) {
    return acf_fail(ACF_EMEMORY, "only %d blocks exist; %zu bytes asked for, %zu in use", ((far *)ctx)->blocks, bytes,
                    used);
}

static void host_does_not_touch_device_memory(void **state) {
    (void)state;
    far f = {.most = 2};
    const acf_memory memory = {&f, far_alloc, far_free, 256, false, far_poison, far_refuse};
    acf_arena *a;
    assert_int_equal(acf_arena_create(&memory, BLOCK / 2, &a), ACF_OK);
    for (int round = 0; round < 3; round++) {
        assert_non_null(acf_arena_alloc(a, 1000));
        acf_mark mark = acf_arena_mark(a);
        assert_int_equal((uintptr_t)acf_arena_alloc(a, BLOCK / 2) % 256, 0);
        acf_arena_release(a, mark);
        acf_arena_reset(a);
    }
    assert_true(f.poisoned >= BLOCK / 2 && f.blocks == 2); /* tests are debug builds */
    assert_non_null(acf_arena_alloc(a, BLOCK / 2 - 1024));
    assert_non_null(acf_arena_alloc(a, BLOCK - 1024));
    assert_null(acf_arena_alloc(a, 3000));
    assert_int_equal(acf_error_status(), ACF_EMEMORY);
    assert_non_null(strstr(acf_error(), "only 2 blocks exist; "));
    acf_arena_free(a);
    assert_int_equal(f.blocks, 0);
}

ACF_TESTS(tape_device, cmocka_unit_test(kernels_of_the_device_run), cmocka_unit_test(a_kernel_that_is_missing_is_named),
          cmocka_unit_test(host_does_not_touch_device_memory))
