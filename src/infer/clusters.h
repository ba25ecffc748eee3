/* k-means clustering by Lloyd's algorithm from a k-means++ start.
 *
 * Workload: 1e2 to 1e5 points of 16 to 2,048 numbers in about 20 clusters. A step is one matrix product of all
 * points with all centres, then a pass that adds points to their centres. The result has the same bits for any
 * number of threads: the product's elements do not depend on how it is split, and every number of a centre is summed
 * over the points in order. Formulas in docs/math.md, Evaluation. */
#ifndef ACF_INFER_CLUSTERS_H
#define ACF_INFER_CLUSTERS_H

#include "device/device.h"

/* of[i] becomes the cluster 0 .. K-1 of point i of x (N,F); *inertia (may be NULL): the sum of squared distances to
 * the centres. With fewer than K distinct points, fewer clusters are used. (seed, run) determine the start. Uses the
 * CPU device's threads; N, F, K >= 1. Points should lie around 0 with distances of about 1, because squares of large
 * numbers cancel. Fails: ACF_EMEMORY. */
acf_status acf_clusters_find(acf_device *dev, const acf_real *x, int64_t N, int64_t F, int K, uint64_t seed,
                             uint32_t run, int32_t *of, double *inertia);

#endif
