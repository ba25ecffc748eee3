/* make demo: the engine at work. A small arbitrary conditional flow, composed from operations without one derivative in
 * sight, learns a table with holes; its conditional densities are compared with the true ones, which are known here.
 *
 * The table: four columns from a mixture of three Gaussians, 20 % of the training cells missing. The model, as in the paper:
 * a conditional linear layer, a leaky ReLU and an RNN coupling transform x_u, then a GRU with a Gaussian mixture gives the
 * density of z_u. The table model proper will replace this program; it uses the engine's internal headers. */
#include "base/rng.h"
#include "ops/adam.h"
#include "ops/affine.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/gather.h"
#include "ops/gru.h"
#include "ops/leaky.h"
#include "ops/lu.h"
#include "ops/mixture.h"
#include "ops/reduce.h"
#include "ops/submatrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { D = 4, COMPONENTS = 3, TRAIN = 20000, TEST = 2000, BATCH = 256, STEPS = 1500, H = 48, K = 10, CONTEXT = 3 * D };

static void need(acf_status status) {
    if (!status) return;
    fprintf(stderr, "demo: %s\n", acf_error());
    exit(acf_status_exit(status));
}

static double uniform(uint64_t row, uint32_t column, uint32_t draw) {
    return acf_rng_uniform((acf_place){.seed = 1, .row = row, .stream = ACF_STREAM_SYNTH, .column = column, .draw = draw});
}

static double normal(uint64_t row, uint32_t column) {
    return acf_rng_normal((acf_place){.seed = 1, .row = row, .stream = ACF_STREAM_SYNTH, .column = column, .draw = 99});
}

/* ---- the truth ------------------------------------------------------------------------------------------------------- */

static const double weight[COMPONENTS] = {0.5, 0.3, 0.2};
static const double mean[COMPONENTS][D] = {{-1, 0.5, 0, 1}, {1.2, 1, -0.5, -1}, {0, -1.5, 1, 0}};
/* Each component is mean + L·noise with its own lower triangular L. */
static const double factor[COMPONENTS][D][D] = {
    {{0.5, 0, 0, 0}, {0.3, 0.4, 0, 0}, {-0.2, 0.3, 0.3, 0}, {0.1, -0.3, 0.2, 0.4}},
    {{0.3, 0, 0, 0}, {-0.3, 0.3, 0, 0}, {0.4, 0.2, 0.4, 0}, {0.2, 0.1, -0.3, 0.3}},
    {{0.6, 0, 0, 0}, {0.1, 0.3, 0, 0}, {0.3, -0.3, 0.5, 0}, {-0.4, 0.2, 0.1, 0.2}},
};

static void draw_row(uint64_t row, acf_real *x) {
    double pick = uniform(row, 0, 0);
    int k = pick < weight[0] ? 0 : pick < weight[0] + weight[1] ? 1 : 2;
    for (int i = 0; i < D; i++) {
        double v = mean[k][i];
        for (int j = 0; j <= i; j++) v += factor[k][i][j] * normal(row, (uint32_t)j);
        x[i] = (acf_real)v;
    }
}

/* log p of the columns in `set` (n of them), by elimination on the covariance of each component. */
static double true_marginal(const acf_real *x, const int *set, int n) {
    double total = 0;
    for (int k = 0; k < COMPONENTS; k++) {
        double a[D][D + 1], log_p = log(weight[k]) - 0.5 * n * log(2 * acos(-1.0));
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < n; j++) {
                a[i][j] = 0;
                for (int l = 0; l < D; l++) a[i][j] += factor[k][set[i]][l] * factor[k][set[j]][l];
            }
            a[i][n] = (double)x[set[i]] - mean[k][set[i]];
        }
        for (int i = 0; i < n; i++) { /* a = L D Lᵀ: the pivots give the determinant, the last column the quadratic form */
            log_p -= 0.5 * (log(a[i][i]) + a[i][n] * a[i][n] / a[i][i]);
            for (int r = i + 1; r < n; r++) {
                double f = a[r][i] / a[i][i];
                for (int c = i; c <= n; c++) a[r][c] -= f * a[i][c];
            }
        }
        total += exp(log_p);
    }
    return log(total);
}

/* log p(x_u | x_o) = log p(x_u, x_o) - log p(x_o) */
static double true_conditional(const acf_real *x, const uint8_t *b) {
    int all[D], given[D], n = 0;
    for (int j = 0; j < D; j++) {
        all[j] = j;
        if (b[j]) given[n++] = j;
    }
    return true_marginal(x, all, D) - (n ? true_marginal(x, given, n) : 0);
}

/* ---- the model ------------------------------------------------------------------------------------------------------- */

typedef struct net {
    acf_param *w1, *b1, *w2, *b2, *base, *slope;   /* conditional linear layer, leaky ReLU */
    acf_param *gru[2][5], *head[2][4];             /* RNN coupling; likelihood */
} net;

