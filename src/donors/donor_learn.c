/* Learns the donors' distance: see donor_learn.h.
 *
 * Workload: for each of D columns, STEPS steps of up to ASKED rows against up to DONORS others in D - 1 columns,
 * forward and back, at most WORK distances a step either way: for 12 columns 12 · 150 · 2^21 · 2, 8·10^9, a few
 * seconds of one core. */
#include "donors/donor_learn.h"

#include "base/rng.h"
#include "donors/donor_predict.h"

#include <math.h>
#include <omp.h>
#include <string.h>

#define STEPS 150
#define SETTLED 100 /* the result is the mean of the parameters after so many steps */
#define ASKED 64    /* rows of a step's batch, at most */
#define ASKED_LEAST 8
#define DONORS 4096  /* candidate donors, at most: the same in all steps */
#define CELLS 131072 /* their cells, at most */
#define WORK 2097152
#define RATE 0.1   /* of Adam, falling to 0 */
#define FOLLOW 0.1 /* EM step size of ε and the scale */
#define NEAR 1.3   /* prior median, divided by the root of the number of columns: the distances of all add up */
#define OTHER 0.5
#define APART 2.0
#define DEVIATION 1.2 /* prior standard deviation of the logarithms */
#define FEW 200.0     /* rows that the prior counts for, to keep chance findings of small tables small */
#define LEAST 1e-3    /* of ε and 1 - ε */
#define LEAST_SCALE 0.01

/* State of learning one column. Sizes: P = 2 D + 1 parameters (near, other and, last, apart); n donors. */
typedef struct learner {
    acf_donors *m;
    const acf_table *t;
    const acf_holdout *hold;
    int64_t j, n;
    int32_t *donor;                              /* (n) rows */
    acf_real *place, *predicted;                 /* (D,n), (n) */
    bool expects;                                /* the column is predicted */
    acf_real *cost, *weight, *push;              /* (n) */
    double *log, *mean, *first, *second, *slope; /* (P) logarithms, their mean after SETTLED steps, Adam's moments, the
                                                  * gradient */
    uint8_t *held;                               /* (D) */
    double cells, settled;                       /* rows of the table with a target cell; steps that were averaged */
    double smooth, apart, logq, seen; /* sums of a step: weight and distance of donors of another value, nats over the
                                       * column's marginal, rows */
    double told, told_rows;           /* logq and seen of settled steps */
} learner;

static int64_t numbers(const learner *p) { return 2 * p->m->D + 1; }

static double prior_mean(const learner *p, int64_t k) {
    return k == 2 * p->m->D ? log(APART) : log((k < p->m->D ? NEAR : OTHER) / sqrt((double)acf_max(p->m->D - 1, 1)));
}

/* ---- one row --------------------------------------------------------------------------------------------------- */

/* Is cell k of the row used as a given cell when column j is the target? */
static bool is_given(const learner *p, int64_t row, int64_t k) {
    return k != p->j && !p->held[k] && p->m->code[k * p->m->N + row] >= 0;
}

static void look(learner *p, int64_t row) {
    const acf_donors *m = p->m;
    const int64_t D = m->D;
    for (int64_t i = 0; i < p->n; i++) p->cost[i] = 0;
    for (int64_t k = 0; k < D; k++) {
        double away, another;
        if (!is_given(p, row, k)) continue;
        const double near = m->number[k] ? exp(p->log[k]) : 0,
                     other = exp(p->log[D + k]) * acf_donors_rare(m, k, m->code[k * m->N + row]);
        const acf_real z = m->place[k * m->N + row];
        acf_donors_usual(m, k, z, &away, &another);
        acf_donors_add(p->cost, p->place + k * p->n, p->n, z, (acf_real)near, (acf_real)other,
                       (acf_real)(near * away + other * another));
    }
    if (p->expects)
        acf_donors_add(p->cost, p->predicted, p->n, m->predicted[p->j * m->N + row], (acf_real)exp(p->log[2 * D]), 0,
                       0);
    for (int64_t i = 0; i < p->n; i++)
        if (m->id[p->donor[i]] == m->id[row]) p->cost[i] = (acf_real)INFINITY;
}

/* weight = e^{least - C}, push = each donor's density at the row's own cell. Sums of weight, of weight · push, and of
 * push; the number of donors other than the row. */
typedef struct given {
    acf_real all, cell, any, rows;
} given;

static given weigh(learner *p, const acf_donors_kernel *at, acf_real least) {
    const acf_real *restrict place = p->place + p->j * p->n, *restrict cost = p->cost;
    acf_real *restrict weight = p->weight, *restrict push = p->push, all = 0, cell = 0, any = 0, rows = 0;
#pragma omp simd reduction(+ : all, cell, any, rows)
    for (int64_t i = 0; i < p->n; i++) {
        weight[i] = acf_exp(least - cost[i]), push[i] = acf_donors_given(at, place[i]);
        const bool gives = cost[i] < (acf_real)INFINITY;
        all += weight[i], cell += weight[i] * push[i], any += gives ? push[i] : 0, rows += gives ? ACF_R(1.0) : 0;
    }
    return (given){all, cell, any, rows};
}

