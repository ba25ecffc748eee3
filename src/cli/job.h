/* What the subcommands that work on tables share: their pages, their flags, tables and models from files, and training that shows how it
 * goes. */
#ifndef ACF_CLI_JOB_H
#define ACF_CLI_JOB_H

#include "cli/cli.h"
#include "cli/help.h"

/* A run of a subcommand: its options, and the flags every one has. */
typedef struct cli_job {
    const cli_page *page;
    acf_options *o;
    cli_common is;  /* the values of these flags */
    char *kept;     /* texts from the config file; owned */
    int n_rest;     /* arguments, moved to the front of argv */
    bool own_state; /* the checkpoint stands beside the model, where cli_keep_state put it */
} cli_job;

/* Reads the command line and the config file. Returns -1 to go on; else the exit code, and the job is closed already. Close with
 * cli_job_close. */
int cli_job_open(cli_job *job, const cli_page *page, const cli_flag *flags, int n_flags, int argc, char **argv);
void cli_job_close(cli_job *job);

/* Shows what the columns of a table that a model is fitted to were taken for, and its warnings, unless --quiet. False, and said, without memory. */
bool cli_show_table(const cli_job *job, const acf_table *t);

/* Says a table's warnings. */
void cli_say_warnings(const acf_table *t);

/* Before rows are scored: warns where they go by ids and the model's by numbers, or the other way. */
void cli_say_ids(const cli_job *job, const acf_model *m);

/* Text of any length from the library; free it. NULL, and said, when there is none. */
typedef acf_status (*cli_writer)(const void *object, acf_format format, char *out, size_t cap, size_t *needed);
char *cli_text(const char *command, cli_writer write, const void *object, acf_format format);

/* Before a model is trained that will be saved at `model`: with no --checkpoint, what is kept of it when it is interrupted, or memory runs out, goes to
 * MODEL.checkpoint, and --resume goes on from there. That file is refused where it is there and nobody wants it to go on, and where it is not there and
 * somebody does. model NULL, a device or a pipe: nothing is kept. Returns 0 or the exit code, having said why. */
int cli_keep_state(cli_job *job, const char *model);
/* The model is saved: its checkpoint has done its service. */
void cli_drop_state(const cli_job *job);

/* Trains on t with the job's options, showing progress on stderr; ^C and SIGTERM end it after the step, and a second
 * ^C at once. The model of an interrupted run is given too. valid: another table to validate on, NULL: none. log: a file
 * that gets every report as a line of JSON; NULL: none. One that can't be written any more is lost, which is said, and
 * the training goes on. Returns 0 or the exit code (130: interrupted), having said why. */
int cli_fit_table(cli_job *job, const acf_table *t, const acf_table *valid, const char *log, acf_model **out);
int cli_fit_images(cli_job *job, const acf_images *im, const char *log, acf_model **out);
/* The same within an evaluation, which fits to what it does not hide. A signal ends it at once: there is nothing to save. */
int cli_eval_table(cli_job *job, const acf_table *truth, const char *log, acf_evaluation **out);

/* Warns of options of models and of training that the command line has, and that do nothing where a model is given. */
int cli_say_unused(const cli_job *job);

/* A number within the text, whole, from least to most; false, and said, when it is not. */
bool cli_number(const char *command, const char *flag, const char *text, long long least, long long most,
                long long *out);

#endif
