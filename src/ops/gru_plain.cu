/* The gated recurrent unit in float, for any H, one launch per step: see gru_kernels.h; formulas in docs/math.md, 5.
 *
 * It serves sizes without another kernel and is the reference of the others. It is not fast. */
#include "ops/gru_fast.h"
#include "ops/gru_pieces.cuh"

#define SLICES 8 /* threads that share a column, so that its loads do not wait for each other */

/* dbx and dbh += the sums of parts (P,4H), always in the same order: slice by slice. A block has 32 columns. */
__global__ void add_parts(float *dbx, float *dbh, const float *parts, int P, int H) {
    __shared__ float slice[SLICES][32];
    const int j = blockIdx.x * 32 + threadIdx.x % 32, s = threadIdx.x / 32, k = j / H, u = j % H; /* n, r, z, b_n */
    float v = 0;
    if (j < 4 * H)
#pragma unroll 4
        for (int p = s; p < P; p += SLICES) v += parts[(int64_t)p * 4 * H + j];
    slice[s][threadIdx.x % 32] = v;
    __syncthreads();
    if (s > 0 || j >= 4 * H) return;
    for (int i = 1; i < SLICES; i++) v += slice[i][threadIdx.x];
    if (dbx && k < 3) dbx[(k == 0 ? 2 : k - 1) * H + u] += v;
    if (dbh && k > 0) dbh[(k - 1) * H + u] += v;
}

cudaError_t acf_gru_add_parts(float *dbx, float *dbh, const float *parts, int P, int64_t H, cudaStream_t stream) {
    add_parts<<<(unsigned)((4 * H + 31) / 32), 32 * SLICES, 0, stream>>>(dbx, dbh, parts, P, (int)H);
    return cudaGetLastError();
}

#define TILE 32

/* tile (TILE,TILE) of rows of p: element (i, k) = p[i·ld + k] where i < rows and k < cols, else 0. 256 threads. */
__device__ void plain_load(float (*to)[TILE + 1], const float *p, int64_t ld, int rows, int cols) {
    for (int i = threadIdx.x; i < TILE * TILE; i += 256) {
        int r = i / TILE, k = i % TILE;
        to[r][k] = r < rows && k < cols ? p[r * ld + k] : 0;
    }
}

__global__ void plain_forward(const __grid_constant__ acf_gru_forward f, int t) {
    __shared__ float hs[TILE][TILE + 1], ws[3][TILE][TILE + 1];
    int H = (int)f.s.H, n = f.s.active[t], k0 = blockIdx.x * TILE, u0 = blockIdx.y * TILE, col = threadIdx.x % TILE;
    int64_t first = f.s.first[t];
    const float *past = t ? f.h + f.s.first[t - 1] * (int64_t)H : f.h0;
    float acc[3][4] = {};
    if (k0 >= n) return;
    for (int k = 0; past && k < H; k += TILE) {
        plain_load(hs, past + (int64_t)k0 * H + k, H, n - k0, H - k);
        for (int q = 0; q < 3; q++) plain_load(ws[q], f.wh + ((int64_t)q * H + u0) * H + k, H, H - u0, H - k);
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            for (int q = 0; q < 3; q++)
                for (int r = 0; r < 4; r++) acc[q][r] += hs[threadIdx.x / TILE + 8 * r][i] * ws[q][col][i];
        __syncthreads();
    }
    int u = u0 + col;
    for (int r = 0; r < 4; r++) {
        int k = k0 + threadIdx.x / TILE + 8 * r;
        if (k >= n || u >= H) continue;
        int64_t p = first + k;
        float *gates = f.gates ? (float *)f.gates + p * 4 * H + u : NULL, a[3] = {0, 0, 0}; /* r, z, n */
        for (int q = 0; q < 3; q++) {
            if (f.projected) a[q] = gates[(q + 1) % 3 * H];
            for (int i = 0; f.x && i < f.I; i++) a[q] += f.x[p * f.I + i] * f.wx[((int64_t)q * H + u) * f.I + i];
            if (f.cond)
                a[q] += f.cond[((int64_t)(f.s.row ? f.s.row[k] : k) * 3 + q) * H + u];
            else if (f.bx)
                a[q] += f.bx[q * H + u];
        }
        float old = past ? past[(int64_t)k * H + u] : 0, bn = acc[NEW][r] + f.bh[2 * H + u];
        float gr = 1 / (1 + expf(-(a[0] + acc[R][r] + f.bh[u]))),
              gz = 1 / (1 + expf(-(a[1] + acc[Z][r] + f.bh[H + u])));
        float gn = tanhf(a[2] + gr * bn), h = gn + gz * (old - gn);
        f.h[p * H + u] = h;
        if (f.h16) ((__nv_bfloat16 *)f.h16)[p * H + u] = __float2bfloat16(h);
        if (f.save) gates[0] = gn, gates[H] = gr, gates[2 * H] = gz, gates[3 * H] = bn;
    }
}

/* Turns the gates of a step into gradients. carry (N,H): in, the next step's gradient; out, z·dh. */
__global__ void plain_gates_back(const __grid_constant__ acf_gru_backward f, float *carry, int t) {
    int H = (int)f.s.H, n = f.s.active[t], later = t + 1 < f.s.D ? f.s.active[t + 1] : 0;
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, k = i / H, u = i % H;
    if (k >= n) return;
    int64_t p = f.s.first[t] + k;
    float *g = (float *)f.gates + p * 4 * H + u, gn = g[0], r = g[H], z = g[2 * H], bn = g[3 * H];
    float old = t ? f.h[(f.s.first[t - 1] + k) * H + u] : f.h0 ? f.h0[k * H + u] : 0;
    float dh = f.dh[p * H + u] + (k < later ? carry[i] : 0), dn = dh * (1 - z) * (1 - gn * gn),
          dr = dn * bn * r * (1 - r);
    float dz = dh * (old - gn) * z * (1 - z);
    g[0] = dn, g[H] = dr, g[2 * H] = dz, g[3 * H] = dn * r;
    carry[i] = dh * z;
    if (f.past) ((float *)f.past)[p * H + u] = old;
    if (f.dcond) {
        float *d = f.dcond + (int64_t)(f.s.row ? f.s.row[k] : k) * 3 * H + u;
        d[0] += dr, d[H] += dz, d[2 * H] += dn;
    }
}

