/* Public images: see acflow.h; the work is in image/images.h and image/image_masks.h. */
#include "api/argument_checks.h"
#include "api/plot_load.h"
#include "base/arena.h"
#include "base/options.h"
#include "base/text.h"
#include "image/image_masks.h"
#include "image/images.h"

#include <stdio.h>
#include <string.h>

int acf_images_recognise(const char *path) { return path && acf_images_is_source(path); }

acf_status acf_images_shape(const acf_images *im, int64_t *shape) {
    ACF_NEED(im);
    ACF_NEED(shape);
    shape[0] = im->N, shape[1] = im->H, shape[2] = im->W, shape[3] = im->C;
    return ACF_OK;
}

acf_status acf_images_frame(const acf_images *im, int64_t *box) {
    ACF_NEED(im);
    ACF_NEED(box);
    box[0] = im->inner.x0, box[1] = im->inner.y0, box[2] = im->inner.x1, box[3] = im->inner.y1;
    return ACF_OK;
}

const uint8_t *acf_images_pixels(const acf_images *im) { return im ? im->pixel : NULL; }
int acf_images_bits(const acf_images *im) { return im ? im->bits : 0; }
const char *acf_images_note(const acf_images *im) { return im ? im->note : ""; }

typedef char *(*name_writer)(char out[ACF_IMAGE_NAME_MAX], const acf_images *im, int64_t i);

static acf_status put_name(name_writer write, const acf_images *im, int64_t i, char *out, size_t cap, size_t *needed) {
    char name[ACF_IMAGE_NAME_MAX];
    ACF_NEED(im);
    ACF_NEED_BUFFER(out, cap);
    if (i < 0 || i >= im->N)
        return acf_fail(ACF_EUSAGE, "the name of image %lld; there are 0 to %lld", (long long)i, (long long)im->N - 1);
    acf_text t = acf_text_into(out, cap);
    acf_text_add(&t, write(name, im, i));
    return acf_text_done(&t, needed);
}

acf_status acf_images_name(const acf_images *im, int64_t i, char *out, size_t cap, size_t *needed) {
    return put_name(acf_images_write_name, im, i, out, cap, needed);
}

acf_status acf_images_file_name(const acf_images *im, int64_t i, char *out, size_t cap, size_t *needed) {
    return put_name(acf_images_write_file_name, im, i, out, cap, needed);
}

/* ---- descriptions ---------------------------------------------------------------------------------------------- */

/* Darkest and brightest level, number of used levels, and their mean in hundredths. */
typedef struct levels {
    int least, most, used;
    int64_t mean;
} levels;

static levels levels_of(const acf_images *im) {
    int64_t count[256] = {0}, n = im->N * im->H * im->W * im->C, sum = 0;
    levels l = {.least = 255};
    for (int64_t i = 0; i < n; i++) count[im->pixel[i]]++;
    for (int k = 0; k < 256; k++) {
        if (!count[k]) continue;
        if (k < l.least) l.least = k;
        l.most = k;
        l.used++;
        sum += k * count[k];
    }
    l.mean = (int64_t)((double)sum * 100 / (double)n + 0.5);
    return l;
}

static acf_status describe_text(const acf_images *im, char *out, size_t cap, size_t *needed) {
    char first[ACF_IMAGE_NAME_MAX], last[ACF_IMAGE_NAME_MAX], bytes[ACF_NUMBER_MAX];
    const levels l = levels_of(im);
    acf_text t = acf_text_into(out, cap);
    acf_text_addf(&t, "images:   %lld%s%s\n", (long long)im->N,
                  im->plan.rotate ? ", each also rotated by 90, 180 and 270 degrees" : "",
                  im->plan.flip ? im->plan.rotate ? ", and all of these flipped" : ", each also flipped" : "");
    acf_text_addf(&t, "size:     %lld x %lld pixels (width, height), %s\n", (long long)im->W, (long long)im->H,
                  im->C == 1 ? "grey" : "colour");
    acf_text_addf(&t, "levels:   %d to %d, %d of %d in use, mean %lld.%02lld\n", l.least, l.most, l.used, 1 << im->bits,
                  (long long)(l.mean / 100), (long long)(l.mean % 100));
    acf_text_addf(&t, "memory:   %s\n", acf_text_bytes(bytes, (uint64_t)(im->N * im->H * im->W * im->C)));
    acf_text_addf(&t, im->N > 1 ? "names:    %s ... %s\n" : "name:     %s\n", acf_images_write_name(first, im, 0),
                  acf_images_write_name(last, im, im->N - 1));
    if (im->file)
        acf_text_addf(&t, "left out: %lld unreadable files, %lld files that are not images by their names\n",
                      (long long)im->broken, (long long)im->other);
    return acf_text_done(&t, needed);
}

