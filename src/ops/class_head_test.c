/* Tests of the output layer of categories: cases for the harness, comparison with all logits at once, tiles,
 * refusals. */
#include "ops/class_head.h"

#include "harness/lab.h"
#include "ops/linear.h"
#include "ops/reduce.h"

#include <math.h>

/* ---- cases ------------------------------------------------------------------------------------------------------ */

/* 3, 1, 5, 2, 3, 1 ... classes after one unused row of w. */
#define MAX_D 64
enum { FEW, MANY }; /* variants; MANY: columns of more classes than a GPU's tile */
static int32_t firsts[MAX_D], counts[MAX_D];

static acf_classes classes_of(int64_t D, int64_t *W, int variant) {
    static const int32_t few[4] = {3, 1, 5, 2}, many[4] = {70, 1, 130, 2};
    const int32_t *pattern = variant == MANY ? many : few;
    *W = 1;
    for (int64_t j = 0; j < D; j++) {
        firsts[j] = (int32_t)*W, counts[j] = pattern[j % 4];
        *W += counts[j];
    }
    return (acf_classes){D, firsts, counts};
}

typedef struct head {
    acf_classes c;
    acf_tensor *h, *w, *b;
    const int32_t *rows;
} head;

static int32_t row_of(const acf_lab *l, const int32_t *raw, int64_t i) {
    int32_t j = l->host->col_of[i];
    return firsts[j] + raw[i] % counts[j];
}

static head head_of(acf_lab *l) {
    head x;
    int64_t W, F = l->big ? 48 : 3;
    x.c = classes_of(l->D, &W, l->c ? l->c->variant : FEW);
    x.h = acf_leaf_packed(l, "h", -1, 1, F);
    x.w = acf_leaf(l, "w", -1, 1, 2, (int64_t[]){W, F});
    x.b = acf_leaf(l, "b", -1, 1, 1, (int64_t[]){W});
    x.rows = NULL;
    if (!l->u || !acf_leaf_ints(l, "codes", 0, 259, l->u->T)) return x;
    const int32_t *raw = l->leaf[l->leaf_at - 1].ints;
    int32_t *rows = acf_lab_ints(l->u->T);
    for (int64_t i = 0; i < l->host->T; i++) rows[i] = row_of(l, raw, i);
    x.rows = acf_lab_give_ints(l, rows, l->u->T);
    return x;
}

static void build_logp(acf_lab *l) {
    head x = head_of(l);
    acf_result(l, acf_class_logp(l->t, x.h, x.w, x.b, x.rows, &x.c, l->u));
}

/* The same parameters used twice: gradients add up. */
static void build_twice(acf_lab *l) {
    head x = head_of(l);
    acf_result(l, acf_class_logp(l->t, x.h, x.w, x.b, x.rows, &x.c, l->u));
    acf_result(l, acf_class_logp(l->t, x.h, x.w, x.b, x.rows, &x.c, l->u));
}

/* e^logit of row r of w for element i. */
static double weight(const acf_lab *l, int64_t i, int64_t r) {
    int64_t F = l->big ? 48 : 3;
    double sum = (double)l->leaf[2].value[r];
    for (int64_t f = 0; f < F; f++) sum += (double)l->leaf[0].value[i * F + f] * (double)l->leaf[1].value[r * F + f];
    return exp(sum);
}

static double total(const acf_lab *l, int64_t i) {
    int32_t j = l->u->col_of[i];
    double sum = 0;
    for (int32_t k = 0; k < counts[j]; k++) sum += weight(l, i, firsts[j] + k);
    return sum;
}

static void naive_logp(const acf_lab *l, double *const *out) {
    for (int64_t i = 0; i < l->u->T; i++) out[0][i] = log(weight(l, i, row_of(l, l->leaf[3].ints, i)) / total(l, i));
}

static void build_scores(acf_lab *l) {
    head x = head_of(l);
    acf_result(l, acf_class_logits(l->t, x.h, x.w, x.b, &x.c, (acf_cells){NULL, NULL}));
    acf_result(l, acf_class_probs(l->t, x.h, x.w, x.b, &x.c, (acf_cells){NULL, NULL}));
}

