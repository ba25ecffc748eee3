/* Convolution of images: see conv2d.h; formulas in docs/math.md.
 *
 * Workload: N = 16 to 128 images of 4x4 to 64x64 pixels, 32 to 512 channels, kernels 1x1, 2x3 and 3x3. All three
 * products of a convolution are sums of outer products. One tile of them, held in vector registers, computes all
 * three:
 *
 *     acc (TILE, nv vectors) += Σ_t a_i[t] · b[t]        TILE numbers that are broadcast, times a row of channels
 *
 *     y     a: pixels of x at one position of the kernel, t over input channels;        b: weights (place, in, out)
 *     dx    the same of dy, with the kernel rotated by 180° and its channels exchanged: no scatter
 *     dw    a: input channels of x, t over pixels of a row;                             b: dy
 *
 * Patches are read in place and never gathered (y and dx of a 1x1 convolution are plain products). Weights are
 * packed once per call; blocks of them stay in a core's cache while pixels are streamed. Blocks, and therefore the
 * bits, depend only on the shape. Compared with im2col on OpenBLAS and with oneDNN in experiments/NOTES.md. */
#include "ops/conv2d.h"

#include "ops/linear.h"

#include <omp.h>
#include <string.h>

/* ---- the tile -------------------------------------------------------------------------------------------------- */

#ifdef __AVX512F__
#define VECTOR_BYTES 64
enum { TILE = 6, VECTORS = 4 }; /* 24 of 32 registers are sums */
#else
#define VECTOR_BYTES 32
enum { TILE = 4, VECTORS = 3 }; /* 12 of 16 */
#endif
enum { LANES = VECTOR_BYTES / sizeof(acf_real), WIDE = VECTORS * LANES };
typedef acf_real vec __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(acf_real)), may_alias));

#define INLINE static inline __attribute__((always_inline))

/* acc += Σ_{t<n} a[i][t·sa] · b[t·sb ...]; nv is a constant where this is inlined. */
INLINE void add_products(vec acc[TILE][VECTORS], const acf_real *const a[TILE], int64_t sa, const acf_real *b,
                         int64_t sb, int64_t n, const int nv) {
    for (int64_t t = 0; t < n; t++) {
        vec row[VECTORS];
        for (int j = 0; j < nv; j++) row[j] = *(const vec *)(b + t * sb + j * LANES);
        for (int i = 0; i < TILE; i++) {
            const vec x = a[i][t * sa] - (vec){0}; /* broadcasts the number to all lanes */
            for (int j = 0; j < nv; j++) acc[i][j] += x * row[j];
        }
    }
}

/* A vector of which only the first n numbers are in memory; passed by value, so that sums stay in registers. */
INLINE vec load_vector(const acf_real *from, int64_t n) {
    if (n >= LANES) return *(const vec *)from;
    vec v = {0};
    for (int64_t k = 0; k < n; k++) v[k] = from[k];
    return v;
}

INLINE void store_vector(acf_real *to, vec v, int64_t n) {
    if (n >= LANES)
        *(vec *)to = v;
    else
        for (int64_t k = 0; k < n; k++) to[k] = v[k];
}

/* Loads and stores sums from and to rows of `width` numbers. */
INLINE void load_sums(vec acc[TILE][VECTORS], const acf_real *const y[TILE], int64_t width, const int nv) {
    for (int i = 0; i < TILE; i++)
        for (int j = 0; j < nv; j++) acc[i][j] = load_vector(y[i] + j * LANES, width - j * LANES);
}

INLINE void store_sums(vec acc[TILE][VECTORS], acf_real *const y[TILE], int64_t width, const int nv) {
    for (int i = 0; i < TILE; i++)
        for (int j = 0; j < nv; j++) store_vector(y[i] + j * LANES, acc[i][j], width - j * LANES);
}

/* ---- sizes and scratch ----------------------------------------------------------------------------------------- */

