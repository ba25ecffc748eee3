/* Cells of a table: cases for the harness. */
#include "ops/cells.h"

#include "harness/lab.h"

static void build_mask(acf_lab *l) { acf_result(l, acf_mask_numbers(l->t, acf_lab_copy(l, l->b, (size_t)(l->N * l->D)), l->N, l->D)); }

static void naive_mask(const acf_lab *l, double *const *out) {
    for (int64_t p = 0; p < l->N * l->D; p++) out[0][p] = l->b[p] != 0;
}

/* What is not modelled stays as it was. */
static void build_put(acf_lab *l) {
    const int32_t *made = acf_leaf_ints(l, "made", 0, 59, l->u ? l->u->T : 0);
    const int32_t *before = acf_leaf_ints(l, "before", 60, 99, l->N * l->D);
    int32_t *codes = before ? acf_tape_ints(l->t, l->N * l->D) : NULL;
    if (codes && acf_device_copy(l->dev, codes, before, (size_t)(l->N * l->D) * sizeof *codes, ACF_ON_DEVICE)) acf_tape_fail(l->t, NULL);
    acf_put_codes(l->t, codes, made, l->u);
    acf_result_ints(l, codes, l->N * l->D, NULL);
}

static void naive_put(const acf_lab *l, double *const *out) {
    for (int64_t k = 0; k < l->N * l->D; k++) out[0][k] = l->leaf[1].ints[k];
    for (int64_t p = 0; p < l->u->T; p++) out[0][l->u->row_of[p] * l->D + l->u->col_of[p]] = l->leaf[0].ints[p];
}

static const acf_case cases[] = {
    {"masks as numbers", build_mask, naive_mask, .no_grad = true},
    {"codes put back", build_put, naive_put, .no_grad = true, .hides_nonfinite = true},
};
ACF_CASES(cells, cases)
