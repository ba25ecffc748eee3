/* Queries to a fitted model: see session.h. It queries the ensemble members one after the other (member.h) and
 * combines their answers. */
#include "device/cpu.h"
#include "infer/session_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t acf_session_classes(const acf_session *s) {
    return s->K > 1 || s->donor_answers || s->top_level_share ? acf_net_classes(s->m->net) : 0;
}

/* Sets s->top_level_share if a class stands for several levels. */
static acf_status find_top_level_shares(acf_session *s) {
    const acf_schema *schema = s->m->schema;
    bool any = false;
    for (int64_t c = 0; schema && c < schema->n; c++) any = any || schema->column[c].pooled > 0;
    if (!any) return ACF_OK;
    s->top_level_share = acf_alloc((size_t)schema->D * sizeof *s->top_level_share, "a session");
    if (!s->top_level_share) return ACF_EMEMORY;
    for (int64_t c = 0; c < schema->n; c++)
        if (schema->column[c].place >= 0)
            s->top_level_share[schema->column[c].place] = acf_spec_leading(&schema->column[c]);
    return ACF_OK;
}

/* Allocates memory for the rows of a batch and for the answers of the members. */
static acf_status make_memory(acf_session *s) {
    const int64_t D = s->m->encoder->D, M = acf_session_classes(s);
    size_t each, mixed;
    if (!acf_bytes(s->rows * D, (size_t)s->K * sizeof *s->each, &each) ||
        !acf_bytes(s->rows * acf_max(M, 1), sizeof *s->mixed, &mixed))
        return ACF_EMEMORY;
    s->row = acf_alloc((size_t)s->rows * sizeof *s->row, "a session");
    s->column = s->row ? acf_alloc((size_t)s->rows * sizeof *s->column, "a session") : NULL;
    s->each = s->column ? acf_alloc(each, "a session") : NULL;
    s->mixed = s->each ? acf_alloc(mixed, "a session") : NULL;
    s->probs = s->mixed ? acf_alloc(mixed, "a session") : NULL;
    return s->probs ? ACF_OK : ACF_EMEMORY;
}

acf_status acf_session_open(acf_device *dev, const acf_model *m, int64_t rows, acf_session **out) {
    acf_status status = ACF_OK;
    if (rows < 1)
        return acf_fail(ACF_EUSAGE, "a session with batches of %lld rows; expected at least 1", (long long)rows);
    acf_session *s = acf_alloc_zero(sizeof *s, "a session");
    if (!s) return ACF_EMEMORY;
    s->m = m, s->rows = rows;
    ACF_TRY_DONE(acf_device_again(dev, &s->dev));
    for (const acf_model *one = m; one; one = one->next, s->K++)
        ACF_TRY_DONE(acf_member_create(s->dev, one, rows, &s->member[s->K]));
    if (m->donors) ACF_TRY_DONE(acf_donor_answers_create(m->donors, s->dev->threads, &s->donor_answers));
    if (m->donors) ACF_TRY_DONE(acf_autoregression_order(m->encoder, &s->order));
    ACF_TRY_DONE(acf_session_set_orders(s, acf_max(m->orders, 1)));
    ACF_TRY_DONE(find_top_level_shares(s));
    ACF_TRY_DONE(make_memory(s));
    *out = s;
done:
    if (status) acf_session_free(s);
    return status;
}

void acf_session_free(acf_session *s) {
    if (!s) return;
    for (int k = 0; k < s->K; k++) acf_member_free(s->member[k]);
    acf_donor_answers_free(s->donor_answers);
    acf_release(s->order);
    acf_release(s->row);
    acf_release(s->column);
    acf_release(s->each);
    acf_release(s->probs);
    acf_release(s->mixed);
    acf_release(s->top_level_share);
    acf_device_close(s->dev);
    acf_release(s);
}

