/* Command lines and config files: see flags.h. */
#include "cli/flags.h"

#include "cli/names.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ROOM 64
#define NAMES_MAX 256
#define CONFIG_BYTES_MAX ((size_t)1 << 20) /* a config file of a megabyte is a wrong file */

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static acf_status fail(cli_line *line, acf_status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static acf_status fail(cli_line *line, acf_status status, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line->why, sizeof line->why, fmt, ap);
    va_end(ap);
    return status;
}

/* The library's sentence, where it failed. */
static acf_status taken(cli_line *line, acf_status status) {
    return status == ACF_OK ? status : fail(line, status, "%s", acf_error());
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

bool cli_takes(const char *const *sections, const acf_option_info *d) {
    if (!sections) return true;
    while (*sections && strcmp(*sections, d->section) != 0) sections++;
    return *sections;
}

/* Flags come before options of the same name, so a command can replace one of the table's by its own. -1: none. */
static int flag_at(const cli_line *line, const char *name) {
    for (int i = 0; i < line->n_flags; i++)
        if (cli_same_name(line->flags[i].name, name)) return i;
    return -1;
}

static bool find_option(const cli_line *line, const char *name, acf_option_info *d) {
    for (int i = 0; i < acf_options_count(line->o); i++)
        if (acf_options_at(line->o, i, d) == ACF_OK && cli_same_name(d->name, name))
            return cli_takes(line->sections, d);
    return false;
}

/* The nearest of all names, options and flags alike; NULL: none is near. */
static const char *nearest(const cli_line *line, const char *name) {
    const char *names[NAMES_MAX];
    acf_option_info d;
    int n = 0;
    for (int i = 0; i < line->n_flags && n < NAMES_MAX; i++) names[n++] = line->flags[i].name;
    for (int i = 0; i < acf_options_count(line->o) && n < NAMES_MAX; i++)
        if (acf_options_at(line->o, i, &d) == ACF_OK && cli_takes(line->sections, &d)) names[n++] = d.name;
    const int near = cli_nearest(name, names, n);
    return near < 0 ? NULL : names[near];
}

static const cli_elsewhere *find_elsewhere(const cli_line *line, const char *name) {
    for (int i = 0; i < line->n_elsewhere; i++)
        if (cli_same_name(line->elsewhere[i].name, name)) return &line->elsewhere[i];
    return NULL;
}

/* Flags of commands that were renamed in acflow 0.2; of options the library knows. */
static const char *const renamed_flags[][2] = {{"holes", "masked"}, {"holes", "mechanism"}};

/* Today's name of an option or flag of this command; NULL: it was not renamed. */
static const char *new_name(const cli_line *line, const char *old) {
    const char *now = acf_options_new_name(old);
    acf_option_info d;
    if (now && find_option(line, now, &d)) return now;
    for (size_t i = 0; i < sizeof renamed_flags / sizeof renamed_flags[0]; i++)
        if (cli_same_name(renamed_flags[i][0], old) && flag_at(line, renamed_flags[i][1]) >= 0)
            return renamed_flags[i][1];
    return NULL;
}

/* A name that another command knows is not a mistyped one, and neither is one of an older version. */
static acf_status unknown(cli_line *line, const char *name) {
    const bool no = strncmp(name, "no-", 3) == 0;
    const char *now = new_name(line, no ? name + 3 : name);
    if (now)
        return fail(line, ACF_EUSAGE, "the option '%.64s' is called '--%s%s' since acflow 0.2", name, no ? "no-" : "",
                    now);
    const cli_elsewhere *other = find_elsewhere(line, name);
    if (other)
        return fail(line, ACF_EUSAGE, "'--%s' is an option of %s, not of this command", other->name, other->command);
    char seen[CLI_EXCERPT_MAX];
    const char *near = nearest(line, name);
    cli_excerpt(seen, name);
    if (!near) return fail(line, ACF_EUSAGE, "unknown option '--%s'", seen);
    return fail(line, ACF_EUSAGE, "unknown option '--%s'; did you mean '--%s'?", seen, near);
}

/* ---- command lines ----------------------------------------------------------------------------------------------- */

/* What is being read: the command line and how far we are. */
typedef struct reader {
    cli_line *line;
    char **argv;
    int argc, next; /* next: first argument not looked at */
} reader;

/* The value of a flag: what is joined to it, or the next argument. */
static acf_status take_value(reader *r, const char *shown, const char *joined, const char **out) {
    if (!joined && r->next == r->argc) return fail(r->line, ACF_EUSAGE, "option '%s' needs a value", shown);
    *out = joined ? joined : r->argv[r->next++];
    return ACF_OK;
}

/* A second one is refused: of two outputs one would be lost without a word. Options of the table may come twice, the
 * last one counts, so that a script can append to a given command line. */
static acf_status read_flag(reader *r, const cli_flag *f, const char *shown, const char *joined) {
    const char *value = "";
    acf_status status = ACF_OK;
    if (f->metavar)
        status = take_value(r, shown, joined, &value);
    else if (joined)
        status = fail(r->line, ACF_EUSAGE, "option '%s' takes no value", shown);
    if (status == ACF_OK && *f->value) status = fail(r->line, ACF_EUSAGE, "option '%s' is given twice", shown);
    if (status == ACF_OK) *f->value = value;
    return status;
}

static acf_status set(reader *r, const char *name, const char *value) {
    return taken(r->line, acf_options_set(r->line->o, name, value));
}

/* A true-or-false option takes no second argument: "--flag file" leaves the file alone. So "--flag false" would turn it
 * on and take `false` for a file; a file that is really called so goes behind "--" or has its folder before it. */
static acf_status read_bool(reader *r, const char *name, const char *joined) {
    static const char *const words[] = {"true", "yes", "on", "false", "no", "off"};
    const char *next = joined || r->next == r->argc ? "" : r->argv[r->next];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(next, words[i]) == 0)
            return fail(r->line, ACF_EUSAGE,
                        "option '--%s' takes its value joined, but '%s' stands apart; write '--%s%s' or '--%s=%s'",
                        name, next, i < 3 ? "" : "no-", name, name, next);
    return set(r, name, joined ? joined : "true");
}

