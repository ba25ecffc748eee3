/* The table model: densities that integrate to 1 for every query, missing cells that are never read, draws that
 * depend only on their row, presets that build, and agreement with the same model in PyTorch. */
#include "model/net.h"

#include "base/safetensors.h"
#include "harness/net_lab.h"
#include "model/config.h"
#include "ops/arith.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef acf_net_lab bench;

/* A likelihood, and options that differ from the test's. */
typedef struct way {
    const char *likelihood, *flow, *gmm; /* NULL: the test's flow; two components */
} way;

/* Small networks with random weights, away from the identity. */
static void open_columns(bench *b, const way *w, const char *flow, int64_t N, int64_t D, const acf_column *column) {
    char set_flow[256], set_likelihood[64], set_gmm[64];
    snprintf(set_flow, sizeof set_flow, "flow=%s", w->flow ? w->flow : flow);
    snprintf(set_likelihood, sizeof set_likelihood, "likelihood=%s", w->likelihood);
    snprintf(set_gmm, sizeof set_gmm, "gmm=%s", w->gmm ? w->gmm : "2");
    acf_net_lab_open(b, (const char *[]){set_flow, set_likelihood, set_gmm, NULL}, N, D, column);
}

static void open_bench(bench *b, const way *w, const char *flow, int64_t N, int64_t D) {
    open_columns(b, w, flow, N, D, NULL);
}
static void close_bench(bench *b) { acf_net_lab_close(b); }
static const acf_real *log_likelihoods(bench *b) { return acf_net_lab_logp(b, NULL, false); }

/* The autoregressive likelihoods, which the tests below go through. */
static const way ways[] = {{"gru", NULL, NULL},
                           {"sets", NULL, NULL},
                           {"attention", NULL, NULL},
                           {"attention", "", NULL},
                           {"attention", "", "0"}};
enum { WAYS = sizeof ways / sizeof ways[0], FIRST_ORDERED = 2 };

static void set(acf_options *o, const char *name, const char *value) {
    if (acf_options_set_text(o, name, value)) fail_msg("%s", acf_error());
}

/* Integrates over three columns. mask of each: 0 missing, 1 given, 2 modelled (at most two). The grid is even in t,
 * x = sinh t: fine near the middle and wide enough for the tails. */
static void check_integral(const way *w, const int mask[3], const acf_pass *pass) {
    bench b;
    int u[3] = {0}, n = 0;
    for (int j = 0; j < 3; j++)
        if (mask[j] == 2) u[n++] = j;
    int64_t side = n == 2 ? 381 : 8001, N = n == 2 ? side * side : side;
    open_bench(&b, w, "linear leaky rnn reverse affine coupling", N, 3);
    for (int64_t i = 0; i < N; i++) b.batch->id[i] = 7; /* in training each row has an order of its own */
    double step = 12.0 / (double)(side - 1), sum = 0;
    for (int64_t i = 0; i < N; i++)
        for (int j = 0; j < 3; j++) {
            b.batch->m[i * 3 + j] = mask[j] > 0, b.batch->b[i * 3 + j] = mask[j] == 1;
            b.batch->x[i * 3 + j] = ACF_R(0.3) * (acf_real)(j + 1);
            if (n > 0 && j == u[0]) b.batch->x[i * 3 + j] = (acf_real)sinh(-6 + step * (double)(i % side));
            if (n > 1 && j == u[1]) b.batch->x[i * 3 + j] = (acf_real)sinh(-6 + step * (double)(i / side));
        }
    const acf_real *lp = acf_net_lab_logp(&b, pass, false);
    if (n == 0) assert_true(lp[0] == 0);
    for (int64_t i = 0; n && i < N; i++) {
        double dx = step * cosh(-6 + step * (double)(i % side));
        if (n > 1) dx *= step * cosh(-6 + step * (double)(i / side));
        sum += exp((double)lp[i]) * dx;
    }
    if (n) acf_assert_close(sum, 1, 5e-4, "integral of a conditional density");
    close_bench(&b);
}

static void every_query_integrates_to_one(void **state) {
    (void)state;
    for (int code = 0; code < 27; code++) {
        int mask[3] = {code % 3, code / 3 % 3, code / 9}, modelled = 0;
        for (int j = 0; j < 3; j++) modelled += mask[j] == 2;
        for (int k = 0; modelled < 3 && k < WAYS; k++) check_integral(&ways[k], mask, NULL);
    }
}

