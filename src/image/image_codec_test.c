/* Tests of image_codec.h: every kind of PNG and JPEG decodes to what was encoded; every truncation and every changed
 * byte gives an error message or a picture. */
#define _GNU_SOURCE /* memmem */
#include "image/image_codec.h"

#include "base/arena.h"
#include "harness/file_lab.h"
#include "harness/image_files.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { H = 7, W = 11 };
static acf_lab_bytes file, damaged;

/* Irregular samples below `top`. */
static void make_samples(unsigned char *out, int n, int top) {
    for (int i = 0; i < n; i++) out[i] = (unsigned char)((i * 37 + i / 5 * 11 + 3) % top);
}

static acf_raster decoded(const acf_lab_bytes *f) {
    acf_raster r = {0};
    if (acf_raster_decode("picture", f->b, f->n, false, &r) != ACF_OK) fail_msg("%s", acf_error());
    assert_non_null(r.pixel);
    return r;
}

static int white(int v, int a) { return (v * a + 255 * (255 - a) + 127) / 255; }

/* ---- PNG --------------------------------------------------------------------------------------------------------- */

/* The expected value of pixel i, channel c of the decoded picture. */
static int expected(acf_lab_png k, const unsigned char *s, int i, int c) {
    const int top = (1 << (k.bits == 16 ? 8 : k.bits)) - 1;
    switch (k.type) {
    case PNG_COLOR_TYPE_GRAY: return s[i] == k.transparent ? 255 : s[i] * 255 / top;
    case PNG_COLOR_TYPE_GRAY_ALPHA: return white(s[2 * i], s[2 * i + 1]);
    case PNG_COLOR_TYPE_RGB: return s[3 * i + c];
    case PNG_COLOR_TYPE_RGB_ALPHA: return white(s[4 * i + c], s[4 * i + 3]);
    default: return s[i] == k.transparent ? 255 : k.palette[3 * s[i] + c];
    }
}

static void every_kind_of_png(void **state) {
    (void)state;
    static unsigned char palette[768], samples[H * W * 4];
    make_samples(palette, 768, 256);
    static const struct {
        int type, bits, channels, grey;
    } kinds[] = {{PNG_COLOR_TYPE_GRAY, 1, 1, 1},        {PNG_COLOR_TYPE_GRAY, 2, 1, 1},
                 {PNG_COLOR_TYPE_GRAY, 4, 1, 1},        {PNG_COLOR_TYPE_GRAY, 8, 1, 1},
                 {PNG_COLOR_TYPE_GRAY, 16, 1, 1},       {PNG_COLOR_TYPE_GRAY_ALPHA, 8, 2, 1},
                 {PNG_COLOR_TYPE_GRAY_ALPHA, 16, 2, 1}, {PNG_COLOR_TYPE_RGB, 8, 3, 0},
                 {PNG_COLOR_TYPE_RGB, 16, 3, 0},        {PNG_COLOR_TYPE_RGB_ALPHA, 8, 4, 0},
                 {PNG_COLOR_TYPE_RGB_ALPHA, 16, 4, 0},  {PNG_COLOR_TYPE_PALETTE, 1, 1, 0},
                 {PNG_COLOR_TYPE_PALETTE, 4, 1, 0},     {PNG_COLOR_TYPE_PALETTE, 8, 1, 0}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int way = 0; way < 4; way++) {
            acf_lab_png png = {kinds[k].type, kinds[k].bits, way & 1, palette, way & 2 ? 1 : -1};
            if (png.type != PNG_COLOR_TYPE_PALETTE && (png.type != PNG_COLOR_TYPE_GRAY || png.bits == 16))
                png.transparent = -1;
            make_samples(samples, H * W * kinds[k].channels, 1 << (png.bits == 16 ? 8 : png.bits));
            acf_lab_put_png(&file, png, H, W, samples);
            acf_raster r = decoded(&file), head;
            assert_true(r.H == H && r.W == W && r.C == (kinds[k].grey ? 1 : 3));
            for (int i = 0; i < H * W; i++)
                for (int c = 0; c < r.C; c++)
                    if (r.pixel[i * r.C + c] != expected(png, samples, i, c))
                        fail_msg("type %d, %d bits, way %d: pixel %d is %d, expected %d", png.type, png.bits, way, i,
                                 r.pixel[i * r.C + c], expected(png, samples, i, c));
            assert_int_equal(acf_raster_decode("picture", file.b, file.n, true, &head), ACF_OK);
            assert_true(head.H == H && head.W == W && head.C == r.C && !head.pixel);
            acf_raster_free(&r);
        }
}

/* ---- JPEG -------------------------------------------------------------------------------------------------------- */

