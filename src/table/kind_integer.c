/* Whole numbers that no narrower kind recognises. In the model the number; imputed as a whole number. */
#include "table/kind_number.h"

#include <math.h>

/* Tested after real: whole numbers remain. 0.5 and 1.0 may be all values of a sensor, but a measured quantity also
 * has the values between them. */
static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    return acf_kind_holds_numbers(c);
}

static double decode(const acf_field_spec *c, double v) {
    return acf_kind_declared(c, c->digits ? acf_kind_round_digits(floor(v + 0.5), c->digits) : floor(v + 0.5));
}

const acf_kind acf_kind_integer = {
    .name = "integer",
    .role = ACF_ROLE_NUMBER,
    .numbers = ACF_WHOLE_NUMBERS,
    .words = {"integer"},
    .order = 90,
    .recognise = recognise,
    .learn = acf_kind_number_learn,
    .encode = acf_kind_encode_number,
    .encode_number = acf_kind_number_present,
    .decode = decode,
    .format = acf_kind_format_number,
    .format_number = decode,
    .bounds = acf_kind_number_bounds,
    .describe = acf_kind_describe_range,
    .expected = acf_kind_expect_number,
    .to_json = acf_kind_number_to_json,
    .from_json = acf_kind_number_from_json,
};
