/* Rows as sequences of tokens: see tokens.h; formulas in docs/math.md, 21.
 *
 * Workload: n = 1e3 to 6e4 tokens of W = 32 to 512 numbers, once a pass: bound by memory. */
#include "ops/tokens.h"

int64_t acf_token_reals(const acf_token_columns *c) { return 1 + (c->apart ? 2 : 1) * c->reals; }

int64_t acf_token_slots(const acf_token_columns *c) {
    int64_t n = acf_token_reals(c);
    for (int64_t j = 0; j < c->classes.D; j++) n += c->classes.count[j];
    return n;
}

/* ---- inputs of tokens -------------------------------------------------------------------------------------------- */

static acf_status inputs_forward(acf_tape *t, acf_node *n) {
    const acf_token_inputs_attrs *a = n->attr;
    const acf_token_columns *c = &a->columns;
    const acf_subset *s = a->s;
    (void)t;
    for (int64_t i = 0; i < a->n; i++) {
        const int32_t p = a->token ? a->token[i] : (int32_t)i, before = p < 0 ? -1 : s->prev[p];
        a->slot[i] = p < 0 ? -1 : 0, a->cell[i] = -1;
        if (before < 0) continue;
        const int32_t row = s->row_of[before], kind = c->kind[s->col_of[before]];
        if (kind >= 0) {
            const bool modelled = c->apart && !a->given[s->cell[before]];
            a->slot[i] = 1 + kind + (modelled ? (int32_t)c->reals : 0);
            a->cell[i] = row * (int32_t)c->reals + kind;
        } else {
            const int64_t j = -1 - kind;
            const int32_t code = a->codes[row * c->classes.D + j];
            if (code >= 0 && code < c->classes.count[j])
                a->slot[i] = (int32_t)acf_token_reals(c) + c->classes.first[j] + code;
        }
    }
    return ACF_OK;
}

const acf_op acf_op_token_inputs = {"token_inputs", ACF_OP_token_inputs, {inputs_forward, NULL}};

acf_told acf_token_inputs(acf_tape *t, const acf_subset *s, const acf_token_columns *c, const uint8_t *given,
                          const int32_t *codes, const int32_t *token, int64_t n) {
    acf_node *node = acf_node_new(t, &acf_op_token_inputs, sizeof(acf_token_inputs_attrs), 0, NULL);
    int32_t *slot = node ? acf_tape_ints(t, n) : NULL, *cell = slot ? acf_tape_ints(t, n) : NULL;
    if (!cell) return (acf_told){NULL, NULL};
    *(acf_token_inputs_attrs *)node->attr = (acf_token_inputs_attrs){s, *c, given, codes, token, n, slot, cell};
    acf_node_run(t, node);
    return t->failure.status ? (acf_told){NULL, NULL} : (acf_told){slot, cell};
}

/* ---- places of tokens -------------------------------------------------------------------------------------------- */

static acf_status places_forward(acf_tape *t, acf_node *n) {
    const acf_token_places_attrs *a = n->attr;
    (void)t;
    for (int64_t e = 0; e < a->u->T; e++)
        a->place[e] = a->s->place[a->u->row_of[e] * a->s->D + a->column[a->u->col_of[e]]];
    return ACF_OK;
}

const acf_op acf_op_token_places = {"token_places", ACF_OP_token_places, {places_forward, NULL}};

const int32_t *acf_token_places(acf_tape *t, const acf_subset *s, const acf_subset *u, const int32_t *column) {
    acf_node *node = acf_node_new(t, &acf_op_token_places, sizeof(acf_token_places_attrs), 0, NULL);
    int32_t *place = node ? acf_tape_ints(t, u->T) : NULL;
    if (!place) return NULL;
    *(acf_token_places_attrs *)node->attr = (acf_token_places_attrs){s, u, column, place};
    acf_node_run(t, node);
    return t->failure.status ? NULL : place;
}

/* ---- embeddings -------------------------------------------------------------------------------------------------- */

void acf_token_embed_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *v, const acf_real *a,
                             const acf_real *b, acf_told told, int64_t n, int64_t W) {
    ACF_PARALLEL(dev, n * W)
    for (int64_t p = 0; p < n; p++) {
        const int64_t slot = told.slot[p];
        const acf_real x = told.cell[p] < 0 ? 0 : v[told.cell[p]];
        acf_real *to = y + p * W;
        ACF_SIMD
        for (int64_t c = 0; c < W; c++) to[c] = slot < 0 ? 0 : b[slot * W + c];
        if (told.cell[p] < 0) continue;
        ACF_SIMD
        for (int64_t c = 0; c < W; c++) to[c] += x * a[slot * W + c];
    }
}

