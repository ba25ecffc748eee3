/* A matrix per row, read as packed L and U, on the GPU: see lu_packed.h; formulas in docs/math.md, 6. As lu.cu
 * without its n³. */
#include "ops/dense_lu.cuh"

extern "C" {
#include "ops/lu_packed.h"
}

static const acf_subset *subset_of(const acf_node *n) { return ((const acf_plu_attrs *)n->attr)->u; }

/* Records a fault at the first diagonal element of w (n,ld) that is too small to divide by. */
template <int G>
static __device__ void check_diagonal(const acf_real *w, int ld, const acf_subset &u, const acf_batch_row &r,
                                      acf_fault *fault, const char *op) {
    const int bad = acf_group_singular<G>(w, ld + 1, r.n, acf_group_largest<G>(w, ld, r.n));
    if (bad >= 0 && acf_lane<G>() == 0) acf_report(fault, op, ACF_FAULT_SINGULAR, r.i, u.cols[r.i * u.D + bad], 0);
}

/* y (n) = U x; one thread per row. */
template <int G> static __device__ void upper_times(acf_real *y, const acf_real *w, int ld, const acf_real *x, int n) {
    for (int t = acf_lane<G>(); t < n; t += G) y[t] = acf_strided_dot(w + t * ld, 1, x, 1, t, n);
}

/* dm (n,n) += sign · (strictly lower part of a yᵀ, upper part of b xᵀ): the gradients of L and U share the matrix. */
template <int G>
static __device__ void add_outer(acf_real *dm, acf_real sign, const acf_real *a, const acf_real *y, const acf_real *b,
                                 const acf_real *x, int n) {
    for (int c = acf_lane<G>(); c < n; c += G)
        for (int t0 = 0; t0 < n; t0 += ACF_ROWS_AT_ONCE) {
            acf_real d[ACF_ROWS_AT_ONCE];
#pragma unroll
            for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                if (t0 + q < n) d[q] = dm[(t0 + q) * n + c];
#pragma unroll
            for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                if (const int t = t0 + q; t < n) dm[t * n + c] = d[q] + sign * (c < t ? a[t] * y[c] : b[t] * x[c]);
        }
}

/* ---- apply: z = L U x ------------------------------------------------------------------------------------------ */

template <int G>
static __global__ void apply_fwd(acf_real *z, const acf_real *__restrict__ m, const acf_real *__restrict__ x,
                                 acf_subset u, int per) {
    acf_zero_tail(z, u);
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    acf_real *xs = acf_group_shared<G>(per), *y = xs + u.D;
    int ld;
    acf_row_get<G>(xs, x, u, r);
    const acf_real *w = acf_group_stage<G>(y + u.D, m + r.at, r.n, &ld);
    upper_times<G>(y, w, ld, xs, r.n);
    acf_group_sync<G>();
    for (int t = acf_lane<G>(); t < r.n; t += G)
        z[acf_packed_at(u, r, t)] = y[t] + acf_strided_dot(w + t * ld, 1, y, 1, 0, t);
}

/* dy = Lᵀ dz;  dL += dz yᵀ with y = U x;  dU += dy xᵀ;  dx += Uᵀ dy. */
template <int G>
static __global__ void apply_bwd(acf_real *dm, acf_real *dx, const acf_real *__restrict__ dz,
                                 const acf_real *__restrict__ m, const acf_real *__restrict__ x, acf_subset u,
                                 int per) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    const int n = r.n;
    acf_real *xs = acf_group_shared<G>(per), *y = xs + u.D, *dzs = y + u.D, *dy = dzs + u.D;
    int ld;
    acf_row_get<G>(xs, x, u, r);
    acf_row_get<G>(dzs, dz, u, r);
    const acf_real *w = acf_group_stage<G>(dy + u.D, m + r.at, n, &ld);
    for (int c = acf_lane<G>(); c < n; c += G) dy[c] = dzs[c] + acf_strided_dot(w + c, ld, dzs, 1, c + 1, n);
    if (dm) upper_times<G>(y, w, ld, xs, n);
    acf_group_sync<G>();
    if (dm) add_outer<G>(dm + r.at, 1, dzs, y, dy, xs, n);
    for (int c = acf_lane<G>(); dx && c < n; c += G)
        dx[acf_packed_at(u, r, c)] += acf_strided_dot(w + c, ld, dy, 1, 0, c + 1);
}

static acf_status apply_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = subset_of(n);
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 2);
    ACF_GROUP_LAUNCH(apply_fwd, g, acf_cuda_stream(t->dev), n->out[0]->data, n->in[0]->data, n->in[1]->data, *u, g.per);
    return ACF_LAUNCHED("plu_apply");
}

static acf_status apply_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = subset_of(n);
    acf_real *dm = acf_grad(t, n->in[0]), *dx = acf_grad(t, n->in[1]);
    ACF_TRY(acf_tape_status(t));
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 4);
    ACF_GROUP_LAUNCH(apply_bwd, g, acf_cuda_stream(t->dev), dm, dx, n->out[0]->grad, n->in[0]->data, n->in[1]->data, *u,
                     g.per);
    return ACF_LAUNCHED("plu_apply");
}

