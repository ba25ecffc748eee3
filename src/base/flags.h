/* Command lines: options from the table, and a program's own flags, read out of argv in one pass.
 *
 * Both kinds are known to the same reader, so a mistyped name is compared with all of them. */
#ifndef ACF_BASE_FLAGS_H
#define ACF_BASE_FLAGS_H

#include "base/options.h"

/* See acf_options_parse in acflow.h: same contract, arguments already checked. */
acf_status acf_flags_parse(acf_options *o, const acf_flag *flags, int n_flags, int argc, char **argv, int *n_rest);

#endif