/* --name or --name=value. */
static acf_status read_long(reader *r, const char *arg) {
    char shown[NAME_ROOM + 2];
    acf_option_info d;
    const char *name = shown + 2, *equals = strchr(arg, '='), *value = NULL;
    const size_t n = equals ? (size_t)(equals - arg) : strlen(arg);
    if (n >= sizeof shown) return unknown(r->line, arg + 2);
    memcpy(shown, arg, n);
    shown[n] = '\0';
    const char *joined = equals ? equals + 1 : NULL;
    const int i = flag_at(r->line, name);
    if (i >= 0) return read_flag(r, &r->line->flags[i], shown, joined);
    if (find_option(r->line, name, &d)) {
        if (strcmp(d.type, "bool") == 0) return read_bool(r, name, joined);
        const acf_status status = take_value(r, shown, joined, &value);
        return status == ACF_OK ? set(r, name, value) : status;
    }
    const bool no = strncmp(name, "no-", 3) == 0 || strncmp(name, "no_", 3) == 0;
    if (!no || !find_option(r->line, name + 3, &d) || strcmp(d.type, "bool") != 0) return unknown(r->line, name);
    if (joined) return fail(r->line, ACF_EUSAGE, "option '%s' takes no value", shown);
    return set(r, name + 3, "false");
}

/* -x, -x value or -xvalue. */
static acf_status read_short(reader *r, const char *arg) {
    char shown[] = {'-', arg[1], '\0'}, seen[CLI_EXCERPT_MAX];
    for (int i = 0; i < r->line->n_flags; i++)
        if (r->line->flags[i].letter == arg[1]) return read_flag(r, &r->line->flags[i], shown, arg[2] ? arg + 2 : NULL);
    return fail(r->line, ACF_EUSAGE, "unknown option '%s'; put an argument that begins with a dash after '--'",
                cli_excerpt(seen, arg));
}

