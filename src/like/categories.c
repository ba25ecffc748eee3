/* Categories: see categories.h. */
#include "like/categories.h"

#include "ops/class_head.h"
#include "ops/class_rows.h"
#include "ops/concat.h"
#include "ops/embedding.h"
#include "ops/reduce.h"

#include <stdio.h>
#include <string.h>

/* ---- parameters -------------------------------------------------------------------------------------------------- */

/* W, the number of classes in all. */
static int64_t width_of(const acf_classes *c) {
    int64_t W = 0;
    for (int64_t j = 0; j < c->D; j++) W += c->count[j];
    return W;
}

acf_param *acf_category_table(acf_params *ps, const char *name, const acf_classes *classes, int64_t E) {
    return acf_param_add(ps, name, ACF_INIT_NORMAL, 1, 2, (int64_t[]){width_of(classes), E});
}

static acf_status check_shape(const char *name, const acf_categories_shape *s) {
    int64_t W = 0;
    if (s->embedding < 1) return acf_fail(ACF_EUSAGE, "%s: embeddings of %lld numbers", name, (long long)s->embedding);
    for (int64_t j = 0; j < s->classes.D; j++) {
        if (s->classes.count[j] < 1 || s->classes.first[j] != W)
            return acf_fail(ACF_EUSAGE,
                            "%s: column %lld has %d classes from row %d on; expected at least 1, from row %lld on",
                            name, (long long)j, s->classes.count[j], s->classes.first[j], (long long)W);
        W += s->classes.count[j];
    }
    if (s->set && (s->mask_at < 0 || s->class_at < 0 || s->mask_at + s->classes.D > s->context ||
                   s->class_at + s->classes.D * s->embedding > s->context))
        return acf_fail(ACF_EUSAGE, "%s: a context of %lld numbers has no masks at %lld and embeddings at %lld", name,
                        (long long)s->context, (long long)s->mask_at, (long long)s->class_at);
    return ACF_OK;
}

acf_status acf_categories_declare(acf_categories *k, acf_params *ps, const char *name, const acf_categories_shape *s) {
    char full[96];
    ACF_TRY(check_shape(name, s));
    *k = (acf_categories){.classes = s->classes, .by_set = s->set, .mask_at = s->mask_at, .class_at = s->class_at};
    snprintf(full, sizeof full, "%s.classes", name);
    k->table = acf_category_table(ps, full, &k->classes, s->embedding);
    if (!k->table) return acf_error_status();
    snprintf(full, sizeof full, "%s.net", name);
    if (s->set) {
        acf_deep_sets_shape set = {s->context, s->column_embedding, s->units, s->layers, width_of(&k->classes), 1};
        return acf_deep_sets_declare(&k->set, ps, full, &set, ACF_SITE_CLASS_SET);
    }
    /* The embedding takes the place of other networks' value before. */
    acf_rnn_shape net = {
        s->embedding - 1 + 2 * s->column_embedding, s->context, s->units, s->layers, s->deep, width_of(&k->classes), 1};
    return acf_rnn_declare(&k->net, ps, full, &net);
}

/* ---- all steps at once: the classes are known -------------------------------------------------------------------- */

/* before (M,E) and the steps' known numbers, side by side. */
static acf_tensor *with_known(acf_tape *t, acf_tensor *before, acf_tensor *known) {
    return known ? acf_concat(t, 2, (acf_tensor *[]){before, known}) : before;
}

/* The deep sets network on a batch: known classes enter as given ones do. */
static acf_deep_sets_run begin_set(acf_tape *t, const acf_categories *k, const acf_cond *c) {
    acf_deep_sets_run r = acf_deep_sets_begin(t, &k->set, c->context, c->columns, c->mirrored, c->u, c->pass);
    r.terms.wk = acf_prefix_sum_classes(t, acf_p(k->set.wc), acf_p(k->table), &k->classes, k->mask_at, k->class_at);
    return r;
}

