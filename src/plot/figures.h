/* The figures of acflow, each from plain arrays to a file: what they show is said at acf_plot_* in acflow.h, what they are given in
 * plot_library.h.
 *
 * Each function opens the page, draws, saves. They are called once per picture with whole tables, so passes over the data are single and
 * in memory order where possible; a million rows of 20 columns take about a second. Nothing is kept between calls. Options may be NULL.
 * All fail with ACF_EUSAGE (path, size), ACF_EIO, ACF_EMEMORY. */
#ifndef ACF_PLOT_FIGURES_H
#define ACF_PLOT_FIGURES_H

#include "plot/chart.h"
#include "plot/plot_library.h"

acf_status acf_figure_missing(const char *path, const acf_plot_options *o, const acf_figure_table *t);

acf_status acf_figure_imputed(const char *path, const acf_plot_options *o, const acf_figure_table *t,
                              const double *completed, int32_t draws);

/* p(x | given) of one column in n situations. Numbers: density p (n,G) at x (G) upwards, as far from each other, and drawn smoothed (density.h); numbers of few values, `few`: probability p (n,G) of
 * each x; a category: probability p (n,classes), G is classes and x is not read. base (G): the same with nothing given, or NULL. truth (n): what was seen, NaN where nothing. A spike is one of x: its peak is taken
 * out of the curves, which it would make flat, and drawn as stems, whose lengths are shares. */
typedef struct acf_figure_curves {
    acf_figure_column column;
    int n, G;
    const double *x, *p, *base, *truth;
    const char *const *label; /* (n) */
    bool has_spike;
    double spike;
    const double *share; /* (n), and one more where there is base: how probable it is */
    bool few;
    int64_t draws;           /* that probabilities of few values, and shares, are counted in; 0: not said */
    double beyond, furthest; /* part of what is expected that lies beyond the axis; how far it goes */
} acf_figure_curves;
acf_status acf_figure_conditional(const char *path, const acf_plot_options *o, const acf_figure_curves *f);

/* The same figure, asked of a model: the axis is where its draws are. */
acf_status acf_figure_from_query(const char *path, const acf_plot_options *o, const acf_figure_query *q);

acf_status acf_figure_training(const char *path, const acf_plot_options *o, const double *step, const double *loss,
                               const double *valid, int64_t n, int64_t first);

acf_status acf_figure_pairs(const char *path, const acf_plot_options *o, const acf_figure_table *t, const double *drawn,
                            int64_t n, const int64_t *column, int k);

acf_status acf_figure_clouds(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across,
                             int down, const char *const *names_across, const char *const *names_down);

acf_status acf_figure_images(const char *path, const acf_plot_options *o, const acf_figure_sheet *f, const char *title,
                             const char *facts);

/* ---- what they share ----------------------------------------------------------------------------------------------------- */

/* Opens the page: the size of the options, or where that is 0 this one. */
acf_status acf_figure_open(const char *path, const acf_plot_options *o, double width, double height, acf_canvas **out);
/* The width the page will have. */
double acf_figure_width(const acf_plot_options *o, double width);
/* The height that was asked for; 0: none. */
double acf_figure_height(const acf_plot_options *o);
/* The title of the options, or this one. */
const char *acf_figure_title(const acf_plot_options *o, const char *title);

/* A column's name, or "column 3". Returns out or the name itself. */
#define ACF_FIGURE_NAME_MAX 40
const char *acf_figure_name(const acf_figure_column *column, int64_t j, char out[ACF_FIGURE_NAME_MAX]);
/* How class k is written. */
const char *acf_figure_label(const acf_figure_column *column, int32_t k, char out[ACF_TICK_LABEL_MAX]);

/* How two lists of sorted values are spread, drawn into a panel whose y goes from 0 to 1: the first as a blue area, the second as an orange
 * line, both with the kernel of the first so that they can be compared, the higher one as high as the panel. A value that makes up a tenth
 * of the first list (density.h) is taken out of both and drawn as two stems, whose lengths are shares; the lists lose it. */
typedef struct acf_spread {
    bool has_spike;
    double spike, share[2]; /* the value, and its part of either list */
} acf_spread;
acf_spread acf_figure_spread(const acf_panel *p, double *seen, int64_t n_seen, double *drawn, int64_t n_drawn);

/* Shares of classes as bars to the right, `series` of them to a class; where not all classes fit, the most frequent ones and the rest
 * as one. share (series,classes). mark (series), or NULL: the class of each series that a ring at the end of its bar marks, NaN for none. Draws into the box, no title; a class takes at most ACF_BARS_LINE of height. */
#define ACF_BARS_LINE(series) (8.0 + 11.0 * (series))
#define ACF_BARS_SERIES (ACF_SERIES_MAX + 1) /* at most */
acf_status acf_figure_bars(acf_canvas *c, acf_box box, const acf_figure_column *column, const double *share, int series,
                           const acf_ink *ink, const double *mark);
/* What was seen: a dot in this ink with a ring around it. */
void acf_figure_seen(acf_canvas *c, double x, double y, acf_ink ink);

#endif
