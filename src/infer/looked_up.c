/* Answers with an archive: see looked_up.h.
 *
 * Workload: a look-up for each cell that is asked, some 30 µs in 5,000 rows of 12 columns: more than half of a draw of such a table. */
#include "infer/looked_up.h"

#include "base/rng.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- cells in turn -------------------------------------------------------------------------------------------------------------- */

#define NOT_BEGUN (-2)
enum { OTHERS = 128 }; /* values near those of donors that stand for all there may be, at most */
#define SURE 0.9 /* of a value: then it is what is filled in. A mean beside it would lie outside its own interval */

/* Cells of column j that the model was made from. */
static int64_t observed(const acf_encoder *e, int64_t j) {
    int64_t n = e->column[j].classes ? 0 : e->observed[j];
    for (int32_t c = 0; c < e->column[j].classes; c++) n += e->count[e->first[j] + c];
    return n;
}

acf_status acf_in_turn_order(const acf_encoder *e, int32_t **order) {
    int32_t *list = acf_alloc((size_t)e->D * sizeof *list, "an order of columns");
    if (!list) return ACF_EMEMORY;
    for (int64_t j = 0; j < e->D; j++) {
        int64_t k = j;
        for (; k > 0 && observed(e, list[k - 1]) < observed(e, j); k--) list[k] = list[k - 1];
        list[k] = (int32_t)j;
    }
    *order = list;
    return ACF_OK;
}

