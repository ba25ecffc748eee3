/* Likelihoods of rows: see row_score.h. */
#include "infer/row_score.h"

#include "infer/metrics.h"
#include "table/masks.h"

#include <math.h>

typedef struct work {
    acf_session *s;
    const acf_model *m;
    const acf_table *t;
    uint64_t *id;            /* (N) */
    uint8_t *given, *target; /* (N,D) */
    double *logp;            /* (N) */
    double *own, *standard;  /* (masks) nats a row: in the table's units; in deviations of the training data */
    int64_t rows;            /* with an observed cell */
} work;

static void *array(int64_t n, size_t size) {
    size_t bytes;
    return acf_bytes(n, size, &bytes) ? acf_alloc_zero(bytes, "likelihoods of rows") : NULL;
}

static acf_status open_work(work *w, int64_t masks) {
    const acf_table *t = w->t;
    w->id = array(t->N, sizeof *w->id), w->logp = array(t->N, sizeof *w->logp);
    w->given = array(t->N * t->D, 1), w->target = array(t->N * t->D, 1);
    w->own = array(masks, sizeof *w->own), w->standard = array(masks, sizeof *w->standard);
    if (!w->id || !w->logp || !w->given || !w->target || !w->own || !w->standard) return ACF_EMEMORY;
    for (int64_t i = 0; i < t->N; i++) w->id[i] = acf_table_row_id(t, i), w->rows += acf_table_row_observed(t, i) > 0;
    return ACF_OK;
}

static void close_work(work *w) {
    void *const arrays[] = {w->id, w->given, w->target, w->logp, w->own, w->standard};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) acf_release(arrays[i]);
}

static acf_status score_mask(work *w, int64_t k, uint64_t seed) {
    static const acf_masks half = {1, {{ACF_MASK_BERNOULLI, 0.5, 1}}};
    const int64_t N = w->t->N, D = w->t->D;
    double sum = 0, units = 0;
    for (int64_t c = 0; c < N * D; c++) w->target[c] = acf_table_present(w->t->x[c]);
    acf_masks_draw(w->m->dev, &half, seed, (uint32_t)k, N, D, w->id, w->given, w->target);
    for (int64_t c = 0; c < N * D; c++) {
        w->target[c] &= !w->given[c];
        if (w->target[c]) units -= w->m->encoder->log_jacobian[c % D];
    }
    ACF_TRY(acf_session_query_logp(w->s, w->t, (acf_query){.given = w->given, .target = w->target}, w->logp));
    for (int64_t i = 0; i < N; i++) sum -= w->logp[i];
    w->own[k] = sum / (double)w->rows, w->standard[k] = (sum - units) / (double)w->rows;
    return ACF_OK;
}

acf_status acf_row_score(acf_session *s, const acf_model *m, const acf_table *t, int64_t masks, uint64_t seed,
                         acf_row_scores *out) {
    work w = {.s = s, .m = m, .t = t};
    acf_status status = open_work(&w, masks);
    for (int64_t k = 0; k < masks && !status; k++) status = score_mask(&w, k, seed);
    if (!status) {
        const acf_mean_deviation own = acf_metric_repeated(w.own, masks), z = acf_metric_repeated(w.standard, masks);
        *out = (acf_row_scores){w.rows, masks, z.mean, z.deviation, own.mean, own.deviation};
    }
    close_work(&w);
    return status;
}
