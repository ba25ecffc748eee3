/* Transformations: inverse and forward undo each other, log-determinants equal those of the numeric Jacobian, gradients
 * are right, for every kind and for chains, for every kind of mask. */
#include "flow/flow.h"

#include "base/options.h"
#include "harness/model_lab.h"
#include "ops/arith.h"
#include "ops/reduce.h"

#include <math.h>
#include <string.h>

/* None, every kind alone, and some chains. */
static const char *const chains[] = {
    "",
#define ACF_FLOW(kind, name) name,
#include "base/flow_list.h"
#undef ACF_FLOW
    "linear leaky rnn reverse linear leaky rnn",
    "affine, coupling, reverse, lowrank, leaky, rnn-shift, reverse, packed",
};
enum { CHAINS = sizeof chains / sizeof chains[0], KINDS = CHAINS - 3 };

static const acf_size sizes[] = {{0, 3, ACF_MASK_RANDOM}, {1, 1, ACF_MASK_ALL}, {2, 4, ACF_MASK_NONE},
                                 {3, 4, ACF_MASK_ONE},    {4, 3, ACF_MASK_ALL}, {6, 5, ACF_MASK_RANDOM}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

enum { CELLS = 500 }; /* of the largest case */

typedef struct bench {
    acf_model_lab m;
    acf_flow_sizes s;
    acf_chain chain;
    acf_real x[CELLS]; /* (N,D) input of the chain, all columns */
} bench;

/* One flow at a time, or a chain; told: with column embeddings. rank 2 in every second case. */
static void open_bench(bench *b, const char *kinds, acf_size size, bool told, int64_t rank) {
    b->s = acf_model_lab_sizes(size.D, told ? 2 : 0);
    b->s.rank = rank;
    acf_model_lab_open(&b->m, size.N, size.mask, &b->s, 17 + (uint64_t)(size.N + 10 * size.D));
    assert_int_equal(acf_chain_declare(&b->chain, b->m.ps, "flow", kinds, &b->s), ACF_OK);
    acf_model_lab_ready(&b->m, 0.2);
    for (int i = 0; i < CELLS; i++) b->x[i] = (acf_real)acf_lab_random(8, i, -1.5, 1.5);
}

static acf_tensor *values(bench *b) {
    acf_tensor *x = acf_tensor_packed(b->m.l.t, b->m.l.u, 0);
    for (int64_t p = 0; p < b->m.l.u->T; p++) x->data[p] = b->x[b->m.l.u->cell[p]];
    return x;
}

static void check_there_and_back(bench *b, const char *kinds) {
    acf_cond c = acf_model_lab_begin(&b->m, false, &b->s);
    acf_tensor *there, *back, *x = values(b), *z = acf_chain_forward(b->m.l.t, &b->chain, x, &c, &there);
    acf_tensor *again = acf_chain_inverse(b->m.l.t, &b->chain, z, &c, &back);
    if (acf_tape_status(b->m.l.t)) fail_msg("%s: %s", kinds, acf_error());
    double tol = sizeof(acf_real) == 8 ? 1e-10 : 1e-5;
    for (int64_t p = 0; p < b->m.l.u->T; p++) acf_assert_close((double)again->data[p], (double)x->data[p], tol, kinds);
    for (int64_t i = 0; i < b->m.l.N; i++) acf_assert_close((double)back->data[i], -(double)there->data[i], tol, kinds);
}

static void inverse_undoes_forward(void **state) {
    (void)state;
    for (int k = 0; k < CHAINS; k++)
        for (int s = 0; s < SIZES; s++)
            for (int told = 0; told < 2; told++) {
                bench b;
                open_bench(&b, chains[k], sizes[s], told, s % 2 ? 2 : 0);
                check_there_and_back(&b, chains[k]);
                acf_model_lab_close(&b.m);
            }
}

/* Without recording a chain keeps only the result of each link: the same numbers, in memory that does not grow with its
 * length. There are enough rows to outweigh the weights that a link lays out while it runs. */
static void unrecorded_chains_use_bounded_memory(void **state) {
    (void)state;
    static const char link[] = "linear leaky rnn ";
    char longer[8 * sizeof link] = "";
    for (int k = 0; k < 8; k++) strcat(longer, link);
    size_t most[2][2]; /* [recording][long] */
    double first[2] = {0};
    for (int record = 0; record < 2; record++)
        for (int k = 0; k < 2; k++) {
            bench b;
            open_bench(&b, k ? longer : link, (acf_size){100, 5, ACF_MASK_RANDOM}, true, 0);
            acf_cond c = acf_model_lab_begin(&b.m, record, &b.s);
            acf_tensor *logdet, *z = acf_chain_forward(b.m.l.t, &b.chain, values(&b), &c, &logdet);
            if (acf_tape_status(b.m.l.t)) fail_msg("%s", acf_error());
            double sum = 0;
            for (int64_t p = 0; p < b.m.l.u->T; p++) sum += (double)z->data[p];
            for (int64_t i = 0; i < b.m.l.N; i++) sum += (double)logdet->data[i];
            if (!record) first[k] = sum;
            assert_true(sum == first[k] && sum != 0);
            most[record][k] = acf_arena_high_water(b.m.l.t->mem);
            acf_model_lab_close(&b.m);
        }
    assert_true(most[1][1] > 4 * most[1][0]);
    assert_true(most[0][1] < 2 * most[0][0]);
}

/* A wrong number is attributed to the operation that made it, although its node is released. */
static void unrecorded_chains_name_the_failing_operation(void **state) {
    (void)state;
    bench b;
    open_bench(&b, "leaky affine leaky", (acf_size){4, 3, ACF_MASK_ALL}, false, 0);
    b.x[4] = INFINITY;
    acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
    acf_chain_forward(b.m.l.t, &b.chain, values(&b), &c, NULL);
    assert_int_equal(acf_tape_status(b.m.l.t), ACF_ENUMERIC);
    assert_non_null(strstr(acf_error(), "leaky_forward: the output is inf at row 1, column 1"));
    acf_model_lab_close(&b.m);
}

/* log|det| of a small matrix by elimination with pivoting. */
static double log_det(double a[8][8], int n) {
    double sum = 0;
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int r = k + 1; r < n; r++)
            if (fabs(a[r][k]) > fabs(a[best][k])) best = r;
        for (int c = 0; c < n; c++) {
            double swap = a[k][c];
            a[k][c] = a[best][c], a[best][c] = swap;
        }
        sum += log(fabs(a[k][k]));
        for (int r = k + 1; r < n; r++)
            for (int c = n - 1; c >= k; c--) a[r][c] -= a[r][k] / a[k][k] * a[k][c];
    }
    return sum;
}

