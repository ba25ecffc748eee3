/* The support of a column: see support.h. */
#include "table/support.h"

#include "base/arena.h"

#include <math.h>

acf_status acf_support_create(int32_t n, acf_support *out) {
    double *value = acf_alloc((size_t)n * sizeof *value, "the values of a column");
    if (!value) return ACF_EMEMORY;
    *out = (acf_support){n, value};
    return ACF_OK;
}

void acf_support_free(acf_support *p) {
    acf_release(p->value);
    *p = (acf_support){0, NULL};
}

bool acf_support_valid(const acf_support *p) {
    for (int32_t k = 0; k < p->n; k++)
        if (!isfinite(p->value[k]) || (k && !(p->value[k - 1] < p->value[k]))) return false;
    return true;
}

/* Number of distinct values of x, up to one above the limit; *once: how many of them occur in one cell only. */
static int32_t distinct(const double *x, int64_t n, int64_t *once) {
    int32_t found = 0;
    *once = 0;
    for (int64_t i = 0, end; i < n && found <= ACF_SUPPORT_MAX; i = end, found++) {
        for (end = i + 1; end < n && x[end] == x[i];) end++;
        *once += end - i == 1;
    }
    return found;
}

/* Does every multiple of the step in the range occur? Values off the multiples favour a list. */
static bool gapless(const double *x, int64_t n, int32_t values, acf_resolution r) {
    const double step = acf_resolution_step(r);
    if (step <= 0 || (x[n - 1] - x[0]) / step > values - 0.5) return false;
    for (int64_t i = 0; i < n; i++)
        if (acf_resolution_round(r, x[i]) != x[i]) return false;
    return true;
}

acf_status acf_support_find(const double *x, int64_t n, acf_resolution r, acf_support *out) {
    int64_t once;
    const int32_t values = distinct(x, n, &once);
    *out = (acf_support){0, NULL};
    if (values < 2 || values > ACF_SUPPORT_MAX || (double)once > ACF_SUPPORT_NEW * (double)n) return ACF_OK;
    if (gapless(x, n, values, r)) return ACF_OK;
    ACF_TRY(acf_support_create(values, out));
    for (int64_t i = 0, k = 0; i < n; i++)
        if (i == 0 || x[i] != x[i - 1]) out->value[k++] = x[i];
    return ACF_OK;
}

double acf_support_nearest(const acf_support *p, double x) {
    int32_t low = 0, high = p->n - 1; /* x lies between these two */
    if (p->n == 0 || isnan(x)) return x;
    while (high - low > 1) {
        const int32_t middle = (low + high) / 2;
        if (p->value[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return x - p->value[low] <= p->value[high] - x ? p->value[low] : p->value[high];
}
