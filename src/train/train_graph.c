/* Captured training steps: see train_graph.h. The host's work is some ten microseconds for up to 64 steps. */
#include "train/train_graph.h"

#include "device/plugin.h"
#include "ops/adam.h"
#include "tensor/tape_graph.h"

#include <math.h>
#include <time.h>

#define AT_ONCE_SECONDS 0.1 /* longest time without the host: a signal waits as long */

struct acf_train_graph {
    acf_trainer *tr;
    acf_loader *loader;
    int64_t fed; /* stages handed out, in all */
    acf_drawing train, valid;
    acf_tape_graph step, check;
    int64_t pushed;                          /* steps since begin */
    double shift[ACF_STEPS_AT_ONCE];         /* the host's part of their losses */
    int64_t checks;                          /* batches of a validation */
    acf_arena *there;                        /* device memory of the fields below */
    acf_batch_step *batch_step, *check_step; /* (ACF_STEPS_AT_ONCE), (checks) */
    acf_pace_record *record;                 /* (ACF_STEPS_AT_ONCE) */
    acf_total *total;
    double begun, seconds; /* clock at begin; recent seconds of a step, 0: not known */
    bool known;            /* the step was already captured at begin */
};

static acf_params *params(const acf_train_graph *c) { return c->tr->ps; }
static acf_device *device(const acf_train_graph *c) { return params(c)->dev; }
bool acf_train_graph_streams(const acf_train_graph *c) { return c->loader->streams; }
acf_loader *acf_train_graph_loader(acf_train_graph *c) { return c->loader; }

/* ---- creation -------------------------------------------------------------------------------------------------- */

/* Places the batch steps of a validation on the device. */
static acf_status place_checks(acf_train_graph *c) {
    const int64_t size = c->tr->sampler.size, n = c->checks;
    if (!n) return ACF_OK;
    acf_batch_step *host = acf_alloc_zero((size_t)n * sizeof *host, "batches of a validation");
    if (!host) return ACF_EMEMORY;
    for (int64_t k = 0; k < n; k++)
        host[k] = (acf_batch_step){.order = acf_permutation_identity(c->loader->listed),
                                   .at = k * size,
                                   .step = ACF_NOISE_FIXED,
                                   .n = (int32_t)acf_min(size, c->loader->listed - k * size)};
    acf_status status = acf_device_copy(device(c), c->check_step, host, (size_t)n * sizeof *host, ACF_TO_DEVICE);
    if (!status) status = acf_device_sync(device(c));
    acf_release(host);
    return status;
}

static acf_status make_memory(acf_train_graph *c) {
    acf_trainer *tr = c->tr;
    c->checks = acf_ceil_div(c->loader->listed, tr->sampler.size);
    const size_t batch_steps = (size_t)(ACF_STEPS_AT_ONCE + c->checks) * sizeof(acf_batch_step);
    ACF_TRY(
        acf_arena_create(&device(c)->memory, batch_steps + ACF_STEPS_AT_ONCE * sizeof *c->record + 4096, &c->there));
    c->batch_step = acf_arena_alloc(c->there, batch_steps);
    c->record = acf_arena_alloc(c->there, ACF_STEPS_AT_ONCE * sizeof *c->record);
    c->total = acf_arena_alloc(c->there, sizeof *c->total);
    if (!c->batch_step || !c->record || !c->total) return ACF_EMEMORY;
    c->check_step = c->batch_step + ACF_STEPS_AT_ONCE;
    acf_pace *pace = params(c)->pace;
    c->train = (acf_drawing){.role = ACF_BATCH_TRAIN,
                             .masks = tr->set.masks,
                             .seed = tr->set.seed,
                             .batch_steps = c->batch_step,
                             .turn = &pace->turn,
                             .lr = &pace->lr,
                             .now = &pace->now};
    c->valid = (acf_drawing){.role = c->loader->masked ? ACF_BATCH_TRAIN : ACF_BATCH_VALID,
                             .masks = tr->set.masks,
                             .seed = tr->set.seed,
                             .batch_steps = c->check_step,
                             .turn = &c->total->turn};
    return place_checks(c);
}

