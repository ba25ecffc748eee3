/* Image files made in memory for tests: PNG of every kind by libpng, JPEG by libjpeg, idx. Folders to put them in:
 * file_lab.h. */
#ifndef ACF_HARNESS_IMAGE_FILES_H
#define ACF_HARNESS_IMAGE_FILES_H

#include "harness/file_lab.h"

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
/* pixel (H,W,1, 3 or 4); quality 100, no subsampling. CMYK: as ink, so 255 is full; with adobe, written as Adobe's
 * programs do. */
void acf_lab_put_jpeg(acf_lab_bytes *out, acf_lab_jpeg kind, bool progressive, bool adobe, int H, int W,
                      const unsigned char *pixel);

/* An idx file of images, N x H x W. */
void acf_lab_put_idx(acf_lab_bytes *out, int N, int H, int W, const unsigned char *pixel);

#endif