static acf_param *param(acf_params *ps, const char *name, acf_init init, double scale, int64_t rows, int64_t cols) {
    acf_param *p = acf_param_add(ps, name, init, scale, cols ? 2 : rows ? 1 : 0, (int64_t[]){rows, cols});
    if (!p) need(acf_error_status());
    return p;
}

static void declare_rnn(acf_params *ps, acf_param *gru[5], acf_param *head[4], const char *name, int64_t out, double scale) {
    const char *part[9] = {"wx", "wc", "bx", "wh", "bh", "w1", "b1", "w2", "b2"};
    const int64_t rows[9] = {3 * H, 3 * H, 3 * H, 3 * H, 3 * H, H, H, out, out};
    const int64_t cols[9] = {1, CONTEXT, 0, H, 0, H, 0, H, 0};
    for (int i = 0; i < 9; i++) {
        char full[32];
        snprintf(full, sizeof full, "%s.%s", name, part[i]);
        acf_init init = i == 3 ? ACF_INIT_ORTHO : cols[i] ? ACF_INIT_UNIFORM : ACF_INIT_CONST;
        double s = i == 7 ? scale : cols[i] ? 1 : 0;
        acf_param *p = param(ps, full, init, s, rows[i], cols[i]);
        if (i < 5) gru[i] = p;
        else head[i - 5] = p;
    }
}

static void declare(acf_params *ps, net *n) {
    n->w1 = param(ps, "linear.w1", ACF_INIT_UNIFORM, 1, H, CONTEXT), n->b1 = param(ps, "linear.b1", ACF_INIT_CONST, 0, H, 0);
    n->w2 = param(ps, "linear.w2", ACF_INIT_CONST, 0, D * D, H), n->b2 = param(ps, "linear.b2", ACF_INIT_CONST, 0, D * D, 0);
    n->base = param(ps, "linear.base", ACF_INIT_IDENTITY, 1, D, D);
    n->slope = param(ps, "leaky.a", ACF_INIT_CONST, 2, 0, 0);
    declare_rnn(ps, n->gru[0], n->head[0], "coupling", 2, 0.1);
    declare_rnn(ps, n->gru[1], n->head[1], "likelihood", 3 * K, 1);
    need(acf_params_build(ps, 1, true));
}

/* What every step is told: (T,out) from the values before it and the row's context. */
static acf_tensor *rnn(acf_tape *t, acf_param *const gru[5], acf_param *const head[4], acf_tensor *v, acf_tensor *c,
                       const acf_subset *u) {
    const acf_gru w = {acf_p(gru[0]), acf_p(gru[1]), acf_p(gru[2]), acf_p(gru[3]), acf_p(gru[4])};
    acf_tensor *prev = acf_tensor_view(t, acf_gather_prev(t, v, u, -1), 2, (int64_t[]){u->T, 1});
    acf_tensor *h = acf_gru_seq(t, prev, acf_gru_condition(t, c, &w), &w, u);
    h = acf_linear(t, h, acf_p(head[0]), acf_p(head[1]), ACF_RELU);
    return acf_linear(t, h, acf_p(head[2]), acf_p(head[3]), ACF_IDENTITY);
}

/* log p(x_u | x_o) of every row, (N): the log-determinants of the three transformations and the density of z. */
static acf_tensor *log_likelihood(acf_tape *t, const net *n, acf_tensor *x, acf_tensor *c, const acf_subset *u) {
    acf_tensor *logdet1, *logdet2;
    acf_tensor *full = acf_linear(t, acf_linear(t, c, acf_p(n->w1), acf_p(n->b1), ACF_TANH), acf_p(n->w2), acf_p(n->b2), ACF_IDENTITY);
    acf_lu *lu = acf_lu_factor(t, acf_submatrix_full(t, acf_p(n->base), full, u), u);
    acf_tensor *z = acf_lu_apply(t, lu, acf_gather_cells(t, x, u));
    z = acf_leaky_forward(t, z, acf_p(n->slope), u, &logdet1);
    z = acf_affine_forward(t, z, rnn(t, n->gru[0], n->head[0], z, c, u), 2.0, u, &logdet2);
    acf_tensor *logp = acf_mixture_logp(t, rnn(t, n->gru[1], n->head[1], z, c, u), z, K, -7, 7);
    acf_tensor *logdet = acf_add(t, acf_lu_logdet(t, lu), acf_add(t, logdet1, logdet2));
    return acf_add(t, acf_sum_subset(t, logp, u), logdet);
}

/* ---- training ---------------------------------------------------------------------------------------------------------- */

typedef struct batch {
    acf_real x[BATCH * D], c[BATCH * CONTEXT];
    uint8_t b[BATCH * D], m[BATCH * D];
} batch;

