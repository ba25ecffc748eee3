/* Repeated work on a tape: see tape_graph.h. */
#include "tensor/tape_graph.h"

#include "device/plugin.h"

#define MEMORY_FACTOR 4 /* free memory required for steps without reuse, in multiples of the memory of a run so far */

/* True if memory suffices for steps that use no memory twice. */
static bool memory_suffices(acf_tape *t) {
    size_t left, all, used = acf_arena_reserved(t->mem) + (size_t)t->slab.asked * sizeof(acf_real);
    return t->record && !acf_device_memory(t->dev, &left, &all) && left / MEMORY_FACTOR > used;
}

static acf_status capture(acf_tape_graph *r, acf_tape *t, acf_status (*enqueue)(void *), void *ctx) {
    acf_device *dev = t->dev;
    ACF_TRY(dev->plugin->capture_begin(dev));
    acf_status status = enqueue(ctx), ended = dev->plugin->capture_end(dev, status ? NULL : &r->graph);
    return status ? status : ended;
}

/* One run without a graph; *n is decremented. */
static acf_status run_directly(acf_tape_graph *r, acf_status (*enqueue)(void *), void *ctx, int64_t *n) {
    ACF_TRY(enqueue(ctx));
    r->ran++, --*n;
    return ACF_OK;
}

static acf_status run(acf_tape_graph *r, acf_tape *t, acf_status (*enqueue)(void *), void *ctx, int64_t n) {
    const acf_plugin *p = t->dev->plugin;
    if (n > 0 && !r->ran) {
        ACF_TRY(run_directly(r, enqueue, ctx, &n));
        r->lasting = memory_suffices(t);
    }
    if (n > 0 && !r->graph) {
        ACF_TRY(acf_tape_last(t, r->lasting));
        if (r->lasting && r->ran == 1) ACF_TRY(run_directly(r, enqueue, ctx, &n));
    }
    if (n > 0 && !r->graph) ACF_TRY(capture(r, t, enqueue, ctx));
    while (n-- > 0) ACF_TRY(p->graph_run(t->dev, r->graph));
    return ACF_OK;
}

acf_status acf_tape_graph_run(acf_tape_graph *r, acf_tape *t, acf_status (*enqueue)(void *ctx), void *ctx, int64_t n) {
    acf_status status = ACF_OK;
    if (!t->dev->plugin) {
        for (; n > 0 && !status; n--) status = enqueue(ctx);
        return status;
    }
    t->captured = true;
    status = run(r, t, enqueue, ctx, n);
    t->captured = t->lasting = false;
    return status;
}

void acf_tape_graph_free(acf_tape_graph *r, acf_device *dev) {
    if (r->graph) {
        acf_device_sync(dev); /* the graph may be running */
        dev->plugin->graph_free(dev, r->graph);
    }
    *r = (acf_tape_graph){0};
}
