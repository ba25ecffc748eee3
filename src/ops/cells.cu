/* Cells of a table on the GPU: see cells.h. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/cells.h"
}

static __global__ void mask_fwd(acf_real *__restrict__ y, const uint8_t *__restrict__ mask, int64_t n) { ACF_EACH(i, n) y[i] = mask[i] != 0; }

static acf_status mask_forward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->out[0]);
    mask_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data, ((const acf_mask_numbers_attrs *)n->attr)->mask,
                                                                                 count);
    return ACF_LAUNCHED("mask_numbers");
}

ACF_CUDA_OP(mask_numbers, mask_forward, NULL);

static __global__ void put_fwd(int32_t *__restrict__ codes, const int32_t *__restrict__ made, const int32_t *__restrict__ cell, int64_t T) {
    ACF_EACH(p, T)
    if (cell[p] >= 0) codes[cell[p]] = made[p];
}

static acf_status put_forward(acf_tape *t, acf_node *n) {
    const acf_put_codes_attrs *a = (const acf_put_codes_attrs *)n->attr;
    put_fwd<<<acf_each_blocks(a->u->T), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(a->codes, a->made, a->u->cell, a->u->T);
    return ACF_LAUNCHED("put_codes");
}

ACF_CUDA_OP(put_codes, put_forward, NULL);
