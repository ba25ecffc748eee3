/* Training: see trainer.h.
 *
 * Workload: 1e3 to 1e5 steps of 1e2 to 1e3 rows; a step is a millisecond to a second, nearly all of it in the
 * operations. Rows, masks and bookkeeping take below a percent. */
#include "train/trainer.h"

#include "device/cpu.h"
#include "ops/adam.h"
#include "train/calibrate.h"
#include "train/checkpoint.h"
#include "train/donor_trust.h"
#include "train/fill_missing.h"
#include "train/gmm_fit.h"
#include "train/thread_tuner.h"
#include "train/train_graph.h"
#include "train/valid.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define LOSS_STEPS 50  /* window of the reported mean loss */
#define VALID_APART 50 /* least steps between validations once an epoch: a small table's epoch is a step or two */
#define CLEAR_GAIN 2.0 /* nats over all held-out cells that a better validation must gain: less may be chance */

static const acf_task table_task; /* below */

/* ---- creation -------------------------------------------------------------------------------------------------- */

acf_status acf_train_prepare(const acf_table *table, const acf_rows *rows, const acf_options *o, acf_holdout **hold,
                             acf_encoder **encoder) {
    acf_train_settings set;
    acf_row_split split = {0};
    acf_holdout *h = NULL;
    ACF_TRY(acf_train_settings_read(o, &set));
    if (!rows && set.valid_on == ACF_VALID_ROWS) ACF_TRY(acf_valid_split(table, NULL, &set, &split));
    if (split.valid.n) rows = &split.train;
    ACF_TRY(acf_holdout_create(table, rows, set.valid_on == ACF_VALID_CELLS ? set.valid : 0, set.seed, &h));
    if (h->held == 0) {
        acf_holdout_free(h);
        h = NULL;
    }
    acf_encoder *e = NULL;
    acf_status status = acf_encoder_fit(table, rows, h, &e);
    if (!status) status = acf_encoder_shape(e, table, rows, h, &set.encoding);
    if (status) {
        acf_holdout_free(h);
        acf_encoder_free(e);
        return status;
    }
    *hold = h, *encoder = e;
    return ACF_OK;
}

static acf_params *params(const acf_trainer *tr) { return tr->ps; }
static size_t slab_bytes(const acf_trainer *tr) { return (size_t)params(tr)->total * sizeof(acf_real); }

/* Is there a cell to learn from? Checks the rows themselves, because a step searches on until it finds one. */
static bool has_cells(const acf_trainer *tr) {
    const acf_table *t = tr->data.table;
    for (int64_t k = 0; k < tr->rows.n; k++) {
        const int64_t row = acf_rows_at(&tr->rows, k);
        if (acf_table_row_observed(t, row) > acf_holdout_row(tr->data.hold, t, row, tr->held)) return true;
    }
    return false;
}

static acf_status check(acf_trainer *tr) {
    ACF_TRY(acf_encoder_check(tr->data.encoder, tr->data.table));
    if (tr->data.valid_rows) ACF_TRY(acf_encoder_check(tr->data.encoder, tr->data.valid_table));
    if (acf_net_columns(tr->net) != tr->data.table->D)
        return acf_fail(ACF_ESHAPE, "a network of %lld columns for a table of %lld",
                        (long long)acf_net_columns(tr->net), (long long)tr->data.table->D);
    if (!(tr->held = acf_alloc((size_t)tr->data.table->D, "held-out cells"))) return ACF_EMEMORY;
    if (!has_cells(tr))
        return acf_fail(ACF_EDATA, "none of the %lld rows has a cell to learn from", (long long)tr->rows.n);
    return ACF_OK;
}

/* Steps that the limits allow, 0 when there is none. */
static int64_t limit_of(const acf_trainer *tr) {
    int64_t steps = tr->set.steps, all;
    if (tr->set.epochs == 0 || __builtin_mul_overflow(tr->set.epochs, acf_batch_sampler_count(&tr->sampler), &all))
        return steps;
    return steps ? acf_min(steps, all) : all;
}

