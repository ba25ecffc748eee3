/* Captured training steps: see captured.h. What happens here on the host is some ten microseconds for up to 64 steps. */
#include "train/captured.h"

#include "device/plugin.h"
#include "ops/adam.h"
#include "tensor/replay.h"

#include <math.h>
#include <time.h>

#define AT_ONCE_SECONDS 0.1 /* that the host is away: a signal waits as long */
#define SHARE 0.5           /* of the free memory that a table may take */
#define STAGES ACF_MARKS    /* batches of the host: one is filled while the device takes the other */

struct acf_captured {
    acf_trainer *tr;
    const acf_holdout *hold; /* whose cells are held out in the resident table */
    acf_resident *resident;  /* NULL: streamed */
    acf_batch *stage[STAGES];
    int64_t fed;             /* batches that were asked for, over all */
    acf_batch *batch;        /* in device memory */
    acf_drawing train, valid;
    acf_replay step, check;
    int64_t pushed;          /* steps since begin */
    int64_t checks;          /* batches of a validation */
    double step_room, check_room; /* what part of a batch's cells is modelled at most (acf_tape.room) */
    acf_arena *there;        /* device memory of: */
    acf_ticket *ticket, *check_ticket; /* (ACF_STEPS_AT_ONCE), (checks) */
    acf_pace_record *record; /* (ACF_STEPS_AT_ONCE) */
    acf_total *total;
    double begun, seconds;   /* the clock; of a step, lately, 0: not known */
    bool known;              /* the step was captured when it began */
};

static acf_params *params(const acf_captured *c) { return c->tr->ps; }
static acf_device *device(const acf_captured *c) { return params(c)->dev; }
bool acf_captured_streams(const acf_captured *c) { return !c->resident; }

/* ---- creation ---------------------------------------------------------------------------------------------------------- */

/* Does the table find room beside the network's work? */
static bool fits(const acf_trainer *tr, acf_device *dev) {
    size_t left, all;
    const acf_train_data *d = &tr->data;
    if (acf_device_memory(dev, &left, &all)) return false;
    return (double)acf_resident_bytes(d->table, &tr->rows, d->encoder, d->hold) < SHARE * (double)left;
}

/* The table on the device, or two batches that take turns. */
static acf_status make_source(acf_captured *c) {
    acf_trainer *tr = c->tr;
    acf_device *dev = device(c);
    if (!tr->stream && fits(tr, dev)) {
        ACF_TRY(acf_resident_create(dev, tr->data.table, &tr->rows, tr->data.encoder, tr->data.hold, tr->set.seed, tr->walk.size, &c->resident));
        if (c->resident->every_batch) return ACF_OK;
        acf_resident_free(c->resident);
        c->resident = NULL;
    }
    for (int k = 0; k < STAGES; k++) ACF_TRY(acf_batch_stage(dev, tr->walk.size, tr->data.table->D, &c->stage[k]));
    return ACF_OK;
}

