/* RNN couplings: scale and shift of each value, or its shift alone, from a GRU over the values before. See flow.h. */
#include "flow/flow.h"
#include "ops/affine.h"
#include "ops/arith.h"

static acf_status rnn_declare_with(acf_flow *f, acf_params *ps, const char *name, int64_t out) {
    const acf_flow_sizes *s = &f->size;
    acf_rnn_shape shape = {2 * s->column_embedding, s->context, s->units, s->gru_layers, s->deep, out, 0.01};
    return acf_rnn_declare(&f->rnn, ps, name, &shape);
}

static acf_status rnn_declare(acf_flow *f, acf_params *ps, const char *name) {
    return rnn_declare_with(f, ps, name, 2);
}
static acf_status shift_declare(acf_flow *f, acf_params *ps, const char *name) {
    return rnn_declare_with(f, ps, name, 1);
}

static acf_tensor *rnn_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c, acf_tensor **logdet) {
    acf_drop drop = acf_pass_drop(c->pass, f->site);
    acf_tensor *st = acf_rnn_seq(t, &f->rnn, x, acf_cond_known(t, c), c->context, c->u, &drop);
    return acf_affine_forward(t, x, st, f->size.bound, c->u, logdet);
}

/* The loop gives x; the log-determinant is that of the forward transformation, run on this x. Neither has dropout. */
static acf_tensor *rnn_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c, acf_tensor **logdet) {
    acf_tensor *known = acf_cond_known(t, c);
    acf_tensor *x = acf_rnn_inverse(t, &f->rnn, z, known, c->context, f->size.bound, c->u), *there;
    if (logdet) {
        acf_affine_forward(t, x, acf_rnn_seq(t, &f->rnn, x, known, c->context, c->u, NULL), f->size.bound, c->u,
                           &there);
        *logdet = acf_scale(t, -1, there);
    }
    return x;
}

const acf_flow_kind acf_flow_rnn = {.name = "rnn",
                                    .declare = rnn_declare,
                                    .forward = rnn_forward,
                                    .inverse = rnn_inverse,
                                    .affine_alone = true,
                                    .recurrent = true};
const acf_flow_kind acf_flow_rnn_shift = {.name = "rnn-shift",
                                          .declare = shift_declare,
                                          .forward = rnn_forward,
                                          .inverse = rnn_inverse,
                                          .affine_alone = true,
                                          .recurrent = true};
