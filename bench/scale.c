/* Cost of training against the size of the table, at default options.
 *
 * Width: 10,000 rows of 8, 32, 128 and 512 columns. Time per row of a training step and its ratio to 8 columns beside
 * (d/8)², the exponent of a log-log line through all four, peak memory, and the cost per row of scoring and drawing
 * afterwards. Length: 10,000 and 1,000,000 rows of 20 columns. Time per row, time before the first step, time of a
 * validation, and memory above the table's own size.
 *
 * Each case is a process of its own, because peak memory only grows. The cases alternate and the best of several rounds
 * counts, because machines are shared. For the same reason time is processor time where ACF_NUM_THREADS=1, else wall
 * time.
 *
 *     bench-scale [ROUNDS [SECONDS [COLUMNSxROWS|NAME=VALUE ...]]]     3 rounds of 2 seconds of steps; the six tables
 *                                                                      above; other values of options */
#include "bench.h"
#include "infer/session.h"
#include "model/config.h"
#include "train/trainer.h"

#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAUSES = 8, ASKED = 128, CASES_MAX = 16, WARM = 3, LENGTH_COLUMNS = 20 };

typedef struct result {
    double step;             /* seconds per row of a training step */
    double before, valid;    /* seconds before the first step; of a validation */
    double logp, draw;       /* seconds per row of scoring all cells, and of drawing half of them */
    double fit_mb, query_mb; /* peak memory above the table's, of training and of queries */
    double batch;
} result;

typedef struct table_case {
    long long D, N;
    result best;
} table_case;

/* ---- a table ----------------------------------------------------------------------------------------------------- */

static double uniform(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return ((double)(state >> 11) + 0.5) * 0x1p-53;
}

/* Columns that share a few causes, plus a little noise each. */
static acf_table *make_table(int64_t D, int64_t N) {
    double *x = acf_alloc((size_t)(N * D) * sizeof *x, "a table"), cause[CAUSES];
    acf_table *t;
    if (!x) need(ACF_EMEMORY);
    for (int64_t i = 0; i < N; i++) {
        for (int k = 0; k < CAUSES; k++) cause[k] = uniform() + uniform() - 1;
        for (int64_t j = 0; j < D; j++) {
            double v = 0.1 * uniform();
            for (int k = 0; k < CAUSES; k++) v += cause[k] * (double)((j * (2 * k + 1)) % 7 - 3);
            x[i * D + j] = v;
        }
    }
    need(acf_table_make(x, NULL, N, D, NULL, &t));
    acf_release(x);
    return t;
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static double watch(void) {
    const char *threads = getenv("ACF_NUM_THREADS");
    return bench_watch(threads ? atoi(threads) : 0);
}

/* A line of /proc/self/status in MB: VmRSS is the resident memory, VmHWM its maximum since the last reset. */
static double memory_mb(const char *key) {
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    double kb = 0;
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0) kb = atof(line + strlen(key) + 1);
    if (f) fclose(f);
    return kb / 1024;
}

static void reset_peak(void) {
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f) return;
    fputs("5", f);
    fclose(f);
}

/* ---- one case ---------------------------------------------------------------------------------------------------- */

/* A few steps for allocation, then steps for `seconds`, then one validation. */
static void train(acf_trainer *tr, double seconds, result *r) {
    acf_train_step step;
    double rows = 0, begun = 0, nll;
    for (int k = 0; k < WARM; k++) need(acf_trainer_step(tr, &step));
    begun = watch();
    do {
        need(acf_trainer_step(tr, &step));
        rows += (double)step.rows;
    } while (watch() - begun < seconds);
    r->step = (watch() - begun) / rows;
    r->batch = (double)step.rows;
    begun = watch();
    need(acf_trainer_validate(tr, &nll));
    r->valid = watch() - begun;
}

static void ask(acf_device *dev, const acf_model *m, const acf_table *t, result *r) {
    acf_session *s;
    acf_table part = *t;
    part.N = acf_min(t->N, ASKED);
    size_t cells = (size_t)(part.N * t->D);
    double *out = acf_alloc(cells * sizeof *out, "results"), begun;
    uint8_t *target = acf_alloc(cells, "targets");
    if (!out || !target) need(ACF_EMEMORY);
    for (size_t k = 0; k < cells; k++) target[k] = uniform() < 0.5;
    need(acf_session_open(dev, m, acf_config_rows(t->D), &s));
    begun = watch();
    need(acf_session_query_logp(s, &part, (acf_query){NULL, NULL}, out));
    r->logp = (watch() - begun) / (double)part.N;
    begun = watch();
    need(acf_session_query_draw(s, &part, (acf_query){NULL, target}, 1, 0, out));
    r->draw = (watch() - begun) / (double)part.N;
    acf_session_free(s);
    acf_release(out);
    acf_release(target);
}

/* NAME=VALUE; any other text is skipped. */
static void set_option(acf_options *o, const char *text) {
    char name[64] = "";
    const char *value = strchr(text, '=');
    if (!value || (size_t)(value - text) >= sizeof name) return;
    memcpy(name, text, (size_t)(value - text));
    need(acf_options_set_text(o, name, value + 1));
}

