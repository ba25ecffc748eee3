/* Setup for tests of training: a table of correlated Gaussians, a small network and its trainer. */
#ifndef ACF_HARNESS_TRAIN_LAB_H
#define ACF_HARNESS_TRAIN_LAB_H

#include "harness/lab.h"
#include "model/config.h"
#include "train/trainer.h"

typedef struct acf_train_lab {
    acf_device *dev;
    acf_options *o; /* model and training options in one set */
    acf_table *table;
    acf_table *valid; /* a second table, to be set before ready, which takes it; NULL: none */
    acf_row_split split;
    acf_holdout *hold;
    acf_encoder *encoder;
    acf_net *net;
    acf_trainer *tr;
} acf_train_lab;

/* Opens the device and the options: a small network, 32 rows a step and 30 steps. settings: "name=value" each, ended by
 * NULL. With 2 threads the work is large enough to start them, for tests that
 * the number of threads does not change results. */
void acf_train_lab_open(acf_train_lab *l, int threads, const char *const *settings);
/* Takes the table and makes everything that depends on it. */
void acf_train_lab_ready(acf_train_lab *l, acf_table *table);
void acf_train_lab_close(acf_train_lab *l);

/* x (N,D) = means + A·normal, A lower triangular with known entries; draws by (seed, row, column). */
double acf_train_lab_factor(int64_t j, int64_t k);
void acf_train_lab_fill(double *x, int64_t N, int64_t D, uint64_t seed);
/* A table of it, in which a cell is missing with this probability; missing cells hold `hidden` in the array it was made
 * from. */
acf_table *acf_train_lab_table(int64_t N, int64_t D, double missing, double hidden, uint64_t seed);

/* Equal bits in the slabs value, m, v and moving average of both. */
void acf_train_lab_same(const acf_train_lab *a, const acf_train_lab *b);

#endif