/* z of row i with one of its modelled values moved. */
static void moved(bench *b, int64_t i, int64_t column, double by, double *z) {
    acf_real *x = &b->x[i * b->m.l.D + column], old = *x;
    *x += (acf_real)by;
    acf_cond c = acf_model_lab_begin(&b->m, false, &b->s);
    acf_tensor *out = acf_chain_forward(b->m.l.t, &b->chain, values(b), &c, NULL);
    assert_int_equal(acf_tape_status(b->m.l.t), ACF_OK);
    for (int64_t t = 0; t < b->m.l.u->size[i]; t++) z[t] = (double)out->data[acf_subset_at(b->m.l.u, i, t)];
    *x = old;
}

static double numeric_logdet(bench *b, int64_t i) {
    const double h = 1e-5;
    double jacobian[8][8], plus[8], minus[8];
    int n = b->m.l.u->size[i];
    int32_t cols[8];
    memcpy(cols, b->m.l.u->cols + i * b->m.l.D, (size_t)n * sizeof cols[0]); /* every run rebuilds the subset */
    for (int k = 0; k < n; k++) {
        moved(b, i, cols[k], h, plus);
        moved(b, i, cols[k], -h, minus);
        for (int r = 0; r < n; r++) jacobian[r][k] = (plus[r] - minus[r]) / (2 * h);
    }
    return log_det(jacobian, n);
}

static void logdet_is_that_of_the_jacobian(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("numeric Jacobians run in double");
    for (int k = 0; k < CHAINS; k++)
        for (int s = 0; s < SIZES; s++) {
            bench b;
            open_bench(&b, chains[k], sizes[s], s % 2, s % 2 ? 0 : 2);
            acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
            acf_tensor *logdet;
            acf_chain_forward(b.m.l.t, &b.chain, values(&b), &c, &logdet);
            assert_int_equal(acf_tape_status(b.m.l.t), ACF_OK);
            double ours[8] = {0};
            for (int64_t i = 0; i < b.m.l.N; i++) ours[i] = (double)logdet->data[i];
            for (int64_t i = 0; i < b.m.l.N; i++) acf_assert_close(ours[i], numeric_logdet(&b, i), 1e-7, chains[k]);
            acf_model_lab_close(&b.m);
        }
}

