/* Man pages and the completion for bash, printed from the same source as --help. */
#ifndef ACF_CLI_MANUAL_H
#define ACF_CLI_MANUAL_H

#include "cli/job.h"

/* The program as its first page describes it. */
typedef struct cli_program {
    const cli_command *const *commands;
    int n;
    const char *about;                 /* a line */
    const char *exit_codes, *examples; /* lines; an example follows two blanks */
} cli_program;

/* acflow.1, and acflow-COMMAND.1, as roff on stdout. Return the exit code. */
int cli_print_program_man(const cli_program *p);
int cli_print_man(const cli_program *p, const cli_command *c);

/* A script for bash: commands; flags and options of a command; words of an option that has a choice; files. */
int cli_print_completion(const cli_program *p);

#endif
