/* Matrices behind the reader interface (reader.h): a row is numbers, NaN for missing values, and columns have no names.
 * npy.c reads the file format. */
#include "table/reader.h"

#include "base/arena.h"
#include "table/npy.h"

#include <string.h>

#define ROWS_AT_ONCE 256 /* otherwise a matrix in column order would be read in as many pieces as it has cells */

typedef struct matrix {
    acf_npy *own;       /* NULL: npy belongs to another reader */
    const acf_npy *npy; /* read at given offsets, so any number of readers may share it */
    int64_t row;        /* the next row */
    double *x;       /* (ROWS_AT_ONCE, columns) rows from the last multiple of ROWS_AT_ONCE on; NULL: none are loaded */
    acf_field *cell; /* (columns) of one row */
} matrix;

/* By content, not by name: file names of matrices and tables are arbitrary. */
static bool recognise(const char *path, const unsigned char *begin, size_t n) {
    (void)path;
    return n >= 6 && memcmp(begin, "\x93NUMPY", 6) == 0;
}

static acf_status open_matrix(acf_reader *r, const acf_read_options *w) {
    (void)w;
    matrix *m = r->state = acf_alloc_zero(sizeof *m, "a matrix");
    if (!m) return ACF_EMEMORY;
    ACF_TRY(acf_npy_open(r->path, &m->own));
    m->npy = m->own;
    r->columns = acf_npy_columns(m->npy);
    return ACF_OK;
}

static acf_status again_matrix(const acf_reader *r, acf_reader *again) {
    matrix *m = again->state = acf_alloc_zero(sizeof *m, "a matrix");
    if (!m) return ACF_EMEMORY;
    m->npy = ((const matrix *)r->state)->npy;
    return ACF_OK;
}

static acf_reader_column describe(const acf_reader *r, int64_t j) {
    (void)r, (void)j;
    return (acf_reader_column){.storage = ACF_STORAGE_NUMBER};
}

static void drop_rows(matrix *m) {
    acf_release(m->x);
    acf_release(m->cell);
    m->x = NULL, m->cell = NULL;
}

/* Memory is allocated while rows are read, not while the table is used. */
static acf_status hold_rows(matrix *m, int64_t columns) {
    size_t numbers, cells;
    if (m->cell) return ACF_OK;
    drop_rows(m); /* one of the two may have been allocated */
    if (!acf_bytes(columns, ROWS_AT_ONCE * sizeof *m->x, &numbers) || !acf_bytes(columns, sizeof *m->cell, &cells))
        return ACF_EMEMORY;
    m->x = acf_alloc(numbers, "rows of a matrix");
    m->cell = m->x ? acf_alloc_zero(cells, "rows of a matrix") : NULL;
    return m->cell ? ACF_OK : ACF_EMEMORY;
}

static acf_status next(acf_reader *r, acf_record *out) {
    matrix *m = r->state;
    const int64_t left = acf_npy_rows(m->npy) - m->row, at = m->row % ROWS_AT_ONCE, C = r->columns;
    if (left == 0) {
        drop_rows(m);
        *out = (acf_record){.row = m->row};
        return ACF_OK;
    }
    ACF_TRY(hold_rows(m, C));
    if (at == 0) ACF_TRY(acf_npy_read(m->npy, m->row, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE, m->x));
    for (int64_t j = 0; j < C; j++) m->cell[j].number = m->x[at * C + j];
    *out = (acf_record){.n = C, .row = m->row++, .field = m->cell};
    return ACF_OK;
}

static acf_status rewind_matrix(acf_reader *r) {
    ((matrix *)r->state)->row = 0;
    return ACF_OK;
}

static void close_matrix(acf_reader *r) {
    matrix *m = r->state;
    if (!m) return;
    drop_rows(m);
    acf_npy_close(m->own);
    acf_release(m);
}

const acf_file_format acf_format_npy = {
    .name = "npy",
    .what = "a matrix",
    .ending = {".npy"},
    .completed = ACF_COMPLETED_MATRIX,
    .recognise = recognise,
    .open = open_matrix,
    .again = again_matrix,
    .describe = describe,
    .next = next,
    .rewind = rewind_matrix,
    .close = close_matrix,
};
