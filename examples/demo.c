/* make demo: the main job on a built-in table. A table of patients with holes is learned, its holes are filled, and because the demo
 * knows what was hidden it can say how good the answers are, beside the column mean and the most frequent class.
 *
 * Uses the public header only, as a program of yours would. */
#include <acflow.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROWS = 3000, COLUMNS = 6, CELLS = ROWS * COLUMNS, DRAWS = 100 };

static const char *const names[COLUMNS] = {"age", "sex", "dose", "response", "site", "marker"};
static const int32_t classes[COLUMNS] = {0, 2, 0, 0, 3, 0};

static double truth[CELLS], seen[CELLS], mean[CELLS], quantile[2 * CELLS], score[ROWS];

/* A small generator of its own, so that the table is the same everywhere. */
static double uniform(void) {
    static uint64_t state = 88172645463325252u;
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return ((double)(state >> 11) + 0.5) * 0x1p-53;
}

static double normal(void) { return sqrt(-2 * log(uniform())) * cos(2 * acos(-1.0) * uniform()); }

/* Two groups of patients that respond differently, so that no single line fits; the site follows the age. */
static void make_row(double *row) {
    double age = 35 + 30 * uniform() + 5 * normal();
    int sex = uniform() < 0.5, responder = uniform() < (sex ? 0.7 : 0.35);
    double dose = fmax(5, 20 + 0.5 * age + 8 * normal());
    double response = responder ? 10 + 0.8 * dose + 3 * normal() : 12 + 0.05 * dose + 3 * normal();
    int site = age < 45 ? 0 : age < 60 ? (uniform() < 0.8 ? 1 : 0) : 2;
    double marker = 2 * responder - 0.03 * (age - 50) + 0.4 * normal();
    const double values[COLUMNS] = {age, sex, dose, response, site, marker};
    for (int j = 0; j < COLUMNS; j++) row[j] = values[j];
}

static int show(void *ctx, const acf_fit_report *r) {
    if (isatty(2)) fprintf(stderr, "\r  step %lld of %lld, held-out cells %.3f nats, %.0f rows/s ", (long long)r->step,
                           (long long)r->steps, r->valid, r->rows_per_second);
    *(int64_t *)ctx = r->step;
    return 0;
}

static void need(acf_status status) {
    if (status == ACF_OK) return;
    fprintf(stderr, "demo: %s\n", acf_error());
    exit(acf_status_exit(status));
}

/* Of one column's hidden cells: error of a constant and of the model, and how often the 90 % interval holds the truth. */
static double report(int j) {
    double constant = 0, n = 0, hidden = 0, sum = 0, square = 0, model = 0, plain = 0, inside = 0, count[3] = {0};
    for (int i = j; i < CELLS; i += COLUMNS) {
        if (isnan(seen[i])) continue;
        constant += seen[i], n++;
        if (classes[j]) count[(int)seen[i]]++;
    }
    constant = classes[j] ? (count[1] > count[0] ? (count[2] > count[1] ? 2 : 1) : (count[2] > count[0] ? 2 : 0)) : constant / n;
    for (int i = j; i < CELLS; i += COLUMNS) {
        sum += truth[i] / ROWS, square += truth[i] * truth[i] / ROWS;
        if (!isnan(seen[i])) continue;
        hidden++;
        model += classes[j] ? mean[i] != truth[i] : pow(mean[i] - truth[i], 2);
        plain += classes[j] ? constant != truth[i] : pow(constant - truth[i], 2);
        inside += truth[i] >= quantile[i] && truth[i] <= quantile[CELLS + i];
    }
    double sd = sqrt(square - sum * sum);
    if (classes[j]) {
        printf("  %-9s %6.0f hidden   wrong class  %.3f   most frequent %.3f\n", names[j], hidden, model / hidden, plain / hidden);
        return model / plain;
    }
    printf("  %-9s %6.0f hidden   error / sd   %.3f   column mean   %.3f   90 %% interval holds %.1f %%\n", names[j], hidden,
           sqrt(model / hidden) / sd, sqrt(plain / hidden) / sd, 100 * inside / hidden);
    return sqrt(model / plain);
}

int main(void) {
    acf_options *o;
    acf_table *table;
    acf_model *model;
    acf_session *s;
    int64_t steps = 0;
    for (int i = 0; i < ROWS; i++) make_row(truth + i * COLUMNS);
    for (int i = 0; i < CELLS; i++) seen[i] = uniform() < 0.2 ? NAN : truth[i];
    printf("acflow %s: %d rows of %d columns, one cell in five missing\n\n", acf_version(), ROWS, COLUMNS);
    need(acf_options_create(&o));
    need(acf_options_set(o, "steps", "1500"));
    need(acf_table_create(seen, NULL, ROWS, COLUMNS, classes, names, &table));
    need(acf_model_fit(table, o, show, &steps, &model));
    if (isatty(2)) fprintf(stderr, "\r%78s\r", "");
    need(acf_session_create(model, &s));
    need(acf_session_summary(s, table, NULL, NULL, 1, DRAWS, (double[]){0.05, 0.95}, 2, mean, quantile));
    need(acf_session_logp(s, table, NULL, NULL, score));
    printf("learned in %lld steps; each hole filled with %d draws, judged against the truth that was hidden:\n", (long long)steps, DRAWS);
    double worst = 0, ratio;
    for (int j = 0; j < COLUMNS; j++) worst = (ratio = report(j)) > worst ? ratio : worst;
    int odd = 0;
    for (int i = 1; i < ROWS; i++) odd = score[i] < score[odd] ? i : odd;
    printf("\nthe least likely row is number %d, log p = %.1f:", odd, score[odd]);
    for (int j = 0; j < COLUMNS; j++)
        if (!isnan(seen[odd * COLUMNS + j])) printf(" %s %.4g", names[j], seen[odd * COLUMNS + j]);
    printf("\n");
    acf_session_free(s);
    acf_model_free(model);
    acf_table_free(table);
    acf_options_free(o);
    return worst < 1 ? 0 : 1; /* worse than a constant anywhere: something is broken */
}
