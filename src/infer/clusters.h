/* k-means: points of many numbers in a few clusters, by Lloyd's steps from a k-means++ start.
 *
 * Workload: 1e2 to 1e5 points of 16 to 2,048 numbers in some 20 clusters. A step is one product of all points with all centres, then a pass that
 * adds points to their centres. Same bits for any number of threads: the product's elements do not depend on how it is cut, and every number of
 * a centre is summed over the points in order. Formulas in docs/math.md, Evaluation. */
#ifndef ACF_INFER_CLUSTERS_H
#define ACF_INFER_CLUSTERS_H

#include "device/device.h"

/* Point i of x (N,F) gets of[i], its cluster 0 .. K-1; *inertia, where not NULL: the sum of squared distances to the centres. Fewer than K clusters
 * are used where there are fewer different points. (seed, run) is the start. The CPU device lends its threads; N, F, K >= 1.
 * Points should lie around 0 with distances of about 1: squares of large numbers cancel. Fails: ACF_EMEMORY. */
acf_status acf_clusters_find(acf_device *dev, const acf_real *x, int64_t N, int64_t F, int K, uint64_t seed,
                             uint32_t run, int32_t *of, double *inertia);

#endif
