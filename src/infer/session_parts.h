/* Internals of a session: session.c queries the ensemble members and combines their answers, single_cell.c does so
 * for single cells, and surprisal.c compares cells with their conditionals. */
#ifndef ACF_INFER_SESSION_PARTS_H
#define ACF_INFER_SESSION_PARTS_H

#include "donors/donor_answers.h"
#include "infer/member.h"

struct acf_session {
    acf_device *dev; /* a handle of its own, so that sessions of one model can run in parallel */
    const acf_model *m;
    int K; /* ensemble members */
    acf_member *member[ACF_ENSEMBLE_MAX];
    int64_t rows;    /* of a batch */
    int64_t *row;    /* (rows) table rows of the batch */
    int32_t *column; /* (rows) of acf_session_query_mean: the one target column of each row of the batch */
    double *each;    /* (K, rows·D) answers of each member */
    acf_real *probs; /* (rows, classes) of one member, or (rows) its most probable classes if that is all; */
    double *mixed;   /* (rows, classes) their sum over members: with categories and several members */
    /* (D) largest share of a single level in a category's last class (acf_spec_leading); NULL: classes are levels. */
    double *top_level_share;
    acf_donor_answers *donor_answers; /* NULL: the model has no donors */
    int32_t *order;                   /* (D) order in which target cells are drawn (donor_answers.h); NULL: no donors */
};

/* Makes table rows [from, from+n) the batch. Returns n. */
int64_t acf_session_take(acf_session *s, const acf_table *t, int64_t from);

/* Classes whose probabilities members compute; 0: a single member gives the most probable class itself. */
int64_t acf_session_classes(const acf_session *s);

/* Scores of the batch by the members' networks: out (n). alone >= 0: of this column if it is present, given the
 * others; else as q says. */
acf_status acf_session_score(acf_session *s, const acf_table *t, acf_query q, int64_t alone, int64_t n, double *out);

#endif
