/* The table model: see net.h. Composes; every derivative is in ops/. */
#include "model/net.h"

#include "ops/arith.h"
#include "ops/gather.h"
#include "ops/sqerr.h"

#include <string.h>

#define LOG_SCALE_MIN (-7.0) /* of the mixture, in encoded units: a spike of e^-7 standard deviations */
#define LOG_SCALE_MAX 7.0

struct acf_net {
    acf_device *dev;
    acf_params *ps;
    int64_t D;
    acf_flow_sizes size; /* of the flow's networks */
    acf_param *columns;  /* (D,E) identity of the columns, or NULL */
    acf_chain chain;
    acf_like like;
};

acf_params *acf_net_params(acf_net *net) { return net->ps; }
int64_t acf_net_columns(const acf_net *net) { return net->D; }

/* ---- creation ---------------------------------------------------------------------------------------------------------- */

static acf_flow_sizes sizes_of(const acf_options *o, int64_t D) {
    return (acf_flow_sizes){
        .D = D,
        .context = 3 * D, /* x·b, b, m */
        .identity = acf_options_int(o, "identity"),
        .width = acf_options_int(o, "mlp-width"),
        .hidden = (int)acf_options_int(o, "mlp-layers"),
        .units = acf_options_int(o, "coupling-units"),
        .gru_layers = (int)acf_options_int(o, "coupling-layers"),
        .deep = acf_options_bool(o, "deep-context"),
        .rank = acf_options_int(o, "rank"),
        .bound = acf_options_real(o, "scale-bound"),
    };
}

static acf_status declare(acf_net *net, const acf_options *o) {
    if (net->size.identity) {
        net->columns = acf_param_add(net->ps, "columns", ACF_INIT_NORMAL, 1, 2, (int64_t[]){net->D, net->size.identity});
        if (!net->columns) return acf_error_status();
        net->columns->decay = false; /* an identity, not a weight */
    }
    ACF_TRY(acf_chain_declare(&net->chain, net->ps, "flow", acf_options_text(o, "flow"), &net->size));
    bool gaussian = acf_options_choice(o, "likelihood") == 1;
    net->like = (acf_like){.kind = gaussian ? &acf_like_gaussian : &acf_like_ar, .size = net->size};
    net->like.size.units = acf_options_int(o, "likelihood-units");
    net->like.size.gru_layers = (int)acf_options_int(o, "likelihood-layers");
    net->like.components = acf_options_int(o, "components");
    net->like.lo = LOG_SCALE_MIN, net->like.hi = LOG_SCALE_MAX;
    return net->like.kind->declare(&net->like, net->ps, "likelihood");
}

acf_status acf_net_create(acf_device *dev, const acf_column *column, int64_t D, const acf_options *o, uint64_t seed, bool train,
                          acf_net **out) {
    acf_status status = ACF_OK;
    if (D < 1) return acf_fail(ACF_ESHAPE, "a table model of %lld columns; expected at least one", (long long)D);
    for (int64_t j = 0; column && j < D; j++)
        if (column[j].classes)
            return acf_fail(ACF_EUSAGE, "column %lld is categorical; this network models real columns", (long long)j);
    acf_net *net = acf_alloc_zero(sizeof *net, "a table model");
    if (!net) return ACF_EMEMORY;
    net->dev = dev, net->D = D;
    net->size = sizes_of(o, D);
    ACF_TRY_DONE(acf_params_create(dev, &net->ps));
    ACF_TRY_DONE(declare(net, o));
    ACF_TRY_DONE(acf_params_build(net->ps, seed, train));
    *out = net;
done:
    if (status) acf_net_free(net);
    return status;
}

void acf_net_free(acf_net *net) {
    if (!net) return;
    acf_params_free(net->ps);
    acf_release(net);
}

/* ---- a batch as the network sees it ---------------------------------------------------------------------------------------- */

struct acf_view {
    const acf_net *net;
    acf_tensor *x; /* (N,D) encoded */
    acf_cond cond;
    const uint64_t *id; /* (N) on the device */
};

