/* Gaussian mixtures on the GPU: see mixture.h; formulas in docs/math.md, 8.
 *
 * Workload: T = 1e3 to 1.3e5 elements of K = 40 components. Memory traffic bounds it: 480 bytes an element forward and
 * three times that backward (dp is added to). A team of G lanes handles one element and holds R components per lane in
 * registers, so that all its loads are in flight together.
 *
 * Float is accurate enough for values near their mixture, which nearly all elements are. Far out, the gaps between
 * components are differences of large numbers, and float would lose the responsibilities. Such an element, and one with
 * extreme scales or non-finite numbers, is computed again in double, as on the CPU. Responsibilities are not stored:
 * computing them costs less than reading them. CDF, quantile and draws are in double throughout. */
#include "ops/gaussian.cuh"

extern "C" {
#include "ops/mixture.h"
}

/* ---- teams ------------------------------------------------------------------------------------------------------- */

#define THREADS 256

/* The lanes of this thread's team of G, which lies within a warp; teams of one warp may diverge. */
template <int G> static __device__ inline unsigned team_mask(void) {
    return G == 32 ? 0xffffffffu : ((1u << (G % 32)) - 1) << (threadIdx.x % 32 / G * G);
}
template <int G, typename T> static __device__ inline T team_sum(T x) {
    for (int d = G / 2; d > 0; d /= 2) x += __shfl_xor_sync(team_mask<G>(), x, d);
    return x;
}
/* NaN are skipped. */
template <int G> static __device__ inline float team_max(float x) {
    for (int d = G / 2; d > 0; d /= 2) x = fmaxf(x, __shfl_xor_sync(team_mask<G>(), x, d));
    return x;
}
template <int G> static __device__ inline double team_max(double x) {
    for (int d = G / 2; d > 0; d /= 2) x = fmax(x, __shfl_xor_sync(team_mask<G>(), x, d));
    return x;
}
template <int G> static __device__ inline bool team_all(bool x) { return __all_sync(team_mask<G>(), x); }

/* Bounds of the log-scale, and K. */
typedef struct limits {
    double lo, hi;
    int K;
} limits;

/* ---- log-density, in double -------------------------------------------------------------------------------------- */

/* What all components share: the largest logit, Σ e^(logit - largest), the largest term, Σ e^(term - largest). */
typedef struct density {
    double top, weight, peak, sum;
} density;

static __device__ inline double term_of(const acf_real *p, int k, double z, double top, const limits &m) {
    const double s = acf_clamped(p[2 * m.K + k], m.lo, m.hi), e = acf_standard(z, p[m.K + k], exp(-s));
    return (double)p[k] - top - s - 0.5 * e * e;
}

template <int G> static __device__ density density_of(const acf_real *p, double z, const limits &m) {
    const int lane = threadIdx.x % G;
    density d = {-CUDART_INF, 0, -CUDART_INF, 0};
    for (int k = lane; k < m.K; k += G) d.top = fmax(d.top, (double)p[k]);
    d.top = team_max<G>(d.top);
    for (int k = lane; k < m.K; k += G) {
        d.weight += exp((double)p[k] - d.top);
        d.peak = fmax(d.peak, term_of(p, k, z, d.top, m));
    }
    d.weight = team_sum<G>(d.weight), d.peak = team_max<G>(d.peak);
    for (int k = lane; k < m.K; k += G) d.sum += exp(term_of(p, k, z, d.top, m) - d.peak);
    d.sum = team_sum<G>(d.sum);
    return d;
}

template <int G> static __device__ __noinline__ acf_real logp_double(const acf_real *p, double z, limits m) {
    const density d = density_of<G>(p, z, m);
    return acf_nearest(d.peak + log(d.sum / d.weight) - ACF_HALF_LOG_2PI);
}