static void naive_scores(const acf_lab *l, double *const *out) {
    int32_t M = 0;
    for (int64_t j = 0; j < l->D; j++) M = counts[j] > M ? counts[j] : M;
    for (int64_t i = 0; i < l->u->T; i++)
        for (int32_t k = 0; k < counts[l->u->col_of[i]]; k++) {
            double w = weight(l, i, firsts[l->u->col_of[i]] + k);
            out[0][i * M + k] = log(w);
            out[1][i * M + k] = w / total(l, i);
        }
}

static const acf_size some[] = {{5, 3, ACF_MASK_RANDOM}, {2, 1, ACF_MASK_ALL}, {-1, 0, ACF_MASK_RANDOM}};

/* A NaN may be in a row of w that no element reads; NaNs in rows that are read are tested below. */
static const acf_case cases[] = {
    {"logp", build_logp, naive_logp, .hides_nonfinite = true},
    {"logp, used twice", build_twice, NULL, .hides_nonfinite = true},
    {"scores", build_scores, naive_scores, .no_grad = true, .hides_nonfinite = true},
    {"logp, many classes", build_logp, naive_logp, .variant = MANY, .hides_nonfinite = true, .big_N = 150, .big_D = 3,
     .sizes = some},
    {"scores, many classes", build_scores, naive_scores, .variant = MANY, .no_grad = true, .hides_nonfinite = true,
     .big_N = 150, .big_D = 3, .sizes = some},
};
ACF_CASES(class_head, cases)

/* ---- identities ------------------------------------------------------------------------------------------------- */

/* Columns of 3000 and 2 classes with about 1200 elements each. One tile is limited by its logits, the other by its
 * rows. The same computed with all logits at once must give the same values and gradients. */
enum { N = 2400, F = 2, CLASSES = 3002 };
static const int32_t first2[2] = {0, 3000}, count2[2] = {3000, 2};

static void many_tiles(void **state) {
    (void)state;
    acf_lab l;
    static double value[2], dw[2][CLASSES * F], db[2][CLASSES];
    for (int way = 0; way < 2; way++) {
        acf_lab_open(&l, 2, N, 2, ACF_MASK_ONE, 8);
        acf_lab_begin(&l, true);
        const acf_classes c = {2, first2, count2};
        acf_tensor *h = acf_leaf_packed(&l, "h", -1, 1, F), *w = acf_leaf(&l, "w", -1, 1, 2, (int64_t[]){CLASSES, F});
        acf_tensor *b = acf_leaf(&l, "b", -1, 1, 1, (int64_t[]){CLASSES}), *y;
        int32_t *rows = acf_tape_ints(l.t, l.u->T), *codes = acf_tape_ints(l.t, l.u->T);
        for (int64_t i = 0; i < l.u->T; i++) {
            int32_t j = l.u->col_of[i];
            codes[i] = (int32_t)(i * 7919 % count2[j]), rows[i] = first2[j] + codes[i];
        }
        if (way == 0)
            y = acf_class_logp(l.t, h, w, b, rows, &c, l.u);
        else
            y = acf_categorical_logp(l.t, acf_linear(l.t, h, w, b, ACF_IDENTITY), codes, &c, l.u);
        assert_int_equal(acf_tape_backward(l.t, acf_mean(l.t, y)), ACF_OK);
        value[way] = 0;
        for (int64_t i = 0; i < l.u->T; i++) value[way] += (double)y->data[i] / (double)(i + 1);
        for (int64_t i = 0; i < CLASSES * F; i++) dw[way][i] = (double)w->grad[i];
        for (int64_t i = 0; i < CLASSES; i++) db[way][i] = (double)b->grad[i];
        acf_lab_close(&l);
    }
    double tol = 300 * (double)ACF_REAL_EPS;
    acf_assert_close(value[0], value[1], tol, "log-probabilities");
    for (int64_t i = 0; i < CLASSES * F; i++) acf_assert_close(dw[0][i], dw[1][i], tol, "dw");
    for (int64_t i = 0; i < CLASSES; i++) acf_assert_close(db[0][i], db[1][i], tol, "db");
}

/* ---- errors ---------------------------------------------------------------------------------------------------- */

static void expect(acf_lab *l, acf_status status, const char *sentence) {
    assert_int_equal(acf_tape_status(l->t), status);
    if (sentence) assert_string_equal(acf_error(), sentence);
    acf_lab_begin(l, false);
}

