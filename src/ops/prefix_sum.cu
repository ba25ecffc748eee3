/* Prefix sums on the GPU: see prefix_sum.h; formulas in docs/math.md, 5.
 *
 * Workload: N = 512 to 4,096 rows, up to 300,000 elements of 64 to 512 units: bound by memory. A thread handles one
 * unit of one row and goes through the row's steps with the sum in a register; neighbours in a block are neighbours in
 * memory. The backward goes from the last step to the first and writes, for every element, the gradient of all elements
 * after it. The gradients of columns and slots are then sums over lists of elements, in an order fixed by the shapes: a
 * column's list follows from the subset, that of a class from a sort. */
#include "ops/classes.cuh"
#include "ops/gather.cuh"

extern "C" {
#include "ops/prefix_sum.h"
}

/* The arrays of a subset that are read along its rows, and the shapes. */
typedef struct rows {
    const int32_t *row, *size, *first;
    int64_t N, D, T, F;
} rows;

static rows rows_of(const acf_prefix_sum_plan *r) {
    const acf_subset *u = r->u;
    return {u->row, u->size, u->first, u->N, u->D, u->T, r->F};
}

/* Sets rows behind the last packed element to zero; the threads of the grid share them. */
static __device__ void zero_tail(acf_real *y, const rows &u) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)u.first[u.D] * u.F + acf_thread(); i < u.T * u.F; i += stride) y[i] = 0;
}

/* ---- all steps --------------------------------------------------------------------------------------------------- */

static __global__ void running_fwd(acf_real *__restrict__ y, rows u, const int32_t *__restrict__ slot,
                                   const int32_t *__restrict__ column, const acf_real *__restrict__ base,
                                   const acf_real *__restrict__ here, const acf_real *__restrict__ v,
                                   const acf_real *__restrict__ wv, const acf_real *__restrict__ wk, int64_t R,
                                   acf_fault *fault, const char *op) {
    const int64_t i = acf_thread();
    zero_tail(y, u);
    if (i >= u.N * u.F) return;
    const acf_cell at = acf_cell_of(i, u.F);
    const int64_t k = at.row, f = at.column, F = u.F;
    const int32_t r = u.row[k], n = u.size[r];
    acf_real sum = base[r * F + f];
#pragma unroll 4 /* loads of several steps are in flight together */
    for (int32_t t = 0; t < n; t++) {
        const int64_t p = u.first[t] + k, s = slot[p];
        y[p * F + f] = sum + (here ? here[column[p] * F + f] : 0);
        if (s < 0 || s >= R) { /* also for the last element, although no element sees it */
            if (f == 0) acf_report(fault, op, ACF_FAULT_SLOT, p, s, R - 1);
        } else if (t + 1 < n) {
            if (wv) sum += v[p] * wv[s * F + f];
            sum += wk[s * F + f];
        }
    }
}

/* later (T,F): the gradient of all elements of the row after this one, which is the gradient of this element's
 * terms. */
static __global__ void running_bwd(acf_real *__restrict__ later, acf_real *__restrict__ dbase, rows u,
                                   const acf_real *__restrict__ dy) {
    const int64_t i = acf_thread();
    if (later) zero_tail(later, u);
    if (i >= u.N * u.F) return;
    const acf_cell at = acf_cell_of(i, u.F);
    const int64_t k = at.row, f = at.column, F = u.F;
    const int32_t r = u.row[k], n = u.size[r];
    acf_real sum = 0;
#pragma unroll 4 /* loads of several steps are in flight together */
    for (int32_t t = n - 1; t >= 0; t--) {
        const int64_t p = (u.first[t] + k) * F + f;
        const acf_real d = dy[p];
        if (later) later[p] = sum;
        sum += d;
    }
    if (dbase && n) dbase[r * F + f] += sum;
}

/* dv (M) += the product of row p of g (M,F) with row slot[p] of w (R,F): one warp per element. rows: their number, or
 * NULL for M. */
static __global__ void value_bwd(acf_real *__restrict__ dv, const acf_real *__restrict__ g,
                                 const acf_real *__restrict__ w, const int32_t *__restrict__ slot, const int32_t *rows,
                                 int64_t M, int64_t R, int64_t F) {
    const int64_t p = acf_thread() / 32;
    if (p >= acf_true_rows(rows, M)) return;
    const int64_t s = slot[p];
    if (s < 0 || s >= R) return;
    acf_real sum = 0;
    for (int64_t f = threadIdx.x % 32; f < F; f += 32) sum += g[p * F + f] * w[s * F + f];
    sum = acf_warp_sum(sum);
    if (threadIdx.x % 32 == 0) dv[p] += sum;
}

