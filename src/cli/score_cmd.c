/* acflow score: log p of rows, cells and images. */
#include "cli/output.h"
#include "cli/pictures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *output, *model_path, *given_text, *of_text, *cells, *top_text, *mask;
static const cli_flag flags[] = {
    {"model", 'm', "FILE", "input", "Model from acflow fit (required)", &model_path},
    {"of", 0, "COLUMNS", "queries", "Target columns, such as age,sex (default: all that are not given)", &of_text},
    {"given", 0, "COLUMNS", "queries", "Given columns (default: none)", &given_text},
    {"cells", 0, NULL, "queries", "List the most surprising cells instead of scoring rows", &cells},
    {"top", 0, "N", "queries", "Number of cells that --cells lists (default 20)", &top_text},
    {"mask", 0, "MASK", "images",
     "Target pixels, given the others: a PNG (white is hidden) or a mixture of masks such as left (default: all)", &mask},
    {"output", 'o', "FILE", "output", "CSV file to write (default: standard output)", &output},
};
enum { FLAGS = sizeof flags / sizeof flags[0] };

static const char *const sections[] = {"input", "queries", "images", "image queries", "machine", NULL};

static const cli_page page = {
    "score",
    "TABLE|IMAGES --model MODEL [OPTIONS]",
    "Writes the log density (log p) of every row as CSV: of all its observed cells, or of target columns given "
    "others. Low values are unusual rows.",
    "log p is in nats, a density in the table's own units; NA if none of the target columns is observed.\n\n"
    "--cells lists the cells that do not fit the rest of their row: the value, the expected value, its 90 % interval, "
    "log p and the surprisal, which is -log of the probability of a cell at least as far out. A doubtful cell is not "
    "given to the others of its row.\n\n"
    "For images: log p of each image in nats, and bits per dimension; with --mask of the hidden part given the rest.",
    "  acflow score new.csv --model m.safetensors -o scores.csv\n"
    "  acflow score new.csv --model m.safetensors --of income --given age,education\n"
    "  acflow score new.csv --model m.safetensors --cells --top 10\n",
    "  acflow score faces/ --model faces.safetensors --mask left\n",
    "docs/tables.md, docs/images.md",
    sections};

/* Marks the columns of a list "a,b" in mark (columns). */
static int mark_columns(const acf_table *t, const char *list, uint8_t *mark) {
    char name[1024];
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        int64_t j;
        if (n >= sizeof name) return cli_usage("score", "a column name has %zu bytes, expected fewer than 1024", n);
        memcpy(name, p, n), name[n] = 0;
        if (acf_table_find(t, name, &j) != ACF_OK) return cli_failed("score");
        mark[j] = 1;
        p += n + (p[n] == ',');
    }
    return 0;
}

/* The query for every row; masks of rows x columns. */
static int ask(const acf_table *t, uint8_t *given, uint8_t *target) {
    const int64_t N = acf_table_rows(t), D = acf_table_columns(t);
    uint8_t *g = calloc((size_t)D, 2), *u = g ? g + D : NULL;
    int code = g ? 0 : cli_no_memory("the columns");
    if (!code && given_text) code = mark_columns(t, given_text, g);
    if (!code && of_text) code = mark_columns(t, of_text, u);
    for (int64_t j = 0; !code && j < D; j++) {
        if (!of_text) u[j] = !g[j];
        if (g[j] && u[j]) code = cli_usage("score", "column '%s' is both given and a target", acf_table_name(t, j));
    }
    for (int64_t i = 0; !code && i < N; i++) memcpy(given + i * D, g, (size_t)D), memcpy(target + i * D, u, (size_t)D);
    free(g);
    return code;
}

/* Does row i have a present target cell? Without one its log p would be 0, and it would sort as the most probable
 * row. */
static bool is_scored(const acf_table *t, const uint8_t *target, size_t i) {
    const size_t D = (size_t)acf_table_columns(t);
    const double *x = acf_table_values(t) + i * D;
    for (size_t j = 0; j < D; j++)
        if (target[i * D + j] && !isnan(x[j])) return true;
    return false;
}

