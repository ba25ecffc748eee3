/* A sheet of images: see figures.h. Names are above the columns, at the left of the rows, or below every image. Images
 * keep their proportions and are not smoothed. */
#include "base/arena.h"
#include "plot/figures.h"

#include <math.h>

#define CELL 64.0
#define GAP 6.0
#define NAME_ROOM 130.0
#define HEAD_ROOM 18.0
#define CAPTION_ROOM (ACF_LINE(ACF_SIZE_TICK) + 2)

/* The largest box with the proportions of the image, centred in the cell. A given width limits it and puts it at a
 * whole point, so that every image pixel covers the same number of page pixels. */
static acf_box inside(acf_box cell, const acf_figure_sheet *f) {
    const double W = (double)f->W, H = (double)f->H,
                 scale = fmin(fmin(cell.w / W, cell.h / H), f->cell > 0 ? f->cell / W : (double)INFINITY),
                 w = scale * W, h = scale * H;
    const acf_box box = {cell.x + (cell.w - w) / 2, cell.y + (cell.h - h) / 2, w, h};
    return f->cell > 0 ? (acf_box){round(box.x), round(box.y), w, h} : box;
}

static void draw_image(acf_canvas *c, acf_box cell, const acf_figure_sheet *f, int64_t k, uint32_t *argb) {
    const int64_t P = f->H * f->W, green = f->C == 3 ? 1 : 0, blue = f->C == 3 ? 2 : 0;
    const uint8_t *p = f->pixel + k * P * f->C;
    for (int64_t i = 0; i < P; i++, p += f->C)
        argb[i] = 0xff000000u | (uint32_t)p[0] << 16 | (uint32_t)p[green] << 8 | p[blue];
    const acf_box box = inside(cell, f);
    acf_canvas_pixels(c, box, argb, (int)f->W, (int)f->H);
    acf_canvas_frame(c, box, (acf_pen){ACF_INK_AXIS, 0.8, 0});
}

/* Name and remark of a row, stacked if there is enough height. */
static void name_row(acf_canvas *c, double x, acf_box cell, const char *name, const char *remark) {
    const double middle = cell.y + cell.h / 2, line = ACF_LINE(ACF_SIZE_TEXT);
    const bool two = remark && cell.h > 2 * line;
    acf_canvas_text_in(c, x, middle - (two ? line / 2 : 0), name, (acf_type){ACF_SIZE_TEXT, .ink = ACF_INK_TEXT},
                       NAME_ROOM - 8);
    if (two)
        acf_canvas_text_in(c, x, middle + line / 2, remark, (acf_type){ACF_SIZE_TICK, .ink = ACF_INK_QUIET},
                           NAME_ROOM - 8);
}

static void draw(acf_canvas *c, acf_box box, const acf_figure_sheet *f, uint32_t *argb) {
    const double left = f->name_down ? NAME_ROOM : 0, top = f->name_across ? HEAD_ROOM : 0,
                 below = f->caption ? CAPTION_ROOM : 0;
    const acf_box cells = {box.x + left, box.y + top, box.w - left, box.h - top};
    if (cells.w < 14.0 * f->across || cells.h < (14.0 + below) * f->down) {
        acf_chart_note(c, box, "the page is too small for this figure");
        return;
    }
    for (int k = 0; k < f->across * f->down && k < f->n; k++) {
        acf_box cell = acf_chart_cell(cells, f->across, f->down, k, GAP);
        cell.h -= below;
        const double middle = cell.x + cell.w / 2;
        draw_image(c, cell, f, k, argb);
        if (f->caption)
            acf_canvas_text_in(c, middle, cell.y + cell.h + below / 2 + 1, f->caption[k],
                               (acf_type){ACF_SIZE_TICK, .align = 0.5, .ink = ACF_INK_QUIET}, cell.w);
        if (f->name_across && k < f->across)
            acf_canvas_text_in(c, middle, box.y + 6, f->name_across[k],
                               (acf_type){ACF_SIZE_PANEL, .align = 0.5, .bold = 1, .ink = ACF_INK_TEXT}, cell.w);
        if (f->name_down && k % f->across == 0)
            name_row(c, box.x, cell, f->name_down[k / f->across],
                     f->remark_down ? f->remark_down[k / f->across] : NULL);
    }
}

acf_status acf_figure_images(const char *path, const acf_plot_options *o, const acf_figure_sheet *f, const char *title,
                             const char *facts) {
    acf_canvas *c;
    const double cell = f->cell > 0 ? f->cell : CELL,
                 tall = cell * fmin(fmax((double)f->H / (double)f->W, 0.25), 4) + (f->caption ? CAPTION_ROOM : 0);
    const double width = fmax((f->name_down ? NAME_ROOM : 0) + f->across * (cell + GAP) + 2 * ACF_MARGIN, 360);
    const double height = (f->name_across ? HEAD_ROOM : 0) + f->down * (tall + GAP) + ACF_HEAD_HEIGHT;
    uint32_t *argb = acf_alloc((size_t)(f->H * f->W) * sizeof *argb, "a picture");
    if (!argb) return ACF_EMEMORY;
    acf_status status = acf_figure_open(path, o, width, fmax(height, 160), &c);
    if (status == ACF_OK) {
        draw(c, acf_chart_head(c, acf_figure_title(o, title), facts), f, argb);
        status = acf_canvas_save(c);
    }
    acf_release(argb);
    return status;
}
