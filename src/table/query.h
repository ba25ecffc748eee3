/* A query: which cells are given and which are the targets. */
#ifndef ACF_TABLE_QUERY_H
#define ACF_TABLE_QUERY_H

#include "acflow.h"
#include "table/table_file.h"

/* Masks (N,D), zero or not; a cell that is both given and target is a target. Only present cells can be given. NULL
 * given: every present cell that is not a target. Cells that are neither are marginalised out. */
typedef struct acf_query {
    const uint8_t *given;
    const uint8_t *target; /* NULL: for logp every present cell (then nothing is given), for draws every missing one */
} acf_query;

/* SCORE: the default targets are the present cells; FILL: the missing cells. */
typedef enum acf_purpose { ACF_TO_SCORE, ACF_TO_FILL } acf_purpose;
bool acf_query_asks(acf_query q, acf_purpose why, int64_t cell, bool present);
bool acf_query_gives(acf_query q, acf_purpose why, int64_t cell, bool present);

/* Rows of a blank table are new: each is a draw of its own. Rows of any other table belong together, and one draw is
 * one completed table. */
static inline bool acf_rows_apart(const acf_table *t) { return t->file && t->file->given; }

#endif
