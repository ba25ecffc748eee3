/* Man pages in the classic macros (man(7)), which every roff knows: see manual.h.
 *
 *     cli_page, cli_flag  --->  .TH .SH NAME SYNOPSIS DESCRIPTION  OPTIONS (.SS headings)  EXAMPLES  SEE ALSO
 *     acf_options_at      --------------------------------------------^
 *
 * Text is left-adjusted and not hyphenated, so that a search in the page finds names of options and files. There is no
 * date, so the same sources give the same bytes. */
#include "cli/manual.h"

#include <ctype.h>
#include <string.h>

/* n bytes as roff text that prints unchanged: typewriter quotes and dashes, so that text copied from a page works. */
static void put(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        if (c == '\\')
            cli_print("\\e");
        else if (c == '-')
            cli_print("\\-");
        else if (c == '\'')
            cli_print("\\(aq");
        else if (c == '"')
            cli_print("\\(dq");
        else if (c == '^')
            cli_print("\\(ha");
        else if (c == '~')
            cli_print("\\(ti");
        else if (c == '`')
            cli_print("\\(ga");
        else
            cli_print(c == '.' && i == 0 ? "\\&%c" : "%c", c); /* a dot at the begin of a line would be a request */
    }
}

static void put_text(const char *text) { put(text, strlen(text)); }

/* Lines of text. An indented line is printed unchanged; the others are filled to paragraphs. */
static void put_lines(const char *text) {
    bool verbatim = false;
    while (*text) {
        const size_t n = strcspn(text, "\n");
        if ((*text == ' ') != verbatim) cli_print((verbatim = !verbatim) ? ".PP\n.nf\n" : ".fi\n.PP\n");
        put(text, n);
        cli_print("\n");
        text += n + (text[n] == '\n');
    }
    if (verbatim) cli_print(".fi\n");
}

/* The name as in man's index: ACFLOW-FIT. */
static void put_head(const char *command, const char *about) {
    cli_print(".\\\" Printed by acflow help --man.\n.TH ACFLOW");
    if (*command) cli_print("\\-");
    for (const char *s = command; *s; s++) cli_print("%c", toupper((unsigned char)*s));
    cli_print(" 1 \"\" \"acflow %s\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\nacflow%s%s \\- ", acf_version(),
              *command ? "\\-" : "", command);
    put_text(about);
    cli_print("\n.SH SYNOPSIS\n.B acflow%s%s\n", *command ? " " : "", command);
}

static void put_flag(const cli_flag *f) {
    cli_print(".TP\n");
    if (f->letter) cli_print("\\fB\\-%c\\fR, ", f->letter);
    cli_print("\\fB\\-\\-");
    put_text(f->name);
    cli_print("\\fR");
    if (f->metavar) cli_print(" \\fI%s\\fR", f->metavar);
    cli_print("\n");
    put_text(f->help);
    cli_print("\n");
}

static void put_option(const acf_option_info *d) {
    char facts[512];
    cli_option_facts(d, facts, sizeof facts);
    cli_print(".TP\n\\fB\\-\\-");
    put_text(d->name);
    cli_print("\\fR\\fI");
    put_text(cli_option_metavar(d));
    cli_print("\\fR\n");
    put_text(d->help);
    cli_print("\n(");
    put_text(facts);
    cli_print(")\n");
}

/* Flags and options of a section, under its heading if there are any. */
static void put_section(const cli_page *page, const cli_flag *flags, int n_flags, const acf_options *o,
                        const char *section, const char *heading) {
    acf_option_info d;
    int n = 0;
    for (int i = 0; i < n_flags; i++) {
        if (strcmp(flags[i].section, section) != 0) continue;
        if (n++ == 0) cli_print(".SS %s\n", heading);
        put_flag(&flags[i]);
    }
    for (int i = 0; i < acf_options_count(o) && acf_options_at(o, i, &d) == ACF_OK; i++) {
        if (strcmp(d.section, section) != 0 || !cli_takes(page->sections, &d)) continue;
        if (n++ == 0) cli_print(".SS %s\n", heading);
        put_option(&d);
    }
}

/* The other pages, as --help lists them, separated by commas. */
static void put_see_also(const cli_program *p, const cli_command *self) {
    cli_print(".SH SEE ALSO\n");
    if (self) cli_print(".BR acflow (1),\n");
    const cli_command *last = p->commands[p->n - 1] == self ? p->commands[p->n - 2] : p->commands[p->n - 1];
    for (int i = 0; i < p->n; i++)
        if (p->commands[i] != self)
            cli_print(".BR acflow\\-%s (1)%s\n", p->commands[i]->name, p->commands[i] == last ? "" : ",");
}

int cli_print_man(const cli_program *p, const cli_command *c) {
    acf_options *o;
    cli_flag flags[CLI_FLAGS_MAX];
    const char *section, *heading;
    const int n = cli_page_flags(c->page, c->flags, c->n_flags, NULL, flags);
    if (acf_options_create(&o) != ACF_OK) return cli_failed(c->name);
    put_head(c->name, c->summary);
    put_text(c->page->usage);
    cli_print("\n.SH DESCRIPTION\n");
    put_lines(c->page->about);
    if (c->page->details) {
        cli_print(".PP\n");
        put_lines(c->page->details);
    }
    cli_print(".SH OPTIONS\n");
    for (int k = 0; (heading = cli_heading(k, &section)); k++) put_section(c->page, flags, n, o, section, heading);
    acf_options_free(o);
    cli_print(".SH EXAMPLES\n");
    put_lines(c->page->examples);
    if (c->page->more_examples) put_lines(c->page->more_examples);
    put_see_also(p, c);
    return 0;
}

int cli_print_program_man(const cli_program *p) {
    static const cli_flag help = {"help", 'h', NULL, "general", "Show a summary; after a command, its help"};
    static const cli_flag version = {"version", 0, NULL, "general", "Show the version"};
    put_head("", p->about);
    put_text("COMMAND [OPTIONS]");
    cli_print("\n.SH COMMANDS\n");
    for (int i = 0; i < p->n; i++) {
        cli_print(".TP\n.B %s\n", p->commands[i]->name);
        put_text(p->commands[i]->summary);
        cli_print("; see\n.BR acflow\\-%s (1)\n", p->commands[i]->name);
    }
    cli_print(".SH OPTIONS\n");
    put_flag(&help);
    put_flag(&version);
    cli_print(".SH EXIT STATUS\n");
    put_lines(p->exit_codes);
    cli_print(".SH EXAMPLES\n");
    put_lines(p->examples);
    put_see_also(p, NULL);
    return 0;
}
