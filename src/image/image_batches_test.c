/* Tests of image_batches.h: an epoch has every image once, and a batch equals its parts computed one by one. */
#include "image/image_batches.h"

#include "harness/check.h"

#include <math.h>
#include <string.h>

enum { N = 23, H = 6, W = 5, C = 3, P = H * W, SIZE = P * C };
static uint8_t pixel[N * SIZE];
static acf_images *images;
static acf_image_masks *masks;
static acf_image_map *map;
static acf_device *dev;

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < N * SIZE; i++) pixel[i] = (uint8_t)(i * 41 + i / 13);
    return acf_images_make(pixel, N, H, W, C, &(acf_image_plan){.bits = 6}, &images) ||
           acf_image_masks_create("mcar:0.4 + rect + left", &masks) || acf_image_masks_fit(masks, H, W) ||
           acf_image_map_uniform_logit(6, &map) || acf_device_open_cpu(2, &dev);
}

static int tear_down(void **state) {
    (void)state;
    acf_images_free(images);
    acf_image_masks_free(masks);
    acf_release(map);
    acf_device_close(dev);
    return 0;
}

static void an_epoch_has_every_image_once(void **state) {
    (void)state;
    acf_image_batch *batch;
    acf_batch_sampler walk;
    acf_rows rows = acf_rows_all(N);
    int64_t row[7], n, seen[N] = {0};
    assert_int_equal(acf_image_batch_create(7, images, map, &batch), ACF_OK);
    assert_int_equal(acf_batch_sampler_start(&rows, 7, 11, true, &walk), ACF_OK);
    while ((n = acf_batch_sampler_next(&walk, row))) {
        acf_image_batch_fill(dev, batch, images, masks, 5, 9, row, n);
        assert_int_equal(batch->N, n);
        for (int i = 0; i < n; i++) {
            uint8_t b[P];
            acf_real x[SIZE];
            double logdet;
            seen[batch->id[i]]++;
            acf_image_masks_draw(dev, masks, 5, 9, 1, batch->id + i, b);
            acf_image_encode(dev, &(acf_image_code){map, P, C}, 1, acf_images_at(images, (int64_t)batch->id[i]), b, 5,
                             batch->id + i, 9, x, &logdet);
            assert_memory_equal(batch->level + i * SIZE, acf_images_at(images, (int64_t)batch->id[i]), SIZE);
            assert_memory_equal(batch->b + i * P, b, P);
            assert_memory_equal(batch->x + i * SIZE, x, sizeof x);
            assert_true(batch->logdet[i] == logdet && logdet != 0);
        }
    }
    for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    acf_image_batch_free(batch);
    acf_image_batch_free(NULL);
}

static void a_callers_mask_is_kept(void **state) {
    (void)state;
    acf_image_batch *batch;
    uint8_t b[2 * P];
    assert_int_equal(acf_image_batch_create(2, images, map, &batch), ACF_OK);
    for (int i = 0; i < 2 * P; i++) b[i] = batch->b[i] = i % 3 == 0;
    acf_image_batch_fill(dev, batch, images, NULL, 5, 9, (int64_t[]){4, 2}, 2);
    assert_memory_equal(batch->b, b, sizeof b);
    assert_true(batch->id[0] == 4 && batch->id[1] == 2);
    acf_image_batch_free(batch);
}

/* A placed batch always has all its images: those beyond the staged batch have no modelled pixels and a share of 0. */
static void a_staged_batch_is_padded(void **state) {
    (void)state;
    acf_image_batch *staged, *placed, *plain;
    double shares = 0;
    assert_int_equal(acf_image_batch_stage(dev, 4, images, map, &staged), ACF_OK);
    assert_int_equal(acf_image_batch_place(dev, 4, images, &placed), ACF_OK);
    assert_int_equal(acf_image_batch_create(4, images, map, &plain), ACF_OK);
    for (int64_t n = 4; n >= 3; n--) {
        const int64_t row[4] = {3, 9, 1, n};
        acf_image_batch_fill(dev, staged, images, masks, 5, 9, row, n);
        acf_image_batch_fill(dev, plain, images, masks, 5, 9, row, n);
        assert_int_equal(acf_image_batch_send(staged, placed), ACF_OK);
        assert_memory_equal(placed->x, plain->x, (size_t)n * SIZE * sizeof *plain->x);
        assert_memory_equal(placed->b, plain->b, (size_t)n * P);
        assert_memory_equal(placed->id, plain->id, (size_t)n * sizeof *plain->id);
        for (int i = 0; i < 4; i++) shares += (double)placed->share[i];
        assert_true(fabs(shares - 1) < 1e-6 && (n == 4) == (placed->share[3] > 0));
        for (int i = 0; n == 3 && i < P; i++) assert_int_equal(placed->b[3 * P + i], 1);
        shares = 0;
    }
    acf_image_batch_free(staged), acf_image_batch_free(placed), acf_image_batch_free(plain);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    acf_image_batch *batch = NULL;
    const int64_t live = acf_alloc_live();
    assert_int_equal(acf_image_batch_create(0, images, map, &batch), ACF_EUSAGE);
    assert_string_equal(acf_error(), "a batch of 0 images; expected at least 1");
    assert_int_equal(acf_image_batch_create(INT64_MAX / 4, images, map, &batch), ACF_EMEMORY);
    for (int64_t i = 1; i <= 4; i++) {
        acf_alloc_fail_at(i);
        assert_int_equal(acf_image_batch_create(3, images, map, &batch), ACF_EMEMORY);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
    }
    assert_int_equal(acf_image_batch_create(3, images, map, &batch), ACF_OK);
    acf_image_batch_free(batch);
}

#define WITH_IMAGES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(image_batches, WITH_IMAGES(an_epoch_has_every_image_once), WITH_IMAGES(a_callers_mask_is_kept),
          WITH_IMAGES(a_staged_batch_is_padded), WITH_IMAGES(every_allocation_may_fail))
