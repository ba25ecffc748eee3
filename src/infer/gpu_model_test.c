/* Compares a whole model on a GPU with the same one on the CPU: likelihoods, draws, gradients, training, files. Run
 * by acflow-test --device cuda. With --device cpu both are the same, which tests this file. */
#include "infer/session.h"

#include "harness/lab.h"
#include "model/config.h"
#include "train/batch_auto.h"
#include "train/checkpoint.h"
#include "train/fit.h"
#include "train/train_graph.h"
#include "train/valid.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Three correlated reals, two categories that depend on them, a fifth of the cells missing. */
enum { ROWS = 150, COLS = 5, CELLS = ROWS * COLS, ASKED_AT_ONCE = 64 };
static const acf_column columns[COLS] = {{"a", 0}, {"kind", 3}, {"b", 0}, {"c", 0}, {"group", 4}};

/* A model and its session and trainer on one device. */
typedef struct side {
    acf_device *dev;
    acf_holdout *hold;
    acf_model *m;
    acf_trainer *tr;
    acf_session *s;
} side;

typedef struct bench {
    acf_table *table;
    side cpu, gpu;
    uint8_t given[CELLS], target[CELLS];
} bench;

static void must(acf_status status) {
    if (status) fail_msg("%s", acf_error());
}

static acf_table *make_table(void) {
    static double x[CELLS];
    acf_table *t;
    for (int i = 0; i < ROWS; i++) {
        double *row = x + i * COLS, z = acf_lab_random(1, i, -2, 2);
        row[0] = 10 + 3 * z, row[2] = z * z + acf_lab_random(2, i, -0.3, 0.3),
        row[3] = 100 - 5 * z + acf_lab_random(3, i, -4, 4);
        row[1] = floor(fmin(fabs(z) * 1.5, 2)), row[4] = floor(acf_lab_random(4, i, 0, 3.999));
        for (int j = 0; j < COLS; j++)
            if (acf_lab_random(5, i * COLS + j, 0, 1) < 0.2) row[j] = (double)NAN;
    }
    must(acf_table_make(x, NULL, ROWS, COLS, columns, &t));
    return t;
}

/* The default preset, small. settings: pairs of name and value, ended by NULL. */
static acf_options *make_options(const char *const *settings) {
    static const char *const standard[] = {
        "likelihood-units", "24", "likelihood-layers", "2",  "components",    "4", "batch",   "48",  "steps", "60",
        "warmup",           "5",  "valid-every",       "20", "context-width", "8", "dropout", "0.1", NULL};
    acf_options *o;
    must(acf_config_create(&o));
    for (const char *const *s = standard; *s; s += 2) must(acf_options_set_text(o, s[0], s[1]));
    for (const char *const *s = settings; s && *s; s += 2) must(acf_options_set_text(o, s[0], s[1]));
    must(acf_config_finish(o));
    return o;
}

static void open_side(side *s, acf_device *dev, const acf_table *t, const char *const *settings) {
    acf_options *o = make_options(settings);
    acf_encoder *e;
    acf_train_settings set;
    acf_row_split split;
    s->dev = dev;
    must(acf_train_settings_read(o, &set));
    must(acf_valid_split(t, NULL, &set, &split));
    must(acf_train_prepare(t, NULL, o, &s->hold, &e));
    must(acf_model_make(dev, o, e, 3, true, &s->m));
    const acf_train_data data = {t, &split.train, s->m->encoder, s->hold, NULL, split.valid.n ? &split.valid : NULL};
    must(acf_trainer_create(s->m->net, &data, s->m->config, &s->tr));
    must(acf_device_sync(dev)); /* a session has its own stream */
    must(acf_session_open(dev, s->m, ASKED_AT_ONCE, &s->s));
}

static void close_side(side *s) {
    acf_session_free(s->s);
    acf_trainer_free(s->tr);
    acf_model_free(s->m);
    acf_holdout_free(s->hold);
}

