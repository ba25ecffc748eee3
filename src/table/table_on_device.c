/* Device tables: see table_on_device.h. Made once per training: a pass over the rows, and one copy of 9 bytes a
 * cell. */
#include "table/table_on_device_row.h"

#include "device/cpu.h"
#include "device/plugin.h"

#include <string.h>

/* ---- layout: all arrays of a table in one block ------------------------------------------------------------------ */

#define ALIGN 256

/* Counts of everything with variable size. */
typedef struct extent {
    int64_t N, D, knots, listed;
    bool held;
} extent;

/* Offsets of the arrays in a block at `base`; with base NULL only *bytes is used. */
static acf_cells_there lay_out(const extent *e, char *base, size_t *bytes) {
    size_t at = 0;
    acf_cells_there c = {.N = e->N, .D = e->D};
    const size_t cells = (size_t)e->N * (size_t)e->D, D = (size_t)e->D;
    const struct {
        const void **to;
        size_t bytes;
    } part[] = {
        {(const void **)&c.x, cells * sizeof *c.x},
        {(const void **)&c.held, e->held ? cells : 0},
        {(const void **)&c.id, (size_t)e->N * sizeof *c.id},
        {(const void **)&c.list, (size_t)e->listed * sizeof *c.list},
        {(const void **)&c.mean, D * sizeof *c.mean},
        {(const void **)&c.scale, D * sizeof *c.scale},
        {(const void **)&c.step, D * sizeof *c.step},
        {(const void **)&c.classes, D * sizeof *c.classes},
        {(const void **)&c.first, (D + 1) * sizeof *c.first},
        {(const void **)&c.t, (size_t)e->knots * sizeof *c.t},
        {(const void **)&c.z, (size_t)e->knots * sizeof *c.z},
    };
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        *part[k].to = base ? base + at : NULL;
        at += (part[k].bytes + ALIGN - 1) / ALIGN * ALIGN;
    }
    if (!e->held) c.held = NULL;
    *bytes = at;
    return c;
}

static int64_t knots_of(const acf_encoder *e) {
    int64_t n = 0;
    for (int64_t j = 0; j < e->D; j++) n += e->normal_scores[j].n;
    return n;
}

size_t acf_table_on_device_bytes(const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                                 const acf_holdout *hold) {
    const extent all = {rows->n, t->D, knots_of(e), hold ? rows->n : 0, hold != NULL};
    size_t bytes;
    lay_out(&all, NULL, &bytes);
    return bytes;
}

/* ---- creation ---------------------------------------------------------------------------------------------------- */

static void fill_encoder(const acf_cells_there *c, const acf_encoder *e) {
    int32_t *first = (int32_t *)c->first;
    first[0] = 0;
    for (int64_t j = 0; j < e->D; j++) {
        const acf_normal_scores *w = &e->normal_scores[j];
        ((double *)c->mean)[j] = e->mean[j], ((double *)c->scale)[j] = e->scale[j];
        ((double *)c->step)[j] = acf_resolution_step(e->resolution[j]);
        ((int32_t *)c->classes)[j] = e->column[j].classes;
        first[j + 1] = first[j] + w->n;
        if (!w->n) continue;
        memcpy((double *)c->t + first[j], w->t, (size_t)w->n * sizeof *w->t);
        memcpy((double *)c->z + first[j], w->z, (size_t)w->n * sizeof *w->z);
    }
}

/* The term that acf_trainer_validate adds for the held-out cells of a row. */
static double slopes_of(const acf_encoder *e, const double *x, const uint8_t *held, uint64_t seed, uint64_t id) {
    double sum = 0;
    for (int64_t j = 0; j < e->D; j++)
        if (held[j] && e->normal_scores[j].n)
            sum +=
                acf_encode_log_slope(e, j, acf_dequantise(e, j, x[j], seed, id, ACF_NOISE_FIXED)) - e->log_jacobian[j];
    return sum;
}

