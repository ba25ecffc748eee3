/* Rows as sequences of tokens, on the GPU: see tokens.h. Tokens behind the last of a subset have slot -1 and an
 * embedding of zeros.
 *
 * Workload: n = 1e3 to 6e4 tokens of W = 32 to 512 numbers and some tens to hundreds of slots: bound by memory. The
 * gradients of the tables are sums by slot. A warp has its own table in shared memory, 32 columns wide, and goes
 * through some hundred tokens in their order; a second launch adds up the warps' tables. Tables that do not fit are
 * summed by sorting (gather.cuh). */
#include "ops/classes.cuh"
#include "ops/gather.cuh"

extern "C" {
#include "ops/tokens.h"
}

/* ---- inputs of tokens -------------------------------------------------------------------------------------------- */

/* a.slot and a.cell of all tokens; classes (2,C) is first, then count; slots of reals end at `reals`. */
static __global__ void inputs_fwd(acf_token_inputs_attrs a, const int32_t *__restrict__ kind,
                                  const int32_t *__restrict__ prev, const int32_t *__restrict__ row_of,
                                  const int32_t *__restrict__ col_of, const int32_t *__restrict__ place,
                                  const int32_t *__restrict__ classes, int32_t reals) {
    const int32_t K = (int32_t)a.columns.reals, C = (int32_t)a.columns.classes.D;
    ACF_EACH(i, a.n) {
        const int32_t p = a.token ? a.token[i] : (int32_t)i;
        int32_t slot = p < 0 || row_of[p] < 0 ? -1 : 0, cell = -1;
        const int32_t before = slot < 0 ? -1 : prev[p];
        if (before >= 0) {
            const int32_t row = row_of[before], k = kind[col_of[before]];
            if (k >= 0) {
                slot = 1 + k + (a.columns.apart && !a.given[place[before]] ? K : 0);
                cell = row * K + k;
            } else {
                const int32_t j = -1 - k, code = a.codes[row * C + j];
                if (code >= 0 && code < classes[C + j]) slot = reals + classes[j] + code;
            }
        }
        a.slot[i] = slot, a.cell[i] = cell;
    }
}

static acf_status inputs_forward(acf_tape *t, acf_node *n) {
    const acf_token_inputs_attrs *a = (const acf_token_inputs_attrs *)n->attr;
    const acf_token_columns *c = &a->columns;
    const int32_t *classes = c->classes.D ? acf_cuda_classes(t, &c->classes) : NULL;
    ACF_TRY(acf_tape_status(t));
    inputs_fwd<<<acf_each_blocks(a->n), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        *a, c->kind, a->s->prev, a->s->row_of, a->s->col_of, a->s->cell, classes,
        (int32_t)(1 + (c->apart ? 2 : 1) * c->reals));
    return ACF_LAUNCHED("token_inputs");
}

ACF_CUDA_OP(token_inputs, inputs_forward, NULL);

/* ---- places of tokens -------------------------------------------------------------------------------------------- */

static __global__ void places_fwd(int32_t *__restrict__ to, const int32_t *__restrict__ row_of,
                                  const int32_t *__restrict__ col_of, const int32_t *__restrict__ column,
                                  const int32_t *__restrict__ place, int64_t T, int64_t D) {
    ACF_EACH(e, T) to[e] = row_of[e] < 0 ? -1 : place[row_of[e] * D + column[col_of[e]]];
}

static acf_status places_forward(acf_tape *t, acf_node *n) {
    const acf_token_places_attrs *a = (const acf_token_places_attrs *)n->attr;
    places_fwd<<<acf_each_blocks(a->u->T), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        a->place, a->u->row_of, a->u->col_of, a->column, a->s->place, a->u->T, a->s->D);
    return ACF_LAUNCHED("token_places");
}

ACF_CUDA_OP(token_places, places_forward, NULL);

/* ---- embeddings -------------------------------------------------------------------------------------------------- */

static __global__ void embed_fwd(acf_real *__restrict__ y, const acf_real *__restrict__ v,
                                 const acf_real *__restrict__ a, const acf_real *__restrict__ b, acf_told told,
                                 int64_t n, int64_t W) {
    ACF_EACH(i, n * W) {
        const acf_cell at = acf_cell_of(i, W);
        const int64_t slot = told.slot[at.row], cell = told.cell[at.row];
        acf_real value = slot < 0 ? 0 : b[slot * W + at.column];
        if (cell >= 0) value += v[cell] * a[slot * W + at.column];
        y[i] = value;
    }
}

