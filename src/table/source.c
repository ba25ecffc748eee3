/* The bytes of an input: see source.h. Blocks are hundreds of kilobytes, so a system call and a checksum per block cost
 * little. A plain file is read directly into the caller's memory; only gzip needs a buffer. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "table/source.h"

#include "base/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define PACKED_MAX ((size_t)1 << 16) /* compressed bytes read at a time */

/* The position of a pass. */
typedef struct place {
    int64_t offset; /* raw bytes from the beginning of the input */
    uLong sum;      /* CRC-32 of them */
    bool end;       /* the end was reached */
} place;

struct acf_source {
    char *name;
    int fd;
    int64_t base;    /* offset in fd where the input begins: a shell may pass a file that is partly read */
    int spool;       /* -1: fd can be read again */
    int64_t spooled; /* bytes in it */
    place at, seen;  /* positions: of this pass; the farthest of an earlier one */
    bool gzip;
    bool member; /* gzip: inside a gzip member, so the input may not end here */
    bool done;   /* gzip: all members were read */
    z_stream z;
    unsigned char *packed; /* (PACKED_MAX) */
};

const char *acf_source_name(const acf_source *s) { return s->name; }
bool acf_source_is_gzip(const acf_source *s) { return s->gzip; }

/* ---- raw bytes --------------------------------------------------------------------------------------------------- */

