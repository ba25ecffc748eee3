/* Tests of safetensors.h on valid files: round trips, the bytes of the published format, and failures of the
 * environment (memory, disk), which leave everything unchanged. safetensors_hostile_test.c has the rest. */
#include "base/safetensors.h"

#include "base/arena.h"
#include "base/file.h"
#include "harness/check.h"
#include "harness/file_lab.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(a) ((int64_t)(sizeof(a) / sizeof(a)[0]))

/* The content of tests/golden/model/sample.safetensors, in another order than the file's. */
static const double bias = 0.1;
static const int64_t count = (int64_t)1 << 40;
static const float w[6] = {1.0f, -2.5f, 0.0f, 1e-3f, 3e38f, -7.0f};
static const int32_t order[2] = {-1, 7};
static const uint8_t size_[3] = {1, 2, 255};
static const acf_safetensors_tensor sample[] = {
    {"order", ACF_SAFETENSORS_I32, 1, {2}, order},
    {"gr\xc3\xb6\xc3\x9f\x65 \"1\"\n", ACF_SAFETENSORS_U8, 1, {3}, size_},
    {"none", ACF_SAFETENSORS_F32, 2, {0, 4}, NULL},
    {"flow.0.w", ACF_SAFETENSORS_F32, 2, {2, 3}, w},
    {"count", ACF_SAFETENSORS_I64, 1, {1}, &count},
    {"bias", ACF_SAFETENSORS_F64, 0, {0}, &bias},
};
static const acf_safetensors_text texts[] = {{"\xc3\xa9", "\xe2\x82\xac\t"},
                                             {"format_version", "1"},
                                             {"config", "{\"lr\": 0.001}"}};
#define SAMPLE "tests/golden/model/sample.safetensors"

static acf_lab_folder folder;
static char path[128];

static int set_up(void **state) {
    (void)state;
    folder = acf_lab_folder_make();
    snprintf(path, sizeof path, "%s/m.safetensors", folder.path);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_lab_folder_free(&folder);
    return 0;
}

static void assert_sentence(const char *expected) {
    if (!strstr(acf_error(), expected)) fail_msg("'%s' does not say '%s'", acf_error(), expected);
}

static void write_sample(void) {
    assert_int_equal(acf_safetensors_write(path, sample, COUNT(sample), texts, COUNT(texts)), ACF_OK);
}

static acf_safetensors *opened(const char *file) {
    acf_safetensors *f = NULL;
    if (acf_safetensors_open(file, &f) != ACF_OK) fail_msg("%s", acf_error());
    return f;
}

static void assert_same_bytes(const char *a, const char *b) {
    char *x, *y;
    size_t n, m;
    assert_int_equal(acf_file_read(a, 1 << 20, &x, &n), ACF_OK);
    assert_int_equal(acf_file_read(b, 1 << 20, &y, &m), ACF_OK);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    acf_release(x);
    acf_release(y);
}

/* ---- round trips ------------------------------------------------------------------------------------------------- */

static void assert_sample(const acf_safetensors *f) {
    assert_int_equal(acf_safetensors_count(f), COUNT(sample));
    for (int64_t i = 0; i < COUNT(sample); i++) {
        const acf_safetensors_tensor *t = acf_safetensors_find(f, sample[i].name);
        assert_non_null(t);
        size_t bytes = 0;
        assert_true(acf_safetensors_bytes(&sample[i], &bytes));
        assert_string_equal(t->name, sample[i].name);
        assert_int_equal(t->dtype, sample[i].dtype);
        assert_int_equal(t->ndim, sample[i].ndim);
        assert_int_equal(t->bytes, bytes);
        for (int d = 0; d < t->ndim; d++) assert_int_equal(t->dim[d], sample[i].dim[d]);
        if (bytes > 0) assert_memory_equal(t->data, sample[i].data, bytes);
        assert_int_equal((uintptr_t)t->data % acf_safetensors_dtype_size(t->dtype), 0);
        if (i > 0) assert_true(strcmp(acf_safetensors_at(f, i - 1)->name, acf_safetensors_at(f, i)->name) < 0);
    }
    assert_int_equal(acf_safetensors_text_count(f), COUNT(texts));
    for (int64_t i = 0; i < COUNT(texts); i++)
        assert_string_equal(acf_safetensors_text_find(f, texts[i].key), texts[i].value);
    assert_string_equal(acf_safetensors_text_at(f, 0)->key, "config");
    assert_null(acf_safetensors_find(f, "absent"));
    assert_null(acf_safetensors_find(f, "__metadata__"));
    assert_null(acf_safetensors_text_find(f, "absent"));
}

