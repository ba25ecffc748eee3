/* How far cells are from what was expected of them: see session.h, and docs/math.md, "What looks wrong".
 *
 *     surprise = E log p(X | the rest of the row) - log p(x | the rest of the row),    X as the model expects the cell
 *
 * A batch of rows and a column at a time. E log p of a class is a sum over all classes. Of a number it is a mean over VALUES of its own conditional,
 * evenly spaced in probability, which every member gives a part of and all members score; with an archive, the mean over those and over DONORS of the
 * rows that are looked up, in the shares that both are believed. So a cell costs as much as some 15 scores. Nothing is random. */
#include "infer/session_parts.h"

#include "base/rng.h"
#include "data/frame.h"
#include "device/cpu.h"

#include <math.h>
#include <string.h>

enum { VALUES = 8, DONORS = 4, VALUES_MAX = 2 * ACF_MEMBERS_MAX };

typedef struct work {
    acf_session *s;
    acf_table part;  /* the rows of the batch, numbered from 0 */
    double *x;       /* (rows,D) its cells: in one column at a time other values than they had */
    uint8_t *asked;  /* (rows,D) the column at hand */
    double *at, *lp; /* (VALUES_MAX + DONORS, rows) values of the column, and what the networks say of them */
    double *h;       /* (rows) how far rows that are looked up are believed */
    acf_real *probs; /* (rows,M) classes of one member; and the sum over members: */
    double *mixed;
    double *expected; /* (rows) E log p */
    int64_t M;
} work;

static acf_status open_work(work *w, acf_session *s, const acf_table *t) {
    const int64_t rows = s->rows, D = t->D;
    *w = (work){.s = s, .part = *t, .M = acf_net_classes(s->m->net)};
    const struct {
        void *to;
        int64_t n;
        size_t size;
    } list[] = {{&w->x, D, sizeof *w->x}, {&w->asked, D, 1}, {&w->at, VALUES_MAX + DONORS, sizeof *w->at}, {&w->lp, VALUES_MAX + DONORS, sizeof *w->lp},
                {&w->h, 1, sizeof *w->h}, {&w->probs, w->M + 1, sizeof *w->probs}, {&w->mixed, w->M + 1, sizeof *w->mixed}, {&w->expected, 1, sizeof *w->expected}};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        size_t bytes;
        void *p = acf_bytes(rows * list[k].n, list[k].size, &bytes) ? acf_alloc_zero(bytes, "surprises") : NULL;
        if (!p) return ACF_EMEMORY;
        memcpy(list[k].to, &p, sizeof p);
    }
    w->part.x = w->x;
    return ACF_OK;
}

static void close_work(work *w) {
    acf_release(w->x), acf_release(w->asked), acf_release(w->at), acf_release(w->lp), acf_release(w->h);
    acf_release(w->probs), acf_release(w->mixed), acf_release(w->expected);
}

/* The rows of t from `from` on. */
static void take_part(work *w, const acf_table *t, int64_t from) {
    const int64_t n = acf_min(w->s->rows, t->N - from);
    memcpy(w->x, t->x + from * t->D, (size_t)(n * t->D) * sizeof *w->x);
    w->part.N = n, w->part.first_id = t->first_id + (uint64_t)from, w->part.id = t->id ? t->id + from : NULL;
}

/* Member k is asked for column j of all rows of the part, each given the rest of its row. */
static void load_column(work *w, int k, int64_t j) {
    acf_session *s = w->s;
    const int64_t n = acf_ask_take(s, &w->part, 0), D = w->part.D;
    for (int64_t c = 0; c < n * D; c++) w->asked[c] = c % D == j;
    for (int64_t i = 0; i < n; i++) s->column[i] = (int32_t)j;
    acf_member_load_cells(s->member[k], &w->part, (acf_question){.asked = w->asked}, s->row, s->column, n);
}

/* ---- classes ------------------------------------------------------------------------------------------------------------- */

