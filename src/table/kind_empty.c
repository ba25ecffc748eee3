/* No observed cell at all. Not modelled; users cannot request it. */
#include "table/kind.h"

static bool recognise(const acf_profile_column *c, const char *name) {
    (void)name;
    return c->observed == 0;
}

static void describe(const acf_field_spec *c, acf_text *out) {
    (void)c;
    acf_text_add(out, "no value at all");
}

const acf_kind acf_kind_empty = {
    .name = "empty",
    .role = ACF_ROLE_NONE,
    .order = 10,
    .recognise = recognise,
    .describe = describe,
};