/* (T,F): the last hidden units, from the rows (T) of the modelled classes. */
static acf_tensor *hidden(acf_tape *t, const acf_categories *k, const int32_t *rows, const acf_cond *c) {
    const acf_rnn *net = &k->net;
    if (k->by_set) {
        acf_deep_sets_run r = begin_set(t, k, c);
        return acf_deep_sets_all(t, &r, NULL, rows);
    }
    acf_tensor *before = acf_gather_prev(t, acf_embedding(t, acf_p(k->table), rows, c->u->T, c->u), c->u, 0);
    acf_tensor *h =
        acf_gru_stack(t, with_known(t, before, acf_cond_known(t, c)), c->context, net->layers, net->gru, c->u, NULL);
    return acf_pass_dropout(t, c->pass, acf_linear(t, h, net->w1, net->b1, net->act), ACF_SITE_CATEGORY);
}

acf_tensor *acf_categories_weights(const acf_categories *k) { return k->by_set ? acf_p(k->set.w) : k->net.w2; }
acf_tensor *acf_categories_bias(const acf_categories *k) { return k->by_set ? acf_p(k->set.bias) : k->net.b2; }

acf_tensor *acf_categories_cells(acf_tape *t, const acf_categories *k, const int32_t *codes, const acf_cond *c) {
    const int32_t *rows = acf_class_rows_packed(t, &k->classes, codes, c->u);
    return acf_class_logp(t, hidden(t, k, rows, c), acf_categories_weights(k), acf_categories_bias(k), rows,
                          &k->classes, c->u);
}

acf_tensor *acf_categories_logp(acf_tape *t, const acf_categories *k, const int32_t *codes, const acf_cond *c) {
    return acf_sum_subset(t, acf_categories_cells(t, k, codes, c), c->u);
}

acf_tensor *acf_categories_probs(acf_tape *t, const acf_categories *k, const int32_t *codes, const acf_cond *c) {
    const int32_t *rows = acf_class_rows_packed(t, &k->classes, codes, c->u);
    return acf_class_probs(t, hidden(t, k, rows, c), acf_categories_weights(k), acf_categories_bias(k), &k->classes,
                           (acf_cells){NULL, NULL});
}

/* ---- one step after another: the classes are made ---------------------------------------------------------------- */

/* The state between steps. Allocated before the first step, so that each step's own memory can be released. */
typedef struct draw_state {
    const acf_categories *k;
    const acf_subset *u;
    const acf_draw *draw; /* NULL: the most probable class */
    acf_classes local;    /* as acf_class_logits lays classes out: every first is 0 */
    acf_steps steps;
    acf_deep_sets_run set;                                    /* the deep sets network; below, the GRU */
    acf_tensor *known;                                        /* (T,2E) or NULL */
    acf_tensor *cond[ACF_RNN_LAYERS], *state[ACF_RNN_LAYERS]; /* (N,3H), (active[0],H) */
    int32_t *codes;                                           /* (T) */
} draw_state;

static acf_cells cells_of(const draw_state *w, int64_t step) {
    return (acf_cells){w->u->row_of + w->steps.first[step], w->u->col_of + w->steps.first[step]};
}

static void keep(acf_tape *t, void *to, const void *from, size_t bytes) {
    if (!t->failure.status && acf_device_copy(t->dev, to, from, bytes, ACF_ON_DEVICE)) acf_tape_fail(t, NULL);
}

/* (active) rows of the classes of the step before; its ranks are this step's, and possibly more. NULL at the first
 * step. */
static const int32_t *rows_before(acf_tape *t, const draw_state *w, int64_t step) {
    if (step == 0) return NULL;
    const int32_t *made = w->codes + w->steps.first[step - 1];
    return acf_class_rows_at(t, &w->k->classes, made, cells_of(w, step - 1), w->steps.active[step]);
}

/* (active,E): their embeddings. */
static acf_tensor *class_before(acf_tape *t, const draw_state *w, int64_t step) {
    int64_t n = w->steps.active[step];
    acf_tensor *table = acf_p(w->k->table);
    if (step == 0) return acf_tensor_const(t, NULL, 0, 2, (int64_t[]){n, table->dim[1]});
    return acf_embedding(t, table, rows_before(t, w, step), n, NULL);
}

