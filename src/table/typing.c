/* Typing: see typing.h for the rules. Runs once a column; the largest piece of work is sorting the levels of a category. */
#define _GNU_SOURCE /* qsort_r */
#include "table/typing.h"

#include "table/typing_warnings.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WORDS_AMONG_NUMBERS 20 /* different words that a column of numbers may hold */
#define NUMBERS_SHARE 0.9      /* of the observed cells at least */
#define DECIMALS_SHARE 0.98    /* of the numbers have no more decimals than what is imputed is written with */
#define SCALE_MAX 20           /* different whole numbers of an ordinal column at most */
#define SCALE_CELLS 10         /* cells for each, at least, on average */
#define TWO_VALUES_CELLS 20    /* from so many cells on, two whole numbers are two categories */
#define TEXT_CELLS 10          /* with fewer cells a text column is never taken for an identifier */
#define NEARLY_ALL 0.9
#define COUNTABLE 9007199254740992.0 /* 2^53: beyond, a double no longer tells a whole number from the next */

/* A column under way. */
typedef struct typing {
    const char *file;
    const acf_profile_column *c;
    const acf_field_spec *wish; /* NULL: none */
    acf_schema *s;
    acf_field_spec *out;
    acf_warnings *warnings;
    char where[ACF_FIELD_TEXT_MAX];
} typing;

/* ---- names ------------------------------------------------------------------------------------------------------ */

static bool ends_with(const char *s, const char *tail) {
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

/* Names people give to keys. "paid" and "hybrid" end in id and are none: a mark or a capital letter must set it apart. */
bool acf_typing_is_id_name(const char *name) {
    static const char *const whole[] = {"id", "key", "index", "idx", "uuid", "guid", "rowid", "rownames", "unnamed: 0"};
    char lower[64] = "";
    size_t n = strlen(name);
    if (n >= sizeof lower) return false;
    for (size_t i = 0; i < n; i++) lower[i] = (char)tolower((unsigned char)name[i]);
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(lower, whole[i]) == 0) return true;
    if (n < 3) return false;
    bool camel = (ends_with(name, "Id") || ends_with(name, "ID")) && islower((unsigned char)name[n - 3]);
    return camel || (ends_with(lower, "id") && strchr("_-. ", lower[n - 3]));
}

/* ---- levels ----------------------------------------------------------------------------------------------------- */

static int by_count(const void *a, const void *b) {
    const acf_text_counts_entry *p = a, *q = b;
    if (p->count != q->count) return p->count < q->count ? 1 : -1;
    return (p->first > q->first) - (p->first < q->first);
}

/* Numbers before words, numbers by value, words by their bytes: an order that does not depend on the rows. */
static int by_text(const void *a, const void *b, void *notation) {
    const acf_text_counts_entry *p = a, *q = b;
    acf_number v, w;
    bool pn = acf_notation_read(notation, p->text, p->length, &v),
         qn = acf_notation_read(notation, q->text, q->length, &w);
    if (pn != qn) return pn ? -1 : 1;
    if (pn && v.value != w.value) return v.value < w.value ? -1 : 1;
    return strcmp(p->text, q->text);
}

static void sort_levels(const acf_profile_column *c, acf_text_counts_entry *list, int64_t n) {
    acf_notation notation = c->notation;
    qsort_r(list, (size_t)n, sizeof *list, by_text, &notation);
}

/* All distinct texts of the column, the most frequent first; *out is released by the caller. */
static acf_status all_levels(const acf_profile_column *c, acf_text_counts_entry **out, int64_t *n) {
    *n = c->numbers.n + c->words.n;
    acf_text_counts_entry *list = acf_alloc((size_t)*n * sizeof *list, "the levels of a column");
    if (!list) return ACF_EMEMORY;
    if (c->numbers.n) memcpy(list, c->numbers.entry, (size_t)c->numbers.n * sizeof *list);
    if (c->words.n) memcpy(list + c->numbers.n, c->words.entry, (size_t)c->words.n * sizeof *list);
    qsort(list, (size_t)*n, sizeof *list, by_count);
    if (*n > ACF_LEVELS_KEPT) *n = ACF_LEVELS_KEPT;
    *out = list;
    return ACF_OK;
}

