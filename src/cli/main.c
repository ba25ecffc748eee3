/* acflow, the command line: selects the subcommand and runs it. commands.c lists the subcommands. */
#include "cli/manual.h"
#include "cli/names.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_MAX 32

static int count(void) {
    int n = 0;
    while (cli_commands[n]) n++;
    return n;
}

static const cli_command *find(const char *name) {
    for (const cli_command *const *c = cli_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0) return *c;
    return NULL;
}

static cli_program program(void) {
    return (cli_program){
        cli_commands, count(), "one model of a table, or of images, for every conditional distribution",
        "Exit codes: 0 ok, 1 internal error, 2 usage, 3 data or files, 4 model file, 5 device or memory,\n"
        "6 training diverged, 130 interrupted.\n",
        "  acflow impute table.csv -o complete.csv           fill in the missing cells of a table\n"
        "  acflow fit table.csv -o model.safetensors         fit once, query often\n"
        "  acflow score new.csv --model model.safetensors --cells\n"
        "  acflow fit digits.idx.gz --preset tiny -o m.safetensors      a model of images\n"};
}

/* The first page for a new user: what acflow is, the commands, and examples that work. */
static int general_help(void) {
    const cli_program p = program();
    cli_print("acflow: %s\n\nUsage: acflow COMMAND [OPTIONS]\n\n", p.about);
    for (int i = 0; i < p.n; i++) cli_print("  %-8s %s\n", p.commands[i]->name, p.commands[i]->summary);
    cli_print("  %-8s %s\n", "help", "show this page, or help on a command: acflow help impute");
    cli_print("\n"
              "  -h, --help     show this page\n"
              "  --version      show the version\n"
              "\n%s\nExamples:\n%s",
              p.exit_codes, p.examples);
    return 0;
}

/* Fails with the command that was probably meant; "help" is one of them. */
static int unknown(const char *word) {
    const char *names[NAMES_MAX];
    int n = 0;
    char seen[CLI_EXCERPT_MAX];
    for (; cli_commands[n] && n < NAMES_MAX - 1; n++) names[n] = cli_commands[n]->name;
    names[n++] = "help";
    const int near = cli_nearest(word, names, n);
    cli_excerpt(seen, word);
    if (near < 0) return cli_usage("", "unknown command '%s'", seen);
    return cli_usage("", "unknown command '%s'; did you mean '%s'?", seen, names[near]);
}

/* For `make man`: acflow help --commands, --completion, --man [COMMAND]. Not in --help, as users do not need them. */
static int print_for_make(int argc, char **argv) {
    const char *what = argv[0];
    const bool man = strcmp(what, "--man") == 0;
    if (argc > 1 + man)
        return cli_usage("", "help %s takes %s, but there is also '%s'", what, man ? "one command" : "nothing",
                         argv[1 + man]);
    const cli_program p = program();
    if (strcmp(what, "--completion") == 0) return cli_print_completion(&p);
    if (strcmp(what, "--commands") == 0) {
        for (int i = 0; i < p.n; i++) cli_print("%s\n", p.commands[i]->name);
        return 0;
    }
    if (!man) return cli_usage("", "help takes a command, but there is '%s'", what);
    if (argc == 1) return cli_print_program_man(&p);
    const cli_command *c = find(argv[1]);
    return c ? cli_print_man(&p, c) : unknown(argv[1]);
}

/* acflow help [COMMAND] [--all]: the same page as acflow COMMAND --help. */
static int help_on(int argc, char **argv) {
    if (argc == 0) return general_help();
    const bool first = strcmp(argv[0], "--all") == 0, all = first || (argc > 1 && strcmp(argv[1], "--all") == 0);
    const char *word = argv[first ? 1 : 0];
    if (!first && word[0] == '-') return print_for_make(argc, argv);
    if (argc > 1 + all) return cli_usage("", "help takes one command, but there is also '%s'", argv[1 + all]);
    if (!word || strcmp(word, "help") == 0) return general_help();
    const cli_command *c = find(word);
    return c ? cli_show_page(c->page, c->flags, c->n_flags, all) : unknown(word);
}

/* Waiting OpenMP threads spin, by default for about a millisecond. While other programs need the cores, that takes most
 * of the time (a fit took nine times as long). GNU's runtime reads the setting once, before main, from the environment
 * alone. So a command that computes starts the program again, once. A setting of the user stays; without /proc the
 * program runs as it is. */
static void spin_less(char **argv) {
    if (getenv("OMP_WAIT_POLICY") || getenv("GOMP_SPINCOUNT") || setenv("GOMP_SPINCOUNT", "2000", 1) != 0) return;
    execv("/proc/self/exe", argv);
}

/* Options belong to a command and follow it; only --help and --version stand alone. */
static int dispatch(int argc, char **argv) {
    if (argc < 2) return cli_usage("", "no command given");
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return general_help();
    if (strcmp(word, "help") == 0) return help_on(argc - 2, argv + 2);
    if (strcmp(word, "--version") == 0) {
        cli_print("acflow %s\n", acf_version());
        return 0;
    }
    if (word[0] == '-') return cli_usage("", "unknown option '%s'; options follow the command", word);
    const cli_command *c = find(word);
    if (c && c != &cli_info && c != &cli_synth) spin_less(argv);
    return c ? c->run(argc - 2, argv + 2) : unknown(word);
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves early must not end the program: cli_close decides */
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes acts like a full disk: the write fails with a message */
    return cli_close(dispatch(argc, argv));
}
