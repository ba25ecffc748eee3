/* The subcommands, in the order of the help. A new one is one file, one declaration in cli.h and one entry here; help,
 * man page, completion, "did you mean" and dispatch use the list. */
#include "cli/cli.h"

#include <stddef.h>

const cli_command *const cli_commands[] = {&cli_fit,  &cli_impute, &cli_score, &cli_sample, &cli_eval,
                                           &cli_plot, &cli_synth,  &cli_info,  &cli_gibbs,  NULL};
