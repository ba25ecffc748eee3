/* Shared by tests of fitting through acflow.h: a small table, options from pairs, a fit, and scores that identify a
 * model. */
#ifndef ACF_HARNESS_FIT_LAB_H
#define ACF_HARNESS_FIT_LAB_H

#include "acflow.h"
#include "harness/check.h"

enum { ACF_FIT_LAB_COLS = 3 };

/* Two reals around a category of three classes, a ninth of the cells missing. names NULL: none. bump is added to the
 * first cell of row 40. */
acf_table *acf_fit_lab_table(int rows, const char *const *names, double bump);

/* Options with these pairs of name and value, each list ended by NULL; more may be NULL. */
acf_options *acf_fit_lab_options(const char *const *common, const char *const *more);

/* Fits and returns the status; frees the table and the options. */
acf_status acf_fit_lab_fit(acf_table *t, acf_options *o, acf_fit_callback look, void *ctx, acf_model **out);

/* A fit of the table, or of the images if t is NULL, with every allocation failing in turn until none does, after fewer
 * than `most`. Each failure must be reported and leave nothing behind. */
void acf_fit_lab_without_memory(const acf_table *t, const acf_images *im, const acf_options *o, int64_t most);

/* log p of the table's rows; equal bits mean equal weights. Frees the table. */
void acf_fit_lab_scores(const acf_model *m, acf_table *t, double *out);

#endif