#define TASK 192           /* output pixels that a thread takes at a time: a multiple of TILE */
#define WEIGHTS_NEAR 49152 /* numbers of a block of weights that stays in cache while a task's pixels are processed */
#define RUNS 64            /* rows of pixels whose products are summed before a tile is stored */
#define NEAR 65536         /* pixels times channels of them at most, so that they stay in cache */
#define DW_PIECES 16       /* pieces of the sum over pixels of dw, at most */
#define DW_NUMBERS 8388608 /* numbers of all their sums, at most */

static int64_t places(const acf_conv_shape *s) { return s->kh * s->kw; }
static int64_t pixels(const acf_conv_shape *s) { return s->N * s->Ho * s->Wo; }
static int64_t padded(int64_t channels) { return acf_ceil_div(channels, LANES) * LANES; }
static int64_t round16(int64_t n) { return acf_ceil_div(n, 16) * 16; } /* aligns pieces of scratch to vectors */

/* The forward's scratch: packed weights, zeros for positions outside the image, and for each thread a dummy output
 * row and the table of a task's pixels. The table comes first: it holds pointers. */
typedef struct workspace {
    const acf_real **table; /* (threads, TASK, places) */
    acf_real *weights, *zeros, *spare;
} workspace;

static size_t lay_out(const acf_device *dev, const acf_conv_shape *s, void *scratch, workspace *d) {
    const int64_t threads = acf_max(dev->threads, 1), pointers = round16(threads * TASK * places(s));
    const int64_t weights = round16(places(s) * s->Ci * padded(s->Co)), zeros = round16(acf_max(s->Ci, WIDE));
    d->table = scratch;
    d->weights = (acf_real *)(d->table + pointers);
    d->zeros = d->weights + weights;
    d->spare = d->zeros + zeros;
    return (size_t)pointers * sizeof *d->table + (size_t)(weights + zeros + threads * WIDE) * sizeof(acf_real);
}

size_t acf_conv2d_fwd_scratch(const acf_device *dev, const acf_conv_shape *s) {
    workspace d;
    return lay_out(dev, s, (void *)ACF_HOST_ALIGN, &d); /* computes the size only; the addresses are not used */
}

/* ---- y, and dx ------------------------------------------------------------------------------------------------- */

/* to: for each block of WIDE outputs (place, in, out), the last vector padded with zeros. `turned`: w belongs to the
 * convolution whose dx this is, stored (in, places from the last to the first, out). */
static void pack_weights(const acf_device *dev, acf_real *to, const acf_real *w, bool turned, const acf_conv_shape *s) {
    const int64_t P = places(s), blocks = acf_ceil_div(s->Co, WIDE);
    ACF_PARALLEL(dev, P * s->Ci * s->Co)
    for (int64_t k = 0; k < blocks * P; k++) {
        const int64_t o0 = k / P * WIDE, width = acf_min(WIDE, padded(s->Co) - o0), place = k % P;
        acf_real *block = to + o0 * P * s->Ci + place * s->Ci * width;
        for (int64_t o = 0; o < width; o++)
            for (int64_t c = 0; c < s->Ci; c++) {
                const int64_t at =
                    turned ? (c * P + P - 1 - place) * s->Co + o0 + o : ((o0 + o) * P + place) * s->Ci + c;
                block[c * width + o] = o0 + o < s->Co ? w[at] : 0;
            }
    }
}

/* Row h of an image dilated by `up`, mapped to the image itself; -1: outside, or between its pixels. */
INLINE int64_t source(int64_t h, int64_t H, int64_t up) {
    if (up == 1) return h < H ? h : -1; /* below 0 stays so; avoids the division in the common case */
    return h >= 0 && h % up == 0 && h / up < H ? h / up : -1;
}

