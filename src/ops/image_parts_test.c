/* Tests of images in device memory: cases for the harness. */
#include "ops/image_parts.h"

#include "harness/lab.h"

enum { C = 3, LAB_PIXELS = 1 << 16 };

/* By both masks of a lab's images (N,D,1), or by b alone. */
static uint8_t role_of(const acf_lab *l, int64_t pixel) {
    return l->b[pixel] ? ACF_PIXEL_GIVEN : l->c->variant == 0 || l->m[pixel] ? ACF_PIXEL_ASKED : ACF_PIXEL_ABSENT;
}

static void build_parts(acf_lab *l) {
    acf_tensor *x = acf_leaf_fixed(l, "x", -1, 1, 4, (int64_t[]){l->N, l->D, 1, C});
    uint8_t role[LAB_PIXELS];
    assert_true(l->N * l->D <= LAB_PIXELS);
    for (int64_t i = 0; i < l->N * l->D; i++) role[i] = role_of(l, i);
    const acf_image_parts p = acf_image_split(l->t, x, acf_lab_copy(l, role, (size_t)(l->N * l->D)));
    acf_result(l, p.x), acf_result(l, p.given), acf_result(l, p.b), acf_result(l, p.u);
}

static void naive_parts(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->N * l->D * C; i++) {
        const double x = (double)l->leaf[0].value[i];
        const bool b = role_of(l, i / C) == ACF_PIXEL_GIVEN, u = role_of(l, i / C) == ACF_PIXEL_ASKED;
        out[0][i] = b || u ? x : 0, out[1][i] = b ? x : 0, out[2][i] = b, out[3][i] = u;
    }
}

static void build_cells(acf_lab *l) {
    const int64_t n = l->N * l->D * C;
    const acf_cells at = acf_image_cells(l->t, l->N, l->D, C, l->c->variant);
    if (at.row) acf_result_ints(l, at.row, n, NULL), acf_result_ints(l, at.column, n, NULL);
}

/* In the order of loops: images, places, channels; or places first. */
static void naive_cells(const acf_lab *l, double *const *out) {
    int64_t i = 0;
    for (int64_t a = 0; a < (l->c->variant ? l->N : l->D); a++)
        for (int64_t b = 0; b < (l->c->variant ? l->D : l->N); b++)
            for (int64_t c = 0; c < C; c++, i++)
                out[0][i] = (double)(l->c->variant ? a : b), out[1][i] = (double)((l->c->variant ? b : a) * C + c);
}

#define NONE .no_grad = true, .hides_nonfinite = true
static const acf_case cases[] = {
    {"all pixels are there", build_parts, naive_parts, .variant = 0, NONE},
    {"some are not", build_parts, naive_parts, .variant = 1, NONE},
    {"places of draws, pixel by pixel", build_cells, naive_cells, .variant = 0, NONE},
    {"places of draws, image by image", build_cells, naive_cells, .variant = 1, NONE},
};
ACF_CASES(image_parts, cases)

static void refuses_what_is_no_image(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    const acf_image_parts p = acf_image_split(l.t, acf_tensor_new(l.t, 1, (int64_t[]){3}), NULL);
    assert_int_equal(acf_tensor_count(p.u), 0);
    assert_string_equal((acf_tape_status(l.t), acf_error()), "image_parts: x is (3); expected (N, H, W, C)");
    acf_lab_close(&l);
}

ACF_TESTS(image_parts, cmocka_unit_test(refuses_what_is_no_image))
