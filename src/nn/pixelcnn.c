/* A gated PixelCNN: see pixelcnn.h. */
#include "nn/pixelcnn.h"

#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/crelu.h"
#include "ops/weight_norm.h"

#include <stdio.h>

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static int layer_of(int block, int part) { return ACF_PIXEL_FIRST + block * ACF_PIXEL_EACH + part; }

/* Kernels and their padding. A stream's first layer must not see the current pixel; later ones may, because their input
 * does not depend on it. */
static const struct {
    acf_conv_size size; /* in and out filled in below */
    acf_conv how;
} above = {{2, 3, 0, 0, 1}, {1, 2, 1, -1, 1, ACF_IDENTITY}}, left = {{1, 3, 0, 0, 1}, {1, 0, 3, 0, -1, ACF_IDENTITY}},
  point = {{1, 1, 0, 0, 1}, {1, 0, 0, 0, 0, ACF_IDENTITY}}, vertical = {{2, 3, 0, 0, 1}, {1, 1, 1, 0, 1, ACF_IDENTITY}},
  horizontal = {{1, 3, 0, 0, 1}, {1, 0, 2, 0, 0, ACF_IDENTITY}};

static acf_status put_layer(acf_pixelcnn *n, acf_params *ps, const char *name, int at, const char *part,
                            acf_conv_size size, acf_conv how, int64_t in, int64_t out) {
    char full[112];
    snprintf(full, sizeof full, "%s.%s", name, part);
    size.in = in, size.out = out;
    return acf_conv_layer_declare(&n->layer[at], ps, full, size, how);
}

static acf_status declare_block(acf_pixelcnn *n, acf_params *ps, const char *name, int i) {
    const int64_t F = n->shape.width;
    char block[96];
    snprintf(block, sizeof block, "%s.%d", name, i);
    ACF_TRY(put_layer(n, ps, block, layer_of(i, ACF_PIXEL_VIN), "v-in", vertical.size, vertical.how, 2 * F, F));
    ACF_TRY(put_layer(n, ps, block, layer_of(i, ACF_PIXEL_VOUT), "v-out", vertical.size, vertical.how, 2 * F, 2 * F));
    ACF_TRY(put_layer(n, ps, block, layer_of(i, ACF_PIXEL_VCOND), "v-cond", point.size, point.how, F, 2 * F));
    ACF_TRY(put_layer(n, ps, block, layer_of(i, ACF_PIXEL_HIN), "h-in", horizontal.size, horizontal.how, 2 * F, F));
    ACF_TRY(put_layer(n, ps, block, layer_of(i, ACF_PIXEL_HAUX), "h-aux", point.size, point.how, 2 * F, F));
    ACF_TRY(
        put_layer(n, ps, block, layer_of(i, ACF_PIXEL_HOUT), "h-out", horizontal.size, horizontal.how, 2 * F, 2 * F));
    return put_layer(n, ps, block, layer_of(i, ACF_PIXEL_HCOND), "h-cond", point.size, point.how, F, 2 * F);
}

acf_status acf_pixelcnn_declare(acf_pixelcnn *n, acf_params *ps, const char *name, const acf_pixelcnn_shape *s) {
    const int64_t F = s->width,
                  in = 2 * s->C + 1; /* values, mask, and ones, which distinguish the image from the outside */
    char part[96];
    if (s->blocks < 0 || s->blocks > ACF_PIXEL_BLOCKS)
        return acf_fail(ACF_EUSAGE, "%s: %d blocks; expected 0 to %d", name, s->blocks, ACF_PIXEL_BLOCKS);
    n->shape = *s;
    snprintf(part, sizeof part, "%s.embed", name);
    ACF_TRY(acf_image_embed_declare(&n->embed, ps, part,
                                    &(acf_image_embed_shape){s->H, s->W, s->C, F, s->embed_blocks, s->embed_deep}));
    ACF_TRY(put_layer(n, ps, name, ACF_PIXEL_ABOVE, "above", above.size, above.how, in, F));
    ACF_TRY(put_layer(n, ps, name, ACF_PIXEL_LEFT, "left", left.size, left.how, in, F));
    ACF_TRY(put_layer(n, ps, name, ACF_PIXEL_JOIN, "join", point.size, point.how, F, F));
    for (int i = 0; i < s->blocks; i++) ACF_TRY(declare_block(n, ps, name, i));
    return put_layer(n, ps, name, ACF_PIXEL_HEAD, "head", point.size, point.how, F, s->out);
}