/* Equal steps: 257 rows at 256 a step become 129 and 128; a step of one row would count as much as one of 256. */
static int64_t step_rows(int64_t rows, int64_t batch) { return acf_ceil_div(rows, acf_ceil_div(rows, batch)); }

acf_status acf_trainer_restart(acf_trainer *tr) {
    return acf_batch_sampler_start(&tr->rows, step_rows(tr->rows.n, tr->set.batch), tr->set.seed, true, &tr->sampler);
}

/* Most rows of a step in either pass: a second pass may have more rows. */
static int64_t capacity(const acf_trainer *tr) {
    if (!tr->data.table) return tr->sampler.size;
    return acf_max(tr->sampler.size, step_rows(acf_max(tr->data.table->N, 1), tr->set.batch));
}

static acf_status make_memory(acf_trainer *tr) {
    acf_params *ps = params(tr);
    ACF_TRY(acf_tape_create(ps->dev, NULL, &tr->tape));
    if (!(tr->row = acf_alloc((size_t)capacity(tr) * sizeof *tr->row, "a batch"))) return ACF_EMEMORY;
    if (!tr->task->held(tr)) return ACF_OK;
    tr->best = ps->dev->memory.alloc(ps->dev->memory.ctx, slab_bytes(tr));
    if (!tr->best && ps->dev->memory.refuse) return ps->dev->memory.refuse(ps->dev->memory.ctx, slab_bytes(tr), 0);
    return tr->best ? ACF_OK : acf_fail(ACF_EMEMORY, "out of memory: %zu bytes for the best weights", slab_bytes(tr));
}

acf_status acf_trainer_settle(acf_trainer *tr, const acf_options *o) {
    ACF_TRY(acf_train_settings_read(o, &tr->set));
    ACF_TRY(acf_options_to_json(o, tr->task->recorded, &tr->options));
    if (!acf_device_multiplies(params(tr)->dev, tr->set.precision))
        return acf_fail(ACF_EDEVICE, "the option 'precision' is %s; use precision float",
                        tr->set.precision == ACF_PRECISION_BF16 ? "bf16, but this CPU has no AVX512-BF16"
                                                                : "tf32, which needs a GPU");
    if (!params(tr)->grad)
        return acf_fail(ACF_EUSAGE, "the network was created for queries only; create it for training");
    tr->state.best = INFINITY, tr->pass = 1;
    ACF_TRY(acf_trainer_restart(tr));
    tr->set.schedule.total = tr->limit = limit_of(tr);
    return make_memory(tr);
}

/* Copies the validation rows; the table is the default for their table. */
static void take_valid(acf_trainer *tr, const acf_train_data *data) {
    const bool any = data->valid_rows && data->valid_rows->n > 0;
    tr->data.valid_rows = any ? &tr->valid_rows : NULL, tr->data.valid_table = NULL;
    if (!any) return;
    tr->valid_rows = *data->valid_rows;
    tr->data.valid_table = data->valid_table ? data->valid_table : data->table;
}

/* Cells that a second pass would learn from; 0: the first pass already has the whole table. */
static int64_t count_all(const acf_trainer *tr) {
    const acf_train_data *d = &tr->data;
    int64_t cells = 0;
    if (d->hold) return d->hold->held + d->hold->visible;
    if (d->valid_table != d->table) return 0;
    for (int64_t i = 0; i < d->table->N; i++) cells += acf_table_row_observed(d->table, i);
    return cells;
}

