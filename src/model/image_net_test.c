/* Properties of the image model's flow and gradients for every kind of mask. Densities are in image_truth_test.c. */
#include "model/image_net.h"

#include "harness/image_lab.h"
#include "image/image_map.h"
#include "ops/adam.h"
#include "ops/arith.h"
#include "ops/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void must(acf_tape *t) {
    if (acf_tape_status(t)) fail_msg("%s", acf_error());
}

/* ---- transformations --------------------------------------------------------------------------------------------- */

/* inverse(forward(x)) is x. Given and absent pixels pass through z bit for bit, and some modelled pixel changes. */
static void check_inverse(acf_image_lab *l, acf_image_mask mask) {
    acf_image_lab_mask(l, mask);
    acf_tape_begin(l->t, false);
    acf_image_view *v = acf_image_net_view(l->t, l->net, &l->q, NULL);
    acf_tensor *logdet, *z = acf_image_net_forward(l->t, v, &logdet), *x = acf_image_net_inverse(l->t, v, z);
    must(l->t);
    int64_t changed = 0, modelled = 0;
    for (int64_t i = 0; i < acf_tensor_count(z); i++) {
        const acf_real was = l->role[i / l->C] != ACF_PIXEL_ABSENT ? l->x[i] : 0;
        if (acf_image_lab_modelled(l, i)) {
            acf_assert_close((double)x->data[i], (double)was, sizeof(acf_real) == 8 ? 1e-12 : 1e-5, "x again");
            modelled++, changed += z->data[i] != was;
        } else {
            assert_memory_equal(&z->data[i], &was, sizeof was);
            assert_memory_equal(&x->data[i], &was, sizeof was);
        }
    }
    assert_int_equal(changed, modelled);
    for (int64_t n = 0; n < l->N; n++)
        assert_true(isfinite(logdet->data[n]) && (logdet->data[n] != 0) == (modelled > 0));
}

static void inverts_for_every_mask(void **state) {
    (void)state;
    const struct {
        int64_t side, C;
        int scales;
    } kinds[] = {{4, 1, 1}, {4, 3, 3}, {8, 1, 3}, {6, 3, 2}};
    for (int k = 0; k < 4; k++) {
        acf_image_lab l;
        acf_image_sizes s = acf_image_lab_sizes(kinds[k].side, kinds[k].C, kinds[k].scales, &acf_image_normal);
        acf_image_lab_open(&l, 2, &s, 3, ACF_IMAGE_NONE, 0.3);
        for (int mask = 0; mask < ACF_IMAGE_MASKS; mask++) check_inverse(&l, (acf_image_mask)mask);
        acf_image_lab_close(&l);
    }
}

/* log|det| of an (n,n) matrix, by elimination. */
static double log_determinant(double *a, int n) {
    double sum = 0;
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k; i < n; i++)
            if (fabs(a[i * n + k]) > fabs(a[best * n + k])) best = i;
        for (int j = 0; j < n; j++) {
            const double swap = a[k * n + j];
            a[k * n + j] = a[best * n + j], a[best * n + j] = swap;
        }
        sum += log(fabs(a[k * n + k]));
        for (int i = k + 1; i < n; i++)
            for (int j = n - 1; j >= k; j--) a[i * n + j] -= a[i * n + k] / a[k * n + k] * a[k * n + j];
    }
    return sum;
}

/* z of the only image, and its log-determinant. */
static double forward_once(acf_image_lab *l, double *z) {
    acf_tape_begin(l->t, false);
    acf_tensor *logdet, *out = acf_image_net_forward(l->t, acf_image_net_view(l->t, l->net, &l->q, NULL), &logdet);
    must(l->t);
    for (int64_t i = 0; i < acf_tensor_count(out); i++) z[i] = (double)out->data[i];
    return (double)logdet->data[0];
}