/* 2 rows of 3 columns with 2, 3 and 2 classes. */
static const int32_t first7[3] = {0, 2, 5}, count7[3] = {2, 3, 2};
static const acf_classes classes7 = {3, first7, count7};

static head small(acf_lab *l, acf_real bad) {
    head x = {.c = classes7, .h = acf_tensor_const(l->t, l->u, 1, 2, (int64_t[]){6, 2})};
    x.w = acf_tensor_const(l->t, NULL, 1, 2, (int64_t[]){7, 2});
    x.b = acf_tensor_const(l->t, NULL, 1, 1, (int64_t[]){7});
    x.w->data[4 * 2] = bad; /* a class of column 1 */
    return x;
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    static const int32_t far[3] = {0, 2, 6}, fine[6] = {0, 1, 2, 4, 5, 6};
    static const int32_t wrong[6] = {0, 2, 2, 5, 5, 7}, below[6] = {0, 1, 1, 4, 5, 6};
    const acf_cells none = {NULL, NULL};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    head x = small(&l, 1);
    acf_class_logp(l.t, x.h, x.w, x.b, wrong, &x.c, l.u);
    expect(&l, ACF_EDATA, "class_logp: row 1, column 0: the class is row 2 of w; expected one of 2 rows from row 0 on");
    x = small(&l, 1);
    acf_class_logp(l.t, x.h, x.w, x.b, below, &x.c, l.u);
    expect(&l, ACF_EDATA, "class_logp: row 0, column 1: the class is row 1 of w; expected one of 3 rows from row 2 on");
    x = small(&l, 1);
    acf_class_logp(l.t, x.h, x.w, x.b, fine, &(acf_classes){3, far, count7}, l.u);
    expect(&l, ACF_ESHAPE, "class_logp: column 2: 2 classes from row 6 of w on; w has 7 rows");
    x = small(&l, 1);
    acf_class_logp(l.t, x.h, x.w, x.b, fine, &(acf_classes){2, first7, count7}, l.u);
    expect(&l, ACF_ESHAPE, "class_logp: there are classes for 2 columns; the table has 3");
    x = small(&l, 1);
    acf_class_logp(l.t, x.h, x.w, acf_tensor_new(l.t, 1, (int64_t[]){6}), fine, &x.c, l.u);
    expect(&l, ACF_ESHAPE, "class_logp: h is (6 packed, 2), w is (7, 2) and b is (6); expected (T, F), (W, F) and (W)");
    x = small(&l, 1);
    acf_class_logp(l.t, acf_tensor_new(l.t, 2, (int64_t[]){6, 2}), x.w, x.b, fine, &x.c, l.u);
    expect(&l, ACF_ESHAPE, "class_logp: the hidden units are not packed over this subset");
    x = small(&l, 1);
    acf_class_logits(l.t, acf_tensor_new(l.t, 2, (int64_t[]){6, 2}), x.w, x.b, &x.c, none);
    expect(&l, ACF_ESHAPE, NULL);
    acf_lab_close(&l);
}

/* A NaN among the classes of a column reaches only its elements. */
static void shows_nan_in_the_column(void **state) {
    (void)state;
    static const int32_t rows[6] = {0, 1, 2, 3, 5, 6};
    acf_lab l;
    acf_lab_open(&l, 1, 2, 3, ACF_MASK_ALL, 1);
    head x = small(&l, (acf_real)NAN);
    acf_tensor *y = acf_class_logp(l.t, x.h, x.w, x.b, rows, &x.c, l.u);
    acf_tensor *p = acf_class_probs(l.t, x.h, x.w, x.b, &x.c, (acf_cells){NULL, NULL});
    for (int i = 0; i < 6; i++) assert_true((isnan(y->data[i]) != 0) == (l.u->col_of[i] == 1));
    for (int i = 0; i < 6; i++) assert_true((isnan(p->data[3 * i]) != 0) == (l.u->col_of[i] == 1));
    acf_lab_close(&l);
}

ACF_TESTS(class_head, cmocka_unit_test(many_tiles), cmocka_unit_test(refuses_what_does_not_fit),
          cmocka_unit_test(shows_nan_in_the_column))
