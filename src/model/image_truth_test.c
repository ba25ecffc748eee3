/* Tests by importance sampling that the image model's density integrates to 1 and that draws follow it. On 4x4
 * images with random weights.
 *
 * A normal q is fitted to draws of the model, given one image's observed pixels. Then
 *
 *     E_q[p(x)/q(x)] = 1     with q a little wider than p: the density integrates to 1
 *     E_p[q(x)/p(x)] = 1     with q a little narrower, over draws of the model: they have that density
 *
 * For images of levels with Gaussian dequantisation, the probabilities of all values of the hidden pixels sum to 1.
 * Draws at other temperatures follow docs/math.md. */
#include "model/image_net.h"

#include "harness/image_lab.h"
#include "image/image_encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 4, MOST = 16, BATCH = 500 };

/* The fitted normal over n modelled numbers: its mean, and the lower Cholesky factor of its covariance. */
typedef struct normal {
    int n, at[MOST];
    double mean[MOST], factor[MOST * MOST];
} normal;

/* Draws for all images of the lab, which are copies of the first; keyed by draw number. */
static void draw(acf_image_lab *l, uint32_t which, acf_real *out) {
    acf_tape_begin(l->t, false);
    if (acf_image_net_draw(l->t, acf_image_net_view(l->t, l->net, &l->q, NULL), &(acf_draw){.seed = 12, .draw = which},
                           out))
        fail_msg("%s", acf_error());
}

static void score(acf_image_lab *l, double *logp) {
    acf_tape_begin(l->t, false);
    acf_tensor *y = acf_image_net_logp(l->t, acf_image_net_view(l->t, l->net, &l->q, NULL));
    if (acf_tape_status(l->t)) fail_msg("%s", acf_error());
    for (int64_t n = 0; n < l->N; n++) logp[n] = (double)y->data[n];
}

static void factorise(double *a, int n) {
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            double sum = a[i * n + j];
            for (int k = 0; k < j; k++) sum -= a[i * n + k] * a[j * n + k];
            a[i * n + j] = i == j ? sqrt(sum) : sum / a[j * n + j];
        }
}

static void fit_normal(acf_image_lab *l, normal *q, int passes) {
    double count = 0;
    *q = (normal){.n = 0};
    for (int i = 0; i < SIDE * SIDE; i++)
        if (acf_image_lab_modelled(l, i)) q->at[q->n++] = i;
    for (int r = 0; r < passes; r++) {
        draw(l, (uint32_t)r, l->x);
        for (int64_t s = 0; s < l->N; s++, count += 1)
            for (int i = 0; i < q->n; i++) {
                const acf_real *x = l->x + s * SIDE * SIDE;
                q->mean[i] += (double)x[q->at[i]];
                for (int j = 0; j <= i; j++) q->factor[i * q->n + j] += (double)(x[q->at[i]] * x[q->at[j]]);
            }
    }
    for (int i = 0; i < q->n; i++) q->mean[i] /= count;
    for (int i = 0; i < q->n; i++)
        for (int j = 0; j <= i; j++)
            q->factor[i * q->n + j] = q->factor[i * q->n + j] / count - q->mean[i] * q->mean[j];
    factorise(q->factor, q->n);
}

/* log q of an image, with standard deviations times `wide`. */
static double log_normal(const normal *q, const acf_real *x, double wide) {
    double e[MOST], sum = 0;
    for (int i = 0; i < q->n; i++) {
        e[i] = (double)x[q->at[i]] - q->mean[i];
        for (int j = 0; j < i; j++) e[i] -= q->factor[i * q->n + j] * e[j];
        e[i] /= q->factor[i * q->n + i];
        sum -= 0.5 * e[i] * e[i] / (wide * wide) + log(q->factor[i * q->n + i] * wide) + 0.918938533204672742;
    }
    return sum;
}

static void draw_normal(const normal *q, acf_real *x, double wide, uint64_t row) {
    double e[MOST];
    for (int i = 0; i < q->n; i++) {
        double v = q->mean[i];
        e[i] = wide * acf_rng_normal(
                          (acf_rng_counter){.seed = 21, .row = row, .column = (uint32_t)i, .stream = ACF_STREAM_TEST});
        for (int j = 0; j <= i; j++) v += q->factor[i * q->n + j] * e[j];
        x[q->at[i]] = (acf_real)v;
    }
}

/* Mean of e^w, and its standard error. */
typedef struct ema {
    double sum, square, n;
} ema;

static void take(ema *a, double log_weight) {
    const double w = exp(log_weight);
    a->sum += w, a->square += w * w, a->n += 1;
}

/* Requires 1 within this tolerance, and an estimate precise enough to test it. */
static void check(const ema *a, double within, const char *like, int mask, const char *what) {
    const double mean = a->sum / a->n, error = sqrt((a->square / a->n - mean * mean) / a->n);
    if (fabs(mean - 1) < within && error < 0.6 * within) return;
    fail_msg("%s, mask %d: %s is %.4f, give or take %.4f; expected 1", like, mask, what, mean, error);
}

