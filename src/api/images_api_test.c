/* Tests of the public image functions: recognition, options as a user writes them, descriptions, sheets of masks. */
#include "acflow.h"

#include "base/arena.h"
#include "base/file.h"
#include "harness/file_lab.h"
#include "harness/image_files.h"
#include "harness/picture.h"
#include "image/image_write.h"

static acf_lab_folder folder;
static acf_lab_bytes file, packed;
static uint8_t pixel[6 * 8 * 8 * 3];
static char path[200];

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < (int)sizeof pixel; i++) pixel[i] = (uint8_t)(i * 11 % 251);
    folder = acf_lab_folder_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_lab_folder_free(&folder);
    return 0;
}

static const char *in_folder(const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

static acf_options *options(const char *name, const char *value) {
    acf_options *o;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    assert_int_equal(acf_options_set(o, name, value), ACF_OK);
    return o;
}

static void put_digits(const char *name) {
    acf_lab_put_idx(&file, 6, 8, 8, pixel);
    acf_lab_folder_put(&folder, name, file.b, file.n);
}

static void images_are_told_from_tables(void **state) {
    (void)state;
    static const char array[] = "\x93NUMPY\1\0\72\0{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1)}x";
    static const char matrix[] = "\x93NUMPY\1\0\70\0{'descr': '|u1', 'fortran_order': False, 'shape': (1,1)}x";
    put_digits("digits");
    packed.n = acf_lab_gzip(file.b, file.n, packed.b, sizeof packed.b);
    acf_lab_folder_put(&folder, "digits.gz", packed.b, packed.n);
    packed.n = acf_lab_gzip("a,b\n1,2\n", 8, packed.b, sizeof packed.b);
    acf_lab_folder_put(&folder, "t.csv.gz", packed.b, packed.n);
    acf_lab_folder_put(&folder, "t.csv", "a,b\n1,2\n", 8);
    acf_lab_folder_put(&folder, "a.npy", array, sizeof array - 1);
    acf_lab_folder_put(&folder, "m.npy", matrix, sizeof matrix - 1);
    acf_lab_put_jpeg(&file, ACF_LAB_COLOUR, false, false, 8, 8, pixel);
    acf_lab_folder_put(&folder, "photo", file.b, file.n);
    assert_int_equal(acf_image_write_png(in_folder("p.txt"), pixel, 8, 8, 1), ACF_OK);
    static const struct {
        const char *name;
        int yes;
    } cases[] = {{"digits", 1}, {"digits.gz", 1}, {"t.csv.gz", 0}, {"t.csv", 0}, {"a.npy", 1},
                 {"m.npy", 0},  {"photo", 1},     {"p.txt", 1},    {"", 1},      {"nowhere", 0}};
    acf_images *im = NULL;
    assert_int_equal(acf_images_open(NULL, NULL, NULL, &im), ACF_EUSAGE);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (acf_images_recognise(in_folder(cases[i].name)) != cases[i].yes) fail_msg("%s", cases[i].name);
    assert_string_equal(acf_error(), "acf_images_open: 'path' is NULL"); /* recognising records no failure */
    assert_int_equal(acf_images_recognise(NULL), 0);
    assert_int_equal(acf_images_recognise("-"), 0);
}

static void options_do_what_they_say(void **state) {
    (void)state;
    put_digits("digits");
    in_folder("digits");
    static const struct {
        const char *name, *value;
        int64_t shape[4];
        int bits;
    } cases[] = {{"image-limit", "2", {2, 8, 8, 1}, 8},      {"image-channels", "colour", {6, 8, 8, 3}, 8},
                 {"image-crop", "1,2,4,8", {6, 6, 3, 1}, 8}, {"image-size", "5x4", {6, 4, 5, 1}, 8},
                 {"image-size", "16", {6, 16, 16, 1}, 8},    {"image-pad", "32", {6, 32, 32, 1}, 8},
                 {"image-bits", "3", {6, 8, 8, 1}, 3},       {"image-rotate", "true", {24, 8, 8, 1}, 8},
                 {"image-flip", "true", {12, 8, 8, 1}, 8},   {"image-centre", "true", {6, 8, 8, 1}, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        acf_options *o = options(cases[i].name, cases[i].value);
        acf_images *im;
        int64_t shape[4];
        assert_int_equal(acf_images_open(path, NULL, o, &im), ACF_OK);
        assert_int_equal(acf_images_shape(im, shape), ACF_OK);
        assert_memory_equal(shape, cases[i].shape, sizeof shape);
        assert_int_equal(acf_images_bits(im), cases[i].bits);
        assert_string_equal(acf_images_note(im), "");
        assert_int_equal(acf_images_pixels(im)[0] < 1 << cases[i].bits, 1);
        acf_images_free(im);
        acf_options_free(o);
    }
    static const char *const wrong[][3] = {
        {"image-crop", "1,2,3",
         "image-crop is '1,2,3'; expected left,top,right,bottom in pixels, such as 25,45,153,173"},
        {"image-crop", "4,2,4,8",
         "image-crop is '4,2,4,8', which has no pixels; expected left,top,right,bottom with left < right and top < "
         "bottom"},
        {"image-size", "5x",
         "image-size is '5x'; expected width and height in pixels, such as 64x48, or one number from 1 to 32768"},
        {"image-size", "0",
         "image-size is '0'; expected width and height in pixels, such as 64x48, or one number from 1 to 32768"},
        {"image-size", "99999999999999999999999",
         "image-size is '99999999999999999999999'; expected width and height in pixels, such as 64x48, or one number "
         "from 1 to 32768"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        acf_options *o = options(wrong[i][0], wrong[i][1]);
        acf_images *im = NULL;
        assert_int_equal(acf_images_open(path, NULL, o, &im), ACF_EUSAGE);
        assert_string_equal(acf_error(), wrong[i][2]);
        acf_options_free(o);
    }
}

static void images_are_described(void **state) {
    (void)state;
    char text[1000];
    size_t needed;
    acf_images *im;
    put_digits("digits");
    assert_int_equal(acf_images_open(in_folder("digits"), NULL, NULL, &im), ACF_OK);
    assert_int_equal(acf_images_describe(im, ACF_TEXT, text, sizeof text, &needed), ACF_OK);
    assert_int_equal(needed, strlen(text) + 1);
    assert_non_null(strstr(
        text,
        "images:   6\nsize:     8 x 8 pixels (width, height), grey\nlevels:   0 to 250, 251 of 256 in use, mean 12"));
    assert_non_null(strstr(text, "names:    digits 0 ... digits 5\n"));
    assert_int_equal(acf_images_describe(im, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(text, "\"height\": 8"));
    assert_int_equal(acf_images_describe(im, ACF_TEXT, NULL, 0, &needed), ACF_ESPACE);
    assert_int_equal(acf_images_name(im, 3, text, sizeof text, NULL), ACF_OK);
    assert_string_equal(text, "digits 3");
    assert_int_equal(acf_images_name(im, 6, text, sizeof text, NULL), ACF_EUSAGE);
    assert_string_equal(acf_error(), "the name of image 6; there are 0 to 5");
    assert_int_equal(acf_images_file_name(im, 3, text, sizeof text, &needed), ACF_OK);
    assert_string_equal(text, "digits-3");
    assert_int_equal(needed, 9);
    assert_int_equal(acf_images_file_name(im, 6, text, sizeof text, NULL), ACF_EUSAGE);
    assert_int_equal(acf_images_shape(im, NULL), ACF_EUSAGE);
    assert_int_equal(acf_images_describe(NULL, ACF_TEXT, text, sizeof text, NULL), ACF_EUSAGE);
    assert_true(acf_images_pixels(NULL) == NULL && acf_images_bits(NULL) == 0 && acf_images_note(NULL)[0] == 0);
    acf_images_free(im);
    acf_images_free(NULL);
}

/* Any mixture, page and size: the canvas refuses text that overlaps or is cut. */
static void masks_are_drawn(void **state) {
    (void)state;
    static const struct {
        const char *masks;
        int64_t w, h;
    } cases[] = {{"paper-celeba", 64, 64},
                 {"released-celeba", 30, 50},
                 {"joint", 1, 1},
                 {"left + mcar:0.123456789012345 + rect:0.10000001-0.900000003*3", 200, 3},
                 {"top", 3, 200}};
    static const double page[][2] = {{0, 0}, {160, 160}, {1500, 300}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t k = 0; k < sizeof page / sizeof *page; k++)
            for (int svg = 0; svg < 2; svg++) {
                const acf_plot_options o = {.width = page[k][0], .height = page[k][1], .scale = 1};
                if (acf_plot_masks(picture_path(svg ? ".svg" : ".png"), &o, cases[i].masks, NULL, cases[i].w,
                                   cases[i].h, 7) != ACF_OK)
                    fail_msg("%s: %s", cases[i].masks, acf_error());
                assert_int_equal(unlink(picture_path(svg ? ".svg" : ".png")), 0);
            }
    static const struct {
        const char *masks, *sentence;
        int64_t w;
    } wrong[] = {{"left", "masks of 0 x 8 pixels; expected 1 to 1024 a side", 0},
                 {"cutout:9", "masks: a square of 9 pixels does not fit in 8 x 8; make it smaller", 8},
                 {"left +", NULL, 8}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(acf_plot_masks(picture_path(".png"), NULL, wrong[i].masks, NULL, wrong[i].w, 8, 1),
                         ACF_EUSAGE);
        if (wrong[i].sentence) assert_string_equal(acf_error(), wrong[i].sentence);
        assert_int_not_equal(access(picture_path(".png"), F_OK), 0);
    }
}

/* One image, a few, more than fit: every image that is shown is at its place. */
static void sheets_are_drawn(void **state) {
    (void)state;
    static const int sizes[][3] = {{1, 8, 8}, {6, 8, 8}, {30, 3, 2}, {300, 1, 1}, {4, 2, 40}};
    static uint8_t levels[400];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        acf_images *im;
        for (int k = 0; k < sizes[i][0] * sizes[i][1] * sizes[i][2] && k < 400; k++)
            levels[k] = (uint8_t)(k < sizes[i][1] * sizes[i][2] ? 200 : 90);
        acf_lab_put_idx(&file, sizes[i][0], sizes[i][1], sizes[i][2], levels);
        acf_lab_folder_put(&folder, "a long name for a file of digits", file.b, file.n);
        assert_int_equal(acf_images_open(in_folder("a long name for a file of digits"), NULL, NULL, &im), ACF_OK);
        if (acf_plot_images(picture_path(".png"), NULL, im) != ACF_OK) fail_msg("%s", acf_error());
        picture p = picture_read(picture_path(".png"));
        int64_t first = 0, other = 0;
        for (int64_t k = 0; k < (int64_t)p.w * p.h; k++)
            first += p.pixel[k] == 0xc8c8c8, other += p.pixel[k] == 0x5a5a5a;
        const double shown = (double)(sizes[i][0] < 96 ? sizes[i][0] : 96) - 1;
        if (first < 100 || fabs((double)other - shown * (double)first) > 0.15 * shown * (double)first + 50)
            fail_msg("sheet %zu: %lld and %lld pixels", i, (long long)first, (long long)other);
        picture_free(&p);
        assert_int_equal(acf_plot_images(picture_path(".svg"), &(acf_plot_options){.width = 160, .height = 160}, im),
                         ACF_OK);
        assert_int_equal(unlink(picture_path(".svg")), 0);
        acf_images_free(im);
    }
    assert_int_equal(acf_plot_images(picture_path(".png"), NULL, NULL), ACF_EUSAGE);
}

/* The left half of an image is covered, the right one is seen. */
static void masks_lie_over_images(void **state) {
    (void)state;
    acf_images *im;
    uint8_t grey[64];
    memset(grey, 100, sizeof grey);
    assert_int_equal(acf_image_write_png(in_folder("x.png"), grey, 8, 8, 1), ACF_OK);
    acf_options *o = options("image-bits", "8");
    assert_int_equal(acf_images_open(path, NULL, o, &im), ACF_OK);
    assert_int_equal(acf_plot_masks(picture_path(".png"), NULL, "left", im, 0, 0, 1), ACF_OK);
    picture p = picture_read(picture_path(".png"));
    int64_t hole = 0, seen = 0;
    for (int64_t i = 0; i < (int64_t)p.w * p.h; i++) hole += p.pixel[i] == 0xb83a00, seen += p.pixel[i] == 0x646464;
    if (hole < 20000 || llabs(hole - seen) > hole / 20)
        fail_msg("%lld pixels hidden, %lld seen", (long long)hole, (long long)seen);
    picture_free(&p);
    acf_images_free(im);
    acf_options_free(o);
}

/* Two images of 8x8 in a frame of zeros, the left half hidden. The sheet shows them without the frame, every pixel 16 x
 * 16, then their completions. */
static void completions_are_drawn(void **state) {
    (void)state;
    acf_images *im;
    uint8_t grey[2 * 64], given[2 * 144], done[2 * 144];
    const uint8_t *const ways[] = {done, done, done};
    const char *const names[] = {"draw 1", "guess", "a name too long for any column of the sheet"};
    int64_t box[4];
    memset(grey, 100, sizeof grey), memset(done, 50, sizeof done);
    acf_lab_put_idx(&file, 2, 8, 8, grey);
    acf_lab_folder_put(&folder, "x", file.b, file.n);
    acf_options *o = options("image-pad", "12");
    assert_int_equal(acf_images_open(in_folder("x"), NULL, o, &im), ACF_OK);
    assert_int_equal(acf_images_frame(im, box), ACF_OK);
    assert_true(box[0] == 2 && box[1] == 2 && box[2] == 10 && box[3] == 10);
    assert_int_equal(acf_images_masks(im, "left", 1, given), ACF_OK);
    for (int64_t n = 1, ok = 0; !ok; n++) { /* every allocation fails in turn */
        acf_alloc_fail_at(n);
        const acf_status status = acf_plot_completed(picture_path(".png"), NULL, im, given, 2, ways, names, 3);
        acf_alloc_fail_at(0);
        if (!(ok = status == ACF_OK)) assert_int_equal(status, ACF_EMEMORY);
        assert_true((access(picture_path(".png"), F_OK) == 0) == ok);
    }
    picture p = picture_read(picture_path(".png"));
    int64_t hole = 0, seen = 0, made = 0;
    for (int64_t i = 0; i < (int64_t)p.w * p.h; i++)
        hole += p.pixel[i] == 0xb83a00, seen += p.pixel[i] == 0x646464, made += p.pixel[i] == 0x323232;
    const double half = 2 * 64 * 128;
    if (fabs((double)hole / half - 1) > 0.05 || fabs((double)seen / half - 1) > 0.05 ||
        fabs((double)made / (6 * half) - 1) > 0.05)
        fail_msg("%lld pixels hidden, %lld seen, %lld completed", (long long)hole, (long long)seen, (long long)made);
    picture_free(&p);
    assert_int_equal(acf_plot_completed(picture_path(".svg"), &(acf_plot_options){.width = 160, .height = 160}, im,
                                        NULL, 1, ways, names, 3),
                     ACF_OK);
    assert_int_equal(unlink(picture_path(".svg")), 0);
    assert_int_equal(acf_plot_completed(picture_path(".png"), NULL, im, given, 3, ways, names, 3), ACF_EUSAGE);
    assert_int_equal(acf_plot_completed(picture_path(".png"), NULL, im, given, 2, ways, names, 0), ACF_EUSAGE);
    acf_images_free(im);
    acf_options_free(o);
}

/* The largest sheet, of the smallest and of large images. */
static void large_sheets_of_completions_are_drawn(void **state) {
    (void)state;
    static const int side[] = {1, 300};
    for (int k = 0; k < 2; k++) {
        acf_images *im;
        const uint8_t *ways[64];
        const char *names[64];
        acf_options *o = options("image-size", side[k] == 1 ? "1" : "300");
        uint8_t black[16 * 4] = {0};
        acf_lab_put_idx(&file, 16, 2, 2, black);
        acf_lab_folder_put(&folder, "y", file.b, file.n);
        assert_int_equal(acf_images_open(in_folder("y"), NULL, o, &im), ACF_OK);
        for (int i = 0; i < 64; i++) ways[i] = acf_images_pixels(im), names[i] = "draw 1000";
        if (acf_plot_completed(picture_path(".png"), &(acf_plot_options){.scale = 0.5}, im, NULL, side[k] == 1 ? 16 : 2,
                               ways, names, side[k] == 1 ? 64 : 18) != ACF_OK)
            fail_msg("%s", acf_error());
        acf_images_free(im);
        acf_options_free(o);
    }
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(images_api, WITH_FOLDER(images_are_told_from_tables), WITH_FOLDER(options_do_what_they_say),
          WITH_FOLDER(images_are_described), cmocka_unit_test(masks_are_drawn), WITH_FOLDER(sheets_are_drawn),
          WITH_FOLDER(masks_lie_over_images), WITH_FOLDER(completions_are_drawn),
          WITH_FOLDER(large_sheets_of_completions_are_drawn))
