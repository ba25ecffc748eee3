/* The rows of a training step when the option `batch` is `auto`: as many as the device's free memory holds, within what makes sense.
 *
 *     memory   a step on a few rows is run, and one on twice as many, every cell modelled; what their arenas needed at most gives what
 *              a step costs and what each row adds. Half of what is free may be used: blocks of arenas double, and the
 *              trainer keeps other things beside them
 *     sense    a CPU is as fast with ACF_BATCH_ROWS (fewer for wide tables) as with more; a GPU wants up to ACF_AUTO_GPU_ROWS. And an epoch
 *              has ACF_AUTO_STEPS steps or more, down to what a CPU would take: large steps on a small table learn less
 *
 * The number goes into the options, so that the model and its checkpoints record it: free memory is no reason for two runs to differ
 * unseen. */
#ifndef ACF_TRAIN_BATCH_AUTO_H
#define ACF_TRAIN_BATCH_AUTO_H

#include "train/trainer.h"

#define ACF_AUTO_GPU_ROWS 4096
#define ACF_AUTO_STEPS 16

/* What a step needs: bytes in all, and more for each row. */
typedef struct acf_step_memory {
    double fixed, row;
} acf_step_memory;

/* Runs two small steps with the options' loss, dropout and precision; changes nothing but gradients. A net for training. *out is 0, 0 when
 * they were not finite. Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_step_memory_measure(acf_net *net, const acf_train_data *data, const acf_options *o,
                                   acf_step_memory *out);

/* Rows of a step for this data. Fails also: ACF_EMEMORY when one row does not fit; the sentence has the numbers. */
acf_status acf_batch_auto(acf_net *net, const acf_train_data *data, const acf_options *o, int64_t *out);

#endif
