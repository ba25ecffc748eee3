/* Batches of images: masked, encoded and ready for a step. The order is that of acf_batch_sampler (batches.h), which knows numbers of rows alone.
 *
 *     acf_rows rows = acf_rows_all(images->N);                               or a part of acf_row_split
 *     acf_batch_sampler_start(&rows, size, seed, true, &walk);
 *     while ((n = acf_batch_sampler_next(&walk, row)))                             one epoch
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
    const acf_image_map *map; /* keeps */
    uint8_t *level;           /* (N,H,W,C) as in the set */
    acf_real *x;              /* (N,H,W,C) encoded, all pixels */
    uint8_t *b;               /* (N,H,W) the role of each pixel (base/pixel.h) */
    double *logdet;           /* (N) of the encoding, over what is modelled */
    uint64_t *id;             /* (N) numbers in the set, which key random draws */
    acf_real *
        share; /* (capacity) of each image in a mean over them: 1/N, in rounds times its weight; 0 behind the last image */
    acf_device *staged,
        *there; /* where id, x, share and b are one block: in memory that is copied to this device, or in this device's memory */
} acf_image_batch;

/* For images of this set's shape, encoded by a map of as many bits. Gives *out; free with acf_image_batch_free. Fails: ACF_EUSAGE (capacity below 1), ACF_EMEMORY. */
acf_status acf_image_batch_create(int64_t capacity, const acf_images *im, const acf_image_map *map,
                                  acf_image_batch **out);
void acf_image_batch_free(acf_image_batch *batch); /* NULL is allowed */

/* The same in host memory that goes to a device in one copy, which nobody waits for; and that device's, which has id, x, share and b alone. */
acf_status acf_image_batch_stage(acf_device *dev, int64_t capacity, const acf_images *im, const acf_image_map *map,
                                 acf_image_batch **out);
acf_status acf_image_batch_place(acf_device *dev, int64_t capacity, const acf_images *im, acf_image_batch **out);

/* Copies a staged batch to a placed one of the same sizes, where it has `capacity` images: of those behind the last nothing is modelled, and their share
 * is 0. The staged one must stay as it is until the device has come so far. */
acf_status acf_image_batch_send(acf_image_batch *staged, acf_image_batch *placed);

/* Fills the batch with images number row (N), N <= capacity. masks: fitted to this size; NULL: b is as the caller has left it. The next draw
 * gives new masks and noise; for validation it stays the same. Allocates nothing; same bits for any number of threads, batch and order. */
void acf_image_batch_fill(const acf_device *dev, acf_image_batch *batch, const acf_images *im,
                          const acf_image_masks *masks, uint64_t seed, uint32_t draw, const int64_t *row, int64_t N);

/* The same for one of several rounds (image/image_passes.h): masks become its roles. Round ACF_PASS_DRAWN: as acf_image_pass_draw leaves them, for training;
 * shares have its weights. */
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
