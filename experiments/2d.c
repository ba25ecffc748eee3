/* The paper's figure of 2-D sets: what a model learns of eight of them, drawn and counted.
 *
 *     2d [NAME=VALUE...]             options of training, such as steps=4000 seed=1; and of this program:
 *                                    out=PATH the figure, .png or .svg (2d.png); set=NAME one of the sets alone; rows=N
 *                                    training rows (100000); jobs=N sets that are trained side by side (1), for a GPU
 *                                    that one of them leaves idle
 *
 * For each set a model is trained on complete rows and sampled from the joint, of x2 given x1 and of x1 given
 * x2, where what is given comes from fresh data. If the model is right, each of these clouds has the distribution of
 * the data; so each is compared with it:
 *
 *     off      share of the samples with no data within EPS, of 200,000 points: where the data has no mass
 *     modes    given a value (40 slices), the data lies in several runs of the other column; a mode counts as found
 *              when the samples of its slice have at least half of the data's share there. Runs with less than 3 % of
 *              their slice, and slices with less than 0.5 % of the data, are not counted
 *     nats     mean negative log-likelihood of fresh data
 *
 * Beside the model's figures stand those of fresh data itself: no model can do better. Uses the public header only. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <acflow.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SETS = 8, SAMPLES = 10000, REFERENCE = 200000, SLICES = 40, BINS = 160, CELLS = 128 };
enum { DATA, JOINT, X2, X1, CLOUDS };
#define EPS 0.12
#define REACH 6.0 /* every set lies within ±REACH */

static struct {
    long rows, jobs;
    const char *out, *set;
} plan = {100000, 1, "2d.png", NULL};

/* What a set's process leaves behind. */
typedef struct result {
    double cloud[CLOUDS][2 * SAMPLES];
    char line[256];
} result;

static double reference[2 * REFERENCE];

static void need(acf_status status) {
    if (status == ACF_OK) return;
    fprintf(stderr, "2d: %s\n", acf_error());
    exit(acf_status_exit(status));
}

/* ---- where the data is ----------------------------------------------------------------------------------------- */

/* Reference points sorted into square cells of side EPS or more: the neighbours of a point are in nine of them. */
static int first[CELLS * CELLS + 1], sorted[REFERENCE];

static int cell_of(double v) {
    const double at = (v + REACH) / (2 * REACH) * CELLS;
    return at < 0 ? 0 : at >= CELLS ? CELLS - 1 : (int)at;
}

static void sort_reference(void) {
    static int fill[CELLS * CELLS];
    memset(first, 0, sizeof first);
    for (int i = 0; i < REFERENCE; i++) first[cell_of(reference[2 * i]) * CELLS + cell_of(reference[2 * i + 1]) + 1]++;
    for (int k = 0; k < CELLS * CELLS; k++) first[k + 1] += first[k], fill[k] = first[k];
    for (int i = 0; i < REFERENCE; i++)
        sorted[fill[cell_of(reference[2 * i]) * CELLS + cell_of(reference[2 * i + 1])]++] = i;
}

static int is_off(const double *point) {
    const int a = cell_of(point[0]), b = cell_of(point[1]);
    for (int i = a > 0 ? a - 1 : 0; i <= a + 1 && i < CELLS; i++)
        for (int j = b > 0 ? b - 1 : 0; j <= b + 1 && j < CELLS; j++)
            for (int k = first[i * CELLS + j]; k < first[i * CELLS + j + 1]; k++)
                if (hypot(reference[2 * sorted[k]] - point[0], reference[2 * sorted[k] + 1] - point[1]) < EPS) return 0;
    return 1;
}

static double off_share(const double *xy) {
    double n = 0;
    for (int i = 0; i < SAMPLES; i++) n += is_off(xy + 2 * i);
    return n / SAMPLES;
}

/* Counts by slice of column `given` and bin of the other. */
static void histogram(const double *xy, int n, int given, double count[SLICES][BINS]) {
    memset(count, 0, SLICES * sizeof *count);
    for (int i = 0; i < n; i++) {
        const double s = (xy[2 * i + given] + REACH) / (2 * REACH) * SLICES,
                     b = (xy[2 * i + 1 - given] + REACH) / (2 * REACH) * BINS;
        if (s >= 0 && s < SLICES && b >= 0 && b < BINS) count[(int)s][(int)b]++;
    }
}

