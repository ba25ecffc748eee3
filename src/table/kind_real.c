/* Real numbers: numbers that no other kind recognises. In the model the number; imputed with the column's decimals. */
#include "table/kind_number.h"

#define COUNTABLE 9007199254740992.0 /* 2^53: beyond it, doubles no longer distinguish adjacent whole numbers */

/* 4.8e+30 is whole only by its size: a number with an exponent has significant digits, and its last digit is not the
 * units digit. A single 1e+05 among others, as R writes 100000, is not evidence. */
static bool is_measured(const acf_profile_column *c) {
    return c->exponents > 0 && (2 * c->exponents > c->numeric || c->max > COUNTABLE || c->min < -COUNTABLE);
}

static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    return acf_kind_holds_numbers(c) && (c->whole < c->numeric || is_measured(c));
}

static double decode(const acf_field_spec *c, double v) {
    const double rounded = c->digits         ? acf_kind_round_digits(v, c->digits)
                           : c->decimals < 0 ? v
                                             : acf_kind_round_decimals(v, c->decimals);
    return acf_kind_declared(c, rounded);
}

static void describe(const acf_field_spec *c, acf_text *out) {
    acf_kind_describe_range(c, out);
    if (c->decimals > 0) acf_text_addf(out, ", %d decimal%s", c->decimals, c->decimals > 1 ? "s" : "");
}

const acf_kind acf_kind_real = {
    .name = "real",
    .role = ACF_ROLE_NUMBER,
    .numbers = ACF_REAL_NUMBERS,
    .words = {"real"},
    .order = 80,
    .recognise = recognise,
    .learn = acf_kind_number_learn,
    .encode = acf_kind_encode_number,
    .encode_number = acf_kind_number_present,
    .decode = decode,
    .format = acf_kind_format_number,
    .format_number = decode,
    .bounds = acf_kind_number_bounds,
    .describe = describe,
    .expected = acf_kind_expect_number,
    .to_json = acf_kind_number_to_json,
    .from_json = acf_kind_number_from_json,
};
