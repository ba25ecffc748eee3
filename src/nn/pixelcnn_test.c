/* The PixelCNN: which pixels each output depends on, and that pixel by pixel gives the same as all at once. */
#include "nn/pixelcnn.h"

#include "harness/lab.h"
#include "ops/chain_means.h"
#include "ops/masked.h"
#include "ops/mixture.h"

#include <math.h>
#include <string.h>

enum { N = 2, H = 5, W = 6, OUT = 4 };

typedef struct bench {
    acf_lab l;
    acf_params *ps;
    acf_pixelcnn net;
    int64_t C;
    acf_real z[N * H * W * 3], given[N * H * W * 3], b[N * H * W * 3];
} bench;

static void open_bench_out(bench *k, int64_t C, int blocks, int64_t out) {
    memset(k, 0, sizeof *k);
    acf_lab_open(&k->l, 2, 1, 1, ACF_MASK_ALL, 3);
    k->C = C;
    assert_int_equal(acf_params_create(k->l.dev, &k->ps), ACF_OK);
    const acf_pixelcnn_shape shape = {H, W, C, 6, out, blocks, 1};
    if (acf_pixelcnn_declare(&k->net, k->ps, "net", &shape) || acf_params_build(k->ps, 3, false))
        fail_msg("%s", acf_error());
    for (int64_t i = 0; i < k->ps->total; i++) k->ps->value[i] += (acf_real)acf_lab_random(4, i, -0.3, 0.3);
    for (int64_t i = 0; i < N * H * W * C; i++) {
        k->z[i] = (acf_real)acf_lab_random(5, i, -2, 2);
        k->b[i] = acf_lab_random(6, i / C, 0, 1) < 0.4;
        k->given[i] = k->b[i] > 0 ? k->z[i] : 0;
    }
}

static void open_bench(bench *k, int64_t C, int blocks) { open_bench_out(k, C, blocks, OUT); }

static void close_bench(bench *k) {
    acf_params_free(k->ps);
    acf_lab_close(&k->l);
}

static acf_tensor *image(bench *k, const acf_real *x) {
    return acf_tensor_input(k->l.t, x, 4, (int64_t[]){N, H, W, k->C});
}

static acf_tensor *run(bench *k) {
    acf_tensor *p = acf_pixelcnn_run(k->l.t, &k->net, image(k, k->z), image(k, k->given), image(k, k->b), NULL);
    if (acf_tape_status(k->l.t)) fail_msg("%s", acf_error());
    return p;
}

/* A pixel that is not observed affects all behind it, in the same row or below within reach, and none before it, nor
 * itself. */
static void pixels_depend_on_those_before(void **state) {
    (void)state;
    bench k;
    open_bench(&k, 1, 3);
    memset(k.b, 0, sizeof k.b), memset(k.given, 0, sizeof k.given);
    acf_real before[H * W * OUT];
    memcpy(before, run(&k)->data, sizeof before);
    for (int64_t at = 0; at < H * W; at++) {
        const acf_real was = k.z[at];
        k.z[at] += 1;
        acf_lab_begin(&k.l, false);
        const acf_real *after = run(&k)->data;
        for (int64_t i = 0; i < H * W; i++) {
            const bool same = memcmp(after + i * OUT, before + i * OUT, OUT * sizeof *after) == 0;
            if (i <= at && !same) fail_msg("the output of pixel %d depends on pixel %d", (int)i, (int)at);
            /* Three blocks, two kernels each: 6 rows up and 6 columns aside, plus the first kernel's reach. */
            if (i > at && same) fail_msg("the output of pixel %d does not depend on pixel %d", (int)i, (int)at);
        }
        k.z[at] = was;
    }
    close_bench(&k);
}

/* An observed pixel affects all, also those before it. */
static void observed_pixels_affect_all(void **state) {
    (void)state;
    bench k;
    open_bench(&k, 1, 1);
    acf_real before[H * W * OUT];
    memcpy(before, run(&k)->data, sizeof before);
    const int64_t last = H * W - 1;
    k.b[last] = 1, k.given[last] = k.z[last];
    acf_lab_begin(&k.l, false);
    memcpy(before, run(&k)->data, sizeof before);
    k.given[last] += 1;
    acf_lab_begin(&k.l, false);
    const acf_real *after = run(&k)->data;
    for (int64_t i = 0; i < H * W; i++)
        assert_true(memcmp(after + i * OUT, before + i * OUT, OUT * sizeof *after) != 0);
    close_bench(&k);
}

/* y becomes (1 + o/4)·y + o - 1 for output o of a pixel. */
static acf_pixel_change some_change(bench *k, int64_t out) {
    acf_real times[64], plus[64];
    for (int64_t o = 0; o < out; o++) times[o] = 1 + (acf_real)o / 4, plus[o] = (acf_real)o - 1;
    return (acf_pixel_change){acf_tensor_input(k->l.t, times, 1, &out), acf_tensor_input(k->l.t, plus, 1, &out)};
}

