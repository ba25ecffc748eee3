/* The encoder: between the user's units and what the networks see.
 *
 *     real column           z = (x - mean) / scale      x = mean + scale z      log p(x) = log p(z) - log scale
 *     categorical column    z = code, exactly           code = z, rounded into 0..C-1
 *
 * It is fitted on what training may see and nothing else (split.h), and the model file stores it, so that a query years
 * later is scaled by the same numbers, to the last bit. */
#ifndef ACF_DATA_ENCODE_H
#define ACF_DATA_ENCODE_H

#include "base/json.h"
#include "data/split.h"
#include "data/table.h"

/* Nothing changes after fitting: threads may share it. All arrays are owned. */
typedef struct acf_encoder {
    int64_t D;
    int64_t n_categorical;
    acf_column *column;   /* (D) names, and the number of classes or 0 */
    double *mean, *scale; /* (D) of the observed cells; categorical: 0 and 1 */
    double *log_jacobian; /* (D) log |dz/dx| = -log scale: add it to a log-density of z for one of x */
    int64_t *observed;    /* (D) cells it was fitted on */
    int64_t *first;       /* (D) where a column's counts begin in count */
    int64_t *count;       /* cells of each class, column after column, in the order of codes */
    int32_t *categorical; /* (n_categorical) the categorical columns */
} acf_encoder;

/* Fits to these rows of t (NULL: all) without the cells that hold holds out (NULL: none). Scale is the standard
 * deviation (divided by n, as z-scores are), in double; a constant column and a column of one observed cell have scale
 * 1, an empty column mean 0 and scale 1. Any finite values work: squares do not overflow.
 * Borrows all three. Gives *out; free with acf_encoder_free. Fails: ACF_EMEMORY. */
acf_status acf_encoder_fit(const acf_table *t, const acf_rows *rows, const acf_holdout *hold, acf_encoder **out);
void acf_encoder_free(acf_encoder *e); /* NULL is allowed */

/* Has this table the columns the encoder knows: as many, of the same kind, with no more classes; and the same names
 * where both have one? Fails: ACF_ESHAPE, ACF_EDATA (a name). */
acf_status acf_encoder_check(const acf_encoder *e, const acf_table *t);

/* A value of column j, encoded; beyond the range of acf_real, its largest finite number. */
static inline acf_real acf_encode(const acf_encoder *e, int64_t j, double x) {
    return acf_real_from((x - e->mean[j]) / e->scale[j]);
}

/* The value of column j that z stands for; of a categorical column always a valid code. NaN stays NaN in a real column
 * and is code 0 in a categorical one. */
double acf_decode(const acf_encoder *e, int64_t j, acf_real z);

/* As JSON, {"columns": [{"name", "kind": "real", "mean", "scale", "observed"} or {"name", "kind": "categorical",
 * "counts"}, ...]}, the name left out where there is none. What is read back is equal bit for bit.
 * to_json gives *out (json_decref). Fails: ACF_EMEMORY. from_json trusts nothing; gives *out.
 * Fails: from.status with the column and key, ACF_EMEMORY. */
acf_status acf_encoder_to_json(const acf_encoder *e, json_t **out);
acf_status acf_encoder_from_json(acf_json_source from, const json_t *object, acf_encoder **out);

#endif
