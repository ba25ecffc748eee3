/* A diagonal plus low rank per row, on the GPU: see lowrank.h; formulas in docs/math.md, 6.
 *
 * Workload: N = 256 to 4096 rows, |u| in the hundreds, r = 1 to 32. One warp per row, lanes along the modelled
 * columns. Its vectors and the inner matrix are in shared memory, or for very wide tables and ranks in global
 * memory. */
#include "ops/dense_lu.cuh"

extern "C" {
#include "ops/lowrank.h"
}

/* Row i of the inputs and its scratch: three vectors of n, four of r, two matrices (r,ld). A (D,r), B (r,D), w (D)
 * are indexed by table column, everything else by position in the row's subset. */
typedef struct work {
    acf_batch_row row;
    const acf_real *w, *a, *b, *k;
    const int32_t *cols, *order;
    acf_real *x, *y, *v, *s, *e, *c, *d, *inner, *inverse;
    int32_t *places; /* (r) */
    int n, r, D, ld;
} work;

static int64_t work_size(int64_t r, int64_t D) { return 3 * D + 5 * r + 2 * r * (r | 1); }

/* The warp's row; false after the last. `global` NULL: scratch is in shared memory. */
static __device__ bool begin(work *p, const acf_lowrank_in &in, const acf_subset &u, acf_real *global, int per) {
    const int64_t rank = acf_group<32>(), r = in.r, D = u.D;
    if (rank >= u.N) return false;
    const acf_batch_row row = acf_row_of_rank(u, rank);
    acf_real *at = global ? global + row.i * per : acf_group_shared<32>(per);
    p->row = row;
    p->w = in.w + row.i * in.w_stride, p->a = in.a + row.i * D * r, p->b = in.b + row.i * D * r;
    p->k = in.k ? in.k + row.i * r * r : NULL, p->order = in.order ? in.order + row.i * r : NULL;
    p->cols = u.cols + row.i * D;
    p->n = row.n, p->r = (int)r, p->D = (int)D, p->ld = (int)(r | 1);
    p->x = at, p->y = p->x + D, p->v = p->y + D, p->s = p->v + D, p->e = p->s + r, p->c = p->e + r, p->d = p->c + r;
    p->places = (int32_t *)(p->d + r), p->inner = p->d + 2 * r, p->inverse = p->inner + r * p->ld;
    return true;
}

#define ACF_LANES_T(t) for (int t = acf_lane<32>(); t < p.n; t += 32)

/* Reads A or B at position t and rank q: base[q·sq + cols[t]·sc]. */
typedef struct factor {
    const acf_real *base;
    int sq, sc;
} factor;
static __device__ inline factor a_of(const work &p) { return {p.a, 1, p.r}; }
static __device__ inline factor b_of(const work &p) { return {p.b, p.D, 1}; }

/* s (r) = the sum over positions t of f(q,t) x[t]. x must be synced; s is not synced yet. */
static __device__ void project(acf_real *s, const work &p, factor f, const acf_real *x) {
    for (int q = 0; q < p.r; q++) {
        acf_real sum = 0;
        ACF_LANES_T(t) sum += f.base[q * f.sq + p.cols[t] * f.sc] * x[t];
        sum = acf_warp_sum(sum);
        if (acf_lane<32>() == 0) s[q] = sum;
    }
}

/* The sum over q of f(q,t) e[q]. */
static __device__ acf_real expand(const work &p, factor f, const acf_real *e, int t) {
    return acf_strided_dot(f.base + p.cols[t] * f.sc, f.sq, e, 1, 0, p.r);
}

/* The gradient of W is sign · v xᵀ. With s = B_u x and e = A_uᵀ v it is added to the three parts without being
 * formed. */
static __device__ void add_outer(const acf_lowrank_grad &g, const work &p, acf_real sign, const acf_real *v,
                                 const acf_real *x, const acf_real *s, const acf_real *e) {
    const int64_t i = p.row.i;
    ACF_LANES_T(t) {
        const int c = p.cols[t];
        if (g.dw) g.dw[i * p.D + c] += sign * v[t] * x[t];
        for (int q = 0; g.da && q < p.r; q++) g.da[(i * p.D + c) * p.r + q] += sign * v[t] * s[q];
        for (int q = 0; g.db && q < p.r; q++) g.db[(i * p.r + q) * p.D + c] += sign * e[q] * x[t];
    }
}

/* ---- factors --------------------------------------------------------------------------------------------------- */

