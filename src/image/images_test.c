/* Tests of images.h: the same pictures from every kind of source, the steps of a plan, a message for every mistake,
 * damage, failing memory. */
#include "image/images.h"

#include "harness/file_lab.h"
#include "harness/image_files.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { N = 5, H = 6, W = 4, SIZE = H * W };
static acf_lab_bytes file, packed;
static unsigned char pixel[N * SIZE * 3];
static acf_memfile mem;
static acf_lab_folder folder;
static acf_device *dev;

static int set_up(void **state) {
    (void)state;
    for (int i = 0; i < (int)sizeof pixel; i++) pixel[i] = (unsigned char)(i * 73 + i / 9 * 5);
    mem = acf_memfile_create();
    folder = acf_lab_folder_make();
    return acf_device_open_cpu(2, &dev) != ACF_OK;
}

static int tear_down(void **state) {
    (void)state;
    acf_memfile_free(&mem);
    acf_lab_folder_free(&folder);
    acf_device_close(dev);
    return 0;
}

static acf_images *opened(const char *path, const acf_image_plan *plan) {
    acf_images *im = NULL;
    if (acf_images_read(dev, path, plan, &im) != ACF_OK) fail_msg("%s", acf_error());
    return im;
}

static void put_npy(const char *header, const void *items, size_t n) {
    memcpy(file.b, "\x93NUMPY\1\0", 8);
    file.b[8] = (unsigned char)strlen(header), file.b[9] = 0;
    memcpy(file.b + 10, header, strlen(header));
    memcpy(file.b + 10 + strlen(header), items, n);
    file.n = 10 + strlen(header) + n;
    acf_memfile_put(&mem, file.b, file.n);
}

/* Grey or colour picture i of `pixel` as a PNG in the folder. */
static void put_picture(const char *name, int i, int channels) {
    acf_lab_put_png(&file, (acf_lab_png){channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, 8, false, NULL, -1},
                    H, W, pixel + i * SIZE * channels);
    acf_lab_folder_put(&folder, name, file.b, file.n);
}

