/* Parameter draws of Gaussian mixtures: see gmm_posterior.h; formulas in docs/math.md.
 *
 * Workload: some 32 chains of 40 steps over at most 2e4 rows; a step costs about as much as one of EM. 700 rows of 19
 * columns with two components take a second. Chains run in parallel. */
#include "train/gmm_posterior.h"

#include "device/cpu.h"
#include "train/gmm_fit.h"

#include <math.h>
#include <string.h>

#define WORK 1e10 /* multiply-adds of all chains at most */

/* The fitted mixture of one, without components of weight 0. */
static acf_status fitted(const acf_model *one, int64_t W, acf_mixture *out) {
    acf_param *const *p = acf_net_gmm(one->net);
    const int64_t K = acf_net_gmm_size(one->net), size[3] = {1, W, W * W};
    acf_real *host = acf_alloc((size_t)(K * (1 + W + W * W)) * sizeof *host, "a mixture"),
             *part[3] = {host, host + K, host + K + K * W};
    acf_status status = host ? ACF_OK : ACF_EMEMORY;
    int64_t used = 0;
    for (int i = 0; i < 3 && !status; i++)
        status = acf_device_copy(one->dev, part[i], p[i]->t.data, (size_t)(K * size[i]) * sizeof *host, ACF_TO_HOST);
    if (!status) status = acf_device_sync(one->dev);
    for (int64_t k = 0; !status && k < K; k++) used += host[k] > 0;
    if (!status) status = acf_mixture_create(used, W, out);
    double *const into[3] = {status ? NULL : out->weight, status ? NULL : out->mean, status ? NULL : out->cov};
    for (int64_t k = 0, to = 0; !status && k < K; k++) {
        if (host[k] <= 0) continue;
        for (int i = 0; i < 3; i++)
            for (int64_t j = 0; j < size[i]; j++) into[i][to * size[i] + j] = (double)part[i][k * size[i] + j];
        to++;
    }
    acf_release(host);
    return status;
}

/* Shared by the chains; and where set i of a member goes. */
typedef struct chains {
    const acf_sample *s;
    const acf_mixture *from;
    uint64_t seed;
    int64_t n, detached; /* sets; first uninformative column */
    acf_real *out;       /* (n,K) (n,K,W) (n,K,W,W) */
} chains;

static void begin_set(const chains *c, acf_mixture *g) {
    const int64_t K = c->from->K, W = c->from->D;
    memcpy(g->weight, c->from->weight, (size_t)(K * (1 + W + W * W)) * sizeof *g->weight);
}

static void end_set(const chains *c, int64_t i, acf_mixture *last) {
    const int64_t K = c->from->K, W = c->from->D, size[3] = {K, K * W, K * W * W};
    acf_mixture_detach(last, c->detached);
    const double *part[3] = {last->weight, last->mean, last->cov};
    acf_real *to = c->out;
    for (int k = 0; k < 3; k++) {
        for (int64_t j = 0; j < size[k]; j++) to[i * size[k] + j] = (acf_real)part[k][j];
        to += c->n * size[k];
    }
}

/* Runs chain i to its end. memory: of a step. */
static void run_chain(const chains *c, int64_t i, acf_mixture g[2], double *memory) {
    begin_set(c, &g[0]);
    for (uint32_t step = 0; step < ACF_GMM_POSTERIOR_STEPS; step++)
        acf_augment_step(c->s, &g[step % 2], &g[1 - step % 2], (acf_augment){c->seed, (uint32_t)i, step}, memory);
    end_set(c, i, &g[ACF_GMM_POSTERIOR_STEPS % 2]);
}

/* Draws all sets as ends of chains. */
static acf_status run_chains(const acf_device *dev, const chains *c) {
    const int64_t K = c->from->K, W = c->from->D, each = K * (1 + W + W * W), capacity = acf_augment_doubles(K, W);
    double *memory = acf_alloc((size_t)(c->n * (2 * each + capacity)) * sizeof *memory, "parameter draws");
    if (!memory) return ACF_EMEMORY;
    ACF_PARALLEL_UNEVEN(dev, c->n * c->s->R * each)
    for (int64_t i = 0; i < c->n; i++) {
        double *own = memory + i * (2 * each + capacity), *other = own + each;
        acf_mixture g[2] = {{K, W, own, own + K, own + K + K * W}, {K, W, other, other + K, other + K + K * W}};
        run_chain(c, i, g, other + each);
    }
    acf_release(memory);
    return ACF_OK;
}

/* Weights of the rows in set i: exponential variates, R in sum. */
static void bootstrap_rows(const acf_sample *s, uint64_t seed, int64_t i, double *weight) {
    double sum = 0;
    for (int64_t r = 0; r < s->R; r++) {
        const acf_rng_counter at = {.seed = seed, .row = s->id[r], .stream = ACF_STREAM_AUGMENT, .draw = (uint32_t)i};
        sum += weight[r] = -log(acf_rng_uniform(at));
    }
    for (int64_t r = 0; r < s->R; r++) weight[r] *= (double)s->R / sum;
}

