/* Shared by the files of the reader only: the handle, refusals, and the scanner of the header. */
#ifndef ACF_BASE_SAFETENSORS_HEADER_H
#define ACF_BASE_SAFETENSORS_HEADER_H

#include "base/arena.h"
#include "base/safetensors.h"

#define ACF_SAFETENSORS_LENGTH_BYTES 8 /* of the number before the header */
#define ACF_SAFETENSORS_METADATA "__metadata__"

typedef struct acf_safetensors_entry {
    acf_safetensors_tensor t; /* first, so that a pointer to one is a pointer to the other */
    size_t begin;             /* offset in the data area */
} acf_safetensors_entry;

struct acf_safetensors {
    char *path;
    char *header;                  /* header_bytes and a NUL; names and texts stay in it, decoded in place */
    acf_safetensors_entry *tensor; /* capacity cap, n used; sorted by name once the file is open */
    acf_safetensors_text *text;    /* capacity texts_cap, n_texts used; sorted by key once the file is open */
    int64_t n, cap;
    int64_t n_texts, texts_cap;
    size_t header_bytes, file_bytes;
    void *map;        /* the whole file; NULL before it is mapped */
    acf_arena *names; /* of an older file: the current names; NULL: none */
};

static inline size_t acf_safetensors_data_bytes(const acf_safetensors *f) {
    return f->file_bytes - ACF_SAFETENSORS_LENGTH_BYTES - f->header_bytes;
}

/* Hints: what to do about a refused file. */
#define ACF_SAFETENSORS_DAMAGED "the file is damaged: copy it again, or save the model again"
#define ACF_SAFETENSORS_CUT_SHORT "the file is cut short: copy it again"
#define ACF_SAFETENSORS_FOREIGN "this is no model file: give one that acflow wrote"
#define ACF_SAFETENSORS_OTHER "the file does not belong to this kind of model: save the model again"

/* Makes every refusal, as ACF_EMODEL: "m.safetensors: tensor 'w': what was found, what was expected; what to do".
 * tensor NULL: no tensor is named; it may be the metadata. */
acf_status acf_safetensors_refuse(const acf_safetensors *f, const char *tensor, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* A shape as "[2, 3]"; returns out. */
#define ACF_SAFETENSORS_SHAPE_MAX (ACF_SAFETENSORS_DIMS_MAX * 22 + 3)
const char *acf_safetensors_shape(char out[ACF_SAFETENSORS_SHAPE_MAX], int ndim, const int64_t *dim);

/* Fewest header bytes of a tensor and of a text; they bound the counts before the first one is read. */
#define ACF_SAFETENSORS_ENTRY_MIN ((int64_t)sizeof "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,0]}" - 1)
#define ACF_SAFETENSORS_TEXT_MIN ((int64_t)sizeof "\"\":\"\"" - 1)

/* Fills the tensors and texts of f from its header, in file order. Each tensor is then consistent and lies inside the
 * data area. Overlap and duplicate names are not checked here. data is not set. Fails: ACF_EMODEL. */
acf_status acf_safetensors_scan(acf_safetensors *f);

#endif
