/* RealNVP with arbitrary conditioning: see image_flow.h. */
#include "flow/image_flow.h"

#include "nn/mlp.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/squeeze.h"

#include <stdio.h>

#define OUT_SCALE 0.1 /* of a network's last layer: a new flow is near the identity, and its scales can learn at once */

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* One coupling of images with C channels; `side` more inputs. */
static acf_status declare_coupling(acf_coupling *k, acf_params *ps, const char *name, acf_pattern pattern, int64_t C,
                                   int64_t side, int64_t width, int blocks) {
    k->pattern = pattern;
    k->g = acf_declare(ps, name, "g", ACF_INIT_CONST, 1, 0, NULL);
    k->g0 = k->g ? acf_declare(ps, name, "g0", ACF_INIT_CONST, 0, 0, NULL) : NULL;
    if (!k->g0) return acf_error_status();
    return acf_resnet_declare(&k->net, ps, name, &(acf_resnet_shape){3 * C + side, width, 2 * C, blocks, OUT_SCALE});
}

/* Numbers of the whole image and its mask per pixel of an image squeezed `times` times. */
static int64_t whole(const acf_image_flow_size *z, int times) { return 2 * z->C << 2 * times; }

static acf_status declare_side(acf_conv_layer *l, acf_params *ps, const char *name, int64_t in, int64_t out) {
    return acf_conv_layer_declare(l, ps, name, (acf_conv_size){1, 1, in, out, 1}, acf_conv_same(1, 1, ACF_RELU));
}

static acf_status declare_scale(acf_image_flow *f, acf_params *ps, const char *name, int s) {
    const acf_image_flow_size *z = &f->size;
    acf_image_scale *k = &f->scale[s];
    const bool last = s == z->scales - 1;
    const int64_t C = z->C << s, width = z->width << s,
                  side = s ? z->width : 0; /* channels: times 4, then half of them, at each scale */
    char part[80];
    k->checkers = last ? ACF_CHECKERS : ACF_CHECKERS - 1, k->quarters = last ? 0 : ACF_QUARTERS;
    for (int i = 0; i < 2 && s; i++) {
        snprintf(part, sizeof part, "%s.%d.side.%d", name, s, i);
        if (i == 0 || !last) ACF_TRY(declare_side(&k->side[i], ps, part, whole(z, s + i), side));
    }
    for (int i = 0; i < k->checkers; i++) {
        snprintf(part, sizeof part, "%s.%d.checker.%d", name, s, i);
        ACF_TRY(
            declare_coupling(&k->checker[i], ps, part, (acf_pattern){ACF_CHECKER, i % 2}, C, side, width, z->blocks));
    }
    for (int i = 0; i < k->quarters; i++) {
        snprintf(part, sizeof part, "%s.%d.quarter.%d", name, s, i);
        ACF_TRY(declare_coupling(&k->quarter[i], ps, part, (acf_pattern){ACF_QUARTER, i % 2}, 4 * C, side, 2 * width,
                                 z->blocks));
    }
    return ACF_OK;
}

acf_status acf_image_flow_declare(acf_image_flow *f, acf_params *ps, const char *name, const acf_image_flow_size *z) {
    if (z->scales < 0 || z->scales > ACF_IMAGE_SCALES)
        return acf_fail(ACF_EUSAGE, "%d scales; expected 0 to %d", z->scales, ACF_IMAGE_SCALES);
    const int64_t step = z->scales > 1 ? (int64_t)1 << (z->scales - 1) : 1;
    if (z->H % step || z->W % step)
        return acf_fail(
            ACF_EUSAGE,
            "images of %lld x %lld pixels cannot be halved %d times, as %d scales need: pad them to multiples of %lld, "
            "or use fewer scales",
            (long long)z->H, (long long)z->W, z->scales - 1, z->scales, (long long)step);
    if (z->C < 1 || (z->scales && z->width < 1))
        return acf_fail(ACF_EUSAGE, "%lld channels and networks of width %lld; expected at least one", (long long)z->C,
                        (long long)z->width);
    f->size = *z;
    for (int s = 0; s < z->scales; s++) ACF_TRY(declare_scale(f, ps, name, s));
    return ACF_OK;
}

/* ---- one coupling ------------------------------------------------------------------------------------------------ */

/* Inputs of a scale: masks of its size, the whole image squeezed to it, and the features of it for checkerboards and
 * quarters. */
typedef struct scale_inputs {
    acf_tensor *b, *u, *all, *side;
} scale_inputs;

static acf_tensor *couple(acf_tape *t, const acf_coupling *k, acf_tensor *x, const scale_inputs *s, bool inverse,
                          acf_tensor **logdet) {
    acf_tensor *in = acf_couple_input(t, x, s->b, s->u, k->pattern);
    if (s->side) in = acf_concat(t, 2, (acf_tensor *[]){in, s->side});
    acf_tensor *st = acf_resnet_run(t, &k->net, in);
    return (inverse ? acf_couple_inverse : acf_couple_forward)(t, x, st, acf_p(k->g), acf_p(k->g0), s->u, k->pattern,
                                                               logdet);
}

