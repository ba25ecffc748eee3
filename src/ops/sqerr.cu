/* Squared error per row on the GPU: see sqerr.h. */
#include "ops/reduce.cuh"

extern "C" {
#include "ops/sqerr.h"
}

/* da += 2 (a - b) dy of its row; with minus, subtracts it. One launch for each of a and b, as they may be one
 * tensor. */
static __global__ void sqerr_bwd(acf_real *__restrict__ da, const acf_real *__restrict__ dy,
                                 const acf_real *__restrict__ a, const acf_real *__restrict__ b,
                                 const int32_t *__restrict__ row_of, int64_t T, acf_real sign) {
    ACF_EACH(p, T) {
        const int32_t r = row_of[p];
        if (r >= 0) da[p] += sign * 2 * (a[p] - b[p]) * dy[r];
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    return acf_cuda_sum_subset(t->dev, n->out[0]->data, n->in[0]->data, n->in[1]->data, n->in[0]->sub);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_tensor *a = n->in[0], *b = n->in[1];
    const acf_subset *u = a->sub;
    acf_real *da = acf_grad(t, n->in[0]), *db = acf_grad(t, n->in[1]);
    const acf_real *dy = n->out[0]->grad;
    ACF_TRY(acf_tape_status(t));
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (da) sqerr_bwd<<<acf_each_blocks(u->T), ACF_THREADS, 0, stream>>>(da, dy, a->data, b->data, u->row_of, u->T, 1);
    if (db) sqerr_bwd<<<acf_each_blocks(u->T), ACF_THREADS, 0, stream>>>(db, dy, a->data, b->data, u->row_of, u->T, -1);
    return ACF_LAUNCHED("sqerr");
}

ACF_CUDA_OP(sqerr, forward, backward);
