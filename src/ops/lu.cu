/* A general matrix per row on the GPU: see lu.h; formulas in docs/math.md, 6.
 *
 * Workload: 4096 matrices of about 32 x 32, six times a step. A warp has its matrix in shared memory (16 KB at 63
 * columns, about 14 of them per multiprocessor). Factorising and inverting are bound by that memory's bandwidth,
 * everything else by the one pass over the matrices in global memory. */
#include "ops/dense_lu.cuh"

extern "C" {
#include "ops/lu.h"
}

static const acf_lu *object_of(const acf_node *n) { return ((const acf_lu_attrs *)n->attr)->lu; }

/* ---- factors --------------------------------------------------------------------------------------------------- */

/* order (N,D). */
template <int G>
static __global__ void factor_fwd(acf_real *f, int32_t *order, const acf_real *__restrict__ m, acf_subset u, int per,
                                  acf_fault *fault, const char *op) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    const bool small = G == 32;
    const int n = r.n, ld = small ? n | 1 : n;
    acf_real *shared = acf_group_shared<G>(per), *w = small ? shared : f + r.at;
    int32_t *places = small ? (int32_t *)(shared + u.D * (u.D | 1)) : order + r.i * u.D;
    acf_group_copy<G>(w, ld, m + r.at, n, n);
    acf_group_sync<G>();
    const acf_real largest = acf_group_largest<G>(w, ld, n);
    acf_group_lu<G>(w, ld, places, n);
    const int bad = acf_group_singular<G>(w, ld + 1, n, largest);
    if (bad >= 0 && acf_lane<G>() == 0) acf_report(fault, op, ACF_FAULT_SINGULAR, r.i, u.cols[r.i * u.D + bad], 0);
    if (!small) return;
    acf_group_copy<G>(f + r.at, n, w, ld, n);
    for (int t = acf_lane<G>(); t < n; t += G) order[r.i * u.D + t] = places[t];
}

static acf_status factor_forward(acf_tape *t, acf_node *n) {
    const acf_lu *lu = object_of(n);
    const acf_subset *u = lu->u;
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 1);
    ACF_GROUP_LAUNCH(factor_fwd, g, acf_cuda_stream(t->dev), n->out[0]->data, lu->order, n->in[0]->data, *u, g.per,
                     acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("lu_factor");
}

ACF_CUDA_OP(lu_factor, factor_forward, NULL);

/* ---- apply: z = M x -------------------------------------------------------------------------------------------- */

template <int G>
static __global__ void apply_fwd(acf_real *z, const acf_real *__restrict__ m, const acf_real *__restrict__ x,
                                 acf_subset u, int per) {
    acf_zero_tail(z, u);
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    acf_real *xs = acf_group_shared<G>(per);
    int ld;
    acf_row_get<G>(xs, x, u, r);
    const acf_real *w = acf_group_stage<G>(xs + u.D, m + r.at, r.n, &ld);
    for (int t = acf_lane<G>(); t < r.n; t += G)
        z[acf_packed_at(u, r, t)] = acf_strided_dot(w + t * ld, 1, xs, 1, 0, r.n);
}

/* dm (n,n) += sign · v xᵀ and, with m, dx += Mᵀ v: one pass, one thread per column. */
template <int G>
static __device__ void add_outer(acf_real *dm, acf_real sign, acf_real *dx, const acf_real *__restrict__ m,
                                 const acf_real *v, const acf_real *x, const acf_subset &u, const acf_batch_row &r) {
    const int n = r.n;
    for (int c = acf_lane<G>(); c < n; c += G) {
        acf_real sum = 0;
        const acf_real xc = sign * x[c];
        for (int t0 = 0; t0 < n; t0 += ACF_ROWS_AT_ONCE) {
            acf_real a[ACF_ROWS_AT_ONCE], d[ACF_ROWS_AT_ONCE];
#pragma unroll
            for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                if (t0 + q < n) {
                    if (m) a[q] = m[(t0 + q) * n + c];
                    if (dm) d[q] = dm[(t0 + q) * n + c];
                }
#pragma unroll
            for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                if (t0 + q < n) {
                    if (m) sum += a[q] * v[t0 + q];
                    if (dm) dm[(t0 + q) * n + c] = d[q] + xc * v[t0 + q];
                }
        }
        if (m) dx[acf_packed_at(u, r, c)] += sum;
    }
}