static void open_bench(bench *b, const char *const *settings) {
    acf_device *cpu;
    *b = (bench){.table = make_table()};
    acf_test_device()->precision = ACF_PRECISION_FLOAT;
    must(acf_device_open_cpu(2, &cpu));
    open_side(&b->cpu, cpu, b->table, settings);
    open_side(&b->gpu, acf_test_device(), b->table, settings);
    for (int i = 0; i < CELLS; i++) {
        b->target[i] = i / COLS != 7 && acf_lab_random(6, i, 0, 1) < 0.5; /* row 7 has no target */
        b->given[i] = !b->target[i] && acf_lab_random(7, i, 0, 1) < 0.8;
    }
}

static void close_bench(bench *b) {
    close_side(&b->gpu);
    close_side(&b->cpu);
    acf_device_close(b->cpu.dev);
    acf_table_free(b->table);
}

static acf_params *params(const side *s) { return acf_net_params(s->m->net); }

/* n numbers of a side's device on the host; the caller frees them. */
static acf_real *fetch(const side *s, const acf_real *x, int64_t n) { return acf_lab_fetch(s->dev, x, n); }

/* Gives both the same weights, away from the initial ones; the Gaussian mixture stays as fitted. */
static void move_weights(bench *b) {
    acf_params *ps = params(&b->cpu);
    acf_real *x = fetch(&b->cpu, ps->value, ps->total);
    for (int k = 0; k < ps->n; k++) {
        const acf_param *p = ps->list[k];
        for (int64_t i = 0; strncmp(p->name, "gmm.", 4) != 0 && i < acf_tensor_count(&p->t); i++)
            x[p->offset + i] += (acf_real)acf_lab_random(20 + (uint64_t)k, i, -0.1, 0.1);
    }
    for (int k = 0; k < 2; k++) {
        const side *s = k ? &b->gpu : &b->cpu;
        must(acf_device_copy(s->dev, params(s)->value, x, (size_t)ps->total * sizeof *x, ACF_TO_DEVICE));
        must(acf_device_sync(s->dev));
    }
    free(x);
}

/* Do the two answers of a cell agree? A number within `tol` of the column's scale, a class exactly. */
static bool same_cell(const bench *b, int64_t cell, const double *x, const double *y, double tol) {
    const int64_t j = cell % COLS;
    if (isnan(x[cell]) || isnan(y[cell])) return isnan(x[cell]) && isnan(y[cell]);
    return columns[j].classes
               ? x[cell] == y[cell]
               : fabs(x[cell] - y[cell]) <= tol * b->cpu.m->encoder->scale[j] * (1 + fabs(x[cell]) / 100);
}

/* At most `most` cells differ. A draw close to the border of two classes or components may fall on the other side
 * and change the rest of its row. */
