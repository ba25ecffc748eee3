/* Surprisal of cells: how far they are in the tails of their conditionals. See session.h and docs/math.md, 19.
 *
 *     surprisal = -log P(a cell at least as far out as this one | the rest of the row)
 *
 * It processes a batch of rows and one column at a time. For a class the tail is a sum over classes. For a number it
 * is computed from ACF_MEAN_VALUES values of every member's conditional and DONORS values of the donors, by their
 * weights. Beyond the 5 % and 95 % quantiles the tails are exponential.
 *
 * A wrong given cell makes right cells improbable. So if a cell's tail probability is below 1 %, the most surprising
 * cells of its row are tried: the row is scored without each of them. The one whose absence explains most is
 * withheld from the others; then the next one. Few rows are scored twice. Nothing is random. */
#include "infer/session_parts.h"

#include "base/rng.h"
#include "device/cpu.h"
#include "table/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DONORS = 32 };
#define DOUBTFUL 4.605170186 /* nats, log 100: cells above it may be withheld */
#define WITHHELD_MAX 3       /* most cells withheld in a row */
#define TRIALS 3             /* cells tried for each of them, the most surprising */
#define LEVEL 0.05           /* quantiles beyond which tails are exponential */
#define SEEN 0.02            /* a tail holding this share of the values is at least as probable as they say */
#define LEAST_SPREAD 1e-3    /* least deviation of a conditional, in deviations of the column */
#define LINEAR 3.0           /* deviations around a column's mean within which numbers are compared on a linear scale */
#define FAR_OUT 1e150        /* deviations: all numbers beyond are equal */

typedef struct point {
    double at, weight;
} point;

/* A row to score, and one more of its cells to withhold; -1: none. */
typedef struct item {
    int64_t row, trial;
} item;

typedef struct work {
    acf_session *s;
    const acf_table *t;
    acf_table part;  /* rows of the batch */
    double *x;       /* (rows,D) their cells, without withheld ones */
    uint64_t *id;    /* (rows) */
    uint8_t *target; /* (rows,D) the current column */
    double *lp;      /* (rows) log p of the cells by the networks */
    double *out;     /* (rows) surprisals of a column */
    point *points;   /* (rows, points) values of the conditional, on the scale of curve() */
    acf_real *probs; /* (rows,M) class probabilities of one member, and their sum over members: */
    double *mixed;
    item *pending;     /* rows to score: (N), or (TRIED·N) */
    uint8_t *withheld; /* (N,D) cells that are withheld from the others of their row */
    int64_t M, K;      /* classes; values of the networks */
    double *logp, *surprisal;
} work;

static acf_status open_work(work *w, acf_session *s, const acf_table *t, double *logp, double *surprisal) {
    const int64_t rows = s->rows, D = t->D;
    *w = (work){.s = s,
                .t = t,
                .part = *t,
                .M = acf_net_classes(s->m->net),
                .K = s->K * ACF_MEAN_VALUES,
                .logp = logp,
                .surprisal = surprisal};
    const struct {
        void *to;
        int64_t n;
        size_t size;
    } list[] = {{&w->x, rows * D, sizeof *w->x},
                {&w->id, rows, sizeof *w->id},
                {&w->target, rows * D, 1},
                {&w->lp, rows, sizeof *w->lp},
                {&w->out, rows, sizeof *w->out},
                {&w->points, rows * (w->K + DONORS), sizeof *w->points},
                {&w->probs, rows * (w->M + 1), sizeof *w->probs},
                {&w->mixed, rows * (w->M + 1), sizeof *w->mixed},
                {&w->pending, TRIALS * t->N + 1, sizeof *w->pending},
                {&w->withheld, t->N * D + 1, 1}};
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        size_t bytes;
        void *p = acf_bytes(list[k].n, list[k].size, &bytes) ? acf_alloc_zero(bytes, "surprisals") : NULL;
        if (!p) return ACF_EMEMORY;
        memcpy(list[k].to, &p, sizeof p);
    }
    w->part.x = w->x, w->part.id = w->id;
    return ACF_OK;
}

static void close_work(work *w) {
    acf_release(w->x), acf_release(w->id), acf_release(w->target), acf_release(w->lp), acf_release(w->out),
        acf_release(w->points);
    acf_release(w->probs), acf_release(w->mixed), acf_release(w->pending), acf_release(w->withheld);
}

