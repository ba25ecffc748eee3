/* Draws which pixels of an image are given and which are modelled, for training, evaluation and `acflow plot masks`.
 * One mask for all channels of a pixel.
 *
 *     name             modelled (b = 0); all other pixels are given (b = 1)
 *     mcar:P           each pixel independently, so that a share P is given: mcar:0.2 keeps 20 %
 *     rect:A-B         a rectangle, of A to B of the image's area (rect alone: 0.1-1). Its borders are two rows and two
 *                      columns, drawn uniformly, and drawn again until the area fits
 *     left, right,     that half of the image; of an odd number of rows or columns the middle one is given
 *     top, bottom
 *     centre           the middle half of the rows and columns
 *     cutout:S         a square of S x S pixels anywhere inside
 *     pattern:R        blobs over 20 to 30 % of the image (pattern alone: 0.06): noise with R points per pixel,
 *                      smoothed bicubically, below a threshold
 *     face:K           box K = 1..6 of Li et al. over eyes, mouth or a side of a face, made for 64x64 and scaled (face
 *                      alone: any of the six)
 *     joint            everything
 *     file:PATH        the white pixels of a PNG or JPEG of the image's size, or of its file's; black is given.
 *                      Transparency counts as white. A PATH with '+' or '*' is written in double quotes
 *
 * and mixtures of them, from which every image chooses one part by weight: "mcar:0.2*2 + rect:0.1-1*2 + left +
 * right". Named mixtures, used alone:
 *
 *     paper-mnist, paper-omniglot, paper-cifar, paper-celeba               as in the paper's appendix (20 % kept;
 *                                                                          rectangles of 10 % and more)
 *     released-mnist, released-omniglot, released-cifar, released-celeba   as in the paper's published code
 *
 * The paper gives no weights and no masks for CIFAR. The weights are those of the code; CIFAR uses MNIST's masks.
 *
 * Guaranteed for every image: b is 0 or 1, and at least one pixel is modelled (if a draw models none, one pixel
 * drawn uniformly is). A mask depends only on (seed, image id, draw), not on the batch, the position in it, or the
 * number of threads. */
#ifndef ACF_IMAGE_IMAGE_MASKS_H
#define ACF_IMAGE_IMAGE_MASKS_H

#include "base/rng.h"
#include "base/text.h"
#include "device/device.h"
#include "image/images.h"

#define ACF_IMAGE_MASKS_MAX 32     /* parts */
#define ACF_IMAGE_PATTERN_MAX 1024 /* pixels per side, for pattern */

typedef enum acf_image_mask_kind {
    ACF_HIDE_MCAR,
    ACF_HIDE_RECT,
    ACF_HIDE_LEFT,
    ACF_HIDE_RIGHT,
    ACF_HIDE_TOP,
    ACF_HIDE_BOTTOM,
    ACF_HIDE_CENTRE,
    ACF_HIDE_CUTOUT,
    ACF_HIDE_PATTERN,
    ACF_HIDE_FACE,
    ACF_HIDE_JOINT,
    ACF_HIDE_FILE
} acf_image_mask_kind;

typedef struct acf_image_mask_part {
    acf_image_mask_kind kind;
    double a, b;    /* mcar: P; rect: the two areas; cutout: S; pattern: R; face: K, or 0 for any */
    double weight;  /* above 0, at most 1e100 */
    char *path;     /* file; owned */
    uint8_t *given; /* file (H,W), once fitted; owned */
} acf_image_mask_part;

typedef struct acf_image_masks {
    int n;
    acf_image_mask_part part[ACF_IMAGE_MASKS_MAX];
    int64_t H, W; /* of the images; 0 before acf_image_masks_fit */
} acf_image_masks;

/* Reads the text form. Gives *out; free with acf_image_masks_free. Fails: ACF_EUSAGE (the message shows the position
 * and what was expected), ACF_EMEMORY. */
acf_status acf_image_masks_create(const char *text, acf_image_masks **out);
void acf_image_masks_free(acf_image_masks *masks); /* NULL is allowed */

/* Prepares the masks for images of H x W pixels, before any draw: reads the mask files, and refuses masks that
 * cannot be drawn at this size. On failure the masks do not change. Fails: ACF_EUSAGE, ACF_EDATA (a mask file of
 * another size, or without white), ACF_EIO, ACF_EMEMORY. */
acf_status acf_image_masks_fit(acf_image_masks *masks, int64_t H, int64_t W);
/* The same for these images. A mask file may also have the size of their files; it is then transformed as they were. */
acf_status acf_image_masks_fit_to(acf_image_masks *masks, const acf_images *im);

/* Both, for text from the user: the text form, or the path of a picture (.png, .jpg, .jpeg). Gives *out. */
acf_status acf_image_masks_open(const char *text, const acf_images *im, acf_image_masks **out);

/* Writes the text form, which parses back to the same masks. A named mixture is written out; weights of 1 are
 * omitted. */
void acf_image_masks_write(const acf_image_masks *masks, acf_text *out);
void acf_image_mask_part_write(const acf_image_mask_part *part, acf_text *out); /* one part, without its weight */

/* The mixture of name number k, 0, 1, ...; sets *name. NULL after the last. */
const char *acf_image_masks_named(int k, const char **name);

/* Draws b (N,H,W) for N images with these ids, below 2^48. draw is the step or epoch: each gives new masks. Uses the
 * threads of the CPU device. Allocates nothing. */
void acf_image_masks_draw(const acf_device *dev, const acf_image_masks *masks, uint64_t seed, uint32_t draw, int64_t N,
                          const uint64_t *id, uint8_t *b);

/* Which part of the mixture is chosen for an image. */
int acf_image_masks_choice(const acf_image_masks *masks, uint64_t seed, uint64_t id, uint32_t draw);

/* The same for one image, b (H,W), with this part of the mixture. */
void acf_image_mask_part_draw(const acf_image_masks *masks, int part, uint64_t seed, uint64_t id, uint32_t draw,
                              uint8_t *b);

/* Whether the distribution is symmetric under rotation by 90 degrees, or under flipping. The six face boxes together
 * count as symmetric under flipping. */
bool acf_image_masks_symmetric(const acf_image_masks *masks, bool turn, bool flip);

/* For image_pattern.c. b (H,W) = 0 on the blobs. */
void acf_image_pattern(acf_rng_counter at, double resolution, int64_t H, int64_t W, uint8_t *b);

#endif
