/* Ragged masks to the packed layout, on the GPU: see subset.h.
 *
 * Workload: N = 512 to 65,536 rows, D = 2 to 1,000 columns, at the beginning of every training step, and one split
 * per coupling. There are three launches (four for a sequence), whose shapes depend only on N, D and the capacity T:
 *
 *     list     one warp per row: how many columns it models, and which
 *     rank     one block: a counting sort by size, ties by row
 *     pack     one thread per (step, rank): the maps of its element
 *
 * One block sorts, because the work is short (a batch has some thousand rows) and every row's rank depends on all
 * others. */
#include "tensor/subset.cuh"

#include "base/rng.cuh"

extern "C" {
#include "tensor/tape.h"
}

#define WARPS 32 /* of the block that sorts */

/* The arrays, writable during construction. */
typedef struct builder {
    int32_t *size, *row, *rank, *active, *first, *cols, *row_of, *col_of, *cell, *prev, *mirror, *parent, *place;
    int64_t *square;
    int32_t *bins; /* (WARPS,D+1) scratch of the sort */
    int64_t N, D, T;
} builder;

/* ---- list ------------------------------------------------------------------------------------------------------ */

static __global__ void list_columns(builder w, const uint8_t *b, const uint8_t *m) {
    const int64_t i = acf_thread() / 32;
    const int lane = threadIdx.x % 32;
    if (i >= w.N) return;
    int32_t n = 0;
    for (int64_t j0 = 0; j0 < w.D; j0 += 32) {
        const int64_t j = j0 + lane, at = i * w.D + j;
        const bool modelled = j < w.D && !(b && b[at]) && !(m && !m[at]);
        const unsigned all = __ballot_sync(0xffffffffu, modelled);
        if (modelled) w.cols[i * w.D + n + __popc(all & ((1u << lane) - 1))] = (int32_t)j;
        if (j < w.D) w.place[at] = -1;
        n += __popc(all);
    }
    if (lane == 0) w.size[i] = n;
}

/* The same for a half: every other column of the whole. */
static __global__ void list_half(builder w, const int32_t *size, const int32_t *cols, int parity) {
    const int64_t at = acf_thread();
    if (at >= w.N * w.D) return;
    const int64_t i = at / w.D, t = at % w.D;
    const int32_t n = (size[i] - parity + 1) / 2;
    if (t < n) w.cols[at] = cols[i * w.D + 2 * t + parity];
    if (t == 0) w.size[i] = n;
    w.place[at] = -1;
}

/* ---- sequences ------------------------------------------------------------------------------------------------- */

#define ABSENT UINT64_MAX /* after all other keys: a stage is below 2^31 */

/* Sort keys of a row's cells (acf_subset_order), ABSENT for missing ones. One thread for four columns, whose words
 * are one block of random bits. */
static __global__ void order_keys(builder w, uint64_t *__restrict__ key, const uint8_t *__restrict__ b,
                                  const uint8_t *__restrict__ m, acf_order o) {
    const int64_t blocks = (w.D + 3) / 4, n = acf_thread();
    if (n >= w.N * blocks) return;
    const int64_t i = n / blocks, j0 = n % blocks * 4;
    const uint64_t row = o.row_id ? o.row_id[i] : 0;
    const uint32_t draw = o.now ? *o.now : o.draw;
    philox4x32_ctr_t word = {};
    for (int q = 0; q < 4 && j0 + q < w.D; q++) {
        const int64_t j = j0 + q, at = i * w.D + j;
        const int32_t column = o.column ? o.column[j] : (int32_t)j;
        const bool given = b && b[at];
        if (o.shuffle && (q == 0 || o.column))
            word = acf_rng_bits_cuda({o.seed, row, ACF_STREAM_ORDER, (uint32_t)(column / 4), draw});
        const uint64_t stage = given ? 0 : (uint64_t)(1 + o.stage[column]);
        key[at] = (m && !m[at]) || (given && o.modelled) ? ABSENT
                                                         : stage << 32 | (o.shuffle ? word.v[column % 4] : (uint32_t)j);
        w.place[at] = -1;
    }
}

/* Sorts cols by key, ties by column: each cell counts those before it. One thread per cell, because rows have some
 * dozens. */
static __global__ void list_ordered(builder w, const uint64_t *__restrict__ key) {
    const int64_t at = acf_thread();
    if (at >= w.N * w.D) return;
    const int64_t i = at / w.D, j = at % w.D;
    const uint64_t own = key[at], *row = key + i * w.D;
    int32_t before = 0, present = 0;
    for (int64_t q = 0; q < w.D; q++) {
        before += row[q] < own || (row[q] == own && q < j);
        present += row[q] != ABSENT;
    }
    if (own != ABSENT) w.cols[i * w.D + before] = (int32_t)j;
    if (j == 0) w.size[i] = present;
}

/* ---- rank ------------------------------------------------------------------------------------------------------ */

