/* Public synthetic tables: see acflow.h; the work is in table/synth.h. */
#include "api/argument_checks.h"
#include "table/synth.h"
#include "table/table.h"

const char *acf_synth_name(int set) { return set >= 0 && set < acf_synth_sets_n ? acf_synth_sets[set].name : NULL; }
const char *acf_synth_about(int set) { return set >= 0 && set < acf_synth_sets_n ? acf_synth_sets[set].about : NULL; }

acf_status acf_synth_columns(const char *set, int64_t *columns, const acf_synth_column **column) {
    ACF_NEED(set);
    ACF_NEED(columns);
    const acf_synth_set *found = acf_synth_find(set);
    if (!found) return ACF_EUSAGE;
    *columns = found->D;
    if (column) *column = found->column;
    return ACF_OK;
}

static acf_status make(const char *set, int64_t rows, const acf_synth_options *o, acf_synth *out) {
    const acf_synth_options none = {0};
    if (!o) o = &none;
    if (rows < 0 || rows > ACF_TABLE_ROWS_MAX)
        return acf_fail(ACF_EUSAGE, "a synthetic table of %lld rows; expected 0 to 2^47", (long long)rows);
    return acf_synth_make(set, o->seed, o->missing, o->rate, out);
}

acf_status acf_synth_fill(const char *set, int64_t rows, const acf_synth_options *o, double *x, uint8_t *present) {
    acf_synth s;
    ACF_NEED(set);
    if (rows > 0) ACF_NEED(x);
    ACF_TRY(make(set, rows, o, &s));
    const int64_t D = s.set->D;
    for (int64_t i = 0; i < rows; i++) acf_synth_row(&s, (uint64_t)i, x + i * D, present ? present + i * D : NULL);
    return ACF_OK;
}

acf_status acf_synth_write(const char *set, int64_t rows, const acf_synth_options *o, const char *path) {
    acf_synth s;
    ACF_NEED(set);
    ACF_NEED(path);
    ACF_TRY(make(set, rows, o, &s));
    return acf_synth_csv(&s, rows, path);
}
