/* Fitting the Gaussian mixture in front of a network: see gmm_fit.h; formulas in docs/math.md. */
#include "train/gmm_fit.h"

#include "train/factor_fit.h"

#include <math.h>
#include <string.h>

#define ITERATIONS 300
#define ROUGHLY 1e-4 /* gain of an iteration, in nats per seen cell, that ends EM while mixtures are compared */
#define ENOUGH 1e-5  /* the same for the chosen mixture */
#define WORTH 0.003  /* gain of more components, in nats per cell, that justifies them */
#define BLINDLY 0.05 /* gain that justifies ignoring categories: on small tables, errors were larger after less */
#define WORK 4e8     /* multiply-adds of an iteration at most: decides the size of the sample */
#define ROWS_MAX 20000
#define ROWS_MIN 500
#define WIDE_WORK 1e9    /* the same for factors, whose products run faster */
#define SHARP_RIDGE 0.03 /* the other ridge that is tried */
#define SHARP_ROWS 5000  /* rows below which it is tried: with more, neither matters */
#define FRUITLESS 2      /* doublings of the components without a gain that end the search */
#define CLEARLY 2.0 /* nats over all held-out cells that a further candidate must gain: one of many fits by chance */

/* ---- the whole fit --------------------------------------------------------------------------------------------- */

/* `to` has memory for as many components or more. */
static void mixture_copy(acf_mixture *to, const acf_mixture *from) {
    memset(to->weight, 0, (size_t)(to->K * (1 + to->D + to->D * to->D)) * sizeof *to->weight);
    memcpy(to->weight, from->weight, (size_t)from->K * sizeof *to->weight);
    memcpy(to->mean, from->mean, (size_t)(from->K * from->D) * sizeof *to->mean);
    memcpy(to->cov, from->cov, (size_t)(from->K * from->D * from->D) * sizeof *to->cov);
}

/* Distance of row r from the initial mean of a component, over its seen cells, in deviations of the whole sample. */
static double distance(const acf_sample *s, int64_t r, const double *mean, const acf_mixture *one) {
    const int64_t D = s->D;
    double sum = 0;
    for (int64_t j = 0; j < D; j++) {
        if (s->seen[r * D + j] != ACF_GMM_CELL_SEEN) continue;
        const double e = s->x[r * D + j] - mean[j];
        sum += e * e / one->cov[j * D + j];
    }
    return sum;
}

/* The row where component k begins: drawn with probability proportional to the squared distance from the nearest
 * earlier one (k-means++), so that a small separate group is likely to get one. near (R): those distances. */
static int64_t choose_row(const acf_mixture *g, const acf_sample *s, const acf_mixture *one, int64_t k, uint64_t seed,
                          double *near) {
    double u = acf_rng_uniform(
               (acf_rng_counter){.seed = seed, .row = (uint64_t)k, .stream = ACF_STREAM_INIT, .draw = (uint32_t)g->K}),
           sum = 0;
    for (int64_t r = 0; r < s->R; r++) {
        const double d = k ? distance(s, r, g->mean + (k - 1) * s->D, one) : 1;
        near[r] = k > 1 ? fmin(near[r], d) : d;
        sum += near[r];
    }
    u *= sum;
    for (int64_t r = 0; r < s->R; r++)
        if ((u -= near[r]) < 0) return r;
    return s->R - 1;
}

/* The initial mixture: one component by the prior; several around rows of the sample, each with the shrunk covariance
 * of the whole (`one`). */
static void begin(acf_mixture *g, const acf_sample *s, const acf_mixture *one, uint64_t seed, double *near) {
    const int64_t D = g->D;
    for (int64_t k = 0; k < g->K; k++) {
        const int64_t r = one ? choose_row(g, s, one, k, seed, near) : 0;
        g->weight[k] = 1 / (double)g->K;
        for (int64_t j = 0; j < D; j++) {
            const bool seen = one && s->seen[r * D + j] == ACF_GMM_CELL_SEEN;
            g->mean[k * D + j] = seen ? s->x[r * D + j] : one ? one->mean[j] : 0;
            for (int64_t i = 0; i < D; i++) g->cov[(k * D + j) * D + i] = one ? 0.5 * one->cov[j * D + i] : i == j;
        }
    }
}