/* Arguments and flags may be mixed, as users type them. */
acf_status cli_parse(cli_line *line, int argc, char **argv, int *n_rest) {
    reader r = {line, argv, argc, 0};
    int rest = 0; /* never ahead of r.next, so moving to the front loses nothing */
    while (r.next < argc) {
        char *arg = argv[r.next++];
        acf_status status = ACF_OK;
        if (strcmp(arg, "--") == 0) break;
        if (strncmp(arg, "--", 2) == 0)
            status = read_long(&r, arg);
        else if (arg[0] == '-' && arg[1])
            status = read_short(&r, arg);
        else
            argv[rest++] = arg; /* "-" alone is an argument: standard input or output */
        if (status != ACF_OK) return status;
    }
    while (r.next < argc) argv[rest++] = argv[r.next++];
    *n_rest = rest;
    return ACF_OK;
}

/* ---- config files ------------------------------------------------------------------------------------------------ */

/* A file in memory with a NUL behind it, at most CONFIG_BYTES_MAX + 1 bytes. *status: where there is none. */
static char *read_file(cli_line *line, const char *path, size_t *n, acf_status *status) {
    char *text = malloc(CONFIG_BYTES_MAX + 2);
    FILE *f = text ? fopen(path, "rb") : NULL;
    *n = f ? fread(text, 1, CONFIG_BYTES_MAX + 1, f) : 0;
    const bool ok = f && !ferror(f) && *n <= CONFIG_BYTES_MAX;
    if (f) fclose(f);
    if (ok) text[*n] = 0;
    if (ok) return text;
    *status =
        text ? taken(line, acf_options_load(line->o, path, NULL)) : fail(line, ACF_EMEMORY, "out of memory: options");
    if (*status == ACF_OK) *status = fail(line, ACF_EIO, "cannot read '%s'", path); /* it got better meanwhile */
    free(text);
    return NULL;
}

/* The text as a JSON object; NULL, with a status, where it is none. The library has the sentence. */
static json_t *parse_object(cli_line *line, const char *path, const char *text, size_t n, acf_status *status) {
    json_t *object = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(object)) return object;
    json_decref(object);
    if (strlen(text) < n)
        *status = fail(line, ACF_EUSAGE, "%s: not valid JSON: it has a NUL byte", path);
    else
        *status = taken(line, acf_options_load(line->o, path, text));
    if (*status == ACF_OK)
        *status = fail(line, ACF_EMEMORY, "out of memory: options"); /* there was enough a moment later */
    return NULL;
}

/* The words of the library for a value of another type. */
static acf_status wrong_type(cli_line *line, const char *path, const char *name, const json_t *j,
                             const char *expected) {
    static const char *const type[] = {
        "an object",     "a list",        "text", "a whole number", "a number with a fraction",
        "true or false", "true or false", "null"};
    return fail(line, ACF_EUSAGE, "%s: '%s' is %s, expected %s", path, name, type[json_typeof(j)], expected);
}

/* A value as the command line would have it: *out is its text, "" for a flag that takes none, NULL where such a one is
 * false. room: memory for the text. */
static acf_status flag_from_json(cli_line *line, const cli_flag *f, const char *path, const json_t *j, char *capacity,
                                 const char **out) {
    if (!f->metavar) {
        if (!json_is_boolean(j)) return wrong_type(line, path, f->name, j, "true or false");
        *out = json_is_true(j) ? "" : NULL;
        return ACF_OK;
    }
    if (json_is_integer(j))
        snprintf(capacity, CLI_FLAG_VALUE, "%lld", (long long)json_integer_value(j));
    else if (json_is_real(j))
        snprintf(capacity, CLI_FLAG_VALUE, "%.15g", json_real_value(j));
    else if (!json_is_string(j))
        return wrong_type(line, path, f->name, j, "text");
    else if (json_string_length(j) >= CLI_FLAG_VALUE)
        return fail(line, ACF_EUSAGE, "%s: '%s' has %zu bytes, expected fewer than %d", path, f->name,
                    json_string_length(j), CLI_FLAG_VALUE);
    else
        strcpy(capacity, json_string_value(j));
    *out = capacity;
    return ACF_OK;
}

