/* A page: see canvas.h. A PNG is drawn in memory and written at the end; cairo also keeps an SVG in memory. Both go
 * through a stream into one buffer and from there to an acf_outfile, so a file appears whole or not at all. */
#include "plot/canvas.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/real.h"
#include "base/text.h"

#include <cairo-svg.h>
#include <cairo.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FONT "sans-serif"
#define ENDING_BYTES 4

/* The place of a text, in page coordinates: used by the layout check of debug builds. */
typedef struct placed {
    acf_box box;
    char text[40];
} placed;

struct acf_canvas {
    double width, height;
    bool svg;
    cairo_surface_t *surface;
    cairo_t *cr;
    acf_outfile *file;
    char *data; /* the file's bytes */
    size_t n_data, cap_data;
    acf_failure failure; /* the first failure of acflow's own, reported by save; cairo stores its own */
    placed *text;
    int64_t n_text, cap_text;
};

/* ---- opening and saving ------------------------------------------------------------------------------------------ */

static acf_status check_size(double width, double height, double scale, bool svg) {
    if (!(scale > 0 && scale <= ACF_CANVAS_SCALE_MAX))
        return acf_fail(ACF_EUSAGE, "a picture at scale %g; expected more than 0 and at most %g", scale,
                        ACF_CANVAS_SCALE_MAX);
    if (!(width >= ACF_CANVAS_SIDE_MIN && width <= ACF_CANVAS_SIDE_MAX && height >= ACF_CANVAS_SIDE_MIN &&
          height <= ACF_CANVAS_SIDE_MAX))
        return acf_fail(ACF_EUSAGE, "a picture of %g x %g points; expected %g to %g each", width, height,
                        ACF_CANVAS_SIDE_MIN, ACF_CANVAS_SIDE_MAX);
    double w = ceil(width * scale), h = ceil(height * scale);
    if (!svg && (w > ACF_CANVAS_SIDE_MAX || h > ACF_CANVAS_SIDE_MAX || w * h > ACF_CANVAS_PIXELS_MAX))
        return acf_fail(
            ACF_EUSAGE,
            "a picture of %.0f x %.0f pixels; expected at most %.0f on a side and %.0f million in all: choose a "
            "smaller size or scale, or an SVG file",
            w, h, ACF_CANVAS_SIDE_MAX, ACF_CANVAS_PIXELS_MAX / 1e6);
    return ACF_OK;
}

static acf_status grow(acf_canvas *c, size_t n) {
    const size_t cap = n > 2 * c->cap_data ? n : 2 * c->cap_data;
    char *more = acf_alloc(cap, "the bytes of a picture");
    if (!more) return ACF_EMEMORY;
    if (c->n_data) memcpy(more, c->data, c->n_data);
    acf_release(c->data);
    c->data = more, c->cap_data = cap;
    return ACF_OK;
}

/* Write callback of cairo: stores acflow's message; cairo only learns that it failed. */
static cairo_status_t take_some(void *ctx, const unsigned char *data, unsigned int n) {
    acf_canvas *c = ctx;
    if (c->failure.status) return CAIRO_STATUS_WRITE_ERROR;
    if (c->n_data + n > c->cap_data && grow(c, c->n_data + n) != ACF_OK) {
        acf_failure_save(&c->failure);
        return CAIRO_STATUS_WRITE_ERROR;
    }
    memcpy(c->data + c->n_data, data, n);
    c->n_data += n;
    return CAIRO_STATUS_SUCCESS;
}

static acf_status cairo_failure(cairo_status_t status) {
    if (status == CAIRO_STATUS_SUCCESS) return ACF_OK;
    return acf_fail(status == CAIRO_STATUS_NO_MEMORY ? ACF_EMEMORY : ACF_EINTERNAL, "drawing failed: %s",
                    cairo_status_to_string(status));
}

static acf_status open_surface(acf_canvas *c, double scale) {
    if (c->svg) {
        c->surface = cairo_svg_surface_create_for_stream(take_some, c, c->width, c->height);
        if (cairo_surface_status(c->surface) == CAIRO_STATUS_SUCCESS)
            cairo_svg_surface_set_document_unit(c->surface, CAIRO_SVG_UNIT_PX);
    } else {
        c->surface =
            cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(c->width * scale), (int)ceil(c->height * scale));
    }
    ACF_TRY(cairo_failure(cairo_surface_status(c->surface)));
    c->cr = cairo_create(c->surface);
    ACF_TRY(cairo_failure(cairo_status(c->cr)));
    if (!c->svg) cairo_scale(c->cr, scale, scale);
    /* Letters without hinting have the same widths at every scale, so a layout fits at every scale. */
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_set_font_options(c->cr, options);
    cairo_font_options_destroy(options);
    cairo_set_source_rgb(c->cr, 1, 1, 1);
    cairo_paint(c->cr);
    cairo_set_line_join(c->cr, CAIRO_LINE_JOIN_ROUND);
    return ACF_OK;
}

