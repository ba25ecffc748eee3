/* Finding and loading the plugin: see plugin.h. */
#define _GNU_SOURCE /* dladdr1 */
#include "device/plugin.h"

#include "base/text.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where ------------------------------------------------------------------------------------------------------- */

/* The folder that this code was loaded from, absolute and without links, and whether that is the main program's; false where it cannot be
 * said. The name the loader knows may be relative (a library found through a relative rpath), and would then depend on the
 * working directory of now: not taken. The main program has no name there. */
static bool own_folder(char out[PATH_MAX], bool *program) {
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1((void *)(uintptr_t)own_folder, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) return false;
    *program = !map->l_name || !map->l_name[0];
    const char *name = *program ? "/proc/self/exe" : map->l_name;
    if (name[0] != '/' || !realpath(name, out)) return false;
    *strrchr(out, '/') = '\0';
    return true;
}

/* folder/below/libacflow_cuda.so; false when it is not there. A path too long for the buffer is one that no file can have. */
static bool in_folder(const char *folder, const char *below, char out[PATH_MAX]) {
    int n = snprintf(out, PATH_MAX, "%s%s/%s", folder, below, ACF_PLUGIN_FILE);
    return n > 0 && n < PATH_MAX && access(out, F_OK) == 0;
}

static acf_status find(char out[PATH_MAX]) {
    char here[PATH_MAX];
    bool program;
    if (!own_folder(here, &program))
        return acf_fail(ACF_EDEVICE,
                        "%s is looked for beside the library, but where that was loaded from cannot be said",
                        ACF_PLUGIN_FILE);
    if (in_folder(here, "", out) || (program && in_folder(here, "/../lib", out))) return ACF_OK;
    return acf_fail(ACF_EDEVICE, "there is no %s in %s%s; 'make cuda' builds it", ACF_PLUGIN_FILE, here[0] ? here : "/",
                    program ? " or the folder ../lib of it" : "");
}

/* ---- what -------------------------------------------------------------------------------------------------------- */

/* Is this what the library can work with? The version first: with another one nothing else can be trusted. */
static acf_status check(const char *path, const acf_plugin *p, int n_kernels) {
    char seen[ACF_EXCERPT_MAX];
    if (p->abi != ACF_PLUGIN_ABI || strcmp(p->version, ACF_VERSION) != 0)
        return acf_fail(
            ACF_EDEVICE,
            "'%s' is of version %s (interface %d), the library of %s (%d); build both from the same sources", path,
            acf_text_excerpt(seen, p->version), p->abi, ACF_VERSION, ACF_PLUGIN_ABI);
    if (p->real_bytes != (int)sizeof(acf_real))
        return acf_fail(ACF_EDEVICE, "'%s' computes with %d bytes a number, this library with %d", path, p->real_bytes,
                        (int)sizeof(acf_real));
    if (p->n_kernels != n_kernels)
        return acf_fail(ACF_EDEVICE, "'%s' knows %d operations, the library %d; build both from the same sources", path,
                        p->n_kernels, n_kernels);
    return ACF_OK;
}

/* RTLD_LOCAL: its names are its own. RTLD_NOW: a CUDA library that is missing is a sentence here and not a crash later. */
acf_status acf_plugin_load_file(const char *path, const acf_services *host, int n_kernels, const acf_plugin **out) {
    acf_plugin_entry entry;
    ACF_ASSERT(path[0] == '/');
    void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!file) return acf_fail(ACF_EDEVICE, "'%s' cannot be loaded: %s", path, dlerror());
    void *symbol = dlsym(file, ACF_PLUGIN_ENTRY);
    if (!symbol) {
        dlclose(file);
        return acf_fail(ACF_EDEVICE, "'%s' is no plugin of acflow: it has no '%s'", path, ACF_PLUGIN_ENTRY);
    }
    memcpy(&entry, &symbol, sizeof entry); /* what POSIX has instead of a cast */
    const acf_plugin *p = entry(host);
    dlclose(file); /* stays loaded: RTLD_NODELETE */
    if (!p) return acf_fail(ACF_EDEVICE, "'%s' serves another copy of the library in this process", path);
    ACF_TRY(check(path, p, n_kernels));
    *out = p;
    return ACF_OK;
}

acf_status acf_plugin_load(const acf_services *host, int n_kernels, const acf_plugin **out) {
    char path[PATH_MAX];
    ACF_TRY(find(path));
    return acf_plugin_load_file(path, host, n_kernels, out);
}
