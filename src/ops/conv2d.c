/* Convolution of images: see conv2d.h; formulas in docs/math.md.
 *
 * Workload: N = 16 to 128 images of 4x4 to 64x64 pixels, 32 to 256 channels, kernels 1x1, 2x2, 2x3 and 3x3. A convolution is a
 * product of (N·Ho·Wo, kh·kw·Ci) patches with the weights. Patches are gathered block by block of rows, each block in a thread's own
 * piece of cache, and multiplied at once; the whole matrix of patches, kh·kw times the image, never exists. A 1x1 convolution is a
 * plain product.
 *
 * Derivatives are products of the same kind: dx gathers patches of dy for weights that are turned round, and so needs no scattering;
 * dw multiplies the patches of x with dy. Blocks depend on the shape alone, and so do the bits. */
#include "ops/conv2d.h"

#include "ops/linear.h"

#include <omp.h>
#include <string.h>

/* ---- patches ----------------------------------------------------------------------------------------------------------- */

#define BLOCK_NUMBERS 65536 /* of a block of patches: what stays in a core's own cache beside the weights */
#define BLOCK_ROWS_MIN 64

static int64_t patch_width(const acf_conv_shape *s) { return s->kh * s->kw * s->Ci; }
static int64_t pixels(const acf_conv_shape *s) { return s->N * s->Ho * s->Wo; }

static int64_t block_rows(const acf_conv_shape *s) {
    int64_t rows = acf_max(BLOCK_NUMBERS / acf_max(patch_width(s), 1), BLOCK_ROWS_MIN);
    return acf_min(rows, acf_max(pixels(s), 1));
}

/* One row of a patch, kw pixels of x's row `line` from column w0 on (line NULL: outside the image); left to right with `up`. */
static void gather_line(acf_real *to, const acf_real *line, int64_t w0, const acf_conv_shape *s) {
    const size_t pixel = (size_t)s->Ci * sizeof *to;
    if (!line) {
        memset(to, 0, (size_t)s->kw * pixel);
    } else if (s->up == 1 && w0 >= 0 && w0 + s->kw <= s->W) {
        memcpy(to, line + w0 * s->Ci, (size_t)s->kw * pixel);
    } else {
        for (int64_t j = 0; j < s->kw; j++) {
            const int64_t w = w0 + j;
            if (w >= 0 && w % s->up == 0 && w / s->up < s->W) memcpy(to + j * s->Ci, line + w / s->up * s->Ci, pixel);
            else memset(to + j * s->Ci, 0, pixel);
        }
    }
}

/* patch (r1 - r0, kh·kw·Ci): what output pixels [r0,r1) see of x. */
static void gather_patches(acf_real *patch, const acf_real *x, const acf_conv_shape *s, int64_t r0, int64_t r1) {
    const int64_t run = s->kw * s->Ci;
    for (int64_t r = r0; r < r1; r++) {
        const int64_t n = r / (s->Ho * s->Wo), p = r / s->Wo % s->Ho, q = r % s->Wo;
        for (int64_t i = 0; i < s->kh; i++, patch += run) {
            const int64_t h = p * s->stride + i - s->top;
            const bool inside = h >= 0 && h % s->up == 0 && h / s->up < s->H;
            gather_line(patch, inside ? x + (n * s->H + h / s->up) * s->W * s->Ci : NULL, q * s->stride - s->left, s);
        }
    }
}

/* A row of patches is a pixel as it is. (As many pixels on both sides: then there is no stride, or but one pixel.) */
static bool is_plain(const acf_conv_shape *s) {
    return s->kh == 1 && s->kw == 1 && !s->top && !s->left && s->H == s->Ho && s->W == s->Wo;
}

/* ---- forward ----------------------------------------------------------------------------------------------------------- */

static int64_t patches_scratch(const acf_device *dev, const acf_conv_shape *s) {
    return is_plain(s) ? 0 : acf_max(dev->threads, 1) * block_rows(s) * patch_width(s);
}

int64_t acf_conv2d_fwd_scratch(const acf_device *dev, const acf_conv_shape *s) { return patches_scratch(dev, s); }

/* y (rows,Co) += patches of x · wᵀ, then act; with b NULL and `add` y is added to, else it starts as the bias or 0. */
static void multiply_patches(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                             acf_act_kind act, bool add, const acf_conv_shape *s, acf_real *scratch) {
    const int64_t K = patch_width(s), rows = block_rows(s), all = pixels(s), blocks = acf_ceil_div(all, rows);
#pragma omp parallel for schedule(static) num_threads(acf_threads_for(dev, all * K))
    for (int64_t k = 0; k < blocks; k++) {
        const int64_t r0 = k * rows, n = acf_min(rows, all - r0);
        acf_real *patch = scratch + omp_get_thread_num() * rows * K, *to = y + r0 * s->Co;
        gather_patches(patch, x, s, r0, r0 + n);
        for (int64_t r = 0; b && r < n; r++) memcpy(to + r * s->Co, b, (size_t)s->Co * sizeof *b);
        acf_cpu_gemm_serial(&(acf_gemm){.tb = true, .M = n, .N = s->Co, .K = K, .alpha = 1, .a = patch, .lda = acf_max(K, 1), .b = w,
                                        .ldb = acf_max(K, 1), .beta = b || add, .c = to, .ldc = acf_max(s->Co, 1)});
        if (act != ACF_IDENTITY) acf_act_fwd_cpu(act, to, to, n * s->Co);
    }
}

