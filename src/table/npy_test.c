/* Tests of npy.h: every item type and order, comparison with NumPy, a message for each rule of the header, random
 * damage. */
#include "table/npy.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/rng.h"
#include "harness/file_lab.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static acf_memfile file;

static int set_up(void **state) {
    (void)state;
    file = acf_memfile_create();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_memfile_free(&file);
    return 0;
}

/* Writes a file with a header of this version and these items after it. */
static void put(int version, const char *header, const void *items, size_t n) {
    char b[1024] = "\x93NUMPY";
    size_t length = strlen(header), at = version == 1 ? 10 : 12;
    b[6] = (char)version;
    b[8] = (char)length, b[9] = (char)(length >> 8);
    memcpy(b + at, header, length);
    memcpy(b + at + length, items, n);
    acf_memfile_put(&file, b, at + length + n);
}

static acf_npy *open_ok(const char *path) {
    acf_npy *f = NULL;
    if (acf_npy_open(path, &f) != ACF_OK) fail_msg("%s", acf_error());
    return f;
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* One item of each type: its bytes in little-endian order, and its value. */
static void items_become_doubles(void **state) {
    (void)state;
    static const struct {
        const char *type, *bytes;
        double value;
    } cases[] = {
        {"f4", "\x00\x00\xc0\xbf", -1.5},
        {"f4", "\x00\x00\xc0\x7f", NAN},
        {"f8", "\x00\x00\x00\x00\x00\x00\xf8\x3f", 1.5},
        {"f8", "\x00\x00\x00\x00\x00\x00\xf0\xff", -INFINITY},
        {"i1", "\x80", -128.0},
        {"i2", "\xfe\xff", -2.0},
        {"i2", "\x01\x02", 513.0},
        {"i4", "\x00\x00\x00\x80", -2147483648.0},
        {"i8", "\xff\xff\xff\xff\xff\xff\xff\xff", -1.0},
        {"i8", "\x00\x00\x00\x00\x00\x00\x00\x80", -9223372036854775808.0},
        {"u1", "\xff", 255.0},
        {"u2", "\xff\xff", 65535.0},
        {"u4", "\xff\xff\xff\xff", 4294967295.0},
        {"u8", "\xff\xff\xff\xff\xff\xff\xff\xff", 18446744073709551615.0},
        {"b1", "\x01", 1.0},
        {"b1", "\x00", 0.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int order = 0; order < 4; order++) { /* little, big, native, and none for single bytes */
            char header[128], bytes[8];
            int size = cases[i].type[1] - '0';
            double v;
            for (int k = 0; k < size; k++) bytes[k] = cases[i].bytes[order == 1 ? size - 1 - k : k];
            snprintf(header, sizeof header, "{'descr': '%c%s', 'fortran_order': False, 'shape': (1, 1), }\n",
                     "<>=|"[order], cases[i].type);
            put(1, header, bytes, (size_t)size);
            acf_npy *f = open_ok(file.path);
            assert_int_equal(acf_npy_read(f, 0, 1, &v), ACF_OK);
            if (v != cases[i].value && !(isnan(v) && isnan(cases[i].value)))
                fail_msg("%s is %g, expected %g", header, v, cases[i].value);
            acf_npy_close(f);
        }
}

static void orders_shapes_and_versions(void **state) {
    (void)state;
    static const unsigned char bytes[6] = {0, 1, 2, 3, 4, 5};
    static const struct {
        int version;
        const char *header;
        int64_t rows, columns;
        double all[6];
    } cases[] = {
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }\n", 2, 3, {0, 1, 2, 3, 4, 5}},
        {2, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }\n", 2, 3, {0, 2, 4, 1, 3, 5}},
        {3, "{ \"shape\" :(6L,),\"fortran_order\":True , 'descr':\"|u1\"}", 6, 1, {0, 1, 2, 3, 4, 5}},
        {1, "{'shape': (6), 'descr': '|u1', 'fortran_order': False}", 6, 1, {0, 1, 2, 3, 4, 5}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double out[6];
        put(cases[i].version, cases[i].header, bytes, 6);
        acf_npy *f = open_ok(file.path);
        assert_int_equal(acf_npy_rows(f), cases[i].rows);
        assert_int_equal(acf_npy_columns(f), cases[i].columns);
        for (int64_t n = 1; n <= cases[i].rows; n++)
            for (int64_t first = 0; first + n <= cases[i].rows; first++) {
                assert_int_equal(acf_npy_read(f, first, n, out), ACF_OK);
                assert_memory_equal(out, cases[i].all + first * cases[i].columns,
                                    (size_t)(n * cases[i].columns) * sizeof *out);
            }
        acf_npy_close(f);
    }
    put(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 3), }", "", 0);
    acf_npy *f = open_ok(file.path);
    assert_int_equal(acf_npy_rows(f), 0);
    assert_int_equal(acf_npy_read(f, 0, 0, NULL), ACF_OK);
    acf_npy_close(f);
    acf_npy_close(NULL);
}

/* ---- writing, and NumPy ------------------------------------------------------------------------------------------ */

static const char *python(void) {
    static const char *const candidates[] = {"python3", "/usr/bin/python3"};
    for (int i = 0; i < 2; i++) {
        char command[80];
        snprintf(command, sizeof command, "%s -c 'import numpy' >/dev/null 2>&1", candidates[i]);
        if (system(command) == 0) return candidates[i];
    }
    acf_skip("no NumPy to compare with");
}

static void agrees_with_numpy(void **state) {
    (void)state;
    char folder[] = "/tmp/acflow-npy-XXXXXX", path[128], command[256];
    const char *py = python();
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "%s tests/npy_peer.py make '%s'", py, folder);
    assert_int_equal(system(command), 0);
    static const char *const kinds[] = {"f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"};
    for (int k = 0; k < 11 * 4; k++) {
        snprintf(path, sizeof path, "%s/%s-%s-%c.npy", folder, kinds[k / 4], k & 1 ? "big" : "little",
                 k & 2 ? 'F' : 'C');
        acf_npy *f = open_ok(path);
        double out[21];
        assert_int_equal(acf_npy_rows(f), 7);
        assert_int_equal(acf_npy_columns(f), 3);
        assert_int_equal(acf_npy_read(f, 0, 7, out), ACF_OK);
        for (int i = 0; i < 21; i++) assert_true(out[i] == (k / 4 == 10 ? i > 0 : i));
        acf_npy_close(f);
    }
    snprintf(path, sizeof path, "%s/vector.npy", folder);
    acf_npy *f = open_ok(path);
    assert_int_equal(acf_npy_rows(f), 9);
    acf_npy_close(f);
    double x[10];
    for (int i = 0; i < 10; i++) x[i] = 10.0 * (i / 2) + i % 2 + 0.25;
    assert_int_equal(acf_npy_write(path, x, 5, 2), ACF_OK);
    snprintf(command, sizeof command, "%s tests/npy_peer.py check '%s'", py, path);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void written_files_are_read(void **state) {
    (void)state;
    enum { N = 20000, D = 3 }; /* more than is read at once */
    char folder[] = "/tmp/acflow-npy-XXXXXX", path[64];
    double *x = malloc(N * D * sizeof *x), *back = malloc(N * D * sizeof *x);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/x.npy", folder);
    for (int i = 0; i < N * D; i++)
        x[i] = i % 7 ? acf_rng_normal((acf_rng_counter){.row = (uint64_t)i, .stream = ACF_STREAM_TEST}) : NAN;
    assert_int_equal(acf_npy_write(path, x, N, D), ACF_OK);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 128 + N * D * 8);
    acf_npy *f = open_ok(path);
    assert_int_equal(acf_npy_rows(f), N);
    assert_int_equal(acf_npy_columns(f), D);
    assert_int_equal(acf_npy_read(f, 0, N, back), ACF_OK);
    assert_memory_equal(back, x, N * D * sizeof *x);
    assert_int_equal(acf_npy_read(f, N - 10, 10, back), ACF_OK);
    assert_memory_equal(back, x + (N - 10) * D, 10 * D * sizeof *x);
    assert_int_equal(truncate(path, 200), 0);
    assert_int_equal(acf_npy_read(f, N - 10, 10, back), ACF_EIO);
    assert_non_null(strstr(acf_error(), "became shorter while it was read"));
    acf_npy_close(f);
    assert_int_equal(acf_npy_write("/no/such/folder/x.npy", x, 1, 1), ACF_EIO);
    unlink(path);
    rmdir(folder);
    free(x);
    free(back);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void assert_refused(const char *sentence) {
    acf_npy *f = NULL;
    int64_t live = acf_alloc_live();
    assert_int_equal(acf_npy_open(file.path, &f), ACF_EDATA);
    assert_null(f);
    assert_int_equal(acf_alloc_live(), live);
    assert_memory_equal(acf_error(), file.path, strlen(file.path));
    assert_string_equal(acf_error() + strlen(file.path), sentence);
}

#define HEADER(at, found, expected)                                                                                    \
    ": found '" found "' at byte " at " of its header, expected " expected "; is this a .npy file that NumPy wrote?"
#define EACH_ONCE "'descr', 'fortran_order' and 'shape', each once"
#define TYPE(t)                                                                                                        \
    ": its items are of type '" t "', expected f4, f8, whole numbers or booleans; convert it: x.astype('f8')"

static void each_rule_has_its_sentence(void **state) {
    (void)state;
    static const struct {
        const char *header, *sentence;
    } cases[] = {
        {"", HEADER("0", "", "'{'")},
        {"[1]", HEADER("0", "[1]", "'{'")},
        {"{", HEADER("1", "", "a key in quotes")},
        {"{descr: 1}", HEADER("1", "descr: 1}", "a key in quotes")},
        {"{'descr: 1}", HEADER("1", "'descr: 1}", "a key in quotes")},
        {"{'a_key_that_is_much_too_long': 1}", HEADER("1", "'a_key_that_", "a key in quotes")},
        {"{'type': '<f8'}", HEADER("1", "'type': '<f8", EACH_ONCE)},
        {"{'descr': '<f8', 'descr': '<f8'}", HEADER("17", "'descr': '<f", EACH_ONCE)},
        {"{'descr' '<f8'}", HEADER("9", "'<f8'}", "':'")},
        {"{'descr': 8}", HEADER("10", "8}", "an item type such as '<f8'")},
        {"{'descr': '<f8' 'shape': (1,)}", HEADER("16", "'shape': (1,", "',' or '}'")},
        {"{'fortran_order': 0}", HEADER("18", "0}", "True or False")},
        {"{'shape': 3}", HEADER("10", "3}", "a shape in parentheses")},
        {"{'shape': (3, -1)}", HEADER("14", "-1)}", "a whole number")},
        {"{'shape': (3,, 1)}", HEADER("13", ", 1)}", "a whole number")},
        {"{'shape': (3.0,)}", HEADER("12", ".0,)}", "',' or ')'")},
        {"{'shape': (3", HEADER("12", "", "',' or ')'")},
        {"{'shape': (9223372036854775808,)}", HEADER("11", "922337203685", "a number of at most 63 bits")},
        {"{'descr': '<f8'} {}", HEADER("17", "{}", "its end")},
        {"{'descr': '<f8', 'shape': (1,)}",
         ": its header has no 'fortran_order'; is this a .npy file that NumPy wrote?"},
        {"{'fortran_order': False, 'shape': (1,)}",
         ": its header has no 'descr'; is this a .npy file that NumPy wrote?"},
        {"{}", ": its header has no 'descr'; is this a .npy file that NumPy wrote?"},
        {"{'descr': '<f2'}", TYPE("<f2")},
        {"{'descr': '<f16'}", TYPE("<f16")},
        {"{'descr': '<c8'}", TYPE("<c8")},
        {"{'descr': '|O'}", TYPE("|O")},
        {"{'descr': '<U5'}", TYPE("<U5")},
        {"{'descr': 'f8'}", TYPE("f8")},
        {"{'descr': ''}", TYPE("")},
        {"{'descr': [('a', '<f8')]}",
         ": it holds structures with named fields, expected numbers; save each field as a matrix"},
        {"{'shape': ()}", ": it has 0 dimensions, expected a matrix with 1 or 2; reshape it"},
        {"{'shape': (2, 3, 4)}", ": it has 3 dimensions, expected a matrix with 1 or 2; reshape it"},
        {"{'shape': (2, 0)}", ": it has no columns, expected at least one"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}",
         ": its shape (2, 3) takes 48 bytes, but 8 follow the header; the file is cut short: copy it again"},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3)}",
         ": its shape (2, 3) takes 6 bytes, but 8 follow the header; the file is damaged, or holds more than one "
         "matrix"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
         ": its shape (4294967296, 4294967296) has more bytes than can be counted; the file is damaged"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (2305843009213693953, 1)}", /* times 8 is 8 modulo 2^64 */
         ": its shape (2305843009213693953, 1) has more bytes than can be counted; the file is damaged"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put(1, cases[i].header, "12345678", 8);
        assert_refused(cases[i].sentence);
    }
}

