/* The Gaussian likelihood on the GPU: see gaussian.h; formulas in docs/math.md, 8. In double, as on the CPU: an
 * H200's double rate is half its float rate, and an element is one exp. */
#include "ops/gaussian.cuh"

/* Elements beyond the true rows of a packed tensor are zero. */
#define EACH_TRUE(i, out)                                                                                              \
    const int64_t true_ = acf_true_rows(rows, capacity) * width;                                                       \
    ACF_EACH(i, capacity *width)                                                                                       \
    if (i >= true_)                                                                                                    \
        out[i] = 0;                                                                                                    \
    else

/* ---- log-density ----------------------------------------------------------------------------------------------- */

static __global__ void logp_fwd(acf_real *__restrict__ logp, const acf_real *__restrict__ z,
                                const acf_real *__restrict__ mean, const acf_real *__restrict__ log_scale,
                                const int32_t *rows, int64_t capacity, int64_t width, double lo, double hi) {
    EACH_TRUE(i, logp) {
        const double s = acf_clamped(log_scale[i], lo, hi), e = acf_standard(z[i], mean[i], exp(-s));
        logp[i] = acf_nearest(-0.5 * e * e - s - ACF_HALF_LOG_2PI);
    }
}

/* d logp / dz = -e/σ = -d logp / dmean,  d logp / ds = e² - 1 inside the bounds. The inputs may be one tensor, so
 * gradients are added one after the other. */
static __global__ void logp_bwd(acf_real *dz, acf_real *dmean, acf_real *dlog_scale, const acf_real *__restrict__ dlogp,
                                const acf_real *__restrict__ z, const acf_real *__restrict__ mean,
                                const acf_real *__restrict__ log_scale, const int32_t *rows, int64_t capacity,
                                int64_t width, double lo, double hi) {
    const int64_t n = acf_true_rows(rows, capacity) * width;
    ACF_EACH(i, n) {
        const double raw = log_scale[i], inv = exp(-acf_clamped(raw, lo, hi)), e = acf_standard(z[i], mean[i], inv),
                     g = dlogp[i];
        if (dz) dz[i] = acf_nearest((double)dz[i] - g * e * inv);
        if (dmean) dmean[i] = acf_nearest((double)dmean[i] + g * e * inv);
        if (dlog_scale)
            dlog_scale[i] = acf_nearest((double)dlog_scale[i] + (raw < lo || raw > hi ? 0.0 : g * (e * e - 1.0)));
    }
}

/* Inputs of every node: mean, log_scale, and z or q (a sample has neither). */
#define SHAPE(x) acf_cuda_rows(x), acf_tensor_rows(x), acf_tensor_width(x)
static const acf_gaussian_attrs *attrs_of(const acf_node *n) { return (const acf_gaussian_attrs *)n->attr; }

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = attrs_of(n);
    const acf_tensor *y = n->out[0];
    logp_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, n->in[2]->data, n->in[0]->data, n->in[1]->data, SHAPE(y), a->lo, a->hi);
    return ACF_LAUNCHED("gaussian_logp");
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = attrs_of(n);
    acf_tensor *mean = n->in[0], *s = n->in[1], *z = n->in[2], *y = n->out[0];
    acf_real *dmean = acf_grad(t, mean), *ds = acf_grad(t, s), *dz = acf_grad(t, z);
    ACF_TRY(acf_tape_status(t));
    logp_bwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dz, dmean, ds, y->grad, z->data, mean->data, s->data, SHAPE(y), a->lo, a->hi);
    return ACF_LAUNCHED("gaussian_logp");
}

ACF_CUDA_OP(gaussian_logp, logp_forward, logp_backward);

/* ---- CDF, quantile, sample ------------------------------------------------------------------------------------- */

typedef struct normal {
    double mean, inv;
} normal;

static __device__ double tail_of(const normal &d, double z, bool upper) {
    return acf_tail_of_normal((z - acf_seen(d.mean)) * d.inv, upper);
}

static __global__ void cdf_fwd(acf_real *__restrict__ cdf, const acf_real *__restrict__ z,
                               const acf_real *__restrict__ mean, const acf_real *__restrict__ log_scale,
                               const int32_t *rows, int64_t capacity, int64_t width, double lo, double hi) {
    EACH_TRUE(i, cdf) cdf[i] = (acf_real)tail_of({mean[i], exp(-acf_clamped(log_scale[i], lo, hi))}, z[i], false);
}