/* Both directions in one loss, as in training: sum of squares of z, of the inverse, and of the log-determinants. */
static acf_tensor *loss(acf_model_lab *m, void *ctx) {
    bench *b = ctx;
    acf_tape *t = m->l.t;
    acf_cond c = acf_model_lab_begin(m, true, &b->s);
    acf_tensor *there, *z = acf_chain_forward(t, &b->chain, values(b), &c, &there);
    acf_tensor *back, *x = acf_chain_inverse(t, &b->chain, values(b), &c, &back);
    acf_tensor *logdets = acf_add(t, acf_square(t, there), acf_axpy(t, 0.5, acf_square(t, back), there));
    return acf_add(t, acf_sum(t, logdets), acf_add(t, acf_sum(t, acf_square(t, z)), acf_sum(t, acf_square(t, x))));
}

static void gradients_are_right(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("gradient checks run in double");
    for (int k = 1; k < CHAINS; k++) {
        bench b;
        open_bench(&b, chains[k], (acf_size){6, 5, ACF_MASK_RANDOM}, k % 2, k % 3 ? 0 : 2);
        acf_model_lab_check_gradient(&b.m, loss, &b);
        acf_model_lab_close(&b.m);
    }
}

/* Before training every transformation is the identity, or nearly; only reverses move values. */
static void starts_near_the_identity(void **state) {
    (void)state;
    bench b;
    b.s = acf_model_lab_sizes(5, 2);
    acf_model_lab_open(&b.m, 6, ACF_MASK_RANDOM, &b.s, 3);
    assert_int_equal(acf_chain_declare(&b.chain, b.m.ps, "flow", "linear packed lowrank coupling affine", &b.s),
                     ACF_OK);
    acf_model_lab_ready(&b.m, 0);
    for (int i = 0; i < 64; i++) b.x[i] = (acf_real)acf_lab_random(8, i, -1.5, 1.5);
    acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
    acf_tensor *logdet, *x = values(&b), *z = acf_chain_forward(b.m.l.t, &b.chain, x, &c, &logdet);
    for (int64_t p = 0; p < b.m.l.u->T; p++) acf_assert_close((double)z->data[p], (double)x->data[p], 1e-6, "identity");
    for (int64_t i = 0; i < 6; i++) acf_assert_close((double)logdet->data[i], 0, 1e-6, "identity");
    acf_model_lab_close(&b.m);
}

static void names_the_nearest_kind(void **state) {
    (void)state;
    acf_model_lab m;
    acf_flow_sizes s = acf_model_lab_sizes(3, 0);
    acf_model_lab_open(&m, 2, ACF_MASK_ALL, &s, 3);
    acf_chain chain;
    assert_int_equal(acf_chain_declare(&chain, m.ps, "flow", "linear laeky", &s), ACF_EUSAGE);
    assert_string_equal(acf_error(), "there is no transformation 'laeky'; did you mean 'leaky'?");
    assert_int_equal(acf_chain_declare(&chain, m.ps, "other", "spline-of-degree-seven-and-much-more", &s), ACF_EUSAGE);
    assert_int_equal(acf_chain_declare(&chain, m.ps, "another", "spline", &s), ACF_EUSAGE);
    for (int k = 1; k <= KINDS; k++) assert_non_null(strstr(acf_error(), chains[k]));
    acf_model_lab_close(&m);
}

/* The line of a kind in the list and its table have the same name, and the option's help lists it. */
static void kinds_have_their_names(void **state) {
    (void)state;
    int row = 0;
    while (strcmp(acf_option_table[row].name, "flow") != 0) row++;
    for (int k = 1; k <= KINDS; k++) {
        assert_string_equal(acf_flow_kinds[k - 1]->name, chains[k]);
        assert_ptr_equal(acf_flow_find(chains[k]), acf_flow_kinds[k - 1]);
        assert_non_null(strstr(acf_option_table[row].help, chains[k]));
    }
    assert_null(acf_flow_kinds[KINDS]);
}