/* Smooth, so that the compression loses little. */
static void make_smooth(unsigned char *out, int channels) {
    for (int i = 0; i < H * W; i++)
        for (int c = 0; c < channels; c++)
            out[i * channels + c] = (unsigned char)(40 + 8 * (i / W) + 6 * (i % W) + 20 * c);
}

static void every_kind_of_jpeg(void **state) {
    (void)state;
    unsigned char pixel[H * W * 4];
    for (int kind = 0; kind < 4; kind++)
        for (int way = 0; way < 4; way++) {
            const int channels = kind == 0 ? 1 : kind == 1 ? 3 : 4;
            if (kind == ACF_LAB_YCCK && !(way & 2)) continue; /* only Adobe's marker identifies it */
            make_smooth(pixel, channels);
            acf_lab_put_jpeg(&file, (acf_lab_jpeg)kind, way & 1, way & 2, H, W, pixel);
            acf_raster r = decoded(&file), head;
            assert_true(r.H == H && r.W == W && r.C == (kind == 0 ? 1 : 3));
            for (int i = 0; i < H * W; i++)
                for (int c = 0; c < r.C; c++) {
                    const int want = channels == 4 ? (255 - pixel[i * 4 + c]) * (255 - pixel[i * 4 + 3]) / 255
                                                   : pixel[i * channels + c];
                    if (abs(r.pixel[i * r.C + c] - want) > 4)
                        fail_msg("kind %d, way %d: pixel %d is %d, expected %d", kind, way, i, r.pixel[i * r.C + c],
                                 want);
                }
            assert_int_equal(acf_raster_decode("picture", file.b, file.n, true, &head), ACF_OK);
            assert_true(head.H == H && head.W == W && head.C == r.C && !head.pixel);
            acf_raster_free(&r);
        }
}

/* ---- hostile ----------------------------------------------------------------------------------------------------- */

/* Expects a picture, or ACF_EDATA with a message that names the file. */
static bool survives(const acf_lab_bytes *f, bool header) {
    acf_raster r = {.pixel = NULL};
    const int64_t live = acf_alloc_live();
    acf_error_clear();
    acf_status status = acf_raster_decode("picture", f->b, f->n, header, &r);
    if (status == ACF_OK) {
        assert_true(r.H >= 1 && r.W >= 1 && r.H * r.W <= ACF_IMAGE_PIXELS_MAX && (r.C == 1 || r.C == 3));
        int64_t sum = 0; /* all of it must be readable */
        for (int64_t i = 0; r.pixel && i < r.H * r.W * r.C; i++) sum += r.pixel[i];
        assert_true(sum <= 255 * r.H * r.W * r.C);
        acf_raster_free(&r);
    } else {
        assert_true(status == ACF_EDATA && strncmp(acf_error(), "picture: ", 9) == 0);
        assert_null(r.pixel);
    }
    assert_int_equal(acf_alloc_live(), live);
    return status == ACF_OK;
}

static void a_few_files(int which) {
    static unsigned char palette[768], samples[H * W * 4];
    static const acf_lab_png kinds[] = {{PNG_COLOR_TYPE_GRAY, 8, false, NULL, -1},
                                        {PNG_COLOR_TYPE_RGB_ALPHA, 16, true, NULL, -1},
                                        {PNG_COLOR_TYPE_PALETTE, 4, false, palette, 1}};
    make_samples(palette, 768, 256);
    make_samples(samples, sizeof samples, which == 2 ? 16 : 256);
    if (which < 3)
        acf_lab_put_png(&file, kinds[which], H, W, samples);
    else
        acf_lab_put_jpeg(&file, (acf_lab_jpeg)(which % 4), which > 5, true, H, W, samples);
}

/* Only the whole file is a picture; a JPEG may lack its last two bytes, which hold nothing. */
static void truncated_files_are_refused(void **state) {
    (void)state;
    for (int which = 0; which < 8; which++) {
        a_few_files(which);
        const size_t n = file.n;
        assert_true(survives(&file, false));
        for (file.n = 0; file.n < n; file.n++) {
            if (survives(&file, false) && (which < 3 || file.n + 2 < n))
                fail_msg("file %d is taken when cut at %zu of %zu bytes", which, file.n, n);
            survives(&file, true);
        }
    }
}

static void changed_bytes_are_safe(void **state) {
    (void)state;
    for (int which = 0; which < 8; which++) {
        a_few_files(which);
        int taken = 0;
        for (size_t i = 0; i < file.n; i++)
            for (int how = 0; how < 3; how++) {
                damaged.n = file.n;
                memcpy(damaged.b, file.b, file.n);
                damaged.b[i] = (unsigned char)(how == 0   ? damaged.b[i] ^ 0xff
                                               : how == 1 ? damaged.b[i] ^ 1
                                                          : 0xff - how);
                taken += survives(&damaged, false);
            }
        if (which < 3 && taken > (int)file.n)
            fail_msg("file %d: %d of %zu damaged ones are taken", which, taken, 3 * file.n); /* checksums */
    }
}

