/* Tests of image_ops.h: identities that hold for any picture. */
#include "image/image_ops.h"

#include "base/arena.h"
#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { H = 13, W = 9, C = 3 };
static uint8_t in[H * W * C], out[64 * 64 * C], back[64 * 64 * C];

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < H * W * C; i++) in[i] = (uint8_t)(i * 53 + i / 7 * 31);
    memset(out, 0xaa, sizeof out);
    return 0;
}

static void channels_there_and_back(void **state) {
    (void)state;
    uint8_t grey[H * W];
    acf_image_channels(grey, 1, in, 3, H * W);
    for (int i = 0; i < H * W; i++)
        assert_true(fabs(grey[i] - (0.299 * in[3 * i] + 0.587 * in[3 * i + 1] + 0.114 * in[3 * i + 2])) < 1.5);
    acf_image_channels(out, 3, grey, 1, H * W);
    acf_image_channels(back, 1, out, 3, H * W);
    assert_memory_equal(back, grey, sizeof grey); /* equal channels are already grey */
    acf_image_channels(out, 3, in, 3, H * W);
    assert_memory_equal(out, in, sizeof in);
}

static void cuts_and_middles(void **state) {
    (void)state;
    acf_image_cut(out, in, W, C, (acf_image_box){2, 3, 7, 5});
    for (int y = 0; y < 2; y++) assert_memory_equal(out + y * 5 * C, in + ((y + 3) * W + 2) * C, 5 * C);
    static const struct {
        int64_t W, H, w, h;
        acf_image_box box;
    } cases[] = {{178, 218, 1, 1, {0, 20, 178, 198}},
                 {218, 178, 1, 1, {20, 0, 198, 178}},
                 {100, 100, 2, 1, {0, 25, 100, 75}},
                 {5, 4, 64, 64, {0, 0, 4, 4}},
                 {1, 1000, 3000, 1, {0, 499, 1, 500}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        acf_image_box b = acf_image_middle(cases[i].W, cases[i].H, cases[i].w, cases[i].h);
        assert_memory_equal(&b, &cases[i].box, sizeof b);
    }
}

static void resized(int64_t h, int64_t w) { assert_int_equal(acf_image_resize(out, h, w, in, H, W, C), ACF_OK); }

static void resizing_keeps_constants(void **state) {
    (void)state;
    resized(H, W);
    assert_memory_equal(out, in, sizeof in);
    for (int64_t h = 1; h <= 40; h += 3) /* one colour stays one when enlarged, reduced, and in both directions */
        for (int64_t w = 1; w <= 40; w += 5) {
            memset(in, 255 - (int)h, sizeof in);
            resized(h, w);
            for (int i = 0; i < h * w * C; i++) assert_int_equal(out[i], 255 - h);
        }
    set_up(NULL);
    double sum[C] = {0};
    for (int i = 0; i < H * W * C; i++) sum[i % C] += in[i];
    resized(1, 1); /* the mean of all */
    for (int c = 0; c < C; c++) assert_true(fabs(out[c] - sum[c] / (H * W)) <= 0.5);
}

/* Means over whole blocks and over parts: 3 pixels become 2, each covering one and a half. */
static void fewer_pixels_are_means(void **state) {
    (void)state;
    static const uint8_t four[4 * 4] = {0, 4, 10, 20, 8, 12, 30, 40, 1, 1, 2, 3, 1, 2, 4, 4};
    assert_int_equal(acf_image_resize(out, 2, 2, four, 4, 4, 1), ACF_OK);
    assert_true(out[0] == 6 && out[1] == 25 && out[2] == 1 && out[3] == 3);
    static const uint8_t three[3] = {30, 60, 120};
    assert_int_equal(acf_image_resize(out, 1, 2, three, 1, 3, 1), ACF_OK);
    assert_true(out[0] == 40 && out[1] == 100);
    assert_int_equal(acf_image_resize(out, 2, 1, three, 3, 1, 1), ACF_OK);
    assert_true(out[0] == 40 && out[1] == 100);
}

/* A ramp stays a ramp between the middles of the outermost pixels, in both directions. */
static void more_pixels_lie_between(void **state) {
    (void)state;
    static const uint8_t ramp[4] = {0, 80, 160, 240};
    assert_int_equal(acf_image_resize(out, 1, 16, ramp, 1, 4, 1), ACF_OK);
    assert_int_equal(acf_image_resize(back, 16, 1, ramp, 4, 1, 1), ACF_OK);
    assert_memory_equal(out, back, 16);
    for (int i = 0; i < 16; i++) assert_int_equal(out[i], (int)fmin(fmax(20 * i - 30, 0), 240));
}

static void padding_and_rotation(void **state) {
    (void)state;
    acf_image_pad(out, H + 5, W + 2, in, H, W, C);
    for (int y = 0; y < H + 5; y++)
        for (int x = 0; x < (W + 2) * C; x++) {
            const bool inside = y >= 2 && y < 2 + H && x >= C && x < (1 + W) * C;
            assert_int_equal(out[y * (W + 2) * C + x], inside ? in[(y - 2) * W * C + x - C] : 0);
        }
    for (int q = 0; q < 4; q++) { /* rotations by q and 4 - q quarters cancel */
        acf_image_rotate(out, in, H, W, C, q);
        acf_image_rotate(back, out, q & 1 ? W : H, q & 1 ? H : W, C, 4 - q);
        assert_memory_equal(back, in, sizeof in);
    }
    static const uint8_t letter[6] = {1, 2, 3, 4, 5, 6}; /* 1 2 3 / 4 5 6  ->  3 6 / 2 5 / 1 4 */
    static const uint8_t quarter[6] = {3, 6, 2, 5, 1, 4}, half[6] = {6, 5, 4, 3, 2, 1};
    acf_image_rotate(out, letter, 2, 3, 1, 1);
    assert_memory_equal(out, quarter, 6);
    acf_image_rotate(out, letter, 2, 3, 1, 2);
    assert_memory_equal(out, half, 6);
}

static void levels_and_bytes(void **state) {
    (void)state;
    for (int bits = 1; bits <= 8; bits++) {
        assert_int_equal(acf_image_byte(0, bits), 0);
        assert_int_equal(acf_image_byte((1u << bits) - 1, bits), 255);
        for (unsigned k = 0; k < 1u << bits; k++) {
            uint8_t v = acf_image_byte(k, bits);
            acf_image_coarsen(&v, 1, bits);
            assert_int_equal(v, k); /* a level is the same after writing and reading */
        }
    }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    const int64_t live = acf_alloc_live();
    int failures = 0;
    for (int64_t i = 1;; i++, failures++) {
        acf_alloc_fail_at(i);
        acf_status status = acf_image_resize(out, 4, 20, in, H, W, C);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
    }
    assert_int_equal(failures, 5);
}

#define WITH_PICTURE(test) cmocka_unit_test_setup(test, set_up)
ACF_TESTS(image_ops, WITH_PICTURE(channels_there_and_back), WITH_PICTURE(cuts_and_middles),
          WITH_PICTURE(resizing_keeps_constants), WITH_PICTURE(fewer_pixels_are_means),
          WITH_PICTURE(more_pixels_lie_between), WITH_PICTURE(padding_and_rotation), WITH_PICTURE(levels_and_bytes),
          WITH_PICTURE(every_allocation_may_fail))
