/* acflow eval: how well hidden cells are recovered. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <stdlib.h>
#include <string.h>

static const char *output, *model_path, *shown_path, *json, *log_path, *mask, *truth_path, *features;
static const cli_flag flags[] = {
    {"model", 'm', "FILE", "input", "Model to evaluate (default: fit one to the other cells)", &model_path},
    {"masked", 0, "FILE", "evaluation", "Masked table: its missing cells are scored (default: hide cells at random)",
     &shown_path},
    {"json", 0, NULL, "output", "Write JSON instead of text", &json},
    {"mask", 0, "MASK", "images",
     "Hidden pixels: a PNG (white is hidden) or a mixture of masks such as left. By default the training masks of the model",
     &mask},
    {"truth", 0, "IMAGES", "images",
     "Original images. IMAGES are then completed ones, as acflow impute writes them, or others of the same names",
     &truth_path, .more = true},
    {"features", 0, "FILE", "images",
     "Features of real images (.npy). The inputs are then such files of completed images, one per set", &features,
     .more = true},
    {"log", 0, "FILE", "training", "Training log to write, a JSON object per step. acflow plot training draws it",
     &log_path, .more = true},
    {"output", 'o', "FILE", "output", "Report to write (default: standard output)", &output},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const cli_page page = {
    "eval",
    "TABLE|IMAGES [OPTIONS]",
    "Hides cells of a table, fits a model to the others, and scores how well it recovers the hidden cells, beside the "
    "column mean and linear regression. The report says where these are better.",
    "The report has the error of the single value, the sharpness and coverage of the draws, and the likelihood. With "
    "--model it also has -log p(x_u | x_o) of the rows in nats per row, with half of the cells given: standardised as "
    "in papers, and in the table's units.\n\n"
    "For images: holds out a fifth of them and fits to the others, or takes --model. The report has the likelihood of "
    "the hidden pixels and of whole images, and PSNR, squared error, precision and recall of best guess, draws and "
    "their mean, beside the mean image and a smooth filling.",
    "  acflow eval patients.csv\n"
    "  acflow eval patients.csv --eval-rate 0.5 --json -o report.json\n"
    "  acflow eval test/ --model faces.safetensors --mask left\n",
    "  acflow eval truth.csv --masked holes.csv --model m.safetensors\n"
    "  acflow eval completed/ --truth test/ --mask left\n"
    "  acflow eval draws1.npy draws2.npy --features real.npy\n",
    "docs/tables.md, docs/images.md"};

/* With --masked nothing is hidden at random. */
static void say_hidden(const cli_job *job) {
    acf_option_info d;
    for (int i = 0; shown_path && i < acf_options_count(job->o) && acf_options_at(job->o, i, &d) == ACF_OK; i++)
        if (d.given && strcmp(d.name, "eval-rate") == 0)
            cli_say(CLI_WARN, "--eval-rate has no effect: --masked says which cells are hidden");
}

static int score(cli_job *job, const char *path) {
    acf_table *truth = NULL, *shown = NULL;
    acf_model *m = NULL;
    acf_evaluation *e = NULL;
    int code = 0;
    if (model_path && acf_model_load(model_path, job->o, &m) != ACF_OK) return cli_failed("eval");
    if (acf_table_read(path, m, job->o, &truth) != ACF_OK) code = cli_failed("eval");
    if (!code && shown_path && acf_table_read(shown_path, m, job->o, &shown) != ACF_OK) code = cli_failed("eval");
    if (!code) cli_say_warnings(shown ? shown : truth), cli_say_ids(job, m), say_hidden(job);
    if (!code && m) code = cli_say_unused(job);
    if (!code && !m && shown) code = cli_fit_table(job, shown, NULL, log_path, &m);
    if (!code && !m)
        code = cli_eval_table(job, truth, log_path, &e);
    else if (!code && acf_eval_run(truth, shown, m, job->o, NULL, NULL, &e) != ACF_OK)
        code = cli_failed("eval");
    if (!code) code = cli_put_report("eval", output, (cli_writer)acf_eval_report, e, json ? ACF_JSON : ACF_TEXT);
    acf_eval_free(e);
    acf_model_free(m);
    acf_table_free(shown);
    acf_table_free(truth);
    return code;
}

/* Images, or completed images. */
static int score_pictures(cli_job *job, char **argv) {
    const cli_eval_wish what = {model_path, mask, truth_path, features, log_path, output, json != NULL};
    if (shown_path) return cli_usage("eval", "--masked is for tables; images have --mask");
    if (features && (model_path || mask || truth_path))
        return cli_usage("eval", "--features cannot be combined with --model, --mask or --truth");
    if (features) return cli_eval_features(job, &what, (const char *const *)argv, job->n_rest);
    if (truth_path && model_path)
        return cli_usage("eval",
                         "--truth cannot be combined with --model: it is for images that are completed already");
    return truth_path ? cli_eval_completed(job, &what, argv[0]) : cli_eval_pictures(job, &what, argv[0]);
}

/* With --features there may be several files. */
static int check(const cli_job *job, char **argv) {
    int code = 0;
    for (int i = 0; i < job->n_rest && !code; i++) {
        const cli_file files[] = {
            {CLI_READS, "the input", argv[i]},           {CLI_READS, "--model", model_path},
            {CLI_READS, "--masked", shown_path},         {CLI_READS, "--mask", cli_mask_file(mask)},
            {CLI_READS, "--truth", truth_path},          {CLI_READS, "--features", features},
            {CLI_WRITES, "-o", cli_destination(output)}, {CLI_WRITES, "--log", log_path}};
        code = cli_check_files(job, files, 8);
    }
    return code;
}

static int run(int argc, char **argv) {
    cli_job job;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest < 1)
        code = cli_usage("eval", "a table, or images, is required");
    else if (job.n_rest > 1 && !features)
        code = cli_usage("eval", "eval takes one input, but there is also '%s'", argv[1]);
    else if ((code = check(&job, argv)) != 0) {
    } else if (mask || truth_path || features || acf_images_recognise(argv[0]))
        code = score_pictures(&job, argv);
    else
        code = score(&job, argv[0]);
    cli_job_close(&job);
    return code;
}

const cli_command cli_eval = {"eval", "hide cells and score how well they are recovered", run, &page, flags, FLAGS};