/* carry (n,H) += gradients of [r z b_n] · wh */
__global__ void plain_carry(const __grid_constant__ acf_gru_backward f, float *carry, int t) {
    __shared__ float gs[TILE][TILE + 1], ws[TILE][TILE + 1];
    int H = (int)f.s.H, n = f.s.active[t], k0 = blockIdx.x * TILE, u0 = blockIdx.y * TILE, col = threadIdx.x % TILE;
    const float *g = (float *)f.gates + (f.s.first[t] + (int64_t)k0) * 4 * H + H;
    float acc[4] = {};
    if (k0 >= n) return;
    for (int k = 0; k < 3 * H; k += TILE) {
        plain_load(gs, g + k, 4 * H, n - k0, 3 * H - k);
        plain_load(ws, f.wh + (int64_t)k * H + u0, H, 3 * H - k, H - u0);
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            for (int r = 0; r < 4; r++) acc[r] += gs[threadIdx.x / TILE + 8 * r][i] * ws[i][col];
        __syncthreads();
    }
    for (int r = 0; r < 4; r++) {
        int k = k0 + threadIdx.x / TILE + 8 * r;
        if (k < n && u0 + col < H) carry[(int64_t)k * H + u0 + col] += acc[r];
    }
}

#define PLAIN_PARTS 128

/* parts (PLAIN_PARTS,4H): sums of the gates' gradients over a stretch of elements each. */
__global__ void plain_sums(const __grid_constant__ acf_gru_backward f, float *parts) {
    int H4 = 4 * (int)f.s.H;
    int64_t T = f.s.first[f.s.D], j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x,
            each = (T + PLAIN_PARTS - 1) / PLAIN_PARTS;
    int64_t begin = blockIdx.y * each, end = begin + each < T ? begin + each : T;
    if (j >= H4) return;
    float v = 0;
    for (int64_t p = begin; p < end; p++) v += ((float *)f.gates)[p * H4 + j];
    parts[blockIdx.y * (int64_t)H4 + j] = v;
}

__global__ void plain_add(float *to, const float *from, const int32_t *active, int64_t H) {
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < active[0] * H) to[i] += from[i];
}

/* Any width. */
__global__ void plain_tail(float *p, int64_t width, const int32_t *first, int64_t D, int64_t T) {
    int64_t end = T * width;
    for (int64_t i = first[D] * width + blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < end;
         i += (int64_t)gridDim.x * blockDim.x)
        p[i] = 0;
}

__global__ void plain_tail16(__nv_bfloat16 *p, int64_t width, const int32_t *first, int64_t D, int64_t T) {
    int64_t end = T * width;
    for (int64_t i = first[D] * width + blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < end;
         i += (int64_t)gridDim.x * blockDim.x)
        p[i] = __float2bfloat16(0);
}

cudaError_t acf_gru_forward_plain(const acf_gru_forward *f, cudaStream_t stream) {
    const acf_gru_shape *s = &f->s;
    dim3 grid((unsigned)((s->N + TILE - 1) / TILE), (unsigned)((s->H + TILE - 1) / TILE));
    plain_tail<<<256, 256, 0, stream>>>(f->h, s->H, s->first, s->D, s->T);
    if (f->h16) plain_tail16<<<256, 256, 0, stream>>>((__nv_bfloat16 *)f->h16, s->H, s->first, s->D, s->T);
    if (f->save) plain_tail<<<256, 256, 0, stream>>>((float *)f->gates, 4 * s->H, s->first, s->D, s->T);
    for (int t = 0; t < s->D; t++) plain_forward<<<grid, 256, 0, stream>>>(*f, t);
    return cudaGetLastError();
}

static unsigned blocks_of(int64_t n) { return (unsigned)((n + 255) / 256); }

cudaError_t acf_gru_backward_plain(const acf_gru_backward *b, cudaStream_t stream) {
    const acf_gru_shape *s = &b->s;
    float *carry = b->scratch, *parts = carry + s->N * s->H;
    dim3 grid((unsigned)((s->N + TILE - 1) / TILE), (unsigned)((s->H + TILE - 1) / TILE));
    plain_tail<<<256, 256, 0, stream>>>((float *)b->gates, 4 * s->H, s->first, s->D, s->T);
    if (b->past) plain_tail<<<256, 256, 0, stream>>>((float *)b->past, s->H, s->first, s->D, s->T);
    for (int t = (int)s->D - 1; t >= 0; t--) {
        plain_gates_back<<<blocks_of(s->N * s->H), 256, 0, stream>>>(*b, carry, t);
        if (t || b->dh0) plain_carry<<<grid, 256, 0, stream>>>(*b, carry, t);
    }
    if (b->dh0) plain_add<<<blocks_of(s->N * s->H), 256, 0, stream>>>(b->dh0, carry, s->active, s->H);
    if (!b->dbx && !b->dbh) return cudaGetLastError();
    plain_sums<<<dim3(blocks_of(4 * s->H), PLAIN_PARTS), 256, 0, stream>>>(*b, parts);
    return acf_gru_add_parts(b->dbx, b->dbh, parts, PLAIN_PARTS, s->H, stream);
}
