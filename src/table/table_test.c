/* Tests of table.h: what is stored, what is refused, and that a missing cell is not read. */
#include "table/table.h"

#include "harness/check.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const acf_column mixed[3] = {{"age", 0}, {"sex", 2}, {NULL, 5}};

static void refused(const double *x, int64_t N, int64_t D, const acf_column *c, acf_status status,
                    const char *sentence) {
    acf_table *t = NULL;
    int64_t live = acf_alloc_live();
    assert_int_equal(acf_table_make(x, NULL, N, D, c, &t), status);
    assert_string_equal(acf_error(), sentence);
    assert_null(t);
    assert_int_equal(acf_alloc_live(), live);
}

static void cells_and_names_are_kept(void **state) {
    (void)state;
    char name[] = "age";
    acf_column c[3] = {{name, 0}, {"sex", 2}, {NULL, 5}};
    double x[6] = {1600000001.5, 1, 4, NAN, 0, NAN};
    acf_table *t = NULL;
    assert_int_equal(acf_table_make(x, NULL, 2, 3, c, &t), ACF_OK);
    x[0] = 0.0, name[0] = '?', c[1].classes = 9; /* the table has its own copies */
    assert_int_equal(t->N, 2);
    assert_int_equal(t->D, 3);
    assert_true(t->x[0] == 1600000001.5 && t->x[1] == 1.0 && t->x[2] == 4.0);
    assert_true(!acf_table_present(t->x[3]) && acf_table_row(t, 1)[1] == 0.0 && isnan(t->x[5]));
    assert_string_equal(t->column[0].name, "age");
    assert_int_equal(t->column[1].classes, 2);
    assert_null(t->column[2].name);
    acf_table_free(t);
    acf_table_free(NULL);
}

static void the_mask_hides_whatever_is_there(void **state) {
    (void)state;
    const uint8_t m[6] = {1, 0, 7, 0, 1, 0};
    const double fill[] = {0.0, NAN, INFINITY, 1e30, 0.5};
    acf_table *t[5];
    for (int k = 0; k < 5; k++) {
        double x[6] = {3.5, fill[k], 2, fill[k], 1, fill[k]};
        assert_int_equal(acf_table_make(x, m, 2, 3, mixed, &t[k]), ACF_OK);
        assert_memory_equal(t[k]->x, t[0]->x, sizeof x);
    }
    assert_true(isnan(t[0]->x[1]) && t[0]->x[2] == 2.0 && isnan(t[0]->x[5]));
    for (int k = 0; k < 5; k++) acf_table_free(t[k]);
}

/* NaN is missing, whatever the mask says. */
static void nan_is_missing_under_a_mask_too(void **state) {
    (void)state;
    acf_table *t = NULL;
    assert_int_equal(acf_table_make((const double[]){NAN, 1.0}, (const uint8_t[]){1, 1}, 1, 2, NULL, &t), ACF_OK);
    assert_false(acf_table_present(t->x[0]));
    acf_table_free(t);
}

/* The second half of the matrix lies on a page that may not be read. */
static void a_missing_cell_is_not_even_read(void **state) {
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(two != MAP_FAILED);
    assert_int_equal(mprotect(two + page, page, PROT_NONE), 0);
    enum { D = 40, HERE = 17 };
    double *x = (double *)(void *)(two + page) - HERE;
    uint8_t m[D] = {0};
    for (int j = 0; j < HERE; j++) x[j] = j, m[j] = 1;
    acf_table *t = NULL;
    assert_int_equal(acf_table_make(x, m, 1, D, NULL, &t), ACF_OK);
    for (int j = 0; j < D; j++) assert_int_equal(acf_table_present(t->x[j]), j < HERE);
    acf_table_free(t);
    munmap(two, 2 * page);
}

