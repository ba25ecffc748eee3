/* Tests of batch_auto.h, and of a fit that runs out of memory: on a CPU device with a memory limit set by the test. */
#include "train/batch_auto.h"

#include "harness/train_lab.h"
#include "train/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 600, D = 6 };

/* ---- a device with little memory ------------------------------------------------------------------------------- */

/* The heap behind a limit. The size in front of each block counts the memory in use. */
static struct small {
    size_t held, limit;
    bool nothing_left; /* report no free memory, but allocate all the same */
} small;

static void *small_alloc(void *ctx, size_t bytes) {
    struct small *s = ctx;
    if (bytes > s->limit || s->held > s->limit - bytes) return NULL;
    char *p = acf_heap.alloc(acf_heap.ctx, bytes + ACF_HOST_ALIGN);
    if (!p) return NULL;
    memcpy(p, &bytes, sizeof bytes);
    s->held += bytes;
    return p + ACF_HOST_ALIGN;
}

static void small_free(void *ctx, void *p) {
    struct small *s = ctx;
    size_t bytes;
    if (!p) return;
    memcpy(&bytes, (char *)p - ACF_HOST_ALIGN, sizeof bytes);
    s->held -= bytes;
    acf_heap.free(acf_heap.ctx, (char *)p - ACF_HOST_ALIGN);
}

static acf_status small_info(acf_device *dev, size_t *free_bytes, size_t *total_bytes) {
    (void)dev;
    *free_bytes = small.nothing_left || small.limit < small.held ? 0 : small.limit - small.held;
    *total_bytes = small.limit;
    return ACF_OK;
}

static acf_device_table small_table;

static void make_small(acf_device *dev, size_t limit) {
    small = (struct small){.limit = limit};
    small_table = *dev->table;
    small_table.memory_info = small_info;
    dev->table = &small_table;
    dev->memory = (acf_memory){&small, small_alloc, small_free, ACF_HOST_ALIGN, true, NULL, NULL};
}

/* ---- how many rows --------------------------------------------------------------------------------------------- */

static const char *const by_itself[] = {"batch=auto", NULL};

static void open_small(acf_train_lab *l, const char *const *settings) {
    acf_train_lab_open(l, 1, settings);
    make_small(l->dev, SIZE_MAX / 4);
    acf_train_lab_ready(l, acf_train_lab_table(N, D, 0.2, 0, 3));
}

static acf_train_data data_of(const acf_train_lab *l) { return (acf_train_data){l->table, NULL, l->encoder, l->hold}; }

/* Rows for this free memory. */
static int64_t rows_in(acf_train_lab *l, double bytes) {
    const acf_train_data data = data_of(l);
    int64_t rows = -1;
    small.limit = small.held + (size_t)bytes;
    if (acf_batch_auto(l->net, &data, l->o, &rows)) fail_msg("%s", acf_error());
    return rows;
}

static void rows_follow_free_memory(void **state) {
    (void)state;
    acf_train_lab l;
    acf_step_memory need;
    open_small(&l, by_itself);
    const acf_train_data data = data_of(&l);
    if (acf_step_memory_measure(l.net, &data, l.o, &need)) fail_msg("%s", acf_error());
    assert_true(need.row > 1000 && need.row < 1e6 && need.fixed >= 0);
    double best = (double)acf_net_params(l.net)->total * sizeof(acf_real); /* kept by the trainer */
    assert_int_equal(rows_in(&l, best + 2 * (need.fixed + 103.98 * need.row)),
                     96); /* a multiple of 8, just below 104 */
    assert_int_equal(rows_in(&l, best + 2 * (need.fixed + 104.02 * need.row)), 104);
    assert_int_equal(rows_in(&l, best + 2 * (need.fixed + 200.5 * need.row)), 200);
    assert_int_equal(rows_in(&l, 1e12), 256); /* a CPU gains nothing from more */
    acf_train_lab_close(&l);
}

/* The prediction holds: steps of that many rows fit into the free memory, with every cell modelled and both terms of
 * the loss. */
