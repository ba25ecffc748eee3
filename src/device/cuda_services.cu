/* The library's functions under their own names, for the plugin's host code: see plugin.h. */
#include "device/cuda.cuh"

#include <atomic>
#include <stdio.h>

static std::atomic<const acf_services *> library;

/* The plugin serves one copy of the library: a failure message belongs to a thread of that copy. */
bool acf_cuda_serve(const acf_services *host) {
    const acf_services *none = NULL;
    return library.compare_exchange_strong(none, host) || none == host;
}

extern "C" {

acf_status acf_fail(acf_status status, const char *fmt, ...) {
    char sentence[ACF_SENTENCE_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(sentence, sizeof sentence, fmt, ap);
    va_end(ap);
    return library.load()->fail(status, "%s", sentence);
}

void acf_assert_failed(const char *file, int line, const char *cond) {
    library.load()->assert_failed(file, line, cond);
    __builtin_unreachable(); /* it does not return */
}

#define ACF_SERVICE(result, name, parameters, arguments)                                                               \
    result name parameters { return library.load()->name arguments; }
ACF_SERVICES(ACF_SERVICE)
#undef ACF_SERVICE
}
