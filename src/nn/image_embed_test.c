/* Embedding of the observed part of an image: odd sizes, dependence of every pixel on every other, and the effect of
 * deep coarse maps. */
#include "nn/image_embed.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

/* The largest change over channels of the last pixel's embedding when the first of H x W pixels, which is given,
 * changes. */
static double reach(int64_t H, int64_t W) {
    enum { E = 6, MOST = 24 * 24 };
    acf_lab l;
    acf_params *ps;
    acf_image_embed e;
    acf_real given[MOST] = {0}, b[MOST] = {0}, before[E];
    double most = 0;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 3);
    assert_int_equal(acf_params_create(l.dev, &ps), ACF_OK);
    if (acf_image_embed_declare(&e, ps, "net", &(acf_image_embed_shape){H, W, 1, E, 0}) ||
        acf_params_build(ps, 3, false))
        fail_msg("%s", acf_error());
    b[0] = 1;
    for (int k = 0; k < 2; k++) {
        given[0] = (acf_real)(1 + k);
        acf_tape_begin(l.t, false);
        const int64_t dim[4] = {1, H, W, 1};
        const acf_tensor *y =
            acf_image_embed_run(l.t, &e, acf_tensor_input(l.t, given, 4, dim), acf_tensor_input(l.t, b, 4, dim));
        if (acf_tape_status(l.t)) fail_msg("%s", acf_error());
        assert_true(y->dim[0] == 1 && y->dim[1] == H && y->dim[2] == W && y->dim[3] == E);
        const acf_real *last = y->data + (H * W - 1) * E;
        for (int c = 0; k && c < E; c++) most = fmax(most, fabs((double)(last[c] - before[c])));
        memcpy(before, last, sizeof before);
    }
    acf_params_free(ps);
    acf_lab_close(&l);
    return most;
}

static void distant_pixels_affect_each_other(void **state) {
    (void)state;
    static const int64_t side[][2] = {{24, 24}, {21, 13}, {7, 24}, {4, 3}, {5, 1}, {1, 1}};
    for (int k = 0; k < 6; k++)
        if (!(reach(side[k][0], side[k][1]) > 1e-6))
            fail_msg("%lld x %lld: the last pixel's embedding does not depend on the first", (long long)side[k][0],
                     (long long)side[k][1]);
}

/* Of an image of 12 x 12 pixels with every third one missing; weights are those of seed 3, and those of the deep
 * blocks' last layers are `last`. */
static void embed(int deep, double last, acf_real *out) {
    enum { E = 4, S = 12, P = S * S };
    acf_lab l;
    acf_params *ps;
    acf_image_embed e;
    acf_real given[P], b[P];
    const int64_t dim[4] = {1, S, S, 1};
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 3);
    assert_int_equal(acf_params_create(l.dev, &ps), ACF_OK);
    if (acf_image_embed_declare(&e, ps, "net", &(acf_image_embed_shape){S, S, 1, E, 1, deep}) ||
        acf_params_build(ps, 3, false))
        fail_msg("%s", acf_error());
    assert_int_equal(e.levels, 2);
    for (int k = 0; k < P; k++) b[k] = (acf_real)(k % 3 > 0), given[k] = b[k] * (acf_real)acf_lab_random(8, k, -1, 1);
    for (int k = 0; k < e.levels * ACF_EMBED_WAYS * deep; k++) {
        const acf_conv_layer *back = &e.block[k / (2 * deep)][k / deep % 2][k % deep].back;
        for (int c = 0; c < E; c++) assert_true(back->g->t.data[c] == 0), back->g->t.data[c] = (acf_real)last;
    }
    acf_tape_begin(l.t, false);
    const acf_tensor *y =
        acf_image_embed_run(l.t, &e, acf_tensor_input(l.t, given, 4, dim), acf_tensor_input(l.t, b, 4, dim));
    if (acf_tape_status(l.t)) fail_msg("%s", acf_error());
    memcpy(out, y->data, P * E * sizeof *out);
    acf_params_free(ps);
    acf_lab_close(&l);
}

/* Training of a model without them can go on with them. */
static void deep_blocks_start_as_the_identity(void **state) {
    (void)state;
    acf_real plain[144 * 4], deep[144 * 4], once[144 * 4], twice[144 * 4];
    embed(0, 0, plain), embed(2, 0, deep), embed(1, 0.5, once), embed(2, 0.5, twice);
    assert_memory_equal(plain, deep, sizeof plain);
    assert_memory_not_equal(plain, once, sizeof plain);
    assert_memory_not_equal(once, twice, sizeof once);
}

static void refuses_too_many_deep_blocks(void **state) {
    (void)state;
    acf_lab l;
    acf_params *ps;
    acf_image_embed e;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 3);
    assert_int_equal(acf_params_create(l.dev, &ps), ACF_OK);
    assert_int_equal(
        acf_image_embed_declare(&e, ps, "net", &(acf_image_embed_shape){8, 8, 1, 4, 1, ACF_EMBED_DEEP + 1}),
        ACF_EUSAGE);
    acf_params_free(ps);
    acf_lab_close(&l);
}

ACF_TESTS(image_embed, cmocka_unit_test(distant_pixels_affect_each_other),
          cmocka_unit_test(deep_blocks_start_as_the_identity), cmocka_unit_test(refuses_too_many_deep_blocks))