/* y (M,F) = v (M) g (M,F). */
static __global__ void scale_rows(acf_real *__restrict__ y, const acf_real *__restrict__ v,
                                  const acf_real *__restrict__ g, int64_t M, int64_t F) {
    ACF_EACH(i, M * F) y[i] = v[acf_cell_of(i, F).row] * g[i];
}

/* list (N,D), all -1 on entry: the element of each cell. A row's columns differ, so no two threads write the same
 * entry. */
static __global__ void list_cells(int32_t *list, const int32_t *row_of, const int32_t *column, int64_t T, int64_t D) {
    ACF_EACH(p, T)
    if (row_of[p] >= 0) list[row_of[p] * D + column[p]] = (int32_t)p;
}

/* ---- sums over the elements of a column -------------------------------------------------------------------------- */

#define LANES 8        /* rows of a block at a time, 32 units wide */
#define PIECE_ROWS 256 /* of the batch: a block's part of a column */
#define MOST_PIECES 64

/* What column_sums adds to, (D,F) each, NULL = not needed, and what it adds up. */
typedef struct column_terms {
    acf_real *dhere, *dwk, *dwv;
    const acf_real *dy, *later, *v;
} column_terms;

/* Block (j,piece,chunk) sums some rows' elements of column j over 32 units. The last block of a column and chunk adds
 * up the pieces in order. list (N,D): the element of a cell, or -1. */
static __global__ void column_sums(column_terms c, acf_real *__restrict__ piece, unsigned *tickets,
                                   const int32_t *__restrict__ list, int64_t N, int64_t D, int64_t F) {
    __shared__ acf_real lane[3][LANES][32];
    const int64_t j = blockIdx.x, f = (int64_t)blockIdx.z * 32 + threadIdx.x % 32,
                  per = (N + gridDim.y - 1) / gridDim.y;
    const int64_t from = blockIdx.y * per, to = min(from + per, N);
    const int k = threadIdx.x / 32, x = threadIdx.x % 32;
    acf_real here = 0, known = 0, value = 0;
    for (int64_t i = from + k; f < F && i < to; i += LANES) {
        const int64_t p = list[i * D + j];
        if (p < 0) continue;
        if (c.dhere) here += c.dy[p * F + f];
        if (!c.later) continue;
        const acf_real g = c.later[p * F + f];
        known += g;
        if (c.dwv) value += c.v[p] * g;
    }
    lane[0][k][x] = here, lane[1][k][x] = known, lane[2][k][x] = value;
    __syncthreads();
    acf_real *const to_add[3] = {c.dhere, c.dwk, c.dwv};
    if (k < 3 && f < F && to_add[k]) { /* warp k adds the lanes of sum k */
        acf_real sum = 0;
        for (int q = 0; q < LANES; q++) sum += lane[k][q][x];
        if (gridDim.y == 1)
            to_add[k][j * F + f] += sum;
        else
            piece[((blockIdx.y * 3 + k) * D + j) * F + f] = sum;
    }
    if (gridDim.y == 1 || !acf_last_block(&tickets[blockIdx.z * D + j], gridDim.y)) return;
    if (k >= 3 || f >= F || !to_add[k]) return;
    acf_real sum = 0;
    for (unsigned q = 0; q < gridDim.y; q++) sum += __ldcg(&piece[((q * 3 + k) * D + j) * F + f]);
    to_add[k][j * F + f] += sum;
}

static acf_status add_columns(acf_device *dev, const column_terms *c, const int32_t *list, int64_t N, int64_t D,
                              int64_t F) {
    const int64_t chunks = acf_ceil_div(F, 32),
                  capacity = (int64_t)(ACF_SCRATCH / sizeof(acf_real)) / acf_max(3 * D * F, 1);
    const int64_t wanted = acf_min(acf_ceil_div(N, PIECE_ROWS), MOST_PIECES),
                  pieces = D * chunks > ACF_TICKETS ? 1 : acf_max(acf_min(wanted, capacity), 1);
    if (N <= 0 || D <= 0 || F <= 0) return ACF_OK;
    column_sums<<<dim3((unsigned)D, (unsigned)pieces, (unsigned)chunks), 32 * LANES, 0, acf_cuda_stream(dev)>>>(
        *c, (acf_real *)acf_cuda_scratch(dev), acf_cuda_tickets(dev), list, N, D, F);
    return ACF_LAUNCHED("prefix_sum");
}

