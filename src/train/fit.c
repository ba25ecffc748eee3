/* A whole fit: see fit.h. */
#include "train/fit.h"

#include "train/batch_auto.h"
#include "train/checkpoint.h"
#include "train/refit.h"
#include "train/valid.h"

#include <math.h>
#include <string.h>

typedef struct run {
    const acf_fit *how;
    acf_trainer *tr;
    double saved;        /* tr->seconds at the last attempt to save a checkpoint */
    acf_failure trouble; /* why the last attempt failed, or ACF_OK; at the end, why the second pass was abandoned */
    volatile sig_atomic_t stop;
    bool broken; /* a second pass could not begin: the trainer's state is not usable */
} run;

acf_status acf_fit_read(const acf_options *o, acf_fit *out) {
    const char *path = acf_options_text(o, "checkpoint");
    *out = (acf_fit){.checkpoint = *path ? path : NULL,
                     .every = acf_options_real(o, "checkpoint-every"),
                     .resume = acf_options_bool(o, "resume")};
    if (out->resume && !out->checkpoint)
        return acf_fail(ACF_EUSAGE, "resume is set, but no checkpoint is named; set the option 'checkpoint'");
    return ACF_OK;
}

/* ---- checkpoints ----------------------------------------------------------------------------------------------- */

/* Are checkpoints written during training? */
static bool keeps_on(const acf_fit *how) { return how->checkpoint && how->every >= 0; }

/* Saves a checkpoint; a failure is recorded as trouble, and tried again later. */
static void save_or_report(run *r) {
    acf_failure before;
    acf_failure_save(&before);
    r->trouble.status = acf_checkpoint_save(r->tr, r->how->checkpoint);
    if (r->trouble.status) acf_failure_save(&r->trouble);
    acf_failure_restore(&before);
    r->saved = r->tr->seconds;
}

static acf_status begin(run *r) {
    const char *path = r->how->checkpoint;
    if (!path) return ACF_OK;
    bool there = acf_checkpoint_exists(path);
    if (there && r->how->resume) return acf_checkpoint_load(r->tr, path);
    if (r->how->member > 0) {
        if (keeps_on(r->how)) save_or_report(r);
        return ACF_OK;
    }
    if (there)
        return acf_fail(
            ACF_EUSAGE,
            "the checkpoint '%s' exists: it may be of a run that was interrupted; use the option 'resume' to go on "
            "with it, or remove it to begin anew",
            path);
    return keeps_on(r->how) ? acf_checkpoint_save(r->tr, path) : ACF_OK;
}

/* Replaces `auto` by a number. A resumed run keeps the batch it had, where that still fits. */
static acf_status settle_batch(acf_model *m, const acf_train_data *data, const acf_fit *how) {
    int64_t rows, before;
    if (acf_options_int(m->config, "batch") != ACF_INT_AUTO) return ACF_OK;
    ACF_TRY(acf_batch_auto(m->net, data, m->config, &rows));
    if (how->resume && acf_checkpoint_exists(how->checkpoint)) {
        ACF_TRY(acf_checkpoint_batch(how->checkpoint, &before));
        rows = acf_max(1, acf_min(rows, before));
    }
    return acf_options_set_int(m->config, "batch", rows, ACF_FROM_USER);
}

/* Only after a good step: a run that is about to diverge must not overwrite its last good state. */
static void save_when_due(run *r) {
    const acf_fit *how = r->how;
    if (!how->checkpoint || how->every <= 0 || r->tr->state.in_row || r->tr->seconds - r->saved < how->every) return;
    save_or_report(r);
}

/* ---- reports --------------------------------------------------------------------------------------------------- */

/* Members after this one; in parallel, those of the slowest thread. */
static double others_left(const run *r) {
    const int64_t others = acf_max(r->how->members - r->how->member - 1, 0);
    return (double)acf_ceil_div(others, acf_max(r->how->side, 1));
}

/* Upper bound of the seconds of this member's second pass. Its length is known after the last step of the first. */
static double second_at_most(const run *r, const acf_train_progress *p) {
    const acf_trainer *tr = r->tr;
    if (!acf_refit_planned(tr)) return 0;
    if (p->left > 0) return ACF_REFIT_STEPS * p->each * (double)tr->limit;
    return acf_refit_due(tr, ACF_END_STEPS) ? ACF_REFIT_STEPS * p->each * (double)tr->state.best_step : 0;
}

/* Upper bound of the seconds left, for all passes of this member and of those behind it. A second pass has
 * ACF_REFIT_STEPS steps for each that the first took to its best, which may be its last. NaN: there is no limit. */
static double left_at_most(const run *r, const acf_train_progress *p) {
    const acf_trainer *tr = r->tr;
    const double first = tr->limit ? p->each * (double)tr->limit : (double)NAN,
                 second = acf_refit_planned(tr) ? ACF_REFIT_STEPS * first : 0;
    const double here = tr->pass == 1 ? p->left + second_at_most(r, p) : p->left;
    return others_left(r) > 0 ? here + others_left(r) * (first + second) : here;
}