/* In training a row's cells have a new order every step; every order gives a density. */
static void every_order_integrates_to_one(void **state) {
    (void)state;
    for (uint32_t step = 1; step <= 4; step++)
        for (int k = FIRST_ORDERED; k < WAYS; k++)
            check_integral(&ways[k], (int[]){2, 1, 2}, &(acf_pass){.seed = 3, .step = step});
}

static void orders_change_from_step_to_step(void **state) {
    (void)state;
    for (int k = FIRST_ORDERED; k < WAYS; k++) {
        bench b;
        acf_real first[50];
        int other = 0;
        open_bench(&b, &ways[k], "affine", 50, 6);
        memcpy(first, acf_net_lab_logp(&b, &(acf_pass){.seed = 3, .step = 1}, false), sizeof first);
        const acf_real *lp = acf_net_lab_logp(&b, &(acf_pass){.seed = 3, .step = 2}, false);
        for (int i = 0; i < 50; i++) other += lp[i] != first[i];
        assert_true(other > 25);
        close_bench(&b);
    }
}

/* ---- mixed tables ------------------------------------------------------------------------------------------------ */

static const acf_column mixed[4] = {{"sex", 2}, {"dose", 0}, {"site", 3}, {"age", 0}};
static const acf_column letters[2] = {{"a", 2}, {"b", 3}};

static void set_cell(bench *b, int64_t i, int j, int mask, double value, bool categorical) {
    int64_t at = i * b->batch->D + j;
    b->batch->m[at] = mask > 0, b->batch->b[at] = mask == 1;
    b->batch->x[at] = mask ? (acf_real)value : (acf_real)NAN;
    b->batch->code[at] = categorical && mask ? (int32_t)value : -1;
}

/* Sum over the classes and integral over the first real of p(x_u | x_o); the second real is given or missing. */
static void check_mixed(const way *w, const int mask[4], const acf_pass *pass) {
    enum { GRID = 1201 };
    bench b;
    open_columns(&b, w, "linear leaky rnn reverse affine", GRID * 6, 4, mixed);
    double step = 12.0 / (GRID - 1), sum = 0;
    for (int64_t i = 0; i < GRID * 6; i++) {
        int64_t k = i % GRID, combo = i / GRID;
        b.batch->id[i] = 7; /* in training each row has an order of its own */
        set_cell(&b, i, 0, mask[0], mask[0] == 2 ? (double)(combo % 2) : 1, true);
        set_cell(&b, i, 1, mask[1], mask[1] == 2 ? sinh(-6 + step * (double)k) : 0.4, false);
        set_cell(&b, i, 2, mask[2], mask[2] == 2 ? (double)(combo / 2) : 2, true);
        set_cell(&b, i, 3, mask[3], -0.7, false);
    }
    const acf_real *lp = acf_net_lab_logp(&b, pass, false);
    for (int64_t i = 0; i < GRID * 6; i++) { /* counts values of cells that are not modelled only once */
        int64_t k = i % GRID, combo = i / GRID;
        if ((mask[0] != 2 && combo % 2) || (mask[2] != 2 && combo / 2) || (mask[1] != 2 && k)) continue;
        sum += exp((double)lp[i]) * (mask[1] == 2 ? step * cosh(-6 + step * (double)k) : 1);
    }
    acf_assert_close(sum, 1, 5e-4, "sum and integral of a mixed conditional");
    close_bench(&b);
}

static void mixed_queries_sum_to_one(void **state) {
    (void)state;
    for (int code = 0; code < 54; code++)
        for (int k = 0; k < WAYS; k++)
            check_mixed(&ways[k], (int[]){code % 3, code / 3 % 3, code / 9 % 3, code / 27}, NULL);
}

static void every_order_of_mixed_cells_sums_to_one(void **state) {
    (void)state;
    for (uint32_t at = 1; at <= 3; at++)
        for (int k = FIRST_ORDERED; k < WAYS; k++)
            check_mixed(&ways[k], (int[]){2, 2, 2, 1}, &(acf_pass){.seed = 3, .step = at});
}

