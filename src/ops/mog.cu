/* The Gaussian mixture on the GPU: see mog.h; formulas in docs/math.md, 10. In double, as on the CPU.
 *
 * Workload: 5e2 to 1e4 rows of 2 to 56 columns, 1 to 64 components. The model limits components so that a row's factors
 * take K n³/3 = 60,000 multiply-adds: 5e8 FLOP for 4,096 rows, 15 µs of the H200's 34 TFLOP/s. Latency dominates: n
 * dependent columns of a factor, n of a substitution, and in the inverse one Newton iteration per value.
 *
 * A block is one warp and handles one row. The row's factors (lower triangles, packed) and vectors are in shared
 * memory, or in device memory where they do not fit. Lanes share (component, place) pairs, so that one large factor and
 * many small ones keep them equally busy. Where the values are known, all places are evaluated at once. For a
 * covariance that is not positive definite the row is recorded as a fault and its outputs are zero. */
#include "ops/mog_pieces.cuh"

/* ---- all values known -------------------------------------------------------------------------------------------- */

/* s.a (K,n) = normalised log weights of the components at each modelled place; all places have been taken. */
static __device__ void weigh_all(const row_state &s, const acf_mog_in &in) {
    const int n = s.n, size = (int)tri(n);
    PAIRS(s, 0, n) s.a[c * n + p] = 0.5 * s.y[c * n + p] * s.y[c * n + p] + log(s.l[c * size + tri(p) + p]);
    __syncwarp();
    for (int c = (int)threadIdx.x; c < s.K; c += WARP) {
        double sum = log((double)in.weight[s.used[c]]);
        for (int p = 0; p < n; p++) {
            const double term = s.a[c * n + p];
            s.a[c * n + p] = sum;
            sum -= term;
        }
    }
    __syncwarp();
    for (int p = s.o + (int)threadIdx.x; p < n; p += WARP) {
        log_sum all = {-INFINITY, 0};
        for (int c = 0; c < s.K; c++) put(&all, s.a[c * n + p]);
        const double total = value_of(all);
        for (int c = 0; c < s.K; c++) s.a[c * n + p] -= total;
    }
    __syncwarp();
}

/* log F of the lower or upper tail, and log f, at the value of place p, in this lane alone. */
static __device__ double log_tail_at(const row_state &s, int p, bool upper) {
    log_sum all = {-INFINITY, 0};
    for (int c = 0; c < s.K; c++) {
        const double lw = s.a[c * s.n + p], e = s.y[c * s.n + p];
        if (lw > LOG_LEAST) put(&all, lw + log_cdf(upper ? -e : e));
    }
    return value_of(all);
}
static __device__ double log_density_at(const row_state &s, int p) {
    log_sum all = {-INFINITY, 0};
    for (int c = 0; c < s.K; c++) {
        const double lw = s.a[c * s.n + p], e = s.y[c * s.n + p];
        if (lw > LOG_LEAST) put(&all, lw - 0.5 * e * e - log(s.l[c * tri(s.n) + tri(p) + p]) - HALF_LOG_2PI);
    }
    return value_of(all);
}

extern __shared__ double shared_memory[];

/* This block's memory: in `slab` if there is one. */
static __device__ double *memory_of(double *slab, const acf_mog_in &in, int arrays) {
    return slab ? slab + blockIdx.x * row_doubles(in.K, in.W, arrays) : shared_memory;
}

#define NORMAL_ARRAYS 2
static __global__ void __launch_bounds__(WARP) normal_fwd(acf_real *z, acf_real *logdet, acf_mog_in in, packing u,
                                                          double *slab, acf_fault *fault, const char *op) {
    row_state s = lay_out(memory_of(slab, in, NORMAL_ARRAYS), in, NORMAL_ARRAYS);
    zero_tail(z, u, 1);
    for (int64_t k = blockIdx.x; k < u.N; k += gridDim.x) {
        const int64_t i = u.row[k];
        const int size = u.size[i];
        double sum = 0;
        if (size > 0) {
            list_columns(&s, in, i, u.cols + i * u.D, size);
            for (int t = (int)threadIdx.x; t < size; t += WARP)
                s.x[s.o + t] = (double)in.x[i * in.D + s.column[s.o + t]];
            const int broken = factorise(s, in);
            if (broken >= 0) record_fault(fault, op, i, broken);
            for (int p = 0; broken < 0 && p < s.n; p++) take(s, p);
            if (broken < 0) weigh_all(s, in);
            for (int t = (int)threadIdx.x; t < size; t += WARP) {
                double e = 0;
                if (broken < 0) {
                    const double low = log_tail_at(s, s.o + t, false);
                    e = low <= LOG_HALF ? from_log_tail(low) : -from_log_tail(log_tail_at(s, s.o + t, true));
                    sum += log_density_at(s, s.o + t) + 0.5 * e * e + HALF_LOG_2PI;
                }
                z[u.first[t] + k] = acf_real_from_cuda(e);
            }
        }
        sum = acf_warp_sum(sum);
        if (threadIdx.x == 0) logdet[i] = acf_real_from_cuda(sum);
        __syncwarp();
    }
}

