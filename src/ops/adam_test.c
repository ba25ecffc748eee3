/* Tests of the optimiser: comparison with plain loops in double, and convergence on simple functions. */
#include "ops/adam.h"

#include "harness/lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A device and a built set: two matrices (decayed) and two vectors with odd sizes, so that there are gaps. With
 * `big` there are enough elements for several chunks and threads. */
typedef struct bench {
    acf_device *dev;
    acf_params *ps;
} bench;

static void build_set(bench *b, bool big) {
    assert_int_equal(acf_params_create(b->dev, &b->ps), ACF_OK);
    int64_t R = big ? 331 : 5, C = big ? 137 : 3;
    assert_non_null(acf_param_add(b->ps, "w1", ACF_INIT_NORMAL, 1, 2, (int64_t[]){R, C}));
    assert_non_null(acf_param_add(b->ps, "b1", ACF_INIT_NORMAL, 1, 1, (int64_t[]){R}));
    assert_non_null(acf_param_add(b->ps, "w2", ACF_INIT_NORMAL, 1, 2, (int64_t[]){C, R}));
    assert_non_null(acf_param_add(b->ps, "b2", ACF_INIT_NORMAL, 1, 1, (int64_t[]){C}));
    assert_int_equal(acf_params_build(b->ps, 3, true), ACF_OK);
}

static void open_bench(bench *b, int threads, bool big) {
    assert_int_equal(acf_device_open_cpu(threads, &b->dev), ACF_OK);
    build_set(b, big);
}

static void close_bench(bench *b) {
    acf_params_free(b->ps);
    acf_device_close(b->dev);
}

static bool is_gap(const acf_params *ps, int64_t i) {
    int64_t row, column;
    return !acf_params_at(ps, i, &row, &column);
}

/* Gradients of a step: some large, some tiny, some zero; nothing in the gaps. */
static void draw_gradient(acf_params *ps, int64_t step) {
    for (int64_t i = 0; i < ps->total; i++) {
        double g = acf_lab_random(900 + (uint64_t)step, i, -1, 1) * (i % 7 == 0 ? 1e-4 : i % 5 == 0 ? 30 : 1);
        ps->grad[i] = is_gap(ps, i) || i % 11 == 0 ? 0 : (acf_real)g;
    }
}

static double largest_difference(const acf_real *a, const double *b, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)a[i] - b[i]) / (1 + fabs(b[i])));
    return most;
}

/* Six steps with decay, clipping and averaging, each as in the formulas of the papers. */
static void follows_the_formulas(void **state) {
    (void)state;
    const acf_adam cfg = {.lr = 0.02, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .decay = 0.3};
    bench b;
    open_bench(&b, 2, true);
    int64_t n = b.ps->total;
    double *w = calloc((size_t)n, 8), *m = calloc((size_t)n, 8), *v = calloc((size_t)n, 8), *ema = calloc((size_t)n, 8);
    assert_true(w && m && v && ema);
    for (int64_t i = 0; i < n; i++) w[i] = ema[i] = (double)b.ps->value[i];
    for (int step = 1; step <= 6; step++) {
        draw_gradient(b.ps, step);
        double sum = 0, norm;
        for (int64_t i = 0; i < n; i++) sum += (double)b.ps->grad[i] * (double)b.ps->grad[i];
        assert_int_equal(acf_grad_norm(b.ps, &norm), ACF_OK);
        acf_assert_close(norm, sqrt(sum), 1e-12, "norm");
        double scale = acf_clip_factor(norm, 50);
        assert_true(scale < 1);
        assert_int_equal(acf_adam_step(b.ps, &cfg, step, scale), ACF_OK);
        assert_int_equal(acf_ema_step(b.ps, 0.8), ACF_OK);
        for (int64_t i = 0; i < n; i++) {
            double g = (double)b.ps->grad[i] * 50 / sqrt(sum);
            m[i] = cfg.beta1 * m[i] + (1 - cfg.beta1) * g;
            v[i] = cfg.beta2 * v[i] + (1 - cfg.beta2) * g * g;
            double m_hat = m[i] / (1 - pow(cfg.beta1, step)), v_hat = v[i] / (1 - pow(cfg.beta2, step));
            if (i < b.ps->decayed) w[i] -= cfg.lr * cfg.decay * w[i];
            w[i] -= cfg.lr * m_hat / (sqrt(v_hat) + cfg.eps);
            ema[i] = 0.8 * ema[i] + (1 - 0.8) * w[i];
        }
    }
    double tol = sizeof(acf_real) == 8 ? 1e-13 : 5e-6;
    assert_true(largest_difference(b.ps->value, w, n) < tol);
    assert_true(largest_difference(b.ps->m, m, n) < tol);
    assert_true(largest_difference(b.ps->v, v, n) < tol);
    assert_true(largest_difference(b.ps->ema, ema, n) < tol);
    free(w), free(m), free(v), free(ema);
    close_bench(&b);
}