static void the_beginning_is_not_believed(void **state) {
    (void)state;
    static const char foreign[] = ": it does not begin as a .npy file does; expected one that NumPy wrote";
    char b[200000] = "\x93NUMPY";
    acf_memfile_put(&file, b, 0);
    assert_refused(foreign);
    acf_memfile_put(&file, b, 5);
    assert_refused(foreign);
    acf_memfile_put(&file, "a,b\n1,2\n3,4\n", 12);
    assert_refused(foreign);
    acf_memfile_put(&file, b, 6);
    assert_refused(": its format version is 0.0, expected 1.0, 2.0 or 3.0; save it again with numpy.save");
    b[6] = 4;
    acf_memfile_put(&file, b, 100);
    assert_refused(": its format version is 4.0, expected 1.0, 2.0 or 3.0; save it again with numpy.save");
    b[6] = 1, b[7] = 1;
    acf_memfile_put(&file, b, 100);
    assert_refused(": its format version is 1.1, expected 1.0, 2.0 or 3.0; save it again with numpy.save");
    b[7] = 0, b[8] = 91;
    acf_memfile_put(&file, b, 100);
    assert_refused(": its header has 91 bytes, but the file ends before; the file is cut short: copy it again");
    acf_memfile_put(&file, b, 101);
    assert_refused(": its header holds a NUL byte; the file is damaged");
    b[6] = 2, b[11] = (char)0x80;
    acf_memfile_put(&file, b, 100);
    assert_refused(": its header has 2147483739 bytes, expected at most 65536; the file is damaged");
    acf_npy *f = NULL;
    assert_int_equal(acf_npy_open("/no/such.npy", &f), ACF_EIO);
    assert_string_equal(acf_error(), "cannot open /no/such.npy: No such file or directory");
    assert_int_equal(acf_npy_open("/tmp", &f), ACF_EIO);
    assert_string_equal(acf_error(), "cannot read /tmp: it is not a regular file, which a matrix must be");
}