/* A text with the count it has elsewhere. */
static acf_status add_level(acf_text_counts *to, const acf_text_counts_entry *e) {
    ACF_TRY(acf_text_counts_add(to, e->text, e->length, e->first));
    to->entry[to->n - 1].count = e->count;
    return ACF_OK;
}

/* How often the column holds this text. */
static int64_t count_in(const acf_profile_column *c, const acf_text_counts_entry *e) {
    int64_t number = acf_text_counts_find(&c->numbers, e->text, e->length),
            word = acf_text_counts_find(&c->words, e->text, e->length);
    return number >= 0 ? c->numbers.entry[number].count : word >= 0 ? c->words.entry[word].count : 0;
}

/* The levels the user wrote down, counted in the data. */
static acf_status wished_levels(typing *t) {
    int64_t seen = 0;
    for (int64_t i = 0; i < t->wish->levels.n; i++) {
        const acf_text_counts_entry *e = &t->wish->levels.entry[i];
        acf_text_counts_entry counted = {e->text, e->length, count_in(t->c, e), 0};
        ACF_TRY(add_level(&t->out->levels, &counted));
        seen += counted.count;
    }
    t->out->pooled = t->wish->pooled;
    t->out->any_case = t->wish->any_case;
    if (seen == t->c->observed) return ACF_OK;
    return acf_warnings_addf(
        t->warnings,
        "%s: %lld of %lld cells hold none of the levels of the schema file; they are kept and count as missing",
        t->where, (long long)(t->c->observed - seen), (long long)t->c->observed);
}

/* Pairs of answers that people write in small and large letters as it comes. Other words may differ by their letters: a
 * gene's A and a. */
static const char *const pairs[][2] = {{"yes", "no"},  {"y", "n"},         {"true", "false"}, {"t", "f"},
                                       {"on", "off"},  {"male", "female"}, {"ja", "nein"},    {"positive", "negative"},
                                       {"oui", "non"}, {"si", "no"}};

static bool is_spelling(const acf_text_counts_entry *e, const char *word) {
    return e->length == strlen(word) && strncasecmp(e->text, word, e->length) == 0;
}

/* Is every text of the column one of a pair, with both there, and one in two spellings? */
static bool is_pair(const acf_profile_column *c) {
    if (c->numbers.n || c->words.beyond || c->words.n < 3) return false;
    for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++) {
        int64_t first = 0, second = 0;
        for (int64_t i = 0; i < c->words.n; i++) {
            first += is_spelling(&c->words.entry[i], pairs[k][0]);
            second += is_spelling(&c->words.entry[i], pairs[k][1]);
        }
        if (first && second && first + second == c->words.n) return true;
    }
    return false;
}

/* One level for all spellings, the most frequent, which comes first in the list. Returns how many are left. */
static int64_t join_spellings(acf_text_counts_entry *list, int64_t n) {
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = 0;
        while (k < kept && !is_spelling(&list[i], list[k].text)) k++;
        if (k < kept)
            list[k].count += list[i].count;
        else
            list[kept++] = list[i];
    }
    return kept;
}