static void what_is_written_is_read(void **state) {
    (void)state;
    write_sample();
    acf_safetensors *f = opened(path);
    assert_sample(f);
    /* An open handle keeps its content while the file is replaced. */
    assert_int_equal(acf_safetensors_write(path, NULL, 0, NULL, 0), ACF_OK);
    assert_sample(f);
    acf_safetensors_close(f);
    acf_safetensors_close(NULL);
    f = opened(path);
    assert_int_equal(acf_safetensors_count(f), 0);
    assert_int_equal(acf_safetensors_text_count(f), 0);
    assert_null(acf_safetensors_find(f, "bias"));
    assert_null(acf_safetensors_text_find(f, "config"));
    acf_safetensors_close(f);
    assert_int_equal(acf_safetensors_write(path, NULL, 0, texts, COUNT(texts)), ACF_OK); /* metadata alone */
    f = opened(path);
    assert_int_equal(acf_safetensors_text_count(f), COUNT(texts));
    acf_safetensors_close(f);
}

/* The golden file was made by an independent script. */
static void the_bytes_are_those_of_the_golden_file(void **state) {
    (void)state;
    write_sample();
    assert_same_bytes(path, SAMPLE);
    acf_safetensors_tensor other[COUNT(sample)];
    for (int64_t i = 0; i < COUNT(sample); i++) other[i] = sample[COUNT(sample) - 1 - i];
    assert_int_equal(acf_safetensors_write(path, other, COUNT(sample), texts, COUNT(texts)), ACF_OK);
    assert_same_bytes(path, SAMPLE);
    /* Read and written again: the handle's tensors are what the writer takes. */
    acf_safetensors *f = opened(SAMPLE);
    acf_safetensors_text again[COUNT(texts)];
    for (int64_t i = 0; i < COUNT(sample); i++) other[i] = *acf_safetensors_at(f, i);
    for (int64_t i = 0; i < COUNT(texts); i++) again[i] = *acf_safetensors_text_at(f, i);
    assert_int_equal(acf_safetensors_write(path, other, COUNT(sample), again, COUNT(texts)), ACF_OK);
    assert_same_bytes(path, SAMPLE);
    acf_safetensors_close(f);
}

static void other_writers_files_are_read(void **state) {
    (void)state;
    acf_safetensors *f = opened("tests/golden/model/empty.safetensors");
    assert_int_equal(acf_safetensors_count(f), 0);
    acf_safetensors_close(f);
    f = opened("tests/golden/model/spaced.safetensors");
    assert_int_equal(acf_safetensors_count(f), 3);
    const acf_safetensors_tensor *t =
        acf_safetensors_find(f, "a\xf0\x9f\x98\x80/"); /* a, an emoji written as a surrogate pair, / */
    assert_non_null(t);
    assert_memory_equal(t->data, "abc", 3);
    assert_int_equal(acf_safetensors_find(f, "e")->bytes, 0);
    acf_real z[2];
    assert_int_equal(acf_safetensors_reals(f, "z", 1, (int64_t[]){2}, z), ACF_OK); /* unaligned in this file */
    assert_true(z[0] == ACF_R(0.5) && z[1] == ACF_R(-0.25));
    acf_safetensors_close(f);
}

