/* Calibration of a trained network: see net.h and docs/math.md, 16.
 *
 * Workload: a few dozen calls at the end of a fit, on the scales of the reals and the last layer of the categories.
 * The host computes them for every device: weights are fetched, changed and written back. */
#include "model/net_parts.h"

#include <math.h>

/* Bias of the outputs of the reals' network, (3K): logits, means, log-scales. NULL: it has no mixtures. */
static acf_tensor *mixture_bias(const acf_net *net) { return net->real.D ? net->like.head : NULL; }

/* The last layer of the categories' network. */
static acf_tensor *class_weights(const acf_net *net) {
    return net->attends ? acf_p(net->attention.classes.w) : acf_categories_weights(&net->categories);
}
static acf_tensor *class_bias(const acf_net *net) {
    return net->attends ? acf_p(net->attention.classes.b) : acf_categories_bias(&net->categories);
}

bool acf_net_widen_scale(const acf_net *net) { return mixture_bias(net) != NULL; }
bool acf_net_soften_classes(const acf_net *net) { return net->category.D > 0; }

/* x[first ..] = times · x + plus. */
static acf_status change(const acf_net *net, const acf_tensor *x, int64_t first, double times, double plus) {
    const int64_t n = acf_tensor_count(x) - first;
    const size_t bytes = (size_t)n * sizeof(acf_real);
    acf_real *host = acf_alloc(bytes, "weights of a last layer");
    if (!host) return ACF_EMEMORY;
    acf_status status = acf_device_copy(net->dev, host, x->data + first, bytes, ACF_TO_HOST);
    if (!status) status = acf_device_sync(net->dev);
    for (int64_t i = 0; !status && i < n; i++) host[i] = (acf_real)(times * (double)host[i] + plus);
    if (!status) status = acf_device_copy(net->dev, x->data + first, host, bytes, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(net->dev);
    acf_release(host);
    return status;
}

acf_status acf_net_calibrate(acf_net *net, double scale_factor, double temperature) {
    const acf_tensor *bias = mixture_bias(net);
    if (bias && scale_factor != 0) ACF_TRY(change(net, bias, 2 * net->like.components, 1, scale_factor));
    if (!acf_net_soften_classes(net) || temperature == 0) return ACF_OK;
    ACF_TRY(change(net, class_weights(net), 0, exp(-temperature), 0));
    return change(net, class_bias(net), 0, exp(-temperature), 0);
}