acf_status acf_canvas_open(const char *path, double width, double height, double scale, acf_canvas **out) {
    char shown[ACF_EXCERPT_MAX];
    const size_t n = strlen(path);
    const char *ending = n > ENDING_BYTES ? path + n - ENDING_BYTES : "";
    bool svg = strcasecmp(ending, ".svg") == 0;
    if (!svg && strcasecmp(ending, ".png") != 0)
        return acf_fail(ACF_EUSAGE, "cannot draw to '%s': the name must end in .png or .svg",
                        acf_text_excerpt(shown, path));
    ACF_TRY(check_size(width, height, scale, svg));
    acf_canvas *c = acf_alloc_zero(sizeof *c, "a page to draw on");
    if (!c) return ACF_EMEMORY;
    c->width = width, c->height = height, c->svg = svg;
    acf_status status = acf_outfile_open(path, &c->file);
    if (status == ACF_OK) status = open_surface(c, scale);
    if (status != ACF_OK) {
        acf_failure why;
        acf_failure_save(&why);
        acf_canvas_free(c);
        return acf_failure_restore(&why);
    }
    *out = c;
    return ACF_OK;
}

/* The stream may be written until the surface is destroyed, so its buffer is freed last. */
void acf_canvas_free(acf_canvas *c) {
    if (!c) return;
    if (c->cr) cairo_destroy(c->cr);
    if (c->surface) cairo_surface_destroy(c->surface);
    acf_outfile_abort(c->file);
    acf_release(c->data);
    acf_release(c->text);
    acf_release(c);
}