ACF_CUDA_OP(plu_apply, apply_forward, apply_backward);

/* ---- log|det| -------------------------------------------------------------------------------------------------- */

static __global__ void logdet_fwd(acf_real *ld, const acf_real *__restrict__ m, acf_subset u, acf_fault *fault,
                                  const char *op) {
    const int64_t rank = acf_group<32>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    check_diagonal<32>(m + r.at, r.n, u, r, fault, op);
    const double sum = acf_normal_scores_logabs(m + r.at, r.n + 1, r.n);
    if (acf_lane<32>() == 0) ld[r.i] = acf_float_from(sum);
}

static __global__ void logdet_bwd(acf_real *dm, const acf_real *__restrict__ dld, const acf_real *__restrict__ m,
                                  acf_subset u) {
    const int64_t rank = acf_group<32>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    for (int t = acf_lane<32>(); t < r.n; t += 32) dm[r.at + t * (r.n + 1)] += dld[r.i] / m[r.at + t * (r.n + 1)];
}

static acf_status logdet_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = subset_of(n);
    logdet_fwd<<<acf_blocks(u->N, ACF_THREADS / 32), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, n->in[0]->data, *u, acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("plu_logdet");
}

static acf_status logdet_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = subset_of(n);
    acf_real *dm = acf_grad(t, n->in[0]);
    if (!dm) return acf_tape_status(t);
    logdet_bwd<<<acf_blocks(u->N, ACF_THREADS / 32), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(dm, n->out[0]->grad,
                                                                                                n->in[0]->data, *u);
    return ACF_LAUNCHED("plu_logdet");
}

ACF_CUDA_OP(plu_logdet, logdet_forward, logdet_backward);

/* ---- solve: L U x = z ------------------------------------------------------------------------------------------ */

template <int G>
static __global__ void solve_fwd(acf_real *x, const acf_real *__restrict__ m, const acf_real *__restrict__ z,
                                 acf_subset u, int per, acf_fault *fault, const char *op) {
    acf_zero_tail(x, u);
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    acf_real *y = acf_group_shared<G>(per);
    int ld;
    acf_row_get<G>(y, z, u, r);
    const acf_real *w = acf_group_stage<G>(y + u.D, m + r.at, r.n, &ld);
    check_diagonal<G>(w, ld, u, r, fault, op);
    acf_triangle_solve<G, true, true>(y, w, ld, 1, r.n);
    acf_triangle_solve<G, false, false>(y, w, ld, 1, r.n);
    for (int t = acf_lane<G>(); t < r.n; t += G) x[acf_packed_at(u, r, t)] = y[t];
}

/* dy = U⁻ᵀ dx, dz += L⁻ᵀ dy;  dL -= dz yᵀ with y = U x, dU -= dy xᵀ. */
template <int G>
static __global__ void solve_bwd(acf_real *dm, acf_real *dz, const acf_real *__restrict__ dx,
                                 const acf_real *__restrict__ m, const acf_real *__restrict__ x, acf_subset u,
                                 int per) {
    const int64_t rank = acf_group<G>();
    if (rank >= u.N) return;
    const acf_batch_row r = acf_row_of_rank(u, rank);
    const int n = r.n;
    acf_real *xs = acf_group_shared<G>(per), *y = xs + u.D, *dzs = y + u.D, *dy = dzs + u.D;
    int ld;
    acf_row_get<G>(xs, x, u, r);
    acf_row_get<G>(dy, dx, u, r);
    const acf_real *w = acf_group_stage<G>(dy + u.D, m + r.at, n, &ld);
    acf_triangle_solve<G, true, false>(dy, w, 1, ld, n);
    for (int t = acf_lane<G>(); t < n; t += G) dzs[t] = dy[t];
    acf_triangle_solve<G, false, true>(dzs, w, 1, ld, n);
    for (int t = acf_lane<G>(); dz && t < n; t += G) dz[acf_packed_at(u, r, t)] += dzs[t];
    if (!dm) return;
    upper_times<G>(y, w, ld, xs, n);
    acf_group_sync<G>();
    add_outer<G>(dm + r.at, -1, dzs, y, dy, xs, n);
}

static acf_status solve_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = subset_of(n);
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 1);
    ACF_GROUP_LAUNCH(solve_fwd, g, acf_cuda_stream(t->dev), n->out[0]->data, n->in[0]->data, n->in[1]->data, *u, g.per,
                     acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("plu_solve");
}

static acf_status solve_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = subset_of(n);
    acf_real *dm = acf_grad(t, n->in[0]), *dz = acf_grad(t, n->in[1]);
    ACF_TRY(acf_tape_status(t));
    const acf_groups g = acf_groups_for(u->N, u->D, 1, 4);
    ACF_GROUP_LAUNCH(solve_bwd, g, acf_cuda_stream(t->dev), dm, dz, n->out[0]->grad, n->in[0]->data, n->out[0]->data,
                     *u, g.per);
    return ACF_LAUNCHED("plu_solve");
}

ACF_CUDA_OP(plu_solve, solve_forward, solve_backward);
