/* Model files: loading restores what was saved, and files that are not models are refused with a message. */
#include "model/model.h"

#include "base/safetensors.h"
#include "harness/lab.h"
#include "harness/model_file_lab.h"
#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64], other[64];

static int make_names(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/acflow-model-%d.safetensors", (int)getpid());
    snprintf(other, sizeof other, "/tmp/acflow-model2-%d.safetensors", (int)getpid());
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return 0;
}

enum { ROWS = 30, COLS = 4 };

static acf_table *some_table(void) {
    double x[ROWS * COLS];
    const acf_column column[COLS] = {{"age", 0}, {NULL, 0}, {"dose \"mg\"", 0}, {"Größe", 0}};
    for (int i = 0; i < ROWS * COLS; i++)
        x[i] = i % 7 == 3 ? (double)NAN : acf_lab_random(1, i, -50, 50) * (i % COLS + 1);
    for (int i = 0; i < ROWS * COLS; i += COLS) x[i] = i % 3 ? nearbyint(x[i]) : 0; /* NaN stays; a third are zeros */
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, column, &t), ACF_OK);
    return t;
}

static acf_model *some_model(acf_device *dev, const acf_table *table, const char *likelihood) {
    acf_model *m = acf_lab_fitted(dev, table, likelihood, &(acf_encoding){true, true}, 3, 0);
    assert_true(m->encoder->normal_scores[0].n > 0 && m->encoder->resolution[0].every == 1);
    m->record = (acf_fit_record){.known = true,
                                 .end = ACF_END_PATIENCE,
                                 .rows = ROWS,
                                 .held = 9,
                                 .steps = 77,
                                 .epochs = 5,
                                 .skipped = 2,
                                 .left_out = 3,
                                 .valid = 0.1,
                                 .valid_step = 50,
                                 .refit = ACF_REFIT_DIVERGED,
                                 .filled = true,
                                 .seconds = 1.25};
    return m;
}

/* log p of the joint of all rows, with this model. */
static void scores(acf_device *dev, const acf_model *m, const acf_table *table, acf_real *out) {
    acf_tape *t;
    acf_batch *batch;
    int64_t rows[ROWS];
    for (int i = 0; i < ROWS; i++) rows[i] = i;
    assert_int_equal(acf_tape_create(dev, NULL, &t), ACF_OK);
    assert_int_equal(acf_batch_create(ROWS, COLS, &batch), ACF_OK);
    acf_batch_fill(dev, batch, table, m->encoder, NULL, ACF_BATCH_TRAIN, rows, ROWS);
    acf_tape_begin(t, false);
    acf_tensor *lp = acf_net_logp(t, acf_net_view(t, m->net, batch, NULL));
    assert_int_equal(acf_tape_check(t, lp), ACF_OK);
    memcpy(out, lp->data, ROWS * sizeof *out);
    acf_batch_free(batch);
    acf_tape_free(t);
}

static void check_round_trip(const char *likelihood) {
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *table = some_table();
    acf_model *m = some_model(dev, table, likelihood), *again;
    if (acf_model_write(m, path)) fail_msg("%s", acf_error());
    if (acf_model_read(dev, path, &again)) fail_msg("%s", acf_error());
    acf_real first[ROWS], second[ROWS];
    scores(dev, m, table, first);
    scores(dev, again, table, second);
    assert_memory_equal(first, second, sizeof first);
    for (int j = 0; j < COLS; j++) assert_true(m->encoder->mean[j] == again->encoder->mean[j]);
    assert_string_equal(again->encoder->column[3].name, "Größe");
    const acf_fit_record *a = &m->record, *b = &again->record;
    assert_true(b->known && b->end == a->end && b->rows == a->rows && b->held == a->held && b->steps == a->steps &&
                b->epochs == a->epochs && b->skipped == a->skipped && b->left_out == a->left_out &&
                b->valid == a->valid && b->valid_step == a->valid_step && b->refit == a->refit && b->filled &&
                b->seconds == a->seconds);
    /* Saving what was loaded gives the same bytes. */
    assert_int_equal(acf_model_write(again, other), ACF_OK);
    char command[160];
    snprintf(command, sizeof command, "cmp -s '%s' '%s'", path, other);
    assert_int_equal(system(command), 0);
    acf_model_free(m);
    acf_model_free(again);
    acf_table_free(table);
    acf_device_close(dev);
}

static void save_and_load_keep_every_bit(void **state) {
    (void)state;
    check_round_trip("gru");
    check_round_trip("gaussian");
    check_round_trip("sets");
}

