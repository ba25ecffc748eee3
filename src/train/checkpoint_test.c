/* Tests of checkpoint.h: a resumed run equals the uninterrupted one, and a checkpoint of something else is refused. */
#include "train/checkpoint.h"

#include "base/safetensors.h"
#include "harness/train_lab.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 150, D = 4 };

static char path[64];

static int make_file(void **state) {
    (void)state;
    strcpy(path, "/tmp/acflow-checkpoint-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static const char *const standard[] = {"steps=40", "valid-every=7", "guess-weight=0.1", NULL};

static void open_lab(acf_train_lab *l, int threads, const char *const *settings) {
    acf_train_lab_open(l, threads, settings);
    acf_train_lab_ready(l, acf_train_lab_table(N, D, 0.2, 0, 3));
}

static void stop_at(void *ctx, const acf_train_progress *p) {
    volatile sig_atomic_t *stop = ctx;
    if (p->step == 20) *stop = 1;
}

static void run(acf_train_lab *l, bool halfway) {
    volatile sig_atomic_t stop = 0;
    acf_train_hooks hooks = {stop_at, (void *)(uintptr_t)&stop, &stop};
    if (acf_trainer_run(l->tr, halfway ? &hooks : NULL, NULL)) fail_msg("%s", acf_error());
    assert_int_equal(l->tr->state.step, halfway ? 20 : 40);
}

static void save(const acf_train_lab *l) {
    if (acf_checkpoint_save(l->tr, path)) fail_msg("%s", acf_error());
}

static void load(acf_train_lab *l) {
    if (acf_checkpoint_load(l->tr, path)) fail_msg("%s", acf_error());
}

/* Forty steps in one go; or twenty, a file, fresh objects (with another number of threads), twenty more. */
static void resumed_is_uninterrupted(void **state) {
    (void)state;
    acf_train_lab whole, first, second;
    open_lab(&whole, 1, standard);
    run(&whole, false);
    open_lab(&first, 1, standard);
    run(&first, true);
    save(&first);
    const double seconds = first.tr->seconds;
    acf_train_lab_close(&first);
    open_lab(&second, 2, standard);
    load(&second);
    assert_true(seconds > 0 && second.tr->seconds == seconds);
    assert_int_equal(second.tr->state.step, 20);
    run(&second, false);
    acf_train_lab_same(&whole, &second);
    const acf_train_state *a = &whole.tr->state, *b = &second.tr->state;
    assert_memory_equal(a, b, sizeof *a);
    assert_int_equal(whole.tr->sampler.epoch, second.tr->sampler.epoch);
    assert_int_equal(whole.tr->sampler.at, second.tr->sampler.at);
    assert_memory_equal(whole.tr->best, second.tr->best, (size_t)acf_net_params(whole.net)->total * sizeof(acf_real));
    acf_train_lab_close(&whole);
    acf_train_lab_close(&second);
}

/* There is no best before the first validation, and never without held-out cells. */
static void the_initial_state_is_saved_too(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        const char *set[] = {k ? "valid=0" : "valid=0.1", NULL};
        acf_train_lab a, b;
        open_lab(&a, 1, set);
        open_lab(&b, 1, set);
        for (int i = 0; i < 3; i++) assert_int_equal(acf_trainer_step(a.tr, NULL), ACF_OK);
        save(&a);
        load(&b);
        assert_true(isinf(b.tr->state.best));
        acf_train_lab_same(&a, &b);
        assert_int_equal(acf_trainer_step(a.tr, NULL), ACF_OK);
        assert_int_equal(acf_trainer_step(b.tr, NULL), ACF_OK);
        acf_train_lab_same(&a, &b);
        acf_train_lab_close(&a);
        acf_train_lab_close(&b);
    }
}

/* A trainer with these settings and this table refuses the file in `path`, and is unchanged. */
static void refused(const char *const *settings, acf_table *table, const char *sentence) {
    acf_train_lab l, twin;
    acf_train_lab_open(&l, 1, settings);
    acf_train_lab_ready(&l, table);
    acf_train_lab_open(&twin, 1, settings);
    acf_train_lab_ready(&twin, acf_train_lab_table(N, D, 0.2, 0, 3)); /* the same network if the columns are as many */
    acf_status status = acf_checkpoint_load(l.tr, path);
    if (status != ACF_EMODEL || !strstr(acf_error(), sentence)) fail_msg("%d: %s", status, acf_error());
    assert_int_equal(l.tr->state.step, 0);
    assert_int_equal(l.tr->sampler.at, 0);
    if (table->D == D) acf_train_lab_same(&l, &twin);
    acf_train_lab_close(&l);
    acf_train_lab_close(&twin);
}

/* The common table with another number in one held-out cell, on which no scale depends. */
static acf_table *one_cell_changed(void) {
    acf_table *t = acf_train_lab_table(N, D, 0.2, 0, 3);
    acf_holdout *h = NULL;
    uint8_t held[D];
    int64_t i = 0, j = 0;
    assert_int_equal(acf_holdout_create(t, NULL, 0.1, 1, &h), ACF_OK);
    while (acf_holdout_row(h, t, i, held) == 0) i++;
    while (!held[j]) j++;
    ((double *)(uintptr_t)t->x)[i * D + j] += 1; /* tables are constant outside tests */
    acf_holdout_free(h);
    return t;
}

static void checkpoints_of_something_else_are_refused(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, 1, standard);
    run(&l, true);
    save(&l);
    acf_train_lab_close(&l);
    refused((const char *[]){"steps=40", "valid-every=7", "guess-weight=0.1", "coupling-units=9", NULL},
            acf_train_lab_table(N, D, 0.2, 0, 3),
            "the checkpoint is of other options: coupling-units is 8 there and 9 here");
    refused(standard, acf_train_lab_table(N, D + 1, 0.2, 0, 3),
            "the checkpoint is of another table: columns is 4 there and 5 here");
    refused(standard, acf_train_lab_table(N + 1, D, 0.2, 0, 3), "is of another table: rows is 150 there and 151 here");
    refused(standard, one_cell_changed(), "the checkpoint is of another table: checksum is ");
    refused((const char *[]){"steps=40", "valid-every=7", "guess-weight=0.1", "dropout=0.25", NULL},
            acf_train_lab_table(N, D, 0.2, 0, 3),
            "the checkpoint is of other options: dropout is 0.05 there and 0.25 here");
    refused((const char *[]){"steps=40", "valid-every=7", "guess-weight=0.1", "seed=2", NULL},
            acf_train_lab_table(N, D, 0.2, 0, 3), "the checkpoint is of other options: seed is 1 there and 2 here");
    refused((const char *[]){"steps=40", "valid-every=7", "guess-weight=0.1", "scale-bound=1.5", NULL},
            acf_train_lab_table(N, D, 0.2, 0, 3), "of other options: scale-bound is 2");
}