/* ---- the two streams, on any part of the image ------------------------------------------------------------------- */

/* Inputs of the layers with wide kernels: the image, then two for each block of each stream. */
_Static_assert(ACF_PIXEL_BLOCKS <= ACF_ROW_BLOCKS, "a row has room for every block");
#define SLOTS (1 + 4 * ACF_PIXEL_BLOCKS)
enum { SLOT_IMAGE, SLOT_FIRST };
enum { SLOT_VIN, SLOT_VOUT, SLOT_HIN, SLOT_HOUT, SLOT_EACH };
static int slot_of(int block, int which) { return SLOT_FIRST + block * SLOT_EACH + which; }

/* A run of the network on a part of the image. */
typedef struct stage {
    const acf_pixelcnn *n;
    acf_tensor *kernel[ACF_PIXEL_LAYERS], *bias[ACF_PIXEL_LAYERS];
    acf_tensor *canvas[SLOTS]; /* NULL: the whole image at once */
    acf_region at;
    const acf_pass *pass;
} stage;

/* Rows of the vertical stream as inputs of the horizontal one, block by block. */
typedef struct vertical_rows {
    acf_tensor *first;                                          /* (N,h,w,F) */
    acf_tensor *aux[ACF_PIXEL_BLOCKS], *cond[ACF_PIXEL_BLOCKS]; /* (N,h,w,F), (N,h,w,2F) */
} vertical_rows;

static void make_kernels(acf_tape *t, stage *s) {
    for (int i = 0; i < layer_of(s->n->shape.blocks, 0); i++)
        s->kernel[i] = acf_conv_layer_kernel(t, &s->n->layer[i]), s->bias[i] = acf_p(s->n->layer[i].b);
}

static acf_tensor *convolve(acf_tape *t, const stage *s, int layer, acf_tensor *x, acf_conv how) {
    return acf_conv2d(t, x, s->kernel[layer], s->bias[layer], how);
}

static acf_tensor *at_point(acf_tape *t, const stage *s, int layer, acf_tensor *x) {
    return convolve(t, s, layer, x, s->n->layer[layer].how);
}

/* A layer with a wide kernel. On a part of the image, x is first put to its position on the canvas, unless it is there
 * already, and the layer reads the surroundings from the canvas. */
static acf_tensor *run_wide_layer(acf_tape *t, const stage *s, int layer, int slot, acf_tensor *x, bool put,
                                  bool pair) {
    const acf_conv_layer *l = &s->n->layer[layer];
    if (!s->canvas[slot]) return convolve(t, s, layer, pair ? acf_crelu(t, ACF_ELU, x) : x, l->how);
    if (t->failure.status) return &t->empty;
    if (put) acf_paste(t, s->canvas[slot], x, s->at.top, s->at.left);
    const acf_region r = {s->at.top - l->how.top, s->at.left - l->how.left, s->at.height + l->v->t.dim[1] - 1,
                          s->at.width + l->v->t.dim[2] - 1};
    x = acf_window(t, s->canvas[slot], r);
    return convolve(t, s, layer, pair ? acf_crelu(t, ACF_ELU, x) : x, (acf_conv){.act = l->how.act});
}

