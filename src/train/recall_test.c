/* Tests of recall.h: when rows are looked up, how far they are believed, and that records and archives say so. */
#include "train/recall.h"

#include "harness/train_lab.h"
#include "model/archive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 4, N = 240 };

/* Whole numbers, two of which may go by a rule that a network learns, and a class; every row stands `copies` times in the table. */
static acf_table *table_with(int64_t rows, int copies, bool rule) {
    static const acf_column columns[D] = {{"class", 3}, {"a", 0}, {"b", 0}, {"c", 0}};
    double *x = malloc(sizeof(double) * (size_t)(rows * D));
    acf_table *t = NULL;
    assert_non_null(x);
    for (int64_t i = 0; i < rows; i++) {
        const int64_t kind = i * 7 % rows / copies;
        x[i * D] = floor(acf_lab_random(1, kind, 0, 2.999));
        for (int j = 1; j < D; j++) x[i * D + j] = floor(acf_lab_random((uint64_t)j + 1, kind, 0, 60));
        if (rule) x[i * D + 3] = x[i * D + 1] + floor(x[i * D + 3] / 6);
    }
    assert_int_equal(acf_tab_create(x, NULL, rows, D, columns, &t), ACF_OK);
    free(x);
    return t;
}

static acf_table *table_of(int64_t rows, int copies) { return table_with(rows, copies, false); }

static void open_lab(acf_train_lab *l, const char *setting, acf_table *t) {
    acf_train_lab_open(l, 1, (const char *[]){"steps=4", "valid-every=2", "recall=true", "anchor=1", setting, NULL});
    acf_train_lab_ready(l, t);
    if (acf_trainer_run(l->tr, NULL, NULL)) fail_msg("%s", acf_error());
}

static double slope_of(acf_train_lab *l) {
    l->tr->recall[ACF_RECALL_SLOPE] = 7;
    if (acf_recall_fit(l->tr)) fail_msg("%s", acf_error());
    return l->tr->recall[ACF_RECALL_SLOPE];
}

static void held_out_cells_decide(void **state) {
    (void)state;
    static const struct {
        int copies;
        const char *setting;
        bool looked_up;
    } some[] = {{2, "valid=0.2", true}, {4, "valid=0.2", true}, {1, "valid=0.2", false}, {2, "recall=false", false}, {2, "valid=0", false}};
    for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
        acf_train_lab l;
        open_lab(&l, some[k].setting, table_of(N, some[k].copies));
        assert_int_equal(slope_of(&l) > 0, some[k].looked_up);
        acf_train_lab_close(&l);
    }
}

static void only_the_first_member_asks(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, "valid=0.2", table_of(N, 2));
    l.tr->member = 1;
    assert_true(slope_of(&l) == 0);
    l.tr->member = 0;
    assert_true(slope_of(&l) > 0);
    acf_train_lab_close(&l);
}

static void a_large_table_is_not_remembered(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) {
        acf_train_lab l;
        acf_train_lab_open(&l, 1, (const char *[]){"valid=0.002", "recall=true", NULL}); /* not trained: that would take long */
        acf_train_lab_ready(&l, table_of(ACF_ARCHIVE_ROWS + more, 2));
        assert_int_equal(slope_of(&l) > 0, !more);
        acf_train_lab_close(&l);
    }
}

/* -Σ log((1-h) p + h q) over the held-out cells by another way: p from single questions, q from look-ups. */
static double objective(acf_train_lab *l, const acf_archive *m, const double *v) {
    acf_recall *r;
    acf_batch *b;
    uint8_t held[D], known[D];
    double sum = 0;
    assert_int_equal(acf_recall_create(m, &r), ACF_OK);
    assert_int_equal(acf_batch_create(1, D, &b), ACF_OK);
    for (int64_t row = 0; row < l->table->N; row++) {
        const double *x = acf_tab_row(l->table, row);
        acf_holdout_row(l->hold, l->table, row, held);
        for (int j = 0; j < D; j++) known[j] = !held[j];
        for (int j = 0; j < D; j++) {
            if (!held[j]) continue;
            acf_batch_fill(l->dev, b, l->table, l->encoder, NULL, ACF_BATCH_TRAIN, &row, 1);
            for (int k = 0; k < D; k++) b->m[k] = k == j || known[k], b->b[k] = known[k];
            acf_batch_dequantise(l->dev, b, l->table, l->encoder, &row, l->tr->set.seed, ACF_NOISE_FIXED);
            acf_tape_begin(l->tr->tape, false);
            const acf_tensor *lp = acf_net_logp(l->tr->tape, acf_net_view(l->tr->tape, l->net, b, NULL));
            const double y = acf_dequantise(l->encoder, j, x[j], l->tr->set.seed, acf_tab_id(l->table, row), ACF_NOISE_FIXED);
            const double p = exp((double)lp->data[0] + acf_encode_log_slope(l->encoder, j, y));
            acf_recall_row(r, x, known, acf_tab_id(l->table, row));
            const double evidence = acf_recall_column(r, j);
            const double h = 1 / (1 + exp(-(v[ACF_RECALL_SHIFT] + v[ACF_RECALL_SLOPE] * evidence + v[ACF_RECALL_CLOSER] * m->closer[j])));
            sum -= log((1 - h) * p + h * acf_recall_density(r, j, x[j]));
        }
    }
    acf_batch_free(b), acf_recall_free(r);
    return sum + 0.5 * (pow((v[ACF_RECALL_SHIFT] + 2) / 3, 2) + pow((v[ACF_RECALL_SLOPE] - 0.3) / 0.5, 2) + pow((v[ACF_RECALL_CLOSER] - 0.5) / 0.5, 2));
}