static void assert_same_cells(const bench *b, const double *x, const double *y, double tol, int most,
                              const char *what) {
    int others = 0, last = 0;
    for (int i = 0; i < CELLS; i++)
        if (!same_cell(b, i, x, y, tol)) others++, last = i;
    if (others > most)
        fail_msg("%s: %d cells differ, the last at row %d, column %d: %.9g here, %.9g there", what, others, last / COLS,
                 last % COLS, x[last], y[last]);
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

static void same_initial_weights(void **state) {
    (void)state;
    bench b;
    open_bench(&b, NULL);
    const int64_t n = params(&b.cpu)->total;
    assert_int_equal(params(&b.gpu)->total, n);
    acf_real *x = fetch(&b.cpu, params(&b.cpu)->value, n), *y = fetch(&b.gpu, params(&b.gpu)->value, n);
    assert_memory_equal(x, y, (size_t)n * sizeof *x); /* including the mixture: both are made on the host */
    free(x), free(y);
    close_bench(&b);
}

static void compare_likelihoods(const char *const *settings) {
    bench b;
    double x[ROWS], y[ROWS];
    static double each[CELLS], there[CELLS];
    open_bench(&b, settings);
    move_weights(&b);
    const acf_query questions[] = {{NULL, NULL}, {b.given, b.target}, {NULL, b.target}};
    for (int q = 0; q < 3; q++) {
        must(acf_session_query_logp(b.cpu.s, b.table, questions[q], x));
        must(acf_session_query_logp(b.gpu.s, b.table, questions[q], y));
        for (int i = 0; i < ROWS; i++)
            if (!(fabs(x[i] - y[i]) <= 1e-3))
                fail_msg("query %d, row %d: log p is %.6f here and %.6f there", q, i, x[i], y[i]);
    }
    must(acf_session_query_cells(b.cpu.s, b.table, each));
    must(acf_session_query_cells(b.gpu.s, b.table, there));
    for (int i = 0; i < CELLS; i++)
        if (!isnan(each[i]) || !isnan(there[i])) acf_assert_close(there[i], each[i], 1e-3, "log p of a cell");
    close_bench(&b);
}

static void same_likelihoods(void **state) {
    (void)state;
    compare_likelihoods(NULL);
}

/* A transformer after a Gaussian mixture, and one that learns whole rows with heads that fit tensor cores. */
static const char *const attending[] = {"likelihood", "attention", NULL};
static const char *const attending_rows[] = {"likelihood", "attention", "likelihood-units", "64", "gmm", "0", "masks",
                                             "joint",      NULL};

static void same_likelihoods_by_attention(void **state) {
    (void)state;
    compare_likelihoods(attending);
    compare_likelihoods(attending_rows);
}

/* The paper's networks, small: recurrences, whose loops run on a GPU without the host. */
static const char *const recurrent[] = {"preset",
                                        "paper-2d",
                                        "likelihood-units",
                                        "16",
                                        "coupling-units",
                                        "16",
                                        "mlp-width",
                                        "16",
                                        "components",
                                        "4",
                                        "batch",
                                        "48",
                                        "steps",
                                        "60",
                                        "warmup",
                                        "5",
                                        "valid-every",
                                        "20",
                                        "dropout",
                                        "0.1",
                                        NULL};

static void compare_answers(const char *const *settings) {
    bench b;
    static double x[CELLS], y[CELLS];
    open_bench(&b, settings);
    move_weights(&b);
    const acf_query query = {b.given, b.target};
    for (uint32_t draw = 0; draw < 3; draw++) {
        must(acf_session_query_draw(b.cpu.s, b.table, query, 11, draw, x));
        must(acf_session_query_draw(b.gpu.s, b.table, query, 11, draw, y));
        assert_same_cells(&b, x, y, 2e-3, 4, "draws");
    }
    must(acf_session_query_guess(b.cpu.s, b.table, query, x));
    must(acf_session_query_guess(b.gpu.s, b.table, query, y));
    assert_same_cells(&b, x, y, 2e-3, 2, "best guesses");
    must(acf_session_query_mean(b.cpu.s, b.table, query, x));
    must(acf_session_query_mean(b.gpu.s, b.table, query, y));
    assert_same_cells(&b, x, y, 2e-3, 2, "means");
    static double low[2][CELLS], high[2][CELLS];
    must(acf_session_query_interval(b.cpu.s, b.table, query, 0.9, x, low[0], high[0]));
    must(acf_session_query_interval(b.gpu.s, b.table, query, 0.9, y, low[1], high[1]));
    for (int i = 0; i < CELLS; i++) {
        if (isnan(low[0][i])) low[0][i] = high[0][i] = x[i]; /* categories, and cells that are not targets */
        if (isnan(low[1][i])) low[1][i] = high[1][i] = y[i];
    }
    assert_same_cells(&b, low[0], low[1], 2e-3, 2, "lower ends");
    assert_same_cells(&b, high[0], high[1], 2e-3, 2, "upper ends");
    close_bench(&b);
}

static void same_answers(void **state) {
    (void)state;
    compare_answers(NULL);
}

static void same_answers_of_recurrences(void **state) {
    (void)state;
    compare_answers(recurrent);
}

static void same_answers_by_attention(void **state) {
    (void)state;
    compare_answers(attending);
    compare_answers(attending_rows);
}

/* Draws replay a CUDA graph: the number of the draw is not part of it, and other seeds give other draws. Batches of
 * three sizes, and single rows, give the same answers. */
static void replays_give_distinct_draws(void **state) {
    (void)state;
    bench b;
    static double x[4][CELLS], again[CELLS];
    open_bench(&b, recurrent);
    const acf_query query = {b.given, b.target};
    for (int k = 0; k < 4; k++)
        must(acf_session_query_draw(b.gpu.s, b.table, query, k < 3 ? 5 : 6, k < 3 ? (uint32_t)k : 0, x[k]));
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < k; i++) assert_memory_not_equal(x[k], x[i], sizeof x[k]);
    for (int k = 3; k >= 0; k--) {
        must(acf_session_query_draw(b.gpu.s, b.table, query, k < 3 ? 5 : 6, k < 3 ? (uint32_t)k : 0, again));
        assert_same_cells(&b, x[k], again, 0, 0, "the same draw");
    }
    close_bench(&b);
}

