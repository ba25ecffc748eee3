/* Tests of image_write.h: libpng reads back what is written; every frame of an animation is a picture; sheets match
 * their definition. */
#include "image/image_write.h"

#include "base/arena.h"
#include "base/file.h"
#include "harness/image_files.h"
#include "image/image_codec.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

static acf_lab_folder folder;
static char path[80];

static int set_up(void **state) {
    (void)state;
    folder = acf_lab_folder_make();
    snprintf(path, sizeof path, "%s/x.png", folder.path);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_lab_folder_free(&folder);
    return 0;
}

/* Noise, a ramp along each side, one colour, a checkerboard: together they use every filter. */
static void make(uint8_t *out, int kind, int H, int W, int C) {
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < C; c++) {
                const int v[] = {(int)((unsigned)(y * 977 + x * 331 + c * 59) * 2654435769u >> 20),
                                 5 * x + c,
                                 7 * y + c,
                                 200,
                                 (x + y) % 2 * 255,
                                 2 * x + 3 * y,
                                 x * x + y * y,
                                 0};
                uint8_t *at = &out[(y * W + x) * C + c];
                *at = (uint8_t)v[kind];
                if (kind == 7)
                    *at = (uint8_t)(((x ? at[-C] : 80 * y) + (y ? at[-W * C] : 60 * x)) / 2 +
                                    x % 2); /* the mean of its neighbours */
            }
}

static void written_images_read_back(void **state) {
    (void)state;
    static uint8_t pixel[40 * 33 * 3];
    bool used[5] = {false};
    for (int kind = 0; kind < 8; kind++)
        for (int C = 1; C <= 3; C += 2)
            for (int H = 1; H <= 40; H += 13)
                for (int W = 1; W <= 33; W += 8) {
                    acf_raster r;
                    make(pixel, kind, H, W, C);
                    assert_int_equal(acf_image_write_png(path, pixel, H, W, C), ACF_OK);
                    assert_int_equal(acf_raster_read(path, &r), ACF_OK);
                    assert_true(r.H == H && r.W == W && r.C == C);
                    assert_memory_equal(r.pixel, pixel, (size_t)(H * W * C));
                    acf_raster_free(&r);
                    char *bytes;
                    size_t n;
                    assert_int_equal(acf_file_read(path, 1 << 20, &bytes, &n), ACF_OK);
                    static uint8_t rows[40 * 100];
                    uLongf length = sizeof rows;
                    assert_int_equal(uncompress(rows, &length, (uint8_t *)bytes + 41, (uLong)n), Z_OK);
                    for (int y = 0; y < H; y++) used[rows[y * (1 + W * C)]] = true;
                    acf_release(bytes);
                }
    for (int way = 0; way < 5; way++) assert_true(used[way]);
}

static uint32_t get32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Chunks in order, checksums, sequence numbers; each frame's data in a PNG of its own is that frame. */
static void animations_are_complete(void **state) {
    (void)state;
    enum { N = 5, H = 9, W = 14, C = 3 };
    static uint8_t pixel[N * H * W * C], one[1 << 14];
    for (int i = 0; i < N; i++) make(pixel + i * H * W * C, i, H, W, C);
    assert_int_equal(acf_image_write_apng(path, pixel, N, H, W, C, 300, 2), ACF_OK);
    char *text;
    size_t n;
    assert_int_equal(acf_file_read(path, 1 << 20, &text, &n), ACF_OK);
    const uint8_t *b = (uint8_t *)text;
    int frame = 0;
    uint32_t sequence = 0;
    char order[200] = "";
    for (size_t at = 8; at < n; at += 12 + get32(b + at)) {
        const uint32_t length = get32(b + at);
        const uint8_t *data = b + at + 8;
        char name[5] = "";
        memcpy(name, b + at + 4, 4);
        strcat(strcat(order, name), " ");
        assert_int_equal(crc32(0, b + at + 4, length + 4), get32(data + length));
        if (strcmp(name, "acTL") == 0) assert_true(get32(data) == N && get32(data + 4) == 2);
        if (strcmp(name, "fcTL") == 0) {
            assert_true(get32(data) == sequence++ && get32(data + 4) == W && get32(data + 8) == H &&
                        get32(data + 12) == 0 && get32(data + 16) == 0);
            assert_memory_equal(data + 20, "\x01\x2c\x03\xe8\0\0", 6);
        }
        const bool still = strcmp(name, "IDAT") == 0, moved = strcmp(name, "fdAT") == 0;
        if (!still && !moved) continue;
        if (moved) assert_int_equal(get32(data), sequence++);
        acf_raster r;
        const uint32_t skip = moved ? 4 : 0, m = length - skip;
        memcpy(one, b, 33); /* signature and header */
        const uint8_t size[4] = {(uint8_t)(m >> 24), (uint8_t)(m >> 16), (uint8_t)(m >> 8), (uint8_t)m};
        memcpy(one + 33, size, 4), memcpy(one + 37, "IDAT", 4), memcpy(one + 41, data + skip, m);
        const uint32_t sum = (uint32_t)crc32(0, one + 37, m + 4);
        for (int k = 0; k < 4; k++) one[41 + m + (uint32_t)k] = (uint8_t)(sum >> (24 - 8 * k));
        memcpy(one + 45 + m, b + n - 12, 12);
        assert_int_equal(acf_raster_decode("frame", one, 57 + m, false, &r), ACF_OK);
        assert_memory_equal(r.pixel, pixel + frame++ * H * W * C, H * W * C);
        acf_raster_free(&r);
    }
    assert_int_equal(frame, N);
    assert_string_equal(order, "IHDR acTL fcTL IDAT fcTL fdAT fcTL fdAT fcTL fdAT fcTL fdAT IEND ");
    acf_release(text);
}

