/* Where a subcommand's own lines go: standard output, or a file that appears when it is whole. */
#ifndef ACF_CLI_OUTPUT_H
#define ACF_CLI_OUTPUT_H

#include "cli/cli.h"

#include <stdio.h>

typedef struct cli_output {
    FILE *file;
    const char *path; /* NULL: standard output */
    char *temporary;
} cli_output;

/* path NULL or "-": standard output. Returns 0, or the exit code, having said why. */
int cli_output_open(cli_output *out, const char *path);
/* Puts the file in place where code is 0, else drops it. Returns the exit code. */
int cli_output_close(cli_output *out, int code);

/* text as one CSV field. */
void cli_put_field(FILE *f, const char *text);

#endif