static void assert_is(const acf_images *im, int n, int h, int w, int c, const unsigned char *expected) {
    assert_true(im->N == n && im->H == h && im->W == w && im->C == c && im->bits == 8);
    assert_memory_equal(im->pixel, expected, (size_t)(n * h * w * c));
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static void arrays_are_read(void **state) {
    (void)state;
    static const struct {
        const char *header;
        int n, h, w, c;
    } cases[] = {{"{'descr': '|u1', 'fortran_order': False, 'shape': (5, 6, 4), }\n", N, H, W, 1},
                 {"{'descr': '|u1', 'fortran_order': False, 'shape': (5, 6, 4, 1), }\n", N, H, W, 1},
                 {"{'descr': '|u1', 'fortran_order': False, 'shape': (5, 6, 4, 3), }\n", N, H, W, 3},
                 {"{'descr': '|u1', 'fortran_order': False, 'shape': (6, 4), }\n", 1, H, W, 1}};
    char name[ACF_IMAGE_NAME_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_npy(cases[i].header, pixel, (size_t)(cases[i].n * SIZE * cases[i].c));
        acf_images *im = opened(mem.path, NULL);
        assert_is(im, cases[i].n, cases[i].h, cases[i].w, cases[i].c, pixel);
        assert_string_equal(im->note, "");
        assert_non_null(strstr(acf_images_write_name(name, im, im->N - 1), im->N > 1 ? " 4" : ""));
        acf_images_free(im);
    }
    acf_images *im;
    assert_int_equal(acf_images_make(pixel, N, H, W, 3, NULL, &im), ACF_OK);
    assert_is(im, N, H, W, 3, pixel);
    acf_images_free(im);
    assert_int_equal(acf_images_make(pixel, N, H, W, 3, &(acf_image_plan){.limit = 2}, &im), ACF_OK);
    assert_is(im, 2, H, W, 3, pixel);
    acf_images_free(im);
    acf_images_free(NULL);
}

static void idx_is_read_packed_or_not(void **state) {
    (void)state;
    acf_lab_put_idx(&file, N, H, W, pixel);
    acf_memfile_put(&mem, file.b, file.n);
    acf_images *im = opened(mem.path, NULL);
    assert_is(im, N, H, W, 1, pixel);
    acf_images_free(im);
    packed.n = acf_lab_gzip(file.b, file.n, packed.b, sizeof packed.b);
    acf_memfile_put(&mem, packed.b, packed.n);
    im = opened(mem.path, &(acf_image_plan){.limit = 3, .pad = 8});
    assert_true(im->N == 3 && im->H == 8 && im->W == 8);
    for (int y = 0; y < 8; y++)
        for (int x = 0; x < 8; x++)
            assert_int_equal(acf_images_at(im, 2)[y * 8 + x],
                             y >= 1 && y < 7 && x >= 2 && x < 6 ? pixel[2 * SIZE + (y - 1) * W + x - 2] : 0);
    acf_images_free(im);
}

static void a_folder_is_read_by_name(void **state) {
    (void)state;
    char name[ACF_IMAGE_NAME_MAX], path[80];
    put_picture("b.png", 1, 1), put_picture("a.PNG", 0, 1), put_picture("c10.png", 2, 1), put_picture("c9.png", 3, 1);
    acf_lab_folder_put(&folder, "labels.txt", "x", 1), acf_lab_folder_put(&folder, ".hidden.png", "x", 1);
    snprintf(path, sizeof path, "%s/more.png", folder.path);
    assert_int_equal(mkdir(path, 0700), 0);
    for (int slash = 0; slash < 2; slash++) {
        snprintf(path, sizeof path, "%s%s", folder.path, slash ? "/" : "");
        acf_images *im = opened(path, NULL);
        assert_is(im, 4, H, W, 1, pixel);
        assert_true(im->other == 2 && im->broken == 0);
        assert_string_equal(im->note, "");
        assert_string_equal(acf_images_write_name(name, im, 2), "c10.png");
        acf_images_free(im);
    }
    snprintf(path, sizeof path, "%s/b.png", folder.path);
    acf_images *im = opened(path, NULL);
    assert_is(im, 1, H, W, 1, pixel + SIZE);
    assert_string_equal(acf_images_write_name(name, im, 0), "b.png");
    assert_string_equal(acf_images_write_file_name(name, im, 0), "b");
    acf_images_free(im);
}

/* The names of files made from each image: without ending while all endings agree, numbers of one width in an array,
 * unique for each copy. */
static void files_made_from_images_have_names(void **state) {
    (void)state;
    static uint8_t many[101];
    char name[ACF_IMAGE_NAME_MAX], longest[256] = "", kept[4][20] = {"a.PNG", "a.jpg", "b c.png", "x.jpg.png"};
    acf_images *im;
    put_picture("b c.png", 0, 1), put_picture("x.jpg.png", 1, 1);
    memset(longest, 'n', 251), memcpy(longest + 251, ".png", 5); /* the longest possible file name */
    put_picture(longest, 2, 1);
    im = opened(folder.path, NULL);
    assert_string_equal(acf_images_write_file_name(name, im, 0), "b c");
    assert_true(strlen(acf_images_write_file_name(name, im, 1)) == 251 && name[250] == 'n');
    assert_string_equal(acf_images_write_file_name(name, im, 2), "x.jpg");
    acf_images_free(im);
    put_picture("a.PNG", 3, 1), put_picture("a.jpg", 3, 1);
    im = opened(folder.path, NULL);
    for (int i = 0; i < 4; i++) assert_string_equal(acf_images_write_file_name(name, im, i < 3 ? i : 4), kept[i]);
    acf_images_free(im);
    assert_int_equal(acf_images_make(many, 101, 1, 1, 1, &(acf_image_plan){.rotate = true, .flip = true}, &im), ACF_OK);
    assert_string_equal(acf_images_write_file_name(name, im, 7), "memory-007");
    assert_string_equal(acf_images_write_file_name(name, im, 101 * 7 + 100), "memory-100-rotated-270-flipped");
    acf_images_free(im);
    static const char *const ending[][2] = {{"digits.npy.gz", "digits"},
                                            {"t10k.idx3-ubyte.gz", "t10k.idx3-ubyte"},
                                            {".png", ".png"},
                                            {"a.JPEG", "a"},
                                            {"a", "a"}};
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        assert_string_equal(acf_images_cut_ending(strcpy(name, ending[i][0])), ending[i][1]);
}

/* The majority decides, with a warning. */
static void grey_and_colour_may_be_mixed(void **state) {
    (void)state;
    char expected[400];
    unsigned char grey[SIZE];
    put_picture("a.png", 0, 3), put_picture("b.png", 1, 1), put_picture("c.png", 2, 1);
    acf_images *im = opened(folder.path, NULL);
    acf_image_channels(grey, 1, pixel, 3, SIZE);
    assert_int_equal(im->C, 1);
    assert_memory_equal(im->pixel, grey, SIZE);
    snprintf(expected, sizeof expected, "%s: 1 of 3 images are in colour and were made grey, as most are", folder.path);
    assert_string_equal(im->note, expected);
    acf_images_free(im);
    im = opened(folder.path, &(acf_image_plan){.channels = 3});
    assert_true(im->C == 3 && im->note[0] == 0);
    assert_memory_equal(im->pixel, pixel, SIZE * 3);
    acf_images_free(im);
    put_picture("d.png", 3, 3), put_picture("e.png", 0, 3);
    im = opened(folder.path, NULL);
    snprintf(expected, sizeof expected, "%s: 2 of 5 images are grey and were made colour, as most are", folder.path);
    assert_string_equal(im->note, expected);
    acf_images_free(im);
}

static void broken_files_are_left_out_or_refused(void **state) {
    (void)state;
    char expected[400];
    acf_images *im;
    put_picture("b.png", 0, 1), put_picture("d.png", 1, 1);
    acf_lab_folder_put(&folder, "a.jpg", "hello", 5);
    acf_lab_folder_put(&folder, "c.png", file.b, file.n / 2);
    im = opened(folder.path, NULL);
    assert_is(im, 2, H, W, 1, pixel);
    assert_int_equal(im->broken, 2);
    assert_string_equal(im->file[1], "d.png");
    snprintf(expected, sizeof expected,
             "%s: 2 of 4 images cannot be read and are left out; the first: %s/a.jpg: it is not a supported "
             "image; expected PNG or JPEG, or for several images .npy, idx (also .gz) or a folder",
             folder.path, folder.path);
    assert_string_equal(im->note, expected);
    acf_images_free(im);
    assert_int_equal(acf_images_read(dev, folder.path, &(acf_image_plan){.strict = true}, &im), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "/a.jpg: it is not a supported image"));
    snprintf(expected, sizeof expected, "rm %s/[abd].*", folder.path);
    assert_int_equal(system(expected), 0);
    assert_int_equal(acf_images_read(dev, folder.path, NULL, &im), ACF_EDATA);
    snprintf(
        expected, sizeof expected,
        "%s: none of its 1 images can be read; the first: %s/c.png: it is cut short: more bytes were expected at its "
        "end; copy it again",
        folder.path, folder.path);
    assert_string_equal(acf_error(), expected);
}

