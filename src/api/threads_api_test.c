/* Tests of the thread rules of acflow.h: sessions of one model, and readers and writers of one table, at the same time,
 * each with the answers it has alone. */
#include "acflow.h"

#include "device/cpu.h"
#include "harness/file_lab.h"
#include "infer/session_parts.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 2, ROWS = 400, TIMES = 40 };

/* Every thread calls it TIMES times with its number; counts the failures. */
typedef struct work {
    bool (*right)(const struct work *w, int thread);
    const acf_table *t;
    const acf_model *m;
    const double *expected;
    uint64_t hash;
    const char *folder, *text;
    int thread, wrong;
    char first[256]; /* why */
} work;

static void *repeat(void *ctx) {
    work *w = ctx;
    for (int k = 0; k < TIMES; k++)
        if (!w->right(w, w->thread) && w->wrong++ == 0) snprintf(w->first, sizeof w->first, "%s", acf_error());
    return NULL;
}

static void at_once(const work *what) {
    pthread_t thread[THREADS];
    work w[THREADS];
    for (int k = 0; k < THREADS; k++) w[k] = *what, w[k].thread = k;
    for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_create(&thread[k], NULL, repeat, &w[k]), 0);
    for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_join(thread[k], NULL), 0);
    for (int k = 0; k < THREADS; k++)
        if (w[k].wrong) fail_msg("thread %d: %d of %d answers are wrong: %s", k, w[k].wrong, TIMES, w[k].first);
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static acf_lab_folder folder;
static char *table_text;

/* Words and numbers with missing cells, some in quotes. */
static size_t write_text(char *out, size_t cap) {
    acf_text t = acf_text_into(out, cap);
    acf_text_add(&t, "id,\"a b\",c\n");
    for (int i = 0; i < ROWS; i++) {
        acf_text_addf(&t, "row%d,", i);
        if (i % 5) acf_text_addf(&t, "%d.%d", i * 37 % 101, i % 10);
        acf_text_addf(&t, ",\"%s, \"\"%s\"\"\"\n", i % 3 ? "up" : "down", i % 2 ? "x" : "y");
    }
    return t.len;
}

static acf_table *open_table(const char *name) {
    char path[128];
    acf_table *t = NULL;
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    if (acf_table_read(path, NULL, NULL, &t)) fail_msg("%s", acf_error());
    return t;
}

static int make_files(void **state) {
    (void)state;
    static char packed[1 << 16];
    folder = acf_lab_folder_make();
    if (!(table_text = malloc(1 << 16))) return -1;
    const size_t n = write_text(table_text, 1 << 16);
    acf_lab_folder_put(&folder, "t.csv", table_text, n);
    acf_lab_folder_put(&folder, "t.csv.gz", packed, acf_lab_gzip(table_text, n, packed, sizeof packed));
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    free(table_text);
    acf_lab_folder_free(&folder);
    return 0;
}

static int add_text(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes) {
    uint64_t *hash = ctx;
    *hash = *hash * 31 + (uint64_t)row * 7 + (uint64_t)column;
    for (size_t k = 0; k < bytes; k++) *hash = *hash * 31 + (unsigned char)text[k];
    return 0;
}

static bool reads_texts(const work *w, int thread) {
    (void)thread;
    uint64_t hash = 0;
    return acf_table_texts(w->t, add_text, &hash) == ACF_OK && hash == w->hash;
}

static bool writes(const work *w, int thread) {
    char path[128];
    acf_writer *out;
    snprintf(path, sizeof path, "%s/out%d.csv", w->folder, thread);
    const acf_write_plan plan = {.imputations = 1};
    if (acf_writer_open(w->t, path, &plan, &out)) return false;
    if (acf_writer_put(out, acf_table_values(w->t), NULL, NULL)) return acf_writer_abort(out), false;
    if (acf_writer_commit(out)) return false;
    static _Thread_local char text[1 << 16];
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(text, 1, sizeof text, f) : 0;
    if (f) fclose(f);
    return n == strlen(w->text) && memcmp(text, w->text, n) == 0; /* missing cells stay missing */
}

static bool draws_holes(const work *w, int thread) {
    char path[128];
    snprintf(path, sizeof path, "%s/holes%d.svg", w->folder, thread);
    return acf_plot_missing(path, NULL, w->t) == ACF_OK;
}

static bool reads_and_writes(const work *w, int thread) {
    return reads_texts(w, thread) && (thread ? writes(w, thread) : draws_holes(w, thread));
}

/* Text, and packed text. */
static void a_table_is_shared(void **state) {
    (void)state;
    static const char *const names[] = {"t.csv", "t.csv.gz"};
    for (int k = 0; k < 2; k++) {
        acf_table *t = open_table(names[k]);
        work w = {.right = reads_and_writes, .t = t, .folder = folder.path, .text = table_text};
        assert_int_equal(acf_table_texts(t, add_text, &w.hash), ACF_OK);
        at_once(&w);
        acf_table_free(t);
    }
}