static uint32_t draw(uint32_t round, uint32_t which, uint32_t below) {
    return (uint32_t)acf_rng_below((acf_rng_counter){.row = round, .stream = ACF_STREAM_TEST, .column = which}, below);
}

static void damaged_files_never_hurt(void **state) {
    (void)state;
    int refused = 0, taken = 0;
    for (uint32_t round = 0; round < 10000; round++) {
        char b[128] =
            "\x93NUMPY\1\0\x3c\0{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }\nabcdefghijklmnopqrstuvwx";
        static const char telling[] = "{}()':,<>|0123456789fiubFT \0";
        size_t n = 70 + 24;
        for (uint32_t k = 0; k < 1 + round % 2; k++) {
            size_t at = draw(round, 8 * k, (uint32_t)n);
            int how = (int)draw(round, 8 * k + 1, 4);
            if (how == 0) b[at] = (char)draw(round, 8 * k + 2, 256);
            if (how == 1) b[at] = telling[draw(round, 8 * k + 2, sizeof telling)];
            if (how == 2) b[at] = (char)(b[at] ^ (1 << draw(round, 8 * k + 2, 8)));
            if (how == 3 && round % 5 == 0) n = at + 1;
        }
        acf_memfile_put(&file, b, n);
        acf_npy *f = NULL;
        acf_status status = acf_npy_open(file.path, &f);
        assert_true(status == ACF_OK || status == ACF_EDATA);
        if (status == ACF_OK) { /* all of an accepted file can be read */
            double out[24];
            assert_in_range(acf_npy_rows(f) * acf_npy_columns(f), 1, 24);
            assert_int_equal(acf_npy_read(f, 0, acf_npy_rows(f), out), ACF_OK);
        }
        acf_npy_close(f);
        refused += status == ACF_EDATA;
        taken += status == ACF_OK;
    }
    assert_true(refused > 3000 && taken > 1000);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    put(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4), }\n", "12345678", 8);
    int64_t live = acf_alloc_live(), failures = 0;
    for (int64_t i = 1;; i++, failures++) {
        acf_npy *f = NULL;
        acf_alloc_fail_at(i);
        acf_status status = acf_npy_open(file.path, &f);
        acf_alloc_fail_at(0);
        acf_npy_close(f);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
    }
    assert_int_equal(failures, 3);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(npy, WITH_FILE(items_become_doubles), WITH_FILE(orders_shapes_and_versions),
          cmocka_unit_test(agrees_with_numpy), cmocka_unit_test(written_files_are_read),
          WITH_FILE(each_rule_has_its_sentence), WITH_FILE(the_beginning_is_not_believed),
          WITH_FILE(damaged_files_never_hurt), WITH_FILE(every_allocation_may_fail))
