/* Batches of tables for captured steps: see loader.h. */
#include "train/loader.h"
#include "train/valid.h"

#include <math.h>

#define SHARE 0.5 /* share of the free memory that a table may take */

typedef struct table_loader {
    acf_loader base;
    const acf_holdout *hold;        /* cells held out in the resident table */
    acf_table_on_device *on_device; /* NULL: streamed */
    const acf_rows *rows;           /* validation rows */
    acf_table_on_device *valid;     /* the table of these rows; NULL: none */
    acf_batch *stage[ACF_STAGES];
    acf_batch *batch; /* in device memory */
} table_loader;

static table_loader *of(acf_loader *s) { return (table_loader *)s; }
acf_batch *acf_table_stage(acf_loader *s, int stage) { return of(s)->stage[stage]; }

/* ---- creation -------------------------------------------------------------------------------------------------- */

/* Does the table fit into memory beside the network's work? */
static bool fits(const acf_trainer *tr, acf_device *dev) {
    size_t left, all;
    const acf_train_data *d = &tr->data;
    if (acf_device_memory(dev, &left, &all)) return false;
    const size_t valid = d->valid_rows ? acf_table_on_device_bytes(d->valid_table, d->valid_rows, d->encoder, NULL) : 0;
    return (double)(acf_table_on_device_bytes(d->table, &tr->rows, d->encoder, d->hold) + valid) < SHARE * (double)left;
}

/* Puts the table on the device, or creates the stages of streamed batches. */
static acf_status make_source(table_loader *s) {
    acf_trainer *tr = s->base.tr;
    acf_device *dev = tr->ps->dev;
    if (!tr->stream && fits(tr, dev)) {
        ACF_TRY(acf_table_on_device_create(dev, tr->data.table, &tr->rows, tr->data.encoder, tr->data.hold,
                                           tr->set.seed, tr->sampler.size, &s->on_device));
        if (s->on_device->every_batch) return ACF_OK;
        acf_table_on_device_free(s->on_device);
        s->on_device = NULL;
    }
    for (int k = 0; k < ACF_STAGES; k++)
        ACF_TRY(acf_batch_stage(dev, tr->sampler.size, tr->data.table->D, &s->stage[k]));
    return ACF_OK;
}

/* `most` cells as a share of a batch's. Reals and categories are planned separately: the narrower part varies more. */
static double part_of(const table_loader *s, int64_t most, int64_t part) {
    return fmin(1, (double)most / (double)(s->batch->capacity * part));
}

/* Plans capacities: of training by its masks, which rarely need more; of validation by the held-out cells. */
static void plan(table_loader *s, int64_t part) {
    acf_loader *base = &s->base;
    base->streams = !s->on_device, base->check_room = 1;
    base->step_room =
        acf_masks_capacity(&base->tr->set.masks, s->batch->capacity, acf_net_columns(base->tr->net), part);
    if (!s->on_device) return;
    base->check_room = part_of(s, s->on_device->most, part);
    base->listed = s->on_device->listed, base->slopes = s->on_device->slopes,
    base->cells = (double)acf_max(s->on_device->cells, 1);
}

/* Adds the validation rows beside the table; without them the host validates (valid.c). */
static acf_status add_valid(table_loader *s, int64_t part) {
    acf_loader *base = &s->base;
    acf_trainer *tr = base->tr;
    const acf_train_data *d = &tr->data;
    acf_valid_facts f;
    if (!s->on_device || !d->valid_rows) return ACF_OK;
    ACF_TRY(acf_valid_look(tr, &f));
    if (!f.plain) return ACF_OK;
    ACF_TRY(acf_table_on_device_create(tr->ps->dev, d->valid_table, d->valid_rows, d->encoder, NULL, tr->set.seed,
                                       tr->sampler.size, &s->valid));
    s->rows = d->valid_rows;
    base->masked = true, base->check_room = part_of(s, f.most, part);
    base->listed = d->valid_rows->n, base->slopes = f.slopes, base->cells = f.weight;
    return ACF_OK;
}

/* Columns of the narrower part of a table, reals or categories; of the only part where there is one. */
static int64_t narrow_part(const acf_net *net) {
    int64_t reals, all = acf_net_columns(net);
    acf_net_reals(net, &reals);
    return reals == 0 || reals == all ? all : acf_min(reals, all - reals);
}

static void free_table(acf_loader *base) {
    table_loader *s = of(base);
    acf_batch_free(s->batch);
    for (int k = 0; k < ACF_STAGES; k++) acf_batch_free(s->stage[k]);
    acf_table_on_device_free(s->on_device);
    acf_table_on_device_free(s->valid);
    acf_release(s);
}

static acf_status create_table(acf_trainer *tr, acf_loader **out) {
    acf_status status = ACF_OK;
    table_loader *s = acf_alloc_zero(sizeof *s, "captured steps");
    if (!s) return ACF_EMEMORY;
    s->base = (acf_loader){.kind = &acf_table_loader, .tr = tr}, s->hold = tr->data.hold;
    ACF_TRY_DONE(make_source(s));
    ACF_TRY_DONE(acf_batch_place(tr->ps->dev, tr->sampler.size, tr->data.table->D, &s->batch));
    plan(s, narrow_part(tr->net));
    ACF_TRY_DONE(add_valid(s, narrow_part(tr->net)));
    *out = &s->base;
done:
    if (status) free_table(&s->base);
    return status;
}

/* ---- work ------------------------------------------------------------------------------------------------------ */

static acf_status send_table(acf_loader *s, int stage) { return acf_batch_send(of(s)->stage[stage], of(s)->batch); }

static acf_status table_gradients(acf_loader *s, const acf_drawing *how, const acf_pass *pass) {
    const acf_trainer *tr = s->tr;
    acf_tape_begin(tr->tape, false);
    acf_table_on_device_draw(tr->tape, of(s)->on_device, how, of(s)->batch);
    ACF_TRY(acf_tape_status(tr->tape));
    ACF_TRY(acf_params_zero_grad(tr->ps));
    return acf_loss_enqueue(tr->tape, tr->net, of(s)->batch, pass, &tr->set.loss, tr->ps->pace->loss);
}

static acf_tensor *table_logp(acf_loader *s, const acf_drawing *how) {
    acf_tape *t = s->tr->tape;
    if (of(s)->on_device)
        acf_table_on_device_draw(t, of(s)->valid ? of(s)->valid : of(s)->on_device, how, of(s)->batch);
    return acf_net_logp(t, acf_net_view(t, s->tr->net, of(s)->batch, NULL));
}

static bool table_validates(const acf_loader *base) {
    const table_loader *s = (const table_loader *)base;
    const acf_train_data *now = &base->tr->data;
    if (now->valid_rows) return s->valid && s->rows == now->valid_rows;
    return s->on_device && s->hold && s->hold == now->hold && base->listed > 0;
}

const acf_loader_kind acf_table_loader = {create_table,    free_table, send_table,
                                          table_gradients, table_logp, table_validates};
