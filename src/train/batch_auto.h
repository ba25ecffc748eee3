/* Chooses the rows of a training step when the option `batch` is `auto`: as many as free memory and speed suggest.
 *
 *     memory   two probe steps run, one on twice the rows of the other, with every cell modelled. The peaks of their
 *              arenas give a step's fixed cost and the cost of a row. A step may use half of the free memory: arenas
 *              double their blocks, and the trainer keeps other things beside them
 *     speed    a CPU is as fast with ACF_BATCH_ROWS (fewer for wide tables) as with more; a GPU uses up to
 *              ACF_AUTO_GPU_ROWS. An epoch keeps ACF_AUTO_STEPS steps or more, down to a CPU's number of rows: large
 *              steps learn less from a small table
 *
 * The number goes into the options, so that the model and its checkpoints record it: runs that differ because of free
 * memory can be told apart. */
#ifndef ACF_TRAIN_BATCH_AUTO_H
#define ACF_TRAIN_BATCH_AUTO_H

#include "train/trainer.h"

#define ACF_AUTO_GPU_ROWS 4096
#define ACF_AUTO_STEPS 16

/* Bytes that a step needs: a fixed part, and more for each row. */
typedef struct acf_step_memory {
    double fixed, row;
} acf_step_memory;

/* Runs two small steps with the options' loss, dropout and precision; changes only gradients. net must be created for
 * training. *out is 0, 0 when they were not finite. Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_step_memory_measure(acf_net *net, const acf_train_data *data, const acf_options *o,
                                   acf_step_memory *out);

/* Rows of a step for this data. Fails also: ACF_EMEMORY when one row does not fit; the message has the numbers. */
acf_status acf_batch_auto(acf_net *net, const acf_train_data *data, const acf_options *o, int64_t *out);

#endif
