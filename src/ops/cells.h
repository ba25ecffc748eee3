/* Cells of a table in device memory, for models that must not look at them: masks as numbers, and codes put where they belong. */
#ifndef ACF_OPS_CELLS_H
#define ACF_OPS_CELLS_H

#include "ops/ops.h"

/* (N,D): 1 where mask (N,D; device memory) is not zero, else 0. No derivative. */
acf_tensor *acf_mask_numbers(acf_tape *t, const uint8_t *mask, int64_t N, int64_t D);

/* codes (N,D), in device memory: the modelled cells = made (T), packed over u. Fails: ACF_EDEVICE. */
void acf_put_codes(acf_tape *t, int32_t *codes, const int32_t *made, const acf_subset *u);

/* ---- for kernels on other devices ---------------------------------------------------------------------------------- */

typedef struct acf_mask_numbers_attrs {
    const uint8_t *mask;
} acf_mask_numbers_attrs;

typedef struct acf_put_codes_attrs {
    int32_t *codes;
    const int32_t *made;
    const acf_subset *u;
} acf_put_codes_attrs;

#endif
