/* A page to draw on, saved as a PNG or an SVG file: the only file that uses cairo.
 *
 *     ACF_TRY(acf_canvas_open("loss.png", 720, 400, 2, &c));       the ending of the name selects the format
 *     acf_canvas_line(c, 10, 10, 90, 10, 1, ACF_INK_TEXT);
 *     acf_canvas_text(c, 10, 20, "age", (acf_type){.size = 10, .ink = ACF_INK_TEXT});
 *     return acf_canvas_save(c);                                   the file is complete or absent
 *
 * Lengths are points, x to the right and y down from the upper left corner. A PNG has `scale` pixels to the point, so
 * the same drawing fits a plain screen (1), a retina screen or print (2 or more). Drawing calls return nothing: save
 * reports the first failure.
 *
 * The same drawing gives the same bytes: cairo numbers the parts of an SVG by what the process drew before, so they are
 * renumbered.
 *
 * Text from outside (column names) may be anything: bytes that are not UTF-8 are shown as U+FFFD, control characters as
 * spaces. In debug builds save refuses a page with text that overlaps other text or is cut by the page's edge, so every
 * test of a figure checks its layout.
 *
 * Thread rule: one thread uses a canvas; different canvases may be used at once. */
#ifndef ACF_PLOT_CANVAS_H
#define ACF_PLOT_CANVAS_H

#include "base/status.h"

#include <stdint.h>

#define ACF_CANVAS_SIDE_MIN 160.0   /* points */
#define ACF_CANVAS_SIDE_MAX 20000.0 /* points, and pixels of a PNG: cairo's limit is 32767 */
#define ACF_CANVAS_PIXELS_MAX 1.0e8 /* of a PNG; four bytes each while it is drawn */
#define ACF_CANVAS_SCALE_MAX 8.0

typedef struct acf_ink {
    double red, green, blue, alpha; /* 0..1 */
} acf_ink;

typedef struct acf_box {
    double x, y, w, h;
} acf_box;

typedef struct acf_canvas acf_canvas;

/* Starts the file and a white page. Gives *out; end it with acf_canvas_save or acf_canvas_free. Fails: ACF_EUSAGE (an
 * ending other than .png or .svg; a size that is out of range or not a number), ACF_EIO, ACF_EMEMORY. */
acf_status acf_canvas_open(const char *path, double width, double height, double scale, acf_canvas **out);

/* Writes the file and frees the canvas in any case. Fails: ACF_EIO, ACF_EMEMORY; an existing file is then unchanged. */
acf_status acf_canvas_save(acf_canvas *c);
void acf_canvas_free(acf_canvas *c); /* drops the drawing; NULL is allowed */

double acf_canvas_width(const acf_canvas *c);
double acf_canvas_height(const acf_canvas *c);

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* Nothing outside the box is drawn until unclip; boxes do not nest. */
void acf_canvas_clip(acf_canvas *c, acf_box box);
void acf_canvas_unclip(acf_canvas *c);

typedef struct acf_pen {
    acf_ink ink;
    double width;
    int dash; /* 0: solid; 1, 2, ...: distinguishable patterns */
} acf_pen;

void acf_canvas_line(acf_canvas *c, double x0, double y0, double x1, double y1, acf_pen pen);
/* A curve through n points, interrupted where a coordinate is not finite. */
void acf_canvas_curve(acf_canvas *c, const double *x, const double *y, int64_t n, acf_pen pen);
/* The area between the curve and the horizontal line at y = base. */
void acf_canvas_area(acf_canvas *c, const double *x, const double *y, int64_t n, double base, acf_ink ink);
void acf_canvas_fill(acf_canvas *c, acf_box box, acf_ink ink);
void acf_canvas_frame(acf_canvas *c, acf_box box, acf_pen pen);
void acf_canvas_dot(acf_canvas *c, double x, double y, double radius, acf_ink ink);
void acf_canvas_ring(acf_canvas *c, double x, double y, double radius, acf_pen pen);
/* Paints w x h pixels (premultiplied ARGB, 32 bits each in the machine's order) over the box, without smoothing. */
void acf_canvas_pixels(acf_canvas *c, acf_box box, const uint32_t *pixel, int w, int h);

/* ---- text -------------------------------------------------------------------------------------------------------- */

typedef struct acf_type {
    double size;  /* points */
    double align; /* 0: x is the left end, 0.5: the middle, 1: the right end */
    int bold;
    int upward; /* rotated to read from bottom to top; x is then the middle of the line and align applies along it */
    acf_ink ink;
} acf_type;

/* Height of a line; the text at y is centred on y. */
#define ACF_LINE(size) ((size)*1.3)

double acf_canvas_text_width(acf_canvas *c, const char *text, acf_type type);

/* One line, vertically centred on y (upward: horizontally on x). Not cut: see fit. */
void acf_canvas_text(acf_canvas *c, double x, double y, const char *text, acf_type type);

/* The text, or as much of its beginning and end as fits into `width` with an ellipsis between; "" if nothing fits. */
#define ACF_FIT_MAX 256
const char *acf_canvas_fit(acf_canvas *c, const char *text, acf_type type, double width, char out[ACF_FIT_MAX]);
/* fit and text in one. */
void acf_canvas_text_in(acf_canvas *c, double x, double y, const char *text, acf_type type, double width);

#endif
