/* The list of operations as an enum and as a table. ALL derivatives of acflow live in this folder: one home per family
 * (linear.h linear.c linear_test.c), formulas in docs/math.md, the way to add one in docs/adding-an-operation.md. */
#ifndef ACF_OPS_OPS_H
#define ACF_OPS_OPS_H

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

/* By id. */
extern const acf_op *const acf_ops[ACF_OP_COUNT];

#endif
