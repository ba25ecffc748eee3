/* Tests of source.h: the same bytes from a file, a gzip file and a pipe, twice; truncated, corrupt or changed input is
 * refused. */
#define _GNU_SOURCE /* F_GETPIPE_SZ */
#include "table/source.h"

#include "base/arena.h"
#include "base/rng.h"
#include "harness/file_lab.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 300001 }; /* more than a pipe or zlib's buffer holds, not a power of two */

static acf_memfile file;
static char data[SIZE];
static unsigned char packed[2 * SIZE];

static int set_up(void **state) {
    (void)state;
    file = acf_memfile_create();
    for (size_t i = 0; i < SIZE; i++)
        data[i] = (char)acf_rng_below((acf_rng_counter){.row = i / 4, .stream = ACF_STREAM_TEST}, 250);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_memfile_free(&file);
    return 0;
}

static acf_source *open_ok(const char *path) {
    acf_source *s = NULL;
    acf_status status = acf_source_open(path, &s);
    if (status != ACF_OK) fail_msg("%s", acf_error());
    return s;
}

/* All remaining data, read in pieces of `piece` bytes, equals these n bytes. */
static void assert_reads(acf_source *s, const char *bytes, size_t n, size_t piece) {
    char *out = malloc(piece);
    size_t total = 0, got = piece;
    while (got == piece) {
        if (acf_source_read(s, out, piece, &got) != ACF_OK) fail_msg("%s", acf_error());
        assert_true(total + got <= n);
        assert_memory_equal(out, bytes + total, got);
        total += got;
    }
    assert_int_equal(total, n);
    assert_int_equal(acf_source_read(s, out, piece, &got), ACF_OK); /* a source stays at the end */
    assert_int_equal(got, 0);
    free(out);
}

/* Reads until the expected failure. */
static void assert_fails(acf_source *s, acf_status status, const char *sentence) {
    static char out[4096];
    size_t got = sizeof out;
    acf_status seen = ACF_OK;
    while (seen == ACF_OK && got == sizeof out) seen = acf_source_read(s, out, sizeof out, &got);
    assert_int_equal(seen, status);
    if (!strstr(acf_error(), sentence)) fail_msg("'%s' does not say '%s'", acf_error(), sentence);
}

static void assert_open_fails(const char *path, acf_status status, const char *sentence) {
    acf_source *s = NULL;
    int64_t live = acf_alloc_live();
    assert_int_equal(acf_source_open(path, &s), status);
    assert_null(s);
    assert_int_equal(acf_alloc_live(), live);
    if (!strstr(acf_error(), sentence)) fail_msg("'%s' does not say '%s'", acf_error(), sentence);
}

static void files_are_read_twice(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 7, 4096, SIZE, 2 * SIZE};
    acf_memfile_put(&file, data, SIZE);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        acf_source *s = open_ok(file.path);
        assert_false(acf_source_is_gzip(s));
        assert_string_equal(acf_source_name(s), file.path);
        for (int pass = 0; pass < 3; pass++) {
            assert_reads(s, data, SIZE, pieces[i]);
            assert_int_equal(acf_source_rewind(s), ACF_OK);
        }
        acf_source_close(s);
    }
    acf_source_close(NULL);
}

static void a_pass_may_stop_anywhere(void **state) {
    (void)state;
    char out[1000];
    size_t got;
    for (int gzip = 0; gzip < 2; gzip++) {
        size_t n = gzip ? acf_lab_gzip(data, SIZE, packed, sizeof packed) : SIZE;
        acf_memfile_put(&file, gzip ? (void *)packed : data, n);
        acf_source *s = open_ok(file.path);
        for (size_t stop = 0; stop < sizeof out; stop += 37) {
            assert_int_equal(acf_source_read(s, out, stop, &got), ACF_OK);
            assert_int_equal(got, stop);
            assert_memory_equal(out, data, stop);
            assert_int_equal(acf_source_rewind(s), ACF_OK);
        }
        assert_reads(s, data, SIZE, 1000);
        acf_source_close(s);
    }
}

static void gzip_in_one_or_more_members(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 7, 4096, SIZE + 1};
    size_t n = 0, cut[] = {0, 1, 100000, 100000, SIZE}; /* one is empty */
    for (int i = 0; i < 4; i++) n += acf_lab_gzip(data + cut[i], cut[i + 1] - cut[i], packed + n, sizeof packed - n);
    for (int zeros = 0; zeros < 2; zeros++) { /* tapes pad their last block */
        memset(packed + n, 0, 1000);
        acf_memfile_put(&file, packed, n + (zeros ? 1000 : 0));
        for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
            acf_source *s = open_ok(file.path);
            assert_true(acf_source_is_gzip(s));
            assert_reads(s, data, SIZE, pieces[i]);
            assert_int_equal(acf_source_rewind(s), ACF_OK);
            assert_reads(s, data, SIZE, pieces[i]);
            acf_source_close(s);
        }
    }
    acf_memfile_put(&file, packed, acf_lab_gzip("", 0, packed, sizeof packed));
    acf_source *s = open_ok(file.path);
    assert_reads(s, "", 0, 10);
    acf_source_close(s);
}