/* A weight without gradient changes only by its decay, and only where decay applies. */
static void decays_only_what_decays(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 1, false);
    acf_param *w = acf_params_find(b.ps, "w2"), *bias = acf_params_find(b.ps, "b1");
    acf_real w0 = w->t.data[1], b0 = bias->t.data[1];
    assert_int_equal(acf_adam_step(b.ps, &(acf_adam){0.1, 0.9, 0.999, 1e-8, 0.5}, 1, 1), ACF_OK);
    acf_assert_close((double)w->t.data[1], 0.95 * (double)w0, 4 * (double)ACF_REAL_EPS, "a matrix");
    assert_true(bias->t.data[1] == b0);
    close_bench(&b);
}

/* f(w) = Σ k_i (w_i - i)², curvatures over three orders of magnitude: all weights converge. */
static void finds_the_minimum_of_a_quadratic(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 1, false);
    for (int step = 1; step <= 4000; step++) {
        for (int64_t i = 0; i < b.ps->total; i++)
            if (!is_gap(b.ps, i))
                b.ps->grad[i] =
                    (acf_real)(pow(10, (double)(i % 4) - 2) * 2 * ((double)b.ps->value[i] - (double)(i % 9)));
        acf_adam cfg = {.lr = 0.1 * pow(0.998, step), .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
        assert_int_equal(acf_adam_step(b.ps, &cfg, step, 1), ACF_OK);
    }
    for (int64_t i = 0; i < b.ps->total; i++)
        if (!is_gap(b.ps, i)) acf_assert_close((double)b.ps->value[i], (double)(i % 9), 1e-4, "minimum");
    close_bench(&b);
}

static void gaps_stay_zero(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 2, false);
    int64_t gaps = 0;
    for (int step = 1; step <= 3; step++) {
        draw_gradient(b.ps, step);
        assert_int_equal(acf_adam_step(b.ps, &(acf_adam){0.1, 0.9, 0.999, 1e-8, 0.1}, step, 1), ACF_OK);
        assert_int_equal(acf_ema_step(b.ps, 0.5), ACF_OK);
    }
    for (int64_t i = 0; i < b.ps->total; i++)
        if (is_gap(b.ps, i)) {
            assert_true(b.ps->value[i] == 0 && b.ps->m[i] == 0 && b.ps->v[i] == 0 && b.ps->ema[i] == 0);
            gaps++;
        }
    assert_true(gaps > 0);
    close_bench(&b);
}

