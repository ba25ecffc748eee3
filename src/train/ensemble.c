/* Ensembles: see ensemble.h. */
#include "train/ensemble.h"

#include "train/checkpoint.h"
#include "train/refit.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SEED_BITS 53 /* of the option `seed` */

uint64_t acf_member_seed(uint64_t seed, int k) {
    uint32_t bits[4];
    if (k == 0) return seed;
    acf_rng_bits((acf_rng_counter){.seed = seed, .row = (uint64_t)k, .stream = ACF_STREAM_MEMBER}, bits);
    return ((uint64_t)bits[0] << 32 | bits[1]) >> (64 - SEED_BITS);
}

/* An untrained model with every option of the first but the seed, also those set by a preset or by the width of the
 * table. Gives *hold and *out; it works on dev. */
static acf_status make(const acf_model *first, acf_device *dev, const acf_table *t, uint64_t seed, acf_holdout **hold,
                       acf_model **out) {
    acf_options *config;
    acf_encoder *encoder;
    ACF_TRY(acf_options_copy(first->config, &config));
    acf_status status = acf_options_set_int(config, "seed", (int64_t)seed, ACF_FROM_USER);
    if (!status) status = acf_train_prepare(t, NULL, config, hold, &encoder);
    if (status) {
        acf_options_free(config);
        return status;
    }
    return acf_model_make(dev, config, encoder, seed, true, out); /* takes both over, also when it fails */
}

/* ---- resuming -------------------------------------------------------------------------------------------------- */

/* The batch that was chosen when the first member was trained. */
static acf_status restore_batch(acf_model *m, const char *path) {
    int64_t batch;
    if (acf_options_int(m->config, "batch") != ACF_INT_AUTO) return ACF_OK;
    ACF_TRY(acf_checkpoint_batch(path, &batch));
    return acf_options_set_int(m->config, "batch", batch, ACF_FROM_USER);
}

/* The trained state of a member: its weights, and the encoder they belong to. */
static acf_status restore(acf_model *m, const acf_table *t, const char *path, int k, const acf_fit_record *record) {
    acf_train_settings set;
    acf_encoder *all;
    const acf_rows rows = acf_rows_all(t->N);
    ACF_TRY(acf_checkpoint_member_values(path, k, acf_net_params(m->net)));
    if (record->refit == ACF_REFIT_DONE) {
        ACF_TRY(acf_train_settings_read(m->config, &set));
        ACF_TRY(acf_refit_encode(t, &rows, &set.encoding, &all));
        acf_encoder_free(m->encoder);
        m->encoder = all;
    }
    m->record = *record;
    return ACF_OK;
}

/* Restores the members that were complete when the checkpoint was written, m first. */
static acf_status restore_all(acf_model *m, const acf_table *t, const char *path, const acf_checkpoint_ensemble *was) {
    ACF_TRY(restore_batch(m, path));
    for (int k = 0; k < was->kept; k++) {
        acf_model *one = m;
        acf_holdout *hold = NULL;
        if (k) {
            acf_status status = make(m, m->dev, t, (uint64_t)was->seed[k], &hold, &one);
            acf_holdout_free(hold);
            ACF_TRY(status);
            acf_model_append(m, one);
        }
        ACF_TRY(restore(one, t, path, k, &was->record[k]));
    }
    return ACF_OK;
}

/* ---- one after the other --------------------------------------------------------------------------------------- */

static double seconds_of(const acf_model *m) {
    double sum = 0;
    for (; m; m = m->next) sum += m->record.seconds;
    return sum;
}

/* Did its training end without an interruption? */
static bool complete(const acf_model *m) { return m->record.known && m->record.end != ACF_END_STOPPED; }

/* Trains a member behind the others and appends it, if it is worth keeping. */
static acf_status fit_another(acf_model *m, const acf_table *t, acf_fit *how) {
    acf_holdout *hold = NULL;
    acf_model *one = NULL;
    const uint64_t seed = acf_member_seed((uint64_t)acf_options_int(m->config, "seed"), how->member);
    acf_status status = make(m, m->dev, t, seed, &hold, &one);
    if (!status) status = acf_fit_model(one, t, hold, how);
    acf_holdout_free(hold);
    const bool good = one && complete(one);
    if (one) how->before += one->record.seconds;
    if (good)
        acf_model_append(m, one);
    else
        acf_model_free(one);
    if (status == ACF_OK || status == ACF_EINTERRUPT || good) return status;
    if (status == ACF_ENUMERIC) { /* already reported */
        acf_error_clear();
        return ACF_OK;
    }
    m->record.known = false;
    return status;
}