/* Adds g·∂log p to dp (3K), unless NULL; returns ∂log p / ∂z. */
template <int G>
static __device__ __noinline__ double grad_double(acf_real *dp, double g, const acf_real *p, double z, limits m) {
    const density d = density_of<G>(p, z, m);
    double pull = 0;
    for (int k = threadIdx.x % G; k < m.K; k += G) {
        const double raw = p[2 * m.K + k], inv = exp(-acf_clamped(raw, m.lo, m.hi)),
                     e = acf_standard(z, p[m.K + k], inv);
        const double r = exp(term_of(p, k, z, d.top, m) - d.peak) / d.sum, w = exp((double)p[k] - d.top) / d.weight;
        pull += r * e * inv;
        if (!dp) continue;
        dp[k] = acf_nearest((double)dp[k] + g * (r - w));
        dp[m.K + k] = acf_nearest((double)dp[m.K + k] + g * (r * e * inv));
        if (raw >= m.lo && raw <= m.hi)
            dp[2 * m.K + k] = acf_nearest((double)dp[2 * m.K + k] + g * (r * (e * e - 1.0)));
        else if (isnan(raw))
            dp[2 * m.K + k] = CUDART_NAN_F;
    }
    return -team_sum<G>(pull);
}

/* ---- log-density, in float --------------------------------------------------------------------------------------- */

#define NEAR 30.0f /* bound of terms and log-scales: 0.5 e² then stays below 60, and its error below 1e-5 */
#define FAR 1e15f  /* e of a component that contributes nothing to the density: its square is finite */

/* One element's components in registers: R per lane. After `evaluate`, term is e^(term - peak). */
template <int R> struct mixture {
    float logit[R], mean[R], scale[R]; /* logits minus the largest; log-scales as given, e^-s in `inv` once evaluated */
    float term[R], e[R], inv[R];
};

template <int G, int R> static __device__ inline void load(mixture<R> &m, const acf_real *__restrict__ p, int K) {
#pragma unroll
    for (int j = 0; j < R; j++) {
        const int k = threadIdx.x % G + j * G;
        m.logit[j] = k < K ? p[k] : -CUDART_INF_F;
        m.mean[j] = k < K ? p[K + k] : 0;
        m.scale[j] = k < K ? p[2 * K + k] : 0;
    }
}

/* False: the element must be done in double. A padded component has a logit of -inf and e = 0, so its weight and term
 * are 0. */
template <int G, int R>
static __device__ inline bool evaluate(mixture<R> &m, float z, const limits &b, float *weight, float *peak,
                                       float *sum) {
    const float lo = (float)b.lo, hi = (float)b.hi;
    float top = -CUDART_INF_F, high = -CUDART_INF_F, w = 0, total = 0;
    bool sound = true;
#pragma unroll
    for (int j = 0; j < R; j++) top = fmaxf(top, m.logit[j]);
    top = team_max<G>(top);
#pragma unroll
    for (int j = 0; j < R; j++) {
        const bool there = (int)threadIdx.x % G + j * G < b.K;
        const float s = there ? fminf(fmaxf(m.scale[j], lo), hi) : 0;
        m.logit[j] -= top;
        m.inv[j] = expf(-s);
        m.e[j] = there ? (z - m.mean[j]) * m.inv[j] : 0;
        m.term[j] = m.logit[j] - s - 0.5f * m.e[j] * m.e[j];
        sound = sound && fabsf(s) <= NEAR && fabsf(m.e[j]) <= FAR && m.term[j] <= FLT_MAX && !isnan(m.scale[j]);
        high = fmaxf(high, m.term[j]);
        w += expf(m.logit[j]);
    }
    high = team_max<G>(high);
    if (!team_all<G>(sound && high > -NEAR)) return false;
#pragma unroll
    for (int j = 0; j < R; j++) {
        m.term[j] = expf(m.term[j] - high);
        total += m.term[j];
    }
    *weight = team_sum<G>(w), *peak = high, *sum = team_sum<G>(total);
    return true;
}

template <int G, int R>
static __global__ void __launch_bounds__(THREADS)
    logp_fwd(acf_real *logp, const acf_real *__restrict__ p, const acf_real *__restrict__ z, const int32_t *rows,
             int64_t capacity, limits b) {
    const int64_t i = acf_thread() / G;
    if (i >= capacity) return; /* whole teams */
    if (i >= acf_true_rows(rows, capacity)) {
        if (threadIdx.x % G == 0) logp[i] = 0;
        return;
    }
    const acf_real *at = p + i * 3 * b.K;
    mixture<R> m;
    float weight, peak, sum;
    load<G>(m, at, b.K);
    const float zi = z[i];
    const acf_real y = evaluate<G>(m, zi, b, &weight, &peak, &sum) ? peak + logf(sum / weight) - (float)ACF_HALF_LOG_2PI
                                                                   : logp_double<G>(at, zi, b);
    if (threadIdx.x % G == 0) logp[i] = y;
}