template <int G>
static __global__ void apply_bwd(acf_real *dm, acf_real *dx, const acf_real *__restrict__ dz,
                                 const acf_real *__restrict__ m, const acf_real *__restrict__ x, acf_subset u,
                                 int per) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    acf_real *xs = acf_group_shared<G>(per), *dzs = xs + u.D;
    acf_row_get<G>(xs, x, u, r);
    acf_row_get<G>(dzs, dz, u, r);
    acf_group_sync<G>();
    add_outer<G>(dm ? dm + r.at : NULL, 1, dx, dx ? m + r.at : NULL, dzs, xs, u, r);
}

static acf_status apply_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = object_of(n)->u;
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 1);
    ACF_GROUP_LAUNCH(apply_fwd, g, acf_cuda_stream(t->dev), n->out[0]->data, n->in[0]->data, n->in[1]->data, *u, g.per);
    return ACF_LAUNCHED("lu_apply");
}

static acf_status apply_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = object_of(n)->u;
    acf_real *dm = acf_grad(t, n->in[0]), *dx = acf_grad(t, n->in[1]);
    ACF_TRY(acf_tape_status(t));
    const acf_groups g = acf_groups_for(u->N, u->D, 0, 2);
    ACF_GROUP_LAUNCH(apply_bwd, g, acf_cuda_stream(t->dev), dm, dx, n->out[0]->grad, n->in[0]->data, n->in[1]->data, *u,
                     g.per);
    return ACF_LAUNCHED("lu_apply");
}

ACF_CUDA_OP(lu_apply, apply_forward, apply_backward);

/* ---- log|det M| ------------------------------------------------------------------------------------------------ */

/* One warp per row: the stride of the pivots is n + 1. */
static __global__ void logdet_fwd(acf_real *ld, const acf_real *__restrict__ f, acf_subset u) {
    const int64_t rank = acf_group<32>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    const double sum = acf_normal_scores_logabs(f + r.at, r.n + 1, r.n);
    if (acf_lane<32>() == 0) ld[r.i] = acf_float_from(sum);
}

/* dm += dld M⁻ᵀ. A block has its inverse in `scratch`, D·D reals each, and loops over rows. */
template <int G>
static __global__ void logdet_bwd(acf_real *dm, const acf_real *__restrict__ dld, const acf_real *f,
                                  const int32_t *__restrict__ order, acf_real *scratch, acf_subset u, int per) {
    const int64_t groups = (int64_t)gridDim.x * (blockDim.x / G);
    for (int64_t rank = acf_group<G>(); rank < u.N; rank += groups) {
        const acf_batch_row r = acf_row_of_rank(u, rank);
        const bool small = G == 32;
        const int n = r.n, lx = small ? n | 1 : n;
        acf_real *shared = acf_group_shared<G>(per),
                 *x = small ? shared + u.D * (u.D | 1) : scratch + blockIdx.x * u.D * u.D;
        int ld;
        const acf_real *w = acf_group_stage<G>(shared, f + r.at, n, &ld);
        acf_group_inverse_t<G>(x, lx, w, ld, n);
        const acf_real g = dld[r.i];
        for (int c = acf_lane<G>(); c < n; c += G) { /* the columns that this thread wrote */
            acf_real *d = dm + r.at + order[r.i * u.D + c];
            for (int k0 = 0; k0 < n; k0 += ACF_ROWS_AT_ONCE) {
                acf_real v[ACF_ROWS_AT_ONCE];
#pragma unroll
                for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                    if (k0 + q < n) v[q] = d[(k0 + q) * n];
#pragma unroll
                for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                    if (k0 + q < n) d[(k0 + q) * n] = v[q] + g * x[(k0 + q) * lx + c];
            }
        }
        acf_group_sync<G>(); /* the next row overwrites what is read here */
    }
}

static acf_status logdet_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = object_of(n)->u;
    logdet_fwd<<<acf_blocks(u->N, ACF_THREADS / 32), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(n->out[0]->data,
                                                                                                n->in[1]->data, *u);
    return ACF_LAUNCHED("lu_logdet");
}

