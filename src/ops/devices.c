/* The choice of the device: see devices.h. It is above the operations, because a plugin must have kernels for them. */
#include "ops/devices.h"

#include "ops/ops.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const acf_services services = {.fail = acf_fail,
                                      .assert_failed = acf_assert_failed,
#define ACF_SERVICE(result, name, parameters, arguments) .name = name,
                                      ACF_SERVICES(ACF_SERVICE)
#undef ACF_SERVICE
};

acf_status acf_device_plugin(const acf_plugin **out, int *count) {
    const acf_plugin *p;
    int n = 0;
    ACF_TRY(acf_plugin_load(&services, ACF_OP_COUNT, &p));
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

/* True for operations that only models with GRUs use. */
static bool of_recurrence(int id) {
    return id == ACF_OP_gru_seq || id == ACF_OP_gru_step || id == ACF_OP_rnn_inverse || id == ACF_OP_rnn_mean ||
           id == ACF_OP_rnn_sample;
}

/* True if the device has a kernel for every operation that the model may use, and its derivative: whatever runs on
 * the CPU runs there. */
static bool complete(const acf_plugin *p, bool recurrent) {
    for (int i = 0; i < ACF_OP_COUNT; i++) {
        if (!recurrent && of_recurrence(i)) continue;
        if (!p->kernels[i].forward || (acf_ops[i]->cpu.backward && !p->kernels[i].backward)) return false;
    }
    return true;
}

/* A missing GPU is an error only if the option names one. Otherwise the thread's last failure is restored. */
acf_status acf_device_choose(const char *name, bool recurrent, acf_choice *out) {
    const bool any = strcmp(name, "auto") == 0;
    const int n = any ? 0 : device_number(name);
    acf_choice c = {.kind = ACF_DEVICE_CPU};
    if (strcmp(name, "cpu") != 0 && n < 0)
        return acf_fail(ACF_EUSAGE, "the option 'device' is '%s'; expected auto, cpu, cuda or cuda:N", name);
    if (n >= 0) {
        int count = 0;
        acf_failure before;
        acf_failure_save(&before);
        if (acf_device_plugin(&c.plugin, &count)) {
            if (!any) snprintf(c.why, sizeof c.why, "%s", acf_error());
            acf_failure_restore(&before);
        } else if (n >= count) {
            return acf_fail(ACF_EDEVICE,
                            "the option 'device' is '%s', but the machine has %d CUDA device%s, from cuda:0", name,
                            count, count == 1 ? "" : "s");
        } else if (!any || complete(c.plugin, recurrent))
            c.kind = ACF_DEVICE_CUDA, c.n = n;
    }
    *out = c;
    return ACF_OK;
}

acf_status acf_device_open(const char *name, bool recurrent, int threads, acf_device **out) {
    acf_choice c;
    ACF_TRY(acf_device_choose(name, recurrent, &c));
    if (c.kind == ACF_DEVICE_CPU) return acf_device_open_cpu(threads, out);
    if (threads < 0) return acf_fail(ACF_EUSAGE, "%d threads; expected 0 (all cores) or more", threads);
    ACF_TRY(c.plugin->open(c.n, out));
    (*out)->threads = threads ? threads : acf_cores();
    return ACF_OK;
}
