/* The output layer of categories on the GPU: see class_head.h; formulas in docs/math.md, 8.
 *
 * Workload: up to 300,000 elements, F = 64 to 512, 2 to some thousands of classes a column, 1 to some hundreds of
 * columns. Elements are grouped by column, in their order. A block multiplies TILE elements of one group with TILE
 * classes of that column at a time, in the device's precision; softmax and sums are float or double:
 *
 *     forward     logits of a tile, chunk of classes by chunk; the largest and the sum (in double) are updated online
 *     backward    logits again, as the gradient of a chunk; then either dh (a block has a tile, all chunks)
 *                 or dw and db (a block has a chunk and a piece of the tiles; pieces are added in order)
 *
 * Only the device knows how many tiles a column has. The grid covers the largest possible number, and each block
 * finds its tile. */
#include "ops/classes.cuh"
#include "ops/mma.cuh"

extern "C" {
#include "ops/class_head.h"
}

#define TILE 64
#define STEP 32        /* of the inner dimension, in shared memory */
#define PAD (TILE + 1) /* places columns of a tile in different banks */
#define SIDE 16        /* a block is SIDE x SIDE threads; each has 4 x 4 products, stride SIDE */
#define EACH 4
#define THREADS (SIDE * SIDE)
#define MOST_PIECES 64 /* pieces of the tiles, for dw */
#define WHOLE 0xffffffffu

/* The arguments of the kernels. */
typedef struct head {
    const int32_t *first, *count; /* (D) classes */
    const int32_t *begin;         /* (D+1) start of a column's elements in order */
    const int32_t *tile, *chunk;  /* (D+1) a column's first tile and first chunk of classes, cumulative */
    const int32_t *order;         /* (n) */
    const acf_real *h, *w, *b;    /* (n,F), (W,F), (W) */
    int64_t D, F;
} head;

/* ---- groups ---------------------------------------------------------------------------------------------------- */

static __device__ int32_t tiles_of(int32_t n) { return (n + TILE - 1) / TILE; }

/* size (D): one block per column. */
static __global__ void group_sizes(int32_t *size, const int32_t *__restrict__ column, int64_t n) {
    int32_t found = 0;
    for (int64_t p = threadIdx.x; p < n; p += blockDim.x) found += column[p] == (int32_t)blockIdx.x;
    found = acf_block_sum(found);
    if (threadIdx.x == 0) size[blockIdx.x] = found;
}

/* begin, tile, chunk (D+1) and order: block j fills column j's part, and block D the ends. */
static __global__ void group(int32_t *begin, int32_t *tile, int32_t *chunk, int32_t *order,
                             const int32_t *__restrict__ size, const int32_t *__restrict__ count,
                             const int32_t *__restrict__ column, int64_t n) {
    __shared__ int32_t warp[ACF_THREADS / 32];
    const int32_t j = (int32_t)blockIdx.x;
    const int lane = threadIdx.x % 32, k = threadIdx.x / 32;
    int32_t before = 0, tiles = 0, chunks = 0;
    for (int32_t i = (int32_t)threadIdx.x; i < j; i += ACF_THREADS)
        before += size[i], tiles += tiles_of(size[i]), chunks += tiles_of(count[i]);
    before = acf_block_sum(before), tiles = acf_block_sum(tiles), chunks = acf_block_sum(chunks);
    if (threadIdx.x == 0) begin[j] = before, tile[j] = tiles, chunk[j] = chunks;
    if (j + 1 == (int32_t)gridDim.x || size[j] == 0) return;
    for (int64_t p0 = 0; p0 < n; p0 += ACF_THREADS) { /* keeps the order: a scan over the block's threads */
        const int64_t p = p0 + threadIdx.x;
        const bool mine = p < n && column[p] == j;
        const unsigned all = __ballot_sync(WHOLE, mine);
        __syncthreads(); /* the previous iteration may still be reading */
        if (lane == 0) warp[k] = __popc(all);
        __syncthreads();
        int32_t at = before + __popc(all & ((1u << lane) - 1));
        for (int q = 0; q < ACF_THREADS / 32; q++) {
            if (q < k) at += warp[q];
            before += warp[q];
        }
        if (mine) order[at] = (int32_t)p;
    }
}

