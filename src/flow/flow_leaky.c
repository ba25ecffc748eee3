/* Leaky ReLU: one learned slope. See flow.h. */
#include "flow/flow.h"
#include "ops/leaky.h"

#define LEAKY_START 2.0 /* slope sigmoid(2) = 0.88 */

static acf_status leaky_declare(acf_flow *f, acf_params *ps, const char *name) {
    f->base = acf_declare(ps, name, "a", ACF_INIT_CONST, LEAKY_START, 0, NULL);
    return f->base ? ACF_OK : acf_error_status();
}

static acf_tensor *leaky_forward(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c,
                                 acf_tensor **logdet) {
    return acf_leaky_forward(t, x, acf_p(f->base), c->u, logdet);
}

static acf_tensor *leaky_inverse(acf_tape *t, const acf_flow *f, acf_tensor *z, const acf_cond *c,
                                 acf_tensor **logdet) {
    return acf_leaky_inverse(t, z, acf_p(f->base), c->u, logdet);
}

const acf_flow_kind acf_flow_leaky = {.name = "leaky",
                                      .declare = leaky_declare,
                                      .forward = leaky_forward,
                                      .inverse = leaky_inverse};
