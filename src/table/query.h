/* What a question asks for, cell by cell. */
#ifndef ACF_TABLE_QUERY_H
#define ACF_TABLE_QUERY_H

#include "acflow.h"
#include "table/table_file.h"

/* Which cells are given and which are asked for, (N,D), zero or not; a cell that is both is asked for. Only present cells can be
 * given. NULL given: every present cell that is not asked for. Cells in neither take no part: that is how marginals are asked. */
typedef struct acf_query {
    const uint8_t *given;
    const uint8_t *target; /* NULL: for logp every present cell (then nothing is given), for draws every missing one */
} acf_query;

/* SCORE: what is present is asked for; FILL: what is missing, where the question does not say. */
typedef enum acf_purpose { ACF_TO_SCORE, ACF_TO_FILL } acf_purpose;
bool acf_query_asks(acf_query q, acf_purpose why, int64_t cell, bool present);
bool acf_query_gives(acf_query q, acf_purpose why, int64_t cell, bool present);

/* Rows of a blank table are new ones, each of them a draw for itself. Rows of any other are one table, of which a draw is one completed version. */
static inline bool acf_rows_apart(const acf_table *t) { return t->file && t->file->given; }

#endif
