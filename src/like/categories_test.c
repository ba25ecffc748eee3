/* Categories: probabilities of all outcomes, gradients, draws against probabilities, cells that must not be read. */
#include "like/categories.h"

#include "harness/model_lab.h"
#include "ops/arith.h"
#include "ops/concat.h"
#include "ops/reduce.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns of 2, 3, 1 and 4 classes: 24 outcomes. */
enum { D = 4, OUTCOMES = 24, MASKS = 1 << D };
static const int32_t first4[D] = {0, 2, 5, 6}, count4[D] = {2, 3, 1, 4};
static const acf_classes classes = {D, first4, count4};

typedef struct bench {
    acf_model_lab m;
    acf_flow_sizes s;
    acf_categories k;
    acf_param *table; /* of the context */
    int32_t *codes;   /* (N,D) */
} bench;

/* A GRU whose context enters the first layer, or all layers; a deep sets network. For deep sets the context is five
 * numbers, the mask of the given categories, and their embeddings. */
typedef enum form { SHALLOW, DEEP, SET, FORMS } form;
enum { MASK_AT = 5, CLASS_AT = MASK_AT + D };

/* The code of column j in an outcome. */
static int32_t code_in(int64_t outcome, int64_t j) {
    for (int64_t i = 0; i < j; i++) outcome /= count4[i];
    return (int32_t)(outcome % count4[j]);
}

/* Row i has the codes of outcome i. */
static void open_bench(bench *b, int64_t N, acf_lab_mask mask, int64_t column_embedding, form f) {
    b->s = acf_model_lab_sizes(D, column_embedding);
    if (f == SET) b->s.context = CLASS_AT + D * 3;
    acf_model_lab_open(&b->m, N, mask, &b->s, 31);
    acf_categories_shape shape = {classes, 3,         column_embedding, b->s.context, 6,
                                  2,       f == DEEP, f == SET,         MASK_AT,      CLASS_AT};
    assert_int_equal(acf_categories_declare(&b->k, b->m.ps, "categories", &shape), ACF_OK);
    b->table = acf_category_table(b->m.ps, "observed", &classes, 2);
    assert_non_null(b->table);
    acf_model_lab_ready(&b->m, 0.7);
    b->codes = calloc((size_t)(N * D + 1), sizeof *b->codes);
    assert_non_null(b->codes);
    for (int64_t i = 0; i < N * D; i++) b->codes[i] = code_in(i / D, i % D);
}

static void close_bench(bench *b) {
    free(b->codes);
    acf_model_lab_close(&b->m);
}

/* Every row gets the context of row 0. */
static void same_context(bench *b) {
    int64_t C = b->s.context;
    for (int64_t i = 0; i < b->m.l.N * C; i++) b->m.context[i] = b->m.context[i % C];
}

/* Every row models the columns of `mask`. */
static void same_mask(bench *b, int mask) {
    for (int64_t i = 0; i < b->m.l.N * D; i++) b->m.l.b[i] = !(mask >> (i % D) & 1), b->m.l.m[i] = 1;
}

static acf_cond begin(bench *b, bool record) { return acf_model_lab_begin(&b->m, record, &b->s); }

static void must(bench *b) {
    if (acf_tape_status(b->m.l.t)) fail_msg("%s", acf_error());
}

/* Probability of row i's modelled codes. */
static void row_probs(bench *b, const acf_cond *c, double *out) {
    acf_tensor *lp = acf_categories_logp(b->m.l.t, &b->k, b->codes, c);
    must(b);
    for (int64_t i = 0; i < b->m.l.N; i++) out[i] = exp((double)lp->data[i]);
}

/* Two outcomes that agree in the modelled columns are one event; the first of them counts. */
static bool is_first(int64_t outcome, int mask) {
    for (int64_t o = 0; o < outcome; o++) {
        bool same = true;
        for (int j = 0; j < D; j++) same &= !(mask >> j & 1) || code_in(o, j) == code_in(outcome, j);
        if (same) return false;
    }
    return true;
}

