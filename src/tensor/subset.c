/* Ragged masks to the packed layout: see subset.h. One pass over the masks, a counting sort, one pass over the
 * packed elements. It takes a few microseconds for a batch, so nothing here is threaded. */
#include "tensor/subset.h"

#include "base/rng.h"

#include <string.h>

/* The arrays, writable during construction. */
typedef struct builder {
    int32_t *size, *row, *rank, *active, *first, *cols, *row_of, *col_of, *cell, *prev, *mirror;
    int64_t *square;
} builder;

/* n int32 from the arena; at least one, so that no pointer is NULL. */
static int32_t *ints(acf_arena *mem, int64_t n) { return acf_arena_alloc(mem, (size_t)(n + 1) * sizeof(int32_t)); }

/* Ranks rows by decreasing size, ties by row; counts the rows of each step and finds where the steps begin. */
static void sort_rows(builder *w, acf_subset *u) {
    int64_t N = u->N, D = u->D;
    /* active[t] = rows with size > t. Rows of size s follow all the larger ones, which are active[s] in number. */
    memset(w->active, 0, (size_t)(D + 1) * sizeof(int32_t));
    for (int64_t i = 0; i < N; i++)
        if (w->size[i] > 0) w->active[w->size[i] - 1]++;
    for (int64_t t = D - 1; t >= 0; t--) w->active[t] += w->active[t + 1];
    memcpy(w->first, w->active,
           (size_t)(D + 1) * sizeof(int32_t)); /* while ranks are assigned: the next free one for each size */
    for (int64_t i = 0; i < N; i++) {
        int32_t rank = w->first[w->size[i]]++;
        w->rank[i] = rank;
        w->row[rank] = (int32_t)i;
    }
    u->T = u->steps = 0;
    for (int64_t t = 0; t <= D; t++) {
        w->first[t] = (int32_t)u->T;
        u->T += w->active[t];
        if (w->active[t]) u->steps = t + 1;
    }
}

static void fill_packed(builder *w, const acf_subset *u) {
    int64_t D = u->D;
    w->square[0] = 0;
    for (int64_t i = 0; i < u->N; i++) {
        int64_t n = w->size[i], k = w->rank[i];
        w->square[i + 1] = w->square[i] + n * n;
        for (int64_t t = 0; t < n; t++) {
            int64_t p = w->first[t] + k, col = w->cols[i * D + t];
            w->row_of[p] = (int32_t)i;
            w->col_of[p] = (int32_t)col;
            w->cell[p] = (int32_t)(i * D + col);
            w->prev[p] = t ? (int32_t)(w->first[t - 1] + k) : -1;
            w->mirror[p] = (int32_t)(w->first[n - 1 - t] + k);
        }
    }
}

static void publish(acf_subset *u, const builder *w) {
    u->size = w->size, u->row = w->row, u->rank = w->rank, u->active = w->active, u->first = w->first;
    u->cols = w->cols, u->row_of = w->row_of, u->col_of = w->col_of, u->cell = w->cell, u->prev = w->prev;
    u->mirror = w->mirror, u->square = w->square;
}

/* Computes all arrays from w->size and w->cols, which the caller has filled. */
static acf_status finish(acf_arena *mem, builder *w, acf_subset *u) {
    w->row = ints(mem, u->N), w->rank = ints(mem, u->N);
    w->active = ints(mem, u->D + 1), w->first = ints(mem, u->D + 1);
    w->square = acf_arena_alloc(mem, (size_t)(u->N + 1) * sizeof(int64_t));
    if (!w->row || !w->rank || !w->active || !w->first || !w->square) return ACF_EMEMORY;
    sort_rows(w, u);
    w->row_of = ints(mem, u->T), w->col_of = ints(mem, u->T), w->cell = ints(mem, u->T);
    w->prev = ints(mem, u->T), w->mirror = ints(mem, u->T);
    if (!w->row_of || !w->col_of || !w->cell || !w->prev || !w->mirror) return ACF_EMEMORY;
    fill_packed(w, u);
    u->S = w->square[u->N];
    publish(u, w);
    return ACF_OK;
}

acf_status acf_subset_fits(int64_t N, int64_t D) {
    /* Checks N and D. They are also checked alone: if one is 0 there are no cells, but there are arrays of N and of
     * D+1. */
    if (N < 0 || D < 0 || N > INT32_MAX - 1 || D > INT32_MAX - 1 || (D > 0 && N > (INT32_MAX - 1) / D))
        return acf_fail(ACF_ESHAPE,
                        "subset: %lld rows of %lld columns are more cells than a batch may have (2^31-1); "
                        "use a smaller batch",
                        (long long)N, (long long)D);
    return ACF_OK;
}