static double sum_of(const double *v, int from, int to) {
    double sum = 0;
    for (int k = from; k < to; k++) sum += v[k];
    return sum;
}

/* Runs of bins with at least a tenth of the slice's highest. Returns how many of the modes were found; *all is how many
 * there are. */
static int modes_found(const double *xy, int given, int *all) {
    static double truth[SLICES][BINS], found[SLICES][BINS];
    int n = 0;
    *all = 0;
    histogram(reference, REFERENCE, given, truth);
    histogram(xy, SAMPLES, given, found);
    for (int s = 0; s < SLICES; s++) {
        const double mass = sum_of(truth[s], 0, BINS), sampled = sum_of(found[s], 0, BINS);
        double high = 0;
        if (mass < 0.005 * REFERENCE) continue;
        for (int b = 0; b < BINS; b++) high = fmax(high, truth[s][b]);
        for (int b = 0; b < BINS; b++) {
            int end = b;
            while (end < BINS && truth[s][end] >= 0.1 * high) end++;
            const double share = sum_of(truth[s], b, end) / mass;
            if (share >= 0.03) ++*all, n += sampled > 0 && sum_of(found[s], b, end) / sampled >= 0.5 * share;
            if (end > b) b = end;
        }
    }
    return n;
}

/* ---- one set --------------------------------------------------------------------------------------------------- */

static acf_table *table_of(const double *xy, const uint8_t *mask, long n) {
    acf_table *t;
    need(acf_table_create(xy, mask, n, 2, NULL, NULL, &t));
    return t;
}

/* Samples of the columns that the mask leaves open; kept (2): which columns are given. */
static void draw(acf_session *s, const double *data, const uint8_t *kept, double *out) {
    static uint8_t mask[2 * SAMPLES];
    for (int i = 0; i < 2 * SAMPLES; i++) mask[i] = kept[i % 2];
    acf_table *t = table_of(data, mask, SAMPLES);
    need(acf_session_draw(s, t, NULL, NULL, 1, 0, out));
    acf_table_free(t);
}

/* Mean -log p(target | the given others) of fresh data. */
static double nats(acf_session *s, const double *data, const uint8_t *target) {
    static uint8_t given[2 * SAMPLES], ask[2 * SAMPLES];
    static double lp[SAMPLES];
    double sum = 0;
    for (int i = 0; i < 2 * SAMPLES; i++) ask[i] = target[i % 2], given[i] = !target[i % 2];
    acf_table *t = table_of(data, NULL, SAMPLES);
    need(acf_session_logp(s, t, given, ask, lp));
    acf_table_free(t);
    for (int i = 0; i < SAMPLES; i++) sum -= lp[i] / SAMPLES;
    return sum;
}