/* push = r - w, and q of the row's own cell; false: there is no donor. */
static bool compare(learner *p, int64_t row) {
    const acf_donors *m = p->m;
    const acf_real *restrict place = p->place + p->j * p->n, *restrict weight = p->weight;
    const acf_donors_kernel at = acf_donors_kernel_at(m, p->j, m->value[m->first[p->j] + m->code[p->j * m->N + row]]);
    const acf_real least = acf_donors_least(p->cost, p->n);
    acf_real smooth = 0, apart = 0, *restrict push = p->push;
    if (!isfinite(least)) return false;
    const given g = weigh(p, &at, least);
    if (!(g.cell > 0)) return false;
    const acf_real by_all = 1 / g.all, by_cell = 1 / g.cell, part = at.smooth / at.top;
#pragma omp simd reduction(+ : smooth, apart)
    for (int64_t i = 0; i < p->n; i++) {
        const acf_real r = weight[i] * push[i] * by_cell, away = at.z > place[i] ? at.z - place[i] : place[i] - at.z;
        const acf_real of = r * (away > 0 ? 1 : part);
        smooth += of, apart += of * away;
        push[i] = r - weight[i] * by_all;
    }
    p->smooth += (double)smooth, p->apart += (double)apart, p->seen += 1;
    p->logq += log((double)g.cell / (double)g.all) - log((double)g.any / (double)g.rows);
    return true;
}

/* Σ push · distance, and Σ push · [another value]. */
static void pull(const acf_real *restrict push, const acf_real *restrict place, int64_t n, acf_real z,
                 acf_real absent_away, acf_real absent_other, double *near, double *other) {
    acf_real by_away = 0, by_other = 0;
#pragma omp simd reduction(+ : by_away, by_other)
    for (int64_t i = 0; i < n; i++) {
        const bool absent = place[i] == ACF_DONORS_ABSENT;
        const acf_real away = z > place[i] ? z - place[i] : place[i] - z;
        by_away += push[i] * (absent ? absent_away : away);
        by_other += push[i] * (absent ? absent_other : away > 0 ? ACF_R(1.0) : ACF_R(0.0));
    }
    *near += (double)by_away, *other += (double)by_other;
}

static void add_slopes(learner *p, int64_t row) {
    const acf_donors *m = p->m;
    for (int64_t k = 0; k < m->D; k++) {
        double away, another;
        if (!is_given(p, row, k)) continue;
        const acf_real z = m->place[k * m->N + row];
        acf_donors_usual(m, k, z, &away, &another);
        double by_near = 0, by_other = 0;
        pull(p->push, p->place + k * p->n, p->n, z, (acf_real)away, (acf_real)another, &by_near, &by_other);
        p->slope[k] += by_near, p->slope[m->D + k] += by_other * acf_donors_rare(m, k, m->code[k * m->N + row]);
    }
    double same = 0;
    if (p->expects)
        pull(p->push, p->predicted, p->n, m->predicted[p->j * m->N + row], 0, 0, &p->slope[2 * m->D], &same);
}

/* ---- one step -------------------------------------------------------------------------------------------------- */

static void ask(learner *p, int step) {
    const acf_donors *m = p->m;
    memset(p->slope, 0, (size_t)numbers(p) * sizeof *p->slope);
    p->smooth = p->apart = p->logq = p->seen = 0;
    const int64_t target = acf_max(acf_min(WORK / (p->n * m->D), ASKED), ASKED_LEAST);
    for (int64_t i = 0; i < target; i++) {
        const acf_rng_counter at = {
            .seed = (uint64_t)p->j, .row = (uint64_t)i, .stream = ACF_STREAM_DONORS, .column = (uint32_t)step};
        const int64_t row = acf_rng_below(at, m->N);
        if (m->code[p->j * m->N + row] < 0) continue;
        acf_holdout_row(p->hold, p->t, row, p->held);
        if (p->held[p->j]) continue;
        look(p, row);
        if (compare(p, row)) add_slopes(p, row);
    }
}

static void move(learner *p, int step) {
    acf_donors *m = p->m;
    const int64_t j = p->j;
    const double rate = RATE * (1 - (double)step / STEPS), c1 = 1 - pow(0.9, step + 1), c2 = 1 - pow(0.999, step + 1);
    for (int64_t k = 0; k < numbers(p); k++) {
        const double g = p->slope[k] / p->seen * exp(p->log[k]) +
                         (p->log[k] - prior_mean(p, k)) / (DEVIATION * DEVIATION) * (1 + FEW / p->cells) / p->cells;
        p->first[k] = 0.9 * p->first[k] + 0.1 * g, p->second[k] = 0.999 * p->second[k] + 0.001 * g * g;
        p->log[k] -= rate * (p->first[k] / c1) / (sqrt(p->second[k] / c2) + 1e-8);
        if (step >= SETTLED) p->mean[k] += p->log[k];
    }
    m->differ[j] = fmin(fmax((1 - FOLLOW) * m->differ[j] + FOLLOW * p->smooth / p->seen, LEAST), 1 - LEAST);
    if (m->number[j] && p->smooth > 0)
        m->scale[j] = fmax((1 - FOLLOW) * m->scale[j] + FOLLOW * p->apart / p->smooth, LEAST_SCALE);
    if (step >= SETTLED) p->settled++, p->told += p->logq, p->told_rows += p->seen;
}

