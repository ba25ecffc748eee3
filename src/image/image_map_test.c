/* Tests of image_map.h: monotone, exact round trips, a density over levels, the log-slope against differences, and
 * the fit to a histogram. */
#include "image/image_map.h"

#include "harness/lab.h"
#include "ops/gaussian.h"

#include <math.h>
#include <string.h>

/* Histograms: none, flat, a digit's black, a drawing of two levels, hills, one level alone, few levels with large
 * gaps. */
enum { HISTOGRAMS = 7 };
static void histogram(int which, int bits, int64_t *count) {
    const int levels = 1 << bits;
    for (int k = 0; k < levels; k++) {
        const double at = (k + 0.5) / levels;
        const int64_t of[HISTOGRAMS] = {
            0,
            1000,
            k == 0            ? 8000000
            : k == levels - 1 ? 300000
                              : 1 + k * 37 % 1001,
            k == 0 || k == levels - 1 ? 500 : 0,
            (int64_t)(1e6 * (exp(-50 * (at - 0.3) * (at - 0.3)) + exp(-500 * (at - 0.8) * (at - 0.8)))),
            k == levels / 2 ? 77 : 0,
            k % 17 == 0 ? 10 + k : 0};
        count[k] = of[which];
    }
}

/* Map number 0 is uniform-logit, the others are Gaussian; free with acf_release. */
static acf_image_map *map_of(int which, int bits) {
    int64_t count[ACF_IMAGE_LEVELS];
    acf_image_dequantiser dequantiser;
    acf_image_map *m;
    if (which) {
        histogram(which - 1, bits, count);
        acf_image_dequantiser_fit(bits, count, &dequantiser);
    }
    if (which ? acf_image_map_gaussian(bits, &dequantiser, &m) : acf_image_map_uniform_logit(bits, &m))
        fail_msg("%d bits, map %d: %s", bits, which, acf_error());
    return m;
}

/* All depths, all maps. */
static void each_map(void (*check)(const acf_image_map *m, int which)) {
    for (int bits = 1; bits <= 8; bits++)
        for (int which = 0; which <= HISTOGRAMS; which++) {
            acf_image_map *m = map_of(which, bits);
            check(m, which);
            acf_release(m);
        }
}

/* For noise at the ends of a level and between: y rounded to acf_real gives back its level, and y itself gives v. */
static void check_return(const acf_image_map *m, int which) {
    for (int k = 0; k < 1 << m->bits; k++)
        for (unsigned j = 0; j < 65536; j += j < 20 || j > 65500 ? 1 : 1234) {
            double slope;
            const double u = (j + 0.5) / 65536, y = acf_image_map_at(m, k, u, &slope);
            const acf_real r = acf_image_map_real(m, k, y);
            if (acf_image_map_level(m, (double)r) != k ||
                fabs((double)r - y) > 2 * (double)ACF_REAL_EPS * (1 + fabs(y)))
                fail_msg("%d bits, map %d, level %d, noise %u: %.9g became %.9g", m->bits, which, k, j, y, (double)r);
            if (fabs(acf_image_map_back(m, y) - (k + u)) > 1e-7)
                fail_msg("%d bits, map %d, level %d, noise %u: v differs", m->bits, which, k, j);
        }
}

static void levels_round_trip(void **state) {
    (void)state;
    each_map(check_return);
}

/* y rises with v within a level and across levels, and levels meet. */
static void check_monotone(const acf_image_map *m, int which) {
    double last = -1e300, slope;
    for (int k = 0; k < 1 << m->bits; k++) {
        for (double u = 1e-7; u < 1; u += 0.0833) {
            const double y = acf_image_map_at(m, k, u, &slope);
            if (!(y > last && isfinite(slope)))
                fail_msg("%d bits, map %d, level %d, u = %g: %.17g after %.17g", m->bits, which, k, u, y, last);
            last = y;
        }
        last = acf_image_map_at(m, k, 1 - 1e-9, &slope);
        if (k + 1 < 1 << m->bits && fabs(m->edge[k + 1] - last) > 1e-5)
            fail_msg("%d bits, map %d: level %d does not meet the next", m->bits, which, k);
        if (k) assert_true(m->first[k] > m->last[k - 1]);
        assert_int_equal(acf_image_map_level(m, (double)m->first[k]), k);
        assert_int_equal(acf_image_map_level(m, (double)m->last[k]), k);
    }
}