void acf_conv2d_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *w, const acf_real *b,
                        acf_act_kind act, const acf_conv_shape *s, acf_real *scratch) {
    if (is_plain(s)) acf_linear_fwd_cpu(dev, y, x, w, b, act, pixels(s), s->Ci, s->Co);
    else multiply_patches(dev, y, x, w, b, act, false, s, scratch);
}

/* ---- backward ---------------------------------------------------------------------------------------------------------- */

/* dx as a convolution of dy: sizes change places, and a stride becomes zeros between dy's pixels. */
static acf_conv_shape turned(const acf_conv_shape *s) {
    return (acf_conv_shape){.N = s->N, .H = s->Ho, .W = s->Wo, .Ci = s->Co, .Ho = s->H, .Wo = s->W, .Co = s->Ci, .kh = s->kh, .kw = s->kw,
                            .stride = 1, .up = s->stride, .top = s->kh - 1 - s->top, .left = s->kw - 1 - s->left};
}

/* turned (Ci,kh,kw,Co): w (Co,kh,kw,Ci) with its channels exchanged, from the last place of the kernel to the first. */
static void turn_weights(acf_real *to, const acf_real *w, const acf_conv_shape *s) {
    const int64_t places = s->kh * s->kw;
    for (int64_t c = 0; c < s->Ci; c++)
        for (int64_t k = 0; k < places; k++)
            for (int64_t o = 0; o < s->Co; o++) to[(c * places + k) * s->Co + o] = w[(o * places + places - 1 - k) * s->Ci + c];
}

#define DW_PIECES 16        /* of the sum over pixels, at most; */
#define DW_NUMBERS 4194304  /* and of all their sums */
#define DW_BLOCKS 4         /* blocks of patches that make a piece worth while */

static int64_t dw_pieces(const acf_conv_shape *s) {
    const int64_t size = acf_max(patch_width(s) * s->Co, 1), blocks = acf_ceil_div(pixels(s), block_rows(s));
    return acf_max(1, acf_min(acf_min(DW_PIECES, DW_NUMBERS / size), blocks / DW_BLOCKS));
}

/* part (Co,K) = dyᵀ · patches over blocks [k0,k1). */
static void sum_patches(acf_real *part, const acf_real *dy, const acf_real *x, const acf_conv_shape *s, acf_real *patch, int64_t k0,
                        int64_t k1) {
    const int64_t K = patch_width(s), rows = block_rows(s);
    for (int64_t k = k0; k < k1; k++) {
        const int64_t r0 = k * rows, n = acf_min(rows, pixels(s) - r0);
        gather_patches(patch, x, s, r0, r0 + n);
        acf_cpu_gemm_serial(&(acf_gemm){.ta = true, .M = s->Co, .N = K, .K = n, .alpha = 1, .a = dy + r0 * s->Co, .lda = acf_max(s->Co, 1),
                                        .b = patch, .ldb = acf_max(K, 1), .beta = k > k0, .c = part, .ldc = acf_max(K, 1)});
    }
}

/* dw (Co,K) += dyᵀ · patches: pieces of the pixels, each summed by one thread, then added up in order. */
static void weight_gradient(const acf_device *dev, acf_real *dw, const acf_real *dy, const acf_real *x, const acf_conv_shape *s,
                            acf_real *patches, acf_real *part) {
    const int64_t K = patch_width(s), size = K * s->Co, blocks = acf_ceil_div(pixels(s), block_rows(s)), pieces = dw_pieces(s);
    const int64_t each = acf_ceil_div(blocks, pieces), used = each ? acf_ceil_div(blocks, each) : 0;
#pragma omp parallel for schedule(static) num_threads(acf_threads_for(dev, pixels(s) * K))
    for (int64_t p = 0; p < used; p++)
        sum_patches(part + p * size, dy, x, s, patches + omp_get_thread_num() * block_rows(s) * K, p * each,
                    acf_min((p + 1) * each, blocks));
    ACF_PARALLEL(dev, used * size)
    for (int64_t c = 0; c < size; c += ACF_CHUNK)
        for (int64_t p = 0; p < used; p++) {
            ACF_SIMD
            for (int64_t i = c; i < acf_min(c + ACF_CHUNK, size); i++) dw[i] += part[p * size + i];
        }
}

int64_t acf_conv2d_bwd_scratch(const acf_device *dev, const acf_conv_shape *s) {
    if (is_plain(s)) return 0;
    const acf_conv_shape back = turned(s);
    const int64_t weights = patch_width(s) * s->Co;
    return acf_max(patches_scratch(dev, s) + dw_pieces(s) * weights, patches_scratch(dev, &back) + weights);
}

