/* Queries by CUDA graphs: see query_graph.h. */
#include "infer/query_graph.h"

#include "device/plugin.h"
#include "table/table_on_device.h"
#include "tensor/tape_graph.h"

#include <math.h>
#include <string.h>

#define SIZES 16 /* graphs of a query, by the share of modelled cells */

typedef enum query { LOGP, DRAW, GUESS, QUERIES } query;

/* One graph, and the memory of its answer. */
typedef struct target {
    acf_tape_graph replay;
    acf_answer answer; /* LOGP: reals has (N) */
} target;

struct acf_query_graph {
    const acf_net *net;
    acf_tape *t;
    const acf_gmm_draws *gmm; /* for draws; NULL: the fitted parameters */
    acf_batch *there;
    uint32_t *now;         /* in device memory: number of the draw */
    uint64_t seed;         /* seed of the captured draws */
    bool by_hand[QUERIES]; /* cannot be captured */
    target target[QUERIES][SIZES];
};

acf_status acf_query_graph_create(const acf_net *net, acf_tape *t, int64_t rows, const acf_gmm_draws *gmm,
                                  acf_query_graph **out) {
    acf_status status = ACF_OK;
    acf_device *dev = t->dev;
    *out = NULL;
    if (!dev->plugin) return ACF_OK;
    acf_query_graph *r = acf_alloc_zero(sizeof *r, "CUDA graphs of queries");
    if (!r) return ACF_EMEMORY;
    r->net = net, r->t = t, r->gmm = gmm;
    ACF_TRY_DONE(acf_batch_place(dev, rows, acf_net_columns(net), &r->there));
    if (!(r->now = dev->memory.alloc(dev->memory.ctx, sizeof *r->now))) {
        status = dev->memory.refuse(dev->memory.ctx, sizeof *r->now, 0);
        goto done;
    }
    *out = r;
done:
    if (status) acf_query_graph_free(r);
    return status;
}

void acf_query_graph_forget(acf_query_graph *r) {
    for (int q = 0; r && q < QUERIES; q++)
        for (int k = 0; k < SIZES; k++) acf_tape_graph_free(&r->target[q][k].replay, r->t->dev);
}

void acf_query_graph_free(acf_query_graph *r) {
    if (!r) return;
    const acf_memory *m = &r->t->dev->memory;
    acf_query_graph_forget(r);
    if (r->now) m->free(m->ctx, r->now);
    acf_batch_free(r->there);
    acf_release(r);
}

/* ---- the size of a batch ----------------------------------------------------------------------------------------- */

/* Modelled cells in columns [from, to) of the batch. */
static int64_t count_cells(const acf_batch *batch, int64_t from, int64_t to) {
    int64_t n = 0;
    for (int64_t i = 0; i < batch->N; i++) {
        const uint8_t *m = batch->m + i * batch->D, *b = batch->b + i * batch->D;
        int row = 0;
        for (int64_t j = from; j < to; j++) row += (m[j] != 0) & (b[j] == 0);
        n += row;
    }
    return n;
}

/* The smallest graph with capacity for the modelled cells of reals and of categories; each part has its own
 * capacity. */
static int size_of(const acf_query_graph *r, const acf_batch *batch) {
    int64_t reals, real_cells = 0;
    const int32_t *column = acf_net_reals(r->net, &reals);
    const int64_t all = count_cells(batch, 0, batch->D), others = batch->D - reals;
    if (others == 0)
        real_cells = all;
    else
        for (int64_t k = 0; k < reals; k++) real_cells += count_cells(batch, column[k], column[k] + 1);
    const int64_t count[2] = {real_cells, all - real_cells},
                  capacity[2] = {r->there->capacity * reals, r->there->capacity * others};
    int64_t size = 1;
    for (int k = 0; k < 2; k++)
        if (capacity[k]) size = acf_max(size, acf_ceil_div(SIZES * count[k], capacity[k]));
    return (int)size - 1;
}