static acf_status describe_json(const acf_images *im, char *out, size_t cap, size_t *needed) {
    const levels l = levels_of(im);
    json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:i, s:{s:i, s:i, s:i, s:f}, s:b, s:b, s:I, s:I, s:s}", "images",
                          (json_int_t)im->N, "height", (json_int_t)im->H, "width", (json_int_t)im->W, "channels",
                          (json_int_t)im->C, "bits", im->bits, "levels", "least", l.least, "most", l.most, "used",
                          l.used, "mean", (double)l.mean / 100, "turned", im->plan.rotate, "mirrored", im->plan.flip,
                          "broken", (json_int_t)im->broken, "other", (json_int_t)im->other, "note",
                          acf_text_is_utf8(im->note, strlen(im->note)) ? im->note : "a file with an odd name");
    if (!j) return acf_fail(ACF_EMEMORY, "out of memory: a description of images");
    return acf_json_deliver(j, out, cap, needed);
}

acf_status acf_images_describe(const acf_images *im, acf_format format, char *out, size_t cap, size_t *needed) {
    ACF_NEED(im);
    ACF_NEED_BUFFER(out, cap);
    return format == ACF_JSON ? describe_json(im, out, cap, needed) : describe_text(im, out, cap, needed);
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

#define ACROSS 8
#define MASK_TEXT 120
#define VERMILION                                                                                                      \
    { 0xb8, 0x3a, 0x00 }

/* The contents of a sheet of masks. */
typedef struct sheet {
    uint8_t *b;     /* (H,W) the current mask */
    uint8_t *pixel; /* (parts,ACROSS,H,W,3) */
    char name[ACF_IMAGE_MASKS_MAX][MASK_TEXT], remark[ACF_IMAGE_MASKS_MAX][MASK_TEXT];
} sheet;

/* Name and share of a part, and how much it hides: hidden pixels of ACROSS masks. */
static void describe_part(sheet *s, const acf_image_masks *m, int k, int64_t hidden) {
    double weight = 0;
    for (int i = 0; i < m->n; i++) weight += m->part[i].weight;
    acf_text t = acf_text_into(s->name[k], MASK_TEXT), u = acf_text_into(s->remark[k], MASK_TEXT);
    acf_image_mask_part_write(&m->part[k], &t);
    if (m->n > 1) acf_text_addf(&u, "%d %% of masks, ", (int)(100 * m->part[k].weight / weight + 0.5));
    acf_text_addf(&u, "hides %d %%", (int)(100.0 * (double)hidden / (double)(ACROSS * m->H * m->W) + 0.5));
}

/* out (P,3): hidden pixels white, as in a mask that a user paints, and given ones nearly black. Over an image:
 * vermilion and the image. */
static int64_t paint(uint8_t *out, const uint8_t *b, int64_t P, const acf_images *im, int64_t i) {
    static const uint8_t hole[2][3] = {{255, 255, 255}, VERMILION}, plain[3] = {0x20, 0x21, 0x24};
    int64_t hidden = 0;
    for (int64_t k = 0; k < P; k++) {
        for (int c = 0; c < 3; c++)
            out[3 * k + c] =
                !b[k] ? hole[im != NULL][c]
                : im  ? acf_image_byte(acf_images_at(im, i % im->N)[k * im->C + (im->C == 3 ? c : 0)], im->bits)
                      : plain[c];
        hidden += !b[k];
    }
    return hidden;
}

static acf_status fill(sheet *s, const acf_image_masks *m, const acf_images *im, uint64_t seed) {
    const int64_t P = m->H * m->W;
    s->b = acf_alloc((size_t)P, "masks");
    s->pixel = acf_alloc((size_t)(m->n * ACROSS * P * 3), "masks");
    if (!s->b || !s->pixel) return ACF_EMEMORY;
    for (int k = 0; k < m->n; k++) {
        int64_t hidden = 0;
        for (int64_t i = 0; i < ACROSS; i++) {
            acf_image_mask_part_draw(m, k, seed, (uint64_t)i, 0, s->b);
            hidden += paint(s->pixel + (k * ACROSS + i) * P * 3, s->b, P, im, i);
        }
        describe_part(s, m, k, hidden);
    }
    return ACF_OK;
}

static acf_status plot_fitted(const char *path, const acf_plot_options *o, const acf_image_masks *m,
                              const acf_images *im, uint64_t seed) {
    const acf_plot_library *plot;
    ACF_TRY(acf_plot_load(&plot));
    sheet *s = acf_alloc_zero(sizeof *s, "masks");
    if (!s) return ACF_EMEMORY;
    const char *name[ACF_IMAGE_MASKS_MAX], *remark[ACF_IMAGE_MASKS_MAX];
    char facts[200];
    snprintf(facts, sizeof facts, "%lld x %lld pixels, seed %llu. Hidden: %s.", (long long)m->W, (long long)m->H,
             (unsigned long long)seed, im ? "vermilion" : "white");
    for (int k = 0; k < m->n; k++) name[k] = s->name[k], remark[k] = s->remark[k];
    acf_status status = fill(s, m, im, seed);
    const acf_figure_sheet f = {.across = ACROSS,
                                .down = m->n,
                                .n = ACROSS * m->n,
                                .H = m->H,
                                .W = m->W,
                                .C = 3,
                                .pixel = s->pixel,
                                .name_down = name,
                                .remark_down = remark};
    if (status == ACF_OK) status = acf_plot_outcome(plot, plot->images(path, o, &f, "Masks", facts));
    acf_release(s->b), acf_release(s->pixel), acf_release(s);
    return status;
}

acf_status acf_plot_masks(const char *path, const acf_plot_options *o, const char *masks, const acf_images *im,
                          int64_t width, int64_t height, uint64_t seed) {
    ACF_NEED(path);
    ACF_NEED(masks);
    if (im) width = im->W, height = im->H;
    if (width < 1 || height < 1 || width > ACF_IMAGE_PATTERN_MAX || height > ACF_IMAGE_PATTERN_MAX)
        return acf_fail(ACF_EUSAGE, "masks of %lld x %lld pixels; expected 1 to %d a side", (long long)width,
                        (long long)height, ACF_IMAGE_PATTERN_MAX);
    acf_image_masks *m;
    ACF_TRY(acf_image_masks_create(masks, &m));
    acf_status status = im ? acf_image_masks_fit_to(m, im) : acf_image_masks_fit(m, height, width);
    if (status == ACF_OK) status = plot_fitted(path, o, m, im, seed);
    acf_image_masks_free(m);
    return status;
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

#define ROWS_MAX 16
#define WAYS_MAX 64

/* out (h,w,3): one image without padding, the pixels that b hides in vermilion; b NULL: none. Returns the number of
 * these pixels. */
static int64_t paint_inside(uint8_t *out, const acf_images *im, const uint8_t *level, const uint8_t *b) {
    static const uint8_t hole[3] = VERMILION;
    int64_t hidden = 0;
    for (int64_t y = im->inner.y0; y < im->inner.y1; y++)
        for (int64_t x = im->inner.x0; x < im->inner.x1; x++, out += 3) {
            const int64_t k = y * im->W + x;
            const bool seen = !b || b[k];
            hidden += !seen;
            for (int c = 0; c < 3; c++)
                out[c] = seen ? acf_image_byte(level[k * im->C + (im->C == 3 ? c : 0)], im->bits) : hole[c];
        }
    return hidden;
}

/* Whole pixels of the page per image pixel: the width of an image in points, with two pixels each. */
static double cell_of(int64_t h, int64_t w) {
    const int64_t side = acf_max(h, w), zoom = acf_max(1, 128 / side);
    return (double)acf_min(zoom * w, 256 * w / side) / 2;
}

typedef char row_text[2][MASK_TEXT]; /* name and remark */

static void draw_rows(uint8_t *pixel, row_text *text, const acf_images *im, const uint8_t *given, int64_t rows,
                      const uint8_t *const *completed, int ways) {
    const int64_t P = im->H * im->W, inside = (im->inner.y1 - im->inner.y0) * (im->inner.x1 - im->inner.x0);
    uint8_t *none = pixel + rows * (ways + 1) * inside * 3; /* (P) zeros: nothing is given */
    for (int64_t i = 0; i < rows; i++) {
        char name[ACF_IMAGE_NAME_MAX];
        const int64_t hidden = paint_inside(pixel, im, acf_images_at(im, i), given ? given + i * P : none);
        pixel += inside * 3;
        for (int k = 0; k < ways; k++, pixel += inside * 3) paint_inside(pixel, im, completed[k] + i * P * im->C, NULL);
        if (im->file || im->N == 1)
            snprintf(text[i][0], MASK_TEXT, "%.100s", acf_images_write_name(name, im, i));
        else
            snprintf(text[i][0], MASK_TEXT, "image %lld",
                     (long long)i); /* of an array whose name would leave no space for the number */
        snprintf(text[i][1], MASK_TEXT, "%d %% hidden", (int)(100.0 * (double)hidden / (double)inside + 0.5));
    }
}

acf_status acf_plot_completed(const char *path, const acf_plot_options *o, const acf_images *im, const uint8_t *given,
                              int64_t rows, const uint8_t *const *completed, const char *const *names, int ways) {
    ACF_NEED(path);
    ACF_NEED(im);
    ACF_NEED(completed);
    ACF_NEED(names);
    if (rows < 1 || rows > ROWS_MAX || rows > im->N || ways < 1 || ways > WAYS_MAX)
        return acf_fail(
            ACF_EUSAGE,
            "acf_plot_completed: %lld rows, %d ways; expected 1 to %d rows, as many images, and 1 to %d ways",
            (long long)rows, ways, ROWS_MAX, WAYS_MAX);
    const int64_t h = im->inner.y1 - im->inner.y0, w = im->inner.x1 - im->inner.x0;
    const char *across[WAYS_MAX + 1] = {"input"}, *down[ROWS_MAX], *remark[ROWS_MAX];
    char first[80] = "", facts[200];
    row_text text[ROWS_MAX];
    const acf_plot_library *plot;
    ACF_TRY(acf_plot_load(&plot));
    uint8_t *pixel = acf_alloc_zero((size_t)(rows * (ways + 1) * h * w * 3 + im->H * im->W), "a sheet");
    if (!pixel) return ACF_EMEMORY;
    for (int k = 0; k < ways; k++) across[k + 1] = names[k];
    for (int64_t i = 0; i < rows; i++) down[i] = text[i][0], remark[i] = text[i][1];
    draw_rows(pixel, text, im, given, rows, completed, ways);
    if (rows < im->N)
        snprintf(first, sizeof first, "The first %lld of %lld images, ", (long long)rows, (long long)im->N);
    snprintf(facts, sizeof facts, "%s%lld x %lld pixels. Hidden: vermilion.", first, (long long)w, (long long)h);
    const acf_figure_sheet f = {.across = ways + 1,
                                .down = (int)rows,
                                .n = rows * (ways + 1),
                                .H = h,
                                .W = w,
                                .C = 3,
                                .pixel = pixel,
                                .cell = cell_of(h, w),
                                .name_across = across,
                                .name_down = down,
                                .remark_down = remark};
    acf_status status = acf_plot_outcome(plot, plot->images(path, o, &f, "Completed images", facts));
    acf_release(pixel);
    return status;
}

/* ---- images ------------------------------------------------------------------------------------------------------ */

#define SHEET_ACROSS 12
#define SHEET_DOWN 8
#define SHEET_PIXELS ((int64_t)1 << 24) /* more would be too small to see: then fewer images are shown */

acf_status acf_plot_images(const char *path, const acf_plot_options *o, const acf_images *im) {
    ACF_NEED(path);
    ACF_NEED(im);
    const acf_plot_library *plot;
    ACF_TRY(acf_plot_load(&plot));
    const int64_t size = im->H * im->W * im->C, capacity = acf_max(1, SHEET_PIXELS / (im->H * im->W));
    const int n = (int)acf_min(acf_min(im->N, capacity), SHEET_ACROSS * SHEET_DOWN),
              across = (int)acf_min(n, SHEET_ACROSS);
    uint8_t *pixel = acf_alloc((size_t)(n * size), "images");
    char(*name)[ACF_IMAGE_NAME_MAX] = acf_alloc((size_t)n * sizeof *name, "images"), facts[200];
    const char *caption[SHEET_ACROSS * SHEET_DOWN];
    acf_status status = pixel && name ? ACF_OK : ACF_EMEMORY;
    for (int k = 0; status == ACF_OK && k < n; k++) {
        const int64_t i = k * im->N / n; /* evenly spaced */
        for (int64_t p = 0; p < size; p++) pixel[k * size + p] = acf_image_byte(acf_images_at(im, i)[p], im->bits);
        caption[k] = acf_images_write_name(name[k], im, i);
    }
    snprintf(facts, sizeof facts, "%lld of %lld x %lld pixels, %s%s", (long long)im->N, (long long)im->W,
             (long long)im->H, im->C == 1 ? "grey" : "colour", n < im->N ? "; evenly spaced ones are shown" : "");
    const acf_figure_sheet f = {.across = across,
                                .down = (int)acf_ceil_div(n, across),
                                .n = n,
                                .H = im->H,
                                .W = im->W,
                                .C = im->C,
                                .pixel = pixel,
                                .caption = caption};
    if (status == ACF_OK) status = acf_plot_outcome(plot, plot->images(path, o, &f, "Images", facts));
    acf_release(pixel), acf_release(name);
    return status;
}
