/* Subsets built on the GPU: the functions that acf_plugin offers; see subset.h and tape.h. */
#ifndef ACF_TENSOR_SUBSET_CUH
#define ACF_TENSOR_SUBSET_CUH

#include "device/cuda.cuh"

/* Needs N, D and T of *u, and sets the rest; b and m (N,D) are in device memory, or NULL. Rows that do not fit into
 * T model nothing and are counted by acf_cuda_left_out. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_cuda_subset_build(acf_tape *t, const uint8_t *b, const uint8_t *m, acf_subset *u);

/* The same for a sequence of all present cells (acf_subset_order). */
acf_status acf_cuda_subset_order(acf_tape *t, const uint8_t *b, const uint8_t *m, const acf_order *o, acf_subset *u);

/* Needs N, D, T, whole and parity. */
acf_status acf_cuda_subset_split(acf_tape *t, acf_subset *half);

#endif