/* Adds to dp (T,3K) and dz (T); NULL = not needed. A float gradient adds up to infinity only where the incoming one was
 * as large. */
template <int G, int R>
static __global__ void __launch_bounds__(THREADS)
    logp_bwd(acf_real *dp, acf_real *dz, const acf_real *__restrict__ dlogp, const acf_real *__restrict__ p,
             const acf_real *__restrict__ z, const int32_t *rows, int64_t capacity, limits b) {
    const int64_t i = acf_thread() / G;
    if (i >= acf_true_rows(rows, capacity)) return;
    const acf_real *at = p + i * 3 * b.K;
    acf_real *to = dp ? dp + i * 3 * b.K : NULL;
    mixture<R> m, d;
    float weight, peak, sum;
    load<G>(m, at, b.K);
    if (to) load<G>(d, to, b.K); /* loaded together with the others */
    const float zi = z[i], g = dlogp[i], lo = (float)b.lo, hi = (float)b.hi;
    double slope;
    if (fabsf(g) <= 1e20f && evaluate<G>(m, zi, b, &weight, &peak, &sum)) {
        const float part = 1 / sum, share = 1 / weight;
        float pull = 0;
#pragma unroll
        for (int j = 0; j < R; j++) {
            const int k = threadIdx.x % G + j * G;
            const float r = m.term[j] * part, w = expf(m.logit[j]) * share, dmean = r * m.e[j] * m.inv[j];
            const bool inside = m.scale[j] >= lo && m.scale[j] <= hi;
            pull += dmean;
            if (!to || k >= b.K) continue;
            to[k] = d.logit[j] + g * (r - w);
            to[b.K + k] = d.mean[j] + g * dmean;
            if (inside) to[2 * b.K + k] = d.scale[j] + g * (r * (m.e[j] * m.e[j] - 1));
        }
        slope = -team_sum<G>(pull);
    } else
        slope = grad_double<G>(to, g, at, zi, b);
    if (dz && threadIdx.x % G == 0) dz[i] = acf_nearest((double)dz[i] + (double)g * slope);
}

/* kernel<G,R> for K components: the fewest lanes that hold them in registers, so that none is idle. */
#define TEAM_LAUNCH(kernel, K, T, stream, ...)                                                                         \
    do {                                                                                                               \
        if ((K) <= 8)                                                                                                  \
            kernel<8, 1><<<acf_blocks((T)*8, THREADS), THREADS, 0, stream>>>(__VA_ARGS__);                             \
        else if ((K) <= 16)                                                                                            \
            kernel<8, 2><<<acf_blocks((T)*8, THREADS), THREADS, 0, stream>>>(__VA_ARGS__);                             \
        else if ((K) <= 24)                                                                                            \
            kernel<8, 3><<<acf_blocks((T)*8, THREADS), THREADS, 0, stream>>>(__VA_ARGS__);                             \
        else if ((K) <= 40)                                                                                            \
            kernel<8, 5><<<acf_blocks((T)*8, THREADS), THREADS, 0, stream>>>(__VA_ARGS__);                             \
        else if ((K) <= 64)                                                                                            \
            kernel<8, 8><<<acf_blocks((T)*8, THREADS), THREADS, 0, stream>>>(__VA_ARGS__);                             \
        else if ((K) <= 256)                                                                                           \
            kernel<32, 8><<<acf_blocks((T)*32, THREADS), THREADS, 0, stream>>>(__VA_ARGS__);                           \
        else                                                                                                           \
            kernel<32, 32><<<acf_blocks((T)*32, THREADS), THREADS, 0, stream>>>(__VA_ARGS__);                          \
    } while (0)

static limits limits_of(const acf_node *n) {
    const acf_mixture_attrs *a = (const acf_mixture_attrs *)n->attr;
    return {a->lo, a->hi, (int)a->K};
}

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    const limits b = limits_of(n);
    const acf_tensor *p = n->in[0], *y = n->out[0];
    TEAM_LAUNCH(logp_fwd, b.K, y->dim[0], acf_cuda_stream(t->dev), y->data, p->data, n->in[1]->data, acf_cuda_rows(p),
                y->dim[0], b);
    return ACF_LAUNCHED("mixture_logp");
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const limits b = limits_of(n);
    acf_tensor *p = n->in[0], *z = n->in[1], *y = n->out[0];
    acf_real *dp = acf_grad(t, p), *dz = acf_grad(t, z);
    ACF_TRY(acf_tape_status(t));
    TEAM_LAUNCH(logp_bwd, b.K, y->dim[0], acf_cuda_stream(t->dev), dp, dz, y->grad, p->data, z->data, acf_cuda_rows(p),
                y->dim[0], b);
    return ACF_LAUNCHED("mixture_logp");
}

