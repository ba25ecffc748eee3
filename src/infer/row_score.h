/* Likelihood of unseen rows: -log p(x_u | x_o) in nats a row, as papers on arbitrary conditionals report it. Each
 * observed cell is given with probability 1/2 and otherwise a target (masks.h: bernoulli:0.5, with at least one
 * target in a row), for several masks by seed. Rows without an observed cell do not count. */
#ifndef ACF_INFER_ROW_SCORE_H
#define ACF_INFER_ROW_SCORE_H

#include "infer/session.h"

/* Queries s, a session of m, for the rows of t. Without masks all scores are NaN. Fails: as acf_session_query_logp. */
acf_status acf_row_score(acf_session *s, const acf_model *m, const acf_table *t, int64_t masks, uint64_t seed,
                         acf_row_scores *out);

#endif
