/* Likelihoods: densities integrate to 1, means and samples fit them, gradients are right; alone and behind flows. */
#include "like/like.h"

#include "harness/model_lab.h"
#include "ops/arith.h"
#include "ops/mixture.h"
#include "ops/reduce.h"

#include <math.h>
#include <string.h>

static const acf_like_kind *const kinds[] = {
#define ACF_LIKE(kind, name) &kind,
#include "base/like_list.h"
#undef ACF_LIKE
};
static const char *const names[] = {
#define ACF_LIKE(kind, name) name,
#include "base/like_list.h"
#undef ACF_LIKE
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

typedef struct bench {
    acf_model_lab m;
    acf_flow_sizes s;
    acf_chain chain;
    acf_like like;
} bench;

static void open_bench(bench *b, const acf_like_kind *kind, const char *flow, acf_size size) {
    b->s = acf_model_lab_sizes(size.D, 2);
    b->s.context = acf_max(b->s.context, 2 * size.D); /* at least values and masks */
    acf_model_lab_open(&b->m, size.N, size.mask, &b->s, 23);
    assert_int_equal(acf_chain_declare(&b->chain, b->m.ps, "flow", flow, &b->s), ACF_OK);
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

/* All rows share one context, and their values are the points of a grid: the sum of densities is the integral. The grid
 * is even in t, x = sinh t: fine near the middle and wide enough for the tails. */
enum { SIDE = 241 };
static const double from = -5, to = 5;

static void check_integral(const acf_like_kind *kind, const char *flow, int64_t D) {
    bench b;
    int64_t N = D == 1 ? SIDE : (int64_t)SIDE * SIDE;
    open_bench(&b, kind, flow, (acf_size){N, D, ACF_MASK_ALL});
    for (int64_t i = 0; i < N * b.s.context; i++) b.m.context[i] = b.m.context[i % b.s.context];
    acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
    acf_tensor *x = acf_tensor_packed(b.m.l.t, c.u, 0);
    double step = (to - from) / (SIDE - 1), sum = 0;
    for (int64_t p = 0; p < c.u->T; p++) {
        int64_t i = c.u->row_of[p], at = c.u->col_of[p] == 0 ? i % SIDE : i / SIDE;
        x->data[p] = (acf_real)sinh(from + step * (double)at);
    }
    acf_tensor *lp = logp(&b, x, &c);
    if (acf_tape_status(b.m.l.t)) fail_msg("%s", acf_error());
    for (int64_t i = 0; i < N; i++) {
        double dx = step * cosh(from + step * (double)(i % SIDE));
        if (D == 2) dx *= step * cosh(from + step * (double)(i / SIDE));
        sum += exp((double)lp->data[i]) * dx;
    }
    acf_assert_close(sum, 1, 1e-3, flow);
    acf_model_lab_close(&b.m);
}

static void densities_integrate_to_one(void **state) {
    (void)state;
    const char *const chains[] = {"", "linear leaky rnn reverse coupling affine",
                                  "lowrank leaky rnn-shift reverse packed"};
    for (int k = 0; k < KINDS; k++)
        for (int c = 0; c < 3; c++)
            for (int64_t D = 1; D <= 2 && !kinds[k]->whole_row; D++) check_integral(kinds[k], chains[c], D);
}

static acf_tensor *loss(acf_model_lab *m, void *ctx) {
    bench *b = ctx;
    acf_cond c = acf_model_lab_begin(m, true, &b->s);
    acf_tensor *x = acf_tensor_packed(m->l.t, c.u, 0);
    for (int64_t p = 0; p < c.u->T; p++) x->data[p] = (acf_real)acf_lab_random(5, c.u->cell[p], -1, 1);
    acf_cond behind = acf_chain_cond(&b->chain, &c);
    acf_tensor *guess = acf_chain_inverse(m->l.t, &b->chain, b->like.kind->mean(m->l.t, &b->like, &behind), &c, NULL);
    return acf_add(m->l.t, acf_mean(m->l.t, logp(b, x, &c)),
                   acf_mean(m->l.t, acf_square(m->l.t, acf_sub(m->l.t, guess, x))));
}

/* Log-likelihood and best-guess error in one loss, through chained means and the inverse flow. */
static void gradients_are_right(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("gradient checks run in double");
    for (int k = 0; k < KINDS; k++) {
        if (kinds[k]->whole_row) continue;
        bench b;
        open_bench(&b, kinds[k], "linear leaky rnn reverse lowrank leaky rnn", (acf_size){6, 4, ACF_MASK_RANDOM});
        acf_model_lab_check_gradient(&b.m, loss, &b);
        acf_model_lab_close(&b.m);
    }
}

/* Samples of a 1-D density against its integral over cells of equal width: chi-square with 19 degrees of freedom. */
static void samples_follow_the_density(void **state) {
    (void)state;
    enum { N = 4000, CELLS = 20, FINE = 50 };
    for (int k = 0; k < KINDS; k++) {
        if (kinds[k]->whole_row) continue;
        bench b;
        open_bench(&b, kinds[k], "affine leaky rnn", (acf_size){N, 1, ACF_MASK_ALL});
        for (int64_t i = 0; i < N * b.s.context; i++) b.m.context[i] = b.m.context[i % b.s.context];
        acf_cond c = acf_model_lab_begin(&b.m, false, &b.s), behind = acf_chain_cond(&b.chain, &c);
        acf_tensor *z = b.like.kind->sample(b.m.l.t, &b.like, &behind, &(acf_draw){.seed = 4});
        acf_tensor *x = acf_chain_inverse(b.m.l.t, &b.chain, z, &c, NULL);
        assert_int_equal(acf_tape_status(b.m.l.t), ACF_OK);
        double mean = 0, square = 0, mass[CELLS] = {0}, seen[CELLS] = {0}, chi = 0;
        for (int i = 0; i < N; i++)
            mean += (double)x->data[i] / N, square += (double)x->data[i] * (double)x->data[i] / N;
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

/* ---- deep sets --------------------------------------------------------------------------------------------------- */

/* The explicit network: every element has its own conditioning vector, with the values and masks before it filled in.
 * (T,3K). */
static acf_tensor *written_out(bench *b, acf_tensor *z, const acf_cond *c) {
    acf_tape *t = b->m.l.t;
    const acf_deep_sets *net = &b->like.set;
    const acf_subset *u = c->u;
    int64_t C = b->s.context, E = b->s.column_embedding, D = b->s.D;
    acf_tensor *x = acf_tensor_new(t, 2, (int64_t[]){u->T, C}), *id = acf_tensor_new(t, 2, (int64_t[]){u->T, E});
    for (int64_t i = 0; i < u->N; i++)
        for (int64_t s = 0, n = u->size[i]; s < n; s++) {
            acf_real *row = x->data + acf_subset_at(u, i, s) * C;
            const int32_t *cols = u->cols + i * D;
            memcpy(row, c->context->data + i * C, (size_t)C * sizeof *row);
            for (int64_t q = 0; q < s; q++) {
                int64_t j = cols[c->mirrored ? n - 1 - q : q];
                row[j] += z->data[acf_subset_at(u, i, q)], row[D + j] += 1;
            }
            memcpy(id->data + acf_subset_at(u, i, s) * E, c->columns->data + cols[c->mirrored ? n - 1 - s : s] * E,
                   (size_t)E * sizeof *row);
        }
    acf_tensor *h = acf_add(t, acf_linear(t, x, acf_p(net->wc), acf_p(net->b), ACF_IDENTITY),
                            acf_linear(t, id, acf_p(net->wi), NULL, ACF_IDENTITY));
    for (int l = 0; l < net->blocks; l++) {
        const acf_deep_sets_block *w = &net->block[l];
        acf_tensor *more = acf_linear(t, acf_act(t, ACF_RELU, h), acf_p(w->w1), acf_p(w->b1), ACF_RELU);
        h = acf_add(t, h, acf_linear(t, more, acf_p(w->w2), acf_p(w->b2), ACF_IDENTITY));
    }
    return acf_tensor_as_packed(
        t, acf_linear(t, acf_act(t, ACF_RELU, h), acf_p(net->w), acf_p(net->bias), ACF_IDENTITY), u);
}

/* Prefix sums equal the layer on those vectors; the means and draws of the loops equal the network's output when they
 * are given. */
static void deep_sets_equal_the_explicit_network(void **state) {
    (void)state;
    for (int mirrored = 0; mirrored < 2; mirrored++) {
        bench b;
        open_bench(&b, &acf_like_sets, "", (acf_size){30, 5, ACF_MASK_RANDOM});
        acf_tape *t = b.m.l.t;
        acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
        c.mirrored = mirrored;
        acf_tensor *z = acf_tensor_packed(t, c.u, 0), *p = NULL;
        for (int64_t i = 0; i < c.u->T; i++) z->data[i] = (acf_real)acf_lab_random(8, c.u->cell[i], -1, 1);
        acf_tensor *ours = b.like.kind->logp(t, &b.like, z, &c), *mean = b.like.kind->mean(t, &b.like, &c);
        p = written_out(&b, z, &c);
        acf_tensor *theirs = acf_sum_subset(t, acf_mixture_logp(t, p, z, 3, b.like.lo, b.like.hi), c.u);
        acf_tensor *again = acf_mixture_mean(t, written_out(&b, mean, &c), 3);
        if (acf_tape_status(t)) fail_msg("%s", acf_error());
        for (int64_t i = 0; i < c.u->N; i++)
            acf_assert_close((double)ours->data[i], (double)theirs->data[i], 500 * (double)ACF_REAL_EPS, "log p");
        for (int64_t i = 0; i < c.u->T; i++)
            acf_assert_close((double)mean->data[i], (double)again->data[i], 500 * (double)ACF_REAL_EPS, "mean");
        const acf_draw draw = {.seed = 9, .draw = 2};
        acf_tensor *drawn = b.like.kind->sample(t, &b.like, &c, &draw);
        again = acf_mixture_sample(t, written_out(&b, drawn, &c), 3, b.like.lo, b.like.hi, &draw);
        if (acf_tape_status(t)) fail_msg("%s", acf_error());
        for (int64_t i = 0; i < c.u->T; i++)
            acf_assert_close((double)drawn->data[i], (double)again->data[i], 500 * (double)ACF_REAL_EPS, "draw");
        acf_model_lab_close(&b.m);
    }
}

/* Stratified values of a 1-D density: the count in every bin is that of its integral, to two, and their mean is the
 * density's. */
static void stratified_values_follow_the_density(void **state) {
    (void)state;
    enum { N = 2000, VALUES = 512 };
    for (int k = 0; k < KINDS; k++) {
        if (kinds[k]->whole_row) continue;
        bench b;
        open_bench(&b, kinds[k], "affine leaky rnn", (acf_size){N, 1, ACF_MASK_ALL});
        for (int64_t i = 0; i < N * b.s.context; i++) b.m.context[i] = b.m.context[i % b.s.context];
        acf_cond c = acf_model_lab_begin(&b.m, false, &b.s), behind = acf_chain_cond(&b.chain, &c);
        acf_tensor *x[VALUES], *grid = acf_tensor_packed(b.m.l.t, c.u, 0);
        b.like.kind->cell_values(b.m.l.t, &b.like, &behind, VALUES, x);
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
            if (fabs(under / VALUES - below) > 4.0 / VALUES)
                fail_msg("%s: %g of the values, %g of the mass", b.like.kind->name, under / VALUES, below);
        }
        acf_assert_close(mean, want, 0.03, b.like.kind->name);
        acf_model_lab_close(&b.m);
    }
}

/* The choices of the option are the kinds of the list, in its order. One kind has no functions, and its flag says
 * so. */
static void the_option_names_the_kinds(void **state) {
    (void)state;
    acf_options *o;
    assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
    for (int k = 0; k < KINDS; k++) {
        assert_ptr_equal(acf_like_kinds[k], kinds[k]);
        assert_string_equal(kinds[k]->name, names[k]);
        assert_int_equal(acf_options_set_from(o, "likelihood", names[k], ACF_FROM_USER), ACF_OK);
        assert_ptr_equal(acf_like_chosen(o), kinds[k]);
        assert_true(kinds[k]->whole_row ? !kinds[k]->logp : kinds[k]->declare && kinds[k]->logp && kinds[k]->mean);
    }
    assert_null(acf_like_kinds[KINDS]);
    acf_options_free(o);
}

/* A wide table is drawn in the memory of one step: keeping the other steps would take fifty times as much. */
static void draws_of_deep_sets_take_the_memory_of_one_step(void **state) {
    (void)state;
    enum { N = 40, WIDE = 60 };
    bench b;
    open_bench(&b, &acf_like_sets, "", (acf_size){N, WIDE, ACF_MASK_ALL});
    size_t peak[2];
    for (int way = 0; way < 2; way++) {
        for (int64_t i = 0; i < N * WIDE; i++) b.m.l.b[i] = i % WIDE >= (way ? WIDE : 2);
        acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
        size_t before = acf_arena_used(b.m.l.t->mem);
        b.like.kind->sample(b.m.l.t, &b.like, &c, &(acf_draw){.seed = 3});
        assert_int_equal(acf_tape_status(b.m.l.t), ACF_OK);
        peak[way] = acf_arena_high_water(b.m.l.t->mem) - before;
    }
    assert_true(peak[1] < peak[0] + N * (WIDE + 20) * sizeof(acf_real));
    acf_model_lab_close(&b.m);
}

ACF_TESTS(like, cmocka_unit_test(stratified_values_follow_the_density), cmocka_unit_test(densities_integrate_to_one),
          cmocka_unit_test(gradients_are_right), cmocka_unit_test(samples_follow_the_density),
          cmocka_unit_test(the_gaussian_mean_is_its_mean), cmocka_unit_test(deep_sets_equal_the_explicit_network),
          cmocka_unit_test(the_option_names_the_kinds),
          cmocka_unit_test(draws_of_deep_sets_take_the_memory_of_one_step))
