/* Images in device memory, for models whose host code never reads them: the given and the modelled pixels of an
 * image, and the cell of each draw. */
#ifndef ACF_OPS_IMAGE_PARTS_H
#define ACF_OPS_IMAGE_PARTS_H

#include "base/pixel.h"
#include "device/cpu.h"
#include "ops/draw.h"
#include "ops/ops.h"

/* All (N,H,W,C). Pixels that are neither given nor modelled are 0 in all of them, whatever x holds there. */
typedef struct acf_image_parts {
    acf_tensor *x, *given; /* all numbers; the given ones */
    acf_tensor *b, *u;     /* 1 where they are given; where they are modelled */
} acf_image_parts;

/* role (N,H,W) in device memory (base/pixel.h); target pixels are modelled. Empty tensors after a failure. No
 * derivative. */
acf_image_parts acf_image_split(acf_tape *t, acf_tensor *x, const uint8_t *role);

/* Image, and position within it, of every number of N images of P pixels and C channels, for draws. In order of
 * position, then image; with `whole` image by image. They live on the tape; NULL after a failure. */
acf_cells acf_image_cells(acf_tape *t, int64_t N, int64_t P, int64_t C, bool whole);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_image_parts_attrs {
    const uint8_t *role;
} acf_image_parts_attrs;

typedef struct acf_image_cells_attrs {
    int32_t *row, *column; /* (N·P·C) */
    int64_t N, P, C;
    bool whole;
} acf_image_cells_attrs;

#endif
