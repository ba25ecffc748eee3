/* Files for tests: see file_lab.h. */
#define _GNU_SOURCE /* memfd_create */
#include "harness/file_lab.h"

#include <dirent.h>
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
    z_stream z = {
        .next_in = (unsigned char *)(uintptr_t)bytes, .avail_in = (uInt)n, .next_out = out, .avail_out = (uInt)cap};
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

acf_lab_folder acf_lab_folder_make(void) {
    acf_lab_folder f = {"/tmp/acflow-test-XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    return f;
}

void acf_lab_folder_put(const acf_lab_folder *f, const char *name, const void *bytes, size_t n) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

void acf_lab_folder_free(const acf_lab_folder *f) {
    char command[80];
    snprintf(command, sizeof command, "rm -rf '%s'", f->path);
    assert_int_equal(system(command), 0);
}

int acf_lab_folder_entries(const acf_lab_folder *f) {
    DIR *d = opendir(f->path);
    assert_non_null(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}