/* Of at most ACF_CLASSES_MAX levels each is a class. Of more, the frequent ones; the others share the last class. */
static acf_status category_levels(typing *t) {
    if (t->wish && t->wish->levels.n) return wished_levels(t);
    acf_text_counts_entry *list;
    int64_t n, own;
    ACF_TRY(all_levels(t->c, &list, &n));
    if ((t->out->any_case = is_pair(t->c))) n = join_spellings(list, n);
    own = n;
    if (n > ACF_CLASSES_MAX)
        for (own = 0; own < ACF_CLASSES_MAX - 1 && (own == 0 || list[own].count >= ACF_LEVEL_RARE);) own++;
    sort_levels(t->c, list, own);
    acf_status status = ACF_OK;
    for (int64_t i = 0; i < n && status == ACF_OK; i++) status = add_level(&t->out->levels, &list[i]);
    acf_release(list);
    ACF_TRY(status);
    t->out->pooled = n - own;
    if (n == own) return ACF_OK;
    return acf_warnings_addf(
        t->warnings, "%s: %s%lld categories; the %lld frequent ones are modelled each, the others as one", t->where,
        t->c->words.beyond + t->c->numbers.beyond ? "more than " : "", (long long)n, (long long)own);
}

/* Numbers that are levels: one text for each value, the most frequent. */
static acf_status ordinal_levels(typing *t) {
    acf_status status = ACF_OK;
    if (t->wish && t->wish->levels.n) {
        ACF_TRY(wished_levels(t));
        return acf_spec_rank(t->s, t->out);
    }
    acf_text_counts_entry *list;
    int64_t n;
    ACF_TRY(all_levels(t->c, &list, &n));
    sort_levels(t->c, list, n);
    for (int64_t i = 0; i < n && status == ACF_OK;) {
        int64_t best = i, next = i + 1;
        acf_number v = {0}, w;
        acf_notation_read(&t->c->notation, list[i].text, list[i].length, &v);
        for (; next < n && acf_notation_read(&t->c->notation, list[next].text, list[next].length, &w) &&
               w.value == v.value;
             next++)
            if (list[next].count > list[best].count) best = next;
        status = add_level(&t->out->levels, &list[best]);
        i = next;
    }
    acf_release(list);
    ACF_TRY(status);
    return acf_spec_rank(t->s, t->out);
}

/* ---- judging ---------------------------------------------------------------------------------------------------- */

/* How many different values; at least so many when the profile stopped keeping them. */
static int64_t distinct(const acf_profile_column *c) { return c->numbers.n + c->words.n; }
static bool is_counted(const acf_profile_column *c) { return c->numbers.beyond + c->words.beyond + c->prose == 0; }

/* Observed cells but for those of infinity, which count as missing where the others are numbers. */
static int64_t finite_cells(const acf_profile_column *c) { return c->observed - c->infinite; }

/* One value, though perhaps in several texts: 7 and 7.0. */
static bool is_constant(const acf_profile_column *c) {
    if (c->numeric > 0 && c->numeric == finite_cells(c) && c->zeros == 0) return c->min == c->max;
    return is_counted(c) && distinct(c) == 1;
}

/* Few enough to be slips or notes in a column of measurements. Where the numbers are few themselves, 1, 2, 3 and "4+", the word is a level
 * like the others, and the column a category. */
static bool has_few_words(const acf_profile_column *c) {
    if (c->numeric == finite_cells(c)) return true;
    return (double)c->numeric >= NUMBERS_SHARE * (double)finite_cells(c) && c->words.n <= WORDS_AMONG_NUMBERS &&
           c->words.beyond == 0 && c->prose == 0 && c->numbers.n > WORDS_AMONG_NUMBERS;
}

static bool is_numbers(const acf_profile_column *c) {
    return c->numeric > 0 && c->zeros == 0 && !acf_profile_is_in_doubt(c) && has_few_words(c);
}

/* Different values, not texts: 3 and 3.0 are one. 0 when there are more than a scale has. */
static int64_t scale_size(const acf_profile_column *c) {
    double seen[SCALE_MAX];
    int64_t n = 0;
    for (int64_t i = 0; i < c->numbers.n; i++) {
        acf_number v = {0};
        acf_notation_read(&c->notation, c->numbers.entry[i].text, c->numbers.entry[i].length, &v);
        int64_t k = 0;
        while (k < n && seen[k] != v.value) k++;
        if (k < n) continue;
        if (n == SCALE_MAX) return 0;
        seen[n++] = v.value;
    }
    return c->numbers.beyond ? 0 : n;
}

