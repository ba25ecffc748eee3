/* Read options of images: the user's options as a plan, and whether a path is a source of images at all. See
 * images.h. */
#include "image/images.h"

#include "base/options.h"
#include "base/text.h"
#include "table/npy.h"
#include "table/source.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK 8 /* bytes that identify a file format */

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Reads n whole numbers with this character between them and nothing else; false otherwise. */
static bool numbers(const char *text, char between, int64_t *out, int n) {
    for (int i = 0; i < n; i++) {
        char one[24];
        const size_t length = strspn(text, "0123456789");
        if (length == 0 || length >= sizeof one) return false;
        memcpy(one, text, length);
        one[length] = '\0';
        if (!acf_text_to_int(one, &out[i])) return false;
        text += length;
        if (i + 1 < n && *text++ != between) return false;
    }
    return *text == '\0';
}

acf_status acf_image_plan_read(const acf_options *o, acf_image_plan *out) {
    static const int channels[] = {0, 1, 3};
    const char *crop = acf_options_text(o, "image-crop"), *size = acf_options_text(o, "image-size");
    char seen[ACF_EXCERPT_MAX];
    int64_t v[4] = {0};
    acf_image_plan p = {.channels = channels[acf_options_choice(o, "image-channels")],
                        .middle = acf_options_bool(o, "image-centre"),
                        .pad = acf_options_int(o, "image-pad"),
                        .bits = (int)acf_options_int(o, "image-bits"),
                        .rotate = acf_options_bool(o, "image-rotate"),
                        .flip = acf_options_bool(o, "image-flip"),
                        .strict = acf_options_bool(o, "strict"),
                        .limit = acf_options_int(o, "image-limit")};
    if (*crop && !numbers(crop, ',', v, 4))
        return acf_fail(ACF_EUSAGE,
                        "image-crop is '%s'; expected left,top,right,bottom in pixels, such as 25,45,153,173",
                        acf_text_excerpt(seen, crop));
    p.crop = (acf_image_box){v[0], v[1], v[2], v[3]};
    if (*crop && (v[0] >= v[2] || v[1] >= v[3]))
        return acf_fail(
            ACF_EUSAGE,
            "image-crop is '%s', which has no pixels; expected left,top,right,bottom with left < right and top < "
            "bottom",
            crop);
    v[0] = v[1] = 0;
    if (*size && numbers(size, 'x', v, 1))
        v[1] = v[0];
    else if (*size && !numbers(size, 'x', v, 2))
        v[0] = 0;
    if (*size && (v[0] < 1 || v[1] < 1 || v[0] > ACF_IMAGE_SIDE_MAX || v[1] > ACF_IMAGE_SIDE_MAX))
        return acf_fail(
            ACF_EUSAGE,
            "image-size is '%s'; expected width and height in pixels, such as 64x48, or one number from 1 to %d",
            acf_text_excerpt(seen, size), ACF_IMAGE_SIDE_MAX);
    p.width = v[0], p.height = v[1];
    *out = p;
    return acf_image_plan_check(out);
}

/* ---- recognising images ------------------------------------------------------------------------------------------ */

static bool npy_has_images(const char *path) {
    acf_npy *f;
    if (acf_npy_open_bytes(path, &f) != ACF_OK) return false;
    const bool yes = acf_npy_dimensions(f) >= 3 && acf_npy_is_bytes(f);
    acf_npy_close(f);
    return yes;
}

static bool begins_as_idx(const uint8_t *b, size_t n) {
    return n >= 4 && b[0] == 0 && b[1] == 0 && b[2] == 8 && b[3] <= 4;
}

static bool unpacks_as_idx(const char *path) {
    acf_source *s;
    uint8_t b[LOOK];
    size_t n = 0;
    if (acf_source_open(path, &s) != ACF_OK) return false;
    const bool read = acf_source_read(s, b, sizeof b, &n) == ACF_OK;
    acf_source_close(s);
    return read && begins_as_idx(b, n);
}

/* Reads the first bytes of a regular file; 0 if there are none. A pipe is not opened. */
static size_t look_at(const char *path, const struct stat *st, uint8_t b[LOOK]) {
    const int fd = S_ISREG(st->st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
    const ssize_t n = fd < 0 ? 0 : read(fd, b, LOOK);
    if (fd >= 0) close(fd);
    return n < 0 ? 0 : (size_t)n;
}

/* The first bytes decide for text, PNG, JPEG and idx. For gzip and .npy they select the reader that decides. */
bool acf_images_is_source(const char *path) {
    struct stat st;
    uint8_t b[LOOK];
    acf_failure before;
    if (strcmp(path, "-") == 0 || stat(path, &st) != 0) return false;
    if (S_ISDIR(st.st_mode)) return true;
    const size_t n = look_at(path, &st, b);
    const bool packed = n >= 2 && memcmp(b, "\x1f\x8b", 2) == 0, npy = n >= 6 && memcmp(b, "\x93NUMPY", 6) == 0;
    if (!packed && !npy) return begins_as_idx(b, n) || (n >= 4 && acf_image_format_of(b, n) != ACF_IMAGE_OTHER);
    acf_failure_save(&before);
    const bool yes = npy ? npy_has_images(path) : unpacks_as_idx(path);
    acf_failure_restore(&before);
    return yes;
}