/* The same if no validation improves from now on, and each later member takes as long as this one. NaN: no early
 * end. */
static double left_if_no_better(const run *r, const acf_train_progress *p) {
    const acf_trainer *tr = r->tr;
    double here = tr->pass == 1 ? p->left_early : others_left(r) > 0 ? p->left : (double)NAN;
    if (tr->pass == 1 && acf_refit_planned(tr)) here += p->each * ACF_REFIT_STEPS * (double)tr->state.best_step;
    here += others_left(r) * (tr->seconds + here);
    const double most = left_at_most(r, p);
    return here > most ? most : here;
}

/* In a second pass the reported validation is that of the first. */
static void report_progress(run *r, const acf_train_progress *p) {
    const acf_train_settings *set = &r->tr->set;
    const acf_fit_record *first = r->tr->pass == 2 ? &r->tr->first : NULL;
    if (!r->how->callback) return;
    const acf_fit_report out = {
        .step = p->step,
        .steps = set->schedule.total,
        .epoch = p->epoch,
        .loss = p->last.loss,
        .mean_loss = p->loss,
        .valid = first ? first->valid : p->valid,
        .best = first ? first->valid : p->state->best,
        .best_step = first ? first->valid_step : p->state->best_step,
        .validated = p->validated,
        .stale = p->state->stale,
        .patience = r->tr->task->held(r->tr) ? set->patience : 0,
        .rows_per_second = p->rows_per_second,
        .elapsed = r->how->before + r->tr->seconds,
        .eta = left_at_most(r, p),
        .eta_early = left_if_no_better(r, p),
        .skipped = r->tr->first.skipped + p->state->skipped,
        .trouble = r->trouble.status ? r->trouble.sentence : NULL,
        .pass = r->tr->pass,
        .passes = acf_refit_planned(r->tr) ? 2 : 1,
        .member = r->how->member + 1,
        .members = r->how->members > 1 ? r->how->members : 1,
    };
    if (r->how->callback(r->how->ctx, &out)) r->stop = 1;
}