void acf_conv2d_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dw, acf_real *db, const acf_real *dy, const acf_real *x,
                        const acf_real *w, const acf_conv_shape *s, acf_real *scratch) {
    if (is_plain(s)) {
        acf_linear_bwd_cpu(dev, dx, dw, db, dy, NULL, x, w, NULL, ACF_IDENTITY, pixels(s), s->Ci, s->Co);
        return;
    }
    if (dx) {
        const acf_conv_shape back = turned(s);
        turn_weights(scratch, w, s);
        multiply_patches(dev, dx, dy, scratch, NULL, ACF_IDENTITY, true, &back, scratch + patch_width(s) * s->Co);
    }
    if (dw) weight_gradient(dev, dw, dy, x, s, scratch, scratch + patches_scratch(dev, s));
    if (db) acf_cpu_colsum(dev, db, dy, pixels(s), s->Co, s->Co);
}

/* ---- the operation ------------------------------------------------------------------------------------------------------- */

static acf_status forward(acf_tape *t, acf_node *n) {
    const acf_conv2d_attrs *a = n->attr;
    const acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2];
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_tape_reals(t, acf_conv2d_fwd_scratch(t->dev, &a->shape));
    ACF_TRY(acf_tape_status(t));
    acf_conv2d_fwd_cpu(t->dev, n->out[0]->data, x->data, w->data, b ? b->data : NULL, a->act, &a->shape, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

/* The gradient before the activation. */
static void before_act(const acf_device *dev, acf_real *dpre, const acf_real *dy, const acf_real *y, acf_act_kind act, int64_t n) {
    ACF_PARALLEL(dev, n)
    for (int64_t c = 0; c < n; c += ACF_CHUNK) acf_act_bwd_cpu(act, dpre + c, dy + c, y + c, acf_min(ACF_CHUNK, n - c));
}

static acf_status backward(acf_tape *t, acf_node *n) {
    const acf_conv2d_attrs *a = n->attr;
    acf_tensor *x = n->in[0], *w = n->in[1], *b = n->in[2], *y = n->out[0];
    acf_real *dx = acf_grad(t, x), *dw = acf_grad(t, w), *db = acf_grad(t, b), *dy = y->grad;
    acf_mark mark = acf_arena_mark(t->mem);
    acf_real *scratch = acf_tape_reals(t, acf_conv2d_bwd_scratch(t->dev, &a->shape));
    acf_real *dpre = a->act == ACF_IDENTITY ? NULL : acf_tape_reals(t, acf_tensor_count(y));
    ACF_TRY(acf_tape_status(t));
    if (dpre) before_act(t->dev, dpre, dy, y->data, a->act, acf_tensor_count(y)), dy = dpre;
    acf_conv2d_bwd_cpu(t->dev, dx, dw, db, dy, x->data, w->data, &a->shape, scratch);
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_conv2d = {"conv2d", ACF_OP_conv2d, {forward, backward}};

#define LARGEST ((int64_t)1 << 24) /* of a padding: sums of sizes stay far from overflow */

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
        return acf_reject(t, n->op, "x is %s and w is %s; expected (N, H, W, Ci) and (Co, kh, kw, Ci)", acf_tensor_shape(x, sx),
                          acf_tensor_shape(w, sw));
    if (b && acf_tensor_count(b) != w->dim[0])
        return acf_reject(t, n->op, "the bias has %lld elements; w is %s, so expected %lld", (long long)acf_tensor_count(b),
                          acf_tensor_shape(w, sw), (long long)w->dim[0]);
    if (how.stride < 0 || how.stride > 2) return acf_reject_value(t, n->op, "the stride is %d; expected 1 or 2", how.stride);
    if ((unsigned)how.act >= ACF_ACT_COUNT) return acf_reject_value(t, n->op, "there is no activation number %d", (int)how.act);
    acf_conv_shape s = {.N = x->dim[0], .H = x->dim[1], .W = x->dim[2], .Ci = x->dim[3], .Co = w->dim[0], .kh = w->dim[1], .kw = w->dim[2],
                        .stride = how.stride == 2 ? 2 : 1, .up = 1, .top = how.top, .left = how.left};
    if (!sizes_fit(&how, &s))
        return acf_reject(t, n->op, "x is %s and w is %s: with paddings %lld %lld %lld %lld (top, left, bottom, right) the kernel is "
                          "larger than the image", acf_tensor_shape(x, sx), acf_tensor_shape(w, sw), (long long)how.top,
                          (long long)how.left, (long long)how.bottom, (long long)how.right);
    *(acf_conv2d_attrs *)n->attr = (acf_conv2d_attrs){s, how.act};
    n->out[0] = acf_tensor_new(t, 4, (int64_t[]){s.N, s.Ho, s.Wo, s.Co});
    return acf_node_run(t, n);
}
