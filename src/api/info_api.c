/* Library and machine, as JSON for programs and as lines for people. Cheap: it reads one small file of /proc. */
#include "api/argument_checks.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/options.h"
#include "device/panels.h"
#include "ops/ops.h"

#include <string.h>
#include <sys/resource.h>

#define CPUINFO_BYTES_MAX ((size_t)1 << 22) /* a machine of a thousand cores writes about a megabyte */

/* Compiler settings that matter for speed and numbers. */
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
    const char *kernels; /* picked at run time for this CPU */
    uint64_t peak_bytes;
} facts;

/* The first "model name" of /proc/cpuinfo; ARM kernels write none. */
static void cpu_model(char out[ACF_EXCERPT_MAX]) {
    char *text;
    size_t n;
    acf_failure before; /* /proc may be absent, which is no failure */
    acf_text_excerpt(out, "unknown");
    acf_failure_save(&before);
    if (acf_file_read("/proc/cpuinfo", CPUINFO_BYTES_MAX, &text, &n) != ACF_OK) {
        acf_failure_restore(&before);
        return;
    }
    char *name = strstr(text, "model name");
    if (name && (name = strchr(name, ':'))) {
        name += 1 + strspn(name + 1, " \t");
        name[strcspn(name, "\n")] = '\0';
        acf_text_excerpt(out, name);
    }
    acf_release(text);
}

/* The kernels that were picked at run time are the first thing to check if acflow is slow. */
static void gather(const acf_options *o, facts *f) {
    cpu_model(f->cpu);
    f->cores = acf_cores();
    f->threads = acf_options_int(o, "threads");
    if (f->threads == 0) f->threads = f->cores;
    static const char *const kernels[ACF_PANELS_SETS] = {"plain", "avx2", "avx512"};
    f->kernels = kernels[acf_panels_best()];
    struct rusage usage;
    f->peak_bytes = getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

/* Scripts and bug reports read these keys: add keys, never rename them. */
static acf_status info_json(const acf_options *o, char *out, size_t cap, size_t *needed) {
    facts f;
    gather(o, &f);
    json_t *j = json_pack("{s:s, s:{s:s, s:s, s:s, s:b}, s:{s:s, s:i}, s:I, s:s, s:I}", /* in output order */
                          "version", ACF_VERSION, "build", "compiler", COMPILER, "precision", PRECISION, "vectors",
                          VECTORS, "debug", DEBUG_BUILD, "cpu", "model", f.cpu, "cores", f.cores, "threads",
                          (json_int_t)f.threads, "kernels", f.kernels, "peak_memory_bytes", (json_int_t)f.peak_bytes);
    if (!j) return acf_fail(ACF_EMEMORY, "out of memory: a description of the machine");
    return acf_json_deliver(j, out, cap, needed);
}

/* The same facts as aligned lines; the layout may change. */
static acf_status info_text(const acf_options *o, char *out, size_t cap, size_t *needed) {
    facts f;
    gather(o, &f);
    char bytes[ACF_NUMBER_MAX];
    acf_text t = acf_text_into(out, cap);
    acf_text_addf(&t, "acflow:      %s\n", ACF_VERSION);
    acf_text_addf(&t, "build:       %s, %s, %s%s\n", COMPILER, PRECISION, VECTORS, DEBUG_BUILD ? ", debug" : "");
    acf_text_addf(&t, "cpu:         %s\n", f.cpu);
    acf_text_addf(&t, "cores:       %d available\n", f.cores);
    acf_text_addf(&t, "threads:     %lld\n", (long long)f.threads);
    acf_text_addf(&t, "kernels:     %s\n", f.kernels);
    acf_text_addf(&t, "peak memory: %s\n", acf_text_bytes(bytes, f.peak_bytes));
    return acf_text_done(&t, needed);
}

acf_status acf_info(const acf_options *o, acf_format format, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED_BUFFER(out, cap);
    return format == ACF_JSON ? info_json(o, out, cap, needed) : info_text(o, out, cap, needed);
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

acf_status acf_device_remark(const acf_options *o, char *out, size_t cap, size_t *needed) {
    ACF_NEED(o);
    ACF_NEED_BUFFER(out, cap);
    const char *name = acf_options_text(o, "device");
    acf_choice c = {.kind = ACF_DEVICE_CPU};
    if (strcmp(name, "auto") != 0)
        ACF_TRY(acf_device_choose(name, acf_ops_needed(true),
                                  &c)); /* auto accepts any device, so there is nothing to check */
    acf_text t = acf_text_into(out, cap);
    if (c.why[0]) acf_text_addf(&t, "computing on the CPU: %s", c.why);
    return acf_text_done(&t, needed);
}

/* The GPUs of this machine: *count, or 0 and the reason. */
static const acf_plugin *gpus(int *count, char why[ACF_SENTENCE_MAX]) {
    const acf_plugin *p = NULL;
    acf_failure before;
    acf_failure_save(&before);
    *count = 0;
    why[0] = '\0';
    if (acf_device_plugin(acf_ops_needed(true), &p, count)) {
        acf_text t = acf_text_into(why, ACF_SENTENCE_MAX);
        acf_text_addf(&t, "%s", acf_error());
        acf_failure_restore(&before);
    }
    return p;
}

static acf_status devices_json(char *out, size_t cap, size_t *needed) {
    char cpu[ACF_EXCERPT_MAX], why[ACF_SENTENCE_MAX];
    int count;
    const acf_plugin *p = gpus(&count, why);
    cpu_model(cpu);
    json_t *list = json_pack("[{s:s, s:s, s:i}]", "name", "cpu", "model", cpu, "cores", acf_cores());
    for (int i = 0; list && i < count; i++) {
        acf_device_facts f;
        acf_status status = p->facts(i, &f);
        if (status) {
            json_decref(list);
            return status;
        }
        json_array_append_new(list, json_pack("{s:o, s:s, s:I, s:o}", "name", json_sprintf("cuda:%d", i), "model",
                                              f.name, "memory_bytes", (json_int_t)f.memory, "compute",
                                              json_sprintf("%d.%d", f.major, f.minor)));
    }
    json_t *j = list ? json_pack("{s:o, s:s?}", "devices", list, "cuda", count ? NULL : why) : NULL;
    if (!j || json_array_size(list) != (size_t)count + 1) {
        json_decref(j);
        return acf_fail(ACF_EMEMORY, "out of memory: a list of devices");
    }
    return acf_json_deliver(j, out, cap, needed);
}

static acf_status devices_text(char *out, size_t cap, size_t *needed) {
    char cpu[ACF_EXCERPT_MAX], why[ACF_SENTENCE_MAX], bytes[ACF_NUMBER_MAX];
    int count;
    const acf_plugin *p = gpus(&count, why);
    acf_text t = acf_text_into(out, cap);
    cpu_model(cpu);
    acf_text_addf(&t, "cpu:     %s, %d cores available\n", cpu, acf_cores());
    if (!count) acf_text_addf(&t, "cuda:    none: %s\n", why);
    for (int i = 0; i < count; i++) {
        acf_device_facts f;
        ACF_TRY(p->facts(i, &f));
        acf_text_addf(&t, "cuda:%d:  %s, %s, compute capability %d.%d\n", i, f.name, acf_text_bytes(bytes, f.memory),
                      f.major, f.minor);
    }
    return acf_text_done(&t, needed);
}

acf_status acf_devices(acf_format format, char *out, size_t cap, size_t *needed) {
    ACF_NEED_BUFFER(out, cap);
    return format == ACF_JSON ? devices_json(out, cap, needed) : devices_text(out, cap, needed);
}
