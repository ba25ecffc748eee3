/* Likelihoods of z_u: see like.h. */
#include "like/like.h"

#include "ops/gaussian.h"

#include <math.h>

const acf_like_kind *const acf_like_kinds[] = {
#define ACF_LIKE(kind, name) &kind,
#include "base/like_list.h"
#undef ACF_LIKE
    NULL};

const acf_like_kind *acf_like_chosen(const acf_options *o) {
    return acf_like_kinds[acf_options_choice(o, "likelihood")];
}

/* Means must differ: equal means have equal gradients and would never separate. */
#define MEANS_DEVIATION 0.3

acf_status acf_like_fill(const acf_like *k, acf_device *dev) {
    const int64_t K = k->components;
    double square = 0;
    if (!k->normal || !k->head) return ACF_OK;
    acf_real *p = acf_alloc_zero((size_t)(3 * K) * sizeof *p, "a mixture");
    if (!p) return ACF_EMEMORY;
    for (int64_t i = 0; i < K; i++) {
        const double mean = MEANS_DEVIATION * acf_normal_quantile(((double)i + 0.5) / (double)K, false);
        p[K + i] = (acf_real)mean, square += mean * mean / (double)K;
    }
    for (int64_t i = 0; i < K; i++) p[2 * K + i] = (acf_real)(0.5 * log(1 - square));
    acf_status status = acf_device_copy(dev, k->head->data, p, (size_t)(3 * K) * sizeof *p, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(dev);
    acf_release(p);
    return status;
}
