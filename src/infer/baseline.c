/* Column means and chained linear regressions: see baseline.h.
 *
 * z (N,E) holds the completed table as predictors: a standardised number, or an indicator for each kept class of a
 * column. The sweeps fill in its missing cells. Those of a class hold probabilities during prediction, 0 and 1
 * during draws. */
#include "infer/baseline.h"

#include "base/rng.h"
#include "infer/metrics.h"
#include "infer/regress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FIT_ROWS 20000
#define PREDICTORS 100
#define INDICATORS 30
#define SWEEPS 10             /* most sweeps of predictions */
#define SETTLED 0.01          /* change of a standardised number, or of a probability, that ends them */
#define WARM_UP 5             /* burn-in: sweeps of draws, with refitting, before the first draw */
#define THIN 2                /* sweeps from one draw to the next */
#define DONORS 5              /* cells with close predictions that a number is drawn from */
#define CORRELATED 2000       /* rows used to rank predictors by correlation */
#define FIRST_PASSES 6        /* Newton passes of a column's first fit; later fits start from the previous one */
#define CHUNK 512             /* rows predicted at a time */
#define POSTERIOR 0x80000000u /* added to the column in the counter of random numbers that belong to no cell */
#define TIED 0x40000000u      /* likewise for the choice between donors at equal distance */
#define TIE 1e-9              /* largest rounding difference of equal predictions, standardised */

/* A column as a predictor and as a target. */
typedef struct target {
    int64_t at, width;  /* its columns of z; width 0: it is constant */
    double mean, scale; /* of a number's observed cells */
    double low, high;   /* of the observed cells, standardised: bounds of predictions */
    int32_t *code;      /* (width) the class of each indicator, the most frequent first */
    int32_t *slot;      /* (classes) the indicator of each class, -1: none */
    double *share;      /* (classes) of the observed cells */
    double kept;        /* sum of the shares of classes with an indicator */
    int64_t n_missing, n_fit;
    int64_t *missing_row, *fit; /* rows where it is missing; observed rows to fit to */
    int64_t P;
    int32_t *from;   /* (P) columns of z that it is predicted from */
    acf_ridge ridge; /* of a number */
    acf_logit logit; /* of a class; P + 1 columns, the last of ones */
    bool fitted;
} target;

struct acf_baseline {
    const acf_table *t;
    uint64_t seed;
    acf_arena *memory, *scratch;
    target *target;         /* (D) */
    int64_t *turn, n_turns; /* non-constant columns with missing cells, fewest missing first */
    int64_t E;
    double *z;             /* (N,E) */
    double *point, *drawn; /* (N,D) the completed table, and the current draw */
    double *rows, *answer; /* (CHUNK,PREDICTORS+1) and (CHUNK,INDICATORS): scratch of predictions */
    uint32_t sweep;        /* sweeps of draws so far: part of the random counter */
};

static bool is_class(const acf_baseline *b, int64_t j) { return b->t->column[j].classes > 0; }

static void *allocate(acf_arena *a, int64_t n, size_t size) {
    size_t bytes;
    return acf_bytes(n, size, &bytes) ? acf_arena_alloc(a, bytes) : NULL;
}

/* ---- column means ------------------------------------------------------------------------------------------------ */

/* A running mean, so that large values do not overflow. */
static double mean_of(const acf_table *t, int64_t j) {
    double mean = 0, n = 0;
    for (int64_t i = 0; i < t->N; i++) {
        double v = acf_table_row(t, i)[j];
        if (acf_table_present(v)) n++, mean += v / n - mean / n;
    }
    return mean;
}

/* count (classes): observed cells of each class. Returns the most frequent one, the lowest of equals. */
static int64_t count_classes(const acf_table *t, int64_t j, int64_t *count) {
    int64_t C = t->column[j].classes, most = 0;
    memset(count, 0, (size_t)C * sizeof *count);
    for (int64_t i = 0; i < t->N; i++) {
        double v = acf_table_row(t, i)[j];
        if (acf_table_present(v)) count[(int64_t)v]++;
    }
    for (int64_t c = 1; c < C; c++)
        if (count[c] > count[most]) most = c;
    return most;
}