static void thousands_of_tensors(void **state) {
    (void)state;
    enum { N = 5000 };
    static char name[N][16];
    static acf_safetensors_tensor t[N];
    for (int i = 0; i < N; i++) {
        snprintf(name[i], sizeof name[i], "t.%d", (i * 7919) % N);
        t[i] = (acf_safetensors_tensor){name[i], i % 3 ? ACF_SAFETENSORS_F32 : ACF_SAFETENSORS_U8, 1, {1 + i % 3}, w};
    }
    assert_int_equal(acf_safetensors_write(path, t, N, NULL, 0), ACF_OK);
    acf_safetensors *f = opened(path);
    assert_int_equal(acf_safetensors_count(f), N);
    for (int i = 0; i < N; i++) {
        const acf_safetensors_tensor *found = acf_safetensors_find(f, name[i]);
        assert_non_null(found);
        assert_int_equal(found->dim[0], 1 + i % 3);
        assert_memory_equal(found->data, w, found->bytes);
        assert_int_equal((uintptr_t)found->data % acf_safetensors_dtype_size(found->dtype), 0);
    }
    acf_safetensors_close(f);
}

/* ---- the reads of a model -------------------------------------------------------------------------------------- */

static void reals_are_converted_and_checked(void **state) {
    (void)state;
    double far[3] = {1e300, (double)NAN, -0.5};
    acf_real own[2] = {ACF_R(0.1), ACF_R(-3)}, back[6];
    acf_safetensors_tensor t[] = {{"far", ACF_SAFETENSORS_F64, 1, {3}, far},
                                  {"own", ACF_SAFETENSORS_REAL, 1, {2}, own},
                                  {"w", ACF_SAFETENSORS_F32, 2, {2, 3}, w},
                                  {"order", ACF_SAFETENSORS_I32, 1, {2}, order}};
    assert_int_equal(acf_safetensors_write(path, t, COUNT(t), NULL, 0), ACF_OK);
    acf_safetensors *f = opened(path);
    assert_int_equal(acf_safetensors_reals(f, "own", 1, (int64_t[]){2}, back), ACF_OK);
    assert_memory_equal(back, own, sizeof own);
    assert_int_equal(acf_safetensors_reals(f, "w", 2, (int64_t[]){2, 3}, back), ACF_OK);
    for (int i = 0; i < 6; i++) assert_true(back[i] == ACF_R(w[i]));
    assert_int_equal(acf_safetensors_reals(f, "far", 1, (int64_t[]){3}, back), ACF_OK);
    assert_true(sizeof(acf_real) == 8 ? (double)back[0] == far[0] : isinf(back[0])); /* never a wrong finite number */
    assert_true(isnan(back[1]) && back[2] == ACF_R(-0.5));

    char expected[256];
    const acf_safetensors_tensor *found = NULL;
    assert_int_equal(acf_safetensors_reals(f, "w", 2, (int64_t[]){3, 2}, back), ACF_EMODEL);
    snprintf(expected, sizeof expected,
             "%s: tensor 'w': its shape is [2, 3], expected [3, 2]; the file does not belong to this kind of model: "
             "save the model again",
             path);
    assert_string_equal(acf_error(), expected);
    assert_int_equal(acf_safetensors_reals(f, "w", 2, (int64_t[]){2, 2}, back), ACF_EMODEL);
    assert_int_equal(acf_safetensors_reals(f, "w", 1, (int64_t[]){6}, back), ACF_EMODEL);
    assert_sentence("its shape is [2, 3], expected [6]");
    assert_int_equal(acf_safetensors_reals(f, "order", 1, (int64_t[]){2}, back), ACF_EMODEL);
    assert_sentence("tensor 'order': its dtype is I32, expected F32 or F64");
    assert_int_equal(acf_safetensors_need(f, "order", 1, (int64_t[]){2}, &found), ACF_OK);
    assert_memory_equal(found->data, order, sizeof order);
    assert_int_equal(acf_safetensors_need(f, "absent", 0, NULL, &found), ACF_EMODEL);
    assert_sentence("tensor 'absent': it is missing");
    acf_safetensors_close(f);
}

