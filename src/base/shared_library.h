/* Parts of acflow that are shared libraries of their own. Each has dependencies that only it needs (CUDA, cairo) and is
 * loaded on first use, so libacflow works without them.
 *
 * The file is found beside libacflow; for an executable that contains the library, beside it and in its ../lib, where
 * it is installed. The path is always absolute: never from the working directory, never through LD_LIBRARY_PATH. The
 * file exports one function, its entry. Its result begins with an ABI number and a version, which must be the
 * library's. Every mistake gives a sentence (ACF_EDEVICE), never a crash.
 *
 * Threads: several may load at once. A part is never unloaded. */
#ifndef ACF_BASE_SHARED_LIBRARY_H
#define ACF_BASE_SHARED_LIBRARY_H

#include "base/status.h"

#include <limits.h>

typedef struct acf_shared_library {
    const char *file;  /* "libacflow_cuda.so" */
    const char *entry; /* "acflow_cuda_plugin" */
    const char *build; /* the command that makes it: "make cuda" */
    int abi;           /* increased when a struct that both sides use changes and the version does not */
} acf_shared_library;

/* Where the file is: absolute, without links in its folder. Fails: ACF_EDEVICE. */
acf_status acf_shared_library_find(const acf_shared_library *l, char path[PATH_MAX]);

/* Loads the file; path is absolute. Gives the address of its entry, a function (copy it with memcpy). Fails:
 * ACF_EDEVICE. */
acf_status acf_shared_library_open(const acf_shared_library *l, const char *path, void **entry);

/* Checks that the file was made for this library, before anything else of it is read. Fails: ACF_EDEVICE. */
acf_status acf_shared_library_check(const acf_shared_library *l, const char *path, int abi, const char *version);

#endif
