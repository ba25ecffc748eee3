/* Where a subcommand's own lines go: standard output, or a file that appears when it is whole. Functions return 0, or the exit code, having said why. */
#ifndef ACF_CLI_OUTPUT_H
#define ACF_CLI_OUTPUT_H

#include "cli/job.h"

#include <stdio.h>

typedef struct cli_output {
    FILE *file;
    const char *path;         /* NULL: standard output */
    char *target, *temporary; /* NULL: path is no file that could be replaced, and is written to */
} cli_output;

/* Before training: may a file be made at path? Not where its folder is absent or read-only; who is told afterwards has lost hours. */
int cli_check_output(const char *path);

/* path NULL or "-": standard output. */
int cli_output_open(cli_output *out, const char *path);
/* Puts the file in place where code is 0, else drops it. */
int cli_output_close(cli_output *out, int code);

/* All that the library writes about an object. */
int cli_put_report(const char *command, const char *path, cli_writer write, const void *object, bool json);

/* text as one CSV field. */
void cli_put_field(FILE *f, const char *text);

#endif
