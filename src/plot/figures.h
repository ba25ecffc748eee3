/* The figures of acflow, each from plain arrays to a file. acf_plot_* in acflow.h documents what they show,
 * plot_library.h their arguments.
 *
 * Each function opens the page, draws, and saves. It is called once per picture with whole tables, so passes over the
 * data are single and in memory order where possible; a million rows of 20 columns take about a second. Nothing is kept
 * between calls. Options may be NULL. All fail with ACF_EUSAGE (path, size), ACF_EIO, ACF_EMEMORY. */
#ifndef ACF_PLOT_FIGURES_H
#define ACF_PLOT_FIGURES_H

#include "plot/chart.h"
#include "plot/plot_library.h"

acf_status acf_figure_missing(const char *path, const acf_plot_options *o, const acf_figure_table *t);

acf_status acf_figure_imputed(const char *path, const acf_plot_options *o, const acf_figure_table *t,
                              const double *completed, int32_t draws);

/* p(x | given) of one column for n rows. Numbers: density p (n,G) at G ascending, equally spaced points x (G), drawn
 * smoothed (density.h). Numbers with few values, `few`: probability p (n,G) of each x. A category: probability p
 * (n,classes); G is classes and x is not read. base (G): the same with nothing given, or NULL. truth (n): the true
 * value, NaN if missing. A spike is one of x: its peak would flatten the curves, so it is removed from them and drawn
 * as stems, whose lengths are shares. */
typedef struct acf_figure_curves {
    acf_figure_column column;
    int n, G;
    const double *x, *p, *base, *truth;
    const char *const *label; /* (n) */
    bool has_spike;
    double spike;
    const double *share; /* (n), and one more if there is base: probability of the spike */
    bool few;
    int64_t draws;           /* number of draws behind the probabilities of few values and the shares; 0: not shown */
    double beyond, furthest; /* probability beyond the axis; the furthest value */
} acf_figure_curves;
acf_status acf_figure_conditional(const char *path, const acf_plot_options *o, const acf_figure_curves *f);

/* The same figure for a query to a model: the axis covers its draws. */
acf_status acf_figure_from_query(const char *path, const acf_plot_options *o, const acf_figure_query *q);

acf_status acf_figure_training(const char *path, const acf_plot_options *o, const double *step, const double *loss,
                               const double *valid, int64_t n, int64_t first);

acf_status acf_figure_pairs(const char *path, const acf_plot_options *o, const acf_figure_table *t, const double *drawn,
                            int64_t n, const int64_t *column, int k);

acf_status acf_figure_clouds(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across,
                             int down, const char *const *names_across, const char *const *names_down);

acf_status acf_figure_images(const char *path, const acf_plot_options *o, const acf_figure_sheet *f, const char *title,
                             const char *facts);

/* ---- common parts ----- */

/* Opens the page with the size of the options, or if that is 0 with this one. */
acf_status acf_figure_open(const char *path, const acf_plot_options *o, double width, double height, acf_canvas **out);
/* The width of the page. */
double acf_figure_width(const acf_plot_options *o, double width);
/* The height set in the options; 0: none. */
double acf_figure_height(const acf_plot_options *o);
/* The title of the options, or this one. */
const char *acf_figure_title(const acf_plot_options *o, const char *title);

/* A column's name, or "column 3". Returns out or the name itself. */
#define ACF_FIGURE_NAME_MAX 40
const char *acf_figure_name(const acf_figure_column *column, int64_t j, char out[ACF_FIGURE_NAME_MAX]);
/* The text of class k. */
const char *acf_figure_label(const acf_figure_column *column, int32_t k, char out[ACF_TICK_LABEL_MAX]);

/* Draws the distributions of two lists of sorted values into a panel whose y goes from 0 to 1: the first as a blue
 * area, the second as an orange line. Both use the kernel of the first, so that they can be compared, and the higher
 * one has the height of the panel. A value that makes up a tenth of the first list (density.h) is removed from both and
 * drawn as two stems, whose lengths are shares; the lists lose it. */
typedef struct acf_spread {
    bool has_spike;
    double spike, share[2]; /* the value, and its share of each list */
} acf_spread;
acf_spread acf_figure_spread(const acf_panel *p, double *seen, int64_t n_seen, double *drawn, int64_t n_drawn);

/* Shares of classes as horizontal bars, `series` of them for each class. If not all classes fit, the most frequent ones
 * and the rest as one. share (series,classes). mark (series), or NULL: the class of each series that is marked by a
 * ring at the end of its bar, NaN for none. Draws into the box, no title; a class takes at most ACF_BARS_LINE of
 * height. */
#define ACF_BARS_LINE(series) (8.0 + 11.0 * (series))
#define ACF_BARS_SERIES (ACF_SERIES_MAX + 1) /* at most */
acf_status acf_figure_bars(acf_canvas *c, acf_box box, const acf_figure_column *column, const double *share, int series,
                           const acf_ink *ink, const double *mark);
/* The true value: a dot in this ink with a ring around it. */
void acf_figure_seen(acf_canvas *c, double x, double y, acf_ink ink);

#endif
