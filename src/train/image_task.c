/* Training on images: see acf_trainer_create_images in trainer.h. Here are the batches of images and their loss; the
 * batch sampler, Adam, schedule, validation's bookkeeping and checkpoints are the trainer's.
 *
 * Workload: steps of 16 to 256 images of 1e3 to 1e4 numbers; convolutions dominate, and this file takes below a
 * percent. */
#include "train/image_task.h"

#include "ops/arith.h"
#include "ops/reduce.h"
#include "train/checkpoint.h"
#include "train/train_graph.h"

#define FIXED_DRAW UINT32_MAX /* key of masks and noise in validation; no step has this number */

static int64_t held(const acf_trainer *tr) { return tr->image->valid.n; }

static acf_image_query query_of(const acf_image_batch *b) {
    return (acf_image_query){.N = b->N, .x = b->x, .role = b->b, .id = b->id};
}

/* ---- a step ---------------------------------------------------------------------------------------------------- */

acf_tensor *acf_image_term(acf_tape *t, const acf_image_view *v, const acf_real *share, bool guess) {
    acf_tensor *each = guess ? acf_image_net_guess_error(t, v) : acf_image_net_logp(t, v);
    if (!each || t->failure.status) return each;
    return acf_scale(t, guess ? 1 : -1, acf_dot(t, each, share));
}

