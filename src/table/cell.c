/* One cell: see cell.h. Reading is on the path of every cell of a file: a marker check, then one parse or one hash. */
#include "table/cell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* Levels beyond those with a class of their own share the next one. */
static double class_of(const acf_field_spec *c, int64_t level) {
    int64_t own = c->levels.n - c->pooled;
    return (double)(level < own ? level : own);
}

/* Yes, yes and YES, where they are one. Such a column has two levels. */
static int64_t level_in_any_case(const acf_field_spec *c, const char *text, size_t n) {
    int64_t level = c->levels.n - 1;
    while (level >= 0 && (c->levels.entry[level].length != n || strncasecmp(c->levels.entry[level].text, text, n) != 0))
        level--;
    return level;
}

static acf_cell_state level_read(const acf_field_spec *c, const char *text, size_t n, double *value) {
    int64_t level = acf_text_counts_find(&c->levels, text, n);
    if (level < 0 && c->any_case) level = level_in_any_case(c, text, n);
    if (level < 0) return ACF_CELL_KEPT;
    *value = c->kind == ACF_KIND_CATEGORY ? class_of(c, level) : c->value[level];
    return ACF_CELL_PRESENT;
}

/* Do the levels stand for themselves, as numbers? */
static bool levels_are_numbers(const acf_field_spec *c) {
    acf_number v;
    const acf_text_counts_entry *e = c->levels.entry;
    if (c->kind != ACF_KIND_ORDINAL) return false;
    return acf_notation_read(&c->notation, e->text, e->length, &v) && v.value == c->value[0];
}

/* A word that was among the numbers, or the dates, in training is kept; any other is a mistake in the file, or a marker
 * nobody has named. Infinity is a number that a program could not compute. */
static acf_cell_state word_read(const acf_field_spec *c, const char *text, size_t n) {
    return acf_text_counts_find(&c->other, text, n) >= 0 ? ACF_CELL_KEPT : ACF_CELL_WRONG;
}

static acf_cell_state number_read(const acf_field_spec *c, const char *text, size_t n, double *value) {
    acf_number v;
    if (!acf_notation_read(&c->notation, text, n, &v)) {
        const acf_cell_state is = word_read(c, text, n);
        return is == ACF_CELL_WRONG && acf_number_is_infinite(text, n) ? ACF_CELL_MISSING : is;
    }
    *value = v.value;
    return ACF_CELL_PRESENT;
}

acf_cell_state acf_cell_read(const acf_schema *s, const acf_field_spec *c, const char *text, size_t n, double *value) {
    *value = (double)NAN;
    if (acf_na_strings_has(&s->na_strings, text, n) || (c->na_strings && acf_na_strings_has(c->na_strings, text, n)))
        return ACF_CELL_MISSING;
    switch (c->kind) {
    case ACF_KIND_REAL:
    case ACF_KIND_INTEGER: return number_read(c, text, n, value);
    case ACF_KIND_CATEGORY: return level_read(c, text, n, value);
    case ACF_KIND_ORDINAL:
        if (level_read(c, text, n, value) == ACF_CELL_PRESENT) return ACF_CELL_PRESENT;
        return levels_are_numbers(c) ? number_read(c, text, n, value) : ACF_CELL_KEPT;
    case ACF_KIND_DATE:
    case ACF_KIND_TIME: return acf_calendar_read(c->when, text, n, value) ? ACF_CELL_PRESENT : word_read(c, text, n);
    default: return ACF_CELL_KEPT;
    }
}

