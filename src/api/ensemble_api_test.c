/* Tests of ensembles through acflow.h alone: equality with single fits, interruption anywhere and resume, a member that
 * diverges, memory failures. */
#include "acflow.h"

#include "base/arena.h"
#include "harness/fit_lab.h"
#include "train/ensemble.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 60, COLS = ACF_FIT_LAB_COLS, CELLS = ROWS * COLS };

static char path[64], file[64];

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/acflow-members-%d.checkpoint", (int)getpid());
    snprintf(file, sizeof file, "/tmp/acflow-members-%d.safetensors", (int)getpid());
    return 0;
}

static int remove_path(void **state) {
    (void)state;
    unlink(path), unlink(file);
    return 0;
}

static acf_table *some_table(void) { return acf_fit_lab_table(ROWS, NULL, 0); }

/* A small network, six steps and then a second pass; more: pairs of name and value, ended by NULL. */
static acf_options *options(const char *const *more) {
    static const char *const common[] = {
        "steps", "6",    "valid-every", "2", "likelihood-units", "6", "components", "3", "batch", "32", "gmm", "2",
        "lr",    "0.01", "warmup",      "2", "checkpoint-every", "0", "threads",    "1", NULL};
    return acf_fit_lab_options(common, more);
}
#define WITH(...)                                                                                                      \
    (const char *const[]) { __VA_ARGS__, NULL }
#define RESUME "checkpoint", path, "resume", "true"

/* What a callback has seen, and when it ends training. */
typedef struct watch {
    int64_t calls, stop_at;
    int calls_of[3];
    acf_fit_report first[3], end[3]; /* each member's first and last */
    acf_fit_report last;
    char trouble[512];
    acf_table *poisoned; /* while member 2 is trained */
} watch;

static int look(void *ctx, const acf_fit_report *r) {
    watch *w = ctx;
    assert_in_range(r->member, 1, r->members);
    assert_true(r->elapsed >= w->last.elapsed && r->member >= w->last.member);
    w->last = *r;
    if (w->calls_of[(r->member - 1) % 3]++ == 0) w->first[(r->member - 1) % 3] = *r;
    w->end[(r->member - 1) % 3] = *r;
    if (r->trouble) snprintf(w->trouble, sizeof w->trouble, "%s", r->trouble);
    w->calls++;
    if (w->poisoned) { /* makes member 2 diverge; the held-out cells and scales are already known */
        double *x = (double *)acf_table_values(w->poisoned);
        for (int i = 0; i < CELLS; i += 3)
            if (!isnan(x[i])) x[i] = r->member == 2 && !r->trouble ? 1e300 : sin(i);
    }
    return w->calls == w->stop_at;
}

static acf_status fit(acf_options *o, watch *w, acf_model **out) {
    return acf_fit_lab_fit(some_table(), o, w ? look : NULL, w, out);
}

static void scores(const acf_model *m, double *out) { acf_fit_lab_scores(m, some_table(), out); }

/* Each member is the model of its seed, and the density is their mean, from memory and from the file. Without a
 * Gaussian mixture, because its members have a second pass only if they improve on it; without donors, because all
 * members share them. */
static void members_are_fits_from_other_seeds(void **state) {
    (void)state;
    double lp[ROWS], loaded[ROWS], one[3][ROWS];
    acf_model *m, *again = NULL;
    watch w = {0};
    if (fit(options(WITH("ensemble", "3", "gmm", "0", "donors", "false")), &w, &m)) fail_msg("%s", acf_error());
    assert_int_equal(acf_model_members(m), 3);
    assert_true(w.last.member == 3 && w.last.members == 3 && w.calls_of[0] > 6 && w.calls_of[1] > 6 &&
                w.calls_of[2] > 6);
    for (int k = 0; k < 3; k++) {
        char seed[32];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)acf_member_seed(1, k));
        if (fit(options(WITH("ensemble", "1", "seed", seed, "gmm", "0", "donors", "false")), NULL, &again))
            fail_msg("%s", acf_error());
        assert_int_equal(acf_model_members(again), 1);
        assert_int_equal(acf_model_parameters(m), 3 * acf_model_parameters(again));
        scores(again, one[k]);
        acf_model_free(again);
    }
    assert_memory_not_equal(one[0], one[1], sizeof one[0]);
    assert_memory_not_equal(one[1], one[2], sizeof one[0]);
    scores(m, lp);
    for (int i = 0; i < ROWS; i++)
        assert_true(fabs(lp[i] - log((exp(one[0][i]) + exp(one[1][i]) + exp(one[2][i])) / 3)) <
                    1e-9 * (1 + fabs(lp[i])));
    if (acf_model_save(m, file) || acf_model_load(file, NULL, &again)) fail_msg("%s", acf_error());
    scores(again, loaded);
    assert_memory_equal(lp, loaded, sizeof lp);
    acf_model_free(m), acf_model_free(again);
}

