/* Tests of normal_scores.h: columns of every shape become nearly normal, forward map and inverse agree, slopes are
 * derivatives, and few observations change little. */
#include "table/normal_scores.h"

#include "base/arena.h"
#include "base/rng.h"
#include "harness/lab.h"
#include "ops/gaussian.h"

#include <math.h>
#include <stdlib.h>

enum { N = 4000 };
static double t[N];

static double uniform(int i) { return acf_rng_uniform((acf_rng_counter){9, (uint64_t)i, ACF_STREAM_TEST, 0, 0}); }
static double normal(int i) { return acf_rng_normal((acf_rng_counter){9, (uint64_t)i, ACF_STREAM_TEST, 1, 0}); }

/* Shapes of columns. */
typedef enum shape {
    LOGNORMAL,
    CAUCHY,
    OUTLIERS,
    SPIKE,
    WHOLE,
    SHAPES,
    NORMAL = SHAPES,
    UNIFORM,
    TWO_HUMPS,
    BINARY,
    RARE,
    ALL
} shape;
static double value(shape s, int i) {
    double u = uniform(i), e = normal(i);
    switch (s) {
    case NORMAL: return e;
    case LOGNORMAL: return exp(e);
    case UNIFORM: return u;
    case TWO_HUMPS: return u < 0.3 ? -5 + e : 5 + 0.2 * e;
    case CAUCHY: return tan(3.14159 * (u - 0.5));
    case OUTLIERS: return i % 1000 == 7 ? 12 + u : u;
    case SPIKE: return u < 0.92 ? 0 : floor(5000 * exp(e));
    case WHOLE: return floor(1 + 10 * u * u);
    case BINARY: return u < 0.4;
    case RARE: return u < 0.99 ? 0.5 : 1;
    default: return 0;
    }
}
static double step_of(shape s) { return s == SPIKE || s == WHOLE || s == BINARY ? 1 : s == RARE ? 0.1 : 0; }

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* t[0..n): the column, standardised and sorted; returns its step. */
static double make(shape s, int n) {
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++) mean += (t[i] = value(s, i)) / n;
    for (int i = 0; i < n; i++) square += (t[i] - mean) * (t[i] - mean) / n;
    for (int i = 0; i < n; i++) t[i] = (t[i] - mean) / sqrt(square);
    qsort(t, (size_t)n, sizeof *t, by_value);
    return step_of(s) / sqrt(square);
}

static acf_normal_scores fitted(shape s, int n) {
    acf_normal_scores w;
    double step = make(s, n);
    assert_int_equal(acf_normal_scores_fit(t, n, step, &w), ACF_OK);
    assert_true(acf_normal_scores_valid(&w) && w.n >= 2 && w.n <= ACF_NORMAL_SCORES_KNOTS);
    return w;
}

/* Dequantised values become standard normal: the largest distance of the two distribution functions is small, even if
 * most of the column is one value. */
static void makes_columns_normal(void **state) {
    (void)state;
    for (shape s = 0; s < SHAPES; s++) {
        acf_normal_scores w = fitted(s, N);
        double step = make(s, N), worst = 0;
        static double z[N];
        for (int i = 0; i < N; i++) z[i] = acf_normal_scores_forward(&w, t[i] + step * (uniform(N + i) - 0.5));
        qsort(z, N, sizeof *z, by_value);
        for (int i = 0; i < N; i++) worst = fmax(worst, fabs(acf_normal_tail(z[i], false) - (i + 0.5) / N));
        if (!(worst < 0.03)) fail_msg("shape %d: distance %g", (int)s, worst);
        assert_true(z[0] > -4.5 && z[N - 1] < 4.5);
        acf_normal_scores_free(&w);
    }
}

static void forward_and_inverse_agree(void **state) {
    (void)state;
    for (shape s = 0; s < SHAPES; s++) {
        acf_normal_scores w = fitted(s, N);
        double last = -INFINITY;
        for (double z = -30; z <= 30; z += 0.0371) {
            double at = acf_normal_scores_inverse(&w, z), slope = exp(acf_normal_scores_log_slope(&w, at));
            assert_true(at > last);
            last = at;
            double error = 1e-14 * (fabs(at) * slope + fabs(z) + 1); /* cost of rounding `at` */
            assert_true(fabs(acf_normal_scores_forward(&w, at) - z) <= 100 * error);
            double h = 1e-4 / slope,
                   rise = acf_normal_scores_forward(&w, at + h) - acf_normal_scores_forward(&w, at - h);
            double a = exp(acf_normal_scores_log_slope(&w, at - h)),
                   b = exp(acf_normal_scores_log_slope(&w, at + h)); /* a knot may lie between */
            assert_true(rise >= 2 * h * fmin(fmin(a, b), slope) * 0.9 - 1e-9 &&
                        rise <= 2 * h * fmax(fmax(a, b), slope) * 1.1 + 1e-9);
        }
        for (int32_t k = 0; k < w.n; k++) {
            assert_true(acf_normal_scores_forward(&w, w.t[k]) == w.z[k]);
            assert_true(acf_normal_scores_inverse(&w, w.z[k]) == w.t[k]);
        }
        acf_normal_scores_free(&w);
    }
}