static void probabilities_sum_to_one(void **state) {
    (void)state;
    for (int f = 0; f < FORMS; f++)
        for (int mask = 0; mask < MASKS; mask++) {
            bench b;
            open_bench(&b, OUTCOMES, ACF_MASK_ALL, f ? 2 : 0, (form)f);
            same_context(&b);
            same_mask(&b, mask);
            acf_cond c = begin(&b, false);
            double p[OUTCOMES], sum = 0;
            row_probs(&b, &c, p);
            for (int o = 0; o < OUTCOMES; o++) sum += is_first(o, mask) ? p[o] : 0;
            acf_assert_close(sum, 1, 64 * (double)ACF_REAL_EPS, "sum over all outcomes");
            close_bench(&b);
        }
}

/* Terms add up to the row's log-probability and are the probabilities' entries, which sum to 1 and end with zeros. */
static void check_cells(form f) {
    bench b;
    open_bench(&b, OUTCOMES, ACF_MASK_RANDOM, 2, f);
    acf_cond c = begin(&b, false);
    acf_tensor *cells = acf_categories_cells(b.m.l.t, &b.k, b.codes, &c);
    acf_tensor *p = acf_categories_probs(b.m.l.t, &b.k, b.codes, &c),
               *lp = acf_categories_logp(b.m.l.t, &b.k, b.codes, &c);
    must(&b);
    double row[OUTCOMES] = {0}, tol = 64 * (double)ACF_REAL_EPS;
    assert_int_equal(p->dim[1], 4);
    for (int64_t i = 0; i < c.u->T; i++) {
        int32_t j = c.u->col_of[i];
        double sum = 0;
        for (int k = 0; k < 4; k++) sum += (double)p->data[4 * i + k];
        for (int k = count4[j]; k < 4; k++) assert_true(p->data[4 * i + k] == 0);
        acf_assert_close(sum, 1, tol, "sum of a cell's probabilities");
        acf_assert_close(log((double)p->data[4 * i + b.codes[c.u->cell[i]]]), (double)cells->data[i], tol, "cell");
        row[c.u->row_of[i]] += (double)cells->data[i];
    }
    for (int i = 0; i < OUTCOMES; i++) acf_assert_close((double)lp->data[i], row[i], tol, "row");
    close_bench(&b);
}

