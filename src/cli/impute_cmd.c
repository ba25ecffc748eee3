/* acflow impute: a table with its missing cells filled, or images with their hidden pixels filled. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *output, *model_path, *save_path, *draws_text, *stacked, *interval_text, *guess, *draw_one, *log_path,
    *mask, *truth;
static const cli_flag flags[] = {
    {"output", 'o', "FILE", "output", "Completed table (default: standard output). For images: a folder", &output},
    {"model", 'm', "FILE", "input", "Model from acflow fit (default: fit one to TABLE)", &model_path},
    {"save-model", 0, "FILE", "output", "Save the fitted model", &save_path},
    {"draws", 0, "M", "output", "Number of completed tables of draws. Needs --long for more than one", &draws_text},
    {"long", 0, NULL, "output",
     "Write one file in mice's long format. It has the original and all completed tables, with the columns .imp and "
     ".id last; without --draws or --draw one table of means",
     &stacked},
    {"draw", 0, NULL, "output", "Impute a draw instead of the mean. Draws keep the spread of a column", &draw_one},
    {"best-guess", 0, NULL, "output", "Impute the paper's best guess instead of the mean", &guess, .more = true},
    {"intervals", 0, "P", "output", "Add columns with P % intervals, such as 90", &interval_text},
    {"mask", 0, "MASK", "images",
     "Pixels to fill in: a PNG (white is hidden) or a mixture of masks such as left or rect:0.1-0.5. Its size is that of the "
     "image file or of the model's images (docs/images.md)",
     &mask},
    {"truth", 0, "IMAGES", "images", "Original images to show beside the results", &truth, .more = true},
    {"log", 0, "FILE", "training", "Training log to write, a JSON object per step. acflow plot training draws it",
     &log_path, .more = true},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *const sections[] = {"input",  "model",         "donors",  "training", "queries",
                                       "images", "image queries", "machine", NULL};

static const cli_page page = {
    "impute",
    "TABLE|IMAGES [-o FILE] [OPTIONS]",
    "Fills in the missing cells of a table, or the hidden pixels of images. By default each missing cell gets its "
    "mean given the rest of the row, or its most probable category.",
    "Observed cells are copied byte for byte. Imputed cells follow the format of their column: whole numbers stay "
    "whole and within their bounds, decimals keep their number, categories keep their names.\n\n"
    "For images, -o is a folder. It gets NAME.1.png, NAME.2.png, ... for --draws, NAME.guess.png, and sheet.png with "
    "the input, the draws, the best guess, and the original or --truth. Given pixels do not change.",
    "  acflow impute patients.csv -o complete.csv\n"
    "  acflow impute new.csv --model patients.safetensors -o complete.csv --intervals 90\n"
    "  acflow impute patients.csv --draws 20 --long -o draws.csv       in R: mice::as.mids(read.csv(\"draws.csv\"))\n",
    "  acflow impute patients.csv --save-model m.safetensors > complete.csv\n"
    "  acflow impute photo.png --mask hole.png --model faces.safetensors --draws 8 -o out/\n",
    "docs/tables.md, docs/images.md",
    sections};

typedef struct plan {
    long long draws, interval, seed;
} plan;

/* Values of imputation number k, and interval ends, into memory of rows x columns each. */
static acf_status answer(acf_session *s, const acf_table *t, const plan *p, uint32_t k, double *values, double *ends) {
    if (ends) { /* with the means */
        double *high = ends + acf_table_rows(t) * acf_table_columns(t);
        const acf_status status = acf_session_interval(s, t, NULL, NULL, (double)p->interval / 100, values, ends, high);
        if (status != ACF_OK) return status;
    }
    if (draws_text || draw_one) return acf_session_draw(s, t, NULL, NULL, (uint64_t)p->seed, k, values);
    if (guess) return acf_session_guess(s, t, NULL, NULL, values);
    return ends ? ACF_OK : acf_session_mean(s, t, NULL, NULL, values);
}

static acf_write_plan to_write(const plan *p) {
    return (acf_write_plan){.imputations = (int)p->draws,
                            .stacked = stacked != NULL,
                            .intervals = p->interval != 0,
                            .drawn = draws_text || draw_one,
                            .seed = (uint64_t)p->seed};
}

