/* Tests of fitting through acflow.h alone: reports, interruption and resume, divergence, checkpoint failures, and the
 * description of a model. */
#include "acflow.h"

#include "base/arena.h"
#include "harness/fit_lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 90, COLS = ACF_FIT_LAB_COLS, CELLS = ROWS * COLS };

static char folder[64], path[96];

static int make_folder(void **state) {
    (void)state;
    strcpy(folder, "/tmp/acflow-fit-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/run.checkpoint", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    rmdir(folder);
    return 0;
}

static bool exists(void) { return access(path, F_OK) == 0; }

static acf_table *some_table(double bump) {
    static const char *const names[COLS] = {"dose", "site", NULL};
    return acf_fit_lab_table(ROWS, names, bump);
}

/* A small network and 40 steps in one pass. refit_api_test.c has two passes, ensemble_api_test.c several members. more:
 * pairs of name and value, ended by NULL. */
static acf_options *options(const char *const *more) {
    static const char *const common[] = {"steps",
                                         "40",
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
                                         "valid-every",
                                         "10",
                                         "flow",
                                         "linear leaky rnn",
                                         "gmm",
                                         "0", /* otherwise the best may be the initial model */
                                         "threads",
                                         "1",
                                         "checkpoint-every",
                                         "0",
                                         "refit",
                                         "false",
                                         "ensemble",
                                         "1",
                                         NULL};
    return acf_fit_lab_options(common, more);
}
#define WITH(...)                                                                                                      \
    (const char *const[]) { __VA_ARGS__, NULL }
#define CHECKPOINT "checkpoint", path
#define RESUME "checkpoint", path, "resume", "true"

/* What a callback has seen, and when it ends training. */
typedef struct watch {
    int64_t stop_at, calls, first;
    double begun; /* elapsed at the first call */
    acf_fit_report last;
    bool seen; /* was there a checkpoint at the last call? */
} watch;

static int look(void *ctx, const acf_fit_report *r) {
    watch *w = ctx;
    if (!w->calls++) w->first = r->step, w->begun = r->elapsed;
    w->last = *r;
    w->seen = exists();
    return r->step == w->stop_at;
}

/* Fits and returns the status; frees the options. */
static acf_status fit(double bump, acf_options *o, watch *w, acf_model **out) {
    return acf_fit_lab_fit(some_table(bump), o, w ? look : NULL, w, out);
}

static void expect(acf_status status, acf_status expected, const char *says) {
    if (status != expected)
        fail_msg("%s instead of %s: %s", acf_status_name(status), acf_status_name(expected), acf_error());
    if (status && !strstr(acf_error(), says)) fail_msg("expected '%s' in: %s", says, acf_error());
}

/* log p of the table's rows; equal bits mean equal weights. */
static void scores(const acf_model *m, double *out) { acf_fit_lab_scores(m, some_table(0), out); }

static void assert_same_model(const acf_model *a, const acf_model *b) {
    double first[ROWS], second[ROWS];
    scores(a, first);
    scores(b, second);
    assert_memory_equal(first, second, sizeof first);
}

static char *info(const acf_model *m, acf_format format) {
    size_t needed = 0;
    assert_int_equal(acf_model_info(m, format, NULL, 0, &needed), ACF_ESPACE);
    char *text = malloc(needed);
    assert_non_null(text);
    assert_int_equal(acf_model_info(m, format, text, needed, NULL), ACF_OK);
    assert_int_equal(strlen(text) + 1, needed);
    return text;
}

static void assert_says(const acf_model *m, const char *words) {
    char *text = info(m, ACF_JSON);
    if (!strstr(text, words)) fail_msg("expected %s in %s", words, text);
    free(text);
}

/* ---- interruption and resume ------------------------------------------------------------------------------------- */

static void an_interrupted_fit_goes_on(void **state) {
    (void)state;
    acf_model *whole, *part, *resumed, *longer;
    watch w = {.stop_at = 17};
    expect(fit(0, options(NULL), NULL, &whole), ACF_OK, "");
    expect(fit(0, options(WITH(CHECKPOINT)), &w, &part), ACF_EINTERRUPT,
           "interrupted after step 17; use the option 'resume' to go on from");
    assert_int_equal(w.last.step, 17);
    assert_non_null(part); /* the best model so far */
    assert_says(part, "\"end\": \"interrupted\"");
    assert_true(exists());
    double before = w.last.elapsed;
    w = (watch){.stop_at = -1};
    expect(fit(0, options(WITH(RESUME, "threads", "2")), &w, &resumed), ACF_OK, "");
    assert_int_equal(w.first, 18);
    assert_true(w.begun > before && w.last.elapsed > w.begun); /* the clock resolves a step */
    assert_same_model(whole, resumed);
    assert_true(exists()); /* the end of the run; it can be made longer */
    w = (watch){.stop_at = -1};
    expect(fit(0, options(WITH(RESUME, "steps", "50", "patience", "7", "lr", "0.001")), &w, &longer), ACF_OK, "");
    assert_int_equal(w.first, 41);
    assert_int_equal(w.last.step, 50);
    acf_model_free(whole), acf_model_free(part), acf_model_free(resumed), acf_model_free(longer);
}

/* With checkpoint-every -1 the file appears only when it is needed. */
static void a_checkpoint_may_wait_for_an_interruption(void **state) {
    (void)state;
    acf_model *whole, *part, *resumed;
    watch w = {.stop_at = 17};
    expect(fit(0, options(WITH(CHECKPOINT, "checkpoint-every", "-1")), NULL, &whole), ACF_OK, "");
    assert_false(exists());
    expect(fit(0, options(WITH(CHECKPOINT, "checkpoint-every", "-1")), &w, &part), ACF_EINTERRUPT,
           "use the option 'resume' to go on from");
    assert_true(exists() && !w.seen);
    expect(fit(0, options(WITH(RESUME, "checkpoint-every", "-1")), NULL, &resumed), ACF_OK, "");
    assert_same_model(whole, resumed);
    acf_model_free(whole), acf_model_free(part), acf_model_free(resumed);
}

static void without_a_checkpoint_interruption_gives_the_model(void **state) {
    (void)state;
    acf_model *m;
    watch w = {.stop_at = 23};
    expect(fit(0, options(NULL), &w, &m), ACF_EINTERRUPT, "training was interrupted after step 23");
    double out[ROWS];
    scores(m, out);
    acf_model_free(m);
}

static void what_exists_is_not_overwritten(void **state) {
    (void)state;
    acf_model *m, *again;
    expect(fit(0, options(WITH("resume", "true")), NULL, &m), ACF_EUSAGE, "no checkpoint is named");
    expect(fit(0, options(WITH(RESUME)), NULL, &m), ACF_OK, ""); /* no file yet: training begins */
    expect(fit(0, options(WITH(CHECKPOINT)), NULL, &again), ACF_EUSAGE,
           "use the option 'resume' to go on with it, or remove it to begin anew");
    assert_null(again);
    watch w = {.stop_at = -1};
    expect(fit(0, options(WITH(RESUME)), &w, &again), ACF_OK, "");
    assert_int_equal(w.calls, 0); /* it was finished */
    assert_same_model(m, again);
    acf_model_free(m);
    acf_model_free(again);
}

static void a_checkpoint_of_something_else_is_refused(void **state) {
    (void)state;
    acf_model *m;
    watch w = {.stop_at = 5};
    expect(fit(0, options(WITH(CHECKPOINT)), &w, &m), ACF_EINTERRUPT, "");
    acf_model_free(m);
    expect(fit(1, options(WITH(RESUME)), NULL, &m), ACF_EMODEL, "is of another table: checksum is");
    assert_null(m);
    expect(fit(0, options(WITH(RESUME, "components", "4")), NULL, &m), ACF_EMODEL,
           "is of other options: components is 3 there and 4 here");
    expect(fit(0, options(WITH(RESUME, "seed", "7")), NULL, &m), ACF_EMODEL,
           "is of other options: seed is 1 there and 7 here");
    FILE *f = fopen(path, "w");
    fputs("age,income\n", f);
    fclose(f);
    expect(fit(0, options(WITH(RESUME)), NULL, &m), ACF_EMODEL, path);
}

/* ---- checkpoints that cannot be written -------------------------------------------------------------------------- */

static void a_wrong_path_is_noticed_at_once(void **state) {
    (void)state;
    acf_model *m;
    watch w = {.stop_at = -1};
    expect(fit(0, options(WITH("checkpoint", "/nowhere/at/all")), &w, &m), ACF_EIO, "/nowhere/at/all");
    assert_null(m);
    assert_int_equal(w.calls, 0);
}

/* The folder is removed for a while: a report says so, and training goes on. */
static int take_folder_away(void *ctx, const acf_fit_report *r) {
    int *seen = ctx;
    if (r->step == 5) assert_int_equal(unlink(path) || rmdir(folder), 0);
    if (r->step > 6 && r->step < 20) assert_non_null(r->trouble);
    if (r->step > 6 && r->step < 20 && strstr(r->trouble, path)) (*seen)++;
    if (r->step == 20 && seen[1]) assert_int_equal(mkdir(folder, 0700), 0);
    if (r->step > 21 && seen[1]) assert_null(r->trouble);
    return 0;
}

static void a_checkpoint_that_fails_does_not_end_training(void **state) {
    (void)state;
    for (int back = 0; back < 2; back++) {
        int seen[2] = {0, back};
        acf_table *t = some_table(0);
        acf_options *o = options(WITH(CHECKPOINT, "checkpoint-every", "1e-9"));
        acf_model *m;
        mkdir(folder, 0700), unlink(path);
        acf_status status = acf_model_fit(t, o, take_folder_away, seen, &m);
        expect(status, back ? ACF_OK : ACF_EIO,
               path); /* without its folder the last checkpoint fails, but the model is there */
        assert_int_equal(seen[0], 13);
        assert_non_null(m);
        assert_says(m, "\"end\": \"steps\"");
        assert_true(exists() == back);
        acf_model_free(m);
        acf_options_free(o);
        acf_table_free(t);
    }
}

/* ---- divergence -------------------------------------------------------------------------------------------------- */

/* Forty scales of up to e^20 each overflow even a double once the steps are large enough. The steps before are normal;
 * the run is then resumed with steps of size 10. */
#define TEN "affine affine affine affine affine affine affine affine affine affine "
#define STEEP "flow", TEN TEN TEN TEN, "mlp-layers", "0", "scale-bound", "20", "valid-every", "5", "steps", "500"
#define LARGE_STEPS RESUME, "lr", "10", "warmup", "0", "clip", "0", "decay", "constant", "checkpoint-every", "1e-9"

static int64_t diverge(const char *valid, const char *average, acf_model **out) {
    watch w = {.stop_at = 22};
    unlink(path);
    expect(fit(0, options(WITH(STEEP, CHECKPOINT, "valid", valid, "ema", average)), &w, out), ACF_EINTERRUPT, "");
    acf_model_free(*out);
    w = (watch){.stop_at = -1};
    expect(fit(0, options(WITH(STEEP, LARGE_STEPS, "valid", valid, "ema", average)), &w, out), ACF_ENUMERIC,
           "training diverged: after step");
    assert_int_equal(w.last.skipped, 20); /* the last one is not reported any more */
    if (!*out) fail_msg("no model after %s", acf_error());
    assert_says(*out, "\"end\": \"diverged\"");
    return w.last.step - w.last.skipped;
}

static void divergence_gives_the_last_good_model(void **state) {
    (void)state;
    double out[ROWS];
    acf_model *m;
    diverge("0.1", "0.998", &m); /* the best validated weights */
    scores(m, out);
    for (int i = 0; i < ROWS; i++) assert_true(isfinite(out[i]));
    acf_model_free(m);
    diverge("0", "0.998", &m); /* without validation the averaged weights, or the last ones if these are not finite */
    acf_model_free(m);
    assert_int_equal(acf_status_exit(ACF_ENUMERIC), 6);
}

/* The checkpoint from before the divergence stays, and can be resumed with smaller steps. */
static void a_checkpoint_is_from_before_the_divergence(void **state) {
    (void)state;
    acf_model *m;
    int64_t last_good = diverge("0.1", "0.998", &m);
    acf_model_free(m);
    watch w = {.stop_at = -1};
    acf_options *o = options(WITH(STEEP, RESUME, "lr", "1e-6", "steps", "30"));
    expect(fit(0, o, &w, &m), ACF_OK, "");
    assert_int_equal(w.first, last_good + 1);
    acf_model_free(m);
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

static void reports_are_enough_for_a_display(void **state) {
    (void)state;
    acf_model *m;
    watch w = {.stop_at = 14};
    expect(fit(0, options(WITH("checkpoint-every", "0")), &w, &m), ACF_EINTERRUPT, "");
    const acf_fit_report *r = &w.last;
    assert_int_equal(r->steps, 40);
    assert_int_equal(r->epoch, 4); /* 90 rows, at most 32 per step: three steps per epoch */
    assert_true(isfinite(r->loss) && isfinite(r->mean_loss) && r->loss != r->mean_loss);
    assert_true(isfinite(r->valid) && r->valid == r->best && r->best_step == 10 && !r->validated);
    assert_true(r->stale == 0 && r->patience == 10 && r->rows_per_second > 0 && r->skipped == 0 && !r->trouble);
    assert_true(r->elapsed > 0 && r->eta > 0 && r->eta < 60);
    double step = r->eta / 26; /* left of 40 */
    assert_true(fabs(step * 14 - r->elapsed) < 0.2 * r->elapsed + 1e-4);
    assert_true(r->eta_early == r->eta); /* patience would last for 200 steps */
    acf_model_free(m);

    w = (watch){.stop_at = 33};
    expect(fit(0, options(WITH("steps", "0", "epochs", "20", "patience", "4")), &w, &m), ACF_EINTERRUPT, "");
    assert_int_equal(r->steps, 60);
    assert_true(r->eta_early < r->eta);
    acf_model_free(m);

    w = (watch){.stop_at = 10};
    expect(fit(0, options(WITH("steps", "0", "valid", "0")), &w, &m), ACF_EINTERRUPT, "");
    assert_true(r->steps == 0 && isnan(r->eta) && isnan(r->eta_early) && isnan(r->valid) && r->patience == 0);
    acf_model_free(m);
}

/* ---- the description of a model -------------------------------------------------------------------------------- */

static void a_model_describes_itself(void **state) {
    (void)state;
    static const char *const json[] = {"\"name\": \"dose\"",
                                       "\"kind\": \"categorical\"",
                                       "\"likelihood-units\": 6",
                                       "\"end\": \"steps\"",
                                       "\"rows\": 90",
                                       "\"steps\": 40",
                                       "\"epochs\": 13",
                                       "\"valid\": ",
                                       "\"valid_step\": ",
                                       "\"seconds\": ",
                                       "\"parameters\": "};
    static const char *const lines[] = {
        "\n  dose                 real, column 0\n",    "\n  site                 category of 3 classes, column 1\n",
        "\n  (no name)            real, column 2\n",    "\n  likelihood-units     6\n",
        "training: 40 steps, 13 epochs of 90 rows in ", ": all steps were taken; best at step "};
    acf_model *m, *again;
    expect(fit(0, options(NULL), NULL, &m), ACF_OK, "");
    assert_int_equal(acf_model_save(m, path), ACF_OK);
    if (acf_model_load(path, NULL, &again)) fail_msg("%s", acf_error());
    char *first = info(m, ACF_JSON), *second = info(again, ACF_JSON), *text = info(again, ACF_TEXT);
    assert_string_equal(first, second);
    for (size_t k = 0; k < sizeof json / sizeof *json; k++)
        if (!strstr(first, json[k])) fail_msg("no %s in %s", json[k], first);
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        if (!strstr(text, lines[k])) fail_msg("no %s in %s", lines[k], text);
    assert_null(strstr(first, "checkpoint")); /* its path does not matter */
    assert_int_equal(acf_model_columns(m), COLS);
    assert_string_equal(acf_model_column_name(again, 1), "site");
    assert_null(acf_model_column_name(again, 2));
    assert_int_equal(acf_model_column_classes(again, 1), 3);
    assert_int_equal(acf_model_column_classes(again, 0), 0);
    assert_int_equal(acf_model_column_classes(again, 3), -1);
    assert_null(acf_model_column_name(again, -1));
    char count[48];
    snprintf(count, sizeof count, "\"parameters\": %lld,", (long long)acf_model_parameters(m));
    assert_true(acf_model_parameters(m) > 1000 && strstr(first, count));
    assert_int_equal(acf_model_info(NULL, ACF_JSON, NULL, 0, NULL), ACF_EUSAGE);
    assert_true(acf_model_columns(NULL) == 0 && acf_model_parameters(NULL) == 0);
    free(first), free(second), free(text);
    acf_model_free(m);
    acf_model_free(again);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Every allocation fails in turn, in a resumed fit with a checkpoint at every step. */
static void survives_without_memory(void **state) {
    (void)state;
    acf_table *t = some_table(0);
    acf_options *o = options(WITH(RESUME, "checkpoint-every", "1e-9", "steps", "3", "valid-every", "2", "batch", "90"));
    acf_fit_lab_without_memory(t, NULL, o, 2000);
    acf_options_free(o);
    acf_table_free(t);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
ACF_TESTS(fit_api, WITH_FOLDER(an_interrupted_fit_goes_on),
          cmocka_unit_test(without_a_checkpoint_interruption_gives_the_model),
          WITH_FOLDER(a_checkpoint_may_wait_for_an_interruption), WITH_FOLDER(what_exists_is_not_overwritten),
          WITH_FOLDER(a_checkpoint_of_something_else_is_refused), cmocka_unit_test(a_wrong_path_is_noticed_at_once),
          WITH_FOLDER(a_checkpoint_that_fails_does_not_end_training), WITH_FOLDER(divergence_gives_the_last_good_model),
          WITH_FOLDER(a_checkpoint_is_from_before_the_divergence), cmocka_unit_test(reports_are_enough_for_a_display),
          WITH_FOLDER(a_model_describes_itself), WITH_FOLDER(survives_without_memory))
