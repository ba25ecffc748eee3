/* The attention likelihood: see attention_like.h. */
#include "like/attention_like.h"

#include "like/like.h"
#include "ops/arith.h"
#include "ops/class_head.h"
#include "ops/class_rows.h"
#include "ops/mixture.h"
#include "ops/reduce.h"

#include <stdio.h>
#include <string.h>

/* ---- parameters -------------------------------------------------------------------------------------------------- */

static acf_status declare_head(acf_dense_layer *l, acf_params *ps, const char *name, const char *part, acf_init init,
                               int64_t out, int64_t W) {
    char w[32], b[32];
    snprintf(w, sizeof w, "%s.w", part), snprintf(b, sizeof b, "%s.b", part);
    l->w = acf_declare(ps, name, w, init, init == ACF_INIT_CONST ? 0 : 1, 2, (int64_t[]){out, W});
    l->b = l->w ? acf_declare(ps, name, b, ACF_INIT_CONST, 0, 1, &out) : NULL;
    return l->b ? ACF_OK : acf_error_status();
}

/* Mixtures begin as the standard normal density for every cell (acf_like_fill): their weights are 0. */
acf_status acf_attention_like_declare(acf_attention_like *k, acf_params *ps, const char *name,
                                      const acf_attention_like_shape *s) {
    const int64_t reals = acf_token_reals(&k->columns), slots = acf_token_slots(&k->columns);
    const acf_transformer_shape shape = {s->columns, reals, slots, s->width, s->blocks};
    k->components = s->components;
    ACF_TRY(acf_transformer_declare(&k->net, ps, name, &shape, ACF_SITE_TRANSFORMER));
    if (k->columns.reals)
        ACF_TRY(declare_head(&k->mixture, ps, name, "mixture", ACF_INIT_CONST, 3 * s->components, s->width));
    return k->columns.classes.D
               ? declare_head(&k->classes, ps, name, "classes", ACF_INIT_UNIFORM, slots - reals, s->width)
               : ACF_OK;
}

/* ---- all cells at once ------------------------------------------------------------------------------------------- */

/* (N,K): the reals' values as token inputs. */
static acf_tensor *token_values(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r, acf_tensor *z) {
    return k->columns.apart && z ? acf_scatter_cells(t, z, r->u_real, r->x) : r->x;
}

/* (T,W) for all tokens. */
static acf_tensor *hidden(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r, acf_tensor *z) {
    const acf_told told =
        acf_token_inputs(t, r->s, &k->columns, r->given, r->codes, NULL, t->failure.status ? 0 : r->s->T);
    return acf_transformer_run(t, &k->net, token_values(t, k, r, z), told, r->s, r->pass);
}

/* The rows of h (T of s, W) that stand for the cells of u. */
static acf_tensor *of_cells(acf_tape *t, acf_tensor *h, const acf_attention_rows *r, const acf_subset *u,
                            const int32_t *column) {
    return acf_gather_packed(t, h, acf_token_places(t, r->s, u, column), u);
}

static acf_tensor *head(acf_tape *t, acf_tensor *h, const acf_dense_layer *l) {
    return acf_linear(t, h, acf_p(l->w), acf_p(l->b), ACF_IDENTITY);
}

static acf_tensor *logp_reals(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r, acf_tensor *h,
                              acf_tensor *z) {
    acf_tensor *p = head(t, of_cells(t, h, r, r->u_real, k->real_column), &k->mixture);
    return acf_sum_subset(t, acf_mixture_logp(t, p, z, k->components, k->lo, k->hi), r->u_real);
}

static acf_tensor *logp_classes(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r, acf_tensor *h) {
    const acf_classes *classes = &k->columns.classes;
    const int32_t *rows = acf_class_rows_packed(t, classes, r->codes, r->u_category);
    acf_tensor *there = of_cells(t, h, r, r->u_category, k->category_column);
    acf_tensor *lp = acf_class_logp(t, there, acf_p(k->classes.w), acf_p(k->classes.b), rows, classes, r->u_category);
    return acf_sum_subset(t, lp, r->u_category);
}

acf_tensor *acf_attention_like_logp(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r,
                                    acf_tensor *z) {
    acf_tensor *h = hidden(t, k, r, z);
    if (t->failure.status) return &t->empty;
    if (!r->u_category) return logp_reals(t, k, r, h, z);
    acf_tensor *classes = logp_classes(t, k, r, h);
    return r->u_real ? acf_add(t, classes, logp_reals(t, k, r, h, z)) : classes;
}

acf_tensor *acf_attention_like_mixtures(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r) {
    acf_tensor *h = hidden(t, k, r, NULL);
    return t->failure.status ? h : head(t, of_cells(t, h, r, r->u_real, k->real_column), &k->mixture);
}

acf_tensor *acf_attention_like_probs(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r) {
    acf_tensor *h = hidden(t, k, r, NULL);
    if (t->failure.status) return h;
    acf_tensor *there = of_cells(t, h, r, r->u_category, k->category_column);
    return acf_class_probs(t, there, acf_p(k->classes.w), acf_p(k->classes.b), &k->columns.classes,
                           (acf_cells){NULL, NULL});
}

/* ---- cell by cell ------------------------------------------------------------------------------------------------ */

/* The state between steps: the values and classes that are token inputs, and the blocks' cache of the tokens before. */
typedef struct draw_state {
    const acf_attention_like *k;
    const acf_attention_rows *r;
    const acf_draw *draw; /* NULL: means and most probable classes */
    const acf_attention_value *value;
    acf_tensor *x; /* (N,K), the token inputs */
    acf_transformer_cache cache;
    acf_classes local; /* as acf_class_logits lays classes out: every first is 0 */
} draw_state;

