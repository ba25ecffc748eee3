/* The encoder: between the user's units and what the networks see.
 *
 *     real column           t = (x - mean) / scale     z = W(t)     log p(x) = log p(z) + log W'(t) - log scale
 *     categorical column    z = code, exactly                       code = z, rounded into 0..C-1
 *
 * W is the identity, or bends the column towards a normal distribution (normal_scores.h). A column whose values were rounded to a step h
 * (resolution.h) is dequantised: the model describes y = x + h (u - 1/2), u uniform on (0, 1), never x itself. Where a cell is
 * modelled, in training and scoring, y takes its place; where it is given, x itself is seen. So
 *
 *     log p of such a cell   is the log-density of its y, for a u that depends on (seed, row, column, draw) alone: its mean over u
 *                            is at most log(P(x) / h), P(x) the model's probability of that value, and near it
 *     a drawn y              is rounded to the nearest multiple of h
 *
 * and whatever is decoded stays within the column's bounds, where it has any (bounds.h). In a column of few values it is one of them, or lies
 * beyond them all (support.h).
 *
 * It is fitted on what training may see and nothing else (split.h), and the model file stores it, so that a query years
 * later is scaled by the same numbers, to the last bit. */
#ifndef ACF_TABLE_ENCODE_H
#define ACF_TABLE_ENCODE_H

#include "base/json.h"
#include "table/normal_scores.h"
#include "table/resolution.h"
#include "table/split.h"
#include "table/support.h"
#include "table/table.h"

/* Nothing changes after fitting: threads may share it. All arrays are owned. */
typedef struct acf_encoder {
    int64_t D;
    int64_t n_categorical;
    acf_column *column;               /* (D) names, and the number of classes or 0 */
    double *mean, *scale;             /* (D) of the observed cells; categorical: 0 and 1 */
    double *log_jacobian;             /* (D) log |dt/dx| = -log scale: add it to a log-density of t for one of x */
    acf_resolution *resolution;       /* (D) none: values are taken as they are */
    acf_support *support;             /* (D) none: any value */
    acf_normal_scores *normal_scores; /* (D) of t; the identity where there is none */
    double *least, *most;             /* (D) what a decoded real stays within; -INFINITY and INFINITY: anything */
    int64_t *observed;                /* (D) cells it was fitted on */
    int64_t *first;                   /* (D) where a column's counts begin in count */
    int64_t *count;                   /* cells of each class, column after column, in the order of codes */
    int32_t *categorical;             /* (n_categorical) the categorical columns */
} acf_encoder;

/* Fits to these rows of t (NULL: all) without the cells that hold holds out (NULL: none). Scale is the standard
 * deviation (divided by n, as z-scores are), in double; a constant column and a column of one observed cell have scale
 * 1, an empty column mean 0 and scale 1. Any finite values work: squares do not overflow.
 * Borrows all three. Gives *out; free with acf_encoder_free. Fails: ACF_EMEMORY. */
acf_status acf_encoder_fit(const acf_table *t, const acf_rows *rows, const acf_holdout *hold, acf_encoder **out);
void acf_encoder_free(acf_encoder *e); /* NULL is allowed */

/* For these columns, as if nothing had been observed; and a column's scale with its log_jacobian. */
acf_status acf_encoder_create(const acf_column *column, int64_t D, acf_encoder **out);
void acf_encoder_set_scale(acf_encoder *e, int64_t j, double scale);

static inline const char *acf_encoder_kind(const acf_column *c) { return c->classes > 0 ? "categorical" : "real"; }

/* What acf_encoder_shape is to find besides the range; dequantise: resolution and repertoire. */
typedef struct acf_encoding {
    bool normal_scores, dequantise;
} acf_encoding;

/* Finds range, resolution, repertoire and warp of the real columns of a fitted encoder, from the same cells. The range is that of all of them,
 * widened by its n-th part where there is no step (a fresh value falls outside with probability 2/(n+1)); the others look
 * at ACF_ENCODE_CELLS cells of a column at most, evenly spaced. Fails: ACF_EMEMORY; then e is good for nothing but acf_encoder_free. */
#define ACF_ENCODE_CELLS 131072
acf_status acf_encoder_shape(acf_encoder *e, const acf_table *t, const acf_rows *rows, const acf_holdout *hold,
                             const acf_encoding *how);

/* Has this table the columns the encoder knows: as many, of the same kind, with no more classes; and the same names
 * where both have one? Fails: ACF_ESHAPE, ACF_EDATA (a name). */
acf_status acf_encoder_check(const acf_encoder *e, const acf_table *t);

/* A value of column j, encoded; beyond the range of acf_real, its largest finite number. */
static inline acf_real acf_encode(const acf_encoder *e, int64_t j, double x) {
    return acf_real_from(acf_normal_scores_forward(&e->normal_scores[j], (x - e->mean[j]) / e->scale[j]));
}

/* log |dz/dx| there: add it to a log-density of z for one of x. 0 of a categorical column. */
static inline double acf_encode_log_slope(const acf_encoder *e, int64_t j, double x) {
    return acf_normal_scores_log_slope(&e->normal_scores[j], (x - e->mean[j]) / e->scale[j]) + e->log_jacobian[j];
}

/* y of a value x of column j; x itself in a column without a step. Training takes a step's number as draw, whoever evaluates
 * ACF_NOISE_FIXED: the same y every time. */
#define ACF_NOISE_FIXED UINT32_MAX
double acf_dequantise(const acf_encoder *e, int64_t j, double x, uint64_t seed, uint64_t row_id, uint32_t draw);

/* The value of column j that z stands for: within the column's range and at a multiple of its step, or one of its values; of a categorical column
 * always a valid code. NaN stays NaN in a real column and is code 0 in a categorical one. */
double acf_decode(const acf_encoder *e, int64_t j, acf_real z);

/* x at the nearest value that acf_decode could give. */
double acf_encoder_round(const acf_encoder *e, int64_t j, double x);

/* As JSON, {"columns": [{"name", "kind": "real", "mean", "scale", "observed", "least", "most", "step": {"every", "decimals"},
 * "values": [...], "warp": {"t": [...], "z": [...]}} or {"name", "kind": "categorical", "counts"}, ...]}; name, range, step, values and
 * warp are left out where there is none. What is read back is equal bit for bit.
 * to_json gives *out (json_decref). Fails: ACF_EMEMORY. from_json trusts nothing; gives *out.
 * Fails: from.status with the column and key, ACF_EMEMORY. */
acf_status acf_encoder_to_json(const acf_encoder *e, json_t **out);
acf_status acf_encoder_from_json(acf_json_source from, const json_t *object, acf_encoder **out);

#endif