acf_status acf_trainer_create(acf_net *net, const acf_train_data *data, const acf_options *o, acf_trainer **out) {
    acf_status status = ACF_OK;
    acf_trainer *tr = acf_alloc_zero(sizeof *tr, "a trainer");
    if (!tr) return ACF_EMEMORY;
    tr->task = &table_task, tr->ps = acf_net_params(net), tr->net = net, tr->data = *data;
    tr->rows = tr->given_rows = data->rows ? *data->rows : acf_rows_all(data->table->N);
    tr->data.rows = &tr->rows;
    if (data->hold && data->hold->held == 0) tr->data.hold = NULL;
    take_valid(tr, data);
    tr->given = tr->data, tr->given.rows = &tr->given_rows;
    ACF_TRY_DONE(check(tr));
    ACF_TRY_DONE(acf_train_settings_read(o, &tr->set));
    ACF_TRY_DONE(acf_valid_count(tr));
    tr->all_cells = count_all(tr);
    ACF_TRY_DONE(acf_trainer_settle(tr, o));
    ACF_TRY_DONE(acf_batch_create(capacity(tr), data->table->D, &tr->batch));
    ACF_TRY_DONE(acf_gmm_fit(net, data->table, &tr->rows, data->encoder, tr->data.hold, tr->set.seed, NULL, &tr->gmm));
    *out = tr;
done:
    if (status) acf_trainer_free(tr);
    return status;
}

void acf_trainer_forget(acf_trainer *tr) {
    acf_train_graph_free(tr->graph);
    tr->graph = NULL, tr->by_hand = false;
}