/* Members that are flags become texts in keep, and are taken out of rest; text and given (n_flags). */
static acf_status take_flags(cli_line *line, const char *path, json_t *object, json_t *rest, char *keep,
                             const char **text, bool *given) {
    const char *key;
    json_t *member;
    json_object_foreach(object, key, member) {
        const int i = flag_at(line, key);
        if (i < 0) continue;
        if (given[i]) return fail(line, ACF_EUSAGE, "%s: option '%s' is given twice", path, line->flags[i].name);
        const acf_status status =
            flag_from_json(line, &line->flags[i], path, member, keep + (size_t)i * CLI_FLAG_VALUE, &text[i]);
        if (status != ACF_OK) return status;
        given[i] = true;
        json_object_del(rest, key);
    }
    return ACF_OK;
}

/* Are all the others options of this command? If not, the user is told which command has the option. */
static acf_status check_options(cli_line *line, const char *path, json_t *rest) {
    const char *key;
    json_t *member;
    char seen[CLI_EXCERPT_MAX];
    acf_option_info d;
    json_object_foreach(rest, key, member) {
        if (find_option(line, key, &d)) continue;
        const cli_elsewhere *other = find_elsewhere(line, key);
        if (other)
            return fail(line, ACF_EUSAGE, "%s: '%s' is an option of %s, not of this command", path, other->name,
                        other->command);
        const char *near = nearest(line, key), *now = new_name(line, key);
        if (now)
            return fail(line, ACF_EUSAGE, "%s: the option '%.64s' is called '%s' since acflow 0.2", path, key, now);
        cli_excerpt(seen, key);
        if (!near) return fail(line, ACF_EUSAGE, "%s: unknown option '%s'", path, seen);
        return fail(line, ACF_EUSAGE, "%s: unknown option '%s'; did you mean '%s'?", path, seen, near);
    }
    return ACF_OK;
}

static acf_status load_options(cli_line *line, const char *path, const json_t *rest) {
    char *text = json_dumps(rest, JSON_PRESERVE_ORDER);
    const acf_status status =
        text ? taken(line, acf_options_load(line->o, path, text)) : fail(line, ACF_EMEMORY, "out of memory: options");
    free(text);
    return status;
}

acf_status cli_load(cli_line *line, const char *path, char **keep) {
    size_t n;
    acf_status status = ACF_OK;
    const char *value[CLI_FLAG_VALUES] = {0};
    bool given[CLI_FLAG_VALUES] = {0};
    char *text = read_file(line, path, &n, &status);
    if (!text) return status;
    json_t *object = parse_object(line, path, text, n, &status), *rest = object ? json_copy(object) : NULL;
    free(text);
    if (!object) return status;
    *keep = malloc((size_t)(line->n_flags + 1) * CLI_FLAG_VALUE);
    if (!rest || !*keep || line->n_flags > CLI_FLAG_VALUES) status = fail(line, ACF_EMEMORY, "out of memory: options");
    if (status == ACF_OK) status = take_flags(line, path, object, rest, *keep, value, given);
    if (status == ACF_OK) status = check_options(line, path, rest);
    if (status == ACF_OK) status = load_options(line, path, rest);
    for (int i = 0; status == ACF_OK && i < line->n_flags; i++)
        if (given[i] && !*line->flags[i].value) *line->flags[i].value = value[i];
    json_decref(object);
    json_decref(rest);
    if (status != ACF_OK) free(*keep), *keep = NULL;
    return status;
}