/* A table of categories only, without a flow. */
static void categories_alone_sum_to_one(void **state) {
    (void)state;
    for (int code = 0; code < 9 * WAYS; code++) {
        int mask[2] = {code % 3, code / 3 % 3};
        bench b;
        double sum = 0;
        open_columns(&b, &ways[code / 9], "linear", 6, 2, letters);
        for (int64_t i = 0; i < 6; i++) {
            set_cell(&b, i, 0, mask[0], (double)(i % 2), true);
            set_cell(&b, i, 1, mask[1], (double)(i / 2), true);
        }
        const acf_real *lp = log_likelihoods(&b);
        for (int64_t i = 0; i < 6; i++)
            if ((mask[0] == 2 || i % 2 == 0) && (mask[1] == 2 || i / 2 == 0)) sum += exp((double)lp[i]);
        acf_assert_close(sum, 1, 1e-5, "sum over classes");
        close_bench(&b);
    }
}

/* Draws and guesses fill modelled cells with valid classes and finite numbers, and change nothing else. */
static void check_mixed_draws(const way *w) {
    enum { N = 300 };
    bench b;
    open_columns(&b, w, "linear leaky rnn", N, 4, mixed);
    for (int64_t i = 0; i < N; i++)
        for (int j = 0; j < 4; j++)
            set_cell(&b, i, j, (int)(acf_lab_random(31, i * 4 + j, 0, 3)),
                     mixed[j].classes ? (double)(i % mixed[j].classes) : 0.3, mixed[j].classes > 0);
    acf_real out[N * 4], guess[N * 4];
    int64_t seen[3] = {0};
    for (int k = 0; k < N * 4; k++) out[k] = guess[k] = ACF_R(-77);
    acf_tape_begin(b.t, false);
    assert_int_equal(acf_net_draw(b.t, acf_net_view(b.t, b.net, b.batch, NULL), &(acf_draw){.seed = 2}, out), ACF_OK);
    acf_tape_begin(b.t, false);
    assert_int_equal(acf_net_guess(b.t, acf_net_view(b.t, b.net, b.batch, NULL), guess), ACF_OK);
    for (int k = 0; k < N * 4; k++) {
        bool modelled = b.batch->m[k] && !b.batch->b[k];
        int classes = mixed[k % 4].classes;
        if (!modelled)
            assert_true(out[k] == ACF_R(-77) && guess[k] == ACF_R(-77));
        else if (!classes)
            assert_true(isfinite(out[k]) && out[k] != ACF_R(-77) && isfinite(guess[k]));
        else
            assert_true(out[k] >= 0 && out[k] < (acf_real)classes && out[k] == (acf_real)(int)out[k] && guess[k] >= 0);
        if (modelled && k % 4 == 2) seen[(int)out[k]]++;
    }
    assert_true(seen[0] > 5 && seen[1] > 5 && seen[2] > 5);
    close_bench(&b);
}

static void mixed_draws_fill_what_is_modelled(void **state) {
    (void)state;
    for (int k = 0; k < WAYS; k++) check_mixed_draws(&ways[k]);
}

/* Mean and deviation of column j of draws (N,D). */
static void moments(const acf_real *draws, int64_t N, int64_t D, int j, double *mean, double *deviation) {
    double sum = 0, square = 0;
    for (int64_t i = 0; i < N; i++) sum += (double)draws[i * D + j];
    for (int64_t i = 0; i < N; i++) square += pow((double)draws[i * D + j] - sum / (double)N, 2);
    *mean = sum / (double)N, *deviation = sqrt(square / (double)N);
}

static double normal_logp(double x, double mean, double deviation) {
    return -0.5 * pow((x - mean) / deviation, 2) - log(deviation) - 0.5 * log(2 * M_PI);
}

/* Draws x of a class and two reals given a class have the scored density p: the mean of q(x) / p(x) is 1 for any
 * density q. Here q is half as wide as the draws. */
