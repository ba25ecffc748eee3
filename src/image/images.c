/* Sets of images: see images.h. This file applies a plan to one picture and reads single files and .npy. Folders and
 * idx have files of their own. */
#include "image/images.h"

#include "base/text.h"
#include "table/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static bool has_crop(const acf_image_plan *p) { return p->crop.x0 || p->crop.y0 || p->crop.x1 || p->crop.y1; }

static acf_status check_side(const char *what, int64_t v, int64_t least) {
    if (v >= least && v <= ACF_IMAGE_SIDE_MAX) return ACF_OK;
    return acf_fail(ACF_EUSAGE, "images: %s of %lld pixels; expected %lld to %d", what, (long long)v, (long long)least,
                    ACF_IMAGE_SIDE_MAX);
}

acf_status acf_image_plan_check(const acf_image_plan *p) {
    const acf_image_box c = p->crop;
    if (p->channels != 0 && p->channels != 1 && p->channels != 3)
        return acf_fail(ACF_EUSAGE, "images of %d channels; expected 1 (grey) or 3 (colour)", p->channels);
    if (p->bits < 0 || p->bits > 8)
        return acf_fail(ACF_EUSAGE, "images of %d bits a channel; expected 1 to 8", p->bits);
    if (has_crop(p) && !(0 <= c.x0 && c.x0 < c.x1 && 0 <= c.y0 && c.y0 < c.y1))
        return acf_fail(
            ACF_EUSAGE,
            "images cropped to %lld,%lld,%lld,%lld; expected left,top,right,bottom with left < right and top < bottom",
            (long long)c.x0, (long long)c.y0, (long long)c.x1, (long long)c.y1);
    if ((p->width == 0) != (p->height == 0))
        return acf_fail(ACF_EUSAGE, "images resized to %lld x %lld; expected both sides, or none", (long long)p->width,
                        (long long)p->height);
    ACF_TRY(check_side("a width", p->width, 0));
    ACF_TRY(check_side("a height", p->height, 0));
    ACF_TRY(check_side("padding to a multiple", p->pad, 0));
    if (p->limit < 0)
        return acf_fail(ACF_EUSAGE, "the first %lld images; expected 1 or more, or 0 for all", (long long)p->limit);
    return ACF_OK;
}

/* The boxes of the two crops, in a picture of H x W. */
static acf_status boxes(const acf_image_plan *p, const char *name, int64_t H, int64_t W, acf_image_box *out) {
    *out = (acf_image_box){0, 0, W, H};
    if (has_crop(p)) {
        if (p->crop.x1 > W || p->crop.y1 > H)
            return acf_fail(
                ACF_EDATA,
                "%s: it has %lld x %lld pixels, but is to be cropped to columns %lld to %lld and rows %lld to %lld; "
                "crop less",
                name, (long long)W, (long long)H, (long long)p->crop.x0, (long long)p->crop.x1, (long long)p->crop.y0,
                (long long)p->crop.y1);
        *out = p->crop;
    }
    if (p->middle) {
        acf_image_box m =
            acf_image_middle(out->x1 - out->x0, out->y1 - out->y0, p->width ? p->width : 1, p->height ? p->height : 1);
        *out = (acf_image_box){out->x0 + m.x0, out->y0 + m.y0, out->x0 + m.x1, out->y0 + m.y1};
    }
    return ACF_OK;
}

static int64_t padded(const acf_image_plan *p, int64_t side) {
    return p->pad ? acf_ceil_div(side, p->pad) * p->pad : side;
}

