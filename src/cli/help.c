/* The pages of the commands as text for a terminal: see help.h.
 *
 *     short   -o, --output FILE     first sentence (default x)
 *     long    --output FILE
 *                 every sentence.
 *                 (the allowed values; the default) */
#include "cli/help.h"

#include "cli/cli.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WIDTH 80
#define INDENT 6  /* of the text below a name in the long help */
#define COLUMN 26 /* of the text beside a name in the short help */

/* ---- words ---------------------------------------------------------------------------------------------------- */

/* Words of n bytes, from `column` on in lines of WIDTH, indented. Returns the column after them. */
static size_t show_words(const char *text, size_t n, size_t indent, size_t column) {
    for (size_t k = 0, word; k < n; k += word + 1) {
        word = strcspn(text + k, " \n");
        if (word > n - k) word = n - k;
        if (column && column + 1 + word > WIDTH) column = 0, cli_print("\n");
        const bool first = column == 0 || column == indent;
        cli_print("%*s%.*s", column == 0 ? (int)indent : first ? 0 : 1, "", (int)word, text + k);
        column = (column ? column : indent) + word + !first;
    }
    return column;
}

/* An indented or empty line is printed unchanged; the others are filled to paragraphs, as in the man page. */
static void show_text(const char *text, size_t indent) {
    size_t column = 0;
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (n && *text != ' ')
            column = show_words(text, n, indent, column);
        else
            cli_print("%s%.*s\n", column ? "\n" : "", (int)n, text), column = 0;
    }
    if (column) cli_print("\n");
}

/* ---- flags and sections --------------------------------------------------------------------------------------- */

static const cli_flag common[] = {
    {"config", 0, "FILE", "general",
     "JSON file to read options from, such as {\"threads\": 2}. The command line wins over it", .more = true},
    {"progress", 0, "MODE", "general",
     "Progress display of training: auto (a line on a terminal), bar, json (an object per line) or none",
     .choices = "auto|bar|json|none", .more = true},
    {"quiet", 'q', NULL, "general", "Show errors only"},
    {"help", 'h', NULL, "general", "Show this help", .more = true},
    {"all", 0, NULL, "general", "With --help: show every option", .more = true},
};
enum { COMMON = sizeof common / sizeof common[0] };

static bool trains(const cli_page *page) {
    return cli_takes(page->sections, &(acf_option_info){.section = "training"});
}

int cli_page_flags(const cli_page *page, const cli_flag *flags, int n_flags, cli_common *values,
                   cli_flag out[CLI_FLAGS_MAX]) {
    const char **place[COMMON] = {NULL};
    if (values) {
        const char **all[COMMON] = {&values->config, &values->progress, &values->quiet, &values->help, &values->all};
        memcpy(place, all, sizeof all);
    }
    int n = 0;
    for (int i = 0; i < n_flags; i++) out[n++] = flags[i];
    for (int i = 0; i < COMMON; i++) {
        if (strcmp(common[i].name, "progress") == 0 && !trains(page)) continue;
        out[n] = common[i];
        out[n++].value = place[i];
    }
    return n;
}

const char *cli_heading(int k, const char **section) {
    static const struct {
        const char *section, *heading;
    } list[] = {{"input", "Input"},
                {"output", "Output"},
                {"queries", "Queries"},
                {"model", "Model"},
                {"donors", "Donors"},
                {"training", "Training"},
                {"evaluation", "Evaluation"},
                {"images", "Images"},
                {"image model", "Image model"},
                {"image queries", "Image queries"},
                {"machine", "Machine"},
                {"general", "General"},
                {NULL, NULL}};
    *section = list[k].section;
    return list[k].heading;
}

/* ---- one option ----------------------------------------------------------------------------------------------- */

const char *cli_option_metavar(const acf_option_info *d) {
    static const char *const type[] = {"int", "real", "bool", "text", "choice"}, *const metavar[] = {" N", " X", "",
                                                                                                     " TEXT", " WORD"};
    for (int i = 0; i < 5; i++)
        if (strcmp(d->type, type[i]) == 0) return metavar[i];
    return "";
}

static void add_number(char *out, size_t cap, double v) {
    const size_t n = strlen(out);
    snprintf(out + n, cap - n, v == floor(v) && fabs(v) < 1e17 ? "%.0f" : "%g", v);
}

static void add(char *out, size_t cap, const char *text) {
    const size_t n = strlen(out);
    snprintf(out + n, cap - n, "%s", text);
}

/* "auto, cpu or cuda" of "auto|cpu|cuda". */
static void add_choices(char *out, size_t cap, const char *choices) {
    while (*choices) {
        const size_t n = strcspn(choices, "|"), used = strlen(out);
        snprintf(out + used, cap - used, "%.*s", (int)n, choices);
        choices += n + (choices[n] == '|');
        if (*choices) add(out, cap, strchr(choices, '|') ? ", " : " or ");
    }
}

static bool is(const acf_option_info *d, const char *type) { return strcmp(d->type, type) == 0; }

void cli_option_facts(const acf_option_info *d, char *out, size_t cap) {
    *out = 0;
    if (is(d, "bool")) {
        snprintf(out, cap, "%s by default; --no-%s disables it", strcmp(d->standard, "true") == 0 ? "on" : "off",
                 d->name);
        return;
    }
    if (d->choices)
        add_choices(out, cap, d->choices);
    else if (!is(d, "text")) {
        add(out, cap,
            d->automatic   ? "auto or a whole number from "
            : is(d, "int") ? "a whole number from "
                           : "a number from ");
        add_number(out, cap, d->min);
        add(out, cap, " to ");
        add_number(out, cap, d->max);
    }
    add(out, cap, *out ? "; default " : "default ");
    add(out, cap, *d->standard ? d->standard : "empty");
    if (d->environment) add(out, cap, ", or the environment variable "), add(out, cap, d->environment);
}

