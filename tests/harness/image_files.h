/* Image files made in memory for tests: PNG of every kind by libpng, JPEG by libjpeg, idx, and folders to put them in. */
#ifndef ACF_HARNESS_IMAGE_FILES_H
#define ACF_HARNESS_IMAGE_FILES_H

#include "harness/check.h"

#include <stdbool.h>

#define ACF_LAB_IMAGE_MAX ((size_t)1 << 17)

typedef struct acf_lab_bytes {
    size_t n;
    unsigned char b[ACF_LAB_IMAGE_MAX];
} acf_lab_bytes;

/* How a PNG is stored. type: libpng's PNG_COLOR_TYPE_; bits: of a sample. */
typedef struct acf_lab_png {
    int type, bits;
    bool interlaced;
    const unsigned char *palette; /* (2^bits,3), for palette pictures */
    int transparent;              /* palette: this entry is transparent; grey: this level is; -1: none */
} acf_lab_png;

/* samples (H,W,channels), one number each; 16-bit samples are 257 times a byte. */
void acf_lab_put_png(acf_lab_bytes *out, acf_lab_png kind, int H, int W, const unsigned char *samples);

typedef enum acf_lab_jpeg { ACF_LAB_GREY, ACF_LAB_COLOUR, ACF_LAB_CMYK, ACF_LAB_YCCK } acf_lab_jpeg;
/* pixel (H,W,1, 3 or 4); quality 100, no subsampling. CMYK: as ink, that is 255 is full; written as Adobe's programs do where adobe. */
void acf_lab_put_jpeg(acf_lab_bytes *out, acf_lab_jpeg kind, bool progressive, bool adobe, int H, int W, const unsigned char *pixel);

/* An idx file of images, N x H x W. */
void acf_lab_put_idx(acf_lab_bytes *out, int N, int H, int W, const unsigned char *pixel);

/* A temporary folder; files in it; and away with it. */
typedef struct acf_lab_folder {
    char path[40];
} acf_lab_folder;
acf_lab_folder acf_lab_folder_make(void);
void acf_lab_folder_put(const acf_lab_folder *f, const char *name, const void *bytes, size_t n);
void acf_lab_folder_free(const acf_lab_folder *f);

#endif
