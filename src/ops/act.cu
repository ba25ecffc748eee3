/* Activations on the GPU: see act.h. One pass, bound by memory. */
#include "ops/act.cuh"

static __global__ void act_fwd(acf_act_kind kind, acf_real *y, const acf_real *x, int64_t n) {
    acf_real v[ACF_PER_THREAD]; /* y may be x: all loads come first, or each would wait for the store before it */
    ACF_EACH(i, n) v[each_] = x[i];
    ACF_EACH(i, n) y[i] = acf_act_value(kind, v[each_]);
}

static __global__ void act_bwd(acf_act_kind kind, acf_real *__restrict__ dx, const acf_real *__restrict__ dy,
                               const acf_real *__restrict__ y, int64_t n, bool add) {
    ACF_EACH(i, n) dx[i] = (add ? dx[i] : 0) + dy[i] * acf_act_slope(kind, y[i]);
}

acf_status acf_cuda_act(acf_device *dev, acf_act_kind kind, acf_real *y, const acf_real *x, int64_t n) {
    act_fwd<<<acf_each_blocks(n), ACF_THREADS, 0, acf_cuda_stream(dev)>>>(kind, y, x, n);
    return ACF_LAUNCHED("act");
}

acf_status acf_cuda_act_back(acf_device *dev, acf_act_kind kind, acf_real *dx, const acf_real *dy, const acf_real *y,
                             int64_t n, bool add) {
    act_bwd<<<acf_each_blocks(n), ACF_THREADS, 0, acf_cuda_stream(dev)>>>(kind, dx, dy, y, n, add);
    return ACF_LAUNCHED("act");
}

static acf_status forward(acf_tape *t, acf_node *n) {
    return acf_cuda_act(t->dev, ((const acf_act_attrs *)n->attr)->kind, n->out[0]->data, n->in[0]->data,
                        acf_tensor_count(n->in[0]));
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_tensor *y = n->out[0];
    acf_real *dx = acf_grad(t, n->in[0]);
    if (!dx) return acf_tape_status(t);
    return acf_cuda_act_back(t->dev, ((const acf_act_attrs *)n->attr)->kind, dx, y->grad, y->data, acf_tensor_count(y),
                             true);
}

ACF_CUDA_OP(act, forward, backward);