static void check_density_of_draws(const way *w) {
    enum { N = 20000 };
    bench b;
    double mean[4], deviation[4], sum = 0, square = 0;
    open_columns(&b, w, "linear leaky", N, 4, mixed);
    if (acf_net_gmm_size(b.net)) { /* z that depend on x */
        acf_tensor *centre = &acf_net_gmm(b.net)[1]->t;
        for (int64_t i = 0; i < acf_tensor_count(centre); i++) centre->data[i] *= 8;
    }
    for (int64_t i = 0; i < N; i++)
        for (int j = 0; j < 4; j++) set_cell(&b, i, j, j == 2 ? 1 : 2, j == 2 ? 1 : 0, mixed[j].classes > 0);
    acf_real *draws = calloc(N * 4, sizeof *draws);
    assert_non_null(draws);
    acf_tape_begin(b.t, false);
    assert_int_equal(acf_net_draw(b.t, acf_net_view(b.t, b.net, b.batch, NULL), &(acf_draw){.seed = 5}, draws), ACF_OK);
    for (int j = 1; j < 4; j += 2) moments(draws, N, 4, j, &mean[j], &deviation[j]);
    for (int64_t i = 0; i < N; i++)
        for (int j = 0; j < 4; j++)
            if (j != 2) set_cell(&b, i, j, 2, (double)draws[i * 4 + j], mixed[j].classes > 0);
    const acf_real *lp = log_likelihoods(&b);
    for (int64_t i = 0; i < N; i++) {
        double lq = log(0.5);
        for (int j = 1; j < 4; j += 2) lq += normal_logp((double)draws[i * 4 + j], mean[j], deviation[j] / 2);
        sum += exp(lq - (double)lp[i]), square += exp(2 * (lq - (double)lp[i]));
    }
    const double ema = sum / N, error = sqrt((square / N - ema * ema) / N);
    assert_true(error < 0.05);
    if (fabs(ema - 1) > 4 * error) fail_msg("%s: the mean of q/p over draws is %.3f ± %.3f", w->likelihood, ema, error);
    free(draws);
    close_bench(&b);
}

static void draws_have_the_density_of_scores(void **state) {
    (void)state;
    for (int k = 0; k < WAYS; k++) check_density_of_draws(&ways[k]);
}

/* A tape that does not record uses memory differently but gives the same numbers. */
static void recording_changes_nothing(void **state) {
    (void)state;
    for (int k = 0; k < WAYS; k++) {
        bench b;
        acf_real plain[50];
        open_bench(&b, &ways[k], "linear leaky", 50, 6);
        memcpy(plain, log_likelihoods(&b), sizeof plain);
        const acf_real *recorded = acf_net_lab_logp(&b, NULL, true);
        for (int i = 0; i < 50; i++)
            acf_assert_close((double)recorded[i], (double)plain[i], 2000 * (double)ACF_REAL_EPS,
                             "log p on a recording tape");
        close_bench(&b);
    }
}

/* Missing cells are never read: NaN and 1e30 there give the same bits. */
static void check_missing_cells(const way *w) {
    bench b;
    open_bench(&b, w, "linear leaky rnn reverse lowrank coupling rnn", 50, 6);
    acf_real first[50], guess[300], other[300];
    for (int run = 0; run < 3; run++) {
        for (int i = 0; i < 300; i++)
            if (!b.batch->m[i]) b.batch->x[i] = run == 0 ? 0 : run == 1 ? (acf_real)NAN : ACF_R(1e30);
        const acf_real *lp = log_likelihoods(&b);
        if (run == 0)
            memcpy(first, lp, sizeof first);
        else
            assert_memory_equal(lp, first, sizeof first);
        memset(other, 0, sizeof other);
        acf_tape_begin(b.t, false);
        assert_int_equal(acf_net_guess(b.t, acf_net_view(b.t, b.net, b.batch, NULL), other), ACF_OK);
        if (run == 0)
            memcpy(guess, other, sizeof guess);
        else
            assert_memory_equal(other, guess, sizeof guess);
    }
    close_bench(&b);
}

static void missing_cells_are_never_read(void **state) {
    (void)state;
    for (int k = 0; k < WAYS; k++) check_missing_cells(&ways[k]);
}

/* A row's draws do not depend on the other rows or on its position (to rounding: matrix products are split by
 * shape). */