/* Only the options for when to stop and for the step may change. */
static void a_run_may_be_made_longer(void **state) {
    (void)state;
    acf_train_lab a, b;
    open_lab(&a, 1, standard);
    run(&a, true);
    save(&a);
    open_lab(&b, 1,
             (const char *[]){"steps=0", "epochs=9", "patience=3", "lr=0.001", "warmup=0", "decay=linear",
                              "decay-to=0.5", "clip=1", "valid-every=7", "guess-weight=0.1", NULL});
    load(&b);
    acf_train_lab_same(&a, &b);
    acf_train_lab_close(&a);
    acf_train_lab_close(&b);
}

/* Rewrites the file with one metadata text, or one tensor, replaced; NULL removes it. */
static void tamper(const char *key, const char *value) {
    acf_safetensors *f = NULL;
    acf_safetensors_text text[8];
    acf_safetensors_tensor tensor[8];
    int64_t n = 0, m = 0;
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    for (int64_t i = 0; i < acf_safetensors_text_count(f); i++) {
        text[n] = *acf_safetensors_text_at(f, i);
        if (strcmp(text[n].key, key) == 0)
            text[n].value = value;
        else if (strcmp(text[n].key, "checksum") == 0)
            text[n].value = NULL; /* it would be reported first */
        n += text[n].value != NULL;
    }
    for (int64_t i = 0; i < acf_safetensors_count(f); i++)
        if (strcmp(acf_safetensors_at(f, i)->name, key) != 0) tensor[m++] = *acf_safetensors_at(f, i);
    assert_int_equal(acf_safetensors_write(path, tensor, m, text, n), ACF_OK);
    acf_safetensors_close(f);
}

#define STATE(epoch, row, skipped)                                                                                     \
    "{\"pass\":1,\"step\":20,\"updates\":20,\"epoch\":" epoch ",\"row\":" row                                          \
    ",\"validated\":14,\"best_step\":14,\"stale\":0,"                                                                  \
    "\"skipped\":" skipped ",\"skipped_in_row\":0,\"seconds\":1,\"best\":1.5}"

