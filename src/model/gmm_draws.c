/* Parameter draws: see gmm_draws.h. */
#include "model/gmm_draws.h"

#include <math.h>

const char *const acf_gmm_draws_name[ACF_GMM_DRAWS_TENSORS] = {"gmm.draws.weight", "gmm.draws.mean", "gmm.draws.cov"};

static int64_t numbers(const acf_gmm_draws *g, int i) {
    return g->n * g->K * (i == 0 ? 1 : i == 1 ? g->W : g->W * g->W);
}

int64_t acf_gmm_draws_count(const acf_gmm_draws *g) { return numbers(g, 0) + numbers(g, 1) + numbers(g, 2); }

acf_status acf_gmm_draws_create(acf_device *dev, int64_t n, int64_t K, int64_t W, acf_gmm_draws **out) {
    acf_gmm_draws *g = acf_alloc_zero(sizeof *g, "parameter draws");
    if (!g) return ACF_EMEMORY;
    *g = (acf_gmm_draws){.dev = dev, .n = n, .K = K, .W = W};
    const size_t bytes = (size_t)acf_gmm_draws_count(g) * sizeof *g->weight;
    g->weight = dev->memory.host ? acf_alloc(bytes, "parameter draws") : dev->memory.alloc(dev->memory.ctx, bytes);
    if (!g->weight) {
        acf_release(g);
        return dev->memory.host ? ACF_EMEMORY : dev->memory.refuse(dev->memory.ctx, bytes, 0);
    }
    g->mean = g->weight + numbers(g, 0), g->cov = g->mean + numbers(g, 1);
    *out = g;
    return ACF_OK;
}

void acf_gmm_draws_free(acf_gmm_draws *g) {
    if (!g) return;
    if (g->dev->memory.host)
        acf_release(g->weight);
    else
        g->dev->memory.free(g->dev->memory.ctx, g->weight);
    acf_release(g);
}

acf_status acf_gmm_draws_pick(acf_gmm_draws *to, const acf_gmm_draws *from, int64_t i) {
    ACF_ASSERT(to->n == 1 && to->K == from->K && to->W == from->W && i >= 0 && i < from->n);
    acf_real *const into[] = {to->weight, to->mean, to->cov};
    const acf_real *const all[] = {from->weight, from->mean, from->cov};
    for (int k = 0; k < ACF_GMM_DRAWS_TENSORS; k++) {
        const int64_t n = numbers(to, k);
        ACF_TRY(acf_device_copy(to->dev, into[k], all[k] + i * n, (size_t)n * sizeof *all[k], ACF_ON_DEVICE));
    }
    return ACF_OK;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

acf_safetensors_tensor acf_gmm_draws_tensor(const acf_gmm_draws *g, int i, const acf_real *values) {
    for (int k = 0; k < i; k++) values += numbers(g, k);
    return (acf_safetensors_tensor){.dtype = ACF_SAFETENSORS_REAL,
                                    .ndim = 2 + i,
                                    .dim = {g->n, g->K, g->W, g->W},
                                    .data = values,
                                    .bytes = (size_t)numbers(g, i) * sizeof *values};
}

/* Requires finite numbers, no negative weight, and a positive weight in every set. */
static acf_status check_values(const acf_gmm_draws *g, const char *path, const char *const *name,
                               const acf_real *values) {
    for (int i = 0; i < ACF_GMM_DRAWS_TENSORS; i++) {
        const int64_t n = numbers(g, i);
        for (int64_t k = 0; k < n; k++)
            if (!isfinite(values[k]) || (i == 0 && values[k] < 0))
                return acf_fail(ACF_EMODEL, "%s: tensor '%s' is %g at element %lld; expected a finite number%s", path,
                                name[i], (double)values[k], (long long)k, i ? "" : ", 0 or more");
        for (int64_t set = 0; i == 0 && set < g->n; set++) {
            double sum = 0;
            for (int64_t k = 0; k < g->K; k++) sum += (double)values[set * g->K + k];
            if (sum <= 0)
                return acf_fail(ACF_EMODEL, "%s: tensor '%s' has no weight above 0 in set %lld; expected one", path,
                                name[i], (long long)set);
        }
        values += n;
    }
    return ACF_OK;
}

static acf_status read_values(acf_gmm_draws *g, const acf_safetensors *f, const char *path, const char *const *name) {
    const size_t bytes = (size_t)acf_gmm_draws_count(g) * sizeof(acf_real);
    acf_status status = ACF_OK;
    acf_real *values = acf_alloc(bytes, "parameter draws"), *to = values;
    if (!values) return ACF_EMEMORY;
    for (int i = 0; i < ACF_GMM_DRAWS_TENSORS; i++) {
        const acf_safetensors_tensor t = acf_gmm_draws_tensor(g, i, NULL);
        ACF_TRY_DONE(acf_safetensors_reals(f, name[i], t.ndim, t.dim, to));
        to += numbers(g, i);
    }
    ACF_TRY_DONE(check_values(g, path, name, values));
    ACF_TRY_DONE(acf_device_copy(g->dev, g->weight, values, bytes, ACF_TO_DEVICE));
    ACF_TRY_DONE(acf_device_sync(g->dev));
done:
    acf_release(values);
    return status;
}

acf_status acf_gmm_draws_read(acf_device *dev, const acf_safetensors *f, const char *path,
                              const char *const name[ACF_GMM_DRAWS_TENSORS], int64_t K, int64_t W,
                              acf_gmm_draws **out) {
    const acf_safetensors_tensor *weight = acf_safetensors_find(f, name[0]), *t;
    acf_gmm_draws *g;
    *out = NULL;
    if (!weight) return ACF_OK;
    const int64_t n = weight->ndim == 2 ? weight->dim[0] : 0, used = weight->ndim == 2 ? weight->dim[1] : 0;
    if (n < 1 || n > ACF_GMM_DRAWS_MAX || used < 1 || used > K)
        return acf_fail(ACF_EMODEL,
                        "%s: tensor '%s' has a shape that parameter draws cannot have; "
                        "expected 1 to %d sets of 1 to %lld components",
                        path, name[0], ACF_GMM_DRAWS_MAX, (long long)K);
    ACF_TRY(acf_safetensors_need(f, name[1], 3, (int64_t[]){n, used, W}, &t)); /* checked before memory is allocated */
    ACF_TRY(acf_safetensors_need(f, name[2], 4, (int64_t[]){n, used, W, W}, &t));
    ACF_TRY(acf_gmm_draws_create(dev, n, used, W, &g));
    acf_status status = read_values(g, f, path, name);
    if (status)
        acf_gmm_draws_free(g);
    else
        *out = g;
    return status;
}
