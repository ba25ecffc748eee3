/* Shared by the subcommands: their list, and messages to the user.
 *
 * This folder uses the public header only, like any other program. Data goes to stdout, everything else to stderr. */
#ifndef ACF_CLI_H
#define ACF_CLI_H

#include "acflow.h"

#include <stdbool.h>

/* A subcommand: one file, one line in commands.c. `run` gets the arguments after its name and returns the exit code;
 * --help, the man page and the completion are printed from `page` and `flags` (help.h). */
typedef struct cli_command {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
    const struct cli_page *page;
    const struct cli_flag *flags;
    int n_flags;
} cli_command;

extern const cli_command *const cli_commands[]; /* all of them, then NULL */

extern const cli_command cli_fit, cli_impute, cli_score, cli_sample, cli_eval, cli_gibbs, cli_info, cli_synth, cli_plot;

/* Levels of --log-level, in its order. */
typedef enum cli_level { CLI_QUIET, CLI_ERROR, CLI_WARN, CLI_INFO, CLI_DEBUG } cli_level;

/* Prints a message on stderr, "acflow: ..." (with "warning" for one), unless the chosen level is lower. */
void cli_say(cli_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the level to that of the option "log-level". */
void cli_listen(const acf_options *o);

/* `acflow ... | head` ends early and without a message: functions return this code then, and the program ends with
 * 0. */
#define CLI_ENOUGH 141      /* as shells call the end by SIGPIPE */
bool cli_reader_left(void); /* Is standard output a pipe without a reader? */

/* Prints the library's last error, with a hint to --help if the command line is wrong. Returns the exit code. */
int cli_failed(const char *command);

/* The same for an error that the command itself found: exit code 2. */
int cli_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same without memory: exit code 5. */
int cli_no_memory(const char *what);

/* Rewrites options in a text of the library as flags: "the option 'header=no'" becomes "--header no". Takes text over
 * (from malloc; NULL is allowed) and gives one to free; without memory the same text. */
char *cli_in_flags(char *text);

/* Writes to stdout. cli_close flushes it at the end; a failed write (a full disk) gives exit code 3. */
void cli_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_close(int exit_code);

#endif
