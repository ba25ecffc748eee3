/* The output of a subcommand: standard output, or a file that appears when it is complete. Functions return 0, or the
 * exit code after a message. */
#ifndef ACF_CLI_OUTPUT_H
#define ACF_CLI_OUTPUT_H

#include "cli/job.h"

#include <stdio.h>

typedef struct cli_output {
    FILE *file;
    const char *path;         /* NULL: standard output */
    char *target, *temporary; /* NULL: path cannot be replaced, and is written to directly */
} cli_output;

/* Before training: can a file be made at path? Not if its folder is absent or read-only; a user who is told afterwards
 * has lost hours. */
int cli_check_output(const char *path);

/* A file of a command, and its name for the user: "-o", "--model", "the table". path NULL: not given; "-": standard
 * input or output. */
typedef enum cli_way {
    CLI_READS,
    CLI_WRITES,
    CLI_FILLS
} cli_way; /* CLI_FILLS: may be a folder, so the command itself calls cli_check_output */
typedef struct cli_file {
    cli_way way;
    const char *option, *path;
} cli_file;

/* Before anything is read: refuses to write a file that is also read, or that another option writes, under any name:
 * ./t.csv, a link, a second name on the disk. Also refuses to overwrite an image of a folder that is read. Includes the
 * files of the job's options (config, schema, init-from, checkpoint), and cli_check_output. */
int cli_check_files(const cli_job *job, const cli_file *files, int n);

/* The same path; "-" for NULL and /dev/stdout, which are also standard output. */
const char *cli_destination(const char *path);

/* path: as for cli_destination. */
int cli_output_open(cli_output *out, const char *path);
/* Puts the file in place if code is 0, otherwise drops it. */
int cli_output_close(cli_output *out, int code);

/* Everything that the library writes about an object. */
int cli_put_report(const char *command, const char *path, cli_writer write, const void *object, acf_format format);

/* text as one CSV field. */
void cli_put_field(FILE *f, const char *text);

#endif
