/* The two forms of a transformer's block on the GPU: all in float, and with bf16 between products. See
 * transformer_block.h. */
#ifndef ACF_OPS_TRANSFORMER_BLOCK_CUH
#define ACF_OPS_TRANSFORMER_BLOCK_CUH

#include "ops/ops.cuh"

extern "C" {
#include "ops/transformer_block.h"
}

/* The form of transformer_narrow.cu, with bf16 between products. True for the device's precision bf16 and rows and
 * heads that its attention supports. */
bool acf_block_narrow_fits(const acf_tape *t, const acf_node *n);
acf_status acf_block_narrow_fwd(acf_tape *t, acf_node *n);
acf_status acf_block_narrow_bwd(acf_tape *t, acf_node *n);

#endif
