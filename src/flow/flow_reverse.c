/* Reverse: a permutation, log-determinant 0. See flow.h. */
#include "flow/flow.h"
#include "ops/gather.h"

static acf_status reverse_declare(acf_flow *f, acf_params *ps, const char *name) {
    (void)f, (void)ps, (void)name;
    return ACF_OK;
}

static acf_tensor *reverse(acf_tape *t, const acf_flow *f, acf_tensor *x, const acf_cond *c, acf_tensor **logdet) {
    (void)f, (void)logdet; /* logdet stays NULL: nothing to add */
    return acf_reverse(t, x, c->u);
}

const acf_flow_kind acf_flow_reverse = {.name = "reverse",
                                        .declare = reverse_declare,
                                        .forward = reverse,
                                        .inverse = reverse,
                                        .reverses = true};
