/* The options of acflow, one line each: the only place where an option's name, range, default and help are written.
 * Included by options.c alone. An option enters this list in the change that makes it do something.
 *
 *   name, type, min, max, default, choices, environment variable, flags, help */
#ifndef ACF_BASE_OPTION_TABLE_H
#define ACF_BASE_OPTION_TABLE_H

#include "base/log.h"

#define ACF_OPTIONS(X)                                                                                                 \
    X("threads", INT, 0, 1024, "0", NULL, "ACF_NUM_THREADS", 0,                                                        \
      "threads to compute with; 0 takes every core available")                                                         \
    X("log-level", CHOICE, 0, 0, "warn", ACF_LOG_LEVELS, NULL, 0, "least important message that is still shown")

#endif
