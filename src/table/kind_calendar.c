/* Dates and times: see kind_calendar.h and calendar.h. */
#include "table/kind_calendar.h"

#include "table/kind_levels.h"
#include "table/kind_number.h"
#include "table/spec_json.h"

#include <math.h>
#include <string.h>

/* ---- what a column holds ----------------------------------------------------------------------------------------- */

/* Counts the texts of `from` that are not in this format, and adds them to `to` unless it is NULL. *cells, *texts:
 * their number. */
static acf_status texts_not_in_format(const acf_text_counts *from, acf_calendar when, acf_text_counts *to,
                                      int64_t *cells, int64_t *texts) {
    for (int64_t i = 0; i < from->n; i++) {
        const acf_text_counts_entry *e = &from->entry[i];
        double ignore;
        if (acf_calendar_read(when, e->text, e->length, &ignore)) continue;
        *cells += e->count;
        ++*texts;
        if (to) ACF_TRY(acf_levels_add(to, e));
    }
    return ACF_OK;
}

/* The same for a column; numbers count too, as a number is not a date. If there are more dates than are kept, the
 * others are known from a separate list. */
static acf_status others(const acf_profile_column *c, acf_calendar when, acf_text_counts *to, int64_t *cells,
                         int64_t *texts) {
    *cells = *texts = 0;
    ACF_TRY(texts_not_in_format(&c->numbers, when, to, cells, texts));
    return texts_not_in_format(c->words.beyond ? &c->odd : &c->words, when, to, cells, texts);
}

bool acf_calendar_holds(const acf_profile_column *c, bool dates) {
    acf_calendar when;
    int64_t fit, cells, texts;
    if (acf_calendar_most(&c->when, &when, &fit) != ACF_CALENDAR_IS || acf_calendar_is_date(when) != dates)
        return false;
    if ((double)fit < ACF_TYPING_SHARE * (double)c->observed) return false;
    if (fit == c->observed) return true;
    others(c, when, NULL, &cells, &texts); /* only counts, and so cannot fail */
    return cells == c->observed - fit && texts <= ACF_TYPING_OTHERS;
}

/* Other texts are kept. 2021-02-30 may be an error for any day. */
static acf_status keep_others(acf_typing_column *t) {
    char seen[ACF_EXCERPT_MAX], pattern[ACF_CALENDAR_PATTERN_MAX];
    int64_t cells, texts;
    ACF_TRY(others(t->c, t->out->when, &t->out->other, &cells, &texts));
    if (cells == 0) return ACF_OK;
    const acf_text_counts_entry *first = &t->out->other.entry[0];
    for (int64_t i = 1; i < t->out->other.n; i++)
        if (t->out->other.entry[i].first < first->first) first = &t->out->other.entry[i];
    return acf_warnings_addf(
        t->warnings,
        "%s: %lld of %lld cells are not %ss written %s (the first: '%s', row %lld); they are kept as "
        "they are and count as "
        "missing for the model. Name them in the option 'missing' to have them filled in",
        t->where, (long long)cells, (long long)t->c->observed, t->out->kind->name,
        acf_calendar_pattern(t->out->when, pattern), acf_text_excerpt(seen, first->text), (long long)first->first + 1);
}

/* Follows the user: the format is specified or detected. dmy may mean dates or times. */
static acf_status learn_for_user(acf_typing_column *t) {
    acf_field_spec *out = t->out;
    ACF_TRY(acf_levels_copy(&out->other, &t->user->other));
    if (t->user->has_format) {
        out->when = t->user->when;
        return ACF_OK;
    }
    int64_t fit;
    const acf_calendar_verdict v = acf_calendar_most(&t->c->when, &out->when, &fit);
    if (fit == 0) return acf_typing_refuse(t, "no cell has a known format; a schema file can set the format");
    const char order = t->user->when.order; /* dmy or mdy */
    if (v == ACF_CALENDAR_EITHER && !order)
        return acf_typing_refuse(t, "the order of day and month is ambiguous; specify dmy or mdy");
    if (order && !out->when.month && (out->when.order == 'd' || out->when.order == 'm')) out->when.order = order;
    out->kind = acf_calendar_is_date(out->when) ? &acf_kind_date : &acf_kind_time;
    return ACF_OK;
}

/* The range is empty until the cells are read. */
acf_status acf_calendar_learn(acf_typing_column *t) {
    int64_t fit;
    acf_kind_open_range(t);
    if (t->by_user) return learn_for_user(t);
    acf_calendar_most(&t->c->when, &t->out->when, &fit);
    return keep_others(t);
}

/* ---- cells ------------------------------------------------------------------------------------------------------- */

