/* Tests of acf_net_calibrate against formulas: its effect on densities, class probabilities and draws, and what it
 * must not change. */
#include "model/net.h"

#include "harness/net_lab.h"

#include <math.h>
#include <string.h>

enum { N = 40, D = 3 };
static const acf_column columns[D] = {{"dose", 0}, {"site", 3}, {"age", 0}};
static const char *const likelihoods[] = {"likelihood=gru", "likelihood=sets", "likelihood=attention"};

/* One Gaussian for each cell, no transformation: all rows model this column given the others. */
static void open_lab(acf_net_lab *b, const char *likelihood, int target) {
    acf_net_lab_open(b, (const char *[]){likelihood, "flow=", "gmm=0", "components=1", NULL}, N, D, columns);
    for (int64_t k = 0; k < N * D; k++) {
        b->batch->m[k] = 1, b->batch->b[k] = k % D != target;
        b->batch->code[k] = k % D == 1 ? (int32_t)(k / D % 3) : -1;
        if (k % D == 1) b->batch->x[k] = (acf_real)(k / D % 3);
    }
}

static void calibrate(acf_net_lab *b, double scale_factor, double temperature) {
    if (acf_net_calibrate(b->net, scale_factor, temperature)) fail_msg("%s", acf_error());
}

static void logp(acf_net_lab *b, double *out) {
    const acf_real *lp = acf_net_lab_logp(b, NULL, false);
    for (int i = 0; i < N; i++) out[i] = (double)lp[i];
}

static void draw(acf_net_lab *b, bool guess, acf_real *out) {
    acf_tape_begin(b->t, false);
    acf_view *v = acf_net_view(b->t, b->net, b->batch, NULL);
    if (guess ? acf_net_guess(b->t, v, out) : acf_net_draw(b->t, v, &(acf_draw){.seed = 2}, out))
        fail_msg("%s", acf_error());
}

/* log p = -½ e² σ⁻² - log σ - const: the change by one factor gives e²/σ², which predicts the change by another. */
static void scales_are_multiplied(void **state) {
    (void)state;
    const double tolerance = sizeof(acf_real) == 8 ? 1e-9 : 1e-3;
    for (int k = 0; k < 3; k++) {
        acf_net_lab b;
        double at0[N], at3[N], at5[N];
        acf_real guess[N * D], drawn[N * D], wide[N * D], same[N * D];
        open_lab(&b, likelihoods[k], 2);
        assert_true(acf_net_widen_scale(b.net) && acf_net_soften_classes(b.net));
        logp(&b, at0), draw(&b, true, guess), draw(&b, false, drawn);
        calibrate(&b, 0.3, 0);
        logp(&b, at3), draw(&b, true, same), draw(&b, false, wide);
        calibrate(&b, 0.2, 0); /* cumulative */
        logp(&b, at5);
        for (int i = 0; i < N; i++) {
            const double e2 = 2 * (at3[i] - at0[i] + 0.3) / (1 - exp(-0.6)), c = 2 + D * i;
            acf_assert_close(at5[i] - at0[i], 0.5 * e2 * (1 - exp(-1)) - 0.5, tolerance, "log p of wider mixtures");
            const double before = (double)(drawn[(int)c] - guess[(int)c]),
                         after = (double)(wide[(int)c] - guess[(int)c]);
            acf_assert_close(after, exp(0.3) * before, tolerance, "a draw of a wider mixture");
            assert_true(same[(int)c] == guess[(int)c]);
        }
        acf_net_lab_close(&b);
    }
}

/* Log-odds of all pairs of classes are divided by the temperature. */
static void logits_are_divided(void **state) {
    (void)state;
    const double tolerance = sizeof(acf_real) == 8 ? 1e-9 : 1e-4;
    for (int k = 0; k < 3; k++) {
        acf_net_lab b;
        acf_real sharp[N * 3], soft[N * 3];
        open_lab(&b, likelihoods[k], 1);
        for (int round = 0; round < 2; round++) {
            acf_tape_begin(b.t, false);
            if (acf_net_class_probs(b.t, acf_net_view(b.t, b.net, b.batch, NULL), round ? soft : sharp))
                fail_msg("%s", acf_error());
            calibrate(&b, 0, 0.4);
        }
        for (int i = 0; i < N; i++)
            for (int c = 1; c < 3; c++)
                acf_assert_close(log((double)(soft[3 * i + c] / soft[3 * i])),
                                 exp(-0.4) * log((double)(sharp[3 * i + c] / sharp[3 * i])), tolerance, "log-odds");
        acf_net_lab_close(&b);
    }
}

/* Each factor changes only its own columns; 0 changes no bit. */
static void nothing_else_changes(void **state) {
    (void)state;
    for (int k = 0; k < 4; k++) {
        acf_net_lab b;
        double before[N], after[N];
        open_lab(&b, likelihoods[k % 2], k < 2 ? 2 : 1);
        logp(&b, before);
        calibrate(&b, k < 2 ? 0 : 0.5, k < 2 ? 0.5 : 0);
        logp(&b, after);
        assert_memory_equal(before, after, sizeof before);
        acf_net_lab_close(&b);
    }
    acf_net_lab b;
    acf_net_lab_open(&b, (const char *[]){"likelihood=gaussian", "flow=", "gmm=0", NULL}, N, D, NULL);
    const acf_params *ps = acf_net_params(b.net);
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    acf_real *copy = acf_alloc(bytes, "weights");
    assert_non_null(copy);
    memcpy(copy, ps->value, bytes);
    assert_false(acf_net_widen_scale(b.net) || acf_net_soften_classes(b.net));
    calibrate(&b, 0.5, 0.5);
    assert_memory_equal(copy, ps->value, bytes);
    acf_release(copy);
    acf_net_lab_close(&b);
}

ACF_TESTS(net_calibrate, cmocka_unit_test(scales_are_multiplied), cmocka_unit_test(logits_are_divided),
          cmocka_unit_test(nothing_else_changes))