/* One term of the loss and its gradients; it uses the tape alone (loss.h says why); *sum += its value. */
static acf_status add_term(acf_trainer *tr, bool guess, double weight, double *sum) {
    acf_tape *t = tr->tape;
    acf_real value;
    const acf_image_query q = query_of(tr->image->batch);
    const acf_pass pass = {.dropout = tr->set.dropout, .seed = tr->set.seed, .step = (uint32_t)tr->state.step};
    acf_tape_begin(t, true);
    acf_tensor *share = acf_tensor_input(t, tr->image->batch->share, 1, &q.N);
    ACF_TRY(acf_tape_status(t));
    acf_tensor *x = acf_image_term(t, acf_image_net_view(t, tr->image->net, &q, &pass), share->data, guess);
    if (!x) return ACF_OK;
    ACF_TRY(acf_tape_status(t));
    x = acf_scale(t, weight, x);
    ACF_TRY(acf_tape_backward(t, x));
    ACF_TRY(acf_device_copy(t->dev, &value, x->data, sizeof value, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(t->dev));
    *sum += (double)value;
    return ACF_OK;
}

static double mean_logdet(const acf_image_batch *b) {
    double sum = 0;
    for (int64_t i = 0; i < b->N; i++) sum += (double)b->share[i] * b->logdet[i];
    return sum;
}

static void next_batch(acf_trainer *tr, acf_image_batch *b) {
    int64_t n;
    while ((n = acf_batch_sampler_next(&tr->sampler, tr->row)) == 0) {}
    const acf_image_query_lab how = {tr->image->masks, tr->image->passes, ACF_PASS_DRAWN, tr->set.seed,
                                     (uint32_t)tr->state.step};
    acf_image_batch_fill_pass(tr->ps->dev, b, tr->image->im, &how, tr->row, n);
}

static void fill(acf_trainer *tr, acf_loader *loader, int stage, int64_t *n, double *shift) {
    acf_image_batch *b = acf_image_stage(loader, stage);
    next_batch(tr, b);
    *n = b->N, *shift = -mean_logdet(b);
}

static acf_status gradients(acf_trainer *tr, acf_train_step *now) {
    next_batch(tr, tr->image->batch);
    now->rows = tr->image->batch->N, now->loss = -mean_logdet(tr->image->batch);
    ACF_TRY(add_term(tr, false, 1, &now->loss));
    return tr->set.loss.guess_weight > 0 ? add_term(tr, true, tr->set.loss.guess_weight, &now->loss) : ACF_OK;
}

/* ---- validation ------------------------------------------------------------------------------------------------ */

/* *sum += log p of the n images in tr->row, in nats of levels. */
static acf_status add_logp(acf_trainer *tr, const acf_image_query_lab *how, int64_t n, double *sum) {
    acf_image_batch *b = tr->image->batch;
    acf_tape *t = tr->tape;
    acf_image_batch_fill_pass(t->dev, b, tr->image->im, how, tr->row, n);
    const acf_image_query q = query_of(b);
    acf_tape_begin(t, false);
    acf_tensor *logp = acf_image_net_logp(t, acf_image_net_view(t, tr->image->net, &q, NULL));
    ACF_TRY(acf_tape_check(t, logp));
    acf_real *host = acf_arena_alloc(t->host, (size_t)n * sizeof *host);
    if (!host) return ACF_EMEMORY;
    ACF_TRY(acf_device_copy(t->dev, host, logp->data, (size_t)n * sizeof *host, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(t->dev));
    for (int64_t i = 0; i < n; i++) *sum += (double)host[i] + b->logdet[i];
    return ACF_OK;
}

/* The same on the device, which keeps its part of the sum (acf_train_graph_total). */
static acf_status check_logp(acf_trainer *tr, const acf_image_query_lab *how, int64_t n, double *sum) {
    int stage;
    ACF_TRY(acf_train_graph_feed(tr->graph, &stage));
    acf_image_batch *b = acf_image_stage(acf_train_graph_loader(tr->graph), stage);
    acf_image_batch_fill_pass(tr->ps->dev, b, tr->image->im, how, tr->row, n);
    for (int64_t i = 0; i < n; i++) *sum += b->logdet[i];
    return acf_train_graph_check(tr->graph);
}

/* In all passes, as in queries. */
static acf_status score(acf_trainer *tr, double *nll) {
    const acf_rows *rows = &tr->image->valid;
    acf_image_query_lab how = {
        .masks = tr->image->masks, .passes = tr->image->passes, .seed = tr->set.seed, .draw = FIXED_DRAW};
    double sum = 0, there = 0;
    if (tr->graph) ACF_TRY(acf_train_graph_start(tr->graph));
    for (int64_t at = 0, n; at < rows->n; at += n) {
        n = acf_min(tr->sampler.size, rows->n - at);
        for (int64_t i = 0; i < n; i++) tr->row[i] = acf_rows_at(rows, at + i);
        for (how.round = 0; how.round < how.passes; how.round++)
            ACF_TRY(tr->graph ? check_logp(tr, &how, n, &sum) : add_logp(tr, &how, n, &sum));
    }
    if (tr->graph) ACF_TRY(acf_train_graph_total(tr->graph, &there));
    *nll = -(sum + there) / (double)rows->n;
    return ACF_OK;
}

/* Is its joint density finite? b, all 0, stays as it is. */
static acf_status has_density(acf_trainer *tr, int64_t row) {
    acf_image_batch *b = tr->image->batch;
    double sum = 0;
    tr->row[0] = row;
    for (int64_t p = 0; p < b->H * b->W; p++) b->b[p] = 0;
    return add_logp(tr, &(acf_image_query_lab){.passes = 1, .seed = tr->set.seed, .draw = FIXED_DRAW}, 1, &sum);
}

/* ---- creation -------------------------------------------------------------------------------------------------- */

static json_t *describe(const acf_trainer *tr) { return acf_checkpoint_images(tr->image->im, tr->rows.n); }

static void free_task(acf_trainer *tr) {
    acf_image_masks_free(tr->image->masks);
    acf_image_batch_free(tr->image->batch);
    acf_release(tr->image);
}

static const acf_task image_task = {"other images", ACF_OPTIONS_IMAGE, held,      gradients,         score,
                                    has_density,    describe,          free_task, &acf_image_loader, fill};

acf_status acf_image_split_rows(const acf_images *im, const acf_options *o, acf_row_split *out) {
    ACF_TRY(acf_row_split_make(im->N / im->copies, acf_options_real(o, "valid"), 0,
                               (uint64_t)acf_options_int(o, "seed"), out));
    out->train = acf_rows_copied(out->train, im->copies), out->valid = acf_rows_copied(out->valid, im->copies);
    return ACF_OK;
}

static acf_status fill_task(acf_trainer *tr, acf_image_net *net, const acf_images *im, const acf_options *o) {
    const acf_image_sizes *s = acf_image_net_sizes(net);
    acf_row_split split;
    if (s->H != im->H || s->W != im->W || s->C != im->C)
        return acf_fail(ACF_ESHAPE, "a network for images of %lld x %lld x %lld, but they are %lld x %lld x %lld",
                        (long long)s->H, (long long)s->W, (long long)s->C, (long long)im->H, (long long)im->W,
                        (long long)im->C);
    ACF_TRY(acf_image_split_rows(im, o, &split));
    tr->rows = split.train;
    *tr->image =
        (acf_image_task){.net = net, .im = im, .valid = split.valid, .passes = (int)acf_options_int(o, "image-passes")};
    ACF_TRY(acf_image_masks_create(acf_options_text(o, "image-masks"), &tr->image->masks));
    return acf_image_masks_fit_to(tr->image->masks, im);
}

acf_status acf_trainer_create_images(acf_image_net *net, const acf_image_map *map, const acf_images *im,
                                     const acf_options *o, acf_trainer **out) {
    acf_status status = ACF_OK;
    acf_trainer *tr = acf_alloc_zero(sizeof *tr, "a trainer");
    if (!tr) return ACF_EMEMORY;
    tr->task = &image_task, tr->ps = acf_image_net_params(net);
    if (!(tr->image = acf_alloc_zero(sizeof *tr->image, "a trainer"))) {
        status = ACF_EMEMORY;
        goto done;
    }
    ACF_TRY_DONE(fill_task(tr, net, im, o));
    ACF_TRY_DONE(acf_trainer_settle(tr, o));
    ACF_TRY_DONE(acf_image_batch_create(tr->sampler.size, im, map, &tr->image->batch));
    *out = tr;
done:
    if (status) acf_trainer_free(tr);
    return status;
}
