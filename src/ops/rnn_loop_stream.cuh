/* Products of the narrow loops: weights that do not fit on chip stream through a ring buffer in shared memory, step
 * after step.
 *
 * A network of 4 layers of 256 units is 2.95 MB of bf16. A block with 227 KB reads it from the L2 cache once a step:
 * 21.5 us at the 137 GB/s of a multiprocessor, measured with 1 to 132 of them reading together. C blocks of a cluster
 * share the units and read a part each. One warp feeds the ring with bulk copies, in the order in which the others (the
 * crew) multiply. It runs ahead of them as far as the ring allows, so other waits of a step cost nothing unless they
 * outlast the ring.
 *
 * Fragments. A warp multiplies rows (16, K) in shared memory by groups of 16 units. The weights of a group, 16 of K and
 * one gate are 512 bytes, in the order of the operands of mma.m16n8k16: 16 bytes a lane. A thread's accumulators of a
 * group are 4 neighbouring units of the rows lane/4 and lane/4 + 8. A matrix is stored as (K/16, groups, gates)
 * fragments, so a block's part of a k-step is contiguous.
 *
 * Included by .cu files only. */
#ifndef ACF_OPS_RNN_LOOP_STREAM_CUH
#define ACF_OPS_RNN_LOOP_STREAM_CUH

#include "ops/hopper.cuh"
#include "ops/rnn_loop_pieces.cuh"

#define STAGE 24576  /* bytes of one stage of the ring */
#define FRAGMENT 512 /* bytes */
#define NARROW_LAYERS 4
#define NARROW_UNITS 256

/* Offsets of the matrices in the laid-out weights, in fragments; the backward's have K and units swapped. */
struct Matrices {
    int wh[NARROW_LAYERS], wx[NARROW_LAYERS], w1, w2;
};

/* Sizes in 16s, the offsets of the matrices, and the tiling of a batch. */
struct Stream {
    int layers, H, F, O;  /* of units, hidden units, outputs; O rounded up */
    Matrices ahead, back; /* of a forward, of a backward */
    int fragments;        /* of the laid-out weights */
    int C, W, MT;         /* blocks of a cluster, warps of a crew, tiles of 16 rows */
    int tiles, stages, buffers;
};

__host__ __device__ static inline int pitch_of(int sixteens) {
    return sixteens * 32 + 16;
} /* an odd number of 16 bytes: no two of 8 rows share banks */

static inline Stream stream_of(const acf_loop *f) {
    Stream g = {};
    int at = 0, H = (int)f->s.H / 16, F = (int)f->F / 16, O = ((int)f->O + 15) / 16;
    g.layers = f->layers, g.H = H, g.F = F, g.O = O;
    for (Matrices *m : {&g.ahead, &g.back}) {
        for (int l = 0; l < f->layers; l++) {
            m->wh[l] = at, at += 3 * H * H;
            if (l) m->wx[l] = at, at += 3 * H * H;
        }
        m->w1 = at, at += H * F;
        m->w2 = at, at += F * O;
    }
    g.fragments = at;
    return g;
}

/* ---- the feeding warp -------------------------------------------------------------------------------------------- */

struct Ring {
    uint32_t data, full, vacant; /* addresses: stages, one barrier per stage that it is full, one that it is free */
    int stages, stage;
    uint32_t parity;
    __device__ __forceinline__ void next() {
        if (++stage == stages) stage = 0, parity ^= 1;
    }
};

/* Streams a matrix of ksteps times `slice` fragments through the ring; this block takes `mine` from `skip` on. */
__device__ __forceinline__ void feed(Ring &r, const unsigned char *image, int at, int ksteps, int slice, int skip,
                                     int mine) {
    int lane = threadIdx.x & 31, bytes = mine * FRAGMENT, each = STAGE / bytes;
    for (int k = 0; k < ksteps; k += each) {
        int n = ksteps - k < each ? ksteps - k : each;
        uint32_t bar = r.full + 8 * r.stage, to = r.data + r.stage * STAGE;
        bar_wait(r.vacant + 8 * r.stage, r.parity ^ 1);
        if (lane == 0) bar_expect(bar, (uint32_t)(n * bytes));
        __syncwarp();
        const unsigned char *from = image + ((int64_t)at + (int64_t)k * slice + skip) * FRAGMENT;
        if (mine == slice) {
            if (lane == 0) bulk_copy(to, from, n * bytes, bar);
        } else if (lane < n)
            bulk_copy(to + lane * bytes, from + (int64_t)lane * slice * FRAGMENT, bytes, bar);
        r.next();
    }
}

