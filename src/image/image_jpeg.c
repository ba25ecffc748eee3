/* JPEG files to pixels with libjpeg-turbo: see image_codec.h. The library reports errors through a function that
 * must not return. Everything that must survive the jump is in a struct, and the function that sets the jump has no
 * own variables. */
#include "base/arena.h"
#include "image/image_codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#define SCANS_MAX 200 /* of a progressive file: encoders write about ten, and each costs a pass over the picture */

typedef struct reading {
    struct jpeg_decompress_struct c;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf back;
    const char *name;
    const uint8_t *bytes;
    size_t n;
    bool header;
    int channels;       /* 1, 3, or 4 for CMYK */
    uint8_t *pixel;     /* (H,W,channels) */
    acf_status refused; /* a message is already set */
    char why[JMSG_LENGTH_MAX];
} reading;

/* ---- callbacks of the library ------------------------------------------------------------------------------------ */

static reading *of(j_common_ptr c) { return c->client_data; }

static void on_error(j_common_ptr c) {
    c->err->format_message(c, of(c)->why);
    longjmp(of(c)->back, 1);
}

/* By default the library fills missing data with grey and warns. A warning that means wrong pixels is an error here;
 * others, such as stray bytes between two parts, are not. */
static void on_message(j_common_ptr c, int level) {
    if (level >= 0) return;
    switch (c->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_ARITH_BAD_CODE: on_error(c);
    }
}

static void on_output(j_common_ptr c) { (void)c; }

static void on_progress(j_common_ptr c) {
    if (!c->is_decompressor || ((j_decompress_ptr)c)->input_scan_number <= SCANS_MAX) return;
    snprintf(of(c)->why, sizeof of(c)->why, "more than %d scans", SCANS_MAX);
    longjmp(of(c)->back, 1);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static void read_header(reading *r) {
    jpeg_mem_src(&r->c, r->bytes, r->n);
    jpeg_read_header(&r->c, TRUE);
    r->refused = acf_image_check_size(r->name, r->c.image_width, r->c.image_height);
    if (r->refused) longjmp(r->back, 1);
    switch (r->c.jpeg_color_space) {
    case JCS_GRAYSCALE: r->c.out_color_space = JCS_GRAYSCALE, r->channels = 1; break;
    case JCS_CMYK:
    case JCS_YCCK: r->c.out_color_space = JCS_CMYK, r->channels = 4; break;
    default: r->c.out_color_space = JCS_RGB, r->channels = 3;
    }
}

static void read_rows(reading *r) {
    jpeg_start_decompress(&r->c);
    const size_t stride = (size_t)r->c.output_width * (size_t)r->channels;
    r->pixel = acf_alloc(stride * r->c.output_height, "a picture");
    if (!r->pixel) {
        r->refused = ACF_EMEMORY;
        longjmp(r->back, 1);
    }
    while (r->c.output_scanline < r->c.output_height) {
        uint8_t *row = r->pixel + r->c.output_scanline * stride;
        jpeg_read_scanlines(&r->c, &row, 1);
    }
    jpeg_finish_decompress(&r->c);
}

static bool read_all(reading *r) {
    if (setjmp(r->back)) return false;
    r->c.err = jpeg_std_error(&r->errors);
    r->errors.error_exit = on_error;
    r->errors.emit_message = on_message;
    r->errors.output_message = on_output;
    r->c.client_data = r;
    jpeg_create_decompress(&r->c);
    r->progress.progress_monitor = on_progress;
    r->c.progress = &r->progress;
    read_header(r);
    if (!r->header) read_rows(r);
    return true;
}

/* Converts ink to light, packed in place. Adobe's programs, which write nearly all such files, store inverted ink. */
static void drop_ink(reading *r) {
    const size_t n = (size_t)r->c.output_width * r->c.output_height;
    for (size_t i = 0; i < n; i++) {
        uint8_t ink[4];
        memcpy(ink, r->pixel + 4 * i, 4);
        for (int c = 0; c < 4 && !r->c.saw_Adobe_marker; c++) ink[c] = (uint8_t)(255 - ink[c]);
        for (size_t c = 0; c < 3; c++) r->pixel[3 * i + c] = (uint8_t)((ink[c] * ink[3] + 127) / 255);
    }
}

acf_status acf_jpeg_decode(const char *name, const uint8_t *bytes, size_t n, bool header, acf_raster *out) {
    reading *r = acf_alloc_zero(sizeof *r, "a JPEG file");
    if (!r) return ACF_EMEMORY;
    r->name = name, r->bytes = bytes, r->n = n, r->header = header;
    acf_status status = ACF_OK;
    if (!read_all(r)) {
        status = r->refused;
        if (status == ACF_OK && r->c.err->msg_code == JERR_OUT_OF_MEMORY)
            status = acf_fail(ACF_EMEMORY, "out of memory: a JPEG file (%s)", name);
        if (status == ACF_OK && (r->c.err->msg_code == JWRN_JPEG_EOF || r->c.err->msg_code == JERR_INPUT_EOF))
            status =
                acf_fail(ACF_EDATA, "%s: it is cut short: more bytes were expected at its end; copy it again", name);
        if (status == ACF_OK)
            status = acf_fail(ACF_EDATA,
                              "%s: it is a damaged JPEG file, or one of a rare kind (%s); copy or export it again",
                              name, r->why);
        acf_release(r->pixel);
    } else {
        if (r->channels == 4 && !header) drop_ink(r);
        *out = (acf_raster){r->c.image_height, r->c.image_width, r->channels == 1 ? 1 : 3, r->pixel};
    }
    jpeg_destroy_decompress(&r->c);
    acf_release(r);
    return status;
}
