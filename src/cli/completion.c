/* The completion for bash: see manual.h. It needs nothing but bash itself, not the helpers of the package bash-completion.
 *
 * The script is a head, some lines for each command (its words, its first argument where that is a word, too, the options that take a file, those
 * with a choice), and a tail that picks
 * from them. Words hold letters, digits and dashes alone, so nothing needs quoting. */
#include "cli/manual.h"

#include <string.h>

static const char head[] =
    "# bash completion for acflow, printed by acflow help --completion\n"
    "_acflow() {\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n"
    "    local words= values= takes= first=\n"
    "    COMPREPLY=()\n"
    "    # bash takes --name=VALUE for three words\n"
    "    [ \"$word\" = = ] && word=\n"
    "    [ \"$last\" = = ] && last=${COMP_WORDS[COMP_CWORD-2]}\n";

/* Where a value is due: one of a choice, or a file, or nothing that could be known. */
static const char tail[] =
    "    if [ \"$COMP_CWORD\" = 1 ] || { [ \"$COMP_CWORD\" = 2 ] && [ \"$command\" = help ]; }; then\n"
    "        COMPREPLY=($(compgen -W \"$commands\" -- \"$word\"))\n"
    "    elif [ -n \"$values\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
    "    elif [ \"$takes\" = file ]; then\n"
    "        _acflow_files \"$word\"\n"
    "    elif [ \"$takes\" = other ]; then\n"
    "        return 0\n"
    "    elif [[ $word == -* ]]; then\n"
    "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
    "    elif [ \"$COMP_CWORD\" = 2 ] && [ -n \"$first\" ]; then\n"
    "        COMPREPLY=($(compgen -W \"$first\" -- \"$word\"))\n"
    "    else\n"
    "        _acflow_files \"$word\"\n"
    "    fi\n"
    "}\n"
    "# A name may hold blanks: one a line, and quoted by readline.\n"
    "_acflow_files() {\n"
    "    local IFS=$'\\n'\n"
    "    COMPREPLY=($(compgen -f -- \"$1\"))\n"
    "    compopt -o filenames 2>/dev/null\n"
    "    return 0\n"
    "}\n"
    "complete -F _acflow acflow\n";

/* What stands behind a flag: words of a choice, or what it takes. */
static void put_value(const char *choices, bool file) {
    if (!choices) {
        cli_print(") takes=%s ;;\n", file ? "file" : "other");
        return;
    }
    cli_print(") values='");
    for (; *choices; choices++) cli_print("%c", *choices == '|' ? ' ' : *choices);
    cli_print("' ;;\n");
}

static bool is_one_of(const char *word, const char *const *list) {
    while (*list && strcmp(word, *list) != 0) list++;
    return *list;
}

static void put_flag_value(const cli_flag *f) {
    if (!f->metavar) return;
    cli_print("                --%s", f->name);
    if (f->letter) cli_print("|-%c", f->letter);
    put_value(f->choices, is_one_of(f->metavar, (const char *const[]){"FILE", "IMAGES", "MASK", NULL}));
}

/* Text that has words of its own though any other may stand there, and text that is the name of a file; of all other nothing is known. */
static void put_option_value(const acf_option_info *d) {
    static const struct {
        const char *name, *words;
    } texts[] = {{"device", "auto|cpu|cuda"}, {"separator", "auto|tab|space"}, {"quote", "auto|none"}};
    static const char *const files[] = {"schema", "checkpoint", "init-from", NULL};
    const char *words = d->choices;
    if (strcmp(d->type, "bool") == 0) return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(d->name, texts[i].name) == 0) words = texts[i].words;
    cli_print("                --%s", d->name);
    put_value(words, is_one_of(d->name, files));
}

static int put_command(const cli_command *c) {
    cli_flag flags[CLI_FLAGS_MAX];
    acf_options *o;
    acf_option_info d;
    const int n = cli_page_flags(c->page, c->flags, c->n_flags, NULL, flags);
    if (acf_options_create(&o) != ACF_OK) return cli_failed(c->name);
    cli_print("        %s)\n            words='", c->name);
    for (int i = 0; i < n; i++) cli_print("%s--%s", i ? " " : "", flags[i].name);
    for (int i = 0; i < acf_options_count(o) && acf_options_at(o, i, &d) == ACF_OK; i++) {
        if (!cli_takes(c->page->sections, &d)) continue;
        cli_print(" --%s", d.name);
        if (strcmp(d.type, "bool") == 0) cli_print(" --no-%s", d.name);
    }
    cli_print("'\n");
    if (c->page->word) {
        cli_print("            first='");
        for (int k = 0; c->page->word(k); k++) cli_print("%s%s", k ? " " : "", c->page->word(k));
        cli_print("'\n");
    }
    cli_print("            case $last in\n");
    for (int i = 0; i < n; i++) put_flag_value(&flags[i]);
    for (int i = 0; i < acf_options_count(o) && acf_options_at(o, i, &d) == ACF_OK; i++)
        if (cli_takes(c->page->sections, &d)) put_option_value(&d);
    cli_print("            esac ;;\n");
    acf_options_free(o);
    return 0;
}

int cli_print_completion(const cli_program *p) {
    cli_print("%s    local commands='", head);
    for (int i = 0; i < p->n; i++) cli_print("%s ", p->commands[i]->name);
    cli_print("help --help --version'\n    case $command in\n");
    int code = 0;
    for (int i = 0; !code && i < p->n; i++) code = put_command(p->commands[i]);
    if (!code) cli_print("    esac\n%s", tail);
    return code;
}
