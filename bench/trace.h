/* Working time of a GPU: the times of every kernel and copy, from CUPTI, NVIDIA's tracing library, which comes with the
 * CUDA toolkit and with PyTorch. It is loaded at run time, so building does not need it. Only the small part of its
 * interface (stable since CUDA 5.5) used here is declared. Kernels of a graph are recorded one by one.
 *
 *     if (bench_trace_open(path) == NULL) {          else the reason why there is none
 *         bench_trace_begin();
 *         ... work, and a sync ...
 *         double seconds = bench_trace_end();        time the device worked; overlapping work counts once
 *     }
 *
 * Tracing slows the host down: measure wall time in a run without. One file of a program includes this. */
#ifndef ACF_BENCH_TRACE_H
#define ACF_BENCH_TRACE_H

#include "bench.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

enum { BENCH_MEMCPY = 1, BENCH_MEMSET = 2, BENCH_KERNEL = 10 };

/* The common beginning of records of these three kinds. */
typedef struct bench_record {
    uint32_t kind, other[3];
    uint64_t start, end; /* nanoseconds */
} bench_record;

typedef struct bench_span {
    uint64_t start, end;
} bench_span;

static struct {
    int (*enable)(int kind), (*disable)(int kind), (*flush)(uint32_t flag);
    int (*next)(uint8_t *buffer, size_t bytes, bench_record **record);
    bench_span *span;
    size_t n, capacity;
} bench_tracer;

static void bench_trace_request(uint8_t **buffer, size_t *size, size_t *records) {
    enum { BYTES = 4 << 20 };
    *buffer = aligned_alloc(8, BYTES);
    *size = *buffer ? BYTES : 0;
    *records = 0;
}

static void bench_trace_keep(bench_span s) {
    if (bench_tracer.n == bench_tracer.capacity) {
        size_t capacity = bench_tracer.capacity ? 2 * bench_tracer.capacity : 4096;
        bench_span *more = realloc(bench_tracer.span, capacity * sizeof *more);
        if (!more) return;
        bench_tracer.span = more, bench_tracer.capacity = capacity;
    }
    bench_tracer.span[bench_tracer.n++] = s;
}

static void bench_trace_done(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    bench_record *r = NULL;
    (void)context, (void)stream, (void)size;
    while (valid && bench_tracer.next(buffer, valid, &r) == 0)
        if ((r->kind == BENCH_KERNEL || r->kind == BENCH_MEMCPY || r->kind == BENCH_MEMSET) && r->end > r->start)
            bench_trace_keep((bench_span){r->start, r->end});
    free(buffer);
}

/* path NULL: the loader's search path. Returns NULL on success, else the reason. */
static const char *bench_trace_open(const char *path) {
    void *lib = dlopen(path ? path : "libcupti.so.13", RTLD_NOW | RTLD_LOCAL);
    int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
    if (!lib) return dlerror();
    *(void **)&callbacks = dlsym(lib, "cuptiActivityRegisterCallbacks");
    *(void **)&bench_tracer.enable = dlsym(lib, "cuptiActivityEnable");
    *(void **)&bench_tracer.disable = dlsym(lib, "cuptiActivityDisable");
    *(void **)&bench_tracer.flush = dlsym(lib, "cuptiActivityFlushAll");
    *(void **)&bench_tracer.next = dlsym(lib, "cuptiActivityGetNextRecord");
    if (!callbacks || !bench_tracer.enable || !bench_tracer.disable || !bench_tracer.flush || !bench_tracer.next)
        return "it lacks the functions of the activity interface";
    return callbacks(bench_trace_request, bench_trace_done) == 0 ? NULL : "it refused to register callbacks";
}

/* False: this machine cannot trace. */
static bool bench_trace_begin(void) {
    static const int kinds[] = {BENCH_KERNEL, BENCH_MEMCPY, BENCH_MEMSET};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (bench_tracer.enable(kinds[k]) != 0) return false;
    bench_tracer.flush(1); /* earlier records do not count */
    bench_tracer.n = 0;
    return true;
}

static int bench_by_start(const void *a, const void *b) {
    uint64_t x = ((const bench_span *)a)->start, y = ((const bench_span *)b)->start;
    return (x > y) - (x < y);
}

/* The length of the union of n spans, which are sorted in place. */
static double bench_covered(bench_span *s, size_t n) {
    uint64_t sum = 0, until = 0;
    if (n) qsort(s, n, sizeof *s, bench_by_start);
    for (size_t k = 0; k < n; k++) {
        uint64_t from = s[k].start > until ? s[k].start : until;
        if (s[k].end > from) sum += s[k].end - from, until = s[k].end;
    }
    return 1e-9 * (double)sum;
}

/* Seconds the device worked since begin, 0 if nothing was recorded; *launches: kernels and copies. */
static double bench_trace_end(size_t *launches) {
    bench_tracer.flush(1);
    bench_tracer.disable(BENCH_KERNEL), bench_tracer.disable(BENCH_MEMCPY), bench_tracer.disable(BENCH_MEMSET);
    *launches = bench_tracer.n;
    return bench_covered(bench_tracer.span, bench_tracer.n);
}

#endif