/* ---- one column ------------------------------------------------------------------------------------------------ */

static int64_t most_donors(const acf_donors *m) { return acf_max(acf_min(acf_min(m->N, DONORS), CELLS / m->D), 1); }

/* All rows in which the column is observed, or every k-th of them. */
static void choose_donors(learner *p) {
    const acf_donors *m = p->m;
    const int32_t *code = m->code + p->j * m->N;
    int64_t have = 0, seen = 0;
    for (int64_t i = 0; i < m->N; i++) have += code[i] >= 0;
    p->n = acf_min(have, most_donors(m)), p->cells = (double)have;
    for (int64_t i = 0, next = 0; i < m->N && next < p->n; i++) {
        if (code[i] < 0) continue;
        if (seen++ * p->n / have >= next) p->donor[next++] = (int32_t)i;
    }
    for (int64_t k = 0; k < m->D; k++)
        for (int64_t i = 0; i < p->n; i++) p->place[k * p->n + i] = m->place[k * m->N + p->donor[i]];
    p->expects = acf_donors_predicts(m, p->j);
    for (int64_t i = 0; i < p->n; i++) p->predicted[i] = m->predicted[p->j * m->N + p->donor[i]];
}

static void learn_column(learner *p, int64_t j) {
    acf_donors *m = p->m;
    const int64_t D = m->D;
    p->j = j, p->settled = p->told = p->told_rows = 0;
    choose_donors(p);
    memset(p->mean, 0, (size_t)numbers(p) * sizeof *p->mean);
    memset(p->first, 0, (size_t)numbers(p) * sizeof *p->first);
    memset(p->second, 0, (size_t)numbers(p) * sizeof *p->second);
    for (int64_t k = 0; k < numbers(p); k++) p->log[k] = prior_mean(p, k);
    for (int step = 0; p->n > 1 && step < STEPS; step++) {
        ask(p, step);
        if (p->seen > 0) move(p, step);
    }
    for (int64_t k = 0; k < D; k++) {
        const bool counts = k != j && p->settled > 0;
        m->near[j * D + k] = counts && m->number[k] ? ACF_DONORS_SHARPER * exp(p->mean[k] / p->settled) : 0;
        m->other[j * D + k] = counts ? ACF_DONORS_SHARPER * exp(p->mean[D + k] / p->settled) : 0;
    }
    m->apart[j] = p->expects && p->settled > 0 ? ACF_DONORS_SHARPER * exp(p->mean[2 * D] / p->settled) : 0;
    m->gain[j] = p->told_rows > 0 ? p->told / p->told_rows : 0;
}

static acf_status open_learner(learner *p, acf_donors *m, const acf_table *t, const acf_holdout *hold) {
    const size_t n = (size_t)most_donors(m), D = (size_t)m->D;
    *p = (learner){.m = m, .t = t, .hold = hold};
    p->donor = acf_alloc(n * sizeof *p->donor, "the donors");
    p->place = acf_alloc((D + 4) * n * sizeof *p->place, "the donors");
    p->log = acf_alloc(5 * (2 * D + 1) * sizeof *p->log, "the donors");
    p->held = acf_alloc_zero(D, "the donors");
    if (!p->donor || !p->place || !p->log || !p->held) return ACF_EMEMORY;
    p->cost = p->place + D * n, p->weight = p->cost + n, p->push = p->weight + n, p->predicted = p->push + n;
    p->mean = p->log + 2 * D + 1, p->first = p->mean + 2 * D + 1, p->second = p->first + 2 * D + 1,
    p->slope = p->second + 2 * D + 1;
    return ACF_OK;
}

static void close_learner(learner *p) {
    acf_release(p->donor), acf_release(p->place), acf_release(p->log), acf_release(p->held);
}

acf_status acf_donors_learn(acf_donors *m, const acf_table *t, const acf_holdout *hold, int threads) {
    const int n = (int)acf_max(acf_min(threads, m->D), 1);
    learner *p = acf_alloc_zero((size_t)n * sizeof *p, "the donors");
    acf_status status = p ? ACF_OK : ACF_EMEMORY;
    for (int k = 0; !status && k < n; k++) status = open_learner(&p[k], m, t, hold);
    if (!status) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(n)
        for (int64_t j = 0; j < m->D; j++) learn_column(&p[omp_get_thread_num()], j);
    }
    for (int k = 0; p && k < n; k++) close_learner(&p[k]);
    acf_release(p);
    return status;
}