ACF_CUDA_OP(mixture_logp, logp_forward, logp_backward);

/* ---- mean -------------------------------------------------------------------------------------------------------- */

/* Weights in float, products and sums in double. dmean NULL: writes mean; else adds to dp. Teams of 8 go through the
 * components one after another. */
static __global__ void mean_pass(acf_real *mean, acf_real *dp, const acf_real *__restrict__ dmean,
                                 const acf_real *__restrict__ p, const int32_t *rows, int64_t capacity, int K) {
    const int G = 8, lane = threadIdx.x % G;
    const int64_t i = acf_thread() / G;
    if (i >= capacity) return;
    if (i >= acf_true_rows(rows, capacity)) {
        if (mean && lane == 0) mean[i] = 0;
        return;
    }
    const acf_real *at = p + i * 3 * K;
    float top = -CUDART_INF_F, weight = 0;
    double sum = 0;
    for (int k = lane; k < K; k += G) top = fmaxf(top, at[k]);
    top = team_max<G>(top);
    for (int k = lane; k < K; k += G) {
        const float w = expf(at[k] - top);
        weight += w;
        sum += (double)w * (double)at[K + k];
    }
    const double inv = 1.0 / (double)team_sum<G>(weight), middle = team_sum<G>(sum) * inv;
    if (mean && lane == 0) mean[i] = acf_nearest(acf_seen(middle));
    if (!dp) return;
    acf_real *to = dp + i * 3 * K;
    const double g = dmean[i];
    for (int k = lane; k < K; k += G) {
        const double w = (double)expf(at[k] - top) * inv;
        to[k] = acf_nearest((double)to[k] + g * (w * ((double)at[K + k] - middle)));
        to[K + k] = acf_nearest((double)to[K + k] + g * w);
    }
}

static acf_status mean_forward(acf_tape *t, acf_node *n) {
    const acf_tensor *p = n->in[0], *y = n->out[0];
    mean_pass<<<acf_blocks(y->dim[0] * 8, THREADS), THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, NULL, NULL, p->data, acf_cuda_rows(p), y->dim[0], limits_of(n).K);
    return ACF_LAUNCHED("mixture_mean");
}

static acf_status mean_backward(acf_tape *t, acf_node *n) {
    acf_tensor *p = n->in[0], *y = n->out[0];
    acf_real *dp = acf_grad(t, p);
    if (!dp) return acf_tape_status(t);
    mean_pass<<<acf_blocks(y->dim[0] * 8, THREADS), THREADS, 0, acf_cuda_stream(t->dev)>>>(
        NULL, dp, y->grad, p->data, acf_cuda_rows(p), y->dim[0], limits_of(n).K);
    return ACF_LAUNCHED("mixture_mean");
}

ACF_CUDA_OP(mixture_mean, mean_forward, mean_backward);

/* ---- sample, CDF, quantile: one warp per element ----------------------------------------------------------------- */

/* One element's components in shared memory, in double: weights up to the factor 1/total, means, 1/σ, and log-scales
 * within their bounds. */
typedef struct tails {
    double *w, *mean, *inv;
    double total;
    int K;
} tails;

/* The warp's element, and its components at `shared` (3K doubles). False behind the last element, where it writes zero.
 * Syncs. */
static __device__ bool read_tails(tails *d, int64_t *element, double *shared, acf_real *out,
                                  const acf_real *__restrict__ p, const int32_t *rows, int64_t capacity,
                                  const limits &b) {
    const int lane = threadIdx.x % 32, K = b.K;
    const int64_t i = acf_thread() / 32;
    *element = i;
    if (i >= capacity) return false;
    if (i >= acf_true_rows(rows, capacity)) {
        if (lane == 0) out[i] = 0;
        return false;
    }
    const acf_real *at = p + i * 3 * K;
    double top = -CUDART_INF, total = 0;
    *d = {shared, shared + K, shared + 2 * K, 0, K};
    for (int k = lane; k < K; k += 32) top = fmax(top, (double)at[k]);
    top = team_max<32>(top);
    for (int k = lane; k < K; k += 32) {
        d->w[k] = exp((double)at[k] - top);
        d->mean[k] = acf_seen(at[K + k]);
        d->inv[k] = exp(-acf_clamped(at[2 * K + k], b.lo, b.hi));
        total += d->w[k];
    }
    d->total = team_sum<32>(total);
    __syncwarp();
    return true;
}