/* The first position whose w is too small to divide by; -1 if there is none. */
static __device__ int bad_diagonal(const work &p) {
    acf_real top = 0;
    unsigned first = ~0u;
    ACF_LANES_T(t) top = fmaxf(top, fabsf(p.w[p.cols[t]]));
    const acf_real largest = __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(top)));
    ACF_LANES_T(t)
    if (acf_is_singular(p.w[p.cols[t]], p.n, largest)) first = min(first, (unsigned)t);
    return (int)__reduce_min_sync(0xffffffffu, first);
}

/* A pivot of K belongs to no single column; this is the position with the largest effect on that term of the
 * product. */
static __device__ int place_of_term(const work &p, int q) {
    int at = 0;
    for (int t = 1; t < p.n; t++)
        if (fabsf(p.a[p.cols[t] * p.r + q]) > fabsf(p.a[p.cols[at] * p.r + q])) at = t;
    return at;
}

/* k (N,r,r) = factors of I + B_u diag(1/w_u) A_u. */
static __global__ void factor_fwd(acf_real *k, int32_t *order, acf_lowrank_in in, acf_subset u, acf_real *global,
                                  int per, acf_fault *fault, const char *op) {
    work p;
    if (!begin(&p, in, u, global, per)) return;
    const int lane = acf_lane<32>(), r = p.r;
    for (int e = lane; e < r * r; e += 32) {
        const int q = e / r, o = e % r;
        acf_real sum = q == o;
        for (int t = 0; t < p.n; t++) {
            const int c = p.cols[t];
            sum += p.b[q * p.D + c] / p.w[c] * p.a[c * r + o];
        }
        p.inner[q * p.ld + o] = sum;
    }
    __syncwarp();
    const acf_real largest = acf_group_largest<32>(p.inner, p.ld, r);
    acf_group_lu<32>(p.inner, p.ld, p.places, r);
    const int term = acf_group_singular<32>(p.inner, p.ld + 1, r, largest);
    int place = bad_diagonal(p);
    if (lane == 0 && p.n > 0 && (place >= 0 || term >= 0)) {
        if (place < 0) place = place_of_term(p, term);
        acf_report(fault, op, ACF_FAULT_SINGULAR, p.row.i, p.cols[place], 0);
    }
    acf_group_copy<32>(k + p.row.i * r * r, r, p.inner, p.ld, r);
    for (int q = lane; q < r; q += 32) order[p.row.i * r + q] = p.places[q];
}

/* ---- apply: z = w x + A (B x) ---------------------------------------------------------------------------------- */

static __global__ void apply_fwd(acf_real *z, acf_lowrank_in in, const acf_real *__restrict__ x, acf_subset u,
                                 acf_real *global, int per) {
    work p;
    acf_zero_tail(z, u);
    if (!begin(&p, in, u, global, per)) return;
    acf_row_get<32>(p.x, x, u, p.row);
    __syncwarp();
    project(p.s, p, b_of(p), p.x);
    __syncwarp();
    ACF_LANES_T(t) z[acf_packed_at(u, p.row, t)] = p.w[p.cols[t]] * p.x[t] + expand(p, a_of(p), p.s, t);
}

/* dx = w dz + Bᵀ (Aᵀ dz) */
static __global__ void apply_bwd(acf_lowrank_grad g, acf_real *dx, const acf_real *__restrict__ dz, acf_lowrank_in in,
                                 const acf_real *__restrict__ x, acf_subset u, acf_real *global, int per) {
    work p;
    if (!begin(&p, in, u, global, per)) return;
    acf_row_get<32>(p.x, x, u, p.row);
    acf_row_get<32>(p.v, dz, u, p.row);
    __syncwarp();
    project(p.s, p, b_of(p), p.x);
    project(p.e, p, a_of(p), p.v);
    __syncwarp();
    add_outer(g, p, 1, p.v, p.x, p.s, p.e);
    if (dx) ACF_LANES_T(t) dx[acf_packed_at(u, p.row, t)] += p.w[p.cols[t]] * p.v[t] + expand(p, b_of(p), p.e, t);
}

/* ---- log|det W| = Σ log|w| + log|det K| ------------------------------------------------------------------------ */

static __global__ void logdet_fwd(acf_real *ld, acf_lowrank_in in, acf_subset u, acf_real *global, int per) {
    work p;
    if (!begin(&p, in, u, global, per)) return;
    double sum = 0;
    ACF_LANES_T(t) sum += log(fabs((double)p.w[p.cols[t]]));
    sum = acf_warp_sum(sum) + acf_normal_scores_logabs(p.k, p.r + 1, p.r);
    if (acf_lane<32>() == 0) ld[p.row.i] = acf_float_from(sum);
}

/* With R = K⁻¹ B_u and S = A_u K⁻¹:  dA = Rᵀ / w,  dB = Sᵀ / w,  dw = (1 - A·R / w) / w, each times the incoming
 * gradient, which `inner` carries: it holds g · K⁻ᵀ. */
