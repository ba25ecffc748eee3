/* Rows for the Gaussian mixture: see gmm_sample.h. */
#define _GNU_SOURCE /* qsort_r */
#include "train/gmm_sample.h"

#include <stdlib.h>
#include <string.h>

bool acf_sample_held(const acf_sample *s) {
    for (int64_t i = 0; i < s->R * s->D; i++)
        if (s->seen[i] == ACF_GMM_CELL_HELD) return true;
    return false;
}

void acf_sample_hide(acf_sample *s, int64_t from) {
    s->hidden = s->D - from;
    for (int64_t r = 0; r < s->R; r++) memset(s->seen + r * s->D + from, ACF_GMM_CELL_MISSING, (size_t)(s->D - from));
}

static int compare_patterns(const void *a, const void *b, void *ctx) {
    const acf_sample *s = ctx;
    const int64_t i = *(const int64_t *)a, j = *(const int64_t *)b;
    const int order = memcmp(s->seen + i * s->D, s->seen + j * s->D, (size_t)s->D);
    return order ? order : (i > j) - (i < j);
}

/* Makes rows of one pattern adjacent: they share their factors. */
static acf_status sort_patterns(acf_sample *s) {
    const size_t cells = (size_t)(s->R * s->D);
    int64_t *order = acf_alloc((size_t)s->R * sizeof *order, "a row order");
    double *x = acf_alloc(cells * sizeof *x, "the Gaussian mixture's sample");
    uint8_t *seen = acf_alloc(cells, "the Gaussian mixture's sample");
    uint64_t *id = acf_alloc((size_t)s->R * sizeof *id, "the Gaussian mixture's sample");
    const bool ok = order && x && seen && id;
    for (int64_t r = 0; ok && r < s->R; r++) order[r] = r;
    if (ok) qsort_r(order, (size_t)s->R, sizeof *order, compare_patterns, s);
    for (int64_t r = 0; ok && r < s->R; r++) {
        memcpy(x + r * s->D, s->x + order[r] * s->D, (size_t)s->D * sizeof *x);
        memcpy(seen + r * s->D, s->seen + order[r] * s->D, (size_t)s->D);
        id[r] = s->id[order[r]];
    }
    if (ok)
        memcpy(s->x, x, cells * sizeof *x), memcpy(s->seen, seen, cells), memcpy(s->id, id, (size_t)s->R * sizeof *id);
    acf_release(order);
    acf_release(x);
    acf_release(seen);
    acf_release(id);
    return ok ? ACF_OK : ACF_EMEMORY;
}

static acf_status fill(const acf_net *net, const acf_device *dev, const acf_table *t, const acf_rows *rows,
                       const acf_encoder *e, const acf_holdout *hold, uint64_t seed, acf_sample *s) {
    acf_batch *batch;
    int64_t n_real;
    const int32_t *column = acf_net_reals(net, &n_real), *of, *value;
    const int64_t indicators = acf_net_indicators(net, &of, &value);
    ACF_TRY(acf_batch_create(1, t->D, &batch));
    for (int64_t r = 0; r < s->R; r++) {
        const int64_t row = acf_rows_at(rows, r * rows->n / s->R);
        s->id[r] = acf_table_row_id(t, row);
        for (int role = 0; role < 2; role++) { /* first all cells, then those that training sees */
            acf_batch_fill(dev, batch, t, e, role ? hold : NULL, ACF_BATCH_TRAIN, &row, 1);
            /* As training sees modelled cells: a spike has its width. */
            acf_batch_dequantise(dev, batch, t, e, &row, seed, 0);
            for (int64_t k = 0; k < n_real; k++) {
                if (role == 0) s->x[r * s->D + k] = (double)batch->x[column[k]];
                s->seen[r * s->D + k] = batch->m[column[k]]             ? ACF_GMM_CELL_SEEN
                                        : role && s->seen[r * s->D + k] ? ACF_GMM_CELL_HELD
                                                                        : ACF_GMM_CELL_MISSING;
            }
            /* A held-out class is not scored here: for the reals it is known or missing. */
            for (int64_t k = 0; k < indicators; k++) {
                s->x[r * s->D + n_real + k] = batch->code[of[k]] == value[k];
                s->seen[r * s->D + n_real + k] = batch->m[of[k]] ? ACF_GMM_CELL_SEEN : ACF_GMM_CELL_MISSING;
            }
        }
    }
    acf_batch_free(batch);
    return sort_patterns(s);
}

acf_status acf_sample_take(const acf_net *net, const acf_device *dev, const acf_table *t, const acf_rows *rows,
                           const acf_encoder *e, const acf_holdout *hold, uint64_t seed, acf_sample *s) {
    s->x = acf_alloc((size_t)(s->R * s->D) * sizeof *s->x, "the Gaussian mixture's sample");
    s->seen = acf_alloc((size_t)(s->R * s->D), "the Gaussian mixture's sample");
    s->id = acf_alloc((size_t)s->R * sizeof *s->id, "the Gaussian mixture's sample");
    return s->x && s->seen && s->id ? fill(net, dev, t, rows, e, hold, seed, s) : ACF_EMEMORY;
}

void acf_sample_free(acf_sample *s) {
    acf_release(s->x);
    acf_release(s->seen);
    acf_release(s->id);
}
