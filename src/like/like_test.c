/* Likelihoods: densities that integrate to 1, means and samples that belong to them, right gradients; alone and behind flows. */
#include "like/like.h"

#include "harness/model_lab.h"
#include "ops/arith.h"
#include "ops/reduce.h"

#include <math.h>

typedef struct bench {
    acf_model_lab m;
    acf_flow_sizes s;
    acf_chain chain;
    acf_like like;
} bench;

static void open_bench(bench *b, const acf_like_kind *kind, const char *kinds, acf_size size) {
    b->s = acf_model_lab_sizes(size.D, 2);
    acf_model_lab_open(&b->m, size.N, size.mask, &b->s, 23);
    assert_int_equal(acf_chain_declare(&b->chain, b->m.ps, "flow", kinds, &b->s), ACF_OK);
    b->like = (acf_like){.kind = kind, .size = b->s, .components = 3, .lo = -3, .hi = 2};
    assert_int_equal(kind->declare(&b->like, b->m.ps, "like"), ACF_OK);
    acf_model_lab_ready(&b->m, 0.3);
}

/* log p of each row (N) for packed x. */
static acf_tensor *logp(bench *b, acf_tensor *x, const acf_cond *c) {
    acf_tensor *logdet, *z = acf_chain_forward(b->m.l.t, &b->chain, x, c, &logdet);
    acf_cond behind = acf_chain_cond(&b->chain, c);
    return acf_add(b->m.l.t, b->like.kind->logp(b->m.l.t, &b->like, z, &behind), logdet);
}

/* All rows share one context and get the points of a grid as their values: the sum of densities is the integral. */
enum { SIDE = 241 };
static const double from = -12, to = 12;

static void check_integral(const acf_like_kind *kind, const char *kinds, int64_t D) {
    bench b;
    int64_t N = D == 1 ? SIDE : (int64_t)SIDE * SIDE;
    open_bench(&b, kind, kinds, (acf_size){N, D, ACF_MASK_ALL});
    for (int64_t i = 0; i < N * b.s.context; i++) b.m.context[i] = b.m.context[i % b.s.context];
    acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
    acf_tensor *x = acf_tensor_packed(b.m.l.t, c.u, 0);
    double step = (to - from) / (SIDE - 1), sum = 0;
    for (int64_t p = 0; p < c.u->T; p++) {
        int64_t i = c.u->row_of[p], at = c.u->col_of[p] == 0 ? i % SIDE : i / SIDE;
        x->data[p] = (acf_real)(from + step * (double)at);
    }
    acf_tensor *lp = logp(&b, x, &c);
    if (acf_tape_status(b.m.l.t)) fail_msg("%s", acf_error());
    for (int64_t i = 0; i < N; i++) sum += exp((double)lp->data[i]);
    acf_assert_close(sum * pow(step, (double)D), 1, 1e-3, kinds);
    acf_model_lab_close(&b.m);
}

static void densities_integrate_to_one(void **state) {
    (void)state;
    const acf_like_kind *kinds[2] = {&acf_like_ar, &acf_like_gaussian};
    const char *const chains[] = {"", "linear leaky rnn reverse coupling affine", "lowrank leaky rnn-shift reverse packed"};
    for (int k = 0; k < 2; k++)
        for (int c = 0; c < 3; c++)
            for (int64_t D = 1; D <= 2; D++) check_integral(kinds[k], chains[c], D);
}

static acf_tensor *loss(acf_model_lab *m, void *ctx) {
    bench *b = ctx;
    acf_cond c = acf_model_lab_begin(m, true, &b->s);
    acf_tensor *x = acf_tensor_packed(m->l.t, c.u, 0);
    for (int64_t p = 0; p < c.u->T; p++) x->data[p] = (acf_real)acf_lab_random(5, c.u->cell[p], -1, 1);
    acf_cond behind = acf_chain_cond(&b->chain, &c);
    acf_tensor *guess = acf_chain_inverse(m->l.t, &b->chain, b->like.kind->mean(m->l.t, &b->like, &behind), &c, NULL);
    return acf_add(m->l.t, acf_mean(m->l.t, logp(b, x, &c)), acf_mean(m->l.t, acf_square(m->l.t, acf_sub(m->l.t, guess, x))));
}

/* Log-likelihood and best-guess error in one loss, through chained means and the inverse flow. */
static void gradients_are_right(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("gradient checks run in double");
    const acf_like_kind *kinds[2] = {&acf_like_ar, &acf_like_gaussian};
    for (int k = 0; k < 2; k++) {
        bench b;
        open_bench(&b, kinds[k], "linear leaky rnn reverse lowrank leaky rnn", (acf_size){6, 4, ACF_MASK_RANDOM});
        acf_model_lab_check_gradient(&b.m, loss, &b);
        acf_model_lab_close(&b.m);
    }
}