static int score_rows(acf_session *s, const acf_table *t, FILE *f) {
    const size_t N = (size_t)acf_table_rows(t), size = N * (size_t)acf_table_columns(t);
    double *lp = malloc(N * sizeof *lp);
    uint8_t *masks = malloc(2 * size);
    int code = lp && masks ? ask(t, masks, masks + size) : cli_no_memory("the scores");
    if (!code && acf_session_logp(s, t, masks, masks + size, lp) != ACF_OK) code = cli_failed("score");
    if (!code) fputs("row,logp\n", f);
    for (size_t i = 0; !code && i < N; i++)
        if (is_scored(t, masks + size, i))
            fprintf(f, "%zu,%.9g\n", i + 1, lp[i]);
        else
            fprintf(f, "%zu,NA\n", i + 1);
    free(lp);
    free(masks);
    return code;
}

/* ---- cells ----------------------------------------------------------------------------------------------------- */

typedef struct found {
    double logp, surprisal;
    int64_t cell;
    char *text; /* the file's text; owned */
} found;

/* Most surprising first; equal ones as in the table. */
static int by_surprisal(const void *a, const void *b) {
    const found *p = a, *q = b;
    if (p->surprisal != q->surprisal) return p->surprisal > q->surprisal ? -1 : 1;
    return (p->cell > q->cell) - (p->cell < q->cell);
}

static int by_cell(const void *a, const void *b) {
    const found *p = a, *q = b;
    return (p->cell > q->cell) - (p->cell < q->cell);
}

/* Reads the texts of the listed cells, in the order of the table, while its file is read once more. */
typedef struct reading {
    found *list;
    size_t n, at;
    int64_t columns;
    bool no_memory;
} reading;

/* Columns of the file may be in another order than in the table, so the texts of a row are searched among all of its
 * cells. */
static int take_text(void *ctx, int64_t row, int64_t column, const char *text, size_t bytes) {
    reading *r = ctx;
    while (r->at < r->n && r->list[r->at].cell / r->columns < row) r->at++;
    if (r->at == r->n) return 1;
    for (size_t k = r->at; k < r->n && r->list[k].cell / r->columns == row; k++) {
        if (r->list[k].cell % r->columns != column) continue;
        char *copy = malloc(bytes + 1);
        if (!copy) return r->no_memory = true;
        memcpy(copy, text, bytes), copy[bytes] = 0;
        r->list[k].text = copy;
    }
    return 0;
}

static int take_texts(const acf_table *t, found *list, size_t n) {
    reading r = {.list = list, .n = n, .columns = acf_table_columns(t)};
    qsort(list, n, sizeof *list, by_cell);
    int code = acf_table_texts(t, take_text, &r) == ACF_OK ? 0 : cli_failed("score");
    qsort(list, n, sizeof *list, by_surprisal);
    return r.no_memory ? cli_no_memory("the cells") : code;
}

static void put_value(FILE *f, const acf_table *t, int64_t j, double v) {
    char text[1024] = "";
    fputc(',', f);
    if (!isnan(v) && acf_table_format(t, j, v, text, sizeof text, NULL) == ACF_OK) cli_put_field(f, text);
}

/* Predictions for the listed cells, from the cells that their row was given. Cells of different rows share a query, so
 * there are few. to: mean, low and high. */
static int expect(acf_session *s, const acf_table *t, const found *list, size_t n, const uint8_t *given, double *memory,
                  double (*to)[3]) {
    const int64_t N = acf_table_rows(t), D = acf_table_columns(t);
    uint8_t *target = malloc((size_t)(N * D)), *done = calloc(n + 1, 1);
    int code = target && done ? 0 : cli_no_memory("the scores");
    for (size_t left = n; left && !code;) {
        memset(target, 0, (size_t)(N * D));
        for (size_t k = 0; k < n; k++) {
            const int64_t row = list[k].cell / D * D;
            bool taken = false;
            for (int64_t j = 0; j < D; j++) taken |= target[row + j];
            if (!done[k] && !taken) target[list[k].cell] = 1, done[k] = 2, left--;
        }
        if (acf_session_interval(s, t, given, target, 0.9, memory, memory + N * D, memory + 2 * N * D) != ACF_OK)
            code = cli_failed("score");
        for (size_t k = 0; k < n; k++)
            if (done[k] == 2)
                for (int e = 0; e < 3; e++) to[k][e] = memory[e * N * D + list[k].cell], done[k] = 1;
    }
    free(target);
    free(done);
    return code;
}

