/* Tests of both passes of a fit through acflow.h alone: reports, interruption anywhere and resume, the description of
 * the model, memory failures. */
#include "acflow.h"

#include "base/arena.h"
#include "harness/fit_lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 80, COLS = ACF_FIT_LAB_COLS, CELLS = ROWS * COLS };

static char path[64];

static int make_path(void **state) {
    (void)state;
    strcpy(path, "/tmp/acflow-refit-api-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd) || unlink(path);
}

static int remove_path(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static acf_table *some_table(void) { return acf_fit_lab_table(ROWS, NULL, 0); }

/* A small network and 12 steps, three of them between validations. */
static acf_options *options(const char *refit, const char *threads, bool checkpoint) {
    static const char *const common[] = {"steps",
                                         "12",
                                         "valid-every",
                                         "3",
                                         "mlp-width",
                                         "6",
                                         "coupling-units",
                                         "5",
                                         "likelihood-units",
                                         "6",
                                         "components",
                                         "3",
                                         "batch",
                                         "32",
                                         "flow",
                                         "linear leaky rnn",
                                         "gmm",
                                         "0",
                                         "lr",
                                         "0.01",
                                         "warmup",
                                         "2",
                                         "checkpoint-every",
                                         "0",
                                         "ensemble",
                                         "1",
                                         NULL};
    return acf_fit_lab_options(common,
                               (const char *const[]){"refit", refit, "threads", threads,
                                                     checkpoint ? "checkpoint" : NULL, path, "resume", "true", NULL});
}

typedef struct watch {
    int64_t calls, stop_at; /* ends training at this call */
    int64_t last_of_first;  /* calls of the first pass */
    acf_fit_report fifth;   /* of the fifth step of the first pass */
    acf_fit_report second;  /* of the first step of the second pass */
    acf_fit_report last[2]; /* of each pass */
} watch;

static int look(void *ctx, const acf_fit_report *r) {
    watch *w = ctx;
    assert_in_range(r->pass, 1, 2);
    w->last[r->pass - 1] = *r;
    if (r->pass == 1 && r->step == 5) w->fifth = *r;
    if (r->pass == 2 && r->step == 1) w->second = *r;
    w->calls++;
    if (r->pass == 1) w->last_of_first = w->calls;
    return w->calls == w->stop_at;
}

static acf_status fit(acf_options *o, watch *w, acf_model **out) {
    return acf_fit_lab_fit(some_table(), o, w ? look : NULL, w, out);
}

static void scores(const acf_model *m, double *out) { acf_fit_lab_scores(m, some_table(), out); }

static char *text_of(const acf_model *m, acf_format format) {
    size_t needed = 0;
    assert_int_equal(acf_model_info(m, format, NULL, 0, &needed), ACF_ESPACE);
    char *text = malloc(needed);
    assert_non_null(text);
    assert_int_equal(acf_model_info(m, format, text, needed, NULL), ACF_OK);
    return text;
}

static void reports_tell_the_passes_apart(void **state) {
    (void)state;
    watch w = {0}, one = {0};
    acf_model *m;
    if (fit(options("true", "1", false), &w, &m)) fail_msg("%s", acf_error());
    acf_model_free(m);
    const acf_fit_report *a = &w.last[0], *b = &w.last[1];
    assert_true(a->passes == 2 && a->step == 12 && a->steps == 12 && a->best_step > 0);
    assert_true(b->passes == 2 && b->step == 2 * a->best_step && b->steps == 2 * a->best_step);
    assert_true(b->best == a->best && b->valid == a->best && b->best_step == a->best_step && !b->validated);
    assert_true(b->patience == 0 && b->stale == 0 && isnan(b->eta_early) && b->eta == 0);
    assert_true(b->elapsed > a->elapsed && isfinite(b->loss) && b->rows_per_second > 0 && !b->trouble);
    if (fit(options("false", "1", false), &one, &m)) fail_msg("%s", acf_error());
    acf_model_free(m);
    assert_true(one.last[0].passes == 1 && one.last[1].pass == 0 && one.last[0].best == a->best);
}

/* Twelve steps, and a second pass of twice the best number, at most twelve. */
static bool about(double x, double expected) { return fabs(x - expected) < 0.2 * x + 1e-3; }

/* Does the reported time left follow from the time of the steps so far? */
static bool time_left_is_right(void) {
    watch w = {0};
    acf_model *m;
    if (fit(options("true", "1", false), &w, &m)) fail_msg("%s", acf_error());
    acf_model_free(m);
    const double step = w.fifth.elapsed / 5;
    const acf_fit_report *a = &w.last[0];
    assert_int_equal(w.fifth.best_step, 3);
    assert_true(a->eta > 0 && w.second.eta > 0);
    assert_true(fabs(a->eta - a->eta_early) < 0.01 * a->eta); /* now the length of the second pass is known */
    return about(w.fifth.eta, step * (7 + 2 * 12)) &&
           about(w.fifth.eta_early, step * (7 + 2 * 3)) && /* patience would last longer than the limit */
           about(a->eta_early, a->elapsed / 12 * 2 * (double)a->best_step) && w.second.eta < a->eta + a->elapsed;
}

/* A busy machine may suspend the process within a step, so one run of four has to be as expected. */
static void what_is_left_counts_both_passes(void **state) {
    (void)state;
    watch one = {0};
    acf_model *m;
    bool right = false;
    for (int k = 0; k < 4 && !right; k++) right = time_left_is_right();
    assert_true(right);
    if (fit(options("false", "1", false), &one, &m)) fail_msg("%s", acf_error());
    acf_model_free(m);
    assert_true(one.last[0].eta == 0 && one.last[0].eta_early == 0);
}

/* Members that keep their mixtures have no second pass, so the last step of the first has no time left. */
static void a_pass_that_will_not_be_is_not_waited_for(void **state) {
    (void)state;
    watch w = {0};
    acf_model *m;
    acf_options *o = options("true", "1", false);
    assert_true(!acf_options_set(o, "gmm", "2") && !acf_options_set(o, "ensemble", "2") &&
                !acf_options_set(o, "lr", "1e-9"));
    if (fit(o, &w, &m)) fail_msg("%s", acf_error());
    acf_model_free(m);
    assert_true(w.last[0].member == 2 && w.last[0].step == 12 && w.last[0].best_step == 0 && w.last[1].pass == 0);
    assert_true(w.last[0].eta == 0 && w.last[0].eta_early == 0);
}

/* Interrupts after every step of either pass, with another number of threads each time. */
static void interrupted_anywhere_it_ends_the_same(void **state) {
    (void)state;
    double whole[ROWS], resumed[ROWS];
    acf_model *m;
    watch w = {0};
    if (fit(options("true", "1", false), &w, &m)) fail_msg("%s", acf_error());
    scores(m, whole);
    acf_model_free(m);
    const int64_t calls = w.calls;
    assert_true(calls > w.last_of_first + 2);
    for (int64_t k = 1; k < calls; k++) {
        watch part = {.stop_at = k}, rest = {0};
        unlink(path);
        if (fit(options("true", "1", true), &part, &m) != ACF_EINTERRUPT) fail_msg("call %d: %s", (int)k, acf_error());
        assert_non_null(m); /* the best model so far */
        acf_model_free(m);
        if (fit(options("true", k % 2 ? "2" : "1", true), &rest, &m)) fail_msg("call %d: %s", (int)k, acf_error());
        scores(m, resumed);
        acf_model_free(m);
        assert_memory_equal(whole, resumed, sizeof whole);
        assert_int_equal(rest.calls, calls - k);
    }
    watch none = {0}; /* a finished run stays finished */
    if (fit(options("true", "1", true), &none, &m)) fail_msg("%s", acf_error());
    assert_int_equal(none.calls, 0);
    scores(m, resumed);
    assert_memory_equal(whole, resumed, sizeof whole);
    acf_model_free(m);
}

/* The validation score is that of the first pass. The model reports that it was then fitted to all cells, also from its
 * file. */
static void the_model_says_so(void **state) {
    (void)state;
    acf_model *m, *again, *plain = NULL;
    if (fit(options("true", "1", false), NULL, &m) || fit(options("false", "1", false), NULL, &plain))
        fail_msg("%s", acf_error());
    assert_int_equal(acf_model_save(m, path), ACF_OK);
    if (acf_model_load(path, NULL, &again)) fail_msg("%s", acf_error());
    char *json = text_of(m, ACF_JSON), *same = text_of(again, ACF_JSON), *other = text_of(plain, ACF_JSON);
    char *lines = text_of(again, ACF_TEXT), *other_lines = text_of(plain, ACF_TEXT);
    assert_string_equal(json, same);
    assert_non_null(strstr(json, "\"refit\": \"done\""));
    assert_non_null(strstr(other, "\"refit\": \"none\""));
    assert_non_null(strstr(lines, " cells); then fitted to all cells for twice as many steps\n"));
    assert_null(strstr(other_lines, "then fitted"));
    const char *a = strstr(json, "\"valid_step\":"), *b = strstr(other, "\"valid_step\":");
    assert_true(a && b && strcspn(a, ",}") == strcspn(b, ",}") && memcmp(a, b, strcspn(a, ",}")) == 0);
    double first[ROWS], second[ROWS];
    scores(m, first), scores(plain, second);
    assert_memory_not_equal(first, second, sizeof first);
    free(json), free(same), free(other), free(lines), free(other_lines);
    acf_model_free(m), acf_model_free(again), acf_model_free(plain);
}

/* Every allocation fails in turn, in a fit that is resumed in its second pass and writes a checkpoint at every step. */
static void survives_without_memory(void **state) {
    (void)state;
    acf_table *t = some_table();
    acf_model *m;
    for (int resumed = 0; resumed < 2; resumed++) {
        acf_options *o = options("true", "1", true);
        watch w = {.stop_at = 14}; /* at least one step into the second pass */
        assert_true(!acf_options_set(o, "checkpoint-every", "1e-9") && !acf_options_set(o, "steps", "3") &&
                    !acf_options_set(o, "valid-every", "1"));
        unlink(path);
        if (resumed)
            w.stop_at = 4, assert_int_equal(acf_model_fit(t, o, look, &w, &m), ACF_EINTERRUPT), acf_model_free(m);
        acf_fit_lab_without_memory(t, NULL, o, 5000);
        acf_options_free(o);
    }
    acf_table_free(t);
}

#define WITH_PATH(test) cmocka_unit_test_setup_teardown(test, make_path, remove_path)
ACF_TESTS(refit_api, cmocka_unit_test(reports_tell_the_passes_apart), cmocka_unit_test(what_is_left_counts_both_passes),
          cmocka_unit_test(a_pass_that_will_not_be_is_not_waited_for), WITH_PATH(interrupted_anywhere_it_ends_the_same),
          WITH_PATH(the_model_says_so), WITH_PATH(survives_without_memory))
