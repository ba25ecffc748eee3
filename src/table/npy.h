/* Matrices in NumPy's .npy files, as doubles: format versions 1.0, 2.0 and 3.0.
 *
 *     \x93NUMPY 1 0 | header length | {'descr': '<f4', 'fortran_order': False, 'shape': (1000, 8), }   \n | items
 *
 * Read: f4 f8, i1 i2 i4 i8, u1 u2 u4 u8 and booleans, of either byte order, in row order ('C') or column order ('F'). A
 * matrix of one dimension is one column. Items become doubles as C converts them: integers beyond 2^53 are rounded, NaN
 * stays NaN (a missing cell). Infinities stay; the table refuses them. Not read: other item types, structures, Python
 * objects (pickles), more dimensions.
 *
 * A file is hostile input: the header is parsed with its own grammar, sizes are multiplied with overflow checks, and
 * the items must fill the rest of the file exactly. Rows are read on demand, so a matrix may be larger than memory. */
#ifndef ACF_TABLE_NPY_H
#define ACF_TABLE_NPY_H

#include "base/status.h"

#include <stdint.h>

#define ACF_NPY_HEADER_MAX (1 << 16) /* bytes of a header; NumPy itself reads 10,000 */

/* One open matrix; once open, any number of threads may read it. */
typedef struct acf_npy acf_npy;

/* Opens path, a regular file. Gives *out; close with acf_npy_close. Fails: ACF_EIO (open, read, not a regular file),
 * ACF_EDATA (not a valid matrix: the message names the file, what was found and what was expected), ACF_EMEMORY. */
acf_status acf_npy_open(const char *path, acf_npy **out);
void acf_npy_close(acf_npy *f); /* NULL is allowed */

int64_t acf_npy_rows(const acf_npy *f);
int64_t acf_npy_columns(const acf_npy *f); /* >= 1 */

/* Reads rows first .. first+n-1 to out (n, columns), row-major; 0 <= first, first + n <= rows. Fails: ACF_EIO, also if
 * the file became shorter. */
acf_status acf_npy_read(const acf_npy *f, int64_t first, int64_t n, double *out);

/* The same for pictures: bytes (images, rows, columns), with or without a channel dimension last, or (rows, columns)
 * for one image. Opening checks the format, acf_npy_pictures the shape. Fails as acf_npy_open. */
acf_status acf_npy_open_bytes(const char *path, acf_npy **out);
/* Number of dimensions, and whether the items are bytes. Together they tell images from a matrix. */
int acf_npy_dimensions(const acf_npy *f);
bool acf_npy_is_bytes(const acf_npy *f);
/* N, H, W >= 1 and C = 1 or 3. Fails: ACF_EDATA (items that are not bytes, another order or number of channels, no
 * images). */
acf_status acf_npy_pictures(const acf_npy *f, int64_t *N, int64_t *H, int64_t *W, int64_t *C);
/* Reads n bytes from byte `first` of the items on; the range is within the file. Fails: ACF_EIO. */
acf_status acf_npy_read_bytes(const acf_npy *f, int64_t first, int64_t n, uint8_t *out);

/* Replaces path by the matrix x (rows, columns), row-major, as version 1.0, '<f8', 'C' order: the path holds the old
 * file or the new one, never a part of one (base/file.h). Borrows x. Fails: ACF_EIO, ACF_EMEMORY. */
acf_status acf_npy_write(const char *path, const double *x, int64_t rows, int64_t columns);

#endif