static void same_bits_on_any_number_of_threads(void **state) {
    (void)state;
    acf_real *value = NULL;
    double norm = 0;
    double squares[50];
    for (int threads = 1; threads <= 3; threads++) {
        bench b;
        open_bench(&b, threads, true);
        double n;
        for (int step = 1; step <= 2; step++) {
            draw_gradient(b.ps, step);
            assert_int_equal(acf_grad_norm(b.ps, &n), ACF_OK);
            assert_int_equal(acf_adam_step(b.ps, &(acf_adam){0.1, 0.9, 0.999, 1e-8, 0.1}, step, acf_clip_factor(n, 1)),
                             ACF_OK);
            assert_int_equal(acf_ema_step(b.ps, 0.9), ACF_OK);
        }
        for (int k = 0; k < 50; k++) { /* many lengths: one sum may agree by chance */
            double s = acf_sum_squares_cpu(b.dev, b.ps->grad, b.ps->total - k * 97);
            if (threads == 1) squares[k] = s;
            assert_true(s == squares[k]);
        }
        size_t bytes = (size_t)b.ps->total * sizeof(acf_real);
        if (!value) {
            value = malloc(2 * bytes);
            assert_non_null(value);
            memcpy(value, b.ps->value, bytes);
            memcpy(value + b.ps->total, b.ps->ema, bytes);
            norm = n;
        }
        assert_memory_equal(value, b.ps->value, bytes);
        assert_memory_equal(value + b.ps->total, b.ps->ema, bytes);
        assert_true(n == norm);
        close_bench(&b);
    }
    free(value);
}

static void names_a_gradient_that_is_not_finite(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 2, true);
    double norm = -1;
    acf_params_find(b.ps, "b2")->t.grad[3] = (acf_real)INFINITY;
    acf_params_find(b.ps, "w2")->t.grad[2 * 331 + 5] = (acf_real)NAN;
    assert_int_equal(acf_grad_norm(b.ps, &norm), ACF_ENUMERIC);
    assert_string_equal(acf_error(), "the gradient of 'w2' is nan at row 2, column 5; lower the step size");
    assert_true(norm == -1);
    assert_int_equal(acf_params_zero_grad(b.ps), ACF_OK);
    assert_int_equal(acf_grad_norm(b.ps, &norm), ACF_OK);
    assert_true(norm == 0);
    /* A finite gradient whose square is not (in float it is finite: the sum is double). */
    acf_params_find(b.ps, "b1")->t.grad[7] = -ACF_REAL_MAX;
    acf_status status = acf_grad_norm(b.ps, &norm);
    if (sizeof(acf_real) == 8) {
        assert_int_equal(status, ACF_ENUMERIC);
        assert_non_null(strstr(acf_error(), "'b1' is -1.79769e+308 at row 7, column 0"));
    } else {
        assert_int_equal(status, ACF_OK);
        acf_assert_close(norm, (double)ACF_REAL_MAX, 1e-12, "norm");
    }
    close_bench(&b);
}

/* A gradient whose square overflows must not stop its weight forever. */
static void recovers_from_a_huge_gradient(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 1, false);
    acf_param *w = acf_params_find(b.ps, "w1");
    w->t.grad[0] = sizeof(acf_real) == 8 ? ACF_R(1e200) : ACF_R(1e25);
    for (int step = 1; step <= 2; step++)
        assert_int_equal(acf_adam_step(b.ps, &(acf_adam){0.1, 0.9, 0.5, 1e-8, 0}, step, 1), ACF_OK);
    assert_int_equal(acf_params_zero_grad(b.ps), ACF_OK);
    for (int step = 3; step <= 2500; step++)
        assert_int_equal(acf_adam_step(b.ps, &(acf_adam){0.1, 0.9, 0.5, 1e-8, 0}, step, 1), ACF_OK);
    assert_true(isfinite(b.ps->v[w->offset]) && b.ps->v[w->offset] < 1 && isfinite(w->t.data[0]));
    close_bench(&b);
}

static void clips_only_above_the_limit(void **state) {
    (void)state;
    assert_true(acf_clip_factor(0, 1) == 1 && acf_clip_factor(0.5, 1) == 1 && acf_clip_factor(1, 1) == 1);
    assert_true(acf_clip_factor(4, 1) == 0.25);
    assert_true(acf_clip_factor(4, 0) == 1); /* off */
}

