/* Times of day, and dates with a time. In the model seconds since midnight, or since 1970-01-01; imputed in the
 * column's format and at a multiple of its step, inside the observed range. */
#include "table/kind_calendar.h"
#include "table/kind_number.h"
#include "table/resolution.h"

#include <stdlib.h>

static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    return acf_calendar_holds(c, false);
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The range, and the step that imputed times are multiples of. */
static acf_status learn_values(acf_field_spec *c, const double *x, int64_t rows, int64_t stride) {
    ACF_TRY(acf_kind_learn_range(c, x, rows, stride));
    double *value = acf_alloc((size_t)acf_max(rows, 1) * sizeof *value, "the times of a column");
    int64_t n = 0;
    if (!value) return ACF_EMEMORY;
    for (int64_t i = 0; i < rows; i++)
        if (acf_table_present(x[i * stride])) value[n++] = x[i * stride];
    qsort(value, (size_t)n, sizeof *value, by_value);
    const double step = acf_resolution_clock(value, n);
    acf_release(value);
    c->step = step > acf_calendar_step(c->when) ? step : 0;
    return ACF_OK;
}

const acf_kind acf_kind_time = {
    .name = "time",
    .role = ACF_ROLE_NUMBER,
    .clock = true,
    .words = {"time"},
    .order = 40,
    .recognise = recognise,
    .learn = acf_calendar_learn,
    .learn_values = learn_values,
    .encode = acf_calendar_encode,
    .encode_number = acf_calendar_encode_number,
    .decode = acf_calendar_decode,
    .format = acf_calendar_format,
    .bounds = acf_kind_observed_bounds,
    .describe = acf_calendar_describe,
    .expected = acf_calendar_expected,
    .to_json = acf_calendar_to_json,
    .from_json = acf_calendar_from_json,
};
