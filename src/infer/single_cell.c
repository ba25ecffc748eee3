/* Means and intervals of single cells, each by its own conditional p(x_j | x_o): see session.h.
 *
 * A row of a batch has one target cell; other targets of its row count as missing. For a number, each ensemble
 * member gives ACF_MEAN_VALUES evenly spaced quantiles of its components. The mean is that of the values under the
 * fitted parameters. The interval uses the values of all members, those of the parameter draws and the donors'
 * values, by weight. This is the whole distribution; nothing is random (docs/math.md, 11).
 *
 * Workload: 1e3 to 1e5 cells. Networks and donor searches take about half of the time each; the interval of a cell,
 * from a few hundred sorted values, takes a tenth. */
#include "infer/session_parts.h"

#include "device/cpu.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* What intervals need in addition to means. */
typedef struct span {
    double level;
    double *low, *high;       /* (N,D) */
    const acf_shared *shared; /* (D) shared values; NULL: every repeated value is shared */
    double *value;            /* (rows, K·ACF_MEAN_VALUES) of the networks */
    acf_weighted *weighted;   /* (threads) all values of one cell */
} span;

static bool is_category(const acf_session *s, int32_t j) { return s->m->encoder->column[j].classes > 0; }

/* ---- members ----------------------------------------------------------------------------------------------------- */

/* Adds number i of the batch by member k: its part of the mean; its values of the interval. */
static void add_number(acf_session *s, int k, const acf_real *drawn, const span *w, int64_t i) {
    const acf_encoder *e = s->member[k]->m->encoder;
    const int32_t j = s->column[i];
    const acf_real *value = s->member[k]->cell_values + i * ACF_MEAN_VALUES;
    double sum = 0;
    for (int v = 0; v < ACF_MEAN_VALUES; v++) sum += acf_decode(e, j, value[v]) / ACF_MEAN_VALUES;
    s->each[i] += sum / s->K;
    if (!w) return;
    double *to = w->value + (i * s->K + k) * ACF_MEAN_VALUES;
    for (int v = 0; v < ACF_MEAN_VALUES; v++) to[v] = acf_decode(e, j, drawn[i * ACF_MEAN_VALUES + v]);
}

/* Adds the n loaded cells by member k: to each (n) the K-th part of a mean; to mixed (n,M) class probabilities. A
 * single member gives the most probable class itself. w NULL: no intervals. */