acf_cell_state acf_calendar_encode(const acf_field_spec *c, const char *text, size_t n, double *value) {
    return acf_calendar_read(c->when, text, n, value) ? ACF_CELL_PRESENT : acf_kind_encode_other(c, text, n);
}

acf_cell_state acf_calendar_encode_number(const acf_field_spec *c, double x, double *value) {
    (void)c, (void)x, (void)value;
    return ACF_CELL_WRONG;
}

double acf_calendar_decode(const acf_field_spec *c, double v) {
    double step = c->step > 0 ? c->step : acf_calendar_step(c->when);
    return acf_kind_clamp(floor(v / step + 0.5) * step, c->min, c->max);
}

void acf_calendar_format(const acf_field_spec *c, double v, acf_text *out) { acf_calendar_write(c->when, v, out); }

/* ---- words, JSON ------------------------------------------------------------------------------------------------- */

void acf_calendar_describe(const acf_field_spec *c, acf_text *out) {
    char pattern[ACF_CALENDAR_PATTERN_MAX];
    acf_calendar_write(c->when, c->min, out);
    acf_text_add(out, " to ");
    acf_calendar_write(c->when, c->max, out);
    acf_text_addf(out, " (%s)", acf_calendar_pattern(c->when, pattern));
}

void acf_calendar_expected(const acf_field_spec *c, acf_text *out) {
    char pattern[ACF_CALENDAR_PATTERN_MAX];
    acf_text_addf(out, "a %s written %s", c->kind->name, acf_calendar_pattern(c->when, pattern));
}

static json_t *end_to_json(const acf_field_spec *c, double v) {
    char text[64];
    acf_text t = acf_text_into(text, sizeof text);
    acf_calendar_write(c->when, v, &t);
    return json_string(text);
}

/* Writes dates as text, so that people can read the file. They are whole steps of their format, so this is exact. */
void acf_calendar_to_json(acf_spec_writer *to, const acf_field_spec *c) {
    char pattern[ACF_CALENDAR_PATTERN_MAX];
    acf_spec_put(to, "format", json_string(acf_calendar_pattern(c->when, pattern)));
    if (c->step > 0) acf_spec_put(to, "step", acf_spec_number(c->step));
    acf_spec_put(to, "min", end_to_json(c, c->min));
    acf_spec_put(to, "max", end_to_json(c, c->max));
}

static acf_status get_format(const acf_spec_reader *at, const json_t *o, acf_field_spec *c) {
    const char *text;
    char seen[ACF_EXCERPT_MAX];
    const bool dates = c->kind == &acf_kind_date;
    if (!json_object_get(o, "format") && !at->whole) return ACF_OK;
    ACF_TRY(acf_json_text(at->from, o, "format", &text));
    if (!acf_calendar_from_pattern(text, &c->when) || acf_calendar_is_date(c->when) != dates)
        return acf_fail(at->from.status, "%s: 'format' is '%s', expected a pattern of a %s such as %s", at->from.name,
                        acf_text_excerpt(seen, text), c->kind->name,
                        dates ? "YYYY-MM-DD or D/M/YYYY" : "YYYY-MM-DD HH:MM:SS or HH:MM");
    c->has_format = true;
    return ACF_OK;
}

/* The step comes from the data: another one in a schema file is ignored. */
static acf_status get_step(const acf_spec_reader *at, const json_t *o, acf_field_spec *c) {
    double step;
    if (!c->kind->clock || !json_object_get(o, "step")) return ACF_OK;
    ACF_TRY(acf_json_real(at->from, o, "step", &step));
    if (!(step > 0 && step <= 86400))
        return acf_fail(at->from.status, "%s: 'step' is %g, expected seconds above 0, at most 86400", at->from.name,
                        step);
    c->step = step;
    return ACF_OK;
}

/* Reads an end of the range: a date in the column's format. */
static acf_status get_end(const acf_spec_reader *at, const json_t *o, const char *key, const acf_field_spec *c,
                          double *out) {
    const char *text;
    char seen[ACF_EXCERPT_MAX], pattern[ACF_CALENDAR_PATTERN_MAX];
    ACF_TRY(acf_json_text(at->from, o, key, &text));
    if (acf_calendar_read(c->when, text, strlen(text), out)) return ACF_OK;
    return acf_fail(at->from.status, "%s: '%s' is '%s', expected a date like %s", at->from.name, key,
                    acf_text_excerpt(seen, text), acf_calendar_pattern(c->when, pattern));
}

/* The order matters: reading a range needs the format. */
acf_status acf_calendar_from_json(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    (void)s;
    ACF_TRY(get_format(at, o, c));
    ACF_TRY(get_step(at, o, c));
    if (!c->has_format && !at->whole) return ACF_OK; /* no format to read a range with; the data determine it */
    return acf_spec_get_range(at, o, c, get_end);
}
