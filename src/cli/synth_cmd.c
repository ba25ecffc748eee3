/* acflow synth: tables with a known distribution. */
#include "cli/output.h"

#include <stdlib.h>
#include <string.h>

static const char *output, *rows_text, *seed_text, *holes_text, *rate_text, *truth;
static const cli_flag flags[] = {
    {"output", 'o', "FILE", "output", "CSV file to write (default: standard output)", &output},
    {"rows", 'n', "N", "input", "Number of rows (default 1000)", &rows_text},
    {"seed", 0, "N", "input", "Seed of the random numbers (default 1)", &seed_text},
    {"mechanism", 0, "KIND", "input",
     "Missing values: none, mcar (completely at random), mar (depending on observed columns) or mnar (depending on "
     "the value itself) (default none; mcar with --rate)",
     &holes_text, "none|mcar|mar|mnar"},
    {"rate", 0, "R", "input", "Fraction of missing cells, 0 to 0.95 (default 0.2)", &rate_text},
    {"truth", 0, "FILE", "output", "The same table without missing cells", &truth},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *const sections[] = {"machine", NULL};

static const cli_page page = {
    "synth",
    "[SET] [-o FILE] [OPTIONS]",
    "Writes a synthetic table with known truth. Without SET, lists the sets.",
    "clinic has twelve columns of every type. The others are the paper's two-column sets: 8gaussians, 2spirals, "
    "checkerboard, rings, moons, pinwheel, swissroll and circles.",
    "  acflow synth clinic -n 2000 --mechanism mar --rate 0.2 --truth truth.csv -o clinic.csv\n"
    "  acflow synth moons > moons.csv\n",
    NULL,
    "docs/tutorial.md",
    sections,
    acf_synth_name};

static int list(void) {
    for (int i = 0; acf_synth_name(i); i++) cli_print("%-14s %s\n", acf_synth_name(i), acf_synth_about(i));
    return 0;
}

/* Tables are text; impute and sample refuse such a name, too. */
static int refuse_matrix(const char *path) {
    const size_t n = path ? strlen(path) : 0;
    if (n < 4 || strcmp(path + n - 4, ".npy") != 0) return 0;
    return cli_usage("synth", "the output is text, but '%s' is the name of a matrix; use a name that ends in .csv",
                     path);
}

static int make(const cli_job *job, const char *set) {
    static const char *const kinds[] = {"none", "mcar", "mar", "mnar"};
    acf_synth_options o = {.seed = 1};
    long long rows = 1000, seed = 1;
    double rate = 0.2;
    char *end = NULL;
    if (rows_text && !cli_number("synth", "rows", rows_text, 1, 1000000000, &rows)) return 2;
    if (seed_text && !cli_number("synth", "seed", seed_text, 0, 9007199254740992, &seed)) return 2;
    if (rate_text && ((rate = strtod(rate_text, &end)), *end || end == rate_text || !(rate >= 0 && rate <= 0.95)))
        return cli_usage("synth", "--rate is '%s'; expected a number from 0 to 0.95", rate_text);
    o.seed = (uint64_t)seed;
    int kind = holes_text ? -1 : rate_text ? ACF_MISSING_MCAR : ACF_MISSING_NONE;
    for (int i = 0; holes_text && i < 4; i++)
        if (strcmp(holes_text, kinds[i]) == 0) kind = i;
    if (kind < 0) return cli_usage("synth", "--mechanism is '%s'; expected none, mcar, mar or mnar", holes_text);
    const cli_file files[] = {{CLI_WRITES, "-o", cli_destination(output)}, {CLI_WRITES, "--truth", truth}};
    int code = refuse_matrix(output);
    if (!code) code = refuse_matrix(truth);
    if (!code) code = cli_check_files(job, files, 2);
    if (code) return code;
    if (truth && acf_synth_write(set, rows, &o, cli_destination(truth)) != ACF_OK) return cli_failed("synth");
    o.missing = (acf_missingness)kind, o.rate = kind ? rate : 0;
    return acf_synth_write(set, rows, &o, cli_destination(output)) == ACF_OK ? 0 : cli_failed("synth");
}

static int run(int argc, char **argv) {
    cli_job job;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest > 1)
        code = cli_usage("synth", "synth takes one set, but there is also '%s'", argv[1]);
    else
        code = job.n_rest ? make(&job, argv[0]) : list();
    cli_job_close(&job);
    return code;
}

const cli_command cli_synth = {"synth", "write a synthetic table with known truth", run, &page, flags, FLAGS};