static acf_status embed_forward(acf_tape *t, acf_node *n) {
    const acf_token_embed_attrs *a = (const acf_token_embed_attrs *)n->attr;
    const acf_tensor *v = n->in[0], *b = n->in[2];
    const int64_t W = b->dim[1];
    embed_fwd<<<acf_each_blocks(a->n * W), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
        n->out[0]->data, v ? v->data : NULL, n->in[1]->data, b->data, a->told, a->n, W);
    return ACF_LAUNCHED("token_embed");
}

/* dv: one warp per token. Values differ by cell, so no two tokens add to the same one. */
static __global__ void values_bwd(acf_real *__restrict__ dv, const acf_real *__restrict__ dy,
                                  const acf_real *__restrict__ a, acf_told told, int64_t n, int64_t W) {
    const int64_t p = acf_thread() / 32;
    const int lane = threadIdx.x % 32;
    if (p >= n || told.cell[p] < 0) return;
    const acf_real *row = a + told.slot[p] * W;
    acf_real sum = 0;
    for (int64_t c = lane; c < W; c += 32) sum += dy[p * W + c] * row[c];
    sum = acf_warp_sum(sum);
    if (lane == 0) dv[told.cell[p]] += sum;
}

#define AT_ONCE 32      /* rows of dy that are loaded together */
#define TABLE_ROWS 384  /* of both tables at most, in shared memory: 48 KB */
#define PIECE_TOKENS 64 /* of a warp, at least */

/* piece (pieces,A+B,W): the sums by slot over tokens [y per, (y+1) per) of x dy (the first A rows) and of dy (the B
 * rows after them), columns [32 x, 32 x + 32). A block is one warp; each lane has one column. */
static __global__ void __launch_bounds__(32)
    slot_sums(acf_real *__restrict__ piece, const acf_real *__restrict__ dy, const acf_real *__restrict__ v,
              acf_told told, int64_t n, int64_t W, int A, int B, int64_t per) {
    extern __shared__ acf_real table[]; /* (A+B,32) */
    const int lane = threadIdx.x;
    const int64_t c = (int64_t)blockIdx.x * 32 + lane, from = blockIdx.y * per, to = min(from + per, n);
    for (int r = 0; r < A + B; r++) table[r * 32 + lane] = 0;
    int32_t slot = -1, cell = -1;
    acf_real x = 0;
    if (from + lane < to) slot = told.slot[from + lane], cell = told.cell[from + lane];
    for (int64_t p0 = from; p0 < to; p0 += 32) {
        const int32_t slots = slot, cells = cell; /* of this token and the 31 beside it, one per lane */
        x = cells >= 0 ? v[cells] : 0;
        slot = cell = -1;
        /* the next ones are being loaded */
        if (p0 + 32 + lane < to) slot = told.slot[p0 + 32 + lane], cell = told.cell[p0 + 32 + lane];
        for (int q0 = 0; q0 < 32; q0 += AT_ONCE) {
            acf_real g[AT_ONCE];
#pragma unroll
            for (int q = 0; q < AT_ONCE; q++) g[q] = p0 + q0 + q < to && c < W ? dy[(p0 + q0 + q) * W + c] : 0;
#pragma unroll
            for (int q = 0; q < AT_ONCE; q++) {
                const int s = __shfl_sync(0xffffffffu, slots, q0 + q);
                const bool real = __shfl_sync(0xffffffffu, cells, q0 + q) >= 0;
                const acf_real value = __shfl_sync(0xffffffffu, x, q0 + q);
                if (s >= 0) table[(A + s) * 32 + lane] += g[q];
                if (real && s < A) table[s * 32 + lane] += value * g[q];
            }
        }
    }
    for (int r = 0; c < W && r < A + B; r++) piece[((int64_t)blockIdx.y * (A + B) + r) * W + c] = table[r * 32 + lane];
}

/* da (A,W) and db (B,W) += their pieces, in a fixed order; NULL = not needed. */
static __global__ void add_pieces(acf_real *da, acf_real *db, const acf_real *__restrict__ piece, int64_t pieces,
                                  int64_t A, int64_t B, int64_t W) {
    const int64_t i = acf_thread(), n = (A + B) * W;
    acf_real sum = 0;
    if (i >= n) return;
#pragma unroll 8
    for (int64_t q = 0; q < pieces; q++) sum += piece[q * n + i];
    if (i < A * W)
        da[i] += sum;
    else if (db)
        db[i - A * W] += sum;
}

