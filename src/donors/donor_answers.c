/* Answers of a model with donors: see donor_answers.h.
 *
 * Workload: one donor search for each target cell, about 30 µs in 5,000 rows of 12 columns: more than half of the time
 * of a draw. */
#include "donors/donor_answers.h"

#include "base/rng.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- autoregressive chain -------------------------------------------------------------------------------------- */

#define NOT_BEGUN (-2)
enum { OTHERS = 128 }; /* values that stand for the continuous part of the donors' distribution, at most */
#define SURE 0.9       /* a value with this probability is imputed itself: a mean could lie outside its own interval */

/* Observed cells of column j in the training data. */
static int64_t observed(const acf_encoder *e, int64_t j) {
    int64_t n = e->column[j].classes ? 0 : e->observed[j];
    for (int32_t c = 0; c < e->column[j].classes; c++) n += e->count[e->first[j] + c];
    return n;
}

acf_status acf_autoregression_order(const acf_encoder *e, int32_t **order) {
    int32_t *list = acf_alloc((size_t)e->D * sizeof *list, "a column order");
    if (!list) return ACF_EMEMORY;
    for (int64_t j = 0; j < e->D; j++) {
        int64_t k = j;
        for (; k > 0 && observed(e, list[k - 1]) < observed(e, j); k--) list[k] = list[k - 1];
        list[k] = (int32_t)j;
    }
    *order = list;
    return ACF_OK;
}

acf_status acf_autoregression_begin(acf_autoregression *chain, const acf_table *t, acf_query q, acf_purpose why,
                                    const int32_t *order) {
    const size_t cells = (size_t)(t->N * t->D) + 1;
    *chain = (acf_autoregression){.t = t, .all = q, .why = why, .order = order};
    chain->column = acf_alloc(((size_t)t->N + 1) * sizeof *chain->column, "a question");
    chain->at = chain->column ? acf_alloc_zero(((size_t)t->N + 1) * sizeof *chain->at, "a question") : NULL;
    chain->given = chain->at ? acf_alloc(cells, "a question") : NULL;
    chain->target = chain->given ? acf_alloc_zero(cells, "a question") : NULL;
    if (!chain->target) {
        acf_autoregression_end(chain);
        return ACF_EMEMORY;
    }
    for (int64_t i = 0; i < t->N; i++) chain->column[i] = NOT_BEGUN;
    for (int64_t c = 0; c < t->N * t->D; c++) {
        const bool present = acf_table_present(t->x[c]);
        chain->given[c] = acf_query_gives(q, why, c, present);
    }
    chain->q = (acf_query){chain->given, chain->target};
    return ACF_OK;
}

/* The next target column of row i; -1: there is none. */
static int32_t next_column(acf_autoregression *chain, int64_t i) {
    const int64_t D = chain->t->D;
    while (chain->at[i] < D) {
        const int32_t j = chain->order[chain->at[i]++];
        const int64_t cell = i * D + j;
        if (acf_query_asks(chain->all, chain->why, cell, acf_table_present(chain->t->x[cell]))) return j;
    }
    return -1;
}

bool acf_autoregression_next(acf_autoregression *chain) {
    const int64_t D = chain->t->D;
    bool some = false;
    for (int64_t i = 0; i < chain->t->N; i++) {
        const int32_t before = chain->column[i];
        if (before == -1) continue;
        if (before != NOT_BEGUN) chain->given[i * D + before] = 1, chain->target[i * D + before] = 0;
        const int32_t j = chain->column[i] = next_column(chain, i);
        if (j >= 0) chain->target[i * D + j] = 1, some = true;
    }
    return some;
}