/* A PixelCNN with random weights feeds its draws back to itself, so no normal resembles it. This makes its mixtures
 * differ less. */
static void calm(acf_param *g) {
    for (int64_t i = 0; g && i < acf_tensor_count(&g->t); i++) g->t.data[i] *= ACF_R(0.1);
}

static void check_density(const acf_image_sizes *s, acf_image_mask mask, double away, int passes) {
    acf_image_lab l;
    normal q;
    double logp[BATCH];
    ema whole = {0}, drawn = {0};
    acf_image_lab_open(&l, 1, s, BATCH, mask, away);
    for (int64_t n = 1; n < BATCH; n++) { /* one image, many times */
        memcpy(l.x + n * SIDE * SIDE, l.x, SIDE * SIDE * sizeof *l.x);
        memcpy(l.role + n * SIDE * SIDE, l.role, SIDE * SIDE);
    }
    calm(acf_params_find(acf_image_net_params(l.net), "likelihood.head.g"));
    fit_normal(&l, &q, 8);
    for (int r = 0; r < passes; r++) {
        for (int64_t n = 0; n < BATCH; n++) draw_normal(&q, l.x + n * SIDE * SIDE, 1.15, (uint64_t)(r * BATCH + n));
        score(&l, logp);
        for (int64_t n = 0; n < BATCH; n++) take(&whole, logp[n] - log_normal(&q, l.x + n * SIDE * SIDE, 1.15));
        draw(&l, (uint32_t)(100 + r), l.x);
        score(&l, logp);
        for (int64_t n = 0; n < BATCH; n++) take(&drawn, log_normal(&q, l.x + n * SIDE * SIDE, 0.85) - logp[n]);
    }
    check(&whole, 0.01, s->like->name, (int)mask, "the integral of the density");
    check(&drawn, 0.01, s->like->name, (int)mask, "the mean of q/p over draws");
    acf_image_lab_close(&l);
}

static void densities_integrate_to_one(void **state) {
    (void)state;
    if (sizeof(acf_real) == 8) acf_skip("runs in float, which is what users get");
    const struct {
        const acf_image_like_kind *like;
        acf_image_mask mask;
        int passes;
    } questions[] = {{&acf_image_normal, ACF_IMAGE_NONE, 100},  {&acf_image_normal, ACF_IMAGE_SOME, 70},
                     {&acf_image_normal, ACF_IMAGE_PADDED, 70}, {&acf_image_gaussian, ACF_IMAGE_LEFT, 70},
                     {&acf_image_pixelcnn, ACF_IMAGE_NONE, 60}, {&acf_image_pixelcnn, ACF_IMAGE_SOME, 60}};
    for (int i = 0; i < 6; i++) {
        acf_image_sizes s = acf_image_lab_sizes(SIDE, 1, 2, questions[i].like);
        check_density(&s, questions[i].mask, 0.05, questions[i].passes);
    }
}

/* ---- levels ------------------------------------------------------------------------------------------------------ */

enum { BITS = 2, HIDDEN = 3, ALL = 64 }; /* 4^3: all values of the hidden pixels */

/* A spike and a shared Gaussian, so wide that noise covers the whole density. */
static acf_image_map *wide_bells(void) {
    const acf_image_dequantiser dequantiser = {
        .n = 2, .reach = 1, .centre = -1, .levels = {1, 3}, .spread = {1.1, 1.3}, .weight = {5, 1, 2, 1}};
    acf_image_map *map;
    if (acf_image_map_gaussian(BITS, &dequantiser, &map)) fail_msg("%s", acf_error());
    return map;
}

/* Image number i: its hidden pixels are the digits of i; the given ones are the same in all images. */
static void fill_levels(uint8_t *level, uint8_t *b) {
    static const int at[HIDDEN] = {0, 5, 6};
    for (int i = 0; i < ALL; i++) {
        for (int p = 0; p < SIDE * SIDE; p++)
            level[i * SIDE * SIDE + p] = (uint8_t)(p * 5 % 7 % 4), b[i * SIDE * SIDE + p] = 1;
        for (int k = 0; k < HIDDEN; k++)
            level[i * SIDE * SIDE + at[k]] = (uint8_t)(i >> (2 * k) & 3), b[i * SIDE * SIDE + at[k]] = 0;
    }
}

/* Requires that the sum over images of P(image) = E_u[p(y) dy/dv] is 1. */
static void check_levels(const acf_image_like_kind *like, int passes) {
    static uint8_t level[ALL * SIDE * SIDE];
    acf_image_lab l;
    acf_image_map *map = wide_bells();
    const acf_image_sizes s = acf_image_lab_sizes(SIDE, 1, 2, like);
    const acf_image_code code = {map, SIDE * SIDE, 1};
    double logp[ALL], logdet[ALL];
    uint64_t id[ALL];
    ema whole = {0};
    acf_image_lab_open(&l, 1, &s, ALL, ACF_IMAGE_SOME, 0.05);
    calm(acf_params_find(acf_image_net_params(l.net), "likelihood.head.g"));
    fill_levels(level, l.role);
    for (int i = 0; i < ALL; i++) id[i] = (uint64_t)i;
    for (int r = 0; r < passes; r++) {
        double sum = 0;
        acf_image_encode(l.dev, &code, ALL, level, l.role, 7, id, (uint32_t)r, l.x, logdet);
        score(&l, logp);
        for (int i = 0; i < ALL; i++) sum += exp(logp[i] + logdet[i]);
        take(&whole, log(sum));
    }
    check(&whole, 0.03, like->name, (int)ACF_IMAGE_SOME, "the sum of the probabilities of all images");
    acf_image_lab_close(&l);
    acf_release(map);
}

