/* Batches: see batches.h. Filling is limited by memory bandwidth: 8 bytes per cell are read from a random row, and 6
 * (float) or more are written. */
#include "table/batches.h"

#include "device/cpu.h"
#include "device/plugin.h"

#include <string.h>

/* ---- row order --------------------------------------------------------------------------------------------------- */

static void open_epoch(acf_batch_sampler *sampler, uint32_t epoch) {
    sampler->epoch = epoch;
    sampler->at = 0;
    sampler->order = sampler->shuffle ? acf_permutation_make(sampler->rows.n, sampler->seed, ACF_STREAM_SHUFFLE, epoch)
                                      : acf_permutation_identity(sampler->rows.n);
}

acf_status acf_batch_sampler_start(const acf_rows *rows, int64_t size, uint64_t seed, bool shuffle,
                                   acf_batch_sampler *out) {
    if (size < 1) return acf_fail(ACF_EUSAGE, "batches of %lld rows; expected at least 1", (long long)size);
    *out = (acf_batch_sampler){.rows = *rows, .size = size, .seed = seed, .shuffle = shuffle};
    open_epoch(out, 0);
    return ACF_OK;
}

int64_t acf_batch_sampler_next(acf_batch_sampler *sampler, int64_t *row) {
    int64_t n = acf_min(sampler->size, sampler->rows.n - sampler->at);
    for (int64_t i = 0; row && i < n; i++)
        row[i] = acf_rows_at(&sampler->rows, acf_permutation_at(&sampler->order, sampler->at + i));
    sampler->at += n;
    if (n == 0) open_epoch(sampler, sampler->epoch + 1);
    return n;
}

acf_status acf_batch_sampler_seek(acf_batch_sampler *sampler, uint32_t epoch, int64_t at) {
    if (at < 0 || at > sampler->rows.n)
        return acf_fail(ACF_EUSAGE, "position %lld in an epoch of %lld rows: this belongs to another table",
                        (long long)at, (long long)sampler->rows.n);
    open_epoch(sampler, epoch);
    sampler->at = at;
    return ACF_OK;
}

int64_t acf_batch_sampler_count(const acf_batch_sampler *sampler) {
    return acf_ceil_div(sampler->rows.n, sampler->size);
}

/* ---- contents of a batch ----------------------------------------------------------------------------------------- */

acf_status acf_batch_create(int64_t capacity, int64_t D, acf_batch **out) {
    if (capacity < 1 || D < 1 || capacity > INT64_MAX / D)
        return acf_fail(ACF_ESHAPE, "a batch of %lld rows and %lld columns; expected at least 1 of each",
                        (long long)capacity, (long long)D);
    int64_t cells = capacity * D;
    size_t x, code, id;
    if (!acf_bytes(cells, sizeof(acf_real), &x) || !acf_bytes(cells, sizeof(int32_t), &code) ||
        !acf_bytes(capacity, sizeof(uint64_t), &id))
        return ACF_EMEMORY;
    acf_batch *batch = acf_alloc_zero(sizeof *batch, "a batch");
    if (!batch) return ACF_EMEMORY;
    batch->capacity = capacity;
    batch->D = D;
    if (!(batch->x = acf_alloc_zero(x, "a batch")) || !(batch->code = acf_alloc(code, "a batch")) ||
        !(batch->m = acf_alloc_zero((size_t)cells, "a batch")) ||
        !(batch->b = acf_alloc_zero((size_t)cells, "a batch")) || !(batch->id = acf_alloc_zero(id, "a batch"))) {
        acf_batch_free(batch);
        return ACF_EMEMORY;
    }
    memset(batch->code, 0xff, code); /* -1; filling writes categorical columns only */
    *out = batch;
    return ACF_OK;
}

void acf_batch_free(acf_batch *batch) {
    if (!batch) return;
    if (batch->there) {
        batch->there->memory.free(batch->there->memory.ctx, batch->id);
        acf_release(batch);
        return;
    }
    if (batch->staged) {
        if (batch->staged->plugin)
            batch->staged->plugin->pinned_free(batch->staged, batch->id);
        else
            acf_release(batch->id);
        acf_release(batch);
        return;
    }
    acf_release(batch->x), acf_release(batch->code), acf_release(batch->m), acf_release(batch->b);
    acf_release(batch->id);
    acf_release(batch);
}