/* Sizes are checked before memory is allocated. In a PNG the checksum of the header must match. */
static void huge_pictures_are_refused(void **state) {
    (void)state;
    unsigned char pixel[H * W] = {0};
    acf_raster r;
    acf_lab_put_png(&file, (acf_lab_png){PNG_COLOR_TYPE_GRAY, 8, false, NULL, -1}, H, W, pixel);
    memcpy(file.b + 16, "\0\0\x75\x30\0\0\x75\x30", 8); /* each side alone is allowed, but not both */
    unsigned long sum = crc32(crc32(0, NULL, 0), file.b + 12, 17);
    for (int i = 0; i < 4; i++) file.b[29 + i] = (unsigned char)(sum >> (24 - 8 * i));
    assert_int_equal(acf_raster_decode("big.png", file.b, file.n, false, &r), ACF_EDATA);
    assert_string_equal(
        acf_error(),
        "big.png: it has 30000 x 30000 pixels, expected at most 32768 a side and 67108864 in all; make it smaller "
        "first");
    acf_lab_put_jpeg(&file, ACF_LAB_GREY, false, false, H, W, pixel);
    unsigned char *size = memmem(file.b, file.n, "\xff\xc0", 2);
    assert_non_null(size);
    memcpy(size + 5, "\xff\xdc\xff\xdc", 4); /* the largest JPEG size */
    assert_int_equal(acf_raster_decode("big.jpg", file.b, file.n, false, &r), ACF_EDATA);
    assert_string_equal(
        acf_error(),
        "big.jpg: it has 65500 x 65500 pixels, expected at most 32768 a side and 67108864 in all; make it smaller "
        "first");
}

static void other_files_are_named(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *sentence;
    } cases[] = {{"GIF89a", "x: it is a GIF file, expected PNG or JPEG; convert it"},
                 {"RIFF....WEBP", "x: it is a WebP file, expected PNG or JPEG; convert it"},
                 {"", "x: it is empty, expected a PNG or JPEG file"},
                 {"hello", "x: it is not a supported image; expected PNG or JPEG, or for several images "
                           ".npy, idx (also .gz) or a folder"}};
    acf_raster r;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(acf_raster_decode("x", cases[i].bytes, strlen(cases[i].bytes), false, &r), ACF_EDATA);
        assert_string_equal(acf_error(), cases[i].sentence);
    }
    assert_int_equal(acf_raster_read("/nowhere/x.png", &r), ACF_EIO);
    assert_int_equal(acf_raster_probe("/nowhere/x.png", &r), ACF_EIO);
}

/* A header beyond the first bytes read is still found. */
static void a_probe_finds_late_headers(void **state) {
    (void)state;
    unsigned char pixel[H * W * 3] = {0};
    acf_raster r;
    acf_memfile f = acf_memfile_create();
    acf_lab_put_jpeg(&file, ACF_LAB_COLOUR, false, false, H, W, pixel);
    damaged.n = 0;
    memcpy(damaged.b, file.b, 2);
    damaged.n = 2;
    for (int k = 0; k < 2; k++, damaged.n += 60002)
        memcpy(damaged.b + damaged.n, "\xff\xe1\xea\x60", 4); /* two long comments */
    memcpy(damaged.b + damaged.n, file.b + 2, file.n - 2);
    damaged.n += file.n - 2;
    acf_memfile_put(&f, damaged.b, damaged.n);
    assert_int_equal(acf_raster_probe(f.path, &r), ACF_OK);
    assert_true(r.H == H && r.W == W && r.C == 3);
    assert_int_equal(acf_raster_read(f.path, &r), ACF_OK);
    acf_raster_free(&r);
    acf_memfile_free(&f);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    for (int which = 0; which < 8; which += 2) {
        a_few_files(which);
        const int64_t live = acf_alloc_live();
        int failures = 0;
        for (int64_t i = 1;; i++, failures++) {
            acf_raster r = {.pixel = NULL};
            acf_alloc_fail_at(i);
            acf_status status = acf_raster_decode("picture", file.b, file.n, false, &r);
            acf_alloc_fail_at(0);
            acf_raster_free(&r);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
        }
        assert_true(failures >= 2);
    }
}

ACF_TESTS(image_codec, cmocka_unit_test(every_kind_of_png), cmocka_unit_test(every_kind_of_jpeg),
          cmocka_unit_test(truncated_files_are_refused), cmocka_unit_test(changed_bytes_are_safe),
          cmocka_unit_test(huge_pictures_are_refused), cmocka_unit_test(other_files_are_named),
          cmocka_unit_test(a_probe_finds_late_headers), cmocka_unit_test(every_allocation_may_fail))
