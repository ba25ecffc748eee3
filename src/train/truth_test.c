/* Are the models densities, and are draws from them? For every transformation alone and in chains, all likelihoods, 1
 * to 3 columns, every way to give, query and leave out columns, with random weights and with trained ones:
 *
 *     the conditional density integrates to 1 within 1e-3
 *     draws fall into cells as often as the density says: chi-square, fixed seeds
 *     inverse(forward(x)) = x within 1e-5 (float)
 *     log-determinants are those of numeric Jacobians (double)
 *
 * Integrals use importance sampling: evenly spread points of a logistic density with the draws' mean and covariance,
 * each weighted by density over logistic density. This covers the tails with a few thousand points. The same sum over
 * the points of a cell is the mass that the cell's count of draws is compared with. The choice of points affects only
 * the noise: it cannot make a wrong density pass. */
#include "train/trainer.h"

#include "harness/train_lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLS = 3, DRAWS = 4000, ROWS = 300, CLASSES = 3, CHUNK = 1000 /* points at a time: they fit in the cache */ };

#define CHAIN "linear leaky rnn reverse affine coupling"
#define BOTH(flow)                                                                                                     \
    {flow, "gru", 0}, { flow, "gaussian", 0 }
typedef struct kind {
    const char *flow, *likelihood;
    int gmm; /* components */
} kind;
static const kind kinds[] = {
    BOTH(""),        BOTH("linear"),     BOTH("packed"),      BOTH("lowrank"),    BOTH("leaky"),
    BOTH("rnn"),     BOTH("rnn-shift"),  BOTH("coupling"),    BOTH("affine"),     BOTH(CHAIN),
    {"", "sets", 0}, {CHAIN, "sets", 0}, {"", "gaussian", 3}, {CHAIN, "sets", 3},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- models ---------------------------------------------------------------------------------------------------- */

typedef struct subject {
    acf_train_lab l;
    int D;
    bool mixed; /* column 1 is a category of CLASSES */
    char name[128];
} subject;

/* Two modes, a curved relation, noise: no spikes for a network to fit. */
static acf_table *some_table(int D, bool mixed) {
    static const acf_column columns[COLS] = {{NULL, 0}, {NULL, CLASSES}, {NULL, 0}};
    double x[ROWS * COLS];
    acf_table *t = NULL;
    for (int i = 0; i < ROWS; i++) {
        double n[COLS], *row = x + i * D;
        for (uint32_t k = 0; k < COLS; k++)
            n[k] = acf_rng_normal(
                (acf_rng_counter){.seed = 8, .row = (uint64_t)i, .stream = ACF_STREAM_TEST, .column = k});
        row[0] = (i % 2 ? 1 : -1) + 0.5 * n[0];
        if (D > 1) row[1] = 0.5 * row[0] * row[0] + 0.8 * n[1];
        if (mixed) row[1] = n[1] < -0.3 ? 0 : row[0] < 0 ? 1 : 2;
        if (D > 2) row[2] = row[0] - 0.5 * row[1] + 0.8 * n[2];
    }
    assert_int_equal(acf_table_make(x, NULL, ROWS, D, mixed ? columns : NULL, &t), ACF_OK);
    return t;
}

/* Weights that are neither initial nor trained. The covariances of a mixture stay as fitted: moved at random they would
 * not be positive definite. */
static void shake(acf_params *ps) {
    for (int k = 0; k < ps->n; k++)
        for (int64_t i = 0; strncmp(ps->list[k]->name, "gmm.", 4) != 0 && i < acf_tensor_count(&ps->list[k]->t); i++)
            ps->list[k]->t.data[i] += (acf_real)acf_lab_random(60 + (uint64_t)k, i, -0.2, 0.2);
}

static void open_subject(subject *s, const kind *k, int D, bool mixed, bool trained) {
    char flow[96], likelihood[32], gmm[32];
    snprintf(flow, sizeof flow, "flow=%s", k->flow);
    snprintf(likelihood, sizeof likelihood, "likelihood=%s", k->likelihood);
    snprintf(gmm, sizeof gmm, "gmm=%d", k->gmm);
    snprintf(s->name, sizeof s->name, "%s of %d%s columns, flow '%s'%s, %s", k->likelihood, D, mixed ? " mixed" : "",
             k->flow, k->gmm ? " behind a Gaussian mixture" : "", trained ? "trained" : "random");
    s->D = D, s->mixed = mixed;
    acf_train_lab_open(&s->l, 1,
                       (const char *[]){flow, likelihood, gmm, "mlp-width=6", "coupling-units=4", "likelihood-units=6",
                                        "components=2", "column-embedding=2", "batch=64", "valid=0", "ema=0",
                                        "dropout=0.1", "lr=0.02", NULL});
    acf_train_lab_ready(&s->l, some_table(D, mixed));
    if (!trained) shake(acf_net_params(s->l.net));
    for (int i = 0; trained && i < 60; i++)
        if (acf_trainer_step(s->l.tr, NULL)) fail_msg("%s: %s", s->name, acf_error());
}

static void close_subject(subject *s) { acf_train_lab_close(&s->l); }

static void check_one(void (*check)(subject *), const kind *k, int D, bool mixed, bool trained) {
    subject s;
    open_subject(&s, k, D, mixed, trained);
    check(&s);
    close_subject(&s);
}

/* Every kind for 1 to 3 columns, random and trained; those of CHAIN for mixed tables too. */
static void each_subject(void (*check)(subject *)) {
    for (int k = 0; k < KINDS; k++)
        for (int trained = 0; trained < 2; trained++) {
            for (int D = 1; D <= COLS; D++) check_one(check, &kinds[k], D, false, trained);
            if (strcmp(kinds[k].flow, CHAIN) == 0) check_one(check, &kinds[k], COLS, true, trained);
        }
}

/* ---- one query ------------------------------------------------------------------------------------------------- */

/* A mask says of each column: 0 left out, 1 given, 2 modelled. */
typedef struct query {
    int mask[COLS];
    int n, column[COLS]; /* modelled reals */
    bool category;       /* the category is modelled as well */
} query;

static query question_of(const subject *s, int code) {
    query q = {.n = 0};
    for (int j = 0; j < s->D; j++, code /= 3) {
        q.mask[j] = code % 3;
        if (q.mask[j] != 2) continue;
        if (s->mixed && j == 1)
            q.category = true;
        else
            q.column[q.n++] = j;
    }
    return q;
}

static int questions(int D) { return D == 1 ? 3 : D == 2 ? 9 : 27; }

static void set_cell(const subject *s, acf_batch *b, int64_t i, int j, int mask, acf_real value) {
    int64_t at = i * s->D + j;
    b->m[at] = mask > 0, b->b[at] = mask == 1;
    b->x[at] = mask ? value : (acf_real)NAN;
    b->code[at] = s->mixed && j == 1 && mask ? (int32_t)value : -1;
}

/* N rows with the same query q and the same given values; the category, given or modelled, is this class. */
static acf_batch *rows_asking(const subject *s, const query *q, int64_t N, int class) {
    acf_batch *b = NULL;
    assert_int_equal(acf_batch_create(N, s->D, &b), ACF_OK);
    b->N = N;
    for (int64_t i = 0; i < N; i++) {
        b->id[i] = (uint64_t)i;
        for (int j = 0; j < s->D; j++)
            set_cell(s, b, i, j, q->mask[j],
                     s->mixed && j == 1 ? (acf_real) class : ACF_R(0.4) - ACF_R(0.3) * (acf_real)j);
    }
    return b;
}

/* (DRAWS,D), the modelled cells filled in. */
static void draw(subject *s, const query *q, acf_real *out) {
    acf_tape *t = s->l.tr->tape;
    acf_batch *b = rows_asking(s, q, DRAWS, 1);
    acf_tape_begin(t, false);
    if (acf_net_draw(t, acf_net_view(t, s->l.net, b, NULL), &(acf_draw){.seed = 5}, out))
        fail_msg("%s: %s", s->name, acf_error());
    acf_batch_free(b);
}

/* ---- integrals and cells --------------------------------------------------------------------------------------- */

/* Positions of the points: x = mean + factor · t, each t logistic. */
typedef struct cloud {
    double mean[COLS], factor[COLS][COLS];
} cloud;

#define LOGISTIC 0.75 /* its scale: a deviation of 1.36, so that tails are covered */

static cloud cloud_of(const acf_real *draws, const query *q, int D) {
    cloud c = {{0}, {{0}}};
    for (int i = 0; i < DRAWS; i++)
        for (int a = 0; a < q->n; a++) c.mean[a] += (double)draws[i * D + q->column[a]] / DRAWS;
    for (int i = 0; i < DRAWS; i++)
        for (int a = 0; a < q->n; a++)
            for (int b = 0; b <= a; b++)
                c.factor[a][b] += ((double)draws[i * D + q->column[a]] - c.mean[a]) / DRAWS *
                                  ((double)draws[i * D + q->column[b]] - c.mean[b]);
    for (int a = 0; a < q->n; a++) /* Cholesky, in place */
        for (int b = 0; b <= a; b++) {
            for (int k = 0; k < b; k++) c.factor[a][b] -= c.factor[a][k] * c.factor[b][k];
            c.factor[a][b] = b < a ? c.factor[a][b] / c.factor[b][b] : sqrt(c.factor[a][a]);
        }
    return c;
}

/* Cells are boxes between fixed multiples of each column's deviation around its mean; the outer ones are open. */
enum { CELLS_1 = 20, CELLS_2 = 7, CELLS_3 = 4, CELLS_MAX = 64, ALL_CELLS = CLASSES * CELLS_MAX };
static int sides(int n) { return n == 1 ? CELLS_1 : n == 2 ? CELLS_2 : CELLS_3; }

static int cell_of(const cloud *c, int n, const double *x) {
    int cell = 0;
    for (int a = 0; a < n; a++) {
        double sd = 0;
        for (int k = 0; k <= a; k++) sd += c->factor[a][k] * c->factor[a][k];
        int side = sides(n), at = (int)floor((x[a] - c->mean[a]) / sqrt(sd) * side / 5 + side / 2.0);
        cell = cell * side + (at < 0 ? 0 : at >= side ? side - 1 : at);
    }
    return cell;
}

/* Element k of a low-discrepancy sequence in the unit cube: multiples of powers of the root of r^(n+1) = r + 1. */
static double even(int64_t k, int a, int n) {
    static const double root[COLS + 1] = {0, 1.6180339887498949, 1.3247179572447461, 1.2207440846057596};
    double at = (double)(k + 1), power = 1;
    for (int i = 0; i <= a; i++) power /= root[n];
    at = 0.5 + at * power;
    return at - floor(at);
}

/* One point: fills x and returns log q(x). */
static double place(const cloud *c, int64_t k, int n, double *x) {
    double t[COLS], logq = 0;
    for (int a = 0; a < n; a++) {
        double u = even(k, a, n);
        t[a] = LOGISTIC * log(u / (1 - u));
        logq += log(u) + log(1 - u) - log(LOGISTIC) - log(c->factor[a][a]);
        x[a] = c->mean[a];
        for (int b = 0; b <= a; b++) x[a] += c->factor[a][b] * t[b];
    }
    return logq;
}

/* The cell of a row of values: that of its modelled reals, for each class. */
static int cell_in(const query *q, const cloud *c, const acf_real *row) {
    double x[COLS];
    for (int a = 0; a < q->n; a++) x[a] = (double)row[q->column[a]];
    return cell_of(c, q->n, x) + (q->category ? CELLS_MAX * (int)row[1] : 0);
}

/* Adds p/q of the points from `first` on, as many as the batch has rows, to the masses of their cells. */
static void add_masses(subject *s, const query *q, const cloud *c, acf_batch *b, int64_t first, int64_t all,
                       double *mass) {
    static double logq[CHUNK];
    double x[COLS];
    acf_tape *t = s->l.tr->tape;
    for (int64_t i = 0; i < b->N; i++) {
        logq[i] = place(c, first + i, q->n, x);
        for (int a = 0; a < q->n; a++) b->x[i * s->D + q->column[a]] = (acf_real)x[a];
    }
    acf_tape_begin(t, false);
    acf_tensor *lp = acf_net_logp(t, acf_net_view(t, s->l.net, b, NULL));
    if (acf_tape_check(t, lp)) fail_msg("%s: %s", s->name, acf_error());
    for (int64_t i = 0; i < b->N; i++)
        mass[cell_in(q, c, b->x + i * s->D)] += exp((double)lp->data[i] - logq[i]) / (double)all;
}

/* Cells with fewer than 5 expected draws are merged. A right density exceeds the limit in about one of 1e5 queries,
 * for any number of cells (few cells have longer tails, hence the constant), and a thousand are tested. Draws that
 * are 6 % too wide fail. */
static void check_counts(const subject *s, const query *q, const cloud *c, const acf_real *draws, const double *mass) {
    double seen[ALL_CELLS] = {0}, chi = 0, rest_seen = 0, rest = 0;
    int cells = 1;
    for (int i = 0; i < DRAWS; i++) seen[cell_in(q, c, draws + i * s->D)]++;
    for (int k = 0; k < ALL_CELLS; k++) {
        double expected = mass[k] * DRAWS;
        if (expected < 5)
            rest += expected, rest_seen += seen[k];
        else
            chi += (seen[k] - expected) * (seen[k] - expected) / expected, cells++;
    }
    if (rest > 0.5) chi += (rest_seen - rest) * (rest_seen - rest) / rest;
    double most = cells - 1 + 5 * sqrt(2.0 * (cells - 1)) + 6;
    if (chi > most)
        fail_msg("%s, asked %d%d%d: chi-square %.1f over %d cells", s->name, q->mask[0], q->mask[1], q->mask[2], chi,
                 cells);
}

static const int64_t points[COLS + 1] = {1, 1000, 6000, 40000};

/* Fills the masses from N points; returns their sum. */
static double integrate(subject *s, const query *q, const cloud *c, int64_t N, double *mass) {
    double sum = 0;
    memset(mass, 0, ALL_CELLS * sizeof *mass);
    for (int class = 0; class < (q->category ? CLASSES : 1); class ++) {
        acf_batch *b = rows_asking(s, q, acf_min(CHUNK, N), q->category ? class : 1);
        for (int64_t k = 0; k < N; k += CHUNK) add_masses(s, q, c, b, k, N, mass);
        acf_batch_free(b);
    }
    for (int k = 0; k < ALL_CELLS; k++) sum += mass[k];
    return sum;
}

/* If the points are too few for a density with steep parts, uses eight times as many. */
static void check_question(subject *s, const query *q) {
    static acf_real draws[DRAWS * COLS];
    double mass[ALL_CELLS];
    draw(s, q, draws);
    cloud c = cloud_of(draws, q, s->D);
    double sum = integrate(s, q, &c, points[q->n], mass);
    if (!(fabs(sum - 1) < 6e-4)) sum = integrate(s, q, &c, 8 * points[q->n], mass);
    if (!(fabs(sum - 1) < 1e-3))
        fail_msg("%s, asked %d%d%d: the density integrates to %.5f", s->name, q->mask[0], q->mask[1], q->mask[2], sum);
    check_counts(s, q, &c, draws, mass);
}

static void check_density(subject *s) {
    int most = sizeof(acf_real) == 8 && !s->mixed ? 2 : COLS; /* fewer in the double build: it is the same code */
    for (int code = 0; s->D <= most && code < questions(s->D); code++) {
        query q = question_of(s, code);
        if (q.n || q.category) check_question(s, &q);
    }
}

static void densities_integrate_to_one_and_draws_follow_them(void **state) {
    (void)state;
    each_subject(check_density);
}

/* ---- inverses -------------------------------------------------------------------------------------------------- */

/* Rows with all queries at once, at random values. */
static acf_batch *all_questions(const subject *s, int64_t each) {
    acf_batch *b = NULL;
    int64_t N = questions(s->D) * each;
    assert_int_equal(acf_batch_create(N, s->D, &b), ACF_OK);
    b->N = N;
    for (int64_t i = 0; i < N; i++) {
        query q = question_of(s, (int)(i % questions(s->D)));
        b->id[i] = (uint64_t)i;
        for (int j = 0; j < s->D; j++)
            set_cell(s, b, i, j, q.mask[j],
                     s->mixed && j == 1 ? (acf_real)(i % CLASSES) : (acf_real)acf_lab_random(44, i * s->D + j, -3, 3));
    }
    return b;
}

/* The value of a modelled element; a subset counts the real columns only. */
static acf_real *cell(const subject *s, acf_batch *b, const acf_subset *u, int64_t p) {
    return &b->x[u->row_of[p] * s->D + (s->mixed ? 2 : 1) * u->col_of[p]];
}

static void check_inverse(subject *s) {
    acf_tape *t = s->l.tr->tape;
    acf_batch *b = all_questions(s, 20);
    acf_tape_begin(t, false);
    acf_view *v = acf_net_view(t, s->l.net, b, NULL);
    acf_tensor *z = acf_net_forward(t, v, NULL), *x = acf_net_inverse(t, v, z);
    if (acf_tape_check(t, x)) fail_msg("%s: %s", s->name, acf_error());
    const acf_subset *u = acf_net_modelled(v);
    double tol = sizeof(acf_real) == 8
                     ? 1e-11
                     : 2e-5; /* a chain of six and the mixture each round; one alone is within 1e-5 (flow_test.c) */
    for (int64_t p = 0; p < u->T; p++) acf_assert_close((double)x->data[p], (double)*cell(s, b, u, p), tol, s->name);
    acf_batch_free(b);
}

static void inverse_undoes_forward(void **state) {
    (void)state;
    each_subject(check_inverse);
}

/* ---- Jacobians ------------------------------------------------------------------------------------------------- */

/* |u| <= 3: by the rule of Sarrus. */
static double log_det(double a[COLS][COLS], int n) {
    double det = n == 0 ? 1 : n == 1 ? a[0][0] : n == 2 ? a[0][0] * a[1][1] - a[0][1] * a[1][0] : 0;
    for (int k = 0; n == 3 && k < 3; k++)
        det += a[0][k] * a[1][(k + 1) % 3] * a[2][(k + 2) % 3] - a[0][k] * a[1][(k + 2) % 3] * a[2][(k + 1) % 3];
    return log(fabs(det));
}

/* z of all rows, and the log-determinant added to log p; the subset is that of the last run. */
static const acf_subset *forward(subject *s, acf_batch *b, double *z, double *logdet) {
    acf_tape *t = s->l.tr->tape;
    acf_tape_begin(t, false);
    acf_view *v = acf_net_view(t, s->l.net, b, NULL);
    acf_tensor *ld, *out = acf_net_forward(t, v, &ld);
    if (acf_tape_check(t, out)) fail_msg("%s: %s", s->name, acf_error());
    for (int64_t p = 0; p < acf_net_modelled(v)->T; p++) z[p] = (double)out->data[p];
    for (int64_t i = 0; logdet && i < b->N; i++) logdet[i] = (double)ld->data[i];
    return acf_net_modelled(v);
}

/* All rows at once: the k-th values of all rows are moved together, for each k. */
static void check_jacobian(subject *s) {
    enum { EACH = 4, MOST = 27 * EACH };
    static double plus[MOST * COLS], minus[MOST * COLS], logdet[MOST], jacobian[MOST][COLS][COLS];
    const double h = 1e-6;
    acf_batch *b = all_questions(s, EACH);
    const acf_subset *u = forward(s, b, plus, logdet);
    for (int k = 0; k < s->D; k++) {
        for (int side = 1; side >= -1; side -= 2) {
            for (int64_t i = 0; i < b->N; i++)
                if (k < u->size[i]) *cell(s, b, u, acf_subset_at(u, i, k)) += (acf_real)(side * h * (side < 0 ? 2 : 1));
            u = forward(s, b, side > 0 ? plus : minus, NULL);
        }
        for (int64_t i = 0; i < b->N; i++) {
            if (k < u->size[i]) *cell(s, b, u, acf_subset_at(u, i, k)) += (acf_real)h;
            for (int r = 0; k < u->size[i] && r < u->size[i]; r++)
                jacobian[i][r][k] = (plus[acf_subset_at(u, i, r)] - minus[acf_subset_at(u, i, r)]) / (2 * h);
        }
    }
    for (int64_t i = 0; i < b->N; i++) acf_assert_close(logdet[i], log_det(jacobian[i], u->size[i]), 1e-7, s->name);
    acf_batch_free(b);
}

static void log_determinants_are_those_of_jacobians(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("numeric Jacobians run in double");
    each_subject(check_jacobian);
}

ACF_TESTS(truth, cmocka_unit_test(densities_integrate_to_one_and_draws_follow_them),
          cmocka_unit_test(inverse_undoes_forward), cmocka_unit_test(log_determinants_are_those_of_jacobians))
