/* The pages of the commands: the contents of --help, man pages and completion. All come from the option table
 * (acf_options_at) and the flags of the commands, under the same headings. */
#ifndef ACF_CLI_HELP_H
#define ACF_CLI_HELP_H

#include "cli/flags.h"

/* The page of a subcommand. The short help shows `about`, `examples` and the essential options, in at most 60 lines;
 * --all and the man page add the rest. */
typedef struct cli_page {
    const char *name, *usage;
    const char *about;           /* one or two sentences: what the command does */
    const char *details;         /* paragraphs */
    const char *examples;        /* two or three lines "  acflow ..." */
    const char *more_examples;   /* more examples, or NULL */
    const char *more;            /* where to read more, such as "docs/tables.md" */
    const char *const *sections; /* of the options that it takes, then NULL; NULL: all */
    /* The words that its first argument may be, k = 0, 1, ... until NULL, for the completion; NULL: a file. */
    const char *(*word)(int k);
} cli_page;

#define CLI_FLAGS_MAX 24 /* flags of a command, with those of every command */

/* The values of the flags that every command has; NULL: not given. */
typedef struct cli_common {
    const char *config, *progress, *quiet, *help, *all;
} cli_common;

/* The command's own flags, then those of every command, with their places in `values` (NULL: none). Returns their
 * number. */
int cli_page_flags(const cli_page *page, const cli_flag *flags, int n_flags, cli_common *values,
                   cli_flag out[CLI_FLAGS_MAX]);

/* Headings in the order of the help, until NULL; *section: the name in flags and options. */
const char *cli_heading(int k, const char **section);

/* The allowed values, for people: "a whole number from 0 to 1024; default 0". */
void cli_option_facts(const acf_option_info *d, char *out, size_t cap);

/* The text after the name: " N", " TEXT", "". */
const char *cli_option_metavar(const acf_option_info *d);

/* Prints the page with these flags and the command's options: the essential ones, or all. Returns the exit code. */
int cli_show_page(const cli_page *page, const cli_flag *flags, int n_flags, bool all);

#endif
