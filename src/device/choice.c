/* The choice of the device: see choice.h. */
#include "device/choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

acf_status acf_device_plugin(const acf_kernels_needed *need, const acf_plugin **out, int *count) {
    const acf_plugin *p;
    int n = 0;
    ACF_TRY(acf_plugin_load(need->services, need->count, &p));
    ACF_TRY(p->count(&n));
    if (n < 1) return acf_fail(ACF_EDEVICE, "the machine has no CUDA device");
    *out = p;
    *count = n;
    return ACF_OK;
}

/* The number in "cuda:N", 0 for "cuda"; -1 when it is neither. */
static int device_number(const char *name) {
    if (strcmp(name, "cuda") == 0) return 0;
    if (strncmp(name, "cuda:", 5) != 0 || name[5] < '0' || name[5] > '9') return -1;
    char *end;
    long n = strtol(name + 5, &end, 10);
    return *end || n > 9999 ? -1 : (int)n;
}

/* A missing GPU is an error only if the option names one. Otherwise the thread's last failure is restored. */
acf_status acf_device_choose(const char *name, const acf_kernels_needed *need, acf_choice *out) {
    const bool any = strcmp(name, "auto") == 0;
    const int n = any ? 0 : device_number(name);
    acf_choice c = {.kind = ACF_DEVICE_CPU};
    if (strcmp(name, "cpu") != 0 && n < 0)
        return acf_fail(ACF_EUSAGE, "the option 'device' is '%s'; expected auto, cpu, cuda or cuda:N", name);
    if (n >= 0) {
        int count = 0;
        acf_failure before;
        acf_failure_save(&before);
        if (acf_device_plugin(need, &c.plugin, &count)) {
            if (!any) snprintf(c.why, sizeof c.why, "%s", acf_error());
            acf_failure_restore(&before);
        } else if (n >= count) {
            return acf_fail(ACF_EDEVICE,
                            "the option 'device' is '%s', but the machine has %d CUDA device%s, from cuda:0", name,
                            count, count == 1 ? "" : "s");
        } else if (!any || need->covered(c.plugin))
            c.kind = ACF_DEVICE_CUDA, c.n = n;
    }
    *out = c;
    return ACF_OK;
}

acf_status acf_device_open(const char *name, const acf_kernels_needed *need, int threads, acf_device **out) {
    acf_choice c;
    ACF_TRY(acf_device_choose(name, need, &c));
    if (c.kind == ACF_DEVICE_CPU) return acf_device_open_cpu(threads, out);
    if (threads < 0) return acf_fail(ACF_EUSAGE, "%d threads; expected 0 (all cores) or more", threads);
    ACF_TRY(c.plugin->open(c.n, out));
    (*out)->threads = threads ? threads : acf_cores();
    return ACF_OK;
}
