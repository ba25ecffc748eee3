/* Activations: see act.h. The derivatives from the output are in docs/math.md, 1.
 *
 * Workload: 1e5 to 1e7 elements a call. The loops below are vectorised, so tanh costs little more than relu. */
#include "ops/act.h"

#include "base/vmath.h"

static const char *const names[ACF_ACT_COUNT] = {"identity", "relu",     "leaky_relu", "tanh",
                                                 "sigmoid",  "softplus", "elu"};

const char *acf_act_name(acf_act_kind kind) { return (unsigned)kind < ACF_ACT_COUNT ? names[kind] : "unknown"; }

/* One vector loop per activation. relu is written so that a NaN stays one: (x < 0 ? 0 : x). */
#define EACH(expr)                                                                                                     \
    do {                                                                                                               \
        ACF_SIMD                                                                                                       \
        for (int64_t i = 0; i < n; i++) y[i] = expr;                                                                   \
        return;                                                                                                        \
    } while (0)

void acf_act_fwd_cpu(acf_act_kind kind, acf_real *y, const acf_real *x, int64_t n) {
    switch (kind) {
    case ACF_IDENTITY: EACH(x[i]);
    case ACF_RELU: EACH(x[i] < 0 ? 0 : x[i]);
    case ACF_LEAKY_RELU: EACH(x[i] < 0 ? ACF_LEAKY_SLOPE * x[i] : x[i]);
    case ACF_TANH: EACH(acf_tanh(x[i]));
    case ACF_SIGMOID: EACH(acf_sigmoid(x[i]));
    case ACF_SOFTPLUS: /* log1p is a call, so this loop stays scalar */
        for (int64_t i = 0; i < n; i++) y[i] = acf_softplus(x[i]);
        return;
    case ACF_ELU: EACH(x[i] < 0 ? acf_expm1(x[i]) : x[i]);
    case ACF_ACT_COUNT: break;
    }
}
#undef EACH

#define EACH(slope)                                                                                                    \
    do {                                                                                                               \
        ACF_SIMD                                                                                                       \
        for (int64_t i = 0; i < n; i++) dx[i] = dy[i] * (slope);                                                       \
        return;                                                                                                        \
    } while (0)

void acf_act_bwd_cpu(acf_act_kind kind, acf_real *dx, const acf_real *dy, const acf_real *y, int64_t n) {
    switch (kind) {
    case ACF_IDENTITY: EACH(ACF_R(1.0));
    case ACF_RELU: EACH(y[i] > 0 ? ACF_R(1.0) : ACF_R(0.0));
    case ACF_LEAKY_RELU: EACH(y[i] < 0 ? ACF_LEAKY_SLOPE : ACF_R(1.0));
    case ACF_TANH: EACH(ACF_R(1.0) - y[i] * y[i]);
    case ACF_SIGMOID: EACH(y[i] * (ACF_R(1.0) - y[i]));
    case ACF_SOFTPLUS: EACH(-acf_expm1(-y[i]));
    case ACF_ELU: EACH(y[i] < 0 ? y[i] + ACF_R(1.0) : ACF_R(1.0));
    case ACF_ACT_COUNT: break;
    }
}
#undef EACH

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_act_attrs *a = n->attr;
    int64_t count = acf_tensor_count(n->in[0]);
    const acf_real *x = n->in[0]->data;
    acf_real *y = n->out[0]->data;
    ACF_PARALLEL(t->dev, count)
    for (int64_t c = 0; c < count; c += ACF_CHUNK)
        acf_act_fwd_cpu(a->kind, y + c, x + c, acf_min(ACF_CHUNK, count - c));
    return ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_act_attrs *a = n->attr;
    int64_t count = acf_tensor_count(n->in[0]);
    acf_real *dx = acf_grad(t, n->in[0]);
    const acf_real *dy = n->out[0]->grad, *y = n->out[0]->data;
    if (!dx) return acf_tape_status(t);
    ACF_PARALLEL(t->dev, count)
    for (int64_t c = 0; c < count; c += ACF_CHUNK) {
        acf_real part[ACF_CHUNK];
        int64_t k = acf_min(ACF_CHUNK, count - c);
        acf_act_bwd_cpu(a->kind, part, dy + c, y + c, k);
        for (int64_t i = 0; i < k; i++) dx[c + i] += part[i];
    }
    return ACF_OK;
}

const acf_op acf_op_act = {"act", ACF_OP_act, {forward, backward}};

acf_tensor *acf_act(acf_tape *t, acf_act_kind kind, acf_tensor *x) {
    if ((unsigned)kind >= ACF_ACT_COUNT)
        return acf_reject_value(t, &acf_op_act, "there is no activation number %d", (int)kind);
    acf_node *n = acf_node_new(t, &acf_op_act, sizeof(acf_act_attrs), 1, &x);
    if (!n) return &t->empty;
    *(acf_act_attrs *)n->attr = (acf_act_attrs){kind};
    n->out[0] = acf_tensor_new(t, x->ndim, x->dim);
    acf_tensor_inherit(n->out[0], x);
    return acf_node_run(t, n);
}