static void the_map_is_monotone(void **state) {
    (void)state;
    each_map(check_monotone);
}

static void check_slopes(const acf_image_map *m, int which) {
    for (int k = 0; k < 1 << m->bits; k++)
        for (double u = 0.01; u < 1; u += 0.049) {
            double slope, unused;
            const double h = 1e-5,
                         d = (acf_image_map_at(m, k, u + h, &unused) - acf_image_map_at(m, k, u - h, &unused)) /
                             (2 * h);
            acf_image_map_at(m, k, u, &slope);
            if (fabs(log(d) - slope) > 1e-4)
                fail_msg("%d bits, map %d, level %d, u = %g: %g, not %g", m->bits, which, k, u, slope, log(d));
        }
}

static void slopes_are_derivatives(void **state) {
    (void)state;
    each_map(check_slopes);
}

/* A Gaussian map covers all real numbers once: a density of y gives probabilities of levels with sum 1. P(k) =
 * E_u[p(y) dy/dv], with the substitution u = 1/(1 + e^-t), as outer levels are wide. The density is normal with
 * deviation 1/2, so it has little mass where u is near 0 or 1. */
static void probabilities_of_levels_add_up(void **state) {
    (void)state;
    for (int bits = 1; bits <= 8; bits++)
        for (int which = 1; which <= HISTOGRAMS; which++) {
            acf_image_map *m = map_of(which, bits);
            double sum = 0;
            const double h = 0.02;
            for (int k = 0; k < 1 << bits; k++)
                for (double t = -20; t < 20; t += h) {
                    double slope;
                    const double u = 1 / (1 + exp(-t)), y = acf_image_map_at(m, k, u, &slope);
                    sum += 2 * exp(slope - 2 * y * y - ACF_HALF_LOG_2PI) * u * (1 - u) * h;
                }
            if (!(fabs(sum - 1) < 2e-3))
                fail_msg("%d bits, histogram %d: the sum of probabilities is %.6f", bits, which - 1, sum);
            acf_release(m);
        }
}

/* The noise of a spike is Gaussian: moments of y over u. The counted levels have mean 0 and deviation 1. */
static void spikes_are_gaussians(void **state) {
    (void)state;
    acf_image_map *m = map_of(3, 8);
    int64_t count[ACF_IMAGE_LEVELS];
    double n = 0, mean = 0, square = 0, first = 0, second = 0, fourth = 0, slope;
    histogram(2, 8, count);
    assert_int_equal(m->dequantiser.n, 2); /* black, and everything else */
    assert_int_equal(m->dequantiser.levels[0], 1);
    for (int k = 0; k < 256; k++) {
        const double y = acf_image_map_at(m, k, 0.5, &slope), c = (double)count[k];
        n += c, mean += c * y, square += c * y * y;
    }
    acf_assert_close(mean / n, 0, 1e-9, "mean");
    acf_assert_close(square / n, 1, 1e-9, "square");
    for (int j = 0; j < 65536; j++) {
        const double e = (acf_image_map_at(m, 0, (j + 0.5) / 65536, &slope) - m->centre[0]) / m->spread[0];
        first += e / 65536, second += e * e / 65536, fourth += e * e * e * e / 65536;
    }
    assert_true(fabs(first) < 0.01 && fabs(second - 1) < 0.02 && fabs(fourth - 3) < 0.25);
    acf_release(m);
}

