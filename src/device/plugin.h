/* A device that comes from a file of its own: libacflow_cuda.so, which is built apart (make cuda), carries the CUDA libraries and is
 * loaded when a GPU is asked for, so that one libacflow serves machines with and without.
 *
 *     libacflow.so  --dlopen, acflow_cuda_plugin(services)-->  libacflow_cuda.so
 *                   <--acf_plugin: devices, kernels by op id--
 *                   <--acf_services: acf_fail, acf_grad, ...--   what kernels call; cuda_services.cu gives them their usual names
 *
 * How it is found is said in base/shared_library.h. It must have the library's version, ABI number, number type and operations; whatever is
 * wrong is a sentence (ACF_EDEVICE), never a crash.
 *
 * Threads: loading may be done by several at once. A plugin is never unloaded. */
#ifndef ACF_DEVICE_PLUGIN_H
#define ACF_DEVICE_PLUGIN_H

#include "device/device.h"

#include <stdarg.h>

/* Counted up when a struct that both sides use changes while the version stays. */
#define ACF_PLUGIN_ABI 5
#define ACF_MARKS 2
#define ACF_PLUGIN_FILE "libacflow_cuda.so"
#define ACF_PLUGIN_ENTRY "acflow_cuda_plugin"

/* Only pointers to these cross the border; they are described in tensor/. */
typedef struct acf_tape acf_tape;
typedef struct acf_tensor acf_tensor;
typedef struct acf_subset acf_subset;
typedef struct acf_order acf_order;
typedef struct acf_kernel acf_kernel;
typedef struct acf_op acf_op;
typedef struct acf_params acf_params;
typedef struct acf_adam acf_adam;
typedef struct acf_graph acf_graph; /* the plugin's own */

/* Functions of the library that the plugin's host code calls by their own names: result, name, parameters, arguments. A line
 * here is all it takes to add one. */
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

/* What `acflow info --devices` says of one. */
typedef struct acf_device_facts {
    char name[256];
    size_t memory;    /* bytes, in all */
    int major, minor; /* compute capability */
} acf_device_facts;

/* What a plugin brings. The first two members stay where they are in every version, so that any two can tell that they do not fit. */
typedef struct acf_plugin {
    int abi;             /* ACF_PLUGIN_ABI */
    const char *version; /* ACF_VERSION */
    int real_bytes;      /* sizeof(acf_real) */
    int n_kernels;
    const acf_kernel *kernels; /* by op id; an entry without forward: this operation has none */

    /* Devices of the machine; fails with ACF_EDEVICE where there is no driver. They are numbered from 0. */
    acf_status (*count)(int *out);
    acf_status (*facts)(int n, acf_device_facts *out);
    acf_status (*open)(int n, acf_device **out);

    /* tensor/subset.h: fills what N, D and T (a capacity) leave open, from masks in device memory; and a half from its whole. */
    acf_status (*subset_build)(acf_tape *t, const uint8_t *b, const uint8_t *m, acf_subset *u);
    acf_status (*subset_split)(acf_tape *t, acf_subset *half);
    /* A sequence of all present cells (acf_subset_order); fills what N, D and T leave open, `place` too. */
    acf_status (*subset_order)(acf_tape *t, const uint8_t *b, const uint8_t *m, const acf_order *o, acf_subset *u);
    /* Rows that found no room in a subset since this was last asked. Waits for the device. */
    acf_status (*take_left_out)(acf_device *dev, int64_t *out);

    /* ops/adam.h, on ps->pace: the norm, and with cfg all that belongs to the step that is due; the step itself, with averaging in the same
     * pass where pace->left says so; averaging alone. Nothing waits. */
    acf_status (*norm)(const acf_params *ps, const acf_adam *cfg, double max_norm, double ema);
    acf_status (*adam)(acf_params *ps);
    acf_status (*ema)(acf_params *ps, double beta);

    /* Work that is enqueued once and run many times: between begin and end nothing runs, and copies to or from the host, memory and waiting
     * are refused (ACF_EDEVICE). What is captured must have run once before, so that memory and plans of products are there. end without
     * `out` forgets it. A graph reads and writes the addresses it was captured with. */
    acf_status (*capture_begin)(acf_device *dev);
    acf_status (*capture_end)(acf_device *dev, acf_graph **out);
    acf_status (*graph_run)(acf_device *dev, acf_graph *g);
    void (*graph_free)(acf_device *dev, acf_graph *g); /* NULL is allowed */
    /* Waits, in the order of the device's work, for what kernels left behind on another stream. */
    acf_status (*join)(acf_device *dev);

    /* Host memory that copies to and from the device go through without a detour, and do not wait for; NULL when there is none. */
    void *(*pinned_alloc)(acf_device *dev, size_t bytes);
    void (*pinned_free)(acf_device *dev, void *p); /* NULL is allowed */
    /* Marks a place in the device's work, 0 <= mark < ACF_MARKS; and waits until the device has come to it. A mark that was never set is behind it. */
    acf_status (*mark)(acf_device *dev, int mark);
    acf_status (*wait)(acf_device *dev, int mark);
} acf_plugin;

typedef const acf_plugin *(*acf_plugin_entry)(const acf_services *host);

/* Finds and loads the plugin. Keeps host. Gives *out, which is the plugin's and always valid. Fails: ACF_EDEVICE. */
acf_status acf_plugin_load(const acf_services *host, int n_kernels, const acf_plugin **out);

/* The same from a file; path is absolute. */
acf_status acf_plugin_load_file(const char *path, const acf_services *host, int n_kernels, const acf_plugin **out);

#endif