/* "-o, --output FILE" */
static void flag_name(const cli_flag *f, char *out, size_t cap) {
    char letter[8] = "";
    if (f->letter) snprintf(letter, sizeof letter, "-%c, ", f->letter);
    snprintf(out, cap, "  %s--%s%s%s", letter, f->name, f->metavar ? " " : "", f->metavar ? f->metavar : "");
}

/* ---- the long help -------------------------------------------------------------------------------------------- */

static void show_flag(const cli_flag *f) {
    char name[128];
    flag_name(f, name, sizeof name);
    cli_print("%s\n", name);
    show_text(f->help, INDENT);
}

static void show_option(const acf_option_info *d) {
    char facts[512] = "(";
    cli_print("  --%s%s\n", d->name, cli_option_metavar(d));
    show_text(d->help, INDENT);
    cli_option_facts(d, facts + 1, sizeof facts - 2);
    strcat(facts, ")");
    show_text(facts, INDENT);
}

/* ---- the short help ------------------------------------------------------------------------------------------- */

/* Bytes of the first sentence. */
static size_t sentence(const char *help) {
    const char *end = strstr(help, ". ");
    return end ? (size_t)(end - help) : strlen(help);
}

/* A name, and beside it the first sentence of the help with the default. */
static void show_brief(const char *name, const char *help, const char *fallback) {
    char text[1024];
    size_t column = strlen(name);
    snprintf(text, sizeof text, "%.*s%s", (int)sentence(help), help, fallback);
    cli_print("%s", name);
    if (column + 2 > COLUMN)
        cli_print("\n%*s", COLUMN, "");
    else
        cli_print("%*s", COLUMN - (int)column, "");
    show_words(text, strlen(text), COLUMN, COLUMN);
    cli_print("\n");
}

static void show_brief_option(const acf_option_info *d) {
    char name[160], fallback[160] = "";
    const bool on = is(d, "bool") && strcmp(d->standard, "true") == 0;
    const bool listed = d->choices && strlen(d->choices) <= 24,
               shown = *d->standard && strcmp(d->standard, "default") != 0;
    snprintf(name, sizeof name, "  --%s%s%s%s", d->name, cli_option_metavar(d), on ? ", --no-" : "", on ? d->name : "");
    if (listed) {
        strcpy(fallback, ": ");
        add_choices(fallback, sizeof fallback, d->choices);
    }
    const size_t n = strlen(fallback);
    if (on)
        snprintf(fallback + n, sizeof fallback - n, " (on by default)");
    else if (shown && !is(d, "bool"))
        snprintf(fallback + n, sizeof fallback - n, " (default %s)", d->standard);
    show_brief(name, d->help, fallback);
}

/* ---- pages ---------------------------------------------------------------------------------------------------- */

/* The flags and options of a section under their heading, which precedes the first one; NULL: it has been printed.
 * Returns their number. *hidden counts those that the short help leaves out. */
static int show_section(const cli_page *page, const cli_flag *flags, int n_flags, const acf_options *o,
                        const char *section, const char *heading, bool all, int *hidden) {
    acf_option_info d;
    int n = 0;
    for (int i = 0; i < n_flags; i++) {
        if (strcmp(flags[i].section, section) != 0) continue;
        char name[128];
        if (flags[i].more && !all) {
            ++*hidden;
            continue;
        }
        if (n++ == 0 && heading) cli_print("\n%s:\n", heading);
        flag_name(&flags[i], name, sizeof name);
        if (all)
            show_flag(&flags[i]);
        else
            show_brief(name, flags[i].help, "");
    }
    for (int i = 0; i < acf_options_count(o) && acf_options_at(o, i, &d) == ACF_OK; i++) {
        if (strcmp(d.section, section) != 0 || !cli_takes(page->sections, &d)) continue;
        if (!d.essential && !all) {
            ++*hidden;
            continue;
        }
        if (n++ == 0 && heading) cli_print("\n%s:\n", heading);
        if (all)
            show_option(&d);
        else
            show_brief_option(&d);
    }
    return n;
}

/* The short help has one heading for everything about images. */
static int show_sections(const cli_page *page, const cli_flag *flags, int n_flags, const acf_options *o, bool all) {
    const char *section;
    int hidden = 0, images = 0;
    for (int k = 0; cli_heading(k, &section); k++) {
        const bool of_images = strncmp(section, "image", 5) == 0;
        const char *heading = of_images && !all ? images ? NULL : "Images" : cli_heading(k, &section);
        const int n = show_section(page, flags, n_flags, o, section, heading, all, &hidden);
        if (of_images) images += n;
    }
    return hidden;
}

int cli_show_page(const cli_page *page, const cli_flag *flags, int n_flags, bool all) {
    acf_options *o;
    cli_flag list[CLI_FLAGS_MAX];
    const int n = cli_page_flags(page, flags, n_flags, NULL, list);
    if (acf_options_create(&o) != ACF_OK) return cli_failed(page->name);
    cli_print("Usage: acflow %s %s\n\n", page->name, page->usage);
    show_text(page->about, 0);
    if (all && page->details) cli_print("\n"), show_text(page->details, 0);
    cli_print("\nExamples:\n%s%s", page->examples, all && page->more_examples ? page->more_examples : "");
    const int hidden = show_sections(page, list, n, o, all);
    acf_options_free(o);
    cli_print("\n");
    if (hidden)
        cli_print("More: acflow help %s --all (%d further options), %s\n", page->name, hidden, page->more);
    else
        cli_print("More: %s\n", page->more);
    return 0;
}
