/* Public options: argument checks at the door, then the mechanism in base/options.h and base/flags.h.
 *
 * The contracts are in acflow.h and not repeated here. Each function checks everything its caller could have got wrong;
 * behind this file arguments are trusted. */
#include "api/argument_checks.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/flags.h"

#define CONFIG_BYTES_MAX ((size_t)1 << 20) /* a config file of a megabyte is a wrong file */

/* A function and not only a macro: the library that is loaded may not be the one that was compiled against. */
const char *acf_version(void) { return ACF_VERSION; }

acf_status acf_options_create(acf_options **out) {
    ACF_NEED(out);
    return acf_options_make(acf_option_table, acf_option_count, out);
}

acf_status acf_options_create_general(acf_options **out) {
    ACF_NEED(out);
    return acf_options_make(acf_option_table, acf_option_general, out);
}

acf_status acf_options_create_reading(acf_options **out) {
    ACF_NEED(out);
    return acf_options_make(acf_option_table, acf_option_reading, out);
}

acf_status acf_options_set(acf_options *o, const char *name, const char *value) {
    ACF_NEED(o);
    ACF_NEED(name);
    ACF_NEED(value);
    return acf_options_set_text(o, name, value);
}

acf_status acf_options_create_images(acf_options **out) {
    ACF_NEED(out);
    return acf_options_make(acf_option_images, acf_option_image_count, out);
}

acf_status acf_options_load(acf_options *o, const char *path) {
    ACF_NEED(o);
    ACF_NEED(path);
    return acf_options_load_flags(o, path, NULL, 0, NULL, 0);
}

/* Neither a name nor a place for a value may be NULL. */
static acf_status check_flags(const char *function, const acf_flag *flags, int n_flags) {
    for (int i = 0; i < n_flags; i++)
        if (!flags[i].name || !flags[i].value)
            return acf_fail(ACF_EUSAGE, "%s: flag %d has no name or no place for its value", function, i);
    return ACF_OK;
}

acf_status acf_options_load_flags(acf_options *o, const char *path, const acf_flag *flags, int n_flags,
                                  const acf_elsewhere *elsewhere, int n_elsewhere) {
    ACF_NEED(o);
    ACF_NEED(path);
    if (n_flags != 0) ACF_NEED(flags);
    if (n_elsewhere != 0) ACF_NEED(elsewhere);
    if (n_flags < 0 || n_elsewhere < 0)
        return acf_fail(ACF_EUSAGE, "acf_options_load_flags: counts of %d flags and %d names elsewhere", n_flags,
                        n_elsewhere);
    ACF_TRY(check_flags(__func__, flags, n_flags));
    char *text;
    size_t n;
    json_t *object;
    acf_json_source from = {path, ACF_EUSAGE}; /* a wrong config is wrong usage; an unreadable one is ACF_EIO */
    ACF_TRY(acf_file_read(path, CONFIG_BYTES_MAX, &text, &n));
    acf_status status = acf_json_parse(from, text, n, CONFIG_BYTES_MAX, &object);
    acf_release(text);
    if (status != ACF_OK) return status;
    status = acf_flags_from_json(o, flags, n_flags, elsewhere, n_elsewhere, from, object);
    json_decref(object);
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

acf_status acf_options_help(const acf_options *o, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED_BUFFER(out, cap);
    acf_text t = acf_text_into(out, cap);
    acf_options_describe(o, &t);
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
    *out = (acf_option_info){d->name, type[d->type], d->standard, d->choices,
                             d->help, d->min,        d->max,      acf_options_origin(o, d->name) == ACF_FROM_USER};
    return ACF_OK;
}

acf_status acf_options_parse(acf_options *o, const acf_flag *flags, int n_flags, int argc, char **argv, int *n_rest) {
    ACF_NEED(o);
    if (n_flags != 0) ACF_NEED(flags);
    if (argc != 0) ACF_NEED(argv);
    ACF_NEED(n_rest);
    if (n_flags < 0 || argc < 0)
        return acf_fail(ACF_EUSAGE, "acf_options_parse: counts of %d flags and %d arguments", n_flags, argc);
    ACF_TRY(check_flags(__func__, flags, n_flags));
    /* argv usually ends in a NULL that is not counted; one inside the count is a mistake of the caller. */
    for (int i = 0; i < argc; i++)
        if (!argv[i]) return acf_fail(ACF_EUSAGE, "acf_options_parse: argument %d is NULL", i);
    return acf_flags_parse(o, flags, n_flags, argc, argv, n_rest);
}

/* A guess has no error to report: with nothing to choose from the answer is "none". */
int acf_nearest_name(const char *word, const char *const *names, int n) {
    return word && names && n > 0 ? acf_text_nearest(word, names, n) : -1;
}
