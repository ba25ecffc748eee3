/* Shared by the subcommands: see job.h. */
#include "cli/job.h"

#include "cli/report_line.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- pages and flags --------------------------------------------------------------------------------------------- */

/* Every flag and option of any command, under the first command that has it, to explain a mistyped or misplaced name.
 * Gives *out, to free; its names belong to the library and the commands. -1: no memory. */
static int all_names(const acf_options *o, cli_elsewhere **out) {
    int n = 0, capacity = 0;
    *out = NULL;
    for (const cli_command *const *c = cli_commands; *c; c++) {
        acf_option_info d;
        capacity += (*c)->n_flags + acf_options_count(o);
        cli_elsewhere *more = realloc(*out, (size_t)capacity * sizeof *more);
        if (!more) return -1;
        *out = more;
        for (int i = 0; i < (*c)->n_flags; i++) more[n++] = (cli_elsewhere){(*c)->flags[i].name, (*c)->name};
        for (int i = 0; i < acf_options_count(o) && acf_options_at(o, i, &d) == ACF_OK; i++)
            if (cli_takes((*c)->page->sections, &d)) more[n++] = (cli_elsewhere){d.name, (*c)->name};
    }
    return n;
}

/* Prints the message of the flag reader; the status is as the library's. */
static int refused(const cli_job *job, const cli_line *line, acf_status status) {
    if (status == ACF_EUSAGE) return cli_usage(job->page->name, "%s", line->why);
    cli_say(CLI_ERROR, "%s", line->why);
    return acf_status_exit(status);
}

/* The config file: options and flags of the command except --config, --help and --all, which are only for the command
 * line. */
static acf_status load_config(cli_job *job, cli_line *line) {
    cli_flag own[CLI_FLAGS_MAX];
    const cli_flag *all = line->flags;
    const int n = line->n_flags;
    line->flags = own, line->n_flags = 0;
    for (int i = 0; i < n; i++)
        if (all[i].value != &job->is.config && all[i].value != &job->is.help && all[i].value != &job->is.all)
            own[line->n_flags++] = all[i];
    const acf_status status = cli_load(line, job->is.config, &job->kept);
    line->flags = all, line->n_flags = n;
    return status;
}

static int read_line(cli_job *job, cli_line *line, int argc, char **argv) {
    acf_status status = cli_parse(line, argc, argv, &job->n_rest);
    cli_listen(job->o);
    if (status == ACF_OK && job->is.config && !job->is.help && !job->is.all) status = load_config(job, line);
    return status == ACF_OK ? -1 : refused(job, line, status);
}

static int parse(cli_job *job, const cli_flag *flags, int n_flags, int argc, char **argv) {
    cli_flag all[CLI_FLAGS_MAX];
    cli_elsewhere *others;
    cli_line line = {
        .o = job->o, .sections = job->page->sections, .flags = all, .n_elsewhere = all_names(job->o, &others)};
    line.elsewhere = others;
    line.n_flags = cli_page_flags(job->page, flags, n_flags, &job->is, all);
    int code = line.n_elsewhere < 0 ? cli_no_memory("options") : read_line(job, &line, argc, argv);
    free(others);
    if (code >= 0) return code;
    if (job->is.help || job->is.all) return cli_show_page(job->page, flags, n_flags, job->is.all);
    if (job->is.quiet && acf_options_set(job->o, "log-level", "error") != ACF_OK) return cli_failed(job->page->name);
    cli_listen(job->o);
    static const char *const modes[] = {"auto", "bar", "json", "none"};
    bool known = !job->is.progress;
    for (int i = 0; i < 4 && !known; i++) known = strcmp(job->is.progress, modes[i]) == 0;
    return known ? -1
                 : cli_usage(job->page->name, "--progress is '%s'; expected auto, bar, json or none", job->is.progress);
}

/* Tells a user who asked for a GPU and gets the CPU, once. Returns -1 to go on. */
static int say_device(const cli_job *job) {
    char remark[2048];
    if (acf_device_remark(job->o, remark, sizeof remark, NULL) != ACF_OK) return cli_failed(job->page->name);
    if (remark[0]) cli_say(CLI_WARN, "%s", remark);
    return -1;
}

int cli_job_open(cli_job *job, const cli_page *page, const cli_flag *flags, int n_flags, int argc, char **argv) {
    *job = (cli_job){.page = page};
    if (acf_options_create(&job->o) != ACF_OK) return cli_failed(page->name);
    int code = parse(job, flags, n_flags, argc, argv);
    if (code < 0) code = say_device(job);
    if (code >= 0) cli_job_close(job);
    return code;
}

void cli_job_close(cli_job *job) {
    acf_options_free(job->o);
    free(job->kept);
    job->o = NULL, job->kept = NULL;
}

