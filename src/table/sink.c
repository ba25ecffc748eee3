/* The output of a written table: see sink.h. A buffer, because cells are small; then the compressor, if requested; then
 * base/file.h. */
#include "table/sink.h"

#include "base/arena.h"
#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define ROOM ((size_t)1 << 16)

struct acf_sink {
    acf_outfile *file; /* NULL: standard output */
    bool zipped;
    z_stream zip;
    size_t used;
    char data[ROOM], packed[ROOM];
};

/* The compressor's memory comes from the same allocator as all other. */
static void *zip_alloc(void *ctx, unsigned n, unsigned size) {
    (void)ctx;
    size_t bytes;
    return acf_bytes(n, size, &bytes) ? acf_alloc_zero(bytes, "compressing a file") : NULL;
}

static void zip_free(void *ctx, void *p) {
    (void)ctx;
    acf_release(p);
}

acf_status acf_sink_open(const char *path, acf_sink **out) {
    acf_sink *s = acf_alloc(sizeof *s, "a file to write");
    if (!s) return ACF_EMEMORY;
    size_t n = strlen(path);
    s->file = NULL;
    s->used = 0;
    s->zipped = n > 3 && strcmp(path + n - 3, ".gz") == 0;
    s->zip = (z_stream){.zalloc = zip_alloc, .zfree = zip_free};
    acf_status status = ACF_OK;
    if (s->zipped && deflateInit2(&s->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        s->zipped = false; /* no stream to end */
        status = acf_fail(ACF_EMEMORY, "out of memory: compressing '%s'", path);
    }
    if (status == ACF_OK && strcmp(path, "-") != 0) status = acf_outfile_open(path, &s->file);
    if (status)
        acf_sink_abort(s);
    else
        *out = s;
    return status;
}

void acf_sink_abort(acf_sink *s) {
    if (!s) return;
    acf_outfile_abort(s->file);
    if (s->zipped) deflateEnd(&s->zip);
    acf_release(s);
}

/* Writes to the file, or to standard output without stdio: a program that uses the library may have a buffer of its own
 * there. */
static acf_status put(acf_sink *s, const char *data, size_t n) {
    if (s->file) return acf_outfile_write(s->file, data, n);
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, data, n);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return acf_fail(ACF_EIO, "cannot write to standard output: %s", strerror(errno));
        data += done;
        n -= (size_t)done;
    }
    return ACF_OK;
}

/* Empties the buffer; last: no data follows. */
static acf_status drain(acf_sink *s, bool last) {
    size_t n = s->used;
    s->used = 0;
    if (!s->zipped) return put(s, s->data, n);
    s->zip.next_in = (Bytef *)s->data;
    s->zip.avail_in = (uInt)n;
    do {
        s->zip.next_out = (Bytef *)s->packed;
        s->zip.avail_out = ROOM;
        deflate(&s->zip, last ? Z_FINISH : Z_NO_FLUSH); /* fails only if the stream is invalid */
        ACF_TRY(put(s, s->packed, ROOM - s->zip.avail_out));
    } while (s->zip.avail_out == 0);
    return ACF_OK;
}

acf_status acf_sink_write(acf_sink *s, const void *data, size_t n) {
    const char *p = data;
    while (n > 0) {
        if (s->used == ROOM) ACF_TRY(drain(s, false));
        size_t fits = n < ROOM - s->used ? n : ROOM - s->used;
        memcpy(s->data + s->used, p, fits);
        s->used += fits;
        p += fits;
        n -= fits;
    }
    return ACF_OK;
}

/* The compressor's last bytes come first; then the file gets its name. */
acf_status acf_sink_commit(acf_sink *s) {
    acf_status status = drain(s, true);
    if (status == ACF_OK && s->file) {
        status = acf_outfile_commit(s->file); /* frees the file in any case */
        s->file = NULL;
    }
    acf_sink_abort(s); /* frees the rest */
    return status;
}
