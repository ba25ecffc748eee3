/* Levels: see kind_levels.h. The most expensive step is sorting those of a category. */
#define _GNU_SOURCE /* qsort_r */
#include "table/kind_levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LIST_WIDTH 60 /* approximate length of a list of levels */

/* ---- what a column holds ----------------------------------------------------------------------------------------- */

static int by_count(const void *a, const void *b) {
    const acf_text_counts_entry *p = a, *q = b;
    if (p->count != q->count) return p->count < q->count ? 1 : -1;
    return (p->first > q->first) - (p->first < q->first);
}

static int by_text(const void *a, const void *b, void *notation) {
    const acf_text_counts_entry *p = a, *q = b;
    acf_number v, w;
    bool pn = acf_notation_read(notation, p->text, p->length, &v),
         qn = acf_notation_read(notation, q->text, q->length, &w);
    if (pn != qn) return pn ? -1 : 1;
    if (pn && v.value != w.value) return v.value < w.value ? -1 : 1;
    return strcmp(p->text, q->text);
}

void acf_levels_sort(const acf_profile_column *c, acf_text_counts_entry *list, int64_t n) {
    acf_notation notation = c->notation;
    qsort_r(list, (size_t)n, sizeof *list, by_text, &notation);
}

acf_status acf_levels_all(const acf_profile_column *c, acf_text_counts_entry **out, int64_t *n) {
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

acf_status acf_levels_add(acf_text_counts *to, const acf_text_counts_entry *e) {
    ACF_TRY(acf_text_counts_add(to, e->text, e->length, e->first));
    to->entry[to->n - 1].count = e->count;
    return ACF_OK;
}

acf_status acf_levels_copy(acf_text_counts *to, const acf_text_counts *from) {
    for (int64_t i = 0; i < from->n; i++) ACF_TRY(acf_levels_add(to, &from->entry[i]));
    return ACF_OK;
}

/* The count of this text in the column. */
static int64_t count_in(const acf_profile_column *c, const acf_text_counts_entry *e) {
    int64_t number = acf_text_counts_find(&c->numbers, e->text, e->length),
            word = acf_text_counts_find(&c->words, e->text, e->length);
    return number >= 0 ? c->numbers.entry[number].count : word >= 0 ? c->words.entry[word].count : 0;
}

acf_status acf_levels_from_user(acf_typing_column *t) {
    int64_t seen = 0;
    for (int64_t i = 0; i < t->user->levels.n; i++) {
        const acf_text_counts_entry *e = &t->user->levels.entry[i];
        acf_text_counts_entry counted = {e->text, e->length, count_in(t->c, e), 0};
        ACF_TRY(acf_levels_add(&t->out->levels, &counted));
        seen += counted.count;
    }
    t->out->pooled = t->user->pooled;
    t->out->any_case = t->user->any_case;
    if (seen == t->c->observed) return ACF_OK;
    return acf_warnings_addf(
        t->warnings, "%s: %lld of %lld cells are not levels of the schema file; they are kept and count as missing",
        t->where, (long long)(t->c->observed - seen), (long long)t->c->observed);
}

/* ---- cells, words ------------------------------------------------------------------------------------------------ */

/* Finds a level regardless of case, for a column where Yes, yes and YES are one level. Such a column has two levels. */
static int64_t level_in_any_case(const acf_field_spec *c, const char *text, size_t n) {
    int64_t level = c->levels.n - 1;
    while (level >= 0 && (c->levels.entry[level].length != n || strncasecmp(c->levels.entry[level].text, text, n) != 0))
        level--;
    return level;
}

int64_t acf_levels_find(const acf_field_spec *c, const char *text, size_t n) {
    int64_t level = acf_text_counts_find(&c->levels, text, n);
    if (level < 0 && c->any_case) level = level_in_any_case(c, text, n);
    return level;
}

void acf_levels_format(const acf_field_spec *c, int64_t level, acf_text *out) {
    const acf_text_counts_entry *e = &c->levels.entry[level];
    acf_text_add_bytes(out, e->text, e->length);
}

double acf_levels_number(const acf_field_spec *c, int64_t level) {
    acf_number n = {.value = (double)NAN};
    acf_number_parse(c->levels.entry[level].text, c->levels.entry[level].length, &n);
    return n.value;
}

void acf_levels_describe(const acf_field_spec *c, acf_text *out) {
    char shown[ACF_EXCERPT_MAX];
    size_t begin = out->len;
    int64_t own = c->levels.n - c->pooled, i = 0;
    acf_text_addf(out, "%lld levels: ", (long long)c->levels.n);
    for (; i < own && (i == 0 || out->len - begin < LIST_WIDTH); i++)
        acf_text_addf(out, "%s%s (%lld)", i ? ", " : "", acf_text_excerpt(shown, c->levels.entry[i].text),
                      (long long)c->levels.entry[i].count);
    if (i < own) acf_text_add(out, ", ...");
    if (c->pooled) acf_text_addf(out, "; %lld rare levels share one class", (long long)c->pooled);
}
