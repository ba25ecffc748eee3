/* Columns of numbers: see kind_number.h. */
#include "table/kind_number.h"

#include "table/kind_levels.h"
#include "table/spec_json.h"
#include "table/typing_warnings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DECIMALS_SHARE 0.98 /* imputed values have as many decimals as this share of the numbers needs */
#define SCALE_MAX 20        /* maximum number of different whole numbers of an ordinal column */

/* ---- what a column holds ----------------------------------------------------------------------------------------- */

/* Whether the words are so few that they are errors or notes in a column of measurements. If the numbers are also
 * few, 1, 2, 3 and "4+", the word is a level like the others, and the column a category. */
static bool has_few_words(const acf_profile_column *c) {
    const int64_t cells = acf_kind_finite_cells(c);
    if (c->numeric == cells) return true;
    return (double)c->numeric >= ACF_TYPING_SHARE * (double)cells && c->words.n <= ACF_TYPING_OTHERS &&
           c->words.beyond == 0 && c->prose == 0 && c->numbers.n > ACF_TYPING_OTHERS;
}

bool acf_kind_holds_numbers(const acf_profile_column *c) {
    return c->numeric > 0 && c->zeros == 0 && !acf_profile_is_in_doubt(c) && has_few_words(c);
}

int64_t acf_kind_scale(const acf_profile_column *c) {
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

/* How the numbers of the column are written. The decimals are those that nearly all of them need: 9.5 beside one
 * 9.53333333333333 has one. More than 17 are not counted: a program that writes full doubles produced such numbers,
 * and also those with an exponent. */
static void number_form(acf_typing_column *t) {
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
    if (out->kind->numbers != ACF_REAL_NUMBERS && out->decimals < 0) out->decimals = 0;
}

acf_status acf_kind_number_form(acf_typing_column *t) {
    if (!t->by_user) ACF_TRY(acf_typing_warn_sentinels(t->c, t->where, t->warnings));
    t->out->observed -= t->c->infinite, t->out->missing += t->c->infinite;
    number_form(t);
    return ACF_OK;
}

/* Other texts are kept and do not become NA strings: ">100" may be a measurement, and observed cells are written
 * unchanged. */
acf_status acf_kind_number_others(acf_typing_column *t) {
    const acf_profile_column *c = t->c;
    char seen[ACF_EXCERPT_MAX];
    for (int64_t i = 0; i < c->words.n; i++)
        if (!acf_number_is_infinite(c->words.entry[i].text, c->words.entry[i].length))
            ACF_TRY(acf_levels_add(&t->out->other, &c->words.entry[i]));
    if (t->out->other.n == 0) return ACF_OK;
    return acf_warnings_addf(
        t->warnings,
        "%s: %lld of %lld cells are not numbers (the first: '%s', row %lld); they are kept as they are and count as "
        "missing for the model. Name them in the option 'missing' to have them filled in, or say category in the "
        "option 'types'",
        t->where, (long long)(acf_kind_finite_cells(c) - c->numeric), (long long)c->observed,
        acf_text_excerpt(seen, t->out->other.entry[0].text), (long long)t->out->other.entry[0].first + 1);
}

acf_status acf_kind_number_learn(acf_typing_column *t) {
    ACF_TRY(acf_kind_number_form(t));
    return t->by_user ? acf_levels_copy(&t->out->other, &t->user->other) : acf_kind_number_others(t);
}

/* Sets an empty range, which contains no value. */
void acf_kind_open_range(acf_typing_column *t) { t->out->min = (double)INFINITY, t->out->max = -(double)INFINITY; }

acf_status acf_kind_learn_range(acf_field_spec *c, const double *x, int64_t rows, int64_t stride) {
    for (int64_t i = 0; i < rows; i++) {
        const double v = x[i * stride];
        if (v < c->min) c->min = v;
        if (v > c->max) c->max = v;
    }
    return ACF_OK;
}

bool acf_kind_observed_bounds(const acf_field_spec *c, double *low, double *high) {
    *low = c->min, *high = c->max;
    return true;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* A word that occurred among the numbers or dates in training is kept. Any other is an error in the file, or an
 * undeclared NA string. */
acf_cell_state acf_kind_encode_other(const acf_field_spec *c, const char *text, size_t n) {
    return acf_text_counts_find(&c->other, text, n) >= 0 ? ACF_CELL_KEPT : ACF_CELL_WRONG;
}

/* Infinity counts as missing: a program could not compute the number. */
acf_cell_state acf_kind_encode_number(const acf_field_spec *c, const char *text, size_t n, double *value) {
    acf_number v;
    if (!acf_notation_read(&c->notation, text, n, &v)) {
        const acf_cell_state is = acf_kind_encode_other(c, text, n);
        return is == ACF_CELL_WRONG && acf_number_is_infinite(text, n) ? ACF_CELL_MISSING : is;
    }
    *value = v.value;
    return ACF_CELL_PRESENT;
}

acf_cell_state acf_kind_number_present(const acf_field_spec *c, double x, double *value) {
    (void)c;
    *value = x;
    return ACF_CELL_PRESENT;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

double acf_kind_round_digits(double v, int digits) {
    char text[64];
    acf_number back;
    snprintf(text, sizeof text, "%.*e", digits - 1, v);
    char *comma = strchr(text, ','); /* the locale's decimal point */
    if (comma) *comma = '.';
    return acf_number_parse(text, strlen(text), &back) ? back.value : v;
}

/* Rounds through the text that will be written, so the result equals what will be read back. */
double acf_kind_round_decimals(double v, int decimals) {
    char text[ACF_NUMBER_FIXED_MAX];
    acf_number back;
    acf_number_fixed(text, v, decimals);
    return acf_number_parse(text, strlen(text), &back) ? back.value : v;
}

/* Numbers may leave the observed range, because a tail may be longer than was observed; the encoder applies a
 * column's bounds (bounds.h). Numbers may not leave a range that the user declared. Anything else becomes an
 * observed number. */
double acf_kind_declared(const acf_field_spec *c, double v) {
    return c->declared || isnan(v) ? acf_kind_clamp(v, c->min, c->max) : v;
}

/* 88.60 if the column always has two decimals, else 88.6. */
void acf_kind_format_number(const acf_field_spec *c, double v, acf_text *out) {
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

bool acf_kind_number_bounds(const acf_field_spec *c, double *low, double *high) {
    *low = c->min, *high = c->max;
    return c->declared;
}

/* ---- words, JSON ------------------------------------------------------------------------------------------------- */

void acf_kind_describe_range(const acf_field_spec *c, acf_text *out) {
    char text[ACF_NUMBER_MAX];
    acf_text_add(out, acf_number_shortest(text, c->min));
    acf_text_add(out, " to ");
    acf_text_add(out, acf_number_shortest(text, c->max));
}

/* Shows an example if the column's notation is not the plain one. */
void acf_kind_expect_number(const acf_field_spec *c, acf_text *out) {
    char text[ACF_NUMBER_FIXED_MAX];
    const bool whole = c->kind->numbers != ACF_REAL_NUMBERS || c->decimals == 0 || !c->notation.comma;
    const int decimals = whole ? 0 : c->decimals > 0 ? c->decimals : 1;
    acf_text_add(out, "a number");
    if (acf_notation_is_plain(&c->notation)) return;
    acf_text_add(out, " like ");
    acf_notation_write(&c->notation, acf_number_fixed(text, 1234.5, decimals), out);
}

void acf_kind_number_to_json(acf_spec_writer *to, const acf_field_spec *c) {
    acf_spec_put_range(to, c);
    acf_spec_put_form(to, c);
}

acf_status acf_kind_number_from_json(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c) {
    (void)s;
    ACF_TRY(acf_spec_get_form(at, o, c));
    ACF_TRY(acf_spec_get_range(at, o, c, NULL));
    if (!c->has_range) return ACF_OK;
    /* A schema that describes a table has the observed range. */
    c->declared = json_is_true(json_object_get(o, "declared")) || !json_object_get(o, "observed");
    return ACF_OK;
}
