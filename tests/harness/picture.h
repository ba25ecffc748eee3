/* Checks of a drawn picture: a file of its own for each test, its pixels, the form of an SVG. */
#ifndef ACF_HARNESS_PICTURE_H
#define ACF_HARNESS_PICTURE_H

#include "harness/check.h"
#include "plot/palette.h"

#include <cairo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A path in the folder for temporary files that ends in .png or .svg; one for each process. */
static inline const char *picture_path(const char *ending) {
    static char path[2][64];
    char *out = path[strcmp(ending, ".svg") == 0];
    snprintf(out, sizeof path[0], "/tmp/acflow-picture-%ld%s", (long)getpid(), ending);
    return out;
}

typedef struct picture {
    int w, h;
    uint32_t *pixel; /* 0x00rrggbb */
} picture;

/* Reads and removes a PNG. Free with picture_free. */
static inline picture picture_read(const char *path) {
    cairo_surface_t *s = cairo_image_surface_create_from_png(path);
    assert_int_equal(cairo_surface_status(s), CAIRO_STATUS_SUCCESS);
    picture p = {cairo_image_surface_get_width(s), cairo_image_surface_get_height(s), NULL};
    p.pixel = malloc((size_t)p.w * (size_t)p.h * sizeof *p.pixel);
    assert_non_null(p.pixel);
    const unsigned char *data = cairo_image_surface_get_data(s);
    for (int y = 0; y < p.h; y++)
        memcpy(p.pixel + (ptrdiff_t)y * p.w, data + (ptrdiff_t)y * cairo_image_surface_get_stride(s),
               (size_t)p.w * sizeof *p.pixel);
    for (int64_t i = 0; i < (int64_t)p.w * p.h; i++) p.pixel[i] &= 0xffffff;
    cairo_surface_destroy(s);
    unlink(path);
    return p;
}

static inline void picture_free(picture *p) { free(p->pixel); }

static inline bool picture_near(uint32_t pixel, acf_ink ink) {
    const double d = fabs((pixel >> 16) / 255.0 - ink.red) + fabs((pixel >> 8 & 255) / 255.0 - ink.green) +
                     fabs((pixel & 255) / 255.0 - ink.blue);
    return d < 0.03;
}

/* Pixels of an ink inside a part of the picture, given as fractions of it. */
static inline int64_t picture_count(const picture *p, acf_ink ink, double x0, double y0, double x1, double y1) {
    int64_t n = 0;
    for (int y = (int)(y0 * p->h); y < (int)(y1 * p->h); y++)
        for (int x = (int)(x0 * p->w); x < (int)(x1 * p->w); x++)
            n += picture_near(p->pixel[(int64_t)y * p->w + x], ink);
    return n;
}

static inline int64_t picture_all(const picture *p, acf_ink ink) { return picture_count(p, ink, 0, 0, 1, 1); }

/* Checks that this SVG of ours is well-formed: every tag is closed in order, and text between is UTF-8. Reads and
 * removes it; returns the number of tags. */
static inline int64_t picture_svg(const char *path) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    char *text = malloc((size_t)size + 1), name[64][32];
    assert_int_equal(fread(text, 1, (size_t)size, f), size);
    text[size] = '\0';
    fclose(f);
    unlink(path);
    assert_int_equal(strlen(text), size);
    assert_int_equal(strncmp(text, "<?xml", 5), 0);
    int depth = 0;
    int64_t tags = 0;
    for (const char *p = strchr(text, '<'); p; p = strchr(p, '<')) {
        const char *end = strchr(p, '>');
        assert_non_null(end);
        if (p[1] != '?' && p[1] != '!') {
            const bool closes = p[1] == '/';
            char word[32];
            assert_int_equal(sscanf(p + 1 + closes, "%31[a-zA-Z]", word), 1);
            if (closes)
                assert_true(depth > 0), assert_string_equal(name[--depth], word);
            else if (end[-1] != '/')
                assert_true(depth < 64), strcpy(name[depth++], word);
            tags++;
        }
        p = end;
    }
    assert_int_equal(depth, 0);
    free(text);
    return tags;
}

#endif
