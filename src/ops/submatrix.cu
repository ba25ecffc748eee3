/* Per-row matrices on the modelled columns, on the GPU: see submatrix.h; formulas in docs/math.md, 6.
 *
 * Workload: N = 512 to 4096 rows, |u| about 32, r = 16: some 16 MB each of A, B and M, read or written once. A group
 * (rowmat.cuh) makes the matrix of its row. The columns u of A and B, and the incoming gradient, are first gathered to
 * shared memory where they fit. A thread computes TILE results together, so that a number is used TILE times per
 * read. */
#include "ops/rowmat.cuh"

extern "C" {
#include "ops/submatrix.h"
}

#define TILE 4

/* What a group reads of A (·,r) and B (r,·): places in shared memory, or columns of the table in global memory. */
typedef struct factors {
    const acf_real *a, *b;
    const int32_t *column; /* NULL: they are indexed by place */
    int r, ldb;
} factors;
static __device__ inline int at_place(const factors &f, int t) { return f.column ? f.column[t] : t; }

/* With STAGED, copies the columns u of both to `shared` (2·n·r reals); a sync follows before they are read. */
template <int G, bool STAGED>
static __device__ inline factors gather_factors(acf_real *shared, const acf_real *a, const acf_real *b, int r,
                                                const acf_subset &u, const acf_batch_row &row) {
    const int32_t *cols = u.cols + row.i * u.D;
    const int n = row.n, D = (int)u.D, lane = acf_lane<G>();
    a += row.i * D * r, b += row.i * D * r;
    if (!STAGED) return {a, b, cols, r, D};
    acf_real *as = shared, *bs = shared + n * r;
    for (int e = lane; e < n * r; e += G) as[e] = a[cols[e / r] * r + e % r];
    for (int s = lane; s < n; s += G) {
        const int c = cols[s];
        for (int q = 0; q < r; q++) bs[q * n + s] = b[q * D + c];
    }
    return {as, bs, NULL, r, n};
}

/* ---- low rank ---------------------------------------------------------------------------------------------------- */

/* m (n,n) = base[u,u] + A_u B_u: a thread has TILE rows of a column. base may be NULL. */
template <int G, bool STAGED>
static __global__ void low_fwd(acf_real *m, const acf_real *__restrict__ base, const acf_real *__restrict__ a,
                               const acf_real *__restrict__ b, int r, acf_subset u, int per) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row row = acf_row_of_rank(u, rank);
    const factors f = gather_factors<G, STAGED>(acf_group_shared<G>(per), a, b, r, u, row);
    const int32_t *cols = u.cols + row.i * u.D;
    const int n = row.n, D = (int)u.D;
    acf_group_sync<G>();
    for (int t0 = acf_lane<G>() / 32 * TILE; t0 < n; t0 += G / 32 * TILE)
        for (int s = acf_lane<G>() % 32; s < n; s += 32) {
            const acf_real *bs = f.b + at_place(f, s), *as[TILE];
            acf_real sum[TILE];
#pragma unroll
            for (int v = 0; v < TILE; v++) {
                const int t = min(t0 + v, n - 1);
                as[v] = f.a + at_place(f, t) * r;
                sum[v] = base ? base[cols[t] * D + cols[s]] : 0;
            }
            for (int q = 0; q < r; q++) {
                const acf_real x = bs[q * f.ldb];
#pragma unroll
                for (int v = 0; v < TILE; v++) sum[v] += as[v][q] * x;
            }
#pragma unroll
            for (int v = 0; v < TILE; v++)
                if (t0 + v < n) m[row.at + (t0 + v) * n + s] = sum[v];
        }
}