/* The device is chosen from the option's text, before there is a chain: whole words of it count. */
static void recurrent_kinds_are_found_in_the_option(void **state) {
    (void)state;
    assert_true(acf_chain_recurrent("affine, rnn-shift reverse") && acf_chain_recurrent("  rnn"));
    assert_true(!acf_chain_recurrent("") && !acf_chain_recurrent("linear leaky reverse") &&
                !acf_chain_recurrent("rnn-like"));
    assert_true(!acf_chain_recurrent("affine-of-degree-seven-and-much-more"));
}

/* The code after a chain gets the order of the values. */
static void reverses_change_the_order(void **state) {
    (void)state;
    static const char *const kinds[] = {"", "reverse", "reverse leaky affine", "reverse linear reverse"};
    static const bool mirrored[] = {false, true, true, false};
    for (int k = 0; k < 4; k++) {
        acf_model_lab m;
        acf_flow_sizes s = acf_model_lab_sizes(3, 0);
        acf_model_lab_open(&m, 2, ACF_MASK_ALL, &s, 3);
        acf_chain chain;
        assert_int_equal(acf_chain_declare(&chain, m.ps, "flow", kinds[k], &s), ACF_OK);
        const acf_cond c = acf_chain_cond(&chain, &(acf_cond){0});
        if (c.mirrored != mirrored[k]) fail_msg("'%s'", kinds[k]);
        acf_model_lab_close(&m);
    }
}

/* A change of a context cell must change the result of every kind that has a network, and of no other. */
static void networks_see_the_context(void **state) {
    (void)state;
    for (int k = 1; k <= KINDS; k++) {
        bench b;
        open_bench(&b, chains[k], (acf_size){3, 4, ACF_MASK_ALL}, false, 0);
        double sum[2] = {0, 0};
        for (int run = 0; run < 2; run++) {
            b.m.context[1] += (acf_real)(0.5 * run);
            acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
            acf_tensor *z = acf_chain_forward(b.m.l.t, &b.chain, values(&b), &c, NULL);
            for (int64_t p = 0; p < b.m.l.u->T; p++) sum[run] += (double)z->data[p] * (double)(p + 1);
        }
        bool blind = b.chain.flow[0].net[0].layers == 0 && b.chain.flow[0].rnn.layers == 0;
        if ((sum[0] == sum[1]) != blind)
            fail_msg("%s: the context %s", chains[k], blind ? "changes it" : "does not matter");
        acf_model_lab_close(&b.m);
    }
}

/* Rows of one value: several sets at once give the inverse of each set. */
static void several_sets_equal_the_inverse(void **state) {
    (void)state;
    enum { SETS = 3 };
    const acf_size size = {5, 4, ACF_MASK_ONE};
    for (int k = 0; k < CHAINS; k++) {
        bench b;
        open_bench(&b, chains[k], size, k % 2, k % 3 ? 2 : 0);
        acf_cond c = acf_model_lab_begin(&b.m, false, &b.s);
        acf_tensor *z[SETS], *want[SETS];
        for (int i = 0; i < SETS; i++) {
            z[i] = acf_scale(b.m.l.t, 1 - 2 * i, values(&b)); /* both signs: leaky has two slopes */
            want[i] = acf_chain_inverse(b.m.l.t, &b.chain, z[i], &c, NULL);
        }
        acf_chain_inverse_alone(b.m.l.t, &b.chain, SETS, z, &c);
        if (acf_tape_status(b.m.l.t)) fail_msg("%s: %s", chains[k], acf_error());
        for (int i = 0; i < SETS; i++)
            for (int64_t p = 0; p < b.m.l.u->T; p++)
                acf_assert_close((double)z[i]->data[p], (double)want[i]->data[p], sizeof(acf_real) == 8 ? 1e-10 : 1e-5,
                                 chains[k]);
        acf_model_lab_close(&b.m);
    }
}

ACF_TESTS(flow, cmocka_unit_test(several_sets_equal_the_inverse), cmocka_unit_test(inverse_undoes_forward),
          cmocka_unit_test(unrecorded_chains_use_bounded_memory),
          cmocka_unit_test(unrecorded_chains_name_the_failing_operation),
          cmocka_unit_test(logdet_is_that_of_the_jacobian), cmocka_unit_test(gradients_are_right),
          cmocka_unit_test(starts_near_the_identity), cmocka_unit_test(names_the_nearest_kind),
          cmocka_unit_test(networks_see_the_context), cmocka_unit_test(reverses_change_the_order),
          cmocka_unit_test(kinds_have_their_names), cmocka_unit_test(recurrent_kinds_are_found_in_the_option))