static acf_status add_member(acf_session *s, int k, int64_t n, const span *w) {
    acf_member *one = s->member[k];
    const int64_t M = acf_session_classes(s);
    const acf_real *drawn = NULL;
    bool reals = false, categories = false;
    for (int64_t i = 0; i < n; i++) *(is_category(s, s->column[i]) ? &categories : &reals) = true;
    if (reals) ACF_TRY(acf_member_cell_values(one, w ? &drawn : NULL));
    if (categories && M == 0) ACF_TRY(acf_member_best_class(one, s->probs));
    ACF_PARALLEL_UNEVEN(s->dev, n * ACF_MEAN_VALUES)
    for (int64_t i = 0; i < n; i++) {
        const int32_t j = s->column[i];
        if (!is_category(s, j))
            add_number(s, k, drawn, w, i);
        else if (M == 0)
            s->each[i] = acf_decode(one->m->encoder, j, s->probs[i]);
    }
    if (!categories || M == 0) return ACF_OK;
    ACF_TRY(acf_member_classes(one, s->probs));
    for (int64_t i = 0; i < n; i++) {
        if (!is_category(s, s->column[i])) continue;
        for (int64_t c = 0; c < M; c++) s->mixed[i * M + c] += (double)s->probs[i * M + c];
    }
    return ACF_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* The most probable class of n, of a tie the lowest. The last class counts with the share `last` of its probability.
 * It is written as its most frequent level, and may be probable only because many levels share it. */
static double most_probable(const double *p, int64_t n, double last) {
    int64_t best = 0;
    for (int64_t c = 1; c < n; c++)
        if (p[c] * (c == n - 1 ? last : 1) > p[best]) best = c;
    return (double)best;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The interval of number i of the batch. The donors that this thread found last have the weight h. */
static acf_interval interval_of(acf_session *s, const span *w, int64_t i, double h) {
    const int64_t n = s->K * ACF_MEAN_VALUES, j = s->column[i];
    acf_weighted *d = &w->weighted[omp_get_thread_num()];
    double *value = w->value + i * n;
    d->n = 0;
    if (h > 0) acf_donor_answers_distribution(s->donor_answers, j, h, d);
    qsort(value, (size_t)n, sizeof *value, ascending);
    acf_weighted_add(d, value, n, (1 - h) / (double)n);
    return acf_interval_of_weighted(d, w->level, w->shared ? &w->shared[j] : NULL);
}

/* Completes cell i of the batch, after all members have answered. */
static void finish_cell(acf_session *s, const acf_table *t, acf_query q, int64_t i, double *out, const span *w) {
    const int32_t j = s->column[i];
    const int64_t M = acf_session_classes(s), cell = s->row[i] * t->D + j;
    double *probs = s->mixed + i * M, h = 0;
    if (s->donor_answers) h = acf_donor_answers_mean(s->donor_answers, t, q, s->row[i], j, s->K, &s->each[i], probs);
    const double last = s->top_level_share ? s->top_level_share[j] : 1;
    const bool by_classes = M && is_category(s, j);
    out[cell] = by_classes ? most_probable(probs, s->m->encoder->column[j].classes, last) : s->each[i];
    if (!w || is_category(s, j)) return;
    const acf_interval in = interval_of(s, w, i, h);
    w->low[cell] = in.low, w->high[cell] = in.high;
}

/* Answers the n cells (s->row, s->column). */
static acf_status ask_cells(acf_session *s, const acf_table *t, acf_query q, int64_t n, double *out, const span *w) {
    if (n == 0) return ACF_OK;
    memset(s->each, 0, (size_t)n * sizeof *s->each);
    memset(s->mixed, 0, (size_t)(n * acf_session_classes(s)) * sizeof *s->mixed);
    for (int k = 0; k < s->K; k++) {
        acf_member_load_cells(s->member[k], t, q, s->row, s->column, n);
        ACF_TRY(add_member(s, k, n, w));
    }
    ACF_PARALLEL_UNEVEN(s->dev, s->donor_answers ? n * s->m->donors->N : n * ACF_MEAN_VALUES)
    for (int64_t i = 0; i < n; i++) finish_cell(s, t, q, i, out, w);
    return ACF_OK;
}

static acf_status ask_table(acf_session *s, const acf_table *t, acf_query q, double *out, const span *w) {
    ACF_TRY(acf_encoder_check(s->m->encoder, t));
    int64_t n = 0;
    for (int64_t cell = 0; cell < t->N * t->D; cell++) {
        out[cell] = t->x[cell];
        if (w) w->low[cell] = w->high[cell] = (double)NAN;
        if (!acf_query_asks(q, ACF_TO_FILL, cell, acf_table_present(t->x[cell]))) continue;
        s->row[n] = cell / t->D, s->column[n] = (int32_t)(cell % t->D), n++;
        if (n < s->rows) continue;
        ACF_TRY(ask_cells(s, t, q, n, out, w));
        n = 0;
    }
    return ask_cells(s, t, q, n, out, w);
}

acf_status acf_session_query_mean(acf_session *s, const acf_table *t, acf_query q, double *out) {
    return ask_table(s, t, q, out, NULL);
}

/* ---- intervals --------------------------------------------------------------------------------------------------- */

/* Values that cells of column j share, from the stored rows. */
static void share_values(const acf_donors *a, int64_t j, acf_shared *out) {
    int64_t cells = 0;
    for (int64_t i = 0; i < a->N; i++) cells += a->code[j * a->N + i] >= 0;
    for (int64_t k = a->first[j]; k < a->first[j + 1]; k++)
        acf_shared_count(out, a->value[k], llround(a->share[k] * (double)cells), cells);
}

/* Allocates memory for a batch and for every thread, in one block. */
static acf_status open_weighted(const acf_session *s, span *w) {
    const int64_t values = s->K * ACF_MEAN_VALUES,
                  donors = s->donor_answers ? acf_donor_answers_capacity(s->donor_answers) : 0;
    const int64_t capacity = values + donors, threads = acf_max(s->dev->threads, 1);
    size_t bytes;
    w->weighted = acf_alloc_zero((size_t)threads * sizeof *w->weighted, "intervals");
    if (!w->weighted || !acf_bytes(2 * threads * capacity + s->rows * values, sizeof *w->value, &bytes))
        return ACF_EMEMORY;
    w->value = acf_alloc(bytes, "intervals");
    if (!w->value) return ACF_EMEMORY;
    for (int64_t k = 0; k < threads; k++) {
        w->weighted[k].value = w->value + s->rows * values + 2 * k * capacity;
        w->weighted[k].weight = w->weighted[k].value + capacity;
    }
    return ACF_OK;
}

acf_status acf_session_query_interval(acf_session *s, const acf_table *t, acf_query q, double level, double *mean,
                                      double *low, double *high) {
    if (!(level > 0 && level < 1))
        return acf_fail(ACF_EUSAGE, "an interval of level %g; expected a number between 0 and 1", level);
    const acf_donors *a = s->m->donors; /* donors know which of their values are shared */
    const size_t cells = (size_t)(t->N * t->D) + 1;
    span w = {.level = level, .low = low, .high = high};
    acf_shared *shared = a ? acf_alloc_zero((size_t)a->D * sizeof *shared, "intervals") : NULL;
    double *out = mean ? mean : acf_alloc(cells * sizeof *out, "intervals");
    acf_status status = out && (shared || !a) ? open_weighted(s, &w) : ACF_EMEMORY;
    for (int64_t j = 0; !status && a && j < a->D; j++) share_values(a, j, &shared[j]);
    w.shared = shared;
    if (!status) status = ask_table(s, t, q, out, &w);
    if (!mean) acf_release(out);
    acf_release(shared), acf_release(w.value), acf_release(w.weighted);
    return status;
}