static bool overlap(acf_box a, acf_box b) {
    return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

/* A failure is a defect of acflow, not of the caller: a figure must place its text readably, whatever the data. */
static acf_status check_layout(const acf_canvas *c) {
    for (int64_t i = 0; i < c->n_text; i++) {
        const placed *a = &c->text[i];
        if (a->box.x < -0.5 || a->box.y < -0.5 || a->box.x + a->box.w > c->width + 0.5 ||
            a->box.y + a->box.h > c->height + 0.5)
            return acf_fail(ACF_EINTERNAL, "the text '%s' leaves the page of %g x %g: it is at %g, %g and %g wide",
                            a->text, c->width, c->height, a->box.x, a->box.y, a->box.w);
        for (int64_t j = 0; j < i; j++)
            if (overlap(a->box, c->text[j].box))
                return acf_fail(ACF_EINTERNAL, "the text '%s' at %g, %g overlaps '%s' at %g, %g", a->text, a->box.x,
                                a->box.y, c->text[j].text, c->text[j].box.x, c->text[j].box.y);
    }
    return ACF_OK;
}

/* Is there a name numbered by cairo at p, after a quote or a '#'? Returns its length, or 0. Images inside an SVG
 * contain neither character. */
static size_t numbered(const char *p, const char *end) {
    static const char *const words[] = {"surface", "image"};
    for (int k = 0; k < 2; k++) {
        const size_t n = strlen(words[k]);
        if ((size_t)(end - p) > n && memcmp(p, words[k], n) == 0 && p[n] >= '0' && p[n] <= '9') return n;
    }
    return 0;
}

/* The number after the n letters of a name at p; *rest is what follows it. */
static int64_t number_at(const char *p, size_t n, const char *end, const char **rest) {
    int64_t number = 0;
    for (p += n; p < end && *p >= '0' && *p <= '9'; p++) number = number * 10 + (*p - '0');
    *rest = p;
    return number;
}

/* Writes the numbers of all names in the SVG, with repetitions, into seen; with seen NULL only counts them. */
static int64_t collect_numbers(const acf_canvas *c, int64_t *seen) {
    int64_t names = 0;
    const char *end = c->data + c->n_data, *rest;
    for (const char *p = c->data; p < end; p++) {
        const size_t n = *p == '"' || *p == '#' ? numbered(p + 1, end) : 0;
        if (n == 0) continue;
        const int64_t number = number_at(p + 1, n, end, &rest);
        if (seen) seen[names] = number;
        names++;
    }
    return names;
}

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Replaces each number by its rank among the `different` ones in `rank`, which ascend. A rank is at most the number,
 * whatever the order of names, so the text shrinks in place. */
static void renumber(acf_canvas *c, const int64_t *rank, size_t different) {
    const char *p = c->data, *end = p + c->n_data, *rest;
    char *out = c->data;
    while (p < end) {
        const char before = *p;
        *out++ = *p++;
        const size_t n = before == '"' || before == '#' ? numbered(p, end) : 0;
        if (n == 0) continue;
        const int64_t number = number_at(p, n, end, &rest),
                      *at = bsearch(&number, rank, different, sizeof *rank, by_number);
        char text[ACF_NUMBER_MAX];
        const size_t length = (size_t)snprintf(text, sizeof text, "%lld", (long long)(at - rank));
        ACF_ASSERT(length <= (size_t)(rest - p) - n);
        memmove(out, p, n);
        memcpy(out + n, text, length);
        out += n + length, p = rest;
    }
    c->n_data = (size_t)(out - c->data);
}

static acf_status number_anew(acf_canvas *c) {
    const int64_t names = collect_numbers(c, NULL);
    size_t bytes, different = 0;
    if (!acf_bytes(names, sizeof(int64_t), &bytes)) return ACF_EMEMORY;
    int64_t *seen = acf_alloc(bytes, "the names of a picture's parts");
    if (!seen) return ACF_EMEMORY;
    collect_numbers(c, seen);
    qsort(seen, (size_t)names, sizeof *seen, by_number);
    for (int64_t i = 0; i < names; i++)
        if (different == 0 || seen[i] != seen[different - 1]) seen[different++] = seen[i];
    renumber(c, seen, different);
    acf_release(seen);
    return ACF_OK;
}

/* cairo writes the SVG at finish, the PNG on a separate call. */
static acf_status write_file(acf_canvas *c) {
    ACF_TRY(check_layout(c));
    ACF_TRY(cairo_failure(cairo_status(c->cr)));
    cairo_status_t status = CAIRO_STATUS_SUCCESS;
    if (!c->svg) status = cairo_surface_write_to_png_stream(c->surface, take_some, c);
    cairo_surface_finish(c->surface);
    if (status == CAIRO_STATUS_SUCCESS) status = cairo_surface_status(c->surface);
    if (c->failure.status) return acf_failure_restore(&c->failure);
    ACF_TRY(cairo_failure(status));
    if (c->svg) ACF_TRY(number_anew(c));
    return acf_outfile_write(c->file, c->data, c->n_data);
}

acf_status acf_canvas_save(acf_canvas *c) {
    acf_status status = write_file(c);
    acf_failure why = {0};
    if (status == ACF_OK) {
        acf_outfile *file = c->file;
        c->file = NULL;
        status = acf_outfile_commit(file);
    }
    if (status != ACF_OK) acf_failure_save(&why);
    acf_canvas_free(c);
    return status == ACF_OK ? ACF_OK : acf_failure_restore(&why);
}

double acf_canvas_width(const acf_canvas *c) { return c->width; }
double acf_canvas_height(const acf_canvas *c) { return c->height; }

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* cairo's coordinates are 24.8 fixed point numbers; positions far outside the page need not be exact. */
static double tame(double v) { return fmin(fmax(v, -1e5), 1e5); }

static void use_ink(acf_canvas *c, acf_ink ink) {
    cairo_set_source_rgba(c->cr, ink.red, ink.green, ink.blue, ink.alpha);
}

static void use_pen(acf_canvas *c, acf_pen pen) {
    static const double pattern[][4] = {
        {6, 3, 6, 3}, {1.5, 2, 1.5, 2}, {7, 2.5, 1.5, 2.5}, {3, 2, 3, 2}, {10, 3, 3, 3}};
    const int n = (int)(sizeof pattern / sizeof *pattern);
    use_ink(c, pen.ink);
    cairo_set_line_width(c->cr, pen.width);
    if (pen.dash > 0)
        cairo_set_dash(c->cr, pattern[(pen.dash - 1) % n], 4, 0);
    else
        cairo_set_dash(c->cr, NULL, 0, 0);
}

void acf_canvas_clip(acf_canvas *c, acf_box box) {
    cairo_rectangle(c->cr, box.x, box.y, box.w, box.h);
    cairo_clip(c->cr);
}

void acf_canvas_unclip(acf_canvas *c) { cairo_reset_clip(c->cr); }

void acf_canvas_line(acf_canvas *c, double x0, double y0, double x1, double y1, acf_pen pen) {
    use_pen(c, pen);
    cairo_move_to(c->cr, tame(x0), tame(y0));
    cairo_line_to(c->cr, tame(x1), tame(y1));
    cairo_stroke(c->cr);
}

void acf_canvas_curve(acf_canvas *c, const double *x, const double *y, int64_t n, acf_pen pen) {
    use_pen(c, pen);
    cairo_new_path(c->cr);
    for (int64_t i = 0; i < n; i++) {
        if (isfinite(x[i]) && isfinite(y[i]))
            cairo_line_to(c->cr, tame(x[i]), tame(y[i]));
        else
            cairo_new_sub_path(c->cr);
    }
    cairo_stroke(c->cr);
}

void acf_canvas_area(acf_canvas *c, const double *x, const double *y, int64_t n, double base, acf_ink ink) {
    use_ink(c, ink);
    cairo_new_path(c->cr);
    for (int64_t i = 0; i < n; i++) {
        if (i == 0) cairo_move_to(c->cr, tame(x[0]), tame(base));
        cairo_line_to(c->cr, tame(x[i]), tame(y[i]));
        if (i + 1 == n) cairo_line_to(c->cr, tame(x[i]), tame(base));
    }
    cairo_fill(c->cr);
}

void acf_canvas_fill(acf_canvas *c, acf_box box, acf_ink ink) {
    use_ink(c, ink);
    cairo_rectangle(c->cr, tame(box.x), tame(box.y), tame(box.w), tame(box.h));
    cairo_fill(c->cr);
}

void acf_canvas_frame(acf_canvas *c, acf_box box, acf_pen pen) {
    use_pen(c, pen);
    cairo_rectangle(c->cr, tame(box.x), tame(box.y), tame(box.w), tame(box.h));
    cairo_stroke(c->cr);
}

static void circle(acf_canvas *c, double x, double y, double radius) {
    cairo_new_path(c->cr);
    cairo_arc(c->cr, tame(x), tame(y), radius, 0, 6.28318530717958648);
}

void acf_canvas_dot(acf_canvas *c, double x, double y, double radius, acf_ink ink) {
    use_ink(c, ink);
    circle(c, x, y, radius);
    cairo_fill(c->cr);
}

void acf_canvas_ring(acf_canvas *c, double x, double y, double radius, acf_pen pen) {
    use_pen(c, pen);
    circle(c, x, y, radius);
    cairo_stroke(c->cr);
}

/* The pixels are copied: a recording that becomes an SVG may keep the image until the end. */
void acf_canvas_pixels(acf_canvas *c, acf_box box, const uint32_t *pixel, int w, int h) {
    if (w <= 0 || h <= 0) return;
    cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, w, h);
    if (cairo_surface_status(image) == CAIRO_STATUS_SUCCESS) {
        unsigned char *row = cairo_image_surface_get_data(image);
        const int stride = cairo_image_surface_get_stride(image);
        for (int y = 0; y < h; y++)
            memcpy(row + (ptrdiff_t)y * stride, pixel + (ptrdiff_t)y * w, (size_t)w * sizeof *pixel);
        cairo_surface_mark_dirty(image);
        cairo_save(c->cr);
        cairo_translate(c->cr, box.x, box.y);
        cairo_scale(c->cr, box.w / w, box.h / h);
        cairo_set_source_surface(c->cr, image, 0, 0);
        cairo_pattern_set_filter(cairo_get_source(c->cr), CAIRO_FILTER_NEAREST);
        cairo_rectangle(c->cr, 0, 0, w, h);
        cairo_fill(c->cr);
        cairo_restore(c->cr);
    } else {
        acf_failure_save(&c->failure);
        c->failure.status = ACF_EMEMORY;
    }
    cairo_surface_destroy(image);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Bytes of the well-formed UTF-8 character at s, 0 if there is none. */
static size_t character(const char *s) {
    for (size_t n = 1; n <= 4; n++) {
        if (s[n - 1] == '\0') return 0;
        if (acf_text_is_utf8(s, n)) return n;
    }
    return 0;
}

/* Text that cairo accepts: it rejects a whole page for one bad byte. Keeps at most the first ACF_FIT_MAX - 4 bytes: no
 * line is longer. */
static void clean(const char *text, char out[ACF_FIT_MAX]) {
    size_t n = 0;
    while (*text && n + 8 < ACF_FIT_MAX) {
        size_t bytes = character(text);
        if (bytes == 0) {
            memcpy(out + n, "\xef\xbf\xbd", 3);
            n += 3, text++;
        } else if (bytes == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f)) {
            out[n++] = ' ', text++;
        } else {
            memcpy(out + n, text, bytes);
            n += bytes, text += bytes;
        }
    }
    if (*text) memcpy(out + n, "…", 3), n += 3;
    out[n] = '\0';
}