/* The j with first[j] <= x < first[j+1]; x < first[D]. */
static __device__ int32_t find(const int32_t *first, int64_t D, int32_t x) {
    int64_t low = 0, high = D;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (first[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return (int32_t)low;
}

/* ---- products of a tile ---------------------------------------------------------------------------------------- */

/* A tile: elements order[from .. from + rows) of column j, which has `classes` rows of w from `first` on. */
typedef struct tile_of {
    int32_t j, from, rows, first, classes;
} tile_of;

static __device__ tile_of tile_at(const head &g, int32_t j, int32_t number) {
    const int32_t from = g.begin[j] + number * TILE;
    return {j, from, min(TILE, g.begin[j + 1] - from), g.first[j], g.count[j]};
}

/* In shared memory: the two factors, or the fragments of tensor cores in the same memory; and the gradient of a
 * chunk's logits, class by element. */
typedef struct chip {
    union {
        struct {
            acf_real a[STEP][PAD], b[STEP][PAD];
        };
        acf_real sum[TILE][PAD];
    };
    acf_real d[TILE][PAD];
} chip;

/* Start of a lane's part of a (16,32) piece of the tile: eight warps share the tile, four down and two across. */
typedef struct fragment {
    int row, column, g, t;
} fragment;
static __device__ inline fragment fragment_of(void) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    return {16 * (warp % 4), 32 * (warp / 4), lane / 4, lane % 4};
}

/* acc[n] is the fragment of the n-th of four (16,8). */
static __device__ inline void multiply_tf32(acf_real acc[EACH][EACH], const acf_real (*a)[PAD],
                                            const acf_real (*b)[PAD]) {
    const fragment f = fragment_of();
    const int row = f.row + f.g, column = f.column + f.g;
    for (int s = f.t; s < STEP; s += 8) {
        const uint32_t x[4] = {as_tf32(a[s][row]), as_tf32(a[s][row + 8]), as_tf32(a[s + 4][row]),
                               as_tf32(a[s + 4][row + 8])};
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            float(&d)[4] = *(float(*)[4])acc[n];
            mma_tf32(d, x, as_tf32(b[s][column + 8 * n]), as_tf32(b[s + 4][column + 8 * n]));
        }
    }
}

static __device__ inline uint32_t pair(const acf_real (*x)[PAD], int s, int i) {
    return two_bf16(x[s][i], x[s + 1][i]);
}

static __device__ inline void multiply_bf16(acf_real acc[EACH][EACH], const acf_real (*a)[PAD],
                                            const acf_real (*b)[PAD]) {
    const fragment f = fragment_of();
    const int row = f.row + f.g, column = f.column + f.g;
    for (int s = 2 * f.t; s < STEP; s += 16) {
        const uint32_t x[4] = {pair(a, s, row), pair(a, s, row + 8), pair(a, s + 8, row), pair(a, s + 8, row + 8)};
#pragma unroll
        for (int n = 0; n < EACH; n++) {
            float(&d)[4] = *(float(*)[4])acc[n];
            mma_bf16(d, x, pair(b, s, column + 8 * n), pair(b, s + 8, column + 8 * n));
        }
    }
}

/* acc += aᵀ·b, (TILE,TILE) from STEP rows of both: in float as 4 x 4 products with stride SIDE, else as fragments
 * until settle. */
template <int P>
static __device__ inline void multiply(acf_real acc[EACH][EACH], const acf_real (*a)[PAD], const acf_real (*b)[PAD]) {
    if (P == ACF_PRECISION_TF32) return multiply_tf32(acc, a, b);
    if (P == ACF_PRECISION_BF16) return multiply_bf16(acc, a, b);
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    for (int s = 0; s < STEP; s++) {
        acf_real x[EACH], y[EACH];
#pragma unroll
        for (int r = 0; r < EACH; r++) x[r] = a[s][ty + SIDE * r], y[r] = b[s][tx + SIDE * r];
#pragma unroll
        for (int r = 0; r < EACH; r++)
#pragma unroll
            for (int c = 0; c < EACH; c++) acc[r][c] += x[r] * y[c];
    }
}

