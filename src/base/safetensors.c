/* Reads the container of a model file: see safetensors.h and docs/format.md.
 *
 *     read length and header -> scan it -> check the layout -> sort by name -> map the file
 *                               |
 *                               safetensors_header.c
 *
 * A model is opened once and read from end to end, so opening may cost a sort; searches are binary. The header is read
 * into memory once and never read again from the file, so another process that changes the file cannot bypass the
 * checks. Data is mapped, not read: a model of any size opens at once. */
#include "base/arena.h"
#include "base/safetensors_header.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- types and shapes -------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    size_t size;
} dtypes[ACF_SAFETENSORS_DTYPES] = {
    [ACF_SAFETENSORS_F64] = {"F64", 8}, [ACF_SAFETENSORS_I64] = {"I64", 8}, [ACF_SAFETENSORS_F32] = {"F32", 4},
    [ACF_SAFETENSORS_I32] = {"I32", 4}, [ACF_SAFETENSORS_U8] = {"U8", 1},
};

size_t acf_safetensors_dtype_size(acf_safetensors_dtype dtype) { return dtypes[dtype].size; }

const char *acf_safetensors_dtype_name(acf_safetensors_dtype dtype) { return dtypes[dtype].name; }

/* Counted in int64_t: no file is larger, and adding an offset in size_t cannot overflow. */
bool acf_safetensors_bytes(const acf_safetensors_tensor *t, size_t *out) {
    int64_t n = (int64_t)dtypes[t->dtype].size;
    for (int i = 0; i < t->ndim; i++)
        if (__builtin_mul_overflow(n, t->dim[i], &n)) return false;
    *out = (size_t)n;
    return true;
}

const char *acf_safetensors_shape(char out[ACF_SAFETENSORS_SHAPE_MAX], int ndim, const int64_t *dim) {
    acf_text t = acf_text_into(out, ACF_SAFETENSORS_SHAPE_MAX);
    acf_text_add(&t, "[");
    for (int i = 0; i < ndim; i++) acf_text_addf(&t, "%s%lld", i ? ", " : "", (long long)dim[i]);
    acf_text_add(&t, "]");
    return out;
}

acf_status acf_safetensors_refuse(const acf_safetensors *f, const char *tensor, const char *hint, const char *fmt,
                                  ...) {
    char what[ACF_SENTENCE_MAX / 2], name[ACF_EXCERPT_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (!tensor) return acf_fail(ACF_EMODEL, "%s: %s; %s", f->path, what, hint);
    return acf_fail(ACF_EMODEL, "%s: %s'%s': %s; %s", f->path,
                    strcmp(tensor, ACF_SAFETENSORS_METADATA) ? "tensor " : "", acf_text_excerpt(name, tensor), what,
                    hint);
}

/* ---- the checks that look at all tensors together ---------------------------------------------------------------- */

static int by_name(const void *a, const void *b) {
    return strcmp(((const acf_safetensors_entry *)a)->t.name, ((const acf_safetensors_entry *)b)->t.name);
}

/* An empty tensor comes before one that begins at the same offset. Of two equal tensors the name decides which one the
 * error names. */
static int by_place(const void *a, const void *b) {
    const acf_safetensors_entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->t.bytes != y->t.bytes) return x->t.bytes < y->t.bytes ? -1 : 1;
    return by_name(a, b);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const acf_safetensors_text *)a)->key, ((const acf_safetensors_text *)b)->key);
}

/* Tensors lie side by side from the first byte of the data area to the last: no two share a byte, and no byte is
 * unused. */