/* exp(log slope) is the derivative: under a normal z the density of t integrates to the share between two points. */
static void slopes_are_derivatives(void **state) {
    (void)state;
    acf_normal_scores w = fitted(LOGNORMAL, N);
    double sum = 0, step = 1e-4, from = w.t[1], to = w.t[w.n - 2];
    for (double at = from + step / 2; at < to; at += step) {
        double z = acf_normal_scores_forward(&w, at);
        sum += step * exp(-0.5 * z * z - ACF_HALF_LOG_2PI + acf_normal_scores_log_slope(&w, at));
    }
    acf_assert_close(sum, acf_normal_tail(w.z[w.n - 2], false) - acf_normal_tail(w.z[1], false), 1e-4, "integral");
    acf_normal_scores_free(&w);
}

/* With few observations the prior dominates: the map is nearer the identity than with many. */
static void few_observations_change_little(void **state) {
    (void)state;
    double move[3];
    const int n[3] = {12, 50, N};
    for (int k = 0; k < 3; k++) {
        acf_normal_scores w = fitted(WHOLE, n[k]);
        move[k] = 0;
        for (double at = -1; at <= 1.2; at += 0.01)
            move[k] = fmax(move[k], fabs(acf_normal_scores_forward(&w, at) - at));
        acf_normal_scores_free(&w);
    }
    if (!(move[0] < 0.7 * move[2] && move[1] < move[2] && move[2] > 0.3))
        fail_msg("moves %g %g %g", move[0], move[1], move[2]);
}

/* Beyond the observed values a bound is not a wall, and a heavy tail continues. */
static void tails_continue(void **state) {
    (void)state;
    acf_normal_scores w = fitted(WHOLE, N);
    double top = w.t[w.n - 2], slope = acf_normal_scores_forward(&w, top + 1) - acf_normal_scores_forward(&w, top);
    assert_true(slope > 0.5 && slope <= 1);
    acf_normal_scores_free(&w);
    w = fitted(CAUCHY, N);
    assert_true(acf_normal_scores_forward(&w, 2 * w.t[w.n - 2]) < w.z[w.n - 2] + 0.2 * w.t[w.n - 2]);
    acf_normal_scores_free(&w);
}

/* A heavy tail keeps its growth: draws beyond the largest of 4,000 log-normal values are as far out as they should be,
 * not on a line through the last two. */
static void tails_keep_their_growth(void **state) {
    (void)state;
    const double mean = exp(0.5), deviation = sqrt((exp(1) - 1) * exp(1));
    for (int n = 400; n <= N; n *= 10) {
        for (int i = 0; i < n; i++) t[i] = (exp(acf_normal_quantile((i + 0.5) / n, false)) - mean) / deviation;
        acf_normal_scores w;
        assert_int_equal(acf_normal_scores_fit(t, n, 0, &w), ACF_OK);
        for (double z = 3.3; z < 4.6; z += 0.4) {
            const double x = mean + deviation * acf_normal_scores_inverse(&w, z);
            if (!(fabs(x / exp(z) - 1) < 0.3)) fail_msg("%d rows: %g at %g, expected %g", n, x, z, exp(z));
        }
        acf_normal_scores_free(&w);
    }
}

/* The growth is limited: five deviations beyond the observed values a Cauchy column has thousands of times its largest
 * value; here it has tens. */
static void tails_stop_growing(void **state) {
    (void)state;
    acf_normal_scores w = fitted(CAUCHY, 400);
    const double top = t[399], far = acf_normal_scores_inverse(&w, acf_normal_scores_forward(&w, top) + 5);
    if (!(far > 5 * top && far < 100 * top)) fail_msg("five deviations beyond %g lies %g", top, far);
    acf_normal_scores_free(&w);
}

