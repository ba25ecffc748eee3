/* The inside of a session, for the files that make one: session.c asks members and puts their answers together,
 * single_cell.c does so for single cells, and surprisal.c compares cells with what was expected of them. */
#ifndef ACF_INFER_SESSION_PARTS_H
#define ACF_INFER_SESSION_PARTS_H

#include "donors/donor_answers.h"
#include "infer/member.h"

struct acf_session {
    acf_device *dev; /* a handle of its own: sessions of one model may be asked at once */
    const acf_model *m;
    int K; /* members */
    acf_member *member[ACF_ENSEMBLE_MAX];
    int64_t rows;    /* of a batch */
    int64_t *row;    /* (rows) table rows of the batch */
    int32_t *column; /* (rows) of acf_session_query_mean: the one column that a row of the batch asks for */
    double *each;    /* (K, rows·D) what each member says */
    acf_real *probs; /* (rows, classes) of one member, or (rows) its most probable classes where that is all; */
    double *mixed;   /* (rows, classes) their sum over members: where there are categories and several members */
    double *
        top_level_share; /* (D) the part of a category's last class that a single level may have (acf_spec_leading); NULL: all are single levels */
    acf_donor_answers *donor_answers; /* where the model has an archive; NULL: it has none */
    int32_t *order;                   /* (D) in which its cells are asked one by one (donor_answers.h); NULL likewise */
};

/* Table rows [from, from+n) are the batch. Returns n. */
int64_t acf_session_take(acf_session *s, const acf_table *t, int64_t from);

/* Classes whose probabilities members are asked for; 0: a single member names the most probable itself. */
int64_t acf_session_classes(const acf_session *s);

/* Scores of the batch, from what the members say: out (n). alone >= 0: of this column where it is present, given the others; else as q says. */
acf_status acf_session_score(acf_session *s, const acf_table *t, acf_query q, int64_t alone, int64_t n, double *out);

#endif