static void check_jacobian(acf_image_lab *l, acf_image_mask mask) {
    enum { MOST = 48 };
    double z[2][MOST], jacobian[MOST * MOST];
    int at[MOST], n = 0;
    const double h = 1e-5;
    acf_image_lab_mask(l, mask);
    for (int i = 0; i < l->H * l->W * l->C; i++)
        if (acf_image_lab_modelled(l, i)) at[n++] = i;
    const double logdet = forward_once(l, z[0]);
    for (int j = 0; j < n; j++) {
        const acf_real was = l->x[at[j]];
        for (int side = 0; side < 2; side++) {
            l->x[at[j]] = was + (acf_real)(side ? h : -h);
            forward_once(l, z[side]);
        }
        l->x[at[j]] = was;
        for (int i = 0; i < n; i++) jacobian[i * n + j] = (z[1][at[i]] - z[0][at[i]]) / (2 * h);
    }
    acf_assert_close(logdet, log_determinant(jacobian, n), 1e-7, "log-determinant");
}

static void logdet_is_that_of_the_jacobian(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("differences are taken in double");
    for (int64_t C = 1; C <= 3; C += 2) {
        acf_image_lab l;
        acf_image_sizes s = acf_image_lab_sizes(4, C, 3, &acf_image_normal);
        acf_image_lab_open(&l, 1, &s, 1, ACF_IMAGE_NONE, 0.3);
        for (int mask = 0; mask < ACF_IMAGE_MASKS; mask++) check_jacobian(&l, (acf_image_mask)mask);
        acf_image_lab_close(&l);
    }
}

/* Every observed pixel affects z of the modelled ones, wherever both are: no scale hides a given pixel. */
static void observed_pixels_are_seen(void **state) {
    (void)state;
    acf_image_lab l;
    acf_image_sizes s = acf_image_lab_sizes(4, 1, 3, &acf_image_normal);
    acf_image_lab_open(&l, 1, &s, 1, ACF_IMAGE_ONE, 0.5); /* (0,3) is modelled */
    double before[16], after[16];
    forward_once(&l, before);
    for (int i = 0; i < 16; i++) {
        if (i == 3) continue;
        const acf_real was = l.x[i];
        l.x[i] += 1;
        forward_once(&l, after);
        if (after[3] == before[3]) fail_msg("pixel %d is given, but z does not depend on it", i);
        l.x[i] = was;
    }
    acf_image_lab_close(&l);
}

/* A best guess depends on every given pixel and on no guessed one. The pixelcnn too, if it has a network for its
 * mean. */
static void guesses_depend_on_given_pixels_only(void **state) {
    (void)state;
    enum { SIDE = 12, PIXELS = SIDE * SIDE, HERE = PIXELS - 1 };
    for (int k = 1; acf_image_like_kinds[k]; k++) {
        acf_image_lab l;
        acf_image_sizes s = acf_image_lab_sizes(SIDE, 1, 0, acf_image_like_kinds[k]);
        s.guess = true, s.embed_blocks = s.like_blocks = 0;
        acf_image_lab_open(&l, 1, &s, 1, ACF_IMAGE_ALL, 0.5);
        acf_real before[PIXELS], after[PIXELS];
        l.role[HERE] = l.role[PIXELS / 2] = 0;
        for (int at = -1; at < PIXELS; at++) {
            const acf_real was = at < 0 ? 0 : l.x[at];
            if (at >= 0) l.x[at] += 1;
            acf_tape_begin(l.t, false);
            assert_int_equal(
                acf_image_net_guess(l.t, acf_image_net_view(l.t, l.net, &l.q, NULL), at < 0 ? before : after), ACF_OK);
            if (at >= 0 && (before[HERE] != after[HERE]) != l.role[at])
                fail_msg("%s: pixel %d is %s, and the guess %s on it", s.like->name, at,
                         l.role[at] ? "given" : "hidden", l.role[at] ? "does not depend" : "depends");
            if (at >= 0) l.x[at] = was;
        }
        acf_image_lab_close(&l);
    }
}

