/* Command lines: see flags.h.
 *
 * Not getopt_long: its table is another place to write names, it prints by itself, and it keeps its position in
 * globals. */
#include "base/flags.h"

#include "base/arena.h"

#include <string.h>

#define NAME_ROOM 64
#define NAMES_MAX 256

/* What is being read: the command line and how far we are. */
typedef struct reader {
    acf_options *options;
    const acf_flag *flags;
    int n_flags;
    char **argv;
    int argc, next; /* next: first argument not looked at */
} reader;

/* Flags come before options of the same name, so a program can replace one of the table's by its own. -1: there is none. */
static int flag_at(const acf_flag *flags, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (acf_text_same_name(flags[i].name, name)) return i;
    return -1;
}

static const acf_flag *find_flag(const reader *r, const char *name) {
    const int i = flag_at(r->flags, r->n_flags, name);
    return i < 0 ? NULL : &r->flags[i];
}

/* Fails with the nearest of all names, options and flags alike. */
static acf_status unknown(const reader *r, const char *name) {
    const char *names[NAMES_MAX];
    int n = 0;
    for (int i = 0; i < r->n_flags && n < NAMES_MAX; i++) names[n++] = r->flags[i].name;
    for (int i = 0; i < acf_options_count(r->options) && n < NAMES_MAX; i++)
        names[n++] = acf_options_row(r->options, i)->name;
    int near = acf_text_nearest(name, names, n);
    char seen[ACF_EXCERPT_MAX];
    acf_text_excerpt(seen, name);
    if (near < 0) return acf_fail(ACF_EUSAGE, "unknown option '--%s'", seen);
    return acf_fail(ACF_EUSAGE, "unknown option '--%s'; did you mean '--%s'?", seen, names[near]);
}

/* The value of a flag: what is joined to it, or the next argument. */
static acf_status take_value(reader *r, const char *shown, const char *joined, const char **out) {
    if (!joined && r->next == r->argc) return acf_fail(ACF_EUSAGE, "option '%s' needs a value", shown);
    *out = joined ? joined : r->argv[r->next++];
    return ACF_OK;
}

/* A program's own flag. A second one is refused: of two outputs one would be lost without a word. Options of the table
 * may come twice, the last one counts, so that a script can append to a given command line. */
static acf_status read_flag(reader *r, const acf_flag *f, const char *shown, const char *joined) {
    const char *value = "";
    if (f->takes_value)
        ACF_TRY(take_value(r, shown, joined, &value));
    else if (joined)
        return acf_fail(ACF_EUSAGE, "option '%s' takes no value", shown);
    if (*f->value) return acf_fail(ACF_EUSAGE, "option '%s' is given twice", shown);
    *f->value = value;
    return ACF_OK;
}

/* A true-or-false option takes no second argument: "--flag file" leaves the file alone. So "--flag false" would turn it on and take `false` for a
 * file; a file that is really called so goes behind "--" or has its folder before it. */
static acf_status read_bool(reader *r, const char *name, const char *joined) {
    static const char *const words[] = {"true", "yes", "on", "false", "no", "off"};
    const char *next = joined || r->next == r->argc ? "" : r->argv[r->next];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(next, words[i]) == 0)
            return acf_fail(ACF_EUSAGE,
                            "option '--%s' takes its value joined, but '%s' stands apart; write '--%s%s' or '--%s=%s'",
                            name, next, i < 3 ? "" : "no-", name, name, next);
    return acf_options_set_text(r->options, name, joined ? joined : "true");
}

/* --name or --name=value. */
static acf_status read_long(reader *r, const char *arg) {
    char shown[NAME_ROOM + 2];
    const char *name = shown + 2, *equals = strchr(arg, '='), *value = NULL;
    size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
    if (n >= sizeof shown) return unknown(r, arg + 2);
    memcpy(shown, arg, n);
    shown[n] = '\0';
    const char *joined = equals ? equals + 1 : NULL;
    const acf_flag *f = find_flag(r, name);
    if (f) return read_flag(r, f, shown, joined);
    const acf_option *d = acf_options_find(r->options, name);
    if (d && d->type == ACF_OPTION_BOOL) return read_bool(r, name, joined);
    if (d) {
        ACF_TRY(take_value(r, shown, joined, &value));
        return acf_options_set_text(r->options, name, value);
    }
    if (strncmp(name, "no-", 3) == 0 || strncmp(name, "no_", 3) == 0) d = acf_options_find(r->options, name + 3);
    if (!d || d->type != ACF_OPTION_BOOL) return unknown(r, name);
    if (joined) return acf_fail(ACF_EUSAGE, "option '%s' takes no value", shown);
    return acf_options_set_text(r->options, name + 3, "false");
}

/* -x, -x value or -xvalue. */
static acf_status read_short(reader *r, const char *arg) {
    char shown[] = {'-', arg[1], '\0'};
    for (int i = 0; i < r->n_flags; i++)
        if (r->flags[i].letter == arg[1]) return read_flag(r, &r->flags[i], shown, arg[2] ? arg + 2 : NULL);
    char seen[ACF_EXCERPT_MAX];
    return acf_fail(ACF_EUSAGE, "unknown option '%s'; an argument that begins with a dash goes behind '--'",
                    acf_text_excerpt(seen, arg));
}