/* Context [x·b, b, m]: what is not observed is never looked at. */
static void finish_batch(batch *s) {
    for (int i = 0; i < BATCH; i++)
        for (int j = 0; j < D; j++) {
            int at = i * D + j;
            acf_real *c = s->c + i * CONTEXT;
            if (!s->m[at]) s->b[at] = 0, s->x[at] = (acf_real)NAN;
            c[j] = s->b[at] ? s->x[at] : 0;
            c[D + j] = s->b[at];
            c[2 * D + j] = s->m[at];
        }
}

static void train_batch(batch *s, int step) {
    for (int i = 0; i < BATCH; i++) {
        uint64_t row = (uint64_t)(uniform((uint64_t)(step * BATCH + i), 1, 7) * TRAIN);
        draw_row(row, s->x + i * D);
        for (int j = 0; j < D; j++) {
            s->m[i * D + j] = uniform(row, (uint32_t)j, 5) < 0.8; /* the holes belong to the row */
            s->b[i * D + j] = uniform((uint64_t)(step * BATCH + i), (uint32_t)j, 6) < 0.5;
        }
    }
    finish_batch(s);
}

static acf_tensor *loss_of(acf_tape *t, const net *n, const batch *s, acf_tensor **ll) {
    const acf_subset *u;
    need(acf_subset_build(t->mem, s->b, s->m, BATCH, D, &u));
    acf_tensor *x = acf_tensor_input(t, s->x, 2, (int64_t[]){BATCH, D});
    acf_tensor *c = acf_tensor_input(t, s->c, 2, (int64_t[]){BATCH, CONTEXT});
    acf_tensor *rows = log_likelihood(t, n, x, c, u);
    if (ll) *ll = rows;
    return acf_scale(t, -1, acf_mean(t, rows));
}

/* Mean -log p(x_u | x_o) over fresh complete rows with half of the columns given: the model's and the true one. */
static void evaluate(acf_tape *t, const net *n, batch *s, double *model, double *truth) {
    *model = *truth = 0;
    int batches = TEST / BATCH;
    for (int k = 0; k < batches; k++) {
        for (int i = 0; i < BATCH; i++) {
            uint64_t row = (uint64_t)(1000000 + k * BATCH + i);
            draw_row(row, s->x + i * D);
            for (int j = 0; j < D; j++) s->m[i * D + j] = 1, s->b[i * D + j] = uniform(row, (uint32_t)j, 8) < 0.5;
        }
        finish_batch(s);
        acf_tensor *ll;
        acf_tape_begin(t, false);
        loss_of(t, n, s, &ll);
        need(acf_tape_check(t, ll));
        for (int i = 0; i < BATCH; i++) {
            *model -= (double)ll->data[i] / (batches * BATCH);
            *truth -= true_conditional(s->x + i * D, s->b + i * D) / (batches * BATCH);
        }
    }
}

int main(void) {
    acf_device *dev;
    acf_tape *t;
    acf_params *ps;
    net n;
    batch *s = acf_alloc(sizeof *s, "a batch");
    if (!s) need(ACF_EMEMORY);
    need(acf_device_open_cpu(0, &dev));
    need(acf_tape_create(dev, NULL, &t));
    need(acf_params_create(dev, &ps));
    declare(ps, &n);
    printf("acflow %s: a conditional flow with %lld parameters, from %d rows of %d columns with 20 %% of the cells missing\n",
           ACF_VERSION, (long long)ps->total, TRAIN, D);
    printf("test: mean -log p(x_u | x_o) over random halves of the columns, nats per row (the truth is known here)\n\n");
    printf("   step   model   truth     gap\n");
    clock_t start = clock();
    double model = 0, truth = 0;
    for (int step = 0; step <= STEPS; step++) {
        if (step % 250 == 0) {
            evaluate(t, &n, s, &model, &truth);
            printf("%7d %7.3f %7.3f %7.3f\n", step, model, truth, model - truth);
            fflush(stdout);
        }
        train_batch(s, step);
        acf_tape_begin(t, true);
        need(acf_params_zero_grad(ps));
        need(acf_tape_backward(t, loss_of(t, &n, s, NULL)));
        double norm, rate = 5e-3 * (1 - (double)step / (STEPS + 1));
        need(acf_grad_norm(ps, &norm));
        acf_adam_step(ps, &(acf_adam){.lr = rate, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8}, step + 1, acf_clip_factor(norm, 1));
    }
    printf("\n%d steps of %d rows in %.1f CPU seconds; every missing cell held NaN and was never read\n", STEPS, BATCH,
           (double)(clock() - start) / CLOCKS_PER_SEC);
    acf_params_free(ps);
    acf_tape_free(t);
    acf_device_close(dev);
    acf_release(s);
    return model - truth < 0.15 ? 0 : 1;
}