acf_status acf_train_graph_create(acf_trainer *tr, acf_train_graph **out) {
    acf_status status = ACF_OK;
    *out = NULL;
    if (!tr->ps->dev->plugin) return ACF_OK;
    acf_train_graph *c = acf_alloc_zero(sizeof *c, "captured steps");
    if (!c) return ACF_EMEMORY;
    c->tr = tr;
    ACF_TRY_DONE(tr->task->loader->create(tr, &c->loader));
    ACF_TRY_DONE(make_memory(c));
    *out = c;
done:
    if (status) acf_train_graph_free(c);
    return status;
}

void acf_train_graph_free(acf_train_graph *c) {
    if (!c) return;
    acf_tape_graph_free(&c->step, device(c));
    acf_tape_graph_free(&c->check, device(c));
    acf_arena_free(c->there);
    if (c->loader) c->loader->kind->free(c->loader);
    acf_release(c);
}

/* ---- a batch from the host ------------------------------------------------------------------------------------- */

acf_status acf_train_graph_feed(acf_train_graph *c, int *stage) {
    *stage = (int)(c->fed++ % ACF_STAGES);
    return device(c)->plugin->wait(device(c), *stage);
}

/* Starts the copy of the stage that was filled last. */
static acf_status send(acf_train_graph *c) {
    const int k = (int)((c->fed - 1) % ACF_STAGES);
    ACF_TRY(c->loader->kind->send(c->loader, k));
    return device(c)->plugin->mark(device(c), k);
}

/* ---- steps ----------------------------------------------------------------------------------------------------- */

static acf_status gradients(acf_train_graph *c) {
    const acf_pass pass = {.dropout = c->tr->set.dropout, .seed = c->tr->set.seed, .now = &params(c)->pace->now};
    return c->loader->kind->gradients(c->loader, &c->train, &pass);
}