/* (active,F): the last hidden units at a step. */
static acf_tensor *hidden_at(acf_tape *t, draw_state *w, int64_t step) {
    const acf_rnn *net = &w->k->net;
    if (w->k->by_set) return acf_deep_sets_step(t, &w->set, step, NULL, rows_before(t, w, step));
    acf_tensor *x = with_known(t, class_before(t, w, step), w->known ? acf_step_slice(t, w->known, w->u, step) : NULL);
    for (int l = 0; l < net->layers; l++) {
        x = acf_gru_step(t, x, step ? w->state[l] : NULL, w->cond[l], &net->gru[l], w->u);
        keep(t, w->state[l]->data, x->data, (size_t)acf_tensor_count(x) * sizeof(acf_real));
    }
    return acf_linear(t, x, net->w1, net->b1, net->act);
}

static void draw_step(acf_tape *t, draw_state *w, int64_t step) {
    int64_t n = w->steps.active[step];
    acf_cells at = cells_of(w, step);
    acf_tensor *logits = acf_class_logits(t, hidden_at(t, w, step), acf_categories_weights(w->k),
                                          acf_categories_bias(w->k), &w->k->classes, at);
    const int32_t *made;
    if (w->draw) {
        acf_draw d = *w->draw;
        d.at = at;
        made = acf_categorical_sample(t, logits, &w->local, &d);
    } else {
        made = acf_categorical_argmax(t, logits, &w->local, at);
    }
    keep(t, w->codes + w->steps.first[step], made, (size_t)n * sizeof(int32_t));
}

static void draw_begin(acf_tape *t, draw_state *w, const acf_cond *c) {
    const acf_rnn *net = &w->k->net;
    size_t bytes = (size_t)w->k->classes.D * sizeof(int32_t);
    int32_t *zeros = acf_arena_alloc(t->host, bytes);
    if (!zeros)
        acf_tape_fail(t, NULL);
    else
        w->local = (acf_classes){w->k->classes.D, memset(zeros, 0, bytes), w->k->classes.count};
    w->codes = acf_tape_ints(t, w->u->T);
    w->steps = acf_tape_steps(t, w->u);
    if (t->failure.status) return;
    if (w->k->by_set) {
        w->set = begin_set(t, w->k, c);
        acf_deep_sets_start(t, &w->set);
        return;
    }
    w->known = acf_cond_known(t, c);
    for (int l = 0; l < net->layers; l++) {
        w->cond[l] = acf_gru_condition(t, c->context, &net->gru[l]);
        w->state[l] = acf_tensor_new(t, 2, (int64_t[]){w->steps.active[0], net->gru[l].wh->dim[1]});
    }
}

const int32_t *acf_categories_draw(acf_tape *t, const acf_categories *k, const acf_cond *c, const acf_draw *d) {
    if (t->failure.status) return NULL;
    if (t->record) {
        acf_fail(ACF_EUSAGE, "categories are drawn on a tape that does not record");
        acf_tape_fail(t, NULL);
        return NULL;
    }
    draw_state w = {.k = k, .u = c->u, .draw = d};
    draw_begin(t, &w, c);
    for (int64_t step = 0; step < w.steps.n && !t->failure.status; step++) {
        acf_tape_mark mark = acf_tape_position(t);
        draw_step(t, &w, step);
        acf_tape_rewind(t, mark);
    }
    return t->failure.status ? NULL : w.codes;
}

/* ---- context ----------------------------------------------------------------------------------------------------- */

acf_tensor *acf_category_context(acf_tape *t, acf_tensor *table, const acf_classes *classes, const int32_t *codes,
                                 const uint8_t *seen, int64_t N) {
    const int32_t *rows = acf_class_rows_seen(t, classes, codes, seen, N);
    acf_tensor *each = acf_embedding(t, table, rows, N * classes->D, NULL);
    return acf_tensor_view(t, each, 2, (int64_t[]){N, classes->D * table->dim[1]});
}