/* The batches that validation goes through, each with its ticket. */
static acf_status place_checks(acf_captured *c) {
    const int64_t size = c->tr->walk.size, n = c->checks;
    if (!n) return ACF_OK;
    acf_ticket *host = acf_alloc_zero((size_t)n * sizeof *host, "batches of a validation");
    if (!host) return ACF_EMEMORY;
    for (int64_t k = 0; k < n; k++) host[k].at = k * size, host[k].n = (int32_t)acf_min(size, c->resident->listed - k * size);
    acf_status status = acf_device_copy(device(c), c->check_ticket, host, (size_t)n * sizeof *host, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(device(c));
    acf_release(host);
    return status;
}

static acf_status make_memory(acf_captured *c) {
    acf_trainer *tr = c->tr;
    c->checks = c->resident ? acf_ceil_div(c->resident->listed, tr->walk.size) : 0;
    const size_t tickets = (size_t)(ACF_STEPS_AT_ONCE + c->checks) * sizeof(acf_ticket);
    ACF_TRY(acf_arena_create(&device(c)->memory, tickets + ACF_STEPS_AT_ONCE * sizeof *c->record + 4096, &c->there));
    c->ticket = acf_arena_alloc(c->there, tickets);
    c->record = acf_arena_alloc(c->there, ACF_STEPS_AT_ONCE * sizeof *c->record);
    c->total = acf_arena_alloc(c->there, sizeof *c->total);
    if (!c->ticket || !c->record || !c->total) return ACF_EMEMORY;
    c->check_ticket = c->ticket + ACF_STEPS_AT_ONCE;
    acf_pace *pace = params(c)->pace;
    c->train = (acf_drawing){.role = ACF_BATCH_TRAIN, .masks = tr->set.masks, .seed = tr->set.seed, .tickets = c->ticket, .turn = &pace->turn,
                             .lr = &pace->lr, .now = &pace->now};
    c->valid = (acf_drawing){.role = ACF_BATCH_VALID, .seed = tr->set.seed, .tickets = c->check_ticket, .turn = &c->total->turn};
    return place_checks(c);
}

/* Training models as many cells as its masks say, and hardly ever more; validation those that are held out. Reals and categories are parts of a
 * table, each with room of its own: the narrower varies more. */
static void plan_room(acf_captured *c) {
    int64_t reals, all = acf_net_columns(c->tr->net);
    acf_net_reals(c->tr->net, &reals);
    const int64_t part = reals == 0 || reals == all ? all : acf_min(reals, all - reals), N = c->batch->capacity;
    c->step_room = acf_masks_room(&c->tr->set.masks, N, all, part);
    c->check_room = c->resident ? fmin(1, (double)c->resident->most / (double)(N * part)) : 1;
}

acf_status acf_captured_create(acf_trainer *tr, acf_captured **out) {
    acf_status status = ACF_OK;
    acf_device *dev = tr->ps->dev;
    *out = NULL;
    if (!dev->plugin) return ACF_OK;
    acf_captured *c = acf_alloc_zero(sizeof *c, "captured steps");
    if (!c) return ACF_EMEMORY;
    c->tr = tr, c->hold = tr->data.hold;
    ACF_TRY_DONE(make_source(c));
    ACF_TRY_DONE(acf_batch_place(dev, tr->walk.size, tr->data.table->D, &c->batch));
    ACF_TRY_DONE(make_memory(c));
    plan_room(c);
    *out = c;
done:
    if (status) acf_captured_free(c);
    return status;
}

void acf_captured_free(acf_captured *c) {
    if (!c) return;
    acf_replay_free(&c->step, device(c));
    acf_replay_free(&c->check, device(c));
    acf_arena_free(c->there);
    acf_batch_free(c->batch);
    for (int k = 0; k < STAGES; k++) acf_batch_free(c->stage[k]);
    acf_resident_free(c->resident);
    acf_release(c);
}

/* ---- a batch from the host --------------------------------------------------------------------------------------------------- */

acf_status acf_captured_feed(acf_captured *c, acf_batch **out) {
    const int k = (int)(c->fed++ % STAGES);
    *out = c->stage[k];
    return device(c)->plugin->wait(device(c), k);
}

/* The batch that was filled last, on its way. */
static acf_status send(acf_captured *c) {
    const int k = (int)((c->fed - 1) % STAGES);
    ACF_TRY(acf_batch_send(c->stage[k], c->batch));
    return device(c)->plugin->mark(device(c), k);
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------ */

static acf_status gradients(acf_captured *c) {
    const acf_trainer *tr = c->tr;
    acf_params *ps = params(c);
    const acf_pass pass = {.dropout = tr->set.dropout, .seed = tr->set.seed, .now = &ps->pace->now};
    acf_tape_begin(tr->tape, false);
    acf_resident_draw(tr->tape, c->resident, &c->train, c->batch);
    ACF_TRY(acf_tape_status(tr->tape));
    ACF_TRY(acf_params_zero_grad(ps));
    return acf_loss_enqueue(tr->tape, tr->net, c->batch, &pass, &tr->set.loss, ps->pace->loss);
}

static acf_status enqueue_step(void *ctx) {
    acf_captured *c = ctx;
    const acf_train_settings *set = &c->tr->set;
    const acf_adam adam = acf_train_adam(set);
    device(c)->precision = set->precision; /* for this call only: whatever is reported comes from float */
    acf_status status = gradients(c);
    device(c)->precision = ACF_PRECISION_FLOAT;
    ACF_TRY(status);
    return acf_optimise(params(c), &adam, set->clip, set->average);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int64_t acf_captured_room(const acf_captured *c) {
    if (!acf_replay_ready(&c->step)) return 1;
    return c->seconds > 0 ? acf_max(1, acf_min(ACF_STEPS_AT_ONCE, (int64_t)(AT_ONCE_SECONDS / c->seconds))) : 4;
}

acf_status acf_captured_begin(acf_captured *c) {
    const acf_pace pace = {.step = c->tr->state.updates + 1, .record = c->record};
    c->begun = seconds(), c->known = acf_replay_ready(&c->step), c->pushed = 0;
    return acf_device_copy(device(c), params(c)->pace, &pace, sizeof pace, ACF_TO_DEVICE);
}

/* The step n times. Until it is captured it comes alone, so that a failure before that means that nothing has run. */
static acf_status replay(acf_captured *c, int64_t n, bool *by_hand) {
    acf_tape *t = c->tr->tape;
    t->room = c->step_room;
    acf_status status = acf_replay_run(&c->step, t, enqueue_step, c, n);
    t->room = 1;
    *by_hand = status == ACF_EDEVICE && !c->known;
    return status;
}

acf_status acf_captured_run(acf_captured *c, const acf_ticket *ticket, int64_t n, bool *by_hand) {
    ACF_ASSERT(n > 0 && n <= ACF_STEPS_AT_ONCE && c->resident);
    *by_hand = false;
    ACF_TRY(acf_device_copy(device(c), c->ticket, ticket, (size_t)n * sizeof *ticket, ACF_TO_DEVICE));
    return replay(c, n, by_hand);
}

acf_status acf_captured_push(acf_captured *c, const acf_ticket *ticket, bool *by_hand) {
    ACF_ASSERT(c->pushed < ACF_STEPS_AT_ONCE && !c->resident);
    *by_hand = false;
    ACF_TRY(acf_device_copy(device(c), c->ticket + c->pushed++, ticket, sizeof *ticket, ACF_TO_DEVICE));
    ACF_TRY(send(c));
    return replay(c, 1, by_hand);
}

acf_status acf_captured_collect(acf_captured *c, const acf_ticket *ticket, int64_t n, acf_train_step *out) {
    acf_pace_record record[ACF_STEPS_AT_ONCE];
    ACF_TRY(acf_device_copy(device(c), record, c->record, (size_t)n * sizeof *record, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(device(c)));
    if (c->known) c->seconds = (seconds() - c->begun) / (double)n;
    for (int64_t k = 0; k < n; k++) {
        const bool skipped = !record[k].finite;
        out[k] = (acf_train_step){ticket[k].n, ticket[k].lr, skipped ? (double)NAN : record[k].loss, skipped ? (double)NAN : record[k].norm, skipped};
    }
    return ACF_OK;
}

/* ---- validation -------------------------------------------------------------------------------------------------------------- */

static acf_status enqueue_check(void *ctx) {
    acf_captured *c = ctx;
    acf_tape *t = c->tr->tape;
    acf_tape_begin(t, false);
    if (c->resident) acf_resident_draw(t, c->resident, &c->valid, c->batch);
    acf_total_add(t, acf_net_logp(t, acf_net_view(t, c->tr->net, c->batch, NULL)), c->total);
    return acf_tape_status(t);
}

static acf_status run_checks(acf_captured *c, int64_t n) {
    acf_tape *t = c->tr->tape;
    t->room = c->check_room;
    device(c)->precision = c->tr->set.precision == ACF_PRECISION_FLOAT ? ACF_PRECISION_FLOAT : ACF_PRECISION_TF32;
    acf_status status = acf_replay_run(&c->check, t, enqueue_check, c, n);
    device(c)->precision = ACF_PRECISION_FLOAT;
    t->room = 1;
    return status;
}

acf_status acf_captured_start(acf_captured *c) { return acf_device_zero(device(c), c->total, sizeof *c->total); }

acf_status acf_captured_check(acf_captured *c) {
    ACF_TRY(send(c));
    return run_checks(c, 1);
}

acf_status acf_captured_total(acf_captured *c, double *sum) {
    acf_total total = {0};
    ACF_TRY(acf_device_copy(device(c), &total, c->total, sizeof total, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(device(c)));
    if (!isfinite(total.sum)) return acf_fail(ACF_ENUMERIC, "the log-likelihood of the held-out cells is %g", total.sum);
    *sum = total.sum;
    return ACF_OK;
}

bool acf_captured_validates(const acf_captured *c) { return c && c->resident && c->hold && c->hold == c->tr->data.hold && c->checks > 0; }

acf_status acf_captured_nll(acf_captured *c, double *nll) {
    double sum = 0;
    ACF_TRY(acf_captured_start(c));
    ACF_TRY(run_checks(c, c->checks));
    ACF_TRY(acf_captured_total(c, &sum));
    *nll = -(sum + c->resident->slopes) / (double)acf_max(c->resident->cells, 1);
    return ACF_OK;
}