static acf_status check_layout(acf_safetensors *f) {
    qsort(f->tensor, (size_t)f->n, sizeof *f->tensor, by_place);
    size_t end = 0;
    for (int64_t i = 0; i < f->n; i++) {
        const acf_safetensors_entry *e = &f->tensor[i];
        char before[ACF_EXCERPT_MAX];
        if (e->begin < end)
            return acf_safetensors_refuse(f, e->t.name, ACF_SAFETENSORS_DAMAGED,
                                          "its data begins at byte %zu, inside that of '%s', which ends at %zu",
                                          e->begin, acf_text_excerpt(before, f->tensor[i - 1].t.name), end);
        if (e->begin > end)
            return acf_safetensors_refuse(f, e->t.name, ACF_SAFETENSORS_DAMAGED,
                                          "its data begins at byte %zu, expected %zu: no gap is allowed", e->begin,
                                          end);
        end = e->begin + e->t.bytes;
    }
    if (end != acf_safetensors_data_bytes(f))
        return acf_safetensors_refuse(f, f->n ? f->tensor[f->n - 1].t.name : NULL, ACF_SAFETENSORS_DAMAGED,
                                      "the last tensor's data ends at byte %zu of the data area, which has %zu bytes",
                                      end, acf_safetensors_data_bytes(f));
    return ACF_OK;
}

/* Sorts for the search; equal neighbours are duplicates. */
static acf_status sort_names(acf_safetensors *f) {
    qsort(f->tensor, (size_t)f->n, sizeof *f->tensor, by_name);
    for (int64_t i = 1; i < f->n; i++)
        if (by_name(&f->tensor[i - 1], &f->tensor[i]) == 0)
            return acf_safetensors_refuse(f, f->tensor[i].t.name, ACF_SAFETENSORS_DAMAGED,
                                          "it comes twice, expected once");
    qsort(f->text, (size_t)f->n_texts, sizeof *f->text, by_key);
    for (int64_t i = 1; i < f->n_texts; i++)
        if (by_key(&f->text[i - 1], &f->text[i]) == 0) {
            char key[ACF_EXCERPT_MAX];
            return acf_safetensors_refuse(f, ACF_SAFETENSORS_METADATA, ACF_SAFETENSORS_DAMAGED,
                                          "key '%s' comes twice, expected once", acf_text_excerpt(key, f->text[i].key));
        }
    return ACF_OK;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* Reads n bytes from `at`. Detects a file that became shorter since its size was read. */
static acf_status read_at(const acf_safetensors *f, int fd, void *out, size_t n, off_t at) {
    char *p = out;
    while (n > 0) {
        ssize_t got = pread(fd, p, n, at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return acf_fail(ACF_EIO, "cannot read '%s': %s", f->path, strerror(errno));
        if (got == 0)
            return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_CUT_SHORT, "it became shorter while it was read");
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return ACF_OK;
}

/* The length decides how much memory is taken, so it is checked first. In a text file the letters there are a number
 * beyond any limit. */
static acf_status read_header(acf_safetensors *f, int fd) {
    uint64_t n = 0;
    if (f->file_bytes < ACF_SAFETENSORS_LENGTH_BYTES + 2)
        return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_FOREIGN,
                                      "it has %zu bytes, expected a length of 8 and a header of 2 or more",
                                      f->file_bytes);
    ACF_TRY(read_at(f, fd, &n, sizeof n, 0));
    if (n < 2 || n > ACF_SAFETENSORS_HEADER_MAX)
        return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_FOREIGN,
                                      "it begins with a header length of %llu, expected 2 to %d", (unsigned long long)n,
                                      ACF_SAFETENSORS_HEADER_MAX);
    if (n > f->file_bytes - ACF_SAFETENSORS_LENGTH_BYTES)
        return acf_safetensors_refuse(f, NULL, ACF_SAFETENSORS_CUT_SHORT,
                                      "its header has %llu bytes, of which %zu are there", (unsigned long long)n,
                                      f->file_bytes - ACF_SAFETENSORS_LENGTH_BYTES);
    f->header_bytes = (size_t)n;
    f->cap = acf_min((int64_t)n / ACF_SAFETENSORS_ENTRY_MIN + 1, ACF_SAFETENSORS_TENSORS_MAX);
    f->texts_cap = acf_min((int64_t)n / ACF_SAFETENSORS_TEXT_MIN + 1, ACF_SAFETENSORS_TEXTS_MAX);
    f->header = acf_alloc(f->header_bytes + 1, "the header of a model file");
    f->tensor = acf_alloc((size_t)f->cap * sizeof *f->tensor, "the tensors of a model file");
    f->text = acf_alloc((size_t)f->texts_cap * sizeof *f->text, "the metadata of a model file");
    if (!f->header || !f->tensor || !f->text) return ACF_EMEMORY;
    f->header[n] = '\0';
    return read_at(f, fd, f->header, f->header_bytes, ACF_SAFETENSORS_LENGTH_BYTES);
}

