/* A fit from beginning to end: options, device, held-out cells, encoder and network, then the training of all ensemble
 * members, donors and parameter draws. What acf_model_fit and its relatives in acflow.h do once their arguments are
 * checked; the contracts are there. */
#ifndef ACF_TRAIN_FIT_MODEL_H
#define ACF_TRAIN_FIT_MODEL_H

#include "image/images.h"
#include "table/table.h"

/* The options that a model records: the values of o, and those of the preset for options that o does not set. Gives
 * *out. Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_fit_options(const acf_options *o, acf_options **out);

/* The same of a model of images, also with those of the model that the option `init-from` names. */
acf_status acf_fit_image_options(const acf_options *o, acf_options **out);

/* Fits a table; valid may be NULL. *out is NULL if there is no model. */
acf_status acf_fit_table(const acf_table *t, const acf_table *valid, const acf_options *o, acf_fit_callback callback,
                         void *ctx, acf_model **out);

/* Fits images. */
acf_status acf_fit_image_model(const acf_images *im, const acf_options *o, acf_fit_callback callback, void *ctx,
                               acf_model **out);

#endif