static acf_model *train(const char *set, const acf_options *o) {
    double *x = malloc((size_t)plan.rows * 2 * sizeof *x);
    acf_model *m;
    if (!x) exit(5);
    need(acf_synth_fill(set, plan.rows, &(acf_synth_options){.seed = 1}, x, NULL));
    acf_table *t = table_of(x, NULL, plan.rows);
    free(x);
    need(acf_model_fit(t, o, NULL, NULL, &m));
    acf_table_free(t);
    return m;
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run(const char *set, const acf_options *o, result *r) {
    static double fresh[2 * SAMPLES];
    acf_session *s;
    int all[2], data[2], found[2];
    const double start = seconds();
    acf_model *m = train(set, o);
    need(acf_session_create(m, &s));
    need(acf_synth_fill(set, REFERENCE, &(acf_synth_options){.seed = 2}, reference, NULL));
    need(acf_synth_fill(set, SAMPLES, &(acf_synth_options){.seed = 3}, r->cloud[DATA], NULL));
    need(acf_synth_fill(set, SAMPLES, &(acf_synth_options){.seed = 4}, fresh, NULL));
    sort_reference();
    draw(s, fresh, (uint8_t[]){0, 0}, r->cloud[JOINT]);
    draw(s, fresh, (uint8_t[]){1, 0}, r->cloud[X2]);
    draw(s, fresh, (uint8_t[]){0, 1}, r->cloud[X1]);
    for (int given = 0; given < 2; given++) {
        data[given] = modes_found(fresh, given, &all[given]);
        found[given] = modes_found(r->cloud[given ? X1 : X2], given, &all[given]);
    }
    snprintf(
        r->line, sizeof r->line,
        "| %-12s | %5.2f | %5.2f %5.2f %5.2f | %3d of %3d (%3d) | %3d of %3d (%3d) | %6.3f %6.3f %6.3f | %4.0f s |",
        set, 100 * off_share(fresh), 100 * off_share(r->cloud[JOINT]), 100 * off_share(r->cloud[X2]),
        100 * off_share(r->cloud[X1]), found[0], all[0], data[0], found[1], all[1], data[1],
        nats(s, fresh, (uint8_t[]){1, 1}), nats(s, fresh, (uint8_t[]){0, 1}), nats(s, fresh, (uint8_t[]){1, 0}),
        seconds() - start);
    acf_session_free(s);
    acf_model_free(m);
}

/* Waits for a process to end; a failure of one is a failure of all. */
static void wait_for_one(void) {
    int status;
    if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* The sets, each in a process of its own, plan.jobs at a time. Forked before this process has a thread or a device. */
static void run_all(const char *const *set, int n, const acf_options *o, result *r) {
    for (int k = 0; k < n; k++) {
        if (k >= plan.jobs) wait_for_one();
        const pid_t child = fork();
        if (child < 0) perror("2d: fork"), exit(1);
        if (child > 0) continue;
        run(set[k], o, &r[k]);
        exit(0);
    }
    for (int k = 0; k < n && k < plan.jobs; k++) wait_for_one();
}

/* ---- all of them ----------------------------------------------------------------------------------------------- */

/* The paper's model without additions. There are so many rows that a fiftieth of them suffices for validation. */
static void defaults(acf_options *o) {
    static const char *const set[][2] = {{"preset", "paper-2d"}, {"valid", "0.02"}};
    for (size_t k = 0; k < sizeof set / sizeof *set; k++) need(acf_options_set(o, set[k][0], set[k][1]));
}

static void set_options(acf_options *o, int n, char **list) {
    for (int i = 0; i < n; i++) {
        char name[64];
        int length = 0;
        if (sscanf(list[i], "%63[^=]=%n", name, &length) != 1 || length == 0) {
            fprintf(stderr, "2d: '%s' is not NAME=VALUE\n", list[i]);
            exit(2);
        }
        if (strcmp(name, "rows") == 0)
            plan.rows = strtol(list[i] + length, NULL, 10);
        else if (strcmp(name, "jobs") == 0)
            plan.jobs = strtol(list[i] + length, NULL, 10);
        else if (strcmp(name, "out") == 0)
            plan.out = list[i] + length;
        else if (strcmp(name, "sets") == 0)
            plan.set = list[i] + length;
        else
            need(acf_options_set(o, name, list[i] + length));
    }
}

int main(int argc, char **argv) {
    static const char *const down[CLOUDS] = {"data", "joint samples", "x2 given x1", "x1 given x2"};
    acf_plot_cloud panel[CLOUDS * SETS];
    const char *across[SETS];
    acf_options *o;
    int n = 0;
    need(acf_options_create(&o));
    defaults(o);
    set_options(o, argc - 1, argv + 1);
    if (plan.rows < 1 || plan.jobs < 1) {
        fputs("2d: rows and jobs must be at least 1\n", stderr);
        return 2;
    }
    for (int k = 0; k < SETS; k++)
        if (!plan.set || strcmp(plan.set, acf_synth_name(k)) == 0) across[n++] = acf_synth_name(k);
    if (n == 0) {
        fprintf(stderr, "2d: there is no set '%s'\n", plan.set);
        return 2;
    }
    result *r = mmap(NULL, SETS * sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) return perror("2d: memory"), 5;
    run_all(across, n, o, r);
    puts("| set | off, % of data | of joint, x2\\|x1, x1\\|x2 | modes of x2\\|x1 (data) | of x1\\|x2 (data) |"
         " nats of joint, x2\\|x1, x1\\|x2 | time |\n|---|---|---|---|---|---|---|");
    for (int k = 0; k < n; k++) puts(r[k].line);
    for (int row = 0; row < CLOUDS; row++)
        for (int k = 0; k < n; k++) panel[row * n + k] = (acf_plot_cloud){r[k].cloud[row], SAMPLES};
    const acf_plot_options look = {.title = "2-D sets: the data, and samples of one model each"};
    need(acf_plot_clouds(plan.out, &look, panel, n, CLOUDS, across, down));
    printf("\n%s\n", plan.out);
    acf_options_free(o);
    return 0;
}
