/* The image model: see image_net.h. It composes operations; all derivatives are in ops/. */
#include "model/image_net.h"

#include "ops/arith.h"
#include "ops/image_parts.h"
#include "ops/masked.h"

#include <string.h>

#define LOG_SCALE_MIN (-7.0) /* of likelihoods, in encoded units */
#define LOG_SCALE_MAX 7.0
#define SIDE_MAX 4096

struct acf_image_net {
    acf_device *dev;
    acf_params *ps;
    acf_image_sizes size;
    acf_image_flow flow;
    acf_image_like like;
    acf_knots guess, truth; /* n = 0: not decoded */
};

acf_params *acf_image_net_params(acf_image_net *net) { return net->ps; }
const acf_image_sizes *acf_image_net_sizes(const acf_image_net *net) { return &net->size; }

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static acf_status declare(acf_image_net *net) {
    const acf_image_sizes *s = &net->size;
    const acf_image_flow_size flow = {s->H, s->W, s->C, s->scales, s->blocks, s->width};
    ACF_TRY(acf_image_flow_declare(&net->flow, net->ps, "flow", &flow));
    net->like = (acf_image_like){.kind = s->like,
                                 .H = s->H,
                                 .W = s->W,
                                 .C = s->C,
                                 .width = s->like_width,
                                 .blocks = s->like_blocks,
                                 .embed_blocks = s->embed_blocks,
                                 .embed_deep = s->embed_deep,
                                 .components = s->components,
                                 .guess = s->guess,
                                 .lo = LOG_SCALE_MIN,
                                 .hi = LOG_SCALE_MAX};
    return s->like->declare(&net->like, net->ps, "likelihood");
}

acf_status acf_image_net_declare(acf_device *dev, const acf_image_sizes *s, acf_image_net **out) {
    acf_status status = ACF_OK;
    if (s->H < 1 || s->W < 1 || s->H > SIDE_MAX || s->W > SIDE_MAX || s->C < 1 || s->C > 4)
        return acf_fail(ACF_EUSAGE, "images of %lld x %lld pixels and %lld channels; expected 1 to %d, and 1 to 4",
                        (long long)s->H, (long long)s->W, (long long)s->C, SIDE_MAX);
    acf_image_net *net = acf_alloc_zero(sizeof *net, "an image model");
    if (!net) return ACF_EMEMORY;
    net->dev = dev, net->size = *s;
    ACF_TRY_DONE(acf_params_create(dev, &net->ps));
    ACF_TRY_DONE(declare(net));
    *out = net;
done:
    if (status) acf_image_net_free(net);
    return status;
}

acf_status acf_image_net_build(acf_image_net *net, uint64_t seed, bool train) {
    return acf_params_build(net->ps, seed, train);
}

acf_status acf_image_net_allocate(acf_image_net *net) { return acf_params_allocate(net->ps); }

void acf_image_net_free(acf_image_net *net) {
    if (!net) return;
    acf_params_free(net->ps);
    acf_release(net);
}

void acf_image_net_decode(acf_image_net *net, const acf_knots *guess, const acf_knots *truth) {
    net->guess = *guess, net->truth = *truth;
}

/* ---- a batch as the network sees it ------------------------------------------------------------------------------ */

struct acf_image_view {
    const acf_image_net *net;
    acf_image_query q;
    acf_tensor *x; /* (N,H,W,C); 0 if neither given nor modelled */
    acf_image_cond cond;
    acf_pass pass;
    const uint64_t *id; /* (N) on the device; NULL: use the query's */
};

/* Copies host memory to the device. Memory that is already there, and NULL, are returned as they are. */
static const void *place(acf_tape *t, const acf_image_query *q, const void *data, int64_t n, size_t size) {
    if (!data || q->there || t->failure.status) return data;
    void *copy = acf_arena_alloc(t->mem, (size_t)n * size);
    if (!copy || acf_device_copy(t->dev, copy, data, (size_t)n * size, ACF_TO_DEVICE)) acf_tape_fail(t, NULL);
    return copy;
}

/* Marks rows of pixels with something to model in some image; NULL if roles are in device memory. */
static const uint8_t *rows_of(acf_tape *t, const acf_image_query *q, int64_t H, int64_t W) {
    uint8_t *rows = q->there || t->failure.status ? NULL : acf_arena_alloc(t->host, (size_t)H);
    if (!rows) {
        if (!q->there) acf_tape_fail(t, NULL);
        return NULL;
    }
    for (int64_t y = 0; y < H; y++) rows[y] = 0;
    for (int64_t i = 0; i < q->N * H; i++)
        if (memchr(q->role + i * W, ACF_PIXEL_ASKED, (size_t)W)) rows[i % H] = 1;
    return rows;
}

