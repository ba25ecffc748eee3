/* acflow impute: the table with its holes filled, or images. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *output, *model_path, *save_path, *draws_text, *stacked, *interval_text, *guess, *draw_one, *log_path, *mask, *truth;
static const cli_flag flags[] = {
    {"output", 'o', "FILE", "where the completed table goes; - or nothing is standard output", &output},
    {"model", 'm', "FILE", "a model from acflow fit; without one a model is fitted to this table first", &model_path},
    {"save-model", 0, "FILE", "keep the model that was fitted", &save_path},
    {"draws", 0, "M", "M completed tables, each a draw from what the model holds possible (with --long)", &draws_text},
    {"long", 0, NULL, "one file in mice's long format: the original and all draws, with .imp and .id last", &stacked},
    {"draw", 0, NULL, "one draw instead of the mean: a completed table with the right spread", &draw_one},
    {"best-guess", 0, NULL, "the paper's best guess instead of the mean", &guess},
    {"intervals", 0, "P", "behind each numeric column the ends of its P % interval, such as 90", &interval_text},
    {"mask", 0, "MASK", "of images, what is hidden: a PNG whose white is, or a mixture such as left or rect:0.1-0.5 (docs/images.md)", &mask},
    {"truth", 0, "IMAGES", "of images, what was there: shown on the sheet beside what was filled in", &truth},
    {"log", 0, "FILE", "write every training step as a line of JSON, for acflow plot training", &log_path},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };
enum { INTERVAL_DRAWS = 100 };

static const cli_page page = {
    "impute", "TABLE|IMAGES [-o FILE] [OPTIONS]",
    "Fills the holes of a table. Observed cells come back byte for byte; what is filled in looks like its column: whole numbers stay\n"
    "whole and in range, decimals are as many as there were, categories are categories. Filled in is the mean of what the model expects (the most\n"
    "probable category), unless --draw, --draws or --best-guess says otherwise.\n\n"
    "Of images: -o is a folder, which gets NAME.1.png, NAME.2.png, ... for --draws, NAME.guess.png, and sheet.png: input, draws, best guess, and the original or --truth.\n"
    "A mask has the size of the image, or that which the model makes of it. Pixels that are given come back bit for bit.",
    "  acflow impute patients.csv -o complete.csv\n"
    "  acflow impute new.csv --model patients.safetensors -o complete.csv --intervals 90\n"
    "  acflow impute patients.csv --draws 20 --long -o draws.csv       in R: mice::as.mids(read.csv(\"draws.csv\"))\n"
    "  acflow impute patients.csv --save-model m.safetensors > complete.csv\n"
    "  acflow impute photo.png --mask hole.png --model faces.safetensors --draws 8 -o out/\n",
    CLI_ALL};

typedef struct plan {
    long long draws, interval, seed;
} plan;

/* Values of imputation number k, and the ends of intervals, into memory of rows x columns each. */
static acf_status answer(acf_session *s, const acf_table *t, const plan *p, uint32_t k, double *values, double *ends) {
    const uint64_t seed = (uint64_t)p->seed;
    acf_status status;
    if (draws_text || draw_one) status = acf_session_draw(s, t, NULL, NULL, seed, k, values);
    else status = guess ? acf_session_guess(s, t, NULL, NULL, values) : acf_session_mean(s, t, NULL, NULL, values);
    if (status != ACF_OK || !ends) return status;
    const double half = (double)p->interval / 200, level[2] = {0.5 - half, 0.5 + half};
    return acf_session_summary(s, t, NULL, NULL, seed, INTERVAL_DRAWS, level, 2, NULL, ends);
}

static int write_all(const acf_model *m, const acf_table *t, const plan *p) {
    const size_t cells = (size_t)(acf_table_rows(t) * acf_table_columns(t));
    acf_session *s = NULL;
    acf_writer *w = NULL;
    double *values = malloc((cells + !cells) * sizeof *values), *ends = p->interval ? malloc(2 * (cells + !cells) * sizeof *ends) : NULL;
    const acf_write_plan what = {.imputations = (int)p->draws, .stacked = stacked != NULL, .intervals = p->interval != 0};
    int code = 0;
    if (!values || (p->interval && !ends)) code = cli_no_memory("the completed table");
    else if (acf_session_create(m, &s) != ACF_OK || acf_writer_open(t, output ? output : "-", &what, &w) != ACF_OK) code = cli_failed("impute");
    for (long long k = 0; !code && k < p->draws; k++)
        if (answer(s, t, p, (uint32_t)k, values, ends) != ACF_OK || acf_writer_put(w, values, ends, ends ? ends + cells : NULL) != ACF_OK)
            code = cli_failed("impute");
    if (code) acf_writer_abort(w);
    else if (acf_writer_commit(w) != ACF_OK) code = cli_failed("impute");
    acf_session_free(s);
    free(values);
    free(ends);
    return code;
}

