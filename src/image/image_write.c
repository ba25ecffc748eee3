/* Writes images to files: see image_write.h.
 *
 * PNG and its animated form are one file format: signature, chunks, checksums. Frames differ only in the names of
 * the chunks. One small writer over zlib serves both, and no library is needed that supports the extra chunks.
 *
 *     IHDR  [acTL]  { [fcTL]  IDAT or fdAT }...  IEND
 *
 * Each row is filtered in PNG's five ways, and the one with the smallest sum of differences is kept, as libpng does.
 * Photographs are then as small as from other programs. */
#include "image/image_write.h"

#include "base/arena.h"
#include "base/file.h"
#include "image/image_codec.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct writing {
    acf_outfile *file;
    uint32_t sequence; /* of the animation's chunks */
    int64_t H, W, C;
    uint8_t *row;    /* (1 + W*C) filtered */
    uint8_t *best;   /* (1 + W*C) */
    uint8_t *packed; /* (bound) a frame compressed by zlib, after 4 bytes for the sequence number */
    size_t bound;
} writing;

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static void put32(uint8_t *out, uint32_t v) {
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(v >> (24 - 8 * i));
}

static acf_status put_chunk(writing *w, const char name[5], const uint8_t *data, size_t n) {
    uint8_t head[8], sum[4];
    put32(head, (uint32_t)n);
    memcpy(head + 4, name, 4);
    uLong crc = crc32(crc32(0, NULL, 0), head + 4, 4);
    if (n) crc = crc32_z(crc, data, n);
    put32(sum, (uint32_t)crc);
    ACF_TRY(acf_outfile_write(w->file, head, 8));
    if (n) ACF_TRY(acf_outfile_write(w->file, data, n));
    return acf_outfile_write(w->file, sum, 4);
}

static acf_status put_header(writing *w) {
    uint8_t b[13] = {
        [8] = 8, [9] = w->C == 1 ? 0 : 2}; /* 8 bits, grey or colour; deflate, the five filters, not interlaced */
    put32(b, (uint32_t)w->W);
    put32(b + 4, (uint32_t)w->H);
    ACF_TRY(acf_outfile_write(w->file, "\x89PNG\r\n\x1a\n", 8));
    return put_chunk(w, "IHDR", b, sizeof b);
}

static acf_status put_control(writing *w, int64_t frames, int loops) {
    uint8_t b[8];
    put32(b, (uint32_t)frames);
    put32(b + 4, (uint32_t)loops);
    return put_chunk(w, "acTL", b, sizeof b);
}

/* The whole picture, shown for ms milliseconds; not blended with the frame before. */
static acf_status put_frame_control(writing *w, int ms) {
    uint8_t b[26] = {0};
    put32(b, w->sequence++);
    put32(b + 4, (uint32_t)w->W);
    put32(b + 8, (uint32_t)w->H);
    b[20] = (uint8_t)(ms >> 8), b[21] = (uint8_t)ms; /* over 1000 */
    b[22] = 1000 >> 8, b[23] = 1000 & 255;
    return put_chunk(w, "fcTL", b, sizeof b);
}

/* ---- pixels ------------------------------------------------------------------------------------------------------ */

/* Whichever of left, above and above left is nearest to left + above - above left. */
static int paeth(int a, int b, int c) {
    const int p = a + b - c, da = abs(p - a), db = abs(p - b), dc = abs(p - c);
    return da <= db && da <= dc ? a : db <= dc ? b : c;
}

/* out (1+n) = row (n) filtered in this way, with the row above or NULL; returns the sum of absolute differences. */
static int64_t filter(uint8_t *out, int way, const uint8_t *row, const uint8_t *above, int64_t n, int64_t C) {
    int64_t sum = 0;
    out[0] = (uint8_t)way;
    for (int64_t i = 0; i < n; i++) {
        const int a = i >= C ? row[i - C] : 0, b = above ? above[i] : 0, c = above && i >= C ? above[i - C] : 0;
        const int guess[5] = {0, a, b, (a + b) / 2, paeth(a, b, c)};
        out[1 + i] = (uint8_t)(row[i] - guess[way]);
        sum += abs((int8_t)out[1 + i]);
    }
    return sum;
}

/* Sets w->best to the row filtered in the way with the smallest sum. */
static void filter_best(writing *w, const uint8_t *row, const uint8_t *above) {
    const int64_t n = w->W * w->C;
    int64_t least = filter(w->best, 0, row, above, n, w->C);
    for (int way = 1; way < 5; way++) {
        const int64_t sum = filter(w->row, way, row, above, n, w->C);
        if (sum >= least) continue;
        uint8_t *swap = w->best;
        w->best = w->row, w->row = swap;
        least = sum;
    }
}

static voidpf z_alloc(voidpf ctx, uInt n, uInt size) {
    (void)ctx;
    return acf_alloc((size_t)n * size, "a PNG file");
}

static void z_release(voidpf ctx, voidpf p) {
    (void)ctx;
    acf_release(p);
}

