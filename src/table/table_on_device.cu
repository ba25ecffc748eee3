/* Batches drawn on the GPU: see table_on_device.h.
 *
 * Workload: 512 to 8192 rows of 6 to 500 columns, once a step. Masks are drawn column after column, so each row has a
 * thread, for some microseconds; then each cell has a thread. */
#include "ops/ops.cuh"

#include "table/table_on_device_row.h"

static __global__ void draw_rows(acf_draw_batch_attrs a) {
    const int64_t i = acf_thread();
    if (i == 0) {
        const acf_batch_step *k = &a.how.batch_steps[*a.how.turn];
        if (a.how.lr) *a.how.lr = k->lr;
        if (a.how.now) *a.how.now = k->step;
    }
    if (i < a.N && a.from.N > 0) acf_table_on_device_row(&a, i);
}

static __global__ void fill_cells(acf_draw_batch_attrs a) {
    ACF_EACH(k, a.N * a.from.D) {
        const acf_cell at = acf_cell_of(k, a.from.D);
        acf_table_on_device_cell(&a, at.row, at.column);
    }
}

#define ROW_THREADS 32 /* a warp a block: rows are few, and they finish sooner when spread over the GPU */

static acf_status draw_forward(acf_tape *t, acf_node *n) {
    const acf_draw_batch_attrs *a = (const acf_draw_batch_attrs *)n->attr;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    draw_rows<<<acf_blocks(a->from.N ? a->N : 1, ROW_THREADS), ROW_THREADS, 0, stream>>>(*a);
    if (a->from.N) fill_cells<<<acf_each_blocks(a->N * a->from.D), ACF_THREADS, 0, stream>>>(*a);
    return ACF_LAUNCHED("draw_batch");
}

ACF_CUDA_OP(draw_batch, draw_forward, NULL);

/* One block; each thread adds its numbers in a fixed order. */
static __global__ void total(acf_total *out, const acf_real *__restrict__ x, int64_t n) {
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += (double)x[i];
    sum = acf_block_sum(sum);
    if (threadIdx.x == 0) out->sum += sum, out->turn++;
}

static acf_status total_forward(acf_tape *t, acf_node *n) {
    total<<<1, 1024, 0, acf_cuda_stream(t->dev)>>>(((const acf_total_attrs *)n->attr)->total, n->in[0]->data,
                                                   acf_tensor_count(n->in[0]));
    return ACF_LAUNCHED("total");
}

ACF_CUDA_OP(total, total_forward, NULL);
