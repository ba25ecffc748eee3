/* Parts of acflow that are shared libraries of their own. Each carries what only it needs (CUDA, cairo) and is loaded
 * when it is asked for, so that libacflow works without.
 *
 * The file is found beside libacflow; for an executable that contains the library, beside it and in its ../lib, where
 * it is installed. Always by an absolute path: never in the working directory, never through LD_LIBRARY_PATH. It
 * exports one function, its entry. What the entry returns begins with an ABI number and a version, which must be the
 * library's. Whatever is wrong is a sentence (ACF_EDEVICE), never a crash.
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
    int abi;           /* counted up when a struct that both sides use changes while the version stays */
} acf_shared_library;

/* Where the file is: absolute, without links in its folder. Fails: ACF_EDEVICE. */
acf_status acf_shared_library_find(const acf_shared_library *l, char path[PATH_MAX]);

/* Loads the file; path is absolute. Gives the address of its entry, a function (copy it with memcpy). Fails:
 * ACF_EDEVICE. */
acf_status acf_shared_library_open(const acf_shared_library *l, const char *path, void **entry);

/* Is what came from the file made for this library? Asked before anything else of it is read. Fails: ACF_EDEVICE. */
acf_status acf_shared_library_check(const acf_shared_library *l, const char *path, int abi, const char *version);

#endif
