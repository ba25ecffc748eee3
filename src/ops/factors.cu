/* Factor analysis for wide tables on the GPU: see factors.h; formulas in docs/math.md. In double, as on the CPU.
 *
 * Workload: 5e2 to 1e4 rows of 57 to some thousand columns, 1 to 64 factors. A block is one warp with one row, C in
 * shared memory (32 KiB for 64 factors). A lane owns columns lane, lane + 32 of C and the same elements of f: only
 * that lane reads and writes them, so that only l and g are exchanged. A row's columns depend on each other. The
 * latency is hidden by other rows: six or seven warps on a multiprocessor. */
#include "ops/packing.cuh"

extern "C" {
#include "ops/factors.h"
}

/* ---- one row --------------------------------------------------------------------------------------------------- */

/* As in factors.c. */
typedef struct posterior {
    int r, place;
    double *c, *f, *l, *g, *ahead; /* (r,r) (r) each */
    double mean, s;
} posterior;

#define LANES(k, n) for (int k = (int)threadIdx.x; k < (n); k += WARP)

extern __shared__ double shared_memory[];

static __device__ posterior lay_out(const acf_factors_in &in) {
    posterior s = {};
    for (int k = 0; k < (int)in.R; k++)
        if (in.weight[k] > 0) s.r = k + 1;
    s.c = shared_memory, s.f = s.c + s.r * s.r, s.l = s.f + s.r, s.g = s.l + s.r, s.ahead = s.g + s.r;
    return s;
}

/* Moves to column j: mean, s and g = C l / s, then C; all lanes together. False: s² is not positive. The first
 * barrier orders earlier writes of l and g. */
static __device__ bool advance_to(posterior *s, const acf_factors_in &in, int64_t j) {
    const int r = s->r;
    double mean = 0, variance = 0;
    LANES(k, r) s->l[k] = (double)in.load[j * in.R + k];
    __syncwarp();
    LANES(k, r) {
        double sum = 0;
        for (int i = 0; i < r; i++) sum += s->c[i * r + k] * s->l[i];
        s->g[k] = sum;
        mean += s->l[k] * s->f[k], variance += s->l[k] * sum;
    }
    s->mean = (double)in.mean[j] + acf_warp_sum(mean);
    variance = (double)in.var[j] + acf_warp_sum(variance);
    if (!(variance > ACF_MOG_LEAST_PIVOT)) return false; /* the same in every lane */
    s->s = sqrt(variance);
    LANES(k, r) s->g[k] /= s->s;
    __syncwarp();
    for (int i = 0; i < r; i++) {
        const double by = s->g[i];
        LANES(k, r) s->c[i * r + k] -= by * s->g[k];
    }
    s->place++;
    return true;
}

static __device__ void update(const posterior &s, double z) { LANES(k, s.r) s.f[k] += z * s.g[k]; }

static __device__ bool is_known(const acf_mog_classes &c, int64_t i, int64_t p) {
    return c.known[i * c.D + c.column[p]];
}
static __device__ double indicator(const acf_mog_classes &c, int64_t i, int64_t p) {
    return c.code[i * c.D + c.column[p]] == c.value[p];
}

/* Processes row i's given columns. Returns the position of one whose variance is not positive, or -1. */
static __device__ int condition_on_given(posterior *s, const acf_factors_in &in, int64_t i) {
    const int r = s->r;
    s->place = 0;
    LANES(k, r) {
        s->f[k] = 0;
        for (int q = 0; q < r; q++) s->c[q * r + k] = q == k && in.weight[k] > 0 ? (double)in.weight[k] : 0;
    }
    for (int64_t j = 0; j < in.D; j++) {
        if (!in.b[i * in.D + j]) continue;
        if (!advance_to(s, in, j)) return s->place;
        update(*s, ((double)in.x[i * in.D + j] - s->mean) / s->s);
    }
    for (int64_t p = 0; p < in.classes.n; p++) {
        if (!is_known(in.classes, i, p)) continue;
        if (!advance_to(s, in, in.D + p)) return s->place;
        update(*s, (indicator(in.classes, i, p) - s->mean) / s->s);
    }
    return -1;
}

