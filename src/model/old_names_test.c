/* Model files of version 5 and before. A current file is rewritten with the names of acflow 0.1 and must load as the
 * same model. The old names are listed again here, independently of the table under test. */
#include "model/old_names.h"

#include "harness/check.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 60, COLS = 3, NAMES = 64 };

static const char *const keys[][2] = {
    {"\"donors\":", "\"recall\":"},
    {"\"ensemble\":", "\"members\":"},
    {"\"gmm\":", "\"anchor\":"},
    {"\"factors\":", "\"anchor-rank\":"},
    {"\"gmm-indicators\":", "\"anchor-width\":"},
    {"\"column-embedding\":", "\"identity\":"},
    {"\"ema\":", "\"average\":"},
    {"\"encode\":\"normal-scores\"", "\"encode\":\"warp\""},
    {"\"likelihood\":\"sets\"", "\"likelihood\":\"set\""},
    {"\"normal_scores\":", "\"warp\":"},
};

/* text with every new name replaced by its old one; *n counts them. Freed by the caller. */
static char *aged(const char *text, int *n) {
    char *out = strdup(text);
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++)
        for (char *p = out; (p = strstr(p, keys[k][0]));) {
            const size_t head = (size_t)(p - out), was = strlen(keys[k][0]);
            char *next = malloc(strlen(out) + strlen(keys[k][1]) + 1);
            sprintf(next, "%.*s%s%s", (int)head, out, keys[k][1], p + was);
            free(out);
            out = next, p = out + head + strlen(keys[k][1]);
            ++*n;
        }
    return out;
}

/* The name with gmm. replaced by anchor., also after member.1. */
static void age_name(const char *name, char out[ACF_SAFETENSORS_NAME_MAX], int *n) {
    const char *gmm = strncmp(name, "gmm.", 4) == 0 ? name : strstr(name, ".gmm.") ? strstr(name, ".gmm.") + 1 : NULL;
    snprintf(out, ACF_SAFETENSORS_NAME_MAX, "%.*s%s%s", gmm ? (int)(gmm - name) : 0, name, gmm ? "anchor." : "",
             gmm ? gmm + 4 : name);
    *n += gmm != NULL;
}

/* Writes the model of `from` to `to` as a file of version 5. */
static void write_aged(const char *from, const char *to) {
    acf_safetensors *f;
    assert_int_equal(acf_safetensors_open(from, &f), ACF_OK);
    const int64_t n = acf_safetensors_count(f), m = acf_safetensors_text_count(f);
    acf_safetensors_tensor tensor[256];
    char name[256][ACF_SAFETENSORS_NAME_MAX];
    acf_safetensors_text text[NAMES];
    char *value[NAMES] = {NULL};
    int named = 0, words = 0, texts = 0;
    assert_true(n < 256 && m < NAMES);
    for (int64_t i = 0; i < n; i++) {
        tensor[i] = *acf_safetensors_at(f, i);
        age_name(tensor[i].name, name[i], &named);
        tensor[i].name = name[i];
    }
    for (int64_t i = 0; i < m; i++) {
        const acf_safetensors_text *t = acf_safetensors_text_at(f, i);
        if (strcmp(t->key, "checksum") == 0) continue;
        value[texts] = strcmp(t->key, "format_version") == 0 ? strdup("5") : aged(t->value, &words);
        text[texts] = (acf_safetensors_text){strcmp(t->key, "ensemble") == 0 ? "members" : t->key, value[texts]};
        texts++;
    }
    if (named < 6 || words < 10) fail_msg("%d tensors, %d words", named, words);
    assert_int_equal(acf_safetensors_write(to, tensor, n, text, texts), ACF_OK);
    for (int i = 0; i < texts; i++) free(value[i]);
    acf_safetensors_close(f);
}

static acf_model *some_model(void) {
    double x[ROWS * COLS];
    acf_table *t;
    acf_options *o;
    acf_model *m;
    for (int i = 0; i < ROWS * COLS; i++) x[i] = (double)(i * 37 % 101) + (i % COLS == 1 ? 0 : 0.25 * (i % 7));
    assert_int_equal(acf_table_create(x, NULL, ROWS, COLS, NULL, NULL, &t), ACF_OK);
    assert_int_equal(acf_options_create(&o), ACF_OK);
    const char *const set[][2] = {{"device", "cpu"}, {"threads", "1"},       {"steps", "3"},
                                  {"ensemble", "2"}, {"likelihood", "sets"}, {"refit", "false"}};
    for (size_t i = 0; i < sizeof set / sizeof set[0]; i++)
        assert_int_equal(acf_options_set(o, set[i][0], set[i][1]), ACF_OK);
    if (acf_model_fit(t, o, NULL, NULL, &m)) fail_msg("%s", acf_error());
    acf_options_free(o);
    acf_table_free(t);
    return m;
}

static void same_bytes(const char *a, const char *b) {
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    int c, d;
    assert_true(f && g);
    do {
        c = getc(f), d = getc(g);
        assert_int_equal(c, d);
    } while (c != EOF);
    fclose(f), fclose(g);
}

