/* The door of the public interface: every public function meets a NULL with a sentence instead of a crash. */
#ifndef ACF_API_ARGUMENT_CHECKS_H
#define ACF_API_ARGUMENT_CHECKS_H

#include "device/device.h"

#define ACF_NEED(pointer)                                                                                              \
    do {                                                                                                               \
        if (!(pointer)) return acf_fail(ACF_EUSAGE, "%s: '%s' is NULL", __func__, #pointer);                           \
    } while (0)

/* A caller's buffer may be NULL only to ask for the size. */
#define ACF_NEED_BUFFER(out, cap)                                                                                      \
    do {                                                                                                               \
        if (!(out) && (cap) > 0)                                                                                       \
            return acf_fail(ACF_EUSAGE, "%s: '%s' is NULL with a capacity of %zu", __func__, #out, (size_t)(cap));     \
    } while (0)

/* Questions about columns are none that a model of images answers. */
#define ACF_NEED_TABLE(m)                                                                                              \
    do {                                                                                                               \
        if ((m)->image)                                                                                                \
            return acf_fail(ACF_EUSAGE, "the model is one of images, not of a table: ask it about images");            \
    } while (0)

/* The option 'answers' of o (NULL: its default) becomes the model's. Fails: ACF_EDEVICE. */
acf_status acf_api_set_query_options(struct acf_model *m, const struct acf_options *o);

/* What a fit ends with: the model, which owns dev from now on, where training got far enough for one, also after some failures (acflow.h says
 * which); else both go. m may be NULL. */
void acf_api_hand_out(struct acf_model *m, acf_device *dev, struct acf_model **out);

#endif
