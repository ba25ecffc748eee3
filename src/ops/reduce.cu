/* Sums on the GPU: see reduce.h. Accumulated in double, in an order that shape and capacity fix. Elements of a packed
 * tensor behind the last are not summed. */
#include "ops/reduce.cuh"

/* ---- sum, mean, dot ---------------------------------------------------------------------------------------------- */

#define SUM_BLOCKS 256 /* at most: the last block adds up their sums */

/* The count of numbers in a tensor of `capacity` rows; rows NULL: all of them. */
static __device__ int64_t true_count(const int32_t *rows, int64_t capacity, int64_t width) {
    return acf_true_rows(rows, capacity) * width;
}

/* y = Σ w x; with `mean` divided by the count. part (blocks) is scratch. */
static __global__ void sum_fwd(acf_real *y, double *part, unsigned *ticket, const acf_real *__restrict__ x,
                               const acf_real *__restrict__ w, const int32_t *rows, int64_t capacity, int64_t width,
                               bool mean) {
    const int64_t n = true_count(rows, capacity, width), stride = (int64_t)gridDim.x * blockDim.x;
    double sum = 0;
    for (int64_t i = acf_thread(); i < n; i += stride) sum += (double)x[i] * (w ? (double)w[i] : 1);
    sum = acf_block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
    if (!acf_last_block(ticket, gridDim.x)) return;
    sum = acf_block_sum(threadIdx.x < gridDim.x ? __ldcg(&part[threadIdx.x]) : 0.0);
    if (threadIdx.x == 0) *y = acf_float_from(sum / (mean ? (double)max(n, (int64_t)1) : 1));
}

/* dx += dy w; with `mean` divided by the count. */
static __global__ void sum_bwd(acf_real *__restrict__ dx, const acf_real *dy, const acf_real *__restrict__ w,
                               const int32_t *rows, int64_t capacity, int64_t width, bool mean) {
    const int64_t n = true_count(rows, capacity, width);
    const acf_real g = (acf_real)((double)*dy / (mean ? (double)max(n, (int64_t)1) : 1));
    ACF_EACH(i, n) dx[i] += w ? g * w[i] : g;
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_sum_attrs *a = (const acf_sum_attrs *)n->attr;
    const acf_tensor *x = n->in[0];
    const unsigned blocks = (unsigned)acf_min(acf_each_blocks(acf_tensor_count(x)), SUM_BLOCKS);
    sum_fwd<<<blocks, ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, (double *)acf_cuda_scratch(t->dev), acf_cuda_tickets(t->dev), x->data, a->w, acf_cuda_rows(x),
        acf_tensor_rows(x), acf_tensor_width(x), a->mean);
    return ACF_LAUNCHED("sum");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_sum_attrs *a = (const acf_sum_attrs *)n->attr;
    acf_tensor *x = n->in[0];
    acf_real *dx = acf_grad(t, x);
    if (!dx) return acf_tape_status(t);
    sum_bwd<<<acf_each_blocks(acf_tensor_count(x)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, n->out[0]->grad, a->w, acf_cuda_rows(x), acf_tensor_rows(x), acf_tensor_width(x), a->mean);
    return ACF_LAUNCHED("sum");
}

ACF_CUDA_OP(sum, forward, backward);

/* ---- sums over a row's modelled columns -------------------------------------------------------------------------- */

#define LANES 8 /* steps at a time, for 32 neighbouring ranks */

static __global__ void subset_fwd(acf_real *y, const acf_real *__restrict__ a, const acf_real *__restrict__ b,
                                  const int32_t *__restrict__ row, const int32_t *__restrict__ size,
                                  const int32_t *__restrict__ first, int64_t N) {
    __shared__ double lane[LANES][32];
    const int64_t k = (int64_t)blockIdx.x * 32 + threadIdx.x % 32;
    const int j = threadIdx.x / 32;
    const int32_t r = k < N ? row[k] : 0, n = k < N ? size[r] : 0;
    double sum = 0;
    for (int32_t t = j; t < n; t += LANES) {
        const int64_t p = first[t] + k;
        const double d = (double)a[p] - (b ? (double)b[p] : 0);
        sum += b ? d * d : d;
    }
    lane[j][threadIdx.x % 32] = sum;
    __syncthreads();
    if (j > 0 || k >= N) return;
    for (int q = 1; q < LANES; q++) sum += lane[q][threadIdx.x];
    y[r] = acf_float_from(sum);
}

static __global__ void subset_bwd(acf_real *__restrict__ dv, const acf_real *__restrict__ dy,
                                  const int32_t *__restrict__ row_of, int64_t T) {
    ACF_EACH(p, T) {
        const int32_t r = row_of[p];
        if (r >= 0) dv[p] += dy[r];
    }
}

acf_status acf_cuda_sum_subset(acf_device *dev, acf_real *y, const acf_real *a, const acf_real *b,
                               const acf_subset *u) {
    subset_fwd<<<acf_blocks(u->N, 32), 32 * LANES, 0, acf_cuda_stream(dev)>>>(y, a, b, u->row, u->size, u->first, u->N);
    return ACF_LAUNCHED("sum_subset");
}

static acf_status subset_forward(acf_tape *t, acf_node *n) {
    return acf_cuda_sum_subset(t->dev, n->out[0]->data, n->in[0]->data, NULL, n->in[0]->sub);
}

static acf_status subset_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = n->in[0]->sub;
    acf_real *dv = acf_grad(t, n->in[0]);
    if (!dv) return acf_tape_status(t);
    subset_bwd<<<acf_each_blocks(u->T), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(dv, n->out[0]->grad, u->row_of,
                                                                                   u->T);
    return ACF_LAUNCHED("sum_subset");
}

ACF_CUDA_OP(sum_subset, subset_forward, subset_backward);

/* ---- weights of rows in a mean ----------------------------------------------------------------------------------- */

/* One block: the number of rows that count must be known before any share. v NULL: none. */
static __global__ void shares_fwd(acf_real *w, const int32_t *__restrict__ u, const int32_t *__restrict__ v, int64_t N,
                                  bool per_column) {
    int rows = 0;
    for (int64_t i = threadIdx.x; i < N; i += blockDim.x) rows += u[i] + (v ? v[i] : 0) > 0;
    rows = acf_block_sum(rows);
    for (int64_t i = threadIdx.x; i < N; i += blockDim.x) {
        const int size = u[i] + (v ? v[i] : 0);
        w[i] = size ? (acf_real)(1 / ((double)rows * (per_column ? (double)size : 1))) : 0;
    }
}

static acf_status shares_forward(acf_tape *t, acf_node *n) {
    const acf_row_shares_attrs *a = (const acf_row_shares_attrs *)n->attr;
    shares_fwd<<<1, 1024, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data, a->u->size, a->v ? a->v->size : NULL, a->u->N,
                                                        a->per_column);
    return ACF_LAUNCHED("row_shares");
}

ACF_CUDA_OP(row_shares, shares_forward, NULL);