static acf_status logdet_backward(acf_tape *t, acf_node *n) {
    const acf_lu *lu = object_of(n);
    const acf_subset *u = lu->u;
    acf_real *dm = acf_grad(t, n->in[0]);
    if (!dm) return acf_tape_status(t);
    acf_groups g = acf_groups_for(u->N, u->D, 2, 0);
    acf_mark mark = acf_arena_mark(t->mem);
    if (!g.small) g.blocks = (unsigned)acf_min(g.blocks, 2 * acf_cuda_processors(t->dev));
    acf_real *scratch = g.small ? NULL : acf_tape_reals(t, g.blocks * u->D * u->D);
    ACF_TRY(acf_tape_status(t));
    ACF_GROUP_LAUNCH(logdet_bwd, g, acf_cuda_stream(t->dev), dm, n->out[0]->grad, lu->f->data, lu->order, scratch, *u,
                     g.per);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("lu_logdet");
}

ACF_CUDA_OP(lu_logdet, logdet_forward, logdet_backward);

/* ---- solve: M x = z -------------------------------------------------------------------------------------------- */

/* M = L U Pᵀ, so L U w = z and x[order] = w. */
template <int G>
static __global__ void solve_fwd(acf_real *x, const acf_real *f, const int32_t *__restrict__ order,
                                 const acf_real *__restrict__ z, acf_subset u, int per) {
    acf_zero_tail(x, u);
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    acf_real *y = acf_group_shared<G>(per);
    int ld;
    acf_row_get<G>(y, z, u, r);
    const acf_real *w = acf_group_stage<G>(y + u.D, f + r.at, r.n, &ld);
    acf_triangle_solve<G, true, false>(y, w, ld, 1, r.n);
    acf_triangle_solve<G, false, true>(y, w, ld, 1, r.n);
    for (int k = acf_lane<G>(); k < r.n; k += G) x[acf_packed_at(u, r, order[r.i * u.D + k])] = y[k];
}

/* v = M⁻ᵀ dx with Mᵀ = P Uᵀ Lᵀ; dz += v, dM -= v xᵀ. */
template <int G>
static __global__ void solve_bwd(acf_real *dm, acf_real *dz, const acf_real *__restrict__ dx, const acf_real *f,
                                 const int32_t *__restrict__ order, const acf_real *__restrict__ x, acf_subset u,
                                 int per) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    acf_real *v = acf_group_shared<G>(per), *xs = v + u.D;
    int ld;
    for (int k = acf_lane<G>(); k < r.n; k += G) v[k] = dx[acf_packed_at(u, r, order[r.i * u.D + k])];
    acf_row_get<G>(xs, x, u, r);
    const acf_real *w = acf_group_stage<G>(xs + u.D, f + r.at, r.n, &ld);
    acf_triangle_solve<G, true, true>(v, w, 1, ld, r.n);
    acf_triangle_solve<G, false, false>(v, w, 1, ld, r.n);
    for (int t = acf_lane<G>(); dz && t < r.n; t += G) dz[acf_packed_at(u, r, t)] += v[t];
    if (dm) add_outer<G>(dm + r.at, -1, NULL, NULL, v, xs, u, r);
}

static acf_status solve_forward(acf_tape *t, acf_node *n) {
    const acf_lu *lu = object_of(n);
    const acf_subset *u = lu->u;
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 1);
    ACF_GROUP_LAUNCH(solve_fwd, g, acf_cuda_stream(t->dev), n->out[0]->data, lu->f->data, lu->order, n->in[2]->data, *u,
                     g.per);
    return ACF_LAUNCHED("lu_solve");
}

static acf_status solve_backward(acf_tape *t, acf_node *n) {
    const acf_lu *lu = object_of(n);
    const acf_subset *u = lu->u;
    acf_real *dm = acf_grad(t, n->in[0]), *dz = acf_grad(t, n->in[2]);
    ACF_TRY(acf_tape_status(t));
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 2);
    ACF_GROUP_LAUNCH(solve_bwd, g, acf_cuda_stream(t->dev), dm, dz, n->out[0]->grad, lu->f->data, lu->order,
                     n->out[0]->data, *u, g.per);
    return ACF_LAUNCHED("lu_solve");
}

ACF_CUDA_OP(lu_solve, solve_forward, solve_backward);
