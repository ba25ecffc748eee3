/* Queries of the table model: see net.h. It composes operations; all derivatives are in ops/.
 *
 * Nothing here reads numbers on the device before an answer is fetched. A batch in device memory
 * (table/table_on_device.h) needs no host for its view or for the gradient of its loss. */
#include "model/net_parts.h"

#include "ops/arith.h"
#include "ops/cells.h"
#include "ops/concat.h"
#include "ops/factors.h"
#include "ops/gather.h"
#include "ops/mixture.h"
#include "ops/mog.h"
#include "ops/reduce.h"
#include "ops/sqerr.h"

#include <string.h>

/* ---- a batch as the network sees it ------------------------------------------------------------------------------ */

struct acf_view {
    const acf_net *net;
    const acf_batch *batch;
    acf_pass pass; /* with the ids of the rows */
    bool trains;   /* false: inference */
    const acf_subset *u_real, *u_category;
    acf_tensor *x;                  /* (N,Dr) encoded; 0 if neither given nor modelled */
    acf_tensor *common;             /* (N,3Dr): x·b, b, m of the reals */
    const uint8_t *given, *present; /* (N,Dr) on the device: b and m of the reals */
    acf_mog_classes classes;        /* input of the mixture from categories */
    uint8_t *b, *seen;              /* (N,Dc) on the device: given categories; given or modelled ones */
    int32_t *code;                  /* (N,Dc) on the device; a draw writes the modelled ones */
    const uint64_t *id;             /* (N) on the device */
    const acf_gmm_draws *gmm;       /* parameters instead of the fitted mixture's; NULL: none */
    acf_grid cells;                 /* the batch, in memory that operations can read */
    acf_attention_rows rows;        /* input of the attention likelihood */
};

/* n bytes on the device, copied from the host; NULL and a failed tape on failure. */
static void *to_device(acf_tape *t, const void *host, size_t bytes) {
    void *p = acf_arena_alloc(t->mem, bytes);
    if (p && acf_device_copy(t->dev, p, host, bytes, ACF_TO_DEVICE) == ACF_OK) return p;
    acf_tape_fail(t, NULL);
    return NULL;
}

/* The cells of the batch, as they are or copied to another device, so that operations can read them. */
static acf_grid grid_of(acf_tape *t, const acf_batch *batch, const uint64_t **id) {
    acf_grid g = {batch->N, batch->D, batch->x, batch->code, batch->b, batch->m};
    const size_t cells = (size_t)(batch->N * batch->D);
    *id = batch->id;
    if (batch->there || t->dev->kind == ACF_DEVICE_CPU) return g;
    g.x = to_device(t, g.x, cells * sizeof *g.x), g.code = to_device(t, g.code, cells * sizeof *g.code);
    g.b = to_device(t, g.b, cells), g.m = to_device(t, g.m, cells);
    *id = to_device(t, *id, (size_t)batch->N * sizeof **id);
    return g;
}

/* Sets x, common and u_real. Cells that are neither given nor modelled are masked out. */
static void see_reals(acf_tape *t, acf_view *v, const acf_grid *g) {
    const acf_taken r = acf_take_reals(t, g, v->net->real_column, v->net->real.D);
    v->x = r.x, v->common = r.common, v->given = r.b, v->present = r.m;
    v->u_real = acf_tape_subset(t, r.b, r.m, g->N, v->net->real.D);
}

static void see_categories(acf_tape *t, acf_view *v, const acf_grid *g) {
    const int64_t D = v->net->category.D;
    const acf_taken r = acf_take_classes(t, g, v->net->category_column, D);
    v->b = r.b, v->code = r.code;
    v->seen = r.m; /* m = given or modelled: in a query no other cell is present */
    v->u_category = acf_tape_subset(t, v->b, v->seen, g->N, D);
    if (v->net->gmm_components && v->net->indicators)
        v->classes =
            (acf_mog_classes){v->net->indicators, D, v->net->indicator_of, v->net->indicator_value, v->code, v->seen};
}