/* ---- values from z ----------------------------------------------------------------------------------------------- */

/* The mixture at place p, whose normalised log weights are s.yk: log F of a tail, and log f, at x. All lanes take
 * part. */
static __device__ double log_tail(const row_state &s, int p, double x, bool upper) {
    log_sum all = {-INFINITY, 0};
    for (int c = (int)threadIdx.x; c < s.K; c += WARP) {
        const double e = (x - s.y[c * s.n + p]) / s.l[c * tri(s.n) + tri(p) + p];
        if (s.yk[c] > LOG_LEAST) put(&all, s.yk[c] + log_cdf(upper ? -e : e));
    }
    return warp_log_sum(all);
}
static __device__ double log_density(const row_state &s, int p, double x) {
    log_sum all = {-INFINITY, 0};
    for (int c = (int)threadIdx.x; c < s.K; c += WARP) {
        const double sd = s.l[c * tri(s.n) + tri(p) + p], e = (x - s.y[c * s.n + p]) / sd;
        if (s.yk[c] > LOG_LEAST) put(&all, s.yk[c] - 0.5 * e * e - log(sd) - HALF_LOG_2PI);
    }
    return warp_log_sum(all);
}

/* x of z: the components' quantiles enclose that of the mixture; Newton on the logarithm of the tail, halving the
 * bracket where a step would leave it. All lanes compute the same and do not diverge. */
static __device__ double from_normal(const row_state &s, int p, double z) {
    double lo = INFINITY, hi = -INFINITY;
    for (int c = (int)threadIdx.x; c < s.K; c += WARP)
        if (s.yk[c] > LOG_LEAST) {
            const double q = s.y[c * s.n + p] + s.l[c * tri(s.n) + tri(p) + p] * z;
            lo = fmin(lo, q), hi = fmax(hi, q);
        }
    lo = -warp_max(-lo), hi = warp_max(hi);
    const bool upper = z > 0;
    double x = 0.5 * (lo + hi);
    if (!(hi - lo > 1e-13 * (fabs(lo) + fabs(hi)))) return x;
    const double target = log_cdf(upper ? -z : z);
    for (int i = 0; i < 100 && hi - lo > 1e-13 * (fabs(lo) + fabs(hi)); i++) {
        const double f = log_tail(s, p, x, upper), slope = exp(log_density(s, p, x) - f);
        if (fabs(f - target) < 1e-14 * (1 + fabs(target))) break;
        if ((f < target) != upper)
            lo = x;
        else
            hi = x;
        const double next = x + (upper ? f - target : target - f) / slope;
        x = next > lo && next < hi ? next : 0.5 * (lo + hi);
    }
    return x;
}

/* s.yk = the normalised log weights from s.lw. */
static __device__ void normalise(const row_state &s) {
    log_sum all = {-INFINITY, 0};
    for (int c = (int)threadIdx.x; c < s.K; c += WARP) put(&all, s.lw[c]);
    const double total = warp_log_sum(all);
    for (int c = (int)threadIdx.x; c < s.K; c += WARP) s.yk[c] = s.lw[c] - total;
    __syncwarp();
}

/* The values of the row of rank k, of one set of z; s.a and s.lw0 hold the state of s.y and s.lw after the given
 * places. */
static __device__ void value_row(const row_state &s, acf_real *x, const acf_real *z, const packing &u, int64_t k) {
    const int n = s.n, size = (int)tri(n);
    PAIRS(s, s.o, n - s.o) s.y[c * n + p] = s.a[c * n + p];
    for (int c = (int)threadIdx.x; c < s.K; c += WARP) s.lw[c] = s.lw0[c];
    __syncwarp();
    for (int p = s.o; p < n; p++) {
        const int64_t at = u.first[p - s.o] + k;
        normalise(s);
        const double value = from_normal(s, p, (double)z[at]);
        if (threadIdx.x == 0) x[at] = acf_real_from_cuda(value), s.x[p] = value;
        __syncwarp();
        take(s, p);
        for (int c = (int)threadIdx.x; c < s.K; c += WARP)
            s.lw[c] -= 0.5 * s.y[c * n + p] * s.y[c * n + p] + log(s.l[c * size + tri(p) + p]);
        __syncwarp();
    }
}

