/* A plugin that is not one, for tests/cli/devices.sh: what is wrong with it is said on the compiler's command line. */
#include "device/plugin.h"

#include "ops/ops.h"

#include <stdio.h>
#include <string.h>

#ifndef ABI
#define ABI ACF_PLUGIN_ABI
#endif
#ifndef VERSION
#define VERSION ACF_VERSION
#endif
#ifndef REAL
#define REAL sizeof(acf_real)
#endif
#ifndef KERNELS
#define KERNELS ACF_OP_COUNT
#endif
#ifndef DEVICES
#define DEVICES 2
#endif

static const acf_services *library;
static const acf_kernel none[ACF_OP_COUNT];

static acf_status count(int *out) {
    if (DEVICES < 0) return library->fail(ACF_EDEVICE, "the fake driver is asleep");
    *out = DEVICES;
    return ACF_OK;
}

static acf_status facts(int n, acf_device_facts *out) {
    *out = (acf_device_facts){.memory = (size_t)(n + 1) << 30, .major = 9};
    snprintf(out->name, sizeof out->name, "Fake %d", n);
    return ACF_OK;
}

static acf_status open_device(int n, acf_device **out) {
    (void)out;
    return library->fail(ACF_EMEMORY, "fake device %d has no memory", n);
}

static const acf_plugin plugin = {.abi = ABI,
                                  .version = VERSION,
                                  .real_bytes = REAL,
                                  .n_kernels = KERNELS,
                                  .kernels = none,
                                  .count = count,
                                  .facts = facts,
                                  .open = open_device};

const acf_plugin *ENTRY(const acf_services *host);
const acf_plugin *ENTRY(const acf_services *host) {
    library = host;
    return plugin.abi < 0 ? NULL : &plugin;
}