bool cli_number(const char *command, const char *flag, const char *text, long long least, long long most,
                long long *out) {
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (*text && !*end && !errno && v >= least && v <= most) {
        *out = v;
        return true;
    }
    cli_usage(command, "--%s is '%s'; expected a whole number from %lld to %lld", flag, text, least, most);
    return false;
}

static bool is_off(const acf_options *o, const acf_option_info *d) {
    char value[8];
    return strcmp(d->type, "bool") == 0 && acf_options_get(o, d->name, value, sizeof value, NULL) == ACF_OK &&
           strcmp(value, "false") == 0;
}

/* Is the option used only in fitting? The seed is also that of draws. */
static bool is_of_fitting(const acf_option_info *d) {
    static const char *const sections[] = {"model", "donors", "training", "image model", NULL};
    return cli_takes(sections, d) && strcmp(d->name, "seed") != 0;
}

int cli_say_unused(const cli_job *job) {
    acf_option_info d;
    for (int i = 0; i < acf_options_count(job->o) && acf_options_at(job->o, i, &d) == ACF_OK; i++)
        if (d.given && is_of_fitting(&d))
            cli_say(CLI_WARN, "--%s%s has no effect: the model is given", is_off(job->o, &d) ? "no-" : "", d.name);
    return 0;
}

/* ---- text and tables --------------------------------------------------------------------------------------------- */

char *cli_text(const char *command, cli_writer write, const void *object, acf_format format) {
    size_t needed = 0;
    acf_status status = write(object, format, NULL, 0, &needed);
    char *text = status == ACF_OK || status == ACF_ESPACE ? malloc(needed + 1) : NULL;
    if (text && write(object, format, text, needed + 1, NULL) == ACF_OK) return text;
    if (text || (status != ACF_OK && status != ACF_ESPACE))
        cli_failed(command);
    else
        cli_no_memory("a text");
    free(text);
    return NULL;
}

bool cli_show_table(const cli_job *job, const acf_table *t) {
    char *text =
        job->is.quiet ? NULL : cli_in_flags(cli_text(job->page->name, (cli_writer)acf_table_describe, t, ACF_TEXT));
    if (text) fputs(text, stderr);
    free(text);
    return job->is.quiet || text;
}

void cli_say_warnings(const acf_table *t) {
    for (int i = 0; i < acf_table_warnings(t); i++) cli_say(CLI_WARN, "%s", acf_table_warning(t, i));
}

void cli_say_ids(const cli_job *job, const acf_model *m) {
    char id[4096] = "";
    if (acf_model_rows(m) == 0 || acf_options_get(job->o, "id", id, sizeof id, NULL) != ACF_OK) return;
    if (*id && !acf_model_rows_by_id(m))
        cli_say(
            CLI_WARN,
            "the model identifies its training rows by number, but this table uses --id %s. Training rows may match "
            "themselves, so scores are optimistic. Fit with --id, too",
            id);
    if (!*id && acf_model_rows_by_id(m))
        cli_say(CLI_WARN,
                "the model identifies its training rows by an id, but this table uses row numbers. Training rows may "
                "match themselves, so scores are optimistic. Use --id here, too");
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

#define STATE_ENDING ".checkpoint"

/* Is the option at its default? */
static bool is_default(const acf_options *o, const char *name) {
    acf_option_info info;
    char value[64];
    for (int i = 0; i < acf_options_count(o); i++)
        if (acf_options_at(o, i, &info) == ACF_OK && strcmp(info.name, name) == 0)
            return acf_options_get(o, name, value, sizeof value, NULL) == ACF_OK &&
                   strtod(value, NULL) == strtod(info.standard, NULL);
    return false;
}

int cli_keep_state(cli_job *job, const char *model) {
    char path[4096] = "", resume[8] = "";
    struct stat st;
    if (acf_options_get(job->o, "checkpoint", path, sizeof path, NULL) != ACF_OK ||
        acf_options_get(job->o, "resume", resume, sizeof resume, NULL) != ACF_OK)
        return cli_failed(job->page->name);
    const bool go_on = strcmp(resume, "true") == 0;
    if (*path) return 0;
    if (!model || (stat(model, &st) == 0 && !S_ISREG(st.st_mode)))
        return go_on ? cli_usage(job->page->name, "--resume needs a checkpoint: --checkpoint FILE") : 0;
    if (snprintf(path, sizeof path, "%s" STATE_ENDING, model) >= (int)sizeof path)
        return 0; /* saving the model will report that its name is too long */
    const bool there = lstat(path, &st) == 0;
    if (there && !go_on)
        return cli_usage(
            job->page->name,
            "'%s' is the checkpoint of an interrupted training of this model. Use --resume to continue, or remove "
            "the file to start again",
            path);
    if (!there && go_on) {
        cli_say(CLI_ERROR, "nothing to resume: the checkpoint '%s' does not exist; start without --resume", path);
        return acf_status_exit(ACF_EIO);
    }
    job->own_state = true;
    /* A pace that the user set is kept; otherwise the file appears only when it is needed. */
    if (is_default(job->o, "checkpoint-every") && acf_options_set(job->o, "checkpoint-every", "-1") != ACF_OK)
        return cli_failed(job->page->name);
    return acf_options_set(job->o, "checkpoint", path) == ACF_OK ? 0 : cli_failed(job->page->name);
}

void cli_drop_state(const cli_job *job) {
    char path[4096] = "";
    if (acf_options_get(job->o, "checkpoint", path, sizeof path, NULL) == ACF_OK && *path) unlink(path);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted, interrupted_at; /* the latter in seconds of a monotonic clock */

/* The first signal ends training after its step, a later one at once. Signals within a second or two count as one:
 * timeout(1) sends one to the program and another to its group. */
static void on_signal(int sig) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!interrupted)
        interrupted = 1, interrupted_at = (sig_atomic_t)now.tv_sec;
    else if ((sig_atomic_t)now.tv_sec - interrupted_at > 1)
        signal(sig, SIG_DFL), raise(sig);
}

