/* Image files for tests: see image_files.h. */
#include "harness/image_files.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

/* ---- PNG ------------------------------------------------------------------------------------------------------- */

static void put_bytes(png_structp png, png_bytep p, size_t n) {
    acf_lab_bytes *out = png_get_io_ptr(png);
    assert_true(out->n + n <= sizeof out->b);
    memcpy(out->b + out->n, p, n);
    out->n += n;
}

static void no_flush(png_structp png) { (void)png; }

/* Row y of the samples as PNG packs them. */
static void pack_row(unsigned char *row, int bits, const unsigned char *samples, int n) {
    memset(row, 0, (size_t)n * 2);
    for (int i = 0; i < n; i++) {
        if (bits == 16)
            row[2 * i] = row[2 * i + 1] = samples[i];
        else if (bits == 8)
            row[i] = samples[i];
        else
            row[i * bits / 8] |= (unsigned char)(samples[i] << (8 - bits - i * bits % 8));
    }
}

static void put_palette(png_structp png, png_infop info, acf_lab_png kind) {
    png_color colour[256];
    unsigned char alpha[256];
    for (int i = 0; i < 1 << kind.bits; i++) {
        colour[i] = (png_color){kind.palette[3 * i], kind.palette[3 * i + 1], kind.palette[3 * i + 2]};
        alpha[i] = i == kind.transparent ? 0 : 255;
    }
    png_set_PLTE(png, info, colour, 1 << kind.bits);
    if (kind.transparent >= 0) png_set_tRNS(png, info, alpha, 1 << kind.bits, NULL);
}

void acf_lab_put_png(acf_lab_bytes *out, acf_lab_png kind, int H, int W, const unsigned char *samples) {
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png))) fail_msg("libpng cannot write this picture");
    out->n = 0;
    png_set_write_fn(png, out, put_bytes, no_flush);
    png_set_IHDR(png, info, (png_uint_32)W, (png_uint_32)H, kind.bits, kind.type,
                 kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (kind.type == PNG_COLOR_TYPE_PALETTE)
        put_palette(png, info, kind);
    else if (kind.transparent >= 0) {
        png_color_16 level = {.gray = (png_uint_16)kind.transparent};
        png_set_tRNS(png, info, NULL, 0, &level);
    }
    png_write_info(png, info);
    unsigned char row[4096];
    const int n = W * png_get_channels(png, info), passes = png_set_interlace_handling(png);
    assert_true((size_t)n * 2 <= sizeof row);
    for (int pass = 0; pass < passes; pass++)
        for (int y = 0; y < H; y++) {
            pack_row(row, kind.bits, samples + y * n, n);
            png_write_row(png, row);
        }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

/* ---- JPEG ------------------------------------------------------------------------------------------------------ */

void acf_lab_put_jpeg(acf_lab_bytes *out, acf_lab_jpeg kind, bool progressive, bool adobe, int H, int W,
                      const unsigned char *pixel) {
    static const int channels[] = {1, 3, 4, 4};
    static const J_COLOR_SPACE given[] = {JCS_GRAYSCALE, JCS_RGB, JCS_CMYK, JCS_CMYK},
                               stored[] = {JCS_GRAYSCALE, JCS_YCbCr, JCS_CMYK, JCS_YCCK};
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL, row[4096];
    unsigned long n = 0;
    c.err = jpeg_std_error(&errors);
    jpeg_create_compress(&c);
    jpeg_mem_dest(&c, &bytes, &n);
    c.image_width = (unsigned)W, c.image_height = (unsigned)H;
    c.input_components = channels[kind], c.in_color_space = given[kind];
    jpeg_set_defaults(&c);
    jpeg_set_colorspace(&c, stored[kind]);
    jpeg_set_quality(&c, 100, TRUE);
    for (int i = 0; i < c.num_components; i++) c.comp_info[i].h_samp_factor = c.comp_info[i].v_samp_factor = 1;
    if (progressive) jpeg_simple_progression(&c);
    if (channels[kind] == 4) c.write_Adobe_marker = adobe;
    jpeg_start_compress(&c, TRUE);
    for (int y = 0; y < H; y++) {
        JSAMPROW at = row;
        for (int i = 0; i < W * channels[kind]; i++)
            row[i] = (unsigned char)(channels[kind] == 4 && adobe ? 255 - pixel[y * W * 4 + i]
                                                                  : pixel[y * W * channels[kind] + i]);
        jpeg_write_scanlines(&c, &at, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    assert_true(n <= sizeof out->b);
    memcpy(out->b, bytes, n);
    out->n = n;
    free(bytes);
}

/* ---- idx, folders ---------------------------------------------------------------------------------------------- */

void acf_lab_put_idx(acf_lab_bytes *out, int N, int H, int W, const unsigned char *pixel) {
    const int dim[] = {N, H, W};
    memcpy(out->b, "\0\0\10\3", 4);
    for (int i = 0; i < 12; i++) out->b[4 + i] = (unsigned char)(dim[i / 4] >> (24 - 8 * (i % 4)));
    out->n = 16 + (size_t)(N * H * W);
    assert_true(out->n <= sizeof out->b);
    memcpy(out->b + 16, pixel, out->n - 16);
}