/* Records the row's fault, once. */
static __device__ void refuse(acf_fault *fault, const char *op, int64_t i, int place) {
    if (threadIdx.x == 0) acf_report(fault, op, ACF_FAULT_COVARIANCE, i, place, 0);
}

/* ---- kernels --------------------------------------------------------------------------------------------------- */

static __global__ void __launch_bounds__(WARP)
    normal_fwd(acf_real *z, acf_real *logdet, acf_factors_in in, packing u, acf_fault *fault, const char *op) {
    posterior s = lay_out(in);
    zero_tail(z, u, 1);
    for (int64_t k = blockIdx.x; k < u.N; k += gridDim.x) {
        const int64_t i = u.row[k];
        const int size = u.size[i];
        double sum = 0;
        int broken = size ? condition_on_given(&s, in, i) : -1;
        for (int t = 0; t < size; t++) {
            const int64_t j = u.cols[i * u.D + t];
            double e = 0;
            if (broken < 0 && !advance_to(&s, in, j)) broken = s.place;
            if (broken < 0) {
                e = ((double)in.x[i * in.D + j] - s.mean) / s.s;
                sum -= log(s.s);
                update(s, e);
            }
            if (threadIdx.x == 0) z[u.first[t] + k] = acf_real_from_cuda(e);
        }
        if (broken >= 0) refuse(fault, op, i, broken);
        if (threadIdx.x == 0) logdet[i] = acf_real_from_cuda(sum);
    }
}

/* Several sets: a row with one modelled column computes it once for all of them; others start again for each set. */
static __global__ void __launch_bounds__(WARP)
    value_fwd(acf_real *x, const acf_real *z, int64_t sets, acf_factors_in in, packing u, acf_fault *fault,
              const char *op) {
    posterior s = lay_out(in);
    zero_tail(x, u, sets);
    for (int64_t k = blockIdx.x; k < u.N; k += gridDim.x) {
        const int64_t i = u.row[k];
        const int size = u.size[i];
        int broken = -1;
        for (int64_t q = 0; size && q < sets; q++) {
            const bool anew = q == 0 || size > 1;
            if (anew && broken < 0) broken = condition_on_given(&s, in, i);
            for (int t = 0; t < size; t++) {
                const int64_t at = q * u.T + u.first[t] + k;
                double value = 0;
                if (anew && broken < 0 && !advance_to(&s, in, u.cols[i * u.D + t])) broken = s.place;
                if (broken < 0) {
                    value = s.mean + s.s * (double)z[at];
                    if (size > 1) update(s, (double)z[at]);
                }
                if (threadIdx.x == 0) x[at] = acf_real_from_cuda(value);
            }
        }
        if (broken >= 0) refuse(fault, op, i, broken);
    }
}

static __global__ void __launch_bounds__(WARP)
    value_bwd(acf_real *dz, const acf_real *dx, acf_factors_in in, packing u) {
    posterior s = lay_out(in);
    for (int64_t k = blockIdx.x; k < u.N; k += gridDim.x) {
        const int64_t i = u.row[k];
        const int size = u.size[i];
        if (size == 0 || condition_on_given(&s, in, i) >= 0)
            continue; /* the forward recorded rows without a variance */
        LANES(q, s.r) {
            double sum = 0;
            for (int t = 0; t < size; t++)
                sum += (double)dx[u.first[t] + k] * (double)in.load[u.cols[i * u.D + t] * in.R + q];
            s.ahead[q] = sum;
        }
        for (int t = 0; t < size; t++) {
            const int64_t at = u.first[t] + k;
            const double d = (double)dx[at];
            double sum = 0;
            if (!advance_to(&s, in, u.cols[i * u.D + t])) break;
            LANES(q, s.r) {
                s.ahead[q] -= d * s.l[q];
                sum += s.g[q] * s.ahead[q];
            }
            sum = acf_warp_sum(sum);
            if (threadIdx.x == 0) dz[at] = acf_real_from_cuda((double)dz[at] + s.s * d + sum);
        }
    }
}