static __device__ double *tails_shared(int K) {
    extern __shared__ double shared_doubles[];
    return shared_doubles + threadIdx.x / 32 * 3 * K;
}

/* The component that `left` of the total falls into, and the remainder within it, in every lane. The last component
 * with a weight takes the rounding remainder; -1 if no component has one. */
static __device__ int choose(const tails &d, double *left) {
    const int lane = threadIdx.x % 32;
    double before = 0, rest = 0;
    int last = -1;
    for (int k0 = 0; k0 < d.K; k0 += 32) {
        const double w = k0 + lane < d.K ? d.w[k0 + lane] : 0;
        double sum = w;
        for (int s = 1; s < 32; s *= 2) {
            const double y = __shfl_up_sync(0xffffffffu, sum, s);
            if (lane >= s) sum += y;
        }
        const unsigned reached = __ballot_sync(0xffffffffu, w > 0 && *left < before + sum),
                       weighty = __ballot_sync(0xffffffffu, w > 0);
        const int from = reached ? __ffs(reached) - 1 : weighty ? 31 - __clz(weighty) : -1;
        if (from >= 0) {
            last = k0 + from;
            rest = *left - (before + __shfl_sync(0xffffffffu, sum - w, from));
        }
        if (reached) break;
        before += __shfl_sync(0xffffffffu, sum, 31);
    }
    *left = rest;
    return last;
}

static __global__ void sample_fwd(acf_real *z, const acf_real *__restrict__ p, acf_draw draw, const int32_t *rows,
                                  int64_t capacity, limits b) {
    tails d;
    int64_t i;
    if (!read_tails(&d, &i, tails_shared(b.K), z, p, rows, capacity, b)) return;
    const bool there = draw.at.row[i] >= 0;    /* false behind the last row of a step */
    acf_real value = there ? CUDART_NAN_F : 0; /* with logits that are not finite no component can be chosen */
    if (there && d.total > 0 && isfinite(d.total)) {
        double left = acf_rng_uniform_cuda(acf_rng_counter_of(draw, ACF_STREAM_COMPONENT, i)) * d.total;
        const int k = choose(d, &left);
        const double noise = acf_rng_normal_cuda(acf_rng_counter_of(draw, ACF_STREAM_NORMAL, i));
        if (k >= 0) value = acf_nearest(d.mean[k] + exp(acf_clamped(p[i * 3 * b.K + 2 * b.K + k], b.lo, b.hi)) * noise);
    }
    if (threadIdx.x % 32 == 0) z[i] = value;
}

static __device__ double tail_of(const tails &d, double z, bool upper) {
    double sum = 0;
    for (int k = threadIdx.x % 32; k < d.K; k += 32)
        sum += d.w[k] * acf_tail_of_normal((z - d.mean[k]) * d.inv[k], upper);
    sum = team_sum<32>(sum) / d.total;
    return sum > 1.0 ? 1.0 : sum; /* the weights sum to 1 up to rounding */
}

static __global__ void cdf_fwd(acf_real *cdf, const acf_real *__restrict__ p, const acf_real *__restrict__ z,
                               const int32_t *rows, int64_t capacity, limits b) {
    tails d;
    int64_t i;
    if (!read_tails(&d, &i, tails_shared(b.K), cdf, p, rows, capacity, b)) return;
    const acf_real y = (acf_real)tail_of(d, z[i], false);
    if (threadIdx.x % 32 == 0) cdf[i] = y;
}

/* q[i · q_step] */
static __global__ void quantile_fwd(acf_real *z, const acf_real *__restrict__ p, const acf_real *__restrict__ q,
                                    int64_t q_step, const int32_t *rows, int64_t capacity, limits b) {
    tails d;
    int64_t i;
    if (!read_tails(&d, &i, tails_shared(b.K), z, p, rows, capacity, b)) return;
    const acf_real y = acf_search_quantile<tails>(tail_of, d, q[i * q_step]);
    if (threadIdx.x % 32 == 0) z[i] = y;
}