/* The same for pixels that left at an earlier scale. (8,13) leaves after the first scale. Networks with a reach of
 * one pixel see it from (8,8), the only modelled pixel, at the third scale only. */
static void deeper_scales_see_finished_pixels(void **state) {
    (void)state;
    enum { SIDE = 16, HERE = 8 * SIDE + 8, THERE = 8 * SIDE + 13 };
    acf_image_lab l;
    acf_image_sizes s = acf_image_lab_sizes(SIDE, 1, 3, &acf_image_normal);
    s.blocks = 0;
    acf_image_lab_open(&l, 1, &s, 1, ACF_IMAGE_ALL, 0.5);
    l.role[HERE] = 0;
    double before[SIDE * SIDE], after[SIDE * SIDE];
    forward_once(&l, before);
    l.x[THERE] += 1;
    forward_once(&l, after);
    assert_true(before[HERE] != after[HERE]);
    acf_image_lab_close(&l);
}

/* Absent pixels may hold any value. */
static void missing_pixels_are_never_read(void **state) {
    (void)state;
    for (int k = 0; acf_image_like_kinds[k]; k++) {
        acf_image_lab l;
        acf_image_sizes s = acf_image_lab_sizes(4, 1, 2, acf_image_like_kinds[k]);
        acf_image_lab_open(&l, 1, &s, 2, ACF_IMAGE_PADDED, 0.3);
        double logp[2][2];
        for (int pass = 0; pass < 2; pass++) {
            acf_tape_begin(l.t, false);
            acf_tensor *y = acf_image_net_logp(l.t, acf_image_net_view(l.t, l.net, &l.q, NULL));
            must(l.t);
            for (int n = 0; n < 2; n++) logp[pass][n] = (double)y->data[n];
            for (int64_t i = 0; i < 32; i++)
                if (l.role[i] == ACF_PIXEL_ABSENT) l.x[i] = (acf_real)NAN;
        }
        assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
        acf_image_lab_close(&l);
    }
}

/* An image without modelled pixels has log p = 0, and its draw and guess change nothing. */
static void images_without_modelled_pixels_stay(void **state) {
    (void)state;
    for (int k = 0; acf_image_like_kinds[k]; k++) {
        acf_image_lab l;
        acf_image_sizes s = acf_image_lab_sizes(4, 3, 2, acf_image_like_kinds[k]);
        acf_image_lab_open(&l, 1, &s, 2, ACF_IMAGE_ALL, 0.3);
        acf_real out[2 * 48];
        memset(out, 0, sizeof out);
        acf_tape_begin(l.t, false);
        acf_image_view *v = acf_image_net_view(l.t, l.net, &l.q, NULL);
        acf_tensor *y = acf_image_net_logp(l.t, v);
        must(l.t);
        assert_true(y->data[0] == 0 && y->data[1] == 0);
        assert_int_equal(acf_image_net_draw(l.t, v, &(acf_draw){.seed = 1}, out), ACF_OK);
        assert_int_equal(acf_image_net_guess(l.t, v, out), ACF_OK);
        for (int i = 0; i < 96; i++) assert_true(out[i] == 0);
        acf_image_lab_close(&l);
    }
}

static void refuses_sizes_that_cannot_be_squeezed(void **state) {
    (void)state;
    acf_device *dev;
    acf_image_net *net;
    acf_image_sizes s = acf_image_lab_sizes(28, 1, 4, &acf_image_normal);
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    assert_int_equal(acf_image_net_declare(dev, &s, &net), ACF_EUSAGE);
    assert_string_equal(
        acf_error(),
        "images of 28 x 28 pixels cannot be halved 3 times, as 4 scales need: pad them to multiples of 8, or use fewer scales");
    s = acf_image_lab_sizes(0, 1, 1, &acf_image_normal);
    assert_int_equal(acf_image_net_declare(dev, &s, &net), ACF_EUSAGE);
    assert_string_equal(acf_error(), "images of 0 x 0 pixels and 1 channels; expected 1 to 4096, and 1 to 4");
    acf_device_close(dev);
}

