/* acflow, the command line: picks the subcommand and runs it.
 *
 * A new subcommand is one file, one declaration in cli.h and one entry in `cli_commands`; help, man page, completion, "did you
 * mean" and dispatch follow from the list. */
#include "cli/manual.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_command *const cli_commands[] = {&cli_fit,   &cli_impute, &cli_score, &cli_sample, &cli_eval,
                                           &cli_gibbs, &cli_info,   &cli_synth, &cli_plot,   NULL};
enum { N_COMMANDS = sizeof cli_commands / sizeof cli_commands[0] - 1 };

static const cli_command *find(const char *name) {
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(cli_commands[i]->name, name) == 0) return cli_commands[i];
    return NULL;
}

static const cli_program program = {
    cli_commands, N_COMMANDS, "one model of a table, or of images, that answers every conditional question about it",
    "Exit codes: 0 ok, 1 internal error, 2 usage, 3 data or files, 4 model file, 5 device or memory,\n"
    "6 training diverged, 130 interrupted.\n",
    "  acflow impute table.csv -o complete.csv           fill the holes of a table\n"
    "  acflow fit table.csv -o model.safetensors         learn once, ask often\n"
    "  acflow score new.csv --model model.safetensors --cells\n"
    "  acflow fit digits.idx.gz --preset tiny -o m.safetensors      the same of images\n"
    "  acflow help impute\n"};

/* The first page a new user sees: what it is, the commands, and lines that work. */
static int general_help(void) {
    cli_print("acflow: %s\n\nUsage: acflow COMMAND [OPTIONS]\n\n", program.about);
    for (int i = 0; i < N_COMMANDS; i++) cli_print("  %-8s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    cli_print("  %-8s %s\n", "help", "show this page, or that of a command");
    cli_print("\n"
              "  -h, --help     show this page\n"
              "  --version      show the version\n"
              "\n%s\nExamples:\n%s",
              program.exit_codes, program.examples);
    return 0;
}

/* Fails with the command that was probably meant; "help" is one of them. */
static int unknown(const char *word) {
    const char *names[N_COMMANDS + 1];
    for (int i = 0; i < N_COMMANDS; i++) names[i] = cli_commands[i]->name;
    names[N_COMMANDS] = "help";
    int near = acf_nearest_name(word, names, N_COMMANDS + 1);
    if (near < 0) return cli_usage("", "unknown command '%s'", word);
    return cli_usage("", "unknown command '%s'; did you mean '%s'?", word, names[near]);
}

/* For `make man`: acflow help --commands, --completion, --man [COMMAND]. Not in --help, as no user needs them. */
static int print_for_make(int argc, char **argv) {
    const char *what = argv[0];
    const bool man = strcmp(what, "--man") == 0;
    if (argc > 1 + man)
        return cli_usage("", "help %s takes %s, but there is also '%s'", what, man ? "one command" : "nothing",
                         argv[1 + man]);
    if (strcmp(what, "--completion") == 0) return cli_print_completion(&program);
    if (strcmp(what, "--commands") == 0) {
        for (int i = 0; i < N_COMMANDS; i++) cli_print("%s\n", cli_commands[i]->name);
        return 0;
    }
    if (!man) return cli_usage("", "help takes a command, but there is '%s'", what);
    if (argc == 1) return cli_print_program_man(&program);
    const cli_command *c = find(argv[1]);
    return c ? cli_print_man(&program, c) : unknown(argv[1]);
}

/* acflow help [COMMAND]: the same page as acflow COMMAND --help. */
static int help_on(int argc, char **argv) {
    if (argc == 0) return general_help();
    if (argv[0][0] == '-') return print_for_make(argc, argv);
    if (argc > 1) return cli_usage("", "help takes one command, but there is also '%s'", argv[1]);
    if (strcmp(argv[0], "help") == 0) return general_help();
    const cli_command *c = find(argv[0]);
    return c ? cli_show_page(c->page, c->flags, c->n_flags) : unknown(argv[0]);
}

/* Threads of OpenMP that wait for each other spin, by default for about a millisecond: where other programs want the cores too, that is
 * most of the time (a fit took nine times as long). GNU's runtime reads the setting once, before main, from the environment alone. So a
 * command that computes starts the program again, once. A setting of the user's stands; where /proc is not mounted the program runs as
 * it is. */
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
    signal(SIGPIPE, SIG_IGN); /* a reader that leaves early is no reason to die half-way: cli_close decides */
    signal(SIGXFSZ,
           SIG_IGN); /* a limit on the size of files is a full disk: the write fails, and its sentence is said */
    return cli_close(dispatch(argc, argv));
}
