/* Tests of image_passes.h: every hidden pixel has one pass, coarse before fine; and the passes drawn in training. */
#include "image/image_passes.h"

#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { H = 13, W = 18, P = H * W };

/* Whether (y,x) is in lattice q: for q = 2l every 2^l-th pixel of every 2^l-th row; for 2l + 1 every other one of
 * those, as on a chessboard. */
static int of_lattice(int q, int y, int x) {
    const int step = 1 << q / 2;
    return y % step == 0 && x % step == 0 && (q % 2 == 0 || (y / step + x / step) % 2 == 0);
}

/* All passes up to k form exactly a lattice, each with twice as many pixels as the one before. */
static void passes_are_finer_and_finer_lattices(void **state) {
    (void)state;
    for (int R = 1; R <= ACF_IMAGE_PASSES_MAX; R++) {
        const int first = 1 << (R - 1) / 2 >> 1; /* the row and column of the first pixel of pass 0 */
        for (int y = 0; y<600; y += R> 12 ? 7 : 1)
            for (int x = 0; x < 40; x++) {
                int expected = 0;
                while (!of_lattice(R - 1 - expected, y + first, x + first)) expected++;
                assert_int_equal(acf_image_pass_of(R, y, x), expected);
            }
        assert_int_equal(acf_image_pass_of(R, first, first + (2 << (R - 1) / 2)), 0);
    }
    static const char five[6][9] = {"14241424", "43434343", "24042404",
                                    "43434343", "14241424", "43434343"}; /* the picture in image_passes.h */
    for (int y = 0; y < 6; y++)
        for (int x = 0; x < 8; x++) assert_int_equal(acf_image_pass_of(5, y, x), five[y][x] - '0');
}

/* Over all passes each hidden pixel is modelled once; before, it is left out, after, given. Given pixels always are,
 * for any nonzero number. */
static void every_hidden_pixel_has_one_pass(void **state) {
    (void)state;
    uint8_t b[P], role[P];
    int target[P] = {0};
    for (int i = 0; i < P; i++) b[i] = (uint8_t)(i % 3 ? 0 : 1 + i % 7);
    for (int S = 1; S <= 5; S++) {
        memset(target, 0, sizeof target);
        for (int k = 0; k < S; k++) {
            int64_t n = 0;
            const int64_t said = acf_image_pass(S, k, H, W, b, role);
            for (int i = 0; i < P; i++) {
                const int expected = b[i] || target[i]                         ? ACF_PIXEL_GIVEN
                                     : acf_image_pass_of(S, i / W, i % W) == k ? ACF_PIXEL_ASKED
                                                                               : ACF_PIXEL_ABSENT;
                assert_int_equal(role[i], expected);
                if (role[i] == ACF_PIXEL_ASKED) target[i]++, n++;
            }
            assert_int_equal(said, n);
        }
        for (int i = 0; i < P; i++) assert_int_equal(target[i], !b[i]);
    }
}

/* A quarter of the images is a single pass. The others are one pass, each equally often, with the expected weight.
 * Passes without modelled pixels do not occur. */
static void training_draws_every_pass(void **state) {
    (void)state;
    enum { S = 4, TRIES = 8000 };
    uint8_t hole[P], b[P], role[S][P];
    int seen[S] = {0}, whole = 0;
    int64_t n[S], hidden = 0;
    for (int i = 0; i < P; i++) {
        const int own = acf_image_pass_of(S, i / W, i % W);
        hole[i] = own == 1 || i % 5 == 0; /* pass 1 has no hidden pixels */
        hidden += !hole[i];
    }
    for (int k = 0; k < S; k++) n[k] = acf_image_pass(S, k, H, W, hole, role[k]);
    for (int t = 0; t < TRIES; t++) {
        memcpy(b, hole, P);
        const double weight = acf_image_pass_draw(S, (acf_rng_counter){3, (uint64_t)t, ACF_STREAM_MASK, 0, 5}, H, W, b);
        int k = 0;
        if (memcmp(b, hole, P) == 0) {
            assert_true(weight == 1);
            whole++;
            continue;
        }
        while (k < S && memcmp(b, role[k], P)) k++;
        assert_true(k < S && k != 1);
        assert_true(fabs(pow(weight, 4.0 / 3) * (double)n[k] - (double)hidden) < 1e-9 * (double)hidden);
        seen[k]++;
    }
    assert_true(abs(whole - TRIES / 4) < 4 * sqrt(TRIES / 4.0));
    for (int k = 0; k < S; k++) assert_true(k == 1 ? seen[k] == 0 : abs(seen[k] - TRIES / 4) < 4 * sqrt(TRIES / 4.0));
}

static void an_image_without_hidden_pixels_is_unchanged(void **state) {
    (void)state;
    uint8_t b[P];
    memset(b, 1, P);
    for (int t = 0; t < 20; t++)
        assert_true(acf_image_pass_draw(3, (acf_rng_counter){3, (uint64_t)t, ACF_STREAM_MASK, 0, 5}, H, W, b) == 1);
    for (int i = 0; i < P; i++) assert_int_equal(b[i], 1);
}

ACF_TESTS(image_passes, cmocka_unit_test(passes_are_finer_and_finer_lattices),
          cmocka_unit_test(every_hidden_pixel_has_one_pass), cmocka_unit_test(training_draws_every_pass),
          cmocka_unit_test(an_image_without_hidden_pixels_is_unchanged))