/* size (N): rows with size 0 are set to zeros. */
static __global__ void __launch_bounds__(WARP)
    expect_fwd(acf_real *out, acf_factors_in in, const int32_t *size, int64_t N, acf_fault *fault, const char *op) {
    posterior s = lay_out(in);
    for (int64_t i = blockIdx.x; i < N; i += gridDim.x) {
        if (size[i] == 0) {
            for (int64_t j = threadIdx.x; j < in.W; j += WARP) out[i * in.W + j] = 0;
            continue;
        }
        const int broken = condition_on_given(&s, in, i);
        if (broken >= 0) refuse(fault, op, i, broken);
        __syncwarp(); /* all lanes have read f */
        for (int64_t j = threadIdx.x; j < in.W; j += WARP) {
            double value = (double)in.mean[j];
            for (int k = 0; k < s.r; k++) value += (double)in.load[j * in.R + k] * s.f[k];
            if (j < in.D)
                value = in.b[i * in.D + j] ? (double)in.x[i * in.D + j] : value;
            else if (is_known(in.classes, i, j - in.D))
                value = indicator(in.classes, i, j - in.D);
            out[i * in.W + j] = broken < 0 ? acf_real_from_cuda(value) : 0;
        }
        __syncwarp();
    }
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

static acf_factors_in reads(const acf_node *n) {
    const acf_mog_attrs *a = (const acf_mog_attrs *)n->attr;
    acf_tensor *const *in = n->in;
    return {in[ACF_FACTORS_WEIGHT]->dim[0],
            in[ACF_FACTORS_X]->dim[1],
            in[ACF_FACTORS_MEAN]->dim[0],
            in[ACF_FACTORS_WEIGHT]->data,
            in[ACF_FACTORS_MEAN]->data,
            in[ACF_FACTORS_LOAD]->data,
            in[ACF_FACTORS_VAR]->data,
            in[ACF_FACTORS_X]->data,
            a->b,
            a->classes};
}

static const acf_subset *subset_of(const acf_node *n) { return ((const acf_mog_attrs *)n->attr)->u; }
static unsigned blocks_for(int64_t N) { return (unsigned)acf_max(acf_min(N, INT32_MAX), 1); }
static size_t shared_bytes(const acf_factors_in &in) {
    return (size_t)(in.R * (in.R + 4)) * sizeof(double);
} /* 34 KiB at most */

static acf_status normal_forward(acf_tape *t, acf_node *n) {
    const acf_factors_in in = reads(n);
    const acf_subset *u = subset_of(n);
    normal_fwd<<<blocks_for(u->N), WARP, shared_bytes(in), acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, n->out[1]->data, in, packing_of(u), acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("factors_normal");
}

static acf_status value_forward(acf_tape *t, acf_node *n) {
    const acf_factors_in in = reads(n);
    const acf_subset *u = subset_of(n);
    const acf_tensor *z = n->in[ACF_FACTORS_Z];
    value_fwd<<<blocks_for(u->N), WARP, shared_bytes(in), acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, z->data, z->ndim == 2 ? z->dim[0] : 1, in, packing_of(u), acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("factors_value");
}

static acf_status value_backward(acf_tape *t, acf_node *n) {
    const acf_factors_in in = reads(n);
    const acf_subset *u = subset_of(n);
    acf_real *dz = acf_grad(t, n->in[ACF_FACTORS_Z]);
    if (!dz) return acf_tape_status(t);
    value_bwd<<<blocks_for(u->N), WARP, shared_bytes(in), acf_cuda_stream(t->dev)>>>(dz, n->out[0]->grad, in,
                                                                                     packing_of(u));
    return ACF_LAUNCHED("factors_value");
}

static acf_status expect_forward(acf_tape *t, acf_node *n) {
    const acf_factors_in in = reads(n);
    const acf_subset *u = subset_of(n);
    expect_fwd<<<blocks_for(u->N), WARP, shared_bytes(in), acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, in, u->size, u->N, acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("factors_expect");
}

ACF_CUDA_OP(factors_normal, normal_forward, NULL);
ACF_CUDA_OP(factors_value, value_forward, value_backward);
ACF_CUDA_OP(factors_values, value_forward, NULL);
ACF_CUDA_OP(factors_expect, expect_forward, NULL);
