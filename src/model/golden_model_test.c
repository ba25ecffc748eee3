/* Table models written by another program (tests/harness/golden.h). They load, and their answers follow the
 * formulas. With one thing wrong in the file they are refused with a message that names it. */
#include "acflow.h"

#include "base/real.h"
#include "harness/check.h"
#include "harness/golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAYER "linear leaky rnn"
#define MORE " reverse " LAYER
#define OLD .gmm = -1, .reader = -1 /* without options that were added later */
static const acf_golden_spec specs[] = {
    {"one real column", "ar", "", "ar", .likelihood_layers = 1, .coupling_layers = 1, .columns = 1, OLD},
    {"default", "default", "", "set", 2, 1, 2, .column_embedding = 3, .columns = 3, .gmm = 2},
    {"flow", "flow", LAYER MORE, "ar", 2, 1, 2, .column_embedding = 3, .deep = true, .columns = 3, .gmm = 2,
     .reader = 2},
    {"paper", "paper", LAYER MORE MORE MORE MORE MORE, "ar", 2, 2, 4, .columns = 3},
    {"paper-2d", "paper-2d", LAYER MORE MORE MORE, "ar", 2, 2, 2, .columns = 2},
    {"ar", "ar", "", "ar", 2, 1, 4, .columns = 3},
    {"every kind", "default", "packed lowrank leaky reverse rnn-shift coupling affine rnn linear", "gaussian", 1, 1, 1,
     .columns = 4, .wide = true, OLD},
    {"every kind, rank 2", "default", "affine reverse lowrank coupling packed linear", "gaussian", 0, 1, 1, .rank = 2,
     .column_embedding = 2, .columns = 3, OLD},
    {"mixed", "default", LAYER " reverse affine", "ar", 2, 1, 2, .column_embedding = 2, .deep = true, .columns = 4,
     .classes = {2, 0, 3, 0}, OLD},
    {"categories", "default", LAYER, "ar", 2, 1, 2, .column_embedding = 2, .deep = true, .columns = 3,
     .classes = {2, 4, 3}, OLD},
    {"set", "default", "", "set", 2, 1, 1, .columns = 2},
    {"mixed set behind a flow", "default", LAYER, "set", 2, 1, 2, .columns = 4, .classes = {2, 0, 3, 0}, .gmm = 3,
     .reader = 3},
};
enum { MIXED = 8 };
enum { SPECS = sizeof specs / sizeof specs[0] };

/* Checksums of the files' bytes (FNV-1a). They catch a change of the format that breaks old files, even if both
 * sides of the test change. */
static const uint64_t pinned[SPECS] = {
    0x4839e8977c2ec708u, 0xcd2c2155d5a8e2d5u, 0x190ca13a47fb403bu, 0xf292e1a3c4264344u,
    0xfd1b04bc6b2944eau, 0xf2febd6b36c8aacau, 0x1ca3c0bc7552e725u, 0x91ca290ec29d05e7u,
    0xc337caad4fb928ceu, 0x73b9a50e9e899971u, 0xa1f1be6cc197b0aau, 0xf86cc02d8c454fe9u,
};

static char path[64];

static int make_name(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/acflow-golden-%d.safetensors", (int)getpid());
    return 0;
}

