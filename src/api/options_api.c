/* Public options: argument checks, then base/options.h.
 *
 * The contracts are in acflow.h. Each function checks everything its caller could have got wrong; the functions that it
 * calls trust their arguments. */
#include "api/argument_checks.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/options.h"
#include "base/renamed.h"

#include <string.h>

#define CONFIG_BYTES_MAX ((size_t)1 << 20) /* a config file of a megabyte is a wrong file */

/* A function as well as a macro, because the loaded library may differ from the one compiled against. */
const char *acf_version(void) { return ACF_VERSION; }

acf_status acf_options_create(acf_options **out) {
    ACF_NEED(out);
    return acf_options_make(acf_option_table, acf_option_count, out);
}

acf_status acf_options_set(acf_options *o, const char *name, const char *value) {
    ACF_NEED(o);
    ACF_NEED(name);
    ACF_NEED(value);
    return acf_options_set_text(o, name, value);
}

static acf_status load_text(acf_options *o, const char *path, const char *text, size_t n) {
    json_t *object;
    acf_json_source from = {path, ACF_EUSAGE}; /* a wrong config is a usage error; an unreadable one is ACF_EIO */
    ACF_TRY(acf_json_parse(from, text, n, CONFIG_BYTES_MAX, &object));
    acf_status status = acf_options_from_json(o, from, object, ACF_FROM_FILE);
    json_decref(object);
    return status;
}

acf_status acf_options_load(acf_options *o, const char *path, const char *json) {
    ACF_NEED(o);
    ACF_NEED(path);
    if (json) return load_text(o, path, json, strlen(json));
    char *text;
    size_t n;
    ACF_TRY(acf_file_read(path, CONFIG_BYTES_MAX, &text, &n));
    acf_status status = load_text(o, path, text, n);
    acf_release(text);
    return status;
}

acf_status acf_options_get(const acf_options *o, const char *name, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED(name);
    ACF_NEED_BUFFER(out, cap);
    acf_text t = acf_text_into(out, cap);
    ACF_TRY(acf_options_write(o, name, &t));
    return acf_text_done(&t, needed);
}

acf_status acf_options_at(const acf_options *o, int i, acf_option_info *out) {
    static const char *const type[] = {[ACF_OPTION_INT] = "int",
                                       [ACF_OPTION_REAL] = "real",
                                       [ACF_OPTION_BOOL] = "bool",
                                       [ACF_OPTION_TEXT] = "text",
                                       [ACF_OPTION_CHOICE] = "choice"};
    ACF_NEED(o);
    ACF_NEED(out);
    if (i < 0 || i >= acf_options_count(o))
        return acf_fail(ACF_EUSAGE, "acf_options_at: option %d of a set that has %d", i, acf_options_count(o));
    const acf_option *d = acf_options_row(o, i);
    *out = (acf_option_info){.name = d->name,
                             .type = type[d->type],
                             .standard = d->standard,
                             .choices = d->choices,
                             .help = d->help,
                             .section = acf_option_section_name(d->section),
                             .environment = d->env,
                             .min = d->min,
                             .max = d->max,
                             .automatic = (d->flags & ACF_OPTION_AUTO) != 0,
                             .essential = (d->flags & ACF_OPTION_ESSENTIAL) != 0,
                             .given = acf_options_origin(o, d->name) == ACF_FROM_USER};
    return ACF_OK;
}

const char *acf_options_new_name(const char *old) { return old ? acf_renamed_option(old) : NULL; }