static void refuses_settings_out_of_range(void **state) {
    (void)state;
    bench b;
    open_bench(&b, 1, false);
    const acf_adam bad[] = {
        {-0.1, 0.9, 0.999, 1e-8, 0}, {(double)NAN, 0.9, 0.999, 1e-8, 0},
        {0.1, 1, 0.999, 1e-8, 0},    {0.1, 0.9, -1, 1e-8, 0},
        {0.1, 0.9, 0.999, 0, 0},     {0.1, 0.9, 0.999, 1e-300, 0},
        {0.1, 0.9, 0.999, 1e-8, -1},
    };
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        assert_int_equal(acf_adam_step(b.ps, &bad[k], 1, 1), ACF_EUSAGE);
    const acf_adam good = {0.1, 0, 0, 1e-8, 0}; /* no moments: sign descent */
    assert_int_equal(acf_adam_step(b.ps, &good, 1, (double)NAN), ACF_EUSAGE);
    assert_int_equal(acf_adam_step(b.ps, &good, 0, 1), ACF_EUSAGE);
    assert_string_equal(acf_error(), "adam: step is 0; steps count from 1");
    assert_int_equal(acf_adam_step(b.ps, &good, 1, 1), ACF_OK);
    assert_int_equal(acf_ema_step(b.ps, 1.5), ACF_EUSAGE);
    close_bench(&b);
}

/* A set without parameters: every function succeeds. */
static void an_empty_set_is_fine(void **state) {
    (void)state;
    bench b;
    double norm;
    assert_int_equal(acf_device_open_cpu(1, &b.dev), ACF_OK);
    assert_int_equal(acf_params_create(b.dev, &b.ps), ACF_OK);
    assert_int_equal(acf_params_build(b.ps, 1, true), ACF_OK);
    assert_int_equal(acf_grad_norm(b.ps, &norm), ACF_OK);
    assert_true(norm == 0);
    assert_int_equal(acf_adam_step(b.ps, &(acf_adam){0.1, 0.9, 0.999, 1e-8, 0}, 1, 1), ACF_OK);
    assert_int_equal(acf_ema_step(b.ps, 0.9), ACF_OK);
    close_bench(&b);
}

static void refuses_a_set_for_inference(void **state) {
    (void)state;
    bench b;
    double norm;
    assert_int_equal(acf_device_open_cpu(1, &b.dev), ACF_OK);
    assert_int_equal(acf_params_create(b.dev, &b.ps), ACF_OK);
    assert_non_null(acf_param_add(b.ps, "w", ACF_INIT_CONST, 1, 1, (int64_t[]){3}));
    assert_int_equal(acf_params_zero_grad(b.ps), ACF_EUSAGE); /* not built at all */
    assert_int_equal(acf_params_build(b.ps, 1, false), ACF_OK);
    assert_int_equal(acf_params_zero_grad(b.ps), ACF_EUSAGE);
    assert_int_equal(acf_grad_norm(b.ps, &norm), ACF_EUSAGE);
    assert_int_equal(acf_ema_step(b.ps, 0.9), ACF_EUSAGE);
    assert_int_equal(acf_adam_step(b.ps, &(acf_adam){0.1, 0.9, 0.999, 1e-8, 0}, 1, 1), ACF_EUSAGE);
    assert_string_equal(acf_error(),
                        "adam: the parameters have no gradients; expected a set that was built for training");
    close_bench(&b);
}

/* ---- on another device ----------------------------------------------------------------------------------------- */

static void put(bench *there, const bench *here) {
    const size_t bytes = (size_t)here->ps->total * sizeof(acf_real);
    assert_int_equal(acf_device_copy(there->dev, there->ps->grad, here->ps->grad, bytes, ACF_TO_DEVICE), ACF_OK);
}

static void same_slab(const bench *there, const acf_real *slab, const acf_real *want, int64_t n, const char *what) {
    acf_real *found = acf_lab_fetch(there->dev, slab, n);
    for (int64_t i = 0; i < n; i++) acf_assert_close((double)found[i], (double)want[i], 2e-6, what);
    free(found);
}