static int remove_file(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static void write_file(const unsigned char *bytes, size_t n) {
    unlink(path); /* some file systems sync a file that is truncated to nothing; thousands are written here */
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_golden(const acf_golden *g) {
    size_t n;
    unsigned char *bytes = acf_golden_bytes(g, &n);
    write_file(bytes, n);
    free(bytes);
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Every query of one row: the joint, and every set of target columns given the others. */
static void check_answers(acf_golden *g, const acf_model *m) {
    int D = g->spec.columns;
    int32_t classes[ACF_GOLDEN_COLUMNS];
    double x[ACF_GOLDEN_COLUMNS], out;
    acf_table *t;
    acf_session *s;
    for (int j = 0; j < D; j++) {
        classes[j] = g->spec.classes[j];
        x[j] = classes[j] ? classes[j] - 1 : j + 0.5 + 1.25 * (j % 3 - 1) + 0.125;
        assert_int_equal(acf_model_column_classes(m, j), classes[j]);
    }
    assert_int_equal(acf_table_create(x, NULL, 1, D, classes, NULL, &t), ACF_OK);
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    for (int code = 1; code < 1 << D; code++) {
        uint8_t target[ACF_GOLDEN_COLUMNS];
        bool modelled[ACF_GOLDEN_COLUMNS];
        for (int j = 0; j < D; j++) target[j] = modelled[j] = code >> j & 1;
        if (acf_session_logp(s, t, NULL, target, &out)) fail_msg("%s: %s", g->spec.name, acf_error());
        double expected = acf_golden_logp(g, x, modelled);
        if (fabs(out - expected) > (sizeof(acf_real) == 8 ? 1e-9 : 1e-4) * (1 + fabs(expected)))
            fail_msg("%s, columns %d: log p is %.12g, expected %.12g", g->spec.name, code, out, expected);
    }
    acf_session_free(s);
    acf_table_free(t);
}

static void replace(char *text, const char *old, const char *new) {
    char copy[2048], *at = strstr(text, old);
    assert_non_null(at);
    snprintf(copy, sizeof copy, "%s", at + strlen(old));
    strcpy(at, new);
    strcat(text, copy);
}

static uint64_t fnv(const unsigned char *bytes, size_t n) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

static void golden_models_load_and_answer(void **state) {
    (void)state;
    for (int k = 0; k < SPECS; k++) {
        acf_golden g;
        acf_model *m;
        size_t n;
        acf_golden_make(&g, &specs[k]);
        unsigned char *bytes = acf_golden_bytes(&g, &n);
        if (fnv(bytes, n) != pinned[k])
            fail_msg("%s: the file is not what it was: 0x%016llx", specs[k].name, (unsigned long long)fnv(bytes, n));
        write_file(bytes, n);
        if (acf_model_load(path, NULL, &m)) fail_msg("%s: %s", specs[k].name, acf_error());
        int64_t numbers = 0;
        for (int i = 0; i < g.n; i++) numbers += g.tensor[i].count;
        assert_int_equal(acf_model_parameters(m), numbers);
        check_answers(&g, m);
        acf_model_free(m);
        free(bytes);
        acf_golden_free(&g);
    }
}

/* acflow saves such a model and reads it again, with the same answers. */
static void golden_models_can_be_saved(void **state) {
    (void)state;
    for (int k = 0; k < SPECS; k++) {
        acf_golden g;
        acf_model *m = NULL, *again = NULL;
        acf_golden_make(&g, &specs[k]);
        write_golden(&g);
        if (acf_model_load(path, NULL, &m) || acf_model_save(m, path) || acf_model_load(path, NULL, &again))
            fail_msg("%s", acf_error());
        check_answers(&g, again);
        acf_model_free(m);
        acf_model_free(again);
        acf_golden_free(&g);
    }
}

/* The checksum and the training record are optional. */
static void optional_metadata_may_be_absent(void **state) {
    (void)state;
    acf_golden g;
    acf_model *m;
    char text[8192];
    acf_golden_make(&g, &specs[MIXED]);
    g.checked = false, g.training[0] = 0;
    write_golden(&g);
    if (acf_model_load(path, NULL, &m)) fail_msg("%s", acf_error());
    check_answers(&g, m);
    assert_int_equal(acf_model_info(m, ACF_JSON, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(text, "\"training\": null"));
    assert_non_null(strstr(text, "\"encode\": \"standard\"")); /* an option added later: the value before it existed */
    assert_int_equal(acf_model_info(m, ACF_TEXT, text, sizeof text, NULL), ACF_OK);
    assert_non_null(strstr(text, "training: not recorded\n"));
    acf_model_free(m);
    acf_golden_free(&g);
}

/* In a file older than the option `calibrate`, the record determines its value. */
static void an_old_record_says_whether_it_is_calibrated(void **state) {
    (void)state;
    static const char *const value[] = {"\"calibrate\": false", "\"calibrate\": true"};
    for (int calibrated = 0; calibrated < 2; calibrated++) {
        acf_golden g;
        acf_model *m;
        char text[8192];
        acf_golden_make(&g, &specs[MIXED]);
        if (calibrated)
            replace(g.training, "\"seconds\"", "\"valid\":1,\"valid_step\":3,\"widen\":0.1,\"soften\":0,\"seconds\"");
        write_golden(&g);
        if (acf_model_load(path, NULL, &m)) fail_msg("%s", acf_error());
        assert_int_equal(acf_model_info(m, ACF_JSON, text, sizeof text, NULL), ACF_OK);
        assert_non_null(strstr(text, value[calibrated]));
        acf_model_free(m);
        acf_golden_free(&g);
    }
}

/* ---- refused files ----------------------------------------------------------------------------------------------- */

static void refused(const char *what, const char *says) {
    acf_model *m = NULL;
    acf_status status = acf_model_load(path, NULL, &m);
    if (status != ACF_EMODEL) fail_msg("%s: %s instead of ACF_EMODEL", what, acf_status_name(status));
    assert_null(m);
    if (strncmp(acf_error(), path, strlen(path)) != 0 || !strstr(acf_error(), says))
        fail_msg("%s: expected the file and '%s' in: %s", what, says, acf_error());
}

/* Of the mixed model: two reals, two categories. */
static void drop_tensor(acf_golden *g) {
    acf_golden_tensor *t = acf_golden_find(g, "flow.2.rnn.0.wh");
    free(t->value);
    *t = g->tensor[--g->n];
}
static void extra_tensor(acf_golden *g) { acf_golden_add(g, "flow.2.rnn.1.wh", 2, 6, 2); }
static void renamed_tensor(acf_golden *g) {
    strcpy(acf_golden_find(g, "likelihood.head.b2")->name, "likelihood.head.b3");
}
static void other_shape(acf_golden *g) {
    acf_golden_tensor *t = acf_golden_find(g, "likelihood.head.w2"); /* (6,2): as many numbers, transposed */
    t->dim[0] = 2, t->dim[1] = 6;
}
static void flat_shape(acf_golden *g) {
    acf_golden_tensor *t = acf_golden_find(g, "likelihood.head.w2");
    t->ndim = 1, t->dim[0] = 12;
}
static void whole_numbers(acf_golden *g) { acf_golden_find(g, "seen")->dtype = "I32"; }
static void bytes(acf_golden *g) { acf_golden_find(g, "seen")->dtype = "U8"; }
static void half_floats(acf_golden *g) { acf_golden_find(g, "seen")->dtype = "F16"; }
static void a_nan(acf_golden *g) { acf_golden_find(g, "seen")->value[3] = (double)NAN; }
static void an_infinity(acf_golden *g) { acf_golden_find(g, "likelihood.0.wh")->value[0] = INFINITY; }
static void newer(acf_golden *g) { strcpy(g->version, "7"); }
static void no_version(acf_golden *g) { strcpy(g->version, "x"); }
static void picture(acf_golden *g) { strcpy(g->kind, "picture"); }
static void unknown_option(acf_golden *g) { replace(g->config, "\"mlp-width\"", "\"mlp-widht\""); }
static void wrong_option(acf_golden *g) { replace(g->config, "\"components\":2", "\"components\":0"); }
static void more_components(acf_golden *g) { replace(g->config, "\"components\":2", "\"components\":3"); }
static void longer_flow(acf_golden *g) { replace(g->config, "reverse affine", "reverse affine affine"); }
static void unknown_flow(acf_golden *g) { replace(g->config, "reverse affine", "reverse affin"); }
static void no_config(acf_golden *g) { g->config[0] = 0; }
static void half_config(acf_golden *g) { g->config[strlen(g->config) - 1] = 0; }
static void fewer_classes(acf_golden *g) { replace(g->encoder, "[4,1,2]", "[4,1]"); }
static void a_real_category(acf_golden *g) { replace(g->encoder, "\"counts\":[4,1]", "\"mean\":0"); }
static void no_scale(acf_golden *g) { replace(g->encoder, "\"scale\":2", "\"scale\":0"); }
static void same_names(acf_golden *g) { replace(g->encoder, "\"k2\"", "\"x1\""); }
static void odd_end(acf_golden *g) { replace(g->training, "\"steps\",", "\"tired\","); }

static const struct {
    void (*change)(acf_golden *);
    const char *says;
} wrongs[] = {
    {drop_tensor, "tensor 'flow.2.rnn.0.wh': it is missing"},
    {extra_tensor, "tensor 'flow.2.rnn.1.wh' is no part of the network that its config describes"},
    {renamed_tensor, "tensor 'likelihood.head.b2': it is missing"},
    {other_shape, "tensor 'likelihood.head.w2': its shape is [2, 6], expected [6, 2]"},
    {flat_shape, "tensor 'likelihood.head.w2': its shape is [12], expected [6, 2]"},
    {whole_numbers, "tensor 'seen': its dtype is I32, expected F32 or F64"},
    {bytes, "tensor 'seen': its dtype is U8, expected F32 or F64"},
    {half_floats, "F16"},
    {a_nan, "tensor 'seen' is nan at element 3; expected a finite number"},
    {an_infinity, "tensor 'likelihood.0.wh' is inf at element 0; expected a finite number"},
    {newer, "format_version is 7, this acflow reads up to 6; update acflow, or save the model with this version"},
    {no_version, "format_version is 'x', expected a whole number"},
    {picture, "it is a model of kind 'picture'; expected 'table' or 'image'"},
    {unknown_option, "did you mean 'mlp-width'?"},
    {wrong_option, "components"},
    {more_components, "its shape is [6, 2], expected [9, 2]"},
    {longer_flow, "tensor 'flow.5.affine.w0': it is missing"},
    {unknown_flow, "there is no transformation 'affin'; did you mean 'affine'?"},
    {no_config, "key 'config' is missing"},
    {half_config, "config"},
    {fewer_classes, "its shape is"},
    {a_real_category, "'counts'"},
    {no_scale, "scale above 0"},
    {same_names, "x1"},
    {odd_end, "'end' is 'tired'"},
};

static void files_with_one_thing_wrong_are_refused(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof wrongs / sizeof wrongs[0]; k++) {
        acf_golden g;
        char what[64];
        acf_golden_make(&g, &specs[MIXED]);
        wrongs[k].change(&g);
        write_golden(&g);
        snprintf(what, sizeof what, "wrong number %d", (int)k);
        refused(what, wrongs[k].says);
        acf_golden_free(&g);
    }
    assert_int_equal(acf_status_exit(ACF_EMODEL), 4);
}

static void a_file_cut_short_is_refused(void **state) {
    (void)state;
    acf_golden g;
    size_t n;
    acf_golden_make(&g, &specs[MIXED]);
    unsigned char *whole = acf_golden_bytes(&g, &n);
    for (size_t cut = 0; cut < n; cut += cut < 16 || n - cut < 16 ? 1 : 113) {
        write_file(whole, cut);
        refused("cut short", "");
    }
    write_file(whole, n - 1);
    refused("without its last byte", "the file is cut short: copy it again");
    free(whole);
    acf_golden_free(&g);
}

/* The container or the checksum detects any flipped bit. The exception is the key "checksum" itself: without it
 * nothing is compared, and the content is intact. */
static void a_flipped_bit_is_refused(void **state) {
    (void)state;
    acf_golden g;
    size_t n, header;
    acf_golden_make(&g, &specs[MIXED]);
    unsigned char *file = acf_golden_bytes(&g, &n);
    uint64_t length;
    memcpy(&length, file, sizeof length);
    header = 8 + (size_t)length;
    const char *word = strstr((char *)file + 8, "\"checksum\"");
    size_t from = (size_t)(word - (char *)file) + 1, to = from + strlen("checksum");
    for (size_t i = 0; i < n; i += i < header ? 1 : 3) {
        unsigned char bit = (unsigned char)(1u << (i * 5 + i / 8) % 8);
        if (i >= from && i < to) continue;
        file[i] ^= bit;
        write_file(file, n);
        file[i] ^= bit;
        char what[64];
        snprintf(what, sizeof what, "bit 0x%02x of byte %zu", bit, i);
        refused(what, i >= header ? "the file is damaged: copy it again" : "");
    }
    free(file);
    acf_golden_free(&g);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, make_name, remove_file)
ACF_TESTS(golden_model, WITH_FILE(golden_models_load_and_answer), WITH_FILE(golden_models_can_be_saved),
          WITH_FILE(optional_metadata_may_be_absent), WITH_FILE(an_old_record_says_whether_it_is_calibrated),
          WITH_FILE(files_with_one_thing_wrong_are_refused), WITH_FILE(a_file_cut_short_is_refused),
          WITH_FILE(a_flipped_bit_is_refused))