void acf_autoregression_end(acf_autoregression *chain) {
    acf_release(chain->column), acf_release(chain->at), acf_release(chain->given), acf_release(chain->target);
    *chain = (acf_autoregression){0};
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* One thread's scratch. */
typedef struct worker {
    acf_donor_search *r;
    uint8_t *known; /* (D) */
} worker;

struct acf_donor_answers {
    const acf_donors *d;
    worker *worker; /* one of each thread */
    int threads;
};

acf_status acf_donor_answers_create(const acf_donors *d, int threads, acf_donor_answers **out) {
    acf_donor_answers *l = acf_alloc_zero(sizeof *l, "a donor search");
    if (!l) return ACF_EMEMORY;
    l->d = d, l->threads = (int)acf_max(threads, 1);
    l->worker = acf_alloc_zero((size_t)l->threads * sizeof *l->worker, "a donor search");
    bool ok = l->worker != NULL;
    for (int k = 0; ok && k < l->threads; k++) {
        l->worker[k].known = acf_alloc((size_t)d->D, "a donor search");
        ok = l->worker[k].known && acf_donor_search_create(d, &l->worker[k].r) == ACF_OK;
    }
    if (!ok) {
        acf_donor_answers_free(l);
        return ACF_EMEMORY;
    }
    *out = l;
    return ACF_OK;
}

void acf_donor_answers_free(acf_donor_answers *l) {
    if (!l) return;
    for (int k = 0; l->worker && k < l->threads; k++)
        acf_donor_search_free(l->worker[k].r), acf_release(l->worker[k].known);
    acf_release(l->worker);
    acf_release(l);
}

static worker *own_seat(const acf_donor_answers *l) { return &l->worker[omp_get_thread_num()]; }

/* h of column j for row i of t, given s->known. */
static double trust(worker *s, const acf_table *t, int64_t i, int64_t j) {
    return acf_donor_search_run(s->r, j, acf_table_row(t, i), s->known, acf_table_row_id(t, i))
               ? acf_donor_search_trust(s->r, j)
               : 0;
}

/* log p at x of the mixture; logp: the networks'. */
static double logp_of_both(const worker *s, int64_t j, double x, double h, double logp) {
    if (h == 0) return logp;
    const double q = log(h * acf_donor_search_density(s->r, j, x)), p = log1p(-h) + logp, most = fmax(p, q);
    return isfinite(most) ? most + log(exp(p - most) + exp(q - most)) : most;
}

double acf_donor_answers_logp(acf_donor_answers *l, const acf_table *t, const acf_autoregression *chain, int64_t i,
                              double logp) {
    const int64_t j = chain->column[i];
    worker *s = own_seat(l);
    memcpy(s->known, chain->given + i * t->D, (size_t)t->D);
    return logp_of_both(s, j, acf_table_row(t, i)[j], trust(s, t, i, j), logp);
}

/* s->known = all observed cells of the row but column j. */
static void know_all_others(worker *s, const acf_table *t, int64_t i, int64_t j) {
    for (int64_t k = 0; k < t->D; k++) s->known[k] = k != j && acf_table_present(acf_table_row(t, i)[k]);
}

double acf_donor_answers_cell(acf_donor_answers *l, const acf_table *t, int64_t i, int64_t j, double logp) {
    worker *s = own_seat(l);
    know_all_others(s, t, i, j);
    return logp_of_both(s, j, acf_table_row(t, i)[j], trust(s, t, i, j), logp);
}

double acf_donor_answers_look(acf_donor_answers *l, const acf_table *t, int64_t i, int64_t j) {
    worker *s = own_seat(l);
    know_all_others(s, t, i, j);
    return trust(s, t, i, j);
}

double acf_donor_answers_value(acf_donor_answers *l, int64_t j, const double u[3]) {
    return acf_donor_search_draw(own_seat(l)->r, j, u);
}

void acf_donor_answers_draw(acf_donor_answers *l, const acf_table *t, const acf_autoregression *chain, int64_t i,
                            uint64_t seed, uint32_t draw, double *x) {
    const int64_t j = chain->column[i];
    worker *s = own_seat(l);
    memcpy(s->known, chain->given + i * t->D, (size_t)t->D);
    const double h = trust(s, t, i, j);
    uint32_t bits[4];
    double u[4];
    acf_rng_bits((acf_rng_counter){.seed = seed,
                                   .row = acf_table_row_id(t, i),
                                   .stream = ACF_STREAM_DONOR_DRAW,
                                   .column = (uint32_t)j,
                                   .draw = draw},
                 bits);
    for (int k = 0; k < 4; k++) u[k] = ((double)bits[k] + 0.5) / 4294967296.0;
    if (u[0] < h) *x = acf_donor_search_draw(s->r, j, u + 1);
}

double acf_donor_answers_mean(acf_donor_answers *l, const acf_table *t, acf_query q, int64_t i, int64_t j, int members,
                              double *mean, double *probs) {
    const int32_t classes = l->d->encoder->column[j].classes;
    worker *s = own_seat(l);
    for (int64_t k = 0; k < t->D; k++) {
        const int64_t cell = i * t->D + k;
        const bool present = acf_table_present(t->x[cell]);
        s->known[k] = acf_query_gives(q, ACF_TO_FILL, cell, present);
    }
    const double h = trust(s, t, i, j);
    double value;
    if (h == 0) return 0;
    if (classes == 0) *mean = (1 - h) * *mean + h * acf_donor_search_mean(s->r, j);
    if (classes == 0 && h > SURE && h * acf_donor_search_majority(s->r, j, &value) > SURE) *mean = value;
    for (int32_t c = 0; c < classes; c++) probs[c] *= 1 - h;
    if (classes > 0) acf_donor_search_add_classes(s->r, j, h * members, probs);
    return h;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void acf_donor_answers_distribution(acf_donor_answers *l, int64_t j, double h, acf_weighted *d) {
    const worker *s = own_seat(l);
    double other[OTHERS];
    d->n = acf_donor_search_observed(s->r, j, d->value, d->weight);
    for (int64_t k = 0; k < d->n; k++) d->weight[k] *= h;
    const double rest = h * l->d->differ[j];
    const int n = (int)fmin(ceil(rest * OTHERS), OTHERS);
    if (n == 0) return;
    acf_donor_search_spread(s->r, j, n, other);
    qsort(other, (size_t)n, sizeof *other, ascending);
    acf_weighted_add(d, other, n, rest / n);
}

int64_t acf_donor_answers_capacity(const acf_donor_answers *l) { return acf_donor_search_capacity(l->d) + OTHERS; }