/* Texts of a second pass, and of the first pass's result. */
#define FIRST_COUNTS "\"end\":\"steps\",\"rows\":150,\"held\":9,\"steps\":40,\"epochs\":8,\"skipped\":0,\"seconds\":1"
#define FIRST(valid, step) "{" FIRST_COUNTS ",\"valid\":" valid ",\"valid_step\":" step "}"
#define FIRST_UNKNOWN "{" FIRST_COUNTS "}"
#define SECOND(step, first) "{\"pass\":2,\"step\":" step ",\"first\":" first "}"

static void damaged_files_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *key, *value, *sentence;
    } cases[] = {
        {"kind", NULL, "this is no checkpoint of training"},
        {"format_version", "3", "update acflow"},
        {"format_version", "1",
         "the checkpoint is of an earlier acflow (format_version 1, this one writes 2); go on with that one"},
        {"checksum", "0123456789abcdef", "but it says 0123456789abcdef; the file is damaged: copy it again"},
        {"acflow", "0.0.9",
         "the checkpoint is of acflow 0.0.9, this is " ACF_VERSION "; go on with that version, or begin anew"},
        {"acflow", NULL, "acflow"},
        {"state", NULL, "state"},
        {"state", "[]", "the metadata 'state' is not an object; the file is damaged"},
        {"state", "{\"step\":20}", "pass"},
        {"state", "{\"pass\":1,\"step\":20}", "updates"},
        {"state", "{\"pass\":0}", "'pass' is 0, expected 1 or 2; the file is damaged"},
        {"state", "{\"pass\":3}", "'pass' is 3, expected 1 or 2"},
        {"state", SECOND("30", "[]"), "first: it is not an object"},
        {"state", SECOND("2", FIRST("1.5", "0")), "'step' is 2, expected 0 to 1"},
        {"state", SECOND("30", FIRST("1.5", "-1")), "valid_step"},
        {"state", SECOND("30", FIRST("1.5", "41")),
         "no first pass can have led to this second one; the file is damaged"},
        {"state", SECOND("30", FIRST_UNKNOWN), "no first pass"},
        {"state", SECOND("61", FIRST("1.5", "30")), "'step' is 61, expected 0 to 60"},
        {"state", STATE("0", "150", "0"), "'row' is 150, expected 0 to 149; the file is damaged"},
        {"state", STATE("-1", "0", "0"), "'epoch' is -1"},
        {"state", STATE("0", "0", "21"), "'skipped' is 21, expected 0 to 20"},
        {"state", STATE("0", "0", "1.5"), "skipped"},
        {"options", "{}", "of other options: "},
        {"network", "{}", "of another network: "},
        {"best", NULL, "best"},
        {"m", NULL, "'m'"},
    };
    acf_train_lab l;
    open_lab(&l, 1, standard);
    run(&l, true);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        save(&l);
        tamper(cases[k].key, cases[k].value);
        refused(standard, acf_train_lab_table(N, D, 0.2, 0, 3), cases[k].sentence);
    }
    acf_train_lab_close(&l);
}

static void files_and_memory_may_fail(void **state) {
    (void)state;
    acf_train_lab l, twin;
    open_lab(&l, 1, standard);
    open_lab(&twin, 1, standard);
    run(&l, true);
    assert_int_equal(acf_checkpoint_save(l.tr, "/nowhere/at/all"), ACF_EIO);
    assert_int_equal(acf_checkpoint_load(l.tr, "/nowhere/at/all"), ACF_EIO);
    save(&l);
    int64_t live = acf_alloc_live();
    for (int what = 0; what < 2; what++) {
        acf_status status = ACF_EMEMORY;
        for (int64_t n = 1; status; n++) {
            acf_alloc_fail_at(n);
            status = what ? acf_checkpoint_load(twin.tr, path) : acf_checkpoint_save(l.tr, path);
            acf_alloc_fail_at(0);
            assert_true(status == ACF_OK || status == ACF_EMEMORY);
            assert_int_equal(acf_alloc_live(), live);
            if (what && status) assert_int_equal(twin.tr->state.step, 0);
            assert_true(n < 200);
        }
    }
    acf_train_lab_same(&l, &twin);
    acf_train_lab_close(&l);
    acf_train_lab_close(&twin);
}

#define WITH_FILE(f) cmocka_unit_test_setup_teardown(f, make_file, remove_file)
ACF_TESTS(checkpoint, WITH_FILE(resumed_is_uninterrupted), WITH_FILE(the_initial_state_is_saved_too),
          WITH_FILE(checkpoints_of_something_else_are_refused), WITH_FILE(a_run_may_be_made_longer),
          WITH_FILE(damaged_files_are_refused), WITH_FILE(files_and_memory_may_fail))