/* EM until an iteration gains at most `little` nats per row. *logp: mean log-likelihood of a row at the end. */
static acf_status iterate(const acf_device *dev, const acf_sample *s, acf_mixture *g, double little, double *logp) {
    acf_mixture next;
    double before = -INFINITY;
    ACF_TRY(acf_mixture_create(g->K, g->D, &next));
    acf_status status = ACF_OK;
    for (int i = 0; i < ITERATIONS && !status; i++) {
        status = acf_em_step(dev, s, g, &next, logp);
        if (status) break;
        mixture_copy(g, &next);
        if (i > 5 && *logp - before < little) break;
        before = *logp;
    }
    acf_mixture_free(&next);
    return status;
}

/* The score of a fitted mixture per cell: of the held-out cells, or the likelihood less the criterion's penalty. */
static acf_status judge(const acf_device *dev, const acf_sample *s, const acf_mixture *g, double logp, double cells,
                        bool held, double *score) {
    if (held) return acf_em_score(dev, s, g, score);
    const double D = (double)g->D, numbers = (double)g->K * (1 + D + 0.5 * D * (D + 1)) - 1;
    *score = (logp - 0.5 * numbers * log((double)s->R) / (double)s->R) / cells;
    return ACF_OK;
}

/* Mean number of seen cells of a row. */
static double seen_cells(const acf_sample *s) {
    double cells = 0;
    for (int64_t i = 0; i < s->R * s->D; i++) cells += s->seen[i] == ACF_GMM_CELL_SEEN;
    return fmax(cells / (double)s->R, 1e-9);
}

/* A search for the best mixture: the best so far and its score. */
typedef struct search {
    acf_mixture *best;
    double top, ridge;
    double clearly; /* gain per cell required of any candidate that is not the next number of components */
} search;

/* Gain per cell when all held-out cells together gain so many nats. */
static double per_held(const acf_sample *s, double nats) {
    int64_t held = 0;
    for (int64_t i = 0; i < s->R * s->D; i++) held += s->seen[i] == ACF_GMM_CELL_HELD;
    return held ? nats / (double)held : 0;
}

/* Tries 1, 2, 4, ... components with this ridge, or `wanted` of them where that is not 0. A mixture that is clearly
 * better than to->best replaces it. One component always comes first: the others begin with its width. */
static acf_status search_numbers(const acf_device *dev, const acf_sample *s, uint64_t seed, int64_t wanted,
                                 search *to) {
    const double cells = seen_cells(s);
    int fruitless = 0;
    const bool held = acf_sample_held(s);
    acf_status status = ACF_OK;
    acf_mixture one = {0};
    double *near = acf_alloc((size_t)s->R * sizeof *near, "distances of rows");
    if (!near) return ACF_EMEMORY;
    for (int64_t K = 1; K <= to->best->K && fruitless < FRUITLESS && !status; K = wanted > K ? wanted : 2 * K) {
        acf_mixture g;
        double logp = 0, score = 0;
        ACF_TRY_DONE(acf_mixture_create(K, s->D, &g));
        begin(&g, s, K == 1 ? NULL : &one, seed, near);
        status = iterate(dev, s, &g, ROUGHLY * cells, &logp);
        if (!status) status = judge(dev, s, &g, logp, cells, held, &score);
        const bool first = to->top == -INFINITY;
        const double worth = fruitless || s->ridge > 0 ? fmax(WORTH, to->clearly) : WORTH;
        const bool better = !status && isfinite(score) && (score > to->top + worth || first || wanted);
        if (better) mixture_copy(to->best, &g), to->top = score, to->ridge = s->ridge;
        fruitless = better ? 0 : fruitless + 1;
        if (K == 1 && !status)
            one = g;
        else
            acf_mixture_free(&g);
        if (K == wanted) break;
    }
done:
    acf_mixture_free(&one);
    acf_release(near);
    return status;
}

/* Runs EM to its end, for the chosen number of components. */
static acf_status finish(const acf_device *dev, const acf_sample *s, acf_mixture *best) {
    double logp;
    acf_mixture g = *best;
    for (g.K = 0; g.K < best->K && best->weight[g.K] > 0;) g.K++;
    return iterate(dev, s, &g, ENOUGH * seen_cells(s), &logp);
}

/* The best over all numbers of components and both ridges, or what `as` says; *score: of the held-out cells, or by the
 * criterion without them. */
static acf_status choose(const acf_device *dev, acf_sample *s, uint64_t seed, const acf_gmm_choice *as,
                         acf_mixture *best, double *score, double *ridge) {
    search to = {.best = best, .top = -INFINITY, .clearly = per_held(s, CLEARLY)};
    s->ridge = as ? as->ridge : 0;
    acf_status status = search_numbers(dev, s, seed, as ? as->components : 0, &to);
    if (!status && !as && acf_sample_held(s) && s->R < SHARP_ROWS) {
        s->ridge = SHARP_RIDGE;
        status = search_numbers(dev, s, seed, 0, &to);
    }
    *score = to.top, *ridge = s->ridge = to.ridge;
    return status ? status : finish(dev, s, best);
}