/* Converts the result of multiply in acc to 4 x 4 products with stride SIDE: fragments are written to shared memory
 * over the factors, and read again. A barrier precedes the next write to the factors. Every thread must call it. */
template <int P> static __device__ inline void settle(acf_real acc[EACH][EACH], chip *m) {
    if (P == ACF_PRECISION_FLOAT) return;
    const fragment f = fragment_of();
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    __syncthreads(); /* the factors have been read */
#pragma unroll
    for (int n = 0; n < EACH; n++)
#pragma unroll
        for (int k = 0; k < 4; k++) m->sum[f.row + f.g + 8 * (k / 2)][f.column + 8 * n + 2 * f.t + k % 2] = acc[n][k];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < EACH; r++)
#pragma unroll
        for (int c = 0; c < EACH; c++) acc[r][c] = m->sum[ty + SIDE * r][tx + SIDE * c];
}

/* to[s][i] = column f0 + s of the rows. Row i is from + i of x or, with `order`, the row that it lists. Zero
 * outside. */
static __device__ inline void load_rows(acf_real (*to)[PAD], const acf_real *x, const int32_t *order, int32_t from,
                                        int32_t rows, int64_t f0, int64_t F) {
    const int s = threadIdx.x % STEP;
    for (int i = threadIdx.x / STEP; i < TILE; i += THREADS / STEP) {
        const int64_t row = i < rows ? (order ? order[from + i] : from + i) : -1;
        to[s][i] = row >= 0 && f0 + s < F ? x[row * F + f0 + s] : 0;
    }
}

/* to[s][i] = column f0 + i of row s; rows as above. */
static __device__ inline void load_across(acf_real (*to)[PAD], const acf_real *x, const int32_t *order, int32_t from,
                                          int32_t rows, int64_t f0, int64_t F) {
    const int i = threadIdx.x % TILE;
    for (int s = threadIdx.x / TILE; s < STEP; s += THREADS / TILE) {
        const int64_t row = s < rows ? (order ? order[from + s] : from + s) : -1;
        to[s][i] = row >= 0 && f0 + i < F ? x[row * F + f0 + i] : 0;
    }
}

/* Logits of a tile's elements for the classes [c0, c0 + TILE) of its column: thread (ty,tx) has those of elements ty
 * + SIDE r and classes tx + SIDE c. */
template <int P>
static __device__ void tile_logits(chip *m, acf_real acc[EACH][EACH], const head &g, const tile_of &x, int32_t c0) {
    const int32_t classes = min(TILE, x.classes - c0);
    const int tx = threadIdx.x % SIDE;
    for (int r = 0; r < EACH; r++)
        for (int c = 0; c < EACH; c++) acc[r][c] = 0;
    for (int64_t f0 = 0; f0 < g.F; f0 += STEP) {
        __syncthreads(); /* the previous content may still be read */
        load_rows(m->a, g.h, g.order, x.from, x.rows, f0, g.F);
        load_rows(m->b, g.w, NULL, x.first + c0, classes, f0, g.F);
        __syncthreads();
        multiply<P>(acc, m->a, m->b);
    }
    settle<P>(acc, m);
    for (int c = 0; c < EACH; c++) {
        const acf_real bias = tx + SIDE * c < classes ? g.b[x.first + c0 + tx + SIDE * c] : 0;
        for (int r = 0; r < EACH; r++) acc[r][c] += bias;
    }
}

/* ---- log-probability ------------------------------------------------------------------------------------------- */

/* Saved by the forward for the backward, by element: the largest logit and Σ e^(logit - largest). */
typedef struct softmax {
    double *sum;   /* (n) */
    acf_real *top; /* (n) */
} softmax;