/* Addresses of the input pixels at each kernel position, for output pixels [r0,r1). */
static void look_up(const acf_real **table, const acf_real *x, const acf_real *zeros, const acf_conv_shape *s,
                    int64_t r0, int64_t r1) {
    int64_t n = r0 / (s->Ho * s->Wo), p = r0 / s->Wo % s->Ho, q = r0 % s->Wo;
    for (int64_t r = r0; r < r1; r++) {
        for (int64_t i = 0; i < s->kh; i++) {
            const int64_t h = source(p * s->stride - s->top + i, s->H, s->up);
            for (int64_t j = 0; j < s->kw; j++) {
                const int64_t w = source(q * s->stride - s->left + j, s->W, s->up);
                *table++ = h >= 0 && w >= 0 ? x + ((n * s->H + h) * s->W + w) * s->Ci : zeros;
            }
        }
        if (++q == s->Wo) q = 0, p++;
        if (p == s->Ho) p = 0, n++;
    }
}

/* Inputs of a tile of pixels. */
typedef struct strip {
    acf_real *y[TILE];               /* sums, of which the first `width` are stored */
    const acf_real *start[TILE];     /* initial values of the sums */
    const acf_real *const *in[TILE]; /* rows of the table */
    const acf_real *weights;         /* (places, Ci, nv·LANES) */
    int64_t places, Ci, from, to;    /* input channels [from,to) */
    int64_t width;
} strip;

INLINE void run_strip(const strip *k, const int nv) {
    vec acc[TILE][VECTORS];
    load_sums(acc, k->start, k->width, nv);
    for (int64_t p = 0; p < k->places; p++) {
        const acf_real *a[TILE];
        for (int i = 0; i < TILE; i++) a[i] = k->in[i][p] + k->from;
        add_products(acc, a, 1, k->weights + (p * k->Ci + k->from) * nv * LANES, nv * LANES, k->to - k->from, nv);
    }
    store_sums(acc, k->y, k->width, nv);
}

static void any_strip(const strip *k) {
    switch (acf_ceil_div(k->width, LANES)) {
    case 1: run_strip(k, 1); break;
    case 2: run_strip(k, 2); break;
    case 3: run_strip(k, 3); break;
#ifdef __AVX512F__
    case 4: run_strip(k, 4); break;
#endif
    }
}

/* All tiles of pixels [r0,r1) for outputs from o0 on and input channels [c0,c1). start (width): the initial value of
 * each pixel; NULL: the stored one. */
static void run_tiles(acf_real *y, const acf_real *start, const workspace *d, const acf_real *const *table,
                      acf_real *spare, const acf_conv_shape *s, int64_t r0, int64_t r1, int64_t o0, int64_t c0,
                      int64_t c1) {
    const int64_t P = places(s);
    for (int64_t r = r0; r < r1; r += TILE) {
        strip k = {.weights = d->weights + o0 * P * s->Ci,
                   .places = P,
                   .Ci = s->Ci,
                   .from = c0,
                   .to = c1,
                   .width = acf_min(WIDE, s->Co - o0)};
        for (int i = 0; i < TILE; i++) {
            k.y[i] = r + i < r1 ? y + (r + i) * s->Co + o0 : spare;
            k.start[i] = start ? start : k.y[i];
            k.in[i] = table + (acf_min(r + i, r1 - 1) - r0) * P;
        }
        any_strip(&k);
    }
}

