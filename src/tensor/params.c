/* Parameters in one slab: see params.h. */
#include "tensor/params.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

#define ALIGN_ELEMS ((int64_t)(ACF_HOST_ALIGN / sizeof(acf_real)))

acf_status acf_params_create(acf_device *dev, acf_params **out) {
    acf_params *ps = acf_alloc_zero(sizeof *ps, "a parameter list");
    if (!ps) return ACF_EMEMORY;
    ps->dev = dev;
    *out = ps;
    return ACF_OK;
}

static void free_slab(acf_params *ps, acf_real **slab) {
    if (*slab) ps->dev->memory.free(ps->dev->memory.ctx, *slab);
    *slab = NULL;
}

static void free_slabs(acf_params *ps) {
    free_slab(ps, &ps->value);
    free_slab(ps, &ps->grad);
    free_slab(ps, &ps->m);
    free_slab(ps, &ps->v);
    free_slab(ps, &ps->ema);
    if (ps->pace) ps->dev->memory.free(ps->dev->memory.ctx, ps->pace);
    ps->pace = NULL;
}

static void free_param(acf_param *p) {
    if (!p) return;
    acf_release(p->name);
    acf_release(p);
}

void acf_params_free(acf_params *ps) {
    if (!ps) return;
    free_slabs(ps);
    for (int i = 0; i < ps->n; i++) free_param(ps->list[i]);
    acf_release(ps->list);
    acf_release(ps);
}

acf_param *acf_params_find(const acf_params *ps, const char *name) {
    for (int i = 0; i < ps->n; i++)
        if (strcmp(ps->list[i]->name, name) == 0) return ps->list[i];
    return NULL;
}

static bool grow(acf_params *ps) {
    if (ps->n < ps->cap) return true;
    int cap = ps->cap ? ps->cap * 2 : 32;
    acf_param **list = acf_alloc((size_t)cap * sizeof *list, "a parameter list");
    if (!list) return false;
    if (ps->n) memcpy(list, ps->list, (size_t)ps->n * sizeof *list);
    acf_release(ps->list);
    ps->list = list;
    ps->cap = cap;
    return true;
}

/* Checks a declaration. Fewer than 2^32 elements: an initial value is a function of a 32-bit index. */
static acf_status declarable(const acf_params *ps, const char *name, acf_init init, const acf_tensor *t) {
    char shape[ACF_SHAPE_TEXT];
    int64_t n = 1;
    if (acf_params_find(ps, name)) return acf_fail(ACF_EUSAGE, "parameter '%s' is declared twice", name);
    if (t->ndim != 2 && (init == ACF_INIT_IDENTITY || init == ACF_INIT_ORTHO))
        return acf_fail(ACF_EUSAGE, "parameter '%s' has %d dimensions; this initialisation needs a matrix", name,
                        t->ndim);
    for (int i = 0; i < t->ndim; i++)
        if (t->dim[i] < 0 || __builtin_mul_overflow(n, t->dim[i], &n) || n > UINT32_MAX)
            return acf_fail(ACF_EUSAGE,
                            "parameter '%s' has the shape %s; expected sizes from 0, fewer than 2^32 elements in all",
                            name, acf_tensor_shape(t, shape));
    return ACF_OK;
}

acf_param *acf_param_add(acf_params *ps, const char *name, acf_init init, double scale, int ndim, const int64_t *dim) {
    ACF_ASSERT(ndim >= 0 && ndim <= ACF_MAX_DIM && !ps->value);
    acf_tensor t = {.ndim = ndim};
    for (int i = 0; i < ndim; i++) t.dim[i] = dim[i];
    if (declarable(ps, name, init, &t)) return NULL;
    acf_param *p = grow(ps) ? acf_alloc_zero(sizeof *p, "a parameter") : NULL;
    if (p) p->name = acf_alloc_text(name, "a parameter's name");
    if (!p || !p->name) {
        free_param(p);
        return NULL;
    }
    p->t = t;
    p->init = init;
    p->scale = scale;
    p->decay = ndim >= 2;
    ps->list[ps->n++] = p;
    return p;
}

