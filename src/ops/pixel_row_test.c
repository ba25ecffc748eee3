/* One row of pixels: cases for the harness, which compare the GPU's row with the CPU's. pixelcnn_test.c checks that it
 * equals the row composed by nn/pixelcnn.c. */
#include "ops/pixel_row.h"

#include "harness/lab.h"
#include "ops/chain_means.h"
#include "ops/image_parts.h"
#include "ops/window.h"

/* One kind of row; a case's variant is its place in the list. */
typedef struct kind {
    int64_t C, F, K;
    int blocks;
    bool draws;
} kind;
static const kind kinds[] = {{1, 6, 2, 2, false},
                             {3, 5, 3, 1, false},
                             {1, 4, 2, 0, false},
                             {3, 8, 3, 2, true},
                             {1, 12, 40, 3, true}};

static acf_tensor *leaf(acf_lab *l, const char *name, double size, int64_t a, int64_t b, int64_t c, int64_t d) {
    return acf_leaf_fixed(l, name, -size, size, 4, (int64_t[]){a, b, c, d});
}

/* The last of three rows of images that are D pixels wide. */
static void build(acf_lab *l) {
    const kind *k = &kinds[l->c->variant];
    const int64_t N = l->N, W = l->D, C = k->C, F = k->F, A = acf_chain_width(C, k->K), H = 3;
    acf_pixel_row r = {.row = H - 1, .blocks = k->blocks, .K = k->K, .lo = -3, .hi = 3};
    r.left = leaf(l, "left", 0.5, F, 1, 3, 2 * C + 1), r.left_bias = leaf(l, "left bias", 0.5, F, 1, 1, 1);
    r.head = leaf(l, "head", 0.5, A, 1, 1, F), r.head_bias = leaf(l, "head bias", 0.5, A, 1, 1, 1);
    r.first = leaf(l, "first", 1, N, 1, W, F);
    for (int i = 0; i < k->blocks; i++)
        r.block[i] = (acf_row_block){leaf(l, "in", 0.3, F, 1, 3, 2 * F),      leaf(l, "in bias", 0.3, F, 1, 1, 1),
                                     leaf(l, "out", 0.3, 2 * F, 1, 3, 2 * F), leaf(l, "out bias", 0.3, 2 * F, 1, 1, 1),
                                     leaf(l, "aux", 1, N, 1, W, F),           leaf(l, "cond", 1, N, 1, W, 2 * F)};
    r.u = acf_leaf_fixed(l, "u", 0, 1, 4, (int64_t[]){N, H, W, C}), r.given = leaf(l, "given", 1, N, H, W, C);
    acf_tensor *image = leaf(l, "image", 1, N, H, W, 2 * C + 1), *z = leaf(l, "z", 1, N, H, W, C);
    r.image = acf_window(l->t, image, (acf_region){0, 0, H, W}),
    r.z = acf_window(l->t, z, (acf_region){0, 0, H, W}); /* copies, because they are changed */
    acf_draw d = {.seed = 7, .draw = 2, .at = k->draws ? acf_image_cells(l->t, N, W, C, false) : (acf_cells){0}};
    if (!acf_tape_status(l->t)) acf_pixel_row_run(l->t, &r, k->draws ? &d : NULL);
    acf_result(l, r.image);
    acf_result(l, r.z);
}

#define CASE .no_grad = true, .hides_nonfinite = true, .may_fail_nonfinite = true, .tol = 2e-4, .big_N = 40, .big_D = 6
static const acf_case cases[] = {
    {"means", build, NULL, .variant = 0, CASE},
    {"means of three channels, odd width", build, NULL, .variant = 1, CASE},
    {"no blocks", build, NULL, .variant = 2, CASE},
    {"draws of three channels", build, NULL, .variant = 3, CASE},
    {"draws from forty components", build, NULL, .variant = 4, CASE},
};
ACF_CASES(pixel_row, cases)

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 3});
    const acf_pixel_row r = {.row = 2, .K = 1, .z = x, .first = x};
    acf_pixel_row_run(l.t, &r, NULL);
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "pixel_row: row 2 of z (1, 2, 2, 3), stream (1, 2, 2, 3): the tensors do not fit together");
    acf_lab_close(&l);
}

ACF_TESTS(pixel_row, cmocka_unit_test(refuses_what_does_not_fit))