/* Reductions over the SIDE neighbouring threads that share an element, in a fixed order. */
template <typename T> static __device__ inline T side_max(T x) {
    for (int lane = SIDE / 2; lane > 0; lane /= 2) x = max(x, __shfl_xor_sync(WHOLE, x, lane));
    return x;
}
template <typename T> static __device__ inline T side_sum(T x) {
    for (int lane = SIDE / 2; lane > 0; lane /= 2) x += __shfl_xor_sync(WHOLE, x, lane);
    return x;
}

/* Updates largest, sum and, if the chunk contains it, the element's own logit with a chunk's logits. code: the class
 * within the column, or -1. */
static __device__ void take_chunk(acf_real *top, double *sum, double *own, const acf_real *acc, int32_t c0,
                                  int32_t classes, int32_t code) {
    const int tx = threadIdx.x % SIDE;
    acf_real most = *top;
    double more = 0;
    for (int c = 0; c < EACH; c++) {
        const int32_t k = c0 + tx + SIDE * c;
        if (k < classes && acc[c] > most) most = acc[c];
        if (k == code) *own = (double)acc[c];
    }
    most = side_max(most);
    for (int c = 0; c < EACH; c++)
        if (c0 + tx + SIDE * c < classes) more += exp((double)acc[c] - (double)most);
    more = side_sum(more);
    *sum = (*sum > 0 ? *sum * exp((double)*top - (double)most) : *sum) + more; /* top is unset at first */
    *top = most;
}

/* The class of element p within its column; records a fault if it is invalid. */
static __device__ int32_t code_of(const head &g, const tile_of &x, const int32_t *rows, const int32_t *row_of,
                                  int32_t p, acf_fault *fault, const char *op) {
    const int64_t code = (int64_t)rows[p] - x.first;
    if (code >= 0 && code < x.classes) return (int32_t)code;
    if (fault && threadIdx.x % SIDE == 0) acf_report(fault, op, ACF_FAULT_CODE, row_of[p], x.j, code, x.classes);
    return -1;
}

template <int P>
static __global__ void __launch_bounds__(THREADS)
    logp_fwd(acf_real *__restrict__ logp, softmax kept, head g, const int32_t *__restrict__ rows,
             const int32_t *__restrict__ row_of, acf_fault *fault, const char *op) {
    __shared__ chip m;
    if ((int32_t)blockIdx.x >= g.tile[g.D]) return;
    const int32_t j = find(g.tile, g.D, (int32_t)blockIdx.x);
    const tile_of x = tile_at(g, j, (int32_t)blockIdx.x - g.tile[j]);
    const int ty = threadIdx.x / SIDE;
    acf_real top[EACH], acc[EACH][EACH];
    double sum[EACH], own[EACH];
    int32_t code[EACH];
    for (int r = 0; r < EACH; r++) {
        const int i = ty + SIDE * r;
        top[r] = -INFINITY, sum[r] = own[r] = 0;
        code[r] = i < x.rows ? code_of(g, x, rows, row_of, g.order[x.from + i], fault, op) : -1;
    }
    for (int32_t c0 = 0; c0 < x.classes; c0 += TILE) {
        tile_logits<P>(&m, acc, g, x, c0);
        for (int r = 0; r < EACH; r++) take_chunk(&top[r], &sum[r], &own[r], acc[r], c0, x.classes, code[r]);
    }
    for (int r = 0; r < EACH; r++) {
        const int i = ty + SIDE * r;
        own[r] = side_sum(own[r]); /* one thread has it, the others 0 */
        if (threadIdx.x % SIDE || i >= x.rows) continue;
        const int32_t p = g.order[x.from + i];
        logp[p] = code[r] < 0 ? 0 : acf_real_from_cuda((own[r] - (double)top[r]) - log(sum[r]));
        if (kept.sum) kept.sum[p] = sum[r], kept.top[p] = top[r];
    }
}

/* m->d (class, element) = the gradient of the logits of a chunk: dlogp ([k = code] - softmax_k), zero outside. Every
 * thread must call it. */