static void put_cell(FILE *f, const acf_table *t, const found *c, const double expected[3]) {
    const int64_t D = acf_table_columns(t), j = c->cell % D;
    fprintf(f, "%lld,", (long long)(c->cell / D + 1));
    cli_put_field(f, acf_table_name(t, j) ? acf_table_name(t, j) : "");
    fputc(',', f);
    cli_put_field(f, c->text ? c->text : "");
    for (int e = 0; e < 3; e++) put_value(f, t, j, acf_table_classes(t, j) && e ? (double)NAN : expected[e]);
    fprintf(f, ",%.6g,%.6g\n", c->logp, c->surprisal);
}

static int score_cells(acf_session *s, const acf_table *t, long long top, FILE *f) {
    const int64_t N = acf_table_rows(t), D = acf_table_columns(t), size = N * D;
    double *lp = malloc((size_t)(3 * size) * sizeof *lp), (*to)[3] = NULL;
    found *list = malloc((size_t)size * sizeof *list);
    uint8_t *given = malloc((size_t)size);
    size_t n = 0;
    int code = lp && list && given ? 0 : cli_no_memory("the scores");
    if (!code && acf_session_surprisal(s, t, lp, lp + size, given) != ACF_OK) code = cli_failed("score");
    for (int64_t k = 0; !code && k < size; k++)
        if (!isnan(lp[k])) list[n++] = (found){lp[k], lp[size + k], k, NULL};
    if (!code) qsort(list, n, sizeof *list, by_surprisal);
    if (n > (size_t)top) n = (size_t)top;
    if (!code && !(to = malloc((n + 1) * sizeof *to))) code = cli_no_memory("the scores");
    if (!code) code = take_texts(t, list, n);
    if (!code) code = expect(s, t, list, n, given, lp, to);
    if (!code) fputs("row,column,value,expected,low,high,logp,surprisal\n", f);
    for (size_t k = 0; !code && k < n; k++) put_cell(f, t, &list[k], to[k]);
    for (size_t k = 0; list && k < n; k++) free(list[k].text);
    free(to);
    free(given);
    free(list);
    free(lp);
    return code;
}

static int score(cli_job *job, const char *path, long long top) {
    acf_model *m = NULL;
    acf_table *t = NULL;
    acf_session *s = NULL;
    cli_output out;
    int code = 0;
    if (acf_model_load(model_path, job->o, &m) != ACF_OK || acf_table_read(path, m, job->o, &t) != ACF_OK ||
        acf_session_create(m, &s) != ACF_OK)
        code = cli_failed("score");
    if (!code) cli_say_warnings(t), cli_say_ids(job, m);
    if (!code && (code = cli_output_open(&out, output)) == 0)
        code = cli_output_close(&out, cells ? score_cells(s, t, top, out.file) : score_rows(s, t, out.file));
    acf_session_free(s);
    acf_table_free(t);
    acf_model_free(m);
    return code;
}

static int check(const cli_job *job, const char *path) {
    const cli_file files[] = {{CLI_READS, "the input", path},
                              {CLI_READS, "--model", model_path},
                              {CLI_READS, "--mask", cli_mask_file(mask)},
                              {CLI_WRITES, "-o", cli_destination(output)}};
    return cli_check_files(job, files, 4);
}

static int run(int argc, char **argv) {
    cli_job job;
    long long top = 20;
    int code = cli_job_open(&job, &page, flags, FLAGS, argc, argv);
    if (code >= 0) return code;
    if (job.n_rest != 1)
        code = cli_usage(
            "score", job.n_rest ? "score takes one input, but there is also '%s'" : "a table, or images, is required%s",
            job.n_rest ? argv[1] : "");
    else if (!model_path)
        code = cli_usage("score", "--model is required (make one with acflow fit)");
    else if (mask || acf_images_recognise(argv[0])) {
        if (cells || given_text || of_text || top_text)
            code = cli_usage("score", "--of, --given, --cells and --top are for tables; images have --mask");
        else if ((code = check(&job, argv[0])) == 0)
            code = cli_score_pictures(&job, argv[0], model_path, mask, output);
    } else if (cells && (given_text || of_text))
        code = cli_usage(
            "score", "--cells cannot be combined with --of or --given: it scores every cell given the rest of its row");
    else if (top_text && !cells)
        code = cli_usage("score", "--top needs --cells");
    else if (top_text && !cli_number("score", "top", top_text, 1, 1000000, &top))
        code = 2;
    else if ((code = check(&job, argv[0])) == 0)
        code = score(&job, argv[0], top);
    cli_job_close(&job);
    return code;
}

const cli_command cli_score = {"score", "score rows by their log density; list surprising cells", run, &page, flags,
                               FLAGS};