static void check_draws_of_rows(const way *w) {
    bench b;
    open_bench(&b, w, "linear leaky rnn", 40, 5);
    acf_real all[200] = {0}, one[5], again[200] = {0};
    acf_tape_begin(b.t, false);
    assert_int_equal(acf_net_draw(b.t, acf_net_view(b.t, b.net, b.batch, NULL), &(acf_draw){.seed = 7, .draw = 3}, all),
                     ACF_OK);
    acf_tape_begin(b.t, false);
    assert_int_equal(
        acf_net_draw(b.t, acf_net_view(b.t, b.net, b.batch, NULL), &(acf_draw){.seed = 7, .draw = 3}, again), ACF_OK);
    assert_memory_equal(all, again, sizeof all);
    for (int64_t i = 0; i < 40; i += 7) {
        acf_batch alone = {.capacity = 1,
                           .N = 1,
                           .D = 5,
                           .x = b.batch->x + i * 5,
                           .m = b.batch->m + i * 5,
                           .b = b.batch->b + i * 5,
                           .id = b.batch->id + i};
        memset(one, 0, sizeof one);
        acf_tape_begin(b.t, false);
        assert_int_equal(
            acf_net_draw(b.t, acf_net_view(b.t, b.net, &alone, NULL), &(acf_draw){.seed = 7, .draw = 3}, one), ACF_OK);
        for (int j = 0; j < 5; j++)
            acf_assert_close((double)one[j], (double)all[i * 5 + j], 2000 * (double)ACF_REAL_EPS, "a row drawn alone");
    }
    close_bench(&b);
}

static void draws_belong_to_their_row(void **state) {
    (void)state;
    for (int k = 0; k < WAYS; k++) check_draws_of_rows(&ways[k]);
}

static void presets_build(void **state) {
    (void)state;
    const char *const names[] = {"default", "paper", "paper-2d", "ar"};
    acf_device *dev;
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    for (int k = 0; k < 4; k++) {
        acf_options *o;
        acf_net *net;
        assert_int_equal(acf_config_create(&o), ACF_OK);
        set(o, "preset", names[k]);
        set(o, "likelihood-units", "16"); /* a user's value overrides the preset's */
        assert_int_equal(acf_config_finish(o), ACF_OK);
        assert_int_equal(acf_options_int(o, "likelihood-units"), 16);
        assert_int_equal(acf_options_int(o, "components"), k == 0 ? 20 : 40);
        if (acf_net_create(dev, NULL, 3, o, 1, false, &net)) fail_msg("%s: %s", names[k], acf_error());
        acf_net_free(net);
        acf_options_free(o);
    }
    acf_device_close(dev);
}

static void refuses_an_unknown_flow(void **state) {
    (void)state;
    acf_device *dev;
    acf_options *o;
    acf_net *net = NULL;
    int64_t live = acf_alloc_live();
    assert_int_equal(acf_device_open_cpu(1, &dev), ACF_OK);
    assert_int_equal(acf_config_create(&o), ACF_OK);
    set(o, "flow", "linear leeky");
    assert_int_equal(acf_net_create(dev, NULL, 3, o, 1, true, &net), ACF_EUSAGE);
    assert_null(net);
    acf_options_free(o);
    acf_device_close(dev);
    assert_int_equal(acf_alloc_live(), live);
}

/* ---- comparison with PyTorch ------------------------------------------------------------------------------------- */

/* Runs the script; the test is skipped if PyTorch or the peer is absent. */
static void make_peer_file(const char *path, int d, int layers) {
    const char *shared = getenv("ACF_SHARED");
    char command[512];
    snprintf(command, sizeof command, "/usr/bin/python3 tests/torch_peer.py '%s/peers' '%s' %d %d 2>/dev/null",
             shared ? shared : "../shared", path, d, layers);
    int status = system(command);
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
        acf_skip("agreement with the PyTorch model needs python3-torch and ../shared/peers");
}

static acf_real *peer_tensor(const acf_safetensors *f, const char *name, int ndim, const int64_t *dim) {
    int64_t n = 1;
    for (int i = 0; i < ndim; i++) n *= dim[i];
    acf_real *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    if (acf_safetensors_reals(f, name, ndim, dim, x)) fail_msg("%s", acf_error());
    return x;
}

static void load_weights(acf_net *net, const acf_safetensors *f) {
    acf_params *ps = acf_net_params(net);
    for (int k = 0; k < ps->n; k++) {
        acf_param *p = ps->list[k];
        if (acf_safetensors_reals(f, p->name, p->t.ndim, p->t.dim, p->t.data)) fail_msg("%s", acf_error());
    }
}