void acf_mixture_detach(acf_mixture *g, int64_t from) {
    const int64_t D = g->D;
    for (int64_t k = 0; k < g->K; k++)
        for (int64_t i = from; i < D; i++) {
            g->mean[k * D + i] = 0;
            for (int64_t j = 0; j < D; j++) g->cov[(k * D + i) * D + j] = g->cov[(k * D + j) * D + i] = i == j;
        }
}

/* Replaces *best by a mixture that is blind to the columns from `from` on, if `as` says so or it is clearly better. */
static acf_status try_blind(const acf_device *dev, acf_sample *s, uint64_t seed, const acf_gmm_choice *as, int64_t from,
                            double score, acf_mixture *best, double *ridge) {
    acf_mixture blind;
    double other, its_ridge;
    if (from == s->D || (as ? !as->blind : !acf_sample_held(s))) return ACF_OK;
    ACF_TRY(acf_mixture_create(best->K, s->D, &blind));
    acf_sample_hide(s, from);
    acf_status status = choose(dev, s, seed, as, &blind, &other, &its_ridge);
    if (!status && (as || other > score + BLINDLY)) {
        acf_mixture_detach(&blind, from);
        mixture_copy(best, &blind);
        *ridge = its_ridge;
    }
    acf_mixture_free(&blind);
    return status;
}

