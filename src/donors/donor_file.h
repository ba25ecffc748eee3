/* An archive of rows in a model's file: a text of the metadata and tensors (docs/format.md).
 *
 *     "archive"         {"slope", "agree", "columns": [{"values", "differ", "scale", "width", "shift", "near", "other", "apart"}, ...], "ids": "rows" or [...]}
 *     "archive.rows"    (N,D) codes, row after row; -1: missing
 *     "archive.expect"  (P+1,P) mean and precision of the coordinates (donor_predict.h), where there are any,
 *     "archive.expected" (N,D) and then what is expected of every row, row after row; 0 of columns of which nothing is
 *
 * Shares are counted again, and the kinds of columns are the encoder's. */
#ifndef ACF_DONORS_DONOR_FILE_H
#define ACF_DONORS_DONOR_FILE_H

#include "base/safetensors.h"
#include "donors/donors.h"

#define ACF_DONORS_KEY "donors"
#define ACF_DONORS_CODES "donors.rows"
#define ACF_DONORS_PREDICTOR "donors.predictor"
#define ACF_DONORS_PREDICTED "donors.predicted"
#define ACF_DONORS_VALUES                                                                                              \
    2000000 /* different values of all columns, at most: as many as fit into the text, of 26 bytes each */

/* The text, for json_decref. Fails: ACF_EUSAGE (more than ACF_DONORS_VALUES), ACF_EMEMORY. */
acf_status acf_donors_to_json(const acf_donors *m, json_t **out);

/* The codes (N,D) as they lie in the file, for acf_release. NULL: there is no memory. */
acf_real *acf_donors_codes(const acf_donors *m);
/* The same of the mean and the precision, and of what is expected of the rows; m->expect is not NULL. */
acf_real *acf_donors_gaussian(const acf_donors *m);
acf_real *acf_donors_predictions(const acf_donors *m);

/* Reads all of it, of columns as e has them; trusts nothing. path: what sentences about tensors begin with. Gives *out.
 * Fails: from.status with the column and key, ACF_EMODEL with the tensor, ACF_EMEMORY. */
acf_status acf_donors_from_file(acf_json_source from, const json_t *object, const acf_safetensors *f, const char *path,
                                const acf_encoder *e, acf_donors **out);

#endif
