/* What this library is and what it runs on, as JSON for programs and as lines for people. Cheap enough to call at any
 * time: one small file of /proc is read. */
#include "api/door.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/options.h"
#include "device/device.h"

#include <cblas.h>
#include <string.h>
#include <sys/resource.h>

#define CPUINFO_BYTES_MAX ((size_t)1 << 22) /* a machine of a thousand cores writes about a megabyte */

/* What the compiler was told, as far as it matters for speed and numbers. */
#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#ifdef ACF_DOUBLE
#define PRECISION "double"
#else
#define PRECISION "float"
#endif

#if defined(__AVX512F__)
#define VECTORS "avx512"
#elif defined(__AVX2__)
#define VECTORS "avx2"
#elif defined(__SSE2__)
#define VECTORS "sse2"
#elif defined(__ARM_NEON)
#define VECTORS "neon"
#else
#define VECTORS "none"
#endif

#ifdef ACF_DEBUG
#define DEBUG_BUILD true
#else
#define DEBUG_BUILD false
#endif

typedef struct facts {
    char cpu[ACF_EXCERPT_MAX];
    int cores; /* that this process may run on */
    int64_t threads;
    const char *blas, *blas_core;
    uint64_t peak_bytes;
} facts;

/* The first "model name" of /proc/cpuinfo; ARM kernels write none. */
static void cpu_model(char out[ACF_EXCERPT_MAX]) {
    char *text;
    size_t n;
    acf_text_excerpt(out, "unknown");
    if (acf_file_read("/proc/cpuinfo", CPUINFO_BYTES_MAX, &text, &n) != ACF_OK) return;
    char *name = strstr(text, "model name");
    if (name && (name = strchr(name, ':'))) {
        name += 1 + strspn(name + 1, " \t");
        name[strcspn(name, "\n")] = '\0';
        acf_text_excerpt(out, name);
    }
    acf_release(text);
}

/* openblas_get_corename tells which kernels were picked at run time: the first thing to look at when it is slow. */
static void gather(const acf_options *o, facts *f) {
    acf_failure before; /* /proc may be absent: that is no failure of ours to report */
    acf_failure_save(&before);
    cpu_model(f->cpu);
    acf_failure_restore(&before);
    f->cores = acf_cores();
    f->threads = acf_options_int(o, "threads");
    if (f->threads == 0) f->threads = f->cores;
    f->blas = openblas_get_config();
    f->blas_core = openblas_get_corename();
    struct rusage usage;
    f->peak_bytes = getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

/* The keys are a promise: scripts and bug reports read them. Add, never rename. */
acf_status acf_info(const acf_options *o, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED_ROOM(out, cap);
    facts f;
    gather(o, &f);
    json_t *j =
        json_pack("{s:s, s:{s:s, s:s, s:s, s:b}, s:{s:s, s:i}, s:I, s:{s:s, s:s}, s:I}", /* in output order */
                  "version", ACF_VERSION, "build", "compiler", COMPILER, "precision", PRECISION, "vectors", VECTORS,
                  "debug", DEBUG_BUILD, "cpu", "model", f.cpu, "cores", f.cores, "threads", (json_int_t)f.threads,
                  "blas", "config", f.blas, "core", f.blas_core, "peak_memory_bytes", (json_int_t)f.peak_bytes);
    if (!j) return acf_fail(ACF_EMEMORY, "out of memory: a description of the machine");
    acf_text t = acf_text_into(out, cap);
    acf_json_write(&t, j, 2);
    json_decref(j);
    return acf_text_done(&t, needed);
}

/* The same facts, aligned for the eye; the layout is no promise. */
acf_status acf_info_text(const acf_options *o, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED_ROOM(out, cap);
    facts f;
    gather(o, &f);
    char bytes[ACF_NUMBER_MAX];
    acf_text t = acf_text_into(out, cap);
    acf_text_addf(&t, "acflow:      %s\n", ACF_VERSION);
    acf_text_addf(&t, "build:       %s, %s, %s%s\n", COMPILER, PRECISION, VECTORS, DEBUG_BUILD ? ", debug" : "");
    acf_text_addf(&t, "cpu:         %s\n", f.cpu);
    acf_text_addf(&t, "cores:       %d available\n", f.cores);
    acf_text_addf(&t, "threads:     %lld\n", (long long)f.threads);
    acf_text_addf(&t, "blas:        %s (%s)\n", f.blas, f.blas_core);
    acf_text_addf(&t, "peak memory: %s\n", acf_text_bytes(bytes, f.peak_bytes));
    return acf_text_done(&t, needed);
}
