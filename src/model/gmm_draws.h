/* Parameter draws: sets of parameters of a model's Gaussian mixture (ops/mog.h), drawn from their posterior
 * distribution (train/gmm_posterior.h).
 *
 * Imputations that always use the fitted parameters ignore parameter uncertainty, so analyses of such completed
 * tables give standard errors that are too small. Draw number i therefore uses set i. Scores, means and best guesses
 * use the fitted parameters. */
#ifndef ACF_MODEL_GMM_DRAWS_H
#define ACF_MODEL_GMM_DRAWS_H

#include "base/safetensors.h"
#include "device/device.h"

#define ACF_GMM_DRAWS_MAX 64 /* most sets of an ensemble member */

/* n sets of K components and W columns: one block of device memory starting at `weight`, owned. */
typedef struct acf_gmm_draws {
    acf_device *dev;
    int64_t n, K, W;
    acf_real *weight, *mean, *cov; /* (n,K) (n,K,W) (n,K,W,W) */
} acf_gmm_draws;

/* Allocates the memory, without values. Gives *out; free with acf_gmm_draws_free. Fails: ACF_EMEMORY. */
acf_status acf_gmm_draws_create(acf_device *dev, int64_t n, int64_t K, int64_t W, acf_gmm_draws **out);
void acf_gmm_draws_free(acf_gmm_draws *g);           /* NULL is allowed */
int64_t acf_gmm_draws_count(const acf_gmm_draws *g); /* count of all numbers */

/* Copies set i of `from` to `to`, which holds one set with as many components and columns. Enqueued on the device's
 * stream. */
acf_status acf_gmm_draws_pick(acf_gmm_draws *to, const acf_gmm_draws *from, int64_t i);

/* Set i alone, as a view. */
static inline acf_gmm_draws acf_gmm_draws_one(const acf_gmm_draws *g, int64_t i) {
    const int64_t KW = g->K * g->W;
    return (acf_gmm_draws){g->dev, 1, g->K, g->W, g->weight + i * g->K, g->mean + i * KW, g->cov + i * KW * g->W};
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

#define ACF_GMM_DRAWS_TENSORS 3
extern const char *const acf_gmm_draws_name[ACF_GMM_DRAWS_TENSORS];

/* Tensor i of a file, without its name; values: all numbers, on the host. */
acf_safetensors_tensor acf_gmm_draws_tensor(const acf_gmm_draws *g, int i, const acf_real *values);

/* Reads the sets from tensors of f with these names; *out is NULL if f has none. Requires 1 to ACF_GMM_DRAWS_MAX
 * sets of at most K components and W columns, finite numbers, weights of 0 or more and a positive weight in each
 * set. Fails: ACF_EMODEL, ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_gmm_draws_read(acf_device *dev, const acf_safetensors *f, const char *path,
                              const char *const name[ACF_GMM_DRAWS_TENSORS], int64_t K, int64_t W, acf_gmm_draws **out);

#endif