void acf_trainer_free(acf_trainer *tr) {
    if (!tr) return;
    const acf_memory *mem = &params(tr)->dev->memory;
    acf_trainer_forget(tr);
    if (tr->best) mem->free(mem->ctx, tr->best);
    if (tr->image) tr->task->free(tr);
    acf_release(tr->row);
    acf_release(tr->held);
    acf_batch_free(tr->batch);
    acf_tape_free(tr->tape);
    json_decref(tr->options);
    acf_encoder_free(tr->all);
    acf_release(tr->filled);
    acf_release(tr);
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

static acf_device *device(const acf_trainer *tr) { return params(tr)->dev; }

/* Fills the batch with the next rows until something is to be modelled; such rows exist (has_cells). A batch without
 * modelled cells is no step: Adam's moments would decay for nothing. */
static void next_batch(acf_trainer *tr, acf_batch *b) {
    acf_table t;
    do {
        int64_t n;
        while ((n = acf_batch_sampler_next(&tr->sampler, tr->row)) == 0) {}
        t = acf_fill_table(tr);
        acf_batch_fill(device(tr), b, &t, tr->data.encoder, tr->data.hold, ACF_BATCH_TRAIN, tr->row, n);
        acf_masks_draw(device(tr), &tr->set.masks, tr->set.seed, (uint32_t)tr->state.step, n, b->D, b->id, b->b, b->m);
    } while (acf_loss_rows(b) == 0);
    acf_batch_dequantise(device(tr), b, &t, tr->data.encoder, tr->row, tr->set.seed, (uint32_t)tr->state.step);
}

static void table_fill(acf_trainer *tr, acf_loader *loader, int stage, int64_t *n, double *shift) {
    acf_batch *b = acf_table_stage(loader, stage);
    next_batch(tr, b);
    *n = b->N, *shift = 0;
}

static acf_status table_gradients(acf_trainer *tr, acf_train_step *now) {
    acf_pass pass = {.dropout = tr->set.dropout, .seed = tr->set.seed, .step = (uint32_t)tr->state.step};
    next_batch(tr, tr->batch);
    now->rows = tr->batch->N;
    return acf_loss_backward(tr->tape, tr->net, tr->batch, &pass, &tr->set.loss, &now->loss);
}

static acf_status gradients(acf_trainer *tr, acf_train_step *now) {
    ACF_TRY(acf_params_zero_grad(params(tr)));
    device(tr)->precision = tr->set.precision; /* for this call only: reported values come from float */
    acf_status status = tr->task->gradients(tr, now);
    device(tr)->precision = ACF_PRECISION_FLOAT;
    ACF_TRY(status);
    return acf_grad_norm(params(tr), &now->norm);
}

static acf_status update(acf_trainer *tr, const acf_train_step *now) {
    acf_params *ps = params(tr);
    acf_adam adam = acf_train_adam(&tr->set);
    adam.lr = now->lr;
    int64_t n = tr->state.updates + 1;
    ACF_TRY(acf_adam_step(ps, &adam, n, acf_clip_factor(now->norm, tr->set.clip)));
    tr->state.updates = n;
    return tr->set.ema > 0 ? acf_ema_step(ps, acf_ema_beta(tr->set.ema, n)) : ACF_OK;
}

/* Counts a step that was not finite; the thread's last error is the cause. */
static acf_status skip_step(acf_trainer *tr, acf_train_step *now) {
    acf_train_state *s = &tr->state;
    now->skipped = true, now->loss = now->norm = NAN;
    s->skipped++, s->in_row++;
    if (s->in_row <= ACF_SKIPS_IN_ROW && s->skipped <= ACF_SKIPS_TOTAL) return ACF_OK;
    return acf_fail(ACF_ENUMERIC,
                    "training diverged: after step %lld, %lld steps were not finite, the last %lld in a row; the "
                    "last because of %s",
                    (long long)s->step, (long long)s->skipped, (long long)s->in_row, acf_error());
}

/* A step without a graph: the host draws its batch and reads its loss. */
static acf_status step_by_hand(acf_trainer *tr, acf_train_step *out) {
    acf_batch_sampler before = tr->sampler;
    acf_train_step now = {.lr = acf_schedule_at(&tr->set.schedule, tr->state.step + 1)};
    acf_status status = gradients(tr, &now);
    if (!status) status = update(tr, &now);
    if (status && status != ACF_ENUMERIC) {
        tr->sampler = before;
        return status;
    }
    tr->state.step++;
    if (tr->sampler.at == tr->rows.n) acf_batch_sampler_next(&tr->sampler, tr->row); /* 0: the epoch is complete */
    if (status)
        ACF_TRY(skip_step(tr, &now));
    else
        tr->state.in_row = 0;
    *out = now;
    return ACF_OK;
}

static bool validation_due(const acf_trainer *tr);
static bool ended(const acf_trainer *tr, const acf_train_hooks *hooks, acf_train_end *why);

/* Batch steps up to the next validation or the end, at most `capacity`; position and step advance with them. */
static int64_t plan_steps(acf_trainer *tr, const acf_train_hooks *hooks, int64_t capacity, acf_batch_step *batch_step) {
    int64_t n = 0;
    acf_train_end why;
    do {
        const acf_batch_sampler *w = &tr->sampler;
        batch_step[n] = (acf_batch_step){w->order, w->at, 0, (uint32_t)tr->state.step,
                                         acf_schedule_at(&tr->set.schedule, tr->state.step + 1)};
        batch_step[n++].n = (int32_t)acf_batch_sampler_next(&tr->sampler, NULL);
        tr->state.step++;
        if (tr->sampler.at == tr->rows.n) acf_batch_sampler_next(&tr->sampler, NULL); /* 0: the epoch is complete */
    } while (n < capacity && !validation_due(tr) && !ended(tr, hooks, &why));
    return n;
}

/* The same one by one; the host makes each batch while the device works on the one before. */
static acf_status stream_steps(acf_trainer *tr, const acf_train_hooks *hooks, int64_t capacity,
                               acf_batch_step *batch_step, int64_t *n, bool *by_hand) {
    acf_train_end why;
    do {
        int stage;
        int64_t rows;
        double shift;
        ACF_TRY(acf_train_graph_feed(tr->graph, &stage));
        tr->task->fill(tr, acf_train_graph_loader(tr->graph), stage, &rows, &shift);
        batch_step[*n] = (acf_batch_step){.n = (int32_t)rows,
                                          .step = (uint32_t)tr->state.step,
                                          .lr = acf_schedule_at(&tr->set.schedule, tr->state.step + 1)};
        ACF_TRY(acf_train_graph_push(tr->graph, &batch_step[*n], shift, by_hand));
        ++*n, tr->state.step++;
        if (tr->sampler.at == tr->rows.n) acf_batch_sampler_next(&tr->sampler, NULL); /* 0: the epoch is complete */
    } while (*n < capacity && !validation_due(tr) && !ended(tr, hooks, &why));
    return ACF_OK;
}

/* Some steps in one go; *n is their number. */
static acf_status run_captured(acf_trainer *tr, const acf_train_hooks *hooks, int64_t capacity, acf_train_step *out,
                               int64_t *n, bool *by_hand) {
    acf_batch_step batch_step[ACF_STEPS_AT_ONCE];
    acf_train_graph *c = tr->graph;
    *n = 0;
    ACF_TRY(acf_train_graph_begin(c));
    if (acf_train_graph_streams(c))
        ACF_TRY(stream_steps(tr, hooks, capacity, batch_step, n, by_hand));
    else {
        *n = plan_steps(tr, hooks, capacity, batch_step);
        ACF_TRY(acf_train_graph_run(c, batch_step, *n, by_hand));
    }
    return acf_train_graph_collect(c, batch_step, *n, out);
}

/* With *by_hand set, no step was taken. */
static acf_status steps_captured(acf_trainer *tr, const acf_train_hooks *hooks, int64_t capacity, acf_train_step *out,
                                 int64_t *n, bool *by_hand) {
    const acf_batch_sampler sampler = tr->sampler;
    const acf_train_state before = tr->state;
    *by_hand = false;
    acf_status status = run_captured(tr, hooks, capacity, out, n, by_hand);
    if (status) {
        tr->sampler = sampler, tr->state = before;
        return *by_hand ? ACF_OK : status;
    }
    for (int64_t k = 0; k < *n; k++) {
        if (!out[k].skipped)
            tr->state.updates++, tr->state.in_row = 0;
        else {
            acf_fail(ACF_ENUMERIC, "a loss or a gradient that is not finite; lower the step size");
            ACF_TRY(skip_step(tr, &out[k]));
        }
    }
    return ACF_OK;
}

/* Creates the graph for these data. Tried once. */
static acf_status prepare_captured(acf_trainer *tr) {
    if (tr->graph || tr->by_hand) return ACF_OK;
    ACF_TRY(acf_train_graph_create(tr, &tr->graph));
    tr->by_hand = !tr->graph;
    return ACF_OK;
}

/* One step, or on a GPU some, at most `capacity`; *n is their number. */
static acf_status take_steps(acf_trainer *tr, const acf_train_hooks *hooks, int64_t capacity, acf_train_step *out,
                             int64_t *n) {
    bool by_hand;
    if (tr->fills && !tr->filled) ACF_TRY(acf_fill_rows(tr));
    ACF_TRY(prepare_captured(tr));
    if (tr->graph) {
        ACF_TRY(steps_captured(tr, hooks, acf_min(capacity, acf_train_graph_room(tr->graph)), out, n, &by_hand));
        if (!by_hand) return ACF_OK;
        acf_trainer_forget(tr);
        tr->by_hand = true;
    }
    *n = 1;
    return step_by_hand(tr, out);
}

acf_status acf_trainer_step(acf_trainer *tr, acf_train_step *out) {
    static const acf_train_hooks none = {0};
    acf_train_step now;
    int64_t n;
    ACF_TRY(take_steps(tr, &none, 1, &now, &n));
    if (out) *out = now;
    return ACF_OK;
}

/* ---- validation ------------------------------------------------------------------------------------------------ */

static acf_status copy_slab(const acf_trainer *tr, acf_real *to, const acf_real *from) {
    return acf_device_copy(device(tr), to, from, slab_bytes(tr), ACF_ON_DEVICE);
}

static bool averaged(const acf_trainer *tr) { return tr->set.ema > 0 && tr->state.updates > 0; }

/* Uses the averaged weights. The others are kept in the gradients' slab meanwhile, which is free between steps. */
acf_status acf_trainer_validate(acf_trainer *tr, double *nll) {
    acf_params *ps = params(tr);
    if (!tr->task->held(tr)) return acf_fail(ACF_EUSAGE, "nothing is held out: there is nothing to validate on");
    if (!averaged(tr)) return tr->task->score(tr, nll);
    ACF_TRY(copy_slab(tr, ps->grad, ps->value));
    ACF_TRY(copy_slab(tr, ps->value, ps->ema));
    acf_status status = tr->task->score(tr, nll), back = copy_slab(tr, ps->value, ps->grad);
    return status ? status : back;
}

bool acf_trainer_kept_mixture(const acf_trainer *tr) {
    return tr->net && acf_net_gmm_size(tr->net) > 0 && tr->state.best_step == 0 && isfinite(tr->state.best);
}

/* Validates, and keeps the weights where they are clearly the best so far. A value that is not finite counts as
 * infinite and does not end the run: later steps may recover, and patience is counted. */
static acf_status judge(acf_trainer *tr, double *valid) {
    acf_train_state *s = &tr->state;
    double nll;
    acf_status status = acf_trainer_validate(tr, &nll);
    if (status == ACF_ENUMERIC)
        nll = INFINITY;
    else
        ACF_TRY(status);
    if (nll < s->best - CLEAR_GAIN / (double)tr->task->held(tr)) {
        ACF_TRY(copy_slab(tr, tr->best, averaged(tr) ? params(tr)->ema : params(tr)->value));
        s->best = nll, s->best_step = s->step, s->stale = 0;
    } else {
        s->stale++;
    }
    s->validated = s->step;
    *valid = nll;
    return ACF_OK;
}

/* A network with a Gaussian mixture is a model of the table before its first step; with a few dozen rows training may
 * not improve it. */
static bool model_already(const acf_trainer *tr) {
    return tr->state.step == 0 && tr->task->held(tr) && tr->net && acf_net_gmm_size(tr->net) > 0;
}

static bool validation_due(const acf_trainer *tr) {
    int64_t since = tr->state.step - tr->state.validated;
    if (!tr->task->held(tr)) return false;
    if (tr->set.valid_every) return since >= tr->set.valid_every;
    return tr->sampler.at == 0 && since >= VALID_APART;
}

/* ---- a run ----------------------------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool ended(const acf_trainer *tr, const acf_train_hooks *hooks, acf_train_end *why) {
    const acf_train_settings *set = &tr->set;
    bool steps = tr->state.step >= (set->steps ? set->steps : UINT32_MAX); /* steps key random numbers in 32 bits */
    bool epochs = set->epochs && tr->sampler.epoch >= set->epochs;
    bool patience = tr->task->held(tr) && set->patience && tr->state.stale >= set->patience;
    bool stopped = hooks->stop && *hooks->stop;
    *why = steps ? ACF_END_STEPS : epochs ? ACF_END_EPOCHS : patience ? ACF_END_PATIENCE : ACF_END_STOPPED;
    return steps || epochs || patience || stopped;
}