/* A thread that repeats queries in one precision and counts wrong answers. */
typedef struct asking {
    const bench *b;
    acf_precision precision;
    double expected[ROWS], drawn[CELLS];
    int wrong;
} asking;

enum { ASKED_TIMES = 30 };

static acf_status ask_once(const asking *a, double *logp, double *drawn) {
    const bench *b = a->b;
    acf_session *s;
    ACF_TRY(acf_session_open(b->gpu.dev, b->gpu.m, ASKED_AT_ONCE, &s));
    acf_status status = acf_session_set_precision(s, a->precision);
    for (int k = 0; k < 4 && !status; k++) { /* uncaptured, captured, replayed */
        status = acf_session_query_logp(s, b->table, (acf_query){NULL, NULL}, logp);
        if (!status) status = acf_session_query_draw(s, b->table, (acf_query){b->given, b->target}, 11, 1, drawn);
    }
    acf_session_free(s);
    return status;
}

static void *ask_again_and_again(void *ctx) {
    static _Thread_local double logp[ROWS], drawn[CELLS];
    asking *a = ctx;
    for (int k = 0; k < ASKED_TIMES; k++)
        a->wrong += ask_once(a, logp, drawn) != ACF_OK || memcmp(logp, a->expected, sizeof logp) != 0 ||
                    memcmp(drawn, a->drawn, sizeof drawn) != 0;
    return NULL;
}

/* Sessions of one model, each with its own thread and precision, answer as they do alone. */
static void sessions_do_not_disturb_each_other(void **state) {
    (void)state;
    static asking a[2];
    bench b;
    pthread_t thread[2];
    open_bench(&b, recurrent);
    move_weights(&b);
    for (int k = 0; k < 2; k++) {
        a[k] = (asking){.b = &b,
                        .precision = k && acf_device_multiplies(b.gpu.dev, ACF_PRECISION_BF16) ? ACF_PRECISION_BF16
                                                                                               : ACF_PRECISION_FLOAT};
        must(ask_once(&a[k], a[k].expected, a[k].drawn));
    }
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(&thread[k], NULL, ask_again_and_again, &a[k]), 0);
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_join(thread[k], NULL), 0);
    for (int k = 0; k < 2; k++)
        if (a[k].wrong) fail_msg("session %d: %d of %d answers are wrong", k, a[k].wrong, ASKED_TIMES);
    close_bench(&b);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* The gradients of one loss on one batch agree, relative to their norm. */
