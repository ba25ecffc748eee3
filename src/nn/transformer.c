/* A causal transformer: see transformer.h. */
#include "nn/transformer.h"

#include "ops/arith.h"
#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/gelu.h"
#include "ops/layer_norm.h"
#include "ops/transformer_block.h"

#include <stdio.h>

int acf_transformer_heads(int64_t width) {
    if (width >= 256 && width % 64 == 0) return (int)(width / 64);
    if (width % 32 == 0) return (int)(width / 32);
    return width % 16 == 0 ? (int)(width / 16) : 1;
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* The prefix of a layer's name; failures stick. */
typedef struct layer_prefix {
    acf_params *ps;
    char name[96];
    acf_status status;
} layer_prefix;

static acf_param *declare(layer_prefix *at, const char *part, acf_init init, double scale, int64_t rows, int64_t cols) {
    if (at->status) return NULL;
    acf_param *p = acf_declare(at->ps, at->name, part, init, scale, cols ? 2 : 1, (int64_t[]){rows, cols});
    if (!p) at->status = acf_error_status();
    return p;
}

static acf_dense_layer dense(layer_prefix *at, const char *part, int64_t out, int64_t in) {
    char w[32], b[32];
    snprintf(w, sizeof w, "%s.w", part), snprintf(b, sizeof b, "%s.b", part);
    return (acf_dense_layer){declare(at, w, ACF_INIT_UNIFORM, 1, out, in), declare(at, b, ACF_INIT_CONST, 0, out, 0)};
}

/* Scales and shifts have no weight decay. */
static acf_norm_layer norm(layer_prefix *at, const char *part, int64_t W) {
    char scale[32], shift[32];
    snprintf(scale, sizeof scale, "%s.scale", part), snprintf(shift, sizeof shift, "%s.shift", part);
    acf_norm_layer n = {declare(at, scale, ACF_INIT_CONST, 1, W, 0), declare(at, shift, ACF_INIT_CONST, 0, W, 0)};
    if (n.scale) n.scale->decay = false;
    return n;
}

static acf_param *table(layer_prefix *at, const char *part, int64_t rows, int64_t W) {
    acf_param *p = declare(at, part, ACF_INIT_NORMAL, 1, rows, W);
    if (p) p->decay = false;
    return p;
}

acf_status acf_transformer_declare(acf_transformer *net, acf_params *ps, const char *name,
                                   const acf_transformer_shape *s, uint32_t site) {
    const int64_t W = s->width;
    if (s->blocks < 1 || s->blocks > ACF_TRANSFORMER_BLOCKS)
        return acf_fail(ACF_EUSAGE, "%s: %d blocks; expected 1 to %d", name, s->blocks, ACF_TRANSFORMER_BLOCKS);
    layer_prefix at = {.ps = ps};
    snprintf(at.name, sizeof at.name, "%s", name);
    *net = (acf_transformer){.width = W, .blocks = s->blocks, .heads = acf_transformer_heads(W), .site = site};
    net->times = table(&at, "times", s->reals, W), net->plus = table(&at, "plus", s->slots, W);
    net->value = dense(&at, "value", W, W);
    net->next = table(&at, "next", s->columns, W);
    for (int l = 0; l < s->blocks; l++) {
        acf_block_layers *b = &net->block[l];
        snprintf(at.name, sizeof at.name, "%s.%d", name, l);
        b->before_attention = norm(&at, "before-attention", W), b->before_mlp = norm(&at, "before-mlp", W);
        b->qkv = dense(&at, "qkv", 3 * W, W), b->out = dense(&at, "out", W, W);
        b->up = dense(&at, "up", 4 * W, W), b->down = dense(&at, "down", W, 4 * W);
    }
    snprintf(at.name, sizeof at.name, "%s", name);
    net->norm = norm(&at, "norm", W);
    return at.status;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static acf_tensor *apply(acf_tape *t, acf_tensor *x, const acf_dense_layer *l) {
    return acf_linear(t, x, acf_p(l->w), acf_p(l->b), ACF_IDENTITY);
}

static acf_tensor *normed(acf_tape *t, acf_tensor *x, const acf_norm_layer *l) {
    return acf_layer_norm(t, x, acf_p(l->scale), acf_p(l->shift));
}

/* The tokens of one run: all of s, or if `token` is set, n of them, with those before in the cache. */
typedef struct run {
    const acf_transformer *net;
    const acf_subset *s;
    const acf_pass *pass;
    const int32_t *token;
    const acf_transformer_cache *cache; /* NULL: none is kept */
} run;

/* to = x, in memory that no rewind releases. */
static void keep(acf_tape *t, acf_tensor *to, const acf_tensor *x) {
    if (t->failure.status) return;
    if (acf_device_copy(t->dev, to->data, x->data, (size_t)acf_tensor_count(x) * sizeof(acf_real), ACF_ON_DEVICE))
        acf_tape_fail(t, NULL);
}

/* The embeddings of the columns to predict. */
static acf_tensor *target_embeddings(acf_tape *t, const run *r, int64_t n) {
    acf_tensor *all = acf_embedding_columns(t, acf_p(r->net->next), r->s);
    return r->token ? acf_gather(t, all, r->token, n, 0) : all;
}

static acf_tensor *attend(acf_tape *t, const run *r, acf_tensor *h, int l) {
    const acf_block_layers *b = &r->net->block[l];
    acf_tensor *qkv = apply(t, normed(t, h, &b->before_attention), &b->qkv);
    return apply(t, acf_attention_step(t, qkv, r->token, r->cache->qkv[l], r->net->heads, r->s), &b->out);
}

static acf_tensor *mlp(acf_tape *t, const run *r, acf_tensor *h, int l) {
    const acf_block_layers *b = &r->net->block[l];
    return apply(t, acf_gelu(t, apply(t, normed(t, h, &b->before_mlp), &b->up)), &b->down);
}

/* Block l on the tokens of the run. */
static acf_tensor *block(acf_tape *t, const run *r, acf_tensor *h, int l) {
    if (r->token) {
        h = acf_add(t, h, attend(t, r, h, l));
        return acf_add(t, h, mlp(t, r, h, l));
    }
    const acf_block_layers *b = &r->net->block[l];
    acf_tensor *const param[ACF_BLOCK_PARAMS] = {[ACF_BLOCK_SCALE] = acf_p(b->before_attention.scale),
                                                 [ACF_BLOCK_SHIFT] = acf_p(b->before_attention.shift),
                                                 [ACF_BLOCK_QKV] = acf_p(b->qkv.w),
                                                 [ACF_BLOCK_QKV_BIAS] = acf_p(b->qkv.b),
                                                 [ACF_BLOCK_OUT] = acf_p(b->out.w),
                                                 [ACF_BLOCK_OUT_BIAS] = acf_p(b->out.b),
                                                 [ACF_BLOCK_SCALE2] = acf_p(b->before_mlp.scale),
                                                 [ACF_BLOCK_SHIFT2] = acf_p(b->before_mlp.shift),
                                                 [ACF_BLOCK_UP] = acf_p(b->up.w),
                                                 [ACF_BLOCK_UP_BIAS] = acf_p(b->up.b),
                                                 [ACF_BLOCK_DOWN] = acf_p(b->down.w),
                                                 [ACF_BLOCK_DOWN_BIAS] = acf_p(b->down.b)};
    const uint32_t site = r->net->site + 2 * (uint32_t)l;
    const acf_block_told told = {.s = r->s,
                                 .heads = r->net->heads,
                                 .qkv = r->cache ? r->cache->qkv[l] : NULL,
                                 .drop = {acf_pass_drop(r->pass, site), acf_pass_drop(r->pass, site + 1)}};
    return acf_transformer_block(t, h, param, &told);
}

/* The same. Without recording, the result takes h's memory, and all else is free again. */
static acf_tensor *through_block(acf_tape *t, const run *r, acf_tensor *h, int l) {
    const acf_tape_mark mark = acf_tape_position(t);
    acf_tensor *y = block(t, r, h, l);
    if (t->record || t->failure.status) return y;
    keep(t, h, y);
    acf_tape_rewind(t, mark);
    return h;
}

static acf_tensor *through(acf_tape *t, const run *r, acf_tensor *v, acf_told told, int64_t n) {
    const acf_transformer *net = r->net;
    if (t->failure.status) return &t->empty;
    acf_tensor *x = acf_token_embed(t, v, acf_p(net->times), acf_p(net->plus), told, n, r->token ? NULL : r->s);
    acf_tensor *h = acf_add(t, apply(t, acf_gelu(t, x), &net->value), target_embeddings(t, r, n));
    for (int l = 0; l < net->blocks; l++) h = through_block(t, r, h, l);
    return normed(t, h, &net->norm);
}

acf_tensor *acf_transformer_run(acf_tape *t, const acf_transformer *net, acf_tensor *v, acf_told told,
                                const acf_subset *s, const acf_pass *pass) {
    return through(t, &(run){net, s, pass, NULL, NULL}, v, told, t->failure.status ? 0 : s->T);
}

void acf_transformer_fill(acf_tape *t, const acf_transformer *net, acf_tensor *v, acf_told told, const acf_subset *s,
                          acf_transformer_cache *cache) {
    for (int l = 0; l < net->blocks; l++) cache->qkv[l] = acf_tensor_packed(t, s, 3 * net->width);
    const acf_tape_mark mark = acf_tape_position(t);
    through(t, &(run){net, s, NULL, NULL, cache}, v, told, t->failure.status ? 0 : s->T);
    if (!t->failure.status) acf_tape_rewind(t, mark);
}

acf_tensor *acf_transformer_step(acf_tape *t, const acf_transformer *net, acf_tensor *v, acf_told told,
                                 const int32_t *token, int64_t n, const acf_subset *s,
                                 const acf_transformer_cache *cache) {
    return through(t, &(run){net, s, NULL, token, cache}, v, told, n);
}
