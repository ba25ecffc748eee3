/* Loaders: bring batches of a table or of images to a GPU for steps in a CUDA graph (train_graph.h). Each kind of data
 * fills in one of these.
 *
 *     streamed   the host fills one of ACF_MARKS stages in pinned memory, and send copies it to the device's batch
 *     resident   the data are on the device, and the step draws its batch there (tables that fit)
 *
 * Either way the step then works on the device's batch, which lies at one address. */
#ifndef ACF_TRAIN_LOADER_H
#define ACF_TRAIN_LOADER_H

#include "device/plugin.h"
#include "image/image_batches.h"
#include "table/table_on_device.h"
#include "train/trainer.h"

#define ACF_STAGES ACF_MARKS /* the host fills one while the device reads the other */

typedef struct acf_loader_kind {
    /* For the trainer's current data. Keeps tr. Gives *out. Fails: ACF_EMEMORY, ACF_EDEVICE. */
    acf_status (*create)(acf_trainer *tr, acf_loader **out);
    void (*free)(acf_loader *s);
    /* Starts the copy of the batch in that stage; streamed only. */
    acf_status (*send)(acf_loader *s, int stage);
    /* Enqueue: the gradients of the batch's loss, whose terms go to pace->loss; log p of its rows. how: which batch. */
    acf_status (*gradients)(acf_loader *s, const acf_drawing *how, const acf_pass *pass);
    acf_tensor *(*logp)(acf_loader *s, const acf_drawing *how);
    /* Are the held-out cells on the device those of the trainer? */
    bool (*validates)(const acf_loader *s);
} acf_loader_kind;

/* The first field of every kind's struct. */
struct acf_loader {
    const acf_loader_kind *kind;
    acf_trainer *tr;
    bool streams;
    int64_t listed;               /* resident: rows of a validation */
    bool masked;                  /* validation uses training's masks (valid.h); else held-out cells */
    double slopes, cells;         /* validation: added to the sum of log p; divisor of the sum */
    double step_room, check_room; /* largest share of a batch's cells that is modelled (acf_tape.room) */
};

extern const acf_loader_kind acf_table_loader, acf_image_loader;

/* A stage for the host to fill. */
acf_batch *acf_table_stage(acf_loader *s, int stage);
acf_image_batch *acf_image_stage(acf_loader *s, int stage);

#endif