static void report(void *ctx, const acf_train_progress *p) {
    save_when_due(ctx);
    report_progress(ctx, p);
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

/* One more report after the last step, with r->trouble. */
static void report_trouble(run *r) {
    const acf_trainer *tr = r->tr;
    const acf_train_progress last = {.state = &tr->state,
                                     .last = {.loss = NAN, .norm = NAN},
                                     .step = tr->state.step,
                                     .epoch = tr->sampler.epoch,
                                     .loss = NAN,
                                     .left_early = NAN};
    acf_failure_save(&r->trouble);
    acf_error_clear();
    report_progress(r, &last);
}

/* Diverged: the model gets the last good weights, the caller the message of the divergence. A later ensemble member is
 * left out. */
static acf_status end_diverged(run *r, acf_model *m) {
    acf_failure why;
    acf_failure_save(&why);
    if (r->how->member > 0) {
        acf_fail(ACF_ENUMERIC, "member %d of %d is left out of the model, which has the others: %s", r->how->member + 1,
                 r->how->members, why.sentence);
        report_trouble(r);
        m->record.seconds = r->tr->seconds;
    } else if (acf_trainer_rescue(r->tr) == ACF_OK)
        m->record = acf_trainer_record(r->tr, ACF_END_DIVERGED);
    return acf_failure_restore(&why);
}

/* The second pass diverged. The model of the first is kept, so this is no failure. */
static acf_status end_refit_diverged(run *r, acf_model *m) {
    acf_failure why;
    acf_failure_save(&why);
    acf_error_clear();
    ACF_TRY(acf_refit_drop(r->tr));
    m->record = acf_trainer_record(r->tr, ACF_END_DIVERGED);
    acf_fail(ACF_ENUMERIC, "the second pass, over all cells, was given up and the model of the first is kept: %s",
             why.sentence);
    report_trouble(r);
    return ACF_OK;
}

/* Puts the weights to keep, and the encoder they belong to, into m. */
static acf_status keep(run *r, acf_model *m, acf_train_end end) {
    if (r->tr->pass == 2 && end == ACF_END_STOPPED)
        ACF_TRY(acf_refit_drop(r->tr));
    else
        ACF_TRY(acf_trainer_finish(r->tr));
    m->record = acf_trainer_record(r->tr, end);
    if (m->record.refit != ACF_REFIT_DONE) return ACF_OK;
    acf_encoder_free(m->encoder);
    m->encoder = acf_refit_encoder(r->tr);
    return ACF_OK;
}

/* Out of memory: the failed step had no effect, so the state after the last step is saved. If that fails too, the file
 * stays as it was. The message says what ran out, and how to continue. */
static acf_status end_without_memory(run *r) {
    const char *path = r->how->checkpoint;
    acf_failure why;
    acf_failure_save(&why);
    if (!path || r->broken || r->tr->state.step == 0) return why.status;
    if (acf_checkpoint_save(r->tr, path) == ACF_OK)
        return acf_fail(
            ACF_EMEMORY,
            "%s; '%s' has the state after step %lld: use the option 'resume' to go on from it, with a smaller batch or "
            "more memory",
            why.sentence, path, (long long)r->tr->state.step);
    return acf_failure_restore(&why);
}

/* "training was interrupted after step 12 of its second pass, of member 2 of 3" */
static acf_status end_interrupted(const run *r) {
    const acf_fit *how = r->how;
    char which[64] = "", rest[ACF_SENTENCE_MAX] = "";
    acf_text w = acf_text_into(which, sizeof which), t = acf_text_into(rest, sizeof rest);
    if (r->tr->pass == 2) acf_text_add(&w, " of its second pass");
    if (how->members > 1) acf_text_addf(&w, ", of member %d of %d", how->member + 1, how->members);
    if (how->checkpoint) acf_text_addf(&t, "; use the option 'resume' to go on from '%s'", how->checkpoint);
    return acf_fail(ACF_EINTERRUPT, "training was interrupted after step %lld%s%s", (long long)r->tr->state.step, which,
                    rest);
}

/* A member with others after it leaves no checkpoint of its own: theirs includes it. If the callback ended training in
 * its very last step, no others follow now. */
static acf_status end_well(run *r, acf_model *m, acf_train_end end) {
    const bool followed = r->how->member + 1 < r->how->members,
               stopped = end == ACF_END_STOPPED || (followed && r->stop);
    acf_status saved = r->how->checkpoint && (stopped || (!followed && keeps_on(r->how)))
                           ? acf_checkpoint_save(r->tr, r->how->checkpoint)
                           : ACF_OK;
    ACF_TRY(keep(r, m, end));
    return saved || !stopped ? saved : end_interrupted(r);
}

/* Runs on from the trainer's state, through the second pass where one is due. */
static acf_status run_passes(run *r, acf_train_end *end) {
    const acf_train_hooks hooks = {.report = report, .ctx = r, .stop = &r->stop};
    ACF_TRY(acf_trainer_run(r->tr, &hooks, end));
    if (acf_refit_due(r->tr, *end)) {
        r->broken = true;
        ACF_TRY(acf_refit_begin(r->tr, *end));
        r->broken = false;
        ACF_TRY(acf_trainer_run(r->tr, &hooks, end));
    }
    return r->tr->pass == 2 && *end == ACF_END_STEPS ? acf_refit_check(r->tr) : ACF_OK;
}

/* Runs r->tr to its end, and frees it. */
static acf_status run_to_end(run *r, acf_model *m) {
    acf_status status = ACF_OK;
    acf_train_end end;
    ACF_TRY_DONE(begin(r));
    r->saved = r->tr->seconds;
    status = run_passes(r, &end);
    if (status == ACF_ENUMERIC)
        status = r->tr->pass == 2 ? end_refit_diverged(r, m) : end_diverged(r, m);
    else if (status == ACF_EMEMORY)
        status = end_without_memory(r);
    else if (status == ACF_OK)
        status = end_well(r, m, end);
    if (m->record.known) {
        const acf_status there = acf_device_sync(m->dev); /* sessions have streams of their own */
        status = status ? status : there;
    }
done:
    acf_trainer_free(r->tr);
    return status;
}

acf_status acf_fit_model(acf_model *m, const acf_table *t, const acf_holdout *hold, const acf_fit *how) {
    run r = {.how = how};
    acf_train_settings set;
    acf_row_split split;
    m->record.known = false;
    ACF_TRY(acf_train_settings_read(m->config, &set));
    ACF_TRY(acf_valid_split(t, how->valid, &set, &split));
    const acf_train_data data = {t, &split.train, m->encoder, hold, how->valid, split.valid.n ? &split.valid : NULL};
    ACF_TRY(settle_batch(m, &data, how));
    ACF_TRY(acf_trainer_create(m->net, &data, m->config, &r.tr));
    r.tr->member = how->member, r.tr->done = how->done;
    return run_to_end(&r, m);
}

acf_status acf_fit_image_map(const acf_images *im, const acf_options *o, acf_image_map **out) {
    int64_t count[ACF_IMAGE_LEVELS] = {0};
    const int64_t size = im->H * im->W * im->C;
    acf_image_dequantiser dequantiser;
    acf_row_split split;
    if (acf_options_choice(o, "image-dequantise") == ACF_IMAGE_LOGIT) return acf_image_map_uniform_logit(im->bits, out);
    ACF_TRY(acf_image_split_rows(im, o, &split));
    for (int64_t i = 0; i < split.train.n; i++) {
        const uint8_t *level = acf_images_at(im, acf_rows_at(&split.train, i));
        for (int64_t p = 0; p < size; p++) count[level[p]]++;
    }
    acf_image_dequantiser_fit(im->bits, count, &dequantiser);
    return acf_image_map_gaussian(im->bits, &dequantiser, out);
}

acf_status acf_fit_images(acf_model *m, const acf_images *im, const acf_fit *how) {
    run r = {.how = how};
    m->record.known = false;
    ACF_TRY(acf_trainer_create_images(m->image, m->map, im, m->config, &r.tr));
    return run_to_end(&r, m);
}