static void cells_and_probabilities_agree(void **state) {
    (void)state;
    check_cells(DEEP);
    check_cells(SET);
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* The log-probability with the observed categories in the context, through the layers that read it. */
static acf_tensor *loss(acf_model_lab *m, void *ctx) {
    bench *b = ctx;
    acf_cond c = begin(b, true);
    acf_tensor *seen = acf_category_context(m->l.t, acf_p(b->table), &classes, b->codes, m->l.b, m->l.N);
    acf_tensor *mixed = acf_slice(m->l.t, seen, 0, 5);
    if (b->k.by_set) { /* the classes' own embeddings, at the positions where the network expects them */
        acf_tensor *given = acf_category_context(m->l.t, acf_p(b->k.table), &classes, b->codes, m->l.b, m->l.N);
        mixed = acf_concat(m->l.t, 3, (acf_tensor *[]){mixed, acf_slice(m->l.t, seen, 0, D), given});
    }
    c.context = acf_add(m->l.t, c.context, mixed);
    return acf_mean(m->l.t, acf_categories_logp(m->l.t, &b->k, b->codes, &c));
}

static void gradients_are_right(void **state) {
    (void)state;
    if (sizeof(acf_real) != 8) acf_skip("gradient checks run in double");
    for (int f = 0; f < FORMS; f++) {
        bench b;
        open_bench(&b, 9, ACF_MASK_RANDOM, f ? 2 : 0, (form)f);
        acf_model_lab_check_gradient(&b.m, loss, &b);
        for (int k = 0; k < b.m.ps->n; k++) { /* and every parameter has a gradient */
            double sum = 0;
            acf_tensor *p = &b.m.ps->list[k]->t;
            for (int64_t i = 0; i < acf_tensor_count(p); i++) sum += fabs((double)p->grad[i]);
            if (sum == 0) fail_msg("'%s' has no gradient", b.m.ps->list[k]->name);
        }
        close_bench(&b);
    }
}

/* ---- draws ------------------------------------------------------------------------------------------------------- */

static int64_t outcome_of(const acf_subset *u, const int32_t *made, int64_t i) {
    int64_t outcome = 0, times = 1;
    for (int64_t j = 0; j < D; times *= count4[j++]) outcome += times * made[acf_subset_at(u, i, j)];
    return outcome;
}

/* 6000 rows of one context: chi-square over the 24 outcomes, 23 degrees of freedom at 0.1 %. */
static void check_draws(form f) {
    enum { N = 6000 };
    bench b;
    open_bench(&b, N, ACF_MASK_ALL, 2, f);
    same_context(&b);
    acf_cond c = begin(&b, false);
    static double p[N];
    double seen[OUTCOMES] = {0}, chi = 0;
    row_probs(&b, &c, p);
    const int32_t *made = acf_categories_draw(b.m.l.t, &b.k, &c, &(acf_draw){.seed = 12});
    must(&b);
    for (int64_t i = 0; i < N; i++) seen[outcome_of(c.u, made, i)]++;
    for (int o = 0; o < OUTCOMES; o++) chi += pow(seen[o] - N * p[o], 2) / (N * p[o]);
    if (!(chi < 49.7)) fail_msg("chi-square %.1f", chi);
    close_bench(&b);
}

static void draws_follow_the_probabilities(void **state) {
    (void)state;
    check_draws(SHALLOW);
    check_draws(SET);
}

/* The most probable class step by step, found by trying every class of each column given those before. */
static void check_most_probable(form f) {
    bench b;
    open_bench(&b, OUTCOMES, ACF_MASK_ALL, 2, f);
    same_context(&b);
    double p[OUTCOMES];
    acf_cond c = begin(&b, false);
    row_probs(&b, &c, p);
    const int32_t *made = acf_categories_draw(b.m.l.t, &b.k, &c, NULL);
    must(&b);
    int32_t best[D];
    for (int j = 0; j < D; j++) {
        double mass[4] = {0};
        for (int o = 0; o < OUTCOMES; o++) {
            bool fits = true;
            for (int i = 0; i < j; i++) fits &= code_in(o, i) == best[i];
            if (fits) mass[code_in(o, j)] += p[o];
        }
        best[j] = 0;
        for (int k = 1; k < count4[j]; k++) best[j] = mass[k] > mass[best[j]] ? k : best[j];
        for (int64_t i = 0; i < OUTCOMES; i++) assert_int_equal(made[acf_subset_at(c.u, i, j)], best[j]);
    }
    close_bench(&b);
}

static void most_probable_classes(void **state) {
    (void)state;
    check_most_probable(DEEP);
    check_most_probable(SET);
}

/* The draws of rows ids[0..n) of a table of ROWS: masks, contexts and draws depend on the row's id only, not on its
 * position. */
enum { ROWS = 40 };
static void draw_rows(form f, const int64_t *ids, int64_t n, int32_t (*out)[D]) {
    bench all, b;
    open_bench(&all, ROWS, ACF_MASK_RANDOM, 2, f);
    open_bench(&b, n, ACF_MASK_RANDOM, 2, f);
    int64_t C = b.s.context;
    uint64_t row_id[ROWS];
    for (int64_t i = 0; i < n; i++) {
        row_id[i] = 1000 + (uint64_t)ids[i];
        memcpy(b.m.l.b + i * D, all.m.l.b + ids[i] * D, D);
        memcpy(b.m.l.m + i * D, all.m.l.m + ids[i] * D, D);
        memcpy(b.m.context + i * C, all.m.context + ids[i] * C, (size_t)C * sizeof(acf_real));
    }
    acf_cond c = begin(&b, false);
    const int32_t *made = acf_categories_draw(b.m.l.t, &b.k, &c, &(acf_draw){.seed = 5, .draw = 3, .row_id = row_id});
    must(&b);
    for (int64_t i = 0; i < n; i++)
        for (int j = 0; j < D; j++) out[ids[i]][j] = -1;
    for (int64_t p = 0; p < c.u->T; p++) out[ids[c.u->row_of[p]]][c.u->col_of[p]] = made[p];
    close_bench(&b);
    close_bench(&all);
}

static void check_batches(form f) {
    int64_t ids[ROWS];
    static int32_t whole[ROWS][D], parts[ROWS][D], mixed[ROWS][D];
    for (int64_t i = 0; i < ROWS; i++) ids[i] = i;
    draw_rows(f, ids, ROWS, whole);
    draw_rows(f, ids, 7, parts);
    draw_rows(f, ids + 7, 1, parts);
    draw_rows(f, ids + 8, ROWS - 8, parts);
    assert_memory_equal(whole, parts, sizeof whole);
    for (int64_t i = 0; i < ROWS; i++) ids[i] = i * 17 % ROWS;
    draw_rows(f, ids, ROWS, mixed);
    assert_memory_equal(whole, mixed, sizeof whole);
}

static void draws_do_not_depend_on_the_batch(void **state) {
    (void)state;
    check_batches(SHALLOW);
    check_batches(SET);
}

/* ---- unread cells, empty sets, refused arguments ----------------------------------------------------------------- */

static void check_hidden_cells(form f) {
    acf_real lp[2][ROWS], seen[2][ROWS * D * 2];
    bench b;
    open_bench(&b, ROWS, ACF_MASK_RANDOM, 2, f);
    for (int way = 0; way < 2; way++) {
        int32_t observed[ROWS * D], modelled[ROWS * D];
        for (int64_t i = 0; i < ROWS * D; i++) {
            int32_t junk = way ? INT32_MAX - (int32_t)i : -1;
            observed[i] = b.m.l.b[i] ? b.codes[i] : junk;
            modelled[i] = b.m.l.m[i] && !b.m.l.b[i] ? b.codes[i] : junk;
        }
        acf_cond c = begin(&b, false);
        acf_tensor *y = acf_categories_logp(b.m.l.t, &b.k, modelled, &c);
        acf_tensor *x = acf_category_context(b.m.l.t, acf_p(b.table), &classes, observed, b.m.l.b, ROWS);
        must(&b);
        memcpy(lp[way], y->data, sizeof lp[way]);
        memcpy(seen[way], x->data, sizeof seen[way]);
    }
    assert_memory_equal(lp[0], lp[1], sizeof lp[0]);
    assert_memory_equal(seen[0], seen[1], sizeof seen[0]);
    for (int64_t i = 0; i < ROWS * D; i++)
        for (int e = 0; e < 2; e++) {
            acf_real expected = b.m.l.b[i] ? b.table->t.data[2 * (first4[i % D] + b.codes[i]) + e] : 0;
            assert_true(seen[0][2 * i + e] == expected);
        }
    close_bench(&b);
}

static void hidden_cells_are_not_read(void **state) {
    (void)state;
    check_hidden_cells(SHALLOW);
    check_hidden_cells(SET);
}

/* No rows; and rows without a modelled category, which have probability 1. */
static void nothing_to_model(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        bench b;
        int64_t N = way % 2 * 3;
        open_bench(&b, N, ACF_MASK_NONE, 2, way < 2 ? SHALLOW : SET);
        acf_cond c = begin(&b, false);
        acf_tensor *lp = acf_categories_logp(b.m.l.t, &b.k, b.codes, &c);
        acf_tensor *p = acf_categories_probs(b.m.l.t, &b.k, b.codes, &c);
        acf_tensor *x = acf_category_context(b.m.l.t, acf_p(b.table), &classes, b.codes, b.m.l.b, N);
        const int32_t *made = acf_categories_draw(b.m.l.t, &b.k, &c, &(acf_draw){.seed = 1});
        must(&b);
        assert_non_null(made);
        assert_true(lp->dim[0] == N && p->dim[0] == 0 && x->dim[0] == N && x->dim[1] == 2 * D);
        for (int64_t i = 0; i < N; i++) assert_true(lp->data[i] == 0);
        close_bench(&b);
    }
}