/* Samples of a 1-D density against its integral over cells of equal width: chi-square with 19 degrees of freedom. */
static void samples_follow_the_density(void **state) {
    (void)state;
    const acf_like_kind *kinds[2] = {&acf_like_ar, &acf_like_gaussian};
    enum { N = 4000, CELLS = 20, FINE = 50 };
    for (int k = 0; k < 2; k++) {
        bench b;
        open_bench(&b, kinds[k], "affine leaky rnn", (acf_size){N, 1, ACF_MASK_ALL});
        for (int64_t i = 0; i < N * b.s.context; i++) b.m.context[i] = b.m.context[i % b.s.context];
        acf_cond c = acf_model_lab_begin(&b.m, false, &b.s), behind = acf_chain_cond(&b.chain, &c);
        acf_tensor *z = b.like.kind->sample(b.m.l.t, &b.like, &behind, &(acf_draw){.seed = 4});
        acf_tensor *x = acf_chain_inverse(b.m.l.t, &b.chain, z, &c, NULL);
        assert_int_equal(acf_tape_status(b.m.l.t), ACF_OK);
        double mean = 0, square = 0, mass[CELLS] = {0}, seen[CELLS] = {0}, chi = 0;
        for (int i = 0; i < N; i++) mean += (double)x->data[i] / N, square += (double)x->data[i] * (double)x->data[i] / N;
        double sd = sqrt(square - mean * mean), lo = mean - 4 * sd, width = 8 * sd / CELLS;
        for (int i = 0; i < N; i++) {
            int at = (int)floor(((double)x->data[i] - lo) / width);
            seen[at < 0 ? 0 : at >= CELLS ? CELLS - 1 : at]++;
        }
        acf_tensor *grid = acf_tensor_packed(b.m.l.t, c.u, 0);
        for (int i = 0; i < N; i++) grid->data[i] = (acf_real)(lo + width * ((i % (CELLS * FINE)) + 0.5) / FINE);
        acf_tensor *lp = logp(&b, grid, &c);
        for (int i = 0; i < CELLS * FINE; i++) mass[i / FINE] += exp((double)lp->data[c.u->rank[i]]) * width / FINE;
        for (int i = 0; i < CELLS; i++)
            if (mass[i] * N > 5) chi += pow(seen[i] - mass[i] * N, 2) / (mass[i] * N);
        if (chi > 50) fail_msg("%s: chi-square %.1f over %d cells", b.like.kind->name, chi, CELLS);
        acf_model_lab_close(&b.m);
    }
}

/* The Gaussian's mean and covariance, from its samples. */
static void the_gaussian_mean_is_its_mean(void **state) {
    (void)state;
    enum { N = 20000 };
    bench b;
    open_bench(&b, &acf_like_gaussian, "", (acf_size){N, 3, ACF_MASK_ALL});
    for (int64_t i = 0; i < N * b.s.context; i++) b.m.context[i] = b.m.context[i % b.s.context];
    acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
    acf_tensor *mean = b.like.kind->mean(b.m.l.t, &b.like, &c);
    acf_tensor *z = b.like.kind->sample(b.m.l.t, &b.like, &c, &(acf_draw){.seed = 4});
    assert_int_equal(acf_tape_status(b.m.l.t), ACF_OK);
    for (int64_t t = 0; t < 3; t++) {
        double sum = 0, square = 0;
        for (int64_t i = 0; i < N; i++) {
            double v = (double)z->data[acf_subset_at(c.u, i, t)];
            sum += v / N, square += v * v / N;
        }
        double error = 5 * sqrt((square - sum * sum) / N);
        assert_true(fabs(sum - (double)mean->data[acf_subset_at(c.u, 0, t)]) < error);
    }
    acf_model_lab_close(&b.m);
}

/* Stratified values of a 1-D density: as many in every cell as its integral says, to two, and their mean is the density's. */
static void spread_values_follow_the_density(void **state) {
    (void)state;
    const acf_like_kind *kinds[2] = {&acf_like_ar, &acf_like_gaussian};
    enum { N = 2000, VALUES = 512 };
    for (int k = 0; k < 2; k++) {
        bench b;
        open_bench(&b, kinds[k], "affine leaky rnn", (acf_size){N, 1, ACF_MASK_ALL});
        for (int64_t i = 0; i < N * b.s.context; i++) b.m.context[i] = b.m.context[i % b.s.context];
        acf_cond c = acf_model_lab_begin(&b.m, false, &b.s), behind = acf_chain_cond(&b.chain, &c);
        acf_tensor *x[VALUES], *grid = acf_tensor_packed(b.m.l.t, c.u, 0);
        b.like.kind->spread(b.m.l.t, &b.like, &behind, VALUES, x);
        acf_chain_inverse_alone(b.m.l.t, &b.chain, VALUES, x, &c);
        double step = 24.0 / N, mean = 0, want = 0, below = 0;
        for (int i = 0; i < N; i++) grid->data[c.u->rank[i]] = (acf_real)(-12 + step * (i + 0.5));
        acf_tensor *lp = logp(&b, grid, &c);
        if (acf_tape_status(b.m.l.t)) fail_msg("%s", acf_error());
        for (int i = 0; i < VALUES; i++) mean += (double)x[i]->data[7] / VALUES;
        for (int i = 0; i < N; i++) {
            double mass = exp((double)lp->data[c.u->rank[i]]) * step, under = 0;
            want += mass * (-12 + step * (i + 0.5)), below += mass;
            for (int v = 0; v < VALUES; v++) under += (double)x[v]->data[7] < -12 + step * (i + 1);
            if (fabs(under / VALUES - below) > 4.0 / VALUES) fail_msg("%s: %g of the values, %g of the mass", b.like.kind->name, under / VALUES, below);
        }
        acf_assert_close(mean, want, 0.03, b.like.kind->name);
        acf_model_lab_close(&b.m);
    }
}

ACF_TESTS(like, cmocka_unit_test(spread_values_follow_the_density), cmocka_unit_test(densities_integrate_to_one), cmocka_unit_test(gradients_are_right),
          cmocka_unit_test(samples_follow_the_density), cmocka_unit_test(the_gaussian_mean_is_its_mean))
