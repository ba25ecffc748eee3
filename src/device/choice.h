/* The choice of the device: the meaning of the option `device`, and the devices of this machine.
 *
 *     auto      the first GPU, if it has a kernel for every operation of the model; else the CPU
 *     cpu       the CPU
 *     cuda      the first GPU; cuda:N selects one by number. Without any GPU it is the CPU;
 *               acf_device_choose gives the reason
 */
#ifndef ACF_DEVICE_CHOICE_H
#define ACF_DEVICE_CHOICE_H

#include "device/plugin.h"

typedef struct acf_choice {
    acf_device_kind kind;
    int n;                      /* CUDA: number of the GPU */
    const acf_plugin *plugin;   /* CUDA */
    char why[ACF_SENTENCE_MAX]; /* if a GPU was requested and this is the CPU: the reason; else empty */
} acf_choice;

/* What a choice must know of the operations, which are above the devices (ops/ops.h): how many there are, the
 * functions that their kernels call back, and whether a plugin has every kernel that a model may need. */
typedef struct acf_kernels_needed {
    int count;
    const acf_services *services;
    bool (*covered)(const acf_plugin *p);
} acf_kernels_needed;

/* Chooses the device, without opening it. Fails: ACF_EUSAGE (no such name), ACF_EDEVICE (cuda:N on a machine with fewer). */
acf_status acf_device_choose(const char *name, const acf_kernels_needed *need, acf_choice *out);

/* Opens the chosen device. threads (0: all cores) are those of the CPU, which also works beside a GPU: it fits
 * Gaussian mixtures and fills batches. Gives *out; close with acf_device_close. Fails as acf_device_choose does,
 * and: ACF_EMEMORY. */
acf_status acf_device_open(const char *name, const acf_kernels_needed *need, int threads, acf_device **out);

/* The plugin, with at least one GPU. Fails: ACF_EDEVICE; the message says what is missing. */
acf_status acf_device_plugin(const acf_kernels_needed *need, const acf_plugin **out, int *count);

#endif