/* y (pixels,Co) = or += the convolution of x with the packed weights; act is applied at the end. */
static void convolve(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *b, acf_act_kind act,
                     bool add, const acf_conv_shape *s, const workspace *d) {
    const int64_t all = pixels(s), tasks = acf_ceil_div(all, TASK),
                  near = acf_max(WEIGHTS_NEAR / (places(s) * WIDE), 16);
    memset(d->zeros, 0, (size_t)acf_max(s->Ci, WIDE) * sizeof *d->zeros);
#pragma omp parallel for schedule(static) num_threads(acf_threads_for(dev, all *places(s) * s->Ci))
    for (int64_t k = 0; k < tasks; k++) {
        const int64_t r0 = k * TASK, r1 = acf_min(r0 + TASK, all);
        const acf_real **table = d->table + omp_get_thread_num() * TASK * places(s);
        acf_real *spare = d->spare + omp_get_thread_num() * WIDE;
        look_up(table, x, d->zeros, s, r0, r1);
        memset(spare, 0, WIDE * sizeof *spare);
        for (int64_t o0 = 0; o0 < s->Co; o0 += WIDE)
            for (int64_t c0 = 0; c0 == 0 || c0 < s->Ci; c0 += near) /* also runs once if Ci = 0 */
                run_tiles(y,
                          c0 || add ? NULL
                          : b       ? b + o0
                                    : d->zeros,
                          d, table, spare, s, r0, r1, o0, c0, acf_min(c0 + near, s->Ci));
        if (act != ACF_IDENTITY) acf_act_fwd_cpu(act, y + r0 * s->Co, y + r0 * s->Co, (r1 - r0) * s->Co);
    }
}

/* True if the convolution is a plain product: a 1x1 kernel on pixels in place. (Equal numbers of pixels on both
 * sides mean no stride, or a single pixel.) */
static bool is_plain(const acf_conv_shape *s) {
    return places(s) == 1 && !s->top && !s->left && s->H == s->Ho && s->W == s->Wo;
}

void acf_conv2d_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                        acf_act_kind act, const acf_conv_shape *s, void *scratch) {
    workspace d;
    if (is_plain(s)) {
        acf_linear_fwd_cpu(dev, y, x, w, b, act, pixels(s), s->Ci, s->Co);
        return;
    }
    lay_out(dev, s, scratch, &d);
    pack_weights(dev, d.weights, w, false, s);
    convolve(dev, y, x, b, act, false, s, &d);
}

/* dx as a convolution of dy: sizes are exchanged, and a stride becomes zeros between dy's pixels. */
static acf_conv_shape turned(const acf_conv_shape *s) {
    return (acf_conv_shape){.N = s->N,
                            .H = s->Ho,
                            .W = s->Wo,
                            .Ci = s->Co,
                            .Ho = s->H,
                            .Wo = s->W,
                            .Co = s->Ci,
                            .kh = s->kh,
                            .kw = s->kw,
                            .stride = 1,
                            .up = s->stride,
                            .top = s->kh - 1 - s->top,
                            .left = s->kw - 1 - s->left};
}

/* ---- dw -------------------------------------------------------------------------------------------------------- */

/* Pixels of one row of dy, and of x at one position of the kernel. */
typedef struct run {
    const acf_real *x, *dy;
    int64_t n;
} run;

/* Rows of dy that are summed together. */
static int64_t block_rows(const acf_conv_shape *s) {
    const int64_t row = acf_max(s->Wo * acf_max(s->Ci, s->Co), 1);
    return acf_max(1, acf_min(RUNS, NEAR / row));
}

static int64_t dw_pieces(const acf_conv_shape *s) {
    const int64_t size = acf_max(places(s) * s->Ci * padded(s->Co), 1),
                  blocks = acf_ceil_div(s->N * s->Ho, block_rows(s));
    return acf_max(1, acf_min(acf_min(DW_PIECES, DW_NUMBERS / size), blocks));
}

/* Runs of rows [r0,r1) at kernel position (i,j); returns how many overlap the image. dy (r1 - r0, Wo, stride
 * `wide`). */
static int find_runs(run *to, const acf_real *x, const acf_real *dy, int64_t wide, const acf_conv_shape *s, int64_t r0,
                     int64_t r1, int64_t i, int64_t j) {
    const int64_t first = s->left - j, q0 = first > 0 ? acf_ceil_div(first, s->stride) : 0;
    const int64_t last = s->W - 1 + first,
                  q1 = last < 0 ? 0 : acf_min(last / s->stride + 1, s->Wo); /* q·stride <= last */
    int n = 0;
    for (int64_t r = r0; r < r1 && q0 < q1; r++) {
        const int64_t h = r % s->Ho * s->stride + i - s->top;
        if (h < 0 || h >= s->H) continue;
        to[n++] = (run){x + ((r / s->Ho * s->H + h) * s->W + q0 * s->stride - first) * s->Ci,
                        dy + ((r - r0) * s->Wo + q0) * wide, q1 - q0};
    }
    return n;
}