/* dA[u,:] += dM B_uᵀ: a thread has TILE columns of a row. d (n,ld) is dM. */
template <int G>
static __device__ void add_da(acf_real *da, const acf_real *d, int ld, const factors &f, const int32_t *cols, int n) {
    for (int q0 = acf_lane<G>() / 32 * TILE; q0 < f.r; q0 += G / 32 * TILE)
        for (int t = acf_lane<G>() % 32; t < n; t += 32) {
            acf_real sum[TILE] = {0};
            for (int s = 0; s < n; s++) {
                const acf_real x = d[t * ld + s];
                const acf_real *bs = f.b + at_place(f, s);
#pragma unroll
                for (int v = 0; v < TILE; v++) sum[v] += x * bs[min(q0 + v, f.r - 1) * f.ldb];
            }
            acf_real *to = da + cols[t] * f.r + q0;
#pragma unroll
            for (int v = 0; v < TILE; v++)
                if (q0 + v < f.r) to[v] += sum[v];
        }
}

/* dB[:,u] += A_uᵀ dM: a thread has TILE rows of a column. */
template <int G>
static __device__ void add_db(acf_real *db, const acf_real *d, int ld, const factors &f, const int32_t *cols, int D,
                              int n) {
    for (int q0 = acf_lane<G>() / 32 * TILE; q0 < f.r; q0 += G / 32 * TILE)
        for (int s = acf_lane<G>() % 32; s < n; s += 32) {
            acf_real sum[TILE] = {0};
            for (int t = 0; t < n; t++) {
                const acf_real x = d[t * ld + s], *as = f.a + at_place(f, t) * f.r;
#pragma unroll
                for (int v = 0; v < TILE; v++) sum[v] += x * as[min(q0 + v, f.r - 1)];
            }
#pragma unroll
            for (int v = 0; v < TILE; v++)
                if (q0 + v < f.r) db[(q0 + v) * D + cols[s]] += sum[v];
        }
}

template <int G, bool STAGED>
static __global__ void low_bwd(acf_real *da, acf_real *db, const acf_real *__restrict__ dm,
                               const acf_real *__restrict__ a, const acf_real *__restrict__ b, int r, acf_subset u,
                               int per) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row row = acf_row_of_rank(u, rank);
    const int32_t *cols = u.cols + row.i * u.D;
    acf_real *shared = acf_group_shared<G>(per);
    const acf_real *d = dm + row.at;
    const int n = row.n, D = (int)u.D, ld = STAGED ? n | 1 : n;
    const factors f = gather_factors<G, STAGED>(shared + (STAGED ? n * ld : 0), a, b, r, u, row);
    if (STAGED) acf_group_copy<G>(shared, ld, d, n, n), d = shared;
    acf_group_sync<G>();
    if (da) add_da<G>(da + row.i * D * r, d, ld, f, cols, n);
    if (db) add_db<G>(db + row.i * D * r, d, ld, f, cols, D, n);
}

/* ---- full -------------------------------------------------------------------------------------------------------- */

/* m (n,n) = base[u,u] + C[u,u]: a warp along the rows. */
template <int G>
static __global__ void full_fwd(acf_real *m, const acf_real *__restrict__ base, const acf_real *__restrict__ c,
                                acf_subset u) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row row = acf_row_of_rank(u, rank);
    const int32_t *cols = u.cols + row.i * u.D;
    const int n = row.n, D = (int)u.D;
    for (int s = acf_lane<G>() % 32; s < n; s += 32) {
        const int cs = cols[s];
#pragma unroll 4
        for (int t = acf_lane<G>() / 32; t < n; t += G / 32) {
            const int at = cols[t] * D + cs;
            m[row.at + t * n + s] = c[row.at + at] + (base ? base[at] : 0);
        }
    }
}