/* Inclusive sum over the block's threads, in their order; *total is the whole. Every thread must call it. */
static __device__ int32_t block_scan(int32_t x, int32_t *total) {
    __shared__ int32_t warp[WARPS];
    const int lane = threadIdx.x % 32, k = threadIdx.x / 32;
    for (int d = 1; d < 32; d *= 2) {
        int32_t y = __shfl_up_sync(0xffffffffu, x, d);
        if (lane >= d) x += y;
    }
    __syncthreads(); /* the previous call may still be reading */
    if (lane == 31) warp[k] = x;
    __syncthreads();
    int32_t before = 0, all = 0;
    for (int j = 0; j < WARPS; j++) {
        if (j < k) before += warp[j];
        all += warp[j];
    }
    *total = all;
    return before + x;
}

/* Rows are accepted in order as long as they fit into T. The first that does not, and all after it, model nothing. */
static __device__ void drop_rows(const builder &w, int32_t *left_out) {
    int32_t before = 0, dropped = 0;
    for (int64_t i0 = 0; i0 < w.N; i0 += blockDim.x) {
        const int64_t i = i0 + threadIdx.x;
        int32_t total, n = i < w.N ? w.size[i] : 0, sum = before + block_scan(n, &total);
        if (n && sum > w.T) w.size[i] = 0, dropped++;
        before += total;
    }
    if (dropped) atomicAdd(left_out, dropped);
    __syncthreads();
}

/* active and first from the bins, which hold each warp's rows by size. Then bins[k] becomes the start of warp k's
 * rows of that size, after all larger ones and after those of earlier warps. */
static __device__ void count_steps(const builder &w) {
    int32_t *bins = w.bins;
    const int64_t D = w.D;
    for (int64_t s = threadIdx.x; s <= D; s += blockDim.x) {
        int32_t sum = 0;
        for (int k = 0; k < WARPS; k++) {
            int32_t n = bins[k * (D + 1) + s];
            bins[k * (D + 1) + s] = sum;
            sum += n;
        }
        w.first[s] = sum; /* at first the number of rows of size s */
    }
    __syncthreads();
    /* active[t] = rows larger than t: sums from the top, one block width at a time. */
    int32_t larger = 0;
    for (int64_t s0 = D; s0 >= 0; s0 -= blockDim.x) {
        const int64_t s = s0 - threadIdx.x;
        int32_t total, n = s >= 0 ? w.first[s] : 0, up_to = block_scan(n, &total);
        if (s >= 0) {
            w.active[s] = larger + up_to - n;
            for (int k = 0; k < WARPS; k++) bins[k * (D + 1) + s] += larger + up_to - n;
        }
        larger += total;
    }
    __syncthreads();
    int32_t before = 0;
    for (int64_t t0 = 0; t0 <= D; t0 += blockDim.x) {
        const int64_t t = t0 + threadIdx.x;
        int32_t total, n = t <= D ? w.active[t] : 0, up_to = block_scan(n, &total);
        if (t <= D) w.first[t] = before + up_to - n;
        before += total;
    }
    __syncthreads();
}

/* Each warp has a contiguous run of rows and processes 32 at a time, so that the order of rows is kept. */
static __global__ void __launch_bounds__(32 * WARPS) rank_rows(builder w, int32_t *left_out) {
    const int lane = threadIdx.x % 32, k = threadIdx.x / 32;
    const int64_t per = (w.N + 32 * WARPS - 1) / (32 * WARPS) * 32, from = k * per, to = min(from + per, w.N);
    int32_t *bin = w.bins + k * (w.D + 1);
    for (int64_t j = threadIdx.x; j < WARPS * (w.D + 1); j += blockDim.x) w.bins[j] = 0;
    for (int64_t i = threadIdx.x; i <= w.N; i += blockDim.x) w.square[i] = i * w.D * w.D;
    if (w.T < w.N * w.D) drop_rows(w, left_out);
    __syncthreads();
    for (int64_t i = from + lane; i < to; i += 32) atomicAdd(&bin[w.size[i]], 1);
    __syncthreads();
    count_steps(w);
    for (int64_t i0 = from; i0 < to; i0 += 32) {
        const int64_t i = i0 + lane;
        const int32_t n = i < to ? w.size[i] : -1;
        const unsigned same = __match_any_sync(0xffffffffu, n), before = same & ((1u << lane) - 1);
        if (n >= 0) {
            const int32_t rank = bin[n] + __popc(before);
            w.rank[i] = rank;
            w.row[rank] = (int32_t)i;
        }
        __syncwarp();
        if (n >= 0 && before == 0) bin[n] += __popc(same);
        __syncwarp();
    }
}

/* ---- pack ------------------------------------------------------------------------------------------------------ */

/* Thread (t,k) makes element t of the row of rank k, at first[t] + k: neighbouring threads write neighbouring
 * elements. There are as many threads as cells, so thread p also clears the maps at p if that element does not
 * exist. whole_first and whole_rank are those of the subset that was split; NULL: none. */
