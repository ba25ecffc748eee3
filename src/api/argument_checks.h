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

#endif