/* to (rows of the sums) += Σ over all runs of x[c..] · dy. */
INLINE void run_sums(acf_real *const to[TILE], const run *k, int runs, const int64_t channel[TILE], int64_t step,
                     int64_t wide, int64_t o0, const int nv) {
    vec acc[TILE][VECTORS];
    load_sums(acc, (const acf_real *const *)to, nv * LANES, nv);
    for (int m = 0; m < runs; m++) {
        const acf_real *a[TILE];
        for (int i = 0; i < TILE; i++) a[i] = k[m].x + channel[i];
        add_products(acc, a, step, k[m].dy + o0, wide, k[m].n, nv);
    }
    store_sums(acc, to, nv * LANES, nv);
}

/* sums (Ci,wide) of one kernel position += those of the runs. */
static void sum_place(acf_real *sums, const run *k, int runs, acf_real *spare, int64_t wide, const acf_conv_shape *s) {
    const int64_t step = s->stride * s->Ci;
    for (int64_t o0 = 0; o0 < wide; o0 += WIDE)
        for (int64_t c = 0; c < s->Ci; c += TILE) {
            acf_real *to[TILE];
            int64_t channel[TILE];
            for (int i = 0; i < TILE; i++) {
                channel[i] = acf_min(c + i, s->Ci - 1);
                to[i] = c + i < s->Ci ? sums + (c + i) * wide + o0 : spare;
            }
            switch (acf_min(VECTORS, (wide - o0) / LANES)) {
            case 1: run_sums(to, k, runs, channel, step, wide, o0, 1); break;
            case 2: run_sums(to, k, runs, channel, step, wide, o0, 2); break;
            case 3: run_sums(to, k, runs, channel, step, wide, o0, 3); break;
#ifdef __AVX512F__
            case 4: run_sums(to, k, runs, channel, step, wide, o0, 4); break;
#endif
            }
        }
}

/* Numbers in a thread's part of the scratch of dw: rows of dy with channels padded to whole vectors, and a dummy
 * row. */
static int64_t dy_scratch(const acf_conv_shape *s) {
    return round16(s->Co % LANES ? block_rows(s) * s->Wo * padded(s->Co) : 0) + WIDE;
}

/* sums (places,Ci,wide) += rows [r0,r1) of dy. */
static void sum_block(acf_real *sums, const acf_real *dy, const acf_real *x, acf_real *memory, const acf_conv_shape *s,
                      int64_t r0, int64_t r1) {
    const int64_t wide = padded(s->Co);
    acf_real *spare = memory + dy_scratch(s) - WIDE;
    const acf_real *rows = dy + r0 * s->Wo * s->Co;
    memset(spare, 0, WIDE * sizeof *spare);
    for (int64_t p = 0; wide != s->Co && p < (r1 - r0) * s->Wo; p++) {
        memcpy(memory + p * wide, rows + p * s->Co, (size_t)s->Co * sizeof *memory);
        memset(memory + p * wide + s->Co, 0, (size_t)(wide - s->Co) * sizeof *memory);
    }
    if (wide != s->Co) rows = memory;
    for (int64_t k = 0; k < places(s); k++) {
        run list[RUNS];
        const int runs = find_runs(list, x, rows, wide, s, r0, r1, k / s->kw, k % s->kw);
        sum_place(sums + k * s->Ci * wide, list, runs, spare, wide, s);
    }
}