/* ---- initial values ---------------------------------------------------------------------------------------------- */

/* The random counter of the parameter's first element; `column` counts the elements. */
static acf_rng_counter place_of(const acf_param *p, uint64_t seed) {
    return (acf_rng_counter){.seed = seed, .row = acf_rng_name(p->name), .stream = ACF_STREAM_INIT};
}

/* Makes rows of a (R,C) matrix orthonormal by Gram-Schmidt, twice for accuracy, in blocks of at most C rows (a GRU's
 * recurrent matrix (3H,H) is three square blocks). With normal entries no row vanishes. */
static void orthonormal_rows(acf_real *w, int64_t R, int64_t C) {
    for (int64_t i = 0; i < R; i++) {
        acf_real *row = w + i * C;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t k = i / C * C; k < i; k++) {
                double dot = 0;
                for (int64_t c = 0; c < C; c++) dot += (double)row[c] * (double)w[k * C + c];
                for (int64_t c = 0; c < C; c++) row[c] -= (acf_real)dot * w[k * C + c];
            }
            double norm = 0;
            for (int64_t c = 0; c < C; c++) norm += (double)row[c] * (double)row[c];
            for (int64_t c = 0; c < C; c++) row[c] = (acf_real)((double)row[c] / sqrt(norm));
        }
    }
}

static void init_values(const acf_param *p, uint64_t seed, acf_real *w) {
    int64_t n = acf_tensor_count(&p->t), cols = acf_tensor_width(&p->t);
    double bound = p->scale / sqrt((double)acf_max(cols, 1));
    acf_rng_counter at = place_of(p, seed);
    for (int64_t i = 0; i < n; i++) {
        double x = p->scale;
        at.column = (uint32_t)i;
        if (p->init == ACF_INIT_IDENTITY && i / cols != i % cols) x = 0;
        if (p->init == ACF_INIT_UNIFORM) x = bound * (2 * acf_rng_uniform(at) - 1);
        if (p->init == ACF_INIT_NORMAL) x = p->scale * acf_rng_normal(at);
        if (p->init == ACF_INIT_ORTHO) x = acf_rng_normal(at);
        w[i] = (acf_real)x;
    }
    if (p->init != ACF_INIT_ORTHO) return;
    if (n) orthonormal_rows(w, p->t.dim[0], p->t.dim[1]);
    for (int64_t i = 0; i < n; i++) w[i] *= (acf_real)p->scale;
}

/* ---- the slabs --------------------------------------------------------------------------------------------------- */

/* Gives every parameter its offset: those with decay first. */
static void lay_out(acf_params *ps) {
    ps->total = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < ps->n; i++) {
            acf_param *p = ps->list[i];
            if (p->decay != (pass == 0)) continue;
            p->offset = ps->total;
            ps->total += acf_ceil_div(acf_tensor_count(&p->t), ALIGN_ELEMS) * ALIGN_ELEMS;
        }
        if (pass == 0) ps->decayed = ps->total;
    }
}

static acf_status new_slab(acf_params *ps, const char *what, acf_real **slab) {
    size_t bytes;
    if (!acf_bytes(ps->total, sizeof(acf_real), &bytes)) return ACF_EMEMORY;
    *slab = ps->dev->memory.alloc(ps->dev->memory.ctx, bytes);
    if (!*slab && ps->dev->memory.refuse) return ps->dev->memory.refuse(ps->dev->memory.ctx, bytes, 0);
    if (!*slab) return acf_fail(ACF_EMEMORY, "out of memory: %zu bytes for the %s of all parameters", bytes, what);
    return acf_device_zero(ps->dev, *slab, bytes);
}

/* Step size 0, until the caller sets it. */
static acf_status new_pace(acf_params *ps) {
    if (!ps->dev->plugin) return ACF_OK;
    ps->pace = ps->dev->memory.alloc(ps->dev->memory.ctx, sizeof *ps->pace);
    if (!ps->pace) return ps->dev->memory.refuse(ps->dev->memory.ctx, sizeof *ps->pace, 0);
    return acf_device_zero(ps->dev, ps->pace, sizeof *ps->pace);
}

