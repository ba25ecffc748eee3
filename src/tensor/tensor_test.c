/* Tests of shapes of tensors: counts, text, cells. */
#include "tensor/tensor.h"

#include "harness/check.h"
#include "harness/lab.h"

#include <string.h>

static acf_tensor shaped(int ndim, int64_t a, int64_t b, int64_t c, int64_t d) {
    return (acf_tensor){.ndim = ndim, .dim = {a, b, c, d}};
}

static void counts(void **state) {
    (void)state;
    acf_tensor scalar = shaped(0, 0, 0, 0, 0), list = shaped(1, 7, 0, 0, 0), cube = shaped(3, 4, 3, 5, 0);
    acf_tensor none = shaped(2, 0, 3, 0, 0), thin = shaped(2, 3, 0, 0, 0);
    assert_int_equal(acf_tensor_count(&scalar), 1);
    assert_int_equal(acf_tensor_rows(&scalar), 1);
    assert_int_equal(acf_tensor_width(&scalar), 1);
    assert_int_equal(acf_tensor_count(&list), 7);
    assert_int_equal(acf_tensor_rows(&list), 7);
    assert_int_equal(acf_tensor_width(&list), 1);
    assert_int_equal(acf_tensor_count(&cube), 60);
    assert_int_equal(acf_tensor_rows(&cube), 4);
    assert_int_equal(acf_tensor_width(&cube), 15);
    assert_int_equal(acf_tensor_count(&none), 0);
    assert_int_equal(acf_tensor_width(&none), 3);
    assert_int_equal(acf_tensor_count(&thin), 0);
}

static void text(void **state) {
    (void)state;
    char buf[ACF_SHAPE_TEXT];
    acf_subset u = {0};
    acf_tensor x = shaped(2, 256, 8, 0, 0);
    assert_string_equal(acf_tensor_shape(&x, buf), "(256, 8)");
    x.sub = &u;
    assert_string_equal(acf_tensor_shape(&x, buf), "(256 packed, 8)");
    x = shaped(0, 0, 0, 0, 0);
    assert_string_equal(acf_tensor_shape(&x, buf), "()");
    x = shaped(1, 0, 0, 0, 0);
    assert_string_equal(acf_tensor_shape(&x, buf), "(0)");
    /* The longest shape there is still fits. */
    x = shaped(4, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN);
    x.sub = &u;
    assert_string_equal(acf_tensor_shape(&x, buf), "(-9223372036854775808 packed, -9223372036854775808, "
                                                   "-9223372036854775808, -9223372036854775808)");
}

static void same_shape(void **state) {
    (void)state;
    acf_subset u = {0}, v = {0};
    acf_tensor a = shaped(2, 4, 3, 0, 0), b = a;
    assert_true(acf_tensor_same_shape(&a, &b));
    b.dim[2] = 9; /* beyond ndim: does not count */
    assert_true(acf_tensor_same_shape(&a, &b));
    b.dim[1] = 2;
    assert_false(acf_tensor_same_shape(&a, &b));
    b = shaped(1, 4, 3, 0, 0);
    assert_false(acf_tensor_same_shape(&a, &b));
    b = a;
    b.sub = &u;
    assert_false(acf_tensor_same_shape(&a, &b));
    a.sub = &v;
    assert_false(acf_tensor_same_shape(&a, &b));
    a.sub = &u;
    assert_true(acf_tensor_same_shape(&a, &b));
}

/* The cell that a message reports. */
static void places(void **state) {
    (void)state;
    int64_t row, column;
    acf_tensor x = shaped(2, 4, 3, 0, 0);
    acf_tensor_place(&x, 7, &row, &column);
    assert_true(row == 2 && column == 1);
    x = shaped(3, 4, 3, 2, 0);
    acf_tensor_place(&x, 11, &row, &column);
    assert_true(row == 1 && column == 5);
    x = shaped(1, 4, 0, 0, 0);
    acf_tensor_place(&x, 3, &row, &column);
    assert_true(row == 3 && column == 0);
    x = shaped(0, 0, 0, 0, 0);
    acf_tensor_place(&x, 0, &row, &column);
    assert_true(row == 0 && column == 0);

    acf_lab l;
    acf_lab_open(&l, 1, 6, 5, ACF_MASK_RANDOM, 4);
    acf_tensor *v = acf_leaf_packed(&l, "v", -1, 1, 2);
    for (int64_t i = 0; i < acf_tensor_count(v); i++) {
        acf_tensor_place(v, i, &row, &column);
        assert_true(row == l.u->row_of[i / 2] && column == l.u->col_of[i / 2]);
    }
    acf_lab_close(&l);
}

ACF_TESTS(tensor, cmocka_unit_test(counts), cmocka_unit_test(text), cmocka_unit_test(same_shape),
          cmocka_unit_test(places))
