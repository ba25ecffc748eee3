/* Moving rows on the GPU: see gather.h.
 *
 * Workload: up to 300,000 packed elements, single numbers or rows of up to 768. Bound by memory: one thread per
 * number, along the rows.
 *
 * A scatter-add with repeated indices has a fixed order here too: positions are sorted by index (cub's radix sort is
 * stable), and each destination sums its own run of them in pieces. The maps of a subset need no sort: they have no
 * repeats, or the subset holds their inverse (`place`, `rank`). */
#include "ops/gather.cuh"

#include <cub/device/device_radix_sort.cuh>

/* ---- gather ---------------------------------------------------------------------------------------------------- */

/* index[p] if it is a row, else -1; an invalid index is recorded as a fault. */
static __device__ int32_t checked(const int32_t *index, int64_t p, int64_t R, acf_fault *fault, const char *op) {
    const int32_t k = index[p];
    if (k >= -1 && k < R) return k;
    if (op) acf_report(fault, op, ACF_FAULT_INDEX, p, k, R - 1);
    return -1;
}

static __global__ void gather_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x,
                                  const int32_t *__restrict__ index, acf_real fill, int64_t n, int64_t R, int64_t C,
                                  acf_fault *fault, const char *op) {
    ACF_EACH(i, n * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int32_t k = checked(index, at.row, R, fault, op);
        y[i] = k < 0 ? fill : x[k * C + at.column];
    }
}

/* dx: row index[p] += row p of dy; no index repeats. */
static __global__ void gather_unique_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                                         const int32_t *__restrict__ index, int64_t n, int64_t C) {
    ACF_EACH(i, n * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int32_t k = index[at.row];
        if (k >= 0) dx[k * C + at.column] += dy[i];
    }
}

acf_status acf_cuda_gather(acf_device *dev, acf_real *y, const acf_real *x, const int32_t *index, acf_real fill,
                           int64_t n, int64_t R, int64_t C, const char *op) {
    gather_fwd<<<acf_each_blocks(n * C), ACF_THREADS, 0, acf_cuda_stream(dev)>>>(y, x, index, fill, n, R, C,
                                                                                 acf_cuda_fault(dev), op);
    return ACF_LAUNCHED("gather");
}

/* ---- sums of lists of rows ------------------------------------------------------------------------------------- */

#define LANES 8        /* rows of a block at a time, 32 columns wide */
#define LIST_PIECES 64 /* of a long list, at most */
#define PIECE_ROWS 512 /* approximate, where lists are of equal length */

/* Block (r,y) sums piece y of list r; the last block of a list adds its pieces in order. */
static __global__ void list_sums(acf_real *__restrict__ out, acf_real *__restrict__ piece, unsigned *tickets,
                                 const acf_real *__restrict__ x, const int32_t *__restrict__ list,
                                 const int32_t *__restrict__ first, int64_t n, int64_t R, int64_t C) {
    __shared__ acf_real lane[LANES][32];
    const int64_t r = blockIdx.x, begin = first ? first[r] : 0, count = first ? first[r + 1] - begin : n / R;
    const int64_t per = (count + gridDim.y - 1) / gridDim.y, from = blockIdx.y * per, to = min(from + per, count);
    const int k = threadIdx.x / 32, column = threadIdx.x % 32;
    for (int64_t c = column; c - column < C; c += 32) {
        acf_real sum = 0;
        for (int64_t q = from + k; c < C && q < to; q += LANES) {
            const int64_t p = first ? list[begin + q] : list[q * R + r];
            if (p >= 0) sum += x[p * C + c];
        }
        lane[k][column] = sum;
        __syncthreads();
        if (k == 0 && c < C) {
            for (int j = 1; j < LANES; j++) sum += lane[j][column];
            if (gridDim.y == 1)
                out[r * C + c] += sum;
            else
                piece[(blockIdx.y * R + r) * C + c] = sum;
        }
        __syncthreads();
    }
    if (gridDim.y == 1 || !acf_last_block(&tickets[r], gridDim.y)) return;
    for (int64_t c = threadIdx.x; c < C; c += blockDim.x) {
        acf_real sum = 0;
        for (unsigned y = 0; y < gridDim.y; y++) sum += __ldcg(&piece[(y * R + r) * C + c]);
        out[r * C + c] += sum;
    }
}