static void sizes_must_agree_or_be_made_to(void **state) {
    (void)state;
    char expected[400];
    acf_images *im;
    put_picture("a.png", 0, 1), put_picture("b.png", 1, 1);
    acf_lab_put_png(&file, (acf_lab_png){PNG_COLOR_TYPE_GRAY, 8, false, NULL, -1}, W, H, pixel);
    acf_lab_folder_put(&folder, "c.png", file.b, file.n);
    assert_int_equal(acf_images_read(dev, folder.path, NULL, &im), ACF_EDATA);
    snprintf(
        expected, sizeof expected,
        "%s/c.png: it has 6 x 4 pixels, but a.png in the same folder has 4 x 6; make all one size with image-size, "
        "image-centre or image-crop",
        folder.path);
    assert_string_equal(acf_error(), expected);
    assert_int_equal(acf_images_read(dev, folder.path, &(acf_image_plan){.crop = {0, 0, 3, 5}}, &im),
                     ACF_EDATA); /* valid, but too low for the box */
    snprintf(expected, sizeof expected,
             "%s/c.png: it has 6 x 4 pixels, but is to be cropped to columns 0 to 3 and rows 0 to 5; crop less",
             folder.path);
    assert_string_equal(acf_error(), expected);
    im = opened(folder.path, &(acf_image_plan){.width = 5, .height = 5});
    assert_true(im->N == 3 && im->H == 5 && im->W == 5);
    acf_images_free(im);
    im = opened(folder.path, &(acf_image_plan){.middle = true});
    assert_true(im->N == 3 && im->H == 4 && im->W == 4);
    acf_images_free(im);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* Crop, scale, pad and depth, one after the other, equal the separate operations. */
static void a_plan_is_its_steps(void **state) {
    (void)state;
    acf_images *im;
    uint8_t cut[3 * 4 * 3], grey[12], scaled[4], out[9];
    acf_image_plan plan = {.channels = 1, .crop = {1, 2, 4, 6}, .width = 2, .height = 2, .pad = 3, .bits = 5};
    assert_int_equal(acf_images_make(pixel, N, H, W, 3, &plan, &im), ACF_OK);
    assert_true(im->N == N && im->H == 3 && im->W == 3 && im->C == 1 && im->bits == 5);
    for (int i = 0; i < N; i++) {
        acf_image_cut(cut, pixel + i * SIZE * 3, W, 3, plan.crop);
        acf_image_channels(grey, 1, cut, 3, 12);
        assert_int_equal(acf_image_resize(scaled, 2, 2, grey, 4, 3, 1), ACF_OK);
        acf_image_pad(out, 3, 3, scaled, 2, 2, 1);
        acf_image_coarsen(out, 9, 5);
        assert_memory_equal(acf_images_at(im, i), out, 9);
    }
    acf_images_free(im);
}

static void rotated_copies_follow(void **state) {
    (void)state;
    char name[ACF_IMAGE_NAME_MAX];
    uint8_t out[16];
    acf_lab_put_idx(&file, 3, 4, 4, pixel);
    acf_memfile_put(&mem, file.b, file.n);
    acf_images *im = opened(mem.path, &(acf_image_plan){.rotate = true, .limit = 2}), *refused;
    assert_true(im->N == 8 && im->copies == 4);
    for (int i = 0; i < 8; i++) {
        acf_image_rotate(out, pixel + i % 2 * 16, 4, 4, 1, i / 2);
        assert_memory_equal(acf_images_at(im, i), out, 16);
    }
    assert_non_null(strstr(acf_images_write_name(name, im, 5), " 1 rotated 180"));
    acf_images_free(im);
    assert_int_equal(acf_images_make(pixel, N, H, W, 1, &(acf_image_plan){.rotate = true}, &refused), ACF_EDATA);
    assert_string_equal(
        acf_error(),
        "memory: images of 4 x 6 pixels cannot be rotated by 90 degrees and keep their size; crop them to a square");
}

/* After the rotated copies, all of them with left and right exchanged. */
static void flipped_copies_follow(void **state) {
    (void)state;
    uint8_t two[2 * 12], out[16];
    char name[ACF_IMAGE_NAME_MAX];
    acf_images *im;
    for (int i = 0; i < 24; i++) two[i] = (uint8_t)(i * i + 3);
    assert_int_equal(acf_images_make(two, 2, 3, 4, 1, &(acf_image_plan){.flip = true}, &im), ACF_OK);
    assert_true(im->N == 4 && im->copies == 2);
    for (int i = 0; i < 2 * 12; i++) assert_int_equal(acf_images_at(im, 2)[i], two[i / 4 * 4 + 3 - i % 4]);
    assert_string_equal(acf_images_write_name(name, im, 3), "memory 1 flipped");
    acf_images_free(im);
    assert_int_equal(acf_images_make(two, 2, 3, 3, 1, &(acf_image_plan){.rotate = true, .flip = true}, &im), ACF_OK);
    assert_true(im->N == 16 && im->copies == 8);
    acf_image_rotate(out, two + 9, 3, 3, 1, 3);
    acf_image_flip(out, 3, 3, 1);
    assert_memory_equal(acf_images_at(im, 15), out, 9);
    assert_string_equal(acf_images_write_name(name, im, 15), "memory 1 rotated 270 flipped");
    acf_images_free(im);
}

static void invalid_plans_are_refused(void **state) {
    (void)state;
    static const struct {
        acf_image_plan plan;
        const char *sentence;
    } cases[] = {
        {{.channels = 2}, "images of 2 channels; expected 1 (grey) or 3 (colour)"},
        {{.bits = 9}, "images of 9 bits a channel; expected 1 to 8"},
        {{.crop = {3, 0, 3, 5}},
         "images cropped to 3,0,3,5; expected left,top,right,bottom with left < right and top < bottom"},
        {{.width = 3}, "images resized to 3 x 0; expected both sides, or none"},
        {{.width = 40000, .height = 1}, "images: a width of 40000 pixels; expected 0 to 32768"},
        {{.pad = -1}, "images: padding to a multiple of -1 pixels; expected 0 to 32768"},
        {{.limit = -1}, "the first -1 images; expected 1 or more, or 0 for all"},
        {{.width = 30000, .height = 30000},
         "images of 30000 x 30000 pixels after resizing and padding; expected at most 32768 "
         "a side and 67108864 in all"},
    };
    acf_images *im;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(acf_images_make(pixel, N, H, W, 1, &cases[i].plan, &im), ACF_EUSAGE);
        assert_string_equal(acf_error(), cases[i].sentence);
    }
    assert_int_equal(acf_images_make(pixel, N, H, W, 1, &(acf_image_plan){.crop = {0, 0, 5, 6}}, &im), ACF_EDATA);
    assert_string_equal(
        acf_error(), "memory: it has 4 x 6 pixels, but is to be cropped to columns 0 to 5 and rows 0 to 6; crop less");
    assert_int_equal(acf_images_make(pixel, N, H, W, 2, NULL, &im), ACF_ESHAPE);
    assert_int_equal(acf_images_make(pixel, 0, H, W, 1, NULL, &im), ACF_ESHAPE);
}