static void compare_with_peer(int d, int layers, const char *flow) {
    enum { ROWS = 40 };
    char path[64];
    snprintf(path, sizeof path, "/tmp/acflow-peer-%d.safetensors", (int)getpid());
    make_peer_file(path, d, layers);
    acf_safetensors *f;
    acf_options *o;
    bench b;
    if (acf_safetensors_open(path, &f)) fail_msg("%s", acf_error());
    assert_int_equal(acf_config_create(&o), ACF_OK);
    set(o, "preset", "paper"), set(o, "flow", flow);
    set(o, "mlp-width", "12"), set(o, "coupling-units", "12"), set(o, "likelihood-units", "12");
    set(o, "likelihood-layers", "3"), set(o, "components", "5");
    assert_int_equal(acf_config_finish(o), ACF_OK);
    assert_int_equal(acf_device_open_cpu(2, &b.dev), ACF_OK);
    assert_int_equal(acf_tape_create(b.dev, NULL, &b.t), ACF_OK);
    if (acf_net_create(b.dev, NULL, d, o, 1, false, &b.net)) fail_msg("%s", acf_error());
    load_weights(b.net, f);
    assert_int_equal(acf_batch_create(ROWS, d, &b.batch), ACF_OK);
    b.batch->N = ROWS;
    const int64_t table[2] = {ROWS, d}, rows[1] = {ROWS};
    acf_real *x = peer_tensor(f, "peer.x", 2, table), *m = peer_tensor(f, "peer.m", 2, table),
             *bb = peer_tensor(f, "peer.b", 2, table);
    acf_real *logp = peer_tensor(f, "peer.logp", 1, rows), *guess = peer_tensor(f, "peer.guess", 2, table);
    for (int i = 0; i < ROWS * d; i++) b.batch->x[i] = x[i], b.batch->m[i] = m[i] > 0, b.batch->b[i] = bb[i] > 0;
    for (int i = 0; i < ROWS; i++) b.batch->id[i] = (uint64_t)i;
    const acf_real *ours = log_likelihoods(&b);
    for (int i = 0; i < ROWS; i++)
        if (fabs((double)ours[i] - (double)logp[i]) > 1e-4)
            fail_msg("row %d: log p is %.8g, PyTorch says %.8g", i, (double)ours[i], (double)logp[i]);
    acf_tape_begin(b.t, false);
    assert_int_equal(acf_net_guess(b.t, acf_net_view(b.t, b.net, b.batch, NULL), x), ACF_OK);
    for (int i = 0; i < ROWS * d; i++)
        if (m[i] > 0 && bb[i] == 0)
            acf_assert_close((double)x[i], (double)guess[i], 1e-4, "best guess against PyTorch");
    free(x), free(m), free(bb), free(logp), free(guess);
    acf_safetensors_close(f);
    unlink(path);
    acf_options_free(o);
    close_bench(&b);
}

static void agrees_with_pytorch(void **state) {
    (void)state;
    compare_with_peer(5, 2, "linear leaky rnn reverse linear leaky rnn");
}

static void agrees_with_pytorch_without_a_flow(void **state) {
    (void)state;
    compare_with_peer(4, 0, "");
}

ACF_TESTS(net, cmocka_unit_test(every_query_integrates_to_one), cmocka_unit_test(every_order_integrates_to_one),
          cmocka_unit_test(orders_change_from_step_to_step), cmocka_unit_test(mixed_queries_sum_to_one),
          cmocka_unit_test(every_order_of_mixed_cells_sums_to_one), cmocka_unit_test(categories_alone_sum_to_one),
          cmocka_unit_test(mixed_draws_fill_what_is_modelled), cmocka_unit_test(draws_have_the_density_of_scores),
          cmocka_unit_test(recording_changes_nothing), cmocka_unit_test(missing_cells_are_never_read),
          cmocka_unit_test(draws_belong_to_their_row), cmocka_unit_test(presets_build),
          cmocka_unit_test(refuses_an_unknown_flow), cmocka_unit_test(agrees_with_pytorch),
          cmocka_unit_test(agrees_with_pytorch_without_a_flow))