static char farewell[4352];

/* For an evaluation, which has nothing to save. */
static void on_signal_at_once(int sig) {
    (void)sig;
    (void)!write(STDERR_FILENO, farewell, strlen(farewell));
    _exit(acf_status_exit(ACF_EINTERRUPT));
}

typedef struct show {
    bool bar, json;
    char said[1024];  /* the last message about a failed checkpoint */
    const char *unit; /* rows or images */
    double shown;     /* seconds of training at the last line */
    FILE *log;        /* NULL: there is none, or it failed */
    const char *log_path;
} show;

static void put_number(FILE *f, const char *name, double v) {
    if (isfinite(v))
        fprintf(f, ", \"%s\": %.9g", name, v);
    else
        fprintf(f, ", \"%s\": null", name);
}

static void put_json(FILE *f, const acf_fit_report *r) {
    fprintf(
        f,
        "{\"member\": %d, \"members\": %d, \"pass\": %d, \"passes\": %d, \"step\": %lld, \"steps\": %lld, \"epoch\": "
        "%lld",
        r->member, r->members, r->pass, r->passes, (long long)r->step, (long long)r->steps, (long long)r->epoch);
    put_number(f, "loss", r->loss);
    put_number(f, "mean_loss", r->mean_loss);
    put_number(f, "valid", r->valid);
    put_number(f, "kept", r->best);
    fprintf(f, ", \"validated\": %s, \"kept_step\": %lld", r->validated ? "true" : "false", (long long)r->best_step);
    put_number(f, "rows_per_second", r->rows_per_second);
    put_number(f, "elapsed", r->elapsed);
    put_number(f, "eta", r->eta);
    put_number(f, "eta_early", r->eta_early);
    fprintf(f, ", \"skipped\": %lld}\n", (long long)r->skipped);
}

static void put_bar(const acf_fit_report *r, const char *unit) {
    char line[CLI_LINE_MAX];
    fprintf(stderr, "\r\033[K%s", cli_report_line(r, unit, cli_terminal_width(STDERR_FILENO), line));
    fflush(stderr);
}

/* Prints each message once: a checkpoint that cannot be written is tried again and again. */
static void say_trouble(show *s, const char *trouble) {
    if (!trouble || strcmp(trouble, s->said) == 0) return;
    snprintf(s->said, sizeof s->said, "%s", trouble);
    if (s->bar) fputc('\n', stderr);
    cli_say(CLI_WARN, "%s", trouble);
}

/* Ends the log. A log that cannot be written, now or at the flush, is given up with a message; the training is worth
 * more. */
static void close_log(show *s) {
    FILE *f = s->log;
    if (!f) return;
    s->log = NULL;
    const bool failed = ferror(f);
    const int why = errno;
    if (!failed) errno = EIO;
    if (fclose(f) == 0 && !failed) return;
    if (s->bar && s->shown > 0) fputc('\n', stderr);
    cli_say(CLI_ERROR, "cannot write the log '%s': %s; the log is lost, the training continues", s->log_path,
            strerror(failed ? why : errno));
}

static void put_log(show *s, const acf_fit_report *r) {
    if (!s->log) return;
    errno = EIO;
    put_json(s->log, r);
    if (ferror(s->log)) close_log(s);
}