/* Members `from` and those behind it. */
static acf_status fit_others(acf_model *m, const acf_table *t, acf_fit *how, int from) {
    how->done = m, how->before = seconds_of(m);
    for (how->member = from; how->member < how->members; how->member++) {
        ACF_TRY(fit_another(m, t, how));
        how->resume = false;
    }
    return ACF_OK;
}

/* ---- in parallel ----------------------------------------------------------------------------------------------- */

/* A member trained by a thread. Only the caller's thread calls back, so the last report is kept for it here. */
typedef struct job {
    struct team *team;
    acf_model *one;
    acf_holdout *hold;
    acf_status status;
    bool done, fresh; /* fresh: the report is not handed out yet */
    acf_fit_report report;
    char trouble[ACF_SENTENCE_MAX];
} job;

/* Shared by the threads; everything but the models is under the lock. */
typedef struct team {
    pthread_mutex_t lock;
    pthread_cond_t news;
    const acf_table *t;
    const acf_fit *given;
    double began;
    int next; /* the first member that is not begun */
    bool stop;
    job job[ACF_ENSEMBLE_MAX];
} team;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Takes the next member; returns team->given->members where none is left. */
static int take(team *c) {
    pthread_mutex_lock(&c->lock);
    const int k = c->stop ? c->given->members : c->next < c->given->members ? c->next++ : c->next;
    pthread_mutex_unlock(&c->lock);
    return k;
}

static int note(void *ctx, const acf_fit_report *r) {
    job *s = ctx;
    pthread_mutex_lock(&s->team->lock);
    s->report = *r, s->fresh = true;
    if (r->trouble) snprintf(s->trouble, sizeof s->trouble, "%s", r->trouble);
    s->report.trouble = r->trouble ? s->trouble : NULL;
    const bool stop = s->team->stop;
    pthread_cond_signal(&s->team->news);
    pthread_mutex_unlock(&s->team->lock);
    return stop;
}

/* Trains member k on this thread, without a checkpoint: those before it may not be complete. */
static void fit_job(team *c, int k, acf_fit_callback callback, void *ctx) {
    job *s = &c->job[k];
    acf_fit how = *c->given;
    how.callback = callback, how.ctx = ctx, how.checkpoint = NULL, how.member = k, how.before = now() - c->began;
    const acf_status status = acf_fit_model(s->one, c->t, s->hold, &how);
    pthread_mutex_lock(&c->lock);
    s->status = status, s->done = true;
    pthread_cond_signal(&c->news);
    pthread_mutex_unlock(&c->lock);
}

static void *work(void *ctx) {
    team *c = ctx;
    for (int k = take(c); k < c->given->members; k = take(c)) fit_job(c, k, note, &c->job[k]);
    return NULL;
}

/* Hands out the last report of the thread that trains member k. The callback may stop all training. */
static void report_news(team *c, int k) {
    job *s = &c->job[k];
    acf_fit_report r;
    char trouble[ACF_SENTENCE_MAX];
    pthread_mutex_lock(&c->lock);
    const bool fresh = s->fresh;
    r = s->report, s->fresh = false;
    snprintf(trouble, sizeof trouble, "%s", s->trouble);
    pthread_mutex_unlock(&c->lock);
    if (!fresh || !c->given->callback) return;
    if (r.trouble) r.trouble = trouble;
    r.elapsed = now() - c->began; /* never decreases from report to report */
    if (!c->given->callback(c->given->ctx, &r)) return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_mutex_unlock(&c->lock);
}

/* Waits until member k is done. Another report comes with the next step, so a lost signal costs a tenth of a second. */
static void wait_for(team *c, int k) {
    for (bool done = false; !done;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 100000000;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        pthread_mutex_lock(&c->lock);
        if (!c->job[k].done && !c->job[k].fresh) pthread_cond_timedwait(&c->news, &c->lock, &until);
        done = c->job[k].done;
        pthread_mutex_unlock(&c->lock);
        report_news(c, k);
    }
}

/* Makes the untrained models, each on a handle of its own. False if one could not be made; the error is not kept. */
static bool make_jobs(team *c, const acf_model *m) {
    const uint64_t seed = (uint64_t)acf_options_int(m->config, "seed");
    for (int k = 1; k < c->given->members; k++) {
        job *s = &c->job[k];
        acf_device *own;
        if (acf_device_again(m->dev, &own)) break;
        own->threads = 1;
        s->team = c;
        if (make(m, own, c->t, acf_member_seed(seed, k), &s->hold, &s->one)) {
            acf_device_close(own);
            break;
        }
        s->one->owns_dev = true;
    }
    if (c->job[c->given->members - 1].one) return true;
    acf_error_clear();
    return false;
}

static void free_seats(team *c) {
    for (int k = 1; k < c->given->members; k++) {
        acf_holdout_free(c->job[k].hold);
        acf_model_free(c->job[k].one);
    }
}