/* Replaces the text of a metadata key. */
static void replace_text(acf_safetensors_text *text, int64_t n, const char *key, const char *value) {
    for (int64_t i = 0; i < n; i++)
        if (strcmp(text[i].key, key) == 0) text[i].value = value;
}

/* A file of version 1: its config has no encoding option, and its encoder has only mean and scale. */
static void reads_the_first_version(void **state) {
    (void)state;
    acf_device *dev;
    acf_safetensors *good;
    acf_safetensors_tensor list[128];
    acf_safetensors_text text[16];
    acf_real first[ROWS], second[ROWS];
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *table = some_table();
    acf_model *m = some_model(dev, table, "gru"), *old;
    acf_encoder *plain;
    assert_int_equal(acf_model_write(m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    int64_t n = acf_safetensors_count(good), texts = acf_safetensors_text_count(good);
    for (int64_t i = 0; i < n; i++) list[i] = *acf_safetensors_at(good, i);
    for (int64_t i = 0; i < texts; i++) text[i] = *acf_safetensors_text_at(good, i);
    for (int64_t i = 0; i < texts; i++) /* the content has changed */
        if (strcmp(text[i].key, "checksum") == 0) text[i] = text[--texts];
    replace_text(text, texts, "format_version", "1");
    replace_text(text, texts, "config",
                 "{\"gmm\": 8, \"likelihood\": \"ar\", \"mlp-width\": 6, \"coupling-units\": 5, "
                 "\"likelihood-units\": 7, \"components\": 3}");
    replace_text(text, texts, "encoder",
                 "{\"columns\": [{\"kind\": \"real\", \"mean\": 1, \"scale\": 20, \"observed\": 25},"
                 " {\"kind\": \"real\", \"mean\": 2, \"scale\": 50, \"observed\": 25},"
                 " {\"kind\": \"real\", \"mean\": 3, \"scale\": 70, \"observed\": 25},"
                 " {\"kind\": \"real\", \"mean\": -4, \"scale\": 99, \"observed\": 25}]}");
    if (acf_safetensors_write(other, list, n, text, texts)) fail_msg("%s", acf_error());
    if (acf_model_read(dev, other, &old)) fail_msg("%s", acf_error());
    assert_int_equal(acf_options_choice(old->config, "encode"), 0);
    assert_false(acf_options_bool(old->config, "dequantise"));
    assert_int_equal(acf_encoder_create(table->column, COLS, &plain), ACF_OK);
    for (int j = 0; j < COLS; j++)
        plain->mean[j] = (double[]){1, 2, 3, -4}[j], acf_encoder_set_scale(plain, j, (double[]){20, 50, 70, 99}[j]);
    acf_encoder *shaped = m->encoder;
    m->encoder = plain;
    scores(dev, m, table, first);
    scores(dev, old, table, second);
    assert_memory_equal(first, second, sizeof first);
    assert_true(acf_decode(old->encoder, 0, ACF_R(99.0)) == 1981); /* no range, no step */
    acf_encoder_free(shaped);
    acf_safetensors_close(good);
    acf_model_free(m), acf_model_free(old);
    acf_table_free(table);
    acf_device_close(dev);
}

/* One change to the tensors or metadata of a valid file. */
typedef struct change {
    const char *key, *value; /* metadata to replace; value NULL: left out */
    bool drop_tensor, nan;
    const char *says; /* part of the message */
} change;

static void write_changed(const acf_safetensors *good, const change *c) {
    acf_safetensors_tensor list[128];
    acf_safetensors_text text[24];
    int64_t n = 0, texts = 0;
    static acf_real bad[4096];
    for (int64_t i = 0; i < acf_safetensors_count(good); i++) list[n++] = *acf_safetensors_at(good, i);
    if (c->drop_tensor) n--;
    if (c->nan) {
        memcpy(bad, list[0].data, list[0].bytes);
        bad[0] = (acf_real)NAN;
        list[0].data = bad;
    }
    for (int64_t i = 0; i < acf_safetensors_text_count(good); i++) {
        text[texts] = *acf_safetensors_text_at(good, i);
        if (strcmp(text[texts].key, "checksum") == 0 && (!c->key || strcmp(c->key, "checksum") != 0))
            continue; /* it would be reported first */
        if (c->key && strcmp(text[texts].key, c->key) == 0) {
            if (!c->value) continue;
            text[texts].value = c->value;
        }
        texts++;
    }
    if (acf_safetensors_write(other, list, n, text, texts)) fail_msg("%s", acf_error());
}

/* After each change the file is refused with a message that has its name and the problem, and no memory leaks. */
static void refuse_all(acf_device *dev, const acf_safetensors *good, const change *c, size_t n) {
    for (size_t i = 0; i < n; i++) {
        acf_model *none = NULL;
        write_changed(good, &c[i]);
        int64_t live = acf_alloc_live();
        assert_int_equal(acf_model_read(dev, other, &none), ACF_EMODEL);
        if (!strstr(acf_error(), other) || !strstr(acf_error(), c[i].says))
            fail_msg("change %d: expected the file and '%s' in: %s", (int)i, c[i].says, acf_error());
        assert_null(none);
        assert_int_equal(acf_alloc_live(), live);
    }
}

static void refuses_what_is_not_a_model(void **state) {
    (void)state;
    static const change changes[] = {
        {"format_version", "7", .says = "version"},
        {"format_version", NULL, .says = "format_version"},
        {"checksum", "?", .says = "but it says ?; the file is damaged: copy it again"},
        {"kind", "picture", .says = "kind 'picture'"},
        {"config", "{", .says = "config"},
        {"config", "{\"mlp-widht\": 3}", .says = "mlp-width"},
        {"config", "{\"components\": 0}", .says = "components"},
        {"config", "{\"flow\": \"linear laeky\"}", .says = "leaky"},
        {"config", "{}", .says = "tensor"},
        /* Five gigabytes of weights from a small file: refused before memory is allocated. */
        {"config",
         "{\"coupling-units\": 8192, \"coupling-layers\": 1, \"likelihood-units\": 8192, \"mlp-width\": 8192}",
         .says = "tensor"},
        {"encoder", "[]", .says = "encoder"},
        {"encoder", "{\"columns\": []}", .says = "column"},
        {"encoder", NULL, .says = "encoder"},
        {"training", "[]", .says = "training: it is not an object"},
        {"training", "{\"end\":\"steps\"}", .says = "rows"},
        {"training", "{\"end\":\"boredom\"}", .says = "'end' is 'boredom', expected steps, epochs, patience"},
        {"training", "{\"end\":\"steps\",\"refit\":\"twice\"}",
         .says = "'refit' is 'twice', expected none, done or diverged"},
        {"training",
         "{\"end\":\"steps\",\"rows\":1,\"held\":0,\"steps\":1,\"epochs\":0,\"skipped\":0,\"seconds\":1,\"filled\":1}",
         .says = "filled"},
        {"training", "{\"end\":\"steps\",\"rows\":-1}", .says = "'rows' is -1, expected 0 or more"},
        {.drop_tensor = true, .says = "is missing"},
        {.nan = true, .says = "finite"},
    };
    acf_device *dev;
    acf_safetensors *good;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *table = some_table();
    acf_model *m = some_model(dev, table, "gru"), *none = NULL;
    assert_int_equal(acf_model_write(m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    refuse_all(dev, good, changes, sizeof changes / sizeof changes[0]);
    assert_int_equal(acf_model_read(dev, "/tmp/there-is-no-such-model", &none), ACF_EIO);
    acf_safetensors_close(good);
    acf_model_free(m);
    acf_table_free(table);
    acf_device_close(dev);
}

/* An ensemble of three: the second and third have other networks, weights and options. */
static acf_model *some_ensemble(acf_device *dev, const acf_table *table) {
    acf_model *m = some_model(dev, table, "gru");
    acf_model_append(m, some_model(dev, table, "sets"));
    acf_model_append(m, some_model(dev, table, "gaussian"));
    acf_options_set_text(m->next->config, "seed", "77");
    m->next->record.steps = 78, m->next->next->record.known = false;
    return m;
}

static void ensembles_are_restored(void **state) {
    (void)state;
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *table = some_table();
    acf_model *m = some_ensemble(dev, table), *again = NULL;
    acf_real first[ROWS], second[ROWS];
    acf_safetensors *f;
    if (acf_model_write(m, path) || acf_model_read(dev, path, &again) || acf_model_write(again, other))
        fail_msg("%s", acf_error());
    assert_int_equal(acf_model_members(again), 3);
    for (const acf_model *a = m, *b = again; a; a = a->next, b = b->next) {
        scores(dev, a, table, first);
        scores(dev, b, table, second);
        assert_memory_equal(first, second, sizeof first);
        assert_int_equal(acf_options_int(a->config, "seed"), acf_options_int(b->config, "seed"));
        assert_true(a->record.known == b->record.known && (!a->record.known || a->record.steps == b->record.steps));
    }
    char command[160];
    snprintf(command, sizeof command, "cmp -s '%s' '%s'", path, other);
    assert_int_equal(system(command), 0);
    /* A single model has no key for the ensemble. */
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_string_equal(acf_safetensors_text_find(f, "format_version"), "6");
    assert_string_equal(acf_safetensors_text_find(f, "ensemble"), "3");
    acf_safetensors_close(f);
    acf_model_free(m->next), m->next = NULL;
    assert_int_equal(acf_model_write(m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_string_equal(acf_safetensors_text_find(f, "format_version"), "6");
    assert_null(acf_safetensors_text_find(f, "ensemble"));
    acf_safetensors_close(f);
    acf_model_free(m), acf_model_free(again);
    acf_table_free(table);
    acf_device_close(dev);
}

#define COLUMN(name) "{\"name\": \"" name "\", \"kind\": \"real\", \"mean\": 1, \"scale\": 20, \"observed\": 25}"
static void refuses_invalid_ensembles(void **state) {
    (void)state;
    static const change changes[] = {
        {"ensemble", "1", .says = "'ensemble' is '1'; expected a number from 2 to 16"},
        {"ensemble", "17", .says = "'ensemble' is '17'"},
        {"ensemble", "two", .says = "'ensemble' is 'two'"},
        {"ensemble", "99999999999999999999", .says = "'ensemble' is '99999999999999999999'"},
        {"ensemble", "2", .says = "tensor 'member.2."},
        {"ensemble", NULL, .says = "tensor 'member.1."},
        {"ensemble", "4", .says = "member.3.config"},
        {"member.1.config", NULL, .says = "member.1.config"},
        {"member.2.config", "{\"likelihood\": \"best\"}", .says = "member.2.config"},
        {"member.1.encoder", "{\"columns\": [" COLUMN("age") "]}", .says = "member 1 has 1 columns, the first 4"},
        {"member.1.encoder", "{\"columns\": [" COLUMN("age") "," COLUMN("b") "," COLUMN("c") "," COLUMN("d") "]}",
         .says = "column 1 of member 1 differs from that of the first member"},
        {"member.2.training", "{\"end\": 3}", .says = "member.2.training"},
        {.drop_tensor = true, .says = "tensor 'member.2."},
    };
    acf_device *dev;
    acf_safetensors *good;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *table = some_table();
    acf_model *m = some_ensemble(dev, table);
    m->next->next->record = m->record;
    assert_int_equal(acf_model_write(m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    refuse_all(dev, good, changes, sizeof changes / sizeof changes[0]);
    acf_safetensors_close(good);
    acf_model_free(m);
    acf_table_free(table);
    acf_device_close(dev);
}

/* Every allocation fails in turn, in save and in load. */
static void survives_without_memory(void **state) {
    (void)state;
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    acf_table *table = some_table();
    acf_model *m = some_ensemble(dev, table), *again = NULL;
    assert_int_equal(acf_model_write(m, path), ACF_OK);
    int64_t live = acf_alloc_live();
    for (int n = 1; !again; n++) {
        acf_alloc_fail_at(n);
        acf_status status = acf_model_read(dev, path, &again);
        acf_alloc_fail_at(0);
        if (status && status != ACF_EMEMORY) fail_msg("allocation %d: %s", n, acf_error());
        if (status) assert_int_equal(acf_alloc_live(), live);
    }
    acf_model_free(again);
    bool done = false;
    for (int n = 1; !done; n++) {
        acf_alloc_fail_at(n);
        acf_status status = acf_model_write(m, other);
        acf_alloc_fail_at(0);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
        done = status == ACF_OK;
    }
    acf_model_free(m);
    acf_table_free(table);
    acf_device_close(dev);
}

ACF_TESTS(model, cmocka_unit_test_setup_teardown(save_and_load_keep_every_bit, make_names, remove_files),
          cmocka_unit_test_setup_teardown(reads_the_first_version, make_names, remove_files),
          cmocka_unit_test_setup_teardown(refuses_what_is_not_a_model, make_names, remove_files),
          cmocka_unit_test_setup_teardown(ensembles_are_restored, make_names, remove_files),
          cmocka_unit_test_setup_teardown(refuses_invalid_ensembles, make_names, remove_files),
          cmocka_unit_test_setup_teardown(survives_without_memory, make_names, remove_files))
