/* The head of a PixelCNN on the GPU: see chain_means.h. Bound by memory. One thread per number, which sums its terms
 * in order. */
#include "ops/ops.cuh"

extern "C" {
#include "ops/chain_means.h"
}

/* Slopes of channel c by those before it begin at this multiple of K after the mixtures: channels have 0, 1, 2 ...
 * of them. */
static __device__ inline int64_t slopes_of(int64_t c) { return c * (c - 1) / 2; }

/* y (P·C,3K) from p (P,A), z (P,C). */
static __global__ void chain_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ p,
                                 const acf_real *__restrict__ z, int64_t n, int64_t A, int64_t C, int64_t K) {
    ACF_EACH(i, n) {
        const acf_cell pixel = acf_cell_of(i, C * 3 * K), at = acf_cell_of(pixel.column, 3 * K);
        const acf_real *own = p + pixel.row * A;
        acf_real v = own[pixel.column];
        if (at.column >= K && at.column < 2 * K) {
            const acf_real *slope = own + C * 3 * K + slopes_of(at.row) * K + at.column - K;
            for (int64_t j = 0; j < at.row; j++) v += tanhf(slope[j * K]) * z[pixel.row * C + j];
        }
        y[i] = v;
    }
}

/* dp += : a mixture's own numbers, and dslope = dmean z_j (1 - tanh²). */
static __global__ void chain_bwd_p(acf_real *__restrict__ dp, const acf_real *__restrict__ dy,
                                   const acf_real *__restrict__ p, const acf_real *__restrict__ z, int64_t n, int64_t A,
                                   int64_t C, int64_t K) {
    ACF_EACH(i, n) {
        const acf_cell pixel = acf_cell_of(i, A);
        const acf_real *d = dy + pixel.row * C * 3 * K;
        if (pixel.column < C * 3 * K) {
            dp[i] += d[pixel.column];
        } else {
            const acf_cell at = acf_cell_of(pixel.column - C * 3 * K, K);
            int64_t c = 1;
            while (slopes_of(c + 1) <= at.row) c++;
            const acf_real th = tanhf(p[i]);
            dp[i] += d[c * 3 * K + K + at.column] * z[pixel.row * C + at.row - slopes_of(c)] * (1 - th * th);
        }
    }
}

/* dz_j += Σ over later channels and k of dmean tanh. */
static __global__ void chain_bwd_z(acf_real *__restrict__ dz, const acf_real *__restrict__ dy,
                                   const acf_real *__restrict__ p, int64_t n, int64_t A, int64_t C, int64_t K) {
    ACF_EACH(i, n) {
        const acf_cell at = acf_cell_of(i, C);
        const acf_real *d = dy + at.row * C * 3 * K, *slopes = p + at.row * A + C * 3 * K;
        double sum = 0;
        for (int64_t c = at.column + 1; c < C; c++)
            for (int64_t k = 0; k < K; k++)
                sum += (double)(d[c * 3 * K + K + k] * tanhf(slopes[(slopes_of(c) + at.column) * K + k]));
        dz[i] += (acf_real)sum;
    }
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *p = n->in[0], *z = n->in[1], *y = n->out[0];
    const int64_t count = acf_tensor_count(y);
    chain_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        y->data, p->data, z->data, count, p->dim[3], z->dim[3], ((const acf_chain_means_attrs *)n->attr)->K);
    return ACF_LAUNCHED("chain_means");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *p = n->in[0], *z = n->in[1];
    const int64_t K = ((const acf_chain_means_attrs *)n->attr)->K, A = p->dim[3], C = z->dim[3];
    const acf_real *dy = n->out[0]->grad;
    acf_real *dp = acf_grad(t, p), *dz = acf_grad(t, z);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    ACF_TRY(acf_tape_status(t));
    if (dp)
        chain_bwd_p<<<acf_each_blocks(acf_tensor_count(p)), ACF_THREADS, 0, stream>>>(dp, dy, p->data, z->data,
                                                                                      acf_tensor_count(p), A, C, K);
    if (dz)
        chain_bwd_z<<<acf_each_blocks(acf_tensor_count(z)), ACF_THREADS, 0, stream>>>(dz, dy, p->data,
                                                                                      acf_tensor_count(z), A, C, K);
    return ACF_LAUNCHED("chain_means");
}

ACF_CUDA_OP(chain_means, forward, backward);
