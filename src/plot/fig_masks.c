/* Masks of images: see acf_plot_masks in acflow.h. A line for each part of the mixture, with its text and its share at the left. What is hidden is
 * white, as in a mask that a user paints, or vermilion over an image. */
#include "base/arena.h"
#include "plot/figures.h"

#include <math.h>

#define CELL 64.0
#define GAP 6.0
#define NAME_ROOM 130.0

/* Pixel k of a cell as ARGB. */
static uint32_t colour(const uint8_t *pixel, int64_t C, bool given) {
    const uint32_t hidden = pixel ? 0xffb83a00u : 0xffffffffu; /* ACF_INK_HOLE */
    if (!given) return hidden;
    if (!pixel) return 0xff202124u;
    return 0xff000000u | (uint32_t)pixel[0] << 16 | (uint32_t)pixel[C == 3 ? 1 : 0] << 8 | pixel[C == 3 ? 2 : 0];
}

/* The largest box with the proportions of the image in the middle of the cell. */
static acf_box inside(acf_box cell, int64_t H, int64_t W) {
    const double scale = fmin(cell.w / (double)W, cell.h / (double)H), w = scale * (double)W, h = scale * (double)H;
    return (acf_box){cell.x + (cell.w - w) / 2, cell.y + (cell.h - h) / 2, w, h};
}

static void draw_cell(acf_canvas *c, acf_box cell, const acf_figure_mask_rows *f, int64_t row, int64_t k, uint32_t *argb) {
    const int64_t P = f->H * f->W;
    const uint8_t *b = f->b + (row * f->across + k) * P, *image = f->pixel ? f->pixel + k * P * f->C : NULL;
    for (int64_t i = 0; i < P; i++) argb[i] = colour(image ? image + i * f->C : NULL, f->C, b[i]);
    const acf_box box = inside(cell, f->H, f->W);
    acf_canvas_pixels(c, box, argb, (int)f->W, (int)f->H);
    acf_canvas_frame(c, box, (acf_pen){ACF_INK_AXIS, 0.8, 0});
}

static void draw(acf_canvas *c, acf_box box, const acf_figure_mask_rows *f, uint32_t *argb) {
    const acf_box cells = {box.x + NAME_ROOM, box.y, box.w - NAME_ROOM, box.h};
    if (cells.w < 14.0 * (double)f->across || cells.h < 14.0 * (double)f->rows) {
        acf_chart_note(c, box, "the page is too small for this figure");
        return;
    }
    for (int64_t row = 0; row < f->rows; row++) {
        for (int64_t k = 0; k < f->across; k++)
            draw_cell(c, acf_chart_cell(cells, (int)f->across, (int)f->rows, (int)(row * f->across + k), GAP), f, row, k, argb);
        const acf_box first = acf_chart_cell(cells, (int)f->across, (int)f->rows, (int)(row * f->across), GAP);
        const double middle = first.y + first.h / 2, line = ACF_LINE(ACF_SIZE_TEXT);
        const bool two = first.h > 2 * line;
        acf_canvas_text_in(c, box.x, middle - (two ? line / 2 : 0), f->name[row], (acf_type){ACF_SIZE_TEXT, .ink = ACF_INK_TEXT}, NAME_ROOM - 8);
        if (two) acf_canvas_text_in(c, box.x, middle + line / 2, f->remark[row], (acf_type){ACF_SIZE_TICK, .ink = ACF_INK_QUIET}, NAME_ROOM - 8);
    }
}

acf_status acf_figure_masks(const char *path, const acf_plot_options *o, const acf_figure_mask_rows *f, const char *facts) {
    acf_canvas *c;
    const double tall = CELL * fmin(fmax((double)f->H / (double)f->W, 0.25), 4);
    const double width = NAME_ROOM + (double)f->across * (CELL + GAP) + 2 * ACF_MARGIN, height = (double)f->rows * (tall + GAP) + ACF_HEAD_HEIGHT;
    uint32_t *argb = acf_alloc((size_t)(f->H * f->W) * sizeof *argb, "a picture");
    if (!argb) return ACF_EMEMORY;
    acf_status status = acf_figure_open(path, o, width, height, &c);
    if (status == ACF_OK) {
        draw(c, acf_chart_head(c, acf_figure_title(o, "Masks"), facts), f, argb);
        status = acf_canvas_save(c);
    }
    acf_release(argb);
    return status;
}
