/* What captured steps work on (train_graph.h): batches of a table or of images, on their way to a GPU. Each kind of data fills in one of these.
 *
 *     streamed   the host fills one of ACF_MARKS stages in pinned memory, and send copies it to the batch that is placed on the device
 *     resident   the data are on the device, and the step draws its batch there (tables that fit)
 *
 * Either way the step then works on the placed batch, which lies at one address. */
#ifndef ACF_TRAIN_LOADER_H
#define ACF_TRAIN_LOADER_H

#include "device/plugin.h"
#include "image/image_batches.h"
#include "table/table_on_device.h"
#include "train/trainer.h"

#define ACF_STAGES ACF_MARKS /* one is filled while the device takes the other */

typedef struct acf_loader_kind {
    /* For the data that the trainer is at. Keeps tr. Gives *out. Fails: ACF_EMEMORY, ACF_EDEVICE. */
    acf_status (*create)(acf_trainer *tr, acf_loader **out);
    void (*free)(acf_loader *s);
    /* The batch in that stage, on its way; streamed only. */
    acf_status (*send)(acf_loader *s, int stage);
    /* Enqueue: the gradients of the loss of the batch, whose terms go to pace->loss; log p of its rows. how says which batch it is. */
    acf_status (*gradients)(acf_loader *s, const acf_drawing *how, const acf_pass *pass);
    acf_tensor *(*logp)(acf_loader *s, const acf_drawing *how);
    /* Are the held-out cells that it has on the device the trainer's? */
    bool (*validates)(const acf_loader *s);
} acf_loader_kind;

/* The first member of every kind. */
struct acf_loader {
    const acf_loader_kind *kind;
    acf_trainer *tr;
    bool streams;
    int64_t listed;               /* resident: rows that validation goes through, */
    bool masked;                  /* with masks as training has them (valid.h): else their held-out cells; */
    double slopes, cells;         /* what is added to the sum of their log p, and what the sum is divided by */
    double step_room, check_room; /* what part of a batch's cells is modelled at most (acf_tape.room) */
};

extern const acf_loader_kind acf_table_loader, acf_image_loader;

/* A stage, to be filled by the host. */
acf_batch *acf_table_stage(acf_loader *s, int stage);
acf_image_batch *acf_image_stage(acf_loader *s, int stage);

#endif