/* One step over the cells of a part. */
typedef struct step {
    const int32_t *token;
    acf_cells at;
    int64_t first, n;
} step;

/* (n,W) of the step's tokens. */
static acf_tensor *hidden_at(acf_tape *t, const draw_state *w, const step *s) {
    const acf_attention_rows *r = w->r;
    const acf_told told = acf_token_inputs(t, r->s, &w->k->columns, r->given, r->codes, s->token, s->n);
    return acf_transformer_step(t, &w->k->net, w->x, told, s->token, s->n, r->s, &w->cache);
}

static acf_draw draw_at(const draw_state *w, const step *s) {
    acf_draw d = *w->draw;
    d.at = s->at;
    return d;
}

static void class_step(acf_tape *t, const draw_state *w, const step *s, acf_tensor *z) {
    const acf_attention_like *k = w->k;
    acf_tensor *logits =
        acf_class_logits(t, hidden_at(t, w, s), acf_p(k->classes.w), acf_p(k->classes.b), &k->columns.classes, s->at);
    const acf_draw d = w->draw ? draw_at(w, s) : (acf_draw){0};
    const int32_t *made = w->draw ? acf_categorical_sample(t, logits, &w->local, &d)
                                  : acf_categorical_argmax(t, logits, &w->local, s->at);
    (void)z;
    acf_put_codes_at(t, w->r->codes, made, w->r->u_category->cell + s->first, s->n);
}

static void real_step(acf_tape *t, const draw_state *w, const step *s, acf_tensor *z) {
    const acf_attention_like *k = w->k;
    acf_tensor *p = head(t, hidden_at(t, w, s), &k->mixture);
    const acf_draw d = w->draw ? draw_at(w, s) : (acf_draw){0};
    acf_tensor *made =
        w->draw ? acf_mixture_sample(t, p, k->components, k->lo, k->hi, &d) : acf_mixture_mean(t, p, k->components);
    if (t->failure.status) return;
    if (acf_device_copy(t->dev, z->data + s->first, made->data, (size_t)s->n * sizeof(acf_real), ACF_ON_DEVICE))
        acf_tape_fail(t, NULL);
    acf_tensor *told = w->value ? w->value->of(t, w->value->ctx, z) : NULL;
    if (!t->failure.status)
        acf_put_reals(t, w->x, told ? acf_tensor_wrap(t, told->data + s->first, 1, &s->n) : made, s->at);
}

/* All steps of a part. */
static void draw_part(acf_tape *t, const draw_state *w, const acf_subset *u, const int32_t *column, acf_tensor *z,
                      void (*take)(acf_tape *, const draw_state *, const step *, acf_tensor *)) {
    const int32_t *token = acf_token_places(t, w->r->s, u, column);
    const acf_steps steps = acf_tape_steps(t, u);
    for (int64_t i = 0; i < steps.n && !t->failure.status; i++) {
        const int64_t first = steps.first[i];
        const acf_tape_mark mark = acf_tape_position(t);
        take(t, w, &(step){token + first, {u->row_of + first, u->col_of + first}, first, steps.active[i]}, z);
        acf_tape_rewind(t, mark);
    }
}

/* The reals, with 0 where they are modelled, before any of those is known. */
static acf_tensor *known_values(acf_tape *t, const acf_attention_rows *r) {
    return acf_scatter_cells(t, acf_tensor_const(t, r->u_real, 0, 1, &r->u_real->T), r->u_real, r->x);
}

static bool begin(acf_tape *t, draw_state *w) {
    const acf_attention_rows *r = w->r;
    const int64_t categories = w->k->columns.classes.D;
    int32_t *zeros = acf_arena_alloc(t->host, (size_t)(categories + 1) * sizeof *zeros);
    if (!zeros) return acf_tape_fail(t, NULL) == ACF_OK;
    w->local = (acf_classes){categories, memset(zeros, 0, (size_t)(categories + 1) * sizeof *zeros),
                             w->k->columns.classes.count};
    w->x = r->u_real ? known_values(t, r) : NULL;
    const acf_told told =
        acf_token_inputs(t, r->s, &w->k->columns, r->given, r->codes, NULL, t->failure.status ? 0 : r->s->T);
    acf_transformer_fill(t, &w->k->net, w->x, told, r->s, &w->cache);
    return t->failure.status == ACF_OK;
}

acf_tensor *acf_attention_like_draw(acf_tape *t, const acf_attention_like *k, const acf_attention_rows *r,
                                    const acf_draw *d, const acf_attention_value *value) {
    if (t->failure.status) return NULL;
    if (t->record) {
        acf_fail(ACF_EUSAGE, "the attention likelihood draws on a tape that does not record");
        acf_tape_fail(t, NULL);
        return NULL;
    }
    draw_state w = {.k = k, .r = r, .draw = d, .value = value};
    acf_tensor *z = r->u_real ? acf_tensor_const(t, r->u_real, 0, 1, &r->u_real->T) : NULL;
    if (!begin(t, &w)) return NULL;
    if (r->u_category) draw_part(t, &w, r->u_category, k->category_column, NULL, class_step);
    if (r->u_real) draw_part(t, &w, r->u_real, k->real_column, z, real_step);
    return t->failure.status ? NULL : z;
}

const acf_like_kind acf_like_attention = {.name = "attention", .whole_row = true};