/* 4.8e+30 is whole by accident: what is written with an exponent has significant digits, and no last whole one. A 1e+05 among others, as R
 * writes 100000, says nothing. */
static bool is_measured(const acf_profile_column *c) {
    return c->exponents > 0 && (2 * c->exponents > c->numeric || c->max > COUNTABLE || c->min < -COUNTABLE);
}

/* Whole numbers only: 0.5 and 1.0 may be all a sensor knows, but between two measured values there are others. */
static acf_kind judge_numbers(const acf_profile_column *c, const char *name) {
    if (c->whole < c->numeric) return ACF_KIND_REAL;
    bool starts_low = c->min == 0 || c->min == 1;
    if (acf_profile_is_key(c) && (starts_low || acf_typing_is_id_name(name))) return ACF_KIND_IDENTIFIER;
    bool many = c->numbers.beyond > 0 || (double)c->numbers.n >= NEARLY_ALL * (double)c->observed;
    if (acf_typing_is_id_name(name) && many && c->observed >= TEXT_CELLS) return ACF_KIND_IDENTIFIER;
    int64_t values = scale_size(c);
    if (values == 2 && !c->infinite && ((c->min == 0 && c->max == 1) || c->observed >= TWO_VALUES_CELLS))
        return ACF_KIND_CATEGORY;
    if (values >= 3 && c->observed >= SCALE_CELLS * values) return ACF_KIND_ORDINAL;
    return is_measured(c) ? ACF_KIND_REAL : ACF_KIND_INTEGER;
}

/* A text that (nearly) every row has for itself names the row; the model could learn nothing from it, and filling it in would be lying. */
static acf_kind judge_text(const acf_profile_column *c) {
    double share = (double)distinct(c) / (double)c->observed;
    if (c->prose > 0) return ACF_KIND_IDENTIFIER;
    if (c->observed >= TEXT_CELLS && share >= NEARLY_ALL) return ACF_KIND_IDENTIFIER;
    if (!is_counted(c) || distinct(c) > ACF_CLASSES_MAX) /* beyond what is kept, nearly all that came was new */
        return share > 0.5 || c->words.beyond + c->numbers.beyond > c->observed / 2 ? ACF_KIND_IDENTIFIER
                                                                                    : ACF_KIND_CATEGORY;
    return ACF_KIND_CATEGORY;
}

/* Texts of a tally that are not in this format, into `to` where it is not NULL. *cells, *texts: how many are seen. */
static acf_status strange_texts(const acf_text_counts *from, acf_calendar when, acf_text_counts *to, int64_t *cells,
                                int64_t *texts) {
    for (int64_t i = 0; i < from->n; i++) {
        const acf_text_counts_entry *e = &from->entry[i];
        double ignore;
        if (acf_calendar_read(when, e->text, e->length, &ignore)) continue;
        *cells += e->count;
        ++*texts;
        if (to) ACF_TRY(add_level(to, e));
    }
    return ACF_OK;
}

/* Those of a column: numbers too, as a number is no date. Of more dates than are kept, the odd ones tell. */
static acf_status unseen_levels(const acf_profile_column *c, acf_calendar when, acf_text_counts *to, int64_t *cells,
                                int64_t *texts) {
    *cells = *texts = 0;
    ACF_TRY(strange_texts(&c->numbers, when, to, cells, texts));
    return strange_texts(c->words.beyond ? &c->odd : &c->words, when, to, cells, texts);
}

