/* A set of images in memory: N pictures of one size, bytes, as one block. What training, masks and questions read.
 *
 *     a PNG or JPEG file            1 image
 *     a folder of such files        by name, byte by byte; sub-folders are not followed, other files are counted and left out
 *     .npy                          (N,H,W), (N,H,W,C) or (H,W) of u1
 *     idx, as MNIST's, or its .gz   N images of H x W
 *
 * Which of them a path is, is told by what it holds, not by its name; in a folder, the ending (.png .jpg .jpeg) decides what is looked at.
 *
 * What is done to every picture, in this order, and only where asked for (acf_image_plan):
 *     grey or colour -> crop box -> middle -> resize -> pad -> bits -> copies, turned and mirrored
 *
 * In memory all the time: MNIST takes 47 MB, CelebA at 64x64 2.5 GB. Random draws for image i are keyed by i. Internal names begin with
 * acf_img_; the public ones (acf_images_) are in api/. */
#ifndef ACF_IMAGE_IMAGES_H
#define ACF_IMAGE_IMAGES_H

#include "base/arena.h"
#include "device/device.h"
#include "image/image_codec.h"
#include "image/image_ops.h"
#include "table/split.h"

#define ACF_IMAGES_BYTES_MAX ((int64_t)1 << 38) /* of a set: 256 GiB */

typedef struct acf_image_plan { /* all zero: as they come */
    int channels;               /* 1 grey, 3 colour; 0: as most files of a folder are */
    acf_image_box crop;         /* all zero: none. CelebA's faces: 25,45,153,173 */
    bool
        middle; /* the middle, as wide and high as `width` and `height` are to each other, or a square where these are 0 */
    int64_t width, height; /* after scaling; 0: as they are */
    int64_t pad;           /* zeros around it up to a multiple of this: 28x28 with 32 becomes 32x32; 0: none */
    int bits;              /* levels of a channel, as their logarithm, 1..8; 0 is 8 */
    bool rotate;           /* every picture also turned by 90, 180 and 270 degrees against the clock */
    bool flip;             /* every picture, turned ones too, also with left and right exchanged */
    bool strict;           /* a folder with a damaged file is refused, instead of the file */
    int64_t limit;         /* only the first so many images, before they are copied; 0: all */
    bool (*wanted)(void *ctx, const char *file); /* of a folder: whether a file is looked at; NULL: all are */
    void *ctx;
} acf_image_plan;

/* Nothing changes after creation; any number of threads may read. */
typedef struct acf_images {
    int64_t N, H, W, C;
    int bits;
    uint8_t *pixel;         /* (N,H,W,C), 0 .. 2^bits - 1; owned */
    const char *path;       /* what it was read from; owned */
    const char **file;      /* (N) file names of a folder, without it; NULL: an array. Owned */
    bool endings_differ;    /* of these files: a.jpg is beside b.png, or b.PNG */
    acf_image_box inner;    /* what is not padding */
    acf_image_plan plan;    /* what was done to them */
    int64_t from_H, from_W; /* their size before that; 0: they differed */
    int copies; /* of each: the first N/copies images; where the plan turns, these turned by 90, 180 and 270 degrees; where it mirrors, all so far mirrored */
    int64_t other;               /* files of the folder that are no PNG or JPEG by their name */
    int64_t broken;              /* files that could not be read and are left out */
    char note[ACF_SENTENCE_MAX]; /* for the user: what was left out or converted, and why; "" where nothing was */
    acf_arena *text;             /* of path and names */
} acf_images;

/* Reads path. The CPU device lends its threads to decode files. plan NULL: as they come. Gives *out; free with acf_images_free.
 * Fails: ACF_EUSAGE (the plan), ACF_EIO, ACF_EDATA (not images, damaged ones, none at all, sizes that differ), ACF_EMEMORY. */
acf_status acf_images_read(const acf_device *dev, const char *path, const acf_image_plan *plan, acf_images **out);

/* Whether path is a source of images and not a table: a folder, a PNG, JPEG or idx file, or .npy of bytes in 3 or 4 dimensions. What cannot be
 * opened is none; no failure is recorded. */
bool acf_images_is_source(const char *path);

/* The plan that the options ask for (option_table.h: image-...). Fails: ACF_EUSAGE. */
acf_status acf_image_plan_read(const acf_options *o, acf_image_plan *out);

/* Copies N images (N,H,W,C) of 8 bits; the plan does to them what it does to files. Gives *out.
 * Fails: ACF_ESHAPE (sizes below 1 or too large, C not 1 or 3), ACF_EUSAGE, ACF_EDATA, ACF_EMEMORY. */
acf_status acf_images_make(const uint8_t *pixel, int64_t N, int64_t H, int64_t W, int64_t C, const acf_image_plan *plan,
                           acf_images **out);

/* Copies these images, by their numbers before any was copied; with all their copies. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_images_pick(const acf_images *im, const acf_rows *rows, acf_images **out);

/* Image i, (H,W,C). */
static inline const uint8_t *acf_images_at(const acf_images *im, int64_t i) {
    return im->pixel + i * im->H * im->W * im->C;
}

/* "a.png", "digits.npy 17", or with " turned 90" or " mirrored" behind it, for sentences and captions. Returns out. */
#define ACF_IMAGE_NAME_MAX 300
char *acf_images_write_name(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i);

/* What files made from it are called, no two of a set alike: "a" of a.png, "a.png" where endings differ, "digits-017" of number 17 of digits.npy;
 * with "-turned-90" or "-mirrored" behind it. Returns out. */
char *acf_images_write_file_name(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i);

/* Takes the ending of a picture or array, such as .png or .npy.gz, off a name; returns it as it then is. */
char *acf_images_cut_ending(char *name);

/* ---- for the sources ------------------------------------------------------------------------------------------------------- */

/* Refuses plans that cannot be meant. */
acf_status acf_image_plan_check(const acf_image_plan *plan);

/* What becomes of a picture of H x W: *h, *w. name is shown in sentences. Fails: ACF_EDATA (the crop box reaches out of it). */
acf_status acf_image_plan_size(const acf_image_plan *plan, const char *name, int64_t H, int64_t W, int64_t *h,
                               int64_t *w);

/* out (h,w,C) = the picture in (H,W,from), after all of the plan but copies. Fails as above, and ACF_EMEMORY. */
acf_status acf_image_plan_apply(const acf_image_plan *plan, const char *name, const uint8_t *in, int64_t H, int64_t W,
                                int from, int C, uint8_t *out);

/* The same for a mask file of the images' size before they were read, white hidden: out (H,W) 1 given, 0 hidden. A pixel is hidden where any part of it is;
 * padding is given. For copies it is that of the image they are of. Fails: ACF_EMEMORY. */
acf_status acf_images_mask(const acf_images *im, const char *name, const uint8_t *hidden, uint8_t *out);

/* Memory for N images of the size that the plan makes of H x W; the names are empty. Gives *out. */
acf_status acf_images_reserve(const char *path, const acf_image_plan *plan, int64_t N, int64_t H, int64_t W, int C,
                              acf_images **out);

/* Their own files: a folder; MNIST's idx. */
acf_status acf_images_read_folder(const acf_device *dev, const char *path, const acf_image_plan *plan,
                                  acf_images **out);
acf_status acf_images_read_idx(const char *path, int64_t bytes, const acf_image_plan *plan, acf_images **out);

#endif