acf_status acf_session_set_precision(acf_session *s, acf_precision precision) {
    if (!acf_device_multiplies(s->dev, precision))
        return acf_fail(ACF_EDEVICE, "this device does not multiply in that precision; use precision float");
    s->dev->precision = precision;
    for (int k = 0; k < s->K; k++) acf_query_graph_forget(s->member[k]->query_graph);
    return ACF_OK;
}

acf_status acf_session_set_orders(acf_session *s, int64_t orders) {
    if (orders < 1 || orders > UINT32_MAX)
        return acf_fail(ACF_EUSAGE, "%lld orders; expected at least 1", (long long)orders);
    for (int k = 0; k < s->K; k++) acf_member_orders(s->member[k], (uint32_t)orders, (uint32_t)s->K);
    return ACF_OK;
}

static acf_status check(const acf_session *s, const acf_table *t) { return acf_encoder_check(s->m->encoder, t); }

int64_t acf_session_take(acf_session *s, const acf_table *t, int64_t from) {
    const int64_t n = acf_min(s->rows, t->N - from);
    for (int64_t i = 0; i < n; i++) s->row[i] = from + i;
    return n;
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

/* log of the mean of K densities exp(x[0]), exp(x[stride]), ... */
static double log_mean_exp(const double *x, int K, int64_t stride) {
    double most = x[0], sum = 0;
    if (K == 1) return x[0];
    for (int k = 1; k < K; k++) most = fmax(most, x[k * stride]);
    if (!isfinite(most)) return most;
    for (int k = 0; k < K; k++) sum += exp(x[k * stride] - most);
    return most + log(sum / K);
}

acf_status acf_session_score(acf_session *s, const acf_table *t, acf_query q, int64_t alone, int64_t n, double *out) {
    for (int k = 0; k < s->K; k++) {
        acf_member *one = s->member[k];
        acf_member_load(one, t, q, ACF_TO_SCORE, s->row, n);
        for (int64_t c = 0; alone >= 0 && c < n * t->D; c++) one->batch->b[c] = one->batch->m[c] && c % t->D != alone;
        ACF_TRY(acf_member_score(one, t, s->each + k * n));
    }
    for (int64_t i = 0; i < n; i++) out[i] = log_mean_exp(s->each + i, s->K, n);
    return ACF_OK;
}

static acf_status logp_by_networks(acf_session *s, const acf_table *t, acf_query q, double *out) {
    for (int64_t from = 0; from < t->N; from += s->rows)
        ACF_TRY(acf_session_score(s, t, q, -1, acf_session_take(s, t, from), out + from));
    return ACF_OK;
}

/* Scores each row cell by cell, in the order of columns, by networks and donors, given the given cells and the
 * earlier ones. */
static acf_status logp_autoregressive(acf_session *s, const acf_table *t, acf_query q, double *out) {
    acf_autoregression chain;
    ACF_TRY(acf_autoregression_begin(&chain, t, q, ACF_TO_SCORE, s->order));
    double *one = acf_alloc((size_t)acf_max(t->N, 1) * sizeof *one, "scores of cells");
    acf_status status = one ? ACF_OK : ACF_EMEMORY;
    for (int64_t i = 0; i < t->N; i++) out[i] = 0;
    while (!status && acf_autoregression_next(&chain)) {
        status = logp_by_networks(s, t, chain.q, one);
        if (status) break;
        ACF_PARALLEL_UNEVEN(s->dev, t->N * s->m->donors->N)
        for (int64_t i = 0; i < t->N; i++)
            if (chain.column[i] >= 0) out[i] += acf_donor_answers_logp(s->donor_answers, t, &chain, i, one[i]);
    }
    acf_release(one);
    acf_autoregression_end(&chain);
    return status;
}

acf_status acf_session_query_logp(acf_session *s, const acf_table *t, acf_query q, double *out) {
    ACF_TRY(check(s, t));
    return s->donor_answers ? logp_autoregressive(s, t, q, out) : logp_by_networks(s, t, q, out);
}

acf_status acf_session_query_cells(acf_session *s, const acf_table *t, double *out) {
    ACF_TRY(check(s, t));
    int64_t D = t->D;
    double *one = acf_alloc((size_t)s->rows * sizeof *one, "scores of a column");
    if (!one) return ACF_EMEMORY;
    acf_status status = ACF_OK;
    for (int64_t from = 0; from < t->N; from += s->rows) {
        int64_t n = acf_session_take(s, t, from);
        for (int64_t j = 0; j < D; j++) {
            ACF_TRY_DONE(acf_session_score(s, t, (acf_query){NULL, NULL}, j, n, one));
            ACF_PARALLEL_UNEVEN(s->dev, s->donor_answers ? n * s->m->donors->N : n)
            for (int64_t i = 0; i < n; i++)
                out[(from + i) * D + j] = !acf_table_present(acf_table_row(t, from + i)[j]) ? (double)NAN
                                          : s->donor_answers
                                              ? acf_donor_answers_cell(s->donor_answers, t, from + i, j, one[i])
                                              : one[i];
        }
    }
done:
    acf_release(one);
    return status;
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

/* First member of a sequence of draws. Members alternate over the draws of a table, so any K consecutive draws use
 * all of them; the first is random, so that a single draw is from the mixture. All rows of a draw use the same
 * member and the same parameters (model/gmm_draws.h), so that parameter uncertainty does not average out over rows.
 * With cell-by-cell draws each cell is from the mixture: random for every column; else column 0. */
static int chain(const acf_session *s, const acf_table *t, uint64_t seed, int64_t row, uint32_t column) {
    const acf_rng_counter at = {.seed = seed,
                                .row = acf_rows_apart(t) ? acf_table_row_id(t, row) : 0,
                                .stream = ACF_STREAM_MEMBER,
                                .column = column};
    return s->K == 1 ? 0 : (int)acf_rng_below(at, s->K);
}

/* Number of parameter sets of member k that rows can start with; and whether a row starts with set `at`. */
static uint32_t beginnings(const acf_session *s, const acf_table *t, int k) {
    const acf_gmm_draws *sets = s->member[k]->m->draws;
    return sets && acf_rows_apart(t) ? (uint32_t)sets->n : 1;
}
static bool begins(const acf_table *t, int64_t row, uint32_t at, uint32_t of) {
    return of == 1 || acf_table_row_id(t, row) % of == at;
}

/* Sets the parameters that member k uses for this draw. */
static acf_status use_parameters(acf_session *s, int k, uint32_t beginning, uint32_t draw) {
    return acf_member_use(s->member[k], beginning + draw / (uint32_t)s->K);
}

static int drawer(const acf_session *s, int chain, uint32_t draw) {
    return (int)(((uint32_t)chain + draw % (uint32_t)s->K) % (uint32_t)s->K);
}

/* Writes the batch's table rows with the member's last answers; out (N,D). */
static void put_rows(const acf_member *one, const acf_table *t, double *out) {
    const int64_t D = t->D;
    for (int64_t i = 0; i < one->batch->N; i++)
        for (int64_t j = 0; j < D; j++)
            out[one->row[i] * D + j] = acf_member_is_target(one, i * D + j)
                                           ? acf_decode(one->m->encoder, j, one->cells[i * D + j])
                                           : acf_table_row(t, one->row[i])[j];
}

static acf_status draw_rows(acf_member *one, const acf_table *t, acf_query q, const acf_draw *d, const int64_t *row,
                            int64_t n, double *out) {
    if (n == 0) return ACF_OK;
    acf_member_load(one, t, q, ACF_TO_FILL, row, n);
    ACF_TRY(acf_member_answer(one, d));
    put_rows(one, t, out);
    return ACF_OK;
}

/* Draws only the rows that belong to member k and parameter set `at`. */
static acf_status draw_by_member(acf_session *s, const acf_table *t, acf_query q, const acf_draw *d, int k, uint32_t at,
                                 uint32_t of, double *out) {
    int64_t n = 0;
    ACF_TRY(use_parameters(s, k, at, d->draw));
    for (int64_t row = 0; row < t->N; row++) {
        const uint8_t *target = s->donor_answers ? q.target + row * t->D : NULL,
                      *cell = target ? memchr(target, 1, (size_t)t->D) : NULL;
        if ((target && !cell) || !begins(t, row, at, of)) continue; /* rows without a target cell are done */
        if (drawer(s, chain(s, t, d->seed, row, target ? (uint32_t)(cell - target) : 0), d->draw) != k) continue;
        s->row[n++] = row;
        if (n < s->rows) continue;
        ACF_TRY(draw_rows(s->member[k], t, q, d, s->row, n, out));
        n = 0;
    }
    return draw_rows(s->member[k], t, q, d, s->row, n, out);
}

static acf_status draw_by_networks(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, uint32_t draw,
                                   double *out) {
    for (int k = 0; k < s->K; k++)
        for (uint32_t of = beginnings(s, t, k), at = 0; at < of; at++)
            ACF_TRY(draw_by_member(s, t, q, &(acf_draw){.seed = seed, .draw = draw}, k, at, of, out));
    return ACF_OK;
}

/* Draws each row cell by cell, as scores are computed. Each cell is a draw of the networks, or a donor's value
 * instead. */
static acf_status draw_autoregressive(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, uint32_t draw,
                                      double *out) {
    acf_autoregression chain;
    acf_table filled = *t; /* with the drawn cells */
    const size_t bytes = (size_t)(t->N * t->D) * sizeof(double);
    ACF_TRY(acf_autoregression_begin(&chain, t, q, ACF_TO_FILL, s->order));
    double *x = acf_alloc(bytes + sizeof *x, "draws");
    acf_status status = x ? ACF_OK : ACF_EMEMORY;
    if (x) memcpy(x, t->x, bytes);
    filled.x = x;
    for (int64_t c = 0; x && c < t->N * t->D; c++) out[c] = x[c];
    while (!status && acf_autoregression_next(&chain)) {
        status = draw_by_networks(s, &filled, chain.q, seed, draw, out);
        if (status) break;
        ACF_PARALLEL_UNEVEN(s->dev, t->N * s->m->donors->N)
        for (int64_t i = 0; i < t->N; i++) {
            const int64_t j = chain.column[i], cell = i * t->D + j;
            if (j < 0) continue;
            acf_donor_answers_draw(s->donor_answers, &filled, &chain, i, seed, draw, &out[cell]);
            x[cell] = out[cell];
        }
    }
    for (int64_t c = 0; !status && c < t->N * t->D; c++) out[c] = x[c];
    acf_release(x);
    acf_autoregression_end(&chain);
    return status;
}

acf_status acf_session_query_draw(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, uint32_t draw,
                                  double *out) {
    ACF_TRY(check(s, t));
    return s->donor_answers ? draw_autoregressive(s, t, q, seed, draw, out)
                            : draw_by_networks(s, t, q, seed, draw, out);
}

/* ---- best guesses ------------------------------------------------------------------------------------------------ */

/* The most frequent of K values, of a tie the first. */
static double vote(const double *x, int K, int64_t stride) {
    double best = x[0];
    int most = 0;
    for (int k = 0; k < K; k++) {
        int n = 0;
        for (int l = 0; l < K; l++) n += x[l * stride] == x[k * stride];
        if (n > most) most = n, best = x[k * stride];
    }
    return best;
}

/* Combines the members' guesses of a cell, x[0], x[stride], ..., into one value that the column can have. */
static double one_guess(const acf_session *s, int64_t j, const double *x, int64_t stride) {
    double sum = 0;
    if (s->K == 1) return x[0];
    if (s->m->encoder->column[j].classes > 0) return vote(x, s->K, stride);
    for (int k = 0; k < s->K; k++) sum += x[k * stride];
    return acf_encoder_round(s->m->encoder, j, sum / s->K);
}

acf_status acf_session_query_guess(acf_session *s, const acf_table *t, acf_query q, double *out) {
    ACF_TRY(check(s, t));
    const int64_t D = t->D;
    for (int64_t from = 0; from < t->N; from += s->rows) {
        const int64_t n = acf_session_take(s, t, from), cells = n * D;
        for (int k = 0; k < s->K; k++) {
            acf_member *one = s->member[k];
            acf_member_load(one, t, q, ACF_TO_FILL, s->row, n);
            ACF_TRY(acf_member_answer(one, NULL));
            for (int64_t c = 0; c < cells; c++)
                if (acf_member_is_target(one, c))
                    s->each[k * cells + c] = acf_decode(one->m->encoder, c % D, one->cells[c]);
        }
        for (int64_t c = 0; c < cells; c++)
            out[from * D + c] =
                acf_member_is_target(s->member[0], c) ? one_guess(s, c % D, s->each + c, cells) : t->x[from * D + c];
    }
    return ACF_OK;
}

/* ---- summaries --------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile of n sorted values, linear between neighbours (R's type 7, numpy's default). */
static double quantile_of(const double *x, int64_t n, double q) {
    double at = q * (double)(n - 1);
    int64_t k = (int64_t)floor(at);
    return k + 1 < n ? x[k] + (at - (double)k) * (x[k + 1] - x[k]) : x[n - 1];
}

/* The most frequent of n sorted values, the lowest of them in a tie. */
static double mode_of(const double *x, int64_t n) {
    double best = x[0];
    int64_t most = 0;
    for (int64_t i = 0, run = 0; i < n; i++) {
        run = i && x[i] == x[i - 1] ? run + 1 : 1;
        if (run > most) most = run, best = x[i];
    }
    return best;
}

typedef struct summary {
    int32_t draws;
    const double *level;
    int n_levels;
    double *mean, *quantile; /* (N,D), (n_levels,N,D) */
    int64_t cells;           /* N·D */
} summary;

/* Summarises one cell from its draws, which are sorted in place. */
static void summarise(const summary *w, int64_t cell, double *x, bool categorical) {
    double sum = 0;
    qsort(x, (size_t)w->draws, sizeof *x, by_value);
    for (int32_t i = 0; i < w->draws; i++) sum += x[i];
    double mode = categorical ? mode_of(x, w->draws) : 0;
    if (w->mean) w->mean[cell] = categorical ? mode : sum / w->draws;
    for (int k = 0; w->quantile && k < w->n_levels; k++)
        w->quantile[k * w->cells + cell] = categorical ? mode : quantile_of(x, w->draws, w->level[k]);
}

static void nothing_asked(const summary *w, int64_t cell) {
    if (w->mean) w->mean[cell] = (double)NAN;
    for (int k = 0; w->quantile && k < w->n_levels; k++) w->quantile[k * w->cells + cell] = (double)NAN;
}

/* Draws of member k for the rows of [from, from+n) whose first draw is by member `first` and which start with these
 * parameters: drawn (n·D, draws), cell-major. */
static acf_status draw_some(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, int32_t draws, int64_t from,
                            int64_t n, int k, int first, uint32_t at, double *drawn) {
    acf_member *one = s->member[k];
    const uint32_t of = beginnings(s, t, k);
    const int64_t D = t->D;
    int64_t some = 0;
    for (int64_t row = from; row < from + n; row++)
        if (chain(s, t, seed, row, 0) == first && begins(t, row, at, of)) s->row[some++] = row;
    if (some == 0) return ACF_OK;
    acf_member_load(one, t, q, ACF_TO_FILL, s->row, some);
    for (int32_t i = 0; i < draws; i++) {
        if (drawer(s, first, (uint32_t)i) != k) continue;
        ACF_TRY(use_parameters(s, k, at, (uint32_t)i));
        ACF_TRY(acf_member_answer(one, &(acf_draw){.seed = seed, .draw = (uint32_t)i}));
        for (int64_t c = 0; c < some * D; c++)
            if (acf_member_is_target(one, c))
                drawn[((s->row[c / D] - from) * D + c % D) * draws + i] =
                    acf_decode(one->m->encoder, c % D, one->cells[c]);
    }
    return ACF_OK;
}

/* The same for a model with donors, on a table of these rows only. */
static acf_status draw_all_autoregressive(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, int32_t draws,
                                          int64_t from, int64_t n, double *drawn) {
    const int64_t D = t->D;
    acf_table part = *t;
    part.N = n, part.x = t->x + from * D, part.first_id = t->first_id + (uint64_t)from,
    part.id = t->id ? t->id + from : NULL;
    const acf_query of = {q.given ? q.given + from * D : NULL, q.target ? q.target + from * D : NULL};
    double *one = acf_alloc((size_t)(n * D) * sizeof *one, "draws");
    acf_status status = one ? ACF_OK : ACF_EMEMORY;
    for (int32_t i = 0; !status && i < draws; i++) {
        status = draw_autoregressive(s, &part, of, seed, (uint32_t)i, one);
        for (int64_t c = 0; !status && c < n * D; c++) drawn[c * draws + i] = one[c];
    }
    acf_release(one);
    return status;
}

/* All draws of these rows. */
static acf_status draw_all(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, int32_t draws, int64_t from,
                           int64_t n, double *drawn) {
    if (s->donor_answers) return draw_all_autoregressive(s, t, q, seed, draws, from, n, drawn);
    for (int k = 0; k < s->K; k++)
        for (int first = 0; first < s->K; first++)
            for (uint32_t at = 0; at < beginnings(s, t, k); at++)
                ACF_TRY(draw_some(s, t, q, seed, draws, from, n, k, first, at, drawn));
    return ACF_OK;
}

static acf_status summarise_table(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, const summary *w) {
    const int32_t draws = w->draws;
    ACF_TRY(check(s, t));
    if (draws < 1) return acf_fail(ACF_EUSAGE, "%d draws; expected at least 1", draws);
    acf_status status = ACF_OK;
    size_t bytes;
    int64_t D = t->D, rows = acf_min(s->rows, t->N);
    if (!acf_bytes(rows * D, (size_t)draws * sizeof(double), &bytes)) return ACF_EMEMORY;
    double *drawn = acf_alloc(bytes, "draws");
    if (!drawn) return ACF_EMEMORY;
    for (int64_t from = 0; from < t->N; from += s->rows) {
        int64_t n = acf_min(s->rows, t->N - from);
        ACF_TRY_DONE(draw_all(s, t, q, seed, draws, from, n, drawn));
        for (int64_t k = 0; k < n * D; k++) {
            const int64_t cell = from * D + k;
            if (acf_query_asks(q, ACF_TO_FILL, cell, acf_table_present(t->x[cell])))
                summarise(w, cell, drawn + k * draws, s->m->encoder->column[k % D].classes > 0);
            else
                nothing_asked(w, cell);
        }
    }
done:
    acf_release(drawn);
    return status;
}

acf_status acf_session_query_summary(acf_session *s, const acf_table *t, acf_query q, uint64_t seed, int32_t draws,
                                     const double *level, int n_levels, double *mean, double *quantile) {
    for (int k = 0; k < n_levels; k++)
        if (!(level[k] >= 0 && level[k] <= 1))
            return acf_fail(ACF_EUSAGE, "quantile %g; expected a number from 0 to 1", level[k]);
    return summarise_table(s, t, q, seed,
                           &(summary){.draws = draws,
                                      .level = level,
                                      .n_levels = n_levels,
                                      .mean = mean,
                                      .quantile = quantile,
                                      .cells = t->N * t->D});
}