static void gzip_that_is_cut_or_corrupt(void **state) {
    (void)state;
    size_t n = acf_lab_gzip(data, 3000, packed, sizeof packed);
    for (size_t cut = 2; cut < n; cut++) {
        acf_memfile_put(&file, packed, cut);
        acf_source *s = open_ok(file.path);
        assert_fails(s, ACF_EDATA, "is cut short: its gzip stream stops after");
        acf_source_close(s);
    }
    memcpy(packed + n, "more", 4);
    acf_memfile_put(&file, packed, n + 4);
    acf_source *s = open_ok(file.path);
    assert_fails(s, ACF_EDATA, "(incorrect header check); copy it again");
    acf_source_close(s);
    int refused = 0;
    for (size_t i = 2; i < n;
         i++) { /* a flipped bit in the header's time or name is harmless; anywhere else it is detected */
        packed[i] ^= 0x10;
        acf_memfile_put(&file, packed, n);
        packed[i] ^= 0x10;
        s = open_ok(file.path);
        static char out[4096];
        size_t got;
        acf_status status = acf_source_read(s, out, sizeof out, &got);
        if (status == ACF_OK) assert_true(got == 3000 && memcmp(out, data, 3000) == 0);
        if (status != ACF_OK) assert_int_equal(status, ACF_EDATA);
        refused += status != ACF_OK;
        acf_source_close(s);
    }
    assert_true(refused >= (int)n - 10);
}

/* Runs `body` with standard input coming from a child that writes n bytes in small pieces. */
static void with_pipe(const void *bytes, size_t n, void (*body)(void)) {
    int ends[2], before = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (size_t at = 0; at < n;) {
            size_t piece = n - at < 777 ? n - at : 777;
            ssize_t put = write(ends[1], (const char *)bytes + at, piece);
            if (put < 0) _exit(1);
            at += (size_t)put;
        }
        _exit(0);
    }
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    body();
    dup2(before, STDIN_FILENO);
    close(before);
    waitpid(child, NULL, 0);
}

static void read_pipe_twice(void) {
    acf_source *s = open_ok("-");
    char out[5000];
    size_t got;
    assert_string_equal(acf_source_name(s), "standard input");
    assert_int_equal(acf_source_read(s, out, sizeof out, &got), ACF_OK); /* first a piece, then all of it */
    assert_memory_equal(out, data, sizeof out);
    for (int pass = 0; pass < 3; pass++) {
        assert_int_equal(acf_source_rewind(s), ACF_OK);
        assert_reads(s, data, SIZE, pass == 1 ? 7 : 4096);
    }
    acf_source_close(s);
}

static void a_pipe_is_read_twice(void **state) {
    (void)state;
    with_pipe(data, SIZE, read_pipe_twice);
    with_pipe(packed, acf_lab_gzip(data, SIZE, packed, sizeof packed), read_pipe_twice);
}

static void read_empty(void) {
    acf_source *s = open_ok("-");
    assert_reads(s, "", 0, 10);
    acf_source_close(s);
}

static void spool_refuses(void) {
    acf_source *s = NULL;
    setenv("TMPDIR", "/no/such/folder", 1);
    assert_open_fails(
        "-", ACF_EIO,
        "standard input cannot be kept for a second reading: no temporary file: No such file or directory; set TMPDIR");
    unsetenv("TMPDIR");
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 10000; /* as on a full disk */
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    s = open_ok("-");
    setrlimit(RLIMIT_FSIZE, &small);
    static char out[4096];
    size_t got = sizeof out;
    acf_status status = ACF_OK;
    while (status == ACF_OK && got == sizeof out) status = acf_source_read(s, out, sizeof out, &got);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, ACF_EIO);
    assert_non_null(
        strstr(acf_error(),
               "standard input cannot be kept for a second reading after 10000 bytes: File too large; make room"));
    acf_source_close(s);
}

static void pipes_that_fail(void **state) {
    (void)state;
    signal(SIGPIPE, SIG_IGN); /* the writer's, which inherits it */
    with_pipe("", 0, read_empty);
    with_pipe(data, 60000, spool_refuses);
    signal(SIGPIPE, SIG_DFL);
}

/* `acflow - < file` after the shell has read a line of it. */
static void standard_input_may_be_a_file(void **state) {
    (void)state;
    acf_memfile_put(&file, data, SIZE);
    int before = dup(STDIN_FILENO);
    dup2(file.fd, STDIN_FILENO);
    lseek(STDIN_FILENO, 1000, SEEK_SET);
    acf_source *s = open_ok("-");
    assert_reads(s, data + 1000, SIZE - 1000, 4096);
    assert_int_equal(acf_source_rewind(s), ACF_OK);
    assert_reads(s, data + 1000, SIZE - 1000, 100);
    acf_source_close(s);
    dup2(before, STDIN_FILENO);
    close(before);
}

