/* The table of operations: see ops.h. */
#include "ops/ops.h"

const acf_op *const acf_ops[ACF_OP_COUNT] = {
#define ACF_OP(name) &acf_op_##name,
#include "ops/ops_list.h"
#undef ACF_OP
};