/* Set i by EM on rows with bootstrap weights. g: two mixtures; weight (R); memory: of a step. */
static void bootstrap_set(const acf_device *dev, const chains *c, int64_t i, acf_mixture g[2], double *weight,
                          double *memory) {
    acf_sample s = *c->s;
    double logp;
    bootstrap_rows(&s, c->seed, i, weight);
    s.weight = weight;
    begin_set(c, &g[0]);
    for (int step = 0; step < ACF_GMM_POSTERIOR_STEPS; step++)
        acf_em_step_in(dev, &s, &g[step % 2], &g[1 - step % 2], &logp, memory);
    end_set(c, i, &g[ACF_GMM_POSTERIOR_STEPS % 2]);
}

static acf_status bootstrap_sets(const acf_device *dev, const chains *c) {
    acf_mixture g[2] = {0};
    const int64_t rows = c->s->R;
    double *weight =
        acf_alloc((size_t)(rows + acf_em_doubles(dev, c->from->K, c->from->D)) * sizeof *weight, "parameter draws");
    acf_status status = weight ? acf_mixture_create(c->from->K, c->from->D, &g[0]) : ACF_EMEMORY;
    if (!status) status = acf_mixture_create(c->from->K, c->from->D, &g[1]);
    for (int64_t i = 0; i < c->n && !status; i++) bootstrap_set(dev, c, i, g, weight, weight + rows);
    acf_mixture_free(&g[0]), acf_mixture_free(&g[1]);
    acf_release(weight);
    return status;
}

/* Are there enough rows for data augmentation? No if the mixture is blind to a column, which is then seen nowhere. */
static acf_status shows_enough(const chains *c, bool *out) {
    double *memory = acf_alloc((size_t)acf_augment_doubles(c->from->K, c->from->D) * sizeof *memory, "parameter draws");
    const int64_t K = c->from->K, W = c->from->D;
    if (!memory) return ACF_EMEMORY;
    *out = K == 1 && acf_augment_rows(c->s, c->from, W, memory) >= (double)(ACF_GMM_POSTERIOR_SHOWN * W);
    acf_release(memory);
    return ACF_OK;
}

/* All sets, to c->out. */
static acf_status make_sets(const acf_device *dev, const chains *c) {
    bool enough;
    ACF_TRY(shows_enough(c, &enough));
    return enough ? run_chains(dev, c) : bootstrap_sets(dev, c);
}

/* Draws n sets of parameters of one. */
static acf_status draw_sets(acf_model *one, acf_sample *s, const acf_mixture *from, int64_t n, int64_t reals,
                            bool blind) {
    acf_gmm_draws *g = NULL;
    chains c = {s, from, (uint64_t)acf_options_int(one->config, "seed"), n, blind ? reals : s->D, NULL};
    if (blind) acf_sample_hide(s, reals);
    ACF_TRY(acf_gmm_draws_create(one->dev, n, from->K, s->D, &g));
    const size_t bytes = (size_t)acf_gmm_draws_count(g) * sizeof *c.out;
    c.out = acf_alloc(bytes, "parameter draws");
    acf_status status = c.out ? make_sets(one->dev, &c) : ACF_EMEMORY;
    if (!status) status = acf_device_copy(one->dev, g->weight, c.out, bytes, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(one->dev);
    acf_release(c.out);
    if (status)
        acf_gmm_draws_free(g);
    else
        one->draws = g;
    return status;
}

static acf_status draw_member(acf_model *one, const acf_table *t, int64_t n) {
    acf_gmm_choice choice;
    acf_mixture from = {0};
    int64_t reals;
    const int32_t *of, *value;
    const acf_rows rows = acf_rows_all(t->N);
    acf_net_reals(one->net, &reals);
    acf_sample s = {.R = t->N, .D = reals + acf_net_indicators(one->net, &of, &value)};
    ACF_TRY(acf_gmm_chosen(one->net, &choice));
    const double steps = (double)(t->N * choice.components * s.D * (s.D + 20)) * (double)(n * ACF_GMM_POSTERIOR_STEPS);
    if (choice.components == 0 || steps * acf_model_members(one) > WORK) return ACF_OK;
    ACF_TRY(fitted(one, s.D, &from));
    acf_status status = acf_sample_take(one->net, one->dev, t, &rows, one->encoder, NULL,
                                        (uint64_t)acf_options_int(one->config, "seed"), &s);
    s.ridge = one->record.ridge;
    if (!status) status = draw_sets(one, &s, &from, n, reals, choice.blind);
    acf_sample_free(&s);
    acf_mixture_free(&from);
    return status;
}

acf_status acf_gmm_posterior(acf_model *m, const acf_table *t) {
    const int64_t n = acf_ceil_div(ACF_GMM_POSTERIOR_SETS, acf_model_members(m));
    if (t->N > ACF_GMM_POSTERIOR_ROWS) return ACF_OK;
    for (acf_model *one = m; one; one = one->next) {
        if (!acf_net_gmm_size(one->net) || acf_net_factors(one->net)) continue;
        ACF_TRY(draw_member(one, t, n));
    }
    return ACF_OK;
}