static acf_status expect_class(work *w, int64_t j) {
    acf_session *s = w->s;
    const int64_t n = w->part.N, M = w->M;
    const int32_t classes = s->m->encoder->column[j].classes;
    memset(w->mixed, 0, (size_t)(n * M) * sizeof *w->mixed);
    for (int k = 0; k < s->K; k++) {
        load_column(w, k, j);
        ACF_TRY(acf_member_classes(s->member[k], w->probs));
        for (int64_t c = 0; c < n * M; c++) w->mixed[c] += (double)w->probs[c];
    }
    ACF_PARALLEL_UNEVEN(s->dev, s->looked_up ? n * s->m->archive->N : n)
    for (int64_t i = 0; i < n; i++) {
        double none = 0, sum = 0, *p = w->mixed + i * M;
        if (s->looked_up) acf_looked_up_mean(s->looked_up, &w->part, (acf_question){.asked = w->asked}, i, j, s->K, &none, p);
        for (int32_t c = 0; c < classes; c++)
            if (p[c] > 0) sum += p[c] / s->K * log(p[c] / s->K);
        w->expected[i] = sum;
    }
    return ACF_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------------- */

/* As many as VALUES and a whole number of times the members. */
static int values_of(const acf_session *s) { return s->K * (int)acf_ceil_div(VALUES, s->K); }

/* Into `at`: of the strata of [0,1] member k has k, k + K, ... */
static acf_status spread_column(work *w, int64_t j) {
    acf_session *s = w->s;
    const int V = values_of(s);
    const int64_t n = w->part.N;
    for (int k = 0; k < s->K; k++) {
        acf_member *one = s->member[k];
        load_column(w, k, j);
        ACF_TRY(acf_member_spread(one));
        for (int v = k; v < V; v += s->K)
            for (int64_t i = 0; i < n; i++)
                w->at[v * n + i] = acf_decode(one->m->encoder, j, one->spread[i * ACF_MEAN_VALUES + (2 * v + 1) * ACF_MEAN_VALUES / (2 * V)]);
    }
    return ACF_OK;
}

/* Behind them: what rows that are looked up give, donors evenly spaced by weight. Is one of them believed at all? */
static bool add_donors(work *w, int64_t j) {
    acf_session *s = w->s;
    const int V = values_of(s);
    const int64_t n = w->part.N;
    bool some = false;
    ACF_PARALLEL_UNEVEN(s->dev, n * s->m->archive->N)
    for (int64_t i = 0; i < n; i++) {
        w->h[i] = acf_looked_up_look(s->looked_up, &w->part, i, j);
        for (int d = 0; d < DONORS; d++) {
            uint32_t bits[4];
            acf_rng_bits((acf_place){.row = acf_tab_id(&w->part, i), .stream = ACF_STREAM_RECALL, .column = (uint32_t)j, .draw = (uint32_t)d}, bits);
            const double u[3] = {(d + 0.5) / DONORS, ((double)bits[1] + 0.5) / 4294967296.0, ((double)bits[2] + 0.5) / 4294967296.0};
            w->at[(V + d) * n + i] = w->h[i] > 0 ? acf_looked_up_value(s->looked_up, j, u) : w->at[i];
        }
    }
    for (int64_t i = 0; i < n; i++) some |= w->h[i] > 0;
    return some;
}

static double mean_of(const double *x, int n, int64_t apart) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += x[k * apart];
    return sum / n;
}

static acf_status expect_number(work *w, int64_t j) {
    acf_session *s = w->s;
    const int V = values_of(s);
    const int64_t n = w->part.N, D = w->part.D;
    ACF_TRY(spread_column(w, j));
    const bool donors = s->looked_up && add_donors(w, j);
    const int all = donors ? V + DONORS : V;
    for (int v = 0; v < all; v++) {
        for (int64_t i = 0; i < n; i++) w->x[i * D + j] = w->at[v * n + i];
        acf_ask_take(s, &w->part, 0);
        ACF_TRY(acf_ask_score(s, &w->part, (acf_question){0}, j, n, w->lp + v * n));
    }
    ACF_PARALLEL_UNEVEN(s->dev, donors ? n * s->m->archive->N : n)
    for (int64_t i = 0; i < n; i++) {
        const double h = donors ? acf_looked_up_look(s->looked_up, &w->part, i, j) : 0;
        for (int v = 0; donors && v < all; v++) w->lp[v * n + i] = acf_looked_up_at(s->looked_up, j, w->at[v * n + i], h, w->lp[v * n + i]);
        w->expected[i] = mean_of(w->lp + i, V, n);
        if (h > 0) w->expected[i] = (1 - h) * w->expected[i] + h * mean_of(w->lp + V * n + i, DONORS, n);
    }
    return ACF_OK;
}

/* ---- all cells ----------------------------------------------------------------------------------------------------------- */

/* A level that none of the n cells had which the model was made from: the n+1st would be the first, so P = 1/(n+1). */
static void score_strangers(const acf_session *s, const acf_table *t, double *logp) {
    for (int64_t k = 0; t->frame && k < t->frame->strangers.n; k++) {
        const int64_t cell = t->frame->strangers.cell[k];
        logp[cell] = -log1p((double)s->m->encoder->observed[cell % t->D]);
    }
}

acf_status acf_ask_surprise(acf_session *s, const acf_table *t, double *logp, double *surprise) {
    work w;
    const int64_t D = t->D;
    ACF_TRY(acf_ask_cells(s, t, logp));
    score_strangers(s, t, logp);
    acf_status status = open_work(&w, s, t);
    for (int64_t from = 0; !status && from < t->N; from += s->rows)
        for (int64_t j = 0; !status && j < D; j++) {
            take_part(&w, t, from);
            status = s->m->encoder->column[j].classes > 0 ? expect_class(&w, j) : expect_number(&w, j);
            for (int64_t i = 0; !status && i < w.part.N; i++) surprise[(from + i) * D + j] = w.expected[i] - logp[(from + i) * D + j];
        }
    close_work(&w);
    return status;
}
