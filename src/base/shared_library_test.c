/* Tests of shared_library.h on files that every machine has; tests/cli/devices.sh and plot-library.sh test acflow's
 * own. */
#define _GNU_SOURCE /* dladdr */
#include "base/shared_library.h"

#include "harness/check.h"

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The path of the mathematical library, which has `cos`. */
static const char *a_library(char out[PATH_MAX]) {
    Dl_info info;
    double (*volatile f)(double) = cos;
    void *address;
    memcpy(&address, (void *)&f, sizeof address);
    assert_true(dladdr(address, &info) != 0);
    assert_non_null(realpath(info.dli_fname, out));
    return out;
}

static void a_file_is_found_beside_the_program(void **state) {
    (void)state;
    char self[PATH_MAX], path[PATH_MAX];
    assert_non_null(realpath("/proc/self/exe", self));
    const acf_shared_library beside = {strrchr(self, '/') + 1, "main", "make", 1},
                             nowhere = {"no-such-file.so", "main", "make it", 1};
    assert_int_equal(acf_shared_library_find(&beside, path), ACF_OK);
    assert_string_equal(path, self);
    assert_int_equal(acf_shared_library_find(&nowhere, path), ACF_EDEVICE);
    *strrchr(self, '/') = '\0';
    assert_non_null(strstr(acf_error(), self));
    assert_non_null(strstr(acf_error(), "there is no no-such-file.so in "));
    assert_non_null(strstr(acf_error(), " or the folder ../lib of it; 'make it' builds it"));
}

static void an_entry_can_be_called(void **state) {
    (void)state;
    char path[PATH_MAX];
    void *symbol = NULL;
    double (*entry)(double);
    const acf_shared_library l = {"libm.so", "cos", "make", 1}, other = {"libm.so", "acf_no_such_function", "make", 1};
    assert_int_equal(acf_shared_library_open(&l, a_library(path), &symbol), ACF_OK);
    memcpy(&entry, &symbol, sizeof entry);
    assert_true(entry(0) == 1);
    assert_int_equal(acf_shared_library_open(&other, path, &symbol), ACF_EDEVICE);
    assert_non_null(strstr(acf_error(), "is no plugin of acflow: it has no 'acf_no_such_function'"));
    assert_int_equal(acf_shared_library_open(&l, "/dev/null", &symbol), ACF_EDEVICE);
    assert_non_null(strstr(acf_error(), "'/dev/null' cannot be loaded: "));
    assert_int_equal(acf_shared_library_open(&l, "/no/such/file.so", &symbol), ACF_EDEVICE);
}

static void version_and_interface_must_fit(void **state) {
    (void)state;
    const acf_shared_library l = {"part.so", "entry", "make", 7};
    assert_int_equal(acf_shared_library_check(&l, "/x/part.so", 7, ACF_VERSION), ACF_OK);
    assert_int_equal(acf_shared_library_check(&l, "/x/part.so", 8, ACF_VERSION), ACF_EDEVICE);
    assert_non_null(strstr(acf_error(), "'/x/part.so' is of version " ACF_VERSION
                                        " (interface 8), the library of " ACF_VERSION " (7)"));
    assert_int_equal(acf_shared_library_check(&l, "/x/part.so", 7, "0.0.1\n"), ACF_EDEVICE);
    assert_non_null(strstr(acf_error(), "is of version 0.0.1? (interface 7)"));
}

ACF_TESTS(shared_library, cmocka_unit_test(a_file_is_found_beside_the_program),
          cmocka_unit_test(an_entry_can_be_called), cmocka_unit_test(version_and_interface_must_fit))