acf_status acf_baseline_mean(const acf_table *t, double *out) {
    int64_t classes = 1;
    for (int64_t j = 0; j < t->D; j++) classes = acf_max(classes, t->column[j].classes);
    int64_t *count = acf_alloc((size_t)classes * sizeof *count, "counts of classes");
    if (!count) return ACF_EMEMORY;
    for (int64_t j = 0; j < t->D; j++) {
        double value = t->column[j].classes ? (double)count_classes(t, j, count) : mean_of(t, j);
        for (int64_t i = 0; i < t->N; i++) {
            double v = acf_table_row(t, i)[j];
            out[i * t->D + j] = acf_table_present(v) ? v : value;
        }
    }
    acf_release(count);
    return ACF_OK;
}

/* ---- columns as predictors --------------------------------------------------------------------------------------- */

static void describe_number(const acf_baseline *b, target *g, int64_t j) {
    g->mean = mean_of(b->t, j);
    g->scale = acf_metric_scale(b->t->x + j, b->t->N, b->t->D);
    g->width = g->scale > 0 && isfinite(g->scale);
    g->low = INFINITY, g->high = -INFINITY;
    for (int64_t i = 0; g->width && i < b->t->N; i++) {
        double v = (acf_table_row(b->t, i)[j] - g->mean) / g->scale;
        g->low = fmin(g->low, v), g->high = fmax(g->high, v); /* NaN loses */
    }
}

/* Order: the more frequent class first, of equals the lower. */
typedef struct ranked {
    int64_t count;
    int32_t class;
} ranked;

static int by_count(const void *p, const void *q) {
    const ranked *a = p, *b = q;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    return (a->class > b->class) - (a->class < b->class);
}

/* Makes indicators for observed classes, up to a limit; none if only one class is observed. */
static acf_status describe_class(acf_baseline *b, target *g, int64_t j) {
    int64_t C = b->t->column[j].classes, seen = 0, n = 0;
    acf_mark mark = acf_arena_mark(b->scratch);
    int64_t *count = allocate(b->scratch, C, sizeof *count);
    ranked *rank = allocate(b->scratch, C, sizeof *rank);
    g->slot = allocate(b->memory, C, sizeof *g->slot);
    g->code = allocate(b->memory, INDICATORS, sizeof *g->code);
    g->share = allocate(b->memory, C, sizeof *g->share);
    if (!count || !rank || !g->slot || !g->code || !g->share) return ACF_EMEMORY;
    g->code[0] = (int32_t)count_classes(b->t, j, count);
    for (int64_t c = 0; c < C; c++) rank[c] = (ranked){count[c], (int32_t)c}, n += count[c], seen += count[c] > 0;
    qsort(rank, (size_t)C, sizeof *rank, by_count);
    for (int64_t c = 0; c < C; c++) g->slot[c] = -1, g->share[c] = (double)count[c] / (double)acf_max(n, 1);
    g->width = seen < 2 ? 0 : acf_min(seen, INDICATORS);
    for (int64_t k = 0; k < g->width; k++) {
        g->code[k] = rank[k].class, g->slot[rank[k].class] = (int32_t)k;
        g->kept += g->share[rank[k].class];
    }
    acf_arena_release(b->scratch, mark);
    return ACF_OK;
}