static void see(acf_tape *t, acf_image_view *v) {
    const acf_image_sizes *s = &v->net->size;
    const acf_image_query *q = &v->q;
    const int64_t dim[4] = {q->N, s->H, s->W, s->C}, pixels = q->N * s->H * s->W;
    const acf_real *x = place(t, q, q->x, pixels * s->C, sizeof *x);
    const uint8_t *role = place(t, q, q->role, pixels, sizeof *role);
    if (t->failure.status) return;
    const acf_image_parts p = acf_image_split(t, acf_tensor_wrap(t, (acf_real *)x, 4, dim), role);
    v->x = p.x, v->cond.given = p.given, v->cond.b = p.b, v->cond.u = p.u, v->cond.rows = rows_of(t, q, s->H, s->W);
}

acf_image_view *acf_image_net_view(acf_tape *t, const acf_image_net *net, const acf_image_query *q,
                                   const acf_pass *pass) {
    acf_image_view *v = t->failure.status ? NULL : acf_arena_alloc(t->host, sizeof *v);
    if (!v) {
        acf_tape_fail(t, NULL);
        return NULL;
    }
    *v = (acf_image_view){.net = net, .q = *q, .id = place(t, q, q->id, q->N, sizeof *q->id)};
    if (pass) v->pass = *pass, v->pass.row_id = v->id, v->cond.pass = &v->pass;
    see(t, v);
    return t->failure.status ? NULL : v;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

acf_tensor *acf_image_net_forward(acf_tape *t, const acf_image_view *v, acf_tensor **logdet) {
    if (logdet) *logdet = &t->empty;
    return v ? acf_image_flow_forward(t, &v->net->flow, v->x, &v->cond, logdet) : &t->empty;
}

acf_tensor *acf_image_net_inverse(acf_tape *t, const acf_image_view *v, acf_tensor *z) {
    return v ? acf_image_flow_inverse(t, &v->net->flow, z, &v->cond, NULL) : &t->empty;
}

acf_tensor *acf_image_net_logp(acf_tape *t, const acf_image_view *v) {
    if (!v) return &t->empty;
    acf_tensor *logdet, *z = acf_image_net_forward(t, v, &logdet);
    return acf_add(t, v->net->like.kind->logp(t, &v->net->like, z, &v->cond), logdet);
}

static acf_tensor *best_guess(acf_tape *t, const acf_image_view *v) {
    return acf_image_net_inverse(t, v, v->net->like.kind->mean(t, &v->net->like, &v->cond));
}

acf_tensor *acf_image_net_guess_error(acf_tape *t, const acf_image_view *v) {
    if (!v) return &t->empty;
    if (!v->net->like.kind->mean_has_gradient && !v->net->like.guess) return NULL;
    acf_tensor *guess = best_guess(t, v), *truth = v->x;
    if (v->net->guess.n) guess = acf_polyline(t, guess, &v->net->guess), truth = acf_polyline(t, truth, &v->net->truth);
    return acf_sum_masked(t, acf_square(t, acf_sub(t, guess, truth)), v->cond.u);
}

/* Copies the modelled numbers of x to the host. */
static acf_status put(acf_tape *t, const acf_image_view *v, acf_tensor *x, acf_real *out) {
    ACF_TRY(acf_tape_check(t, x));
    ACF_ASSERT(!v->q.there || !t->dev->plugin); /* roles are read on the host */
    const int64_t n = acf_tensor_count(x), C = v->net->size.C;
    acf_real *host = acf_arena_alloc(t->host, (size_t)n * sizeof *host);
    if (!host || acf_device_copy(t->dev, host, x->data, (size_t)n * sizeof *host, ACF_TO_HOST) ||
        acf_device_sync(t->dev))
        return acf_tape_fail(t, NULL);
    for (int64_t i = 0; i < n; i++)
        if (v->q.role[i / C] == ACF_PIXEL_ASKED) out[i] = host[i];
    return ACF_OK;
}

acf_tensor *acf_image_net_answer(acf_tape *t, const acf_image_view *v, const acf_draw *d) {
    if (!v) return &t->empty;
    if (!d) return best_guess(t, v);
    const acf_draw here = {
        .seed = d->seed, .draw = d->draw, .now = d->now, .log_temperature = d->log_temperature, .row_id = v->id};
    return acf_image_net_inverse(t, v, v->net->like.kind->sample(t, &v->net->like, &v->cond, &here));
}

acf_status acf_image_net_draw(acf_tape *t, const acf_image_view *v, const acf_draw *d, acf_real *out) {
    return v ? put(t, v, acf_image_net_answer(t, v, d), out) : acf_tape_status(t);
}

acf_status acf_image_net_guess(acf_tape *t, const acf_image_view *v, acf_real *out) {
    return v ? put(t, v, acf_image_net_answer(t, v, NULL), out) : acf_tape_status(t);
}
