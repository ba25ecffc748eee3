/* The encoder maps cells from the user's units to what the networks see, and back.
 *
 *     real column           t = (x - mean) / scale     z = W(t)     log p(x) = log p(z) + log W'(t) - log scale
 *     categorical column    z = code, exactly                       code = z, rounded into 0..C-1
 *
 * W is the identity or the normal scores of the column (normal_scores.h). A column whose values were rounded to a
 * step h (resolution.h) is dequantised: the model describes y = x + h (u - 1/2), u uniform on (0, 1), never x
 * itself. A modelled cell, in training and scoring, is replaced by y; a given cell is x itself. So
 *
 *     log p of such a cell   is the log-density of its y, for a u that depends on (seed, row, column, draw) alone; its
 *                            mean over u is at most log(P(x) / h), P(x) the model's probability of that value,
 *                            and near it
 *     a drawn y              is rounded to the nearest multiple of h
 *
 * Decoded values stay within the bounds of the column, if it has any (bounds.h). In a column of few values a decoded
 * value is one of them, or lies beyond all of them (support.h).
 *
 * The encoder is fitted on training cells only (split.h). The model file stores it, so later queries use the same
 * scaling bit for bit. */
#ifndef ACF_TABLE_ENCODE_H
#define ACF_TABLE_ENCODE_H

#include "base/json.h"
#include "table/normal_scores.h"
#include "table/resolution.h"
#include "table/split.h"
#include "table/support.h"
#include "table/table.h"

/* Constant after fitting: threads may share it. All arrays are owned. */
typedef struct acf_encoder {
    int64_t D;
    int64_t n_categorical;
    acf_column *column;               /* (D) names, and the number of classes or 0 */
    double *mean, *scale;             /* (D) of the observed cells; categorical: 0 and 1 */
    double *log_jacobian;             /* (D) log |dt/dx| = -log scale: added to a log-density of t, it gives one of x */
    acf_resolution *resolution;       /* (D) of the column; none: values are not dequantised */
    acf_support *support;             /* (D) support; none: any value */
    acf_normal_scores *normal_scores; /* (D) of t; the identity if there are none */
    double *least, *most;             /* (D) bounds of a decoded real; -INFINITY and INFINITY: none */
    int64_t *observed;                /* (D) cells used for fitting */
    int64_t *first;                   /* (D) index in count where the counts of a column begin */
    int64_t *count;                   /* cells of each class, column after column, in the order of codes */
    int32_t *categorical;             /* (n_categorical) the categorical columns */
} acf_encoder;

/* Fits to these rows of t (NULL: all) without the cells that hold holds out (NULL: none). Scale is the standard
 * deviation (divided by n, as for z-scores), in double. A constant column and a column of one observed cell have
 * scale 1, an empty column has mean 0 and scale 1. Any finite values work: squares do not overflow. Borrows all
 * three. Gives *out; free with acf_encoder_free. Fails: ACF_EMEMORY. */
acf_status acf_encoder_fit(const acf_table *t, const acf_rows *rows, const acf_holdout *hold, acf_encoder **out);
void acf_encoder_free(acf_encoder *e); /* NULL is allowed */

/* Creates an encoder for these columns as if nothing had been observed; sets a column's scale and its log_jacobian. */
acf_status acf_encoder_create(const acf_column *column, int64_t D, acf_encoder **out);
void acf_encoder_set_scale(acf_encoder *e, int64_t j, double scale);

static inline const char *acf_encoder_kind(const acf_column *c) { return c->classes > 0 ? "categorical" : "real"; }

/* What acf_encoder_shape finds besides the range; dequantise: resolution and support. */
typedef struct acf_encoding {
    bool normal_scores, dequantise;
} acf_encoding;

/* Finds range, resolution, support and normal scores of the real columns of a fitted encoder, from the same cells.
 * The range uses all of them and is widened by its n-th part if there is no step (a new value is then outside with
 * probability 2/(n+1)). The others use at most ACF_ENCODE_CELLS cells of a column, evenly spaced. Fails:
 * ACF_EMEMORY; then e may only be passed to acf_encoder_free. */
#define ACF_ENCODE_CELLS 131072
acf_status acf_encoder_shape(acf_encoder *e, const acf_table *t, const acf_rows *rows, const acf_holdout *hold,
                             const acf_encoding *how);

/* Checks that this table has the encoder's columns: the same number, the same kinds, no more classes, and the same
 * names where both have one. Fails: ACF_ESHAPE, ACF_EDATA (a name). */
acf_status acf_encoder_check(const acf_encoder *e, const acf_table *t);

/* Encodes a value of column j; beyond the range of acf_real, its largest finite number. */
static inline acf_real acf_encode(const acf_encoder *e, int64_t j, double x) {
    return acf_real_from(acf_normal_scores_forward(&e->normal_scores[j], (x - e->mean[j]) / e->scale[j]));
}

/* log |dz/dx| at x: added to a log-density of z, it gives one of x. 0 for a categorical column. */
static inline double acf_encode_log_slope(const acf_encoder *e, int64_t j, double x) {
    return acf_normal_scores_log_slope(&e->normal_scores[j], (x - e->mean[j]) / e->scale[j]) + e->log_jacobian[j];
}

/* y for a value x of column j; x itself in a column without a step. Training passes the number of the step as draw.
 * Evaluation passes ACF_NOISE_FIXED, which gives the same y every time. */
#define ACF_NOISE_FIXED UINT32_MAX
double acf_dequantise(const acf_encoder *e, int64_t j, double x, uint64_t seed, uint64_t row_id, uint32_t draw);

/* The value of column j for z: within the column's bounds and at a multiple of its step, or one of its values. For a
 * categorical column it is always a valid code. NaN stays NaN in a real column and is code 0 in a categorical one. */
double acf_decode(const acf_encoder *e, int64_t j, acf_real z);

/* The value nearest to x that acf_decode could return. */
double acf_encoder_round(const acf_encoder *e, int64_t j, double x);

/* The encoder as JSON: {"columns": [{"name", "kind": "real", "mean", "scale", "observed", "least", "most", "step":
 * {"every", "decimals"}, "values": [...], "normal_scores": {"t": [...], "z": [...]}} or {"name", "kind":
 * "categorical", "counts"}, ...]}. Name, range, step, values and normal_scores are left out if there are none.
 * Reading gives equal bits. to_json gives *out (json_decref). Fails: ACF_EMEMORY. from_json validates everything;
 * gives *out. Fails: from.status with the column and key, ACF_EMEMORY. */
acf_status acf_encoder_to_json(const acf_encoder *e, json_t **out);
acf_status acf_encoder_from_json(acf_json_source from, const json_t *object, acf_encoder **out);

#endif