/* ---- messages, damage -------------------------------------------------------------------------------------------- */

static void assert_refused(acf_status status, const char *rest) {
    acf_images *im = NULL;
    char expected[400];
    assert_int_equal(acf_images_read(dev, mem.path, NULL, &im), status);
    snprintf(expected, sizeof expected, "%s: %s", mem.path, rest);
    assert_string_equal(acf_error(), expected);
}

static void each_mistake_has_its_message(void **state) {
    (void)state;
    static const struct {
        const char *header, *sentence;
        size_t n;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 6, 4), }",
         "its items are of type f4, expected bytes from 0 to 255 (u1); convert it: x.astype('u1'), after scaling to "
         "0..255",
         96},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (1, 6, 4), }",
         "it is stored column by column, expected row by row; save numpy.ascontiguousarray(x)", 24},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6, 4, 3), }",
         "its shape (6, 4, 3) may be one colour image or 6 images 3 pixels wide; for the former save x[None]", 72},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3, 6, 4), }",
         "its last dimension is 4, expected 1 or 3 channels; if the channels come first, save x.transpose(0, 2, 3, 1)",
         72},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 6, 4), }", "it holds no images, expected at least one",
         0},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 0, 4), }",
         "its images have no pixels, expected at least one", 0},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (24,), }",
         "it has 1 dimensions, expected (images, rows, columns), with channels last if there are any; reshape it",
         24},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 6, 4), }",
         "its shape (2, 24) takes 48 bytes, but 47 follow the header; the file is cut short: copy it again", 47},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296), }",
         "its shape has more items than can be counted; the file is damaged", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_npy(cases[i].header, pixel, cases[i].n);
        assert_refused(ACF_EDATA, cases[i].sentence);
    }
    static const struct {
        const char *bytes, *sentence;
        size_t n;
    } idx[] = {
        {"\0\0\10\1\0\0\0\2ab", "it is an idx file of labels, expected images; give the file with 'images' in its name",
         10},
        {"\0\0\10\4\0\0\0\2ab", "it is an idx file of 4 dimensions, expected 3: images, rows, columns", 10},
        {"\0\0\10\3\0\0\0\0\0\0\0\2\0\0\0\2", "it holds no images, expected at least one", 16},
        {"\0\0\10\3\0\0\0\1\0\0\0\0\0\0\0\2",
         "its header says 2 x 0 pixels, expected at least one; the file is damaged", 16},
        {"\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\2ab*",
         "bytes follow the last image that its header counts; the file is damaged", 19},
        {"\0\0\10\3\0\0\0\1\0\0\0\1\0\0\0\2a", "it is cut short: more bytes were expected at its end; copy it again",
         17},
        {"\0\0\10\3\377\377\377\377\0\0\100\0\0\0\20\0a",
         "it is cut short: more bytes were expected at its end; copy it again", 17},
        {"\0\0\10\3\377", "it is cut short: more bytes were expected at its end; copy it again", 5},
    };
    for (size_t i = 0; i < sizeof idx / sizeof *idx; i++) {
        acf_memfile_put(&mem, idx[i].bytes, idx[i].n);
        assert_refused(ACF_EDATA, idx[i].sentence);
    }
    acf_images *im;
    char expected[400];
    assert_int_equal(acf_images_read(dev, "/nowhere/digits", NULL, &im), ACF_EIO);
    assert_string_equal(acf_error(), "cannot open /nowhere/digits: No such file or directory");
    assert_int_equal(acf_images_read(dev, "/dev/null", NULL, &im), ACF_EIO);
    assert_string_equal(acf_error(),
                        "cannot read /dev/null: it is neither a regular file nor a folder, which images must be");
    acf_lab_folder_put(&folder, "a.txt", "x", 1);
    assert_int_equal(acf_images_read(dev, folder.path, NULL, &im), ACF_EDATA);
    snprintf(
        expected, sizeof expected,
        "%s: this folder has no images: none of its 1 files has a name that ends in .png, .jpg or .jpeg; sub-folders "
        "are not searched",
        folder.path);
    assert_string_equal(acf_error(), expected);
}