/* ---- gradients, threads ------------------------------------------------------------------------------------------ */

static acf_knots of_guess, of_truth;

/* Compares guesses as parts of the full range, by the map of a histogram. */
static void decode_by_bells(acf_image_lab *l) {
    const int64_t count[8] = {700, 20, 10, 10, 30, 40, 10, 50};
    acf_image_dequantiser dequantiser;
    acf_image_map *map;
    acf_image_dequantiser_fit(3, count, &dequantiser);
    assert_int_equal(acf_image_map_gaussian(3, &dequantiser, &map), ACF_OK);
    acf_image_map_knots(map, true, &of_guess), acf_image_map_knots(map, false, &of_truth);
    acf_image_net_decode(l->net, &of_guess, &of_truth);
    acf_release(map);
}

/* The error of guesses is that of the decoded values, summed over the modelled numbers. */
static void guesses_are_compared_as_levels(void **state) {
    (void)state;
    acf_image_lab l;
    const acf_image_sizes s = acf_image_lab_sizes(4, 1, 2, &acf_image_gaussian);
    acf_image_lab_open(&l, 1, &s, 2, ACF_IMAGE_SOME, 0.1);
    const int64_t n = l.N * l.H * l.W * l.C;
    acf_real guess[64], error[2], x[64];
    for (int decoded = 0; decoded < 2; decoded++) {
        if (decoded) decode_by_bells(&l);
        acf_tape_begin(l.t, false);
        memcpy(guess, l.x, (size_t)n * sizeof *guess);
        if (acf_image_net_guess(l.t, acf_image_net_view(l.t, l.net, &l.q, NULL), guess)) fail_msg("%s", acf_error());
        acf_tape_begin(l.t, false);
        memcpy(error, acf_image_net_guess_error(l.t, acf_image_net_view(l.t, l.net, &l.q, NULL))->data, sizeof error);
        memcpy(x, l.x, (size_t)n * sizeof *x);
        if (decoded)
            acf_polyline_fwd_cpu(l.dev, guess, guess, &of_guess, n), acf_polyline_fwd_cpu(l.dev, x, x, &of_truth, n);
        for (int64_t i = 0; i < l.N; i++) {
            double sum = 0;
            for (int64_t k = i * n / l.N; k < (i + 1) * n / l.N; k++)
                if (acf_image_lab_modelled(&l, k))
                    sum += ((double)guess[k] - (double)x[k]) * ((double)guess[k] - (double)x[k]);
            acf_assert_close((double)error[i], sum, 1e-5 * (1 + sum), "squared error");
        }
    }
    acf_image_lab_close(&l);
}

/* -mean log p + best-guess error, as in training. */
static acf_tensor *loss_of(acf_image_lab *l, const acf_pass *pass) {
    acf_image_view *v = acf_image_net_view(l->t, l->net, &l->q, pass);
    acf_tensor *loss = acf_scale(l->t, -1, acf_mean(l->t, acf_image_net_logp(l->t, v))),
               *error = acf_image_net_guess_error(l->t, v);
    return error ? acf_axpy(l->t, 0.1, acf_mean(l->t, error), loss) : loss;
}

/* Numerical derivative of the loss by one parameter along a random direction; *exact: the same from its gradient. */
static double along(acf_image_lab *l, const acf_param *p, const acf_real *grad, uint64_t direction, double *exact) {
    const int64_t n = acf_tensor_count(&p->t);
    const double h = 5e-7;
    double loss[2];
    *exact = 0;
    for (int64_t i = 0; i < n; i++) *exact += (double)grad[i] * acf_lab_random(direction, i, -1, 1);
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < n; i++)
            p->t.data[i] += (acf_real)((side ? 2 * h : -h) * acf_lab_random(direction, i, -1, 1));
        acf_tape_begin(l->t, false);
        acf_tensor *y = loss_of(l, NULL);
        must(l->t);
        loss[side] = (double)y->data[0];
    }
    for (int64_t i = 0; i < n; i++) p->t.data[i] -= (acf_real)(h * acf_lab_random(direction, i, -1, 1));
    return (loss[1] - loss[0]) / (2 * h);
}