template <int G>
static __global__ void full_bwd(acf_real *__restrict__ dc, const acf_real *__restrict__ dm, acf_subset u) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row row = acf_row_of_rank(u, rank);
    const int32_t *cols = u.cols + row.i * u.D;
    const int n = row.n, D = (int)u.D;
    for (int s = acf_lane<G>() % 32; s < n; s += 32) {
        const int cs = cols[s];
        for (int t0 = acf_lane<G>() / 32; t0 < n; t0 += G / 32 * TILE) {
            acf_real v[TILE];
#pragma unroll
            for (int q = 0; q < TILE; q++)
                if (const int t = t0 + q * (G / 32); t < n)
                    v[q] = dc[row.at + cols[t] * D + cs] + dm[row.at + t * n + s];
#pragma unroll
            for (int q = 0; q < TILE; q++)
                if (const int t = t0 + q * (G / 32); t < n) dc[row.at + cols[t] * D + cs] = v[q];
        }
    }
}

/* ---- base -------------------------------------------------------------------------------------------------------- */

#define BASE_PIECES                                                                                                    \
    128 /* of the batch, at most, of PIECE_ROWS rows or more: one block each; the last block adds them up in order */
#define PIECE_ROWS 16

/* dbase (D,D) += the sum over rows of each dM put back at [u,u]. Block (x,y) has ACF_THREADS · TILE elements of dbase
 * and piece y of the rows. seat (N,D): the position of a column in a row's compact order, -1 where it is not
 * modelled. */
static __global__ void base_bwd(acf_real *dbase, acf_real *piece, unsigned *tickets, const acf_real *__restrict__ dm,
                                const int32_t *__restrict__ seat, acf_subset u) {
    const int64_t per = (u.N + gridDim.y - 1) / gridDim.y, from = blockIdx.y * per, to = min(from + per, u.N),
                  all = u.D * u.D;
    const int64_t e0 = (int64_t)blockIdx.x * blockDim.x * TILE + threadIdx.x;
    acf_real sum[TILE] = {0};
    int c[TILE], d[TILE];
#pragma unroll
    for (int v = 0; v < TILE; v++) {
        const acf_cell at = acf_cell_of(min(e0 + v * blockDim.x, all - 1), u.D);
        c[v] = (int)at.row, d[v] = (int)at.column;
    }
#pragma unroll 4
    for (int64_t i = from; i < to; i++) {
        const int n = u.size[i];
#pragma unroll
        for (int v = 0; v < TILE; v++) {
            const int t = seat[i * u.D + c[v]], s = seat[i * u.D + d[v]];
            sum[v] += t >= 0 && s >= 0 ? dm[i * all + t * n + s] : 0;
        }
    }
#pragma unroll
    for (int v = 0; v < TILE; v++)
        if (const int64_t e = e0 + v * blockDim.x; e < all) piece[blockIdx.y * all + e] = sum[v];
    if (gridDim.y > 1 && !acf_last_block(&tickets[blockIdx.x], gridDim.y)) return;
#pragma unroll
    for (int v = 0; v < TILE; v++)
        if (const int64_t e = e0 + v * blockDim.x; e < all) {
            acf_real total = 0;
            for (unsigned y = 0; y < gridDim.y; y++) total += __ldcg(&piece[y * all + e]);
            dbase[e] += total;
        }
}

/* One warp per row. */
static __global__ void find_seats(int32_t *seat, acf_subset u) {
    const int64_t i = acf_group<32>();
    if (i >= u.N) return;
    for (int64_t c = acf_lane<32>(); c < u.D; c += 32) seat[i * u.D + c] = -1;
    __syncwarp();
    for (int t = acf_lane<32>(); t < u.size[i]; t += 32) seat[i * u.D + u.cols[i * u.D + t]] = t;
}

