/* Command lines: options from the table, and a program's own flags, read out of argv in one pass.
 *
 * Both kinds are known to the same reader, so a mistyped name is compared with all of them. */
#ifndef ACF_BASE_FLAGS_H
#define ACF_BASE_FLAGS_H

#include "base/options.h"

/* See acf_options_parse in acflow.h: same contract, arguments already checked. */
acf_status acf_flags_parse(acf_options *o, const acf_flag *flags, int n_flags, int argc, char **argv, int *n_rest);

/* Takes an object {"name": value} of options and flags, as a config file has it: all of it or, on failure, nothing. A flag that the command line
 * has given stays as it is there; texts live as long as o. See acf_options_load_flags in acflow.h.
 * Fails: from.status, ACF_EMEMORY. */
acf_status acf_flags_from_json(acf_options *o, const acf_flag *flags, int n_flags, const acf_elsewhere *elsewhere,
                               int n_elsewhere, acf_json_source from, const json_t *object);

#endif
