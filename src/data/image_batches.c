/* Batches of images: see image_batches.h. */
#include "data/image_batches.h"

#include "device/cpu.h"

#include <string.h>

acf_status acf_image_batch_create(int64_t capacity, const acf_images *im, const acf_image_map *map, acf_image_batch **out) {
    if (capacity < 1) return acf_fail(ACF_EUSAGE, "a batch of %lld images; expected at least 1", (long long)capacity);
    const int64_t P = im->H * im->W, n = P * im->C; /* below 2^28 */
    int64_t all;
    size_t x, each;
    if (__builtin_mul_overflow(capacity, n, &all)) return acf_fail(ACF_EMEMORY, "out of memory: a batch of %lld images", (long long)capacity);
    if (!acf_bytes(all, sizeof(acf_real), &x) || !acf_bytes(capacity, sizeof(double), &each)) return ACF_EMEMORY;
    acf_image_batch *batch = acf_alloc_zero(sizeof *batch, "a batch");
    if (!batch) return ACF_EMEMORY;
    *batch = (acf_image_batch){.capacity = capacity, .H = im->H, .W = im->W, .C = im->C, .map = map};
    if (!(batch->level = acf_alloc_zero((size_t)all, "a batch")) || !(batch->x = acf_alloc_zero(x, "a batch")) ||
        !(batch->b = acf_alloc_zero((size_t)(capacity * P), "a batch")) || !(batch->logdet = acf_alloc_zero(each, "a batch")) ||
        !(batch->id = acf_alloc_zero(each, "a batch"))) {
        acf_image_batch_free(batch);
        return ACF_EMEMORY;
    }
    *out = batch;
    return ACF_OK;
}

void acf_image_batch_free(acf_image_batch *batch) {
    if (!batch) return;
    acf_release(batch->level), acf_release(batch->x), acf_release(batch->b), acf_release(batch->logdet), acf_release(batch->id);
    acf_release(batch);
}

void acf_image_batch_fill(const acf_device *dev, acf_image_batch *batch, const acf_images *im, const acf_image_masks *masks, uint64_t seed,
                          uint32_t draw, const int64_t *row, int64_t N) {
    ACF_ASSERT(N <= batch->capacity && im->H == batch->H && im->W == batch->W && im->C == batch->C && im->bits == batch->map->bits);
    ACF_ASSERT(!masks || (masks->H == im->H && masks->W == im->W));
    const acf_image_code code = {batch->map, im->H * im->W, im->C};
    const size_t n = (size_t)(code.P * code.C);
    batch->N = N;
    for (int64_t i = 0; i < N; i++) {
        memcpy(batch->level + (size_t)i * n, acf_img_at(im, row[i]), n);
        batch->id[i] = (uint64_t)row[i];
    }
    if (masks) acf_image_masks_draw(dev, masks, seed, draw, N, batch->id, batch->b);
    acf_image_encode(dev, &code, N, batch->level, batch->b, seed, batch->id, draw, batch->x, batch->logdet);
}