/* b (D): the present cells that are given; m (D): the present cells that are given or modelled. On entry b marks the
 * held-out cells. */
static void roles(acf_batch_role role, const double *restrict x, uint8_t *restrict m, uint8_t *restrict b, int64_t D) {
    if (role == ACF_BATCH_TRAIN) {
        ACF_SIMD
        for (int64_t j = 0; j < D; j++) m[j] = (uint8_t)(acf_table_present(x[j]) & !b[j]), b[j] = 0;
    } else {
        ACF_SIMD
        for (int64_t j = 0; j < D; j++) m[j] = acf_table_present(x[j]), b[j] = (uint8_t)(m[j] & !b[j]);
    }
}

/* Fills one row: z and code (D) from x and m (D). z is computed for every cell and then selected. A missing cell
 * computes NaN, which is discarded, so the loop has no branches. */
static void fill_row(acf_real *restrict z, int32_t *restrict code, const double *restrict x, const uint8_t *restrict m,
                     const acf_encoder *e) {
    const double *restrict mean = e->mean, *restrict scale = e->scale;
    const int64_t D = e->D;
    ACF_SIMD
    for (int64_t j = 0; j < D; j++) {
        acf_real v = acf_real_from((x[j] - mean[j]) / scale[j]); /* acf_encode without the normal scores */
        z[j] = m[j] ? v : ACF_R(0.0);
    }
    for (int64_t j = 0; j < D; j++)
        if (e->normal_scores[j].n && m[j]) z[j] = acf_encode(e, j, x[j]);
    for (int64_t k = 0; k < e->n_categorical; k++) {
        int32_t j = e->categorical[k];
        code[j] = m[j] ? (int32_t)x[j] : -1;
    }
}

/* Rows lie at random addresses, so they are prefetched some rows ahead. 512 bytes are enough to start the hardware's
 * own prefetching. */
#define PREFETCH_ROWS 8
static void prefetch(const acf_table *t, int64_t row) {
    const char *x = (const char *)acf_table_row(t, row);
    size_t bytes = (size_t)acf_min(t->D * (int64_t)sizeof(double), 512);
    for (size_t k = 0; k < bytes; k += 64) __builtin_prefetch(x + k);
}

void acf_batch_fill(const acf_device *dev, acf_batch *batch, const acf_table *t, const acf_encoder *e,
                    const acf_holdout *hold, acf_batch_role role, const int64_t *row, int64_t N) {
    ACF_ASSERT(N <= batch->capacity && t->D == batch->D && e->D == batch->D);
    batch->N = N;
    ACF_PARALLEL(dev, N * batch->D)
    for (int64_t i = 0; i < N; i++) {
        const double *x = acf_table_row(t, row[i]);
        int64_t at = i * batch->D;
        uint8_t *m = batch->m + at, *b = batch->b + at;
        if (i + PREFETCH_ROWS < N) prefetch(t, row[i + PREFETCH_ROWS]);
        batch->id[i] = acf_table_row_id(t, row[i]);
        acf_holdout_row(hold, t, row[i], b);
        roles(role, x, m, b, batch->D);
        fill_row(batch->x + at, batch->code + at, x, m, e);
    }
}

void acf_batch_dequantise(const acf_device *dev, acf_batch *batch, const acf_table *t, const acf_encoder *e,
                          const int64_t *row, uint64_t seed, uint32_t draw) {
    int64_t D = batch->D;
    ACF_PARALLEL(dev, batch->N * D * 16)
    for (int64_t i = 0; i < batch->N; i++) {
        const double *x = acf_table_row(t, row[i]);
        for (int64_t j = 0; j < D; j++) {
            if (e->resolution[j].every == 0 || !batch->m[i * D + j] || batch->b[i * D + j] || !acf_table_present(x[j]))
                continue;
            batch->x[i * D + j] = acf_encode(e, j, acf_dequantise(e, j, x[j], seed, batch->id[i], draw));
        }
    }
}