/* The element of each cell of the table, for a subset whose elements have the columns `column`. On the tape if it has
 * to be made. */
static const int32_t *cell_list(acf_tape *t, const acf_subset *u, const int32_t *column) {
    if (column == u->col_of) return u->place;
    int32_t *list = acf_tape_ints(t, u->N * u->D);
    if (!list) return NULL;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    cudaMemsetAsync(list, 0xFF, (size_t)(u->N * u->D) * sizeof *list, stream);
    list_cells<<<acf_each_blocks(u->T), ACF_THREADS, 0, stream>>>(list, u->row_of, column, u->T, u->D);
    return list;
}

/* Adds rows of g (M,F), and of v g, to the rows `slot` of dwk and dwv (R,F; NULL = not needed). */
static acf_status add_slots(acf_tape *t, acf_real *dwv, acf_real *dwk, const acf_real *g, const acf_real *v,
                            const int32_t *slot, int64_t M, int64_t R, int64_t F) {
    if (dwk) ACF_TRY(acf_cuda_gather_back(t, dwk, g, slot, M, R, F));
    if (!dwv) return ACF_OK;
    acf_real *scaled = acf_tape_reals(t, M * F);
    if (!scaled) return acf_tape_status(t);
    scale_rows<<<acf_each_blocks(M * F), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(scaled, v, g, M, F);
    ACF_TRY(ACF_LAUNCHED("prefix_sum"));
    return acf_cuda_gather_back(t, dwv, scaled, slot, M, R, F);
}

static const acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_plan *r = (const acf_prefix_sum_plan *)n->attr;
    const rows u = rows_of(r);
    acf_tensor *const *in = n->in;
    running_fwd<<<acf_blocks(u.N * u.F, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, u, r->slot, r->column, in[ACF_PREFIX_SUM_BASE]->data, data_of(in[ACF_PREFIX_SUM_HERE]),
        data_of(in[ACF_PREFIX_SUM_V]), data_of(in[ACF_PREFIX_SUM_WV]), in[ACF_PREFIX_SUM_WK]->data,
        in[ACF_PREFIX_SUM_WK]->dim[0], acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("prefix_sum");
}

/* After the pass over the rows: adds the gradients of values, columns and slots. later (T,F) NULL: only the columns.
 * Where slots are columns, one pass over a column's elements computes all three sums. */
static acf_status add_terms(acf_tape *t, const acf_node *n, const acf_prefix_sum_plan *r, acf_real *const *d,
                            const acf_real *later) {
    const acf_tensor *v = n->in[ACF_PREFIX_SUM_V], *wv = n->in[ACF_PREFIX_SUM_WV];
    acf_real *dwv = d[ACF_PREFIX_SUM_WV], *dwk = d[ACF_PREFIX_SUM_WK];
    const int64_t R = n->in[ACF_PREFIX_SUM_WK]->dim[0], F = r->F, T = r->u->T;
    const bool by_column = r->slot == r->column && R == r->u->D;
    if (d[ACF_PREFIX_SUM_V]) {
        value_bwd<<<acf_blocks(32 * T, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
            d[ACF_PREFIX_SUM_V], later, wv->data, r->slot, r->u->first + r->u->D, T, R, F);
        ACF_TRY(ACF_LAUNCHED("prefix_sum"));
    }
    if (d[ACF_PREFIX_SUM_HERE] || (by_column && (dwk || dwv))) {
        const int32_t *list = cell_list(t, r->u, r->column);
        ACF_TRY(acf_tape_status(t));
        const column_terms c = {d[ACF_PREFIX_SUM_HERE], by_column ? dwk : NULL,   by_column ? dwv : NULL,
                                n->out[0]->grad,        by_column ? later : NULL, data_of(v)};
        ACF_TRY(add_columns(t->dev, &c, list, r->u->N, r->u->D, F));
    }
    return by_column ? ACF_OK : add_slots(t, dwv, dwk, later, data_of(v), r->slot, T, R, F);
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_plan *r = (const acf_prefix_sum_plan *)n->attr;
    const rows u = rows_of(r);
    acf_real *d[ACF_PREFIX_SUM_INPUTS];
    for (int i = 0; i < ACF_PREFIX_SUM_INPUTS; i++) d[i] = acf_grad(t, n->in[i]);
    const bool walks = d[ACF_PREFIX_SUM_V] || d[ACF_PREFIX_SUM_WV] || d[ACF_PREFIX_SUM_WK];
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *later = walks ? acf_tape_reals(t, u.T * u.F) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (later || d[ACF_PREFIX_SUM_BASE])
        running_bwd<<<acf_blocks(u.N * u.F, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
            later, d[ACF_PREFIX_SUM_BASE], u, n->out[0]->grad);
    ACF_TRY(ACF_LAUNCHED("prefix_sum"));
    ACF_TRY(add_terms(t, n, r, d, later));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

ACF_CUDA_OP(prefix_sum, forward, backward);

/* ---- one step ---------------------------------------------------------------------------------------------------- */

/* y (n,F) = sums + v wv[slot] + wk[slot]; a slot of -1, behind the rows that have this step, adds nothing. */
static __global__ void step_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ sums,
                                const acf_real *__restrict__ v, const acf_real *__restrict__ wv,
                                const acf_real *__restrict__ wk, const int32_t *__restrict__ slot, int64_t n, int64_t F,
                                int64_t R, acf_fault *fault, const char *op) {
    ACF_EACH(i, n * F) {
        const acf_cell at = acf_cell_of(i, F);
        const int64_t s = slot[at.row];
        acf_real sum = sums[i];
        if (s >= 0 && s < R)
            sum += (wv ? v[at.row] * wv[s * F + at.column] : 0) + wk[s * F + at.column];
        else if (s != -1 && at.column == 0)
            acf_report(fault, op, ACF_FAULT_SLOT, at.row, s, R - 1);
        y[i] = sum;
    }
}