acf_status acf_image_plan_size(const acf_image_plan *p, const char *name, int64_t H, int64_t W, int64_t *h,
                               int64_t *w) {
    acf_image_box box;
    ACF_TRY(boxes(p, name, H, W, &box));
    *h = padded(p, p->height ? p->height : box.y1 - box.y0);
    *w = padded(p, p->width ? p->width : box.x1 - box.x0);
    if (*h > ACF_IMAGE_SIDE_MAX || *w > ACF_IMAGE_SIDE_MAX || *h * *w > ACF_IMAGE_PIXELS_MAX)
        return acf_fail(
            ACF_EUSAGE,
            "images of %lld x %lld pixels after resizing and padding; expected at most %d a side and %lld in all",
            (long long)*w, (long long)*h, ACF_IMAGE_SIDE_MAX, (long long)ACF_IMAGE_PIXELS_MAX);
    return ACF_OK;
}

/* Where acf_image_pad puts the scaled content of box, in h x w pixels. */
static acf_image_box unpadded(const acf_image_plan *p, const acf_image_box *box, int64_t h, int64_t w) {
    const int64_t sh = p->height ? p->height : box->y1 - box->y0, sw = p->width ? p->width : box->x1 - box->x0,
                  y = (h - sh) / 2, x = (w - sw) / 2;
    return (acf_image_box){x, y, x + sw, y + sh};
}

acf_status acf_image_plan_apply(const acf_image_plan *p, const char *name, const uint8_t *in, int64_t H, int64_t W,
                                int from, int C, uint8_t *out) {
    acf_image_box box;
    int64_t h, w;
    ACF_TRY(boxes(p, name, H, W, &box));
    ACF_TRY(acf_image_plan_size(p, name, H, W, &h, &w));
    const int64_t bh = box.y1 - box.y0, bw = box.x1 - box.x0, sh = p->height ? p->height : bh,
                  sw = p->width ? p->width : bw;
    uint8_t *cut = acf_alloc((size_t)(bh * bw * 3), "a picture"), *same = acf_alloc((size_t)(bh * bw * C), "a picture");
    uint8_t *scaled = acf_alloc((size_t)(sh * sw * C), "a picture");
    acf_status status = cut && same && scaled ? ACF_OK : ACF_EMEMORY;
    if (status == ACF_OK) {
        acf_image_cut(cut, in, W, from, box); /* cut first: what is cut away need not be converted */
        acf_image_channels(same, C, cut, from, bh * bw);
        status = acf_image_resize(scaled, sh, sw, same, bh, bw, C);
    }
    if (status == ACF_OK) {
        acf_image_pad(out, h, w, scaled, sh, sw, C);
        if (p->bits) acf_image_coarsen(out, h * w * C, p->bits);
    }
    acf_release(cut), acf_release(same), acf_release(scaled);
    return status;
}

acf_status acf_images_mask(const acf_images *im, const char *name, const uint8_t *hidden, uint8_t *out) {
    acf_image_plan p = im->plan;
    p.bits = 0;
    ACF_TRY(acf_image_plan_apply(&p, name, hidden, im->from_H, im->from_W, 1, 1, out));
    for (int64_t i = 0; i < im->H * im->W; i++) out[i] = !out[i];
    return ACF_OK;
}

/* ---- sets -------------------------------------------------------------------------------------------------------- */

static const char *keep_text(acf_arena *a, const char *text) {
    const size_t n = strlen(text) + 1;
    char *p = acf_arena_alloc(a, n);
    return p ? memcpy(p, text, n) : NULL;
}