/* Stores x as the values of a parameter. */
static acf_status store(acf_device *dev, acf_param *p, const double *x) {
    const int64_t n = acf_tensor_count(&p->t);
    acf_real *host = acf_alloc((size_t)n * sizeof *host, "a mixture");
    if (!host) return ACF_EMEMORY;
    for (int64_t j = 0; j < n; j++) host[j] = (acf_real)x[j];
    acf_status status = acf_device_copy(dev, p->t.data, host, (size_t)n * sizeof *host, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(dev);
    acf_release(host);
    return status;
}

/* Fits the mixture of s and stores it in the network. */
static acf_status fit_mixture(const acf_net *net, acf_device *dev, acf_sample *s, int64_t reals, uint64_t seed,
                              const acf_gmm_choice *as, double *ridge) {
    acf_mixture best;
    double score = -INFINITY;
    acf_status status = ACF_OK;
    ACF_TRY(acf_mixture_create(acf_net_gmm_size(net), s->D, &best));
    if (!(as && as->blind)) status = choose(dev, s, seed, as, &best, &score, ridge);
    if (!status) status = try_blind(dev, s, seed, as, reals, score, &best, ridge);
    const double *from[3] = {best.weight, best.mean, best.cov};
    for (int i = 0; i < 3 && !status; i++) status = store(dev, acf_net_gmm(net)[i], from[i]);
    acf_mixture_free(&best);
    return status;
}

/* ---- wide tables ----------------------------------------------------------------------------------------------- */

/* The factors of s as `as` says. Where held-out cells may choose, also tries factors that are blind to the columns from
 * `from` on. */
static acf_status choose_factors(const acf_device *dev, acf_sample *s, int64_t most, int64_t from, uint64_t seed,
                                 const acf_gmm_choice *as, acf_analysis *best) {
    const int64_t wanted = as ? as->components : 0;
    const bool may_be_blind = from < s->D && (as ? as->blind : acf_sample_held(s));
    double score = -INFINITY, its_score;
    *best = (acf_analysis){0};
    if (!(as && as->blind)) ACF_TRY(acf_analysis_choose(dev, s, seed, most, wanted, best, &score));
    if (!may_be_blind) return ACF_OK;
    acf_analysis blind;
    acf_sample_hide(s, from);
    acf_status status = acf_analysis_choose(dev, s, seed, most, wanted, &blind, &its_score);
    if (!status && (as || its_score > score + BLINDLY)) {
        acf_analysis_free(best);
        *best = blind;
        memset(blind.load + from * blind.r, 0,
               (size_t)((s->D - from) * blind.r) * sizeof *blind.load); /* exact zeros: acf_gmm_chosen tests them */
    } else if (!status)
        acf_analysis_free(&blind);
    if (status) acf_analysis_free(best);
    return status;
}

/* Fits the factors of s and stores them in the network, which has memory for `most` of them. */
static acf_status fit_factors(const acf_net *net, acf_device *dev, acf_sample *s, int64_t most, int64_t reals,
                              uint64_t seed, const acf_gmm_choice *as) {
    acf_analysis g;
    ACF_TRY(choose_factors(dev, s, most, reals, seed, as, &g));
    double *weight = acf_alloc_zero((size_t)(most * (1 + g.D)) * sizeof *weight, "the factor analysis"),
           *load = weight ? weight + most : NULL;
    acf_status status = weight ? ACF_OK : ACF_EMEMORY;
    for (int64_t k = 0; !status && k < g.r; k++) weight[k] = 1;
    for (int64_t j = 0; !status && j < g.D; j++) memcpy(load + j * most, g.load + j * g.r, (size_t)g.r * sizeof *load);
    const double *from[4] = {weight, g.mean, load, g.var};
    for (int i = 0; i < 4 && !status; i++) status = store(dev, acf_net_gmm(net)[i], from[i]);
    acf_release(weight);
    acf_analysis_free(&g);
    return status;
}

/* ---- both ------------------------------------------------------------------------------------------------------ */

/* Rows of the sample, by the cost of an EM iteration. */
static int64_t sample_rows(const acf_net *net, int64_t D, int64_t rows) {
    const int64_t K = acf_net_gmm_size(net), rank = acf_net_factors(net);
    const double mixture = WORK / (double)(K * D * D * (D + 20)), factors = WIDE_WORK / (double)(D * rank * rank);
    const int64_t n = acf_min(ROWS_MAX, (int64_t)(rank ? factors : mixture));
    return acf_min(rows, acf_max(ROWS_MIN, n));
}

acf_status acf_gmm_fit(acf_net *net, const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                       const acf_holdout *hold, uint64_t seed, const acf_gmm_choice *as, acf_gmm_choice *found) {
    const int32_t *of, *value;
    const int64_t most = acf_net_factors(net);
    double ridge = 0;
    int64_t reals;
    if (found) *found = (acf_gmm_choice){0};
    if (!acf_net_gmm_size(net)) return ACF_OK;
    acf_net_reals(net, &reals);
    const int64_t D = reals + acf_net_indicators(net, &of, &value);
    acf_device *dev = acf_net_params(net)->dev;
    acf_sample s = {.D = D, .R = sample_rows(net, D, rows->n)};
    acf_status status = acf_sample_take(net, dev, t, rows, e, hold, seed, &s);
    if (!status)
        status = most ? fit_factors(net, dev, &s, most, reals, seed, as)
                      : fit_mixture(net, dev, &s, reals, seed, as, &ridge);
    acf_sample_free(&s);
    if (!status && found) {
        ACF_TRY(acf_gmm_chosen(net, found));
        found->ridge = ridge;
    }
    return status;
}

/* Components, or factors, beyond the chosen ones have weight 0. A blind mixture has zeros between reals and indicators:
 * in the indicators' rows of the covariances (K,D,D), up to the reals' columns, or of the loadings (D,rank), up to the
 * last column. */
acf_status acf_gmm_chosen(acf_net *net, acf_gmm_choice *out) {
    const int64_t rank = acf_net_factors(net), K = rank ? 1 : acf_net_gmm_size(net);
    acf_param *const *p = acf_net_gmm(net);
    acf_device *dev = acf_net_params(net)->dev;
    int64_t reals;
    const int32_t *of, *value;
    acf_net_reals(net, &reals);
    const int64_t D = reals + acf_net_indicators(net, &of, &value), width = rank ? rank : D, upto = rank ? rank : reals;
    *out = (acf_gmm_choice){.blind = D > reals};
    if (!K) return ACF_OK;
    const int64_t numbers[2] = {rank ? rank : K, K * D * width};
    acf_real *host = acf_alloc((size_t)(numbers[0] + numbers[1]) * sizeof *host, "a mixture"),
             *table = host + numbers[0];
    acf_status status = host ? ACF_OK : ACF_EMEMORY;
    for (int i = 0; i < 2 && !status; i++)
        status =
            acf_device_copy(dev, i ? table : host, p[2 * i]->t.data, (size_t)numbers[i] * sizeof *host, ACF_TO_HOST);
    if (!status) status = acf_device_sync(dev);
    for (int64_t k = 0; !status && k < numbers[0]; k++) out->components += host[k] > 0;
    for (int64_t k = 0; !status && k < K; k++)
        for (int64_t i = reals; host[k] > 0 && i < D; i++)
            for (int64_t j = 0; j < upto; j++) out->blind &= table[(k * D + i) * width + j] == 0;
    acf_release(host);
    return status;
}