/* Arguments and flags may be mixed, as users type them. */
acf_status acf_flags_parse(acf_options *o, const acf_flag *flags, int n_flags, int argc, char **argv, int *n_rest) {
    reader r = {o, flags, n_flags, argv, argc, 0};
    int rest = 0; /* never ahead of r.next, so moving to the front loses nothing */
    while (r.next < argc) {
        char *arg = argv[r.next++];
        if (strcmp(arg, "--") == 0) break;
        if (strncmp(arg, "--", 2) == 0)
            ACF_TRY(read_long(&r, arg));
        else if (arg[0] == '-' && arg[1])
            ACF_TRY(read_short(&r, arg));
        else
            argv[rest++] = arg; /* "-" alone is an argument: standard input or output */
    }
    while (r.next < argc) argv[rest++] = argv[r.next++];
    *n_rest = rest;
    return ACF_OK;
}

/* ---- config files ----------------------------------------------------------------------------------------------- */

/* A value as the command line would have it: *out is its text, "" for a flag that takes none, NULL where such a one is false. */
static acf_status flag_from_json(acf_options *o, const acf_flag *f, acf_json_source from, const json_t *j,
                                 const char **out) {
    char number[ACF_NUMBER_MAX];
    const char *text = number;
    bool flag;
    if (!f->takes_value) {
        ACF_TRY(acf_json_to_bool(from, f->name, j, &flag));
        *out = flag ? "" : NULL;
        return ACF_OK;
    }
    acf_text t = acf_text_into(number, sizeof number);
    if (json_is_integer(j))
        acf_text_addf(&t, "%lld", (long long)json_integer_value(j));
    else if (json_is_real(j))
        acf_text_real(number, json_real_value(j));
    else
        ACF_TRY(acf_json_to_text(from, f->name, j, &text));
    *out = acf_options_keep(o, text);
    return *out ? ACF_OK : ACF_EMEMORY;
}

/* A name that this program part does not know may be known to another: then the user is told so, and not offered the nearest of these. */
static acf_status check_elsewhere(const acf_elsewhere *elsewhere, int n, acf_json_source from, const char *name) {
    char seen[ACF_EXCERPT_MAX];
    for (int i = 0; i < n; i++)
        if (acf_text_same_name(elsewhere[i].name, name))
            return acf_fail(from.status, "%s: '%s' is an option of %s, not of this command",
                            acf_text_excerpt(seen, from.name), elsewhere[i].name, elsewhere[i].where);
    return ACF_OK;
}

/* Members that are flags become texts, and are taken out of rest; text and given (n_flags). */
static acf_status take_flags(acf_options *o, const reader *r, acf_json_source from, json_t *object, json_t *rest,
                             const char **text, bool *given) {
    const char *key;
    char seen[ACF_EXCERPT_MAX];
    json_t *member;
    json_object_foreach(object, key, member) {
        const int i = flag_at(r->flags, r->n_flags, key);
        if (i < 0) continue;
        if (given[i])
            return acf_fail(from.status, "%s: option '%s' is given twice", acf_text_excerpt(seen, from.name),
                            r->flags[i].name);
        ACF_TRY(flag_from_json(o, &r->flags[i], from, member, &text[i]));
        given[i] = true;
        json_object_del(rest, key);
    }
    return ACF_OK;
}

acf_status acf_flags_from_json(acf_options *o, const acf_flag *flags, int n_flags, const acf_elsewhere *elsewhere,
                               int n_elsewhere, acf_json_source from, const json_t *object) {
    const reader r = {.options = o, .flags = flags, .n_flags = n_flags};
    json_t *all = (json_t *)(uintptr_t)object; /* jansson's iteration is not const, but changes nothing */
    if (n_flags == 0 && n_elsewhere == 0) return acf_options_from_json(o, from, object, ACF_FROM_FILE);
    if (!json_is_object(object)) return acf_options_from_json(o, from, object, ACF_FROM_FILE); /* has the sentence */
    acf_status status = ACF_OK;
    const size_t n = (size_t)n_flags + 1;
    json_t *rest = json_copy(all), *member;
    const char **text = acf_alloc_zero(n * (sizeof *text + sizeof(bool)), "options"), *key;
    bool *given = text ? (bool *)(text + n) : NULL;
    if (!rest || !text) status = rest ? ACF_EMEMORY : acf_fail(ACF_EMEMORY, "out of memory: options");
    if (status == ACF_OK) status = take_flags(o, &r, from, all, rest, text, given);
    if (status == ACF_OK) {
        json_object_foreach(rest, key, member) {
            if (status == ACF_OK && !acf_options_find(o, key))
                status = check_elsewhere(elsewhere, n_elsewhere, from, key);
        }
    }
    if (status == ACF_OK) status = acf_options_from_json(o, from, rest, ACF_FROM_FILE);
    for (int i = 0; status == ACF_OK && i < n_flags; i++)
        if (given[i] && !*flags[i].value) *flags[i].value = text[i];
    acf_release(text);
    json_decref(rest);
    return status;
}
