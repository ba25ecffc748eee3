/* Vectors for codes: embeddings of categories, and the column embedding. */
#ifndef ACF_OPS_EMBEDDING_H
#define ACF_OPS_EMBEDDING_H

#include "ops/gather.h"

/* y (n,E) = row code[p] of table (V,E); code -1 (missing) gives zeros. codes (n) are in device memory and live on
 * the tape. With sub the n = T codes belong to its packed elements, and y is packed too; NULL: plain rows. Fails:
 * ACF_EDATA (a code outside -1..V-1; the message has the code and its row, and with sub its column). */
acf_tensor *acf_embedding(acf_tape *t, acf_tensor *table, const int32_t *code, int64_t n, const acf_subset *sub);

/* y (T,E) = row of table (D,E) for the column of each modelled element. */
acf_tensor *acf_embedding_columns(acf_tape *t, acf_tensor *table, const acf_subset *u);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

typedef struct acf_embedding_attrs {
    const int32_t *code; /* (n) */
    int64_t n;
} acf_embedding_attrs;

#endif