static void refusals_say_why(void **state) {
    (void)state;
    char folder[] = "/tmp/acflow-source-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/secret", folder);
    assert_open_fails(folder, ACF_EIO, ": it is a folder; give a file");
    assert_open_fails(path, ACF_EIO, "/secret: No such file or directory");
    int fd = open(path, O_CREAT | O_WRONLY, 0);
    close(fd);
    if (geteuid() != 0) assert_open_fails(path, ACF_EIO, "/secret: Permission denied");
    unlink(path);
    rmdir(folder);
    int before = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    acf_source *s = NULL;
    acf_status status = acf_source_open("-", &s);
    dup2(before, STDIN_FILENO);
    close(before);
    assert_int_equal(status, ACF_EIO);
    assert_string_equal(acf_error(), "cannot open standard input: Bad file descriptor");
    static const struct {
        const char *bytes, *sentence;
    } packings[] = {{"PK\3\4....", "a zip archive or a spreadsheet"},
                    {"\xd0\xcf\x11\xe0....", "an old spreadsheet"},
                    {"\x28\xb5\x2f\xfd....", "zstd -dc"},
                    {"\xfd"
                     "7zXZ...",
                     "xz -dc"},
                    {"BZh9....", "bzip2 -dc"},
                    {"PAR1....", "a Parquet file"},
                    {"\x93NUMPY\1", "a NumPy matrix"}};
    for (size_t i = 0; i < sizeof packings / sizeof *packings; i++) {
        acf_memfile_put(&file, packings[i].bytes, 8);
        assert_open_fails(file.path, ACF_EDATA, packings[i].sentence);
    }
}

/* Reads all of it, calls `change` on the file, and expects this of the second pass. */
static void assert_noticed(void (*change)(void), bool at_rewind, const char *sentence) {
    acf_memfile_put(&file, data, SIZE);
    acf_source *s = open_ok(file.path);
    assert_reads(s, data, SIZE, 4096);
    change();
    if (at_rewind) {
        assert_int_equal(acf_source_rewind(s), ACF_EIO);
        assert_non_null(strstr(acf_error(), sentence));
    } else {
        assert_int_equal(acf_source_rewind(s), ACF_OK);
        assert_fails(s, ACF_EIO, sentence);
    }
    acf_source_close(s);
}

static void shorten(void) { assert_int_equal(ftruncate(file.fd, SIZE - 1), 0); }
static void lengthen(void) { assert_int_equal(pwrite(file.fd, "x", 1, SIZE), 1); }
static void alter(void) { assert_int_equal(pwrite(file.fd, data + SIZE / 2 + 1000, 1, SIZE / 2), 1); }

static void a_file_that_changes_is_noticed(void **state) {
    (void)state;
    char out[100];
    size_t got;
    assert_noticed(shorten, true, "became shorter while it was read; run again when nothing writes to it");
    assert_noticed(lengthen, true, "became longer while it was read");
    assert_true(data[SIZE / 2] != data[SIZE / 2 + 1000]);
    assert_noticed(alter, false, "changed while it was read");
    /* After the rewind, in the middle of a pass. */
    for (int how = 0; how < 2; how++) {
        acf_memfile_put(&file, data, SIZE);
        acf_source *s = open_ok(file.path);
        assert_reads(s, data, SIZE, 4096);
        assert_int_equal(acf_source_rewind(s), ACF_OK);
        assert_int_equal(acf_source_read(s, out, sizeof out, &got), ACF_OK);
        how ? shorten() : lengthen();
        assert_fails(s, ACF_EIO, how ? "became shorter" : "became longer");
        acf_source_close(s);
    }
    /* A pass that stopped early covers only the bytes that it read. */
    acf_memfile_put(&file, data, SIZE);
    acf_source *s = open_ok(file.path);
    assert_int_equal(acf_source_read(s, out, sizeof out, &got), ACF_OK);
    assert_int_equal(pwrite(file.fd, data + 1000, 1, 50), 1);
    assert_int_equal(acf_source_rewind(s), ACF_OK);
    assert_int_equal(acf_source_read(s, out, 10, &got), ACF_OK);
    assert_fails(s, ACF_EIO, "changed while it was read");
    acf_source_close(s);
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    acf_memfile_put(&file, packed, acf_lab_gzip(data, SIZE, packed, sizeof packed));
    int64_t live = acf_alloc_live();
    int failures = 0;
    for (int64_t i = 1;; i++, failures++) {
        acf_source *s = NULL;
        static char out[SIZE];
        size_t got;
        acf_alloc_fail_at(i);
        acf_status status = acf_source_open(file.path, &s);
        if (status == ACF_OK) status = acf_source_read(s, out, SIZE, &got);
        acf_alloc_fail_at(0);
        acf_source_close(s);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
    }
    assert_true(failures >= 4); /* the source, its name, the buffer, zlib's state and window */
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(source, WITH_FILE(files_are_read_twice), WITH_FILE(a_pass_may_stop_anywhere),
          WITH_FILE(gzip_in_one_or_more_members), WITH_FILE(gzip_that_is_cut_or_corrupt),
          WITH_FILE(a_pipe_is_read_twice), WITH_FILE(pipes_that_fail), WITH_FILE(standard_input_may_be_a_file),
          WITH_FILE(refusals_say_why), WITH_FILE(a_file_that_changes_is_noticed), WITH_FILE(every_allocation_may_fail))
