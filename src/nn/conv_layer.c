/* A convolution with its parameters: see conv_layer.h. */
#include "nn/conv_layer.h"

#include "nn/mlp.h"
#include "ops/weight_norm.h"

acf_status acf_conv_layer_declare(acf_conv_layer *l, acf_params *ps, const char *name, acf_conv_size s, acf_conv how) {
    l->how = how;
    l->v = acf_declare(ps, name, "v", ACF_INIT_UNIFORM, 1, 4, (int64_t[]){s.out, s.kh, s.kw, s.in});
    l->g = l->v ? acf_declare(ps, name, "g", ACF_INIT_CONST, s.scale, 1, &s.out) : NULL;
    l->b = l->g ? acf_declare(ps, name, "b", ACF_INIT_CONST, 0, 1, &s.out) : NULL;
    if (!l->b) return acf_error_status();
    l->v->decay = false; /* its length has no effect */
    return ACF_OK;
}

acf_tensor *acf_conv_layer_kernel(acf_tape *t, const acf_conv_layer *l) {
    return acf_weight_norm(t, acf_p(l->v), acf_p(l->g));
}

acf_tensor *acf_conv_layer_run(acf_tape *t, const acf_conv_layer *l, acf_tensor *x) {
    return acf_conv2d(t, x, acf_conv_layer_kernel(t, l), acf_p(l->b), l->how);
}