/* A matrix has numbers only, but a category among its columns has levels, which are texts. */
acf_cell_state acf_cell_read_number(const acf_field_spec *c, double x, double *value) {
    char text[ACF_NUMBER_MAX];
    *value = (double)NAN;
    if (isnan(x)) return ACF_CELL_MISSING;
    switch (c->kind) {
    case ACF_KIND_REAL:
    case ACF_KIND_INTEGER: *value = x; return ACF_CELL_PRESENT;
    case ACF_KIND_CATEGORY: return level_read(c, text, strlen(acf_number_shortest(text, x)), value);
    case ACF_KIND_ORDINAL: *value = x; return levels_are_numbers(c) ? ACF_CELL_PRESENT : ACF_CELL_WRONG;
    case ACF_KIND_DATE:
    case ACF_KIND_TIME: return ACF_CELL_WRONG;
    default: return ACF_CELL_KEPT;
    }
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* The level whose value is nearest; values rise. */
static int64_t nearest_level(const acf_field_spec *c, double v) {
    int64_t low = 0, high = c->levels.n - 1;
    while (low < high) { /* the first that is not below v */
        int64_t middle = low + (high - low) / 2;
        if (c->value[middle] < v)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && v - c->value[low - 1] <= c->value[low] - v ? low - 1 : low;
}

static double clamp(double v, double min, double max) { return !(v > min) ? min : v > max ? max : v; } /* NaN: min */

/* v with so many significant digits. */
static double round_digits(double v, int digits) {
    char text[64];
    acf_number back;
    snprintf(text, sizeof text, "%.*e", digits - 1, v);
    char *comma = strchr(text, ','); /* the locale's point */
    if (comma) *comma = '.';
    return acf_number_parse(text, strlen(text), &back) ? back.value : v;
}

/* By way of the text that will be written: what is rounded here is exactly what will be read back. */
static double round_decimals(double v, int decimals) {
    char text[ACF_NUMBER_FIXED_MAX];
    acf_number back;
    acf_number_fixed(text, v, decimals);
    return acf_number_parse(text, strlen(text), &back) ? back.value : v;
}

/* What is no number becomes one that was observed. */
static double within(const acf_field_spec *c, double v) {
    return c->declared || isnan(v) ? clamp(v, c->min, c->max) : v;
}

/* Numbers may leave the observed range, because a tail may be longer than what was seen of it; the model knows a column's plain bounds
 * (bounds.h). They may not leave the range that the user declared. */
double acf_cell_round(const acf_field_spec *c, double v) {
    switch (c->kind) {
    case ACF_KIND_REAL:
        return within(c, c->digits ? round_digits(v, c->digits) : c->decimals < 0 ? v : round_decimals(v, c->decimals));
    case ACF_KIND_INTEGER: return within(c, c->digits ? round_digits(floor(v + 0.5), c->digits) : floor(v + 0.5));
    case ACF_KIND_ORDINAL: return c->value[nearest_level(c, v)];
    case ACF_KIND_CATEGORY: return clamp(floor(v + 0.5), 0, (double)(acf_spec_classes(c) - 1));
    case ACF_KIND_DATE:
    case ACF_KIND_TIME: {
        double step = c->step > 0 ? c->step : acf_calendar_step(c->when);
        return clamp(floor(v / step + 0.5) * step, c->min, c->max);
    }
    default: return v;
    }
}

/* 88.60 where the column always has two decimals, else 88.6. */
static void write_number(const acf_field_spec *c, double v, acf_text *out) {
    char text[ACF_NUMBER_FIXED_MAX];
    if (c->digits || c->decimals < 0)
        acf_number_shortest(text, v);
    else
        acf_number_fixed(text, v, c->decimals);
    char *point = strchr(text, '.');
    if (point && !c->fixed && !strchr(text, 'e')) {
        char *end = text + strlen(text);
        while (end[-1] == '0') *--end = '\0';
        if (end - 1 == point) *point = '\0';
    }
    acf_notation_write(&c->notation, text, out);
}

/* Schema files may have levels without counts: then each is as likely. */
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

void acf_cell_write(const acf_field_spec *c, double value, acf_text *out) {
    double v = acf_cell_round(c, value);
    switch (c->kind) {
    case ACF_KIND_REAL:
    case ACF_KIND_INTEGER: write_number(c, v, out); break;
    case ACF_KIND_ORDINAL: {
        const acf_text_counts_entry *e = &c->levels.entry[nearest_level(c, v)];
        acf_text_add_bytes(out, e->text, e->length);
        break;
    }
    case ACF_KIND_CATEGORY:
        acf_text_add_bytes(out, c->levels.entry[(int64_t)v].text, c->levels.entry[(int64_t)v].length);
        break;
    case ACF_KIND_DATE:
    case ACF_KIND_TIME: acf_calendar_write(c->when, v, out); break;
    case ACF_KIND_CONSTANT: acf_text_add_bytes(out, c->levels.entry[0].text, c->levels.entry[0].length); break;
    default: break;
    }
}

/* Where numbers are not written as programs do, one is shown. */
static void expected_number(const acf_field_spec *c, acf_text *out) {
    char text[ACF_NUMBER_FIXED_MAX];
    const bool whole = c->kind != ACF_KIND_REAL || c->decimals == 0 || !c->notation.comma;
    const int decimals = whole ? 0 : c->decimals > 0 ? c->decimals : 1;
    acf_text_add(out, "a number");
    if (acf_notation_is_plain(&c->notation)) return;
    acf_text_add(out, " like ");
    acf_notation_write(&c->notation, acf_number_fixed(text, 1234.5, decimals), out);
}

char *acf_cell_expected(const acf_field_spec *c, char out[ACF_PREDICTED_MAX]) {
    char pattern[ACF_CALENDAR_PATTERN_MAX];
    acf_text t = acf_text_into(out, ACF_PREDICTED_MAX);
    if (c->kind == ACF_KIND_DATE || c->kind == ACF_KIND_TIME)
        acf_text_addf(&t, "a %s written %s", acf_kind_names[c->kind], acf_calendar_pattern(c->when, pattern));
    else if (c->kind == ACF_KIND_REAL || c->kind == ACF_KIND_INTEGER || levels_are_numbers(c))
        expected_number(c, &t);
    else
        acf_text_add(&t, "a level that the model has seen");
    return out;
}
