/* The container of a model file: named arrays and a map of texts, in the safetensors format.
 *
 *     0        8              8 + N                                    end of file
 *     | N, u64 | header, JSON | tensor | tensor | ...   without gaps   |
 *
 * The header has type, shape and offsets of each tensor; its "__metadata__" maps text to text. docs/format.md has the
 * whole layout. The layers above decide what a model stores. A model has tens to thousands of tensors, of bytes to
 * gigabytes, and is opened once.
 *
 *     acf_safetensors *f;
 *     ACF_TRY(acf_safetensors_open("m.safetensors", &f));
 *     ACF_TRY_DONE(acf_safetensors_version(f, 1, &version));
 *     ACF_TRY_DONE(acf_safetensors_reals(f, "flow.0.w", 2, (int64_t[]){D, D}, w));
 *     acf_safetensors_close(f);
 *
 * A file is hostile input. acf_safetensors_open checks every rule of the format before it returns, so everything that
 * an open handle refers to lies inside the file. The values stored in tensors are not checked; NaN is allowed. */
#ifndef ACF_BASE_SAFETENSORS_H
#define ACF_BASE_SAFETENSORS_H

#include "base/real.h"
#include "base/status.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "model files are little-endian and mapped as they are: a big-endian host has to swap bytes first");

_Static_assert(sizeof(size_t) == 8, "model files are counted in 64 bits");

/* Limits, the same for reading and writing: what is written can be read. */
#define ACF_SAFETENSORS_HEADER_MAX 100000000 /* bytes, the limit of the format itself */
#define ACF_SAFETENSORS_TENSORS_MAX 65536
#define ACF_SAFETENSORS_TEXTS_MAX 4096 /* entries of the metadata */
#define ACF_SAFETENSORS_DIMS_MAX 8

/* Largest elements first: the order of tensors in a file, so that each is aligned for its type. */
typedef enum acf_safetensors_dtype {
    ACF_SAFETENSORS_F64,
    ACF_SAFETENSORS_I64,
    ACF_SAFETENSORS_F32,
    ACF_SAFETENSORS_I32,
    ACF_SAFETENSORS_U8,
    ACF_SAFETENSORS_DTYPES
} acf_safetensors_dtype;

/* The stored type of an acf_real: the library writes F32, the double test build F64; either build reads both. */
#ifdef ACF_DOUBLE
#define ACF_SAFETENSORS_REAL ACF_SAFETENSORS_F64
#else
#define ACF_SAFETENSORS_REAL ACF_SAFETENSORS_F32
#endif

size_t acf_safetensors_dtype_size(acf_safetensors_dtype dtype);      /* bytes of an element */
const char *acf_safetensors_dtype_name(acf_safetensors_dtype dtype); /* "F32" */

typedef struct acf_safetensors_tensor {
    const char *name; /* UTF-8, not empty, unique in the file */
    acf_safetensors_dtype dtype;
    int ndim;                              /* 0: a scalar */
    int64_t dim[ACF_SAFETENSORS_DIMS_MAX]; /* >= 0, row-major */
    const void *data; /* may be unaligned in a file of another program: use memcpy, or acf_safetensors_reals */
    size_t bytes;     /* of data; set when read, computed from the shape when written */
} acf_safetensors_tensor;

/* Bytes of a type and shape; false if they exceed 63 bits. */
bool acf_safetensors_bytes(const acf_safetensors_tensor *t, size_t *out);

typedef struct acf_safetensors_text {
    const char *key, *value; /* UTF-8; acflow stores JSON text in the value */
} acf_safetensors_text;

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Replaces `path` by a file of these n tensors and n_texts metadata entries, each in any order: the same content gives
 * the same bytes. Borrows everything. On failure the old file is as it was.
 * Fails: ACF_EUSAGE (a duplicate or malformed name, a limit exceeded), ACF_EIO, ACF_EMEMORY. */
acf_status acf_safetensors_write(const char *path, const acf_safetensors_tensor *tensor, int64_t n,
                                 const acf_safetensors_text *text, int64_t n_texts);

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* An open file. It does not change after opening (and renaming, if it is old), so any number of threads may read it. It
 * owns a read-only mapping, into which the tensors point, and the texts. Replacing the file by renaming, as
 * acf_safetensors_write does, leaves an open handle on the old content. A program that truncates the file in place
 * removes the data (SIGBUS), as from any mapping. */
typedef struct acf_safetensors acf_safetensors;

/* Gives *out; free with acf_safetensors_close. Fails: ACF_EIO (absent, unreadable, not a regular file), ACF_EMODEL
 * (breaks a rule: the sentence names file, tensor, what was found and what to do), ACF_EMEMORY. */
acf_status acf_safetensors_open(const char *path, acf_safetensors **out);
void acf_safetensors_close(acf_safetensors *f); /* NULL is allowed */

/* Tensors in the order of their names (bytes compared), 0 <= i < count. */
int64_t acf_safetensors_count(const acf_safetensors *f);
const acf_safetensors_tensor *acf_safetensors_at(const acf_safetensors *f, int64_t i);
const acf_safetensors_tensor *acf_safetensors_find(const acf_safetensors *f,
                                                   const char *name); /* NULL: there is none */

/* Metadata in the order of the keys. */
int64_t acf_safetensors_text_count(const acf_safetensors *f);
const acf_safetensors_text *acf_safetensors_text_at(const acf_safetensors *f, int64_t i);
const char *acf_safetensors_text_find(const acf_safetensors *f, const char *key); /* NULL: there is none */

/* Renames tensors and metadata of files of older versions. new_name writes the current name to out and returns it, or
 * returns NULL if the name stays. Call it before other threads read the file. Fails: ACF_EMODEL (two get one name),
 * ACF_EMEMORY. */
#define ACF_SAFETENSORS_NAME_MAX 256 /* of a new name, with its NUL */
typedef const char *(*acf_safetensors_new_name)(const char *name, char out[ACF_SAFETENSORS_NAME_MAX]);
acf_status acf_safetensors_rename(acf_safetensors *f, acf_safetensors_new_name new_name);

/* ---- reading required content: a sentence instead of NULL ------------------------------------------------------ */

/* The tensor `name`, which must have this shape; *out belongs to f. Fails: ACF_EMODEL. */
acf_status acf_safetensors_need(const acf_safetensors *f, const char *name, int ndim, const int64_t *dim,
                                const acf_safetensors_tensor **out);

/* The same, copied to out (the product of dim elements): from F32 or F64, rounded if acf_real is narrower. Fails:
 * ACF_EMODEL. */
acf_status acf_safetensors_reals(const acf_safetensors *f, const char *name, int ndim, const int64_t *dim,
                                 acf_real *out);

/* The metadata `key`; *out belongs to f. Fails: ACF_EMODEL. */
acf_status acf_safetensors_need_text(const acf_safetensors *f, const char *key, const char **out);

/* The file's "format_version", 1 to `newest`: older files are read, newer ones refused. Fails: ACF_EMODEL. */
acf_status acf_safetensors_version(const acf_safetensors *f, int64_t newest, int64_t *out);

#endif
