/* One row and one cell of a batch drawn from a device table: shared by CPU and GPU. See table_on_device.h. */
#ifndef ACF_TABLE_TABLE_ON_DEVICE_ROW_H
#define ACF_TABLE_TABLE_ON_DEVICE_ROW_H

#include "table/masks_row.h"

#ifdef __CUDACC__
extern "C" {
#include "table/table_on_device.h"
}
#else
#include "table/table_on_device.h"
#endif

/* Row i of the batch: its table row, id and masks; -1 and no cells after the last row of the step. */
ACF_MASKS_HERE void acf_table_on_device_row(const acf_draw_batch_attrs *a, int64_t i) {
    const acf_batch_step *k = &a->how.batch_steps[*a->how.turn];
    const int64_t D = a->from.D;
    uint8_t *m = a->m + i * D, *b = a->b + i * D;
    if (i >= k->n) {
        a->source[i] = -1, a->id[i] = 0;
        for (int64_t j = 0; j < D; j++) m[j] = b[j] = 0;
        return;
    }
    const bool valid = a->how.role == ACF_BATCH_VALID;
    const int64_t r = valid ? a->from.list[k->at + i] : acf_permutation_at(&k->order, k->at + i);
    const double *x = a->from.x + r * D;
    const uint8_t *held = a->from.held ? a->from.held + r * D : NULL;
    a->source[i] = r, a->id[i] = a->from.id[r];
    for (int64_t j = 0; j < D; j++) {
        const bool present = x[j] == x[j], hidden = held && held[j];
        m[j] = present && (valid || !hidden);
        b[j] = valid && present && !hidden;
    }
    if (valid) return;
    const acf_rng_counter at = {a->how.seed, a->id[i], ACF_STREAM_MASK, 0, k->step};
    acf_masks_row(&a->how.masks, at, D, b, m);
}

/* The network input for a value of column j: acf_encode of encode.h. */
ACF_MASKS_HERE acf_real acf_table_on_device_encode(const acf_cells_there *c, int64_t j, double x) {
    const double t = (x - c->mean[j]) / c->scale[j];
    const int32_t first = c->first[j], n = c->first[j + 1] - first;
    return acf_real_from(n ? acf_knots_at(c->t + first, c->z + first, n, t) : t);
}

/* Cell j of row i, once the row's masks are drawn. */
ACF_MASKS_HERE void acf_table_on_device_cell(const acf_draw_batch_attrs *a, int64_t i, int64_t j) {
    const acf_cells_there *c = &a->from;
    const int64_t to = i * c->D + j;
    a->x[to] = 0, a->code[to] = -1;
    if (!a->m[to]) return;
    double x = c->x[a->source[i] * c->D + j];
    if (c->classes[j]) a->code[to] = (int32_t)x;
    if (c->step[j] > 0 && !a->b[to]) {
        const uint32_t draw = a->how.role == ACF_BATCH_VALID ? ACF_NOISE_FIXED : a->how.batch_steps[*a->how.turn].step;
        const acf_rng_counter at = {a->how.seed, a->id[i], ACF_STREAM_NOISE, (uint32_t)j, draw};
        uint32_t w[4];
        acf_mask_bits(at, w);
        x += c->step[j] * (acf_mask_unit(w[0], w[1]) - 0.5);
    }
    a->x[to] = acf_table_on_device_encode(c, j, x);
}

#endif