template <int P>
static __device__ void chunk_gradient(chip *m, const head &g, const tile_of &x, int32_t c0, softmax kept,
                                      const acf_real *dlogp, const int32_t *rows) {
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    acf_real acc[EACH][EACH];
    tile_logits<P>(m, acc, g, x, c0);
    for (int r = 0; r < EACH; r++) {
        const int i = ty + SIDE * r;
        const int32_t p = i < x.rows ? g.order[x.from + i] : -1,
                      code = p < 0 ? -1 : code_of(g, x, rows, NULL, p, NULL, NULL);
        const double scale = code < 0 ? 0 : (double)dlogp[p], top = code < 0 ? 0 : (double)kept.top[p],
                     sum = code < 0 ? 1 : kept.sum[p];
        for (int c = 0; c < EACH; c++) {
            const int32_t k = c0 + tx + SIDE * c;
            const bool is_in = code >= 0 && k < x.classes;
            m->d[tx + SIDE * c][i] = is_in ? (acf_real)(scale * ((k == code) - exp((double)acc[r][c] - top) / sum)) : 0;
        }
    }
    __syncthreads();
}

/* dh of a tile's elements, which no other block writes. */
template <int P>
static __global__ void __launch_bounds__(THREADS, 3)
    logp_h_bwd(acf_real *__restrict__ dh, head g, softmax kept, const acf_real *__restrict__ dlogp,
               const int32_t *__restrict__ rows) {
    __shared__ chip m;
    if ((int32_t)blockIdx.x >= g.tile[g.D]) return;
    const int32_t j = find(g.tile, g.D, (int32_t)blockIdx.x);
    const tile_of x = tile_at(g, j, (int32_t)blockIdx.x - g.tile[j]);
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    for (int32_t c0 = 0; c0 < x.classes; c0 += TILE) {
        const int32_t classes = min(TILE, x.classes - c0);
        chunk_gradient<P>(&m, g, x, c0, kept, dlogp, rows);
        for (int64_t f0 = 0; f0 < g.F; f0 += TILE) {
            acf_real acc[EACH][EACH] = {{0}};
            for (int32_t k0 = 0; k0 < classes; k0 += STEP) {
                __syncthreads();
                load_across(m.b, g.w, NULL, x.first + c0 + k0, classes - k0, f0, g.F);
                __syncthreads();
                multiply<P>(acc, m.d + k0, m.b); /* classes after the last have gradient 0 */
            }
            settle<P>(acc, &m);
            for (int r = 0; r < EACH; r++)
                for (int c = 0; c < EACH; c++) {
                    const int64_t i = ty + SIDE * r, f = f0 + tx + SIDE * c;
                    if (i < x.rows && f < g.F) dh[g.order[x.from + i] * g.F + f] += acc[r][c];
                }
        }
    }
}

/* Block (chunk,piece): the sum over every gridDim.y-th tile of the chunk's column, to part (pieces,chunks,TILE,F+1);
 * the last entry is b's gradient. */