static acf_status embed_forward(acf_tape *t, acf_node *n) {
    const acf_token_embed_attrs *a = n->attr;
    const acf_tensor *v = n->in[0], *b = n->in[2];
    acf_token_embed_fwd_cpu(t->dev, n->out[0]->data, v ? v->data : NULL, n->in[1]->data, b->data, a->told, a->n,
                            b->dim[1]);
    return ACF_OK;
}

/* Values differ by cell, so no two tokens meet. */
static void values_backward(const acf_device *dev, acf_real *dv, const acf_real *dy, const acf_real *a, acf_told told,
                            int64_t n, int64_t W) {
    ACF_PARALLEL(dev, n * W)
    for (int64_t p = 0; p < n; p++) {
        if (told.cell[p] < 0) continue;
        acf_real sum = 0;
        ACF_PRAGMA(omp simd reduction(+ : sum))
        for (int64_t c = 0; c < W; c++) sum += dy[p * W + c] * a[told.slot[p] * W + c];
        dv[told.cell[p]] += sum;
    }
}

/* Rows of dy times the value, and their slots, -1 where there is none. */
static void scaled_rows(const acf_device *dev, acf_real *scaled, int32_t *slot, const acf_real *dy, const acf_real *v,
                        acf_told told, int64_t n, int64_t W) {
    ACF_PARALLEL(dev, n * W)
    for (int64_t p = 0; p < n; p++) {
        const acf_real x = told.cell[p] < 0 ? 0 : v[told.cell[p]];
        slot[p] = told.cell[p] < 0 ? -1 : told.slot[p];
        ACF_SIMD
        for (int64_t c = 0; c < W; c++) scaled[p * W + c] = x * dy[p * W + c];
    }
}

static acf_status embed_backward(acf_tape *t, acf_node *n) {
    const acf_token_embed_attrs *at = n->attr;
    const acf_tensor *v = n->in[0], *a = n->in[1], *b = n->in[2];
    const int64_t W = b->dim[1];
    const acf_real *dy = n->out[0]->grad;
    acf_real *dv = v ? acf_grad(t, n->in[0]) : NULL, *da = acf_grad(t, n->in[1]), *db = acf_grad(t, n->in[2]);
    const acf_mark mark = acf_arena_mark(t->mem);
    int32_t *scratch = acf_tape_ints(t, b->dim[0] + at->n), *slot = acf_tape_ints(t, at->n);
    acf_real *scaled = da && v ? acf_tape_reals(t, at->n * W) : NULL;
    ACF_TRY(acf_tape_status(t));
    if (dv) values_backward(t->dev, dv, dy, a->data, at->told, at->n, W);
    if (db) acf_gather_bwd_cpu(t->dev, db, dy, at->told.slot, scratch, at->n, b->dim[0], W);
    if (scaled) {
        scaled_rows(t->dev, scaled, slot, dy, v->data, at->told, at->n, W);
        acf_gather_bwd_cpu(t->dev, da, scaled, slot, scratch, at->n, a->dim[0], W);
    }
    acf_arena_release(t->mem, mark);
    return ACF_OK;
}

const acf_op acf_op_token_embed = {"token_embed", ACF_OP_token_embed, {embed_forward, embed_backward}};

acf_tensor *acf_token_embed(acf_tape *t, acf_tensor *v, acf_tensor *a, acf_tensor *b, acf_told told, int64_t n,
                            const acf_subset *sub) {
    char sa[ACF_SHAPE_TEXT], sb[ACF_SHAPE_TEXT];
    acf_node *node = acf_node_new(t, &acf_op_token_embed, sizeof(acf_token_embed_attrs), 3, (acf_tensor *[]){v, a, b});
    if (!node) return &t->empty;
    if (a->ndim != 2 || b->ndim != 2 || a->dim[1] != b->dim[1] || a->dim[0] > b->dim[0] || (sub && n != sub->T))
        return acf_reject(t, node->op,
                          "tables %s and %s for %lld tokens; expected (R, W) and (S, W) with S at least R, "
                          "and as many tokens as the subset has",
                          acf_tensor_shape(a, sa), acf_tensor_shape(b, sb), (long long)n);
    *(acf_token_embed_attrs *)node->attr = (acf_token_embed_attrs){told, n};
    node->out[0] = acf_tensor_new(t, 2, (int64_t[]){n, b->dim[1]});
    node->out[0]->sub = sub;
    return acf_node_run(t, node);
}