/* A block; aux NULL: none. */
static acf_tensor *run_block(acf_tape *t, const stage *s, int i, bool across, acf_tensor *x, acf_tensor *aux,
                             acf_tensor *cond) {
    const int in = layer_of(i, across ? ACF_PIXEL_HIN : ACF_PIXEL_VIN),
              out = layer_of(i, across ? ACF_PIXEL_HOUT : ACF_PIXEL_VOUT);
    acf_tensor *h = run_wide_layer(t, s, in, slot_of(i, across ? SLOT_HIN : SLOT_VIN), x, true, true);
    if (aux) h = acf_add(t, h, aux);
    h = acf_pass_dropout(t, s->pass, h, (uint32_t)(ACF_SITE_FLOW + 2 * i + across));
    h = run_wide_layer(t, s, out, slot_of(i, across ? SLOT_HOUT : SLOT_VOUT), h, true, true);
    return acf_gated(t, x, h, cond);
}

/* The vertical stream at s->at, whose embedding is e; `image` as in run_wide_layer. */
static vertical_rows run_vertical(acf_tape *t, const stage *s, acf_tensor *image, acf_tensor *e) {
    vertical_rows rows;
    acf_tensor *v = run_wide_layer(t, s, ACF_PIXEL_ABOVE, SLOT_IMAGE, image, false, false);
    rows.first = at_point(t, s, ACF_PIXEL_JOIN, v);
    for (int i = 0; i < s->n->shape.blocks; i++) {
        v = run_block(t, s, i, false, v, NULL, at_point(t, s, layer_of(i, ACF_PIXEL_VCOND), e));
        rows.aux[i] = at_point(t, s, layer_of(i, ACF_PIXEL_HAUX), acf_crelu(t, ACF_ELU, v));
        rows.cond[i] = at_point(t, s, layer_of(i, ACF_PIXEL_HCOND), e);
    }
    return rows;
}

/* The horizontal stream, and its output. */
static acf_tensor *run_horizontal(acf_tape *t, const stage *s, acf_tensor *image, const vertical_rows *rows) {
    acf_tensor *h = acf_add(t, run_wide_layer(t, s, ACF_PIXEL_LEFT, SLOT_IMAGE, image, false, false), rows->first);
    for (int i = 0; i < s->n->shape.blocks; i++) h = run_block(t, s, i, true, h, rows->aux[i], rows->cond[i]);
    return at_point(t, s, ACF_PIXEL_HEAD, acf_act(t, ACF_ELU, h));
}

static acf_tensor *picture(acf_tape *t, acf_tensor *z, acf_tensor *b) {
    if (t->failure.status) return &t->empty;
    acf_tensor *ones = acf_tensor_const(t, NULL, 1, 4, (int64_t[]){z->dim[0], z->dim[1], z->dim[2], 1});
    return acf_concat(t, 3, (acf_tensor *[]){z, b, ones});
}

acf_tensor *acf_pixelcnn_run(acf_tape *t, const acf_pixelcnn *n, acf_tensor *z, acf_tensor *given, acf_tensor *b,
                             const acf_pass *pass) {
    stage s = {.n = n, .pass = pass};
    make_kernels(t, &s);
    acf_tensor *image = picture(t, z, b);
    const vertical_rows rows = run_vertical(t, &s, image, acf_image_embed_run(t, &n->embed, given, b));
    return run_horizontal(t, &s, image, &rows);
}

/* ---- pixel by pixel ---------------------------------------------------------------------------------------------- */

struct acf_pixel_walk {
    stage s;
    acf_tensor *z, *b, *embedding;
    vertical_rows row;             /* of the current row */
    acf_tape_mark begin, row_made; /* before the first row; after this row's vertical stream */
};

/* The head's numbers y become times·y + plus. The head's weights are changed, so no other code is affected. */
static void change_head(acf_tape *t, stage *s, const acf_pixel_change *c) {
    const acf_conv_layer *head = &s->n->layer[ACF_PIXEL_HEAD];
    s->kernel[ACF_PIXEL_HEAD] = acf_weight_norm(t, acf_p(head->v), acf_mul(t, acf_p(head->g), c->times));
    s->bias[ACF_PIXEL_HEAD] = acf_add(t, acf_mul(t, acf_p(head->b), c->times), c->plus);
}

