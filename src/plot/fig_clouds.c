/* A grid of point clouds: see acf_plot_clouds in acflow.h. Names are above the columns and upright at the left of the
 * rows. Panels are framed and have no ticks, because the figure compares shapes. */
#include "plot/figures.h"

#include <math.h>

#define CELL 130.0
#define GAP 8.0
#define NAME_ROOM 18.0

/* All clouds of a column have the axes of the first one, widened for a cloud that reaches further by less than half. A
 * few extreme draws must not shrink the picture. */
static void column_ranges(const acf_plot_cloud *cloud, int across, int down, int k, acf_range *x, acf_range *y) {
    const acf_plot_cloud *first = NULL;
    for (int row = 0; row < down && !first; row++)
        if (cloud[row * across + k].n > 0) first = &cloud[row * across + k];
    *x = acf_range_padded(acf_range_of(first ? first->xy : NULL, first ? first->n : 0, 2), 0.08);
    *y = acf_range_padded(acf_range_of(first ? first->xy + 1 : NULL, first ? first->n : 0, 2), 0.08);
}

/* Opacity that gives a cloud of a thousand dots about as much ink as one of a hundred thousand. */
static acf_cloud_style style_of(int64_t n, double side) {
    const double crowd = fmin(fmax(log10((double)n + 1) - 2, 0), 3) / 3;
    return (acf_cloud_style){.radius = fmax(side / CELL, 0.5) * (1.3 - 0.7 * crowd), .weight = 0.75 - 0.45 * crowd};
}

static acf_status draw(acf_canvas *c, acf_box box, const acf_plot_cloud *cloud, int across, int down,
                       const char *const *names_across, const char *const *names_down) {
    const double top = names_across ? NAME_ROOM : 0, left = names_down ? NAME_ROOM : 0;
    const acf_box cells = {box.x + left, box.y + top, box.w - left, box.h - top};
    if (cells.w < 14.0 * across || cells.h < 14.0 * down) {
        acf_chart_note(c, box, "the page is too small for this figure");
        return ACF_OK;
    }
    acf_type type = {ACF_SIZE_PANEL, .align = 0.5, .bold = 1, .ink = ACF_INK_TEXT};
    for (int k = 0; k < across; k++) {
        acf_axis x = {.show = ACF_AXIS_NONE}, y = {.show = ACF_AXIS_NONE};
        column_ranges(cloud, across, down, k, &x.range, &y.range);
        for (int row = 0; row < down; row++) {
            const acf_box cell = acf_chart_cell(cells, across, down, row * across + k, GAP);
            const acf_plot_cloud *points = &cloud[row * across + k];
            const acf_panel p = acf_panel_at(c, cell, x, y, 0);
            ACF_TRY(acf_panel_cloud(&p, points->xy, points->xy + 1, points->n, 2,
                                    style_of(points->n, fmin(cell.w, cell.h))));
            acf_canvas_frame(c, cell, (acf_pen){ACF_INK_AXIS, 0.8, 0});
        }
        const acf_box head = acf_chart_cell(cells, across, down, k, GAP);
        if (names_across && names_across[k])
            acf_canvas_text_in(c, head.x + head.w / 2, box.y + 6, names_across[k], type, head.w);
    }
    type.upward = 1;
    for (int row = 0; names_down && row < down; row++) {
        const acf_box cell = acf_chart_cell(cells, across, down, row * across, GAP);
        if (names_down[row]) acf_canvas_text_in(c, box.x + 6, cell.y + cell.h / 2, names_down[row], type, cell.h);
    }
    return ACF_OK;
}

acf_status acf_figure_clouds(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across,
                             int down, const char *const *names_across, const char *const *names_down) {
    acf_canvas *c;
    const double width = across * (CELL + GAP) + 2 * ACF_MARGIN + NAME_ROOM,
                 height = down * (CELL + GAP) + ACF_HEAD_HEIGHT;
    ACF_TRY(acf_figure_open(path, o, width, height, &c));
    const acf_box box = acf_chart_head(c, acf_figure_title(o, "Data and samples"), "");
    acf_status status = draw(c, box, cloud, across, down, names_across, names_down);
    if (status == ACF_OK) return acf_canvas_save(c);
    acf_canvas_free(c);
    return status;
}
