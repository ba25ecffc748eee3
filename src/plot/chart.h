/* The parts of every figure: a heading, panels with axes, a legend.
 *
 *     +----------------------------------------+
 *     | Title                                  |   acf_chart_head: returns what remains below
 *     | a line or two of facts                 |
 *     | ■ observed  ▬ imputed                  |   acf_chart_legend
 *     |   Panel title        Panel title       |
 *     | 4 |   ..           4 |   ..           |   acf_panel_open: a box with ticks, grid and names; data
 *     | 0 +-------         0 +-------          |   is then drawn in its coordinates by acf_panel_x and _y
 *     |   0     5            0     5           |
 *     +----------------------------------------+
 *
 * Text never overlaps: labels are measured first, ticks are removed until the rest fits, names are cut with an
 * ellipsis. */
#ifndef ACF_PLOT_CHART_H
#define ACF_PLOT_CHART_H

#include "plot/palette.h"
#include "plot/ticks.h"

#define ACF_SIZE_TITLE 15.0
#define ACF_SIZE_PANEL 11.0
#define ACF_SIZE_TEXT 10.0
#define ACF_SIZE_TICK 9.0
#define ACF_MARGIN 14.0

/* ---- heading and legend ------------------------------------------------------------------------------------------ */

/* Writes title (bold) and facts (below, in at most three lines) at the top of the page; NULL or "": none. Returns the
 * rest of the page inside the margins. */
acf_box acf_chart_head(acf_canvas *c, const char *title, const char *facts);
/* Height that acf_chart_head uses on a page of that width, margins included: for figures that choose their height. */
#define ACF_HEAD_HEIGHT 76.0

typedef enum acf_key_shape { ACF_KEY_BOX, ACF_KEY_LINE, ACF_KEY_DOT, ACF_KEY_RING } acf_key_shape;

typedef struct acf_key {
    const char *text;
    acf_key_shape shape;
    acf_pen pen; /* ink of a box or dot; all of a line or ring */
} acf_key;

/* Writes the keys from left to right, in as many lines as needed, at the top of the box; returns the rest. A key too
 * long for a line is cut; keys that do not fit into half of the box are left out. */
acf_box acf_chart_legend(acf_canvas *c, acf_box box, const acf_key *key, int n);

/* Writes a sentence in the middle of an otherwise empty box. */
void acf_chart_note(acf_canvas *c, acf_box box, const char *text);

/* ---- panels ------------------------------------------------------------------------------------------------------ */

typedef enum acf_axis_show {
    ACF_AXIS_FULL,
    ACF_AXIS_GRID,
    ACF_AXIS_NONE
} acf_axis_show; /* all; lines without labels; nothing */

typedef struct acf_axis {
    acf_range range;
    double unit;      /* seconds in one unit, for times; 0: numbers (ticks.h) */
    const char *name; /* NULL: none */
    acf_axis_show show;
    /* upright: least width for its labels, so that stacked panels align; across: how far labels may reach beyond its
     * ends, 0 for the figure's own margin */
    double capacity;
    /* above 0: places 0..classes-1 are categories, shown by their labels, or if that is NULL by their codes */
    int32_t classes;
    const char *const *labels;
} acf_axis;

typedef struct acf_panel {
    acf_canvas *c;
    acf_box box; /* the data area */
    acf_range x, y;
} acf_panel;

/* Draws title (NULL: none), grid, axes and labels inside `outer`, and gives the panel that remains. If a box is too
 * small, labels are left out. */
acf_panel acf_panel_open(acf_canvas *c, acf_box outer, const char *title, acf_axis x, acf_axis y);

/* The same for a given data area: grid and labels of the axes, which lie outside the box to the left (at most
 * `capacity` wide) and below; names of axes are not drawn. */
acf_panel acf_panel_at(acf_canvas *c, acf_box box, acf_axis x, acf_axis y, double capacity);
/* Width of the labels of an upright axis of that length, and the height of a line of labels across. */
double acf_axis_width(acf_canvas *c, acf_axis y, double length);
#define ACF_AXIS_HEIGHT (ACF_LINE(ACF_SIZE_TICK) + 4)

/* Converts data to page coordinates. Infinite stays infinite, NaN stays NaN. */
double acf_panel_x(const acf_panel *p, double v);
double acf_panel_y(const acf_panel *p, double v);

/* The k-th of `columns` x `rows` equal cells with this gap, from left to right, then down. */
acf_box acf_chart_cell(acf_box box, int columns, int rows, int k, double gap);

/* ---- clouds of points -------------------------------------------------------------------------------------------- */

/* Draws n points (x[i*stride], y[i*stride]) in the panel as dots of this radius. n may be large: coverage is counted
 * pixel by pixel, so crowded places are darker. flat: one ink, more opaque where crowded; otherwise acf_palette_scale.
 * Points that are not finite or outside are left out. Fails: ACF_EMEMORY. */
typedef struct acf_cloud_style {
    double radius; /* points */
    double weight; /* opacity of one dot, in (0,1] */
    bool flat;
    acf_ink ink; /* if flat */
} acf_cloud_style;

acf_status acf_panel_cloud(const acf_panel *p, const double *x, const double *y, int64_t n, int64_t stride,
                           acf_cloud_style style);

#endif