/* dw (Co,places,Ci) += pieces of the pixels, each summed by one thread, then added in order. */
static void weight_gradient(const acf_device *dev, acf_real *dw, const acf_real *dy, const acf_real *x,
                            const acf_conv_shape *s, acf_real *scratch) {
    const int64_t P = places(s), wide = padded(s->Co), size = P * s->Ci * wide, step = block_rows(s),
                  blocks = acf_ceil_div(s->N * s->Ho, step);
    const int64_t each = acf_ceil_div(blocks, dw_pieces(s)), used = each ? acf_ceil_div(blocks, each) : 0;
    acf_real *memory = scratch + round16(dw_pieces(s) * size);
#pragma omp parallel for schedule(static) num_threads(acf_threads_for(dev, pixels(s) * P * s->Ci))
    for (int64_t p = 0; p < used; p++) {
        memset(scratch + p * size, 0, (size_t)size * sizeof *scratch);
        for (int64_t k = p * each; k < acf_min((p + 1) * each, blocks); k++)
            sum_block(scratch + p * size, dy, x, memory + omp_get_thread_num() * dy_scratch(s), s, k * step,
                      acf_min((k + 1) * step, s->N * s->Ho));
    }
    ACF_PARALLEL(dev, used * size)
    for (int64_t k = 0; k < P * s->Ci; k++)
        for (int64_t o = 0; o < s->Co; o++) {
            acf_real sum = 0;
            for (int64_t p = 0; p < used; p++) sum += scratch[p * size + k * wide + o];
            dw[o * P * s->Ci + k] += sum;
        }
}

size_t acf_conv2d_bwd_scratch(const acf_device *dev, const acf_conv_shape *s) {
    const acf_conv_shape back = turned(s);
    const int64_t sums =
        round16(dw_pieces(s) * places(s) * s->Ci * padded(s->Co)) + acf_max(dev->threads, 1) * dy_scratch(s);
    const size_t a = (size_t)sums * sizeof(acf_real), b = acf_conv2d_fwd_scratch(dev, &back);
    return a > b ? a : b;
}

void acf_conv2d_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dw, acf_real *db, const acf_real *dy,
                        const acf_real *x, const acf_real *w, const acf_conv_shape *s, void *scratch) {
    if (dx && is_plain(s)) {
        acf_linear_bwd_cpu(dev, dx, NULL, NULL, dy, NULL, x, w, NULL, ACF_IDENTITY, pixels(s), s->Ci, s->Co);
    } else if (dx) {
        const acf_conv_shape back = turned(s);
        workspace d;
        lay_out(dev, &back, scratch, &d);
        pack_weights(dev, d.weights, w, true, &back);
        convolve(dev, dx, dy, NULL, ACF_IDENTITY, true, &back, &d);
    }
    if (dw) weight_gradient(dev, dw, dy, x, s, scratch);
    if (db) acf_cpu_colsum(dev, db, dy, pixels(s), s->Co, s->Co);
}