/* The data of a pipe is kept once, and read by each. */
static void a_piped_table_is_shared(void **state) {
    (void)state;
    int end[2];
    char path[64];
    acf_table *t = NULL;
    assert_int_equal(pipe(end), 0);
    assert_int_equal(write(end[1], table_text, strlen(table_text)), (ssize_t)strlen(table_text));
    close(end[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", end[0]);
    if (acf_table_read(path, NULL, NULL, &t)) fail_msg("%s", acf_error());
    close(end[0]);
    work w = {.right = reads_texts, .t = t};
    assert_int_equal(acf_table_texts(t, add_text, &w.hash), ACF_OK);
    at_once(&w);
    acf_table_free(t);
}

static void a_matrix_is_shared(void **state) {
    (void)state;
    static char bytes[128 + ROWS * 3 * 8];
    static const char header[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f8', 'fortran_order': False, 'shape': (400, 3), }";
    memset(bytes, ' ', 127);
    memcpy(bytes, header, sizeof header - 1);
    bytes[127] = '\n';
    for (int i = 0; i < ROWS * 3; i++) memcpy(bytes + 128 + 8 * i, &(double){sin(i)}, 8);
    acf_lab_folder_put(&folder, "x.npy", bytes, sizeof bytes);
    acf_table *t = open_table("x.npy");
    work w = {.right = reads_texts, .t = t};
    assert_int_equal(acf_table_texts(t, add_text, &w.hash), ACF_OK);
    at_once(&w);
    acf_table_free(t);
}

/* A reader of its own also notices that the file has been replaced. */
static void a_file_that_changes_is_noticed(void **state) {
    (void)state;
    uint64_t hash = 0;
    acf_table *t = open_table("t.csv");
    acf_lab_folder_put(&folder, "t.csv", table_text, strlen(table_text) - 20);
    assert_int_equal(acf_table_texts(t, add_text, &hash), ACF_EIO);
    assert_non_null(strstr(acf_error(), "became shorter while it was read"));
    acf_table_free(t);
}

/* ---- sessions -------------------------------------------------------------------------------------------------- */

/* Its products are large enough for bf16. */
static acf_model *fit(const acf_table *t, const char *answers) {
    static const char *const set[][2] = {
        {"steps", "2"},    {"likelihood-units", "64"},   {"mlp-width", "64"}, {"threads", "1"},   {"device", "cpu"},
        {"ensemble", "2"}, {"flow", "linear leaky rnn"}, {"refit", "false"},  {"donors", "false"}};
    acf_options *o;
    acf_model *m;
    assert_int_equal(acf_options_create(&o), ACF_OK);
    for (size_t k = 0; k < sizeof set / sizeof *set; k++)
        assert_int_equal(acf_options_set(o, set[k][0], set[k][1]), ACF_OK);
    assert_int_equal(acf_options_set(o, "query-precision", answers), ACF_OK);
    if (acf_model_fit(t, o, NULL, NULL, &m)) fail_msg("%s", acf_error());
    acf_options_free(o);
    return m;
}

static acf_table *reals(void) {
    static double x[ROWS * 4];
    acf_table *t;
    for (int i = 0; i < ROWS * 4; i++) x[i] = i % 7 ? sin(12.9898 * i) + 0.3 * sin(i / 4) : NAN;
    assert_int_equal(acf_table_create(x, NULL, ROWS, 4, NULL, NULL, &t), ACF_OK);
    return t;
}

static bool answers(const work *w, int thread) {
    double out[ROWS];
    acf_session *s;
    (void)thread;
    if (acf_session_create(w->m, &s)) return false;
    acf_status status = acf_session_logp(s, w->t, NULL, NULL, out);
    acf_session_free(s);
    return status == ACF_OK && memcmp(out, w->expected, sizeof out) == 0;
}

static void check_sessions(const char *precision) {
    double expected[ROWS];
    acf_table *t = reals();
    acf_model *m = fit(t, precision);
    acf_session *s;
    assert_int_equal(acf_session_create(m, &s), ACF_OK);
    assert_int_equal(acf_session_logp(s, t, NULL, NULL, expected), ACF_OK);
    acf_session_free(s);
    at_once(&(work){.right = answers, .t = t, .m = m, .expected = expected});
    acf_model_free(m);
    acf_table_free(t);
}

static void sessions_answer_as_they_do_alone(void **state) {
    (void)state;
    check_sessions("float");
}

static void and_so_they_do_in_bf16(void **state) {
    (void)state;
    if (!acf_cpu_has_bf16()) skip();
    check_sessions("bf16");
}

/* On any CPU, the precision of one session affects neither other sessions nor the model. */
static void precision_is_the_sessions(void **state) {
    (void)state;
    acf_table *t = reals();
    acf_model *m = fit(t, "float");
    acf_session *one = NULL, *two = NULL;
    assert_true(!acf_session_create(m, &one) && !acf_session_create(m, &two));
    assert_true(one->dev != two->dev && one->dev != m->dev && one->dev->threads == m->dev->threads);
    if (acf_cpu_has_bf16()) assert_int_equal(acf_session_set_precision(one, ACF_PRECISION_BF16), ACF_OK);
    assert_true(two->dev->precision == ACF_PRECISION_FLOAT && m->dev->precision == ACF_PRECISION_FLOAT);
    acf_session_free(one), acf_session_free(two);
    acf_model_free(m);
    acf_table_free(t);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, make_files, remove_files)
ACF_TESTS(threads_api, WITH_FILES(a_table_is_shared), WITH_FILES(a_piped_table_is_shared),
          WITH_FILES(a_matrix_is_shared), WITH_FILES(a_file_that_changes_is_noticed),
          cmocka_unit_test(sessions_answer_as_they_do_alone), cmocka_unit_test(and_so_they_do_in_bf16),
          cmocka_unit_test(precision_is_the_sessions))