acf_pixel_walk *acf_pixel_walk_new(acf_tape *t, const acf_pixelcnn *n, acf_tensor *given, acf_tensor *b,
                                   const acf_pixel_change *change) {
    ACF_ASSERT(!t->record);
    acf_pixel_walk *k = t->failure.status ? NULL : acf_arena_alloc(t->host, sizeof *k);
    if (!k) {
        acf_tape_fail(t, NULL);
        return NULL;
    }
    *k = (acf_pixel_walk){.s.n = n, .b = b};
    make_kernels(t, &k->s);
    if (change) change_head(t, &k->s, change);
    k->embedding = acf_image_embed_run(t, &n->embed, given, b);
    k->z = acf_window(t, given, (acf_region){0, 0, n->shape.H, n->shape.W}); /* a copy */
    k->s.canvas[SLOT_IMAGE] = picture(t, k->z, b);
    const int64_t N = t->failure.status ? 0 : given->dim[0];
    for (int i = SLOT_FIRST; i < slot_of(n->shape.blocks, 0); i++)
        k->s.canvas[i] = acf_tensor_const(t, NULL, 0, 4, (int64_t[]){N, n->shape.H, n->shape.W, n->shape.width});
    if (t->failure.status) return NULL;
    k->begin = acf_tape_position(t);
    return k;
}

void acf_pixel_walk_row(acf_tape *t, acf_pixel_walk *k, int64_t r) {
    if (t->failure.status) return;
    acf_tape_rewind(t, k->begin);
    k->s.at = (acf_region){r, 0, 1, k->s.n->shape.W};
    k->row = run_vertical(t, &k->s, NULL, acf_window(t, k->embedding, k->s.at));
    k->row_made = acf_tape_position(t);
}

acf_tensor *acf_pixel_walk_at(acf_tape *t, acf_pixel_walk *k, int64_t c) {
    if (t->failure.status) return &t->empty;
    const acf_region here = {0, c, 1, 1}; /* in this row of the vertical stream */
    vertical_rows rows = {.first = acf_window(t, k->row.first, here)};
    for (int i = 0; i < k->s.n->shape.blocks; i++)
        rows.aux[i] = acf_window(t, k->row.aux[i], here), rows.cond[i] = acf_window(t, k->row.cond[i], here);
    k->s.at.left = c, k->s.at.width = 1;
    return run_horizontal(t, &k->s, NULL, &rows);
}

void acf_pixel_walk_set(acf_tape *t, acf_pixel_walk *k, int64_t c, acf_tensor *pixel) {
    if (t->failure.status) return;
    const acf_region here = {k->s.at.top, c, 1, 1};
    acf_paste(t, k->z, pixel, here.top, c);
    acf_paste(t, k->s.canvas[SLOT_IMAGE], picture(t, pixel, acf_window(t, k->b, here)), here.top, c);
    if (!t->failure.status) acf_tape_rewind(t, k->row_made);
}

void acf_pixel_walk_fill(acf_tape *t, acf_pixel_walk *k, acf_pixel_row how, const acf_draw *d) {
    const stage *s = &k->s;
    if (t->failure.status) return;
    how.row = s->at.top, how.blocks = s->n->shape.blocks, how.first = k->row.first, how.image = s->canvas[SLOT_IMAGE],
    how.z = k->z;
    how.left = s->kernel[ACF_PIXEL_LEFT], how.left_bias = s->bias[ACF_PIXEL_LEFT];
    how.head = s->kernel[ACF_PIXEL_HEAD], how.head_bias = s->bias[ACF_PIXEL_HEAD];
    for (int i = 0; i < how.blocks; i++) {
        const int in = layer_of(i, ACF_PIXEL_HIN), out = layer_of(i, ACF_PIXEL_HOUT);
        how.block[i] =
            (acf_row_block){s->kernel[in], s->bias[in], s->kernel[out], s->bias[out], k->row.aux[i], k->row.cond[i]};
    }
    acf_pixel_row_run(t, &how, d);
}

acf_tensor *acf_pixel_walk_image(acf_pixel_walk *k) { return k->z; }
