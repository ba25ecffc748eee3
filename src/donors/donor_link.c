/* Record linkage of the stored rows: see donor_link.h.
 *
 * Workload: to make it, ROWS rows against all others, D table reads each: 0.1 s for 20,000 rows of 12 columns. A query
 * compares the few rows that cost little more than the nearest, usually about 10. */
#include "donors/donor_link.h"

#include <math.h>
#include <string.h>

#define ROWS 256        /* stored rows that are compared with all others, at most */
#define PAIRS 4         /* closest other rows that are kept of each */
#define NEAR ACF_R(3.0) /* nats above the nearest row: a row beyond has less than 5 % of its weight */
#define CANDIDATES 256  /* rows within NEAR, at most: with more, one of them has little weight */
#define CHANCE 100.0    /* false matches: one in so many */
#define ROUNDING ACF_R(1e-5)

static const int32_t *below_of(const acf_donors *m, int64_t k) { return m->linkage->below + m->first[k] + k; }

static acf_column_span span_of_code(const int32_t *below, int32_t c) {
    return (acf_column_span){below[c], below[c + 1]};
}

/* Index of the column's first value that is not less than x. */
static int64_t first_from(const acf_donors *m, int64_t k, double x) {
    int64_t low = m->first[k], high = m->first[k + 1];
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (m->value[middle] < x)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The span of x. A value that rounds to one of the column's values counts as that one. */
static acf_column_span span_of(const acf_donors *m, int64_t k, double x) {
    const int32_t *below = below_of(m, k);
    const double half = 0.5 * acf_resolution_step(m->encoder->resolution[k]);
    int64_t at = first_from(m, k, x - half);
    const int64_t next = at + 1;
    if (at < m->first[k + 1] && next < m->first[k + 1] && fabs(m->value[next] - x) < fabs(m->value[at] - x)) at = next;
    if (at < m->first[k + 1] && fabs(m->value[at] - x) <= half) return span_of_code(below, (int32_t)(at - m->first[k]));
    at = first_from(m, k, x) - m->first[k];
    return (acf_column_span){below[at], below[at]};
}

/* log 1/F of a cell with code c for a value with this span; the other side is taken to hold as many cells. */
static acf_real agreement(const acf_donors *m, int64_t k, acf_column_span x, int32_t c) {
    if (c < 0) return 0;
    const int32_t *below = below_of(m, k);
    const int32_t equal = x.to - x.from, away = below[c] >= x.to ? below[c + 1] - x.to : x.from - below[c];
    const int64_t all = below[m->first[k + 1] - m->first[k]];
    if (below[c] == x.from && away <= 0) return m->linkage->log_count[all] - m->linkage->log_count[equal];
    if (!m->number[k]) return 0;
    return m->linkage->log_count[all] - m->linkage->log_count[acf_min(all, equal + 2 * (int64_t)away)];
}

/* ---- the stored rows --------------------------------------------------------------------------------------------- */

/* sum (N) = the agreement of every row with row i. */
static void agree_with(const acf_donors *m, int64_t i, acf_real *sum) {
    memset(sum, 0, (size_t)m->N * sizeof *sum);
    for (int64_t k = 0; k < m->D; k++) {
        const int32_t *code = m->code + k * m->N, c = code[i];
        if (c < 0) continue;
        const acf_column_span x = span_of_code(below_of(m, k), c);
        for (int64_t l = 0; l < m->N; l++) sum[l] += agreement(m, k, x, code[l]);
    }
}

/* The other rows that agree best with row i, best first; returns how many. sum (N) is overwritten. */
static int find_pairs(const acf_donors *m, int64_t i, acf_real *sum, int64_t pair[PAIRS]) {
    int n = 0;
    agree_with(m, i, sum);
    for (int64_t l = 0; l < m->N; l++) {
        if (l == i || m->id[l] == m->id[i] || (n == PAIRS && sum[l] <= sum[pair[n - 1]])) continue;
        int at = n < PAIRS ? n++ : PAIRS - 1;
        for (; at > 0 && sum[pair[at - 1]] < sum[l]; at--) pair[at] = pair[at - 1];
        pair[at] = l;
    }
    return n;
}

static void compare_row(acf_donors *m, int64_t r, acf_real *sum) {
    acf_linkage *l = m->linkage;
    const int64_t i = r * m->N / l->rows;
    int64_t pair[PAIRS];
    const int n = find_pairs(m, i, sum, pair);
    for (int64_t k = 0; k < m->D; k++) {
        const int32_t c = m->code[k * m->N + i];
        if (c < 0) continue;
        const acf_column_span x = span_of_code(below_of(m, k), c);
        acf_real *to = l->agreement + (k * l->rows + r) * (1 + PAIRS);
        to[0] = agreement(m, k, x, c);
        for (int p = 0; p < n; p++) to[1 + p] = agreement(m, k, x, m->code[k * m->N + pair[p]]);
    }
}

static void count_below(acf_donors *m, int64_t k) {
    int32_t *below = m->linkage->below + m->first[k] + k;
    const int64_t values = m->first[k + 1] - m->first[k];
    for (int64_t i = 0; i < m->N; i++)
        if (m->code[k * m->N + i] >= 0) below[m->code[k * m->N + i] + 1]++;
    for (int64_t c = 0; c < values; c++) below[c + 1] += below[c];
}

acf_status acf_linkage_make(acf_donors *m) {
    acf_linkage *l = acf_alloc_zero(sizeof *l, "the donors");
    if (!l) return ACF_EMEMORY;
    acf_linkage_free(m->linkage);
    m->linkage = l, l->rows = acf_min(m->N, ROWS);
    l->agreement = acf_alloc_zero((size_t)(m->D * l->rows * (1 + PAIRS) + 1) * sizeof *l->agreement, "the donors");
    l->below = acf_alloc_zero((size_t)(m->first[m->D] + m->D + 1) * sizeof *l->below, "the donors");
    l->log_count = acf_alloc_zero((size_t)(m->N + 1) * sizeof *l->log_count, "the donors");
    acf_real *sum = acf_alloc((size_t)(m->N + 1) * sizeof *sum, "the donors");
    if (!l->agreement || !l->below || !l->log_count || !sum) {
        acf_release(sum);
        return ACF_EMEMORY;
    }
    for (int64_t n = 2; n <= m->N; n++) l->log_count[n] = (acf_real)log((double)n);
    for (int64_t k = 0; k < m->D; k++) count_below(m, k);
    for (int64_t r = 0; r < l->rows; r++) compare_row(m, r, sum);
    acf_release(sum);
    return ACF_OK;
}

void acf_linkage_free(acf_linkage *l) {
    if (!l) return;
    acf_release(l->agreement), acf_release(l->below), acf_release(l->log_count);
    acf_release(l);
}

/* ---- the searched row ------------------------------------------------------------------------------------------ */

/* Agreement of two rows, and that of equal rows; for the cell that agrees least: what it falls short, and its largest
 * possible agreement. */
typedef struct likeness {
    acf_real with, equal, lost, of;
} likeness;

static void add_cell(likeness *a, acf_real with, acf_real equal) {
    a->with += with, a->equal += equal;
    if (equal - with > a->lost) a->lost = equal - with, a->of = equal;
}

/* Agreement as a share of the largest possible; but_one: without the cell that agrees least, which may be an error. */
static acf_real part_of(const likeness *a, bool but_one) {
    const acf_real equal = a->equal - (but_one ? a->of : 0);
    return equal > 0 ? 1 - (a->equal - a->with - (but_one ? a->lost : 0)) / equal : 0;
}

/* Agreement of stored row r with the p-th of those closest to it, over these columns. */
static likeness compare_stored(const acf_donors *m, int64_t j, const uint8_t *known, int64_t r, int p) {
    const acf_linkage *l = m->linkage;
    likeness a = {0};
    for (int64_t k = 0; k < m->D; k++) {
        const acf_real *of = l->agreement + (k * l->rows + r) * (1 + PAIRS);
        if (k != j && known[k]) add_cell(&a, of[p], of[0]);
    }
    return a;
}

/* Do fewer than this share of the stored rows have another one with at least this relative agreement, over all cells or
 * all but one? */
static bool is_closer_than(const acf_donors *m, int64_t j, const uint8_t *known, const likeness *a, double share) {
    const acf_linkage *l = m->linkage;
    const acf_real part[2] = {part_of(a, false) - ROUNDING, part_of(a, true) - ROUNDING};
    int64_t n[2] = {0};
    for (int64_t r = 0; r < l->rows; r++) {
        bool close[2] = {false};
        for (int p = 1; p <= PAIRS; p++) {
            const likeness b = compare_stored(m, j, known, r, p);
            close[0] |= part_of(&b, false) >= part[0], close[1] |= part_of(&b, true) >= part[1];
        }
        n[0] += close[0], n[1] += close[1];
    }
    return (double)acf_min(n[0], n[1]) < share * (double)l->rows;
}

static bool is_itself(const acf_donors *m, int64_t j, const uint8_t *known, const likeness *a, bool same_id) {
    if ((double)a->with < log(CHANCE) + (same_id ? 0 : log((double)m->N))) return false;
    return is_closer_than(m, j, known, a, same_id ? 0.5 : 1 / CHANCE);
}

/* Agreement of row i with the row of these spans, over known cells. */
static likeness compare(const acf_donors *m, const acf_column_span *x, const uint8_t *known, int64_t j, int64_t i) {
    likeness a = {0};
    for (int64_t k = 0; k < m->D; k++) {
        if (k == j || !known[k]) continue;
        const int32_t all = below_of(m, k)[m->first[k + 1] - m->first[k]], equal = x[k].to - x[k].from;
        add_cell(&a, agreement(m, k, x[k], m->code[k * m->N + i]),
                 m->linkage->log_count[all] - m->linkage->log_count[equal]);
    }
    return a;
}

int64_t acf_linkage_find(const acf_donors *m, const acf_real *cost, acf_real least, int64_t j, const double *x,
                         const uint8_t *known, uint64_t id, acf_column_span *span) {
    const acf_real most = least + NEAR;
    likeness by_cells = {0}, by_id = {0};
    int64_t n = 0, best = -1, own = -1;
    if (!m->linkage) return -1;
    for (int64_t i = 0; i < m->N; i++) n += cost[i] <= most;
    if (n > CANDIDATES) return -1;
    for (int64_t k = 0; k < m->D; k++)
        if (k != j && known[k]) span[k] = span_of(m, k, x[k]);
    for (int64_t i = 0; i < m->N; i++) {
        if (!(cost[i] <= most)) continue;
        const likeness a = compare(m, span, known, j, i);
        if (best < 0 || a.with > by_cells.with) best = i, by_cells = a;
        if (m->id[i] == id) own = i, by_id = a;
    }
    if (own >= 0 && is_itself(m, j, known, &by_id, true)) return own;
    return best >= 0 && is_itself(m, j, known, &by_cells, false) ? best : -1;
}