/* Fills the rows on the host, at c; without held-out cells `held` has memory for one row. */
static void fill_rows(acf_table_on_device *r, const acf_cells_there *c, const acf_table *t, const acf_rows *rows,
                      const acf_encoder *e, const acf_holdout *hold, uint64_t seed, int64_t size) {
    int64_t empty = 0, batch = 0;
    for (int64_t k = 0; k < rows->n; k++) {
        const int64_t row = acf_rows_at(rows, k);
        const double *x = acf_table_row(t, row);
        uint8_t *held = c->held ? (uint8_t *)c->held + k * t->D : NULL;
        const int64_t hidden = held ? acf_holdout_row(hold, t, row, held) : 0;
        int64_t seen = -hidden;
        for (int64_t j = 0; j < t->D; j++) seen += acf_table_present(x[j]);
        memcpy((double *)c->x + k * t->D, x, (size_t)t->D * sizeof *x);
        ((uint64_t *)c->id)[k] = acf_table_row_id(t, row);
        empty += seen == 0;
        if (!hidden) continue;
        if (r->listed % size == 0) batch = 0;
        batch += hidden;
        r->most = acf_max(r->most, batch);
        ((int64_t *)c->list)[r->listed++] = k;
        r->cells += hidden;
        r->slopes += slopes_of(e, x, held, seed, acf_table_row_id(t, row));
    }
    r->every_batch = empty < 1 + (rows->n - 1) % size; /* rows of the last batch, which is the smallest */
}

acf_status acf_table_on_device_create(acf_device *dev, const acf_table *t, const acf_rows *rows, const acf_encoder *e,
                                      const acf_holdout *hold, uint64_t seed, int64_t size, acf_table_on_device **out) {
    const extent all = {rows->n, t->D, knots_of(e), hold ? rows->n : 0, hold != NULL};
    size_t bytes;
    acf_status status = ACF_OK;
    lay_out(&all, NULL, &bytes);
    acf_table_on_device *r = acf_alloc_zero(sizeof *r, "a device table");
    char *host = acf_alloc(bytes, "a device table");
    if (!r || !host) {
        status = ACF_EMEMORY;
        goto done;
    }
    r->dev = dev;
    acf_cells_there c = lay_out(&all, host, &bytes);
    fill_encoder(&c, e);
    fill_rows(r, &c, t, rows, e, hold, seed, size);
    if (!(r->memory = dev->memory.alloc(dev->memory.ctx, bytes))) {
        status = dev->memory.refuse ? dev->memory.refuse(dev->memory.ctx, bytes, 0)
                                    : acf_fail(ACF_EMEMORY, "out of memory: %zu bytes for a device table", bytes);
        goto done;
    }
    r->there = lay_out(&all, r->memory, &bytes);
    ACF_TRY_DONE(acf_device_copy(dev, r->memory, host, bytes, ACF_TO_DEVICE));
    ACF_TRY_DONE(acf_device_sync(dev));
    *out = r;
done:
    acf_release(host);
    if (status) acf_table_on_device_free(r);
    return status;
}

void acf_table_on_device_free(acf_table_on_device *r) {
    if (!r) return;
    if (r->memory) r->dev->memory.free(r->dev->memory.ctx, r->memory);
    acf_release(r);
}

/* ---- batches in one block ---------------------------------------------------------------------------------------- */

static size_t block_bytes(int64_t capacity, int64_t D) {
    return (size_t)capacity * sizeof(uint64_t) + (size_t)(capacity * D) * (sizeof(acf_real) + sizeof(int32_t) + 2);
}

/* A batch in a block of memory; the widest array comes first, so that all are aligned. */
static acf_batch over_block(char *p, int64_t capacity, int64_t D) {
    const size_t cells = (size_t)(capacity * D), id = (size_t)capacity * sizeof(uint64_t), x = cells * sizeof(acf_real),
                 code = cells * sizeof(int32_t);
    acf_batch b = {.capacity = capacity, .N = capacity, .D = D};
    b.id = (uint64_t *)(void *)p;
    b.x = (acf_real *)(void *)(p + id);
    b.code = (int32_t *)(void *)(p + id + x);
    b.m = (uint8_t *)(p + id + x + code);
    b.b = b.m + cells;
    return b;
}

static void *staged_alloc(void *ctx, size_t bytes) {
    acf_device *dev = ctx;
    return dev->plugin ? dev->plugin->pinned_alloc(dev, bytes) : acf_alloc(bytes, "a batch");
}

static acf_status new_block(acf_device *dev, int64_t capacity, int64_t D, void *(*alloc)(void *, size_t), void *ctx,
                            acf_batch **out) {
    if (capacity < 1 || D < 1 || capacity > INT32_MAX / D)
        return acf_fail(ACF_ESHAPE, "a batch of %lld rows and %lld columns; expected 1 to 2^31 cells",
                        (long long)capacity, (long long)D);
    const size_t bytes = block_bytes(capacity, D);
    acf_batch *batch = acf_alloc_zero(sizeof *batch, "a batch");
    char *p = batch ? alloc(ctx, bytes) : NULL;
    if (!p) {
        acf_release(batch);
        return dev->memory.refuse ? dev->memory.refuse(dev->memory.ctx, bytes, 0)
                                  : acf_fail(ACF_EMEMORY, "out of memory: a batch of %lld rows", (long long)capacity);
    }
    *batch = over_block(p, capacity, D);
    *out = batch;
    return ACF_OK;
}