static void the_rows_fit(void **state) {
    (void)state;
    for (int guess = 0; guess < 2; guess++) {
        acf_train_lab l;
        open_small(&l, (const char *const[]){"batch=auto", guess ? "guess-weight=1" : "guess-weight=0", NULL});
        double capacity = 3e6;
        int64_t rows = rows_in(&l, capacity);
        assert_in_range(rows, 8, 248);
        acf_trainer_free(l.tr);
        l.tr = NULL;
        char text[32];
        snprintf(text, sizeof text, "%lld", (long long)rows);
        assert_int_equal(acf_options_set_text(l.o, "batch", text), ACF_OK);
        assert_int_equal(acf_options_set_text(l.o, "masks", "joint"), ACF_OK);
        small.limit = small.held + (size_t)capacity;
        const acf_train_data data = data_of(&l);
        if (acf_trainer_create(l.net, &data, l.o, &l.tr)) fail_msg("%s", acf_error());
        for (int k = 0; k < 8; k++)
            if (acf_trainer_step(l.tr, NULL)) fail_msg("%s", acf_error());
        assert_int_equal(l.tr->set.batch, rows);
        acf_train_lab_close(&l);
    }
}

static void too_little_for_a_row_is_reported(void **state) {
    (void)state;
    acf_train_lab l;
    open_small(&l, by_itself);
    const acf_train_data data = data_of(&l);
    int64_t rows = -1;
    small.nothing_left = true;
    acf_status status = acf_batch_auto(l.net, &data, l.o, &rows);
    assert_int_equal(status, ACF_EMEMORY);
    assert_non_null(strstr(acf_error(), "a training step needs"));
    assert_non_null(strstr(acf_error(), "GiB a row"));
    acf_train_lab_close(&l);
}

/* ---- a fit that runs out --------------------------------------------------------------------------------------- */

static char path[64];