/* ---- the crew ---------------------------------------------------------------------------------------------------- */

/* acc[gate][group][m] += rows [m] · fragments, for the first M tiles of rows. a: start of this lane's ldmatrix row;
 * mine: groups of this block, of which this warp has GR from `group` on. The third of three gates goes to
 * acc[THIRD]. */
template <int M, int G, int THIRD, int GA, int GR, int MT>
__device__ __forceinline__ void product_of(Ring &r, float (&acc)[GA][GR][MT][2][4], const unsigned char *ring,
                                           uint32_t a, int pitch, int ksteps, int mine, int group) {
    int lane = threadIdx.x & 31, bytes = mine * G * FRAGMENT, each = STAGE / bytes;
    constexpr int UNROLL = GR * G * M > 6 ? 1 : GR * G * M > 3 ? 2 : 4;
    for (int k0 = 0; k0 < ksteps; k0 += each) {
        int n = ksteps - k0 < each ? ksteps - k0 : each;
        bar_wait(r.full + 8 * r.stage, r.parity);
        const unsigned char *w = ring + r.stage * STAGE + group * G * FRAGMENT + lane * 16;
        if (group < mine) {
#pragma unroll UNROLL
            for (int k = 0; k < n; k++, a += 32, w += bytes) {
                uint32_t fa[M][4];
#pragma unroll
                for (int m = 0; m < M; m++) read4(fa[m], a + m * 16 * pitch);
#pragma unroll
                for (int i = 0; i < GR * G; i++) {
                    uint4 q = *(const uint4 *)(w + i * FRAGMENT);
                    constexpr int last = G == 3 ? 2 : G;
#pragma unroll
                    for (int m = 0; m < M; m++) {
                        auto &d = acc[i % G == last ? THIRD : i % G][i / G][m];
                        multiply(d[0], fa[m], q.x, q.y), multiply(d[1], fa[m], q.z, q.w);
                    }
                }
            }
        }
        __syncwarp();
        if (lane == 0) bar_arrive(r.vacant + 8 * r.stage);
        r.next();
    }
}

template <int C_, int W_, int MT_> struct Crew {
    static constexpr int C = C_, W = W_, MT = MT_, GR = 16 / (C * W), ROWS = 16 * MT;
    /* Sums of two tiles and two groups need more than an even share of the registers. Then the feeding warp is in a
     * warp group of its own, which gives its registers away. */
    static constexpr bool LARGE = GR * MT == 4;
    static constexpr int THREADS = 32 * (W + (LARGE ? 4 : 1));
    int c, tile, tiles, warp, lane;
    unsigned char *shared; /* the ring comes first */
    uint32_t base, meeting, parity;
    Ring ring;

    /* bars: 2·stages + 1 barriers. All threads of the block. */
    __device__ __forceinline__ Crew(unsigned char *memory, int bars, const Stream &g) {
        c = C == 1 ? 0 : cluster_rank(), tile = blockIdx.x / C, tiles = g.tiles;
        warp = threadIdx.x / 32, lane = threadIdx.x & 31;
        shared = memory, base = shared_address(memory), parity = 0;
        ring = {base, base + bars, base + bars + 8 * g.stages, g.stages, 0, 0};
        meeting = base + bars + 16 * g.stages;
        if (threadIdx.x == 0) {
            for (int i = 0; i < g.stages; i++) bar_init(ring.full + 8 * i, 1), bar_init(ring.vacant + 8 * i, W);
            bar_init(meeting, C * W);
            fence_init();
        }
    }
    __device__ __forceinline__ bool feeds() const { return warp == W; }
    __device__ __forceinline__ bool works() const { return warp < W; }
    __device__ __forceinline__ void take_registers() const {
        if constexpr (LARGE) registers_more<232>();
    }
    __device__ __forceinline__ void give_registers() const {
        if constexpr (LARGE) registers_fewer<40>();
    }
    /* After wait(), all crews see what this warp wrote into any block's memory. Every arrive has its wait before the
     * next. */
    __device__ __forceinline__ void arrive() {
        __syncwarp();
        if (lane < C) bar_publish(far_address(meeting, lane));
    }
    __device__ __forceinline__ void wait() { bar_wait_published(meeting, parity), parity ^= 1; }
    __device__ __forceinline__ void meet() { arrive(), wait(); }
    /* Syncs this block's crew alone. */
    __device__ __forceinline__ void gather() { asm volatile("bar.sync 1, %0;" ::"n"(32 * W) : "memory"); }

    __device__ __forceinline__ int row(int m, int s) const { return m * 16 + s * 8 + (lane >> 2); }
    /* Group gr of this warp: whether it is one of the n; its first unit in this thread. */
    __device__ __forceinline__ bool has(int gr, int n) const { return warp * GR + gr < n / C; }
    __device__ __forceinline__ int unit(int gr, int n) const {
        return (c * (n / C) + warp * GR + gr) * 16 + (lane & 3) * 4;
    }
    __device__ __forceinline__ int64_t rank(int row_) const { return tile + (int64_t)tiles * row_; }

    /* rows: byte offset in shared memory of the tile's rows; n groups in all. */
    template <int G, int THIRD, int GA>
    __device__ __forceinline__ void product(float (&acc)[GA][GR][MT][2][4], int rows, int pitch, int ksteps, int n,
                                            int now) {
        uint32_t a = base + rows + (lane & 15) * pitch + (lane >> 4) * 16;
        if (MT == 1 || now > 16)
            product_of<MT, G, THIRD>(ring, acc, shared, a, pitch, ksteps, n / C, warp * GR);
        else
            product_of<1, G, THIRD>(ring, acc, shared, a, pitch, ksteps, n / C, warp * GR);
    }
};

