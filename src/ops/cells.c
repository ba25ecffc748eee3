/* Cells of a table in device memory: see cells.h. N·D = 1e3 to 1e6 cells, one pass: not worth threads. */
#include "ops/cells.h"

static acf_status mask_forward(acf_tape *t, acf_node *n) {
    const uint8_t *mask = ((const acf_mask_numbers_attrs *)n->attr)->mask;
    (void)t;
    for (int64_t k = 0; k < acf_tensor_count(n->out[0]); k++) n->out[0]->data[k] = mask[k] != 0;
    return ACF_OK;
}

const acf_op acf_op_mask_numbers = {"mask_numbers", ACF_OP_mask_numbers, {mask_forward, NULL}};

acf_tensor *acf_mask_numbers(acf_tape *t, const uint8_t *mask, int64_t N, int64_t D) {
    acf_node *n = acf_node_new(t, &acf_op_mask_numbers, sizeof(acf_mask_numbers_attrs), 0, NULL);
    if (!n) return &t->empty;
    *(acf_mask_numbers_attrs *)n->attr = (acf_mask_numbers_attrs){mask};
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){N, D});
    return acf_node_run(t, n);
}

static acf_status put_forward(acf_tape *t, acf_node *n) {
    const acf_put_codes_attrs *a = n->attr;
    (void)t;
    for (int64_t p = 0; p < a->u->T; p++) a->codes[a->u->cell[p]] = a->made[p];
    return ACF_OK;
}

const acf_op acf_op_put_codes = {"put_codes", ACF_OP_put_codes, {put_forward, NULL}};

void acf_put_codes(acf_tape *t, int32_t *codes, const int32_t *made, const acf_subset *u) {
    acf_node *n = acf_node_new(t, &acf_op_put_codes, sizeof(acf_put_codes_attrs), 0, NULL);
    if (!n) return;
    *(acf_put_codes_attrs *)n->attr = (acf_put_codes_attrs){codes, made, u};
    acf_node_run(t, n);
}