/* Rows of dy times the value, and their slots, -1 where there is none. */
static __global__ void scaled_rows(acf_real *__restrict__ scaled, int32_t *__restrict__ slot,
                                   const acf_real *__restrict__ dy, const acf_real *__restrict__ v, acf_told told,
                                   int64_t n, int64_t W) {
    ACF_EACH(i, n * W) {
        const acf_cell at = acf_cell_of(i, W);
        const int32_t cell = told.cell[at.row];
        scaled[i] = cell < 0 ? 0 : v[cell] * dy[i];
        if (at.column == 0) slot[at.row] = cell < 0 ? -1 : told.slot[at.row];
    }
}

static acf_status sums_by_sorting(acf_tape *t, acf_real *da, acf_real *db, const acf_real *dy, const acf_real *v,
                                  acf_told told, int64_t n, const acf_tensor *a, const acf_tensor *b) {
    const int64_t W = b->dim[1];
    if (db) ACF_TRY(acf_cuda_gather_back(t, db, dy, told.slot, n, b->dim[0], W));
    if (!da) return ACF_OK;
    int32_t *slot = acf_tape_ints(t, n);
    acf_real *scaled = acf_tape_reals(t, n * W);
    ACF_TRY(acf_tape_status(t));
    scaled_rows<<<acf_each_blocks(n * W), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(scaled, slot, dy, v, told, n, W);
    ACF_TRY(ACF_LAUNCHED("token_embed"));
    return acf_cuda_gather_back(t, da, scaled, slot, n, a->dim[0], W);
}

/* da and db, as embed_backward needs them. */
static acf_status tables_backward(acf_tape *t, acf_real *da, acf_real *db, const acf_real *dy, const acf_real *v,
                                  acf_told told, int64_t n, const acf_tensor *a, const acf_tensor *b) {
    const int64_t W = b->dim[1], A = da ? a->dim[0] : 0, B = b->dim[0];
    const int64_t capacity = (int64_t)(ACF_SCRATCH / sizeof(acf_real)) / ((A + B) * W);
    if (A + B > TABLE_ROWS || capacity < 1) return sums_by_sorting(t, da, db, dy, v, told, n, a, b);
    /* Pieces are written and read again: their number stays small against dy. */
    const int64_t pieces = acf_max(acf_min(acf_ceil_div(n, acf_max(PIECE_TOKENS, 2 * (A + B))), capacity), 1);
    acf_real *piece = (acf_real *)acf_cuda_scratch(t->dev);
    cudaStream_t stream = acf_cuda_stream(t->dev);
    slot_sums<<<dim3(acf_blocks(W, 32), (unsigned)pieces), 32, (size_t)(A + B) * 32 * sizeof *piece, stream>>>(
        piece, dy, v, told, n, W, (int)A, (int)B, acf_ceil_div(n, pieces));
    add_pieces<<<acf_blocks((A + B) * W, ACF_THREADS), ACF_THREADS, 0, stream>>>(da, db, piece, pieces, A, B, W);
    return ACF_LAUNCHED("token_embed");
}

static acf_status embed_backward(acf_tape *t, acf_node *n) {
    const acf_token_embed_attrs *at = (const acf_token_embed_attrs *)n->attr;
    const acf_tensor *v = n->in[0], *a = n->in[1], *b = n->in[2];
    const int64_t W = b->dim[1];
    const acf_real *dy = n->out[0]->grad;
    acf_real *dv = v ? acf_grad(t, n->in[0]) : NULL, *da = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(acf_tape_status(t));
    if (at->n == 0 || W == 0) return ACF_OK;
    if (!v) da = NULL; /* no value was read */
    if (dv) {
        values_bwd<<<acf_blocks(32 * at->n, ACF_THREADS), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(
            dv, dy, a->data, at->told, at->n, W);
        ACF_TRY(ACF_LAUNCHED("token_embed"));
    }
    if (da || db) ACF_TRY(tables_backward(t, da, db, dy, v ? v->data : NULL, at->told, at->n, a, b));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

ACF_CUDA_OP(token_embed, embed_forward, embed_backward);
