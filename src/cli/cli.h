/* The command line's own shared pieces: the list of subcommands and how one speaks to its user.
 *
 * This folder uses the public header only, like any other program. Data goes to stdout, everything else to stderr. */
#ifndef ACF_CLI_H
#define ACF_CLI_H

#include "acflow.h"

#include <stdbool.h>

/* A subcommand: one file, one line in commands.c. `run` gets the arguments behind its name and returns the exit code;
 * `page` and `flags` (help.h) are what --help, the man page and the completion are printed from. */
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

/* Says a sentence on stderr, "acflow: ..." (a warning is called one), unless the level asked for is lower. */
void cli_say(cli_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* From here on, speak at the level of the option "log-level". */
void cli_listen(const acf_options *o);

/* `acflow ... | head` ends early and without a word, once head has what it wants: functions return this code then, and the program ends with 0. */
#define CLI_ENOUGH 141      /* as shells call the end by SIGPIPE */
bool cli_reader_left(void); /* Is standard output a pipe that nobody reads any more? */

/* Says the library's last error, with a hint to --help when the command line is to blame; returns the exit code. */
int cli_failed(const char *command);

/* The same for a mistake the command found itself: exit code 2. */
int cli_usage(const char *command, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for memory that is not there: exit code 5. */
int cli_no_memory(const char *what);

/* A text of the library in which options are called as flags are: "the option 'header=no'" becomes "--header no". Takes text over (from malloc; NULL
 * is allowed), gives one to be freed: the same where there is no memory. */
char *cli_in_flags(char *text);

/* Writes to stdout. cli_close flushes it at the end and turns a write that failed (a full disk) into exit code 3. */
void cli_print(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
int cli_close(int exit_code);

#endif
