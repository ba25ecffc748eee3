/* Decodes PNG and JPEG files to pixels: one picture at a time, 8 bits per channel, grey or colour.
 *
 *     bytes --> format from the first bytes --> image_png.c  (libpng)            --> raster (H,W,C), C = 1 or 3
 *                                           `-> image_jpeg.c (libjpeg-turbo)
 *
 * What a file may hold, and how it is converted:
 *     16 bits per channel         scaled to 8, rounded to the nearest
 *     palette, 1, 2 or 4 bits     colours, or grey levels from 0 to 255
 *     transparency                laid on white
 *     interlaced, progressive     as any other
 *     CMYK and YCCK (JPEG)        colour
 * Gamma, colour profiles and the camera's orientation are ignored: the numbers of the file are the data.
 *
 * A file is hostile input. Its size is compared with limits before memory is allocated. A truncated or damaged file
 * is refused, never filled up with grey. Every message begins with the name of the file. Thread rule: any number of
 * pictures at once. */
#ifndef ACF_IMAGE_IMAGE_CODEC_H
#define ACF_IMAGE_IMAGE_CODEC_H

#include "base/status.h"

#include <stdint.h>

#define ACF_IMAGE_SIDE_MAX 32768                /* pixels */
#define ACF_IMAGE_PIXELS_MAX ((int64_t)1 << 26) /* of one picture: 67 million */
#define ACF_IMAGE_FILE_MAX ((size_t)1 << 28)    /* bytes of one file: 256 MiB */

/* One picture. */
typedef struct acf_raster {
    int64_t H, W;
    int C;          /* 1 grey, 3 red green blue */
    uint8_t *pixel; /* (H,W,C); owned */
} acf_raster;

void acf_raster_free(acf_raster *r); /* frees the pixels; the caller owns r itself */

typedef enum acf_image_format { ACF_IMAGE_OTHER, ACF_IMAGE_PNG, ACF_IMAGE_JPEG } acf_image_format;

/* The format of a file that begins with these bytes. */
acf_image_format acf_image_format_of(const void *bytes, size_t n);

/* Decodes n bytes; name is shown in messages. Gives out->pixel; release with acf_raster_free. With `header` only H,
 * W and C are read and pixel is NULL; the file may then be truncated after its header. Fails: ACF_EDATA,
 * ACF_EMEMORY. */
acf_status acf_raster_decode(const char *name, const void *bytes, size_t n, bool header, acf_raster *out);

/* The same for a file. Fails also: ACF_EIO. */
acf_status acf_raster_read(const char *path, acf_raster *out);

/* H, W and C of a file, from its first bytes if they are enough. */
acf_status acf_raster_probe(const char *path, acf_raster *out);

/* ---- for the two decoders ---------------------------------------------------------------------------------------- */

acf_status acf_png_decode(const char *name, const uint8_t *bytes, size_t n, bool header, acf_raster *out);
acf_status acf_jpeg_decode(const char *name, const uint8_t *bytes, size_t n, bool header, acf_raster *out);

/* Refuses sizes beyond the limits. */
acf_status acf_image_check_size(const char *name, uint64_t W, uint64_t H);

#endif