static acf_status enqueue_step(void *ctx) {
    acf_train_graph *c = ctx;
    const acf_train_settings *set = &c->tr->set;
    const acf_adam adam = acf_train_adam(set);
    device(c)->precision = set->precision; /* for this call only: reported values come from float */
    acf_status status = gradients(c);
    device(c)->precision = ACF_PRECISION_FLOAT;
    ACF_TRY(status);
    return acf_optimise(params(c), &adam, set->clip, set->ema);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int64_t acf_train_graph_room(const acf_train_graph *c) {
    if (!acf_tape_graph_ready(&c->step)) return 1;
    return c->seconds > 0 ? acf_max(1, acf_min(ACF_STEPS_AT_ONCE, (int64_t)(AT_ONCE_SECONDS / c->seconds))) : 4;
}

acf_status acf_train_graph_begin(acf_train_graph *c) {
    const acf_pace pace = {.step = c->tr->state.updates + 1, .record = c->record};
    c->begun = seconds(), c->known = acf_tape_graph_ready(&c->step), c->pushed = 0;
    return acf_device_copy(device(c), params(c)->pace, &pace, sizeof pace, ACF_TO_DEVICE);
}

/* Runs the step n times. Before its capture n is 1, so that a failed capture means that nothing has run. */
static acf_status replay(acf_train_graph *c, int64_t n, bool *by_hand) {
    acf_tape *t = c->tr->tape;
    t->capacity = c->loader->step_room;
    acf_status status = acf_tape_graph_run(&c->step, t, enqueue_step, c, n);
    t->capacity = 1;
    *by_hand = status == ACF_EDEVICE && !c->known;
    return status;
}

acf_status acf_train_graph_run(acf_train_graph *c, const acf_batch_step *batch_step, int64_t n, bool *by_hand) {
    ACF_ASSERT(n > 0 && n <= ACF_STEPS_AT_ONCE && !c->loader->streams);
    *by_hand = false;
    for (int64_t k = 0; k < n; k++) c->shift[k] = 0;
    ACF_TRY(acf_device_copy(device(c), c->batch_step, batch_step, (size_t)n * sizeof *batch_step, ACF_TO_DEVICE));
    return replay(c, n, by_hand);
}

acf_status acf_train_graph_push(acf_train_graph *c, const acf_batch_step *batch_step, double shift, bool *by_hand) {
    ACF_ASSERT(c->pushed < ACF_STEPS_AT_ONCE && c->loader->streams);
    *by_hand = false, c->shift[c->pushed] = shift;
    ACF_TRY(acf_device_copy(device(c), c->batch_step + c->pushed++, batch_step, sizeof *batch_step, ACF_TO_DEVICE));
    ACF_TRY(send(c));
    return replay(c, 1, by_hand);
}

acf_status acf_train_graph_collect(acf_train_graph *c, const acf_batch_step *batch_step, int64_t n,
                                   acf_train_step *out) {
    acf_pace_record record[ACF_STEPS_AT_ONCE];
    int64_t left_out;
    ACF_TRY(acf_device_copy(device(c), record, c->record, (size_t)n * sizeof *record, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(device(c)));
    ACF_TRY(device(c)->plugin->take_left_out(device(c), &left_out));
    c->tr->left_out += left_out;
    if (c->known) c->seconds = (seconds() - c->begun) / (double)n;
    for (int64_t k = 0; k < n; k++) {
        const bool skipped = !record[k].finite;
        out[k] =
            (acf_train_step){batch_step[k].n, batch_step[k].lr, skipped ? (double)NAN : record[k].loss + c->shift[k],
                             skipped ? (double)NAN : record[k].norm, skipped};
    }
    return ACF_OK;
}

/* ---- validation ------------------------------------------------------------------------------------------------ */

static acf_status enqueue_check(void *ctx) {
    acf_train_graph *c = ctx;
    acf_tape *t = c->tr->tape;
    acf_tape_begin(t, false);
    acf_total_add(t, c->loader->kind->logp(c->loader, &c->valid), c->total);
    return acf_tape_status(t);
}

static acf_status run_checks(acf_train_graph *c, int64_t n) {
    acf_tape *t = c->tr->tape;
    t->capacity = c->loader->check_room;
    device(c)->precision = c->tr->set.precision == ACF_PRECISION_FLOAT ? ACF_PRECISION_FLOAT : ACF_PRECISION_TF32;
    acf_status status = acf_tape_graph_run(&c->check, t, enqueue_check, c, n);
    device(c)->precision = ACF_PRECISION_FLOAT;
    t->capacity = 1;
    return status;
}

acf_status acf_train_graph_start(acf_train_graph *c) { return acf_device_zero(device(c), c->total, sizeof *c->total); }

acf_status acf_train_graph_check(acf_train_graph *c) {
    ACF_TRY(send(c));
    return run_checks(c, 1);
}

acf_status acf_train_graph_total(acf_train_graph *c, double *sum) {
    acf_total total = {0};
    ACF_TRY(acf_device_copy(device(c), &total, c->total, sizeof total, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(device(c)));
    if (!isfinite(total.sum)) return acf_fail(ACF_ENUMERIC, "the log-likelihood of the held-out data is %g", total.sum);
    *sum = total.sum;
    return ACF_OK;
}

bool acf_train_graph_validates(const acf_train_graph *c) { return c && c->loader->kind->validates(c->loader); }

acf_status acf_train_graph_nll(acf_train_graph *c, double *nll) {
    double sum = 0;
    ACF_TRY(acf_train_graph_start(c));
    ACF_TRY(run_checks(c, c->checks));
    ACF_TRY(acf_train_graph_total(c, &sum));
    *nll = -(sum + c->loader->slopes) / c->loader->cells;
    return ACF_OK;
}
