/* The plot library (plot/plot_library.h), loaded when the first picture is drawn. */
#ifndef ACF_API_PLOT_LOAD_H
#define ACF_API_PLOT_LOAD_H

#include "plot/plot_library.h"

/* Gives the library, which stays valid. Fails: ACF_EDEVICE with a sentence that names what is missing. */
acf_status acf_plot_load(const acf_plot_library **out);

/* Forwards the result of one of its functions: a failure becomes this thread's last one, with its sentence. */
acf_status acf_plot_outcome(const acf_plot_library *plot, acf_status status);

#endif
