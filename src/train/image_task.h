/* A trainer's state for images, shared by image_task.c (batches and loss) and image_loader.c (transfer to a GPU). */
#ifndef ACF_TRAIN_IMAGE_TASK_H
#define ACF_TRAIN_IMAGE_TASK_H

#include "image/image_batches.h"
#include "train/trainer.h"

typedef struct acf_image_task {
    acf_image_net *net;   /* keeps */
    const acf_images *im; /* keeps */
    acf_rows valid;
    int passes;             /* coarse-to-fine passes in which hidden pixels are learned (image/image_passes.h) */
    acf_image_masks *masks; /* owned, like the rest */
    acf_image_batch *batch;
} acf_image_task;

/* One term of the loss: the mean over images of the squared error of the best guess, or of -log p. share (N): each
 * image's weight in it, on the device. NULL where the likelihood's mean has no derivative. */
acf_tensor *acf_image_term(acf_tape *t, const acf_image_view *v, const acf_real *share, bool guess);

#endif