acf_status acf_cuda_list_sums(acf_device *dev, acf_real *out, const acf_real *x, const int32_t *list,
                              const int32_t *first, int64_t n, int64_t R, int64_t C) {
    if (R <= 0 || C <= 0 || n <= 0) return ACF_OK;
    const int64_t capacity = (int64_t)(ACF_SCRATCH / sizeof(acf_real)) / (R * C),
                  wanted = acf_min(acf_ceil_div(n, R * PIECE_ROWS), LIST_PIECES);
    const int64_t pieces = R > ACF_TICKETS ? 1 : acf_max(acf_min(wanted, capacity), 1);
    list_sums<<<dim3((unsigned)R, (unsigned)pieces), 32 * LANES, 0, acf_cuda_stream(dev)>>>(
        out, (acf_real *)acf_cuda_scratch(dev), acf_cuda_tickets(dev), x, list, first, n, R, C);
    return ACF_LAUNCHED("sums of lists");
}

/* ---- scatter-add with repeats ---------------------------------------------------------------------------------- */

/* Sort keys: the index, or R, after all others, for -1. */
static __global__ void list_positions(int32_t *key, int32_t *position, const int32_t *index, int64_t n, int64_t R) {
    ACF_EACH(p, n) {
        const int32_t k = index[p];
        key[p] = k >= 0 && k < R ? k : (int32_t)R;
        position[p] = (int32_t)p;
    }
}

/* first[r] = the position of the first key from r on, r = 0..R. */
static __global__ void find_runs(int32_t *first, const int32_t *key, int64_t n, int64_t R) {
    const int64_t r = acf_thread();
    if (r > R) return;
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (key[middle] < r)
            low = middle + 1;
        else
            high = middle;
    }
    first[r] = (int32_t)low;
}

static int bits_of(int64_t R) {
    int bits = 1;
    while ((int64_t)1 << bits <= R) bits++;
    return bits;
}

acf_status acf_cuda_gather_back(acf_tape *t, acf_real *dx, const acf_real *dy, const int32_t *index, int64_t n,
                                int64_t R, int64_t C) {
    if (n == 0 || R == 0) return ACF_OK;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    size_t bytes = 0;
    int32_t *none = NULL;
    ACF_CUDA(cub::DeviceRadixSort::SortPairs(NULL, bytes, none, none, none, none, (int)n, 0, bits_of(R), stream));
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *key = acf_tape_ints(t, n), *sorted = acf_tape_ints(t, n), *position = acf_tape_ints(t, n),
            *list = acf_tape_ints(t, n);
    int32_t *first = acf_tape_ints(t, R + 1);
    void *scratch = acf_tape_ints(t, (int64_t)(bytes / sizeof(int32_t)) + 1);
    ACF_TRY(acf_tape_status(t));
    list_positions<<<acf_each_blocks(n), ACF_THREADS, 0, stream>>>(key, position, index, n, R);
    ACF_CUDA(
        cub::DeviceRadixSort::SortPairs(scratch, bytes, key, sorted, position, list, (int)n, 0, bits_of(R), stream));
    find_runs<<<acf_blocks(R + 1, ACF_THREADS), ACF_THREADS, 0, stream>>>(first, sorted, n, R);
    acf_status status = acf_cuda_list_sums(t->dev, dx, dy, list, first, n, R, C);
    acf_arena_release(t->mem, mark);
    return status;
}

static acf_status gather_forward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = (const acf_gather_attrs *)n->attr;
    return acf_cuda_gather(t->dev, n->out[0]->data, n->in[0]->data, a->index, a->fill, a->n, a->R, a->C,
                           a->u ? NULL : n->op->name);
}