acf_status acf_batch_place(acf_device *dev, int64_t capacity, int64_t D, acf_batch **out) {
    ACF_TRY(new_block(dev, capacity, D, dev->memory.alloc, dev->memory.ctx, out));
    (*out)->there = dev;
    return ACF_OK;
}

acf_status acf_batch_stage(acf_device *dev, int64_t capacity, int64_t D, acf_batch **out) {
    ACF_TRY(new_block(dev, capacity, D, staged_alloc, dev, out));
    (*out)->staged = dev;
    memset((*out)->id, 0, block_bytes(capacity, D));
    memset((*out)->code, 0xff, (size_t)(capacity * D) * sizeof(int32_t)); /* -1, as acf_batch_create */
    return ACF_OK;
}

acf_status acf_batch_send(acf_batch *staged, acf_batch *placed) {
    const int64_t used = staged->N * staged->D, cells = staged->capacity * staged->D;
    ACF_ASSERT(staged->staged && placed->there && staged->capacity == placed->capacity && staged->D == placed->D);
    memset(staged->m + used, 0, (size_t)(cells - used));
    memset(staged->b + used, 0, (size_t)(cells - used));
    return acf_device_copy(placed->there, placed->id, staged->id, block_bytes(staged->capacity, staged->D),
                           ACF_TO_DEVICE);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static acf_status draw_forward(acf_tape *t, acf_node *n) {
    const acf_draw_batch_attrs *a = n->attr;
    const acf_batch_step *k = &a->how.batch_steps[*a->how.turn];
    if (a->how.lr) *a->how.lr = k->lr;
    if (a->how.now) *a->how.now = k->step;
    if (a->from.N == 0) return ACF_OK;
    ACF_PARALLEL(t->dev, a->N * a->from.D)
    for (int64_t i = 0; i < a->N; i++) {
        acf_table_on_device_row(a, i);
        for (int64_t j = 0; j < a->from.D; j++) acf_table_on_device_cell(a, i, j);
    }
    return ACF_OK;
}

const acf_op acf_op_draw_batch = {"draw_batch", ACF_OP_draw_batch, {draw_forward, NULL}};

void acf_batch_step_take(acf_tape *t, const acf_drawing *how) {
    acf_node *n = acf_node_new(t, &acf_op_draw_batch, sizeof(acf_draw_batch_attrs), 0, NULL);
    if (!n) return;
    *(acf_draw_batch_attrs *)n->attr = (acf_draw_batch_attrs){.how = *how};
    acf_node_run(t, n);
}

void acf_table_on_device_draw(acf_tape *t, const acf_table_on_device *r, const acf_drawing *how, acf_batch *batch) {
    if (!r) {
        acf_batch_step_take(t, how);
        return;
    }
    acf_node *n = acf_node_new(t, &acf_op_draw_batch, sizeof(acf_draw_batch_attrs), 0, NULL);
    if (!n) return;
    ACF_ASSERT(batch->there == t->dev && batch->D == r->there.D);
    acf_draw_batch_attrs *a = n->attr;
    *a = (acf_draw_batch_attrs){.from = r->there,
                                .how = *how,
                                .N = batch->capacity,
                                .x = batch->x,
                                .code = batch->code,
                                .m = batch->m,
                                .b = batch->b,
                                .id = batch->id};
    a->source = (int64_t *)(void *)acf_tape_ints(t, 2 * a->N);
    acf_node_run(t, n);
}

static acf_status total_forward(acf_tape *t, acf_node *n) {
    acf_total *total = ((const acf_total_attrs *)n->attr)->total;
    const acf_tensor *x = n->in[0];
    (void)t;
    for (int64_t i = 0; i < acf_tensor_count(x); i++) total->sum += (double)x->data[i];
    total->turn++;
    return ACF_OK;
}

const acf_op acf_op_total = {"total", ACF_OP_total, {total_forward, NULL}};

void acf_total_add(acf_tape *t, acf_tensor *x, acf_total *total) {
    acf_node *n = acf_node_new(t, &acf_op_total, sizeof(acf_total_attrs), 1, &x);
    if (!n) return;
    ((acf_total_attrs *)n->attr)->total = total;
    acf_node_run(t, n);
}
