/* The library that draws (plot/plot_library.h), loaded when a picture is asked for. */
#ifndef ACF_API_PLOT_LOAD_H
#define ACF_API_PLOT_LOAD_H

#include "plot/plot_library.h"

/* Gives the library, which stays valid. Fails: ACF_EDEVICE with a sentence that says what is missing. */
acf_status acf_plot_load(const acf_plot_library **out);

/* Passes on what one of its functions returned: a failure becomes this thread's last one, with its sentence. */
acf_status acf_plot_outcome(const acf_plot_library *plot, acf_status status);

#endif