static acf_status version_of(const char *text, int64_t *version) {
    acf_safetensors_text t = {"format_version", text};
    assert_int_equal(acf_safetensors_write(path, NULL, 0, &t, text ? 1 : 0), ACF_OK);
    acf_safetensors *f = opened(path);
    acf_status status = acf_safetensors_version(f, 2, version);
    acf_safetensors_close(f);
    return status;
}

static void newer_versions_are_refused(void **state) {
    (void)state;
    int64_t version = 0;
    assert_int_equal(version_of("1", &version), ACF_OK);
    assert_int_equal(version, 1);
    assert_int_equal(version_of("2", &version), ACF_OK);
    assert_int_equal(version, 2);
    assert_int_equal(version_of("3", &version), ACF_EMODEL);
    assert_sentence("format_version is 3, this acflow reads up to 2; update acflow");
    assert_int_equal(version_of("0", &version), ACF_EMODEL);
    assert_sentence("format_version is '0', expected a whole number, 1 or more");
    assert_int_equal(version_of("1.5", &version), ACF_EMODEL);
    assert_int_equal(version_of("", &version), ACF_EMODEL);
    assert_int_equal(version_of(NULL, &version), ACF_EMODEL);
    assert_sentence("'__metadata__': key 'format_version' is missing; this is no model file");
    assert_int_equal(version, 2); /* written only on success */
}

/* ---- content that cannot be written ---------------------------------------------------------------------------- */

static void assert_unwritable(acf_safetensors_tensor a, acf_safetensors_tensor b, const char *sentence) {
    acf_safetensors_tensor two[] = {a, b};
    assert_int_equal(acf_safetensors_write(path, two, 2, NULL, 0), ACF_EUSAGE);
    assert_sentence(path);
    assert_sentence(sentence);
    assert_int_equal(acf_lab_folder_entries(&folder), 0);
}

