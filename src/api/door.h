/* The door of the public interface: every public function meets a NULL with a sentence instead of a crash. */
#ifndef ACF_API_DOOR_H
#define ACF_API_DOOR_H

#include "base/status.h"

#define ACF_NEED(pointer)                                                                                              \
    do {                                                                                                               \
        if (!(pointer)) return acf_fail(ACF_EUSAGE, "%s: '%s' is NULL", __func__, #pointer);                           \
    } while (0)

/* A caller's buffer may be NULL only to ask for the size. */
#define ACF_NEED_ROOM(out, cap)                                                                                        \
    do {                                                                                                               \
        if (!(out) && (cap) > 0)                                                                                       \
            return acf_fail(ACF_EUSAGE, "%s: '%s' is NULL with a capacity of %zu", __func__, #out, (size_t)(cap));     \
    } while (0)

#endif
