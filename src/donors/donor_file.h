/* The donors in a model file: a text of the metadata and tensors (docs/format.md).
 *
 *     "donors"            {"nearness", "agree", "given", "columns": [{"values", "differ", "scale", "width", "shift",
 * "near",
 *                         "other", "apart"}, ...], "ids": "rows" or [...]}
 *     "donors.rows"       (N,D) codes, row-major; -1: missing
 *     "donors.predictor"  (P+1,P) mean and precision of the coordinates (donor_predict.h), if there is a predictor
 *     "donors.predicted"  (N,D) then also the predicted values of every row, row-major; 0 of columns without prediction
 *
 * Shares are recomputed, and the kinds of columns are the encoder's. */
#ifndef ACF_DONORS_DONOR_FILE_H
#define ACF_DONORS_DONOR_FILE_H

#include "base/safetensors.h"
#include "donors/donors.h"

#define ACF_DONORS_KEY "donors"
#define ACF_DONORS_CODES "donors.rows"
#define ACF_DONORS_PREDICTOR "donors.predictor"
#define ACF_DONORS_PREDICTED "donors.predicted"
#define ACF_DONORS_VALUES 2000000 /* different values of all columns, at most: what the text holds at 26 bytes each */

/* The text, for json_decref. Fails: ACF_EUSAGE (more than ACF_DONORS_VALUES), ACF_EMEMORY. */
acf_status acf_donors_to_json(const acf_donors *m, json_t **out);

/* The codes (N,D) in the file's order, for acf_release. NULL: out of memory. */
acf_real *acf_donors_codes(const acf_donors *m);
/* The same for mean and precision, and for the rows' predicted values; m->predictor is not NULL. */
acf_real *acf_donors_gaussian(const acf_donors *m);
acf_real *acf_donors_predictions(const acf_donors *m);

/* Reads and checks all of it, for columns as e has them. path: prefix of messages about tensors. Gives *out.
 * Fails: from.status with the column and key, ACF_EMODEL with the tensor, ACF_EMEMORY. */
acf_status acf_donors_from_file(acf_json_source from, const json_t *object, const acf_safetensors *f, const char *path,
                                const acf_encoder *e, acf_donors **out);

#endif