static void an_old_file_is_the_same_model(void **state) {
    (void)state;
    char now[64], old[64], again[64];
    snprintf(now, sizeof now, "/tmp/acflow-now-%d.safetensors", (int)getpid());
    snprintf(old, sizeof old, "/tmp/acflow-old-%d.safetensors", (int)getpid());
    snprintf(again, sizeof again, "/tmp/acflow-again-%d.safetensors", (int)getpid());
    acf_model *m = some_model(), *read;
    assert_int_equal(acf_model_save(m, now), ACF_OK);
    write_aged(now, old);
    if (acf_model_load(old, NULL, &read)) fail_msg("%s", acf_error());
    assert_int_equal(acf_model_save(read, again), ACF_OK);
    same_bytes(now, again);
    acf_model_free(m);
    acf_model_free(read);
    unlink(now), unlink(old), unlink(again);
}

static void expect_json(const char *part, const char *before, const char *after) {
    json_t *value = json_loads(before, 0, NULL);
    assert_non_null(value);
    assert_int_equal(acf_old_names_json(part, value), ACF_OK);
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, after);
    free(text);
    json_decref(value);
}

static void keys_of_every_part(void **state) {
    (void)state;
    expect_json("config", "{\"recall\":true,\"likelihood\":\"ar\",\"image-map\":\"bells\",\"steps\":3}",
                "{\"donors\":true,\"image-dequantise\":\"gaussian\",\"likelihood\":\"gru\",\"steps\":3}");
    expect_json("training", "{\"recall\":[1,2],\"recall_given\":0.5,\"widen\":0.5}",
                "{\"donor_trust\":[1,2],\"donor_trust_given\":0.5,\"widen\":0.5}");
    expect_json("encoder", "{\"columns\":[{\"warp\":{\"t\":[0,1]}}]}",
                "{\"columns\":[{\"normal_scores\":{\"t\":[0,1]}}]}");
    expect_json("image", "{\"turned\":true,\"mirrored\":true,\"bits\":8}",
                "{\"bits\":8,\"flipped\":true,\"rotated\":true}");
    expect_json("schema", "{\"columns\":[{\"name\":\"warp\"}]}", "{\"columns\":[{\"name\":\"warp\"}]}");
}

/* Tensors of donors, and of other ensemble members. */
static void tensors_of_donors(void **state) {
    (void)state;
    char path[64];
    const int32_t code[2] = {1, 2};
    const acf_safetensors_tensor tensor[] = {
        {.name = "archive.rows", .dtype = ACF_SAFETENSORS_I32, .ndim = 1, .dim = {2}, .data = code},
        {.name = "archive.expect", .dtype = ACF_SAFETENSORS_I32, .ndim = 1, .dim = {2}, .data = code},
        {.name = "archive.expected", .dtype = ACF_SAFETENSORS_I32, .ndim = 1, .dim = {2}, .data = code},
        {.name = "member.2.anchor.mean", .dtype = ACF_SAFETENSORS_I32, .ndim = 1, .dim = {2}, .data = code},
        {.name = "zanchor.mean", .dtype = ACF_SAFETENSORS_I32, .ndim = 1, .dim = {2}, .data = code},
    };
    const acf_safetensors_text text[] = {{"archive", "{}"}, {"members", "3"}, {"member.2.config", "{}"}};
    acf_safetensors *f;
    snprintf(path, sizeof path, "/tmp/acflow-old-names-%d.safetensors", (int)getpid());
    assert_int_equal(acf_safetensors_write(path, tensor, 5, text, 3), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_int_equal(acf_old_names_file(f), ACF_OK);
    const char *const now[] = {"donors.rows", "donors.predictor", "donors.predicted", "member.2.gmm.mean",
                               "zanchor.mean"};
    for (int i = 0; i < 5; i++) assert_non_null(acf_safetensors_find(f, now[i]));
    assert_null(acf_safetensors_find(f, "archive.rows"));
    assert_string_equal(acf_safetensors_text_find(f, "ensemble"), "3");
    assert_string_equal(acf_safetensors_text_find(f, "donors"), "{}");
    assert_non_null(acf_safetensors_text_find(f, "member.2.config"));
    acf_safetensors_close(f);
    unlink(path);
}

static void both_names_are_refused(void **state) {
    (void)state;
    char path[64];
    const acf_safetensors_text text[] = {{"archive", "{}"}, {"donors", "{}"}};
    acf_safetensors *f;
    snprintf(path, sizeof path, "/tmp/acflow-both-names-%d.safetensors", (int)getpid());
    assert_int_equal(acf_safetensors_write(path, NULL, 0, text, 2), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_int_equal(acf_old_names_file(f), ACF_EMODEL);
    assert_non_null(strstr(acf_error(), "'donors' comes twice"));
    acf_safetensors_close(f);
    unlink(path);
}

ACF_TESTS(old_names, cmocka_unit_test(an_old_file_is_the_same_model), cmocka_unit_test(keys_of_every_part),
          cmocka_unit_test(tensors_of_donors), cmocka_unit_test(both_names_are_refused))
