/* A schema for a table in memory: see memory_schema.h. */
#include "table/memory_schema.h"

#include "table/number.h"

#include <math.h>
#include <string.h>

#define DECIMALS_ROUND 15 /* with more decimals, a number is a result of arithmetic and is not rounded */

static acf_status name_column(acf_schema *s, int64_t j, const char *name) {
    char made_up[32];
    acf_text t = acf_text_into(made_up, sizeof made_up);
    acf_text_addf(&t, "V%lld", (long long)j + 1);
    if (!name) name = made_up;
    s->column[j].name = acf_text_keep(s->texts, name, strlen(name));
    return s->column[j].name ? ACF_OK : ACF_EMEMORY;
}

/* The levels of a category are its codes; their meaning is the caller's. */
static acf_status codes(acf_field_spec *c, int32_t classes) {
    for (int32_t k = 0; k < classes; k++) {
        char text[16];
        acf_text t = acf_text_into(text, sizeof text);
        acf_text_addf(&t, "%d", (int)k);
        ACF_TRY(acf_text_counts_add(&c->levels, text, t.len, 0));
        c->levels.entry[k].count = 0;
    }
    return ACF_OK;
}

/* The decimals of a cell are those of the shortest text that reads back as its value. Once there are too many, the
 * other cells are not examined. */
static void count_cell(acf_field_spec *c, double v, bool *whole) {
    char text[ACF_NUMBER_MAX];
    acf_number n = {0};
    if (isnan(v)) {
        c->missing++;
        return;
    }
    if (c->levels.n > 0) c->levels.entry[(int64_t)v].count++;
    if (c->observed == 0 || v < c->min) c->min = v;
    if (c->observed == 0 || v > c->max) c->max = v;
    c->observed++;
    *whole &= v == floor(v);
    if (v == floor(v) || c->decimals > DECIMALS_ROUND) return;
    acf_number_parse(text, strlen(acf_number_shortest(text, v)), &n);
    if (n.decimals > c->decimals) c->decimals = n.decimals;
}

acf_status acf_memory_schema(const acf_table *t, acf_schema **out) {
    acf_schema *s;
    acf_status status = ACF_OK;
    ACF_TRY(acf_schema_create(t->D, &s));
    s->rows = t->N;
    s->named = t->column[0].name != NULL;
    for (int64_t j = 0; j < t->D; j++) {
        acf_field_spec *c = &s->column[j];
        bool whole = true;
        ACF_TRY_DONE(name_column(s, j, t->column[j].name));
        ACF_TRY_DONE(codes(c, t->column[j].classes));
        for (int64_t i = 0; i < t->N; i++) count_cell(c, acf_table_row(t, i)[j], &whole);
        c->kind = acf_kind_in_memory(t->column[j].classes, whole && c->observed > 0);
        if (c->decimals > DECIMALS_ROUND) c->decimals = -1;
    }
    acf_schema_place(s);
done:
    if (status)
        acf_schema_free(s);
    else
        *out = s;
    return status;
}
