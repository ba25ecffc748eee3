/* The plugin's entry, and its table of kernels by operation. Every .cu file beside an operation that registers one
 * (ACF_CUDA_OP) is in the table. An operation without a kernel has an empty entry, and the tape reports it when the
 * operation is called. */
#include "ops/adam.cuh"
#include "ops/ops.cuh"
#include "tensor/subset.cuh"

/* Weak: NULL where no file defines it. */
#define ACF_OP(name) extern "C" const acf_kernel acf_cuda_op_##name __attribute__((weak));
#include "ops/ops_list.h"
#undef ACF_OP

static acf_kernel kernels[ACF_OP_COUNT];

static acf_status open_device(int n, acf_device **out);

static const acf_plugin plugin = {
    ACF_PLUGIN_ABI,
    ACF_VERSION,
    (int)sizeof(acf_real),
    ACF_OP_COUNT,
    kernels,
    acf_cuda_count,
    acf_cuda_facts,
    open_device,
    acf_cuda_subset_build,
    acf_cuda_subset_split,
    acf_cuda_subset_order,
    acf_cuda_take_left_out,
    acf_cuda_norm,
    acf_cuda_adam,
    acf_cuda_average,
    acf_cuda_capture_begin,
    acf_cuda_capture_end,
    acf_cuda_graph_run,
    acf_cuda_graph_free,
    acf_cuda_join,
    acf_cuda_pinned_alloc,
    acf_cuda_pinned_free,
    acf_cuda_mark,
    acf_cuda_wait,
};

static acf_status open_device(int n, acf_device **out) { return acf_cuda_open(n, &plugin, out); }

static bool fill_kernels(void) {
    static const acf_kernel *const found[ACF_OP_COUNT] = {
#define ACF_OP(name) &acf_cuda_op_##name,
#include "ops/ops_list.h"
#undef ACF_OP
    };
    for (int i = 0; i < ACF_OP_COUNT; i++)
        if (found[i]) kernels[i] = *found[i];
    return true;
}

extern "C" __attribute__((visibility("default"))) const acf_plugin *acflow_cuda_plugin(const acf_services *host) {
    static const bool filled = fill_kernels(); /* once, in the first thread that calls */
    return filled && acf_cuda_serve(host) ? &plugin : NULL;
}