/* pixel (H,W,C) to w->packed + 4; *n bytes. */
static acf_status pack(writing *w, const uint8_t *pixel, size_t *n) {
    const int64_t stride = w->W * w->C;
    z_stream z = {.zalloc = z_alloc, .zfree = z_release};
    if (deflateInit(&z, 6) != Z_OK) return ACF_EMEMORY;
    z.next_out = w->packed + 4;
    z.avail_out = (uInt)(w->bound - 4);
    for (int64_t y = 0; y < w->H; y++) {
        filter_best(w, pixel + y * stride, y ? pixel + (y - 1) * stride : NULL);
        z.next_in = w->best;
        z.avail_in = (uInt)(1 + stride);
        deflate(&z, y + 1 < w->H ? Z_NO_FLUSH : Z_FINISH); /* deflateBound guarantees that all of it fits */
    }
    *n = w->bound - 4 - z.avail_out;
    return deflateEnd(&z) == Z_OK ? ACF_OK : acf_fail(ACF_EINTERNAL, "a PNG file did not fit in its bound");
}

static acf_status put_frames(writing *w, const uint8_t *pixel, int64_t N, int ms, int loops) {
    ACF_TRY(put_header(w));
    if (N > 1) ACF_TRY(put_control(w, N, loops));
    for (int64_t i = 0; i < N; i++) {
        size_t n;
        if (N > 1) ACF_TRY(put_frame_control(w, ms));
        ACF_TRY(pack(w, pixel + i * w->H * w->W * w->C, &n));
        if (i) put32(w->packed, w->sequence++);
        ACF_TRY(i ? put_chunk(w, "fdAT", w->packed, n + 4) : put_chunk(w, "IDAT", w->packed + 4, n));
    }
    return put_chunk(w, "IEND", NULL, 0);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static acf_status check(const char *path, int64_t N, int64_t H, int64_t W, int64_t C, int ms, int loops) {
    if (N < 1 || N > INT32_MAX || H < 1 || W < 1 || (C != 1 && C != 3) || H > ACF_IMAGE_SIDE_MAX ||
        W > ACF_IMAGE_SIDE_MAX || H * W > ACF_IMAGE_PIXELS_MAX)
        return acf_fail(
            ACF_EUSAGE,
            "cannot write %s: %lld pictures of %lld x %lld pixels and %lld channels; expected at least one, of 1 or 3 "
            "channels, at most %d "
            "a side and %lld pixels",
            path, (long long)N, (long long)W, (long long)H, (long long)C, ACF_IMAGE_SIDE_MAX,
            (long long)ACF_IMAGE_PIXELS_MAX);
    if (ms < 1 || ms > 65535 || loops < 0)
        return acf_fail(ACF_EUSAGE,
                        "cannot write %s: %d milliseconds a picture, %d times; expected 1 to 65535, and 0 or more",
                        path, ms, loops);
    return ACF_OK;
}

acf_status acf_image_write_apng(const char *path, const uint8_t *pixel, int64_t N, int64_t H, int64_t W, int64_t C,
                                int ms, int loops) {
    ACF_TRY(check(path, N, H, W, C, ms, loops));
    writing w = {.H = H, .W = W, .C = C, .bound = 4 + deflateBound(NULL, (uLong)(H * (1 + W * C)))};
    w.row = acf_alloc((size_t)(1 + W * C), "a PNG file");
    w.best = acf_alloc((size_t)(1 + W * C), "a PNG file");
    w.packed = acf_alloc(w.bound, "a PNG file");
    acf_status status = w.row && w.best && w.packed ? acf_outfile_open(path, &w.file) : ACF_EMEMORY;
    if (status == ACF_OK) {
        status = put_frames(&w, pixel, N, ms, loops);
        if (status == ACF_OK)
            status = acf_outfile_commit(w.file);
        else
            acf_outfile_abort(w.file);
    }
    acf_release(w.row), acf_release(w.best), acf_release(w.packed);
    return status;
}

acf_status acf_image_write_png(const char *path, const uint8_t *pixel, int64_t H, int64_t W, int64_t C) {
    return acf_image_write_apng(path, pixel, 1, H, W, C, 1, 0); /* one frame: no animation */
}

/* ---- sheets ------------------------------------------------------------------------------------------------------ */

void acf_image_sheet_size(const acf_sheet *s, int64_t H, int64_t W, int64_t *sheet_H, int64_t *sheet_W) {
    *sheet_H = s->gap + s->down * (H * s->zoom + s->gap);
    *sheet_W = s->gap + s->across * (W * s->zoom + s->gap);
}

void acf_image_sheet(uint8_t *out, const acf_sheet *s, const uint8_t *pixel, int64_t N, int64_t H, int64_t W,
                     int64_t C) {
    int64_t sheet_H, sheet_W;
    acf_image_sheet_size(s, H, W, &sheet_H, &sheet_W);
    memset(out, s->ground, (size_t)(sheet_H * sheet_W * C));
    for (int64_t i = 0; i < N && i < s->across * s->down; i++) {
        const uint8_t *from = pixel + i * H * W * C;
        const int64_t top = s->gap + i / s->across * (H * s->zoom + s->gap),
                      left = s->gap + i % s->across * (W * s->zoom + s->gap);
        for (int64_t y = 0; y < H * s->zoom; y++)
            for (int64_t x = 0; x < W * s->zoom; x++)
                memcpy(out + ((top + y) * sheet_W + left + x) * C, from + (y / s->zoom * W + x / s->zoom) * C,
                       (size_t)C);
    }
}
