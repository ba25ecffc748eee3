/* Images in device memory, for models that must not look at them: what of an image is given and what is modelled, and which number of which
 * image a draw is for. */
#ifndef ACF_OPS_IMAGE_PARTS_H
#define ACF_OPS_IMAGE_PARTS_H

#include "base/pixel.h"
#include "device/cpu.h"
#include "ops/draw.h"
#include "ops/ops.h"

/* All (N,H,W,C). Pixels that are neither given nor modelled are 0 in all of them, whatever x holds there. */
typedef struct acf_image_parts {
    acf_tensor *x, *given; /* numbers; those that are given */
    acf_tensor *b, *u;     /* 1 where they are given; where they are modelled */
} acf_image_parts;

/* role (N,H,W) in device memory (base/pixel.h); what is asked is modelled. Empty tensors after a failure. No derivative. */
acf_image_parts acf_image_split(acf_tape *t, acf_tensor *x, const uint8_t *role);

/* Image and place in it of every number of N images of P pixels and C channels, for draws: one place of all images after the other, or with `whole`
 * image after image. They live on the tape; NULL after a failure. */
acf_cells acf_image_cells(acf_tape *t, int64_t N, int64_t P, int64_t C, bool whole);

/* ---- for kernels on other devices ---------------------------------------------------------------------------------- */

typedef struct acf_image_parts_attrs {
    const uint8_t *role;
} acf_image_parts_attrs;

typedef struct acf_image_cells_attrs {
    int32_t *row, *column; /* (N·P·C) */
    int64_t N, P, C;
    bool whole;
} acf_image_cells_attrs;

#endif
