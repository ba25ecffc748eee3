/* Launches of the recurrent loops, the layout of the weights, and sums of gradients. See rnn_loop_kernels.h. */
#include "ops/rnn_loop_stream.cuh"

cudaError_t acf_loop_forward_narrow(const acf_loop *f, cudaStream_t stream);
cudaError_t acf_loop_backward_narrow(const acf_loop *f, cudaStream_t stream);
cudaError_t acf_loop_forward_plain(const acf_loop *f, cudaStream_t stream);
cudaError_t acf_loop_backward_plain(const acf_loop *f, cudaStream_t stream);
bool acf_loop_forward_fits(const acf_loop *f);
bool acf_loop_backward_fits(const acf_loop *f);

/* ---- layout of the weights --------------------------------------------------------------------------------------- */

enum form {
    BY_ROWS,  /* (K/16, groups, gates): w (gates·units, K) */
    BY_UNITS, /* (groups, K/16): the same of one gate, all of K together */
    TURNED,   /* (K/16, groups): w (K, units) */
    ROTATED   /* as TURNED, with rows r, z, n for gradients n, r, z */
};

struct Piece {
    const float *w;
    int at, ksteps, groups, gates; /* at: in fragments */
    int rows, ld;                  /* of w; rows beyond are zeros */
    enum form form;
};

#define PIECES (4 * NARROW_LAYERS + 4)
struct Pieces {
    Piece piece[PIECES];
};

__device__ __forceinline__ float weight_at(const Piece &q, int k, int gate, int unit) {
    if (q.form == TURNED || q.form == ROTATED) {
        int row = q.form == TURNED ? k : k < q.ld ? 2 * q.ld + k : k - q.ld;
        return row < q.rows ? q.w[(int64_t)row * q.ld + unit] : 0;
    }
    int row = gate * q.groups * 16 + unit;
    return row < q.rows ? q.w[(int64_t)row * q.ld + k] : 0;
}

/* 16 bytes per thread: the operand of one lane of mma.m16n8k16 for a group of 16 units; see rnn_loop_stream.cuh. */
__global__ void image_loop(unsigned char *image, const __grid_constant__ Pieces all) {
    const Piece &q = all.piece[blockIdx.y];
    int lane = threadIdx.x & 31, n = q.ksteps * q.groups * q.gates;
    for (int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < n; i += gridDim.x * blockDim.x / 32) {
        int gate = i % q.gates, group = i / q.gates % q.groups, kstep = i / q.gates / q.groups;
        if (q.form == BY_UNITS) kstep = i % q.ksteps, group = i / q.ksteps;
        float v[8];
#pragma unroll
        for (int e = 0; e < 8; e++) {
            int j = e / 4, half = e / 2 % 2, k = kstep * 16 + half * 8 + lane % 4 * 2 + e % 2;
            v[e] = weight_at(q, k, gate, group * 16 + lane / 8 * 4 + 2 * j + lane / 4 % 2);
        }
        store((bf16 *)(image + ((int64_t)q.at + i) * FRAGMENT + lane * 16), pack<bf16, 8>(v));
    }
}

extern "C" int64_t acf_loop_image_bytes(const acf_loop *f) { return (int64_t)stream_of(f).fragments * FRAGMENT; }

extern "C" cudaError_t acf_loop_image_launch(void *image, const acf_loop *f, cudaStream_t stream) {
    Stream g = stream_of(f);
    Pieces all = {};
    int n = 0, H = (int)f->s.H, F = (int)f->F, O = (int)f->O;
    if (f->layers > NARROW_LAYERS) return cudaErrorInvalidValue;
    for (int l = 0; l < f->layers; l++) {
        const acf_loop_layer &y = f->layer[l];
        all.piece[n++] = {y.wh, g.ahead.wh[l], g.H, g.H, 3, 3 * H, H, BY_ROWS};
        all.piece[n++] = {y.wh, g.back.wh[l], 3 * g.H, g.H, 1, 3 * H, H, TURNED};
        if (l == 0) continue;
        all.piece[n++] = {y.wx, g.ahead.wx[l], g.H, g.H, 3, 3 * H, H, BY_ROWS};
        all.piece[n++] = {y.wx, g.back.wx[l], 3 * g.H, g.H, 1, 3 * H, H, ROTATED};
    }
    all.piece[n++] = {f->w1, g.ahead.w1, g.H, g.F, 1, F, H, BY_ROWS};
    all.piece[n++] = {f->w1, g.back.w1, g.F, g.H, 1, F, H, TURNED};
    all.piece[n++] = {f->w2, g.ahead.w2, g.F, g.O, 1, O, F, BY_UNITS};
    all.piece[n++] = {f->w2, g.back.w2, g.O, g.F, 1, O, F, TURNED};
    image_loop<<<dim3(48, (unsigned)n), 256, 0, stream>>>((unsigned char *)image, all);
    return cudaGetLastError();
}

/* ---- sums of gradients ------------------------------------------------------------------------------------------- */

#define PARTS ACF_LOOP_PARTS

/* dcond (N,3H) += the gates' gradients of a row over its steps: one block per rank. */
template <typename G>
__global__ void loop_row_sums(const __grid_constant__ acf_gru_shape s, const G *gates, float *dcond) {
    int64_t k = blockIdx.x, H = s.H;
    for (int64_t j = threadIdx.x; j < 3 * H; j += blockDim.x) {
        float v = 0;
        for (int t = 0; t < s.D && k < s.active[t]; t++) v += (float)gates[(s.first[t] + k) * 4 * H + j];
        dcond[((s.row ? s.row[k] : k) * 3 + (j / H + 2) % 3) * H + j % H] += v; /* n, r, z to r, z, n */
    }
}