static void see_sequences(acf_tape *t, acf_view *v, const acf_order *o) {
    const acf_grid *g = &v->cells;
    const acf_net *net = v->net;
    if (o->shuffle && net->real.D && net->gmm_components && !net->chain.n) { /* each z depends on earlier cells */
        acf_order reals = *o;
        reals.column = net->real_column, reals.columns = net->D, reals.modelled = true;
        v->u_real = acf_tape_sequence(t, v->given, v->present, &reals, g->N, net->real.D);
    }
    v->rows = (acf_attention_rows){.s = acf_tape_sequence(t, g->b, g->m, o, g->N, g->D),
                                   .u_real = net->real.D ? v->u_real : NULL,
                                   .u_category = v->u_category,
                                   .given = g->b,
                                   .x = net->real.D ? v->x : NULL,
                                   .codes = v->code,
                                   .pass = v->trains ? &v->pass : NULL};
}

/* Training uses a new order of every row's cells each step; queries always use the same order. */
static acf_order order_of(const acf_view *v) {
    const acf_net *net = v->net;
    const bool mixed = !net->gmm_components && !net->chain.n;
    if (!v->trains) return (acf_order){.stage = net->stage_there};
    return (acf_order){.stage = mixed ? net->mixed_there : net->stage_there,
                       .shuffle = true,
                       .seed = v->pass.seed,
                       .draw = v->pass.step,
                       .now = v->pass.now,
                       .row_id = v->id};
}

void acf_net_view_order(acf_tape *t, acf_view *v, uint32_t order) {
    if (v && v->net->attends && order)
        see_sequences(t, v, &(acf_order){.stage = v->net->stage_there, .shuffle = true, .draw = order});
}

acf_view *acf_net_view(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass) {
    if (t->failure.status) return NULL;
    ACF_ASSERT(batch->D == net->D);
    acf_view *v = acf_arena_alloc(t->host, sizeof *v);
    if (!v) {
        acf_tape_fail(t, NULL);
        return NULL;
    }
    *v = (acf_view){.net = net, .batch = batch, .trains = pass};
    const acf_grid g = v->cells = grid_of(t, batch, &v->id);
    if (pass) v->pass = *pass, v->pass.row_id = v->id;
    see_reals(t, v, &g); /* also without real columns: width 0, so that `common` always exists */
    if (net->category.D) see_categories(t, v, &g);
    if (net->attends) {
        const acf_order order = order_of(v);
        see_sequences(t, v, &order);
    }
    return t->failure.status ? NULL : v;
}

void acf_net_view_gmm(acf_view *v, const acf_gmm_draws *g) {
    if (v && g) v->gmm = g;
}

/* The context of a part's networks; `known` marks the categories that they may use, `table` has their embeddings. */
static acf_tensor *context(acf_tape *t, const acf_view *v, acf_param *table, const uint8_t *known) {
    if (!v->net->category.D) return v->common;
    const int64_t N = v->batch->N, D = v->net->category.D;
    acf_tensor *b = acf_mask_numbers(t, v->b, N, D), *m = acf_mask_numbers(t, v->seen, N, D);
    acf_tensor *classes = acf_category_context(t, acf_p(table), &v->net->classes, v->code, known, N);
    return acf_concat(t, 4, (acf_tensor *[]){v->common, b, m, classes});
}

/* The conditioning vector, and the output of the part's reader appended to it. */
static acf_tensor *reading(acf_tape *t, const acf_view *v, const acf_part *p, acf_tensor *context) {
    if (!p->reader.layers) return context;
    return acf_concat(t, 2,
                      (acf_tensor *[]){context, acf_mlp_run(t, &p->reader, context, v->trains ? &v->pass : NULL)});
}

static acf_cond real_cond(acf_tape *t, const acf_view *v) {
    return (acf_cond){.context = reading(t, v, &v->net->real, context(t, v, v->net->seen, v->seen)),
                      .u = v->u_real,
                      .columns = acf_p(v->net->real.column_embedding),
                      .pass = v->trains ? &v->pass : NULL};
}