static __global__ void add_to(acf_real *__restrict__ x, const acf_real *__restrict__ y, int64_t n) {
    ACF_EACH(i, n) x[i] += y[i];
}

static acf_status step_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    step_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, n->in[ACF_PREFIX_SUM_BASE]->data, data_of(n->in[ACF_PREFIX_SUM_V]), data_of(n->in[ACF_PREFIX_SUM_WV]),
        n->in[ACF_PREFIX_SUM_WK]->data, ((const acf_prefix_sum_step_attrs *)n->attr)->slot, y->dim[0], y->dim[1],
        n->in[ACF_PREFIX_SUM_WK]->dim[0], acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("prefix_sum_step");
}

static acf_status step_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    const int32_t *slot = ((const acf_prefix_sum_step_attrs *)n->attr)->slot;
    const int64_t M = y->dim[0], F = y->dim[1], R = n->in[ACF_PREFIX_SUM_WK]->dim[0];
    cudaStream_t stream = acf_cuda_stream(t->dev);
    acf_real *d[ACF_PREFIX_SUM_INPUTS];
    for (int i = 0; i < ACF_PREFIX_SUM_INPUTS; i++) d[i] = acf_grad(t, n->in[i]);
    ACF_TRY(acf_tape_status(t));
    acf_mark mark = acf_arena_mark(t->mem);
    if (d[ACF_PREFIX_SUM_BASE])
        add_to<<<acf_each_blocks(M * F), ACF_THREADS, 0, stream>>>(d[ACF_PREFIX_SUM_BASE], y->grad, M * F);
    if (d[ACF_PREFIX_SUM_V])
        value_bwd<<<acf_blocks(32 * M, ACF_THREADS), ACF_THREADS, 0, stream>>>(
            d[ACF_PREFIX_SUM_V], y->grad, n->in[ACF_PREFIX_SUM_WV]->data, slot, NULL, M, R, F);
    ACF_TRY(ACF_LAUNCHED("prefix_sum_step"));
    ACF_TRY(add_slots(t, d[ACF_PREFIX_SUM_WV], d[ACF_PREFIX_SUM_WK], y->grad, data_of(n->in[ACF_PREFIX_SUM_V]), slot, M,
                      R, F));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

ACF_CUDA_OP(prefix_sum_step, step_forward, step_backward);

/* ---- columns of packed elements ---------------------------------------------------------------------------------- */

static __global__ void columns_fwd(int32_t *__restrict__ column, const int32_t *__restrict__ col_of,
                                   const int32_t *__restrict__ mirror, int64_t T) {
    ACF_EACH(p, T) column[p] = mirror[p] < 0 ? -1 : col_of[mirror[p]];
}