/* parts (PARTS,W): sums of x (T,W), each over a range of elements. */
template <typename G>
__global__ void loop_column_sums(const __grid_constant__ acf_gru_shape s, const G *x, int64_t W, float *parts) {
    int64_t T = s.first[s.D], j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, each = (T + PARTS - 1) / PARTS;
    int64_t begin = blockIdx.y * each, end = begin + each < T ? begin + each : T;
    if (j >= W) return;
    float v = 0;
#pragma unroll 4
    for (int64_t p = begin; p < end; p++) v += (float)x[p * W + j];
    parts[blockIdx.y * W + j] = v;
}

__global__ void loop_add_parts(const float *parts, int64_t H, float *dbx, float *dbh) {
    int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x, k = j / H, u = j % H; /* n, r, z, b_n */
    if (j >= 4 * H) return;
    float v = 0;
#pragma unroll 8
    for (int p = 0; p < PARTS; p++) v += parts[p * 4 * H + j];
    if (dbx && k < 3) dbx[(k + 2) % 3 * H + u] += v;
    if (dbh && k > 0) dbh[(k - 1) * H + u] += v;
}

/* out (W) += the sums of parts. */
__global__ void loop_add_columns(const float *parts, int64_t W, float *out) {
    int64_t j = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (j >= W) return;
    float v = 0;
#pragma unroll 8
    for (int p = 0; p < PARTS; p++) v += parts[p * W + j];
    out[j] += v;
}

template <typename G>
static void columns(const acf_gru_shape *s, const G *x, int64_t W, float *out, float *scratch, cudaStream_t stream) {
    unsigned blocks = (unsigned)((W + 127) / 128);
    if (!out) return;
    loop_column_sums<<<dim3(blocks, PARTS), 128, 0, stream>>>(*s, x, W, scratch);
    loop_add_columns<<<blocks, 128, 0, stream>>>(scratch, W, out);
}

template <typename G>
static void sums(const acf_gru_shape *s, const G *gates, float *dcond, float *dbx, float *dbh, float *scratch,
                 cudaStream_t stream) {
    unsigned blocks = (unsigned)((4 * s->H + 127) / 128);
    if (dcond && s->N) loop_row_sums<<<(unsigned)s->N, 256, 0, stream>>>(*s, gates, dcond);
    if (!dbx && !dbh) return;
    loop_column_sums<<<dim3(blocks, PARTS), 128, 0, stream>>>(*s, gates, 4 * s->H, scratch);
    loop_add_parts<<<blocks, 128, 0, stream>>>(scratch, s->H, dbx, dbh);
}

extern "C" cudaError_t acf_loop_sums_launch(const acf_loop *f, int l, float *dcond, float *dbx, float *dbh,
                                            float *scratch, bool narrow, cudaStream_t stream) {
    if (narrow)
        sums(&f->s, (const bf16 *)f->layer[l].gates, dcond, dbx, dbh, scratch, stream);
    else
        sums(&f->s, (const float *)f->layer[l].gates, dcond, dbx, dbh, scratch, stream);
    return cudaGetLastError();
}

extern "C" cudaError_t acf_loop_head_sums_launch(const acf_loop *f, float *db1, float *db2, float *scratch, bool narrow,
                                                 cudaStream_t stream) {
    if (narrow) {
        columns(&f->s, (const bf16 *)f->dhidden, f->F, db1, scratch, stream);
        columns(&f->s, (const bf16 *)f->dout, f->O, db2, scratch, stream);
    } else {
        columns(&f->s, (const float *)f->dhidden, f->F, db1, scratch, stream);
        columns(&f->s, (const float *)f->dout, f->O, db2, scratch, stream);
    }
    return cudaGetLastError();
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

static bool is_hopper(void) {
    static int major = 0;
    int device = 0;
    if (!major && (cudaGetDevice(&device) || cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device)))
        return false;
    return major == 9;
}

extern "C" bool acf_loop_is_narrow(const acf_loop *f) {
    int64_t H = f->s.H, F = f->F;
    if (H < 16 || H % 16 || H > NARROW_UNITS || F < 16 || F % 16 || F > NARROW_UNITS) return false;
    if (f->layers < 1 || f->layers > NARROW_LAYERS || f->O > 1024) return false;
    return acf_loop_forward_fits(f) && acf_loop_backward_fits(f) && is_hopper();
}

extern "C" int64_t acf_loop_scratch(const acf_loop *f, bool narrow) {
    return narrow ? 0 : f->s.N * (f->layers * f->s.H + 4 * f->s.H + f->F + f->O + 1);
}

extern "C" cudaError_t acf_loop_forward_launch(const acf_loop *f, bool narrow, cudaStream_t stream) {
    if (!f->s.N || !f->s.D) return cudaSuccess;
    return narrow ? acf_loop_forward_narrow(f, stream) : acf_loop_forward_plain(f, stream);
}

extern "C" cudaError_t acf_loop_backward_launch(const acf_loop *f, bool narrow, cudaStream_t stream) {
    if (!f->s.N || !f->s.D) return cudaSuccess;
    return narrow ? acf_loop_backward_narrow(f, stream) : acf_loop_backward_plain(f, stream);
}