/* Six steps and a second pass of at most twelve, three times. */
static void what_is_left_counts_all_members(void **state) {
    (void)state;
    acf_model *m;
    watch w = {0};
    if (fit(options(WITH("ensemble", "3", "gmm", "0", "donors", "false")), &w, &m)) fail_msg("%s", acf_error());
    acf_model_free(m);
    const acf_fit_report *r = &w.first[0], *e = w.end;
    assert_true(fabs(r->eta - r->elapsed * (5 + 12 + 2 * 18)) < 0.2 * r->eta + 1e-3);
    assert_true(e[0].eta_early == fmin(2 * e[0].elapsed, e[0].eta)); /* the others as long as the first */
    assert_true(e[1].eta_early > 0 && e[1].eta >= e[1].eta_early);
    assert_true(e[2].eta == 0 && isnan(e[2].eta_early));
}

/* auto depends on the rows; a number that was set is kept; the model reports its members. */
static void a_model_says_how_many(void **state) {
    (void)state;
    acf_model *m = NULL, *two = NULL, *one = NULL;
    char text[16384];
    if (fit(options(NULL), NULL, &m) || fit(options(WITH("ensemble", "2")), NULL, &two) ||
        fit(options(WITH("ensemble", "1")), NULL, &one))
        fail_msg("%s", acf_error());
    assert_true(acf_model_members(m) == 3 && acf_model_members(two) == 2 && acf_model_members(one) == 1 &&
                acf_model_members(NULL) == 0);
    assert_int_equal(acf_model_info(two, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    const char *list = strstr(text, "\"members\": [");
    assert_true(list && strstr(list, "\"training\"") && strstr(text, "\"ensemble\": 2,"));
    assert_int_equal(acf_model_info(two, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(text, "members: 2, whose densities are averaged\n"));
    assert_int_equal(acf_model_info(one, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    assert_null(strstr(text, "averaged"));
    acf_options *o = options(NULL);
    assert_true(acf_options_set(o, "ensemble", "0") == ACF_EUSAGE &&
                acf_options_set(o, "ensemble", "17") == ACF_EUSAGE);
    acf_options_free(o);
    acf_model_free(m), acf_model_free(two), acf_model_free(one);
}

#define THREE "ensemble", "3", "gmm", "0" /* without a Gaussian mixture each member has its second pass */

/* After any step of any member the model has the complete members, and the resumed model is that of an uninterrupted
 * run. */
static void interrupted_anywhere_it_ends_the_same(void **state) {
    (void)state;
    double whole[ROWS], resumed[ROWS];
    acf_model *m;
    watch w = {0};
    if (fit(options(WITH(THREE)), &w, &m)) fail_msg("%s", acf_error());
    scores(m, whole);
    acf_model_free(m);
    const int64_t calls = w.calls;
    for (int64_t k = 2; k < calls; k++) {
        watch part = {.stop_at = k}, rest = {0};
        unlink(path);
        if (fit(options(WITH(THREE, "checkpoint-every", k % 2 ? "0" : "-1", RESUME)), &part, &m) != ACF_EINTERRUPT)
            fail_msg("call %d: %s", (int)k, acf_error());
        /* also the first one, if it was not complete */
        assert_true(m && acf_model_members(m) == (k >= w.calls_of[0] + w.calls_of[1] ? 2 : 1));
        if (part.last.member > 1)
            assert_non_null(strstr(acf_error(), part.last.member == 3 ? "member 3 of 3" : "member 2 of 3"));
        acf_model_free(m);
        if (fit(options(WITH(THREE, "threads", k % 2 ? "2" : "1", RESUME)), &rest, &m))
            fail_msg("call %d: %s", (int)k, acf_error());
        scores(m, resumed);
        acf_model_free(m);
        assert_memory_equal(whole, resumed, sizeof whole);
        assert_int_equal(rest.calls, calls - k);
    }
    watch none = {0}; /* a finished run stays finished */
    if (fit(options(WITH(THREE, RESUME)), &none, &m)) fail_msg("%s", acf_error());
    assert_int_equal(none.calls, 0);
    scores(m, resumed);
    assert_memory_equal(whole, resumed, sizeof whole);
    acf_model_free(m);
    assert_int_equal(fit(options(WITH("ensemble", "2", "gmm", "0", RESUME)), NULL, &m), ACF_EMODEL);
    assert_non_null(strstr(acf_error(), "member 3, and this model has 2"));
    watch second = {.stop_at =
                        w.calls_of[0] + 2}; /* its first pass; for the first member a larger lr would be accepted */
    unlink(path);
    assert_int_equal(fit(options(WITH(THREE, RESUME)), &second, &m), ACF_EINTERRUPT);
    acf_model_free(m);
    assert_int_equal(fit(options(WITH(THREE, "lr", "0.02", RESUME)), NULL, &m), ACF_EMODEL);
    assert_non_null(strstr(acf_error(), "of a later member, which can only go on as it began: lr is"));
}

/* Members trained in parallel: as many threads as members, fewer, more. */

typedef struct audience {
    pthread_t thread;
    int64_t calls, stop_at;
    double elapsed;
    int members[5];
} audience;

static int listen(void *ctx, const acf_fit_report *r) {
    audience *a = ctx;
    assert_true(pthread_equal(a->thread, pthread_self()));
    assert_true(r->elapsed >= a->elapsed && r->members == 5 && r->member >= 1 && r->member <= 5);
    a->elapsed = r->elapsed, a->members[r->member - 1]++;
    return ++a->calls == a->stop_at;
}

static acf_status fit_with(const char *threads, const char *const *more, audience *a, acf_model **out) {
    acf_options *o = options(more);
    assert_int_equal(acf_options_set(o, "ensemble", "5"), ACF_OK);
    assert_int_equal(acf_options_set(o, "gmm", "0"), ACF_OK); /* each member has its second pass */
    assert_int_equal(acf_options_set(o, "threads", threads), ACF_OK);
    *a = (audience){.thread = pthread_self(), .stop_at = a->stop_at};
    return acf_fit_lab_fit(some_table(), o, listen, a, out);
}

static void parallel_members_are_the_same(void **state) {
    (void)state;
    static const char *const threads[] = {"1", "2", "3", "8"};
    double alone[ROWS], together[ROWS];
    int64_t live = 0;
    for (int k = 0; k < 4; k++) {
        acf_model *m;
        audience a = {0};
        if (fit_with(threads[k], NULL, &a, &m)) fail_msg("%s", acf_error());
        assert_int_equal(acf_model_members(m), 5);
        assert_true(a.members[0] >= 6 && a.calls > a.members[0]);
        scores(m, k ? together : alone);
        if (k) assert_memory_equal(together, alone, sizeof alone);
        acf_model_free(m);
        if (k) assert_int_equal(acf_alloc_live(), live);
        live = acf_alloc_live();
    }
}

/* After an interruption at any report, the resumed model equals an uninterrupted one. The model that is kept has the
 * members before the first incomplete one. */
static void parallel_members_can_be_interrupted(void **state) {
    (void)state;
    double whole[ROWS], resumed[ROWS];
    acf_model *m;
    audience a = {0};
    if (fit_with("1", NULL, &a, &m)) fail_msg("%s", acf_error());
    scores(m, whole);
    acf_model_free(m);
    int interrupted = 0;
    for (int64_t k = 1; k < a.calls; k += 5) {
        audience part = {.stop_at = k}, rest = {0};
        unlink(path);
        const acf_status status = fit_with("3", WITH("checkpoint", path, "checkpoint-every", "-1"), &part, &m);
        if (status == ACF_OK) break; /* there were not so many reports */
        assert_int_equal(status, ACF_EINTERRUPT);
        assert_true(m && acf_model_members(m) < 5 && access(path, F_OK) == 0);
        interrupted++;
        acf_model_free(m);
        if (fit_with(k % 2 ? "2" : "1", WITH(RESUME), &rest, &m)) fail_msg("call %d: %s", (int)k, acf_error());
        scores(m, resumed);
        acf_model_free(m);
        assert_memory_equal(whole, resumed, sizeof whole);
    }
    assert_true(interrupted > 2); /* in the first member, whose reports are all delivered */
}

#define ATTENTION "ensemble", "2", "likelihood", "attention", "dropout", "0.1"
/* A transformer takes another order of every row's cells in each step. A resumed run continues with the next order. */
static void attention_goes_on_as_it_began(void **state) {
    (void)state;
    double whole[ROWS], resumed[ROWS];
    acf_model *m;
    watch w = {0};
    if (fit(options(WITH(ATTENTION)), &w, &m)) fail_msg("%s", acf_error());
    scores(m, whole);
    acf_model_free(m);
    for (int64_t k = 2; k < w.calls; k += 3) {
        watch part = {.stop_at = k};
        unlink(path);
        assert_int_equal(fit(options(WITH(ATTENTION, RESUME)), &part, &m), ACF_EINTERRUPT);
        acf_model_free(m);
        if (fit(options(WITH(ATTENTION, "threads", "2", RESUME)), NULL, &m)) fail_msg("%s", acf_error());
        scores(m, resumed);
        acf_model_free(m);
        assert_memory_equal(whole, resumed, sizeof whole);
    }
}

/* The second of three members has values for which no step is finite. */
static void a_member_that_diverges_is_left_out(void **state) {
    (void)state;
    acf_model *m;
    acf_table *t = some_table();
    acf_options *o = options(WITH("ensemble", "3", "steps", "60", "patience", "0", "refit", "false"));
    watch w = {.poisoned = t};
    if (acf_model_fit(t, o, look, &w, &m)) fail_msg("%s", acf_error());
    assert_int_equal(acf_model_members(m), 2);
    if (!strstr(w.trouble, "member 2 of 3 is left out of the model, which has the others: "))
        fail_msg("trouble: %s", w.trouble);
    assert_int_equal(w.last.member, 3);
    acf_model_free(m);
    acf_options_free(o);
    acf_table_free(t);
}

/* Every allocation fails in turn, in a fit that is resumed in its second member. */
static void survives_without_memory(void **state) {
    (void)state;
    acf_model *m = NULL;
    const char *const *small = WITH("ensemble", "2", "steps", "2", "valid-every", "1", "refit", "false", RESUME);
    watch w = {.stop_at = 3};
    unlink(path);
    assert_int_equal(fit(options(small), &w, &m), ACF_EINTERRUPT);
    acf_model_free(m);
    acf_table *t = some_table();
    acf_options *o = options(small);
    acf_fit_lab_without_memory(t, NULL, o, 5000);
    acf_options_free(o);
    acf_table_free(t);
}

#define WITH_PATH(test) cmocka_unit_test_setup_teardown(test, make_path, remove_path)
ACF_TESTS(ensemble_api, WITH_PATH(members_are_fits_from_other_seeds), cmocka_unit_test(what_is_left_counts_all_members),
          cmocka_unit_test(a_model_says_how_many), WITH_PATH(interrupted_anywhere_it_ends_the_same),
          cmocka_unit_test(a_member_that_diverges_is_left_out), WITH_PATH(survives_without_memory),
          cmocka_unit_test(parallel_members_are_the_same), WITH_PATH(parallel_members_can_be_interrupted),
          WITH_PATH(attention_goes_on_as_it_began))
