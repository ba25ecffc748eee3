/* A set of images in memory: N pictures of one size, as bytes in one block. Training, masks and queries read it.
 *
 *     a PNG or JPEG file            1 image
 *     a folder of such files        by name, byte by byte; sub-folders are ignored; other files are counted, not read
 *     .npy                          (N,H,W), (N,H,W,C) or (H,W) of u1
 *     idx, as MNIST's, or its .gz   N images of H x W
 *
 * The content of a path decides its format, not its name. In a folder the ending (.png .jpg .jpeg) selects the
 * files.
 *
 * Each picture is transformed in this order, each step only if requested (acf_image_plan):
 *     grey or colour -> crop box -> middle -> resize -> pad -> bits -> copies, rotated and flipped
 *
 * All images stay in memory: MNIST takes 47 MB, CelebA at 64x64 2.5 GB. Random draws for image i are keyed by i. */
#ifndef ACF_IMAGE_IMAGES_H
#define ACF_IMAGE_IMAGES_H

#include "base/arena.h"
#include "device/device.h"
#include "image/image_codec.h"
#include "image/image_ops.h"
#include "table/split.h"

#define ACF_IMAGES_BYTES_MAX ((int64_t)1 << 38) /* of a set: 256 GiB */

typedef struct acf_image_plan { /* all zero: no change */
    int channels;               /* 1 grey, 3 colour; 0: as the majority of a folder */
    acf_image_box crop;         /* all zero: none. CelebA's faces: 25,45,153,173 */
    bool middle;                /* cut out the middle in the ratio of `width` to `height`, or a square if these are 0 */
    int64_t width, height;      /* after scaling; 0: unchanged */
    int64_t pad;                /* pad with zeros to a multiple of this: 28x28 with 32 becomes 32x32; 0: none */
    int bits;                   /* levels per channel, as their base-2 logarithm, 1..8; 0 is 8 */
    bool rotate;                /* add copies of every picture rotated counter-clockwise by 90, 180 and 270 degrees */
    bool flip;                  /* add a copy of every picture, also of rotated ones, with left and right exchanged */
    bool strict;                /* a damaged file in a folder is an error; otherwise it is left out */
    int64_t limit;              /* use only this many images, counted before copies; 0: all */
    bool (*wanted)(void *ctx, const char *file); /* for folders: whether a file is read; NULL: all are */
    void *ctx;
} acf_image_plan;

/* Constant after creation; any number of threads may read. */
typedef struct acf_images {
    int64_t N, H, W, C;
    int bits;
    uint8_t *pixel;         /* (N,H,W,C), 0 .. 2^bits - 1; owned */
    const char *path;       /* what it was read from; owned */
    const char **file;      /* (N) file names in a folder, without its path; NULL: an array. Owned */
    bool endings_differ;    /* the file endings differ: a.jpg is beside b.png, or b.PNG */
    acf_image_box inner;    /* the part that is not padding */
    acf_image_plan plan;    /* the plan that was applied */
    int64_t from_H, from_W; /* size before the plan; 0: they differed */
    int copies;     /* per image: first the N/copies images; if the plan rotates, these rotated by 90, 180 and 270
                 * degrees; if it flips, all of these flipped */
    int64_t other;  /* files of the folder whose names are not PNG or JPEG */
    int64_t broken; /* files that could not be read and were left out */
    char note[ACF_SENTENCE_MAX]; /* for the user: what was left out or converted, and why; "" if nothing was */
    acf_arena *text;             /* memory of path and names */
} acf_images;

/* Reads path. Uses the threads of the CPU device to decode files. plan NULL: no change. Gives *out; free with
 * acf_images_free. Fails: ACF_EUSAGE (the plan), ACF_EIO, ACF_EDATA (not images, damaged ones, none at all, sizes
 * that differ), ACF_EMEMORY. */
acf_status acf_images_read(const acf_device *dev, const char *path, const acf_image_plan *plan, acf_images **out);

/* Whether path is a source of images and not a table: a folder, a PNG, JPEG or idx file, or .npy of bytes in 3 or 4
 * dimensions. False if it cannot be opened; no failure is recorded. */
bool acf_images_is_source(const char *path);

/* The plan from the options (option_table.h: image-...). Fails: ACF_EUSAGE. */
acf_status acf_image_plan_read(const acf_options *o, acf_image_plan *out);

/* Copies N images (N,H,W,C) of 8 bits and applies the plan to them as to files. Gives *out. Fails: ACF_ESHAPE (sizes
 * below 1 or too large, C not 1 or 3), ACF_EUSAGE, ACF_EDATA, ACF_EMEMORY. */
acf_status acf_images_make(const uint8_t *pixel, int64_t N, int64_t H, int64_t W, int64_t C, const acf_image_plan *plan,
                           acf_images **out);

/* Selects these images, numbered without copies, with all their copies. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_images_pick(const acf_images *im, const acf_rows *rows, acf_images **out);

/* Image i, (H,W,C). */
static inline const uint8_t *acf_images_at(const acf_images *im, int64_t i) {
    return im->pixel + i * im->H * im->W * im->C;
}

/* "a.png", "digits.npy 17", or with " rotated 90" or " flipped" after it, for messages and captions. Returns out. */
#define ACF_IMAGE_NAME_MAX 300
char *acf_images_write_name(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i);

/* The name of files made from image i, unique within a set: "a" of a.png, "a.png" if endings differ, "digits-017" of
 * number 17 of digits.npy; with "-rotated-90" or "-flipped" after it. Returns out. */
char *acf_images_write_file_name(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i);

/* Removes the ending of a picture or array, such as .png or .npy.gz, from a name; returns name. */
char *acf_images_cut_ending(char *name);

/* ---- for the sources --------------------------------------------------------------------------------------------- */

/* Refuses invalid plans. */
acf_status acf_image_plan_check(const acf_image_plan *plan);

/* The size of a picture of H x W after the plan: *h, *w. name is shown in messages. Fails: ACF_EDATA (the crop box
 * extends beyond the picture). */
acf_status acf_image_plan_size(const acf_image_plan *plan, const char *name, int64_t H, int64_t W, int64_t *h,
                               int64_t *w);

/* out (h,w,C) = the picture in (H,W,from), after the whole plan except copies. Fails as above, and ACF_EMEMORY. */
acf_status acf_image_plan_apply(const acf_image_plan *plan, const char *name, const uint8_t *in, int64_t H, int64_t W,
                                int from, int C, uint8_t *out);

/* The same for a mask file of the images' original size, in which white is hidden: out (H,W) is 1 for given, 0 for
 * hidden. A pixel is hidden if any part of it is; padding is given. Copies use the mask of their original image.
 * Fails: ACF_EMEMORY. */
acf_status acf_images_mask(const acf_images *im, const char *name, const uint8_t *hidden, uint8_t *out);

/* Allocates N images of the size that the plan makes of H x W; the names are empty. Gives *out. */
acf_status acf_images_reserve(const char *path, const acf_image_plan *plan, int64_t N, int64_t H, int64_t W, int C,
                              acf_images **out);

/* These have their own files: a folder; MNIST's idx. */
acf_status acf_images_read_folder(const acf_device *dev, const char *path, const acf_image_plan *plan,
                                  acf_images **out);
acf_status acf_images_read_idx(const char *path, int64_t bytes, const acf_image_plan *plan, acf_images **out);

#endif