/* All dates or times of one format, or with as few others among them as there may be words among numbers; and all of those are known. */
static bool is_when(const acf_profile_column *c, acf_calendar *when) {
    int64_t fit, cells, texts;
    if (acf_calendar_most(&c->when, when, &fit) != ACF_CALENDAR_IS || (double)fit < NUMBERS_SHARE * (double)c->observed)
        return false;
    if (fit == c->observed) return true;
    unseen_levels(c, *when, NULL, &cells, &texts); /* counts, and so cannot fail */
    return cells == c->observed - fit && texts <= WORDS_AMONG_NUMBERS;
}

acf_kind acf_typing_kind(const acf_profile_column *c, const char *name, acf_calendar *when) {
    if (c->observed == 0) return ACF_KIND_EMPTY;
    if (is_constant(c)) return ACF_KIND_CONSTANT;
    if (is_when(c, when)) return acf_calendar_is_date(*when) ? ACF_KIND_DATE : ACF_KIND_TIME;
    return is_numbers(c) ? judge_numbers(c, name) : judge_text(c);
}

/* ---- from a kind to a column ------------------------------------------------------------------------------------ */

/* How the numbers of the column are written. Decimals are those that nearly all of them need: 9.5 beside one 9.53333333333333 has one.
 * Above 17 nobody counts them: such numbers come from a program that writes what a double holds, as those with an exponent do. */
static void number_form(typing *t) {
    const acf_profile_column *c = t->c;
    acf_field_spec *out = t->out;
    int most = acf_profile_decimals(c, 1);
    out->min = c->min, out->max = c->max;
    out->decimals = acf_profile_decimals(c, DECIMALS_SHARE);
    out->fixed = most > 0 && c->decimals[most] == c->numeric && c->exponents == 0;
    out->notation = c->notation;
    if (c->exponents > 0 || out->decimals > 17) {
        out->digits = c->digits < 1 ? 1 : c->digits > 17 ? 17 : c->digits;
        out->decimals = -1;
    }
    if (out->kind != ACF_KIND_REAL && out->decimals < 0) out->decimals = 0;
}

/* They are kept, and not taken for markers: ">100" may be a measurement, and what is observed comes back as it is. */
static acf_status words_among_numbers(typing *t) {
    const acf_profile_column *c = t->c;
    char seen[ACF_EXCERPT_MAX];
    for (int64_t i = 0; i < c->words.n; i++)
        if (!acf_number_is_infinite(c->words.entry[i].text, c->words.entry[i].length))
            ACF_TRY(add_level(&t->out->other, &c->words.entry[i]));
    if (t->out->other.n == 0) return ACF_OK;
    return acf_warnings_addf(
        t->warnings,
        "%s: %lld of %lld cells are no numbers (the first: '%s', row %lld); they are kept as they are and count as "
        "missing for the model. Name them in the option 'missing' to have them filled in, or say category in the "
        "option 'types'",
        t->where, (long long)(finite_cells(c) - c->numeric), (long long)c->observed,
        acf_text_excerpt(seen, t->out->other.entry[0].text), (long long)t->out->other.entry[0].first + 1);
}

/* The same of dates and times. 2021-02-30 may be a slip of the pen for any day. */
static acf_status words_among_dates(typing *t) {
    char seen[ACF_EXCERPT_MAX], pattern[ACF_CALENDAR_PATTERN_MAX];
    int64_t cells, texts;
    ACF_TRY(unseen_levels(t->c, t->out->when, &t->out->other, &cells, &texts));
    if (cells == 0) return ACF_OK;
    const acf_text_counts_entry *first = &t->out->other.entry[0];
    for (int64_t i = 1; i < t->out->other.n; i++)
        if (t->out->other.entry[i].first < first->first) first = &t->out->other.entry[i];
    return acf_warnings_addf(
        t->warnings,
        "%s: %lld of %lld cells are no %ss written %s (the first: '%s', row %lld); they are kept as they are and count as "
        "missing for the model. Name them in the option 'missing' to have them filled in",
        t->where, (long long)cells, (long long)t->c->observed, acf_kind_names[t->out->kind],
        acf_calendar_pattern(t->out->when, pattern), acf_text_excerpt(seen, first->text), (long long)first->first + 1);
}