static acf_status gather_backward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = (const acf_gather_attrs *)n->attr;
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    if (!a->u) return acf_cuda_gather_back(t, dx, n->out[0]->grad, a->index, a->n, a->R, a->C);
    gather_unique_bwd<<<acf_each_blocks(a->n * a->C), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(dx, n->out[0]->grad,
                                                                                                 a->index, a->n, a->C);
    return ACF_LAUNCHED("gather");
}

ACF_CUDA_OP(gather, gather_forward, gather_backward);

/* ---- halves ---------------------------------------------------------------------------------------------------- */

/* y (T,C): each element is copied from its half. The halves' own `place` maps say which half and where. */
static __global__ void merge_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ even,
                                 const acf_real *__restrict__ odd, const int32_t *__restrict__ cell,
                                 const int32_t *__restrict__ even_place, const int32_t *__restrict__ odd_place,
                                 int64_t T, int64_t C) {
    ACF_EACH(i, T * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int32_t k = cell[at.row], e = k < 0 ? -1 : even_place[k], o = k < 0 ? -1 : odd_place[k];
        y[i] = e >= 0 ? even[e * C + at.column] : o >= 0 ? odd[o * C + at.column] : 0;
    }
}

/* dv (n,C): row p += row index[p] of dy. */
static __global__ void scatter_bwd(acf_real *__restrict__ dv, const acf_real *__restrict__ dy,
                                   const int32_t *__restrict__ index, int64_t n, int64_t R, int64_t C) {
    ACF_EACH(i, n * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int32_t k = index[at.row];
        if (k >= 0 && k < R) dv[i] += dy[k * C + at.column];
    }
}

static acf_status merge_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0], *even = n->in[0], *odd = n->in[1];
    const acf_subset *u = y->sub;
    merge_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, even->data, odd->data, u->cell, even->sub->place, odd->sub->place, u->T, acf_tensor_width(y));
    return ACF_LAUNCHED("merge");
}

static acf_status merge_backward(acf_tape *t, acf_node *n) {
    cudaStream_t stream = acf_cuda_stream(t->dev);
    for (int k = 0; k < 2; k++) {
        const acf_subset *half = n->in[k]->sub;
        const int64_t C = acf_tensor_width(n->in[k]);
        acf_real *dv = acf_grad(t, n->in[k]);
        if (dv)
            scatter_bwd<<<acf_each_blocks(half->T * C), ACF_THREADS, 0, stream>>>(dv, n->out[0]->grad, half->parent,
                                                                                  half->T, n->out[0]->sub->T, C);
    }
    ACF_TRY(acf_tape_status(t));
    return ACF_LAUNCHED("merge");
}

ACF_CUDA_OP(merge, merge_forward, merge_backward);

/* ---- scatter --------------------------------------------------------------------------------------------------- */

/* y (R,C) = base, or fill, with row r replaced by row from[r] of v where from[r] is not -1. */
static __global__ void scatter_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ v,
                                   const acf_real *__restrict__ base, acf_real fill, const int32_t *__restrict__ from,
                                   int64_t R, int64_t C) {
    ACF_EACH(i, R * C) {
        const acf_cell at = acf_cell_of(i, C);
        const int32_t k = from[at.row];
        y[i] = k >= 0 ? v[k * C + at.column] : base ? base[i] : fill;
    }
}

/* dbase (R,C) += dy where nothing was written. */
static __global__ void scatter_base_bwd(acf_real *__restrict__ dbase, const acf_real *__restrict__ dy,
                                        const int32_t *__restrict__ from, int64_t R, int64_t C) {
    ACF_EACH(i, R * C)
    if (from[acf_cell_of(i, C).row] < 0) dbase[i] += dy[i];
}

static __global__ void fill_ints(int32_t *x, int32_t value, int64_t n) { ACF_EACH(i, n) x[i] = value; }

/* from (R), all -1 on entry: the p with index[p] = r. A repeated index is recorded as a fault. */
static __global__ void invert(int32_t *from, const int32_t *index, int64_t n, int64_t R, acf_fault *fault,
                              const char *op) {
    ACF_EACH(p, n) {
        const int32_t k = checked(index, p, R, fault, op);
        if (k >= 0 && atomicExch(&from[k], (int32_t)p) != -1) acf_report(fault, op, ACF_FAULT_REPEAT, k, 0, 0);
    }
}

