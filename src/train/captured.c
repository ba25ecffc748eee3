/* Captured training steps: see captured.h. What happens here on the host is some ten microseconds for up to 64 steps. */
#include "train/captured.h"

#include "device/plugin.h"
#include "ops/adam.h"
#include "tensor/replay.h"

#include <math.h>
#include <time.h>

#define AT_ONCE_SECONDS 0.1 /* that the host is away: a signal waits as long */

struct acf_captured {
    acf_trainer *tr;
    acf_supply *supply;
    int64_t fed;             /* stages that were asked for, over all */
    acf_drawing train, valid;
    acf_replay step, check;
    int64_t pushed;          /* steps since begin */
    double shift[ACF_STEPS_AT_ONCE]; /* of their losses: what the host knows of them */
    int64_t checks;          /* batches of a validation */
    acf_arena *there;        /* device memory of: */
    acf_ticket *ticket, *check_ticket; /* (ACF_STEPS_AT_ONCE), (checks) */
    acf_pace_record *record; /* (ACF_STEPS_AT_ONCE) */
    acf_total *total;
    double begun, seconds;   /* the clock; of a step, lately, 0: not known */
    bool known;              /* the step was captured when it began */
};

static acf_params *params(const acf_captured *c) { return c->tr->ps; }
static acf_device *device(const acf_captured *c) { return params(c)->dev; }
bool acf_captured_streams(const acf_captured *c) { return c->supply->streams; }
acf_supply *acf_captured_supply(acf_captured *c) { return c->supply; }

/* ---- creation ---------------------------------------------------------------------------------------------------------- */

/* The batches that validation goes through, each with its ticket. */
static acf_status place_checks(acf_captured *c) {
    const int64_t size = c->tr->walk.size, n = c->checks;
    if (!n) return ACF_OK;
    acf_ticket *host = acf_alloc_zero((size_t)n * sizeof *host, "batches of a validation");
    if (!host) return ACF_EMEMORY;
    for (int64_t k = 0; k < n; k++)
        host[k] = (acf_ticket){.order = acf_permutation_identity(c->supply->listed),
                               .at = k * size,
                               .step = ACF_NOISE_FIXED,
                               .n = (int32_t)acf_min(size, c->supply->listed - k * size)};
    acf_status status = acf_device_copy(device(c), c->check_ticket, host, (size_t)n * sizeof *host, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(device(c));
    acf_release(host);
    return status;
}

static acf_status make_memory(acf_captured *c) {
    acf_trainer *tr = c->tr;
    c->checks = acf_ceil_div(c->supply->listed, tr->walk.size);
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
    c->valid = (acf_drawing){.role = c->supply->masked ? ACF_BATCH_TRAIN : ACF_BATCH_VALID,
                             .masks = tr->set.masks,
                             .seed = tr->set.seed,
                             .tickets = c->check_ticket,
                             .turn = &c->total->turn};
    return place_checks(c);
}

acf_status acf_captured_create(acf_trainer *tr, acf_captured **out) {
    acf_status status = ACF_OK;
    *out = NULL;
    if (!tr->ps->dev->plugin) return ACF_OK;
    acf_captured *c = acf_alloc_zero(sizeof *c, "captured steps");
    if (!c) return ACF_EMEMORY;
    c->tr = tr;
    ACF_TRY_DONE(tr->task->supply->create(tr, &c->supply));
    ACF_TRY_DONE(make_memory(c));
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
    if (c->supply) c->supply->kind->free(c->supply);
    acf_release(c);
}

/* ---- a batch from the host --------------------------------------------------------------------------------------------------- */

acf_status acf_captured_feed(acf_captured *c, int *stage) {
    *stage = (int)(c->fed++ % ACF_STAGES);
    return device(c)->plugin->wait(device(c), *stage);
}

/* The stage that was filled last, on its way. */
static acf_status send(acf_captured *c) {
    const int k = (int)((c->fed - 1) % ACF_STAGES);
    ACF_TRY(c->supply->kind->send(c->supply, k));
    return device(c)->plugin->mark(device(c), k);
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------ */

static acf_status gradients(acf_captured *c) {
    const acf_pass pass = {.dropout = c->tr->set.dropout, .seed = c->tr->set.seed, .now = &params(c)->pace->now};
    return c->supply->kind->gradients(c->supply, &c->train, &pass);
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
    t->room = c->supply->step_room;
    acf_status status = acf_replay_run(&c->step, t, enqueue_step, c, n);
    t->room = 1;
    *by_hand = status == ACF_EDEVICE && !c->known;
    return status;
}

acf_status acf_captured_run(acf_captured *c, const acf_ticket *ticket, int64_t n, bool *by_hand) {
    ACF_ASSERT(n > 0 && n <= ACF_STEPS_AT_ONCE && !c->supply->streams);
    *by_hand = false;
    for (int64_t k = 0; k < n; k++) c->shift[k] = 0;
    ACF_TRY(acf_device_copy(device(c), c->ticket, ticket, (size_t)n * sizeof *ticket, ACF_TO_DEVICE));
    return replay(c, n, by_hand);
}

acf_status acf_captured_push(acf_captured *c, const acf_ticket *ticket, double shift, bool *by_hand) {
    ACF_ASSERT(c->pushed < ACF_STEPS_AT_ONCE && c->supply->streams);
    *by_hand = false, c->shift[c->pushed] = shift;
    ACF_TRY(acf_device_copy(device(c), c->ticket + c->pushed++, ticket, sizeof *ticket, ACF_TO_DEVICE));
    ACF_TRY(send(c));
    return replay(c, 1, by_hand);
}

acf_status acf_captured_collect(acf_captured *c, const acf_ticket *ticket, int64_t n, acf_train_step *out) {
    acf_pace_record record[ACF_STEPS_AT_ONCE];
    int64_t left_out;
    ACF_TRY(acf_device_copy(device(c), record, c->record, (size_t)n * sizeof *record, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(device(c)));
    ACF_TRY(device(c)->plugin->take_left_out(device(c), &left_out));
    c->tr->left_out += left_out;
    if (c->known) c->seconds = (seconds() - c->begun) / (double)n;
    for (int64_t k = 0; k < n; k++) {
        const bool skipped = !record[k].finite;
        out[k] = (acf_train_step){ticket[k].n, ticket[k].lr, skipped ? (double)NAN : record[k].loss + c->shift[k], skipped ? (double)NAN : record[k].norm, skipped};
    }
    return ACF_OK;
}

/* ---- validation -------------------------------------------------------------------------------------------------------------- */

static acf_status enqueue_check(void *ctx) {
    acf_captured *c = ctx;
    acf_tape *t = c->tr->tape;
    acf_tape_begin(t, false);
    acf_total_add(t, c->supply->kind->logp(c->supply, &c->valid), c->total);
    return acf_tape_status(t);
}

static acf_status run_checks(acf_captured *c, int64_t n) {
    acf_tape *t = c->tr->tape;
    t->room = c->supply->check_room;
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
    if (!isfinite(total.sum)) return acf_fail(ACF_ENUMERIC, "the log-likelihood of what is held out is %g", total.sum);
    *sum = total.sum;
    return ACF_OK;
}

bool acf_captured_validates(const acf_captured *c) { return c && c->supply->kind->validates(c->supply); }

acf_status acf_captured_nll(acf_captured *c, double *nll) {
    double sum = 0;
    ACF_TRY(acf_captured_start(c));
    ACF_TRY(run_checks(c, c->checks));
    ACF_TRY(acf_captured_total(c, &sum));
    *nll = -(sum + c->supply->slopes) / c->supply->cells;
    return ACF_OK;
}
