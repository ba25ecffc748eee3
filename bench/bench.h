/* Shared by the benchmarks: a clock, and an exit for calls that must not fail. */
#ifndef ACF_BENCH_H
#define ACF_BENCH_H

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline double now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

/* The same; with one thread the processor time, which other processes on a busy machine do not lengthen. */
static inline double bench_watch(int threads) {
    struct timespec ts;
    if (threads != 1) return now();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec;
}

static inline void need(acf_status status) {
    if (!status) return;
    fprintf(stderr, "bench: %s\n", acf_error());
    exit(acf_status_exit(status));
}

#endif
