/* The interface between libacflow and libacflow_plot.so, which draws all pictures and needs cairo. The library is
 * loaded when a picture is requested (base/shared_library.h), so libacflow needs neither cairo nor X11.
 *
 *     libacflow.so  --dlopen, acflow_plot_library()-->   libacflow_plot.so
 *                   <--acf_plot_library: a function for each figure--
 *
 * Figures get plain arrays. The library has its own copy of what it uses of base/, so `failure` passes on the message
 * of a failure. Its sources are this folder, which includes nothing but base/. A program that contains both (make
 * static, the tests) has the entry linked in, and loads nothing.
 *
 * A new figure is a function in a fig_*.c of this folder, a line in figures.h, a member below and its value in
 * plot_library.c; the public function in api/plot_api.c checks its arguments, loads the library and calls the member.
 *
 * acf_plot_* in acflow.h documents what figures show. Options may be NULL. All fail with ACF_EUSAGE (path, size),
 * ACF_EIO, ACF_EMEMORY. */
#ifndef ACF_PLOT_PLOT_LIBRARY_H
#define ACF_PLOT_PLOT_LIBRARY_H

#include "base/status.h"

#include <stdint.h>

/* Increase when a struct below changes without a new version. */
#define ACF_PLOT_ABI 1
#define ACF_PLOT_FILE "libacflow_plot.so"
#define ACF_PLOT_ENTRY "acflow_plot_library"

/* The name of a column and the format of its values. */
typedef struct acf_figure_column {
    const char *name;          /* NULL: "column 3" */
    int32_t classes;           /* 0: numbers */
    const char *const *labels; /* (classes); NULL: codes */
    double unit;               /* seconds in one unit, for times; 0: numbers */
} acf_figure_column;

typedef struct acf_figure_table {
    const double *x; /* (N,D) row-major; NaN is missing */
    int64_t N, D;
    const acf_figure_column *column; /* (D) */
} acf_figure_table;

/* A query to a model: one column, given each of n rows, and once given nothing. */
#define ACF_FIGURE_ROWS_MAX 8
typedef struct acf_figure_query {
    acf_figure_column column;
    int n;                    /* 1 to ACF_FIGURE_ROWS_MAX */
    const double *truth;      /* (n) the column's own cells, NaN where missing */
    const char *const *label; /* (n) */
    double least, most;       /* range of the column; numbers only */
    bool rounded;             /* its numbers were rounded */
    /* first argument of the two functions below, which return results for n + 1 rows. Their failures are the caller's
     * own */
    void *model;
    acf_status (*draw)(void *model, uint32_t k, double *value); /* value (n+1): draw number k of each row */
    acf_status (*logp)(void *model, const double *x, int64_t G, double *logp); /* logp (n+1,G) of the values x (G) */
} acf_figure_query;

#define ACF_PAIRS_MAX 8   /* columns */
#define ACF_CLOUDS_MAX 64 /* panels on a side */

/* A grid of images: pixel (n,H,W,C) of 8 bits, row by row, n at most down * across. name_across (across), name_down and
 * remark_down (down), caption (n): any may be NULL. */
typedef struct acf_figure_sheet {
    int across, down;
    int64_t n, H, W, C;
    const uint8_t *pixel;
    double cell; /* width of an image in points; 0: 64, and as large as the page allows */
    const char *const *name_across, *const *name_down, *const *remark_down, *const *caption;
} acf_figure_sheet;

/* The first two members stay the same in every version, so that any two versions can detect a mismatch. */
typedef struct acf_plot_library {
    int abi;             /* ACF_PLOT_ABI */
    const char *version; /* ACF_VERSION */

    /* The last failure of this thread in the library: the reason for the status of a function below. */
    void (*failure)(acf_failure *out);

    acf_status (*missing)(const char *path, const acf_plot_options *o, const acf_figure_table *t);
    /* completed (draws,N,D) */
    acf_status (*imputed)(const char *path, const acf_plot_options *o, const acf_figure_table *t,
                          const double *completed, int32_t draws);
    acf_status (*query)(const char *path, const acf_plot_options *o, const acf_figure_query *q);
    /* step, loss, valid (n): NaN where there is none. The first `first` belong to the first pass, the others to the
     * second, whose steps count from 1 again. */
    acf_status (*training)(const char *path, const acf_plot_options *o, const double *step, const double *loss,
                           const double *valid, int64_t n, int64_t first);
    /* drawn (n,D); column (k): 2 to ACF_PAIRS_MAX of the table's. */
    acf_status (*pairs)(const char *path, const acf_plot_options *o, const acf_figure_table *t, const double *drawn,
                        int64_t n, const int64_t *column, int k);
    /* cloud (down,across), at most ACF_CLOUDS_MAX each */
    acf_status (*clouds)(const char *path, const acf_plot_options *o, const acf_plot_cloud *cloud, int across, int down,
                         const char *const *names_across, const char *const *names_down);
    acf_status (*images)(const char *path, const acf_plot_options *o, const acf_figure_sheet *f, const char *title,
                         const char *facts);
} acf_plot_library;

typedef const acf_plot_library *(*acf_plot_entry)(void);
__attribute__((visibility("default"))) const acf_plot_library *acflow_plot_library(void);

#endif