static void probabilities_of_images_add_up(void **state) {
    (void)state;
    if (sizeof(acf_real) == 8) acf_skip("runs in float, which is what users get");
    check_levels(&acf_image_normal, 900);
    check_levels(&acf_image_pixelcnn, 900);
}

/* ---- temperature ------------------------------------------------------------------------------------------------- */

static void draw_at(acf_image_lab *l, double temperature, acf_real *out) {
    const acf_draw how = {.seed = 12, .log_temperature = log(temperature)};
    acf_tape_begin(l->t, false);
    if (acf_image_net_draw(l->t, acf_image_net_view(l->t, l->net, &l->q, NULL), &how, out)) fail_msg("%s", acf_error());
}

/* One component, one pixel: a draw is m + Tσε, so it moves twice as far from T = 1 to 1/2 as from 1/2 to 1/4. This
 * holds in all channels, whose means depend linearly on earlier channels. `far`: σ is at its upper bound, which the
 * temperature then scales. */
static void check_spread(const acf_image_like_kind *like, int64_t C, double far) {
    acf_image_lab l;
    acf_image_sizes s = acf_image_lab_sizes(SIDE, C, 0, like);
    acf_real *x[3];
    s.components = 1;
    acf_image_lab_open(&l, 1, &s, 3, ACF_IMAGE_ONE, 0.3);
    const int64_t n = l.N * SIDE * SIDE * C;
    acf_param *b = acf_params_find(acf_image_net_params(l.net),
                                   like == &acf_image_gaussian ? "likelihood.say.b" : "likelihood.head.b");
    for (int64_t c = 0; b && c < C; c++) b->t.data[like == &acf_image_gaussian ? C + c : 3 * c + 2] += (acf_real)far;
    for (int k = 0; k < 3; k++) {
        x[k] = acf_alloc((size_t)n * sizeof *x[k], "a draw");
        memcpy(x[k], l.x, (size_t)n * sizeof *x[k]);
        draw_at(&l, ldexp(1, -k), x[k]);
    }
    for (int64_t i = 0; i < n; i++) {
        const double first = (double)(x[0][i] - x[1][i]), second = (double)(x[1][i] - x[2][i]);
        assert_true((first != 0) == acf_image_lab_modelled(&l, i));
        acf_assert_close(first, 2 * second, (sizeof(acf_real) == 8 ? 1e-12 : 1e-5) * (1 + fabs((double)x[0][i])),
                         "the way of a draw");
    }
    for (int k = 0; k < 3; k++) acf_release(x[k]);
    acf_image_lab_close(&l);
}

/* Two distant components of weights 1 and 3: at temperature 1/2 the weights are 1 and 9. */
static void check_choice(double temperature, double expected) {
    enum { IMAGES = 2000 };
    acf_image_lab l;
    const acf_image_sizes s = acf_image_lab_sizes(SIDE, 1, 0, &acf_image_pixelcnn);
    int64_t above = 0, modelled = 0;
    acf_image_lab_open(&l, 1, &s, IMAGES, ACF_IMAGE_ONE, 0);
    acf_params *ps = acf_image_net_params(l.net);
    acf_real *b = acf_params_find(ps, "likelihood.head.b")->t.data;
    memset(acf_params_find(ps, "likelihood.head.g")->t.data, 0, 6 * sizeof *b);
    memcpy(b, (acf_real[]){0, ACF_R(1.0986123), -5, 5, -3, -3}, 6 * sizeof *b);
    draw_at(&l, temperature, l.x);
    for (int64_t i = 0; i < IMAGES * SIDE * SIDE; i++)
        if (acf_image_lab_modelled(&l, i)) modelled++, above += l.x[i] > 0;
    assert_int_equal(modelled, IMAGES);
    acf_assert_close((double)above / IMAGES, expected, 0.025, "the share of the likelier component");
    acf_image_lab_close(&l);
}

static void temperature_narrows_draws(void **state) {
    (void)state;
    for (int64_t C = 1; C <= 3; C += 2) {
        check_spread(&acf_image_normal, C, 0);
        for (int far = 0; far < 2; far++)
            check_spread(&acf_image_gaussian, C, 100 * far), check_spread(&acf_image_pixelcnn, C, 100 * far);
    }
    check_choice(1, 0.75);
    check_choice(0.5, 0.9);
    check_choice(2, sqrt(3) / (1 + sqrt(3)));
}

ACF_TESTS(image_truth, cmocka_unit_test(densities_integrate_to_one), cmocka_unit_test(probabilities_of_images_add_up),
          cmocka_unit_test(temperature_narrows_draws))
