/* Parameter draws of a model: draws of cells use the sets in turn, other answers do not, files keep them, and files
 * with wrong ones are refused. */
#include "model/gmm_draws.h"

#include "harness/lab.h"
#include "harness/model_file_lab.h"
#include "infer/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 30, COLS = 3, CELLS = ROWS * COLS, SETS = 3 };

static char path[64], other[64];

static int make_names(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/acflow-draws-%d.safetensors", (int)getpid());
    snprintf(other, sizeof other, "/tmp/acflow-draws2-%d.safetensors", (int)getpid());
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return 0;
}

typedef struct bench {
    acf_device *dev;
    acf_table *table;
    acf_model *m;
} bench;

/* A model whose set i has means i higher in every column than the fitted mixture, which is standard normal. The
 * table's last row is missing. */
static void open_bench(bench *b, bool sets) {
    double x[CELLS];
    acf_real value[SETS * (1 + COLS + COLS * COLS)] = {0}, *mean = value + SETS, *cov = mean + SETS * COLS;
    for (int i = 0; i < CELLS; i++)
        x[i] = i % 5 == 2 || i / COLS == ROWS - 1 ? (double)NAN : acf_lab_random(1, i, -3, 3);
    for (int i = 0; i < SETS * COLS; i++) mean[i] = (acf_real)(i / COLS);
    for (int i = 0; i < SETS * COLS * COLS; i++) cov[i] = i % (COLS * COLS) % (COLS + 1) == 0;
    for (int i = 0; i < SETS; i++) value[i] = 1;
    assert_int_equal(acf_device_open_cpu(2, &b->dev), ACF_OK);
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, NULL, &b->table), ACF_OK);
    b->m = acf_lab_fitted(b->dev, b->table, NULL, NULL, 3, 0);
    if (!sets) return;
    assert_int_equal(acf_gmm_draws_create(b->dev, SETS, 1, COLS, &b->m->draws), ACF_OK);
    assert_int_equal(acf_gmm_draws_count(b->m->draws), sizeof value / sizeof *value);
    memcpy(b->m->draws->weight, value, sizeof value);
}

static void close_bench(bench *b) {
    acf_model_free(b->m);
    acf_table_free(b->table);
    acf_device_close(b->dev);
}

static const acf_query all = {0};

static void draw(const bench *b, uint32_t i, double *out) {
    acf_session *s;
    assert_int_equal(acf_session_open(b->dev, b->m, 8, &s), ACF_OK);
    assert_int_equal(acf_session_query_draw(s, b->table, all, 5, i, out), ACF_OK);
    acf_session_free(s);
}

/* With the same random numbers and another set, every cell of the last row moves by the difference of the sets, in
 * deviations. Summaries are of these draws. */
static void draws_use_the_sets_in_turn(void **state) {
    (void)state;
    bench with, without;
    double a[CELLS], b[CELLS], sum[COLS] = {0}, mean[CELLS];
    acf_session *s;
    open_bench(&with, true), open_bench(&without, false);
    for (uint32_t i = 0; i < 2 * SETS; i++) {
        draw(&with, i, a), draw(&without, i, b);
        for (int j = 0; j < COLS; j++) {
            const int cell = (ROWS - 1) * COLS + j;
            const double one = acf_decode(with.m->encoder, j, 1) - acf_decode(with.m->encoder, j, 0);
            acf_assert_close((a[cell] - b[cell]) / one, i % SETS, 1e-4, "what the set adds");
            sum[j] += a[cell] / (2 * SETS);
        }
    }
    assert_int_equal(acf_session_open(with.dev, with.m, 8, &s), ACF_OK);
    assert_int_equal(acf_session_query_summary(s, with.table, all, 5, 2 * SETS, NULL, 0, mean, NULL), ACF_OK);
    for (int j = 0; j < COLS; j++) acf_assert_close(mean[(ROWS - 1) * COLS + j], sum[j], 1e-4, "mean of draws");
    acf_session_free(s);
    close_bench(&with), close_bench(&without);
}