/* (N,3D): x where given, b, m. What is neither given nor modelled does not enter, whatever the batch holds there. */
static acf_tensor *context_of(acf_tape *t, const acf_batch *batch) {
    int64_t N = batch->N, D = batch->D;
    acf_real *host = acf_arena_alloc(t->host, (size_t)(N * 3 * D) * sizeof *host);
    if (!host) {
        acf_tape_fail(t, NULL);
        return &t->empty;
    }
    for (int64_t i = 0; i < N; i++) {
        acf_real *c = host + i * 3 * D;
        for (int64_t j = 0; j < D; j++) {
            bool b = batch->b[i * D + j], m = batch->m[i * D + j];
            c[j] = b ? batch->x[i * D + j] : 0;
            c[D + j] = b;
            c[2 * D + j] = m;
        }
    }
    return acf_tensor_input(t, host, 2, (int64_t[]){N, 3 * D});
}

static const uint64_t *ids_of(acf_tape *t, const acf_batch *batch) {
    size_t bytes = (size_t)batch->N * sizeof(uint64_t);
    uint64_t *id = acf_arena_alloc(t->mem, bytes);
    if (!id || acf_device_copy(t->dev, id, batch->id, bytes, ACF_TO_DEVICE)) acf_tape_fail(t, NULL);
    return id;
}

acf_view *acf_net_view(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass) {
    if (t->failure.status) return NULL;
    ACF_ASSERT(batch->D == net->D);
    const acf_subset *u;
    acf_view *v = acf_arena_alloc(t->host, sizeof *v);
    if (!v || acf_subset_build(t->mem, batch->b, batch->m, batch->N, batch->D, &u)) {
        acf_tape_fail(t, NULL);
        return NULL;
    }
    *v = (acf_view){.net = net, .cond.u = u};
    v->x = acf_tensor_input(t, batch->x, 2, (int64_t[]){batch->N, batch->D});
    v->cond.context = context_of(t, batch);
    v->cond.columns = acf_p(net->columns);
    v->cond.pass = pass;
    v->id = ids_of(t, batch);
    return t->failure.status ? NULL : v;
}

/* ---- questions ------------------------------------------------------------------------------------------------------------ */

acf_tensor *acf_net_logp(acf_tape *t, acf_view *v) {
    if (!v) return &t->empty;
    acf_tensor *logdet, *x = acf_gather_cells(t, v->x, v->cond.u);
    acf_tensor *z = acf_chain_forward(t, &v->net->chain, x, &v->cond, &logdet);
    acf_cond behind = acf_chain_cond(&v->net->chain, &v->cond);
    return acf_add(t, v->net->like.kind->logp(t, &v->net->like, z, &behind), logdet);
}

/* The inverse flow of the latent mean, (T). */
static acf_tensor *best_guess(acf_tape *t, const acf_view *v) {
    acf_cond behind = acf_chain_cond(&v->net->chain, &v->cond);
    acf_tensor *z = v->net->like.kind->mean(t, &v->net->like, &behind);
    return acf_chain_inverse(t, &v->net->chain, z, &v->cond, NULL);
}

acf_tensor *acf_net_guess_error(acf_tape *t, acf_view *v) {
    if (!v) return &t->empty;
    return acf_sqerr(t, best_guess(t, v), acf_gather_cells(t, v->x, v->cond.u), v->cond.u);
}

/* The modelled cells of out (N,D) on the host = x (T). */
static acf_status put_cells(acf_tape *t, const acf_view *v, const acf_tensor *x, acf_real *out) {
    ACF_TRY(acf_tape_check(t, x));
    const acf_subset *u = v->cond.u;
    acf_real *host = acf_arena_alloc(t->host, (size_t)u->T * sizeof *host);
    if (!host) return acf_tape_fail(t, NULL);
    ACF_TRY(acf_device_copy(t->dev, host, x->data, (size_t)u->T * sizeof *host, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(t->dev));
    for (int64_t p = 0; p < u->T; p++) out[u->cell[p]] = host[p];
    return ACF_OK;
}

acf_status acf_net_draw(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out) {
    if (!v) return acf_tape_status(t);
    acf_draw here = {.seed = d->seed, .draw = d->draw, .row_id = v->id};
    acf_cond behind = acf_chain_cond(&v->net->chain, &v->cond);
    acf_tensor *z = v->net->like.kind->sample(t, &v->net->like, &behind, &here);
    return put_cells(t, v, acf_chain_inverse(t, &v->net->chain, z, &v->cond, NULL), out);
}

acf_status acf_net_guess(acf_tape *t, acf_view *v, acf_real *out) {
    if (!v) return acf_tape_status(t);
    return put_cells(t, v, best_guess(t, v), out);
}