#define VALUE_ARRAYS 2
static __global__ void __launch_bounds__(WARP, 16)
    value_fwd(acf_real *x, const acf_real *z, int64_t sets, acf_mog_in in, packing u, double *slab, acf_fault *fault,
              const char *op) {
    row_state s = lay_out(memory_of(slab, in, VALUE_ARRAYS), in, VALUE_ARRAYS);
    zero_tail(x, u, sets);
    for (int64_t k = blockIdx.x; k < u.N; k += gridDim.x) {
        const int64_t i = u.row[k];
        const int size = u.size[i];
        if (size == 0) continue;
        list_columns(&s, in, i, u.cols + i * u.D, size);
        const int broken = factorise(s, in);
        if (broken >= 0) {
            record_fault(fault, op, i, broken);
            for (int64_t e = threadIdx.x; e < sets * size; e += WARP) x[e / size * u.T + u.first[e % size] + k] = 0;
            continue;
        }
        for (int p = 0; p < s.o; p++) take(s, p);
        weigh_given(s, in);
        PAIRS(s, s.o, s.n - s.o) s.a[c * s.n + p] = s.y[c * s.n + p];
        for (int c = (int)threadIdx.x; c < s.K; c += WARP) s.lw0[c] = s.lw[c];
        __syncwarp();
        for (int64_t q = 0; q < sets; q++) value_row(s, x + q * u.T, z + q * u.T, u, k);
        __syncwarp();
    }
}

/* Inverts the modelled block of every factor in place, from the last column to the first; s.d is scratch. */
static __device__ void invert(const row_state &s) {
    const int n = s.n, size = (int)tri(n);
    for (int j = n - 1; j >= s.o; j--) {
        PAIRS(s, j + 1, n - j - 1) s.d[c * n + p] = s.l[c * size + tri(p) + j];
        for (int c = (int)threadIdx.x; c < s.K; c += WARP) s.l[c * size + tri(j) + j] = 1 / s.l[c * size + tri(j) + j];
        __syncwarp();
        PAIRS(s, j + 1, n - j - 1) {
            const double *row = s.l + c * size + tri(p);
            double sum = 0;
            for (int q = j + 1; q <= p; q++) sum += row[q] * s.d[c * n + q];
            s.l[c * size + tri(p) + j] = -sum * s.l[c * size + tri(j) + j];
        }
        __syncwarp();
    }
}

/* For every modelled place: s.a = weights, s.b = tails and s.c = densities of the components, both over φ(z), and s.x =
 * dz/dx. */
static __device__ void slopes(const row_state &s, const acf_real *z, const packing &u, int64_t k) {
    const int n = s.n;
    for (int p = s.o + (int)threadIdx.x; p < n; p += WARP) {
        const double at = (double)z[u.first[p - s.o] + k], scale = 0.5 * at * at + HALF_LOG_2PI, side = at > 0 ? -1 : 1;
        s.x[p] = exp(log_density_at(s, p) + scale);
        for (int c = 0; c < s.K; c++) {
            const double e = s.y[c * n + p], lw = s.a[c * n + p];
            const bool counts = lw > LOG_LEAST;
            s.a[c * n + p] = counts ? exp(lw) : 0;
            s.b[c * n + p] = counts ? side * exp(log_cdf(side * e) + scale) : 0;
            s.c[c * n + p] = counts ? exp(scale - 0.5 * e * e - HALF_LOG_2PI) : 0;
        }
    }
    __syncwarp();
}

/* dz of a row from s.r = dx, by (dz/dx)ᵀ dz = dx from the last place to the first. s.d (K,n) holds Σ_{q<=r<p} y_r
 * (L⁻¹)_rq for all places q at once: it begins with the whole sum, and every place subtracts its term. */
