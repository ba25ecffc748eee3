/* What a run of the networks is told besides its inputs: whether it trains, and then with what dropout. */
#ifndef ACF_NN_PASS_H
#define ACF_NN_PASS_H

#include "ops/dropout.h"

/* One run. NULL stands for inference: no dropout. */
typedef struct acf_pass {
    double dropout; /* rate in [0,1) */
    uint64_t seed;
    uint32_t step;  /* which training step: its own masks */
} acf_pass;

/* x with dropout. `site` tells the places of a model apart (below 4096), so that no two drop the same numbers. */
static inline acf_tensor *acf_pass_dropout(acf_tape *t, const acf_pass *pass, acf_tensor *x, uint32_t site) {
    if (!pass || pass->dropout <= 0) return x;
    return acf_dropout(t, x, pass->dropout, (acf_place){.seed = pass->seed, .column = site << 20, .draw = pass->step});
}

#endif
