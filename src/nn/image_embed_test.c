/* What is observed of an image: sizes that do not halve, and that every pixel knows of every other. */
#include "nn/image_embed.h"

#include "harness/lab.h"

#include <math.h>
#include <string.h>

/* How the embedding of the last pixel changes when the first of H x W, which is given, does; by what at most over its channels. */
static double reach(int64_t H, int64_t W) {
    enum { E = 6, MOST = 24 * 24 };
    acf_lab l;
    acf_params *ps;
    acf_image_embed e;
    acf_real given[MOST] = {0}, b[MOST] = {0}, before[E];
    double most = 0;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 3);
    assert_int_equal(acf_params_create(l.dev, &ps), ACF_OK);
    if (acf_image_embed_declare(&e, ps, "net", &(acf_image_embed_shape){H, W, 1, E, 0}) || acf_params_build(ps, 3, false)) fail_msg("%s", acf_error());
    b[0] = 1;
    for (int k = 0; k < 2; k++) {
        given[0] = (acf_real)(1 + k);
        acf_tape_begin(l.t, false);
        const int64_t dim[4] = {1, H, W, 1};
        const acf_tensor *y = acf_image_embed_run(l.t, &e, acf_tensor_input(l.t, given, 4, dim), acf_tensor_input(l.t, b, 4, dim));
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

static void pixels_know_of_those_far_away(void **state) {
    (void)state;
    static const int64_t side[][2] = {{24, 24}, {21, 13}, {7, 24}, {4, 3}, {5, 1}, {1, 1}};
    for (int k = 0; k < 6; k++)
        if (!(reach(side[k][0], side[k][1]) > 1e-6))
            fail_msg("%lld x %lld: the last pixel's embedding knows nothing of the first", (long long)side[k][0], (long long)side[k][1]);
}

ACF_TESTS(image_embed, cmocka_unit_test(pixels_know_of_those_far_away))
