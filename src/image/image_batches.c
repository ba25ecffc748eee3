/* Batches of images: see image_batches.h. */
#include "image/image_batches.h"

#include "device/cpu.h"
#include "device/plugin.h"

#include <string.h>

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* The bytes of id, x, share and b, and of the numbers of all images. */
static acf_status measure(int64_t capacity, const acf_images *im, size_t *block, size_t *numbers) {
    int64_t all, pixels = im->H * im->W; /* below 2^28 */
    if (capacity < 1) return acf_fail(ACF_EUSAGE, "a batch of %lld images; expected at least 1", (long long)capacity);
    if (__builtin_mul_overflow(capacity, pixels * (im->C + 8), &all) || all > INT64_MAX / 16)
        return acf_fail(ACF_EMEMORY, "out of memory: a batch of %lld images", (long long)capacity);
    *numbers = (size_t)(capacity * pixels * im->C);
    *block = (size_t)capacity * (sizeof(uint64_t) + sizeof(acf_real) + (size_t)pixels) + *numbers * sizeof(acf_real);
    return ACF_OK;
}

/* The widest array first, so that all are aligned. */
static void lay_out(acf_image_batch *batch, char *p, size_t numbers) {
    batch->id = (uint64_t *)(void *)p;
    batch->x = (acf_real *)(void *)(p + (size_t)batch->capacity * sizeof *batch->id);
    batch->share = batch->x + numbers;
    batch->b = (uint8_t *)(batch->share + batch->capacity);
}

static void *get_block(acf_device *dev, bool staged, size_t bytes) {
    if (!dev) return acf_alloc_zero(bytes, "a batch");
    if (!staged) return dev->memory.alloc(dev->memory.ctx, bytes);
    return dev->plugin ? dev->plugin->pinned_alloc(dev, bytes) : acf_alloc_zero(bytes, "a batch");
}

/* dev NULL: in the heap; otherwise staged for dev, or in its memory. */
static acf_status make(acf_device *dev, bool staged, int64_t capacity, const acf_images *im, const acf_image_map *map,
                       acf_image_batch **out) {
    size_t block = 0, numbers = 0;
    ACF_TRY(measure(capacity, im, &block, &numbers));
    acf_image_batch *batch = acf_alloc_zero(sizeof *batch, "a batch");
    if (!batch) return ACF_EMEMORY;
    *batch = (acf_image_batch){.capacity = capacity, .H = im->H, .W = im->W, .C = im->C, .map = map};
    batch->staged = staged ? dev : NULL, batch->there = staged ? NULL : dev;
    char *p = get_block(dev, staged, block);
    if (p) lay_out(batch, p, numbers);
    if (!p && dev && dev->memory.refuse) dev->memory.refuse(dev->memory.ctx, block, 0);
    if (p && !batch->there) {
        memset(p, 0, block); /* pinned memory is not cleared */
        batch->level = acf_alloc_zero(numbers, "a batch");
        batch->logdet = batch->level ? acf_alloc_zero((size_t)capacity * sizeof *batch->logdet, "a batch") : NULL;
    }
    if (!p || (!batch->there && !batch->logdet)) {
        acf_image_batch_free(batch);
        return ACF_EMEMORY;
    }
    *out = batch;
    return ACF_OK;
}

acf_status acf_image_batch_create(int64_t capacity, const acf_images *im, const acf_image_map *map,
                                  acf_image_batch **out) {
    return make(NULL, true, capacity, im, map, out);
}

acf_status acf_image_batch_stage(acf_device *dev, int64_t capacity, const acf_images *im, const acf_image_map *map,
                                 acf_image_batch **out) {
    return make(dev, true, capacity, im, map, out);
}

acf_status acf_image_batch_place(acf_device *dev, int64_t capacity, const acf_images *im, acf_image_batch **out) {
    return make(dev, false, capacity, im, NULL, out);
}

void acf_image_batch_free(acf_image_batch *batch) {
    if (!batch) return;
    if (batch->there)
        batch->there->memory.free(batch->there->memory.ctx, batch->id);
    else if (batch->staged && batch->staged->plugin)
        batch->staged->plugin->pinned_free(batch->staged, batch->id);
    else
        acf_release(batch->id);
    acf_release(batch->level), acf_release(batch->logdet);
    acf_release(batch);
}

acf_status acf_image_batch_send(acf_image_batch *staged, acf_image_batch *placed) {
    const int64_t P = staged->H * staged->W, N = staged->N, capacity = staged->capacity;
    ACF_ASSERT(staged->staged && placed->there && capacity == placed->capacity && P == placed->H * placed->W &&
               staged->C == placed->C);
    memset(staged->b + N * P, ACF_PIXEL_GIVEN, (size_t)((capacity - N) * P));
    const size_t bytes = (size_t)((char *)(staged->b + capacity * P) - (char *)staged->id);
    return acf_device_copy(placed->there, placed->id, staged->id, bytes, ACF_TO_DEVICE);
}

/* ---- contents ---------------------------------------------------------------------------------------------------- */

/* Turns masks into the roles of a pass. A drawn pass sets its weights in share. */
static void take_pass(const acf_device *dev, acf_image_batch *batch, const acf_image_query_lab *how) {
    const int64_t H = batch->H, W = batch->W, N = batch->N;
    ACF_PARALLEL_UNEVEN(dev, N * H * W * 4)
    for (int64_t i = 0; i < N; i++) {
        uint8_t *b = batch->b + i * H * W;
        const acf_rng_counter at = {how->seed, batch->id[i], ACF_STREAM_MASK, 0, how->draw};
        if (how->round != ACF_PASS_DRAWN)
            acf_image_pass(how->passes, how->round, H, W, b, b);
        else
            batch->share[i] *= (acf_real)acf_image_pass_draw(how->passes, at, H, W, b);
    }
}

void acf_image_batch_fill_pass(const acf_device *dev, acf_image_batch *batch, const acf_images *im,
                               const acf_image_query_lab *how, const int64_t *row, int64_t N) {
    const acf_image_masks *masks = how->masks;
    ACF_ASSERT(N <= batch->capacity && im->H == batch->H && im->W == batch->W && im->C == batch->C &&
               im->bits == batch->map->bits);
    ACF_ASSERT(!masks || (masks->H == im->H && masks->W == im->W));
    const acf_image_code code = {batch->map, im->H * im->W, im->C};
    const size_t n = (size_t)(code.P * code.C);
    batch->N = N;
    for (int64_t i = 0; i < N; i++) {
        memcpy(batch->level + (size_t)i * n, acf_images_at(im, row[i]), n);
        batch->id[i] = (uint64_t)row[i];
    }
    for (int64_t i = 0; i < batch->capacity; i++) batch->share[i] = i < N ? (acf_real)(1 / (double)N) : 0;
    if (masks) acf_image_masks_draw(dev, masks, how->seed, how->draw, N, batch->id, batch->b);
    if (how->passes > 1) take_pass(dev, batch, how);
    acf_image_encode(dev, &code, N, batch->level, batch->b, how->seed, batch->id, how->draw, batch->x, batch->logdet);
}

void acf_image_batch_fill(const acf_device *dev, acf_image_batch *batch, const acf_images *im,
                          const acf_image_masks *masks, uint64_t seed, uint32_t draw, const int64_t *row, int64_t N) {
    acf_image_batch_fill_pass(dev, batch, im, &(acf_image_query_lab){masks, 1, 0, seed, draw}, row, N);
}
