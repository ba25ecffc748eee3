/* A table in memory: see table.h. Creation is one pass over the caller's matrix, bound by memory. */
#include "table/table.h"

#include "base/text.h"
#include "table/table_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- columns ---------------------------------------------------------------------------------------------------- */

char *acf_column_text(char out[ACF_COLUMN_TEXT_MAX], const acf_column *column, int64_t j) {
    char name[ACF_EXCERPT_MAX];
    acf_text t = acf_text_into(out, ACF_COLUMN_TEXT_MAX);
    acf_text_addf(&t, "column %lld", (long long)j);
    if (column[j].name) acf_text_addf(&t, " ('%s')", acf_text_excerpt(name, column[j].name));
    return out;
}

acf_column *acf_columns_copy(const acf_column *column, int64_t D) {
    size_t list, names = 0;
    if (!acf_bytes(D, sizeof(acf_column), &list)) return NULL;
    for (int64_t j = 0; column && j < D; j++) names += column[j].name ? strlen(column[j].name) + 1 : 0;
    acf_column *copy = acf_alloc_zero(list + names, "the columns of a table");
    if (!copy || !column) return copy;
    char *name = (char *)copy + list;
    for (int64_t j = 0; j < D; j++) {
        copy[j] = column[j], copy[j].name = NULL;
        if (!column[j].name) continue;
        copy[j].name = strcpy(name, column[j].name);
        name += strlen(name) + 1;
    }
    return copy;
}

/* By name, then by position; nameless columns last. The first of two equal names is the earlier column. */
static int by_name(const void *a, const void *b) {
    const acf_column *p = *(const acf_column *const *)a, *q = *(const acf_column *const *)b;
    if (!p->name || !q->name) return p->name ? -1 : q->name ? 1 : (p > q) - (p < q);
    int order = strcmp(p->name, q->name);
    return order ? order : (p > q) - (p < q);
}

/* Sorting puts equal names side by side: tables of ten thousand columns exist. */
static acf_status check_twice(const acf_column *column, int64_t D) {
    size_t bytes;
    if (!acf_bytes(D, sizeof(acf_column *), &bytes)) return ACF_EMEMORY;
    const acf_column **list = acf_alloc(bytes, "sorting column names");
    if (!list) return ACF_EMEMORY;
    for (int64_t j = 0; j < D; j++) list[j] = column + j;
    qsort(list, (size_t)D, sizeof *list, by_name);
    acf_status status = ACF_OK;
    for (int64_t j = 1; j < D && list[j]->name && status == ACF_OK; j++) {
        char name[ACF_EXCERPT_MAX];
        if (strcmp(list[j - 1]->name, list[j]->name) != 0) continue;
        status = acf_fail(ACF_EDATA, "columns %lld and %lld are both named '%s'", (long long)(list[j - 1] - column),
                          (long long)(list[j] - column), acf_text_excerpt(name, list[j]->name));
    }
    acf_release(list);
    return status;
}

acf_status acf_columns_check_names(const acf_column *column, int64_t D) {
    for (int64_t j = 0; j < D; j++) {
        const char *name = column[j].name;
        if (name && !*name) return acf_fail(ACF_EDATA, "column %lld: the name is empty", (long long)j);
        if (name && !acf_text_is_utf8(name, strlen(name)))
            return acf_fail(ACF_EDATA, "column %lld: the name is not UTF-8", (long long)j);
    }
    return check_twice(column, D);
}

/* ---- the table -------------------------------------------------------------------------------------------------- */

static acf_status check_shape(const double *x, int64_t N, int64_t D, const acf_column *column) {
    if (N < 0 || N > ACF_TABLE_ROWS_MAX)
        return acf_fail(ACF_ESHAPE, "a table of %lld rows; expected 0 to 2^47", (long long)N);
    if (D < 1 || D > INT32_MAX)
        return acf_fail(ACF_ESHAPE, "a table of %lld columns; expected 1 to 2^31-1", (long long)D);
    if (!x && N > 0) return acf_fail(ACF_ESHAPE, "a table of %lld rows without values", (long long)N);
    for (int64_t j = 0; column && j < D; j++) {
        char where[ACF_COLUMN_TEXT_MAX];
        if (column[j].classes < 0)
            return acf_fail(ACF_ESHAPE, "%s: %d classes; expected 0 for a real column, or at least 1",
                            acf_column_text(where, column, j), (int)column[j].classes);
    }
    return ACF_OK;
}