static void compare_gradients(const char *guess_weight) {
    bench b;
    open_bench(&b, (const char *const[]){"guess-weight", guess_weight, NULL});
    move_weights(&b);
    double loss[2];
    acf_real *g[2];
    for (int k = 0; k < 2; k++) {
        side *s = k ? &b.gpu : &b.cpu;
        acf_train_step now;
        must(acf_trainer_step(s->tr, &now)); /* leaves its gradients in their slab */
        loss[k] = now.loss;
        g[k] = fetch(s, params(s)->grad, params(s)->total);
    }
    acf_assert_close(loss[1], loss[0], 1e-4, "the loss");
    double apart = 0, norm = 0;
    for (int64_t i = 0; i < params(&b.cpu)->total; i++) {
        apart += pow((double)g[1][i] - (double)g[0][i], 2), norm += pow((double)g[0][i], 2);
    }
    if (!(sqrt(apart) <= 1e-3 * sqrt(norm))) fail_msg("gradients of norm %g are %g apart", sqrt(norm), sqrt(apart));
    free(g[0]), free(g[1]);
    close_bench(&b);
}

static void same_gradients(void **state) {
    (void)state;
    compare_gradients("0");
}

static void same_gradients_of_guesses(void **state) {
    (void)state;
    compare_gradients("0.5");
}

static void compare_training(const char *const *settings, bool stream) {
    bench b;
    open_bench(&b, settings);
    b.gpu.tr->stream = stream;
    for (int i = 0; i < 50; i++) {
        acf_train_step x, y;
        must(acf_trainer_step(b.cpu.tr, &x));
        must(acf_trainer_step(b.gpu.tr, &y));
        assert_false(x.skipped || y.skipped);
        if (!(fabs(x.loss - y.loss) <= 0.02))
            fail_msg("step %d: the loss is %.5f here and %.5f there", i + 1, x.loss, y.loss);
    }
    double x, y;
    must(acf_trainer_validate(b.cpu.tr, &x));
    must(acf_trainer_validate(b.gpu.tr, &y));
    if (!(fabs(x - y) <= 0.02)) fail_msg("validation is %.5f here and %.5f there", x, y);
    const acf_train_graph *c = b.gpu.tr->graph;
    if (b.gpu.dev->plugin && (!c || acf_train_graph_streams(c) != stream))
        fail_msg("steps were not captured, or not %s", stream ? "streamed" : "from a device table");
    close_bench(&b);
}

static void same_training(void **state) {
    (void)state;
    compare_training(NULL, false);
}

/* Held-out rows, with a device table and from the host. */
static void same_training_with_rows_held_out(void **state) {
    (void)state;
    static const char *const rows[] = {"masks", "uniform + joint", "valid", "0.2", NULL};
    static const char *const per_column[] = {"masks", "uniform + joint", "valid", "0.2", "loss-per", "column", NULL};
    compare_training(rows, false);
    compare_training(rows, true);
    compare_training(per_column, false);
    compare_training(per_column, true);
}

static void same_training_of_recurrences(void **state) {
    (void)state;
    compare_training(recurrent, false);
}

static void same_training_of_attention(void **state) {
    (void)state;
    compare_training(attending, false);
    compare_training(attending_rows, false);
    compare_training(attending_rows, true);
}

static void same_training_from_the_host(void **state) {
    (void)state;
    compare_training(NULL, true);
}

/* Non-finite steps change nothing, are counted, and finally end the run. */
static void steps_that_are_not_finite_are_skipped(void **state) {
    (void)state;
    bench b;
    open_bench(&b, NULL);
    acf_params *ps = params(&b.gpu);
    for (int i = 0; i < 5; i++) must(acf_trainer_step(b.gpu.tr, NULL));
    acf_real *x = fetch(&b.gpu, ps->value, ps->total);
    x[acf_params_find(ps, "likelihood.head.w") ? acf_params_find(ps, "likelihood.head.w")->offset : 0] = (acf_real)NAN;
    must(acf_device_copy(b.gpu.dev, ps->value, x, (size_t)ps->total * sizeof *x, ACF_TO_DEVICE));
    must(acf_device_sync(b.gpu.dev));
    assert_int_equal(acf_trainer_run(b.gpu.tr, NULL, NULL), ACF_ENUMERIC);
    assert_non_null(strstr(acf_error(), "training diverged"));
    assert_int_equal(b.gpu.tr->state.updates, 5);
    assert_int_equal(b.gpu.tr->state.in_row, ACF_SKIPS_IN_ROW + 1);
    acf_real *y = fetch(&b.gpu, ps->value, ps->total);
    assert_memory_equal(x, y, (size_t)ps->total * sizeof *x);
    free(x), free(y);
    close_bench(&b);
}

