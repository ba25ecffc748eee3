/* Dropout: zeroes numbers at random while training and scales the others, so that the mean stays. */
#ifndef ACF_OPS_DROPOUT_H
#define ACF_OPS_DROPOUT_H

#include "base/rng.h"
#include "device/cpu.h"
#include "ops/ops.h"

/* y = x k / (1 - rate), k = 0 with probability rate and else 1; any shape. On a tape that does not record, and for rate 0,
 * it is the identity: x itself comes back.
 *
 * k is a function of the place, so it is the same for any thread count. Row r and column c of x take word c mod 4 of the
 * block at (key.seed, stream DROPOUT, row key.row + r, column key.column + c/4, key.draw): the training step goes into
 * draw, and layers of one model need different columns (such as layer << 20), or they would drop the same numbers.
 * key.stream is not read. */
acf_tensor *acf_dropout(acf_tape *t, acf_tensor *x, double rate, acf_place key);

/* y (M,C) from x (M,C); keep (M,C), when not NULL, receives k for the backward. */
void acf_dropout_fwd_cpu(const acf_device *dev, acf_real *y, uint8_t *keep, const acf_real *x, double rate, acf_place key,
                         int64_t M, int64_t C);
/* dx += dy keep / (1 - rate) over n elements. */
void acf_dropout_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const uint8_t *keep, double rate,
                         int64_t n);

#endif
