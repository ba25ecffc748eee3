/* Shared by the GPU code of the families with one small matrix per batch row: submatrix, lu, lu_packed, lowrank. See
 * rowmat.h.
 *
 * A matrix belongs to a group of G threads. Up to ACF_ROWMAT_SMALL columns the group is a warp, several of them in a
 * block. The matrix is then copied to shared memory with rows an odd number of words apart, so that lanes can go along
 * rows or columns. Above, the group is a block, which works in global memory. Groups are numbered by rank, as on the
 * CPU: neighbours read neighbours, and the largest matrices begin first.
 *
 *     shared memory of a group:   [ matrices, where it is a warp | vectors of D ]
 *
 * Its size depends on D alone, as do launches. Vectors of a block must fit into 48 KB: D below about 2,400. */
#ifndef ACF_OPS_ROWMAT_CUH
#define ACF_OPS_ROWMAT_CUH

#include "ops/ops.cuh"

#define ACF_ROWMAT_SMALL 64
#define ACF_ROWMAT_LARGE 256   /* threads of a group above */
#define ACF_SHARED_BYTES 49152 /* the default limit of a block */

/* ---- host side --------------------------------------------------------------------------------------------------- */

typedef struct acf_groups {
    bool small;
    unsigned blocks, threads;
    size_t bytes; /* of shared memory a block */
    int per;      /* reals of it a group */
} acf_groups;

/* A group for each of N rows, with copies of `matrices` matrices (only where groups are warps) and of vectors. */
static inline acf_groups acf_groups_for(int64_t N, int64_t D, int matrices, int vectors) {
    const bool small = D <= ACF_ROWMAT_SMALL;
    const int64_t per = vectors * D + (small ? matrices * D * (D | 1) : 0),
                  bytes = acf_max(per, 1) * (int64_t)sizeof(acf_real);
    const int64_t groups = small ? acf_max(acf_min(ACF_SHARED_BYTES / bytes, 4), 1) : 1;
    return {small, acf_blocks(N, (int)groups), (unsigned)(groups * (small ? 32 : ACF_ROWMAT_LARGE)),
            (size_t)(groups * bytes), (int)per};
}

/* Launches kernel<G>(...) for such groups. */
#define ACF_GROUP_LAUNCH(kernel, g, stream, ...)                                                                       \
    do {                                                                                                               \
        if ((g).small)                                                                                                 \
            kernel<32><<<(g).blocks, (g).threads, (g).bytes, stream>>>(__VA_ARGS__);                                   \
        else                                                                                                           \
            kernel<ACF_ROWMAT_LARGE><<<(g).blocks, (g).threads, (g).bytes, stream>>>(__VA_ARGS__);                     \
    } while (0)

/* ---- groups ------------------------------------------------------------------------------------------------------ */

template <int G> static __device__ inline int acf_lane(void) { return (int)threadIdx.x % G; }
/* The group's number, which is the rank of its row. */
template <int G> static __device__ inline int64_t acf_group(void) {
    return (int64_t)blockIdx.x * (blockDim.x / G) + threadIdx.x / G;
}
template <int G> static __device__ inline void acf_group_sync(void) {
    if (G == 32)
        __syncwarp();
    else
        __syncthreads();
}

/* The group's part of shared memory. */
template <int G> static __device__ inline acf_real *acf_group_shared(int per) {
    extern __shared__ acf_real acf_shared_reals[];
    return acf_shared_reals + threadIdx.x / G * per;
}

/* The maximum of the group's numbers, in every thread; all must call it. */
template <int G> static __device__ inline unsigned acf_group_max(unsigned x) {
    x = __reduce_max_sync(0xffffffffu, x);
    if constexpr (G > 32) {
        __shared__ unsigned warp[G / 32];
        __syncthreads(); /* the previous call may still be reading */
        if (threadIdx.x % 32 == 0) warp[threadIdx.x / 32] = x;
        __syncthreads();
        for (int w = 0; w < G / 32; w++) x = max(x, warp[w]);
    }
    return x;
}
template <int G> static __device__ inline unsigned acf_group_min(unsigned x) { return ~acf_group_max<G>(~x); }

/* ---- rows of a batch --------------------------------------------------------------------------------------------- */

/* The row of a group: its rank, number and size, and where its matrix begins. */
typedef struct acf_batch_row {
    int64_t rank, i, at;
    int n;
} acf_batch_row;
static __device__ inline acf_batch_row acf_row_of_rank(const acf_subset &u, int64_t rank) {
    const int64_t i = u.row[rank];
    return {rank, i, i * u.D * u.D, u.size[i]};
}

/* Index of place t of the row in a packed vector. */
static __device__ inline int64_t acf_packed_at(const acf_subset &u, const acf_batch_row &r, int t) {
    return u.first[t] + r.rank;
}

/* Row r of a packed vector to n contiguous numbers; the caller syncs before reading them. */
template <int G>
static __device__ inline void acf_row_get(acf_real *to, const acf_real *x, const acf_subset &u,
                                          const acf_batch_row &r) {
    for (int t = acf_lane<G>(); t < r.n; t += G) to[t] = x[acf_packed_at(u, r, t)];
}

/* Zeros behind the last packed element. All threads of the grid share the work, so it comes before any return. */
static __device__ inline void acf_zero_tail(acf_real *x, const acf_subset &u) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    for (int64_t p = u.first[u.D] + acf_thread(); p < u.T; p += stride) x[p] = 0;
}

#define ACF_ROWS_AT_ONCE 8 /* loads in flight before the first is used */

/* to (n,ldt) = from (n,ldf), the group's threads along the rows. */
template <int G>
static __device__ inline void acf_group_copy(acf_real *to, int ldt, const acf_real *from, int ldf, int n) {
    const int warp = acf_lane<G>() / 32, W = G / 32;
    for (int j = acf_lane<G>() % 32; j < n; j += 32)
        for (int i0 = warp; i0 < n; i0 += ACF_ROWS_AT_ONCE * W) {
            acf_real v[ACF_ROWS_AT_ONCE];
#pragma unroll
            for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                if (i0 + q * W < n) v[q] = from[(i0 + q * W) * ldf + j];
#pragma unroll
            for (int q = 0; q < ACF_ROWS_AT_ONCE; q++)
                if (i0 + q * W < n) to[(i0 + q * W) * ldt + j] = v[q];
        }
}

/* A matrix to be read: its copy at `shared` for a warp, itself for a block; *ld is the row stride. Syncs. */
template <int G>
static __device__ inline const acf_real *acf_group_stage(acf_real *shared, const acf_real *m, int n, int *ld) {
    if (G > 32) {
        *ld = n;
        acf_group_sync<G>(); /* vectors that were filled before are visible */
        return m;
    }
    *ld = n | 1;
    acf_group_copy<G>(shared, *ld, m, n, n);
    acf_group_sync<G>();
    return shared;
}

/* Sum over j, from <= j < to, of a[j·sa] b[j·sb]: in one thread, in a fixed order. */
static __device__ inline acf_real acf_strided_dot(const acf_real *a, int sa, const acf_real *b, int sb, int from,
                                                  int to) {
    acf_real s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    int j = from;
    for (; j + 4 <= to; j += 4) {
        s0 += a[j * sa] * b[j * sb];
        s1 += a[(j + 1) * sa] * b[(j + 1) * sb];
        s2 += a[(j + 2) * sa] * b[(j + 2) * sb];
        s3 += a[(j + 3) * sa] * b[(j + 3) * sb];
    }
    for (; j < to; j++) s0 += a[j * sa] * b[j * sb];
    return (s0 + s1) + (s2 + s3);
}

#endif
