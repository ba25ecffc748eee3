/* Tests of file.h: whole reads, and replacements that happen entirely or not at all. */
#include "base/file.h"

#include "base/arena.h"
#include "harness/check.h"
#include "harness/file_lab.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static acf_lab_folder folder;

static int set_up(void **state) {
    (void)state;
    folder = acf_lab_folder_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_lab_folder_free(&folder);
    return 0;
}

static const char *in_folder(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    return path;
}

static void assert_content(const char *path, const char *expected) {
    char *text;
    size_t n;
    assert_int_equal(acf_file_read(path, 1 << 20, &text, &n), ACF_OK);
    assert_int_equal(n, strlen(expected));
    assert_string_equal(text, expected);
    acf_release(text);
}

static void what_is_written_is_read(void **state) {
    (void)state;
    const char *path = in_folder("a.txt");
    assert_int_equal(acf_file_write(path, "first", 5), ACF_OK);
    assert_content(path, "first");
    assert_int_equal(acf_file_write(path, "", 0), ACF_OK);
    assert_content(path, "");
    assert_int_equal(acf_lab_folder_entries(&folder), 1);
}

static void large_files_grow(void **state) {
    (void)state;
    size_t n = 300001, got; /* more than the first read, and not a power of two */
    char *data = acf_alloc(n, "test data"), *back;
    for (size_t i = 0; i < n; i++) data[i] = (char)(i * 31 % 251);
    const char *path = in_folder("large");
    assert_int_equal(acf_file_write(path, data, n), ACF_OK);
    assert_int_equal(acf_file_read(path, n, &back, &got), ACF_OK); /* the limit itself is allowed */
    assert_int_equal(got, n);
    assert_memory_equal(back, data, n);
    acf_release(back);
    assert_int_equal(acf_file_read(path, n - 1, &back, &got), ACF_EIO);
    assert_non_null(strstr(acf_error(), "larger than"));
    acf_release(data);
}

static void refusals_say_why(void **state) {
    (void)state;
    char *text;
    size_t n;
    assert_int_equal(acf_file_read(in_folder("absent"), 10, &text, &n), ACF_EIO);
    assert_non_null(strstr(acf_error(), "absent': No such file"));
    assert_int_equal(acf_file_read(folder.path, 10, &text, &n), ACF_EIO);
    assert_int_equal(acf_file_write(folder.path, "x", 1), ACF_EIO);
    assert_non_null(strstr(acf_error(), "is a folder"));
    assert_int_equal(acf_file_write(in_folder("no/such/folder"), "x", 1), ACF_EIO);
    char longer[PATH_MAX + 10];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(acf_file_write(longer, "x", 1), ACF_EIO);
}

static void a_full_disk_leaves_the_old_file(void **state) {
    (void)state;
    const char *path = in_folder("kept");
    assert_int_equal(acf_file_write(path, "old", 3), ACF_OK);
    struct rlimit before, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 1000; /* writes beyond it fail half-way, as on a full disk */
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    char data[5000] = {0};
    acf_status status = acf_file_write(path, data, sizeof data);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, ACF_EIO);
    assert_content(path, "old");
    assert_int_equal(acf_lab_folder_entries(&folder), 1); /* no temporary file is left */
}

static void a_rename_that_fails_leaves_no_trace(void **state) {
    (void)state;
    const char *path = in_folder("target");
    acf_outfile *f;
    assert_int_equal(acf_outfile_open(path, &f), ACF_OK);
    assert_int_equal(acf_outfile_write(f, "new", 3), ACF_OK);
    assert_int_equal(mkdir(path, 0777), 0); /* a folder of that name appears in the meantime */
    assert_int_equal(acf_outfile_commit(f), ACF_EIO);
    assert_int_equal(acf_lab_folder_entries(&folder), 1);
}

static void abort_leaves_the_old_file(void **state) {
    (void)state;
    const char *path = in_folder("a");
    assert_int_equal(acf_file_write(path, "old", 3), ACF_OK);
    acf_outfile *f;
    assert_int_equal(acf_outfile_open(path, &f), ACF_OK);
    assert_int_equal(acf_outfile_write(f, "new", 3), ACF_OK);
    assert_content(path, "old"); /* a reader in between sees the old file */
    assert_int_equal(acf_lab_folder_entries(&folder), 2);
    acf_outfile_abort(f);
    acf_outfile_abort(NULL);
    assert_content(path, "old");
    assert_int_equal(acf_lab_folder_entries(&folder), 1);
}