/* Steps from one validation to the next. */
static int64_t steps_apart(const acf_trainer *tr) {
    int64_t epoch = acf_batch_sampler_count(&tr->sampler);
    return tr->set.valid_every ? tr->set.valid_every : acf_ceil_div(VALID_APART, epoch) * epoch;
}

/* Measurements of a run, for its reports. */
typedef struct meter {
    double begun, before;  /* clock at the start; seconds of earlier runs */
    double spent, rows;    /* seconds and rows of steps alone */
    int64_t steps, losses; /* steps taken; finite losses */
    double loss[LOSS_STEPS];
} meter;

static void count_step(meter *m, acf_train_progress *p, double spent) {
    m->spent += spent, m->rows += (double)p->last.rows, m->steps++;
    p->rows_per_second = m->spent > 0 ? m->rows / m->spent : 0;
    if (p->last.skipped) return;
    m->loss[m->losses++ % LOSS_STEPS] = p->last.loss;
    int64_t n = acf_min(m->losses, LOSS_STEPS);
    p->loss = 0;
    for (int64_t k = 0; k < n; k++) p->loss += m->loss[k] / (double)n;
}

/* Completes the report and calls the hook. Time left is estimated from all time so far, validation included. */
static void report(acf_trainer *tr, const acf_train_hooks *hooks, const meter *m, acf_train_progress *p) {
    const acf_train_state *s = &tr->state;
    double each = (seconds() - m->begun) / (double)acf_max(m->steps, 1);
    int64_t limit = tr->set.schedule.total, patience = tr->task->held(tr) ? tr->set.patience : 0;
    tr->seconds = m->before + (seconds() - m->begun);
    p->state = s, p->step = s->step, p->epoch = tr->sampler.epoch, p->each = each;
    p->left = limit ? each * (double)acf_max(limit - s->step, 0) : (double)NAN;
    p->left_early = patience
                        ? each * (double)acf_max((patience - s->stale) * steps_apart(tr) - (s->step - s->validated), 0)
                        : (double)NAN;
    if (p->left_early > p->left) p->left_early = p->left;
    if (hooks->report) hooks->report(hooks->ctx, p);
}

