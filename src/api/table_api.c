/* Public tables: see acflow.h; the work is in table/table.h. */
#include "api/argument_checks.h"
#include "base/arena.h"
#include "table/table.h"

acf_status acf_table_create(const double *x, const uint8_t *mask, int64_t rows, int64_t columns, const int32_t *classes,
                            const char *const *names, acf_table **out) {
    ACF_NEED(out);
    if (rows > 0 && columns > 0) ACF_NEED(x);
    if (columns < 0 || columns > INT32_MAX)
        return acf_fail(ACF_ESHAPE, "acf_table_create: %lld columns", (long long)columns);
    if (!classes && !names) return acf_table_make(x, mask, rows, columns, NULL, out);
    acf_column *column = acf_alloc((size_t)columns * sizeof *column, "a list of columns");
    if (!column) return ACF_EMEMORY;
    for (int64_t j = 0; j < columns; j++) column[j] = (acf_column){names ? names[j] : NULL, classes ? classes[j] : 0};
    acf_status status = acf_table_make(x, mask, rows, columns, column, out);
    acf_release(column);
    return status;
}

int64_t acf_table_rows(const acf_table *t) { return t ? t->N : 0; }
int64_t acf_table_columns(const acf_table *t) { return t ? t->D : 0; }
