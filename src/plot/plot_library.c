/* The entry of libacflow_plot.so: see plot_library.h. */
#include "plot/plot_library.h"

#include "plot/figures.h"

static const acf_plot_library library = {.abi = ACF_PLOT_ABI,
                                         .version = ACF_VERSION,
                                         .failure = acf_failure_save,
                                         .missing = acf_figure_missing,
                                         .imputed = acf_figure_imputed,
                                         .query = acf_figure_from_query,
                                         .training = acf_figure_training,
                                         .pairs = acf_figure_pairs,
                                         .clouds = acf_figure_clouds,
                                         .images = acf_figure_images};

const acf_plot_library *acflow_plot_library(void) { return &library; }
