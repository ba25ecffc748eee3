/* How close a trained model comes to the truth, on tables from known 8-column distributions with known conditional
 * densities.
 *
 *     truth [NAME=VALUE...]          options of training, such as steps=4000 seed=1; and of this program:
 *                                    rows=N training rows (20000), table=1..4 one of the four tables alone
 *
 * Two distributions, a Gaussian and a mixture of three Gaussians with full covariances; complete training data, and
 * half of its cells missing: four tables. For fresh rows and four kinds of queries it prints the mean negative
 * log-likelihood per modelled column, of the model and of the truth. Uses the public header only. */
#include <acflow.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 8, TEST = 4000, COMPONENTS = 3 };

static struct { long rows, table; } plan = {20000, 0}; /* table 0: all of them */

static double uniform(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return ((double)(*state >> 11) + 0.5) * 0x1p-53;
}

static double normal(uint64_t *state) {
    double r = sqrt(-2 * log(uniform(state)));
    return r * cos(2 * acos(-1.0) * uniform(state));
}

typedef struct truth {
    int n;                                                                    /* components */
    double weight[COMPONENTS], mean[COMPONENTS][D], factor[COMPONENTS][D][D]; /* x = mean + factor·noise */
} truth;

static truth make_truth(int n, uint64_t seed) {
    truth t = {.n = n};
    for (int k = 0; k < n; k++) {
        t.weight[k] = n == 1 ? 1 : (k == 0 ? 0.5 : k == 1 ? 0.3 : 0.2);
        for (int i = 0; i < D; i++) {
            t.mean[k][i] = n == 1 ? 0 : 1.5 * normal(&seed);
            for (int j = 0; j <= i; j++) t.factor[k][i][j] = i == j ? 0.4 + 0.4 * uniform(&seed) : 0.35 * normal(&seed);
        }
    }
    return t;
}

static void draw_row(const truth *t, uint64_t *state, double *x) {
    double pick = uniform(state), noise[D];
    int k = 0;
    while (k + 1 < t->n && (pick -= t->weight[k]) > 0) k++;
    for (int i = 0; i < D; i++) noise[i] = normal(state);
    for (int i = 0; i < D; i++) {
        x[i] = t->mean[k][i];
        for (int j = 0; j <= i; j++) x[i] += t->factor[k][i][j] * noise[j];
    }
}

/* log p of the columns in set, by elimination on each component's covariance. */
static double log_marginal(const truth *t, const double *x, const int *set, int n) {
    double term[COMPONENTS], largest = -INFINITY, sum = 0;
    for (int k = 0; k < t->n; k++) {
        double a[D][D + 1];
        term[k] = log(t->weight[k]) - 0.5 * n * log(2 * acos(-1.0));
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                a[i][j] = 0;
                for (int l = 0; l < D; l++) a[i][j] += t->factor[k][set[i]][l] * t->factor[k][set[j]][l];
            }
            a[i][n] = x[set[i]] - t->mean[k][set[i]];
        }
        for (int i = 0; i < n; i++) {
            term[k] -= 0.5 * (log(a[i][i]) + a[i][n] * a[i][n] / a[i][i]);
            for (int r = i + 1; r < n; r++)
                for (int c = n; c >= i; c--) a[r][c] -= a[r][i] / a[i][i] * a[i][c];
        }
        largest = fmax(largest, term[k]);
    }
    for (int k = 0; k < t->n; k++) sum += exp(term[k] - largest);
    return largest + log(sum);
}

static double log_conditional(const truth *t, const double *x, const uint8_t *given, const uint8_t *target) {
    int set[D], g[D], n = 0, m = 0;
    for (int j = 0; j < D; j++) {
        if (given[j]) g[m++] = j;
        if (given[j] || target[j]) set[n++] = j;
    }
    return log_marginal(t, x, set, n) - (m ? log_marginal(t, x, g, m) : 0);
}

static void need(acf_status status) {
    if (status == ACF_OK) return;
    fprintf(stderr, "truth: %s\n", acf_error());
    exit(acf_status_exit(status));
}