/* With thousands of ReLUs a difference sometimes straddles a kink, so one of three directions must agree. */
static void check_parameter(acf_image_lab *l, const acf_param *p, const acf_real *grad) {
    double exact = 0, numeric = 0;
    for (uint64_t direction = 31; direction < 34; direction++) {
        numeric = along(l, p, grad, direction, &exact);
        if (fabs(exact - numeric) <= 1e-6 * (1 + fabs(numeric))) return;
    }
    fail_msg("%s: the derivative is %.10g, differences say %.10g", p->name, exact, numeric);
}

static void gradients_of_all_parameters(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("gradient checks run in double");
    for (int k = 0; acf_image_like_kinds[k]; k++) {
        acf_image_lab l;
        acf_image_sizes s = acf_image_lab_sizes(k ? 6 : 4, k == 2 ? 3 : 1, 2, acf_image_like_kinds[k]);
        s.guess = true;
        acf_image_lab_open(&l, 1, &s, 3, ACF_IMAGE_SOME, 0.1);
        decode_by_bells(&l);
        acf_params *ps = acf_image_net_params(l.net);
        assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
        acf_tape_begin(l.t, true);
        if (acf_tape_backward(l.t, loss_of(&l, NULL))) fail_msg("%s", acf_error());
        acf_real *grad = malloc((size_t)ps->total * sizeof *grad);
        assert_non_null(grad);
        memcpy(grad, ps->grad, (size_t)ps->total * sizeof *grad);
        for (int i = 0; i < ps->n; i++) check_parameter(&l, ps->list[i], grad + ps->list[i]->offset);
        free(grad);
        acf_image_lab_close(&l);
    }
}

/* A hash of loss, gradients and draws on so many threads. */
static uint64_t bits_of(const acf_image_like_kind *like, int threads) {
    acf_image_lab l;
    acf_image_sizes s = acf_image_lab_sizes(8, 1, 3, like);
    s.width = 16, s.like_width = 16;
    acf_image_lab_open(&l, threads, &s, 24, ACF_IMAGE_SOME, 0.1);
    acf_params *ps = acf_image_net_params(l.net);
    assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
    acf_tape_begin(l.t, true);
    const acf_pass pass = {.dropout = 0.2, .seed = 3, .step = 1};
    if (acf_tape_backward(l.t, loss_of(&l, &pass))) fail_msg("%s", acf_error());
    acf_tape_begin(l.t, false);
    acf_real *out = calloc((size_t)(24 * 64), sizeof *out);
    assert_non_null(out);
    assert_int_equal(acf_image_net_draw(l.t, acf_image_net_view(l.t, l.net, &l.q, NULL), &(acf_draw){.seed = 8}, out),
                     ACF_OK);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int pass2 = 0; pass2 < 2; pass2++) {
        const unsigned char *p = pass2 ? (const unsigned char *)out : (const unsigned char *)ps->grad;
        const size_t n = (size_t)(pass2 ? 24 * 64 : ps->total) * sizeof(acf_real);
        for (size_t i = 0; i < n; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    }
    free(out);
    acf_image_lab_close(&l);
    return hash;
}

static void same_bits_for_any_thread_count(void **state) {
    (void)state;
    for (int k = 1; acf_image_like_kinds[k]; k++) {
        const uint64_t one = bits_of(acf_image_like_kinds[k], 1);
        for (int threads = 2; threads <= 3; threads++)
            if (bits_of(acf_image_like_kinds[k], threads) != one)
                fail_msg("%s: other bits on %d threads", acf_image_like_kinds[k]->name, threads);
    }
}

/* ---- learning ---------------------------------------------------------------------------------------------------- */