/* Lists the rows with missing cells, and the observed ones to fit to: all, or FIT_ROWS evenly spaced. */
static acf_status list_rows(acf_baseline *b, target *g, int64_t j) {
    int64_t N = b->t->N, D = b->t->D, missing = 0, seen = 0;
    for (int64_t i = 0; i < N; i++) g->n_missing += !acf_table_present(b->t->x[i * D + j]);
    int64_t observed = N - g->n_missing;
    g->n_fit = acf_min(observed, FIT_ROWS);
    g->missing_row = allocate(b->memory, g->n_missing, sizeof *g->missing_row);
    g->fit = allocate(b->memory, g->n_fit, sizeof *g->fit);
    if (!g->missing_row || !g->fit) return ACF_EMEMORY;
    for (int64_t i = 0, fit = 0; i < N; i++) {
        if (!acf_table_present(b->t->x[i * D + j])) {
            g->missing_row[missing++] = i;
            continue;
        }
        if (fit < g->n_fit && seen * g->n_fit >= fit * observed) g->fit[fit++] = i;
        seen++;
    }
    return ACF_OK;
}

/* Writes observed cells as predictors; missing cells take the mean: 0 for a number, its share for a class. */
static void encode(acf_baseline *b, const target *g, int64_t j) {
    for (int64_t i = 0; i < b->t->N; i++) {
        double v = b->t->x[i * b->t->D + j], *z = b->z + i * b->E + g->at;
        bool present = acf_table_present(v);
        if (!is_class(b, j)) {
            if (g->width) z[0] = present ? (v - g->mean) / g->scale : 0;
            continue;
        }
        for (int64_t k = 0; k < g->width; k++)
            z[k] = present ? (double)(g->slot[(int64_t)v] == k) : g->share[g->code[k]];
    }
}

/* ---- which predictors -------------------------------------------------------------------------------------------- */

typedef struct candidate {
    double score;
    int32_t column; /* of z */
} candidate;

static int by_score(const void *p, const void *q) {
    const candidate *a = p, *b = q;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    return (a->column > b->column) - (a->column < b->column);
}

static int by_column(const void *p, const void *q) {
    int32_t a = *(const int32_t *)p, b = *(const int32_t *)q;
    return (a > b) - (a < b);
}

/* Correlation of two columns of z over rows of g, evenly spaced; 0 if one of them is constant. */
static double correlation(const acf_baseline *b, const target *g, int64_t p, int64_t q) {
    int64_t n = acf_min(g->n_fit, CORRELATED);
    double mp = 0, mq = 0, pp = 0, qq = 0, pq = 0;
    for (int64_t i = 0; i < n; i++) {
        const double *z = b->z + g->fit[i * g->n_fit / n] * b->E;
        mp += z[p], mq += z[q], pp += z[p] * z[p], qq += z[q] * z[q], pq += z[p] * z[q];
    }
    double vp = pp - mp * mp / (double)n, vq = qq - mq * mq / (double)n, c = pq - mp * mq / (double)n;
    return vp > 0 && vq > 0 ? c / sqrt(vp * vq) : 0;
}

/* Chooses all other columns of z, or the PREDICTORS with the largest correlation. */
static acf_status choose_predictors(acf_baseline *b, target *g) {
    acf_mark mark = acf_arena_mark(b->scratch);
    int64_t n = 0, others = b->E - g->width;
    candidate *list = allocate(b->scratch, b->E, sizeof *list);
    g->P = acf_min(others, PREDICTORS);
    g->from = allocate(b->memory, g->P, sizeof *g->from);
    if (!list || !g->from) return ACF_EMEMORY;
    for (int64_t e = 0; e < b->E; e++) {
        if (e >= g->at && e < g->at + g->width) continue;
        list[n] = (candidate){0, (int32_t)e};
        for (int64_t k = 0; others > g->P && k < g->width; k++)
            list[n].score = fmax(list[n].score, fabs(correlation(b, g, g->at + k, e)));
        n++;
    }
    qsort(list, (size_t)n, sizeof *list, by_score);
    for (int64_t p = 0; p < g->P; p++) g->from[p] = list[p].column;
    qsort(g->from, (size_t)g->P, sizeof *g->from, by_column);
    acf_arena_release(b->scratch, mark);
    return ACF_OK;
}