acf_status acf_images_reserve(const char *path, const acf_image_plan *p, int64_t N, int64_t H, int64_t W, int C,
                              acf_images **out) {
    int64_t h, w, bytes;
    acf_image_box box;
    ACF_TRY(boxes(p, path, H, W, &box));
    ACF_TRY(acf_image_plan_size(p, path, H, W, &h, &w));
    if (p->rotate && h != w)
        return acf_fail(
            ACF_EDATA,
            "%s: images of %lld x %lld pixels cannot be rotated by 90 degrees and keep their size; crop them to a "
            "square",
            path, (long long)w, (long long)h);
    const int copies = (p->rotate ? 4 : 1) * (p->flip ? 2 : 1);
    if (__builtin_mul_overflow(N, copies * h * w * C, &bytes) || bytes > ACF_IMAGES_BYTES_MAX)
        return acf_fail(
            ACF_EMEMORY,
            "%s: %lld images of %lld x %lld x %d bytes are more than the limit of %lld bytes; resize them, or read "
            "fewer",
            path, (long long)N * copies, (long long)w, (long long)h, C, (long long)ACF_IMAGES_BYTES_MAX);
    acf_images *im = acf_alloc_zero(sizeof *im, "a set of images");
    if (!im) return ACF_EMEMORY;
    *im = (acf_images){.N = N,
                       .H = h,
                       .W = w,
                       .C = C,
                       .bits = p->bits ? p->bits : 8,
                       .copies = 1,
                       .plan = *p,
                       .from_H = H,
                       .from_W = W};
    im->inner = unpadded(p, &box, h, w);
    acf_status status = acf_arena_create(&acf_heap, 0, &im->text);
    if (status == ACF_OK &&
        (!(im->pixel = acf_alloc((size_t)bytes, "a set of images")) || !(im->path = keep_text(im->text, path))))
        status = ACF_EMEMORY;
    if (status != ACF_OK) {
        acf_images_free(im);
        return status;
    }
    *out = im;
    return ACF_OK;
}

void acf_images_free(acf_images *im) {
    if (!im) return;
    acf_release(im->pixel);
    if (im->text) acf_arena_free(im->text);
    acf_release(im);
}

/* Appends copies of every image for each k from 1 below n, made by `change`. */
static void copy_all(acf_images *im, int n,
                     void (*change)(const acf_images *im, uint8_t *to, const uint8_t *from, int k)) {
    const int64_t N = im->N, size = im->H * im->W * im->C;
    for (int k = 1; k < n; k++)
        for (int64_t i = 0; i < N; i++) change(im, im->pixel + (k * N + i) * size, im->pixel + i * size, k);
    im->N *= n, im->copies *= n;
}

static void turn_one(const acf_images *im, uint8_t *to, const uint8_t *from, int k) {
    acf_image_rotate(to, from, im->H, im->W, im->C, k);
}

static void mirror_one(const acf_images *im, uint8_t *to, const uint8_t *from, int k) {
    (void)k;
    memcpy(to, from, (size_t)(im->H * im->W * im->C));
    acf_image_flip(to, im->H, im->W, im->C);
}