/* A run with validations, patience and the best weights kept. */
static void a_run_comes_to_its_end(void **state) {
    (void)state;
    bench b;
    acf_train_end end;
    static const char *const alone[] = {"gmm", "0", NULL}; /* in a few steps a mixture would not improve */
    open_bench(&b, alone);
    must(acf_trainer_run(b.gpu.tr, NULL, &end));
    assert_int_equal(end, ACF_END_STEPS);
    assert_true(isfinite(b.gpu.tr->state.best) && b.gpu.tr->state.best_step > 0);
    must(acf_trainer_finish(b.gpu.tr));
    close_bench(&b);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* A file on disk, because saving renames it. Its path to out. */
static void temporary(char out[64]) {
    strcpy(out, "/tmp/acflow-gpu-XXXXXX");
    int fd = mkstemp(out);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
}

static void a_model_goes_from_device_to_device(void **state) {
    (void)state;
    bench b;
    acf_model *m;
    acf_session *s;
    char path[64];
    double x[ROWS], y[ROWS];
    open_bench(&b, NULL);
    for (int i = 0; i < 5; i++) must(acf_trainer_step(b.gpu.tr, NULL));
    must(acf_session_query_logp(b.gpu.s, b.table, (acf_query){b.given, b.target}, y));
    temporary(path);
    must(acf_model_write(b.gpu.m, path));
    for (int k = 0; k < 2; k++) {
        acf_device *dev = k ? b.gpu.dev : b.cpu.dev;
        must(acf_model_read(dev, path, &m));
        must(acf_session_open(dev, m, ASKED_AT_ONCE, &s));
        must(acf_session_query_logp(s, b.table, (acf_query){b.given, b.target}, x));
        for (int i = 0; i < ROWS; i++)
            if (!(fabs(x[i] - y[i]) <= (k ? 0 : 1e-3)))
                fail_msg("row %d: log p is %.6f from the file and %.6f before", i, x[i], y[i]);
        acf_session_free(s);
        acf_model_free(m);
    }
    unlink(path);
    close_bench(&b);
}

/* Training continues on another device from the same bits. */
static void a_checkpoint_goes_from_device_to_device(void **state) {
    (void)state;
    bench b;
    char path[64];
    open_bench(&b, NULL);
    for (int i = 0; i < 25; i++) must(acf_trainer_step(b.gpu.tr, NULL));
    temporary(path);
    must(acf_checkpoint_save(b.gpu.tr, path));
    must(acf_checkpoint_load(b.cpu.tr, path));
    const acf_params *p = params(&b.cpu), *q = params(&b.gpu);
    const acf_real *here[] = {p->value, p->m, p->v, p->ema}, *there[] = {q->value, q->m, q->v, q->ema};
    for (int k = 0; k < 4; k++) {
        acf_real *x = fetch(&b.cpu, here[k], p->total), *y = fetch(&b.gpu, there[k], p->total);
        assert_memory_equal(x, y, (size_t)p->total * sizeof *x);
        free(x), free(y);
    }
    acf_train_step x, y;
    must(acf_trainer_step(b.gpu.tr, &x));
    must(acf_checkpoint_save(b.cpu.tr, path));
    must(acf_trainer_step(b.cpu.tr, &y));
    acf_assert_close(y.loss, x.loss, 1e-3, "the loss of the step behind it");
    unlink(path);
    close_bench(&b);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Rows whose step needs twice the free memory. */
static int64_t too_many_rows(const side *s, const acf_table *t) {
    acf_step_memory need;
    size_t left, all;
    must(acf_step_memory_measure(s->m->net, &(acf_train_data){t, NULL, s->m->encoder, s->hold}, s->m->config, &need));
    must(acf_device_memory(s->dev, &left, &all));
    int64_t rows = (int64_t)(2 * (double)left / need.row);
    if (rows > 1 << 20)
        fail_msg("%.0f bytes a row: a batch that does not fit would have %lld rows", need.row, (long long)rows);
    return rows;
}

static acf_table *repeat(const acf_table *t, int64_t rows) {
    acf_table *out;
    double *x = acf_alloc((size_t)(rows * COLS) * sizeof *x, "a long table");
    assert_non_null(x);
    for (int64_t i = 0; i < rows * COLS; i++) x[i] = t->x[i % CELLS];
    must(acf_table_take(x, rows, COLS, columns, &out));
    return out;
}

/* Status 5 and a message with numbers; the checkpoint stays, and the run continues from it with a batch that fits. */
static void a_giant_batch_is_refused(void **state) {
    (void)state;
    static const char *const large[] = {"likelihood-units",
                                        "1024",
                                        "likelihood-layers",
                                        "4",
                                        "gmm",
                                        "0",
                                        "batch",
                                        "1048576",
                                        "valid",
                                        "0",
                                        "refit",
                                        "false",
                                        "steps",
                                        "2",
                                        NULL};
    acf_device *dev = acf_test_device();
    if (dev->kind == ACF_DEVICE_CPU) acf_skip("the system would rather end the process than refuse memory");
    if (acf_test_small()) acf_skip("a memory checker would take minutes");
    side s = {0};
    char path[64];
    acf_table *t = make_table();
    dev->precision = ACF_PRECISION_FLOAT;
    open_side(&s, dev, t, large);
    acf_trainer_free(s.tr);
    s.tr = NULL;
    acf_table *giant = repeat(t, too_many_rows(&s, t));
    temporary(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(acf_fit_model(s.m, giant, NULL, &(acf_fit){.checkpoint = path}), ACF_EMEMORY);
    if (!strstr(acf_error(), "out of memory on cuda") || !strstr(acf_error(), "GiB free")) fail_msg("%s", acf_error());
    must(acf_options_set_text(s.m->config, "batch", "auto"));
    must(acf_fit_model(s.m, giant, NULL, &(acf_fit){.checkpoint = path, .resume = true}));
    assert_in_range(acf_options_int(s.m->config, "batch"), 256, ACF_AUTO_GPU_ROWS);
    unlink(path);
    close_side(&s);
    acf_table_free(giant);
    acf_table_free(t);
}

ACF_DEVICE_TESTS(gpu_model, cmocka_unit_test(same_initial_weights), cmocka_unit_test(same_likelihoods),
                 cmocka_unit_test(same_answers), cmocka_unit_test(same_answers_of_recurrences),
                 cmocka_unit_test(same_likelihoods_by_attention), cmocka_unit_test(same_answers_by_attention),
                 cmocka_unit_test(same_training_of_attention), cmocka_unit_test(replays_give_distinct_draws),
                 cmocka_unit_test(sessions_do_not_disturb_each_other), cmocka_unit_test(same_gradients),
                 cmocka_unit_test(same_gradients_of_guesses), cmocka_unit_test(same_training),
                 cmocka_unit_test(same_training_of_recurrences), cmocka_unit_test(same_training_from_the_host),
                 cmocka_unit_test(same_training_with_rows_held_out),
                 cmocka_unit_test(steps_that_are_not_finite_are_skipped), cmocka_unit_test(a_run_comes_to_its_end),
                 cmocka_unit_test(a_model_goes_from_device_to_device),
                 cmocka_unit_test(a_checkpoint_goes_from_device_to_device), cmocka_unit_test(a_giant_batch_is_refused))
