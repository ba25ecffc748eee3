/* Matrices in .npy files: see npy.h. The header is a Python dictionary written by repr(); little more than that is
 * accepted. */
#include "table/npy.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ITEMS_AT_ONCE 4096 /* doubles on the stack: several threads may read a matrix */

struct acf_npy {
    char *path;
    int fd;
    int64_t bytes, offset; /* bytes of the file; offset of the first item */
    bool pictures;         /* opened for bytes in 2 to 4 dimensions, not for a matrix */
    int n_dims;
    int64_t dim[4];
    int64_t rows, columns; /* of a matrix; for pictures: the first dimension, and the product of the others */
    char kind;             /* f i u b */
    int size;              /* bytes of an item */
    bool swap, fortran;
};

int64_t acf_npy_rows(const acf_npy *f) { return f->rows; }
int64_t acf_npy_columns(const acf_npy *f) { return f->columns; }

static acf_status __attribute__((format(printf, 2, 3))) refuse(const acf_npy *f, const char *fmt, ...) {
    char what[ACF_SENTENCE_MAX / 2];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return acf_fail(ACF_EDATA, "%s: %s", f->path, what);
}

/* Reads all n bytes from `at`. */
static acf_status read_at(const acf_npy *f, void *out, size_t n, int64_t at) {
    char *p = out;
    while (n > 0) {
        ssize_t got = pread(f->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return acf_fail(ACF_EIO, "cannot read %s: %s", f->path, strerror(errno));
        if (got == 0)
            return acf_fail(ACF_EIO, "%s became shorter while it was read; run again when nothing writes to it",
                            f->path);
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return ACF_OK;
}

/* ---- the header -------------------------------------------------------------------------------------------------- */

/* A position in the header's text. Every take_ function moves over what it takes; otherwise the cursor stays where an
 * error message points. */
typedef struct cursor {
    const acf_npy *f;
    const char *begin, *at; /* ends with a NUL, which no header holds */
} cursor;

/* White space may separate tokens: repr() writes spaces, the padding is spaces and a line end. */
static void skip_spaces(cursor *c) { c->at += strspn(c->at, " \t\n"); }

static acf_status unexpected(const cursor *c, const char *expected) {
    char seen[ACF_EXCERPT_MAX], few[13];
    snprintf(few, sizeof few, "%s", c->at);
    return refuse(c->f, "found '%s' at byte %d of its header, expected %s; is this a .npy file that NumPy wrote?",
                  acf_text_excerpt(seen, few), (int)(c->at - c->begin), expected);
}

/* Takes the token if it comes next. */
static bool take(cursor *c, const char *token) {
    skip_spaces(c);
    size_t n = strlen(token);
    if (strncmp(c->at, token, n) != 0) return false;
    c->at += n;
    return true;
}

/* A text in quotes, without escapes: NumPy writes none. */
static acf_status take_text(cursor *c, char *out, size_t cap, const char *what) {
    skip_spaces(c);
    char quote = *c->at;
    const char *end = quote == '\'' || quote == '"' ? strchr(c->at + 1, quote) : NULL;
    if (!end || (size_t)(end - c->at) > cap) return unexpected(c, what);
    memcpy(out, c->at + 1, (size_t)(end - c->at) - 1);
    out[end - c->at - 1] = '\0';
    c->at = end + 1;
    return ACF_OK;
}

/* '<f8': byte order, kind, size. */
static acf_status take_descr(cursor *c, acf_npy *f) {
    char text[16], seen[ACF_EXCERPT_MAX];
    if (take(c, "["))
        return refuse(f, "it holds structures with named fields, expected numbers; save each field as a matrix");
    ACF_TRY(take_text(c, text, sizeof text, "an item type such as '<f8'"));
    static const char *const known[] = {"f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (*text && strchr("<>|=", *text) && strcmp(text + 1, known[i]) == 0) {
            f->kind = known[i][0];
            f->size = known[i][1] - '0';
            f->swap = *text == '>';
            return ACF_OK;
        }
    return refuse(f,
                  "its items are of type '%s', expected f4, f8, whole numbers or booleans; convert it: x.astype('f8')",
                  acf_text_excerpt(seen, text));
}

/* Overflow is checked digit by digit. The product of two counts is checked once both are known. */
static acf_status take_count(cursor *c, int64_t *out) {
    skip_spaces(c);
    if (*c->at < '0' || *c->at > '9') return unexpected(c, "a whole number");
    const char *begin = c->at;
    int64_t v = 0;
    for (; *c->at >= '0' && *c->at <= '9'; c->at++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->at - '0', &v)) {
            c->at = begin;
            return unexpected(c, "a number of at most 63 bits");
        }
    if (*c->at == 'L') c->at++; /* Python 2 */
    *out = v;
    return ACF_OK;
}

/* (1000, 8), (1000,) or more dimensions. Their number is checked once it is known. */
static acf_status take_shape(cursor *c, acf_npy *f) {
    int64_t n = 0, v = 0;
    if (!take(c, "(")) return unexpected(c, "a shape in parentheses");
    for (bool more = true; more && !take(c, ")");) {
        ACF_TRY(take_count(c, &v));
        if (n < 4) f->dim[n] = v;
        n++;
        more = take(c, ",");
        if (!more && !take(c, ")")) return unexpected(c, "',' or ')'");
    }
    const int least = f->pictures ? 2 : 1, most = f->pictures ? 4 : 2;
    if (n < least || n > most)
        return f->pictures
                   ? refuse(f,
                            "it has %lld dimensions, expected (images, rows, columns), with channels last if there are "
                            "any; reshape it",
                            (long long)n)
                   : refuse(f, "it has %lld dimensions, expected a matrix with 1 or 2; reshape it", (long long)n);
    f->n_dims = (int)n;
    f->rows = f->dim[0];
    f->columns = 1;
    for (int i = 1; i < n; i++)
        if (__builtin_mul_overflow(f->columns, f->dim[i], &f->columns))
            return refuse(f, "its shape has more items than can be counted; the file is damaged");
    if (f->columns == 0)
        return f->pictures ? refuse(f, "its images have no pixels, expected at least one")
                           : refuse(f, "it has no columns, expected at least one");
    return ACF_OK;
}

/* {'descr': ..., 'fortran_order': ..., 'shape': ..., } in any order, each once. */
static acf_status parse_header(acf_npy *f, const char *text) {
    cursor c = {f, text, text};
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    unsigned seen = 0;
    if (!take(&c, "{")) return unexpected(&c, "'{'");
    while (!take(&c, "}")) {
        char key[16] = "";
        int k = 0;
        skip_spaces(&c);
        cursor before = c;
        ACF_TRY(take_text(&c, key, sizeof key, "a key in quotes"));
        while (k < 3 && strcmp(key, keys[k]) != 0) k++;
        if (k == 3 || seen >> k & 1) return unexpected(&before, "'descr', 'fortran_order' and 'shape', each once");
        seen |= 1u << k;
        if (!take(&c, ":")) return unexpected(&c, "':'");
        if (k == 0) ACF_TRY(take_descr(&c, f));
        if (k == 1 && !(f->fortran = take(&c, "True")) && !take(&c, "False")) return unexpected(&c, "True or False");
        if (k == 2) ACF_TRY(take_shape(&c, f));
        if (!take(&c, ",") && *c.at != '}') return unexpected(&c, "',' or '}'");
    }
    skip_spaces(&c);
    if (*c.at) return unexpected(&c, "its end");
    if (seen != 7)
        return refuse(f, "its header has no '%s'; is this a .npy file that NumPy wrote?", keys[__builtin_ctz(~seen)]);
    return ACF_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* The items must fill the rest of the file. Fewer mean a truncated copy; more would be silently ignored. */
static acf_status check_size(const acf_npy *f) {
    int64_t need, left = f->bytes - f->offset;
    if (__builtin_mul_overflow(f->rows, f->columns, &need) || __builtin_mul_overflow(need, (int64_t)f->size, &need))
        return refuse(f, "its shape (%lld, %lld) has more bytes than can be counted; the file is damaged",
                      (long long)f->rows, (long long)f->columns);
    if (need != left)
        return refuse(f, "its shape (%lld, %lld) takes %lld bytes, but %lld follow the header; the file is %s",
                      (long long)f->rows, (long long)f->columns, (long long)need, (long long)left,
                      left < need ? "cut short: copy it again" : "damaged, or holds more than one matrix");
    return ACF_OK;
}

/* The length comes first and decides how much memory is allocated, so it is first compared with a limit and with the
 * file. */
static acf_status read_header(acf_npy *f) {
    unsigned char b[12] = {0};
    ACF_TRY(read_at(f, b, f->bytes < 12 ? (size_t)f->bytes : 12, 0));
    if (memcmp(b, "\x93NUMPY", 6) != 0)
        return refuse(f, "it does not begin as a .npy file does; expected one that NumPy wrote");
    if (b[6] < 1 || b[6] > 3 || b[7] != 0)
        return refuse(f, "its format version is %d.%d, expected 1.0, 2.0 or 3.0; save it again with numpy.save", b[6],
                      b[7]);
    int64_t n = 0, wide = b[6] == 1 ? 2 : 4; /* bytes of the length, little-endian */
    for (int64_t i = wide; i-- > 0;) n = n << 8 | b[8 + i];
    f->offset = 8 + wide + n;
    if (n > ACF_NPY_HEADER_MAX)
        return refuse(f, "its header has %lld bytes, expected at most %d; the file is damaged", (long long)n,
                      ACF_NPY_HEADER_MAX);
    if (f->offset > f->bytes)
        return refuse(f, "its header has %lld bytes, but the file ends before; the file is cut short: copy it again",
                      (long long)n);
    char *text = acf_alloc((size_t)n + 1, "a header");
    if (!text) return ACF_EMEMORY;
    acf_status status = read_at(f, text, (size_t)n, f->offset - n);
    text[n] = '\0';
    if (status == ACF_OK && memchr(text, 0, (size_t)n))
        status = refuse(f, "its header holds a NUL byte; the file is damaged");
    if (status == ACF_OK) status = parse_header(f, text);
    acf_release(text);
    return status;
}

static acf_status open_file(acf_npy *f, const char *path) {
    struct stat st;
    f->path = acf_alloc_text(path, "a matrix");
    if (!f->path) return ACF_EMEMORY;
    f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* do not wait for a pipe without a writer */
    if (f->fd < 0 || fstat(f->fd, &st) != 0) return acf_fail(ACF_EIO, "cannot open %s: %s", path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return acf_fail(ACF_EIO, "cannot read %s: it is not a regular file, which a matrix must be", path);
    f->bytes = st.st_size;
    ACF_TRY(read_header(f));
    return check_size(f);
}

static acf_status open_as(const char *path, bool pictures, acf_npy **out) {
    acf_npy *f = acf_alloc_zero(sizeof *f, "a matrix");
    if (!f) return ACF_EMEMORY;
    f->fd = -1;
    f->pictures = pictures;
    acf_status status = open_file(f, path);
    if (status != ACF_OK) {
        acf_npy_close(f);
        return status;
    }
    *out = f;
    return ACF_OK;
}

acf_status acf_npy_open(const char *path, acf_npy **out) { return open_as(path, false, out); }
acf_status acf_npy_open_bytes(const char *path, acf_npy **out) { return open_as(path, true, out); }

void acf_npy_close(acf_npy *f) {
    if (!f) return;
    if (f->fd >= 0) close(f->fd);
    acf_release(f->path);
    acf_release(f);
}

/* ---- items ------------------------------------------------------------------------------------------------------- */

/* One item as a double, by way of 64 bits. The branches depend only on the file and cost less than reading. */
static double item(const acf_npy *f, const unsigned char *p) {
    uint64_t u = 0;
    memcpy(&u, p, (size_t)f->size); /* little-endian, as every machine acflow runs on */
    if (f->swap) u = __builtin_bswap64(u) >> (64 - 8 * f->size);
    double d;
    float s;
    switch (f->kind) {
    case 'f':
        if (f->size == 8) return memcpy(&d, &u, 8), d;
        return memcpy(&s, &u, 4), (double)s;
    case 'i': return (double)((int64_t)(u << (64 - 8 * f->size)) >> (64 - 8 * f->size));
    case 'u': return (double)u;
    default: return u != 0;
    }
}

/* Reads n items from item `from` of the file on, to every stride-th double. */
static acf_status read_items(const acf_npy *f, int64_t from, int64_t n, double *out, int64_t stride) {
    unsigned char items[ITEMS_AT_ONCE * 8];
    while (n > 0) {
        int64_t now = n < ITEMS_AT_ONCE ? n : ITEMS_AT_ONCE;
        ACF_TRY(read_at(f, items, (size_t)(now * f->size), f->offset + from * f->size));
        for (int64_t i = 0; i < now; i++) out[i * stride] = item(f, items + i * f->size);
        from += now;
        out += now * stride;
        n -= now;
    }
    return ACF_OK;
}

/* In column order a block of rows is a piece of each column: as many reads as columns, whatever the number of rows. */
acf_status acf_npy_read(const acf_npy *f, int64_t first, int64_t n, double *out) {
    ACF_ASSERT(first >= 0 && n >= 0 && n <= f->rows - first);
    if (!f->fortran) return read_items(f, first * f->columns, n * f->columns, out, 1);
    for (int64_t j = 0; j < f->columns; j++) ACF_TRY(read_items(f, j * f->rows + first, n, out + j, f->columns));
    return ACF_OK;
}

/* ---- pictures ---------------------------------------------------------------------------------------------------- */

int acf_npy_dimensions(const acf_npy *f) { return f->n_dims; }
bool acf_npy_is_bytes(const acf_npy *f) { return f->kind == 'u' && f->size == 1; }

acf_status acf_npy_pictures(const acf_npy *f, int64_t *N, int64_t *H, int64_t *W, int64_t *C) {
    const int64_t *d = f->dim;
    if (!acf_npy_is_bytes(f))
        return refuse(
            f,
            "its items are of type %c%d, expected bytes from 0 to 255 (u1); convert it: x.astype('u1'), after scaling "
            "to 0..255",
            f->kind, f->size);
    if (f->fortran)
        return refuse(f, "it is stored column by column, expected row by row; save numpy.ascontiguousarray(x)");
    if (f->n_dims == 3 && d[2] == 3)
        return refuse(
            f,
            "its shape (%lld, %lld, 3) may be one colour image or %lld images 3 pixels wide; for the former save "
            "x[None]",
            (long long)d[0], (long long)d[1], (long long)d[0]);
    if (f->n_dims == 4 && d[3] != 1 && d[3] != 3)
        return refuse(
            f,
            "its last dimension is %lld, expected 1 or 3 channels; if the channels come first, save x.transpose(0, 2, "
            "3, 1)",
            (long long)d[3]);
    if (d[0] == 0) return refuse(f, "it holds no images, expected at least one");
    const int first = f->n_dims == 2 ? 0 : 1;
    *N = first ? d[0] : 1;
    *H = d[first];
    *W = d[first + 1];
    *C = f->n_dims == 4 ? d[3] : 1;
    return ACF_OK;
}

acf_status acf_npy_read_bytes(const acf_npy *f, int64_t first, int64_t n, uint8_t *out) {
    ACF_ASSERT(f->size == 1 && first >= 0 && n >= 0 && first + n <= f->rows * f->columns);
    return read_at(f, out, (size_t)n, f->offset + first);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

acf_status acf_npy_write(const char *path, const double *x, int64_t rows, int64_t columns) {
    char header[192] = "\x93NUMPY\x01";
    size_t bytes;
    if (!acf_bytes(rows, sizeof *x, &bytes) || __builtin_mul_overflow(bytes, (size_t)columns, &bytes))
        return acf_fail(ACF_EMEMORY, "cannot write %s: %lld x %lld numbers are more than can be counted", path,
                        (long long)rows, (long long)columns);
    int n = 10 + snprintf(header + 10, sizeof header - 10,
                          "{'descr': '<f8', 'fortran_order': False, 'shape': (%lld, %lld), }", (long long)rows,
                          (long long)columns);
    while ((n + 1) % 64 != 0) header[n++] = ' '; /* aligns the items for any machine */
    header[n++] = '\n';
    header[8] = (char)(n - 10); /* below 256 */
    acf_outfile *f;
    ACF_TRY(acf_outfile_open(path, &f));
    acf_status status = acf_outfile_write(f, header, (size_t)n);
    if (status == ACF_OK) status = acf_outfile_write(f, x, bytes);
    if (status == ACF_OK) return acf_outfile_commit(f);
    acf_outfile_abort(f);
    return status;
}