static acf_status copy_texts(acf_text_counts *to, const acf_text_counts *from) {
    for (int64_t i = 0; i < from->n; i++) ACF_TRY(add_level(to, &from->entry[i]));
    return ACF_OK;
}

static acf_status wrong_wish(typing *t, const char *why) {
    return acf_fail(ACF_EDATA, "%s, %s: it cannot be read as %s: %s", t->file, t->where, acf_kind_names[t->wish->kind],
                    why);
}

/* The range is found when the cells are read: until then it is empty. */
static acf_status date_form(typing *t, bool wished) {
    acf_field_spec *out = t->out;
    out->min = (double)INFINITY, out->max = -(double)INFINITY;
    if (!wished) return words_among_dates(t);
    ACF_TRY(copy_texts(&out->other, &t->wish->other));
    if (t->wish->has_format) {
        out->when = t->wish->when;
        return ACF_OK;
    }
    int64_t fit;
    const acf_calendar_verdict v = acf_calendar_most(&t->c->when, &out->when, &fit);
    if (fit == 0) return wrong_wish(t, "no cell looks like one; a schema file can name its format");
    const char order = t->wish->when.order; /* dmy or mdy */
    if (v == ACF_CALENDAR_EITHER && !order) return wrong_wish(t, "day and month cannot be told apart; say dmy or mdy");
    if (order && !out->when.month && (out->when.order == 'd' || out->when.order == 'm')) out->when.order = order;
    out->kind = acf_calendar_is_date(out->when) ? ACF_KIND_DATE : ACF_KIND_TIME; /* dmy may mean either */
    return ACF_OK;
}

/* By the rules there is one value; by wish the most frequent one. */
static acf_status constant_form(typing *t) {
    acf_text_counts_entry *list;
    int64_t n;
    t->out->fill = t->wish && t->wish->kind == ACF_KIND_CONSTANT && t->wish->fill;
    if (t->wish && t->wish->levels.n) return add_level(&t->out->levels, &t->wish->levels.entry[0]);
    ACF_TRY(all_levels(t->c, &list, &n));
    acf_status status = n ? add_level(&t->out->levels, &list[0]) : wrong_wish(t, "its texts are too long");
    acf_release(list);
    return status;
}

/* Fills in what the kind needs. wished: the user said so, and the data may not allow it. */
static acf_status form(typing *t, bool wished) {
    switch (t->out->kind) {
    case ACF_KIND_REAL:
    case ACF_KIND_INTEGER:
        number_form(t);
        return wished ? copy_texts(&t->out->other, &t->wish->other) : words_among_numbers(t);
    case ACF_KIND_ORDINAL:
        if (wished && !t->wish->levels.n && t->c->numeric < finite_cells(t->c))
            return wrong_wish(t, "it holds words, whose order only you know: list its levels in a schema file");
        number_form(t);
        return ordinal_levels(t);
    case ACF_KIND_CATEGORY: return distinct(t->c) ? category_levels(t) : wrong_wish(t, "its texts are too long");
    case ACF_KIND_DATE:
    case ACF_KIND_TIME: return date_form(t, wished);
    case ACF_KIND_CONSTANT: return constant_form(t);
    default: return ACF_OK;
    }
}

/* The range the user allows, widened to what there is. */
static void widen(acf_field_spec *out, const acf_field_spec *wish) {
    if (!wish || !wish->has_range || wish->kind != out->kind) return;
    if (wish->min < out->min) out->min = wish->min;
    if (wish->max > out->max) out->max = wish->max;
    out->declared = wish->declared;
}