/* Maps the whole file, because a mapping must begin at a page; the pages of the header are never touched. */
static acf_status map_data(acf_safetensors *f, int fd) {
    void *map = mmap(NULL, f->file_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return acf_fail(errno == ENOMEM ? ACF_EMEMORY : ACF_EIO, "cannot map '%s' (%zu bytes): %s", f->path,
                        f->file_bytes, strerror(errno));
    f->map = map;
    const char *data = (const char *)map + ACF_SAFETENSORS_LENGTH_BYTES + f->header_bytes;
    for (int64_t i = 0; i < f->n; i++) f->tensor[i].t.data = data + f->tensor[i].begin;
    return ACF_OK;
}

/* The size is read once, so every check uses the same number. */
static acf_status load(acf_safetensors *f, int fd) {
    struct stat st;
    if (fstat(fd, &st) != 0) return acf_fail(ACF_EIO, "cannot read '%s': %s", f->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return acf_fail(ACF_EIO, "cannot read '%s': it is %s", f->path,
                        S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    f->file_bytes = (size_t)st.st_size;
    ACF_TRY(read_header(f, fd));
    ACF_TRY(acf_safetensors_scan(f));
    ACF_TRY(check_layout(f));
    ACF_TRY(sort_names(f));
    return map_data(f, fd);
}

/* O_NONBLOCK: a pipe without a writer must be refused, not waited for. It has no effect on a regular file. */
acf_status acf_safetensors_open(const char *path, acf_safetensors **out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return acf_fail(ACF_EIO, "cannot open '%s': %s", path, strerror(errno));
    acf_status status = ACF_EMEMORY;
    acf_safetensors *f = acf_alloc_zero(sizeof *f, "a model file");
    if (f && (f->path = acf_alloc_text(path, "a model file"))) status = load(f, fd);
    close(fd); /* the mapping stays */
    if (status != ACF_OK) {
        acf_safetensors_close(f);
        return status;
    }
    *out = f;
    return ACF_OK;
}

/* Also cleans up after a failed open: missing parts are NULL. */
void acf_safetensors_close(acf_safetensors *f) {
    if (!f) return;
    if (f->map) munmap(f->map, f->file_bytes);
    acf_release(f->text);
    acf_release(f->tensor);
    acf_release(f->header);
    acf_release(f->path);
    acf_arena_free(f->names);
    acf_release(f);
}

/* ---- older files ------------------------------------------------------------------------------------------------- */

/* *name becomes the current name, in f's memory. */
static acf_status rename_one(acf_safetensors *f, acf_safetensors_new_name new_name, const char **name) {
    char now[ACF_SAFETENSORS_NAME_MAX];
    if (!new_name(*name, now)) return ACF_OK;
    char *kept = acf_arena_alloc(f->names, strlen(now) + 1);
    if (!kept) return ACF_EMEMORY;
    *name = strcpy(kept, now);
    return ACF_OK;
}

acf_status acf_safetensors_rename(acf_safetensors *f, acf_safetensors_new_name new_name) {
    if (!f->names) ACF_TRY(acf_arena_create(&acf_heap, 0, &f->names));
    for (int64_t i = 0; i < f->n; i++) ACF_TRY(rename_one(f, new_name, &f->tensor[i].t.name));
    for (int64_t i = 0; i < f->n_texts; i++) ACF_TRY(rename_one(f, new_name, &f->text[i].key));
    return sort_names(f);
}

/* ---- access ------------------------------------------------------------------------------------------------------ */

int64_t acf_safetensors_count(const acf_safetensors *f) { return f->n; }

const acf_safetensors_tensor *acf_safetensors_at(const acf_safetensors *f, int64_t i) { return &f->tensor[i].t; }

/* The tensor is the first member of its entry, so what bsearch returns is both. */
const acf_safetensors_tensor *acf_safetensors_find(const acf_safetensors *f, const char *name) {
    acf_safetensors_entry key = {.t.name = name};
    return bsearch(&key, f->tensor, (size_t)f->n, sizeof key, by_name);
}

int64_t acf_safetensors_text_count(const acf_safetensors *f) { return f->n_texts; }

const acf_safetensors_text *acf_safetensors_text_at(const acf_safetensors *f, int64_t i) { return &f->text[i]; }

const char *acf_safetensors_text_find(const acf_safetensors *f, const char *key) {
    acf_safetensors_text wanted = {key, NULL};
    const acf_safetensors_text *t = bsearch(&wanted, f->text, (size_t)f->n_texts, sizeof wanted, by_key);
    return t ? t->value : NULL;
}

/* ---- required content ------------------------------------------------------------------------------------------ */

acf_status acf_safetensors_need(const acf_safetensors *f, const char *name, int ndim, const int64_t *dim,
                                const acf_safetensors_tensor **out) {
    const acf_safetensors_tensor *t = acf_safetensors_find(f, name);
    if (!t) return acf_safetensors_refuse(f, name, ACF_SAFETENSORS_OTHER, "it is missing");
    bool same = t->ndim == ndim;
    for (int i = 0; same && i < ndim; i++) same = t->dim[i] == dim[i];
    char found[ACF_SAFETENSORS_SHAPE_MAX], expected[ACF_SAFETENSORS_SHAPE_MAX];
    if (!same)
        return acf_safetensors_refuse(f, name, ACF_SAFETENSORS_OTHER, "its shape is %s, expected %s",
                                      acf_safetensors_shape(found, t->ndim, t->dim),
                                      acf_safetensors_shape(expected, ndim, dim));
    *out = t;
    return ACF_OK;
}

/* memcpy of each element, because nothing guarantees alignment; compilers turn it into vector loads. A double beyond
 * the range of float becomes infinite, where a check for finite weights finds it. */
acf_status acf_safetensors_reals(const acf_safetensors *f, const char *name, int ndim, const int64_t *dim,
                                 acf_real *out) {
    const acf_safetensors_tensor *t = NULL;
    ACF_TRY(acf_safetensors_need(f, name, ndim, dim, &t));
    const char *p = t->data;
    if (t->dtype == ACF_SAFETENSORS_F32) {
        for (size_t i = 0; i < t->bytes / sizeof(float); i++) {
            float v;
            memcpy(&v, p + i * sizeof v, sizeof v);
            out[i] = (acf_real)v;
        }
    } else if (t->dtype == ACF_SAFETENSORS_F64) {
        for (size_t i = 0; i < t->bytes / sizeof(double); i++) {
            double v;
            memcpy(&v, p + i * sizeof v, sizeof v);
            out[i] = (acf_real)v;
        }
    } else {
        return acf_safetensors_refuse(f, name, ACF_SAFETENSORS_OTHER, "its dtype is %s, expected F32 or F64",
                                      dtypes[t->dtype].name);
    }
    return ACF_OK;
}

acf_status acf_safetensors_need_text(const acf_safetensors *f, const char *key, const char **out) {
    const char *value = acf_safetensors_text_find(f, key);
    if (!value)
        return acf_safetensors_refuse(f, ACF_SAFETENSORS_METADATA, ACF_SAFETENSORS_FOREIGN, "key '%s' is missing", key);
    *out = value;
    return ACF_OK;
}

/* Checked before other content: in a newer file other keys may have another meaning. */
acf_status acf_safetensors_version(const acf_safetensors *f, int64_t newest, int64_t *out) {
    const char *text = NULL;
    int64_t version;
    ACF_TRY(acf_safetensors_need_text(f, "format_version", &text));
    char seen[ACF_EXCERPT_MAX];
    if (!acf_text_to_int(text, &version) || version < 1)
        return acf_safetensors_refuse(f, ACF_SAFETENSORS_METADATA, ACF_SAFETENSORS_DAMAGED,
                                      "format_version is '%s', expected a whole number, 1 or more",
                                      acf_text_excerpt(seen, text));
    if (version > newest)
        return acf_safetensors_refuse(f, ACF_SAFETENSORS_METADATA, "update acflow, or save the model with this version",
                                      "format_version is %lld, this acflow reads up to %lld", (long long)version,
                                      (long long)newest);
    *out = version;
    return ACF_OK;
}