static void what_needs_no_bending_stays(void **state) {
    (void)state;
    for (shape s = NORMAL; s < ALL; s++) {
        acf_normal_scores w;
        double step = make(s, N);
        assert_int_equal(acf_normal_scores_fit(t, N, step, &w), ACF_OK);
        assert_int_equal(w.n, 0);
    }
}

static void nothing_to_bend(void **state) {
    (void)state;
    const double one[3] = {0, 0, 0};
    acf_normal_scores w;
    for (int n = 0; n <= 3; n++) {
        assert_int_equal(acf_normal_scores_fit(one, n, 0, &w), ACF_OK);
        assert_true(w.n == 0 && acf_normal_scores_valid(&w) && acf_normal_scores_forward(&w, 1.5) == 1.5 &&
                    acf_normal_scores_inverse(&w, 1.5) == 1.5);
        assert_true(acf_normal_scores_log_slope(&w, 1.5) == 0);
        acf_normal_scores_free(&w);
    }
}

static void invalid_knots_are_refused(void **state) {
    (void)state;
    double a[3] = {0, 1, 2}, b[3] = {0, 1, 1}, c[3] = {0, (double)NAN, 2}, d[3] = {0, 1e-320, 2};
    assert_true(acf_normal_scores_valid(&(acf_normal_scores){3, a, a}) &&
                !acf_normal_scores_valid(&(acf_normal_scores){3, a, b}) &&
                !acf_normal_scores_valid(&(acf_normal_scores){3, b, a}));
    assert_true(!acf_normal_scores_valid(&(acf_normal_scores){3, a, c}) &&
                !acf_normal_scores_valid(&(acf_normal_scores){1, a, a}) &&
                !acf_normal_scores_valid(&(acf_normal_scores){3, d, a}));
}

static void memory_may_run_out(void **state) {
    (void)state;
    int64_t live = acf_alloc_live();
    double step = make(WHOLE, 100);
    for (int64_t n = 1;; n++) {
        acf_normal_scores w = {0};
        acf_alloc_fail_at(n);
        acf_status status = acf_normal_scores_fit(t, 100, step, &w);
        acf_alloc_fail_at(0);
        acf_normal_scores_free(&w);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_in_range(n, 1, 5);
    }
}

/* ---- bending towards the ends of a bounded column ---------------------------------------------------------------- */

static const acf_normal_scores_ends unit = {.low = -1, .high = 2, .from = -0.9, .to = 1.8};

/* No z maps beyond an end, the middle is unchanged, forward map and inverse agree, and each step in z takes the same
 * share of the distance to the end. */
static void check_bent(const acf_normal_scores *w, const acf_normal_scores *before, double from, double to) {
    double share = 0;
    assert_true(acf_normal_scores_valid(w) && w->n <= ACF_NORMAL_SCORES_KNOTS);
    for (double v = from; v <= to; v += (to - from) / 50)
        assert_true(fabs(acf_normal_scores_forward(w, v) - acf_normal_scores_forward(before, v)) < 1e-12);
    for (double away = 0.04; away > 5e-4; away /= 1.5) {
        const double z = acf_normal_scores_forward(w, -1 + away), next = acf_normal_scores_forward(w, -1 + away / 1.5);
        assert_true(fabs(acf_normal_scores_inverse(w, z) + 1 - away) < 1e-12);
        /* the line between knots differs a little from the curve */
        if (share > 0) assert_true(fabs((z - next) / share - 1) < 0.05);
        share = z - next;
    }
    assert_true(acf_normal_scores_inverse(w, acf_normal_scores_forward(w, -0.95) - 0.5) >
                -1); /* five times as far as the start of the bend is from its end */
}

static void identity_bends_near_its_ends(void **state) {
    (void)state;
    acf_normal_scores w = {0};
    const acf_normal_scores none = {0};
    assert_int_equal(acf_normal_scores_bend(&w, &unit), ACF_OK);
    check_bent(&w, &none, -0.89, 1.79);
    acf_normal_scores_free(&w);
    assert_int_equal(acf_normal_scores_bend(&w, &(acf_normal_scores_ends){-1, INFINITY, -0.5, 1.8}),
                     ACF_OK); /* it begins 0.25 from its end at the latest */
    assert_true(fabs(acf_normal_scores_forward(&w, -0.74) + 0.74) < 1e-12 &&
                acf_normal_scores_forward(&w, -0.9) < -0.9);
    assert_true(fabs(acf_normal_scores_forward(&w, 50) - 50) < 1e-9);
    acf_normal_scores_free(&w);
    assert_int_equal(acf_normal_scores_bend(&w, &(acf_normal_scores_ends){-INFINITY, INFINITY, -1, 1}), ACF_OK);
    assert_int_equal(w.n, 0);
}

