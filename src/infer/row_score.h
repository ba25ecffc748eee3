/* How probable rows are that a model has not seen: -log p(x_u | x_o) in nats a row, as papers on arbitrary conditionals
 * report it. Each observed cell is given with probability 1/2 and else asked for (masks.h: bernoulli:0.5, where one cell of a row
 * is always asked for), for several masks by seed. Rows without an observed cell do not count. */
#ifndef ACF_INFER_ROW_SCORE_H
#define ACF_INFER_ROW_SCORE_H

#include "infer/session.h"

/* Asks s, a session of m, about the rows of t. Without masks all is NaN. Fails: as acf_session_query_logp. */
acf_status acf_row_score(acf_session *s, const acf_model *m, const acf_table *t, int64_t masks, uint64_t seed,
                         acf_row_scores *out);

#endif