static int report(void *ctx, const acf_fit_report *r) {
    show *s = ctx;
    put_log(s, r);
    say_trouble(s, r->trouble);
    const bool last = r->steps && r->step == r->steps;
    if ((s->bar || s->json) && (r->elapsed - s->shown >= 0.2 || last || (s->json && r->validated))) {
        s->shown = r->elapsed;
        if (s->bar)
            put_bar(r, s->unit);
        else
            put_json(stderr, r);
    }
    return interrupted;
}

/* What an interrupted training leaves. */
static void say_left(const cli_job *job, char *out, size_t cap) {
    char path[4096] = "";
    if (acf_options_get(job->o, "checkpoint", path, sizeof path, NULL) == ACF_OK && *path)
        snprintf(out, cap, "interrupted; the checkpoint is '%s'. The same command with --resume continues", path);
    else
        snprintf(out, cap, "interrupted; nothing was kept. Use --checkpoint FILE to be able to resume");
}

/* Reports the end of the training. */
static int ended(cli_job *job, acf_status status) {
    char left[4224];
    if (status == ACF_OK) return 0;
    if (status != ACF_EINTERRUPT) return cli_failed(job->page->name);
    say_left(job, left, sizeof left);
    cli_say(CLI_ERROR, "%s", left);
    return acf_status_exit(status);
}

/* One line if training is on a GPU; say_device has reported a CPU in its place. */
static void say_gpu(const cli_job *job) {
    char used[512];
    if (job->is.quiet || acf_device_used(job->o, used, sizeof used, NULL) != ACF_OK || strncmp(used, "cuda", 4) != 0)
        return;
    fprintf(stderr, "Computing on %s.\n", used);
}

/* What --effort quick leaves out. */
static void say_effort(const cli_job *job) {
    char effort[16];
    if (job->is.quiet || acf_options_get(job->o, "effort", effort, sizeof effort, NULL) != ACF_OK) return;
    if (strcmp(effort, "quick") != 0) return;
    fputs("Effort quick: one small network beside the Gaussian mixture. --effort normal trains larger networks, takes "
          "about ten times as long, and is a few percent better.\n",
          stderr);
}

/* A training and its result: a model of a table or of images, or an evaluation. */
typedef struct course {
    const acf_table *t;     /* one of t and im is NULL */
    const acf_table *valid; /* validation table; NULL: a part of t */
    const acf_images *im;
    acf_model **model; /* one of these two is NULL */
    acf_evaluation **evaluation;
} course;

static acf_status take(const course *c, const acf_options *o, show *s) {
    if (c->evaluation) return acf_eval_run(c->t, NULL, NULL, o, report, s, c->evaluation);
    return c->im ? acf_model_fit_images(c->im, o, report, s, c->model)
                 : acf_model_fit_validated(c->t, c->valid, o, report, s, c->model);
}

static void catch_signals(void (*handler)(int)) {
    signal(SIGINT, handler);
    signal(SIGTERM, handler);
}

static int train(cli_job *job, const course *c, const char *log) {
    const char *mode = job->is.progress ? job->is.progress : "auto";
    show s = {.json = strcmp(mode, "json") == 0, .unit = c->im ? "images" : "rows", .log_path = log};
    s.bar = strcmp(mode, "bar") == 0 || (strcmp(mode, "auto") == 0 && !job->is.quiet && isatty(STDERR_FILENO));
    if (log && !(s.log = fopen(log, "w"))) {
        cli_say(CLI_ERROR, "cannot write '%s': %s", log, strerror(errno));
        return acf_status_exit(ACF_EIO);
    }
    if (c->t) say_gpu(job);
    interrupted = 0;
    if (c->evaluation) {
        strcpy(farewell, "acflow: ");
        say_left(job, farewell + strlen(farewell), sizeof farewell - 16);
        strcat(farewell, "\n");
    }
    catch_signals(c->evaluation ? on_signal_at_once : on_signal);
    acf_status status = take(c, job->o, &s);
    catch_signals(SIG_DFL);
    if (s.bar && s.shown > 0) fputc('\n', stderr);
    s.bar = false; /* its line has ended */
    close_log(&s);
    if (!status && c->t) say_effort(job);
    return ended(job, status);
}

int cli_fit_table(cli_job *job, const acf_table *t, const acf_table *valid, const char *log, acf_model **out) {
    return train(job, &(course){.t = t, .valid = valid, .model = out}, log);
}
int cli_fit_images(cli_job *job, const acf_images *im, const char *log, acf_model **out) {
    return train(job, &(course){.im = im, .model = out}, log);
}
int cli_eval_table(cli_job *job, const acf_table *truth, const char *log, acf_evaluation **out) {
    return train(job, &(course){.t = truth, .evaluation = out}, log);
}