static acf_status start(acf_arena *mem, int64_t N, int64_t D, builder *w, acf_subset **out) {
    ACF_TRY(acf_subset_fits(N, D));
    acf_subset *u = acf_arena_alloc(mem, sizeof *u);
    w->size = ints(mem, N), w->cols = ints(mem, N * D);
    if (!u || !w->size || !w->cols) return ACF_EMEMORY;
    memset(u, 0, sizeof *u);
    u->N = N, u->D = D;
    *out = u;
    return ACF_OK;
}

acf_status acf_subset_build(acf_arena *mem, const uint8_t *b, const uint8_t *m, int64_t N, int64_t D,
                            const acf_subset **out) {
    builder w = {0};
    acf_subset *u;
    ACF_TRY(start(mem, N, D, &w, &u));
    for (int64_t i = 0; i < N; i++) {
        int32_t n = 0;
        for (int64_t j = 0; j < D; j++) {
            bool observed = b && b[i * D + j], present = !m || m[i * D + j];
            if (present && !observed) w.cols[i * D + n++] = (int32_t)j;
        }
        w.size[i] = n;
    }
    ACF_TRY(finish(mem, &w, u));
    *out = u;
    return ACF_OK;
}

static int64_t words_of(const acf_order *o, int64_t D) { return o->column ? o->columns : D; }

/* The sort key of a cell: the stage in the high half, 0 for given cells, and the random shuffle key in the low half. */
static void keys_of(uint64_t *key, uint32_t *word, const uint8_t *b, const acf_order *o, int64_t i, int64_t D) {
    const acf_rng_counter at = {.seed = o->seed,
                                .row = o->row_id ? o->row_id[i] : 0,
                                .stream = ACF_STREAM_ORDER,
                                .draw = o->now ? *o->now : o->draw};
    if (o->shuffle) acf_rng_words(at, words_of(o, D), word);
    for (int64_t j = 0; j < D; j++) {
        const int32_t column = o->column ? o->column[j] : (int32_t)j;
        key[j] =
            (uint64_t)(b && b[i * D + j] ? 0 : 1 + o->stage[column]) << 32 | (o->shuffle ? word[column] : (uint32_t)j);
    }
}

/* Sorts cols (n) by key, ties by column. n is some dozens, and without shuffling the columns are already in order. */
static void sort_columns(int32_t *cols, const uint64_t *key, int64_t n) {
    for (int64_t k = 1; k < n; k++) {
        const int32_t col = cols[k];
        int64_t at = k;
        for (; at > 0 && key[cols[at - 1]] > key[col]; at--) cols[at] = cols[at - 1];
        cols[at] = col;
    }
}

acf_status acf_subset_order(acf_arena *mem, const uint8_t *b, const uint8_t *m, const acf_order *o, int64_t N,
                            int64_t D, const acf_subset **out) {
    builder w = {0};
    acf_subset *u;
    ACF_TRY(start(mem, N, D, &w, &u));
    int32_t *place = ints(mem, N * D);
    const acf_mark mark = acf_arena_mark(mem);
    uint64_t *key = acf_arena_alloc(mem, (size_t)(D + 1) * sizeof *key);
    uint32_t *word = acf_arena_alloc(mem, (size_t)(words_of(o, D) + 1) * sizeof *word);
    if (!place || !key || !word) return ACF_EMEMORY;
    for (int64_t i = 0; i < N; i++) {
        int32_t n = 0;
        keys_of(key, word, b, o, i, D);
        for (int64_t j = 0; j < D; j++) {
            place[i * D + j] = -1;
            const bool left_out = o->modelled && b && b[i * D + j];
            if (!left_out && (!m || m[i * D + j])) w.cols[i * D + n++] = (int32_t)j;
        }
        sort_columns(w.cols + i * D, key, n);
        w.size[i] = n;
    }
    acf_arena_release(mem, mark);
    ACF_TRY(finish(mem, &w, u));
    for (int64_t p = 0; p < u->T; p++) place[u->cell[p]] = (int32_t)p;
    u->place = place;
    *out = u;
    return ACF_OK;
}

acf_status acf_subset_split(acf_arena *mem, const acf_subset *u, int parity, const acf_subset **out) {
    builder w = {0};
    acf_subset *v;
    int64_t D = u->D;
    ACF_ASSERT(parity == 0 || parity == 1);
    ACF_TRY(start(mem, u->N, D, &w, &v));
    for (int64_t i = 0; i < u->N; i++) {
        int32_t n = 0;
        for (int64_t t = parity; t < u->size[i]; t += 2) w.cols[i * D + n++] = u->cols[i * D + t];
        w.size[i] = n;
    }
    ACF_TRY(finish(mem, &w, v));
    int32_t *parent = ints(mem, v->T);
    if (!parent) return ACF_EMEMORY;
    for (int64_t i = 0; i < v->N; i++)
        for (int64_t t = 0; t < v->size[i]; t++)
            parent[acf_subset_at(v, i, t)] = (int32_t)acf_subset_at(u, i, 2 * t + parity);
    v->parent = parent;
    v->whole = u;
    v->parity = parity;
    *out = v;
    return ACF_OK;
}