static acf_status columns_forward(acf_tape *t, acf_node *n) {
    const acf_prefix_sum_columns_attrs *a = (const acf_prefix_sum_columns_attrs *)n->attr;
    columns_fwd<<<acf_each_blocks(a->u->T), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(a->column, a->u->col_of,
                                                                                       a->u->mirror, a->u->T);
    return ACF_LAUNCHED("prefix_sum_columns");
}

ACF_CUDA_OP(prefix_sum_columns, columns_forward, NULL);

/* ---- slots of a layer's weights ---------------------------------------------------------------------------------- */

/* y (R,F) = columns [from, from + R) of w (F,C), each as a row. */
static __global__ void slots_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ w, int64_t from, int64_t R,
                                 int64_t F, int64_t C) {
    ACF_EACH(i, R * F) {
        const acf_cell at = acf_cell_of(i, F);
        y[i] = w[at.column * C + from + at.row];
    }
}

static __global__ void slots_bwd(acf_real *__restrict__ dw, const acf_real *__restrict__ dy, int64_t from, int64_t R,
                                 int64_t F, int64_t C) {
    ACF_EACH(i, R * F) {
        const acf_cell at = acf_cell_of(i, R); /* along the rows of w */
        dw[at.row * C + from + at.column] += dy[at.column * F + at.row];
    }
}

static acf_status slots_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    slots_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, n->in[0]->data, ((const acf_prefix_sum_slots_attrs *)n->attr)->from, y->dim[0], y->dim[1],
        n->in[0]->dim[1]);
    return ACF_LAUNCHED("prefix_sum_slots");
}

static acf_status slots_backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_real *dw = acf_grad(t, n->in[0]);
    if (!dw) return acf_tape_status(t);
    slots_bwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dw, y->grad, ((const acf_prefix_sum_slots_attrs *)n->attr)->from, y->dim[0], y->dim[1], n->in[0]->dim[1]);
    return ACF_LAUNCHED("prefix_sum_slots");
}

ACF_CUDA_OP(prefix_sum_slots, slots_forward, slots_backward);

/* ---- slots of classes -------------------------------------------------------------------------------------------- */

#define UNITS 128      /* per block: its part of w is in shared memory */
#define KEPT 32        /* numbers of an embedding in shared memory */
#define EMBED 8        /* at a time, in registers */
#define CLASS_PARTS 64 /* of a column with many classes, at most */

/* What the kernels read; C inputs of the layer. */
typedef struct class_terms {
    const int32_t *first, *count; /* (D) */
    const acf_real *w, *table;    /* (F,C), (W,E) */
    int64_t F, C, E, mask_at, class_at;
} class_terms;

/* Block (x,j,z) has some classes of column j and UNITS units. */
static __global__ void classes_fwd(acf_real *__restrict__ y, class_terms c) {
    __shared__ acf_real kept[KEPT][UNITS];
    const int64_t j = blockIdx.y, f = (int64_t)blockIdx.z * UNITS + threadIdx.x, first = c.first[j];
    const acf_real *w = c.w + f * c.C + c.class_at + j * c.E; /* read by its own thread only, as is its part of kept */
    if (f >= c.F) return;
    for (int64_t e = 0; e < min(c.E, (int64_t)KEPT); e++) kept[e][threadIdx.x] = w[e];
    const acf_real mask = c.w[f * c.C + c.mask_at + j];
    for (int64_t r = blockIdx.x; r < c.count[j]; r += gridDim.x) {
        const acf_real *embedding = c.table + (first + r) * c.E;
        acf_real sum = mask;
        for (int64_t e = 0; e < c.E; e++) sum += embedding[e] * (e < KEPT ? kept[e][threadIdx.x] : w[e]);
        y[(first + r) * c.F + f] = sum;
    }
}

/* dw: block (j,z) sums over the classes of column j for 32 units, EMBED inputs at a time; the mask's input counts as
 * one more. */