/* The answer of the model; without a model the table itself, which has no cell to fill. */
static acf_status answer_or_copy(acf_session *s, const acf_table *t, const plan *p, uint32_t k, double *values,
                                 double *ends) {
    const size_t cells = (size_t)(acf_table_rows(t) * acf_table_columns(t));
    if (s) return answer(s, t, p, k, values, ends);
    if (cells) memcpy(values, acf_table_values(t), cells * sizeof *values);
    for (size_t i = 0; ends && i < 2 * cells; i++) ends[i] = (double)NAN;
    return ACF_OK;
}

/* m NULL: there is no cell to fill. */
static int write_all(const acf_model *m, const acf_table *t, const plan *p) {
    const size_t cells = (size_t)(acf_table_rows(t) * acf_table_columns(t));
    acf_session *s = NULL;
    acf_writer *w = NULL;
    double *values = malloc((cells + !cells) * sizeof *values),
           *ends = p->interval ? malloc(2 * (cells + !cells) * sizeof *ends) : NULL;
    const acf_write_plan what = to_write(p);
    int code = 0;
    if (!values || (p->interval && !ends))
        code = cli_no_memory("the completed table");
    else if ((m && acf_session_create(m, &s) != ACF_OK) ||
             acf_writer_open(t, cli_destination(output), &what, &w) != ACF_OK)
        code = cli_failed("impute");
    for (long long k = 0; !code && k < p->draws; k++)
        if (answer_or_copy(s, t, p, (uint32_t)k, values, ends) != ACF_OK ||
            acf_writer_put(w, values, ends, ends ? ends + cells : NULL) != ACF_OK)
            code = cli_failed("impute");
    if (code)
        acf_writer_abort(w);
    else if (acf_writer_commit(w) != ACF_OK)
        code = cli_failed("impute");
    acf_session_free(s);
    free(values);
    free(ends);
    return code;
}

/* Is there a cell that needs a model? Constants need none. */
static bool needs_model(const acf_table *t) {
    const double *x = acf_table_values(t);
    bool missing = false;
    for (int64_t i = 0; !missing && i < acf_table_rows(t) * acf_table_columns(t); i++) missing = isnan(x[i]);
    return missing && acf_table_missing(t) > 0;
}

/* Says which missing cells will stay, before hours of training. */
static int say_left(const acf_table *t) {
    char text[2048];
    if (acf_table_unfilled(t, text, sizeof text, NULL) != ACF_OK && acf_error_status() != ACF_ESPACE)
        return cli_failed("impute");
    if (*text) cli_say(CLI_WARN, "%s", text);
    return 0;
}

/* Describes the table before the queries: its columns if a model is fitted to it, as fit shows them; otherwise its
 * warnings. given: there is a model. */
static int say_table(const cli_job *job, const acf_table *t, bool given) {
    if (given)
        cli_say_warnings(t);
    else if (!cli_show_table(job, t))
        return acf_status_exit(acf_error_status());
    int code = say_left(t);
    if (!code && !job->is.quiet && acf_table_missing(t) == 0)
        fprintf(stderr, "The table has no missing cells to fill in. It is copied%s.\n",
                given || save_path ? "" : "; no model is fitted");
    return code;
}

/* Refuses output that cannot be written, before anything is read and again once the table is, to avoid hours of
 * training in vain. */
static int check(cli_job *job, const char *path) {
    const cli_file files[] = {{CLI_READS, "the table", path},
                              {CLI_READS, "--model", model_path},
                              {CLI_WRITES, "-o", cli_destination(output)},
                              {CLI_WRITES, "--save-model", save_path},
                              {CLI_WRITES, "--log", log_path}};
    int code = model_path ? 0 : cli_keep_state(job, save_path);
    return code ? code : cli_check_files(job, files, 5);
}

static int check_plan(const acf_table *t, const plan *p) {
    const acf_write_plan what = to_write(p);
    return acf_writer_check(t, cli_destination(output), &what) == ACF_OK ? 0 : cli_failed("impute");
}