/* ---- the operation --------------------------------------------------------------------------------------------- */

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_conv2d_attrs *a = n->attr;
    const acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    acf_mark mark = acf_arena_mark(t->mem);
    void *scratch = acf_arena_alloc(t->mem, acf_conv2d_fwd_scratch(t->dev, &a->shape));
    if (!scratch) acf_tape_fail(t, n->op);
    ACF_TRY(acf_tape_status(t));
    acf_conv2d_fwd_cpu(t->dev, n->out[0]->data, x->data, w->data, b ? b->data : NULL, a->act, &a->shape, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

/* The gradient before the activation. */
static void before_act(const acf_device *dev, acf_real *dpre, const acf_real *dy, const acf_real *y, acf_act_kind act,
                       int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) acf_act_bwd_cpu(act, dpre + c, dy + c, y + c, acf_min(ACF_CHUNK, n - c));
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_conv2d_attrs *a = n->attr;
    acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2], *y = n->out[0];
    acf_real *dx = acf_grad(t, x), *dw = acf_grad(t, w), *db = acf_grad(t, b), *dy = y->grad;
    acf_mark mark = acf_arena_mark(t->mem);
    void *scratch = acf_arena_alloc(t->mem, acf_conv2d_bwd_scratch(t->dev, &a->shape));
    if (!scratch) acf_tape_fail(t, n->op);
    acf_real *dpre = a->act == ACF_IDENTITY ? NULL : acf_tape_reals(t, acf_tensor_count(y));
    ACF_TRY(acf_tape_status(t));
    if (dpre) before_act(t->dev, dpre, dy, y->data, a->act, acf_tensor_count(y)), dy = dpre;
    acf_conv2d_bwd_cpu(t->dev, dx, dw, db, dy, x->data, w->data, &a->shape, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_conv2d = {"conv2d", ACF_OP_conv2d, {forward, backward}};

#define LARGEST ((int64_t)1 << 24) /* largest padding: sums of sizes stay far from overflow */

static bool sizes_fit(const acf_conv *how, acf_conv_shape *s) {
    const int64_t pad[4] = {how->top, how->left, how->bottom, how->right};
    for (int i = 0; i < 4; i++)
        if (pad[i] < -LARGEST || pad[i] > LARGEST) return false;
    const int64_t down = s->H + how->top + how->bottom - s->kh, across = s->W + how->left + how->right - s->kw;
    if (s->kh < 1 || s->kw < 1 || down < 0 || across < 0) return false;
    s->Ho = down / s->stride + 1, s->Wo = across / s->stride + 1;
    return true;
}

acf_tensor *acf_conv2d(acf_tape *t, acf_tensor *x, acf_tensor *w, acf_tensor *b, acf_conv how) {
    char sx[ACF_SHAPE_TEXT], sw[ACF_SHAPE_TEXT];
    acf_node *n = acf_node_new(t, &acf_op_conv2d, sizeof(acf_conv2d_attrs), 3, (acf_tensor *[]){x, w, b});
    if (!n) return &t->empty;
    if (x->ndim != 4 || w->ndim != 4 || x->dim[3] != w->dim[3])
        return acf_reject(t, n->op, "x is %s and w is %s; expected (N, H, W, Ci) and (Co, kh, kw, Ci)",
                          acf_tensor_shape(x, sx), acf_tensor_shape(w, sw));
    if (b && acf_tensor_count(b) != w->dim[0])
        return acf_reject(t, n->op, "the bias has %lld elements; w is %s, so expected %lld",
                          (long long)acf_tensor_count(b), acf_tensor_shape(w, sw), (long long)w->dim[0]);
    if (how.stride < 0 || how.stride > 2)
        return acf_reject_value(t, n->op, "the stride is %d; expected 1 or 2", how.stride);
    if ((unsigned)how.act >= ACF_ACT_COUNT)
        return acf_reject_value(t, n->op, "there is no activation number %d", (int)how.act);
    acf_conv_shape s = {.N = x->dim[0],
                        .H = x->dim[1],
                        .W = x->dim[2],
                        .Ci = x->dim[3],
                        .Co = w->dim[0],
                        .kh = w->dim[1],
                        .kw = w->dim[2],
                        .stride = how.stride == 2 ? 2 : 1,
                        .up = 1,
                        .top = how.top,
                        .left = how.left};
    if (!sizes_fit(&how, &s))
        return acf_reject(
            t, n->op,
            "x is %s and w is %s: with paddings %lld %lld %lld %lld (top, left, bottom, right) the kernel is "
            "larger than the image",
            acf_tensor_shape(x, sx), acf_tensor_shape(w, sw), (long long)how.top, (long long)how.left,
            (long long)how.bottom, (long long)how.right);
    *(acf_conv2d_attrs *)n->attr = (acf_conv2d_attrs){s, how.act};
    n->out[0] = acf_tensor_new(t, 4, (int64_t[]){s.N, s.Ho, s.Wo, s.Co});
    return acf_node_run(t, n);
}