template <int P>
static __global__ void __launch_bounds__(THREADS, 3)
    logp_w_bwd(acf_real *__restrict__ part, head g, softmax kept, const acf_real *__restrict__ dlogp,
               const int32_t *__restrict__ rows) {
    __shared__ chip m;
    if ((int32_t)blockIdx.x >= g.chunk[g.D]) return;
    const int32_t j = find(g.chunk, g.D, (int32_t)blockIdx.x), c0 = ((int32_t)blockIdx.x - g.chunk[j]) * TILE;
    const int32_t tiles = g.tile[j + 1] - g.tile[j], classes = min(TILE, g.count[j] - c0);
    const int64_t F = g.F, width = F + 1;
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    acf_real *to = part + ((int64_t)blockIdx.y * gridDim.x + blockIdx.x) * TILE * width;
    for (int64_t i = threadIdx.x; i < classes * width; i += THREADS) to[i] = 0;
    for (int32_t n = (int32_t)blockIdx.y; n < tiles; n += (int32_t)gridDim.y) {
        const tile_of x = tile_at(g, j, n);
        chunk_gradient<P>(&m, g, x, c0, kept, dlogp, rows); /* its barriers also order the zeros above */
        if (threadIdx.x < (unsigned)classes) {
            acf_real sum = 0;
            for (int i = 0; i < TILE; i++) sum += m.d[threadIdx.x][i];
            to[threadIdx.x * width + F] += sum;
        }
        for (int64_t f0 = 0; f0 < F; f0 += TILE) {
            acf_real acc[EACH][EACH] = {{0}};
            for (int32_t i0 = 0; i0 < x.rows; i0 += STEP) {
                __syncthreads();
                load_across(m.b, g.h, g.order, x.from + i0, x.rows - i0, f0, F);
                for (int i = threadIdx.x; i < STEP * TILE; i += THREADS)
                    m.a[i / TILE][i % TILE] = m.d[i % TILE][i0 + i / TILE];
                __syncthreads();
                multiply<P>(acc, m.a, m.b);
            }
            settle<P>(acc, &m);
            for (int r = 0; r < EACH; r++)
                for (int c = 0; c < EACH; c++) {
                    const int64_t k = ty + SIDE * r, f = f0 + tx + SIDE * c;
                    if (k < classes && f < F) to[k * width + f] += acc[r][c]; /* always the same thread */
                }
        }
        __syncthreads();
    }
}

/* dw (W,F) and db (W), NULL = not needed, += the pieces of columns j0 + blockIdx.y, in order. */
static __global__ void add_pieces(acf_real *dw, acf_real *db, const acf_real *__restrict__ part, int64_t pieces, head g,
                                  int64_t chunks, int64_t j0) {
    const int64_t j = j0 + blockIdx.y, width = g.F + 1, n = g.count[j] * width;
    for (int64_t i = acf_thread(); i < n; i += (int64_t)gridDim.x * blockDim.x) {
        const acf_cell at = acf_cell_of(i, width);
        const int64_t row = g.first[j] + at.row;
        acf_real sum = 0;
        for (int64_t q = 0; q < pieces; q++)
            sum += part[((q * chunks + g.chunk[j]) * TILE + at.row) * width + at.column];
        if (at.column < g.F && dw) dw[row * g.F + at.column] += sum;
        if (at.column == g.F && db) db[row] += sum;
    }
}

/* ---- logits and probabilities ---------------------------------------------------------------------------------- */

/* y (n,M), zero on entry: the logits. */
template <int P>
static __global__ void __launch_bounds__(THREADS) scores_fwd(acf_real *__restrict__ y, head g, int64_t M) {
    __shared__ chip m;
    if ((int32_t)blockIdx.x >= g.tile[g.D]) return;
    const int32_t j = find(g.tile, g.D, (int32_t)blockIdx.x);
    const tile_of x = tile_at(g, j, (int32_t)blockIdx.x - g.tile[j]);
    const int ty = threadIdx.x / SIDE, tx = threadIdx.x % SIDE;
    for (int32_t c0 = 0; c0 < x.classes; c0 += TILE) {
        acf_real acc[EACH][EACH];
        tile_logits<P>(&m, acc, g, x, c0);
        for (int r = 0; r < EACH; r++)
            for (int c = 0; c < EACH; c++) {
                const int32_t i = ty + SIDE * r, k = c0 + tx + SIDE * c;
                if (i < x.rows && k < x.classes) y[g.order[x.from + i] * M + k] = acc[r][c];
            }
    }
}

