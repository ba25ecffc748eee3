/* PNG files to pixels with libpng: see image_codec.h. libpng reports errors by longjmp. Everything that must survive
 * it is in a struct, and the function that sets the jump has no variables of its own. */
#include "base/arena.h"
#include "image/image_codec.h"

#include <png.h>
#include <stdio.h>
#include <string.h>

typedef struct reading {
    const char *name;
    const uint8_t *at;
    size_t left;
    bool header;
    png_structp png;
    png_infop info;
    uint32_t W, H;
    int channels;       /* 1..4: with alpha the last */
    uint8_t *pixel;     /* (H,W,channels) */
    uint8_t **row;      /* (H) where each row of it begins */
    acf_status refused; /* a message is already set */
    char why[128];      /* libpng's message otherwise */
} reading;

/* ---- callbacks of libpng ----------------------------------------------------------------------------------------- */

static void on_error(png_structp png, const char *words) {
    reading *r = png_get_error_ptr(png);
    snprintf(r->why, sizeof r->why, "%s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, const char *words) { (void)png, (void)words; }

static void give_bytes(png_structp png, png_bytep out, size_t n) {
    reading *r = png_get_io_ptr(png);
    if (n > r->left) {
        r->refused =
            acf_fail(ACF_EDATA, "%s: it is cut short: more bytes were expected at its end; copy it again", r->name);
        png_error(png, "end of file");
    }
    memcpy(out, r->at, n);
    r->at += n;
    r->left -= n;
}

static png_voidp give_memory(png_structp png, png_alloc_size_t n) {
    reading *r = png_get_mem_ptr(png);
    void *p = acf_alloc(n, "a PNG file");
    if (!p) r->refused = ACF_EMEMORY;
    return p;
}

static void take_memory(png_structp png, png_voidp p) {
    (void)png;
    acf_release(p);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Allocates the pixels, once their number is known and within the limits. */
static acf_status make_room(reading *r) {
    const size_t stride = (size_t)r->W * (size_t)r->channels;
    r->pixel = acf_alloc(stride * r->H, "a picture");
    r->row = acf_alloc((size_t)r->H * sizeof *r->row, "a picture");
    if (!r->pixel || !r->row) return ACF_EMEMORY;
    for (size_t y = 0; y < r->H; y++) r->row[y] = r->pixel + y * stride;
    return ACF_OK;
}

/* Sets up the conversion to 8 bits of grey or colour, with or without alpha. */
static void read_header(reading *r) {
    png_read_info(r->png, r->info);
    r->W = png_get_image_width(r->png, r->info);
    r->H = png_get_image_height(r->png, r->info);
    r->refused = acf_image_check_size(r->name, r->W, r->H);
    if (r->refused) png_error(r->png, "size");
    png_set_expand(r->png);
    png_set_scale_16(r->png);
    png_set_interlace_handling(r->png);
    png_read_update_info(r->png, r->info);
    r->channels = png_get_channels(r->png, r->info);
}

static bool read_all(reading *r) {
    if (setjmp(png_jmpbuf(r->png))) return false;
    png_set_read_fn(r->png, r, give_bytes);
    png_set_user_limits(r->png, 0x7fffffff, 0x7fffffff);                   /* our own limits give a message */
    png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, NULL, -1); /* texts, times, profiles: ignored */
    read_header(r);
    if (r->header) return true;
    r->refused = make_room(r);
    if (r->refused) return false;
    png_read_image(r->png, r->row);
    png_read_end(r->png, NULL);
    return true;
}

/* v * a + 255 * (1 - a), rounded; a = 255 gives v itself and a = 0 white. */
static uint8_t on_white(unsigned v, unsigned a) { return (uint8_t)((v * a + 255u * (255u - a) + 127u) / 255u); }

/* Lays the picture on white and packs it in place: writing never overtakes reading. */
static void drop_alpha(reading *r) {
    const int C = r->channels - 1;
    const size_t n = (size_t)r->W * r->H;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *from = r->pixel + i * (size_t)r->channels;
        const uint8_t alpha = from[C];
        for (int c = 0; c < C; c++) r->pixel[i * (size_t)C + (size_t)c] = on_white(from[c], alpha);
    }
}

acf_status acf_png_decode(const char *name, const uint8_t *bytes, size_t n, bool header, acf_raster *out) {
    reading r = {.name = name, .at = bytes, .left = n, .header = header};
    r.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning, &r, give_memory, take_memory);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    bool done = r.info && read_all(&r);
    png_destroy_read_struct(r.png ? &r.png : NULL, r.info ? &r.info : NULL, NULL);
    acf_release(r.row);
    if (!done) {
        acf_release(r.pixel);
        if (r.refused || !r.why[0]) return r.refused ? r.refused : ACF_EMEMORY;
        return acf_fail(ACF_EDATA, "%s: it is a damaged PNG file (%s); copy or export it again", name, r.why);
    }
    const bool alpha = r.channels == 2 || r.channels == 4;
    if (alpha && !header) drop_alpha(&r);
    *out = (acf_raster){r.H, r.W, alpha ? r.channels - 1 : r.channels, r.pixel};
    return ACF_OK;
}