/* Four steps need little more memory than one: the codes, and wider rows where a column has more classes. Keeping the
 * layers of the three others would take ten times the allowance. */
static void check_memory(form f) {
    bench b;
    size_t peak[2];
    open_bench(&b, 600, ACF_MASK_ALL, 0, f);
    for (int way = 0; way < 2; way++) {
        same_mask(&b, way ? MASKS - 1 : 1);
        acf_cond c = begin(&b, false);
        size_t before = acf_arena_used(b.m.l.t->mem);
        assert_non_null(acf_categories_draw(b.m.l.t, &b.k, &c, &(acf_draw){.seed = 1}));
        peak[way] = acf_arena_high_water(b.m.l.t->mem) - before;
    }
    assert_true(peak[1] < peak[0] + 600 * 16 * sizeof(acf_real));
    close_bench(&b);
}

static void draws_take_the_memory_of_one_step(void **state) {
    (void)state;
    check_memory(SHALLOW);
    check_memory(SET);
}

/* For deep sets a class has the same effect given or modelled: log P(a, b) = log P(a) + log P(b | a), a given in the
 * context. Rows of three: both modelled; a alone; b with a given. */
static void a_class_has_the_same_effect_given_or_modelled(void **state) {
    (void)state;
    enum { A = 1, B = 3, E = 3 };
    bench b;
    open_bench(&b, OUTCOMES * 3, ACF_MASK_ALL, 2, SET);
    same_context(&b);
    int64_t C = b.s.context;
    for (int64_t i = 0; i < OUTCOMES * 3; i++) {
        for (int j = 0; j < D; j++) {
            b.codes[i * D + j] = code_in(i / 3, j);
            b.m.l.b[i * D + j] = !((j == A && i % 3 != 2) || (j == B && i % 3 != 1));
        }
        if (i % 3 != 2) continue;
        b.m.context[i * C + MASK_AT + A] += 1;
        for (int e = 0; e < E; e++)
            b.m.context[i * C + CLASS_AT + A * E + e] += b.k.table->t.data[(first4[A] + b.codes[i * D + A]) * E + e];
    }
    acf_cond c = begin(&b, false);
    acf_tensor *lp = acf_categories_logp(b.m.l.t, &b.k, b.codes, &c);
    must(&b);
    for (int64_t i = 0; i < OUTCOMES; i++)
        acf_assert_close((double)lp->data[3 * i], (double)lp->data[3 * i + 1] + (double)lp->data[3 * i + 2],
                         500 * (double)ACF_REAL_EPS, "the chain rule");
    close_bench(&b);
}