/* Fills `value` through a host copy of one parameter at a time. */
static acf_status fill_values(acf_params *ps, uint64_t seed) {
    acf_status status = ACF_OK;
    int64_t most = 1;
    for (int i = 0; i < ps->n; i++) most = acf_max(most, acf_tensor_count(&ps->list[i]->t));
    acf_real *host = acf_alloc((size_t)most * sizeof *host, "initial values");
    if (!host) return ACF_EMEMORY;
    for (int i = 0; i < ps->n; i++) {
        acf_param *p = ps->list[i];
        init_values(p, seed, host);
        size_t bytes = (size_t)acf_tensor_count(&p->t) * sizeof *host;
        ACF_TRY_DONE(acf_device_copy(ps->dev, ps->value + p->offset, host, bytes, ACF_TO_DEVICE));
    }
    ACF_TRY_DONE(acf_device_sync(ps->dev));
done:
    acf_release(host);
    return status;
}

acf_status acf_params_restart(acf_params *ps, uint64_t seed) {
    const size_t bytes = (size_t)ps->total * sizeof(acf_real);
    ACF_TRY(fill_values(ps, seed));
    if (!ps->grad) return ACF_OK;
    ACF_TRY(acf_device_zero(ps->dev, ps->grad, bytes));
    ACF_TRY(acf_device_zero(ps->dev, ps->m, bytes));
    ACF_TRY(acf_device_zero(ps->dev, ps->v, bytes));
    return acf_device_copy(ps->dev, ps->ema, ps->value, bytes, ACF_ON_DEVICE);
}

/* Allocates the slabs, all 0. */
static acf_status new_slabs(acf_params *ps, bool train) {
    ACF_ASSERT(!ps->value);
    lay_out(ps);
    ACF_TRY(new_slab(ps, "values", &ps->value));
    if (!train) return ACF_OK;
    ACF_TRY(new_slab(ps, "gradients", &ps->grad));
    ACF_TRY(new_slab(ps, "first moments", &ps->m));
    ACF_TRY(new_slab(ps, "second moments", &ps->v));
    ACF_TRY(new_slab(ps, "averages", &ps->ema));
    return new_pace(ps);
}

/* Points every parameter into the slabs. */
static void point(acf_params *ps) {
    for (int i = 0; i < ps->n; i++) {
        acf_param *p = ps->list[i];
        p->t.data = ps->value + p->offset;
        p->t.grad = ps->grad ? ps->grad + p->offset : NULL;
        p->t.needs_grad = ps->grad;
    }
}

/* seed NULL: values stay 0. */
static acf_status build(acf_params *ps, const uint64_t *seed, bool train) {
    acf_status status = new_slabs(ps, train);
    if (!status) status = seed ? acf_params_restart(ps, *seed) : acf_device_sync(ps->dev);
    if (status)
        free_slabs(ps);
    else
        point(ps);
    return status;
}

acf_status acf_params_build(acf_params *ps, uint64_t seed, bool train) { return build(ps, &seed, train); }

acf_status acf_params_allocate(acf_params *ps) { return build(ps, NULL, false); }

acf_status acf_params_trainable(const acf_params *ps, const char *who) {
    if (ps->grad) return ACF_OK;
    return acf_fail(ACF_EUSAGE, "%s: the parameters have no gradients; expected a set that was built for training",
                    who);
}

acf_status acf_params_zero_grad(acf_params *ps) {
    ACF_TRY(acf_params_trainable(ps, "zero_grad"));
    return acf_device_zero(ps->dev, ps->grad, (size_t)ps->total * sizeof(acf_real));
}

const acf_param *acf_params_at(const acf_params *ps, int64_t i, int64_t *row, int64_t *column) {
    for (int k = 0; k < ps->n; k++) {
        const acf_param *p = ps->list[k];
        if (i < p->offset || i >= p->offset + acf_tensor_count(&p->t)) continue;
        int64_t width = acf_max(acf_tensor_width(&p->t), 1);
        *row = (i - p->offset) / width;
        *column = (i - p->offset) % width;
        return p;
    }
    return NULL;
}