static __global__ void logdet_bwd(acf_lowrank_grad g, const acf_real *__restrict__ dld, acf_lowrank_in in, acf_subset u,
                                  acf_real *global, int per) {
    work p;
    if (!begin(&p, in, u, global, per)) return;
    const int64_t i = p.row.i;
    const int r = p.r;
    const acf_real grad = dld[i];
    acf_group_inverse_t<32>(p.inverse, p.ld, p.k, r, r);
    for (int c = acf_lane<32>(); c < r; c += 32) /* the columns that this lane wrote */
        for (int q = 0; q < r; q++) p.inner[q * p.ld + p.order[c]] = grad * p.inverse[q * p.ld + c];
    __syncwarp();
    ACF_LANES_T(t) {
        const int c = p.cols[t];
        const acf_real w = p.w[c], *a = p.a + c * r;
        acf_real along = 0; /* A · R */
        for (int o = 0; o < r; o++) {
            const acf_real rs = acf_strided_dot(p.b + c, p.D, p.inner + o, p.ld, 0, r) / w;
            along += a[o] * rs;
            if (g.da) g.da[(i * p.D + c) * r + o] += rs;
        }
        if (g.dw) g.dw[i * p.D + c] += (grad - along) / w;
        for (int q = 0; g.db && q < r; q++)
            g.db[(i * r + q) * p.D + c] += acf_strided_dot(a, 1, p.inner + q * p.ld, 1, 0, r) / w;
    }
}

/* ---- solve: x = (z - A c) / w,  K c = B (z / w) ---------------------------------------------------------------- */

static __global__ void solve_fwd(acf_real *x, acf_lowrank_in in, const acf_real *__restrict__ z, acf_subset u,
                                 acf_real *global, int per) {
    work p;
    acf_zero_tail(x, u);
    if (!begin(&p, in, u, global, per)) return;
    acf_row_get<32>(p.x, z, u, p.row);
    ACF_LANES_T(t) p.y[t] = p.x[t] / p.w[p.cols[t]]; /* the values that this lane wrote */
    __syncwarp();
    project(p.s, p, b_of(p), p.y);
    acf_triangle_solve<32, true, false>(p.s, p.k, p.r, 1, p.r);
    acf_triangle_solve<32, false, true>(p.s, p.k, p.r, 1, p.r);
    for (int q = acf_lane<32>(); q < p.r; q += 32) p.c[p.order[q]] = p.s[q];
    __syncwarp();
    ACF_LANES_T(t) x[acf_packed_at(u, p.row, t)] = (p.x[t] - expand(p, a_of(p), p.c, t)) / p.w[p.cols[t]];
}

/* v = W⁻ᵀ dx = (dx - Bᵀ e) / w with Kᵀ e = Aᵀ (dx / w). That e equals Aᵀ v, the argument of add_outer. */
static __global__ void solve_bwd(acf_lowrank_grad g, acf_real *dz, const acf_real *__restrict__ dx, acf_lowrank_in in,
                                 const acf_real *__restrict__ x, acf_subset u, acf_real *global, int per) {
    work p;
    if (!begin(&p, in, u, global, per)) return;
    acf_row_get<32>(p.x, x, u, p.row);
    acf_row_get<32>(p.v, dx, u, p.row);
    ACF_LANES_T(t) p.y[t] = p.v[t] / p.w[p.cols[t]];
    __syncwarp();
    project(p.s, p, a_of(p), p.y);
    project(p.c, p, b_of(p), p.x);
    __syncwarp();
    for (int q = acf_lane<32>(); q < p.r; q += 32) p.e[q] = p.s[p.order[q]];
    acf_triangle_solve<32, true, true>(p.e, p.k, 1, p.r, p.r);
    acf_triangle_solve<32, false, false>(p.e, p.k, 1, p.r, p.r);
    ACF_LANES_T(t) {
        p.v[t] = (p.v[t] - expand(p, b_of(p), p.e, t)) / p.w[p.cols[t]];
        if (dz) dz[acf_packed_at(u, p.row, t)] += p.v[t];
    }
    add_outer(g, p, -1, p.v, p.x, p.c, p.e); /* a lane reads only the parts of v and x that it wrote */
}

/* ---- nodes ----------------------------------------------------------------------------------------------------- */

/* The launch configuration and the scratch; `global` is on the tape until the caller's mark. */
typedef struct plan {
    unsigned blocks, threads;
    size_t bytes;
    acf_real *global;
    int per;
} plan;