/* Steps with numbers from the host, and steps with numbers from the device: both equal the CPU's. */
static void a_device_takes_the_same_steps(void **state) {
    (void)state;
    const acf_adam cfg = {.lr = 0.02, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6, .decay = 0.3};
    for (int way = 0; way < 2; way++) {
        bench here, there = {.dev = acf_test_device()};
        open_bench(&here, 2, true);
        build_set(&there, true);
        for (int64_t step = 1; step <= 6; step++) {
            double norm, again;
            draw_gradient(here.ps, step);
            put(&there, &here);
            assert_int_equal(acf_grad_norm(here.ps, &norm), ACF_OK);
            assert_int_equal(acf_adam_step(here.ps, &cfg, step, acf_clip_factor(norm, 0.5)), ACF_OK);
            const double beta = acf_ema_beta(0.9, step);
            assert_int_equal(acf_ema_step(here.ps, beta), ACF_OK);
            if (way == 0) {
                assert_int_equal(acf_grad_norm(there.ps, &again), ACF_OK);
                acf_assert_close(again, norm, 1e-12, "norm");
                assert_int_equal(acf_adam_step(there.ps, &cfg, step, acf_clip_factor(again, 0.5)), ACF_OK);
                assert_int_equal(acf_ema_step(there.ps, beta), ACF_OK);
            } else {
                const acf_pace now = {.lr = cfg.lr, .step = step};
                assert_int_equal(acf_device_copy(there.dev, there.ps->pace, &now, sizeof now, ACF_TO_DEVICE), ACF_OK);
                assert_int_equal(acf_optimise(there.ps, &cfg, 0.5, 0.9), ACF_OK);
            }
        }
        const int64_t n = here.ps->total;
        same_slab(&there, there.ps->value, here.ps->value, n, "value");
        same_slab(&there, there.ps->m, here.ps->m, n, "first moment");
        same_slab(&there, there.ps->v, here.ps->v, n, "second moment");
        same_slab(&there, there.ps->ema, here.ps->ema, n, "ema");
        acf_params_free(there.ps);
        close_bench(&here);
    }
}

/* A gradient that is not finite: the host function names it; the device function skips the step and counts it. */
static void a_device_skips_what_is_not_finite(void **state) {
    (void)state;
    const acf_adam cfg = {.lr = 0.02, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-6};
    bench here, there = {.dev = acf_test_device()};
    acf_pace now = {.lr = cfg.lr, .step = 1};
    double norm;
    open_bench(&here, 1, false);
    build_set(&there, false);
    draw_gradient(here.ps, 1);
    here.ps->grad[acf_params_find(here.ps, "w2")->offset + 7] = (acf_real)NAN;
    put(&there, &here);
    assert_int_equal(acf_grad_norm(there.ps, &norm), ACF_ENUMERIC);
    assert_string_equal(acf_error(), "the gradient of 'w2' is nan at row 1, column 2; lower the step size");
    assert_int_equal(acf_device_copy(there.dev, there.ps->pace, &now, sizeof now, ACF_TO_DEVICE), ACF_OK);
    assert_int_equal(acf_optimise(there.ps, &cfg, 1, 0.9), ACF_OK);
    assert_int_equal(acf_device_copy(there.dev, &now, there.ps->pace, sizeof now, ACF_TO_HOST), ACF_OK);
    assert_int_equal(acf_device_sync(there.dev), ACF_OK);
    assert_true(now.skipped == 1 && !now.finite);
    same_slab(&there, there.ps->value, here.ps->value, here.ps->total, "value");
    acf_params_free(there.ps);
    close_bench(&here);
}

ACF_DEVICE_TESTS(adam, cmocka_unit_test(a_device_takes_the_same_steps),
                 cmocka_unit_test(a_device_skips_what_is_not_finite))

ACF_TESTS(adam, cmocka_unit_test(refuses_a_set_for_inference), cmocka_unit_test(follows_the_formulas),
          cmocka_unit_test(decays_only_what_decays), cmocka_unit_test(finds_the_minimum_of_a_quadratic),
          cmocka_unit_test(gaps_stay_zero), cmocka_unit_test(same_bits_on_any_number_of_threads),
          cmocka_unit_test(names_a_gradient_that_is_not_finite), cmocka_unit_test(recovers_from_a_huge_gradient),
          cmocka_unit_test(clips_only_above_the_limit), cmocka_unit_test(refuses_settings_out_of_range),
          cmocka_unit_test(an_empty_set_is_fine))