static void what_no_reader_takes_is_not_written(void **state) {
    (void)state;
    const acf_safetensors_tensor good = {"good", ACF_SAFETENSORS_U8, 1, {3}, size_};
    assert_unwritable(good, good, "tensor 'good' comes twice");
    assert_unwritable(good, (acf_safetensors_tensor){"good", ACF_SAFETENSORS_F32, 1, {1}, w},
                      "tensor 'good' comes twice");
    assert_unwritable(good, (acf_safetensors_tensor){"", ACF_SAFETENSORS_F32, 1, {1}, w}, "tensor '': a name must be");
    assert_unwritable(good, (acf_safetensors_tensor){"\xff", ACF_SAFETENSORS_F32, 1, {1}, w},
                      "tensor '?': a name must be");
    assert_unwritable(good, (acf_safetensors_tensor){"__metadata__", ACF_SAFETENSORS_F32, 1, {1}, w},
                      "not '__metadata__'");
    assert_unwritable(good, (acf_safetensors_tensor){"b", ACF_SAFETENSORS_DTYPES, 1, {1}, w},
                      "tensor 'b': its dtype is unknown");
    assert_unwritable(good, (acf_safetensors_tensor){"b", ACF_SAFETENSORS_F32, 9, {1}, w},
                      "tensor 'b': it must have 0 to 8 dimensions");
    assert_unwritable(good, (acf_safetensors_tensor){"b", ACF_SAFETENSORS_F32, 2, {1, -1}, w},
                      "tensor 'b': a dimension is negative");
    assert_unwritable(good, (acf_safetensors_tensor){"b", ACF_SAFETENSORS_F32, 1, {INT64_MAX / 2}, w},
                      "more bytes than can be counted");
    assert_unwritable(good, (acf_safetensors_tensor){"b", ACF_SAFETENSORS_U8, 1, {INT64_MAX}, w},
                      "its tensors have more bytes than");
    assert_unwritable(good, (acf_safetensors_tensor){"b", ACF_SAFETENSORS_F32, 1, {1}, NULL},
                      "tensor 'b': it has no data");
    const acf_safetensors_text twice[] = {{"k", "1"}, {"k", "2"}}, broken[] = {{"k", "\xc3"}};
    assert_int_equal(acf_safetensors_write(path, &good, 1, twice, 2), ACF_EUSAGE);
    assert_sentence("metadata key 'k' comes twice");
    assert_int_equal(acf_safetensors_write(path, &good, 1, broken, 1), ACF_EUSAGE);
    assert_sentence("metadata 'k' is not UTF-8 text");
    assert_int_equal(acf_safetensors_write(path, &good, ACF_SAFETENSORS_TENSORS_MAX + 1, NULL, 0), ACF_EUSAGE);
    assert_int_equal(acf_safetensors_write(path, &good, 1, twice, ACF_SAFETENSORS_TEXTS_MAX + 1), ACF_EUSAGE);
    char *large = acf_alloc(ACF_SAFETENSORS_HEADER_MAX + 1, "test data");
    memset(large, 'x', ACF_SAFETENSORS_HEADER_MAX);
    large[ACF_SAFETENSORS_HEADER_MAX] = '\0';
    assert_int_equal(acf_safetensors_write(path, NULL, 0, &(acf_safetensors_text){"k", large}, 1), ACF_EUSAGE);
    assert_sentence("names and metadata take 100000032 bytes, at most 100000000 are allowed");
    acf_release(large);
    assert_int_equal(acf_lab_folder_entries(&folder), 0);
}

/* ---- failures of the environment ------------------------------------------------------------------------------- */

/* The number of the next descriptor; a leak would raise it. */
static int next_descriptor(void) {
    int fd = dup(0);
    close(fd);
    return fd;
}

/* Mappings of a file in this process. */
static int mappings(const char *file) {
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    int n = 0;
    for (char line[512]; fgets(line, sizeof line, maps);) n += strstr(line, file) != NULL;
    fclose(maps);
    return n;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    write_sample();
    int64_t live = acf_alloc_live();
    int fd = next_descriptor(), failures[2] = {0};
    for (int writing = 0; writing < 2; writing++)
        for (int64_t i = 1;; i++) {
            acf_safetensors *f = NULL;
            acf_alloc_fail_at(i);
            acf_status status =
                writing ? acf_safetensors_write(path, sample, 1, texts, COUNT(texts)) : acf_safetensors_open(path, &f);
            acf_alloc_fail_at(0);
            assert_int_equal(mappings(path), f != NULL);
            acf_safetensors_close(f);
            assert_int_equal(acf_alloc_live(), live);
            assert_int_equal(next_descriptor(), fd);
            assert_int_equal(mappings(path), 0);
            assert_int_equal(acf_lab_folder_entries(&folder), 1); /* no temporary file */
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
            assert_null(f);
            assert_sentence("out of memory");
            assert_same_bytes(path, SAMPLE);
            failures[writing]++;
        }
    assert_int_equal(failures[0], 5); /* handle, path, header, tensors, texts */
    assert_int_equal(failures[1], 4); /* two orders, header, output file */
}

static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    write_sample();
    static const char large[20000];
    acf_safetensors_tensor t = {"large", ACF_SAFETENSORS_U8, 1, {sizeof large}, large};
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    rlim_t limits[] = {0, 4, 50, 10000}; /* inside the length, the header, the data */
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        small = before;
        small.rlim_cur = limits[i];
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        acf_status status = acf_safetensors_write(path, &t, 1, NULL, 0);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(status, ACF_EIO);
        assert_sentence("cannot write");
        assert_same_bytes(path, SAMPLE);
        assert_int_equal(acf_lab_folder_entries(&folder), 1);
    }
    signal(SIGXFSZ, handler);
}

