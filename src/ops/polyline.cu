/* A piecewise linear function on the GPU: see polyline.h. The knots are arguments of the kernels, so a step in a CUDA
 * graph copies nothing. */
#include "ops/act.cuh"

extern "C" {
#include "ops/polyline.h"
}

static __global__ void polyline_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ x, const acf_knots k,
                                    int64_t n) {
    ACF_EACH(j, n) {
        const acf_real v = x[j];
        const int i = acf_polyline_piece(&k, v);
        y[j] = k.y[i] + acf_polyline_slope(&k, i) * (v - k.x[i]);
    }
}

static __global__ void polyline_bwd(acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                                    const acf_real *__restrict__ x, const acf_knots k, int64_t n) {
    ACF_EACH(j, n) dx[j] += dy[j] * acf_polyline_slope(&k, acf_polyline_piece(&k, x[j]));
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_tensor *x = n->in[0];
    const int64_t count = acf_tensor_count(x);
    polyline_fwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, x->data, *(const acf_knots *)n->attr, count);
    return ACF_LAUNCHED("polyline");
}

static acf_status backward(acf_tape *t, acf_node *n) {
    acf_tensor *x = n->in[0];
    const int64_t count = acf_tensor_count(x);
    acf_real *dx = acf_grad(t, x);
    if (!dx) return acf_tape_status(t);
    polyline_bwd<<<acf_each_blocks(count), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        dx, n->out[0]->grad, x->data, *(const acf_knots *)n->attr, count);
    return ACF_LAUNCHED("polyline");
}

ACF_CUDA_OP(polyline, forward, backward);