/* Without a spike: normal scores, which depend on a level's rank alone and not on its frequency. */
static void without_a_spike_there_is_one_gaussian(void **state) {
    (void)state;
    acf_image_map *m = map_of(2, 8);
    double slope;
    assert_int_equal(m->dequantiser.n, 1);
    for (int k = 0; k < 256; k++) {
        const double e = (acf_image_map_at(m, k, 0.25, &slope) - m->centre[k]) / m->spread[k];
        acf_assert_close(e, acf_normal_quantile((k + 0.25) / 256, false), 1e-12, "score");
    }
    acf_release(m);
}

static void a_description_makes_the_same_map(void **state) {
    (void)state;
    const acf_json_source from = {"m, image", ACF_EMODEL};
    for (int which = 1; which <= HISTOGRAMS; which++) {
        acf_image_map *m = map_of(which, 8), *again = NULL;
        acf_image_dequantiser dequantiser;
        json_t *j, *read;
        static char text[1 << 15];
        acf_text t = acf_text_into(text, sizeof text);
        assert_int_equal(acf_image_dequantiser_to_json(&m->dequantiser, 8, &j), ACF_OK);
        acf_json_write(&t, j, 0);
        assert_int_equal(acf_json_parse(from, text, strlen(text), sizeof text, &read), ACF_OK);
        if (acf_image_dequantiser_from_json(from, read, 8, &dequantiser) ||
            acf_image_map_gaussian(8, &dequantiser, &again))
            fail_msg("%s", acf_error());
        assert_memory_equal(m, again, sizeof *m);
        json_decref(j), json_decref(read);
        acf_release(m), acf_release(again);
    }
}

/* Values that a file may contain. One bit: two levels. */
static void hostile_descriptions_are_refused(void **state) {
    (void)state;
    static const char *const bad[][2] = {
        {"[]", "not an object"},
        {"{\"centre\":0,\"levels\":[2],\"spread\":[1],\"weight\":[1,1]}", "'reach'"},
        {"{\"reach\":0,\"centre\":0,\"levels\":[2],\"spread\":[1],\"weight\":[1,1]}", "'reach' has 0"},
        {"{\"reach\":3,\"centre\":1e9,\"levels\":[2],\"spread\":[1],\"weight\":[1,1]}", "'centre' has 1e+09"},
        {"{\"reach\":3,\"centre\":0,\"levels\":2,\"spread\":[1],\"weight\":[1,1]}", "'levels' is not a list"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[],\"spread\":[],\"weight\":[1,1]}", "'levels' is not a list"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[1],\"spread\":[1],\"weight\":[1,1]}", "'levels' are 1 in all"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[3],\"spread\":[1],\"weight\":[1,1]}", "'levels' has 3"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[0,2],\"spread\":[1,1],\"weight\":[1,1]}", "'levels' has 0"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[1,9223372036854775807],\"spread\":[1,1],\"weight\":[1,1]}",
         "'levels' has 9223"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[1,1,1],\"spread\":[1,1,1],\"weight\":[1,1]}", "'levels' is not a list"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[1,1],\"spread\":[1],\"weight\":[1,1]}", "'spread' is not a list of 2"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[1,1],\"spread\":[1,0],\"weight\":[1,1]}", "'spread' has 0"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[2],\"spread\":[1],\"weight\":[1]}", "'weight' is not a list"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[2],\"spread\":[1],\"weight\":[1,-1]}", "'weight' has -1"},
        {"{\"reach\":3,\"centre\":0,\"levels\":[2],\"spread\":[1],\"weight\":[1,\"1\"]}", "'weight' is text"},
    };
    const acf_json_source from = {"m, image", ACF_EMODEL};
    acf_image_dequantiser dequantiser = {.n = 77};
    acf_image_map *m = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_t *j;
        assert_int_equal(acf_json_parse(from, bad[i][0], strlen(bad[i][0]), 1000, &j), ACF_OK);
        if (acf_image_dequantiser_from_json(from, j, 1, &dequantiser) != ACF_EMODEL || !strstr(acf_error(), bad[i][1]))
            fail_msg("%s: %s", bad[i][0], acf_error());
        json_decref(j);
    }
    assert_int_equal(dequantiser.n, 77);
    /* Positive, but a level contains no number. */
    dequantiser = (acf_image_dequantiser){.n = 1, .reach = 3, .levels = {4}, .spread = {1}, .weight = {1, 1e-30, 1, 1}};
    assert_int_equal(acf_image_map_gaussian(2, &dequantiser, &m), ACF_EUSAGE);
    assert_string_equal(acf_error(), "a map of levels in which no number belongs to level 1");
    dequantiser = (acf_image_dequantiser){.n = 1, .reach = 3, .levels = {2}, .spread = {1}, .weight = {1, 1e-20}};
    assert_int_equal(acf_image_map_gaussian(1, &dequantiser, &m), ACF_EUSAGE);
    acf_alloc_fail_at(1);
    assert_int_equal(acf_image_map_uniform_logit(8, &m), ACF_EMEMORY);
    acf_alloc_fail_at(0);
    assert_null(m);
}

