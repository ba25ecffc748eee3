/* One cell: see cell.h. Reading runs for every cell of a file: an NA check, then one parse or one hash by its kind. */
#include "table/cell.h"

#include <math.h>
#include <string.h>

acf_cell_state acf_cell_read(const acf_schema *s, const acf_field_spec *c, const char *text, size_t n, double *value) {
    *value = (double)NAN;
    if (acf_na_strings_has(&s->na_strings, text, n) || (c->na_strings && acf_na_strings_has(c->na_strings, text, n)))
        return ACF_CELL_MISSING;
    return c->kind->encode ? c->kind->encode(c, text, n, value) : ACF_CELL_KEPT;
}

acf_cell_state acf_cell_read_number(const acf_field_spec *c, double x, double *value) {
    *value = (double)NAN;
    if (isnan(x)) return ACF_CELL_MISSING;
    return c->kind->encode_number ? c->kind->encode_number(c, x, value) : ACF_CELL_KEPT;
}

double acf_cell_round(const acf_field_spec *c, double v) { return c->kind->decode ? c->kind->decode(c, v) : v; }

void acf_cell_write(const acf_field_spec *c, double value, acf_text *out) {
    if (c->kind->format) c->kind->format(c, acf_cell_round(c, value), out);
}

double acf_cell_write_number(const acf_field_spec *c, double value) {
    return c->kind->format_number ? c->kind->format_number(c, value) : (double)NAN;
}

/* Schema files may have levels without counts; these are then equally likely. */
int64_t acf_cell_level(const acf_field_spec *c, double value, double u) {
    const int64_t own = c->levels.n - c->pooled;
    const acf_text_counts_entry *e = c->levels.entry;
    int64_t level = (int64_t)acf_cell_round(c, value);
    double all = 0, below = 0;
    if (level < own || c->pooled == 0) return level;
    for (int64_t k = own; k < c->levels.n; k++) all += (double)e[k].count;
    if (all == 0) return acf_min(own + (int64_t)(u * (double)c->pooled), c->levels.n - 1);
    for (level = own; level < c->levels.n - 1; level++)
        if ((below += (double)e[level].count) > u * all) break;
    return level;
}

char *acf_cell_expected(const acf_field_spec *c, char out[ACF_PREDICTED_MAX]) {
    acf_text t = acf_text_into(out, ACF_PREDICTED_MAX);
    if (c->kind->expected)
        c->kind->expected(c, &t);
    else
        acf_text_add(&t, ACF_EXPECTED_LEVEL);
    return out;
}