static void sheets_by_their_definition(void **state) {
    (void)state;
    enum { N = 5, H = 2, W = 3, C = 3 };
    uint8_t pixel[N * H * W * C], out[4096];
    for (int i = 0; i < (int)sizeof pixel; i++) pixel[i] = (uint8_t)(i + 1);
    const acf_sheet s = {.across = 3, .down = 2, .gap = 1, .zoom = 2, .ground = 250};
    int64_t h, w;
    acf_image_sheet_size(&s, H, W, &h, &w);
    assert_true(h == 11 && w == 22);
    acf_image_sheet(out, &s, pixel, N, H, W, C);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < C; c++) {
                const int row = y / 5, column = x / 7, i = row * 3 + column, py = y % 5 - 1, px = x % 7 - 1;
                const bool inside = py >= 0 && px >= 0 && row < 2 && column < 3 && i < N;
                assert_int_equal(out[(y * w + x) * C + c],
                                 inside ? pixel[((i * H + py / 2) * W + px / 2) * C + c] : 250);
            }
}

static void wrong_sizes_are_reported(void **state) {
    (void)state;
    uint8_t pixel[12] = {0};
    assert_int_equal(acf_image_write_png("x.png", pixel, 2, 2, 2), ACF_EUSAGE);
    assert_string_equal(
        acf_error(),
        "cannot write x.png: 1 pictures of 2 x 2 pixels and 2 channels; expected at least one, of 1 or 3 channels, at "
        "most 32768 a side and "
        "67108864 pixels");
    assert_int_equal(acf_image_write_apng("x.png", pixel, 2, 2, 2, 1, 70000, 0), ACF_EUSAGE);
    assert_int_equal(acf_image_write_png("/nowhere/x.png", pixel, 2, 2, 1), ACF_EIO);
    assert_int_not_equal(access("x.png", F_OK), 0);
}

/* The old file stays until the new one is complete. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    uint8_t pixel[3 * 4 * 4] = {0};
    const int64_t live = acf_alloc_live();
    char *text;
    size_t n;
    assert_int_equal(acf_file_write(path, "old", 3), ACF_OK);
    for (int64_t i = 1;; i++) {
        acf_alloc_fail_at(i);
        acf_status status = acf_image_write_apng(path, pixel, 3, 4, 4, 1, 100, 0);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) {
            assert_true(i > 5);
            return;
        }
        assert_int_equal(status, ACF_EMEMORY);
        assert_int_equal(acf_file_read(path, 100, &text, &n), ACF_OK);
        assert_string_equal(text, "old");
        acf_release(text);
    }
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(image_write, WITH_FOLDER(written_images_read_back), WITH_FOLDER(animations_are_complete),
          cmocka_unit_test(sheets_by_their_definition), cmocka_unit_test(wrong_sizes_are_reported),
          WITH_FOLDER(every_allocation_may_fail))
