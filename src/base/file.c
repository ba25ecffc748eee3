/* Files: see file.h.
 *
 *     write:  open temp -> write ... -> fsync -> close -> rename -> fsync folder
 *                 |           |           |        |         |
 *                 +-----------+-----------+--------+---------+---> on failure: unlink temp, target untouched
 *
 * System calls and not stdio: a buffer between us and the disk would hide which write failed, and fsync needs the
 * descriptor anyway. */
#include "base/file.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading ---------------------------------------------------------------------------------------------------- */

#define READ_FIRST ((size_t)1 << 14)

/* read() that continues after a signal. */
static ssize_t read_some(int fd, char *p, size_t n) {
    ssize_t got;
    do got = read(fd, p, n);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Doubles the capacity and keeps the contents. Doubling keeps the copying linear in the size of the file. */
static acf_status grow(char **data, size_t len, size_t *cap) {
    char *more = acf_alloc(*cap * 2, "a file");
    if (!more) return ACF_EMEMORY;
    memcpy(more, *data, len);
    acf_release(*data);
    *data = more;
    *cap *= 2;
    return ACF_OK;
}

/* Reads to the end without asking for the size first: a pipe has none, /proc says 0, and a file may grow meanwhile. One
 * byte is kept for the NUL. */
static acf_status read_all(int fd, const char *path, size_t max, char **out, size_t *len) {
    acf_status status = ACF_OK;
    size_t n = 0, cap = READ_FIRST;
    char *data = acf_alloc(cap, "a file");
    if (!data) return ACF_EMEMORY;
    for (;;) {
        ssize_t got = read_some(fd, data + n, cap - 1 - n);
        if (got < 0) {
            status = acf_fail(ACF_EIO, "cannot read '%s': %s", path, strerror(errno));
            goto done;
        }
        n += (size_t)got;
        if (n > max) {
            status = acf_fail(ACF_EIO, "'%s' is larger than the %zu bytes allowed here", path, max);
            goto done;
        }
        if (got == 0) break;
        if (n + 1 == cap) ACF_TRY_DONE(grow(&data, n, &cap));
    }
    data[n] = '\0';
    *out = data;
    *len = n;
    return ACF_OK;
done:
    acf_release(data);
    return status;
}

acf_status acf_file_read(const char *path, size_t max, char **out, size_t *len) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return acf_fail(ACF_EIO, "cannot open '%s': %s", path, strerror(errno));
    acf_status status = read_all(fd, path, max, out, len);
    close(fd);
    return status;
}

/* ---- replacing -------------------------------------------------------------------------------------------------- */

struct acf_outfile {
    int fd;
    bool direct;              /* a device or a pipe: written directly, without a temporary file */
    char path[PATH_MAX];      /* the target, links resolved */
    char temp[PATH_MAX + 64]; /* beside it */
};

#define LINKS_MAX 40 /* as the kernel's */

/* Bytes of the folder part of a path, with its last slash; 0 for a plain name. */
static size_t folder_bytes(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The end of a chain of links whose target does not exist. The text of a link is relative to the link's own folder.
 * False if the path gets too long or the links form a cycle. */
static bool follow(const char *path, char out[PATH_MAX]) {
    errno = ENAMETOOLONG;
    if (strlen(path) >= PATH_MAX) return false;
    strcpy(out, path);
    for (int i = 0; i < LINKS_MAX; i++) {
        char text[PATH_MAX];
        ssize_t n = readlink(out, text, sizeof text);
        if (n < 0) return true; /* not a link: this is the end */
        size_t before = text[0] == '/' ? 0 : folder_bytes(out);
        errno = ENAMETOOLONG;
        if (before + (size_t)n >= PATH_MAX) return false;
        memcpy(out + before, text, (size_t)n);
        out[before + (size_t)n] = '\0';
    }
    errno = ELOOP;
    return false;
}

/* Finds the file to write: the target itself, or the one it links to. A device or a pipe is not replaced, because a
 * rename over /dev/null would remove it. *mode is the mode of the existing file; 0 if there is none. */
static acf_status resolve(const char *path, char out[PATH_MAX], mode_t *mode) {
    struct stat st;
    *mode = 0;
    if (stat(path, &st) == 0) {
        *mode = st.st_mode;
        if (S_ISDIR(st.st_mode)) return acf_fail(ACF_EIO, "cannot write '%s': it is a folder", path);
        if ((S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)) && strlen(path) < PATH_MAX) {
            strcpy(out, path); /* the pipe behind /dev/stdout has no other name */
            return ACF_OK;
        }
        if (!S_ISREG(st.st_mode)) return acf_fail(ACF_EIO, "cannot write '%s': it is neither a file nor a pipe", path);
        if (realpath(path, out)) return ACF_OK;
    } else if (errno == ENOENT && follow(path, out)) {
        return ACF_OK;
    }
    return acf_fail(ACF_EIO, "cannot write '%s': %s", path, strerror(errno));
}