static acf_status run(acf_trainer *tr, const acf_train_hooks *hooks, acf_train_end *end) {
    const bool on_cpu = device(tr)->kind == ACF_DEVICE_CPU;
    acf_thread_tuner tempo = acf_thread_tuner_begin(on_cpu ? device(tr)->threads : 1);
    acf_train_progress p = {.loss = NAN, .valid = NAN, .last = {.loss = NAN, .norm = NAN}};
    acf_train_end why;
    meter m = {.begun = seconds(), .before = tr->seconds};
    if (!tr->set.steps && !tr->set.epochs && !(tr->set.patience && tr->task->held(tr)) && !hooks->stop)
        return acf_fail(ACF_EUSAGE,
                        "training would have no end: set steps or epochs, or patience with something held out");
    if (model_already(tr)) ACF_TRY(judge(tr, &p.valid));
    while (!ended(tr, hooks, &why)) {
        acf_train_step step[ACF_STEPS_AT_ONCE];
        int64_t n;
        double begun = seconds();
        ACF_TRY(take_steps(tr, hooks, ACF_STEPS_AT_ONCE, step, &n));
        const double each = (seconds() - begun) / (double)n;
        for (int64_t k = 0; k < n; k++) {
            p.last = step[k];
            count_step(&m, &p, each);
            acf_thread_tuner_step(&tempo, each);
        }
        if (on_cpu) device(tr)->threads = tempo.now;
        p.validated = validation_due(tr);
        if (p.validated) ACF_TRY(judge(tr, &p.valid));
        report(tr, hooks, &m, &p);
    }
    if (tr->task->held(tr) && why <= ACF_END_EPOCHS && tr->state.validated < tr->state.step) {
        ACF_TRY(judge(tr, &p.valid));
        p.validated = true;
        report(tr, hooks, &m, &p);
    }
    tr->seconds = m.before + (seconds() - m.begun);
    if (end) *end = why;
    return ACF_OK;
}

