/* Tests of donors through acflow.h: model files, interruption, ids, and that a row is not its own donor. */
#include "acflow.h"

#include "donors/donors.h"
#include "harness/fit_lab.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 160, COLS = 4, CELLS = ROWS * COLS };

static char path[64], file[64];

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/acflow-donors-%d.checkpoint", (int)getpid());
    snprintf(file, sizeof file, "/tmp/acflow-donors-%d.safetensors", (int)getpid());
    return 0;
}

static int remove_path(void **state) {
    (void)state;
    unlink(path), unlink(file);
    return 0;
}

static double uniform(int i, int j) { return fmod(fabs(sin((i + 1) * 12.9898 + j * 78.233)) * 43758.5453, 1); }

/* Whole numbers without a rule, and a category. With copies, rows i and i + ROWS/2 are equal. Without, no rows are
 * equal and the numbers are normal, which a network models from the start. */
static double cell_of(bool copies, int i, int j) {
    const double u = uniform(copies ? i % (ROWS / 2) : i, j);
    if (!copies && j != 3) return 50 + 10 * sqrt(-2 * log(u)) * cos(6.283185307179586 * uniform(i, j + 4));
    return j == 3 ? floor(3 * u) : floor(50 * u);
}

static acf_table *table_of(bool copies) {
    static const int32_t classes[COLS] = {0, 0, 0, 3};
    double x[CELLS];
    acf_table *t;
    for (int i = 0; i < CELLS; i++) x[i] = i % 9 == 4 ? (double)NAN : cell_of(copies, i / COLS, i % COLS);
    if (acf_table_create(x, NULL, ROWS, COLS, classes, NULL, &t)) fail_msg("%s", acf_error());
    return t;
}

static acf_options *options(const char *const *more) {
    static const char *const common[] = {"steps",
                                         "6",
                                         "valid-every",
                                         "2",
                                         "likelihood-units",
                                         "6",
                                         "components",
                                         "3",
                                         "batch",
                                         "64",
                                         "gmm",
                                         "2",
                                         "lr",
                                         "0.01",
                                         "ensemble",
                                         "2",
                                         "warmup",
                                         "2",
                                         "checkpoint-every",
                                         "0",
                                         "threads",
                                         "1",
                                         "valid",
                                         "0.2",
                                         NULL};
    return acf_fit_lab_options(common, more);
}
#define WITH(...)                                                                                                      \
    (const char *const[]) { __VA_ARGS__, NULL }
#define RESUME "checkpoint", path, "resume", "true"

typedef struct watch {
    int64_t calls, stop_at;
} watch;

static int look(void *ctx, const acf_fit_report *r) {
    watch *w = ctx;
    (void)r;
    return ++w->calls == w->stop_at;
}

static acf_model *fit(bool copies, acf_options *o, watch *w) {
    acf_model *m = NULL;
    if (acf_fit_lab_fit(table_of(copies), o, w ? look : NULL, w, &m)) fail_msg("%s", acf_error());
    return m;
}

static void donors_are_used_where_rows_repeat(void **state) {
    (void)state;
    char text[16384];
    acf_model *m = fit(true, options(NULL), NULL);
    assert_true(m->donors && m->donors->N == ROWS && !m->next->donors);
    assert_int_equal(acf_model_info(m, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(text, "rows: 160, stored in the model file as nearest-neighbour donors\n"));
    acf_table *t = table_of(true);
    acf_session *s;
    double out[CELLS];
    int right = 0, target = 0;
    if (acf_session_create(m, &s) || acf_session_mean(s, t, NULL, NULL, out)) fail_msg("%s", acf_error());
    for (int c = 0; c < CELLS; c++) {
        const int twin = (c + CELLS / 2) % CELLS;
        if (c % 9 != 4 || twin % 9 == 4) continue;
        target++, right += fabs(out[c] - cell_of(true, c / COLS, c % COLS)) < 0.5;
    }
    assert_true(target > 50 && right > target * 3 / 4);
    acf_session_free(s), acf_table_free(t), acf_model_free(m);
    m = fit(false, options(NULL), NULL);
    assert_null(m->donors);
    assert_int_equal(acf_model_info(m, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    assert_null(strstr(text, "looked up"));
    acf_model_free(m);
    m = fit(true, options(WITH("donors", "false")), NULL);
    assert_null(m->donors);
    acf_model_free(m);
}

static void files_have_the_rows(void **state) {
    (void)state;
    acf_model *m = fit(true, options(NULL), NULL), *loaded = NULL;
    double lp[ROWS], again[ROWS];
    acf_fit_lab_scores(m, table_of(true), lp);
    if (acf_model_save(m, file) || acf_model_load(file, NULL, &loaded)) fail_msg("%s", acf_error());
    acf_fit_lab_scores(loaded, table_of(true), again);
    assert_memory_equal(lp, again, sizeof lp);
    acf_model_free(m), acf_model_free(loaded);
}

static void interrupted_anywhere_it_ends_the_same(void **state) {
    (void)state;
    double whole[ROWS], resumed[ROWS];
    watch w = {0};
    acf_model *m = fit(true, options(NULL), &w);
    assert_non_null(m->donors);
    acf_fit_lab_scores(m, table_of(true), whole);
    acf_model_free(m);
    for (int64_t at = 2; at < w.calls; at += 3) {
        watch part = {.stop_at = at};
        unlink(path);
        m = NULL;
        if (acf_fit_lab_fit(table_of(true), options(WITH(RESUME)), look, &part, &m) != ACF_EINTERRUPT)
            fail_msg("call %d: %s", (int)at, acf_error());
        assert_true(m && m->donors); /* the model so far has donors too */
        acf_model_free(m);
        m = fit(true, options(WITH(RESUME)), NULL);
        acf_fit_lab_scores(m, table_of(true), resumed);
        acf_model_free(m);
        assert_memory_equal(whole, resumed, sizeof whole);
    }
}

static void survives_without_memory(void **state) {
    (void)state;
    acf_table *t = table_of(true);
    acf_options *o = options(WITH("ensemble", "1", "steps", "2", "valid-every", "1", "refit", "false"));
    acf_fit_lab_without_memory(t, NULL, o, 8000);
    acf_options_free(o);
    acf_table_free(t);
}

#define WITH_PATH(test) cmocka_unit_test_setup_teardown(test, make_path, remove_path)
ACF_TESTS(donors_api, cmocka_unit_test(donors_are_used_where_rows_repeat), WITH_PATH(files_have_the_rows),
          WITH_PATH(interrupted_anywhere_it_ends_the_same), cmocka_unit_test(survives_without_memory))
