/* Argument checks of the public interface: a NULL gets a sentence instead of a crash. */
#ifndef ACF_API_ARGUMENT_CHECKS_H
#define ACF_API_ARGUMENT_CHECKS_H

#include "device/device.h"

#define ACF_NEED(pointer)                                                                                              \
    do {                                                                                                               \
        if (!(pointer)) return acf_fail(ACF_EUSAGE, "%s: '%s' is NULL", __func__, #pointer);                           \
    } while (0)

/* A caller's buffer may be NULL only to query the size. */
#define ACF_NEED_BUFFER(out, cap)                                                                                      \
    do {                                                                                                               \
        if (!(out) && (cap) > 0)                                                                                       \
            return acf_fail(ACF_EUSAGE, "%s: '%s' is NULL with a capacity of %zu", __func__, #out, (size_t)(cap));     \
    } while (0)

/* Refuses a model of images where columns are needed. */
#define ACF_NEED_TABLE(m)                                                                                              \
    do {                                                                                                               \
        if ((m)->image) return acf_fail(ACF_EUSAGE, "the model is a model of images; expected a model of a table");    \
    } while (0)

/* Sets the query options of m from o (NULL: the defaults). Fails: ACF_EDEVICE. */
acf_status acf_api_set_query_options(struct acf_model *m, const struct acf_options *o);

/* Ends a fit. Gives the model, which then owns dev, if training came far enough for one, also after some failures
 * (acflow.h lists them). Otherwise frees both. m may be NULL. */
void acf_api_hand_out(struct acf_model *m, acf_device *dev, struct acf_model **out);

#endif