/* Every truncation and every changed byte of an idx file, packed or not, gives images or a message. */
static void damaged_idx_is_safe(void **state) {
    (void)state;
    acf_lab_put_idx(&file, N, H, W, pixel);
    packed.n = acf_lab_gzip(file.b, file.n, packed.b, sizeof packed.b);
    for (int gz = 0; gz < 2; gz++) {
        acf_lab_bytes *f = gz ? &packed : &file;
        for (size_t i = 0; i < 2 * f->n; i++) {
            acf_images *im = NULL;
            const int64_t live = acf_alloc_live();
            if (i < f->n) f->b[i] ^= 0x81;
            acf_memfile_put(&mem, f->b, i < f->n ? f->n : i - f->n);
            acf_status status = acf_images_read(dev, mem.path, NULL, &im);
            if (i >= f->n)
                assert_int_not_equal(status, ACF_OK);
            else
                f->b[i] ^= 0x81;
            if (status != ACF_OK)
                assert_true(strlen(acf_error()) > 20);
            else
                acf_images_free(im);
            assert_int_equal(acf_alloc_live(), live);
        }
    }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    put_picture("a.png", 0, 1), put_picture("b.png", 1, 3);
    put_npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4, 6, 4), }\n", pixel, 4 * SIZE);
    acf_device *one;
    assert_int_equal(acf_device_open_cpu(1, &one), ACF_OK);
    for (int what = 0; what < 2; what++) {
        const int64_t live = acf_alloc_live();
        int failures = 0;
        for (int64_t i = 1;; i++, failures++) {
            acf_images *im = NULL;
            acf_alloc_fail_at(i);
            acf_status status = acf_images_read(one, what ? mem.path : folder.path,
                                                &(acf_image_plan){.middle = true, .rotate = true}, &im);
            acf_alloc_fail_at(0);
            acf_images_free(im);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
        }
        assert_true(failures > 8);
    }
    acf_device_close(one);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(images, WITH_FILES(arrays_are_read), WITH_FILES(idx_is_read_packed_or_not),
          WITH_FILES(a_folder_is_read_by_name), WITH_FILES(files_made_from_images_have_names),
          WITH_FILES(grey_and_colour_may_be_mixed), WITH_FILES(broken_files_are_left_out_or_refused),
          WITH_FILES(sizes_must_agree_or_be_made_to), WITH_FILES(a_plan_is_its_steps),
          WITH_FILES(rotated_copies_follow), WITH_FILES(flipped_copies_follow), WITH_FILES(invalid_plans_are_refused),
          WITH_FILES(each_mistake_has_its_message), WITH_FILES(damaged_idx_is_safe),
          WITH_FILES(every_allocation_may_fail))