acf_status acf_trainer_run(acf_trainer *tr, const acf_train_hooks *hooks, acf_train_end *end) {
    static const acf_train_hooks none = {0};
    const int threads = device(tr)->threads;
    const acf_status status = run(tr, hooks ? hooks : &none, end);
    device(tr)->threads = threads;
    return status;
}

/* ---- the weights to keep --------------------------------------------------------------------------------------- */

acf_status acf_trainer_finish(acf_trainer *tr) {
    acf_params *ps = params(tr);
    if (tr->best && isfinite(tr->state.best)) {
        ACF_TRY(copy_slab(tr, ps->value, tr->best));
        ACF_TRY(acf_calibrate(tr));
        ACF_TRY(acf_donor_trust_fit(tr));
    } else if (averaged(tr)) {
        ACF_TRY(copy_slab(tr, ps->value, ps->ema));
    }
    return tr->net ? acf_net_calibrate(tr->net, tr->scale_factor, tr->temperature) : ACF_OK;
}

static acf_status table_finite(acf_trainer *tr, int64_t row) {
    tr->row[0] = row;
    acf_batch_fill(device(tr), tr->batch, tr->data.table, tr->data.encoder, NULL, ACF_BATCH_TRAIN, tr->row, 1);
    acf_tape_begin(tr->tape, false);
    return acf_tape_check(tr->tape, acf_net_logp(tr->tape, acf_net_view(tr->tape, tr->net, tr->batch, NULL)));
}

