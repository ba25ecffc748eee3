/* Convolution of images on the GPU: see conv2d.h.
 *
 * Workload: N = 16 to 256 images of 4x4 to 64x64 pixels, 32 to 256 channels. There are three methods:
 *
 *     plain    every output is a product with one run of x: a 1x1 kernel, or a kernel that covers its image
 *              (sampling one pixel of a PixelCNN)
 *     cuDNN    if it is installed (device/cuda_dnn.cuh). It pads both sides equally; for other paddings it gets
 *              a copy of the part of x that is seen, with zeros around it and edges cut off
 *     own      patches of x, gathered in pieces, and products: without cuDNN, or if it rejects the convolution
 *
 * Gradients of weights run on the second stream where a captured step allows it. The method depends only on shapes,
 * and sums have one order. */
#include "device/cuda_dnn.cuh"
#include "ops/act.cuh"

extern "C" {
#include "ops/conv2d.h"
}

/* ---- copies that pad and cut ----------------------------------------------------------------------------------- */

/* V is float, or float4 if the channels are a multiple of four: C counts V. */
template <typename V> static __device__ inline V nothing(void);
template <> __device__ inline float nothing<float>(void) { return 0; }
template <> __device__ inline float4 nothing<float4>(void) { return make_float4(0, 0, 0, 0); }
static __device__ inline float plus(float a, float b) { return a + b; }
static __device__ inline float4 plus(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static bool in_fours(int64_t C, const void *a, const void *b) {
    return C % 4 == 0 && ((uintptr_t)a | (uintptr_t)b) % sizeof(float4) == 0;
}

/* to (N,h,w,C): pixel (p,q) is pixel (p - top, q - left) of from (N,H,W,C), 0 outside; with `add`, added to what is
 * there. */
template <typename V>
static __global__ void place_image(V *__restrict__ to, const V *__restrict__ from, int64_t n, int64_t h, int64_t w,
                                   int64_t H, int64_t W, int64_t C, int64_t top, int64_t left, bool add) {
    ACF_EACH(i, n) {
        const acf_cell pixel = acf_cell_of(i, C), line = acf_cell_of(pixel.row, w), image = acf_cell_of(line.row, h);
        const int64_t p = image.column - top, q = line.column - left;
        const bool inside = p >= 0 && p < H && q >= 0 && q < W;
        V v = inside ? from[((image.row * H + p) * W + q) * C + pixel.column] : nothing<V>();
        if (add) v = plus(to[i], v);
        to[i] = v;
    }
}

static acf_status place(acf_device *dev, acf_real *to, const acf_real *from, int64_t N, int64_t h, int64_t w, int64_t H,
                        int64_t W, int64_t C, int64_t top, int64_t left, bool add) {
    const int64_t n = N * h * w * C;
    cudaStream_t stream = acf_cuda_stream(dev);
    if (in_fours(C, to, from))
        place_image<<<acf_each_blocks(n / 4), ACF_THREADS, 0, stream>>>((float4 *)to, (const float4 *)from, n / 4, h, w,
                                                                        H, W, C / 4, top, left, add);
    else
        place_image<<<acf_each_blocks(n), ACF_THREADS, 0, stream>>>(to, from, n, h, w, H, W, C, top, left, add);
    return ACF_LAUNCHED("conv2d");
}

/* y (M,C) = act(y + b); b may be NULL. */
static __global__ void add_bias(acf_real *y, const acf_real *__restrict__ b, acf_act_kind act, int64_t n, int64_t C) {
    ACF_EACH(i, n) y[i] = acf_act_value(act, y[i] + (b ? b[acf_cell_of(i, C).column] : 0));
}

static acf_status finish(acf_device *dev, acf_real *y, const acf_real *b, acf_act_kind act, int64_t M, int64_t C) {
    if (!b && act == ACF_IDENTITY) return ACF_OK;
    add_bias<<<acf_each_blocks(M * C), ACF_THREADS, 0, acf_cuda_stream(dev)>>>(y, b, act, M * C, C);
    return ACF_LAUNCHED("conv2d");
}

/* ---- plain products -------------------------------------------------------------------------------------------- */

static int64_t patch_width(const acf_conv_shape *s) { return s->kh * s->kw * s->Ci; }
static int64_t pixels(const acf_conv_shape *s) { return s->N * s->Ho * s->Wo; }

/* x is the matrix of its patches (pixels, patch_width). */
static bool is_plain(const acf_conv_shape *s) {
    if (s->top || s->left || s->up != 1) return false;
    const bool point = s->kh == 1 && s->kw == 1 && s->stride == 1 && s->H == s->Ho && s->W == s->Wo;
    return point || (s->Ho == 1 && s->Wo == 1 && s->kh == s->H && s->kw == s->W);
}

/* y (M,Co) = a (M,K) · w (Co,K)ᵀ. */
static acf_gemm to_y(acf_real *y, const acf_real *a, const acf_real *w, int64_t M, int64_t K, int64_t Co, bool add) {
    return {false, true, M, Co, K, 1, a, acf_max(K, 1), w, acf_max(K, 1), (acf_real)add, y, acf_max(Co, 1)};
}
/* dw (Co,K) += dy (M,Co)ᵀ · a (M,K). */
static acf_gemm to_dw(acf_real *dw, const acf_real *dy, const acf_real *a, int64_t M, int64_t K, int64_t Co) {
    return {true, false, Co, K, M, 1, dy, acf_max(Co, 1), a, acf_max(K, 1), 1, dw, acf_max(K, 1)};
}

/* ---- cuDNN ----------------------------------------------------------------------------------------------------- */

/* The convolution passed to cuDNN: with equal padding on both sides, or without padding on a copy of the seen part
 * of x. */
typedef struct request {
    acf_dnn_shape shape;
    bool copied;
    int64_t H, W; /* of the copy, or of x */
} request;

/* False if cuDNN does not support the sizes. */
static bool ask_for(request *r, const acf_conv_shape *s) {
    const int64_t h = (s->Ho - 1) * s->stride + s->kh,
                  w = (s->Wo - 1) * s->stride + s->kw; /* rows and columns that the kernel sees */
    const int64_t down = s->H + 2 * s->top - s->kh,
                  across = s->W + 2 * s->left - s->kw; /* where the last output begins with equal padding */
    const bool alike = s->top >= 0 && s->left >= 0 && s->top < s->kh && s->left < s->kw && down >= 0 && across >= 0 &&
                       down / s->stride + 1 == s->Ho && across / s->stride + 1 == s->Wo;
    r->copied = !alike;
    r->H = alike ? s->H : h, r->W = alike ? s->W : w;
    const int64_t in = s->N * r->H * r->W * s->Ci, out = pixels(s) * s->Co;
    if (in < 1 || out < 1 || in > INT32_MAX || out > INT32_MAX || s->up != 1) return false;
    r->shape = {(int32_t)s->N,
                (int32_t)r->H,
                (int32_t)r->W,
                (int32_t)s->Ci,
                (int32_t)s->Ho,
                (int32_t)s->Wo,
                (int32_t)s->Co,
                (int32_t)s->kh,
                (int32_t)s->kw,
                (int32_t)s->stride,
                alike ? (int32_t)s->top : 0,
                alike ? (int32_t)s->left : 0};
    return true;
}

/* The workspace: the stream's scratch, or the tape's memory; NULL when memory ran out. */
static void *workspace(acf_tape *t, const acf_dnn_plan *p) {
    const size_t bytes = acf_dnn_bytes(p);
    return bytes <= ACF_SCRATCH ? acf_cuda_scratch(t->dev)
                                : acf_tape_reals(t, (int64_t)acf_ceil_div((int64_t)bytes, (int64_t)sizeof(acf_real)));
}

/* x in the form that cuDNN gets. */
static acf_status see(acf_tape *t, const request *r, const acf_real *x, const acf_conv_shape *s, acf_real **out) {
    *out = r->copied ? acf_tape_reals(t, s->N * r->H * r->W * s->Ci) : (acf_real *)x;
    ACF_TRY(acf_tape_status(t));
    return r->copied ? place(t->dev, *out, x, s->N, r->H, r->W, s->H, s->W, s->Ci, s->top, s->left, false) : ACF_OK;
}

/* Each of the three: *done is true if cuDNN computed it. The caller releases the memory. */
static acf_status dnn_forward(acf_tape *t, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                              acf_act_kind act, const acf_conv_shape *s, bool *done) {
    request r;
    bool finished;
    acf_dnn_plan *p = ask_for(&r, s) ? acf_dnn_find(t->dev, ACF_DNN_FORWARD, &r.shape) : NULL;
    if (!p) return ACF_OK;
    acf_real *in;
    ACF_TRY(see(t, &r, x, s, &in));
    const acf_dnn_work work = {in, (acf_real *)w, y, b, act == ACF_RELU, 0, workspace(t, p)};
    ACF_TRY(acf_tape_status(t));
    ACF_TRY(acf_dnn_run(t->dev, p, &work, done, &finished));
    if (!*done) return ACF_OK;
    if (!finished) return finish(t->dev, y, b, act, pixels(s), s->Co);
    return act == ACF_RELU || act == ACF_IDENTITY ? ACF_OK : acf_cuda_act(t->dev, act, y, y, pixels(s) * s->Co);
}

static acf_status dnn_dx(acf_tape *t, acf_real *dx, const acf_real *dy, const acf_real *w, const acf_conv_shape *s,
                         bool *done) {
    request r;
    acf_dnn_plan *p = ask_for(&r, s) ? acf_dnn_find(t->dev, ACF_DNN_TO_X, &r.shape) : NULL;
    if (!p) return ACF_OK;
    acf_real *to = r.copied ? acf_tape_reals(t, s->N * r.H * r.W * s->Ci) : dx;
    const acf_dnn_work work = {to, (acf_real *)w, (acf_real *)dy, NULL, false, r.copied ? 0.0f : 1.0f, workspace(t, p)};
    ACF_TRY(acf_tape_status(t));
    ACF_TRY(acf_dnn_run(t->dev, p, &work, done, NULL));
    return *done && r.copied ? place(t->dev, dx, to, s->N, s->H, s->W, r.H, r.W, s->Ci, -s->top, -s->left, true)
                             : ACF_OK;
}

static acf_status dnn_dw(acf_tape *t, acf_real *dw, const acf_real *dy, const acf_real *x, const acf_conv_shape *s,
                         bool *done) {
    request r;
    acf_dnn_plan *p = ask_for(&r, s) ? acf_dnn_find(t->dev, ACF_DNN_TO_W, &r.shape) : NULL;
    if (!p) return ACF_OK;
    acf_real *in;
    ACF_TRY(see(t, &r, x, s, &in));
    const acf_dnn_work work = {in, dw, (acf_real *)dy, NULL, false, 1, workspace(t, p)};
    ACF_TRY(acf_tape_status(t));
    return acf_dnn_run(t->dev, p, &work, done, NULL);
}

/* ---- patches --------------------------------------------------------------------------------------------------- */

#define PIECE_NUMBERS ((int64_t)16 << 20) /* numbers in a piece of patches */

static int64_t piece_rows(const acf_conv_shape *s) {
    return acf_min(acf_max(PIECE_NUMBERS / acf_max(patch_width(s), 1), 1), acf_max(pixels(s), 1));
}

/* patch (rows, kh·kw·Ci): the inputs of output pixels [r0, r0 + rows) in x; C counts V. */
template <typename V>
static __global__ void gather_patches(V *__restrict__ patch, const V *__restrict__ x, acf_conv_shape s, int64_t C,
                                      int64_t r0, int64_t n) {
    ACF_EACH(e, n) {
        const acf_cell run = acf_cell_of(e, C), row = acf_cell_of(run.row, s.kh * s.kw),
                       place = acf_cell_of(row.column, s.kw);
        const acf_cell line = acf_cell_of(r0 + row.row, s.Wo), image = acf_cell_of(line.row, s.Ho);
        const int64_t h = image.column * s.stride + place.row - s.top,
                      w = line.column * s.stride + place.column - s.left;
        const bool inside = h >= 0 && w >= 0 && h % s.up == 0 && w % s.up == 0 && h / s.up < s.H && w / s.up < s.W;
        patch[e] = inside ? x[((image.row * s.H + h / s.up) * s.W + w / s.up) * C + run.column] : nothing<V>();
    }
}

static acf_status gather(acf_device *dev, acf_real *patch, const acf_real *x, const acf_conv_shape *s, int64_t r0,
                         int64_t rows) {
    const int64_t n = rows * patch_width(s);
    cudaStream_t stream = acf_cuda_stream(dev);
    if (in_fours(s->Ci, patch, x))
        gather_patches<<<acf_each_blocks(n / 4), ACF_THREADS, 0, stream>>>((float4 *)patch, (const float4 *)x, *s,
                                                                           s->Ci / 4, r0, n / 4);
    else
        gather_patches<<<acf_each_blocks(n), ACF_THREADS, 0, stream>>>(patch, x, *s, s->Ci, r0, n);
    return ACF_LAUNCHED("conv2d");
}

/* y = or += patches of x · wᵀ. patch has piece_rows rows. */
static acf_status own_products(acf_device *dev, acf_real *y, const acf_real *x, const acf_real *w, bool add,
                               const acf_conv_shape *s, acf_real *patch) {
    const int64_t K = patch_width(s), rows = piece_rows(s);
    for (int64_t r0 = 0; r0 < pixels(s); r0 += rows) {
        const int64_t n = acf_min(rows, pixels(s) - r0);
        const acf_gemm product = to_y(y + r0 * s->Co, patch, w, n, K, s->Co, add);
        ACF_TRY(gather(dev, patch, x, s, r0, n));
        ACF_TRY(acf_cuda_gemm(dev, &product, NULL, false));
    }
    return ACF_OK;
}

static acf_status own_forward(acf_tape *t, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                              acf_act_kind act, const acf_conv_shape *s) {
    acf_real *patch = acf_tape_reals(t, piece_rows(s) * patch_width(s));
    ACF_TRY(acf_tape_status(t));
    ACF_TRY(own_products(t->dev, y, x, w, false, s, patch));
    return finish(t->dev, y, b, act, pixels(s), s->Co);
}

/* turned (Ci,kh,kw,Co): w (Co,kh,kw,Ci) with its channels exchanged and the kernel rotated by 180°. */
static __global__ void turn_weights(acf_real *__restrict__ to, const acf_real *__restrict__ w, int64_t places,
                                    int64_t Ci, int64_t Co) {
    ACF_EACH(i, Ci * places * Co) {
        const acf_cell run = acf_cell_of(i, Co), at = acf_cell_of(run.row, places);
        to[i] = w[(run.column * places + places - 1 - at.column) * Ci + at.row];
    }
}

/* dx as a convolution of dy: sizes are exchanged, and a stride becomes zeros between dy's pixels. */
static acf_conv_shape turned(const acf_conv_shape *s) {
    acf_conv_shape b = *s;
    b.H = s->Ho, b.W = s->Wo, b.Ci = s->Co, b.Ho = s->H, b.Wo = s->W, b.Co = s->Ci;
    b.stride = 1, b.up = s->stride, b.top = s->kh - 1 - s->top, b.left = s->kw - 1 - s->left;
    return b;
}

static acf_status own_dx(acf_tape *t, acf_real *dx, const acf_real *dy, const acf_real *w, const acf_conv_shape *s) {
    const acf_conv_shape back = turned(s);
    const int64_t weights = patch_width(s) * s->Co;
    acf_real *turn = acf_tape_reals(t, weights), *patch = acf_tape_reals(t, piece_rows(&back) * patch_width(&back));
    ACF_TRY(acf_tape_status(t));
    turn_weights<<<acf_each_blocks(weights), ACF_THREADS, 0, acf_cuda_stream(t->dev)>>>(turn, w, s->kh * s->kw, s->Ci,
                                                                                        s->Co);
    ACF_TRY(ACF_LAUNCHED("conv2d"));
    return own_products(t->dev, dx, dy, turn, true, &back, patch);
}

static acf_status own_dw(acf_tape *t, acf_real *dw, const acf_real *dy, const acf_real *x, const acf_conv_shape *s) {
    const int64_t K = patch_width(s), rows = piece_rows(s);
    acf_real *patch = acf_tape_reals(t, rows * K);
    ACF_TRY(acf_tape_status(t));
    for (int64_t r0 = 0; r0 < pixels(s); r0 += rows) {
        const int64_t n = acf_min(rows, pixels(s) - r0);
        const acf_gemm product = to_dw(dw, dy + r0 * s->Co, patch, n, K, s->Co);
        ACF_TRY(gather(t->dev, patch, x, s, r0, n));
        ACF_TRY(acf_cuda_gemm(t->dev, &product, NULL, false));
    }
    return ACF_OK;
}

/* ---- the operation --------------------------------------------------------------------------------------------- */

static acf_status run_forward(acf_tape *t, const acf_conv_shape *s, acf_act_kind act, acf_real *y, const acf_real *x,
                              const acf_real *w, const acf_real *b) {
    bool done = false;
    if (is_plain(s)) {
        const acf_gemm product = to_y(y, x, w, pixels(s), patch_width(s), s->Co, false);
        ACF_TRY(acf_cuda_gemm(t->dev, &product, b, act == ACF_RELU));
        return act == ACF_RELU || act == ACF_IDENTITY ? ACF_OK : acf_cuda_act(t->dev, act, y, y, pixels(s) * s->Co);
    }
    ACF_TRY(dnn_forward(t, y, x, w, b, act, s, &done));
    return done ? ACF_OK : own_forward(t, y, x, w, b, act, s);
}

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_conv2d_attrs *a = (const acf_conv2d_attrs *)n->attr;
    const acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    acf_mark mark = acf_arena_mark(t->mem);
    ACF_TRY(run_forward(t, &a->shape, a->act, n->out[0]->data, x->data, w->data, b ? b->data : NULL));
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

static acf_status weight_gradient(acf_tape *t, acf_real *dw, const acf_real *dy, const acf_real *x,
                                  const acf_conv_shape *s) {
    bool done = false;
    if (is_plain(s)) {
        const acf_gemm product = to_dw(dw, dy, x, pixels(s), patch_width(s), s->Co);
        return acf_cuda_gemm(t->dev, &product, NULL, false);
    }
    ACF_TRY(dnn_dw(t, dw, dy, x, s, &done));
    return done ? ACF_OK : own_dw(t, dw, dy, x, s);
}

static acf_status image_gradient(acf_tape *t, acf_real *dx, const acf_real *dy, const acf_real *w,
                                 const acf_conv_shape *s) {
    bool done = false;
    if (is_plain(s)) {
        const int64_t K = patch_width(s), ldk = acf_max(K, 1);
        const acf_gemm product = {false, false, pixels(s), K, s->Co, 1, dy, acf_max(s->Co, 1), w, ldk, 1, dx, ldk};
        return acf_cuda_gemm(t->dev, &product, NULL, false);
    }
    ACF_TRY(dnn_dx(t, dx, dy, w, s, &done));
    return done ? ACF_OK : own_dx(t, dx, dy, w, s);
}

/* True if w's gradient can run on the second stream. Its consumers must synchronise with it: a parameter's gradient
 * has none in the step, and weight_norm uses that stream itself. */
static bool nobody_waits(const acf_node *n, const acf_tensor *w) {
    const acf_op *by = w ? acf_made_by(n, w) : NULL;
    return !by || by->id == ACF_OP_weight_norm;
}

static acf_status gradients(acf_tape *t, const acf_node *n, acf_real *dx, acf_real *dw, acf_real *db,
                            const acf_real *dy) {
    const acf_conv_shape *s = &((const acf_conv2d_attrs *)n->attr)->shape;
    const acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    const bool aside = nobody_waits(n, w) && nobody_waits(n, b);
    if (aside) ACF_TRY(acf_cuda_aside(t, true));
    if (dw) ACF_TRY(weight_gradient(t, dw, dy, x->data, s));
    if (db) ACF_TRY(acf_cuda_colsum(t->dev, db, dy, NULL, pixels(s), s->Co, s->Co));
    if (aside) ACF_TRY(acf_cuda_aside(t, false));
    return dx ? image_gradient(t, dx, dy, w->data, s) : ACF_OK;
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_act_kind act = ((const acf_conv2d_attrs *)n->attr)->act;
    acf_tensor *y = n->out[0];
    acf_real *dx = acf_grad(t, n->in[0]), *dw = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *dpre = act == ACF_IDENTITY ? y->grad : acf_tape_reals(t, acf_tensor_count(y));
    ACF_TRY(acf_tape_status(t));
    if (act != ACF_IDENTITY)
        ACF_TRY(acf_cuda_act_back(t->dev, act, dpre, y->grad, y->data, acf_tensor_count(y), false));
    ACF_TRY(gradients(t, n, dx, dw, db, dpre));
    acf_tape_done(t, mark);
    return ACF_OK;
}

ACF_CUDA_OP(conv2d, forward, backward);
