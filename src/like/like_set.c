/* The autoregressive mixture on the set of known cells: see like.h; docs/math.md, 8.
 *
 * Means and draws are made step by step, with one network evaluation per step over the rows that still have a cell.
 * While recording, every step's nodes are kept for the backward; otherwise memory is that of one step. The loop runs on
 * the host. On a GPU it fetches the counts of the steps once per batch (acf_tape_steps), so that a step computes only
 * the rows it has. */
#include "like/like.h"

#include "ops/gather.h"
#include "ops/mixture.h"
#include "ops/reduce.h"

static acf_status sets_declare(acf_like *k, acf_params *ps, const char *name) {
    const acf_flow_sizes *s = &k->size;
    if (s->context < 2 * s->D)
        return acf_fail(ACF_EUSAGE, "%s: a context of %lld numbers; expected at least values and masks of %lld columns",
                        name, (long long)s->context, (long long)s->D);
    acf_deep_sets_shape shape = {s->context,    s->column_embedding, s->units,
                                 s->gru_layers, 3 * k->components,   k->normal ? 0 : 1};
    if (k->apart) {
        k->slots = acf_declare(ps, name, "slots", ACF_INIT_UNIFORM, 1, 2, (int64_t[]){s->units, 2 * s->D});
        if (!k->slots) return acf_error_status();
    }
    ACF_TRY(acf_deep_sets_declare(&k->set, ps, name, &shape, ACF_SITE_AR));
    k->head = acf_p(k->set.bias);
    return ACF_OK;
}

/* A modelled value enters where it would if it had been given: x·b and b come first in the context. If it has been
 * transformed, it has slots of its own. */
static acf_deep_sets_run begin(acf_tape *t, const acf_like *k, const acf_cond *c) {
    acf_deep_sets_run r = acf_deep_sets_begin(t, &k->set, c->context, c->columns, c->mirrored, c->u, c->pass);
    if (t->failure.status) return r;
    int64_t D = c->u->D;
    acf_tensor *w = acf_p(k->slots ? k->slots : k->set.wc);
    r.terms = (acf_terms){acf_prefix_sum_slots(t, w, 0, D), acf_prefix_sum_slots(t, w, D, D)};
    return r;
}

static acf_tensor *sets_logp(acf_tape *t, const acf_like *k, acf_tensor *z, const acf_cond *c) {
    acf_deep_sets_run r = begin(t, k, c);
    acf_tensor *p = acf_deep_sets_out(t, &k->set, acf_deep_sets_all(t, &r, z, r.column));
    return acf_sum_subset(t, acf_mixture_logp(t, p, z, k->components, k->lo, k->hi), c->u);
}

/* One step's values: means, or draws where d is given. */
static acf_tensor *values(acf_tape *t, const acf_like *k, acf_deep_sets_run *r, int64_t step, acf_tensor *before,
                          const acf_draw *d) {
    int64_t first = r->steps.first[step];
    const int32_t *slot = step ? r->column + r->steps.first[step - 1] : NULL;
    acf_tensor *p = acf_deep_sets_out(t, &k->set, acf_deep_sets_step(t, r, step, before, slot));
    if (!d) return acf_mixture_mean(t, p, k->components);
    acf_draw here = *d;
    here.at = (acf_cells){r->u->row_of + first, r->u->col_of + first};
    return acf_mixture_sample(t, p, k->components, k->lo, k->hi, &here);
}

/* Copies a step's values to memory that no rewind releases; returns the view of them. */
static acf_tensor *keep(acf_tape *t, acf_tensor *to, const acf_tensor *v) {
    if (!t->failure.status &&
        acf_device_copy(t->dev, to->data, v->data, (size_t)to->dim[0] * sizeof(acf_real), ACF_ON_DEVICE))
        acf_tape_fail(t, NULL);
    return to;
}

/* (T), to be filled step by step; zero behind the last element, where a GPU has spare capacity. */
static acf_tensor *empty_packed(acf_tape *t, const acf_subset *u, const acf_steps *at) {
    acf_tensor *x = acf_tensor_packed(t, u, 0);
    if (t->failure.status) return x;
    const int64_t end = at->first[at->n];
    if (acf_device_zero(t->dev, x->data + end, (size_t)(u->T - end) * sizeof(acf_real))) acf_tape_fail(t, NULL);
    return x;
}

/* (T), differentiable while recording. */
static acf_tensor *chain(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d) {
    if (t->failure.status) return &t->empty;
    const acf_subset *u = c->u;
    acf_deep_sets_run r = begin(t, k, c);
    acf_deep_sets_start(t, &r);
    const acf_steps at = r.steps;
    acf_tensor **v = acf_arena_alloc(t->host, (size_t)at.n * sizeof *v);
    acf_tensor *all = t->record ? NULL : empty_packed(t, u, &at);
    if (!v) acf_tape_fail(t, NULL);
    for (int64_t s = 0; s < at.n && !t->failure.status; s++) {
        acf_tensor *to = t->record ? NULL : acf_tensor_wrap(t, all->data + at.first[s], 1, (int64_t[]){at.active[s]});
        acf_tape_mark mark = acf_tape_position(t);
        v[s] = values(t, k, &r, s, s ? v[s - 1] : NULL, d);
        if (t->record) continue;
        v[s] = keep(t, to, v[s]);
        acf_tape_rewind(t, mark);
    }
    if (t->failure.status) return &t->empty;
    return t->record ? acf_step_stack(t, v, u) : all;
}

static acf_tensor *sets_mean(acf_tape *t, const acf_like *k, const acf_cond *c) { return chain(t, k, c, NULL); }

static acf_tensor *sets_sample(acf_tape *t, const acf_like *k, const acf_cond *c, const acf_draw *d) {
    return chain(t, k, c, d);
}

/* The first cell of a row does not depend on z: any z will do. */
static void sets_cell_values(acf_tape *t, const acf_like *k, const acf_cond *c, int n, acf_tensor **z) {
    acf_deep_sets_run r = begin(t, k, c);
    acf_tensor *none = acf_tensor_const(t, c->u, 0, 1, &c->u->T);
    acf_tensor *p = acf_deep_sets_out(t, &k->set, acf_deep_sets_all(t, &r, none, r.column));
    for (int i = 0; i < n; i++)
        z[i] =
            acf_mixture_stratum(t, p, acf_tensor_const(t, NULL, (i + 0.5) / n, 0, NULL), k->components, k->lo, k->hi);
}

const acf_like_kind acf_like_sets = {.name = "sets",
                                     .declare = sets_declare,
                                     .logp = sets_logp,
                                     .mean = sets_mean,
                                     .sample = sets_sample,
                                     .cell_values = sets_cell_values};