/* One column. A wish counts where there is a value at all: an empty column stays empty, whatever it is called. */
static acf_status type_column(typing *t, const char *name) {
    acf_field_spec *out = t->out;
    const acf_profile_column *c = t->c;
    if (!(out->name = acf_text_keep(t->s->texts, name, strlen(name)))) return ACF_EMEMORY;
    out->observed = c->observed, out->missing = c->missing;
    out->quoted = c->observed > 0 && c->quoted == c->observed;
    const acf_text_counts *own = t->wish && t->wish->na_strings ? &t->wish->na_strings->list : NULL;
    for (int64_t i = 0; own && i < own->n; i++)
        ACF_TRY(acf_spec_add_na_string(t->s, out, own->entry[i].text, own->entry[i].length));
    bool wished = t->wish && t->wish->kind != ACF_KIND_AUTO && c->observed > 0;
    out->kind = wished ? t->wish->kind : acf_typing_kind(c, name, &out->when);
    const bool text = !wished && (out->kind == ACF_KIND_CATEGORY || out->kind == ACF_KIND_IDENTIFIER) && !is_numbers(c);
    const bool levels = out->kind == ACF_KIND_CATEGORY || out->kind == ACF_KIND_CONSTANT;
    if (!wished && levels && c->words.n > 0) ACF_TRY(acf_typing_warn_na_strings(c, out->kind, t->where, t->warnings));
    if (text) ACF_TRY(acf_typing_note(c, out->kind, t->where, t->warnings));
    const bool numbers = out->kind == ACF_KIND_REAL || out->kind == ACF_KIND_INTEGER || out->kind == ACF_KIND_ORDINAL;
    if (numbers && !wished) ACF_TRY(acf_typing_warn_sentinels(c, t->where, t->warnings));
    if (numbers) out->observed -= c->infinite, out->missing += c->infinite;
    ACF_TRY(form(t, wished));
    widen(out, t->wish);
    return ACF_OK;
}

/* ---- the whole table -------------------------------------------------------------------------------------------- */

/* All missing is the plain case; else the sentence says what the columns are taken for. */
acf_status acf_typing_learnable(const char *file, const acf_schema *s) {
    int64_t count[ACF_KIND_COUNT] = {0};
    if (s->D > 0) return ACF_OK;
    for (int64_t j = 0; j < s->n; j++) count[s->column[j].kind]++;
    if (count[ACF_KIND_EMPTY] == s->n)
        return acf_fail(ACF_EDATA, "%s: all cells are missing: there is nothing to learn from", file);
    return acf_fail(ACF_EDATA,
                    "%s: there is no column to model: %lld hold one value only, %lld are identifiers, %lld are empty. "
                    "If one should be modelled after all, name its type in the option 'types', such as %s=category",
                    file, (long long)count[ACF_KIND_CONSTANT], (long long)count[ACF_KIND_IDENTIFIER],
                    (long long)count[ACF_KIND_EMPTY], s->column[0].name);
}

/* Columns are judged one by one: nothing a column is depends on another. */
acf_status acf_typing(const char *file, const acf_profile *p, const char *const *name,
                      const acf_field_spec *const *wish, acf_warnings *warnings, acf_schema **out) {
    acf_schema *s;
    acf_status status = ACF_OK;
    ACF_TRY(acf_schema_create(p->columns, &s));
    s->rows = p->rows;
    for (int64_t i = 0; i < p->na_strings->list.n; i++)
        ACF_TRY_DONE(
            acf_na_strings_add(&s->na_strings, p->na_strings->list.entry[i].text, p->na_strings->list.entry[i].length));
    for (int64_t j = 0; j < p->columns; j++) {
        typing t = {.file = file,
                    .c = &p->column[j],
                    .wish = wish ? wish[j] : NULL,
                    .s = s,
                    .out = &s->column[j],
                    .warnings = warnings};
        acf_field_text(t.where, name[j], j);
        ACF_TRY_DONE(type_column(&t, name[j]));
    }
    acf_schema_place(s);
done:
    if (status)
        acf_schema_free(s);
    else
        *out = s;
    return status;
}