static int impute(cli_job *job, const char *path, const plan *p) {
    acf_table *t = NULL;
    acf_model *m = NULL;
    int code = check(job, path);
    if (!code && model_path) code = cli_say_unused(job);
    if (code) return code;
    if (model_path && acf_model_load(model_path, job->o, &m) != ACF_OK) return cli_failed("impute");
    if (acf_table_read(path, m, job->o, &t) != ACF_OK) code = cli_failed("impute");
    if (!code) code = say_table(job, t, m != NULL);
    if (!code) code = check_plan(t, p);
    const bool needed = needs_model(t);
    if (!code && !m && (needed || save_path)) code = cli_fit_table(job, t, NULL, log_path, &m);
    if (!code && save_path && acf_model_save(m, save_path) != ACF_OK) code = cli_failed("impute");
    if (!code && job->own_state) cli_drop_state(job);
    if (!code) code = write_all(needed ? m : NULL, t, p);
    if (!code)
        cli_say(CLI_INFO, "filled in %lld cells in %lld rows", (long long)acf_table_missing(t),
                (long long)acf_table_rows(t));
    acf_model_free(m);
    acf_table_free(t);
    return code;
}

/* Checks the combination of flags; -1 to go on. */
static int make_plan(const cli_job *job, plan *p) {
    char seed[32] = "1";
    *p = (plan){.draws = 1};
    if (draws_text && !cli_number("impute", "draws", draws_text, 1, 100000, &p->draws)) return 2;
    if (interval_text && !cli_number("impute", "intervals", interval_text, 1, 99, &p->interval)) return 2;
    if (p->draws > 1 && !stacked)
        return cli_usage("impute", "--draws %lld makes several completed tables; add --long to write them to one file",
                         p->draws);
    if ((draw_one || draws_text) && guess)
        return cli_usage("impute", "--best-guess cannot be combined with --draw or --draws");
    if (stacked && p->interval) return cli_usage("impute", "--intervals cannot be combined with --long");
    if (save_path && model_path)
        return cli_usage("impute", "--save-model cannot be combined with --model: no model is fitted");
    if (acf_options_get(job->o, "seed", seed, sizeof seed, NULL) == ACF_OK) p->seed = strtoll(seed, NULL, 10);
    return -1;
}

/* Hidden pixels of images. */
static int inpaint(const cli_job *job, const char *path) {
    long long draws = 1;
    if (!model_path) return cli_usage("impute", "--model is required for images (make one with acflow fit)");
    if (!mask) return cli_usage("impute", "--mask is required for images: a PNG, or a mixture of masks such as left");
    if (!output) return cli_usage("impute", "-o is required for images: the folder to write to");
    if (stacked || interval_text || guess || draw_one || save_path)
        return cli_usage(
            "impute", "--long, --intervals, --best-guess, --draw and --save-model are for tables; images have --draws");
    if (draws_text && !cli_number("impute", "draws", draws_text, 1, 1000, &draws)) return 2;
    const cli_file files[] = {{CLI_READS, "the images", path},
                              {CLI_READS, "--model", model_path},
                              {CLI_READS, "--mask", cli_mask_file(mask)},
                              {CLI_READS, "--truth", truth},
                              {CLI_FILLS, "-o", output}};
    int code = cli_check_files(job, files, 5);
    return code ? code : cli_impute_pictures(job, &(cli_inpaint){path, model_path, mask, output, truth, draws});
}

static int run(int argc, char **argv) {
    cli_job job;
    plan p;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest != 1)
        code = cli_usage("impute",
                         job.n_rest ? "impute takes one input, but there is also '%s'"
                                    : "a table, or images, is required%s",
                         job.n_rest ? argv[1] : "");
    else if (mask || acf_images_recognise(argv[0]))
        code = inpaint(&job, argv[0]);
    else if (truth)
        code = cli_usage("impute", "--truth is for images, and '%s' is a table", argv[0]);
    else
        code = make_plan(&job, &p);
    if (code < 0) code = impute(&job, argv[0], &p);
    cli_job_close(&job);
    return code;
}

const cli_command cli_impute = {
    "impute", "fill in missing cells of a table, or hidden pixels of images", run, &page, flags, FLAGS};
