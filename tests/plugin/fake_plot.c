/* A library that draws and does not fit, for tests/cli/plot-library.sh: what is wrong with it is said on the compiler's
 * command line. */
#include "plot/plot_library.h"

#include <stdio.h>
#include <string.h>

#ifndef ABI
#define ABI ACF_PLOT_ABI
#endif
#ifndef VERSION
#define VERSION ACF_VERSION
#endif

static void failure(acf_failure *out) {
    *out = (acf_failure){.status = ACF_EIO};
    snprintf(out->sentence, sizeof out->sentence, "the fake pen is dry");
}

static acf_status missing(const char *path, const acf_plot_options *o, const acf_figure_table *t) {
    (void)path, (void)o, (void)t;
    return ACF_EIO;
}

static const acf_plot_library library = {.abi = ABI, .version = VERSION, .failure = failure, .missing = missing};

const acf_plot_library *ENTRY(void);
__attribute__((visibility("default"))) const acf_plot_library *ENTRY(void) { return &library; }
