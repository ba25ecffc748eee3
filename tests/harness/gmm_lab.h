/* What the tests of both anchors share (ops/mog.h, ops/factors.h): categories that are known in some rows, and what is given of a row. */
#ifndef ACF_HARNESS_GMM_LAB_H
#define ACF_HARNESS_GMM_LAB_H

#include "harness/lab.h"
#include "ops/mog.h"

#define ACF_GMM_CLASSES                                                                                                \
    8 /* in a case's variant, besides the number of components or factors: known categories are given too */

/* Two categories of three and two classes: indicators of all but the first of each. Which are known differs from row to row. */
enum { ACF_GMM_INDICATORS = 3 };

/* The categories of the lab's rows, in device memory; none where the variant has none. A code that is not known is one that no class has. */
acf_mog_classes acf_gmm_lab_classes(acf_lab *l);

/* A cell may be given or modelled, not both: as the subset says, with what is missing left out. */
void acf_gmm_lab_only_given(acf_lab *l);

/* Row i's values by column, and the numbers of its given columns, which are counted. */
int acf_gmm_lab_row(const acf_lab *l, int64_t i, double *x, int *set);

/* n packed sets of numbers from -2 to 2. */
void acf_gmm_lab_sets(acf_lab *l, int n, acf_tensor **z);

#endif
