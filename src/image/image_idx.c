/* MNIST's idx files: see images.h. Big-endian: 0 0 type rank, the sizes, the items. Read sequentially, so gzip needs
 * no second copy. */
#include "image/images.h"
#include "table/source.h"

#include <string.h>

#define GZIP_RATIO                                                                                                     \
    1040 /* deflate compresses at most 1032 to 1: a header cannot claim more memory than the file can fill */

static acf_status cut_short(const char *path) {
    return acf_fail(ACF_EDATA, "%s: it is cut short: more bytes were expected at its end; copy it again", path);
}

static acf_status take(acf_source *s, const char *path, void *out, size_t n) {
    size_t got;
    ACF_TRY(acf_source_read(s, out, n, &got));
    return got == n ? ACF_OK : cut_short(path);
}

/* N, H, W from the header. */
static acf_status read_header(acf_source *s, const char *path, int64_t dim[3]) {
    uint8_t b[16];
    ACF_TRY(take(s, path, b, 4));
    if (b[0] != 0 || b[1] != 0 || b[2] != 8)
        return acf_fail(
            ACF_EDATA,
            "%s: it begins with the bytes %02x %02x %02x %02x, expected 00 00 08 03, an idx file of images; is it "
            "another kind of file?",
            path, b[0], b[1], b[2], b[3]);
    if (b[3] == 1)
        return acf_fail(ACF_EDATA,
                        "%s: it is an idx file of labels, expected images; give the file with 'images' in its name",
                        path);
    if (b[3] != 3)
        return acf_fail(ACF_EDATA, "%s: it is an idx file of %d dimensions, expected 3: images, rows, columns", path,
                        b[3]);
    ACF_TRY(take(s, path, b, 12));
    for (int i = 0; i < 3; i++)
        dim[i] = (int64_t)b[4 * i] << 24 | b[4 * i + 1] << 16 | b[4 * i + 2] << 8 | b[4 * i + 3];
    if (dim[0] == 0) return acf_fail(ACF_EDATA, "%s: it holds no images, expected at least one", path);
    return acf_image_check_size(path, (uint64_t)dim[2], (uint64_t)dim[1]);
}

/* Too few bytes mean a truncated copy. Extra bytes are refused, because this reader would drop them silently. */
static acf_status check_end(acf_source *s, const char *path) {
    char more;
    size_t got;
    ACF_TRY(acf_source_read(s, &more, 1, &got));
    return got == 0 ? ACF_OK
                    : acf_fail(ACF_EDATA, "%s: bytes follow the last image that its header counts; the file is damaged",
                               path);
}

static acf_status read_images(acf_source *s, const char *path, int64_t bytes, const acf_image_plan *p,
                              acf_images **out) {
    int64_t dim[3];
    ACF_TRY(read_header(s, path, dim));
    const int64_t size = dim[1] * dim[2];
    if (dim[0] > (acf_source_is_gzip(s) ? bytes * GZIP_RATIO : bytes) / size) return cut_short(path);
    acf_images *im;
    const int C = p->channels ? p->channels : 1;
    const bool all = !p->limit || p->limit >= dim[0];
    ACF_TRY(acf_images_reserve(path, p, all ? dim[0] : p->limit, dim[1], dim[2], C, &im));
    uint8_t *one = acf_alloc((size_t)size, "a picture");
    acf_status status = one ? ACF_OK : ACF_EMEMORY;
    for (int64_t i = 0; status == ACF_OK && i < im->N; i++) {
        status = take(s, path, one, (size_t)size);
        if (status == ACF_OK)
            status = acf_image_plan_apply(p, path, one, dim[1], dim[2], 1, C, im->pixel + i * im->H * im->W * C);
    }
    if (status == ACF_OK && all) status = check_end(s, path);
    acf_release(one);
    if (status == ACF_OK)
        *out = im;
    else
        acf_images_free(im);
    return status;
}

acf_status acf_images_read_idx(const char *path, int64_t bytes, const acf_image_plan *p, acf_images **out) {
    acf_source *s;
    ACF_TRY(acf_source_open(path, &s));
    acf_status status = read_images(s, path, bytes, p, out);
    acf_source_close(s);
    return status;
}