/* Softmax in place: one warp per element. A NaN makes all of them NaN. */
static __global__ void probs_fwd(acf_real *y, const int32_t *__restrict__ column, const int32_t *__restrict__ count,
                                 int64_t D, int64_t n, int64_t M) {
    const int64_t p = acf_thread() / 32;
    if (p >= n || column[p] < 0 || column[p] >= D) return;
    const int32_t classes = count[column[p]], lane = threadIdx.x % 32;
    acf_real *row = y + p * M, top = -INFINITY;
    double sum = 0;
    for (int32_t k = lane; k < classes; k += 32) top = row[k] > top ? row[k] : top;
    for (int d = 16; d > 0; d /= 2) top = fmaxf(top, __shfl_xor_sync(WHOLE, top, d));
    for (int32_t k = lane; k < classes; k += 32) sum += exp((double)row[k] - (double)top);
    sum = acf_warp_sum(sum);
    for (int32_t k = lane; k < classes; k += 32) row[k] = (acf_real)(exp((double)row[k] - (double)top) / sum);
}

/* ---- operations ------------------------------------------------------------------------------------------------ */

/* Saved by the forward; in the step's host memory, arrays in device memory. */
typedef struct saved {
    head g;
    softmax kept;
    int64_t tiles, chunks;   /* capacity for tiles; the number of chunks */
    int64_t most;            /* classes of a column */
    bool apart;              /* no two columns share a row of w */
    acf_precision precision; /* of the forward, whose logits the backward computes again */
} saved;

/* A kernel's instance for a precision. */
#define LAUNCH(kernel, precision, grid, stream, ...)                                                                   \
    do {                                                                                                               \
        if ((precision) == ACF_PRECISION_FLOAT)                                                                        \
            kernel<ACF_PRECISION_FLOAT><<<grid, THREADS, 0, stream>>>(__VA_ARGS__);                                    \
        else if ((precision) == ACF_PRECISION_TF32)                                                                    \
            kernel<ACF_PRECISION_TF32><<<grid, THREADS, 0, stream>>>(__VA_ARGS__);                                     \
        else                                                                                                           \
            kernel<ACF_PRECISION_BF16><<<grid, THREADS, 0, stream>>>(__VA_ARGS__);                                     \
    } while (0)

/* Groups the elements and fills s; on the tape. */
static acf_status prepare(acf_tape *t, const acf_node *n, saved *s) {
    const acf_class_head_attrs *a = (const acf_class_head_attrs *)n->attr;
    const int64_t D = a->plan.D, rows = n->in[0]->dim[0];
    const int32_t *classes = acf_cuda_classes(t, &a->classes);
    int32_t *size = acf_tape_ints(t, D + 1), *ends = acf_tape_ints(t, 3 * (D + 1)), *order = acf_tape_ints(t, rows + 1);
    ACF_TRY(acf_tape_status(t));
    s->tiles = acf_ceil_div(rows, TILE) + D;
    s->chunks = s->most = 0, s->apart = true, s->precision = t->dev->precision;
    for (int64_t j = 0, end = 0; j < D; j++) {
        const int64_t first = a->classes.first[j], count = a->classes.count[j];
        s->chunks += acf_ceil_div(count, TILE);
        s->most = acf_max(s->most, count);
        s->apart &= !count || first >= end;
        end = acf_max(end, first + count);
    }
    s->g = {classes,        classes + D,    ends, ends + D + 1, ends + 2 * (D + 1), order, n->in[0]->data,
            n->in[1]->data, n->in[2]->data, D,    a->plan.F};
    cudaStream_t stream = acf_cuda_stream(t->dev);
    if (D) group_sizes<<<(unsigned)D, ACF_THREADS, 0, stream>>>(size, a->at.column, rows);
    group<<<(unsigned)D + 1, ACF_THREADS, 0, stream>>>(ends, ends + D + 1, ends + 2 * (D + 1), order, size, classes + D,
                                                       a->at.column, rows);
    return ACF_LAUNCHED("class_head");
}