static void use_type(acf_canvas *c, acf_type type) {
    cairo_select_font_face(c->cr, FONT, CAIRO_FONT_SLANT_NORMAL,
                           type.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(c->cr, type.size);
}

/* Width by the letters' advances: the visible extent of the text. */
static double clean_width(acf_canvas *c, const char *text) {
    cairo_text_extents_t e;
    cairo_text_extents(c->cr, text, &e);
    return isfinite(e.x_advance) ? e.x_advance : 0;
}

double acf_canvas_text_width(acf_canvas *c, const char *text, acf_type type) {
    char shown[ACF_FIT_MAX];
    clean(text, shown);
    use_type(c, type);
    return clean_width(c, shown);
}

/* Stores the place of a text. Only debug builds use it, so only they do it. */
static void remember(acf_canvas *c, acf_box box, const char *text) {
#ifdef ACF_DEBUG
    if (c->n_text == c->cap_text) {
        int64_t cap = acf_max(64, 2 * c->cap_text);
        placed *more = acf_alloc((size_t)cap * sizeof *more, "the places of text");
        if (!more) {
            acf_failure_save(&c->failure);
            return;
        }
        if (c->n_text) memcpy(more, c->text, (size_t)c->n_text * sizeof *more);
        acf_release(c->text);
        c->text = more, c->cap_text = cap;
    }
    placed *p = &c->text[c->n_text++];
    p->box = box;
    acf_text t = acf_text_into(p->text, sizeof p->text);
    acf_text_add(&t, text);
#else
    (void)c, (void)box, (void)text;
#endif
}

/* Letters of a Latin face reach about 0.36 of the size above and below the middle of lower-case letters; the box must
 * stay free of other text. */
void acf_canvas_text(acf_canvas *c, double x, double y, const char *text, acf_type type) {
    char shown[ACF_FIT_MAX];
    clean(text, shown);
    if (!shown[0]) return;
    use_type(c, type);
    const double w = clean_width(c, shown), h = type.size;
    cairo_save(c->cr);
    use_ink(c, type.ink);
    cairo_translate(c->cr, x, y);
    if (type.upward) cairo_rotate(c->cr, -1.57079632679489662);
    cairo_move_to(c->cr, -type.align * w, 0.35 * h);
    cairo_show_text(c->cr, shown);
    cairo_restore(c->cr);
    if (type.upward)
        remember(c, (acf_box){x - h / 2, y - (1 - type.align) * w, h, w}, shown);
    else
        remember(c, (acf_box){x - type.align * w, y - h / 2, w, h}, shown);
}

/* The byte where letter k of a clean text begins; the length if it has fewer letters. */
static size_t letter_at(const char *text, size_t k) {
    size_t n = 0;
    for (; text[n]; n++)
        if (((unsigned char)text[n] & 0xc0) != 0x80 && k-- == 0) break;
    return n;
}

/* `kept` letters with an ellipsis: two from the beginning for each from the end, because names often differ at their
 * end. */
static void elide(const char *text, size_t letters, size_t kept, char out[ACF_FIT_MAX]) {
    size_t head = letter_at(text, kept - kept / 3), tail = letter_at(text, letters - kept / 3);
    while (head > 0 && text[head - 1] == ' ') head--;
    while (text[tail] == ' ') tail++;
    memcpy(out, text, head);
    memcpy(out + head, "…", 3); /* it fits: a clean text leaves four bytes */
    memcpy(out + head + 3, text + tail, strlen(text + tail) + 1);
}

/* Removes letters until the rest and the ellipsis fit. There are at most ACF_FIT_MAX, so bisection would save
 * nothing. */
const char *acf_canvas_fit(acf_canvas *c, const char *text, acf_type type, double width, char out[ACF_FIT_MAX]) {
    char whole[ACF_FIT_MAX];
    clean(text, out);
    use_type(c, type);
    if (clean_width(c, out) <= width) return out;
    strcpy(whole, out);
    size_t letters = 0;
    for (const char *s = whole; *s; s++) letters += ((unsigned char)*s & 0xc0) != 0x80;
    for (size_t kept = letters; kept-- > 1;) {
        elide(whole, letters, kept, out);
        if (clean_width(c, out) <= width) return out;
    }
    out[0] = '\0';
    return out;
}

void acf_canvas_text_in(acf_canvas *c, double x, double y, const char *text, acf_type type, double width) {
    char shown[ACF_FIT_MAX];
    acf_canvas_text(c, x, y, acf_canvas_fit(c, text, type, width, shown), type);
}