static plan plan_for(acf_tape *t, const acf_lowrank_in *in) {
    const int64_t per = work_size(in->r, in->u->D), bytes = per * (int64_t)sizeof(acf_real), N = in->u->N;
    const int64_t warps = acf_max(acf_min(ACF_SHARED_BYTES / bytes, 4), 1);
    plan p = {acf_blocks(N, (int)warps), (unsigned)(32 * warps), (size_t)(warps * bytes), NULL, (int)per};
    if (bytes > ACF_SHARED_BYTES) p.global = acf_tape_reals(t, N * per), p.bytes = 0;
    return p;
}

#define LAUNCH(kernel, p, ...) kernel<<<(p).blocks, (p).threads, (p).bytes, acf_cuda_stream(t->dev)>>>(__VA_ARGS__)

static acf_lowrank *object_of(const acf_node *n) { return ((const acf_lowrank_attrs *)n->attr)->f; }

static acf_status factor_forward(acf_tape *t, acf_node *n) {
    const acf_lowrank *f = object_of(n);
    acf_mark mark = acf_arena_mark(t->mem);
    const plan p = plan_for(t, &f->in);
    ACF_TRY(acf_tape_status(t));
    LAUNCH(factor_fwd, p, n->out[0]->data, f->order, f->in, *f->in.u, p.global, p.per, acf_cuda_fault(t->dev),
           n->op->name);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("lowrank_factor");
}

typedef enum part { APPLY, LOGDET, SOLVE } part;

static acf_status forward(acf_tape *t, acf_node *n, part which) {
    const acf_lowrank_in *in = &object_of(n)->in;
    acf_real *y = n->out[0]->data;
    acf_mark mark = acf_arena_mark(t->mem);
    const plan p = plan_for(t, in);
    ACF_TRY(acf_tape_status(t));
    if (which == APPLY) LAUNCH(apply_fwd, p, y, *in, n->in[3]->data, *in->u, p.global, p.per);
    if (which == LOGDET) LAUNCH(logdet_fwd, p, y, *in, *in->u, p.global, p.per);
    if (which == SOLVE) LAUNCH(solve_fwd, p, y, *in, n->in[3]->data, *in->u, p.global, p.per);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED(n->op->name);
}

/* For a diagonal shared by all rows, (N,D) contributions are computed first and then summed over the rows in order. */
static acf_status backward(acf_tape *t, acf_node *n, part which) {
    const acf_lowrank_in *in = &object_of(n)->in;
    const int64_t N = in->u->N, D = in->u->D;
    const acf_real *dy = n->out[0]->grad;
    acf_real *dw = acf_grad(t, n->in[0]), *dv = acf_grad(t, n->in[3]);
    acf_lowrank_grad g = {dw, acf_grad(t, n->in[1]), acf_grad(t, n->in[2])};
    acf_mark mark = acf_arena_mark(t->mem);
    const plan p = plan_for(t, in);
    if (dw && !in->w_stride) g.dw = acf_tape_reals(t, N * D);
    ACF_TRY(acf_tape_status(t));
    if (g.dw != dw) ACF_CUDA(cudaMemsetAsync(g.dw, 0, (size_t)(N * D) * sizeof *g.dw, acf_cuda_stream(t->dev)));
    if (which == APPLY) LAUNCH(apply_bwd, p, g, dv, dy, *in, n->in[3]->data, *in->u, p.global, p.per);
    if (which == LOGDET) LAUNCH(logdet_bwd, p, g, dy, *in, *in->u, p.global, p.per);
    if (which == SOLVE) LAUNCH(solve_bwd, p, g, dv, dy, *in, n->out[0]->data, *in->u, p.global, p.per);
    acf_status status = ACF_LAUNCHED(n->op->name);
    if (!status && g.dw != dw) status = acf_cuda_colsum(t->dev, dw, g.dw, NULL, N, D, D);
    acf_arena_release(t->mem, mark);
    return status;
}

static acf_status apply_forward(acf_tape *t, acf_node *n) { return forward(t, n, APPLY); }
static acf_status apply_backward(acf_tape *t, acf_node *n) { return backward(t, n, APPLY); }
static acf_status logdet_forward(acf_tape *t, acf_node *n) { return forward(t, n, LOGDET); }
static acf_status logdet_backward(acf_tape *t, acf_node *n) { return backward(t, n, LOGDET); }
static acf_status solve_forward(acf_tape *t, acf_node *n) { return forward(t, n, SOLVE); }
static acf_status solve_backward(acf_tape *t, acf_node *n) { return backward(t, n, SOLVE); }

ACF_CUDA_OP(lowrank_factor, factor_forward, NULL);
ACF_CUDA_OP(lowrank_apply, apply_forward, apply_backward);
ACF_CUDA_OP(lowrank_logdet, logdet_forward, logdet_backward);
ACF_CUDA_OP(lowrank_solve, solve_forward, solve_backward);
