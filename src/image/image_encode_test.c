/* Tests of image_encode.h: round trips, the log-determinant against numeric derivatives, and noise keyed by its
 * counter. */
#include "image/image_encode.h"

#include "harness/check.h"

#include <math.h>
#include <string.h>

enum { N = 40, P = 37, C = 3, SIZE = P * C };
static uint8_t level[N * SIZE], back[N * SIZE], b[N * P];
static acf_real y[N * SIZE], y2[N * SIZE];
static double logdet[N], logdet2[N], guess[N * SIZE];
static uint64_t id[N];
static acf_image_map *map[9]; /* uniform-logit, by bits */
static acf_device *dev, *two;

static void set_levels(void) {
    for (int i = 0; i < N * SIZE; i++) level[i] = (uint8_t)(i * 37 + i / 11);
}

static int set_up(void **state) {
    (void)state;
    set_levels();
    for (int i = 0; i < N * P; i++) b[i] = i * 7 % 5 < 2;
    for (int i = 0; i < N; i++) id[i] = (uint64_t)(1000 - i * i);
    for (int bits = 1; bits <= 8; bits++)
        if (acf_image_map_uniform_logit(bits, &map[bits])) return 1;
    return acf_device_open_cpu(1, &dev) || acf_device_open_cpu(2, &two);
}

static int tear_down(void **state) {
    (void)state;
    for (int bits = 1; bits <= 8; bits++) acf_release(map[bits]);
    acf_device_close(dev), acf_device_close(two);
    return 0;
}

static void keep_bits(int bits) {
    for (int i = 0; i < N * SIZE; i++) level[i] = (uint8_t)(level[i] & ((1 << bits) - 1));
}

/* Exactly, for every depth; and y has the expected value. */
static void levels_round_trip(void **state) {
    (void)state;
    for (int bits = 8; bits >= 1; bits--) {
        const acf_image_code c = {map[bits], P, C};
        keep_bits(bits);
        for (uint32_t draw = 0; draw < (bits == 8 ? 400 : 10); draw++) { /* enough for the rarest noise */
            acf_image_encode(dev, &c, N, level, b, 3, id, draw, y, logdet);
            acf_image_decode(dev, &c, N, y, NULL, NULL, back);
            assert_memory_equal(back, level, sizeof level);
        }
        for (int i = 0; i < N * SIZE; i++) assert_true(fabs((double)y[i]) < log(0.95 / 0.05));
    }
}

/* The outermost levels of a Gaussian map are unbounded: noise that reached a whole level would be infinite. */
static void the_outermost_levels_are_finite(void **state) {
    (void)state;
    int64_t count[ACF_IMAGE_LEVELS] = {700, 1, 1, 300};
    acf_image_dequantiser dequantiser;
    acf_image_map *m;
    acf_image_dequantiser_fit(2, count, &dequantiser);
    assert_int_equal(acf_image_map_gaussian(2, &dequantiser, &m), ACF_OK);
    const acf_image_code c = {m, P, C};
    for (int i = 0; i < N * SIZE; i++) level[i] = i % 2 ? 3 : 0;
    for (uint32_t draw = 0; draw < 100; draw++) {
        acf_image_encode(dev, &c, N, level, NULL, 3, id, draw, y, logdet);
        for (int i = 0; i < N * SIZE; i++) assert_true(isfinite((double)y[i]));
        for (int i = 0; i < N; i++) assert_true(isfinite(logdet[i]));
        acf_image_decode(dev, &c, N, y, NULL, NULL, back);
        assert_memory_equal(back, level, sizeof level);
    }
    acf_release(m);
}

/* Modelled pixels have uniform noise, new at every draw; given pixels have none. */
static void only_modelled_pixels_have_noise(void **state) {
    (void)state;
    const acf_image_code c = {map[8], P, C};
    double sum = 0, square = 0, both = 0;
    int n = 0;
    for (uint32_t draw = 0; draw < 20; draw++) {
        acf_image_encode(dev, &c, N, level, b, 3, id, draw, y, NULL);
        acf_image_encode(dev, &c, N, level, b, 3, id, draw + 100, y2, NULL);
        for (int i = 0; i < N * SIZE; i++) {
            const double u = acf_image_map_back(map[8], (double)y[i]) - level[i],
                         w = acf_image_map_back(map[8], (double)y2[i]) - level[i];
            if (b[i / C])
                assert_true(y[i] == y2[i] && fabs(u - 0.5) < 1e-4);
            else
                sum += u, square += u * u, both += (u - 0.5) * (w - 0.5), n++;
        }
    }
    assert_true(fabs(sum / n - 0.5) < 3.5 * sqrt(1 / 12.0 / n));
    assert_true(fabs(square / n - 1 / 3.0) < 3.5 * sqrt(4 / 45.0 / n));
    assert_true(fabs(both / n) < 3.5 / 12 / sqrt(n));
}