static __global__ void pack(builder w, const int32_t *whole_first, const int32_t *whole_rank, int parity) {
    const int64_t p0 = acf_thread();
    if (p0 >= w.N * w.D) return;
    const int64_t t = p0 / w.N, k = p0 % w.N;
    if (p0 < w.T && p0 >= w.first[w.D]) {
        w.row_of[p0] = w.col_of[p0] = w.cell[p0] = w.prev[p0] = w.mirror[p0] = -1;
        if (w.parent) w.parent[p0] = -1;
    }
    if (k >= w.active[t]) return;
    const int32_t p = w.first[t] + (int32_t)k, i = w.row[k], n = w.size[i], col = w.cols[i * w.D + t];
    w.row_of[p] = i;
    w.col_of[p] = col;
    w.cell[p] = (int32_t)(i * w.D + col);
    w.prev[p] = t ? w.first[t - 1] + (int32_t)k : -1;
    w.mirror[p] = w.first[n - 1 - t] + (int32_t)k;
    w.place[i * w.D + col] = p;
    if (w.parent) w.parent[p] = whole_first[2 * t + parity] + whole_rank[i];
}

/* ---- host side ------------------------------------------------------------------------------------------------- */

/* n ints, or one more, so that no pointer is NULL; the tape has failed if there is no memory. */
static int32_t *ints(acf_tape *t, int64_t n) { return acf_tape_ints(t, n + 1); }

static acf_status start(acf_tape *t, const acf_subset *u, builder *w) {
    const int64_t N = u->N, D = u->D, T = u->T;
    *w = {};
    w->N = N, w->D = D, w->T = T;
    w->size = ints(t, N), w->row = ints(t, N), w->rank = ints(t, N), w->active = ints(t, D + 1),
    w->first = ints(t, D + 1);
    w->cols = ints(t, N * D), w->place = ints(t, N * D);
    w->row_of = ints(t, T), w->col_of = ints(t, T), w->cell = ints(t, T), w->prev = ints(t, T), w->mirror = ints(t, T);
    if (u->whole) w->parent = ints(t, T);
    w->square = (int64_t *)acf_tape_ints(t, 2 * (N + 1));
    w->bins = ints(t, WARPS * (D + 1));
    return acf_tape_status(t);
}

/* Ranks and maps, once size and cols are filled. */
static acf_status finish(acf_tape *t, const builder *w, acf_subset *u) {
    cudaStream_t stream = acf_cuda_stream(t->dev);
    const acf_subset *v = u->whole;
    rank_rows<<<1, 32 * WARPS, 0, stream>>>(*w, acf_cuda_left_out(t->dev));
    pack<<<acf_blocks(w->N * w->D, ACF_THREADS), ACF_THREADS, 0, stream>>>(*w, v ? v->first : NULL, v ? v->rank : NULL,
                                                                           u->parity);
    ACF_TRY(ACF_LAUNCHED("subset"));
    u->S = w->N * w->D * w->D, u->steps = w->D;
    u->size = w->size, u->row = w->row, u->rank = w->rank, u->active = w->active, u->first = w->first;
    u->cols = w->cols, u->row_of = w->row_of, u->col_of = w->col_of, u->cell = w->cell, u->prev = w->prev;
    u->mirror = w->mirror, u->parent = w->parent, u->square = w->square, u->place = w->place;
    return ACF_OK;
}

acf_status acf_cuda_subset_build(acf_tape *t, const uint8_t *b, const uint8_t *m, acf_subset *u) {
    builder w;
    ACF_TRY(start(t, u, &w));
    list_columns<<<acf_blocks(32 * u->N, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(w, b, m);
    return finish(t, &w, u);
}

acf_status acf_cuda_subset_order(acf_tape *t, const uint8_t *b, const uint8_t *m, const acf_order *o, acf_subset *u) {
    cudaStream_t stream = acf_cuda_stream(t->dev);
    builder w;
    ACF_TRY(start(t, u, &w));
    acf_mark mark = acf_arena_mark(t->mem);
    uint64_t *key = (uint64_t *)acf_tape_ints(t, 2 * u->N * u->D);
    ACF_TRY(acf_tape_status(t));
    order_keys<<<acf_blocks(u->N * acf_ceil_div(u->D, 4), ACF_THREADS), ACF_THREADS, 0, stream>>>(w, key, b, m, *o);
    list_ordered<<<acf_blocks(u->N * u->D, ACF_THREADS), ACF_THREADS, 0, stream>>>(w, key);
    acf_arena_release(t->mem, mark);
    if (u->D == 0) ACF_CUDA(cudaMemsetAsync(w.size, 0, (size_t)u->N * sizeof *w.size, stream));
    return finish(t, &w, u);
}

acf_status acf_cuda_subset_split(acf_tape *t, acf_subset *half) {
    const acf_subset *u = half->whole;
    builder w;
    ACF_TRY(start(t, half, &w));
    list_half<<<acf_blocks(u->N * u->D, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(w, u->size, u->cols,
                                                                                                 half->parity);
    return finish(t, &w, half);
}