/* ACF_OK when some row has a finite joint density with the weights in `value`. Row by row, so that one outlier does not
 * reject them. */
static acf_status some_row_is_finite(acf_trainer *tr) {
    acf_status status = ACF_ENUMERIC;
    int64_t n = acf_min(tr->rows.n, tr->sampler.size);
    for (int64_t k = 0; k < n && status == ACF_ENUMERIC; k++) status = tr->task->finite(tr, acf_rows_at(&tr->rows, k));
    return status;
}

/* Tries averaged weights first: they are more stable. The last ones wait in the gradients' slab. */
acf_status acf_trainer_rescue(acf_trainer *tr) {
    acf_params *ps = params(tr);
    if (tr->best && isfinite(tr->state.best)) return acf_trainer_finish(tr);
    ACF_TRY(copy_slab(tr, ps->grad, ps->value));
    ACF_TRY(acf_trainer_finish(tr));
    acf_status status = some_row_is_finite(tr);
    if (status != ACF_ENUMERIC || !averaged(tr)) return status;
    ACF_TRY(copy_slab(tr, ps->value, ps->grad));
    return some_row_is_finite(tr);
}

static acf_fit_record record_second(const acf_trainer *tr, acf_train_end end) {
    acf_fit_record r = tr->first;
    r.skipped += tr->state.skipped, r.left_out = tr->left_out, r.seconds = tr->seconds;
    if (end == ACF_END_STOPPED)
        r.end = end;
    else
        r.refit = end == ACF_END_DIVERGED ? ACF_REFIT_DIVERGED : ACF_REFIT_DONE;
    r.filled = tr->fills && r.refit == ACF_REFIT_DONE;
    return r;
}

acf_fit_record acf_trainer_record(const acf_trainer *tr, acf_train_end end) {
    if (tr->pass == 2) return record_second(tr, end);
    acf_fit_record r = {.known = true,
                        .end = end,
                        .rows = tr->rows.n,
                        .held = tr->task->held(tr),
                        .steps = tr->state.step,
                        .epochs = tr->sampler.epoch,
                        .skipped = tr->state.skipped,
                        .left_out = tr->left_out,
                        .valid = tr->state.best,
                        .valid_step = tr->state.best_step,
                        .scale_factor = tr->scale_factor,
                        .temperature = tr->temperature,
                        .ridge = tr->gmm.ridge,
                        .seconds = tr->seconds};
    memcpy(r.donor_trust, tr->donor_trust, sizeof r.donor_trust);
    return r;
}

static const acf_task table_task = {"another table",      ACF_OPTIONS_RECORDED,
                                    acf_valid_cells,      table_gradients,
                                    acf_valid_score,      table_finite,
                                    acf_checkpoint_table, NULL,
                                    &acf_table_loader,    table_fill};
