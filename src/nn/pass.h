/* Inputs of a network run besides data: whether it trains, and then with which dropout. */
#ifndef ACF_NN_PASS_H
#define ACF_NN_PASS_H

#include "ops/dropout.h"

/* One run. NULL stands for inference: no dropout. */
typedef struct acf_pass {
    double dropout; /* rate in [0,1) */
    uint64_t seed;
    uint32_t step;          /* training step: each has its own masks */
    const uint32_t *now;    /* the same in device memory; NULL: `step` is used */
    const uint64_t *row_id; /* (N) in device memory; filled in by acf_net_view */
} acf_pass;

/* The sites of dropout in a model, each with numbers for a network's layers. */
enum {
    ACF_SITE_GAUSSIAN = 32,  /* the MLP of the Gaussian likelihood */
    ACF_SITE_CATEGORY = 40,  /* the head of the categories */
    ACF_SITE_AR = 48,        /* the GRU layers of the autoregressive likelihood, or the layers of deep sets */
    ACF_SITE_CLASS_SET = 56, /* the layers of the categories' deep sets network */
    ACF_SITE_FLOW = 64,      /* transformation i of a chain: its MLPs or GRU layers, from 64 + 16 i on */
    ACF_SITE_FLOW_APART = 16,
    ACF_SITE_TRANSFORMER = 2048 /* two for each block of a transformer */
};

/* The dropout of a site: none in inference. */
static inline acf_drop acf_pass_drop(const acf_pass *pass, uint32_t site) {
    if (!pass) return (acf_drop){.site = site};
    return (acf_drop){.rate = pass->dropout,
                      .seed = pass->seed,
                      .step = pass->step,
                      .now = pass->now,
                      .site = site,
                      .row_id = pass->row_id};
}

/* x with dropout. */
static inline acf_tensor *acf_pass_dropout(acf_tape *t, const acf_pass *pass, acf_tensor *x, uint32_t site) {
    acf_drop d = acf_pass_drop(pass, site);
    return acf_dropout(t, x, &d);
}

#endif