/* Images of a slanted edge; the given pixels determine its position. */
static void draw_edges(acf_image_lab *l, int step) {
    for (int64_t i = 0; i < l->N * 64; i++) {
        const int64_t n = i / 64, h = i / 8 % 8, w = i % 8, id = step * l->N + n;
        const double slope = acf_lab_random(1, id, -1, 1), at = acf_lab_random(2, id, 2, 6);
        const double noise = acf_rng_normal((acf_rng_counter){
            .seed = 3, .row = (uint64_t)id, .column = (uint32_t)(h * 8 + w), .stream = ACF_STREAM_TEST});
        l->x[i] = (acf_real)(((double)w - at > slope * ((double)h - 3.5) ? 1 : -1) + 0.1 * noise);
        l->role[i] = acf_lab_random(4, id * 64 + h * 8 + w, 0, 1) < 0.5;
    }
}

/* For comparison: independent numbers with the right mean and variance have 1.42 nats each. */
static double train(const acf_image_sizes *s, int steps) {
    acf_image_lab l;
    double nll = 0, count = 0;
    acf_image_lab_open(&l, 1, s, 32, ACF_IMAGE_NONE, 0);
    acf_params *ps = acf_image_net_params(l.net);
    for (int step = 1; step <= steps; step++) {
        draw_edges(&l, step);
        double norm = 0, size = 0;
        for (int64_t i = 0; i < l.N * 64; i++) size += !l.role[i];
        assert_int_equal(acf_params_zero_grad(ps), ACF_OK);
        acf_tape_begin(l.t, true);
        acf_tensor *loss =
            acf_scale(l.t, -(double)l.N / size,
                      acf_mean(l.t, acf_image_net_logp(l.t, acf_image_net_view(l.t, l.net, &l.q, NULL))));
        if (acf_tape_backward(l.t, loss) || acf_grad_norm(ps, &norm)) fail_msg("%s", acf_error());
        const acf_adam adam = {.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
        assert_int_equal(acf_adam_step(ps, &adam, step, acf_clip_factor(norm, 1)), ACF_OK);
        if (step > steps - 10) nll += (double)loss->data[0], count += 1;
    }
    acf_image_lab_close(&l);
    return nll / count;
}

static void it_learns(void **state) {
    (void)state;
    if (sizeof(acf_real) == 8) acf_skip("training runs in float");
    acf_image_sizes s = {.H = 8, .W = 8, .C = 1, .scales = 2, .blocks = 1, .width = 12, .like = &acf_image_normal};
    const double flow = train(&s, 150);
    acf_image_sizes p = {.H = 8,
                         .W = 8,
                         .C = 1,
                         .like = &acf_image_pixelcnn,
                         .like_width = 12,
                         .like_blocks = 2,
                         .embed_blocks = 1,
                         .components = 3};
    const double pixel = train(&p, 150);
    if (!(flow < 0.5)) fail_msg("the flow has %.3f nats a number after 150 steps; expected below 0.5", flow);
    if (!(pixel < 0.5)) fail_msg("the pixelcnn has %.3f nats a number after 150 steps; expected below 0.5", pixel);
    print_message("nats a number after 150 steps: flow %.3f, pixelcnn %.3f\n", flow, pixel);
}

ACF_TESTS(image_net, cmocka_unit_test(inverts_for_every_mask), cmocka_unit_test(logdet_is_that_of_the_jacobian),
          cmocka_unit_test(observed_pixels_are_seen), cmocka_unit_test(guesses_depend_on_given_pixels_only),
          cmocka_unit_test(deeper_scales_see_finished_pixels), cmocka_unit_test(missing_pixels_are_never_read),
          cmocka_unit_test(images_without_modelled_pixels_stay),
          cmocka_unit_test(refuses_sizes_that_cannot_be_squeezed), cmocka_unit_test(guesses_are_compared_as_levels),
          cmocka_unit_test(gradients_of_all_parameters), cmocka_unit_test(same_bits_for_any_thread_count),
          cmocka_unit_test(it_learns))
