/* Finds and loads a part of acflow: see shared_library.h. */
#define _GNU_SOURCE /* dladdr1 */
#include "base/shared_library.h"

#include "base/text.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder that this code was loaded from, absolute and without links, and whether it is the main program's; false if
 * unknown. The loader's name may be relative (a library found through a relative rpath) and would then depend on the
 * current working directory, so it is not used. The main program has no name there. */
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

/* folder/below/file; false if it does not exist. No file has a path longer than the buffer. */
static bool in_folder(const char *folder, const char *below, const char *file, char out[PATH_MAX]) {
    int n = snprintf(out, PATH_MAX, "%s%s/%s", folder, below, file);
    return n > 0 && n < PATH_MAX && access(out, F_OK) == 0;
}

acf_status acf_shared_library_find(const acf_shared_library *l, char path[PATH_MAX]) {
    char here[PATH_MAX];
    bool program;
    if (!own_folder(here, &program))
        return acf_fail(ACF_EDEVICE, "%s cannot be found, because the folder of the library is unknown", l->file);
    if (in_folder(here, "", l->file, path) || (program && in_folder(here, "/../lib", l->file, path))) return ACF_OK;
    return acf_fail(ACF_EDEVICE, "there is no %s in %s%s; '%s' builds it", l->file, here[0] ? here : "/",
                    program ? " or the folder ../lib of it" : "", l->build);
}

/* RTLD_LOCAL keeps its names private. RTLD_NOW: a missing dependency is a message here, not a crash later.
 * RTLD_NODELETE: it stays loaded, as CUDA cannot be unloaded. */
acf_status acf_shared_library_open(const acf_shared_library *l, const char *path, void **entry) {
    ACF_ASSERT(path[0] == '/');
    void *file = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!file) return acf_fail(ACF_EDEVICE, "'%s' cannot be loaded: %s", path, dlerror());
    *entry = dlsym(file, l->entry);
    dlclose(file);
    if (!*entry) return acf_fail(ACF_EDEVICE, "'%s' is no plugin of acflow: it has no '%s'", path, l->entry);
    return ACF_OK;
}

acf_status acf_shared_library_check(const acf_shared_library *l, const char *path, int abi, const char *version) {
    char seen[ACF_EXCERPT_MAX];
    if (abi == l->abi && strcmp(version, ACF_VERSION) == 0) return ACF_OK;
    return acf_fail(ACF_EDEVICE,
                    "'%s' is of version %s (interface %d), the library of %s (%d); build both from the same sources",
                    path, acf_text_excerpt(seen, version), abi, ACF_VERSION, l->abi);
}