/* The last step: the memory for the copies is already allocated. */
static void add_copies(acf_images *im) {
    const bool across = im->inner.x0 == im->W - im->inner.x1, down = im->inner.y0 == im->H - im->inner.y1;
    if (im->plan.rotate) copy_all(im, 4, turn_one);
    if (im->plan.flip) copy_all(im, 2, mirror_one);
    if ((im->plan.rotate && !(across && down)) || (im->plan.flip && !across))
        im->inner = (acf_image_box){0, 0, im->W, im->H}; /* it moved with the image */
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The file of image k, before copies: in a folder its own, otherwise the path that was opened. */
static const char *file_of(const acf_images *im, int64_t k) {
    const char *slash = strrchr(im->path, '/');
    return im->file ? im->file[k] : slash && slash[1] ? slash + 1 : im->path;
}

#define SUFFIX_MAX 44 /* maximum length of the suffix of a file name */
static char *copy_name(char out[ACF_IMAGE_NAME_MAX], const char *file) {
    snprintf(out, ACF_IMAGE_NAME_MAX - SUFFIX_MAX, "%s", file);
    return out;
}

/* Appends the number of an image in an array, with this many digits, and the kind of its copy, each word after this
 * character. */
static char *add_suffix(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i, char before, int digits) {
    const int64_t once = im->N / im->copies, copy = i / once, turns = im->plan.rotate ? 4 : 1;
    acf_text t = {.out = out, .cap = ACF_IMAGE_NAME_MAX, .len = strlen(out)};
    if (!im->file && once > 1) acf_text_addf(&t, "%c%0*lld", before, digits, (long long)(i % once));
    if (copy % turns) acf_text_addf(&t, "%crotated%c%d", before, before, (int)(copy % turns) * 90);
    if (copy / turns) acf_text_addf(&t, "%cflipped", before);
    return out;
}

char *acf_images_write_name(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i) {
    return add_suffix(copy_name(out, file_of(im, i % (im->N / im->copies))), im, i, ' ', 1);
}

char *acf_images_write_file_name(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i) {
    const int64_t once = im->N / im->copies;
    int digits = 1;
    for (int64_t n = once - 1; n > 9; n /= 10) digits++;
    copy_name(out, file_of(im, i % once));
    return add_suffix(im->endings_differ ? out : acf_images_cut_ending(out), im, i, '-', digits);
}

static bool cut(char *name, const char *ending) {
    char *dot = strrchr(name, '.');
    const bool has = dot && dot != name && strcasecmp(dot, ending) == 0;
    if (has) *dot = 0;
    return has;
}

char *acf_images_cut_ending(char *name) {
    static const char *const known[] = {".png", ".jpg", ".jpeg", ".npy", ".idx"};
    cut(name, ".gz");
    for (size_t k = 0; k < sizeof known / sizeof *known && !cut(name, known[k]); k++) {}
    return name;
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static int64_t limited(const acf_image_plan *p, int64_t n) { return p->limit && p->limit < n ? p->limit : n; }

acf_status acf_images_make(const uint8_t *pixel, int64_t N, int64_t H, int64_t W, int64_t C, const acf_image_plan *plan,
                           acf_images **out) {
    const acf_image_plan none = {0}, *p = plan ? plan : &none;
    ACF_TRY(acf_image_plan_check(p));
    if (N < 1 || H < 1 || W < 1 || H > ACF_IMAGE_SIDE_MAX || W > ACF_IMAGE_SIDE_MAX || H * W > ACF_IMAGE_PIXELS_MAX ||
        (C != 1 && C != 3))
        return acf_fail(
            ACF_ESHAPE,
            "%lld images of %lld x %lld pixels and %lld channels; expected at least one, of 1 or 3 channels and at "
            "most %lld pixels",
            (long long)N, (long long)W, (long long)H, (long long)C, (long long)ACF_IMAGE_PIXELS_MAX);
    acf_images *im;
    const int to = p->channels ? p->channels : (int)C;
    ACF_TRY(acf_images_reserve("memory", p, limited(p, N), H, W, to, &im));
    acf_status status = ACF_OK;
    for (int64_t i = 0; status == ACF_OK && i < im->N; i++)
        status = acf_image_plan_apply(p, im->path, pixel + i * H * W * C, H, W, (int)C, to,
                                      im->pixel + i * im->H * im->W * to);
    if (status == ACF_OK) add_copies(im);
    if (status == ACF_OK)
        *out = im;
    else
        acf_images_free(im);
    return status;
}

acf_status acf_images_pick(const acf_images *im, const acf_rows *rows, acf_images **out) {
    const int64_t once = im->N / im->copies, n = rows->n * im->copies;
    const size_t size = (size_t)(im->H * im->W * im->C);
    acf_images *part;
    uint8_t *pixel = acf_alloc((size_t)n * size, "images");
    if (!pixel) return ACF_EMEMORY;
    for (int64_t k = 0; k < n; k++)
        memcpy(pixel + (size_t)k * size, acf_images_at(im, k / rows->n * once + acf_rows_at(rows, k % rows->n)), size);
    acf_status status = acf_images_make(pixel, n, im->H, im->W, im->C, NULL, &part);
    acf_release(pixel);
    if (status) return status;
    part->bits = im->bits, part->copies = im->copies, part->plan = im->plan, part->inner = im->inner,
    part->from_H = im->from_H, part->from_W = im->from_W;
    *out = part;
    return ACF_OK;
}

/* One image at a time through a buffer, so a large file of large pictures that are scaled down is never in memory
 * whole. */
static acf_status read_npy(acf_npy *f, const char *path, const acf_image_plan *p, acf_images **out) {
    int64_t N, H, W, C;
    ACF_TRY(acf_npy_pictures(f, &N, &H, &W, &C));
    ACF_TRY(acf_image_check_size(path, (uint64_t)W, (uint64_t)H));
    acf_images *im = NULL;
    const int to = p->channels ? p->channels : (int)C;
    ACF_TRY(acf_images_reserve(path, p, limited(p, N), H, W, to, &im));
    uint8_t *one = acf_alloc((size_t)(H * W * C), "a picture");
    acf_status status = one ? ACF_OK : ACF_EMEMORY;
    for (int64_t i = 0; status == ACF_OK && i < im->N; i++) {
        status = acf_npy_read_bytes(f, i * H * W * C, H * W * C, one);
        if (status == ACF_OK)
            status = acf_image_plan_apply(p, path, one, H, W, (int)C, to, im->pixel + i * im->H * im->W * to);
    }
    acf_release(one);
    if (status == ACF_OK)
        *out = im;
    else
        acf_images_free(im);
    return status;
}

static acf_status open_npy(const char *path, const acf_image_plan *p, acf_images **out) {
    acf_npy *f;
    ACF_TRY(acf_npy_open_bytes(path, &f));
    acf_status status = read_npy(f, path, p, out);
    acf_npy_close(f);
    return status;
}

static acf_status open_one(const char *path, const acf_image_plan *p, acf_images **out) {
    acf_raster r;
    acf_images *im = NULL;
    ACF_TRY(acf_raster_read(path, &r));
    const int C = p->channels ? p->channels : r.C;
    acf_status status = acf_images_reserve(path, p, 1, r.H, r.W, C, &im);
    if (status == ACF_OK) status = acf_image_plan_apply(p, path, r.pixel, r.H, r.W, r.C, C, im->pixel);
    acf_raster_free(&r);
    if (status == ACF_OK)
        *out = im;
    else
        acf_images_free(im);
    return status;
}

/* ---- any source -------------------------------------------------------------------------------------------------- */

/* The first bytes of a file, and its size. */
static acf_status look(const char *path, struct stat *st, uint8_t begin[16], size_t *n) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* does not wait for a pipe without a writer */
    if (fd < 0 || fstat(fd, st) != 0) {
        acf_status status = acf_fail(ACF_EIO, "cannot open %s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    ssize_t got = S_ISREG(st->st_mode) ? pread(fd, begin, 16, 0) : 0;
    close(fd);
    if (got < 0) return acf_fail(ACF_EIO, "cannot read %s: %s", path, strerror(errno));
    *n = (size_t)got;
    return ACF_OK;
}

static acf_status open_any(const acf_device *dev, const char *path, const acf_image_plan *p, acf_images **out) {
    struct stat st;
    uint8_t b[16] = {0};
    size_t n = 0;
    ACF_TRY(look(path, &st, b, &n));
    if (S_ISDIR(st.st_mode)) return acf_images_read_folder(dev, path, p, out);
    if (!S_ISREG(st.st_mode))
        return acf_fail(ACF_EIO, "cannot read %s: it is neither a regular file nor a folder, which images must be",
                        path);
    if (n >= 6 && memcmp(b, "\x93NUMPY", 6) == 0) return open_npy(path, p, out);
    if (n >= 4 && ((b[0] == 0x1f && b[1] == 0x8b) || (b[0] == 0 && b[1] == 0 && b[2] == 8)))
        return acf_images_read_idx(path, st.st_size, p, out);
    return open_one(path, p, out); /* its message lists all supported formats */
}

acf_status acf_images_read(const acf_device *dev, const char *path, const acf_image_plan *plan, acf_images **out) {
    const acf_image_plan none = {0}, *p = plan ? plan : &none;
    acf_images *im;
    ACF_TRY(acf_image_plan_check(p));
    ACF_TRY(open_any(dev, path, p, &im));
    add_copies(im);
    *out = im;
    return ACF_OK;
}