/* The steps of acf_model_fit, timed. */
static result run(int64_t D, int64_t N, double seconds, char **set) {
    result r = {0};
    acf_table *t = make_table(D, N);
    acf_options *o;
    acf_device *dev;
    acf_holdout *hold;
    acf_encoder *encoder;
    acf_model *m;
    acf_trainer *tr;
    reset_peak();
    double base = memory_mb("VmRSS:"), begun = watch();
    need(acf_config_create(&o));
    for (char **at = set; *at; at++) set_option(o, *at);
    need(acf_config_finish(o));
    need(acf_config_width(o, t->column, D));
    need(acf_device_open_cpu((int)acf_options_int(o, "threads"), &dev));
    need(acf_train_prepare(t, NULL, o, &hold, &encoder));
    need(acf_model_make(dev, o, encoder, 1, true, &m));
    need(acf_trainer_create(m->net, &(acf_train_data){t, NULL, encoder, hold}, o, &tr));
    r.before = watch() - begun;
    train(tr, seconds, &r);
    need(acf_trainer_finish(tr));
    r.fit_mb = memory_mb("VmHWM:") - base;
    acf_trainer_free(tr);
    reset_peak();
    ask(dev, m, t, &r);
    r.query_mb = memory_mb("VmHWM:") - base;
    return r; /* the process ends here: nothing is freed */
}

/* Runs a case in a child process; the result comes back through a pipe. */
static result run_apart(const table_case *c, double seconds, char **set) {
    int ends[2], status;
    result r = {0};
    if (pipe(ends)) exit(1);
    pid_t child = fork();
    if (child < 0) exit(1);
    if (child == 0) {
        r = run(c->D, c->N, seconds, set);
        _exit(write(ends[1], &r, sizeof r) == (ssize_t)sizeof r ? 0 : 1);
    }
    close(ends[1]);
    bool whole = read(ends[0], &r, sizeof r) == (ssize_t)sizeof r;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child || !whole || status != 0) exit(1);
    return r;
}

static double lower(double a, double b) { return a == 0 || b < a ? b : a; }

static void keep_best(result *best, const result *r) {
    best->step = lower(best->step, r->step), best->before = lower(best->before, r->before);
    best->valid = lower(best->valid, r->valid), best->logp = lower(best->logp, r->logp);
    best->draw = lower(best->draw, r->draw), best->batch = r->batch;
    best->fit_mb = fmax(best->fit_mb, r->fit_mb), best->query_mb = fmax(best->query_mb, r->query_mb);
}

/* ---- the report -------------------------------------------------------------------------------------------------- */

/* Slope of log(time per row) over log(columns), least squares, over the cases with the same number of rows as the
 * first; 0 for a single one. */
static double exponent(const table_case *c, int n) {
    double sx = 0, sy = 0, sxx = 0, sxy = 0, k = 0;
    for (int i = 0; i < n; i++) {
        if (c[i].N != c[0].N || c[i].D == LENGTH_COLUMNS) continue;
        double x = log((double)c[i].D), y = log(c[i].best.step);
        sx += x, sy += y, sxx += x * x, sxy += x * y, k++;
    }
    return k > 1 ? (k * sxy - sx * sy) / (k * sxx - sx * sx) : 0;
}

static void print_case(const table_case *c, const table_case *first) {
    const result *r = &c->best;
    double wider = (double)c->D / (double)first->D;
    printf("%7lld %9lld %6.0f %10.1f %8.2f %8.0f %9.2f %8.2f %8.0f %8.0f %10.0f %10.0f %8.0f\n", c->D, c->N, r->batch,
           1e6 * r->step, r->step / first->best.step, wider * wider, r->before, r->valid,
           (double)(c->D * c->N) * 8 / 0x1p20, r->fit_mb, 1e6 * r->logp, 1e6 * r->draw, r->query_mb);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 3, n = 0;
    double seconds = argc > 2 ? atof(argv[2]) : 2;
    table_case c[CASES_MAX] = {
        {8, 10000}, {32, 10000}, {128, 10000}, {512, 10000}, {LENGTH_COLUMNS, 10000}, {LENGTH_COLUMNS, 1000000}};
    for (int i = 3; i < argc && n < CASES_MAX; i++)
        if (sscanf(argv[i], "%lldx%lld", &c[n].D, &c[n].N) == 2) n++;
    if (n == 0) n = 6;
    for (int k = 0; k < rounds; k++)
        for (int i = 0; i < n; i++) {
            result r = run_apart(&c[i], seconds, argv + 1);
            keep_best(&c[i].best, &r);
        }
    printf("%7s %9s %6s %10s %8s %8s %9s %8s %8s %8s %10s %10s %8s\n", "columns", "rows", "batch", "us a row", "ratio",
           "(d/d0)^2", "before, s", "valid, s", "table MB", "train MB", "logp us", "draw us", "query MB");
    for (int i = 0; i < n; i++) print_case(&c[i], &c[0]);
    double slope = exponent(c, n);
    if (slope != 0) printf("time per row grows as d^%.2f\n", slope);
    return 0;
}
