/* Tests of image_symmetry.h against the functions that make an image's copies. */
#include "image/image_symmetry.h"

#include "harness/check.h"
#include "image/image_ops.h"

#include <string.h>

enum { SIDE = 6, C = 3, P = SIDE * SIDE };

static void symmetries_match_the_copies(void **state) {
    (void)state;
    acf_image_symmetry s[ACF_IMAGE_SYMMETRIES];
    uint8_t in[P * C], moved[P * C], copy[P * C];
    for (int i = 0; i < P * C; i++) in[i] = (uint8_t)(i * 7);
    for (int rotate = 0; rotate < 2; rotate++)
        for (int flip = 0; flip < 2; flip++) {
            assert_int_equal(acf_image_symmetries(rotate, flip, s), (rotate ? 4 : 1) << flip);
            assert_true(s[0].quarters == 0 && !s[0].flip);
        }
    for (int k = 0; k < 8; k++) { /* s holds all 8, from the last iteration above */
        acf_image_move(s[k], SIDE, SIDE, C, in, moved);
        acf_image_rotate(copy, in, SIDE, SIDE, C, s[k].quarters);
        if (s[k].flip) acf_image_flip(copy, SIDE, SIDE, C);
        assert_memory_equal(moved, copy, sizeof copy);
        for (int j = 0; j < k; j++) assert_true(s[j].quarters != s[k].quarters || s[j].flip != s[k].flip);
    }
}

static void images_need_not_be_square_to_be_flipped(void **state) {
    (void)state;
    const uint8_t in[] = {1, 2, 3, 4, 5, 6}, left[] = {3, 2, 1, 6, 5, 4}, around[] = {6, 5, 4, 3, 2, 1};
    uint8_t out[6];
    acf_image_move((acf_image_symmetry){0, true}, 2, 3, 1, in, out);
    assert_memory_equal(out, left, 6);
    acf_image_move((acf_image_symmetry){2, false}, 2, 3, 1, in, out);
    assert_memory_equal(out, around, 6);
}

/* Any nonzero number marks a given pixel. */
static void symmetric_masks_are_recognised(void **state) {
    (void)state;
    uint8_t top[P], left[P], centre[P];
    for (int p = 0; p < P; p++) {
        const int y = p / SIDE, x = p % SIDE;
        top[p] = (uint8_t)(y < 3 ? 0 : 1 + x), left[p] = x >= 3, centre[p] = !(y > 1 && y < 4 && x > 1 && x < 4);
    }
    assert_true(acf_image_symmetric((acf_image_symmetry){0, true}, SIDE, SIDE, top));
    assert_false(acf_image_symmetric((acf_image_symmetry){2, false}, SIDE, SIDE, top));
    assert_false(acf_image_symmetric((acf_image_symmetry){0, true}, SIDE, SIDE, left));
    assert_true(acf_image_symmetric((acf_image_symmetry){2, true}, SIDE, SIDE, left));
    assert_true(acf_image_symmetric((acf_image_symmetry){3, true}, SIDE, SIDE, centre));
}

ACF_TESTS(image_symmetry, cmocka_unit_test(symmetries_match_the_copies),
          cmocka_unit_test(images_need_not_be_square_to_be_flipped), cmocka_unit_test(symmetric_masks_are_recognised))
