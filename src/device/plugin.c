/* Loading the plugin: see plugin.h. */
#include "device/plugin.h"

#include "base/shared_library.h"

#include <string.h>

static const acf_shared_library library = {ACF_PLUGIN_FILE, ACF_PLUGIN_ENTRY, "make cuda", ACF_PLUGIN_ABI};

/* Checks that the plugin is compatible. The version is checked first: with another version no other field can be
 * trusted. */
static acf_status check(const char *path, const acf_plugin *p, int n_kernels) {
    ACF_TRY(acf_shared_library_check(&library, path, p->abi, p->version));
    if (p->real_bytes != (int)sizeof(acf_real))
        return acf_fail(ACF_EDEVICE, "'%s' has numbers of %d bytes, this library has %d", path, p->real_bytes,
                        (int)sizeof(acf_real));
    if (p->n_kernels != n_kernels)
        return acf_fail(ACF_EDEVICE, "'%s' has %d operations, this library has %d; build both from the same sources",
                        path, p->n_kernels, n_kernels);
    return ACF_OK;
}

acf_status acf_plugin_load_file(const char *path, const acf_services *host, int n_kernels, const acf_plugin **out) {
    acf_plugin_entry entry;
    void *symbol;
    ACF_TRY(acf_shared_library_open(&library, path, &symbol));
    memcpy(&entry, &symbol, sizeof entry); /* POSIX's substitute for a cast */
    const acf_plugin *p = entry(host);
    if (!p) return acf_fail(ACF_EDEVICE, "'%s' serves another copy of the library in this process", path);
    ACF_TRY(check(path, p, n_kernels));
    *out = p;
    return ACF_OK;
}

acf_status acf_plugin_load(const acf_services *host, int n_kernels, const acf_plugin **out) {
    char path[PATH_MAX];
    ACF_TRY(acf_shared_library_find(&library, path));
    return acf_plugin_load_file(path, host, n_kernels, out);
}
