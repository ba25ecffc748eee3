/* The pages of the commands: what --help, the man pages and the completion print. All come from the option table
 * (acf_options_at) and the flags of the commands, under the same headings. */
#ifndef ACF_CLI_HELP_H
#define ACF_CLI_HELP_H

#include "cli/flags.h"

/* A subcommand's page. The short help shows `about`, `examples` and the essential options, in at most 60 lines; --all and
 * the man page add the rest. */
typedef struct cli_page {
    const char *name, *usage;
    const char *about;           /* one or two sentences: what the command does */
    const char *details;         /* paragraphs */
    const char *examples;        /* two or three lines "  acflow ..." */
    const char *more_examples;   /* others, or NULL */
    const char *more;            /* where to read more, such as "docs/tables.md" */
    const char *const *sections; /* of the options that it takes, then NULL; NULL: all */
    const char *(*word)(int k);  /* what its first argument may be, word k = 0, 1, ... until NULL, for the completion;
                                  * NULL: a file */
} cli_page;

#define CLI_FLAGS_MAX 24 /* of a command, with those that every one has */

/* Places for the values of the flags that every command has; NULL: not given. */
typedef struct cli_common {
    const char *config, *progress, *quiet, *help, *all;
} cli_common;

/* The command's own flags, then those that every one has, with their places in `values` (NULL: none). Returns how many. */
int cli_page_flags(const cli_page *page, const cli_flag *flags, int n_flags, cli_common *values,
                   cli_flag out[CLI_FLAGS_MAX]);

/* Headings in the order of the help, until NULL; *section: the name that flags and options have. */
const char *cli_heading(int k, const char **section);

/* What is allowed, for a person: "a whole number from 0 to 1024; default 0". */
void cli_option_facts(const acf_option_info *d, char *out, size_t cap);

/* What stands behind the name: " N", " TEXT", "". */
const char *cli_option_metavar(const acf_option_info *d);

/* Prints the page with these flags and the command's options: what most users need, or all of it. Returns the exit
 * code. */
int cli_show_page(const cli_page *page, const cli_flag *flags, int n_flags, bool all);

#endif
