/* Shared by the subcommands that work on tables: their pages, their flags, tables and models from files, and training
 * with progress. */
#ifndef ACF_CLI_JOB_H
#define ACF_CLI_JOB_H

#include "cli/cli.h"
#include "cli/help.h"

/* A run of a subcommand: its options, and the flags of every command. */
typedef struct cli_job {
    const cli_page *page;
    acf_options *o;
    cli_common is;  /* the values of these flags */
    char *kept;     /* texts from the config file; owned */
    int n_rest;     /* arguments, moved to the front of argv */
    bool own_state; /* the checkpoint is beside the model, where cli_keep_state put it */
} cli_job;

/* Reads the command line and the config file. Returns -1 to go on; otherwise the exit code, with the job closed. Close
 * with cli_job_close. */
int cli_job_open(cli_job *job, const cli_page *page, const cli_flag *flags, int n_flags, int argc, char **argv);
void cli_job_close(cli_job *job);

/* Shows the columns of a table that a model is fitted to, with their kinds, and its warnings, unless --quiet. False
 * without memory, with a message. */
bool cli_show_table(const cli_job *job, const acf_table *t);

/* Prints the warnings of a table. */
void cli_say_warnings(const acf_table *t);

/* Before rows are scored: warns if they are identified by ids and the model's by numbers, or the other way. */
void cli_say_ids(const cli_job *job, const acf_model *m);

/* Text of any length from the library; free it. NULL without memory, with a message. */
typedef acf_status (*cli_writer)(const void *object, acf_format format, char *out, size_t cap, size_t *needed);
char *cli_text(const char *command, cli_writer write, const void *object, acf_format format);

/* Prepares the checkpoint of a model that will be saved at `model`. Without --checkpoint, an interrupted fit, or one
 * that runs out of memory, is kept in MODEL.checkpoint, and --resume continues from there. Refuses an existing file
 * without --resume, and --resume without the file. model NULL, a device or a pipe: nothing is kept. Returns 0 or the
 * exit code, after a message. */
int cli_keep_state(cli_job *job, const char *model);
/* Removes the checkpoint once the model is saved. */
void cli_drop_state(const cli_job *job);

/* Trains on t with the job's options, showing progress on stderr. ^C and SIGTERM end it after the step, a second ^C at
 * once. An interrupted run also gives its model. valid: the validation table; NULL: none. log: a file that gets every
 * report as a line of JSON; NULL: none. If it can no longer be written, it is given up with a message and training
 * continues. Returns 0 or the exit code (130: interrupted), after a message. */
int cli_fit_table(cli_job *job, const acf_table *t, const acf_table *valid, const char *log, acf_model **out);
int cli_fit_images(cli_job *job, const acf_images *im, const char *log, acf_model **out);
/* The same within an evaluation, which fits to the cells that it does not hide. A signal ends it at once, as there is
 * nothing to save. */
int cli_eval_table(cli_job *job, const acf_table *truth, const char *log, acf_evaluation **out);

/* Warns of options of models and training on the command line, which have no effect if a model is given. */
int cli_say_unused(const cli_job *job);

/* A whole number in the text, from least to most; otherwise false, with a message. */
bool cli_number(const char *command, const char *flag, const char *text, long long least, long long most,
                long long *out);

#endif