template <int GA, int GR, int MT> __device__ __forceinline__ void clear(float (&acc)[GA][GR][MT][2][4]) {
#pragma unroll
    for (int i = 0; i < GA * GR * MT * 8; i++) (&acc[0][0][0][0][0])[i] = 0;
}

/* The four numbers of row (m, s) in an accumulator. */
__device__ __forceinline__ float &of(float (&d)[2][4], int s, int i) { return d[i / 2][2 * s + i % 2]; }

/* ---- launches ---------------------------------------------------------------------------------------------------- */

extern "C" Stream acf_loop_try; /* for the kernel lab: C, W, MT where C is not 0, tiles where not 0 */

template <typename K>
static cudaError_t launch_stream(K kernel, const acf_loop *f, const Stream &g, int threads, int bytes,
                                 cudaStream_t stream) {
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (e) return e;
    cudaLaunchAttribute cluster = {};
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim = {(unsigned)g.C, 1, 1};
    cudaLaunchConfig_t c = {};
    c.gridDim = dim3((unsigned)(g.tiles * g.C)), c.blockDim = dim3((unsigned)threads);
    c.dynamicSmemBytes = (size_t)bytes, c.stream = stream, c.attrs = &cluster, c.numAttrs = 1;
    return cudaLaunchKernelEx(&c, kernel, *f, g);
}

/* Clusters that an H200 runs at once: 132 of one block, 66 of two, 30 of four. Small batches get small tiles and read
 * the weights together. Larger ones first get taller tiles, then run in several waves. */
static inline void cut_batch(Stream *g, const acf_loop *f) {
    int64_t N = f->s.N;
    bool shared_out = f->s.H == NARROW_UNITS && f->F == NARROW_UNITS;
    if (shared_out && N <= 30 * 16)
        g->C = 4, g->W = 4, g->MT = 1;
    else if (shared_out && N <= 66 * 32)
        g->C = 2, g->W = 8, g->MT = N <= 66 * 16 ? 1 : 2;
    else
        g->C = 1, g->W = 8, g->MT = N <= 132 * 16 ? 1 : 2;
    if (acf_loop_try.C && (acf_loop_try.C == 1 || shared_out))
        g->C = acf_loop_try.C, g->W = acf_loop_try.W, g->MT = acf_loop_try.MT;
    g->tiles = (int)((N + 16 * g->MT - 1) / (16 * g->MT));
    if (g->tiles < acf_loop_try.tiles) g->tiles = acf_loop_try.tiles;
}

#endif