static void what_is_no_file_is_not_opened(void **state) {
    (void)state;
    acf_safetensors *f = NULL;
    char pipe_path[128];
    assert_int_equal(acf_safetensors_open(path, &f), ACF_EIO);
    assert_sentence("m.safetensors': No such file");
    assert_int_equal(acf_safetensors_open(folder.path, &f), ACF_EIO);
    assert_sentence("it is a folder");
    assert_int_equal(acf_safetensors_open("/dev/zero", &f), ACF_EIO);
    assert_sentence("not a regular file");
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", folder.path);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(acf_safetensors_open(pipe_path, &f), ACF_EIO); /* and does not wait for a writer */
    assert_sentence("not a regular file");
    write_sample();
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0) assert_int_equal(acf_safetensors_open(path, &f), ACF_EIO);
    assert_null(f);
    assert_int_equal(acf_safetensors_write(folder.path, sample, 1, NULL, 0), ACF_EIO);
}

/* ---- other programs -------------------------------------------------------------------------------------------- */

/* The output of tests/read_safetensors.py for the sample. */
static const char metadata_listed[] = "\"config\" \"{\\\"lr\\\": 0.001}\"\n"
                                      "\"format_version\" \"1\"\n"
                                      "\"\\u00e9\" \"\\u20ac\\t\"\n";
static const char tensors_listed[] = "\"bias\" F64 [] 9a9999999999b93f\n"
                                     "\"count\" I64 [1] 0000000000010000\n"
                                     "\"flow.0.w\" F32 [2, 3] 0000803f000020c0000000006f12833ae6b1617f0000e0c0\n"
                                     "\"gr\\u00f6\\u00dfe \\\"1\\\"\\n\" U8 [3] 0102ff\n"
                                     "\"none\" F32 [0, 4] \n"
                                     "\"order\" I32 [2] ffffffff07000000\n";

static void assert_listed(const char *option, const char *metadata) {
    char command[512], *text;
    size_t n;
    write_sample();
    snprintf(command, sizeof command, "python3 tests/read_safetensors.py %s %s > %s/list 2>&1", option, path,
             folder.path);
    int status = system(command);
    snprintf(command, sizeof command, "%s/list", folder.path);
    assert_int_equal(acf_file_read(command, 1 << 16, &text, &n), ACF_OK);
    if (status != 0) print_message("%s", text);
    assert_int_equal(status, 0);
    assert_memory_equal(text, metadata, strlen(metadata));
    assert_string_equal(text + strlen(metadata), tensors_listed);
    acf_release(text);
}

static void an_independent_reader_agrees(void **state) {
    (void)state;
    if (system("python3 -c '' >/dev/null 2>&1") != 0)
        acf_skip("no python3: the model file was not read by the independent reader");
    assert_listed("", metadata_listed);
}

static void the_python_package_agrees(void **state) {
    (void)state;
    if (system("python3 -c 'import safetensors' >/dev/null 2>&1") != 0)
        acf_skip("no Python package 'safetensors': the model file was not read by it");
    assert_listed("--package", "");
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(safetensors, IN_FOLDER(what_is_written_is_read), IN_FOLDER(the_bytes_are_those_of_the_golden_file),
          IN_FOLDER(other_writers_files_are_read), IN_FOLDER(thousands_of_tensors),
          IN_FOLDER(reals_are_converted_and_checked), IN_FOLDER(newer_versions_are_refused),
          IN_FOLDER(what_no_reader_takes_is_not_written), IN_FOLDER(every_allocation_may_fail),
          IN_FOLDER(a_full_disk_leaves_the_old_file), IN_FOLDER(what_is_no_file_is_not_opened),
          IN_FOLDER(an_independent_reader_agrees), IN_FOLDER(the_python_package_agrees))
