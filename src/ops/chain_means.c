/* The head of a PixelCNN: see chain_means.h. Workload: 1e4 to 1e5 pixels, C = 1 or 3, K = 10: bound by memory. */
#include "ops/chain_means.h"

#include "base/vmath.h"

void acf_chain_means_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *p, const acf_real *z, int64_t P,
                             int64_t C, int64_t K) {
    const int64_t A = acf_chain_width(C, K);
    ACF_PARALLEL(dev, P * A)
    for (int64_t i = 0; i < P; i++) {
        const acf_real *slopes = p + i * A + C * 3 * K;
        acf_real *to = y + i * C * 3 * K;
        ACF_SIMD
        for (int64_t k = 0; k < C * 3 * K; k++) to[k] = p[i * A + k];
        for (int64_t c = 1; c < C; c++)
            for (int64_t j = 0; j < c; j++, slopes += K) {
                const acf_real before = z[i * C + j];
                ACF_SIMD
                for (int64_t k = 0; k < K; k++) to[c * 3 * K + K + k] += acf_tanh(slopes[k]) * before;
            }
    }
}

/* dslope += dmean z_j (1 - tanh²);  dz_j += Σ_k dmean tanh. */
void acf_chain_means_bwd_cpu(const acf_device *dev, acf_real *dp, acf_real *dz, const acf_real *dy, const acf_real *p,
                             const acf_real *z, int64_t P, int64_t C, int64_t K) {
    const int64_t A = acf_chain_width(C, K);
    ACF_PARALLEL(dev, P * A)
    for (int64_t i = 0; i < P; i++) {
        const acf_real *d = dy + i * C * 3 * K;
        for (int64_t k = 0; dp && k < C * 3 * K; k++) dp[i * A + k] += d[k];
        int64_t at = i * A + C * 3 * K;
        for (int64_t c = 1; c < C; c++)
            for (int64_t j = 0; j < c; j++, at += K) {
                const acf_real before = z[i * C + j], *dmean = d + c * 3 * K + K;
                double sum = 0;
                for (int64_t k = 0; k < K; k++) {
                    const acf_real th = acf_tanh(p[at + k]);
                    if (dp) dp[at + k] += dmean[k] * before * (1 - th * th);
                    sum += (double)(dmean[k] * th);
                }
                if (dz) dz[i * C + j] += (acf_real)sum;
            }
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *p = n->in[0], *z = n->in[1];
    acf_chain_means_fwd_cpu(t->dev, n->out[0]->data, p->data, z->data, acf_tensor_lines(z), z->dim[3],
                            ((acf_chain_means_attrs *)n->attr)->K);
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *p = n->in[0], *z = n->in[1];
    acf_real *dp = acf_grad(t, p), *dz = acf_grad(t, z);
    ACF_TRY(acf_tape_status(t));
    acf_chain_means_bwd_cpu(t->dev, dp, dz, n->out[0]->grad, p->data, z->data, acf_tensor_lines(z), z->dim[3],
                            ((acf_chain_means_attrs *)n->attr)->K);
    return ACF_OK;
}

const acf_op acf_op_chain_means = {"chain_means", ACF_OP_chain_means, {forward, backward}};

acf_tensor *acf_chain_means(acf_tape *t, acf_tensor *p, acf_tensor *z, int64_t K) {
    char sp[ACF_SHAPE_TEXT], sz[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_chain_means, sizeof(acf_chain_means_attrs), 2, (acf_tensor *[]){p, z});
    if (!n) return &t->empty;
    if (p->ndim != 4 || z->ndim != 4 || K < 1 || acf_tensor_lines(p) != acf_tensor_lines(z) ||
        p->dim[3] != acf_chain_width(z->dim[3], K))
        return acf_reject(t, n->op,
                          "p is %s and z is %s; expected (N, H, W, C·3K + C(C-1)/2·K) and (N, H, W, C), K = %lld",
                          acf_tensor_shape(p, sp), acf_tensor_shape(z, sz), (long long)K);
    ((acf_chain_means_attrs *)n->attr)->K = K;
    n->out[0] = acf_tensor_new(t, 2, (int64_t[]){acf_tensor_count(z), 3 * K});
    return acf_node_run(t, n);
}