/* read or, for seekable files, pread; continues after a signal. */
static ssize_t read_some(int fd, void *p, size_t n, int64_t at) {
    ssize_t got;
    do got = at >= 0 ? pread(fd, p, n, (off_t)at) : read(fd, p, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static acf_status read_failed(const acf_source *s) {
    return acf_fail(ACF_EIO, "cannot read %s: %s", s->name, strerror(errno));
}

/* Keeps bytes from a pipe for the next pass. */
static acf_status keep(acf_source *s, const char *p, size_t n) {
    while (n > 0) {
        ssize_t put = pwrite(s->spool, p, n, (off_t)s->spooled);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0)
            return acf_fail(
                ACF_EIO,
                "%s cannot be kept for a second reading after %lld bytes: %s; make room, or set TMPDIR to a folder "
                "that has it",
                s->name, (long long)s->spooled, strerror(errno));
        s->spooled += put;
        p += put;
        n -= (size_t)put;
    }
    return ACF_OK;
}

static acf_status changed(const acf_source *s, const char *how) {
    return acf_fail(ACF_EIO, "%s %s while it was read; run again when nothing writes to it", s->name, how);
}

/* Reads one piece of at most n raw bytes, 0 at the end. It never reaches beyond the position where an earlier pass
 * stopped, so that the sums can be compared there. */
static acf_status raw_piece(acf_source *s, void *out, size_t n, size_t *got) {
    if (s->at.offset < s->seen.offset && (int64_t)n > s->seen.offset - s->at.offset)
        n = (size_t)(s->seen.offset - s->at.offset);
    bool pipe = s->spool >= 0 && s->at.offset == s->spooled;
    int64_t at = pipe ? -1 : s->spool >= 0 ? s->at.offset : s->base + s->at.offset;
    if (s->spool >= 0 && !pipe && (int64_t)n > s->spooled - s->at.offset) n = (size_t)(s->spooled - s->at.offset);
    if (pipe && s->seen.end) s->at.end = true; /* a terminal would be read again */
    ssize_t r = s->at.end ? 0 : read_some(pipe || s->spool < 0 ? s->fd : s->spool, out, n, at);
    if (r < 0) return read_failed(s);
    if (r > 0 && pipe) ACF_TRY(keep(s, out, (size_t)r));
    s->at.sum = crc32_z(s->at.sum, out, (size_t)r);
    s->at.offset += r;
    s->at.end = r == 0;
    if (r == 0 && s->at.offset < s->seen.offset) return changed(s, "became shorter");
    if (r > 0 && s->seen.end && s->at.offset > s->seen.offset) return changed(s, "became longer");
    if (s->at.offset == s->seen.offset && s->at.sum != s->seen.sum) return changed(s, "changed");
    *got = (size_t)r;
    return ACF_OK;
}

/* All n bytes, fewer only at the end: a pipe may return fewer than requested. */
static acf_status raw_read(acf_source *s, void *out, size_t n, size_t *got) {
    size_t total = 0, piece = 1;
    while (total < n && piece > 0) {
        ACF_TRY(raw_piece(s, (char *)out + total, n - total, &piece));
        total += piece;
    }
    *got = total;
    return ACF_OK;
}

/* ---- gzip -------------------------------------------------------------------------------------------------------- */

/* zlib's memory, from the allocator of the library. */
static voidpf z_alloc(voidpf ctx, uInt n, uInt size) {
    (void)ctx;
    return acf_alloc((size_t)n * size, "uncompressing");
}

static void z_release(voidpf ctx, voidpf p) {
    (void)ctx;
    acf_release(p);
}

/* From here on the bytes are decompressed. */
static acf_status gzip_start(acf_source *s) {
    s->packed = acf_alloc(PACKED_MAX, "uncompressing");
    if (!s->packed) return ACF_EMEMORY;
    s->z.zalloc = z_alloc;
    s->z.zfree = z_release;
    if (inflateInit2(&s->z, 15 + 16) != Z_OK) return ACF_EMEMORY; /* + 16: only gzip; fails only without memory */
    s->gzip = true;
    return ACF_OK;
}

/* Reads more compressed bytes. After a gzip member the input may end, or continue with the zeros that pad a tape
 * block. */
static acf_status gzip_fill(acf_source *s) {
    size_t n;
    ACF_TRY(raw_read(s, s->packed, PACKED_MAX, &n));
    s->z.next_in = s->packed;
    s->z.avail_in = (uInt)n;
    if (n > 0) return ACF_OK;
    s->done = !s->member;
    if (s->done) return ACF_OK;
    return acf_fail(ACF_EDATA, "%s is cut short: its gzip stream stops after %lld bytes without an end; copy it again",
                    s->name, (long long)s->at.offset);
}

/* zlib's own message says what is wrong: "incorrect data check", "invalid distance too far back". */
static acf_status gzip_corrupt(const acf_source *s) {
    return acf_fail(ACF_EDATA, "%s is corrupt: its gzip stream is wrong near byte %lld (%s); copy it again", s->name,
                    (long long)(s->at.offset - s->z.avail_in), s->z.msg ? s->z.msg : "no details");
}

/* A gzip file may hold several members in sequence, as written by `cat a.gz b.gz` and parallel compressors. */
static acf_status gzip_read(acf_source *s, void *out, size_t cap, size_t *got) {
    size_t total = 0;
    while (total < cap && !s->done) {
        if (s->z.avail_in == 0) {
            ACF_TRY(gzip_fill(s));
            continue;
        }
        if (!s->member && *s->z.next_in == 0) { /* padding: no member begins with 0 */
            s->z.next_in++, s->z.avail_in--;
            continue;
        }
        size_t capacity = cap - total;
        uInt given = capacity > (uInt)1 << 30 ? (uInt)1 << 30 : (uInt)capacity;
        s->member = true;
        s->z.next_out = (unsigned char *)out + total;
        s->z.avail_out = given;
        int r = inflate(&s->z, Z_NO_FLUSH);
        total += given - s->z.avail_out;
        if (r == Z_MEM_ERROR) return ACF_EMEMORY;
        if (r == Z_STREAM_END) {
            s->member = false;
            inflateReset(&s->z);
        } else if (r != Z_OK && r != Z_BUF_ERROR) {
            return gzip_corrupt(s);
        }
    }
    *got = total;
    return ACF_OK;
}

/* ---- opening and rewinding --------------------------------------------------------------------------------------- */

/* A temporary file without a name, or unlinked at once. */
static int open_spool(void) {
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    char name[4096]; /* O_TMPFILE is not supported by every file system */
    int n = snprintf(name, sizeof name, "%s/acflow-XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof name) return -1;
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0) unlink(name);
    return fd;
}

/* Other compressions are not supported. A refusal that names the format helps more than "not text". */
static acf_status check_packing(const acf_source *s, const unsigned char *b, size_t n) {
    static const struct {
        const char *magic;
        size_t length;
        const char *what, *todo;
    } known[] = {
        {"PK\3\4", 4, "a zip archive or a spreadsheet", "unpack it, or export the sheet as CSV"},
        {"\xd0\xcf\x11\xe0", 4, "an old spreadsheet", "export the sheet as CSV"},
        {"\x28\xb5\x2f\xfd", 4, "compressed with zstd", "uncompress it, or pipe it in: zstd -dc FILE | acflow ... -"},
        {"\3757zXZ", 5, "compressed with xz", "uncompress it, or pipe it in: xz -dc FILE | acflow ... -"},
        {"BZh", 3, "compressed with bzip2", "uncompress it, or pipe it in: bzip2 -dc FILE | acflow ... -"},
        {"PAR1", 4, "a Parquet file", "export it as CSV"},
        {"\x93NUMPY", 6, "a NumPy matrix", "save it in a file whose name ends in .npy, and give that"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (n >= known[i].length && memcmp(b, known[i].magic, known[i].length) == 0)
            return acf_fail(ACF_EDATA, "%s is %s, expected text or gzip; %s", s->name, known[i].what, known[i].todo);
    return ACF_OK;
}

/* Finds where the bytes are, and whether they can be read twice. */
static acf_status open_file(acf_source *s, const char *path) {
    bool standard = strcmp(path, "-") == 0;
    struct stat st;
    s->name = acf_alloc_text(standard ? "standard input" : path, "an input");
    if (!s->name) return ACF_EMEMORY;
    s->fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0 || fstat(s->fd, &st) != 0) return acf_fail(ACF_EIO, "cannot open %s: %s", s->name, strerror(errno));
    if (S_ISDIR(st.st_mode)) return acf_fail(ACF_EIO, "cannot read %s: it is a folder; give a file", s->name);
    off_t here = S_ISREG(st.st_mode) ? lseek(s->fd, 0, SEEK_CUR) : -1;
    if (here >= 0) {
        s->base = here;
        return ACF_OK;
    }
    s->spool = open_spool();
    if (s->spool < 0)
        return acf_fail(
            ACF_EIO,
            "%s cannot be kept for a second reading: no temporary file: %s; set TMPDIR to a folder that can be written",
            s->name, strerror(errno));
    return ACF_OK;
}

/* The first bytes tell the format; they are then read again. */
static acf_status look(acf_source *s) {
    unsigned char b[8];
    size_t n;
    ACF_TRY(raw_read(s, b, sizeof b, &n));
    ACF_TRY(check_packing(s, b, n));
    if (n >= 2 && b[0] == 0x1f && b[1] == 0x8b) ACF_TRY(gzip_start(s));
    return acf_source_rewind(s);
}

acf_status acf_source_open(const char *path, acf_source **out) {
    acf_source *s = acf_alloc_zero(sizeof *s, "an input");
    if (!s) return ACF_EMEMORY;
    s->fd = s->spool = -1;
    acf_status status = open_file(s, path);
    if (status == ACF_OK) status = look(s);
    if (status != ACF_OK) {
        acf_source_close(s);
        return status;
    }
    *out = s;
    return ACF_OK;
}

/* Both read at explicit offsets (pread), so they can share the open file. */
static acf_status share_file(acf_source *again, const acf_source *s) {
    again->name = acf_alloc_text(s->name, "an input");
    if (!again->name) return ACF_EMEMORY;
    again->fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 3);
    if (s->spool >= 0) again->spool = fcntl(s->spool, F_DUPFD_CLOEXEC, 3);
    if (again->fd < 0 || (s->spool >= 0 && again->spool < 0))
        return acf_fail(ACF_EIO, "cannot open %s again: %s", s->name, strerror(errno));
    again->base = s->base;
    again->spooled = s->spooled;
    again->seen = s->at.offset > s->seen.offset || s->at.end ? s->at : s->seen;
    return s->gzip ? gzip_start(again) : ACF_OK;
}

acf_status acf_source_again(const acf_source *s, acf_source **out) {
    acf_source *again = acf_alloc_zero(sizeof *again, "an input");
    if (!again) return ACF_EMEMORY;
    again->fd = again->spool = -1;
    acf_status status = share_file(again, s);
    if (status)
        acf_source_close(again);
    else
        *out = again;
    return status;
}

void acf_source_close(acf_source *s) {
    if (!s) return;
    if (s->gzip) inflateEnd(&s->z);
    if (s->fd >= 0) close(s->fd);
    if (s->spool >= 0) close(s->spool);
    acf_release(s->packed);
    acf_release(s->name);
    acf_release(s);
}

acf_status acf_source_read(acf_source *s, void *out, size_t cap, size_t *got) {
    return s->gzip ? gzip_read(s, out, cap, got) : raw_read(s, out, cap, got);
}

/* The size is checked because a file that grew during a long first pass should be refused before the second pass, not
 * after it. */
acf_status acf_source_rewind(acf_source *s) {
    struct stat st;
    if (s->at.offset > s->seen.offset || s->at.end) s->seen = s->at;
    if (s->spool < 0 && s->seen.end && fstat(s->fd, &st) == 0 && st.st_size > 0 &&
        st.st_size - s->base != s->seen.offset)
        return changed(s, st.st_size - s->base < s->seen.offset ? "became shorter" : "became longer");
    s->at = (place){0};
    s->member = s->done = false;
    s->z.avail_in = 0;
    if (s->gzip) inflateReset(&s->z);
    return ACF_OK;
}