static __device__ void solve_slopes(const row_state &s, acf_real *dz, const packing &u, int64_t k) {
    const int n = s.n, size = (int)tri(n);
    PAIRS(s, s.o, n - s.o) {
        double sum = 0;
        for (int r = p; r < n; r++) sum += s.y[c * n + r] * s.l[c * size + tri(r) + p];
        s.d[c * n + p] = sum;
    }
    __syncwarp();
    for (int q = n - 1; q >= s.o; q--) {
        PAIRS(s, s.o, q - s.o + 1) s.d[c * n + p] -= s.y[c * n + q] * s.l[c * size + tri(q) + p];
        const double d = s.r[q] / s.x[q];
        __syncwarp();
        for (int p = s.o + (int)threadIdx.x; p < q; p += WARP) {
            double mean = 0, slope = 0;
            for (int c = 0; c < s.K; c++) mean -= s.a[c * n + q] * s.d[c * n + p];
            for (int c = 0; c < s.K; c++)
                slope += s.a[c * n + q] *
                         ((-s.d[c * n + p] - mean) * s.b[c * n + q] + s.c[c * n + q] * s.l[c * size + tri(q) + p]);
            s.r[p] -= slope * d;
        }
        if (threadIdx.x == 0) {
            acf_real *to = dz + u.first[q - s.o] + k;
            *to = acf_real_from_cuda((double)*to + d);
        }
        __syncwarp();
    }
}

#define BACK_ARRAYS 5
static __global__ void __launch_bounds__(WARP)
    value_bwd(acf_real *dz, const acf_real *dx, acf_mog_in in, const acf_real *x, const acf_real *z, packing u,
              double *slab) {
    row_state s = lay_out(memory_of(slab, in, BACK_ARRAYS), in, BACK_ARRAYS);
    for (int64_t k = blockIdx.x; k < u.N; k += gridDim.x) {
        const int64_t i = u.row[k];
        const int size = u.size[i];
        if (size == 0) continue;
        list_columns(&s, in, i, u.cols + i * u.D, size);
        for (int t = (int)threadIdx.x; t < size; t += WARP) {
            s.x[s.o + t] = (double)x[u.first[t] + k];
            s.r[s.o + t] = (double)dx[u.first[t] + k];
        }
        if (factorise(s, in) <
            0) { /* its barriers come after the values; forward has recorded a row whose factor failed */
            for (int p = 0; p < s.n; p++) take(s, p);
            weigh_all(s, in);
            slopes(s, z, u, k);
            invert(s);
            solve_slopes(s, dz, u, k);
        }
        __syncwarp();
    }
}

/* ---- expectations ------------------------------------------------------------------------------------------------ */

/* y = L⁻ᵀ y on the given places. */
static __device__ void solve_back(const row_state &s) {
    const int n = s.n, size = (int)tri(n);
    for (int place = n - 1; place >= 0; place--) {
        for (int c = (int)threadIdx.x; c < s.K; c += WARP) s.y[c * n + place] /= s.l[c * size + tri(place) + place];
        __syncwarp();
        PAIRS(s, 0, place) s.y[c * n + p] -= s.l[c * size + tri(place) + p] * s.y[c * n + place];
        __syncwarp();
    }
}

#define EXPECT_ARRAYS 1
/* size (N): rows where it is 0 give zeros. */
static __global__ void __launch_bounds__(WARP) expect_fwd(acf_real *out, acf_mog_in in, const int32_t *size, int64_t N,
                                                          double *slab, acf_fault *fault, const char *op) {
    row_state s = lay_out(memory_of(slab, in, EXPECT_ARRAYS), in, EXPECT_ARRAYS);
    const int64_t W = in.W;
    for (int64_t i = blockIdx.x; i < N; i += gridDim.x) {
        if (size[i] == 0) {
            for (int64_t j = threadIdx.x; j < W; j += WARP) out[i * W + j] = 0;
            continue;
        }
        list_columns(&s, in, i, NULL, 0);
        const int broken = factorise(s, in);
        if (broken >= 0) record_fault(fault, op, i, broken);
        for (int p = 0; broken < 0 && p < s.n; p++) take(s, p);
        if (broken < 0) {
            weigh_given(s, in);
            normalise(s);
            solve_back(s);
        }
        for (int64_t j = threadIdx.x; j < W; j += WARP) {
            double sum = 0;
            for (int c = 0; broken < 0 && c < s.K; c++) {
                const int64_t k = s.used[c];
                double one = (double)in.mean[k * W + j];
                for (int p = 0; p < s.n; p++) {
                    const int64_t q = s.column[p];
                    one += (double)in.cov[(k * W + (j > q ? j : q)) * W + (j > q ? q : j)] * s.y[c * s.n + p];
                }
                if (s.yk[c] > LOG_LEAST) sum += exp(s.yk[c]) * one;
            }
            out[i * W + j] = acf_real_from_cuda(sum);
        }
        __syncwarp();
        for (int p = (int)threadIdx.x; broken < 0 && p < s.n; p += WARP)
            out[i * W + s.column[p]] = acf_real_from_cuda(s.x[p]); /* exactly */
        __syncwarp();
    }
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static acf_mog_in reads(const acf_node *n) {
    const acf_mog_attrs *a = (const acf_mog_attrs *)n->attr;
    acf_tensor *const *in = n->in;
    return {in[ACF_MOG_MEAN]->dim[0],
            in[ACF_MOG_X]->dim[1],
            in[ACF_MOG_MEAN]->dim[1],
            in[ACF_MOG_WEIGHT]->data,
            in[ACF_MOG_MEAN]->data,
            in[ACF_MOG_COV]->data,
            in[ACF_MOG_X]->data,
            a->b,
            a->classes};
}

/* The launch of a kernel with this many arrays on N rows. */
typedef struct shape {
    unsigned blocks;
    size_t bytes; /* of shared memory */
    double *slab; /* on the tape until the caller releases it; NULL: a row fits into shared memory */
} shape;

#define SLAB_BLOCKS 16 /* per multiprocessor, where rows are in device memory */

static acf_status shape_of(acf_tape *t, const void *kernel, const acf_mog_in *in, int64_t N, int arrays, shape *out) {
    const int64_t doubles = row_doubles(in->K, in->W, arrays);
    int most = 0, device = 0;
    acf_cuda_stream(t->dev); /* makes the device current for this thread */
    ACF_CUDA(cudaGetDevice(&device));
    ACF_CUDA(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
    *out = {(unsigned)acf_max(acf_min(N, INT32_MAX), 1), (size_t)doubles * sizeof(double), NULL};
    if (out->bytes <= (size_t)most) {
        if (out->bytes > 48 << 10)
            ACF_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)out->bytes));
        return ACF_OK;
    }
    out->bytes = 0;
    out->blocks = (unsigned)acf_min(out->blocks, SLAB_BLOCKS * acf_cuda_processors(t->dev));
    out->slab = (double *)acf_tape_reals(t, 2 * doubles * out->blocks);
    return acf_tape_status(t);
}

