/* Answers with an archive: see looked_up.h.
 *
 * Workload: a look-up for each cell that is asked, some 70 µs in 5,000 rows of 12 columns: four fifths of a draw of such a table. */
#include "infer/looked_up.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

/* ---- cells in turn -------------------------------------------------------------------------------------------------------------- */

#define NOT_BEGUN (-2)

acf_status acf_in_turn_begin(acf_in_turn *turn, const acf_table *t, acf_question q, acf_purpose why) {
    const size_t cells = (size_t)(t->N * t->D) + 1;
    *turn = (acf_in_turn){.t = t, .all = q, .why = why};
    turn->column = acf_alloc(((size_t)t->N + 1) * sizeof *turn->column, "a question");
    turn->given = turn->column ? acf_alloc(cells, "a question") : NULL;
    turn->asked = turn->given ? acf_alloc_zero(cells, "a question") : NULL;
    if (!turn->asked) {
        acf_in_turn_end(turn);
        return ACF_EMEMORY;
    }
    for (int64_t i = 0; i < t->N; i++) turn->column[i] = NOT_BEGUN;
    for (int64_t c = 0; c < t->N * t->D; c++) {
        const bool present = acf_tab_present(t->x[c]);
        turn->given[c] = acf_question_gives(q, why, c, present);
    }
    turn->q = (acf_question){turn->given, turn->asked};
    return ACF_OK;
}

bool acf_in_turn_next(acf_in_turn *turn) {
    const int64_t D = turn->t->D;
    bool some = false;
    for (int64_t i = 0; i < turn->t->N; i++) {
        int64_t j = turn->column[i];
        if (j == -1) continue;
        if (j == NOT_BEGUN) j = -1;
        else turn->given[i * D + j] = 1, turn->asked[i * D + j] = 0;
        do j++;
        while (j < D && !acf_question_asks(turn->all, turn->why, i * D + j, acf_tab_present(turn->t->x[i * D + j])));
        turn->column[i] = j < D ? (int32_t)j : -1;
        if (j < D) turn->asked[i * D + j] = 1, some = true;
    }
    return some;
}

void acf_in_turn_end(acf_in_turn *turn) {
    acf_release(turn->column), acf_release(turn->given), acf_release(turn->asked);
    *turn = (acf_in_turn){0};
}

/* ---- answers -------------------------------------------------------------------------------------------------------------------- */

struct acf_looked_up {
    const acf_model *m;
    acf_recall *r;
    uint8_t *known; /* (D) */
};

acf_status acf_looked_up_create(const acf_model *m, acf_looked_up **out) {
    acf_looked_up *l = acf_alloc_zero(sizeof *l, "a look-up of rows");
    if (!l) return ACF_EMEMORY;
    l->m = m;
    l->known = acf_alloc((size_t)m->archive->D, "a look-up of rows");
    if (!l->known || acf_recall_create(m->archive, &l->r)) {
        acf_looked_up_free(l);
        return ACF_EMEMORY;
    }
    *out = l;
    return ACF_OK;
}

void acf_looked_up_free(acf_looked_up *l) {
    if (!l) return;
    acf_recall_free(l->r);
    acf_release(l->known);
    acf_release(l);
}

/* How far the rows are believed that agree with row i of t at l->known, about column j. */
static double trust(acf_looked_up *l, const acf_table *t, int64_t i, int64_t j) {
    acf_recall_row(l->r, acf_tab_row(t, i), l->known, acf_tab_id(t, i));
    return acf_recall_trust(l->m->archive, j, acf_recall_column(l->r, j));
}

static double logp_of_both(const acf_looked_up *l, const acf_table *t, int64_t i, int64_t j, double h, double logp) {
    if (h == 0) return logp;
    const double q = log(h * acf_recall_density(l->r, j, acf_tab_row(t, i)[j])), p = log1p(-h) + logp, most = fmax(p, q);
    return isfinite(most) ? most + log(exp(p - most) + exp(q - most)) : most;
}

double acf_looked_up_logp(acf_looked_up *l, const acf_table *t, const acf_in_turn *turn, int64_t i, double logp) {
    const int64_t j = turn->column[i];
    memcpy(l->known, turn->given + i * t->D, (size_t)t->D);
    return logp_of_both(l, t, i, j, trust(l, t, i, j), logp);
}

double acf_looked_up_cell(acf_looked_up *l, const acf_table *t, int64_t i, int64_t j, double logp) {
    for (int64_t k = 0; k < t->D; k++) l->known[k] = k != j && acf_tab_present(acf_tab_row(t, i)[k]);
    return logp_of_both(l, t, i, j, trust(l, t, i, j), logp);
}

void acf_looked_up_draw(acf_looked_up *l, const acf_table *t, const acf_in_turn *turn, int64_t i, uint64_t seed, uint32_t draw, double *x) {
    const int64_t j = turn->column[i];
    memcpy(l->known, turn->given + i * t->D, (size_t)t->D);
    const double h = trust(l, t, i, j);
    uint32_t bits[4];
    double u[4];
    acf_rng_bits((acf_place){.seed = seed, .row = acf_tab_id(t, i), .stream = ACF_STREAM_RECALL, .column = (uint32_t)j, .draw = draw}, bits);
    for (int k = 0; k < 4; k++) u[k] = ((double)bits[k] + 0.5) / 4294967296.0;
    if (u[0] < h) *x = acf_encoder_round(l->m->encoder, j, acf_recall_draw(l->r, j, u + 1));
}

void acf_looked_up_mean(acf_looked_up *l, const acf_table *t, acf_question q, int64_t i, int64_t j, int members, double *mean, double *probs) {
    const int32_t classes = l->m->encoder->column[j].classes;
    for (int64_t k = 0; k < t->D; k++) {
        const int64_t cell = i * t->D + k;
        const bool present = acf_tab_present(t->x[cell]);
        l->known[k] = acf_question_gives(q, ACF_TO_FILL, cell, present);
    }
    const double h = trust(l, t, i, j);
    if (h == 0) return;
    if (classes == 0) *mean = (1 - h) * *mean + h * acf_recall_mean(l->r, j);
    for (int32_t c = 0; c < classes; c++) probs[c] = (1 - h) * probs[c] + h * members * acf_recall_density(l->r, j, c);
}