static void permissions_and_links_are_kept(void **state) {
    (void)state;
    char real[256], link_path[256];
    strcpy(real, in_folder("real"));
    strcpy(link_path, in_folder("link"));
    assert_int_equal(acf_file_write(real, "old", 3), ACF_OK);
    assert_int_equal(chmod(real, 0640), 0);
    assert_int_equal(symlink("real", link_path), 0);
    assert_int_equal(acf_file_write(link_path, "new", 3), ACF_OK);
    struct stat st;
    assert_int_equal(lstat(link_path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_content(real, "new");
    assert_int_equal(stat(real, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

/* A link whose target does not exist: the file is made at the end of any number of links, and the link stays. */
static void a_dangling_link_is_written_through(void **state) {
    (void)state;
    struct stat st;
    char link_path[256], other[256];
    assert_int_equal(mkdir(in_folder("runs"), 0777), 0);
    strcpy(link_path, in_folder("latest"));
    assert_int_equal(symlink("runs/next", link_path), 0);
    strcpy(other, in_folder("runs/next"));
    assert_int_equal(symlink("model", other), 0); /* relative to runs/ */
    assert_int_equal(acf_file_write(link_path, "new", 3), ACF_OK);
    assert_content(in_folder("runs/model"), "new");
    assert_true(lstat(link_path, &st) == 0 && S_ISLNK(st.st_mode));
    assert_true(lstat(other, &st) == 0 && S_ISLNK(st.st_mode));
    assert_int_equal(acf_file_write(link_path, "newer", 5), ACF_OK);
    assert_content(in_folder("runs/model"), "newer");
    assert_int_equal(acf_lab_folder_entries(&folder), 2); /* nothing is left beside the link */
}

static void links_that_lead_nowhere_are_refused(void **state) {
    (void)state;
    char link_path[256], sentence[600], far[PATH_MAX];
    strcpy(link_path, in_folder("latest"));
    assert_int_equal(symlink("absent/model", link_path), 0);
    assert_int_equal(acf_file_write(link_path, "new", 3), ACF_EIO);
    snprintf(sentence, sizeof sentence, "cannot write '%s', a link to '%s/absent/model': No such file or directory",
             link_path, folder.path);
    assert_string_equal(acf_error(), sentence);
    strcpy(link_path, in_folder("round"));
    assert_int_equal(symlink("round", link_path), 0);
    assert_int_equal(acf_file_write(link_path, "new", 3), ACF_EIO);
    strcpy(link_path, in_folder("long"));
    memset(far, 'x', sizeof far); /* with the link's folder in front of it, longer than a path may be */
    for (size_t i = 200; i < sizeof far; i += 200) far[i] = '/';
    far[PATH_MAX - 10] = '\0';
    assert_int_equal(symlink(far, link_path), 0);
    assert_int_equal(acf_file_write(link_path, "new", 3), ACF_EIO);
    assert_int_equal(acf_lab_folder_entries(&folder), 3);
}

static void the_longest_name_can_be_written(void **state) {
    (void)state;
    char name[NAME_MAX + 1];
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    char path[NAME_MAX + 100];
    snprintf(path, sizeof path, "%s/%s", folder.path, name);
    assert_int_equal(acf_file_write(path, "x", 1), ACF_OK);
    assert_content(path, "x");
}

static void two_writers_do_not_meet(void **state) {
    (void)state;
    const char *path = in_folder("shared");
    acf_outfile *a, *b;
    assert_int_equal(acf_outfile_open(path, &a), ACF_OK);
    assert_int_equal(acf_outfile_open(path, &b), ACF_OK);
    assert_int_equal(acf_outfile_write(a, "aaaa", 4), ACF_OK);
    assert_int_equal(acf_outfile_write(b, "b", 1), ACF_OK);
    assert_int_equal(acf_outfile_commit(a), ACF_OK);
    assert_content(path, "aaaa");
    assert_int_equal(acf_outfile_commit(b), ACF_OK);
    assert_content(path, "b");
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    char path[256], *text;
    size_t n;
    strcpy(path, in_folder("f"));
    static char data[100000];
    assert_int_equal(acf_file_write(path, data, sizeof data), ACF_OK);
    int64_t live = acf_alloc_live();
    int failures = 0;
    for (int64_t i = 1;; i++) {
        acf_alloc_fail_at(i);
        acf_status status = acf_file_read(path, sizeof data, &text, &n);
        acf_alloc_fail_at(0);
        if (status == ACF_OK) break;
        failures++;
        assert_int_equal(status, ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    acf_release(text);
    assert_int_equal(failures, 4); /* the first capacity and three doublings */
    acf_alloc_fail_at(1);
    assert_int_equal(acf_file_write(path, data, 1), ACF_EMEMORY);
    acf_alloc_fail_at(0);
}

/* A file that cannot be replaced is written to and keeps its type. The test makes its own pipe: as root, a mistake here
 * would replace /dev/null for everyone. */
static void pipes_are_written_to(void **state) {
    (void)state;
    const char *pipe = in_folder("pipe");
    char got[8] = "";
    struct stat st;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    int reader = open(pipe, O_RDONLY | O_NONBLOCK);
    acf_outfile *f;
    assert_int_equal(acf_outfile_open(pipe, &f), ACF_OK);
    assert_int_equal(acf_outfile_write(f, "abc", 3), ACF_OK);
    assert_int_equal(read(reader, got, sizeof got), 3); /* at once, before the end */
    assert_string_equal(got, "abc");
    assert_int_equal(acf_outfile_commit(f), ACF_OK);
    assert_int_equal(acf_outfile_open(pipe, &f), ACF_OK);
    acf_outfile_abort(f);
    assert_true(stat(pipe, &st) == 0 && S_ISFIFO(st.st_mode) && (st.st_mode & 07777) == 0600);
    assert_int_equal(acf_lab_folder_entries(&folder), 1);
    close(reader);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(file, IN_FOLDER(what_is_written_is_read), IN_FOLDER(large_files_grow), IN_FOLDER(refusals_say_why),
          IN_FOLDER(a_full_disk_leaves_the_old_file), IN_FOLDER(a_rename_that_fails_leaves_no_trace),
          IN_FOLDER(abort_leaves_the_old_file), IN_FOLDER(permissions_and_links_are_kept),
          IN_FOLDER(a_dangling_link_is_written_through), IN_FOLDER(links_that_lead_nowhere_are_refused),
          IN_FOLDER(the_longest_name_can_be_written), IN_FOLDER(two_writers_do_not_meet),
          IN_FOLDER(pipes_are_written_to), IN_FOLDER(every_allocation_may_fail))