static acf_status create_model(acf_baseline *b, target *g, int64_t j) {
    ACF_TRY(choose_predictors(b, g));
    if (!is_class(b, j)) return acf_ridge_create(b->memory, g->P, &g->ridge);
    g->logit = (acf_logit){
        .P = g->P + 1, .K = g->width, .base = 0, .coef = allocate(b->memory, (g->P + 1) * g->width, sizeof(double))};
    if (!g->logit.coef) return ACF_EMEMORY;
    memset(g->logit.coef, 0, (size_t)(g->logit.P * g->logit.K) * sizeof *g->logit.coef);
    return ACF_OK;
}

/* ---- fits and predictions ---------------------------------------------------------------------------------------- */

/* out (n,P) or, for a class, (n,P+1): predictors of these rows. */
static void gather(const acf_baseline *b, const target *g, bool ones, const int64_t *row, int64_t n, double *out) {
    int64_t width = g->P + ones;
    for (int64_t i = 0; i < n; i++) {
        const double *z = b->z + row[i] * b->E;
        for (int64_t p = 0; p < g->P; p++) out[i * width + p] = z[g->from[p]];
        if (ones) out[i * width + g->P] = 1;
    }
}

/* Fits a class. Rows of classes without an indicator are left out. */
static acf_status fit_class(acf_baseline *b, target *g, int64_t j, double *x, int32_t *y, int64_t *row) {
    int64_t n = 0;
    for (int64_t i = 0; i < g->n_fit; i++) {
        int32_t slot = g->slot[(int64_t)acf_table_row(b->t, g->fit[i])[j]];
        if (slot >= 0) y[n] = slot, row[n++] = g->fit[i];
    }
    gather(b, g, true, row, n, x);
    ACF_TRY(acf_logit_fit(b->scratch, &g->logit, x, y, n, g->fitted ? 1 : FIRST_PASSES));
    g->fitted = true;
    return ACF_OK;
}

static acf_status fit(acf_baseline *b, int64_t j) {
    target *g = &b->target[j];
    acf_mark mark = acf_arena_mark(b->scratch);
    acf_status status = ACF_EMEMORY;
    double *x = allocate(b->scratch, g->n_fit, (size_t)(g->P + 1) * sizeof *x);
    double *y = allocate(b->scratch, g->n_fit, sizeof *y);
    int64_t *row = allocate(b->scratch, g->n_fit, sizeof *row);
    if (x && y && row && is_class(b, j)) {
        status = fit_class(b, g, j, x, (int32_t *)y, row);
    } else if (x && y && row) {
        for (int64_t i = 0; i < g->n_fit; i++) y[i] = b->z[g->fit[i] * b->E + g->at];
        gather(b, g, false, g->fit, g->n_fit, x);
        status = acf_ridge_fit(b->scratch, &g->ridge, x, y, g->n_fit);
    }
    acf_arena_release(b->scratch, mark);
    return status;
}

/* Writes a value of z; returns its change. */
static double put(double *z, double value) {
    double moved = fabs(value - *z);
    *z = value;
    return moved;
}

