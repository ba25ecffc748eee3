/* Fitting the Gaussian mixture in front of a network: see gmm_fit.h; formulas in docs/math.md. */
#include "train/gmm_fit.h"

#include "train/factor_fit.h"

#include <math.h>
#include <string.h>

#define ITERATIONS 300
#define ROUGHLY 1e-4 /* gain of an iteration, in nats per seen cell, that ends EM while mixtures are compared, */
#define ENOUGH 1e-5  /* and of the one that was chosen */
#define WORTH 0.003  /* gain of more components, in nats per cell, that justifies them */
#define BLINDLY                                                                                                        \
    0.05 /* the same of looking away from categories: where it gained less, on small tables, errors were larger with it all the same */
#define WORK 4e8 /* multiply-adds of an iteration at most: what decides how many rows stand for the table */
#define ROWS_MAX 20000
#define ROWS_MIN 500
#define WIDE_WORK 1e9    /* the same of factors, whose products run faster */
#define SHARP_RIDGE 0.03 /* the other ridge that is tried, */
#define SHARP_ROWS 5000  /* of fewer rows: more leave little of either */
#define FRUITLESS 2      /* doublings of the components without a gain that end the search */
#define CLEARLY                                                                                                        \
    2.0 /* nats over all held-out cells that any further candidate must gain: of many, one fits a few cells by chance */

/* ---- the whole fit ----------------------------------------------------------------------------------------------- */

static void mixture_copy(acf_mixture *to, const acf_mixture *from) { /* `to` has room for as many components or more */
    memset(to->weight, 0, (size_t)(to->K * (1 + to->D + to->D * to->D)) * sizeof *to->weight);
    memcpy(to->weight, from->weight, (size_t)from->K * sizeof *to->weight);
    memcpy(to->mean, from->mean, (size_t)(from->K * from->D) * sizeof *to->mean);
    memcpy(to->cov, from->cov, (size_t)(from->K * from->D * from->D) * sizeof *to->cov);
}

/* How far row r is from what a component that begins at `mean` expects: of what it has seen, in units of the whole's
 * deviations. */
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

/* The row where component k begins: far from those before it, by chance in proportion to the squared distance, so that
 * a small group apart from the others is likely to have one. near (R): the distance of each row to the nearest of
 * them. */
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

/* Where EM begins: one component as the prior says; several around rows of the sample, each as wide as the whole
 * (`one`) shrunk. */
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

/* EM until an iteration gains no more than `little` nats in a row. *logp: mean log-likelihood of a row at the end. */
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

/* How good a fitted mixture is, per cell: by the held-out cells, or the likelihood less what its parameters cost. */
static acf_status judge(const acf_device *dev, const acf_sample *s, const acf_mixture *g, double logp, double cells,
                        bool held, double *score) {
    if (held) return acf_em_score(dev, s, g, score);
    const double D = (double)g->D, numbers = (double)g->K * (1 + D + 0.5 * D * (D + 1)) - 1;
    *score = (logp - 0.5 * numbers * log((double)s->R) / (double)s->R) / cells;
    return ACF_OK;
}

/* Cells that a row has seen, in the mean. */
static double seen_cells(const acf_sample *s) {
    double cells = 0;
    for (int64_t i = 0; i < s->R * s->D; i++) cells += s->seen[i] == ACF_GMM_CELL_SEEN;
    return fmax(cells / (double)s->R, 1e-9);
}

/* A search for the best mixture: the best so far and its score. */
typedef struct search {
    acf_mixture *best;
    double top, ridge;
    double clearly; /* gain per cell of whatever else is tried than more components as long as they gain */
} search;

/* What is gained per cell when all held-out cells gain so many nats. */
static double per_held(const acf_sample *s, double nats) {
    int64_t held = 0;
    for (int64_t i = 0; i < s->R * s->D; i++) held += s->seen[i] == ACF_GMM_CELL_HELD;
    return held ? nats / (double)held : 0;
}

/* Tries 1, 2, 4, ... components with this ridge, or as many as are wanted, where that is not 0. A mixture that is
 * clearly better than to->best replaces it. One component always comes first: the others begin with its width. */
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

/* EM to its end, for the components that best has. */
static acf_status finish(const acf_device *dev, const acf_sample *s, acf_mixture *best) {
    double logp;
    acf_mixture g = *best;
    for (g.K = 0; g.K < best->K && best->weight[g.K] > 0;) g.K++;
    return iterate(dev, s, &g, ENOUGH * seen_cells(s), &logp);
}

/* The best of all numbers of components and of both ridges, or what `as` says; *score: of the held-out cells, or by the
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

/* The mixture that is blind to the columns from `from` on, where that is what `as` says or clearly the better one;
 * *best is replaced then. */
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

/* x as the numbers of a parameter. */
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

/* The mixture of s, to the network. */
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

/* ---- wide tables ------------------------------------------------------------------------------------------------- */

/* The factors of s as they are asked for, and, where held-out cells may choose, those that are blind to the columns
 * from `from` on. */
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
               (size_t)((s->D - from) * blind.r) * sizeof *blind.load); /* exactly: that is how it is known again */
    } else if (!status)
        acf_analysis_free(&blind);
    if (status) acf_analysis_free(best);
    return status;
}

/* The factors of s, to the network, whose room is for `most` of them. */
static acf_status fit_factors(const acf_net *net, acf_device *dev, acf_sample *s, int64_t most, int64_t reals,
                              uint64_t seed, const acf_gmm_choice *as) {
    acf_analysis g;
    ACF_TRY(choose_factors(dev, s, most, reals, seed, as, &g));
    double *weight = acf_alloc_zero((size_t)(most * (1 + g.D)) * sizeof *weight, "factors of a table"),
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

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* Rows that stand for the table: what an iteration of EM may cost decides. */
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

/* Components, or factors, beyond those that were chosen have weight 0; a blind anchor has zeros between reals and
 * indicators: in the rows of the covariances (K,D,D), or of the loadings (D,rank), that the indicators have, up to the
 * reals' columns or to the last. */
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
