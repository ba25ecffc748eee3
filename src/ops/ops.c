/* The table of operations: see ops.h. */
#include "ops/ops.h"

const acf_op *const acf_ops[ACF_OP_COUNT] = {
#define ACF_OP(name) &acf_op_##name,
#include "ops/ops_list.h"
#undef ACF_OP
};

/* True for operations that only models with GRUs use. */
static bool of_recurrence(int id) {
    return id == ACF_OP_gru_seq || id == ACF_OP_gru_step || id == ACF_OP_rnn_inverse || id == ACF_OP_rnn_mean ||
           id == ACF_OP_rnn_sample;
}

/* True if the plugin has a kernel for every operation that the model may use, and its derivative: whatever runs on the
 * CPU runs there. */
static bool covered(const acf_plugin *p, bool recurrent) {
    for (int i = 0; i < ACF_OP_COUNT; i++) {
        if (!recurrent && of_recurrence(i)) continue;
        if (!p->kernels[i].forward || (acf_ops[i]->cpu.backward && !p->kernels[i].backward)) return false;
    }
    return true;
}

static bool all_covered(const acf_plugin *p) { return covered(p, true); }
static bool plain_covered(const acf_plugin *p) { return covered(p, false); }

static const acf_services services = {.fail = acf_fail,
                                      .assert_failed = acf_assert_failed,
#define ACF_SERVICE(result, name, parameters, arguments) .name = name,
                                      ACF_SERVICES(ACF_SERVICE)
#undef ACF_SERVICE
};

const acf_kernels_needed *acf_ops_needed(bool recurrent) {
    static const acf_kernels_needed all = {ACF_OP_COUNT, &services, all_covered},
                                    plain = {ACF_OP_COUNT, &services, plain_covered};
    return recurrent ? &all : &plain;
}
