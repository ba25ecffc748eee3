/* Batches of images: masked, encoded and ready for a step. The order comes from acf_batch_sampler (batches.h), which
 * needs only row numbers.
 *
 *     acf_rows rows = acf_rows_all(images->N);                               or a part of acf_row_split
 *     acf_batch_sampler_start(&rows, size, seed, true, &sampler);
 *     while ((n = acf_batch_sampler_next(&sampler, row)))                    one epoch
 *         acf_image_batch_fill(dev, batch, images, masks, seed, step, row, n); */
#ifndef ACF_IMAGE_IMAGE_BATCHES_H
#define ACF_IMAGE_IMAGE_BATCHES_H

#include "image/image_encode.h"
#include "image/image_masks.h"
#include "image/image_passes.h"
#include "image/images.h"
#include "table/batches.h"

/* In host memory; all arrays but the map are owned. Images 0..N-1 are valid. */
typedef struct acf_image_batch {
    int64_t capacity, N, H, W, C;
    const acf_image_map *map; /* borrowed */
    uint8_t *level;           /* (N,H,W,C) as in the set of images */
    acf_real *x;              /* (N,H,W,C) encoded, all pixels */
    uint8_t *b;               /* (N,H,W) the role of each pixel (base/pixel.h) */
    double *logdet;           /* (N) of the encoding, over the modelled pixels */
    uint64_t *id;             /* (N) numbers in the set, the keys of random draws */
    acf_real *share; /* (capacity) weight of each image in the mean: 1/N, times the weight of its pass; 0 after the last
                * image */
    acf_device *staged,
        *there; /* the device for which id, x, share and b are one block: in host memory that is copied to it, or in
                 * its memory */
} acf_image_batch;

/* For images of this set's shape, encoded by a map of the same number of bits. Gives *out; free with
 * acf_image_batch_free. Fails: ACF_EUSAGE (capacity below 1), ACF_EMEMORY. */
acf_status acf_image_batch_create(int64_t capacity, const acf_images *im, const acf_image_map *map,
                                  acf_image_batch **out);
void acf_image_batch_free(acf_image_batch *batch); /* NULL is allowed */

/* The same in host memory that is copied to a device in one asynchronous copy, and the batch in that device's
 * memory, which has only id, x, share and b. */
acf_status acf_image_batch_stage(acf_device *dev, int64_t capacity, const acf_images *im, const acf_image_map *map,
                                 acf_image_batch **out);
acf_status acf_image_batch_place(acf_device *dev, int64_t capacity, const acf_images *im, acf_image_batch **out);

/* Copies a staged batch to a placed one of the same sizes, which always has `capacity` images. Images after the last
 * one have no modelled pixels and a share of 0. The staged batch must not change until the device has finished the
 * copy. */
acf_status acf_image_batch_send(acf_image_batch *staged, acf_image_batch *placed);

/* Fills the batch with images number row (N), N <= capacity. masks: fitted to this size; NULL: keeps b. The next
 * draw gives new masks and noise; validation uses the same draw each time. Allocates nothing; same bits for any
 * number of threads, batch and order. */
void acf_image_batch_fill(const acf_device *dev, acf_image_batch *batch, const acf_images *im,
                          const acf_image_masks *masks, uint64_t seed, uint32_t draw, const int64_t *row, int64_t N);

/* The same for one of several passes (image_passes.h): masks become its roles. Pass ACF_PASS_DRAWN uses
 * acf_image_pass_draw, for training, and sets its weights in share. */
#define ACF_PASS_DRAWN (-1)
typedef struct acf_image_query_lab {
    const acf_image_masks *masks;
    int passes, round;
    uint64_t seed;
    uint32_t draw;
} acf_image_query_lab;
void acf_image_batch_fill_pass(const acf_device *dev, acf_image_batch *batch, const acf_images *im,
                               const acf_image_query_lab *how, const int64_t *row, int64_t N);

#endif