/* q[i · q_step] */
static __global__ void quantile_fwd(acf_real *__restrict__ z, const acf_real *__restrict__ q, int64_t q_step,
                                    const acf_real *__restrict__ mean, const acf_real *__restrict__ log_scale,
                                    const int32_t *rows, int64_t capacity, int64_t width, double lo, double hi) {
    EACH_TRUE(i, z) {
        const normal d = {mean[i], exp(-acf_clamped(log_scale[i], lo, hi))};
        z[i] = acf_search_quantile<normal>(tail_of, d, q[i * q_step]);
    }
}

static __global__ void sample_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ mean,
                                  const acf_real *__restrict__ log_scale, const int32_t *rows, int64_t capacity,
                                  int64_t width, double lo, double hi, acf_draw draw) {
    EACH_TRUE(i, y) if (draw.at.row[i] < 0) y[i] = 0; /* after the last row of a step */
    else {
        const double noise = acf_rng_normal_cuda(acf_rng_counter_of(draw, ACF_STREAM_NORMAL, i));
        y[i] = acf_nearest(acf_seen(mean[i]) + exp(acf_clamped(log_scale[i], lo, hi)) * noise);
    }
}

/* One block: finds the lowest row, and in it the lowest column. `width` is that of the tensor that has the cells. */
static __global__ void probability_check(const acf_real *__restrict__ q, int64_t n, const int32_t *rows, int64_t width,
                                         const int32_t *row_of, const int32_t *col_of, acf_fault *fault,
                                         const char *op) {
    if (rows) n = min(n, *rows * width);
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        if (q[i] > 0 && q[i] < 1) continue;
        const int64_t first = i / width, row = row_of ? row_of[first] : first,
                      column = col_of ? col_of[first] : i % width;
        acf_report(fault, op, ACF_FAULT_PROBABILITY, row, column, (int64_t)__float_as_uint(q[i]));
    }
}

acf_status acf_cuda_check_probability(acf_device *dev, const acf_tensor *q, const acf_tensor *y, const char *op) {
    const acf_tensor *at = acf_tensor_count(q) == acf_tensor_count(y) ? y : q;
    const acf_subset *u = at->sub;
    probability_check<<<1, ACF_THREADS, 0, acf_cuda_stream(dev)>>>(
        q->data, acf_tensor_count(q), acf_cuda_rows(at), acf_max(acf_tensor_width(at), 1), u ? u->row_of : at->row_of,
        u ? u->col_of : NULL, acf_cuda_fault(dev), op);
    return ACF_LAUNCHED("probabilities");
}

static acf_status cdf_forward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = attrs_of(n);
    const acf_tensor *y = n->out[0];
    cdf_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, n->in[2]->data, n->in[0]->data, n->in[1]->data, SHAPE(y), a->lo, a->hi);
    return ACF_LAUNCHED("gaussian_cdf");
}

static acf_status quantile_forward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = attrs_of(n);
    const acf_tensor *y = n->out[0], *q = n->in[2];
    ACF_TRY(acf_cuda_check_probability(t->dev, q, y, n->op->name));
    quantile_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, q->data, acf_tensor_count(q) == 1 ? 0 : 1, n->in[0]->data, n->in[1]->data, SHAPE(y), a->lo, a->hi);
    return ACF_LAUNCHED("gaussian_quantile");
}

static acf_status sample_forward(acf_tape *t, acf_node *n) {
    const acf_gaussian_attrs *a = attrs_of(n);
    const acf_tensor *y = n->out[0];
    sample_fwd<<<acf_each_blocks(acf_tensor_count(y)), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, n->in[0]->data, n->in[1]->data, SHAPE(y), a->lo, a->hi, a->draw);
    return ACF_LAUNCHED("gaussian_sample");
}

ACF_CUDA_OP(gaussian_cdf, cdf_forward, NULL);
ACF_CUDA_OP(gaussian_quantile, quantile_forward, NULL);
ACF_CUDA_OP(gaussian_sample, sample_forward, NULL);