static void other_answers_use_the_fitted_ones(void **state) {
    (void)state;
    bench b[2];
    double lp[2][ROWS], guess[2][CELLS], mean[2][CELLS], drawn[CELLS];
    for (int i = 0; i < 2; i++) {
        acf_session *s;
        open_bench(&b[i], i);
        assert_int_equal(acf_session_open(b[i].dev, b[i].m, 8, &s), ACF_OK);
        assert_int_equal(acf_session_query_draw(s, b[i].table, all, 5, 1, drawn),
                         ACF_OK); /* has no effect on later queries */
        assert_int_equal(acf_session_query_logp(s, b[i].table, all, lp[i]), ACF_OK);
        assert_int_equal(acf_session_query_guess(s, b[i].table, all, guess[i]), ACF_OK);
        assert_int_equal(acf_session_query_mean(s, b[i].table, all, mean[i]), ACF_OK);
        acf_session_free(s);
    }
    assert_memory_equal(lp[0], lp[1], sizeof lp[0]);
    assert_memory_equal(guess[0], guess[1], sizeof guess[0]);
    assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    close_bench(&b[0]), close_bench(&b[1]);
}

/* Probability above x under the equal mixture of N(i, 1), i = 0 to SETS - 1. */
static double tail(double x) {
    double sum = 0;
    for (int i = 0; i < SETS; i++) sum += 0.5 * erfc((x - i) / sqrt(2)) / SETS;
    return sum;
}

/* Intervals cover all sets, while the mean uses the fitted parameters. The last row is missing, and everything else
 * is normal. */
static void intervals_use_all_sets(void **state) {
    (void)state;
    bench with, without;
    double mean[CELLS], low[2][CELLS], high[2][CELLS], plain[CELLS];
    acf_session *s;
    open_bench(&with, true), open_bench(&without, false);
    assert_int_equal(acf_session_open(with.dev, with.m, 8, &s), ACF_OK);
    assert_int_equal(acf_session_query_interval(s, with.table, all, 0.8, mean, low[0], high[0]), ACF_OK);
    acf_session_free(s);
    assert_int_equal(acf_session_open(without.dev, without.m, 8, &s), ACF_OK);
    assert_int_equal(acf_session_query_interval(s, without.table, all, 0.8, plain, low[1], high[1]), ACF_OK);
    acf_session_free(s);
    assert_memory_equal(mean, plain, sizeof mean);
    for (int j = 0; j < COLS; j++) {
        const int cell = (ROWS - 1) * COLS + j;
        const acf_encoder *e = with.m->encoder;
        const double lowest = (double)acf_encode(e, j, low[0][cell]), highest = (double)acf_encode(e, j, high[0][cell]);
        acf_assert_close(1 - tail(lowest), 0.1, 0.012, "below");
        acf_assert_close(tail(highest), 0.1, 0.012, "above");
        acf_assert_close((double)acf_encode(e, j, low[1][cell]), -1.2816, 0.05, "by the fitted ones");
        acf_assert_close((double)acf_encode(e, j, high[1][cell]), 1.2816, 0.05, "by the fitted ones");
    }
    close_bench(&with), close_bench(&without);
}

static void files_keep_them(void **state) {
    (void)state;
    bench b;
    acf_model *again = NULL;
    acf_safetensors *f;
    double first[CELLS], second[CELLS];
    open_bench(&b, true);
    draw(&b, 4, first);
    if (acf_model_write(b.m, path) || acf_model_read(b.dev, path, &again)) fail_msg("%s", acf_error());
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_string_equal(acf_safetensors_text_find(f, "format_version"), "6");
    acf_safetensors_close(f);
    acf_model_free(b.m);
    b.m = again;
    draw(&b, 4, second);
    assert_memory_equal(first, second, sizeof first);
    close_bench(&b);
}

