/* PNG and JPEG files: see image_codec.h. This is the common part: reading the file, recognising its kind, limits. */
#include "image/image_codec.h"

#include "base/arena.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define PROBE_BYTES                                                                                                    \
    ((size_t)1 << 16) /* a header is rarely farther from the beginning, except after a camera's
                                       * preview */

void acf_raster_free(acf_raster *r) {
    acf_release(r->pixel);
    r->pixel = NULL;
}

static bool begins(const void *bytes, size_t n, const char *magic, size_t length) {
    return n >= length && memcmp(bytes, magic, length) == 0;
}

acf_image_format acf_image_format_of(const void *bytes, size_t n) {
    if (begins(bytes, n, "\x89PNG\r\n\x1a\n", 8)) return ACF_IMAGE_PNG;
    if (begins(bytes, n, "\xff\xd8\xff", 3)) return ACF_IMAGE_JPEG;
    return ACF_IMAGE_OTHER;
}

acf_status acf_image_check_size(const char *name, uint64_t W, uint64_t H) {
    if (W == 0 || H == 0)
        return acf_fail(ACF_EDATA, "%s: its header says %llu x %llu pixels, expected at least one; the file is damaged",
                        name, (unsigned long long)W, (unsigned long long)H);
    if (W > ACF_IMAGE_SIDE_MAX || H > ACF_IMAGE_SIDE_MAX || W * H > (uint64_t)ACF_IMAGE_PIXELS_MAX)
        return acf_fail(
            ACF_EDATA,
            "%s: it has %llu x %llu pixels, expected at most %d a side and %lld in all; make it smaller first", name,
            (unsigned long long)W, (unsigned long long)H, ACF_IMAGE_SIDE_MAX, (long long)ACF_IMAGE_PIXELS_MAX);
    return ACF_OK;
}

/* Names the kind of an unsupported picture; anything else is reported as not a picture. */
static acf_status not_an_image(const char *name, const void *bytes, size_t n) {
    static const struct {
        const char *magic;
        size_t length;
        const char *what;
    } known[] = {{"GIF8", 4, "a GIF file"},
                 {"BM", 2, "a BMP file"},
                 {"RIFF", 4, "a WebP file"},
                 {"II*\0", 4, "a TIFF file"},
                 {"MM\0*", 4, "a TIFF file"}};
    if (n == 0) return acf_fail(ACF_EDATA, "%s: it is empty, expected a PNG or JPEG file", name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (begins(bytes, n, known[i].magic, known[i].length))
            return acf_fail(ACF_EDATA, "%s: it is %s, expected PNG or JPEG; convert it", name, known[i].what);
    return acf_fail(
        ACF_EDATA,
        "%s: it is not a supported image; expected PNG or JPEG, or for several images .npy, idx (also .gz) or a folder",
        name);
}

acf_status acf_raster_decode(const char *name, const void *bytes, size_t n, bool header, acf_raster *out) {
    switch (acf_image_format_of(bytes, n)) {
    case ACF_IMAGE_PNG: return acf_png_decode(name, bytes, n, header, out);
    case ACF_IMAGE_JPEG: return acf_jpeg_decode(name, bytes, n, header, out);
    default: return not_an_image(name, bytes, n);
    }
}

static acf_status read_and_decode(const char *path, bool header, acf_raster *out) {
    char *bytes;
    size_t n;
    ACF_TRY(acf_file_read(path, ACF_IMAGE_FILE_MAX, &bytes, &n));
    acf_status status = acf_raster_decode(path, bytes, n, header, out);
    acf_release(bytes);
    return status;
}

acf_status acf_raster_read(const char *path, acf_raster *out) { return read_and_decode(path, false, out); }

/* Tries the first bytes. If that fails for any reason, the whole file decides. */
acf_status acf_raster_probe(const char *path, acf_raster *out) {
    uint8_t *begin = acf_alloc(PROBE_BYTES, "a header");
    if (!begin) return ACF_EMEMORY;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : pread(fd, begin, PROBE_BYTES, 0);
    if (fd >= 0) close(fd);
    acf_failure before;
    acf_failure_save(&before);
    bool found = n > 0 && acf_raster_decode(path, begin, (size_t)n, true, out) == ACF_OK;
    acf_release(begin);
    if (found) return ACF_OK;
    acf_failure_restore(&before);
    return read_and_decode(path, true, out);
}
