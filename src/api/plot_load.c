/* Finds and loads the plot library: see plot_load.h. */
#include "api/plot_load.h"

#include "base/shared_library.h"

#include <string.h>

/* NULL, except in a program that has the library linked in. */
#pragma weak acflow_plot_library

static const acf_shared_library file = {ACF_PLOT_FILE, ACF_PLOT_ENTRY, "make", ACF_PLOT_ABI};

static acf_status load(const acf_plot_library **out) {
    char path[PATH_MAX];
    void *symbol;
    acf_plot_entry entry;
    ACF_TRY(acf_shared_library_find(&file, path));
    ACF_TRY(acf_shared_library_open(&file, path, &symbol));
    memcpy(&entry, &symbol, sizeof entry); /* POSIX's form of this cast */
    const acf_plot_library *p = entry();
    ACF_TRY(acf_shared_library_check(&file, path, p->abi, p->version));
    *out = p;
    return ACF_OK;
}

acf_status acf_plot_load(const acf_plot_library **out) {
    if (acflow_plot_library) {
        *out = acflow_plot_library();
        return ACF_OK;
    }
    const acf_status status = load(out);
    return status == ACF_OK ? ACF_OK : acf_fail(status, "no picture can be drawn: %s", acf_error());
}

acf_status acf_plot_outcome(const acf_plot_library *plot, acf_status status) {
    acf_failure why;
    if (status == ACF_OK) return ACF_OK;
    plot->failure(&why);
    return acf_failure_restore(&why);
}
