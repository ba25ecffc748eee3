/* Setup for tests of table models: a small network with random weights, and a batch with random cells and masks. */
#ifndef ACF_HARNESS_NET_LAB_H
#define ACF_HARNESS_NET_LAB_H

#include "harness/lab.h"
#include "model/net.h"

/* Sets options, "name=value" each, ended by NULL; NULL: none. */
void acf_lab_set(acf_options *o, const char *const *settings);

typedef struct acf_net_lab {
    acf_device *dev;
    acf_tape *t;
    acf_net *net;
    acf_batch *batch; /* rows have the ids 1000, 1001, ... */
} acf_net_lab;

/* Weights differ from their initial values, which are close to the identity and would hide mistakes. settings:
 * "name=value" each, ended by NULL. column NULL: all real. */
void acf_net_lab_open(acf_net_lab *b, const char *const *settings, int64_t N, int64_t D, const acf_column *column);
void acf_net_lab_close(acf_net_lab *b);

/* log p of each row of the batch (N), until the next call; pass and record as in training, or NULL and false. */
const acf_real *acf_net_lab_logp(acf_net_lab *b, const acf_pass *pass, bool record);

#endif