/* The row of v for each row of y: from the subset if it has the map; else computed in memory that the caller
 * releases. */
static const int32_t *sources(acf_tape *t, const acf_node *n) {
    const acf_gather_attrs *a = (const acf_gather_attrs *)n->attr;
    if (a->u) return a->u->place;
    int32_t *from = acf_tape_ints(t, a->R);
    if (!from) return NULL;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    fill_ints<<<acf_each_blocks(a->R), ACF_THREADS, 0, stream>>>(from, -1, a->R);
    invert<<<acf_each_blocks(a->n), ACF_THREADS, 0, stream>>>(from, a->index, a->n, a->R, acf_cuda_fault(t->dev),
                                                              n->op->name);
    return from;
}

static acf_status scatter_forward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = (const acf_gather_attrs *)n->attr;
    acf_mark mark = acf_arena_mark(t->mem);
    const int32_t *from = sources(t, n);
    ACF_TRY(acf_tape_status(t));
    scatter_fwd<<<acf_each_blocks(a->R * a->C), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, n->in[0]->data, n->in[1] ? n->in[1]->data : NULL, a->fill, from, a->R, a->C);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("scatter");
}

static acf_status scatter_backward(acf_tape *t, acf_node *n) {
    const acf_gather_attrs *a = (const acf_gather_attrs *)n->attr;
    acf_real *dv = acf_grad(t, n->in[0]), *dbase = acf_grad(t, n->in[1]);
    const acf_real *dy = n->out[0]->grad;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    acf_mark mark = acf_arena_mark(t->mem);
    const int32_t *from = dbase ? sources(t, n) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (dv) scatter_bwd<<<acf_each_blocks(a->n * a->C), ACF_THREADS, 0, stream>>>(dv, dy, a->index, a->n, a->R, a->C);
    if (dbase) scatter_base_bwd<<<acf_each_blocks(a->R * a->C), ACF_THREADS, 0, stream>>>(dbase, dy, from, a->R, a->C);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("scatter");
}

ACF_CUDA_OP(scatter, scatter_forward, scatter_backward);

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static __global__ void add_step(acf_real *__restrict__ dv, const acf_real *__restrict__ dy, int64_t n) {
    ACF_EACH(i, n) dv[i] += dy[i];
}

/* The host knows the counts (acf_tape_steps), so a step is a copy; the rest is zero. */
static acf_status stack_forward(acf_tape *t, acf_node *n) {
    const acf_stack_attrs *a = (const acf_stack_attrs *)n->attr;
    const int64_t C = acf_tensor_width(n->out[0]), end = a->at.first[a->at.n];
    cudaStream_t stream = acf_cuda_stream(t->dev);
    acf_real *y = n->out[0]->data;
    for (int64_t s = 0; s < a->at.n; s++)
        ACF_CUDA(cudaMemcpyAsync(y + a->at.first[s] * C, a->step[s]->data, (size_t)(a->at.active[s] * C) * sizeof *y,
                                 cudaMemcpyDeviceToDevice, stream));
    ACF_CUDA(cudaMemsetAsync(y + end * C, 0, (size_t)((n->out[0]->dim[0] - end) * C) * sizeof *y, stream));
    return ACF_OK;
}

static acf_status stack_backward(acf_tape *t, acf_node *n) {
    const acf_stack_attrs *a = (const acf_stack_attrs *)n->attr;
    const int64_t C = acf_tensor_width(n->out[0]);
    for (int64_t s = 0; s < a->at.n; s++) {
        acf_real *dv = acf_grad(t, a->step[s]);
        const int64_t count = a->at.active[s] * C;
        if (dv)
            add_step<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
                dv, n->out[0]->grad + a->at.first[s] * C, count);
    }
    ACF_TRY(acf_tape_status(t));
    return ACF_LAUNCHED("step_stack");
}

ACF_CUDA_OP(step_stack, stack_forward, stack_backward);