/* ---- queries ----------------------------------------------------------------------------------------------------- */

/* Arguments of enqueue. */
typedef struct capture_args {
    acf_query_graph *r;
    query q;
    acf_draw draw;
    acf_answer *out;
} capture_args;

static acf_status enqueue(void *ctx) {
    const capture_args *e = ctx;
    acf_tape *t = e->r->t;
    acf_tape_begin(t, false);
    acf_view *v = acf_net_view(t, e->r->net, e->r->there, NULL);
    if (e->q == DRAW) acf_net_view_gmm(v, e->r->gmm);
    if (e->q == LOGP)
        *e->out = (acf_answer){.reals = acf_net_logp(t, v)->data};
    else
        *e->out = acf_net_answer(t, v, e->q == DRAW ? &e->draw : NULL);
    return acf_tape_status(t);
}

/* Runs the query on the batch; *a is its answer, in device memory. */
static acf_status ask(acf_query_graph *r, acf_batch *batch, query q, uint64_t seed, const acf_answer **a,
                      bool *by_hand) {
    acf_tape *t = r->t;
    const int size = size_of(r, batch);
    target *s = &r->target[q][size];
    capture_args e = {r, q, {.seed = seed, .now = r->now}, &s->answer};
    ACF_TRY(acf_batch_send(batch, r->there));
    t->capacity = (double)(size + 1) / SIZES;
    acf_status status = acf_tape_graph_run(&s->replay, t, enqueue, &e, 1);
    t->capacity = 1;
    *by_hand = r->by_hand[q] = status == ACF_EDEVICE && !acf_tape_graph_ready(&s->replay);
    *a = &s->answer;
    return *by_hand ? ACF_OK : status;
}

acf_status acf_query_graph_logp(acf_query_graph *r, acf_batch *batch, acf_real *out, bool *by_hand) {
    const acf_answer *a;
    acf_device *dev = r->t->dev;
    if ((*by_hand = r->by_hand[LOGP])) return ACF_OK;
    ACF_TRY(ask(r, batch, LOGP, 0, &a, by_hand));
    if (*by_hand) return ACF_OK;
    ACF_TRY(acf_device_copy(dev, out, a->reals, (size_t)batch->N * sizeof *out, ACF_TO_HOST));
    ACF_TRY(acf_device_sync(dev));
    for (int64_t i = 0; i < batch->N; i++) *by_hand |= !isfinite(out[i]); /* without a graph the error has a message */
    return ACF_OK;
}

static bool all_finite(const acf_batch *batch, const acf_real *x) {
    for (int64_t k = 0; k < batch->N * batch->D; k++)
        if (batch->m[k] && !batch->b[k] && !isfinite(x[k])) return false;
    return true;
}

acf_status acf_query_graph_answer(acf_query_graph *r, acf_batch *batch, const acf_draw *d, acf_real *out,
                                  bool *by_hand) {
    const query q = d ? DRAW : GUESS;
    const acf_answer *a;
    if ((*by_hand = r->by_hand[q])) return ACF_OK;
    if (d && d->seed != r->seed) { /* the seed is part of the graph */
        for (int k = 0; k < SIZES; k++) acf_tape_graph_free(&r->target[DRAW][k].replay, r->t->dev);
        r->seed = d->seed;
    }
    if (d) ACF_TRY(acf_device_copy(r->t->dev, r->now, &d->draw, sizeof d->draw, ACF_TO_DEVICE));
    ACF_TRY(ask(r, batch, q, d ? d->seed : 0, &a, by_hand));
    if (*by_hand) return ACF_OK;
    const acf_mark mark = acf_arena_mark(r->t->host);
    acf_status status = acf_net_fetch(r->t, r->net, *a, batch, out);
    acf_arena_release(r->t->host, mark);
    *by_hand = !status && !all_finite(batch, out);
    return status;
}