/* Parameter i of the mixture for this view, a constant to the tape. */
static acf_tensor *gmm_parameter(acf_tape *t, const acf_view *v, int i) {
    const acf_tensor *p = &v->net->gmm[i]->t;
    const acf_gmm_draws *g = v->gmm;
    if (g)
        return acf_tensor_wrap(t, i == 0 ? g->weight : i == 1 ? g->mean : g->cov, 1 + i, (int64_t[]){g->K, g->W, g->W});
    return acf_tensor_wrap(t, p->data, p->ndim, p->dim);
}
static acf_mog mixture_of(acf_tape *t, const acf_view *v) {
    return (acf_mog){
        gmm_parameter(t, v, 0), gmm_parameter(t, v, 1), gmm_parameter(t, v, 2), v->x, v->given, v->classes};
}
static acf_factors factors_of(acf_tape *t, const acf_view *v) {
    return (acf_factors){gmm_parameter(t, v, 0),
                         gmm_parameter(t, v, 1),
                         gmm_parameter(t, v, 2),
                         gmm_parameter(t, v, 3),
                         v->x,
                         v->given,
                         v->classes};
}

/* Expectations of the mixture for every column from given categories only; zeros in rows without a target category. */
static acf_tensor *gmm_expectations(acf_tape *t, const acf_view *v) {
    if (v->net->gmm_factors) {
        acf_factors g = factors_of(t, v);
        g.classes.known = v->b;
        return acf_factors_expect(t, &g, v->u_category);
    }
    acf_mog g = mixture_of(t, v);
    g.classes.known = v->b;
    return acf_mog_expect(t, &g, v->u_category);
}

/* The categories' networks also get the mixture's expectation of every column and class given the others. This is a
 * linear prediction; otherwise they would have to learn to fill in missing values. */
static acf_tensor *category_context(acf_tape *t, const acf_view *v) {
    acf_tensor *c = context(t, v, v->net->categories.table, v->b);
    if (!v->net->gmm_components || !v->net->indicators || t->failure.status) return c;
    return acf_concat(t, 2, (acf_tensor *[]){c, gmm_expectations(t, v)});
}