acf_status acf_in_turn_begin(acf_in_turn *turn, const acf_table *t, acf_question q, acf_purpose why, const int32_t *order) {
    const size_t cells = (size_t)(t->N * t->D) + 1;
    *turn = (acf_in_turn){.t = t, .all = q, .why = why, .order = order};
    turn->column = acf_alloc(((size_t)t->N + 1) * sizeof *turn->column, "a question");
    turn->at = turn->column ? acf_alloc_zero(((size_t)t->N + 1) * sizeof *turn->at, "a question") : NULL;
    turn->given = turn->at ? acf_alloc(cells, "a question") : NULL;
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

/* The next column of row i that is asked for; -1: there is none. */
static int32_t next_column(acf_in_turn *turn, int64_t i) {
    const int64_t D = turn->t->D;
    while (turn->at[i] < D) {
        const int32_t j = turn->order[turn->at[i]++];
        const int64_t cell = i * D + j;
        if (acf_question_asks(turn->all, turn->why, cell, acf_tab_present(turn->t->x[cell]))) return j;
    }
    return -1;
}

bool acf_in_turn_next(acf_in_turn *turn) {
    const int64_t D = turn->t->D;
    bool some = false;
    for (int64_t i = 0; i < turn->t->N; i++) {
        const int32_t before = turn->column[i];
        if (before == -1) continue;
        if (before != NOT_BEGUN) turn->given[i * D + before] = 1, turn->asked[i * D + before] = 0;
        const int32_t j = turn->column[i] = next_column(turn, i);
        if (j >= 0) turn->asked[i * D + j] = 1, some = true;
    }
    return some;
}

void acf_in_turn_end(acf_in_turn *turn) {
    acf_release(turn->column), acf_release(turn->at), acf_release(turn->given), acf_release(turn->asked);
    *turn = (acf_in_turn){0};
}

/* ---- answers -------------------------------------------------------------------------------------------------------------------- */

/* What one thread needs. */
typedef struct seat {
    acf_recall *r;
    uint8_t *known; /* (D) */
} seat;

struct acf_looked_up {
    const acf_model *m;
    seat *seat; /* one of each thread */
    int threads;
};

acf_status acf_looked_up_create(const acf_model *m, int threads, acf_looked_up **out) {
    acf_looked_up *l = acf_alloc_zero(sizeof *l, "a look-up of rows");
    if (!l) return ACF_EMEMORY;
    l->m = m, l->threads = (int)acf_max(threads, 1);
    l->seat = acf_alloc_zero((size_t)l->threads * sizeof *l->seat, "a look-up of rows");
    bool ok = l->seat != NULL;
    for (int k = 0; ok && k < l->threads; k++) {
        l->seat[k].known = acf_alloc((size_t)m->archive->D, "a look-up of rows");
        ok = l->seat[k].known && acf_recall_create(m->archive, &l->seat[k].r) == ACF_OK;
    }
    if (!ok) {
        acf_looked_up_free(l);
        return ACF_EMEMORY;
    }
    *out = l;
    return ACF_OK;
}

void acf_looked_up_free(acf_looked_up *l) {
    if (!l) return;
    for (int k = 0; l->seat && k < l->threads; k++) acf_recall_free(l->seat[k].r), acf_release(l->seat[k].known);
    acf_release(l->seat);
    acf_release(l);
}

static seat *own_seat(const acf_looked_up *l) { return &l->seat[omp_get_thread_num()]; }

/* How far the rows are believed that are near row i of t at s->known, about column j. */
static double trust(seat *s, const acf_table *t, int64_t i, int64_t j) {
    return acf_recall_look(s->r, j, acf_tab_row(t, i), s->known, acf_tab_id(t, i)) ? acf_recall_trust(s->r, j) : 0;
}

/* log p at x, of which the networks say logp. */
static double logp_of_both(const seat *s, int64_t j, double x, double h, double logp) {
    if (h == 0) return logp;
    const double q = log(h * acf_recall_density(s->r, j, x)), p = log1p(-h) + logp, most = fmax(p, q);
    return isfinite(most) ? most + log(exp(p - most) + exp(q - most)) : most;
}

double acf_looked_up_logp(acf_looked_up *l, const acf_table *t, const acf_in_turn *turn, int64_t i, double logp) {
    const int64_t j = turn->column[i];
    seat *s = own_seat(l);
    memcpy(s->known, turn->given + i * t->D, (size_t)t->D);
    return logp_of_both(s, j, acf_tab_row(t, i)[j], trust(s, t, i, j), logp);
}

/* Everything of the row is known but the cell itself. */
static void know_the_others(seat *s, const acf_table *t, int64_t i, int64_t j) {
    for (int64_t k = 0; k < t->D; k++) s->known[k] = k != j && acf_tab_present(acf_tab_row(t, i)[k]);
}

double acf_looked_up_cell(acf_looked_up *l, const acf_table *t, int64_t i, int64_t j, double logp) {
    seat *s = own_seat(l);
    know_the_others(s, t, i, j);
    return logp_of_both(s, j, acf_tab_row(t, i)[j], trust(s, t, i, j), logp);
}

double acf_looked_up_look(acf_looked_up *l, const acf_table *t, int64_t i, int64_t j) {
    seat *s = own_seat(l);
    know_the_others(s, t, i, j);
    return trust(s, t, i, j);
}

double acf_looked_up_at(acf_looked_up *l, int64_t j, double x, double h, double logp) { return logp_of_both(own_seat(l), j, x, h, logp); }

double acf_looked_up_value(acf_looked_up *l, int64_t j, const double u[3]) { return acf_recall_draw(own_seat(l)->r, j, u); }

void acf_looked_up_draw(acf_looked_up *l, const acf_table *t, const acf_in_turn *turn, int64_t i, uint64_t seed, uint32_t draw, double *x) {
    const int64_t j = turn->column[i];
    seat *s = own_seat(l);
    memcpy(s->known, turn->given + i * t->D, (size_t)t->D);
    const double h = trust(s, t, i, j);
    uint32_t bits[4];
    double u[4];
    acf_rng_bits((acf_place){.seed = seed, .row = acf_tab_id(t, i), .stream = ACF_STREAM_RECALL, .column = (uint32_t)j, .draw = draw}, bits);
    for (int k = 0; k < 4; k++) u[k] = ((double)bits[k] + 0.5) / 4294967296.0;
    if (u[0] < h) *x = acf_recall_draw(s->r, j, u + 1);
}

double acf_looked_up_mean(acf_looked_up *l, const acf_table *t, acf_question q, int64_t i, int64_t j, int members,
                          double *mean, double *probs) {
    const int32_t classes = l->m->encoder->column[j].classes;
    seat *s = own_seat(l);
    for (int64_t k = 0; k < t->D; k++) {
        const int64_t cell = i * t->D + k;
        const bool present = acf_tab_present(t->x[cell]);
        s->known[k] = acf_question_gives(q, ACF_TO_FILL, cell, present);
    }
    const double h = trust(s, t, i, j);
    double value;
    if (h == 0) return 0;
    if (classes == 0) *mean = (1 - h) * *mean + h * acf_recall_mean(s->r, j);
    if (classes == 0 && h > SURE && h * acf_recall_majority(s->r, j, &value) > SURE) *mean = value;
    for (int32_t c = 0; c < classes; c++) probs[c] *= 1 - h;
    if (classes > 0) acf_recall_add_classes(s->r, j, h * members, probs);
    return h;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void acf_looked_up_distribution(acf_looked_up *l, int64_t j, double h, acf_weighted *d) {
    const seat *s = own_seat(l);
    double other[OTHERS];
    d->n = acf_recall_very(s->r, j, d->value, d->weight);
    for (int64_t k = 0; k < d->n; k++) d->weight[k] *= h;
    const double rest = h * l->m->archive->differ[j];
    const int n = (int)fmin(ceil(rest * OTHERS), OTHERS);
    if (n == 0) return;
    acf_recall_others(s->r, j, n, other);
    qsort(other, (size_t)n, sizeof *other, ascending);
    acf_weighted_add(d, other, n, rest / n);
}

int64_t acf_looked_up_room(const acf_looked_up *l) { return acf_recall_room(l->m->archive) + OTHERS; }