static bool cell_fits(double v, int32_t classes) {
    if (isnan(v)) return true;
    if (classes == 0) return !isinf(v);
    return v >= 0.0 && v < (double)classes && v == floor(v);
}

static acf_status bad_cell(double v, int64_t i, int64_t j, const acf_column *column) {
    char where[ACF_COLUMN_TEXT_MAX];
    acf_column_text(where, column, j);
    if (column[j].classes == 0)
        return acf_fail(ACF_EDATA,
                        "row %lld, %s: the value is %sinfinity; expected a finite number, or NaN for missing",
                        (long long)i, where, v < 0 ? "minus " : "");
    return acf_fail(ACF_EDATA,
                    "row %lld, %s: the code is %.17g; expected a whole number from 0 to %d, or NaN for missing",
                    (long long)i, where, v, (int)column[j].classes - 1);
}

/* Copies one row to out (D) from x (D) and m (D) or NULL. Returns the column of the first invalid cell, or D. */
static int64_t copy_row(double *out, const double *x, const uint8_t *m, int64_t D, const acf_column *column) {
    for (int64_t j = 0; j < D; j++) {
        double v = (double)NAN;
        if (!m || m[j]) v = x[j];
        if (!cell_fits(v, column[j].classes)) return j;
        out[j] = isnan(v) ? (double)NAN : v; /* one NaN: equal tables have equal bytes */
    }
    return D;
}

acf_status acf_table_make(const double *x, const uint8_t *m, int64_t N, int64_t D, const acf_column *column,
                          acf_table **out) {
    ACF_TRY(check_shape(x, N, D, column));
    size_t bytes;
    if (!acf_bytes(D, sizeof(double), &bytes) || !acf_bytes(N, bytes, &bytes)) return ACF_EMEMORY;
    if (column) ACF_TRY(acf_columns_check_names(column, D));

    acf_status status = ACF_EMEMORY;
    acf_table *t = acf_alloc_zero(sizeof *t, "a table");
    acf_column *own = acf_columns_copy(column, D);
    double *cells = acf_alloc(bytes, "the cells of a table");
    if (!t || !own || !cells) goto done;
    *t = (acf_table){.N = N, .D = D, .x = cells, .column = own};
    for (int64_t i = 0; i < N; i++) {
        int64_t j = copy_row(cells + i * D, x + i * D, m ? m + i * D : NULL, D, own);
        if (j == D) continue;
        status = bad_cell(x[i * D + j], i, j, own);
        goto done;
    }
    *out = t;
    return ACF_OK;

done:
    acf_release(cells);
    acf_release(own);
    acf_release(t);
    return status;
}

acf_status acf_table_take(double *x, int64_t N, int64_t D, const acf_column *column, acf_table **out) {
    acf_status status = acf_columns_check_names(column, D);
    acf_table *t = status ? NULL : acf_alloc_zero(sizeof *t, "a table");
    acf_column *own = t ? acf_columns_copy(column, D) : NULL;
    if (!own) {
        acf_release(t);
        acf_release(x);
        return status ? status : ACF_EMEMORY;
    }
    *t = (acf_table){.N = N, .D = D, .x = x, .column = own};
    *out = t;
    return ACF_OK;
}

void acf_table_free(acf_table *t) {
    if (!t) return;
    acf_table_file_free(t->file);
    acf_release((void *)(uintptr_t)t->x);
    acf_release((void *)(uintptr_t)t->column);
    acf_release((void *)(uintptr_t)t->id);
    acf_release(t);
}
