/* The sample of a table's rows that the Gaussian mixture is fitted to (train/gmm_fit.h), with what training sees of
 * each. */
#ifndef ACF_TRAIN_GMM_SAMPLE_H
#define ACF_TRAIN_GMM_SAMPLE_H

#include "model/net.h"

/* Cells of the sample: R rows of D columns in encoded units, the reals and then the indicators of classes. Rows with
 * the same pattern of seen cells are adjacent. */
typedef enum acf_seen { ACF_GMM_CELL_MISSING, ACF_GMM_CELL_SEEN, ACF_GMM_CELL_HELD } acf_seen;
typedef struct acf_sample {
    int64_t R, D;
    double *x;      /* (R,D); 0 where missing */
    uint8_t *seen;  /* (R,D) of acf_seen */
    uint64_t *id;   /* (R) of the rows; NULL in a sample made by hand: their indices */
    int64_t hidden; /* the last columns, seen in no row */
    double ridge;   /* prior variance of covariances; 0: ACF_GMM_RIDGE */
    double *weight; /* (R) of the rows in EM, with sum R; NULL: 1 each. Not owned */
} acf_sample;

/* Fills s, whose R and D are set, with R of `rows`, evenly spread; hold as in acf_gmm_fit. Free with acf_sample_free,
 * also after a failure. Fails: ACF_EMEMORY. */
acf_status acf_sample_take(const acf_net *net, const acf_device *dev, const acf_table *t, const acf_rows *rows,
                           const acf_encoder *e, const acf_holdout *hold, uint64_t seed, acf_sample *s);
void acf_sample_free(acf_sample *s);

/* Is any cell held out? */
bool acf_sample_held(const acf_sample *s);

/* Marks columns from `from` on as seen nowhere. Rows stay sorted by the remaining pattern. */
void acf_sample_hide(acf_sample *s, int64_t from);

#endif
