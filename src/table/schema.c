/* The schema: see schema.h. */
#include "table/schema.h"

#include "table/profile.h"

#include <string.h>

/* One arena holds the texts, another numbers and lists of NA strings; only the counts of texts own memory. */
acf_status acf_schema_create(int64_t n, acf_schema **out) {
    acf_status status = ACF_OK;
    acf_memory words = acf_heap;
    words.align = sizeof(double);
    acf_schema *s = acf_alloc_zero(sizeof *s, "a schema");
    if (!s) return ACF_EMEMORY;
    size_t bytes;
    ACF_TRY_DONE(acf_text_arena(&s->texts));
    ACF_TRY_DONE(acf_arena_create(&words, 0, &s->memory));
    s->column = acf_bytes(n, sizeof *s->column, &bytes) ? acf_alloc_zero(bytes, "a schema") : NULL;
    if (!s->column) {
        status = ACF_EMEMORY;
        goto done;
    }
    s->n = n;
    s->na_strings = acf_na_strings_make(s->texts);
    for (int64_t j = 0; j < n; j++) {
        acf_field_spec *c = &s->column[j];
        c->kind = &acf_kind_auto;
        c->place = -1;
        c->levels = acf_text_counts_make(INT32_MAX / 2, s->texts);
        c->other = acf_text_counts_make(INT32_MAX / 2, s->texts);
    }
    *out = s;
done:
    if (status) acf_schema_free(s);
    return status;
}

void acf_schema_free(acf_schema *s) {
    if (!s) return;
    for (int64_t j = 0; j < s->n; j++) {
        acf_text_counts_clear(&s->column[j].levels);
        acf_text_counts_clear(&s->column[j].other);
        if (s->column[j].na_strings) acf_na_strings_clear(s->column[j].na_strings);
    }
    acf_na_strings_clear(&s->na_strings);
    acf_release(s->column);
    acf_arena_free(s->texts);
    acf_arena_free(s->memory);
    acf_release(s);
}

/* The table keeps the column order of the file, so a user finds a result where the column was. */
void acf_schema_place(acf_schema *s) {
    s->D = 0;
    for (int64_t j = 0; j < s->n; j++) s->column[j].place = acf_kind_is_modelled(s->column[j].kind) ? s->D++ : -1;
}

int64_t acf_schema_find(const acf_schema *s, const char *name) {
    for (int64_t j = 0; j < s->n; j++)
        if (s->column[j].name && strcmp(s->column[j].name, name) == 0) return j;
    return -1;
}

void acf_schema_fill_constants(acf_schema *s) {
    for (int64_t j = 0; j < s->n; j++) s->column[j].fill |= s->column[j].kind->role == ACF_ROLE_ONE_VALUE;
}

double acf_spec_leading(const acf_field_spec *c) {
    const int64_t own = c->levels.n - c->pooled;
    double all = 0;
    if (c->pooled == 0) return 1;
    for (int64_t k = own; k < c->levels.n; k++) all += (double)c->levels.entry[k].count;
    return all > 0 ? (double)c->levels.entry[own].count / all : 1 / (double)c->pooled;
}

const acf_field_spec *acf_schema_at(const acf_schema *s, int64_t place) {
    int64_t j = place;
    while (s->column[j].place != place) j++; /* columns that are not modelled only shift it */
    return &s->column[j];
}

void acf_schema_columns(const acf_schema *s, acf_column *out) {
    for (int64_t j = 0; j < s->n; j++) {
        const acf_field_spec *c = &s->column[j];
        double low = c->min, high = c->max;
        const bool bounded = c->kind->bounds && c->kind->bounds(c, &low, &high);
        if (c->place >= 0)
            out[c->place] = (acf_column){c->name, acf_spec_classes(c), c->kind->clock, bounded, low, high};
    }
}

/* Few columns have NA strings of their own, and the list with its first-byte table is large, so it is made on
 * demand. */
acf_status acf_spec_add_na_string(acf_schema *s, acf_field_spec *c, const char *text, size_t n) {
    if (!c->na_strings) {
        acf_na_strings *m = acf_arena_alloc(s->memory, sizeof *m);
        if (!m) return ACF_EMEMORY;
        *m = acf_na_strings_make(s->texts);
        c->na_strings = m;
    }
    return acf_na_strings_add(c->na_strings, text, n);
}

/* "1", "2", "5" stand for 1, 2 and 5, so that 5 is farther from 2 than 2 from 1; "low", "middle", "high" for 0, 1 and
 * 2. A list of numbers that does not ascend defines its own order, and ranks too. */
acf_status acf_spec_rank(acf_schema *s, acf_field_spec *c) {
    bool numbers = true;
    c->value = acf_arena_alloc(s->memory, (size_t)c->levels.n * sizeof *c->value);
    if (!c->value) return ACF_EMEMORY;
    for (int64_t i = 0; i < c->levels.n && numbers; i++) {
        acf_number v;
        const acf_text_counts_entry *e = &c->levels.entry[i];
        numbers = acf_notation_read(&c->notation, e->text, e->length, &v) && (i == 0 || v.value > c->value[i - 1]);
        if (numbers) c->value[i] = v.value;
    }
    for (int64_t i = 0; i < c->levels.n && !numbers; i++) c->value[i] = (double)i;
    return ACF_OK;
}

char *acf_field_text(char out[ACF_FIELD_TEXT_MAX], const char *name, int64_t j) {
    char shown[ACF_EXCERPT_MAX];
    acf_text t = acf_text_into(out, ACF_FIELD_TEXT_MAX);
    acf_text_addf(&t, "column %lld", (long long)j + 1);
    if (name) acf_text_addf(&t, " ('%s')", acf_text_excerpt(shown, name));
    return out;
}