static const char *const questions[4] = {"random halves", "few given", "joint", "marginals"};

/* The given and target columns of one row. */
static void ask(int query, uint64_t *state, uint8_t *given, uint8_t *target) {
    double p = query == 0 ? 0.5 : query == 1 ? 0.2 : 0;
    int any = 0;
    for (int j = 0; j < D; j++) {
        given[j] = uniform(state) < p;
        target[j] = query == 3 ? uniform(state) < 0.5 : !given[j];
        any |= target[j];
    }
    if (!any) given[0] = 0, target[0] = 1;
}

static void evaluate(acf_session *s, const truth *t, const char *name, double missing) {
    static double x[TEST * D], lp[TEST];
    static uint8_t given[TEST * D], target[TEST * D];
    acf_table *table;
    uint64_t state = 987654321;
    for (int i = 0; i < TEST; i++) draw_row(t, &state, x + i * D);
    need(acf_table_create(x, NULL, TEST, D, NULL, NULL, &table));
    for (int q = 0; q < 4; q++) {
        double model = 0, exact = 0, columns = 0;
        for (int i = 0; i < TEST; i++) ask(q, &state, given + i * D, target + i * D);
        need(acf_session_logp(s, table, given, target, lp));
        for (int i = 0; i < TEST; i++) {
            model -= lp[i], exact -= log_conditional(t, x + i * D, given + i * D, target + i * D);
            for (int j = 0; j < D; j++) columns += target[i * D + j];
        }
        printf("%-10s %3.0f %% missing  %-14s model %7.4f  truth %7.4f  gap %7.4f nats per modelled column\n", name,
               100 * missing, questions[q], model / columns, exact / columns, (model - exact) / columns);
        fflush(stdout);
    }
    acf_table_free(table);
}

/* "steps=4000" and the like, from the command line. */
static void set_options(acf_options *o, int n, char **list) {
    for (int i = 0; i < n; i++) {
        char name[64];
        int length = 0;
        if (sscanf(list[i], "%63[^=]=%n", name, &length) != 1 || length == 0) {
            fprintf(stderr, "truth: '%s' is not NAME=VALUE\n", list[i]);
            exit(2);
        }
        if (strcmp(name, "rows") == 0)
            plan.rows = strtol(list[i] + length, NULL, 10);
        else if (strcmp(name, "table") == 0)
            plan.table = strtol(list[i] + length, NULL, 10);
        else
            need(acf_options_set(o, name, list[i] + length));
    }
}

static void run(const char *name, int components, double missing, const acf_options *o) {
    double *x = malloc((size_t)plan.rows * D * sizeof *x);
    if (!x) exit(5);
    truth t = make_truth(components, 20200713 + (uint64_t)components);
    uint64_t state = 123456789;
    for (long i = 0; i < plan.rows; i++) {
        draw_row(&t, &state, x + i * D);
        for (int j = 0; j < D; j++)
            if (uniform(&state) < missing) x[i * D + j] = NAN;
    }
    acf_table *table;
    acf_model *m;
    acf_session *s;
    need(acf_table_create(x, NULL, plan.rows, D, NULL, NULL, &table));
    free(x);
    need(acf_model_fit(table, o, NULL, NULL, &m));
    need(acf_session_create(m, &s));
    evaluate(s, &t, name, missing);
    acf_session_free(s);
    acf_model_free(m);
    acf_table_free(table);
}

int main(int argc, char **argv) {
    acf_options *o;
    need(acf_options_create(&o));
    set_options(o, argc - 1, argv + 1);
    if (plan.rows < 1 || plan.table < 0 || plan.table > 4) {
        fputs("truth: rows must be at least 1 and table between 1 and 4\n", stderr);
        return 2;
    }
    for (int k = 1; k <= 4; k++)
        if (plan.table == 0 || plan.table == k)
            run(k <= 2 ? "Gaussian" : "mixture", k <= 2 ? 1 : COMPONENTS, k % 2 ? 0 : 0.5, o);
    acf_options_free(o);
    return 0;
}