/* Trains the first on this thread, and with it or after it the others; on return all threads have ended. Returns the
 * status of the first. */
static acf_status train_all(team *c, acf_model *m, const acf_holdout *hold, int threads) {
    pthread_t thread[ACF_ENSEMBLE_MAX];
    int n = 0;
    while (n < threads - 1 && pthread_create(&thread[n], NULL, work, c) == 0) n++;
    acf_status status = acf_fit_model(m, c->t, hold, c->given);
    pthread_mutex_lock(&c->lock);
    c->stop = status != ACF_OK;
    pthread_mutex_unlock(&c->lock);
    for (int k = take(c); k < c->given->members; k = take(c)) {
        fit_job(c, k, c->given->callback, c->given->ctx);
        if (c->job[k].status != ACF_EINTERRUPT) continue;
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_mutex_unlock(&c->lock);
    }
    acf_failure why;
    acf_failure_save(&why);
    if (!status)
        for (int k = 1; k < c->next; k++) wait_for(c, k);
    while (n > 0) pthread_join(thread[--n], NULL);
    return status ? acf_failure_restore(&why) : ACF_OK;
}

/* Appends the members worth keeping to the first, in order, up to one that is incomplete; returns its number. */
static int append_complete(team *c, acf_model *m) {
    int k = 1;
    for (; k < c->given->members; k++) {
        job *s = &c->job[k];
        const bool good = s->done && complete(s->one);
        if (!good && s->status != ACF_ENUMERIC) break;
        if (!good) continue;
        s->one->dev->threads = m->dev->threads;
        acf_model_append(m, s->one);
        s->one = NULL;
    }
    return k;
}

static int stop_at_once(void *ctx, const acf_fit_report *r) {
    (void)ctx, (void)r;
    return 1;
}

/* Trains members on a thread each, rather than dividing a member's work: small tables have little to divide. The bits
 * are the same. A member that failed, for lack of memory say, is trained again alone, which reports the cause. After
 * a stop by the callback the first incomplete member is trained again for one step, so that its checkpoint has those
 * before it. */
static acf_status fit_side_by_side(acf_model *m, const acf_table *t, const acf_holdout *hold, acf_fit *how,
                                   int threads) {
    team c = {.t = t,
              .given = how,
              .began = now(),
              .next = 1,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .news = PTHREAD_COND_INITIALIZER};
    const int all = m->dev->threads;
    acf_fit rest = *how;
    how->side = threads;
    bool made = make_jobs(&c, m);
    acf_status status = ACF_OK;
    if (made) {
        m->dev->threads = 1;
        status = train_all(&c, m, hold, threads);
        m->dev->threads = all;
    } else
        status = acf_fit_model(m, t, hold, &rest);
    const int next = status || !made ? 1 : append_complete(&c, m);
    free_seats(&c);
    pthread_mutex_destroy(&c.lock), pthread_cond_destroy(&c.news);
    if (status) return status;
    acf_error_clear();
    if (c.stop) rest.callback = stop_at_once;
    return fit_others(m, t, &rest, next);
}

/* Members to train at once; 1: there is nothing to gain, or a checkpoint is kept up to date, which holds one member in
 * training. */
static int side_by_side(const acf_model *m, const acf_fit *how) {
    const bool fits = !m->dev->plugin && acf_options_choice(m->config, "precision") == ACF_PRECISION_FLOAT &&
                      acf_options_int(m->config, "batch") != ACF_INT_AUTO &&
                      !(how->checkpoint && (how->every >= 0 || how->resume));
    return fits && m->dev->threads > 1 ? (int)acf_min(m->dev->threads, how->members) : 1;
}

acf_status acf_fit_ensemble(acf_model *m, const acf_table *t, const acf_holdout *hold, const acf_fit *given) {
    acf_fit how = *given;
    acf_checkpoint_ensemble was = {0};
    how.members = (int)acf_options_int(m->config, "ensemble");
    m->record.known = false;
    if (how.resume && acf_checkpoint_exists(how.checkpoint))
        ACF_TRY(acf_checkpoint_ensemble_read(how.checkpoint, &was));
    if (was.at >= how.members)
        return acf_fail(ACF_EMODEL, "%s: the checkpoint is of member %d, and this model has %d", how.checkpoint,
                        was.at + 1, how.members);
    if (was.at) {
        acf_status status = restore_all(m, t, how.checkpoint, &was);
        if (status) m->record.known = false;
        ACF_TRY(status);
    } else {
        const int threads = side_by_side(m, &how);
        if (threads > 1) return fit_side_by_side(m, t, hold, &how, threads);
        ACF_TRY(acf_fit_model(m, t, hold, &how));
        how.resume = false;
    }
    return fit_others(m, t, &how, was.at ? was.at : 1);
}
