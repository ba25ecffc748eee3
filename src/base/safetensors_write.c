/* Writes the container of a model file: see safetensors.h and docs/format.md.
 *
 *     check every name and shape -> sort -> header -> temporary file -> sync, rename
 *
 * The header of a model with a thousand tensors takes a hundred kilobytes. One function makes it in two passes, the
 * first of which only counts. The data goes from the caller's memory to the file, without a copy. */
#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "base/safetensors.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 8 /* of the data area; tensors are sorted by element size, so each is aligned for its type */

/* The contents to write, in file order. */
typedef struct plan {
    const acf_safetensors_tensor **tensor; /* n */
    const acf_safetensors_text **text;     /* n_texts */
    int64_t n, n_texts;
} plan;

static int by_name(const void *a, const void *b) {
    const acf_safetensors_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Largest elements first, then by name: after a U8 tensor of three bytes a double would not be aligned. */
static int by_size(const void *a, const void *b) {
    const acf_safetensors_tensor *const *x = a, *const *y = b;
    size_t p = acf_safetensors_dtype_size((*x)->dtype), q = acf_safetensors_dtype_size((*y)->dtype);
    return p != q ? (p < q ? 1 : -1) : by_name(a, b);
}

static int by_key(const void *a, const void *b) {
    const acf_safetensors_text *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

/* A tensor that acf_safetensors_open would take. */
static acf_status check_tensor(const char *path, const acf_safetensors_tensor *t) {
    char name[ACF_EXCERPT_MAX];
    size_t bytes = 0;
    const char *wrong = NULL;
    if (!*t->name || strcmp(t->name, "__metadata__") == 0 || !acf_text_is_utf8(t->name, strlen(t->name)))
        wrong = "a name must be UTF-8 text, not empty and not '__metadata__'";
    else if ((unsigned)t->dtype >= ACF_SAFETENSORS_DTYPES)
        wrong = "its dtype is unknown";
    else if (t->ndim < 0 || t->ndim > ACF_SAFETENSORS_DIMS_MAX)
        wrong = "it must have 0 to 8 dimensions";
    for (int i = 0; !wrong && i < t->ndim; i++)
        if (t->dim[i] < 0) wrong = "a dimension is negative";
    if (!wrong && !acf_safetensors_bytes(t, &bytes)) wrong = "its shape has more bytes than can be counted";
    if (!wrong && bytes > 0 && !t->data) wrong = "it has no data";
    if (!wrong) return ACF_OK;
    return acf_fail(ACF_EUSAGE, "cannot write '%s': tensor '%s': %s", path, acf_text_excerpt(name, t->name), wrong);
}

static acf_status twice(const char *path, const char *what, const char *name) {
    char seen[ACF_EXCERPT_MAX];
    return acf_fail(ACF_EUSAGE, "cannot write '%s': %s '%s' comes twice", path, what, acf_text_excerpt(seen, name));
}

/* Checks everything and sorts it into file order. */
static acf_status arrange(const char *path, plan *p) {
    for (int64_t i = 0; i < p->n; i++) ACF_TRY(check_tensor(path, p->tensor[i]));
    qsort(p->tensor, (size_t)p->n, sizeof *p->tensor, by_name);
    for (int64_t i = 1; i < p->n; i++)
        if (by_name(&p->tensor[i - 1], &p->tensor[i]) == 0) return twice(path, "tensor", p->tensor[i]->name);
    qsort(p->tensor, (size_t)p->n, sizeof *p->tensor, by_size);
    qsort(p->text, (size_t)p->n_texts, sizeof *p->text, by_key);
    for (int64_t i = 0; i < p->n_texts; i++) {
        const acf_safetensors_text *t = p->text[i];
        if (i > 0 && strcmp(p->text[i - 1]->key, t->key) == 0) return twice(path, "metadata key", t->key);
        char key[ACF_EXCERPT_MAX];
        if (!acf_text_is_utf8(t->key, strlen(t->key)) || !acf_text_is_utf8(t->value, strlen(t->value)))
            return acf_fail(ACF_EUSAGE, "cannot write '%s': metadata '%s' is not UTF-8 text", path,
                            acf_text_excerpt(key, t->key));
    }
    return ACF_OK;
}

/* The header with its padding spaces. False if the data has too many bytes to count. */
static bool add_header(acf_text *out, const plan *p) {
    int64_t at = 0;
    acf_text_add(out, "{");
    if (p->n_texts > 0) acf_text_add(out, "\"__metadata__\":{");
    for (int64_t i = 0; i < p->n_texts; i++) {
        if (i > 0) acf_text_add(out, ",");
        acf_json_write_text(out, p->text[i]->key);
        acf_text_add(out, ":");
        acf_json_write_text(out, p->text[i]->value);
    }
    if (p->n_texts > 0) acf_text_add(out, p->n > 0 ? "}," : "}");
    for (int64_t i = 0; i < p->n; i++) {
        const acf_safetensors_tensor *t = p->tensor[i];
        size_t bytes = 0;
        (void)acf_safetensors_bytes(t, &bytes); /* fits: it was checked */
        if (i > 0) acf_text_add(out, ",");
        acf_json_write_text(out, t->name);
        acf_text_addf(out, ":{\"dtype\":\"%s\",\"shape\":[", acf_safetensors_dtype_name(t->dtype));
        for (int d = 0; d < t->ndim; d++) acf_text_addf(out, "%s%lld", d ? "," : "", (long long)t->dim[d]);
        acf_text_addf(out, "],\"data_offsets\":[%lld,", (long long)at);
        if (__builtin_add_overflow(at, (int64_t)bytes, &at)) return false;
        acf_text_addf(out, "%lld]}", (long long)at);
    }
    acf_text_add(out, "}");
    while (out->len % ALIGN != 0) acf_text_add(out, " ");
    return true;
}

static acf_status write_all(const char *path, const plan *p, const char *header, size_t header_bytes) {
    acf_outfile *f;
    ACF_TRY(acf_outfile_open(path, &f));
    uint64_t length = header_bytes;
    acf_status status;
    ACF_TRY_DONE(acf_outfile_write(f, &length, sizeof length));
    ACF_TRY_DONE(acf_outfile_write(f, header, header_bytes));
    for (int64_t i = 0; i < p->n; i++) {
        size_t bytes = 0;
        (void)acf_safetensors_bytes(p->tensor[i], &bytes);
        ACF_TRY_DONE(acf_outfile_write(f, p->tensor[i]->data, bytes));
    }
    return acf_outfile_commit(f);
done:
    acf_outfile_abort(f);
    return status;
}

/* The first pass measures the header, the second writes it. */
static acf_status write_plan(const char *path, const plan *p) {
    acf_text count = acf_text_into(NULL, 0);
    if (!add_header(&count, p))
        return acf_fail(ACF_EUSAGE, "cannot write '%s': its tensors have more bytes than can be counted", path);
    if (count.len > ACF_SAFETENSORS_HEADER_MAX)
        return acf_fail(ACF_EUSAGE, "cannot write '%s': names and metadata take %zu bytes, at most %d are allowed",
                        path, count.len, ACF_SAFETENSORS_HEADER_MAX);
    char *header = acf_alloc(count.len + 1, "the header of a model file");
    if (!header) return ACF_EMEMORY;
    acf_text out = acf_text_into(header, count.len + 1);
    add_header(&out, p);
    acf_status status = write_all(path, p, header, out.len);
    acf_release(header);
    return status;
}

acf_status acf_safetensors_write(const char *path, const acf_safetensors_tensor *tensor, int64_t n,
                                 const acf_safetensors_text *text, int64_t n_texts) {
    if (n < 0 || n > ACF_SAFETENSORS_TENSORS_MAX || n_texts < 0 || n_texts > ACF_SAFETENSORS_TEXTS_MAX)
        return acf_fail(ACF_EUSAGE, "cannot write '%s': %lld tensors and %lld texts, at most %d and %d are allowed",
                        path, (long long)n, (long long)n_texts, ACF_SAFETENSORS_TENSORS_MAX, ACF_SAFETENSORS_TEXTS_MAX);
    plan p = {.n = n, .n_texts = n_texts};
    p.tensor = acf_alloc((size_t)n * sizeof *p.tensor, "the tensors of a model file");
    p.text = acf_alloc((size_t)n_texts * sizeof *p.text, "the metadata of a model file");
    acf_status status = ACF_EMEMORY;
    if (p.tensor && p.text) {
        for (int64_t i = 0; i < n; i++) p.tensor[i] = &tensor[i];
        for (int64_t i = 0; i < n_texts; i++) p.text[i] = &text[i];
        status = arrange(path, &p);
        if (status == ACF_OK) status = write_plan(path, &p);
    }
    acf_release(p.text);
    acf_release(p.tensor);
    return status;
}