/* Writes the valid file again with one tensor replaced; NULL data: without it. */
static void write_with(const acf_safetensors *good, const acf_safetensors_tensor *t) {
    acf_safetensors_tensor list[128];
    acf_safetensors_text text[24];
    int64_t n = 0, texts = 0;
    for (int64_t i = 0; i < acf_safetensors_count(good); i++) {
        const acf_safetensors_tensor *own = acf_safetensors_at(good, i);
        const bool it = strcmp(own->name, t->name) == 0;
        if (!it || t->data) list[n++] = it ? *t : *own;
    }
    for (int64_t i = 0; i < acf_safetensors_text_count(good); i++)
        if (strcmp(acf_safetensors_text_at(good, i)->key, "checksum") != 0)
            text[texts++] = *acf_safetensors_text_at(good, i);
    if (acf_safetensors_write(other, list, n, text, texts)) fail_msg("%s", acf_error());
}

static void refuses_wrong_ones(void **state) {
    (void)state;
    static const acf_real zero[512], bad = (acf_real)NAN, below = -1;
    acf_real nan[SETS] = {1, bad, 1}, negative[SETS] = {1, below, 1}, none[SETS] = {1, 0, 1};
    const struct {
        const char *name;
        int ndim;
        int64_t dim[4];
        const acf_real *data;
        const char *says;
    } wrong[] = {
        {"gmm.draws.weight", 2, {65, 1}, zero, "expected 1 to 64 sets"},
        {"gmm.draws.weight", 2, {3, 99}, zero, "has a shape that parameter draws cannot have"},
        {"gmm.draws.weight", 1, {3}, zero, "has a shape that parameter draws cannot have"},
        {"gmm.draws.weight", 2, {0, 1}, zero, "has a shape that parameter draws cannot have"},
        {"gmm.draws.weight", 2, {SETS, 1}, nan, "'gmm.draws.weight' is nan at element 1"},
        {"gmm.draws.weight", 2, {SETS, 1}, negative, "is -1 at element 1; expected a finite number, 0 or more"},
        {"gmm.draws.weight", 2, {SETS, 1}, none, "has no weight above 0 in set 1"},
        {"gmm.draws.weight", 0, {0}, NULL, "tensor 'gmm.draws.cov' is no part of the network"},
        {"gmm.draws.mean", 0, {0}, NULL, "tensor 'gmm.draws.mean': it is missing"},
        {"gmm.draws.cov", 3, {SETS, COLS, COLS}, zero, "tensor 'gmm.draws.cov': its shape is [3, 3, 3]"},
    };
    bench b;
    acf_safetensors *good;
    open_bench(&b, true);
    assert_int_equal(acf_model_write(b.m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        acf_safetensors_tensor t = {.name = wrong[i].name,
                                    .dtype = ACF_SAFETENSORS_REAL,
                                    .ndim = wrong[i].ndim,
                                    .data = wrong[i].data,
                                    .bytes = sizeof *zero};
        acf_model *m = NULL;
        for (int k = 0; k < t.ndim; k++) t.bytes *= (size_t)(t.dim[k] = wrong[i].dim[k]);
        write_with(good, &t);
        const int64_t live = acf_alloc_live();
        assert_int_equal(acf_model_read(b.dev, other, &m), ACF_EMODEL);
        if (!strstr(acf_error(), other) || !strstr(acf_error(), wrong[i].says))
            fail_msg("expected '%s' in: %s", wrong[i].says, acf_error());
        assert_int_equal(acf_alloc_live(), live);
    }
    acf_safetensors_close(good);
    close_bench(&b);
}

ACF_TESTS(gmm_draws, cmocka_unit_test(draws_use_the_sets_in_turn), cmocka_unit_test(other_answers_use_the_fitted_ones),
          cmocka_unit_test(intervals_use_all_sets),
          cmocka_unit_test_setup_teardown(files_keep_them, make_names, remove_files),
          cmocka_unit_test_setup_teardown(refuses_wrong_ones, make_names, remove_files))
