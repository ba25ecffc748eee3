/* Splits and held-out cells: see split.h.
 *
 * One 32-bit draw a cell: word j of the row's stream, four columns to a block. A row of 20 columns costs 150 ns, so it
 * is drawn again whenever it is needed; a stored mask could contradict it. */
#include "table/split.h"

#include <math.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------------------------- */

acf_rows acf_rows_all(int64_t N) { return (acf_rows){acf_permutation_identity(N), 0, N}; }

acf_rows acf_rows_copied(acf_rows rows, int copies) {
    rows.n *= copies, rows.copies = copies;
    return rows;
}

int64_t acf_rows_at(const acf_rows *rows, int64_t k) {
    if (rows->copies <= 1) return acf_permutation_at(&rows->order, rows->first + k);
    const int64_t once = rows->n / rows->copies;
    return acf_permutation_at(&rows->order, rows->first + k % once) + k / once * rows->order.n;
}

acf_status acf_row_split_make(int64_t N, double valid, double test, uint64_t seed, acf_row_split *out) {
    if (!(valid >= 0.0) || !(test >= 0.0) || !(valid + test < 1.0))
        return acf_fail(ACF_EUSAGE,
                        "fractions of %g rows for validation and %g for test; expected 0 or more, and a sum below 1",
                        valid, test);
    acf_permutation order = acf_permutation_make(N, seed, ACF_STREAM_SPLIT, 0);
    int64_t capacity = acf_max(N - 1, 0);
    int64_t n_valid = acf_min(llround(valid * (double)N), capacity);
    int64_t n_test = acf_min(llround(test * (double)N), capacity - n_valid);
    int64_t n_train = N - n_valid - n_test;
    *out = (acf_row_split){{order, 0, n_train}, {order, n_train, n_valid}, {order, n_train + n_valid, n_test}};
    return ACF_OK;
}

/* ---- cells ------------------------------------------------------------------------------------------------------ */

#define WORDS 64 /* number of draws at a time: what the vector form of the generator makes in one call */

/* Draws of columns j .. j+WORDS-1 of a row; j is a multiple of 4. */
static void draw_words(uint64_t seed, const acf_table *t, int64_t row, int64_t j, uint32_t words[WORDS]) {
    acf_rng_counter at = {seed, acf_table_row_id(t, row), ACF_STREAM_SPLIT, (uint32_t)(j / 4), 0};
    acf_rng_words(at, acf_min(WORDS, t->D - j), words);
}

/* keep (D): for each column the row with the largest draw, the first of equals; best (D) is scratch. */
static void find_keepers(acf_holdout *h, const acf_table *t, const acf_rows *rows, uint32_t *best) {
    uint32_t words[WORDS];
    for (int64_t j = 0; j < h->D; j++) h->keep[j] = -1, best[j] = 0;
    for (int64_t k = 0; k < rows->n; k++) {
        int64_t row = acf_rows_at(rows, k);
        const double *x = acf_table_row(t, row);
        for (int64_t j = 0; j < h->D; j++) {
            if (j % WORDS == 0) draw_words(h->seed, t, row, j, words);
            uint32_t w = words[j % WORDS];
            if (!acf_table_present(x[j]) || (h->keep[j] >= 0 && w <= best[j])) continue;
            h->keep[j] = row, best[j] = w;
        }
    }
}

/* The observed column with the largest draw, the first of equals. */
static int64_t last_of_row(const acf_holdout *h, const acf_table *t, int64_t row) {
    const double *x = acf_table_row(t, row);
    uint32_t words[WORDS], best = 0;
    int64_t last = -1;
    for (int64_t j = 0; j < t->D; j++) {
        if (j % WORDS == 0) draw_words(h->seed, t, row, j, words);
        if (!acf_table_present(x[j]) || (last >= 0 && words[j % WORDS] <= best)) continue;
        last = j, best = words[j % WORDS];
    }
    return last;
}

/* The loop over cells has no branches; rows that would lose their last cell are rare and are checked again. */
int64_t acf_holdout_row(const acf_holdout *h, const acf_table *t, int64_t row, uint8_t *held) {
    const int64_t D = t->D;
    if (!h || h->fraction == 0.0) {
        memset(held, 0, (size_t)D);
        return 0;
    }
    const uint32_t below = (uint32_t)(h->fraction * 0x1p32); /* 32 bits of the fraction are used; it is below 1 */
    int64_t observed = 0, n = 0;
    uint32_t words[WORDS];
    for (int64_t j0 = 0; j0 < D; j0 += WORDS) {
        const double *x = acf_table_row(t, row) + j0;
        const int64_t *keep = h->keep + j0;
        int64_t width = acf_min(WORDS, D - j0);
        draw_words(h->seed, t, row, j0, words);
        for (int64_t j = 0; j < width; j++) {
            bool present = acf_table_present(x[j]), out = present & (words[j] < below) & (keep[j] != row);
            held[j0 + j] = out;
            observed += present;
            n += out;
        }
    }
    if (observed >= 2 && n == observed) held[last_of_row(h, t, row)] = 0, n--;
    return n;
}

static void count_cells(acf_holdout *h, const acf_table *t, const acf_rows *rows, uint8_t *held) {
    for (int64_t k = 0; k < rows->n; k++) {
        int64_t row = acf_rows_at(rows, k), observed = 0;
        const double *x = acf_table_row(t, row);
        for (int64_t j = 0; j < t->D; j++) observed += acf_table_present(x[j]);
        int64_t n = acf_holdout_row(h, t, row, held);
        h->held += n;
        h->visible += observed - n;
    }
}

acf_status acf_holdout_create(const acf_table *t, const acf_rows *rows, double fraction, uint64_t seed,
                              acf_holdout **out) {
    if (!(fraction >= 0.0 && fraction < 1.0))
        return acf_fail(ACF_EUSAGE, "a fraction of %g cells to hold out; expected 0 or more, and below 1", fraction);
    acf_rows all = acf_rows_all(t->N);
    if (!rows) rows = &all;
    size_t bytes;
    if (!acf_bytes(t->D, sizeof(int64_t), &bytes)) return ACF_EMEMORY;
    acf_holdout *h = acf_alloc_zero(sizeof *h, "held-out cells");
    int64_t *keep = acf_alloc(bytes, "held-out cells");
    void *scratch = acf_alloc(bytes, "held-out cells"); /* (D) of 4 bytes, then (D) of 1 */
    if (!h || !keep || !scratch) {
        acf_release(h);
        acf_release(keep);
        acf_release(scratch);
        return ACF_EMEMORY;
    }
    *h = (acf_holdout){.seed = seed, .fraction = fraction, .D = t->D, .keep = keep};
    find_keepers(h, t, rows, scratch);
    count_cells(h, t, rows, scratch);
    acf_release(scratch);
    *out = h;
    return ACF_OK;
}

void acf_holdout_free(acf_holdout *h) {
    if (!h) return;
    acf_release(h->keep);
    acf_release(h);
}