static acf_status logp_forward(acf_tape *t, acf_node *n) {
    acf_class_head_attrs *a = (acf_class_head_attrs *)n->attr;
    const int64_t T = n->in[0]->dim[0];
    saved *s = (saved *)acf_arena_alloc(t->host, sizeof *s);
    if (!s) return ACF_EMEMORY;
    *s = {};
    ACF_TRY(prepare(t, n, s));
    if (n->save) s->kept = {(double *)acf_tape_reals(t, 2 * T), acf_tape_reals(t, T)};
    ACF_TRY(acf_tape_status(t));
    a->saved = s;
    cudaStream_t stream = acf_cuda_stream(t->dev);
    ACF_CUDA(
        cudaMemsetAsync(n->out[0]->data, 0, (size_t)T * sizeof(acf_real), stream)); /* also after the last element */
    LAUNCH(logp_fwd, s->precision, (unsigned)acf_max(s->tiles, 1), stream, n->out[0]->data, s->kept, s->g, a->rows,
           a->at.row, acf_cuda_fault(t->dev), n->op->name);
    return ACF_LAUNCHED("class_logp");
}

/* dw and db. Columns that share rows of w are added one after the other. */
static acf_status add_weights(acf_tape *t, const saved *s, acf_real *dw, acf_real *db, const acf_real *dlogp,
                              const int32_t *rows) {
    const int64_t width = s->g.F + 1,
                  capacity = ((int64_t)1 << 24) / (s->chunks * TILE * width); /* 64 MB at most, except for the first */
    const int64_t wanted = acf_ceil_div(4 * acf_cuda_processors(t->dev), s->chunks);
    const int64_t pieces = acf_max(acf_min(acf_min(wanted, capacity), MOST_PIECES), 1);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *part = acf_tape_reals(t, pieces * s->chunks * TILE * width);
    ACF_TRY(acf_tape_status(t));
    cudaStream_t stream = acf_cuda_stream(t->dev);
    const dim3 all((unsigned)s->chunks, (unsigned)pieces);
    LAUNCH(logp_w_bwd, s->precision, all, stream, part, s->g, s->kept, dlogp, rows);
    const dim3 grid(acf_blocks(acf_min(s->most, 256) * width, ACF_THREADS), s->apart ? (unsigned)s->g.D : 1);
    for (int64_t j = 0; j < s->g.D; j += grid.y)
        add_pieces<<<grid, ACF_THREADS, 0, stream>>>(dw, db, part, pieces, s->g, s->chunks, j);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("class_logp");
}

static acf_status logp_backward(acf_tape *t, acf_node *n) {
    const acf_class_head_attrs *a = (const acf_class_head_attrs *)n->attr;
    const saved *s = (const saved *)a->saved;
    acf_real *dh = acf_grad(t, n->in[0]), *dw = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    const acf_real *dlogp = n->out[0]->grad;
    ACF_TRY(acf_tape_status(t));
    if (!s->chunks) return ACF_OK;
    if (dh)
        LAUNCH(logp_h_bwd, s->precision, (unsigned)s->tiles, acf_cuda_stream(t->dev), dh, s->g, s->kept, dlogp,
               a->rows);
    ACF_TRY(ACF_LAUNCHED("class_logp"));
    return dw || db ? add_weights(t, s, dw, db, dlogp, a->rows) : ACF_OK;
}

static acf_status scores_forward(acf_tape *t, acf_node *n) {
    const acf_class_head_attrs *a = (const acf_class_head_attrs *)n->attr;
    const acf_tensor *y = n->out[0];
    const int64_t rows = y->dim[0], M = y->dim[1];
    saved s = {};
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(prepare(t, n, &s));
    cudaStream_t stream = acf_cuda_stream(t->dev);
    ACF_CUDA(cudaMemsetAsync(y->data, 0, (size_t)(rows * M) * sizeof(acf_real), stream));
    LAUNCH(scores_fwd, s.precision, (unsigned)acf_max(s.tiles, 1), stream, y->data, s.g, M);
    if (a->probs)
        probs_fwd<<<acf_blocks(32 * rows, ACF_THREADS), ACF_THREADS, 0, stream>>>(y->data, a->at.column, s.g.count,
                                                                                  s.g.D, rows, M);
    acf_arena_release(t->mem, mark);
    return ACF_LAUNCHED("class_scores");
}

ACF_CUDA_OP(class_logp, logp_forward, logp_backward);
ACF_CUDA_OP(class_scores, scores_forward, NULL);
