/* The list of operations as an enum and as a table. ALL derivatives of acflow are in this folder, one file set per
 * family (linear.h linear.c linear_test.c). Formulas are in docs/math.md; docs/adding-an-operation.md shows how to add
 * one. */
#ifndef ACF_OPS_OPS_H
#define ACF_OPS_OPS_H

#include "device/choice.h"
#include "tensor/params.h"
#include "tensor/tape.h"

enum {
#define ACF_OP(name) ACF_OP_##name,
#include "ops/ops_list.h"
#undef ACF_OP
    ACF_OP_COUNT
};

#define ACF_OP(name) extern const acf_op acf_op_##name;
#include "ops/ops_list.h"
#undef ACF_OP

/* Indexed by id. */
extern const acf_op *const acf_ops[ACF_OP_COUNT];

/* The kernels that a model may need on a GPU: whatever runs on the CPU runs there. recurrent: it has GRUs
 * (acf_net_recurrent); without them their operations are not needed. */
const acf_kernels_needed *acf_ops_needed(bool recurrent);

#endif
