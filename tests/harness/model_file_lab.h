/* Small models for tests of the layers above them: networks of a few units, and an encoder fitted to a table. */
#ifndef ACF_HARNESS_MODEL_FILE_LAB_H
#define ACF_HARNESS_MODEL_FILE_LAB_H

#include "model/model.h"

/* likelihood NULL: the usual one. shape NULL: columns are encoded by mean and scale alone. Weights are moved by random
 * amounts up to `spread`, by the seed, because initial values are close to the identity and would hide mistakes. Free
 * with acf_model_free. */
acf_model *acf_lab_fitted(acf_device *dev, const acf_table *t, const char *likelihood, const acf_encoding *shape,
                          uint64_t seed, double spread);

#endif