static long long count_missing(const acf_table *t) {
    const double *x = acf_table_values(t);
    long long n = 0;
    for (int64_t i = 0; i < acf_table_rows(t) * acf_table_columns(t); i++) n += isnan(x[i]) != 0;
    return n;
}

static int impute(cli_job *job, const char *path, const plan *p) {
    acf_table *t = NULL;
    acf_model *m = NULL;
    int code = cli_check_output(output);
    if (!code) code = cli_check_output(save_path);
    if (code) return code;
    if (model_path && acf_model_load(model_path, job->o, &m) != ACF_OK) return cli_failed("impute");
    if ((m ? acf_table_read_for(path, m, job->o, &t) : acf_table_read(path, job->o, &t)) != ACF_OK) code = cli_failed("impute");
    if (!code) cli_say_warnings(t);
    if (!code && !m) code = cli_fit_table(job, t, log_path, &m);
    if (!code && save_path && acf_model_save(m, save_path) != ACF_OK) code = cli_failed("impute");
    if (!code) code = write_all(m, t, p);
    if (!code) cli_say(CLI_INFO, "%lld cells filled in %lld rows", count_missing(t), (long long)acf_table_rows(t));
    acf_model_free(m);
    acf_table_free(t);
    return code;
}

/* What the flags ask for together; -1 to go on. */
static int make_plan(const cli_job *job, plan *p) {
    char seed[32] = "1";
    *p = (plan){.draws = 1};
    if (draws_text && !cli_number("impute", "draws", draws_text, 1, 100000, &p->draws)) return 2;
    if (interval_text && !cli_number("impute", "intervals", interval_text, 1, 99, &p->interval)) return 2;
    if (p->draws > 1 && !stacked) return cli_usage("impute", "%lld completed tables do not fit in one: add --long", p->draws);
    if ((draw_one || draws_text) && guess) return cli_usage("impute", "--best-guess and draws exclude each other");
    if (stacked && p->interval) return cli_usage("impute", "--intervals are of one table; draws in long format have their own spread");
    if (save_path && model_path) return cli_usage("impute", "--save-model keeps a model that is fitted here; --model brings one");
    if (acf_options_get(job->o, "seed", seed, sizeof seed, NULL) == ACF_OK) p->seed = strtoll(seed, NULL, 10);
    return -1;
}

/* Hidden pixels of images. */
static int inpaint(const cli_job *job, const char *path) {
    long long draws = 1;
    if (!model_path) return cli_usage("impute", "by which model? --model FILE; acflow fit makes one of images");
    if (!mask) return cli_usage("impute", "what is hidden? --mask FILE, or a mixture such as left");
    if (!output) return cli_usage("impute", "where should the images go? -o FOLDER");
    if (stacked || interval_text || guess || draw_one || save_path)
        return cli_usage("impute", "--long, --intervals, --best-guess, --draw and --save-model are for tables; images have --draws");
    if (draws_text && !cli_number("impute", "draws", draws_text, 1, 1000, &draws)) return 2;
    return cli_impute_pictures(job, &(cli_inpaint){path, model_path, mask, output, truth, draws});
}

static int run(int argc, char **argv) {
    cli_job job;
    plan p;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest != 1) code = cli_usage("impute", job.n_rest ? "impute takes one table, but there is also '%s'" : "which table?%s", job.n_rest ? argv[1] : "");
    else if (mask || acf_images_recognise(argv[0])) code = inpaint(&job, argv[0]);
    else if (truth) code = cli_usage("impute", "--truth is for images, and '%s' is a table", argv[0]);
    else code = make_plan(&job, &p);
    if (code < 0) code = impute(&job, argv[0], &p);
    cli_job_close(&job);
    return code;
}

const cli_command cli_impute = {"impute", "fill the holes of a table, or of images", run, &page, flags, FLAGS};
