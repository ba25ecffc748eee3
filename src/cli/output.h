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

/* A file of a command, and how its user calls it: "-o", "--model", "the table". path NULL: not given; "-": standard input or output. */
typedef enum cli_way {
    CLI_READS,
    CLI_WRITES,
    CLI_FILLS
} cli_way; /* CLI_FILLS: may be a folder, so cli_check_output is left to the command */
typedef struct cli_file {
    cli_way way;
    const char *option, *path;
} cli_file;

/* Before anything is read: no file that is written may be one that is read, or that another option writes, under whatever name: ./t.csv, a link, a
 * second name on the disk. Nor may it be an image of a folder that is read. Includes the files that the job's options name (config, schema, start,
 * checkpoint), and cli_check_output. */
int cli_check_files(const cli_job *job, const cli_file *files, int n);

/* The same path; "-" for NULL and /dev/stdout, which are standard output as well. */
const char *cli_destination(const char *path);

/* path: as cli_destination takes it. */
int cli_output_open(cli_output *out, const char *path);
/* Puts the file in place where code is 0, else drops it. */
int cli_output_close(cli_output *out, int code);

/* All that the library writes about an object. */
int cli_put_report(const char *command, const char *path, cli_writer write, const void *object, acf_format format);

/* text as one CSV field. */
void cli_put_field(FILE *f, const char *text);

#endif
