/* An archive of rows in a model's file: a text of the metadata and tensors (docs/format.md).
 *
 *     "archive"         {"slope", "agree", "columns": [{"values", "differ", "scale", "width", "shift", "near", "other", "apart"}, ...], "ids": "rows" or [...]}
 *     "archive.rows"    (N,D) codes, row after row; -1: missing
 *     "archive.expect"  (P+1,P) mean and precision of the coordinates (archive_expect.h), where there are any,
 *     "archive.expected" (N,D) and then what is expected of every row, row after row; 0 of columns of which nothing is
 *
 * Shares are counted again, and the kinds of columns are the encoder's. */
#ifndef ACF_MODEL_ARCHIVE_FILE_H
#define ACF_MODEL_ARCHIVE_FILE_H

#include "model/archive.h"
#include "model/safetensors.h"

#define ACF_ARCHIVE_KEY "archive"
#define ACF_ARCHIVE_CODES "archive.rows"
#define ACF_ARCHIVE_EXPECT "archive.expect"
#define ACF_ARCHIVE_EXPECTED "archive.expected"
#define ACF_ARCHIVE_VALUES 2000000 /* different values of all columns, at most: as many as fit into the text, of 26 bytes each */

/* The text, for json_decref. Fails: ACF_EUSAGE (more than ACF_ARCHIVE_VALUES), ACF_EMEMORY. */
acf_status acf_archive_to_json(const acf_archive *m, json_t **out);

/* The codes (N,D) as they lie in the file, for acf_release. NULL: there is no memory. */
acf_real *acf_archive_codes(const acf_archive *m);
/* The same of the mean and the precision, and of what is expected of the rows; m->expect is not NULL. */
acf_real *acf_archive_gaussian(const acf_archive *m);
acf_real *acf_archive_expectations(const acf_archive *m);

/* Reads all of it, of columns as e has them; trusts nothing. path: what sentences about tensors begin with. Gives *out.
 * Fails: from.status with the column and key, ACF_EMODEL with the tensor, ACF_EMEMORY. */
acf_status acf_archive_from_file(acf_json_source from, const json_t *object, const acf_st *f, const char *path, const acf_encoder *e, acf_archive **out);

#endif
