/* Shared by the tests of Gaussian mixture and factor analysis (ops/mog.h, ops/factors.h): categories that are observed
 * in some rows, and the given cells of a row. */
#ifndef ACF_HARNESS_GMM_LAB_H
#define ACF_HARNESS_GMM_LAB_H

#include "harness/lab.h"
#include "ops/mog.h"

#define ACF_GMM_CLASSES                                                                                                \
    8 /* in a case's variant, besides the number of components or factors: observed categories are given too */

/* Two categories of three and two classes: indicators of all but the first class of each. Different rows have different
 * observed categories. */
enum { ACF_GMM_INDICATORS = 3 };

/* The categories of the lab's rows, in device memory; none if the variant has none. A missing cell has a code that no
 * class has. */
acf_mog_classes acf_gmm_lab_classes(acf_lab *l);

/* A cell may be given or modelled, not both; it follows the subset, without missing cells. */
void acf_gmm_lab_only_given(acf_lab *l);

/* Row i's values by column, and the numbers of its given columns, with their count. */
int acf_gmm_lab_row(const acf_lab *l, int64_t i, double *x, int *set);

/* n packed sets of numbers from -2 to 2. */
void acf_gmm_lab_sets(acf_lab *l, int n, acf_tensor **z);

#endif