/* Makes `path` the name of a file that does not exist. */
static int make_path(void **state) {
    (void)state;
    strcpy(path, "/tmp/acflow-memory-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 || close(fd) || unlink(path);
}

static int remove_path(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

/* Four rows a step, of whose many columns most are given, and sometimes none: the memory of a step varies. */
enum { WIDE = 40 };
static acf_table *wide_table(void) { return acf_train_lab_table(N, WIDE, 0.2, 0, 3); }

#define UNEVEN                                                                                                         \
    "masks=bernoulli:0.99*2 + joint", "coupling-units=96", "likelihood-units=96", "likelihood-layers=3", "steps=40",   \
        "valid=0", "refit=false"
static const char *const uneven[] = {"batch=4", UNEVEN, NULL};

/* From the first report on, no memory beyond that in use can be allocated. */
static int cut(void *ctx, const acf_fit_report *r) {
    int64_t *steps = ctx;
    *steps = r->step;
    small.limit = small.held;
    return 0;
}

static acf_model *make_model(acf_device *dev, const acf_table *t, const char *const *settings, acf_holdout **hold) {
    acf_train_lab l;
    acf_encoder *e;
    acf_model *m = NULL;
    acf_train_lab_open(&l, 1, settings);
    if (acf_train_prepare(t, NULL, l.o, hold, &e) || acf_model_make(dev, l.o, e, 5, true, &m))
        fail_msg("%s", acf_error());
    acf_device_close(l.dev);
    return m;
}

static acf_status fit(const acf_table *t, const char *const *settings, size_t limit, acf_fit how, acf_model **out) {
    acf_device *dev;
    acf_holdout *hold;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    make_small(dev, limit);
    *out = make_model(dev, t, settings, &hold);
    (*out)->owns_dev = true;
    acf_status status = acf_fit_model(*out, t, hold, &how);
    acf_holdout_free(hold);
    return status;
}

static void same_weights(const acf_model *a, const acf_model *b) {
    const acf_params *x = acf_net_params(a->net), *y = acf_net_params(b->net);
    assert_int_equal(x->total, y->total);
    assert_memory_equal(x->value, y->value, (size_t)x->total * sizeof *x->value);
}

/* Memory ends between two steps: status 5 with numbers, and the state of the last good step in the file. Resumed, the
 * run gives the same model as one that never ran out. */
static void a_run_out_of_memory_can_be_resumed(void **state) {
    (void)state;
    acf_table *t = wide_table();
    acf_model *whole, *part, *resumed;
    int64_t steps = 0;
    assert_int_equal(fit(t, uneven, SIZE_MAX / 4, (acf_fit){0}, &whole), ACF_OK);
    acf_status status =
        fit(t, uneven, SIZE_MAX / 4, (acf_fit){.checkpoint = path, .callback = cut, .ctx = &steps}, &part);
    if (status != ACF_EMEMORY) fail_msg("status %d after step %d", status, (int)steps);
    assert_int_equal(acf_status_exit(status), 5);
    assert_in_range(steps, 1, 39);
    char says[64];
    snprintf(says, sizeof says, "has the state after step %d: use the option 'resume'", (int)steps);
    assert_non_null(strstr(acf_error(), says));
    assert_non_null(strstr(acf_error(), "bytes asked for"));
    assert_false(part->record.known);
    if (fit(t, uneven, SIZE_MAX / 4, (acf_fit){.checkpoint = path, .resume = true}, &resumed))
        fail_msg("%s", acf_error());
    same_weights(whole, resumed);
    acf_model_free(whole), acf_model_free(part), acf_model_free(resumed);
    acf_table_free(t);
}

/* The run may continue with fewer rows a step. */
static void a_smaller_batch_may_resume(void **state) {
    (void)state;
    static const char *const one[] = {"batch=2", UNEVEN, NULL};
    acf_table *t = wide_table();
    acf_model *m;
    int64_t steps = 0;
    assert_int_equal(fit(t, uneven, SIZE_MAX / 4, (acf_fit){.checkpoint = path, .callback = cut, .ctx = &steps}, &m),
                     ACF_EMEMORY);
    acf_model_free(m);
    if (fit(t, one, SIZE_MAX / 4, (acf_fit){.checkpoint = path, .resume = true}, &m)) fail_msg("%s", acf_error());
    assert_int_equal(m->record.steps, 40);
    acf_model_free(m);
    acf_table_free(t);
}

/* No memory at all, not even for saving: the file of the last save is intact, and the run resumes from it. */
static int starve(void *ctx, const acf_fit_report *r) {
    const int64_t *n = ctx;
    if (r->step == 1) acf_alloc_fail_at(*n);
    return 0;
}

static void the_last_checkpoint_outlives_any_failure(void **state) {
    (void)state;
    acf_table *t = wide_table();
    acf_model *whole, *m;
    int failures = 0;
    assert_int_equal(fit(t, uneven, SIZE_MAX / 4, (acf_fit){0}, &whole), ACF_OK);
    for (int64_t n = 1; n < 40; n += 3) {
        unlink(path);
        acf_status status = fit(t, uneven, SIZE_MAX / 4,
                                (acf_fit){.checkpoint = path, .every = 1e-9, .callback = starve, .ctx = &n}, &m);
        acf_alloc_fail_at(0);
        acf_model_free(m);
        if (status != ACF_EMEMORY && status != ACF_OK) fail_msg("allocation %d: %s", (int)n, acf_error());
        failures += status == ACF_EMEMORY;
        if (fit(t, uneven, SIZE_MAX / 4, (acf_fit){.checkpoint = path, .resume = true}, &m))
            fail_msg("allocation %d: %s", (int)n, acf_error());
        same_weights(whole, m);
        acf_model_free(m);
    }
    assert_true(failures > 0);
    acf_model_free(whole);
    acf_table_free(t);
}

/* `auto` becomes a number that the model records; a resumed run keeps its own number, where that fits. */
static void auto_is_settled_and_recorded(void **state) {
    (void)state;
    static const char *const set[] = {"batch=auto", "steps=3", "valid=0", "refit=false", NULL};
    static const char *const few[] = {"batch=40", "steps=3", "valid=0", "refit=false", NULL};
    static const char *const more[] = {"batch=auto", "steps=5", "valid=0", "refit=false", NULL};
    acf_table *t = acf_train_lab_table(N, D, 0.2, 0, 3);
    acf_model *m;
    if (fit(t, set, SIZE_MAX / 4, (acf_fit){0}, &m)) fail_msg("%s", acf_error());
    assert_int_equal(acf_options_int(m->config, "batch"), 256);
    acf_model_free(m);
    if (fit(t, few, SIZE_MAX / 4, (acf_fit){.checkpoint = path}, &m)) fail_msg("%s", acf_error());
    acf_model_free(m);
    if (fit(t, more, SIZE_MAX / 4, (acf_fit){.checkpoint = path, .resume = true}, &m)) fail_msg("%s", acf_error());
    assert_int_equal(acf_options_int(m->config, "batch"), 40);
    assert_int_equal(m->record.steps, 5);
    acf_model_free(m);
    acf_table_free(t);
}

#define WITH_PATH(test) cmocka_unit_test_setup_teardown(test, make_path, remove_path)
ACF_TESTS(batch_auto, cmocka_unit_test(rows_follow_free_memory), cmocka_unit_test(the_rows_fit),
          cmocka_unit_test(too_little_for_a_row_is_reported), WITH_PATH(a_run_out_of_memory_can_be_resumed),
          WITH_PATH(a_smaller_batch_may_resume), WITH_PATH(the_last_checkpoint_outlives_any_failure),
          WITH_PATH(auto_is_settled_and_recorded))