/* A fitted line continues from its outermost knots; if an end is at one, nothing is added. */
static void lines_lead_to_their_ends(void **state) {
    (void)state;
    acf_normal_scores w, before;
    make(LOGNORMAL, N);
    assert_int_equal(acf_normal_scores_fit(t, N, 0, &w), ACF_OK);
    assert_int_equal(acf_normal_scores_fit(t, N, 0, &before), ACF_OK);
    const double low = t[0] - 0.1, away = 0.1;
    assert_int_equal(acf_normal_scores_bend(&w, &(acf_normal_scores_ends){low, INFINITY, 0, 0}), ACF_OK);
    assert_true(acf_normal_scores_valid(&w) && w.n > before.n);
    for (int i = 0; i < N; i += 7)
        assert_true(fabs(acf_normal_scores_forward(&w, t[i]) - acf_normal_scores_forward(&before, t[i])) < 1e-12);
    assert_true(fabs(acf_normal_scores_forward(&w, t[N - 1] + 3) - acf_normal_scores_forward(&before, t[N - 1] + 3)) <
                1e-12);
    const int32_t first = w.n - before.n + ACF_NORMAL_SCORES_TAIL;
    const double slope = (w.z[first + 1] - w.z[first]) / (w.t[first + 1] - w.t[first]);
    const double z = acf_normal_scores_forward(&w, low + away / 9) - acf_normal_scores_forward(&w, t[0]);
    assert_true(fabs(z / (slope * away * log(1.0 / 9)) - 1) < 0.05);
    acf_normal_scores_free(&w);
    assert_int_equal(acf_normal_scores_fit(t, N, 0, &w), ACF_OK);
    assert_int_equal(acf_normal_scores_bend(&w, &(acf_normal_scores_ends){t[0], INFINITY, 0, 0}), ACF_OK);
    assert_true(w.n == before.n &&
                acf_normal_scores_forward(&w, t[0] - 5) == acf_normal_scores_forward(&before, t[0] - 5));
    acf_normal_scores_free(&w), acf_normal_scores_free(&before);
}

/* The largest of rounded values is one of n: about as much mass lies beyond it as on it, not zero. */
static void tails_continue_beyond_rounded_values(void **state) {
    (void)state;
    enum { FEW = 400 };
    const double step = 0.01;
    acf_normal_scores w;
    for (int i = 0; i < FEW; i++)
        t[i] = step * nearbyint(acf_normal_quantile((i + 0.5) / FEW, false) *
                                fabs(acf_normal_quantile((i + 0.5) / FEW, false)) / step);
    qsort(t, FEW, sizeof *t, by_value);
    assert_true(t[FEW - 1] > 5 && t[FEW - 1] > t[FEW - 2] + step);
    assert_int_equal(acf_normal_scores_fit(t, FEW, step, &w), ACF_OK);
    const double on = acf_normal_tail(acf_normal_scores_forward(&w, t[FEW - 1] - step / 2), true),
                 beyond = acf_normal_tail(acf_normal_scores_forward(&w, t[FEW - 1] + step / 2), true);
    assert_true(beyond > 0.2 / FEW && on - beyond < 0.2 / FEW);
    const double under = acf_normal_tail(acf_normal_scores_forward(&w, t[0] - step / 2), false);
    assert_true(under > 0.2 / FEW);
    acf_normal_scores_free(&w);
}

ACF_TESTS(normal_scores, cmocka_unit_test(tails_continue_beyond_rounded_values),
          cmocka_unit_test(identity_bends_near_its_ends), cmocka_unit_test(lines_lead_to_their_ends),
          cmocka_unit_test(makes_columns_normal), cmocka_unit_test(forward_and_inverse_agree),
          cmocka_unit_test(slopes_are_derivatives), cmocka_unit_test(few_observations_change_little),
          cmocka_unit_test(tails_continue), cmocka_unit_test(tails_keep_their_growth),
          cmocka_unit_test(tails_stop_growing), cmocka_unit_test(what_needs_no_bending_stays),
          cmocka_unit_test(nothing_to_bend), cmocka_unit_test(invalid_knots_are_refused),
          cmocka_unit_test(memory_may_run_out))