/* The sum of the map's slopes over the modelled pixels only. */
static void the_logdet_matches_the_derivative(void **state) {
    (void)state;
    const acf_image_code c = {map[8], P, C};
    acf_image_encode(dev, &c, N, level, b, 3, id, 1, y, logdet);
    for (int i = 0; i < N; i++) {
        double sum = 0;
        for (int k = 0; k < SIZE; k++) {
            double slope;
            const int at = level[i * SIZE + k];
            acf_image_map_at(map[8], at, acf_image_map_back(map[8], (double)y[i * SIZE + k]) - at, &slope);
            if (!b[i * P + k / C]) sum += slope;
        }
        assert_true(fabs(sum - logdet[i]) < 1e-4);
    }
    memset(b, 1, sizeof b);
    acf_image_encode(dev, &c, N, level, b, 3, id, 1, y, logdet);
    for (int i = 0; i < N; i++) assert_true(logdet[i] == 0);
}

/* Given pixels come back bit for bit for any y; extreme values are clipped. */
static void given_pixels_are_kept(void **state) {
    (void)state;
    const acf_image_code c = {map[5], P, C};
    keep_bits(5);
    acf_image_encode(dev, &c, N, level, b, 3, id, 1, y, NULL);
    for (int i = 0; i < N * SIZE; i++)
        if (b[i / C]) y[i] = (acf_real)NAN;
    acf_image_decode(two, &c, N, y, b, level, back);
    assert_memory_equal(back, level, sizeof level);
    acf_image_decode_real(two, &c, N, y, b, level, guess);
    for (int i = 0; i < N * SIZE; i++)
        assert_true(b[i / C] ? guess[i] == level[i] : fabs(guess[i] - level[i]) <= 0.5001);
    const acf_real wild[5] = {(acf_real)-1e30, (acf_real)1e30, (acf_real)INFINITY, (acf_real)-INFINITY, (acf_real)NAN};
    const acf_image_code one = {map[5], 5, 1};
    acf_image_decode(dev, &one, 1, wild, NULL, NULL, back);
    assert_memory_equal(back, "\0\x1f\x1f\0\0", 5);
    acf_image_decode_real(dev, &one, 1, wild, NULL, NULL, guess);
    assert_true(guess[0] == 0 && guess[1] == 31 && guess[2] == 31 && guess[3] == 0 && guess[4] == 0);
}

/* An image gets the same numbers alone, elsewhere in a batch, with any number of threads. */
static void images_do_not_depend_on_the_batch(void **state) {
    (void)state;
    const acf_image_code c = {map[8], P, C};
    acf_image_encode(dev, &c, N, level, b, 3, id, 1, y, logdet);
    acf_image_encode(two, &c, N, level, b, 3, id, 1, y2, logdet2);
    assert_memory_equal(y, y2, sizeof y);
    assert_memory_equal(logdet, logdet2, sizeof logdet);
    for (int i = N; i-- > 0;)
        acf_image_encode(dev, &c, 1, level + i * SIZE, b + i * P, 3, id + i, 1, y2 + i * SIZE, logdet2 + i);
    assert_memory_equal(y, y2, sizeof y);
    assert_memory_equal(logdet, logdet2, sizeof logdet);
    acf_image_encode(dev, &c, N, level, b, 4, id, 1, y2, NULL);
    assert_memory_not_equal(y, y2, sizeof y);
}

#define WITH_IMAGES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(image_encode, WITH_IMAGES(levels_round_trip), WITH_IMAGES(the_outermost_levels_are_finite),
          WITH_IMAGES(only_modelled_pixels_have_noise), WITH_IMAGES(the_logdet_matches_the_derivative),
          WITH_IMAGES(given_pixels_are_kept), WITH_IMAGES(images_do_not_depend_on_the_batch))