/* A new file beside the target. Its name is short, so a target name of the file system's maximum length works. Not
 * mkstemp: its mode is 0600, and the umask cannot be read without changing it. */
static int open_temp(acf_outfile *f) {
    for (int i = 0; i < 100; i++) {
        snprintf(f->temp, sizeof f->temp, "%.*s.acflow-%ld-%d.tmp", (int)folder_bytes(f->path), f->path, (long)getpid(),
                 i);
        int fd = open(f->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}

acf_status acf_outfile_open(const char *path, acf_outfile **out) {
    acf_outfile *f = acf_alloc(sizeof *f, "a file to write");
    if (!f) return ACF_EMEMORY;
    mode_t mode;
    acf_status status = resolve(path, f->path, &mode);
    f->direct = mode && !S_ISREG(mode);
    if (status == ACF_OK && (f->fd = f->direct ? open(f->path, O_WRONLY | O_NOCTTY | O_CLOEXEC) : open_temp(f)) < 0)
        status = mode || strcmp(path, f->path) == 0
                     ? acf_fail(ACF_EIO, "cannot write '%s': %s", path, strerror(errno))
                     : acf_fail(ACF_EIO, "cannot write '%s', a link to '%s': %s", path, f->path, strerror(errno));
    if (status != ACF_OK) {
        acf_release(f);
        return status;
    }
    if (mode && !f->direct)
        (void)!fchmod(f->fd, mode & 07777); /* a replaced file keeps its permissions if that is allowed */
    *out = f;
    return ACF_OK;
}

/* write() may take less than it was given, on a full disk or after a signal; the loop continues until it reports
 * why. */
acf_status acf_outfile_write(acf_outfile *f, const void *data, size_t n) {
    const char *p = data;
    while (n > 0) {
        ssize_t put = write(f->fd, p, n);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return acf_fail(ACF_EIO, "cannot write '%s': %s", f->path, strerror(errno));
        p += put;
        n -= (size_t)put;
    }
    return ACF_OK;
}

/* Also cleans up after a failed commit, where the descriptor is already closed. */
void acf_outfile_abort(acf_outfile *f) {
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    if (!f->direct) unlink(f->temp);
    acf_release(f);
}

/* The rename is an entry of the folder, which a power cut may lose without this. Some file systems cannot sync a
 * folder; the file is complete in either case, so that is no failure. */
static void sync_folder(const char *path) {
    char folder[PATH_MAX];
    size_t n = folder_bytes(path);
    memcpy(folder, path, n);
    folder[n] = '\0';
    int fd = open(n ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)!fsync(fd);
    close(fd);
}

/* The order matters: data first (fsync), then the name (rename). Otherwise a crash leaves the new name on empty blocks.
 * A device or a pipe has neither blocks nor a new name. */
acf_status acf_outfile_commit(acf_outfile *f) {
    bool ok = f->direct || fsync(f->fd) == 0;
    int why = errno;
    if (close(f->fd) != 0 && ok) { /* network file systems report a full disk only here */
        ok = false;
        why = errno;
    }
    f->fd = -1;
    if (ok && !f->direct && rename(f->temp, f->path) != 0) {
        ok = false;
        why = errno;
    }
    acf_status status = ok ? ACF_OK : acf_fail(ACF_EIO, "cannot write '%s': %s", f->path, strerror(why));
    if (!ok) {
        acf_outfile_abort(f);
        return status;
    }
    if (!f->direct) sync_folder(f->path);
    acf_release(f);
    return ACF_OK;
}

/* For contents already in memory: configs, metadata. Large outputs are written piece by piece. */
acf_status acf_file_write(const char *path, const void *data, size_t n) {
    acf_outfile *f;
    ACF_TRY(acf_outfile_open(path, &f));
    acf_status status = acf_outfile_write(f, data, n);
    if (status == ACF_OK) return acf_outfile_commit(f);
    acf_outfile_abort(f);
    return status;
}