static void the_numbers_are_where_it_is_least(void **state) {
    (void)state;
    acf_train_lab l;
    acf_archive *m;
    open_lab(&l, "valid=0.2", table_with(N, 2, true));
    assert_true(slope_of(&l) > 0);
    assert_int_equal(acf_archive_make(l.table, l.encoder, &m), ACF_OK);
    const double *found = l.tr->recall, least = objective(&l, m, found);
    for (int k = 0; k < ACF_RECALL_NUMBERS; k++)
        for (int i = -3; i <= 3; i++) {
            double other[ACF_RECALL_NUMBERS];
            memcpy(other, found, sizeof other);
            other[k] = fmax(found[k] + 0.04 * i, k == ACF_RECALL_SHIFT ? -15 : 0);
            assert_true(least <= objective(&l, m, other) + 2e-4);
        }
    acf_archive_free(m);
    acf_train_lab_close(&l);
}

/* A record has them, through its text and back; a model gets the archive that it says. */
static void records_and_archives_agree(void **state) {
    (void)state;
    acf_train_lab l;
    acf_fit_record back;
    json_t *text;
    open_lab(&l, "valid=0.2", table_of(N, 2));
    if (acf_trainer_finish(l.tr)) fail_msg("%s", acf_error());
    const acf_fit_record r = acf_trainer_record(l.tr, ACF_END_STEPS);
    assert_true(r.recall[ACF_RECALL_SLOPE] > 0);
    assert_int_equal(acf_fit_record_to_json(&r, &text), ACF_OK);
    assert_int_equal(acf_fit_record_from_json((acf_json_source){"m", ACF_EMODEL}, text, &back), ACF_OK);
    assert_memory_equal(r.recall, back.recall, sizeof r.recall);
    json_object_set_new(text, "recall", json_pack("[i, i]", 1, 2));
    assert_int_equal(acf_fit_record_from_json((acf_json_source){"m", ACF_EMODEL}, text, &back), ACF_EMODEL);
    assert_string_equal(acf_error(), "m: 'recall' must be a list of 3 numbers");
    json_decref(text);
    acf_model m = {.encoder = l.encoder, .record = r};
    assert_int_equal(acf_recall_attach(&m, l.table), ACF_OK);
    assert_non_null(m.archive);
    assert_true(m.archive->slope == r.recall[ACF_RECALL_SLOPE] && m.archive->N == N);
    for (int j = 0; j < D; j++) assert_true(m.archive->shift[j] == r.recall[ACF_RECALL_SHIFT] + r.recall[ACF_RECALL_CLOSER] * m.archive->closer[j]);
    acf_archive_free(m.archive);
    m.archive = NULL, m.record.recall[ACF_RECALL_SLOPE] = 0;
    assert_int_equal(acf_recall_attach(&m, l.table), ACF_OK);
    assert_null(m.archive);
    acf_train_lab_close(&l);
}

static void survives_without_memory(void **state) {
    (void)state;
    acf_train_lab l;
    open_lab(&l, "valid=0.2", table_of(60, 2));
    acf_status status = ACF_EMEMORY;
    for (int64_t n = 1; status == ACF_EMEMORY; n++) {
        const int64_t live = acf_alloc_live();
        acf_alloc_fail_at(n);
        status = acf_recall_fit(l.tr);
        acf_alloc_fail_at(0);
        acf_tape_begin(l.tr->tape, false);
        if (status) assert_true(acf_alloc_live() <= live + 64); /* a tape keeps what it has grown to */
    }
    assert_int_equal(status, ACF_OK);
    acf_train_lab_close(&l);
}

ACF_TESTS(recall, cmocka_unit_test(held_out_cells_decide), cmocka_unit_test(only_the_first_member_asks), cmocka_unit_test(a_large_table_is_not_remembered),
          cmocka_unit_test(the_numbers_are_where_it_is_least), cmocka_unit_test(records_and_archives_agree), cmocka_unit_test(survives_without_memory))