/* Knots: within a level of exact decoding, between the first and the last middle. For guesses the slope allows
 * gradient steps everywhere. */
static void check_knots(const acf_image_map *m, int which) {
    acf_knots truth, guess;
    const int top = (1 << m->bits) - 1;
    acf_image_map_knots(m, false, &truth);
    acf_image_map_knots(m, true, &guess);
    assert_int_equal(truth.n, top + 1);
    for (int k = 0; k <= top; k++) {
        acf_assert_close((double)truth.y[k], (double)k / top, 1e-6, "a level's middle");
        if (k == top) break;
        const double between = ((double)truth.x[k] + (double)truth.x[k + 1]) / 2,
                     exact = acf_image_map_back(m, between) - 0.5;
        if (fabs(exact - (k + 0.5)) > 1)
            fail_msg("%d bits, map %d: %g between levels %d and the next", m->bits, which, exact, k);
        const double least = which ? 0.05 / (double)(guess.x[top] - guess.x[0]) : 0;
        if (!((double)acf_polyline_slope(&guess, k) > least))
            fail_msg("%d bits, map %d: flat behind level %d", m->bits, which, k);
    }
    acf_assert_close((double)guess.y[0], 0, 0, "first"), acf_assert_close((double)guess.y[top], 1, 1e-6, "last");
}

static void knots_decode_nearly_alike(void **state) {
    (void)state;
    each_map(check_knots);
}

/* Extreme values belong to the outermost levels, NaN to the first. */
static void check_wild(const acf_image_map *m, int which) {
    const int top = (1 << m->bits) - 1;
    const double wild[] = {-1e30, (double)-INFINITY, (double)NAN, 1e30, (double)INFINITY};
    for (int i = 0; i < 5; i++) {
        if (acf_image_map_level(m, wild[i]) != (i < 3 ? 0 : top)) fail_msg("map %d: %g", which, wild[i]);
        assert_true(fabs(acf_image_map_back(m, wild[i]) - (i < 3 ? 0 : top + 1)) < 1e-9);
    }
}

static void extreme_values_have_a_level(void **state) {
    (void)state;
    each_map(check_wild);
}

ACF_TESTS(image_map, cmocka_unit_test(levels_round_trip), cmocka_unit_test(the_map_is_monotone),
          cmocka_unit_test(slopes_are_derivatives), cmocka_unit_test(probabilities_of_levels_add_up),
          cmocka_unit_test(spikes_are_gaussians), cmocka_unit_test(without_a_spike_there_is_one_gaussian),
          cmocka_unit_test(a_description_makes_the_same_map), cmocka_unit_test(hostile_descriptions_are_refused),
          cmocka_unit_test(knots_decode_nearly_alike), cmocka_unit_test(extreme_values_have_a_level))