/* q among the cumulated weights chooses a component; its position within that weight is the level of the component's
 * quantile. */
static __global__ void stratum_fwd(acf_real *z, const acf_real *__restrict__ p, const acf_real *__restrict__ q,
                                   int64_t q_step, const int32_t *rows, int64_t capacity, limits b) {
    tails d;
    int64_t i;
    if (!read_tails(&d, &i, tails_shared(b.K), z, p, rows, capacity, b)) return;
    double left = (double)q[i * q_step] * d.total;
    const int k = max(choose(d, &left), 0);
    const double within = fmin(fmax(left / d.w[k], 1e-12), 1 - 1e-12); /* keeps the quantile of a component finite */
    const double scale = exp(acf_clamped(p[i * 3 * b.K + 2 * b.K + k], b.lo, b.hi));
    if (threadIdx.x % 32 == 0)
        z[i] = acf_nearest(d.mean[k] + scale * acf_quantile_of_normal(isnan(left) ? left : within, false));
}

/* Warps per block whose components fit into the default 48 KB of shared memory of a block: one at 1024 components. */
typedef struct tails_plan {
    unsigned blocks, threads;
    size_t bytes;
} tails_plan;
static tails_plan tails_for(int64_t T, int K) {
    const int64_t bytes = 3 * K * (int64_t)sizeof(double), warps = acf_max(acf_min(49152 / bytes, 8), 1);
    return {acf_blocks(T, (int)warps), (unsigned)(32 * warps), (size_t)(warps * bytes)};
}
#define TAILS_LAUNCH(kernel, y, K, ...)                                                                                \
    const tails_plan plan_ = tails_for((y)->dim[0], K);                                                                \
    kernel<<<plan_.blocks, plan_.threads, plan_.bytes, acf_cuda_stream(t->dev)>>>(__VA_ARGS__)

static acf_status sample_forward(acf_tape *t, acf_node *n) {
    const limits b = limits_of(n);
    const acf_tensor *p = n->in[0], *y = n->out[0];
    const acf_draw draw = ((const acf_mixture_attrs *)n->attr)->draw;
    TAILS_LAUNCH(sample_fwd, y, b.K, y->data, p->data, draw, acf_cuda_rows(p), y->dim[0], b);
    return ACF_LAUNCHED("mixture_sample");
}

static acf_status cdf_forward(acf_tape *t, acf_node *n) {
    const limits b = limits_of(n);
    const acf_tensor *p = n->in[0], *y = n->out[0];
    TAILS_LAUNCH(cdf_fwd, y, b.K, y->data, p->data, n->in[1]->data, acf_cuda_rows(p), y->dim[0], b);
    return ACF_LAUNCHED("mixture_cdf");
}

static acf_status quantile_forward(acf_tape *t, acf_node *n) {
    const limits b = limits_of(n);
    const acf_tensor *p = n->in[0], *q = n->in[1], *y = n->out[0];
    ACF_TRY(acf_cuda_check_probability(t->dev, q, y, n->op->name));
    TAILS_LAUNCH(quantile_fwd, y, b.K, y->data, p->data, q->data, acf_tensor_count(q) == 1 ? 0 : 1, acf_cuda_rows(p),
                 y->dim[0], b);
    return ACF_LAUNCHED("mixture_quantile");
}

static acf_status stratum_forward(acf_tape *t, acf_node *n) {
    const limits b = limits_of(n);
    const acf_tensor *p = n->in[0], *q = n->in[1], *y = n->out[0];
    ACF_TRY(acf_cuda_check_probability(t->dev, q, y, n->op->name));
    TAILS_LAUNCH(stratum_fwd, y, b.K, y->data, p->data, q->data, acf_tensor_count(q) == 1 ? 0 : 1, acf_cuda_rows(p),
                 y->dim[0], b);
    return ACF_LAUNCHED("mixture_stratum");
}

ACF_CUDA_OP(mixture_sample, sample_forward, NULL);
ACF_CUDA_OP(mixture_cdf, cdf_forward, NULL);
ACF_CUDA_OP(mixture_quantile, quantile_forward, NULL);
ACF_CUDA_OP(mixture_stratum, stratum_forward, NULL);