/* Makes the part: n pending rows from `from` on, with their cells of column j and the cells given to them. */
static void take_part(work *w, int64_t from, int64_t n, int64_t j) {
    const int64_t D = w->t->D;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = w->pending[from + i].row;
        w->id[i] = acf_table_row_id(w->t, row);
        for (int64_t k = 0; k < D; k++) {
            const bool gone = k != j && (w->withheld[row * D + k] || k == w->pending[from + i].trial);
            w->x[i * D + k] = gone ? (double)NAN : acf_table_row(w->t, row)[k], w->target[i * D + k] = k == j;
        }
    }
    w->part.N = n;
}

/* Loads column j of all rows of the part as targets of member k. */
static void load_column(work *w, int k, int64_t j) {
    acf_session *s = w->s;
    const int64_t n = acf_session_take(s, &w->part, 0);
    for (int64_t i = 0; i < n; i++) s->column[i] = (int32_t)j;
    acf_member_load_cells(s->member[k], &w->part, (acf_query){.target = w->target}, s->row, s->column, n);
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

/* -log P(a class that is no more probable than x), of probabilities with the sum `all`. */
static double tail_of_class(const double *p, int32_t classes, double all, int32_t x) {
    double sum = 0;
    for (int32_t c = 0; c < classes; c++) sum += p[c] <= p[x] * (1 + 1e-9) ? p[c] : 0;
    return fmax(-log(fmax(sum / all, 1e-300)), 0);
}

static acf_status ask_class(work *w, int64_t j) {
    acf_session *s = w->s;
    const int64_t n = w->part.N, M = w->M;
    const int32_t classes = s->m->encoder->column[j].classes;
    memset(w->mixed, 0, (size_t)(n * M) * sizeof *w->mixed);
    for (int k = 0; k < s->K; k++) {
        load_column(w, k, j);
        ACF_TRY(acf_member_classes(s->member[k], w->probs));
        for (int64_t c = 0; c < n * M; c++) w->mixed[c] += (double)w->probs[c];
    }
    ACF_PARALLEL_UNEVEN(s->dev, s->donor_answers ? n * s->m->donors->N : n)
    for (int64_t i = 0; i < n; i++) {
        const double x = acf_table_row(&w->part, i)[j];
        double none = 0, *p = w->mixed + i * M;
        if (!acf_table_present(x)) continue;
        if (s->donor_answers)
            acf_donor_answers_mean(s->donor_answers, &w->part, (acf_query){.target = w->target}, i, j, s->K, &none, p);
        w->out[i] = tail_of_class(p, classes, s->K, (int32_t)x);
    }
    return ACF_OK;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* Scale on which values are compared: linear around the column's mean, logarithmic far from it. Otherwise a long
 * tail would take all surprisals. */
static double curve(const acf_encoder *e, int64_t j, double x) {
    const double u = x / e->scale[j] - e->mean[j] / e->scale[j];
    return LINEAR * asinh(fmin(fmax(u, -FAR_OUT), FAR_OUT) / LINEAR);
}

static int by_value(const void *a, const void *b) {
    const double x = ((const point *)a)->at, y = ((const point *)b)->at;
    return (x > y) - (x < y);
}

static double quantile(const point *p, int64_t n, double level) {
    double below = 0;
    for (int64_t k = 0; k < n; k++)
        if ((below += p[k].weight) >= level - 1e-9) return p[k].at;
    return p[n - 1].at;
}

/* -log P(a number at least as far from the median, on either side, as x), of n sorted points whose weights sum to 1. */
static double tail_of_number(const acf_encoder *e, int64_t j, const point *p, int64_t n, double x) {
    const double at = curve(e, j, x), middle = quantile(p, n, 0.5), away = fabs(at - middle);
    const double slope = e->scale[j] * cosh(fmin(fabs(middle) / LINEAR, 700)); /* of the curve's inverse */
    const double step = 0.25 * acf_resolution_step(e->resolution[j]) / slope, least = 1.645 * fmax(step, LEAST_SPREAD);
    const double edge = fabs(quantile(p, n, at > middle ? 1 - LEVEL : LEVEL) - middle);
    const double tail = log(0.5 / LEVEL) * away / fmax(edge, least);
    double beyond = 0;
    for (int64_t k = 0; k < n; k++)
        beyond += (at > middle ? p[k].at >= at - 1e-9 : p[k].at <= at + 1e-9) ? p[k].weight : 0;
    return beyond < SEEN ? tail : fmin(tail, fmax(-log(2 * beyond), 0));
}

/* Appends points of donors, evenly spaced by weight, to those of the networks; returns the number of points. */
static int64_t add_donors(const work *w, int64_t i, int64_t j, point *p) {
    acf_session *s = w->s;
    const double h = s->donor_answers ? acf_donor_answers_look(s->donor_answers, &w->part, i, j) : 0;
    for (int64_t k = 0; k < w->K; k++) p[k].weight = (1 - h) / (double)w->K;
    for (int d = 0; h > 0 && d < DONORS; d++) {
        uint32_t bits[4];
        acf_rng_bits((acf_rng_counter){.row = acf_table_row_id(&w->part, i),
                                       .stream = ACF_STREAM_DONOR_DRAW,
                                       .column = (uint32_t)j,
                                       .draw = (uint32_t)d},
                     bits);
        const double u[3] = {(d + 0.5) / DONORS, ((double)bits[1] + 0.5) / 4294967296.0,
                             ((double)bits[2] + 0.5) / 4294967296.0};
        p[w->K + d] = (point){curve(s->m->encoder, j, acf_donor_answers_value(s->donor_answers, j, u)), h / DONORS};
    }
    return w->K + (h > 0 ? DONORS : 0);
}

static acf_status ask_number(work *w, int64_t j) {
    acf_session *s = w->s;
    const acf_encoder *e = s->m->encoder;
    const int64_t n = w->part.N, capacity = w->K + DONORS;
    for (int k = 0; k < s->K; k++) {
        const acf_member *one = s->member[k];
        load_column(w, k, j);
        ACF_TRY(acf_member_cell_values(s->member[k], NULL));
        for (int64_t v = 0; v < n * ACF_MEAN_VALUES; v++)
            w->points[v / ACF_MEAN_VALUES * capacity + k * ACF_MEAN_VALUES + v % ACF_MEAN_VALUES].at =
                curve(e, j, acf_decode(one->m->encoder, j, one->cell_values[v]));
    }
    ACF_PARALLEL_UNEVEN(s->dev, n * (s->donor_answers ? s->m->donors->N : capacity))
    for (int64_t i = 0; i < n; i++) {
        point *p = w->points + i * capacity;
        if (!acf_table_present(acf_table_row(&w->part, i)[j])) continue;
        const int64_t points = add_donors(w, i, j, p);
        qsort(p, (size_t)points, sizeof *p, by_value);
        w->out[i] = tail_of_number(e, j, p, points, acf_table_row(&w->part, i)[j]);
    }
    return ACF_OK;
}

/* ---- all cells --------------------------------------------------------------------------------------------------- */

/* log p and surprisal of column j of the part, whose first row is pending row `from`: into rows `from` and on of
 * logp and surprisal. */
static acf_status ask_column(work *w, int64_t from, int64_t j, double *logp, double *surprisal) {
    acf_session *s = w->s;
    const int64_t n = acf_session_take(s, &w->part, 0), D = w->t->D;
    ACF_TRY(acf_session_score(s, &w->part, (acf_query){0}, j, n, w->lp));
    ACF_TRY(s->m->encoder->column[j].classes > 0 ? ask_class(w, j) : ask_number(w, j));
    ACF_PARALLEL_UNEVEN(s->dev, s->donor_answers ? n * s->m->donors->N : n)
    for (int64_t i = 0; i < n; i++) {
        const int64_t cell = (from + i) * D + j;
        const bool present = acf_table_present(acf_table_row(&w->part, i)[j]);
        surprisal[cell] = present ? w->out[i] : (double)NAN;
        logp[cell] = present ? w->lp[i] : (double)NAN;
        if (present && s->donor_answers)
            logp[cell] = acf_donor_answers_cell(s->donor_answers, &w->part, i, j, w->lp[i]);
    }
    return ACF_OK;
}

/* Scores all pending rows: a row of logp and surprisal (pending,D) each. */
static acf_status ask_pending(work *w, int64_t pending, double *logp, double *surprisal) {
    for (int64_t from = 0; from < pending; from += w->s->rows)
        for (int64_t j = 0; j < w->t->D; j++) {
            take_part(w, from, acf_min(w->s->rows, pending - from), j);
            ACF_TRY(ask_column(w, from, j, logp, surprisal));
        }
    return ACF_OK;
}

/* The most surprising of a row's given cells with a surprisal below `below`, except column `but`; -1: none.
 * surprisal (D): the row's. */
static int64_t most_surprising(const work *w, int64_t row, const double *surprisal, int64_t but, double below) {
    int64_t most = -1;
    for (int64_t j = 0; j < w->t->D; j++) {
        const bool given =
            j != but && acf_table_present(acf_table_row(w->t, row)[j]) && !w->withheld[row * w->t->D + j];
        if (given && surprisal[j] < below && (most < 0 || surprisal[j] > surprisal[most])) most = j;
    }
    return most;
}

/* Makes the doubtful cells of the row trials, the most surprising first; returns how many. The only given cell of a
 * row is none: no other cell depends on it. */
static int64_t add_trials(work *w, int64_t row, item *to) {
    const double *surprisal = w->surprisal + row * w->t->D;
    double below = (double)INFINITY;
    int64_t n = 0;
    for (int64_t j; n < TRIALS && (j = most_surprising(w, row, surprisal, -1, below)) >= 0 && surprisal[j] > DOUBTFUL;
         n++) {
        to[n] = (item){row, j}, below = surprisal[j];
        if (most_surprising(w, row, surprisal, j, (double)INFINITY) < 0) return 0;
    }
    return n;
}

/* Of n trials of a row the one that explains most: without it, the largest surprisal of the others is least. */
static int64_t best_trial(const work *w, const item *trial, int64_t n, const double *surprisal) {
    double least = (double)INFINITY;
    int64_t best = 0;
    for (int64_t k = 0; k < n; k++) {
        const double *of = surprisal + k * w->t->D;
        const double left = of[most_surprising(w, trial[k].row, of, trial[k].trial, (double)INFINITY)];
        if (left < least) least = left, best = k;
    }
    return best;
}

/* Withholds one more cell in each pending row that has a doubtful cell; these rows are then pending. */
static acf_status withhold(work *w, int64_t *pending) {
    const int64_t D = w->t->D;
    int64_t n = 0, left = 0;
    item *rows = acf_alloc((size_t)(*pending + 1) * sizeof *rows, "surprisals");
    if (!rows) return ACF_EMEMORY;
    memcpy(rows, w->pending, (size_t)*pending * sizeof *rows);
    for (int64_t i = 0; i < *pending; i++) n += add_trials(w, rows[i].row, w->pending + n);
    double *logp = acf_alloc((size_t)(2 * n * D + 1) * sizeof *logp, "surprisals"), *surprisal = logp + n * D;
    acf_status status = logp ? ask_pending(w, n, logp, surprisal) : ACF_EMEMORY;
    for (int64_t i = 0, to; !status && i < n; i = to) {
        const int64_t row = w->pending[i].row;
        for (to = i; to < n && w->pending[to].row == row;) to++;
        const int64_t best = i + best_trial(w, w->pending + i, to - i, surprisal + i * D);
        w->withheld[row * D + w->pending[best].trial] = 1;
        memcpy(w->logp + row * D, logp + best * D, (size_t)D * sizeof *logp);
        memcpy(w->surprisal + row * D, surprisal + best * D, (size_t)D * sizeof *logp);
        w->pending[left++] = (item){row, -1};
    }
    *pending = left;
    acf_release(logp), acf_release(rows);
    return status;
}

static acf_status ask_all(work *w) {
    int64_t pending = w->t->N;
    for (int64_t i = 0; i < pending; i++) w->pending[i] = (item){i, -1};
    ACF_TRY(ask_pending(w, pending, w->logp, w->surprisal));
    for (int round = 0; round < WITHHELD_MAX; round++) ACF_TRY(withhold(w, &pending));
    return ACF_OK;
}

/* An unseen level: none of the n training cells has it. The n+1st cell would be the first, so P = 1/(n+1). */
static void score_unseen_levels(const work *w) {
    const acf_table *t = w->t;
    for (int64_t k = 0; t->file && k < t->file->unseen_levels.n; k++) {
        const int64_t cell = t->file->unseen_levels.cell[k];
        w->surprisal[cell] = log1p((double)w->s->m->encoder->observed[cell % t->D]);
        w->logp[cell] = 0 - w->surprisal[cell];
    }
}

acf_status acf_session_query_surprisal(acf_session *s, const acf_table *t, double *logp, double *surprisal,
                                       uint8_t *given) {
    work w;
    ACF_TRY(acf_encoder_check(s->m->encoder, t));
    acf_status status = open_work(&w, s, t, logp, surprisal);
    if (!status) status = ask_all(&w);
    if (!status) score_unseen_levels(&w);
    for (int64_t c = 0; !status && given && c < t->N * t->D; c++)
        given[c] = acf_table_present(t->x[c]) && !w.withheld[c];
    close_work(&w);
    return status;
}
