/* Several members: see members.h. */
#include "train/members.h"

#include "train/checkpoint.h"
#include "train/refit.h"


#define SEED_BITS 53 /* the largest that the option `seed` takes */

uint64_t acf_member_seed(uint64_t seed, int k) {
    uint32_t bits[4];
    if (k == 0) return seed;
    acf_rng_bits((acf_place){.seed = seed, .row = (uint64_t)k, .stream = ACF_STREAM_MEMBER}, bits);
    return ((uint64_t)bits[0] << 32 | bits[1]) >> (64 - SEED_BITS);
}

/* A model with every option of the first but the seed, before its training: also what a preset or the width of the
 * table has set. Gives *hold and *out. */
static acf_status make(const acf_model *first, const acf_table *t, uint64_t seed, acf_holdout **hold, acf_model **out) {
    acf_options *config;
    acf_encoder *encoder;
    ACF_TRY(acf_opts_copy(first->config, &config));
    acf_status status = acf_opts_set_int(config, "seed", (int64_t)seed, ACF_FROM_USER);
    if (!status) status = acf_train_prepare(t, NULL, config, hold, &encoder);
    if (status) {
        acf_opts_free(config);
        return status;
    }
    return acf_fitted_create(first->dev, config, encoder, seed, true, out); /* takes both over, also when it fails */
}

/* ---- going on -------------------------------------------------------------------------------------------------------------- */

/* What was settled when the first was trained. */
static acf_status restore_batch(acf_model *m, const char *path) {
    int64_t batch;
    if (acf_options_int(m->config, "batch") != ACF_INT_AUTO) return ACF_OK;
    ACF_TRY(acf_checkpoint_batch(path, &batch));
    return acf_opts_set_int(m->config, "batch", batch, ACF_FROM_USER);
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

/* Members that were complete when the checkpoint was written, m first. */
static acf_status restore_all(acf_model *m, const acf_table *t, const char *path, const acf_checkpoint_members *was) {
    ACF_TRY(restore_batch(m, path));
    for (int k = 0; k < was->kept; k++) {
        acf_model *one = m;
        acf_holdout *hold = NULL;
        if (k) {
            acf_status status = make(m, t, (uint64_t)was->seed[k], &hold, &one);
            acf_holdout_free(hold);
            ACF_TRY(status);
            acf_fitted_append(m, one);
        }
        ACF_TRY(restore(one, t, path, k, &was->record[k]));
    }
    return ACF_OK;
}

/* ---- one after the other --------------------------------------------------------------------------------------------------- */

static double seconds_of(const acf_model *m) {
    double sum = 0;
    for (; m; m = m->next) sum += m->record.seconds;
    return sum;
}

/* Did its training come to an end of its own? */
static bool complete(const acf_model *m) { return m->record.known && m->record.end != ACF_END_STOPPED; }

/* Trains a member behind the others and appends it, if it is worth it. */
static acf_status fit_another(acf_model *m, const acf_table *t, acf_fit *how) {
    acf_holdout *hold = NULL;
    acf_model *one = NULL;
    const uint64_t seed = acf_member_seed((uint64_t)acf_options_int(m->config, "seed"), how->member);
    acf_status status = make(m, t, seed, &hold, &one);
    if (!status) status = acf_fit_model(one, t, hold, how);
    acf_holdout_free(hold);
    const bool good = one && complete(one);
    if (one) how->before += one->record.seconds;
    if (good) acf_fitted_append(m, one);
    else acf_fitted_free(one);
    if (status == ACF_OK || status == ACF_EINTERRUPT || good) return status;
    if (status == ACF_ENUMERIC) { /* a report has said so */
        acf_error_clear();
        return ACF_OK;
    }
    m->record.known = false;
    return status;
}

acf_status acf_fit_members(acf_model *m, const acf_table *t, const acf_holdout *hold, const acf_fit *given) {
    acf_fit how = *given;
    acf_checkpoint_members was = {0};
    how.members = (int)acf_options_int(m->config, "members");
    m->record.known = false;
    if (how.resume && acf_checkpoint_exists(how.checkpoint)) ACF_TRY(acf_checkpoint_members_read(how.checkpoint, &was));
    if (was.at >= how.members)
        return acf_fail(ACF_EMODEL, "%s: the checkpoint is of member %d, and this model has %d", how.checkpoint, was.at + 1, how.members);
    if (was.at) {
        acf_status status = restore_all(m, t, how.checkpoint, &was);
        if (status) m->record.known = false;
        ACF_TRY(status);
    } else {
        ACF_TRY(acf_fit_model(m, t, hold, &how));
        how.resume = false;
    }
    how.done = m, how.before = seconds_of(m);
    for (how.member = was.at ? was.at : 1; how.member < how.members; how.member++) {
        ACF_TRY(fit_another(m, t, &how));
        how.resume = false;
    }
    return ACF_OK;
}