static void refuses_what_does_not_fit(void **state) {
    (void)state;
    static const int32_t zero[D] = {2, 0, 1, 4}, gap[D] = {0, 2, 6, 7};
    bench b;
    open_bench(&b, 3, ACF_MASK_ALL, 0, SHALLOW);
    b.codes[2 * D + 1] = 3;
    acf_cond c = begin(&b, false);
    acf_categories_logp(b.m.l.t, &b.k, b.codes, &c);
    assert_int_equal(acf_tape_status(b.m.l.t), ACF_EDATA);
    assert_string_equal(acf_error(),
                        "class_rows: row 2, column 1: the code is 3, but the column has 3 classes (0 to 2)");
    c = begin(&b, true);
    assert_null(acf_categories_draw(b.m.l.t, &b.k, &c, NULL));
    assert_int_equal(acf_tape_status(b.m.l.t), ACF_EUSAGE);
    acf_categories k;
    acf_categories_shape shape = {.classes = {D, first4, zero}, .embedding = 3, .context = 5, .units = 6, .layers = 1};
    assert_int_equal(acf_categories_declare(&k, b.m.ps, "other", &shape), ACF_EUSAGE);
    assert_string_equal(acf_error(), "other: column 1 has 0 classes from row 2 on; expected at least 1, from row 2 on");
    shape.classes = (acf_classes){D, gap, count4};
    assert_int_equal(acf_categories_declare(&k, b.m.ps, "other", &shape), ACF_EUSAGE);
    shape.classes = classes, shape.embedding = 0;
    assert_int_equal(acf_categories_declare(&k, b.m.ps, "other", &shape), ACF_EUSAGE);
    shape.embedding = 2, shape.set = true;
    assert_int_equal(acf_categories_declare(&k, b.m.ps, "other", &shape), ACF_EUSAGE);
    assert_string_equal(acf_error(), "other: a context of 5 numbers has no masks at 0 and embeddings at 0");
    close_bench(&b);
}

ACF_TESTS(categories, cmocka_unit_test(probabilities_sum_to_one), cmocka_unit_test(cells_and_probabilities_agree),
          cmocka_unit_test(gradients_are_right), cmocka_unit_test(draws_follow_the_probabilities),
          cmocka_unit_test(most_probable_classes), cmocka_unit_test(draws_do_not_depend_on_the_batch),
          cmocka_unit_test(hidden_cells_are_not_read), cmocka_unit_test(nothing_to_model),
          cmocka_unit_test(draws_take_the_memory_of_one_step),
          cmocka_unit_test(a_class_has_the_same_effect_given_or_modelled), cmocka_unit_test(refuses_what_does_not_fit))
