/* Shared by the tests of Gaussian mixture and factor analysis: see gmm_lab.h. */
#include "harness/gmm_lab.h"

#define ROWS_MAX 4096
enum { INDICATORS = ACF_GMM_INDICATORS, CATEGORIES = 2 };
static const int32_t indicator_of[INDICATORS] = {0, 0, 1}, indicator_value[INDICATORS] = {1, 2, 1};

static int32_t code_of(int64_t i, int64_t c) { return (int32_t)((i + c) % (c ? 2 : 3)); }
static uint8_t is_known(int64_t i, int64_t c) { return (i / 2 + c) % 3 != 0; }

acf_mog_classes acf_gmm_lab_classes(acf_lab *l) {
    if (!(l->c->variant & ACF_GMM_CLASSES)) return (acf_mog_classes){0};
    static int32_t code[ROWS_MAX * CATEGORIES];
    static uint8_t known[ROWS_MAX * CATEGORIES];
    assert_true(l->N <= ROWS_MAX);
    for (int64_t k = 0; k < l->N * CATEGORIES; k++) {
        known[k] = is_known(k / CATEGORIES, k % CATEGORIES);
        code[k] = known[k] ? code_of(k / CATEGORIES, k % CATEGORIES) : 77;
    }
    const size_t cells = (size_t)(l->N * CATEGORIES);
    return (acf_mog_classes){INDICATORS,
                             CATEGORIES,
                             acf_lab_copy(l, indicator_of, sizeof indicator_of),
                             acf_lab_copy(l, indicator_value, sizeof indicator_value),
                             acf_lab_copy(l, code, cells * sizeof *code),
                             acf_lab_copy(l, known, cells)};
}

void acf_gmm_lab_only_given(acf_lab *l) {
    for (int64_t k = 0; k < l->N * l->D; k++) l->b[k] = l->b[k] && l->m[k];
}

int acf_gmm_lab_row(const acf_lab *l, int64_t i, double *x, int *set) {
    int n = 0;
    for (int64_t j = 0; j < l->D; j++) {
        x[j] = (double)l->leaf[0].value[i * l->D + j];
        if (l->b[i * l->D + j] && l->m[i * l->D + j]) set[n++] = (int)j;
    }
    for (int p = 0; p < INDICATORS && l->c->variant & ACF_GMM_CLASSES; p++) {
        x[l->D + p] = code_of(i, indicator_of[p]) == indicator_value[p];
        if (is_known(i, indicator_of[p])) set[n++] = (int)l->D + p;
    }
    return n;
}

void acf_gmm_lab_sets(acf_lab *l, int n, acf_tensor **z) {
    for (int i = 0; i < n; i++) {
        acf_real *v = acf_arena_alloc(l->t->host, (size_t)l->u->T * sizeof *v);
        for (int64_t p = 0; p < l->u->T; p++) v[p] = (acf_real)acf_lab_random(9, i * l->u->T + p, -2, 2);
        z[i] = acf_tensor_as_packed(l->t, acf_tensor_input(l->t, v, 1, &l->u->T), l->u);
    }
}