/* Writes predictions to the missing cells of column j. Returns the largest change. */
static double predict(acf_baseline *b, int64_t j) {
    const target *g = &b->target[j];
    double moved = 0;
    for (int64_t from = 0; from < g->n_missing; from += CHUNK) {
        int64_t n = acf_min(CHUNK, g->n_missing - from);
        gather(b, g, is_class(b, j), g->missing_row + from, n, b->rows);
        if (is_class(b, j))
            acf_logit_predict(&g->logit, b->rows, n, b->answer);
        else
            acf_ridge_predict(g->ridge.coef, g->ridge.bias, b->rows, n, g->P, b->answer);
        for (int64_t i = 0; i < n; i++) {
            double *z = b->z + g->missing_row[from + i] * b->E + g->at, *a = b->answer + i * g->width;
            if (!is_class(b, j)) *a = fmin(fmax(*a, g->low), g->high);
            for (int64_t k = 0; k < g->width; k++) moved = fmax(moved, put(z + k, a[k]));
        }
    }
    return moved;
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

static acf_rng_counter counter_at(const acf_baseline *b, uint64_t row, int64_t column) {
    return (acf_rng_counter){b->seed, row, ACF_STREAM_BASELINE, (uint32_t)column, b->sweep};
}

/* Writes a drawn cell to the table and to z. */
static void take(acf_baseline *b, int64_t row, int64_t j, double value) {
    const target *g = &b->target[j];
    double *z = b->z + row * b->E + g->at;
    b->drawn[row * b->t->D + j] = value;
    if (!is_class(b, j))
        *z = (value - g->mean) / g->scale;
    else
        for (int64_t k = 0; k < g->width; k++) z[k] = g->code[k] == (int32_t)value;
}

typedef struct donor {
    double prediction;
    int64_t row;
} donor;

static int by_prediction(const void *p, const void *q) {
    const donor *a = p, *b = q;
    if (a->prediction != b->prediction) return a->prediction < b->prediction ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* DONORS neighbours from `begin` on, and the donors that tie with them: [first,end) of the sorted donors, of which
 * [near,far) are strictly closer. The others are all donors at the distance of the last neighbour, on both sides. If
 * no predictor varies, all donors tie. */
typedef struct neighbours {
    int64_t begin, first, near, far, end;
} neighbours;

/* Index of the first of n sorted donors whose prediction is not below v. */
static int64_t from_on(const donor *d, int64_t n, double v) {
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (d[mid].prediction < v)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static neighbours nearest(const donor *d, int64_t n, double v) {
    int64_t first = from_on(d, n, v), end = first; /* [first,end) grows towards the closer side */
    while (end - first < DONORS && end - first < n) {
        if (end == n || (first > 0 && v - d[first - 1].prediction <= d[end].prediction - v))
            first--;
        else
            end++;
    }
    const double most = fmax(v - d[first].prediction, d[end - 1].prediction - v);
    neighbours w = {first, from_on(d, n, v - most - TIE), from_on(d, n, v - most + TIE), from_on(d, n, v + most - TIE),
                    from_on(d, n, v + most + TIE)};
    w.far = acf_max(w.near, w.far);
    return w;
}

/* Draws one of the neighbours among n donors with equal probability. If it is one of the ties, draws again among all
 * ties. */
static int64_t draw_donor(const acf_baseline *b, neighbours w, int64_t n, uint64_t row, int64_t j) {
    const int64_t closer = w.far - w.near;
    int64_t pick = w.begin + acf_rng_below(counter_at(b, row, j), acf_min(DONORS, n));
    if (pick >= w.near && pick < w.far) return pick;
    pick = w.first + acf_rng_below(counter_at(b, row, j + TIED), w.end - w.first - closer);
    return pick < w.near ? pick : pick + closer;
}

static void predict_donors(acf_baseline *b, const target *g, donor *d) {
    for (int64_t from = 0; from < g->n_fit; from += CHUNK) {
        int64_t n = acf_min(CHUNK, g->n_fit - from);
        gather(b, g, false, g->fit + from, n, b->rows);
        acf_ridge_predict(g->ridge.coef, g->ridge.bias, b->rows, n, g->P, b->answer);
        for (int64_t i = 0; i < n; i++) d[from + i] = (donor){b->answer[i], g->fit[from + i]};
    }
    qsort(d, (size_t)g->n_fit, sizeof *d, by_prediction);
}

/* Predictive mean matching. Coefficients drawn from their posterior predict missing cells, the fitted ones predict
 * observed cells. A missing cell takes the value of one of the observed cells with the closest predictions. */
static acf_status draw_number(acf_baseline *b, int64_t j) {
    const target *g = &b->target[j];
    acf_mark mark = acf_arena_mark(b->scratch);
    donor *d = allocate(b->scratch, g->n_fit, sizeof *d);
    double *normal = allocate(b->scratch, g->P, sizeof *normal), *coef = allocate(b->scratch, g->P, sizeof *coef), bias;
    if (!d || !normal || !coef) return ACF_EMEMORY;
    for (int64_t p = 0; p < g->P; p++) normal[p] = acf_rng_normal(counter_at(b, (uint64_t)p, j + POSTERIOR));
    acf_ridge_posterior(&g->ridge, normal, coef, &bias);
    predict_donors(b, g, d);
    for (int64_t from = 0; from < g->n_missing; from += CHUNK) {
        int64_t n = acf_min(CHUNK, g->n_missing - from);
        gather(b, g, false, g->missing_row + from, n, b->rows);
        acf_ridge_predict(coef, bias, b->rows, n, g->P, b->answer);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = g->missing_row[from + i];
            int64_t pick = draw_donor(b, nearest(d, g->n_fit, b->answer[i]), g->n_fit, acf_table_row_id(b->t, row), j);
            take(b, row, j, acf_table_row(b->t, d[pick].row)[j]);
        }
    }
    acf_arena_release(b->scratch, mark);
    return ACF_OK;
}

/* The class at u, 0 < u < 1, of the cumulative probabilities: predicted ones for classes with an indicator, shares
 * for the others. */
static int64_t class_at(const target *g, const double *p, int64_t C, double u) {
    for (int64_t k = 0; k < g->width; k++)
        if ((u -= p[k] * g->kept) < 0) return g->code[k];
    for (int64_t c = 0; c < C; c++)
        if (g->slot[c] < 0 && (u -= g->share[c]) < 0) return c;
    return g->code[0];
}

static void draw_class(acf_baseline *b, int64_t j) {
    const target *g = &b->target[j];
    for (int64_t from = 0; from < g->n_missing; from += CHUNK) {
        int64_t n = acf_min(CHUNK, g->n_missing - from);
        gather(b, g, true, g->missing_row + from, n, b->rows);
        acf_logit_predict(&g->logit, b->rows, n, b->answer);
        for (int64_t i = 0; i < n; i++) {
            int64_t row = g->missing_row[from + i];
            double u = acf_rng_uniform(counter_at(b, acf_table_row_id(b->t, row), j));
            take(b, row, j, (double)class_at(g, b->answer + i * g->width, b->t->column[j].classes, u));
        }
    }
}

/* One sweep over all columns; refit: with new regressions. */
static acf_status draw_sweep(acf_baseline *b, bool refit) {
    for (int64_t k = 0; k < b->n_turns; k++) {
        int64_t j = b->turn[k];
        if (refit) ACF_TRY(fit(b, j));
        if (is_class(b, j))
            draw_class(b, j);
        else
            ACF_TRY(draw_number(b, j));
    }
    b->sweep++;
    return ACF_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* Orders the non-constant columns with missing cells by their number of missing cells. Columns with few are
 * predicted best and help the others most. */
static void order_turns(acf_baseline *b) {
    for (int64_t j = 0; j < b->t->D; j++) {
        if (!b->target[j].width || !b->target[j].n_missing) continue;
        int64_t k = b->n_turns++;
        for (; k > 0 && b->target[b->turn[k - 1]].n_missing > b->target[j].n_missing; k--) b->turn[k] = b->turn[k - 1];
        b->turn[k] = j;
    }
}

static acf_status prepare(acf_baseline *b) {
    int64_t N = b->t->N, D = b->t->D;
    b->target = allocate(b->memory, D, sizeof *b->target);
    b->turn = allocate(b->memory, D, sizeof *b->turn);
    b->rows = allocate(b->memory, CHUNK * (PREDICTORS + 1), sizeof *b->rows);
    b->answer = allocate(b->memory, CHUNK * INDICATORS, sizeof *b->answer);
    b->point = allocate(b->memory, N, (size_t)D * sizeof *b->point);
    if (!b->target || !b->turn || !b->rows || !b->answer || !b->point) return ACF_EMEMORY;
    for (int64_t j = 0; j < D; j++) {
        target *g = &b->target[j];
        *g = (target){.at = b->E};
        if (is_class(b, j))
            ACF_TRY(describe_class(b, g, j));
        else
            describe_number(b, g, j);
        ACF_TRY(list_rows(b, g, j));
        b->E += g->width;
    }
    b->z = allocate(b->memory, N, (size_t)b->E * sizeof *b->z);
    if (!b->z) return ACF_EMEMORY;
    for (int64_t j = 0; j < D; j++) encode(b, &b->target[j], j);
    order_turns(b);
    for (int64_t k = 0; k < b->n_turns; k++) ACF_TRY(create_model(b, &b->target[b->turn[k]], b->turn[k]));
    return ACF_OK;
}

/* The prediction of a missing cell from z; a constant column has its one value. */
static double decode(const acf_baseline *b, int64_t i, int64_t j) {
    const target *g = &b->target[j];
    const double *z = b->z + i * b->E + g->at;
    if (!is_class(b, j)) return g->width ? g->mean + g->scale * z[0] : g->mean;
    int64_t best = 0;
    for (int64_t k = 1; k < g->width; k++)
        if (z[k] > z[best]) best = k;
    return g->code[best];
}

static acf_status complete(acf_baseline *b) {
    double moved = INFINITY;
    for (int s = 0; s < SWEEPS && moved > SETTLED; s++) {
        moved = 0;
        for (int64_t k = 0; k < b->n_turns; k++) {
            ACF_TRY(fit(b, b->turn[k]));
            moved = fmax(moved, predict(b, b->turn[k]));
        }
    }
    memcpy(b->point, b->t->x, (size_t)(b->t->N * b->t->D) * sizeof *b->point);
    for (int64_t j = 0; j < b->t->D; j++) {
        const target *g = &b->target[j];
        for (int64_t k = 0; k < g->n_missing; k++)
            b->point[g->missing_row[k] * b->t->D + j] = decode(b, g->missing_row[k], j);
    }
    return ACF_OK;
}

acf_status acf_baseline_create(const acf_table *t, uint64_t seed, acf_baseline **out) {
    acf_status status = ACF_OK;
    acf_baseline *b = acf_alloc_zero(sizeof *b, "the linear baseline");
    if (!b) return ACF_EMEMORY;
    b->t = t, b->seed = seed;
    ACF_TRY_DONE(acf_arena_create(&acf_heap, 0, &b->memory));
    ACF_TRY_DONE(acf_arena_create(&acf_heap, 0, &b->scratch));
    ACF_TRY_DONE(prepare(b));
    ACF_TRY_DONE(complete(b));
    *out = b;
done:
    if (status) acf_baseline_free(b);
    return status;
}

void acf_baseline_free(acf_baseline *b) {
    if (!b) return;
    acf_arena_free(b->memory);
    acf_arena_free(b->scratch);
    acf_release(b);
}

void acf_baseline_point(const acf_baseline *b, double *out) {
    memcpy(out, b->point, (size_t)(b->t->N * b->t->D) * sizeof *out);
}

acf_status acf_baseline_draw(acf_baseline *b, double *out) {
    size_t bytes = (size_t)(b->t->N * b->t->D) * sizeof *out;
    int sweeps = THIN;
    if (!b->drawn) {
        double *drawn = acf_arena_alloc(b->memory, bytes);
        if (!drawn) return ACF_EMEMORY;
        b->drawn = memcpy(drawn, b->point, bytes);
        sweeps = WARM_UP;
    }
    for (; sweeps > 0; sweeps--) ACF_TRY(draw_sweep(b, b->sweep < WARM_UP));
    memcpy(out, b->drawn, bytes);
    return ACF_OK;
}
