/* Batches of images for captured steps: see loader.h. Always streamed: the host masks, encodes and copies an image in
 * some 20 microseconds of one core, while a step of hundreds of images takes the device tens of milliseconds. */
#include "train/loader.h"

#include "ops/arith.h"
#include "train/image_task.h"

typedef struct image_loader {
    acf_loader base;
    acf_image_batch *stage[ACF_STAGES];
    acf_image_batch *batch; /* in device memory */
} image_loader;

static image_loader *of(acf_loader *s) { return (image_loader *)s; }
acf_image_batch *acf_image_stage(acf_loader *s, int stage) { return of(s)->stage[stage]; }

static void free_images(acf_loader *base) {
    image_loader *s = of(base);
    acf_image_batch_free(s->batch);
    for (int k = 0; k < ACF_STAGES; k++) acf_image_batch_free(s->stage[k]);
    acf_release(s);
}

static acf_status create_images(acf_trainer *tr, acf_loader **out) {
    acf_status status = ACF_OK;
    acf_device *dev = tr->ps->dev;
    image_loader *s = acf_alloc_zero(sizeof *s, "captured steps");
    if (!s) return ACF_EMEMORY;
    s->base = (acf_loader){.kind = &acf_image_loader, .tr = tr, .streams = true, .step_room = 1, .check_room = 1};
    for (int k = 0; k < ACF_STAGES; k++)
        ACF_TRY_DONE(acf_image_batch_stage(dev, tr->sampler.size, tr->image->im, tr->image->batch->map, &s->stage[k]));
    ACF_TRY_DONE(acf_image_batch_place(dev, tr->sampler.size, tr->image->im, &s->batch));
    *out = &s->base;
done:
    if (status) free_images(&s->base);
    return status;
}

static acf_status send_images(acf_loader *s, int stage) {
    return acf_image_batch_send(of(s)->stage[stage], of(s)->batch);
}

/* ---- work ------------------------------------------------------------------------------------------------------ */

static acf_image_view *view(acf_loader *s, const acf_pass *pass) {
    const acf_image_batch *b = of(s)->batch;
    const acf_image_query q = {.N = b->capacity, .x = b->x, .role = b->b, .id = b->id, .there = true};
    return acf_image_net_view(s->tr->tape, s->tr->image->net, &q, pass);
}

/* One term, its gradients, and its value in *out; it uses the tape alone (loss.h says why). */
static acf_status add_term(acf_loader *s, const acf_pass *pass, bool guess, double weight, acf_real *out) {
    acf_tape *t = s->tr->tape;
    acf_tape_begin(t, true);
    acf_tensor *x = acf_image_term(t, view(s, pass), of(s)->batch->share, guess);
    if (!x) return ACF_OK;
    ACF_TRY(acf_tape_status(t));
    x = acf_scale(t, weight, x);
    ACF_TRY(acf_tape_backward(t, x));
    return acf_device_copy(t->dev, out, x->data, sizeof *out, ACF_ON_DEVICE);
}

static acf_status image_gradients(acf_loader *s, const acf_drawing *how, const acf_pass *pass) {
    const acf_trainer *tr = s->tr;
    acf_real *loss = tr->ps->pace->loss;
    const double weight = tr->set.loss.guess_weight;
    acf_tape_begin(tr->tape, false);
    acf_batch_step_take(tr->tape, how);
    ACF_TRY(acf_tape_status(tr->tape));
    ACF_TRY(acf_params_zero_grad(tr->ps));
    ACF_TRY(acf_device_zero(tr->tape->dev, loss, 2 * sizeof *loss));
    ACF_TRY(add_term(s, pass, false, 1, loss));
    return weight > 0 ? add_term(s, pass, true, weight, loss + 1) : ACF_OK;
}

static acf_tensor *image_logp(acf_loader *s, const acf_drawing *how) {
    (void)how; /* the batch is in place */
    return acf_image_net_logp(s->tr->tape, view(s, NULL));
}

static bool image_validates(const acf_loader *s) {
    (void)s;
    return false; /* validation images are streamed, too */
}

const acf_loader_kind acf_image_loader = {create_images,   free_images, send_images,
                                          image_gradients, image_logp,  image_validates};
