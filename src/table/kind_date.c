/* Dates. In the model days since 1970-01-01; imputed in the column's format, inside the observed range. */
#include "table/kind_calendar.h"
#include "table/kind_number.h"

#include <string.h>

static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    return acf_calendar_holds(c, true);
}

/* "dmy" and "mdy" are dates, and state what comes first. */
static void from_word(acf_field_spec *c, const char *word) { c->when.order = strcmp(word, "date") == 0 ? 0 : *word; }

const acf_kind acf_kind_date = {
    .name = "date",
    .role = ACF_ROLE_NUMBER,
    .words = {"date", "dmy", "mdy"},
    .from_word = from_word,
    .order = 30,
    .recognise = recognise,
    .learn = acf_calendar_learn,
    .learn_values = acf_kind_learn_range,
    .encode = acf_calendar_encode,
    .encode_number = acf_calendar_encode_number,
    .decode = acf_calendar_decode,
    .format = acf_calendar_format,
    .bounds = acf_kind_observed_bounds,
    .describe = acf_calendar_describe,
    .expected = acf_calendar_expected,
    .to_json = acf_calendar_to_json,
    .from_json = acf_calendar_from_json,
};