static acf_status base_backward(acf_tape *t, acf_real *dbase, const acf_real *dm, const acf_subset *u) {
    const int64_t all = u->D * u->D, slices = acf_ceil_div(all, ACF_THREADS * TILE);
    if (!dbase || all == 0 || u->N == 0) return acf_tape_status(t);
    const int64_t pieces = slices > ACF_TICKETS ? 1 : acf_min(BASE_PIECES, acf_ceil_div(u->N, PIECE_ROWS));
    acf_mark mark = acf_arena_mark(t->mem);
    int32_t *seat = acf_tape_ints(t, u->N * u->D);
    acf_real *piece = acf_tape_reals(t, pieces * all);
    ACF_TRY(acf_tape_status(t));
    cudaStream_t stream = acf_cuda_stream(t->dev);
    find_seats<<<acf_blocks(u->N, ACF_THREADS / 32), ACF_THREADS, 0, stream>>>(seat, *u);
    base_bwd<<<dim3((unsigned)slices, (unsigned)pieces), ACF_THREADS, 0, stream>>>(
        dbase, piece, acf_cuda_tickets(t->dev), dm, seat, *u);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("submatrix");
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const acf_submatrix_attrs *attrs_of(const acf_node *n) { return (const acf_submatrix_attrs *)n->attr; }
static const acf_real *data_of(const acf_tensor *x) { return x ? x->data : NULL; }

/* Groups whose factors, and with `matrix` a matrix, are gathered to shared memory; *staged tells whether they fit. */
static acf_groups low_groups(const acf_submatrix_attrs *a, int matrix, bool *staged) {
    const acf_groups g = acf_groups_for(a->u->N, a->u->D, matrix, (int)acf_min(2 * a->r, 1 << 20));
    *staged = g.small && g.bytes <= ACF_SHARED_BYTES;
    return *staged ? g : acf_groups_for(a->u->N, a->u->D, 0, 0);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_submatrix_attrs *a = attrs_of(n);
    bool staged;
    const acf_groups g = low_groups(a, 0, &staged);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    auto kernel = staged ? low_fwd<32, true> : g.small ? low_fwd<32, false> : low_fwd<ACF_ROWMAT_LARGE, false>;
    kernel<<<g.blocks, g.threads, g.bytes, stream>>>(n->out[0]->data, data_of(n->in[0]), n->in[1]->data, n->in[2]->data,
                                                     (int)a->r, *a->u, g.per);
    return ACF_LAUNCHED("submatrix");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_submatrix_attrs *a = attrs_of(n);
    acf_real *dbase = acf_grad(t, n->in[0]), *da = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    ACF_TRY(acf_tape_status(t));
    bool staged;
    const acf_groups g = low_groups(a, 1, &staged);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    auto kernel = staged ? low_bwd<32, true> : g.small ? low_bwd<32, false> : low_bwd<ACF_ROWMAT_LARGE, false>;
    if (da || db)
        kernel<<<g.blocks, g.threads, g.bytes, stream>>>(da, db, n->out[0]->grad, n->in[1]->data, n->in[2]->data,
                                                         (int)a->r, *a->u, g.per);
    ACF_TRY(ACF_LAUNCHED("submatrix"));
    return base_backward(t, dbase, n->out[0]->grad, a->u);
}

ACF_CUDA_OP(submatrix, forward, backward);

static acf_status full_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = attrs_of(n)->u;
    const acf_groups g = acf_groups_for(u->N, u->D, 0, 0);
    ACF_GROUP_LAUNCH(full_fwd, g, acf_cuda_stream(t->dev), n->out[0]->data, data_of(n->in[0]), n->in[1]->data, *u);
    return ACF_LAUNCHED("submatrix_full");
}

static acf_status full_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = attrs_of(n)->u;
    acf_real *dbase = acf_grad(t, n->in[0]), *dc = acf_grad(t, n->in[1]);
    ACF_TRY(acf_tape_status(t));
    const acf_groups g = acf_groups_for(u->N, u->D, 0, 0);
    if (dc) ACF_GROUP_LAUNCH(full_bwd, g, acf_cuda_stream(t->dev), dc, n->out[0]->grad, *u);
    ACF_TRY(ACF_LAUNCHED("submatrix_full"));
    return base_backward(t, dbase, n->out[0]->grad, u);
}

ACF_CUDA_OP(submatrix_full, full_forward, full_backward);