static acf_cond category_cond(acf_tape *t, const acf_view *v) {
    return (acf_cond){.context = reading(t, v, &v->net->category, category_context(t, v)),
                      .u = v->u_category,
                      .columns = acf_p(v->net->category.column_embedding),
                      .pass = v->trains ? &v->pass : NULL};
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

/* The modelled values as input of the chain; *logdet stays NULL if there is no mixture. */
static acf_tensor *through_gmm(acf_tape *t, const acf_view *v, acf_tensor **logdet) {
    *logdet = NULL;
    if (!v->net->gmm_components) return acf_gather_cells(t, v->x, v->u_real);
    if (v->net->gmm_factors) {
        acf_factors g = factors_of(t, v);
        return acf_factors_normal(t, &g, v->u_real, logdet);
    }
    acf_mog g = mixture_of(t, v);
    return acf_mog_normal(t, &g, v->u_real, logdet);
}

/* The inverse: from the output of the chain's inverse to values. */
static acf_tensor *gmm_inverse(acf_tape *t, const acf_view *v, acf_tensor *z) {
    if (!v->net->gmm_components) return z;
    if (v->net->gmm_factors) {
        acf_factors g = factors_of(t, v);
        return acf_factors_value(t, &g, z, v->u_real);
    }
    acf_mog g = mixture_of(t, v);
    return acf_mog_value(t, &g, z, v->u_real);
}

static void gmm_inverse_all(acf_tape *t, const acf_view *v, int n, acf_tensor **z) {
    if (v->net->gmm_factors) {
        acf_factors g = factors_of(t, v);
        acf_factors_values(t, &g, n, z, v->u_real);
    } else if (v->net->gmm_components) {
        acf_mog g = mixture_of(t, v);
        acf_mog_values(t, &g, n, z, v->u_real);
    }
}

/* z (T) and log|det| (N; may be NULL) of mixture and chain. */
static acf_tensor *forward(acf_tape *t, const acf_view *v, const acf_cond *c, acf_tensor **logdet) {
    acf_tensor *gmm, *z = acf_chain_forward(t, &v->net->chain, through_gmm(t, v, &gmm), c, logdet);
    if (logdet && gmm) *logdet = acf_add(t, *logdet, gmm);
    return z;
}

/* The context is for transformations; without any, none is made. */
static acf_cond chain_cond(acf_tape *t, const acf_view *v) {
    return v->net->attends && !v->net->chain.n ? (acf_cond){.u = v->u_real} : real_cond(t, v);
}

static acf_tensor *logp_attention(acf_tape *t, const acf_view *v) {
    if (!v->net->real.D) return acf_attention_like_logp(t, &v->net->attention, &v->rows, NULL);
    const acf_cond c = chain_cond(t, v);
    acf_tensor *logdet, *z = forward(t, v, &c, &logdet);
    return acf_add(t, acf_attention_like_logp(t, &v->net->attention, &v->rows, z), logdet);
}

static acf_tensor *logp_reals(acf_tape *t, const acf_view *v) {
    acf_cond c = real_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    acf_tensor *logdet, *z = forward(t, v, &c, &logdet);
    return acf_add(t, v->net->like.kind->logp(t, &v->net->like, z, &behind), logdet);
}

const acf_subset *acf_net_modelled(const acf_view *v) { return v->u_real; }

acf_tensor *acf_net_shares(acf_tape *t, const acf_view *v, bool per_column) {
    return v ? acf_row_shares(t, v->u_real, v->u_category, per_column) : &t->empty;
}

acf_tensor *acf_net_forward(acf_tape *t, acf_view *v, acf_tensor **logdet) {
    if (!v) return &t->empty;
    if (!v->net->real.D) return NULL;
    acf_cond c = chain_cond(t, v);
    return forward(t, v, &c, logdet);
}

acf_tensor *acf_net_inverse(acf_tape *t, acf_view *v, acf_tensor *z) {
    if (!v) return &t->empty;
    if (!v->net->real.D) return NULL;
    acf_cond c = chain_cond(t, v);
    return gmm_inverse(t, v, acf_chain_inverse(t, &v->net->chain, z, &c, NULL));
}

acf_tensor *acf_net_logp(acf_tape *t, acf_view *v) {
    if (!v) return &t->empty;
    if (v->net->attends) return logp_attention(t, v);
    if (!v->net->category.D) return logp_reals(t, v);
    acf_cond c = category_cond(t, v);
    acf_tensor *classes = acf_categories_logp(t, &v->net->categories, v->code, &c);
    return v->net->real.D ? acf_add(t, classes, logp_reals(t, v)) : classes;
}

/* The inverse flow of the latent mean, (T). */
static acf_tensor *best_guess(acf_tape *t, const acf_view *v) {
    acf_cond c = real_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    acf_tensor *mean = v->net->like.kind->mean(t, &v->net->like, &behind);
    return gmm_inverse(t, v, acf_chain_inverse(t, &v->net->chain, mean, &c, NULL));
}

acf_tensor *acf_net_guess_error(acf_tape *t, acf_view *v) {
    if (!v) return &t->empty;
    if (!v->net->real.D) return NULL;
    return acf_sqerr(t, best_guess(t, v), acf_gather_cells(t, v->x, v->u_real), v->u_real);
}

/* n bytes of device memory on the host, allocated on the tape; NULL and a failed tape on failure. */
static void *to_host(acf_tape *t, const void *there, size_t bytes) {
    void *p = t->failure.status ? NULL : acf_arena_alloc(t->host, bytes);
    if (p && acf_device_copy(t->dev, p, there, bytes, ACF_TO_HOST) == ACF_OK && acf_device_sync(t->dev) == ACF_OK)
        return p;
    acf_tape_fail(t, NULL);
    return NULL;
}

/* Is the cell modelled? Uses the masks on the host, because the subset is in device memory. */
static bool modelled(const acf_batch *batch, int64_t cell) { return batch->m[cell] && !batch->b[cell]; }

/* The values of modelled reals for the tokens, if only a Gaussian mixture precedes the likelihood. */
static acf_tensor *token_values(acf_tape *t, const void *view, acf_tensor *z) { return gmm_inverse(t, view, z); }

/* Draws all modelled categories and reals in one pass over the row's cells; z of the reals, NULL if there are none. */
static acf_tensor *draw_attention(acf_tape *t, const acf_view *v, const acf_draw *d) {
    const acf_net *net = v->net;
    const acf_attention_value value = {token_values, v};
    return acf_attention_like_draw(t, &net->attention, &v->rows, d,
                                   net->gmm_components && !net->chain.n ? &value : NULL);
}

/* Draws the modelled categories (d NULL: takes the most probable) and writes them to `code`, which the reals read. */
static void draw_categories(acf_tape *t, acf_view *v, const acf_draw *d) {
    if (v->net->attends) {
        draw_attention(t, v, d);
        return;
    }
    acf_cond c = category_cond(t, v);
    const int32_t *made = acf_categories_draw(t, &v->net->categories, &c, d);
    if (made) acf_put_codes(t, v->code, made, v->u_category);
}

static acf_tensor *draw_reals(acf_tape *t, const acf_view *v, const acf_draw *d) {
    if (!d) return best_guess(t, v);
    acf_cond c = real_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    acf_tensor *z = v->net->like.kind->sample(t, &v->net->like, &behind, d);
    return gmm_inverse(t, v, acf_chain_inverse(t, &v->net->chain, z, &c, NULL));
}

static acf_answer attention_answer(acf_tape *t, acf_view *v, const acf_draw *d) {
    acf_answer a = {.codes = v->code};
    acf_tensor *z = draw_attention(t, v, d);
    if (!v->net->real.D || !z) return a;
    const acf_cond c = chain_cond(t, v);
    acf_tensor *x = gmm_inverse(t, v, acf_chain_inverse(t, &v->net->chain, z, &c, NULL));
    if (!acf_tape_check(t, x)) a.reals = acf_scatter_cells(t, x, v->u_real, NULL)->data;
    return a;
}

acf_answer acf_net_answer(acf_tape *t, acf_view *v, const acf_draw *d) {
    acf_answer a = {0};
    if (!v) return a;
    const acf_draw here =
        d ? (acf_draw){.seed = d->seed, .draw = d->draw, .now = d->now, .row_id = v->id} : (acf_draw){0};
    if (v->net->attends) return attention_answer(t, v, d ? &here : NULL);
    if (v->net->category.D) {
        draw_categories(t, v, d ? &here : NULL);
        a.codes = v->code;
    }
    if (!v->net->real.D) return a;
    acf_tensor *x = draw_reals(t, v, d ? &here : NULL);
    if (acf_tape_check(t, x)) return a;
    a.reals = acf_scatter_cells(t, x, v->u_real, NULL)->data;
    return a;
}

acf_status acf_net_fetch(acf_tape *t, const acf_net *net, acf_answer a, const acf_batch *batch, acf_real *out) {
    const acf_part *r = &net->real, *c = &net->category;
    const size_t N = (size_t)batch->N;
    const acf_real *reals = a.reals ? to_host(t, a.reals, N * (size_t)r->D * sizeof *reals) : NULL;
    const int32_t *codes = a.codes ? to_host(t, a.codes, N * (size_t)c->D * sizeof *codes) : NULL;
    ACF_TRY(acf_tape_status(t));
    for (int64_t i = 0; i < batch->N; i++) {
        const int64_t row = i * net->D;
        for (int64_t k = 0; reals && k < r->D; k++)
            if (modelled(batch, row + r->column[k])) out[row + r->column[k]] = reals[i * r->D + k];
        for (int64_t k = 0; codes && k < c->D; k++)
            if (modelled(batch, row + c->column[k])) out[row + c->column[k]] = (acf_real)codes[i * c->D + k];
    }
    return ACF_OK;
}

static acf_status answer(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out) {
    const acf_answer a = acf_net_answer(t, v, d);
    ACF_TRY(acf_tape_status(t));
    return acf_net_fetch(t, v->net, a, v->batch, out);
}

acf_status acf_net_draw(acf_tape *t, acf_view *v, const acf_draw *d, acf_real *out) { return answer(t, v, d, out); }

acf_status acf_net_guess(acf_tape *t, acf_view *v, acf_real *out) { return answer(t, v, NULL, out); }

/* ---- one column at a time ---------------------------------------------------------------------------------------- */

/* The target column of row i in this part; -1 if it has none. */
static int64_t target(const acf_view *v, const acf_part *p, int64_t i) {
    for (int64_t k = 0; k < p->D; k++)
        if (modelled(v->batch, i * v->net->D + p->column[k])) return k;
    return -1;
}

static bool asks_for_part(const acf_view *v, const acf_part *p) {
    for (int64_t i = 0; i < v->batch->N; i++)
        if (target(v, p, i) >= 0) return true;
    return false;
}

/* Row i of out (N,n) = the element of row i in every z (T). */
static acf_status put_cell_values(acf_tape *t, const acf_view *v, int n, acf_tensor *const *z, acf_real *out) {
    const int64_t T = v->u_real->T;
    const int32_t *row = to_host(t, v->u_real->row_of, (size_t)T * sizeof *row);
    for (int q = 0; q < n; q++) {
        ACF_TRY(acf_tape_check(t, z[q]));
        const acf_real *host = to_host(t, z[q]->data, (size_t)T * sizeof *host);
        for (int64_t e = 0; host && e < T; e++)
            if (row[e] >= 0) out[row[e] * n + q] = host[e]; /* -1: unused capacity on a GPU */
    }
    return acf_tape_status(t);
}

/* The class is not used in rows that model one column, but `code` needs a valid one in every modelled cell. */
static void set_any_class(acf_tape *t, acf_view *v) {
    if (t->failure.status || !v->net->category.D || !asks_for_part(v, &v->net->category)) return;
    const size_t bytes = (size_t)v->u_category->T * sizeof(int32_t);
    int32_t *zeros = acf_arena_alloc(t->mem, bytes);
    if (!zeros || acf_device_zero(t->dev, zeros, bytes))
        acf_tape_fail(t, NULL);
    else
        acf_put_codes(t, v->code, zeros, v->u_category);
}

/* Stratified values, as the spread of a likelihood (like.h). */
static void cell_values_of_attention(acf_tape *t, const acf_view *v, int n, acf_tensor **z) {
    const acf_attention_like *k = &v->net->attention;
    acf_tensor *p = acf_attention_like_mixtures(t, k, &v->rows);
    for (int i = 0; i < n; i++)
        z[i] =
            acf_mixture_stratum(t, p, acf_tensor_const(t, NULL, (i + 0.5) / n, 0, NULL), k->components, k->lo, k->hi);
}

/* (T,M): class probabilities of the modelled categories, the first of each row. */
static acf_tensor *class_probs(acf_tape *t, acf_view *v) {
    if (v->net->attends) return acf_attention_like_probs(t, &v->net->attention, &v->rows);
    set_any_class(t, v);
    const acf_cond c = category_cond(t, v);
    return acf_categories_probs(t, &v->net->categories, v->code, &c);
}

/* Maps n sets z (T) to values, with one parameter set after the other: each set is loaded once, for all of its
 * values. */
static void gmm_inverse_sets(acf_tape *t, acf_view *v, int n, acf_tensor **z, const acf_gmm_draws *sets, int use) {
    acf_tensor **own = acf_arena_alloc(t->host, (size_t)n * sizeof *own);
    if (!own) acf_tape_fail(t, NULL);
    for (int s = 0; own && s < use; s++) {
        const acf_gmm_draws one = acf_gmm_draws_one(sets, s);
        int k = 0;
        for (int i = s; i < n; i += use) own[k++] = z[i];
        v->gmm = &one;
        gmm_inverse_all(t, v, k, own);
        for (int i = s; i < n; i += use) z[i] = own[i / use];
    }
    v->gmm = NULL;
}

/* sets NULL: values under the fitted parameters only. */
static acf_status cell_values_of_reals(acf_tape *t, acf_view *v, int n, acf_real *out, const acf_gmm_draws *sets,
                                       int use, acf_real *drawn) {
    acf_tensor **z = acf_arena_alloc(t->host, 2 * (size_t)n * sizeof *z), **other = z + n;
    if (!z) return acf_tape_fail(t, NULL);
    acf_cond c = chain_cond(t, v), behind = acf_chain_cond(&v->net->chain, &c);
    if (v->net->attends)
        cell_values_of_attention(t, v, n, z);
    else
        v->net->like.kind->cell_values(t, &v->net->like, &behind, n, z);
    acf_chain_inverse_alone(t, &v->net->chain, n, z, &c);
    memcpy(other, z, (size_t)n * sizeof *z);
    gmm_inverse_all(t, v, n, z);
    if (sets) gmm_inverse_sets(t, v, n, other, sets, use);
    ACF_TRY(acf_tape_status(t));
    ACF_TRY(put_cell_values(t, v, n, z, out));
    return sets ? put_cell_values(t, v, n, other, drawn) : ACF_OK;
}

acf_status acf_net_cell_values(acf_tape *t, acf_view *v, int n, acf_real *out) {
    return acf_net_cell_values_drawn(t, v, n, out, NULL, 0, NULL);
}

acf_status acf_net_cell_values_drawn(acf_tape *t, acf_view *v, int n, acf_real *out, const acf_gmm_draws *sets, int use,
                                     acf_real *drawn) {
    if (!v || !asks_for_part(v, &v->net->real)) return acf_tape_status(t);
    set_any_class(t, v);
    return cell_values_of_reals(t, v, n, out, sets, use, drawn);
}

acf_status acf_net_best_class(acf_tape *t, acf_view *v, acf_real *out) {
    const acf_part *p = v ? &v->net->category : NULL;
    if (!v || !asks_for_part(v, p)) return acf_tape_status(t);
    draw_categories(t, v, NULL);
    const int32_t *best = to_host(t, v->code, (size_t)(v->batch->N * p->D) * sizeof *best);
    ACF_TRY(acf_tape_status(t));
    for (int64_t i = 0; i < v->batch->N; i++) {
        const int64_t k = target(v, p, i);
        if (k >= 0) out[i] = (acf_real)best[i * p->D + k];
    }
    return ACF_OK;
}

int64_t acf_net_classes(const acf_net *net) {
    int64_t most = 0;
    for (int64_t k = 0; k < net->category.D; k++) most = acf_max(most, net->count[k]);
    return most;
}

acf_status acf_net_class_probs(acf_tape *t, acf_view *v, acf_real *out) {
    if (!v || !v->net->category.D) return acf_tape_status(t);
    const int64_t M = acf_net_classes(v->net), T = v->u_category->T;
    acf_tensor *probs = class_probs(t, v);
    ACF_TRY(acf_tape_check(t, probs));
    const acf_real *p = to_host(t, probs->data, (size_t)(T * M) * sizeof *p);
    const int32_t *row = to_host(t, v->u_category->row_of, (size_t)T * sizeof *row);
    ACF_TRY(acf_tape_status(t));
    for (int64_t e = 0; e < T; e++)
        if (row[e] >= 0)
            memcpy(out + row[e] * M, p + e * M, (size_t)M * sizeof *out); /* -1: unused capacity on a GPU */
    return ACF_OK;
}
