/* A device in a shared library of its own: libacflow_cuda.so is built separately (make cuda), links the CUDA
 * libraries and is loaded when a GPU is needed. One libacflow therefore serves machines with and without a GPU.
 *
 *     libacflow.so  --dlopen, acflow_cuda_plugin(services)-->  libacflow_cuda.so
 *                   <--acf_plugin: devices, kernels by op id--
 *                   <--acf_services: acf_fail, acf_grad, ...--   called by kernels under the names in cuda_services.cu
 *
 * base/shared_library.h says where the file is looked for. It must have the library's version, ABI number, number
 * type and operations. Any mismatch is an error message (ACF_EDEVICE), never a crash.
 *
 * Threads: several threads may load it at once. A plugin is never unloaded. */
#ifndef ACF_DEVICE_PLUGIN_H
#define ACF_DEVICE_PLUGIN_H

#include "device/device.h"

#include <stdarg.h>

/* Increment it when a struct that both sides use changes while the version stays. */
#define ACF_PLUGIN_ABI 5
#define ACF_MARKS 2
#define ACF_PLUGIN_FILE "libacflow_cuda.so"
#define ACF_PLUGIN_ENTRY "acflow_cuda_plugin"

/* Only pointers to these types cross the interface; tensor/ defines them. */
typedef struct acf_tape acf_tape;
typedef struct acf_tensor acf_tensor;
typedef struct acf_subset acf_subset;
typedef struct acf_order acf_order;
typedef struct acf_kernel acf_kernel;
typedef struct acf_op acf_op;
typedef struct acf_params acf_params;
typedef struct acf_adam acf_adam;
typedef struct acf_graph acf_graph; /* private to the plugin */

/* Functions of the library that the plugin's host code calls by their own names: result, name, parameters,
 * arguments. To add one, add a line here. */
#define ACF_SERVICES(X)                                                                                                \
    X(void *, acf_alloc, (size_t bytes, const char *what), (bytes, what))                                              \
    X(void *, acf_alloc_zero, (size_t bytes, const char *what), (bytes, what))                                         \
    X(void, acf_release, (void *p), (p))                                                                               \
    X(bool, acf_bytes, (int64_t n, size_t size, size_t * out), (n, size, out))                                         \
    X(void *, acf_arena_alloc, (acf_arena * a, size_t bytes), (a, bytes))                                              \
    X(acf_mark, acf_arena_mark, (const acf_arena *a), (a))                                                             \
    X(void, acf_arena_release, (acf_arena * a, acf_mark mark), (a, mark))                                              \
    X(int64_t, acf_tensor_count, (const acf_tensor *x), (x))                                                           \
    X(int64_t, acf_tensor_rows, (const acf_tensor *x), (x))                                                            \
    X(int64_t, acf_tensor_width, (const acf_tensor *x), (x))                                                           \
    X(acf_status, acf_tape_fail, (acf_tape * t, const acf_op *op), (t, op))                                            \
    X(acf_status, acf_tape_status, (acf_tape * t), (t))                                                                \
    X(void, acf_tape_done, (acf_tape * t, acf_mark mark), (t, mark))                                                   \
    X(acf_real *, acf_grad, (acf_tape * t, acf_tensor * x), (t, x))                                                    \
    X(acf_real *, acf_tape_reals, (acf_tape * t, int64_t n), (t, n))                                                   \
    X(int32_t *, acf_tape_ints, (acf_tape * t, int64_t n), (t, n))

typedef struct acf_services {
    acf_status (*fail)(acf_status status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
    void (*assert_failed)(const char *file, int line, const char *cond);
#define ACF_SERVICE(result, name, parameters, arguments) result(*name) parameters;
    ACF_SERVICES(ACF_SERVICE)
#undef ACF_SERVICE
} acf_services;

/* What `acflow info --devices` prints about a device. */
typedef struct acf_device_facts {
    char name[256];
    size_t memory;    /* total memory in bytes */
    int major, minor; /* compute capability */
} acf_device_facts;

/* What a plugin provides. The first two fields keep their offsets in every version, so that any two versions can
 * detect a mismatch. */
typedef struct acf_plugin {
    int abi;             /* ACF_PLUGIN_ABI */
    const char *version; /* ACF_VERSION */
    int real_bytes;      /* sizeof(acf_real) */
    int n_kernels;
    const acf_kernel *kernels; /* by op id; an entry without forward: the device has no kernel for this operation */

    /* Devices of the machine, numbered from 0. Fails: ACF_EDEVICE (no driver). */
    acf_status (*count)(int *out);
    acf_status (*facts)(int n, acf_device_facts *out);
    acf_status (*open)(int n, acf_device **out);

    /* tensor/subset.h: fills the fields other than N, D and T (a capacity) from masks in device memory; and a half
     * from its whole. */
    acf_status (*subset_build)(acf_tape *t, const uint8_t *b, const uint8_t *m, acf_subset *u);
    acf_status (*subset_split)(acf_tape *t, acf_subset *half);
    /* A sequence of all present cells (acf_subset_order); fills the fields other than N, D and T, including `place`. */
    acf_status (*subset_order)(acf_tape *t, const uint8_t *b, const uint8_t *m, const acf_order *o, acf_subset *u);
    /* Rows that exceeded the capacity of a subset since the last call. Waits for the device. */
    acf_status (*take_left_out)(acf_device *dev, int64_t *out);

    /* ops/adam.h, on ps->pace: the norm and, with cfg, the constants of the current step; the step itself, with the
     * moving average in the same pass if pace->left is set; the moving average alone. None of them waits. */
    acf_status (*norm)(const acf_params *ps, const acf_adam *cfg, double max_norm, double ema);
    acf_status (*adam)(acf_params *ps);
    acf_status (*ema)(acf_params *ps, double beta);

    /* CUDA graphs: work that is captured once and launched many times. Between begin and end nothing runs; copies to
     * or from the host, allocation and waiting are refused (ACF_EDEVICE). The work must have run once before, so
     * that memory and plans of products exist. end without `out` discards it. A graph reads and writes the addresses
     * it was captured with. */
    acf_status (*capture_begin)(acf_device *dev);
    acf_status (*capture_end)(acf_device *dev, acf_graph **out);
    acf_status (*graph_run)(acf_device *dev, acf_graph *g);
    void (*graph_free)(acf_device *dev, acf_graph *g); /* NULL is allowed */
    /* Makes the device's stream wait for the work on the second stream. */
    acf_status (*join)(acf_device *dev);

    /* Pinned host memory: copies to and from the device are direct and asynchronous. NULL if there is none. */
    void *(*pinned_alloc)(acf_device *dev, size_t bytes);
    void (*pinned_free)(acf_device *dev, void *p); /* NULL is allowed */
    /* Records an event in the device's work, 0 <= mark < ACF_MARKS; and waits for that event. An event that was
     * never recorded counts as passed. */
    acf_status (*mark)(acf_device *dev, int mark);
    acf_status (*wait)(acf_device *dev, int mark);
} acf_plugin;

typedef const acf_plugin *(*acf_plugin_entry)(const acf_services *host);

/* Finds and loads the plugin. Keeps host. Gives *out, which the plugin owns and is always valid. Fails: ACF_EDEVICE. */
acf_status acf_plugin_load(const acf_services *host, int n_kernels, const acf_plugin **out);

/* The same from a file; path is absolute. */
acf_status acf_plugin_load_file(const char *path, const acf_services *host, int n_kernels, const acf_plugin **out);

#endif