static void bad_cells_are_named(void **state) {
    (void)state;
    refused((const double[]){1, 0, 0, INFINITY, 9, 9}, 2, 3, mixed, ACF_EDATA,
            "row 1, column 0 ('age'): the value is infinity; expected a finite number, or NaN for missing");
    refused((const double[]){-INFINITY, 0, 0}, 1, 3, NULL, ACF_EDATA,
            "row 0, column 0: the value is minus infinity; expected a finite number, or NaN for missing");
    refused((const double[]){1, 2, 0, INFINITY, 9, 9}, 2, 3, mixed, ACF_EDATA,
            "row 0, column 1 ('sex'): the code is 2; expected a whole number from 0 to 1, or NaN for missing");
    refused((const double[]){1, 1, 0.5}, 1, 3, mixed, ACF_EDATA,
            "row 0, column 2: the code is 0.5; expected a whole number from 0 to 4, or NaN for missing");
    refused((const double[]){1, -1, 0}, 1, 3, mixed, ACF_EDATA,
            "row 0, column 1 ('sex'): the code is -1; expected a whole number from 0 to 1, or NaN for missing");
    refused((const double[]){1, INFINITY, 0}, 1, 3, mixed, ACF_EDATA,
            "row 0, column 1 ('sex'): the code is inf; expected a whole number from 0 to 1, or NaN for missing");
}

static void bad_shapes_and_names_are_refused(void **state) {
    (void)state;
    const double x[3] = {0};
    refused(x, -1, 3, NULL, ACF_ESHAPE, "a table of -1 rows; expected 0 to 2^47");
    refused(x, 1, 0, NULL, ACF_ESHAPE, "a table of 0 columns; expected 1 to 2^31-1");
    refused(NULL, 1, 1, NULL, ACF_ESHAPE, "a table of 1 rows without values");
    refused(x, 1, 2, (const acf_column[]){{"a", 0}, {"b", -2}}, ACF_ESHAPE,
            "column 1 ('b'): -2 classes; expected 0 for a real column, or at least 1");
    refused(x, 1, 3, (const acf_column[]){{"a", 0}, {NULL, 0}, {"a", 0}}, ACF_EDATA,
            "columns 0 and 2 are both named 'a'");
    refused(x, 1, 2, (const acf_column[]){{"a", 0}, {"", 0}}, ACF_EDATA, "column 1: the name is empty");
    refused(x, 1, 2, (const acf_column[]){{"\xff", 0}, {"b", 0}}, ACF_EDATA, "column 0: the name is not UTF-8");
    acf_table *t = NULL;
    assert_int_equal(acf_table_make(x, NULL, ACF_TABLE_ROWS_MAX, INT32_MAX, NULL, &t), ACF_EMEMORY);
}

static void a_table_may_be_empty(void **state) {
    (void)state;
    acf_table *t = NULL;
    assert_int_equal(acf_table_make(NULL, NULL, 0, 3, mixed, &t), ACF_OK);
    assert_int_equal(t->N, 0);
    acf_table_free(t);
}

static void memory_may_run_out(void **state) {
    (void)state;
    const double x[3] = {1, 1, 1};
    int64_t live = acf_alloc_live();
    for (int64_t n = 1;; n++) {
        acf_table *t = NULL;
        acf_alloc_fail_at(n);
        acf_status status = acf_table_make(x, NULL, 1, 3, mixed, &t);
        acf_alloc_fail_at(0);
        acf_table_free(t);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_in_range(n, 1, 10);
    }
}

ACF_TESTS(table, cmocka_unit_test(cells_and_names_are_kept), cmocka_unit_test(the_mask_hides_whatever_is_there),
          cmocka_unit_test(nan_is_missing_under_a_mask_too), cmocka_unit_test(a_missing_cell_is_not_even_read),
          cmocka_unit_test(bad_cells_are_named), cmocka_unit_test(bad_shapes_and_names_are_refused),
          cmocka_unit_test(a_table_may_be_empty), cmocka_unit_test(memory_may_run_out))
