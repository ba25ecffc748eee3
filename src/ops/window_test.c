/* Parts of images: cases for the harness. */
#include "ops/window.h"

#include "harness/lab.h"

static int64_t width(const acf_lab *l) { return (2 * l->D + 1) / 3; }

/* Regions inside, across each edge, and outside. */
static const acf_region regions[] = {{0, 0, 1, 1},  {-1, -2, 3, 4}, {1, 1, 3, 2},
                                     {-5, 0, 2, 1}, {0, 90, 1, 2},  {0, 0, 0, 2}};

static void build_window(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 4, (int64_t[]){l->N, l->D, width(l), 3});
    acf_result(l, acf_window(l->t, x, regions[l->c->variant]));
}

static void naive_window(const acf_lab *l, double *const *out) {
    const acf_region r = regions[l->c->variant];
    for (int64_t i = 0; i < l->N * r.height * r.width * 3; i++) {
        const int64_t c = i % 3, w = r.left + i / 3 % r.width, h = r.top + i / 3 / r.width % r.height,
                      n = i / 3 / r.width / r.height;
        const bool inside = h >= 0 && h < l->D && w >= 0 && w < width(l);
        out[0][i] = inside ? (double)l->leaf[0].value[((n * l->D + h) * width(l) + w) * 3 + c] : 0;
    }
}

/* The last pixel of x is replaced, and the rest of it stays. */
static void build_paste(acf_lab *l) {
    acf_tensor *x = acf_leaf(l, "x", -1, 1, 4, (int64_t[]){l->N, l->D, width(l), 3}),
               *y = acf_leaf(l, "y", -1, 1, 4, (int64_t[]){l->N, 1, 1, 3});
    acf_paste(l->t, x, y, l->D - 1, width(l) - 1);
    acf_result(l, acf_window(l->t, x, (acf_region){0, 0, l->D, width(l)}));
}

static void naive_paste(const acf_lab *l, double *const *out) {
    const int64_t size = l->D * width(l) * 3;
    for (int64_t i = 0; i < l->N * size; i++)
        out[0][i] =
            (double)(i % size < size - 3 ? l->leaf[0].value[i] : l->leaf[1].value[i / size * 3 + i % size - size + 3]);
}

#define NONE .no_grad = true, .hides_nonfinite = true
static const acf_case cases[] = {
    {"one pixel", build_window, naive_window, .variant = 0, NONE},
    {"beyond the first corner", build_window, naive_window, .variant = 1, NONE},
    {"beyond the last corner", build_window, naive_window, .variant = 2, NONE},
    {"above", build_window, naive_window, .variant = 3, NONE},
    {"to the right", build_window, naive_window, .variant = 4, NONE},
    {"nothing", build_window, naive_window, .variant = 5, NONE},
    {"put back", build_paste, naive_paste, NONE},
};
ACF_CASES(window, cases)

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    acf_lab l;
    acf_lab_open(&l, 1, 1, 1, ACF_MASK_ALL, 1);
    acf_tensor *x = acf_tensor_new(l.t, 4, (int64_t[]){1, 2, 2, 3}),
               *y = acf_tensor_new(l.t, 4, (int64_t[]){1, 1, 2, 3});
    acf_paste(l.t, x, y, 1, 1);
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "paste: y is (1, 1, 2, 3), placed at row 1, column 1 of x (1, 2, 2, 3); expected it inside x");
    acf_lab_begin(&l, false);
    acf_window(l.t, acf_tensor_new(l.t, 1, (int64_t[]){3}), (acf_region){0, 0, 1, 1});
    assert_string_equal((acf_tape_status(l.t), acf_error()),
                        "window: x is (3) and the window 1 x 1; expected (N, H, W, C) and a size");
    acf_lab_close(&l);
}

ACF_TESTS(window, cmocka_unit_test(refuses_what_does_not_fit))