/* Pixel by pixel, with kept results: the same numbers up to rounding; or those changed as requested. */
static void pixel_by_pixel_equals_all_at_once(void **state) {
    (void)state;
    for (int round = 0; round < 8; round++) {
        const int blocks = round / 2;
        const bool changed = round % 2;
        bench k;
        open_bench(&k, 3, blocks);
        acf_real whole[N * H * W * OUT];
        memcpy(whole, run(&k)->data, sizeof whole);
        acf_lab_begin(&k.l, false);
        acf_tape *t = k.l.t;
        acf_tensor *z = image(&k, k.z), *b = image(&k, k.b);
        const acf_pixel_change change = some_change(&k, OUT);
        acf_pixel_walk *walk = acf_pixel_walk_new(t, &k.net, image(&k, k.given), b, changed ? &change : NULL);
        assert_non_null(walk);
        for (int64_t h = 0; h < H; h++) {
            acf_pixel_walk_row(t, walk, h);
            for (int64_t w = 0; w < W; w++) {
                acf_tensor *p = acf_pixel_walk_at(t, walk, w);
                if (acf_tape_status(t)) fail_msg("%s", acf_error());
                for (int64_t n = 0; n < N; n++)
                    for (int64_t o = 0; o < OUT; o++) {
                        const double y = (double)whole[((n * H + h) * W + w) * OUT + o], at = (double)o;
                        acf_assert_close((double)p->data[n * OUT + o], changed ? (1 + at / 4) * y + at - 1 : y,
                                         sizeof(acf_real) == 8 ? 1e-12 : 2e-5, "number about a pixel");
                    }
                acf_pixel_walk_set(t, walk, w, acf_window(t, z, (acf_region){h, w, 1, 1}));
            }
        }
        assert_int_equal(acf_tape_status(t), ACF_OK);
        assert_memory_equal(acf_pixel_walk_image(walk)->data, k.z, (size_t)(N * H * W * 3) * sizeof(acf_real));
        close_bench(&k);
    }
}

/* A row at once is the row pixel by pixel; once with a change. */
static void a_row_at_once_equals_pixel_by_pixel(void **state) {
    (void)state;
    enum { K = 2, C = 3, A = C * 3 * K + 3 * K };
    for (int blocks = 0; blocks <= 3; blocks++) {
        bench k;
        open_bench_out(&k, C, blocks, A);
        acf_tape *t = k.l.t;
        acf_real done[2][N * H * W * C];
        for (int at_once = 0; at_once < 2; at_once++) {
            acf_lab_begin(&k.l, false);
            acf_real modelled[N * H * W * C];
            for (int i = 0; i < N * H * W * C; i++) modelled[i] = 1 - k.b[i];
            acf_tensor *given = image(&k, k.given), *u = image(&k, modelled);
            const acf_pixel_change change = some_change(&k, A);
            acf_pixel_walk *walk = acf_pixel_walk_new(t, &k.net, given, image(&k, k.b), blocks == 1 ? &change : NULL);
            assert_non_null(walk);
            for (int64_t h = 0; h < H; h++) {
                acf_pixel_walk_row(t, walk, h);
                if (at_once)
                    acf_pixel_walk_fill(t, walk, (acf_pixel_row){.u = u, .given = given, .K = K, .lo = -3, .hi = 3},
                                        NULL);
                for (int64_t w = 0; w < W && !at_once; w++) {
                    acf_tensor *p = acf_pixel_walk_at(t, walk, w),
                               *old = acf_window(t, given, (acf_region){h, w, 1, 1}), *now = old;
                    for (int c = 0; c < C; c++) {
                        acf_tensor *mean = acf_mixture_mean(t, acf_chain_means(t, p, now, K), K);
                        now = acf_choose(t, acf_window(t, u, (acf_region){h, w, 1, 1}),
                                         acf_tensor_view(t, mean, 4, old->dim), old);
                    }
                    acf_pixel_walk_set(t, walk, w, now);
                }
            }
            if (acf_tape_status(t)) fail_msg("%s", acf_error());
            memcpy(done[at_once], acf_pixel_walk_image(walk)->data, sizeof done[at_once]);
        }
        for (int i = 0; i < N * H * W * C; i++)
            acf_assert_close((double)done[1][i], (double)done[0][i], sizeof(acf_real) == 8 ? 1e-11 : 2e-4,
                             "a number of the row");
        close_bench(&k);
    }
}

/* Memory does not grow with the image: each row's pixels reuse the memory of the first row's. */
static void pixel_by_pixel_memory_is_bounded(void **state) {
    (void)state;
    bench k;
    open_bench(&k, 1, 2);
    acf_tape *t = k.l.t;
    acf_tensor *z = image(&k, k.z);
    acf_pixel_walk *walk = acf_pixel_walk_new(t, &k.net, image(&k, k.given), image(&k, k.b), NULL);
    size_t used = 0;
    for (int64_t h = 0; h < H; h++) {
        acf_pixel_walk_row(t, walk, h);
        for (int64_t w = 0; w < W; w++) {
            acf_pixel_walk_at(t, walk, w);
            acf_pixel_walk_set(t, walk, w, acf_window(t, z, (acf_region){h, w, 1, 1}));
            if (h == 0 && w == 0) used = acf_arena_used(t->mem);
            assert_int_equal(acf_arena_used(t->mem), used);
        }
    }
    assert_int_equal(acf_tape_status(t), ACF_OK);
    close_bench(&k);
}

ACF_TESTS(pixelcnn, cmocka_unit_test(pixels_depend_on_those_before), cmocka_unit_test(observed_pixels_affect_all),
          cmocka_unit_test(pixel_by_pixel_equals_all_at_once), cmocka_unit_test(a_row_at_once_equals_pixel_by_pixel),
          cmocka_unit_test(pixel_by_pixel_memory_is_bounded))