static acf_status normal_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((const acf_mog_attrs *)n->attr)->u;
    const acf_mog_in in = reads(n);
    shape s;
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(shape_of(t, (const void *)normal_fwd, &in, u->N, NORMAL_ARRAYS, &s));
    normal_fwd<<<s.blocks, WARP, s.bytes, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, n->out[1]->data, in, packing_of(u), s.slab, acf_cuda_fault(t->dev), n->op->name);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("mog_normal");
}

static acf_status value_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((const acf_mog_attrs *)n->attr)->u;
    const acf_tensor *z = n->in[ACF_MOG_Z];
    const acf_mog_in in = reads(n);
    shape s;
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(shape_of(t, (const void *)value_fwd, &in, u->N, VALUE_ARRAYS, &s));
    value_fwd<<<s.blocks, WARP, s.bytes, acf_cuda_stream(t->dev)>>>(n->out[0]->data, z->data,
                                                                    z->ndim == 2 ? z->dim[0] : 1, in, packing_of(u),
                                                                    s.slab, acf_cuda_fault(t->dev), n->op->name);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("mog_value");
}

static acf_status value_backward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((const acf_mog_attrs *)n->attr)->u;
    const acf_mog_in in = reads(n);
    acf_real *dz = acf_grad(t, n->in[ACF_MOG_Z]);
    shape s;
    if (!dz) return acf_tape_status(t);
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(shape_of(t, (const void *)value_bwd, &in, u->N, BACK_ARRAYS, &s));
    value_bwd<<<s.blocks, WARP, s.bytes, acf_cuda_stream(t->dev)>>>(dz, n->out[0]->grad, in, n->out[0]->data,
                                                                    n->in[ACF_MOG_Z]->data, packing_of(u), s.slab);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("mog_value");
}

static acf_status expect_forward(acf_tape *t, acf_node *n) {
    const acf_subset *u = ((const acf_mog_attrs *)n->attr)->u;
    const acf_mog_in in = reads(n);
    shape s;
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(shape_of(t, (const void *)expect_fwd, &in, u->N, EXPECT_ARRAYS, &s));
    expect_fwd<<<s.blocks, WARP, s.bytes, acf_cuda_stream(t->dev)>>>(n->out[0]->data, in, u->size, u->N, s.slab,
                                                                     acf_cuda_fault(t->dev), n->op->name);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("mog_expect");
}

ACF_CUDA_OP(mog_normal, normal_forward, NULL);
ACF_CUDA_OP(mog_value, value_forward, value_backward);
ACF_CUDA_OP(mog_values, value_forward, NULL);
ACF_CUDA_OP(mog_expect, expect_forward, NULL);