static __global__ void classes_w_bwd(acf_real *__restrict__ dw, class_terms c, const acf_real *__restrict__ dy) {
    __shared__ acf_real lane[LANES][EMBED][32];
    const int k = threadIdx.x / 32, x = threadIdx.x % 32;
    const int64_t j = blockIdx.x, f = (int64_t)blockIdx.y * 32 + x, first = c.first[j], count = c.count[j];
    for (int64_t e0 = 0; e0 <= c.E; e0 += EMBED) {
        acf_real sum[EMBED] = {0};
        for (int64_t r = first + k; f < c.F && r < first + count; r += LANES) {
            const acf_real g = dy[r * c.F + f];
            for (int q = 0; q < EMBED; q++)
                sum[q] += e0 + q > c.E ? 0 : e0 + q == c.E ? g : g * c.table[r * c.E + e0 + q];
        }
        for (int q = 0; q < EMBED; q++) lane[k][q][x] = sum[q];
        __syncthreads();
        const int64_t e = e0 + k; /* warp k adds up input e0 + k: there are as many lanes as inputs */
        if (f < c.F && e <= c.E) {
            acf_real all = 0;
            for (int q = 0; q < LANES; q++) all += lane[q][k][x];
            dw[f * c.C + (e == c.E ? c.mask_at + j : c.class_at + j * c.E + e)] += all;
        }
        __syncthreads();
    }
}
static_assert(LANES == EMBED, "a warp for each input");

/* dtable: one warp per class, blocks (x,j). */
static __global__ void classes_table_bwd(acf_real *__restrict__ dtable, class_terms c,
                                         const acf_real *__restrict__ dy) {
    const int64_t j = blockIdx.y, warps = (int64_t)gridDim.x * blockDim.x / 32;
    const int lane = threadIdx.x % 32;
    for (int64_t i = acf_thread() / 32; i < c.count[j]; i += warps) {
        const int64_t r = c.first[j] + i;
        for (int64_t e0 = 0; e0 < c.E; e0 += EMBED) {
            acf_real sum[EMBED] = {0};
            for (int64_t f = lane; f < c.F; f += 32) {
                const acf_real g = dy[r * c.F + f];
                for (int q = 0; q < EMBED; q++)
                    if (e0 + q < c.E) sum[q] += g * c.w[f * c.C + c.class_at + j * c.E + e0 + q];
            }
            for (int q = 0; q < EMBED; q++) {
                sum[q] = acf_warp_sum(sum[q]);
                if (lane == 0 && e0 + q < c.E) dtable[r * c.E + e0 + q] += sum[q];
            }
        }
    }
}

/* The terms, and *most, the largest number of classes of a column. */
static acf_status class_terms_of(acf_tape *t, const acf_node *n, class_terms *c, int64_t *most) {
    const acf_prefix_sum_classes_attrs *a = (const acf_prefix_sum_classes_attrs *)n->attr;
    const acf_tensor *w = n->in[0], *table = n->in[1];
    const int32_t *there = acf_cuda_classes(t, &a->classes);
    ACF_TRY(acf_tape_status(t));
    *c = {there,     there + a->classes.D, w->data,    table->data, w->dim[0],
          w->dim[1], table->dim[1],        a->mask_at, a->class_at};
    *most = 0;
    for (int64_t j = 0; j < a->classes.D; j++) *most = acf_max(*most, a->classes.count[j]);
    return ACF_OK;
}

static acf_status classes_forward(acf_tape *t, acf_node *n) {
    const int64_t D = ((const acf_prefix_sum_classes_attrs *)n->attr)->classes.D;
    class_terms c;
    int64_t most;
    ACF_TRY(class_terms_of(t, n, &c, &most));
    if (!D || !most || !c.F) return ACF_OK;
    const dim3 grid((unsigned)acf_min(most, CLASS_PARTS), (unsigned)D, acf_blocks(c.F, UNITS));
    classes_fwd<<<grid, UNITS, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data, c);
    return ACF_LAUNCHED("prefix_sum_classes");
}

static acf_status classes_backward(acf_tape *t, acf_node *n) {
    const int64_t D = ((const acf_prefix_sum_classes_attrs *)n->attr)->classes.D;
    const acf_real *dy = n->out[0]->grad;
    class_terms c;
    int64_t most;
    acf_real *dw = acf_grad(t, n->in[0]), *dtable = acf_grad(t, n->in[1]);
    ACF_TRY(class_terms_of(t, n, &c, &most));
    if (!D || !most || !c.F) return ACF_OK;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (dw) classes_w_bwd<<<dim3((unsigned)D, acf_blocks(c.F, 32)), 32 * LANES, 0, stream>>>(dw, c, dy);
    const dim3 grid((unsigned)acf_min(acf_ceil_div(most, ACF_THREADS / 32), CLASS_PARTS), (unsigned)D);
    if (dtable) classes_table_bwd<<<grid, ACF_THREADS, 0, stream>>>(dtable, c, dy);
    return ACF_LAUNCHED("prefix_sum_classes");
}

ACF_CUDA_OP(prefix_sum_classes, classes_forward, classes_backward);