/* Without recording only the result of a coupling is kept, as in chain.c. */
static acf_tensor *run(acf_tape *t, const acf_coupling *k, acf_tensor *x, const scale_inputs *s, bool inverse,
                       acf_tensor **logdet) {
    if (t->record || t->failure.status) return couple(t, k, x, s, inverse, logdet);
    acf_tensor *out[2] = {acf_tensor_new(t, 4, x->dim), acf_tensor_new(t, 1, x->dim)};
    acf_tape_mark mark = acf_tape_position(t);
    acf_tensor *in[2] = {couple(t, k, x, s, inverse, logdet), logdet ? *logdet : NULL};
    for (int i = 0; i < 2 && in[i]; i++) {
        if (acf_tape_check(t, in[i])) return &t->empty;
        if (acf_device_copy(t->dev, out[i]->data, in[i]->data, (size_t)acf_tensor_count(out[i]) * sizeof(acf_real),
                            ACF_ON_DEVICE))
            acf_tape_fail(t, NULL);
    }
    if (t->failure.status) return &t->empty;
    if (logdet) *logdet = out[1];
    acf_tape_rewind(t, mark);
    return out[0];
}

/* n couplings in sequence, in reverse for the inverse; *sum grows by their log-determinants if requested. */
static acf_tensor *run_all(acf_tape *t, const acf_coupling *k, int n, acf_tensor *x, const scale_inputs *s,
                           bool inverse, acf_tensor **sum) {
    for (int i = 0; i < n; i++) {
        acf_tensor *one = NULL;
        x = run(t, &k[inverse ? n - 1 - i : i], x, s, inverse, sum ? &one : NULL);
        if (sum) *sum = *sum ? acf_add(t, *sum, one) : one;
    }
    return x;
}

/* ---- scales ------------------------------------------------------------------------------------------------------ */

/* The same after a squeeze, with the half that goes on. */
static scale_inputs squeezed(acf_tape *t, const acf_image_scale *k, const scale_inputs *s) {
    scale_inputs q = {acf_squeeze(t, s->b), acf_squeeze(t, s->u), acf_squeeze(t, s->all), NULL};
    if (s->side) q.side = acf_conv_layer_run(t, &k->side[1], q.all);
    return q;
}

static acf_tensor *half(acf_tape *t, acf_tensor *x, int which) {
    const int64_t C = acf_tensor_last(x) / 2;
    return acf_slice(t, x, which * C, C);
}

static acf_tensor *run_scale(acf_tape *t, const acf_image_flow *f, int s, acf_tensor *x, scale_inputs v, bool inverse,
                             acf_tensor **sum) {
    const acf_image_scale *k = &f->scale[s];
    if (s) v.side = acf_conv_layer_run(t, &k->side[0], v.all);
    if (!inverse) x = run_all(t, k->checker, k->checkers, x, &v, false, sum);
    if (s < f->size.scales - 1) {
        const scale_inputs q = squeezed(t, k, &v), next = {half(t, q.b, 0), half(t, q.u, 0), q.all, NULL};
        x = acf_squeeze(t, x);
        if (!inverse) x = run_all(t, k->quarter, k->quarters, x, &q, false, sum);
        acf_tensor *done = half(t, x, 1), *on = run_scale(t, f, s + 1, half(t, x, 0), next, inverse, sum);
        x = acf_concat(t, 2, (acf_tensor *[]){on, done});
        if (inverse) x = run_all(t, k->quarter, k->quarters, x, &q, true, sum);
        x = acf_unsqueeze(t, x);
    }
    return inverse ? run_all(t, k->checker, k->checkers, x, &v, true, sum) : x;
}

static acf_tensor *run_flow(acf_tape *t, const acf_image_flow *f, acf_tensor *x, const acf_image_cond *c, bool inverse,
                            acf_tensor **logdet) {
    if (logdet) *logdet = NULL;
    if (f->size.scales && !t->failure.status) {
        const scale_inputs v = {c->b, c->u, acf_concat(t, 2, (acf_tensor *[]){c->given, c->b}), NULL};
        x = run_scale(t, f, 0, x, v, inverse, logdet);
    }
    if (logdet && !*logdet) *logdet = acf_tensor_const(t, NULL, 0, 1, x->dim);
    return x;
}

acf_tensor *acf_image_flow_forward(acf_tape *t, const acf_image_flow *f, acf_tensor *x, const acf_image_cond *c,
                                   acf_tensor **logdet) {
    return run_flow(t, f, x, c, false, logdet);
}

acf_tensor *acf_image_flow_inverse(acf_tape *t, const acf_image_flow *f, acf_tensor *z, const acf_image_cond *c,
                                   acf_tensor **logdet) {
    return run_flow(t, f, z, c, true, logdet);
}
