/* Which device to compute on: what the option `device` says, and what this machine has.
 *
 *     auto      the first GPU, where there is one with a kernel for every operation of the model; else the CPU
 *     cpu       the CPU
 *     cuda      the first GPU; cuda:N the one of this number. A machine without any takes the CPU, and acf_device_choose says why
 */
#ifndef ACF_OPS_DEVICES_H
#define ACF_OPS_DEVICES_H

#include "device/plugin.h"

typedef struct acf_choice {
    acf_device_kind kind;
    int n;                      /* CUDA: which */
    const acf_plugin *plugin;   /* CUDA */
    char why[ACF_SENTENCE_MAX]; /* a GPU was asked for and this is the CPU: the reason; else empty */
} acf_choice;

/* recurrent: the model has GRUs (acf_net_recurrent), whose operations a plugin may lack. Nothing is opened yet. Fails: ACF_EUSAGE (no such name), ACF_EDEVICE (cuda:N on a machine with fewer). */
acf_status acf_device_choose(const char *name, bool recurrent, acf_choice *out);

/* Opens what the name comes to; threads (0: all cores) are those of the CPU, which works beside a GPU, too: it fits anchors and fills batches. Gives *out; close with acf_device_close. Fails also: ACF_EMEMORY. */
acf_status acf_device_open(const char *name, bool recurrent, int threads, acf_device **out);

/* The plugin with the GPUs, at least one of them. Fails: ACF_EDEVICE; the sentence says what is missing. */
acf_status acf_device_plugin(const acf_plugin **out, int *count);

#endif
