/* Cells of a table on the GPU: see cells.h. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/cells.h"
}

/* One thread per cell. x NULL: the columns are categories. */
static __global__ void take(acf_take_attrs a, acf_real *__restrict__ x, acf_real *__restrict__ common) {
    const int64_t K = a.K;
    ACF_EACH(to, a.from.N * K) {
        const acf_cell at = acf_cell_of(to, K);
        const int64_t from = at.row * a.from.D + a.column[at.column];
        const bool b = a.from.b[from] != 0, m = a.from.m[from] != 0;
        a.b[to] = b, a.m[to] = m;
        if (!x) {
            a.code[to] = m ? a.from.code[from] : -1;
            continue;
        }
        const acf_real value = m ? a.from.x[from] : 0;
        acf_real *row = common + at.row * 3 * K + at.column;
        x[to] = value;
        row[0] = b ? value : 0, row[K] = b, row[2 * K] = m;
    }
}

static acf_status take_forward(acf_tape *t, acf_node *n) {
    const acf_take_attrs *a = (const acf_take_attrs *)n->attr;
    take<<<acf_each_blocks(a->from.N * a->K), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        *a, n->n_out ? n->out[0]->data : NULL, n->n_out ? n->out[1]->data : NULL);
    return ACF_LAUNCHED("take");
}

ACF_CUDA_OP(take_reals, take_forward, NULL);
ACF_CUDA_OP(take_classes, take_forward, NULL);

static __global__ void mask_fwd(acf_real *__restrict__ y, const uint8_t *__restrict__ mask, int64_t n) {
    ACF_EACH(i, n) y[i] = mask[i] != 0;
}

static acf_status mask_forward(acf_tape *t, acf_node *n) {
    const int64_t count = acf_tensor_count(n->out[0]);
    mask_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, ((const acf_mask_numbers_attrs *)n->attr)->mask, count);
    return ACF_LAUNCHED("mask_numbers");
}

ACF_CUDA_OP(mask_numbers, mask_forward, NULL);

static __global__ void put_fwd(int32_t *__restrict__ codes, const int32_t *__restrict__ made,
                               const int32_t *__restrict__ cell, int64_t T) {
    ACF_EACH(p, T)
    if (cell[p] >= 0) codes[cell[p]] = made[p];
}

static acf_status put_forward(acf_tape *t, acf_node *n) {
    const acf_put_codes_attrs *a = (const acf_put_codes_attrs *)n->attr;
    put_fwd<<<acf_each_blocks(a->n), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(a->codes, a->made, a->cell, a->n);
    return ACF_LAUNCHED("put_codes");
}

ACF_CUDA_OP(put_codes, put_forward, NULL);

static __global__ void put_reals_fwd(acf_real *__restrict__ x, const acf_real *__restrict__ made, acf_cells at,
                                     int64_t n, int64_t K) {
    ACF_EACH(p, n)
    if (at.row[p] >= 0) x[at.row[p] * K + at.column[p]] = made[p];
}

static acf_status put_reals_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0], *made = n->in[1];
    put_reals_fwd<<<acf_each_blocks(made->dim[0]), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        x->data, made->data, ((const acf_put_reals_attrs *)n->attr)->at, made->dim[0], x->dim[1]);
    return ACF_LAUNCHED("put_reals");
}

ACF_CUDA_OP(put_reals, put_reals_forward, NULL);
