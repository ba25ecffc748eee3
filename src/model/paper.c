/* Additions to the paper's model: see paper.h. Each option is compared with its value under the preset alone. */
#include "model/paper.h"

#include "model/config.h"

#include <string.h>

#define VALUE_MAX 1152 /* largest option text: a flow and its terminator */

typedef struct looking {
    const acf_model *m;
    acf_text *out;
    bool any; /* something has been written */
} looking;

static void add(looking *l, const char *text) {
    acf_text_add(l->out, l->any ? ", " : "");
    acf_text_add(l->out, text);
    l->any = true;
}

/* ---- additions --------------------------------------------------------------------------------------------------- */

static bool has_mixture(const acf_model *m) { return acf_net_gmm_size(m->net) > 0 && acf_net_factors(m->net) == 0; }
static bool has_factors(const acf_model *m) { return acf_net_factors(m->net) > 0; }
static bool has_donors(const acf_model *m) { return m->donors; }
static bool always(const acf_model *m) { return m; }

/* If the file has no training record, the option decides. */
static bool is_refitted(const acf_model *m) {
    bool any = false;
    for (; m; m = m->next)
        any = any || (m->record.known ? m->record.refit == ACF_REFIT_DONE : acf_options_bool(m->config, "refit"));
    return any;
}

static bool is_calibrated(const acf_model *m) {
    bool any = false;
    for (; m; m = m->next)
        any = any || (m->record.known ? m->record.scale_factor != 0 || m->record.temperature != 0
                                      : acf_options_bool(m->config, "calibrate"));
    return any;
}

/* Options that add something when they differ from the preset, and a test whether the addition is in the model. */
static const struct {
    const char *option, *name;
    bool (*there)(const acf_model *m);
} additions[] = {
    {"encode", "normal scores", always},
    {"dequantise", "dequantisation", always},
    {"gmm", "Gaussian mixture", has_mixture},
    {"factors", "factor analysis", has_factors},
    {"column-embedding", "column embedding", always},
    {"context-width", "context network", always},
    {"deep-context", "context in every GRU layer", always},
    {"donors", "donors", has_donors},
    {"weight-decay", "weight decay", always},
    {"dropout", "dropout", always},
    {"ema", "exponential moving average of the weights", always},
    {"calibrate", "calibration on held-out cells", is_calibrated},
    {"refit", "refit", is_refitted},
};
enum { ADDITIONS = sizeof additions / sizeof *additions };

/* ---- options ----------------------------------------------------------------------------------------------------- */

/* Options that stay within the paper: ACFlow+BG with each weight that the paper tries; and ensemble, which is
 * reported as a count. */
static bool is_of_paper(const char *name, const char *value) {
    static const char *const weight[] = {"0", "0.1", "1", "10"};
    if (acf_text_same_name(name, "ensemble")) return true;
    for (int k = 0; k < 4 && acf_text_same_name(name, "guess-weight"); k++)
        if (strcmp(value, weight[k]) == 0) return true;
    return false;
}

/* Reports an option that differs from the preset. */
typedef void (*difference)(looking *l, const char *name, const char *value, const char *preset);

static void add_by_name(looking *l, const char *name, const char *value, const char *preset) {
    (void)value, (void)preset;
    for (int k = 0; k < ADDITIONS; k++)
        if (acf_text_same_name(additions[k].option, name) && additions[k].there(l->m)) add(l, additions[k].name);
}

static void add_with_values(looking *l, const char *name, const char *value, const char *preset) {
    for (int k = 0; k < ADDITIONS; k++)
        if (acf_text_same_name(additions[k].option, name)) return;
    add(l, name);
    acf_text_addf(l->out, " %s (%s)", *value ? value : "none", *preset ? preset : "none");
}

static acf_status compare(looking *l, const acf_options *preset, difference tell) {
    const acf_options *own = l->m->config;
    for (int i = 0; i < acf_options_count(own); i++) {
        char value[VALUE_MAX], expected[VALUE_MAX];
        const char *name = acf_options_row(own, i)->name;
        acf_text v = acf_text_into(value, sizeof value), e = acf_text_into(expected, sizeof expected);
        if (acf_options_origin(preset, name) != ACF_FROM_PRESET) continue;
        ACF_TRY(acf_options_write(own, name, &v));
        ACF_TRY(acf_options_write(preset, name, &e));
        if (strcmp(value, expected) != 0 && !is_of_paper(name, value)) tell(l, name, value, expected);
    }
    return ACF_OK;
}

/* Calls tell for each option that differs from the model's preset. */
static acf_status differences(looking *l, difference tell) {
    acf_options *preset;
    char word[32];
    acf_text name = acf_text_into(word, sizeof word);
    ACF_TRY(acf_options_write(l->m->config, "preset", &name));
    ACF_TRY(acf_config_create(&preset));
    acf_status status = acf_options_set_text(preset, "preset", word);
    if (!status) status = acf_config_finish(preset);
    if (!status) status = compare(l, preset, tell);
    acf_options_free(preset);
    return status;
}

acf_status acf_paper_beyond(const acf_model *m, acf_text *out) {
    looking l = {m, out, false};
    char members[48];
    const int n = acf_model_members(m);
    acf_text t = acf_text_into(members, sizeof members);
    if (m->image || !acf_config_follows_paper(m->config)) return ACF_OK;
    ACF_TRY(differences(&l, add_by_name));
    acf_text_addf(&t, "%d ensemble members", n);
    if (n > 1) add(&l, members);
    return ACF_OK;
}

acf_status acf_paper_other(const acf_model *m, acf_text *out) {
    looking l = {m, out, false};
    if (m->image || !acf_config_follows_paper(m->config)) return ACF_OK;
    return differences(&l, add_with_values);
}
