/* Files for tests: see file_lab.h. */
#define _GNU_SOURCE /* memfd_create */
#include "harness/file_lab.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

acf_memfile acf_memfile_create(void) {
    acf_memfile f = {.fd = memfd_create("test", MFD_CLOEXEC)};
    assert_true(f.fd >= 0);
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    return f;
}

void acf_memfile_put(const acf_memfile *f, const void *bytes, size_t n) {
    assert_int_equal(ftruncate(f->fd, 0), 0);
    for (size_t at = 0; at < n;) {
        ssize_t put = pwrite(f->fd, (const char *)bytes + at, n - at, (off_t)at);
        assert_true(put > 0);
        at += (size_t)put;
    }
}

void acf_memfile_free(const acf_memfile *f) { close(f->fd); }

size_t acf_lab_gzip(const void *bytes, size_t n, void *out, size_t cap) {
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)cap};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t length = cap - z.avail_out;
    deflateEnd(&z);
    return length;
}

bool acf_lab_comma_locale(void) {
    static const char name[] = "de_DE.UTF-8";
    if (setlocale(LC_NUMERIC, name)) return true;
    char folder[] = "/tmp/acflow-locale-XXXXXX", command[160];
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 '%s/%s' >/dev/null 2>&1", folder, name);
    bool set = system(command) == 0;
    if (set) {
        setenv("LOCPATH", folder, 1);
        set = setlocale(LC_NUMERIC, name) != NULL;
        unsetenv("LOCPATH");
    }
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
    return set;
}
