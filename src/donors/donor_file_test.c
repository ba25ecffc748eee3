/* Tests of donors in model files: what is saved is what is loaded, and every error is refused with a message. */
#include "donors/donor_file.h"

#include "harness/lab.h"
#include "harness/model_file_lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64], other[64];

static int make_names(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/acflow-donors-%d.safetensors", (int)getpid());
    snprintf(other, sizeof other, "/tmp/acflow-donors2-%d.safetensors", (int)getpid());
    return 0;
}

static int remove_files(void **state) {
    (void)state;
    unlink(path);
    unlink(other);
    return 0;
}

enum { ROWS = 7, COLS = 4 };
#define ABSENT ((double)NAN)

/* A number, classes of which one is in no row, a number without observed cells, a number with three values. */
static acf_table *some_table(void) {
    static const double x[ROWS * COLS] = {0.1,    2,  ABSENT, -4,     0.1,    0, ABSENT, 8, 0.7,    2,
                                          ABSENT, -4, ABSENT, ABSENT, ABSENT, 8, 0.7,    0, ABSENT, 8,
                                          0.1,    2,  ABSENT, -4,     1e300,  2, ABSENT, 5};
    static const acf_column column[COLS] = {{"a", 0}, {"b", 3}, {"c", 0}, {"d", 0}};
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, ROWS, COLS, column, &t), ACF_OK);
    return t;
}

static acf_model *some_model(acf_device *dev, const acf_table *table) {
    return acf_lab_fitted(dev, table, "gaussian", NULL, 3, 0);
}

/* Ensembles of two members with donors, whose rows have ids of their own (first: the one of row 0). */
typedef struct lab {
    acf_device *dev;
    acf_table *table;
    acf_model *m;
} lab;

static void lab_open(lab *l, uint64_t first_id) {
    assert_int_equal(acf_device_open_cpu(1, &l->dev), ACF_OK);
    l->table = some_table();
    l->table->first_id = first_id;
    l->m = some_model(l->dev, l->table);
    acf_model_append(l->m, some_model(l->dev, l->table));
    assert_int_equal(acf_donors_make(l->table, l->m->encoder, NULL, 1, &l->m->donors), ACF_OK);
    acf_donors *a = l->m->donors;
    a->slope = 0.3, a->agree = 0.7;
    for (int j = 0; j < COLS; j++) {
        a->apart[j] = j % 3 ? 0 : 1.5 + j;
        a->differ[j] = 0.0625 * (j + 1), a->scale[j] = 11 + j, a->width[j] = 21 + j, a->shift[j] = -31 - j;
        for (int k = 0; k < COLS; k++)
            a->near[j * COLS + k] = j == k ? 0 : (10 * j + 10 + k) / 16.0,
                               a->other[j * COLS + k] = j == k ? 0 : (10 * j + 10 + k) / 32.0;
    }
    acf_donors_ready(a);
}

static void lab_close(lab *l) {
    acf_model_free(l->m);
    acf_table_free(l->table);
    acf_device_close(l->dev);
}

static void same(const acf_donors *a, const acf_donors *b) {
    const size_t N = (size_t)a->N, D = (size_t)a->D, values = (size_t)a->first[D];
    assert_true(a->N == b->N && a->D == b->D && a->slope == b->slope && a->agree == b->agree);
    assert_memory_equal(a->id, b->id, N * sizeof *a->id);
    assert_memory_equal(a->code, b->code, N * D * sizeof *a->code);
    assert_memory_equal(a->first, b->first, (D + 1) * sizeof *a->first);
    assert_memory_equal(a->value, b->value, values * sizeof *a->value);
    assert_memory_equal(a->share, b->share, values * sizeof *a->share);
    assert_memory_equal(a->number, b->number, D * sizeof *a->number);
    assert_memory_equal(a->width, b->width, D * sizeof *a->width);
    assert_memory_equal(a->differ, b->differ, D * sizeof *a->differ);
    assert_memory_equal(a->scale, b->scale, D * sizeof *a->scale);
    assert_memory_equal(a->shift, b->shift, D * sizeof *a->shift);
    assert_memory_equal(a->near, b->near, D * D * sizeof *a->near);
    assert_memory_equal(a->other, b->other, D * D * sizeof *a->other);
    assert_memory_equal(a->place, b->place, N * D * sizeof *a->place);
    assert_memory_equal(a->spot, b->spot, values * sizeof *a->spot);
    assert_memory_equal(a->mean, b->mean, values * sizeof *a->mean);
    assert_memory_equal(a->full, b->full, D * sizeof *a->full);
    assert_memory_equal(a->apart, b->apart, D * sizeof *a->apart);
    assert_int_equal(!a->predictor, !b->predictor);
    if (!a->predictor) return;
    assert_true(a->predictor->D == b->predictor->D && a->predictor->P == b->predictor->P);
    assert_memory_equal(a->predictor->first, b->predictor->first, (D + 1) * sizeof *a->predictor->first);
    assert_memory_equal(a->predictor->mean, b->predictor->mean,
                        (size_t)(a->predictor->P * (a->predictor->P + 1)) * sizeof *a->predictor->mean);
    assert_memory_equal(a->predicted, b->predicted, N * D * sizeof *a->predicted);
}

static void donors_are_saved_and_loaded(void **state) {
    (void)state;
    for (uint64_t first_id = 0; first_id < 1000; first_id += 900) {
        lab l;
        acf_model *again = NULL;
        acf_safetensors *f;
        char command[160];
        lab_open(&l, first_id);
        if (first_id) l.m->donors->id[ROWS - 1] = ((uint64_t)1 << 48) - 1;
        l.m->donors->differ[0] = 1 / 3.0, l.m->donors->slope = -1e-9, l.m->donors->near[1] = 1e6,
        l.m->donors->other[COLS * COLS - 2] = 1 / 7.0;
        l.m->donors->apart[0] = first_id ? 1e6 : 1 / 3.0;
        acf_donors_ready(l.m->donors);
        if (acf_model_write(l.m, path) || acf_model_read(l.dev, path, &again) || acf_model_write(again, other))
            fail_msg("%s", acf_error());
        assert_int_equal(l.m->donors->predictor->P, 3);
        same(l.m->donors, again->donors);
        assert_null(again->next->donors);
        snprintf(command, sizeof command, "cmp -s '%s' '%s'", path, other);
        assert_int_equal(system(command), 0);
        assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
        assert_string_equal(acf_safetensors_text_find(f, "format_version"), "6");
        const char *text = acf_safetensors_text_find(f, "donors");
        assert_true(!strstr(text, "\"rows\"") == (first_id > 0));
        acf_safetensors_close(f);
        acf_model_free(again);
        lab_close(&l);
    }
}

/* Both give the same answer about column j of a row. */
static void same_answer(acf_donor_search *a, acf_donor_search *b, int64_t j, const double *x, const uint8_t *known,
                        uint64_t id) {
    static const double tried[] = {0.1, 0.7, 0, 2, 1, -4, 8, 5, 3.25, 1e300};
    const bool found = acf_donor_search_run(a, j, x, known, id);
    assert_int_equal(found, j != 2); /* column 2 has no observed cells */
    assert_int_equal(acf_donor_search_run(b, j, x, known, id), found);
    assert_true(a->n == b->n && a->peak == b->peak && a->alike == b->alike &&
                acf_donor_search_trust(a, j) == acf_donor_search_trust(b, j));
    if (!found) return;
    assert_memory_equal(a->weight, b->weight, (size_t)a->n * sizeof *a->weight);
    for (int k = 0; k < 10; k++) {
        const double u[3] = {acf_lab_random(5, k, 0, 1), acf_lab_random(6, k, 0, 0.5), acf_lab_random(7, k, 0, 1)};
        if (j != 1 || (tried[k] == floor(tried[k]) && tried[k] >= 0 && tried[k] < 3))
            assert_true(acf_donor_search_density(a, j, tried[k]) == acf_donor_search_density(b, j, tried[k]));
        assert_true(acf_donor_search_draw(a, j, u) == acf_donor_search_draw(b, j, u));
    }
    if (j != 1) assert_true(acf_donor_search_mean(a, j) == acf_donor_search_mean(b, j));
}

static void loaded_donors_answer_as_saved_ones(void **state) {
    (void)state;
    for (int learned = 0; learned < 2; learned++) {
        lab l;
        acf_model *again = NULL;
        acf_donor_search *a, *b;
        int64_t donors = 0;
        lab_open(&l, 900);
        if (learned) { /* numbers as learned */
            acf_donors_free(l.m->donors);
            assert_int_equal(acf_donors_make(l.table, l.m->encoder, NULL, 1, &l.m->donors), ACF_OK);
            for (int j = 0; j < COLS; j++) l.m->donors->shift[j] = 1 / 3.0 - j;
            l.m->donors->slope = 0.1, l.m->donors->agree = 1 / 7.0;
            assert_true(l.m->donors->apart[0] > 0 && l.m->donors->apart[1] == 0 && l.m->donors->apart[2] == 0 &&
                        l.m->donors->apart[3] > 0);
        }
        if (acf_model_write(l.m, path) || acf_model_read(l.dev, path, &again)) fail_msg("%s", acf_error());
        assert_true(again->donors->encoder == again->encoder);
        assert_int_equal(acf_donor_search_create(l.m->donors, &a), ACF_OK);
        assert_int_equal(acf_donor_search_create(again->donors, &b), ACF_OK);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLS; j++)
                for (int mask = 0; mask < 1 << COLS; mask++) {
                    const double *x = acf_table_row(l.table, i);
                    uint8_t known[COLS];
                    for (int k = 0; k < COLS; k++) known[k] = (mask >> k & 1) && acf_table_present(x[k]);
                    same_answer(a, b, j, x, known, mask % 3 ? 5 : acf_table_row_id(l.table, i));
                    donors += a->n > 1;
                }
        assert_true(donors > 100);
        acf_donor_search_free(a), acf_donor_search_free(b);
        acf_model_free(again);
        lab_close(&l);
    }
}

/* Without donors a file has no trace of them. */
static void no_donors_leave_no_trace(void **state) {
    (void)state;
    lab l;
    acf_model *again = NULL;
    acf_safetensors *f;
    lab_open(&l, 0);
    acf_donors_free(l.m->donors), l.m->donors = NULL;
    if (acf_model_write(l.m, path) || acf_model_read(l.dev, path, &again)) fail_msg("%s", acf_error());
    assert_null(again->donors);
    assert_int_equal(acf_safetensors_open(path, &f), ACF_OK);
    assert_string_equal(acf_safetensors_text_find(f, "format_version"), "6");
    assert_true(!acf_safetensors_text_find(f, "donors") && !acf_safetensors_find(f, "donors.rows") &&
                !acf_safetensors_find(f, "donors.predictor"));
    acf_safetensors_close(f);
    acf_model_free(again);
    lab_close(&l);
}

/* A valid file with one change. Of the text "donors", `find` becomes `put` (find NULL: put is all of it; bare: there is
 * no such text). Of the tensors "donors.rows", "donors.predictor" and "donors.predicted", see below. */
typedef struct change {
    const char *find, *put;
    bool bare;
    enum { CODES_KEPT, CODES_DROPPED, CODES_SET, CODES_FLAT, CODES_TURNED, CODES_NONE, CODES_MANY, CODES_WHOLE } codes;
    double set; /* of the cell at row 2, column 1; or of the predictor */
    enum {
        EXPECT_KEPT,
        EXPECT_DROPPED,
        EXPECT_FLAT,
        EXPECT_TURNED,
        EXPECT_MEAN,
        EXPECT_DIAGONAL,
        EXPECT_LOWER,
        EXPECT_BOTH,
        EXPECT_WHOLE
    } expect;
    enum { EXPECTED_KEPT, EXPECTED_DROPPED, EXPECTED_TURNED, EXPECTED_NUMBER, EXPECTED_CLASS } expected;
    const char *says;
} change;

/* `good` with the change, in a buffer of its own. */
static const char *changed_text(const char *good, const change *c) {
    static char text[4096];
    if (!c->find) return c->put;
    const char *at = strstr(good, c->find);
    if (!at || strstr(at + 1, c->find)) fail_msg("'%s' must be there once: %s", c->find, good);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, c->put, at + strlen(c->find));
    return text;
}

/* The tensor of codes with the change; false: it is left out. */
static bool change_codes(acf_safetensors_tensor *t, const change *c) {
    static acf_real codes[(ACF_DONORS_ROWS + 1) * COLS];
    static int32_t whole[ROWS * COLS];
    memcpy(codes, t->data, t->bytes);
    if (c->codes == CODES_SET) codes[2 * COLS + 1] = (acf_real)c->set;
    if (c->codes == CODES_FLAT) t->ndim = 1, t->dim[0] = ROWS * COLS;
    if (c->codes == CODES_TURNED) t->dim[0] = COLS, t->dim[1] = ROWS;
    if (c->codes == CODES_NONE) t->dim[0] = 0;
    if (c->codes == CODES_MANY) t->dim[0] = ACF_DONORS_ROWS + 1;
    t->data = codes;
    if (c->codes == CODES_WHOLE) t->dtype = ACF_SAFETENSORS_I32, t->data = whole;
    return c->codes != CODES_DROPPED;
}

/* The same of the predictor: (4,3), its mean first. */
static bool change_expect(acf_safetensors_tensor *t, const change *c) {
    static acf_real value[12];
    static int32_t whole[12];
    assert_int_equal(t->bytes, sizeof value);
    memcpy(value, t->data, t->bytes);
    if (c->expect == EXPECT_FLAT) t->ndim = 1, t->dim[0] = 12;
    if (c->expect == EXPECT_TURNED) t->dim[0] = 3, t->dim[1] = 4;
    if (c->expect == EXPECT_MEAN) value[1] = (acf_real)c->set;
    if (c->expect == EXPECT_DIAGONAL) value[3] = (acf_real)c->set;
    if (c->expect == EXPECT_LOWER || c->expect == EXPECT_BOTH) value[6] = (acf_real)c->set;
    if (c->expect == EXPECT_BOTH) value[4] = (acf_real)c->set;
    t->data = value;
    if (c->expect == EXPECT_WHOLE) t->dtype = ACF_SAFETENSORS_I32, t->bytes = sizeof whole, t->data = whole;
    return c->expect != EXPECT_DROPPED;
}

/* And of the predicted values: in row 3, of column 0, or of column 1, which has classes. */
static bool change_expected(acf_safetensors_tensor *t, const change *c) {
    static acf_real value[ROWS * COLS];
    assert_int_equal(t->bytes, sizeof value);
    memcpy(value, t->data, t->bytes);
    if (c->expected == EXPECTED_TURNED) t->dim[0] = COLS, t->dim[1] = ROWS;
    if (c->expected == EXPECTED_NUMBER) value[3 * COLS] = (acf_real)c->set;
    if (c->expected == EXPECTED_CLASS) value[3 * COLS + 1] = (acf_real)c->set;
    t->data = value;
    return c->expected != EXPECTED_DROPPED;
}

static bool change_tensor(acf_safetensors_tensor *t, const change *c) {
    if (strcmp(t->name, "donors.predicted") == 0) return change_expected(t, c);
    if (strcmp(t->name, "donors.rows") == 0) return change_codes(t, c);
    return strcmp(t->name, "donors.predictor") != 0 || change_expect(t, c);
}

static void write_changed(const acf_safetensors *good, const change *c) {
    acf_safetensors_tensor list[256];
    acf_safetensors_text text[32];
    int64_t n = 0, texts = 0;
    for (int64_t i = 0; i < acf_safetensors_count(good); i++) {
        list[n] = *acf_safetensors_at(good, i);
        if (change_tensor(&list[n], c)) n++;
    }
    for (int64_t i = 0; i < acf_safetensors_text_count(good); i++) {
        text[texts] = *acf_safetensors_text_at(good, i);
        if (strcmp(text[texts].key, "checksum") == 0) continue; /* it would be reported first */
        if (strcmp(text[texts].key, "donors") == 0) {
            if (c->bare) continue;
            if (c->put) text[texts].value = changed_text(text[texts].value, c);
        }
        texts++;
    }
    if (acf_safetensors_write(other, list, n, text, texts)) fail_msg("%s", acf_error());
}

static void wrong_donors_get_a_message(void **state) {
    (void)state;
    static const change changes[] = {
        {.bare = true, .says = "tensor 'donors.predicted' is no part of the network"},
        {.bare = true, .expect = EXPECT_DROPPED, .says = "is no part of the network"},
        {.bare = true,
         .expect = EXPECT_DROPPED,
         .expected = EXPECTED_DROPPED,
         .says = "tensor 'donors.rows' is no part of the network"},
        {.bare = true, .codes = CODES_DROPPED, .says = "tensor 'donors.predicted' is no part of the network"},
        {NULL, "{", .says = ", donors"},
        {NULL, "[]", .says = ", donors: this is "},
        {"\"nearness\": 0.3", "\"nearnes\": 0.3", .says = ", donors: 'nearness' is missing"},
        {"\"nearness\": 0.3", "\"nearness\": \"0.3\"", .says = ", donors: 'nearness' is "},
        {"\"nearness\": 0.3", "\"nearness\": 1e999", .says = ", donors"},
        {"\"agree\": 0.7", "\"agrees\": 0.7", .says = ", donors: 'agree' is missing"},
        {"\"agree\": 0.7", "\"agree\": [0.7]", .says = ", donors: 'agree' is "},
        {"\"columns\": ", "\"rows\": ", .says = ", donors: 'columns' is missing"},
        {"\"columns\": ", "\"columns\": 7,\"was\": ",
         .says = "'columns' must be a list of 4, as many as the encoder has"},
        {"\"columns\": [", "\"columns\": [{\"values\": []},",
         .says = "'columns' must be a list of 4, as many as the encoder has"},
        {"\"columns\": [", "\"columns\": [1,2,3,4],\"was\": [", .says = "column 0: this is "},
        {"\"values\": [0.1,", "\"value\": [0.1,", .says = "column 0: 'values' is missing"},
        {"\"values\": [0.1,", "\"values\": 0.1,\"was\": [", .says = "column 0: 'values' must be a list"},
        {"[0.1, 0.7,", "[0.1,0.2,0.3,0.4,0.5,0.6,0.7,",
         .says = "column 0: 'values' must be a list of no more numbers than there are rows, 7"},
        {"[0.1, 0.7,", "[0.1,true,", .says = "column 0: 'values' is "},
        {"[0.1, 0.7,", "[0.1,0.1,", .says = "column 0: the numbers of 'values' must ascend"},
        {"[0.1, 0.7,", "[0.8,0.7,", .says = "column 0: the numbers of 'values' must ascend"},
        {"[0.1, 0.7,", "[0.1,0.7,0.8,", .says = "column 0: no row has 1e+300, which is one of its 'values'"},
        {"[0.1, 0.7,", "[0.1,",
         .says = "tensor 'donors.rows' is 2 at row 6, column 0; expected a whole number from -1 to 1"},
        {"\"values\": [0, 2]", "\"values\": [-1,2]",
         .says = "column 1: 'values' has -1, expected codes of its classes, from 0 to 2"},
        {"\"values\": [0, 2]", "\"values\": [0,3]",
         .says = "column 1: 'values' has 3, expected codes of its classes, from 0 to 2"},
        {"\"values\": [0, 2]", "\"values\": [0,0.5]", .says = "column 1: 'values' has 0.5"},
        {"\"values\": []", "\"values\": [1]", .says = "column 2: no row has 1"},
        {"\"differ\": 0.125", "\"differs\": 0.125", .says = "column 1: 'differ' is missing"},
        {"\"differ\": 0.125", "\"differ\": 0", .says = "column 1: 'differ' is 0, expected a number between 0 and 1"},
        {"\"differ\": 0.125", "\"differ\": 1", .says = "column 1: 'differ' is 1, expected a number between 0 and 1"},
        {"\"differ\": 0.25", "\"differ\": -0.5", .says = "column 3: 'differ' is -0.5"},
        {"\"scale\": 13.0", "\"scale\": 0", .says = "column 2: 'scale' is 0, expected a number above 0"},
        {"\"scale\": 13.0", "\"scale\": -13", .says = "column 2: 'scale' is -13"},
        {"\"scale\": 13.0", "\"scale\": 1e-310", .says = "column 2: 'scale' is 1e-310"},
        {"\"scale\": 13.0", "\"scale\": null", .says = "column 2: 'scale' is "},
        {"\"width\": 23.0", "\"width\": 0.0", .says = "column 2: 'width' is 0, expected a number above 0"},
        {"\"width\": 23.0", "\"w\": 1", .says = "column 2: 'width' is missing"},
        {"\"shift\": -33.0", "\"shift\": []", .says = "column 2: 'shift' is "},
        {"\"shift\": -33.0", "\"s\": 0", .says = "column 2: 'shift' is missing"},
        {"\"near\": [1.875, ", "\"nears\": [1.875, ", .says = "column 2: 'near' is missing"},
        {"\"near\": [1.875, ", "\"near\": 1.875,\"was\": [",
         .says = "column 2: 'near' must be a list of 4 numbers, one for each column"},
        {"\"near\": [1.875, ", "\"near\": [",
         .says = "column 2: 'near' must be a list of 4 numbers, one for each column"},
        {"\"near\": [1.875, ", "\"near\": [1.875, 1, ",
         .says = "column 2: 'near' must be a list of 4 numbers, one for each column"},
        {"\"near\": [1.875, ", "\"near\": [-0.5, ",
         .says = "column 2: 'near' has -0.5, expected numbers from 0 to 1e+06"},
        {"\"near\": [1.875, ", "\"near\": [1000001, ",
         .says = "column 2: 'near' has 1e+06, expected numbers from 0 to 1e+06"},
        {"\"near\": [1.875, ", "\"near\": [1e300, ",
         .says = "column 2: 'near' has 1e+300, expected numbers from 0 to 1e+06"},
        {"\"near\": [1.875, ", "\"near\": [null, ", .says = "column 2: 'near' is "},
        {"\"other\": [0.9375, ", "\"others\": [0.9375, ", .says = "column 2: 'other' is missing"},
        {"\"other\": [0.9375, ", "\"other\": {},\"was\": [",
         .says = "column 2: 'other' must be a list of 4 numbers, one for each column"},
        {"\"other\": [0.9375, ", "\"other\": [",
         .says = "column 2: 'other' must be a list of 4 numbers, one for each column"},
        {"\"other\": [0.9375, ", "\"other\": [-1e-9, ",
         .says = "column 2: 'other' has -1e-09, expected numbers from 0 to 1e+06"},
        {"\"other\": [0.9375, ", "\"other\": [2e6, ",
         .says = "column 2: 'other' has 2e+06, expected numbers from 0 to 1e+06"},
        {"\"other\": [0.9375, ", "\"other\": [\"1\", ", .says = "column 2: 'other' is "},
        {"\"ids\": ", "\"id\": ", .says = ", donors: 'ids' is missing"},
        {"\"ids\": [900,", "\"ids\": \"lines\",\"was\": [900,",
         .says = "'ids' must be \"rows\" or a list of 7 whole numbers"},
        {"\"ids\": [900,", "\"ids\": 7,\"was\": [900,", .says = "'ids' must be \"rows\" or a list"},
        {"\"ids\": [900,", "\"ids\": [", .says = "'ids' must be \"rows\" or a list"},
        {"\"ids\": [900,", "\"ids\": [9.5,", .says = "'ids' is "},
        {"\"ids\": [900,", "\"ids\": [-1,", .says = "'ids' has -1, expected numbers from 0 to 2^48 - 1"},
        {"\"ids\": [900,", "\"ids\": [281474976710656,", .says = "'ids' has 281474976710656"},
        {.codes = CODES_DROPPED, .says = "tensor 'donors.rows' is missing"},
        {.codes = CODES_SET,
         .set = 2,
         .says = "tensor 'donors.rows' is 2 at row 2, column 1; expected a whole number from -1 to 1"},
        {.codes = CODES_SET, .set = -2, .says = "is -2 at row 2"},
        {.codes = CODES_SET, .set = 0.5, .says = "is 0.5 at row 2"},
        {.codes = CODES_SET, .set = ABSENT, .says = "nan at row 2"},
        {.codes = CODES_SET, .set = 1e30, .says = "is 1e+30 at row 2"},
        {.codes = CODES_FLAT, .says = "another shape than expected: 1 to 20000 rows of 4 columns"},
        {.codes = CODES_TURNED, .says = "another shape than expected"},
        {.codes = CODES_NONE, .says = "another shape than expected"},
        {.codes = CODES_MANY, .says = "another shape than expected"},
        {"\"apart\": 1.5", "\"a\": 1.5", .says = "column 0: 'apart' is missing"},
        {"\"apart\": 1.5", "\"apart\": true", .says = "column 0: 'apart' is "},
        {"\"apart\": 1.5", "\"apart\": -1e-9",
         .says = "column 0: 'apart' is -1e-09, expected a number from 0 to 1e+06"},
        {"\"apart\": 4.5", "\"apart\": 1000001",
         .says = "column 3: 'apart' is 1e+06, expected a number from 0 to 1e+06"},
        {"\"shift\": -32.0, \"apart\": 0.0", "\"shift\": -32.0, \"apart\": 0.5",
         .says = ", donors: 'apart' of column 1 is above 0, but that column is not predicted"},
        {"\"shift\": -33.0, \"apart\": 0.0", "\"shift\": -33.0, \"apart\": 1e-300",
         .says = "'apart' of column 2 is above 0"},
        {.expect = EXPECT_DROPPED, .says = "tensor 'donors.predictor': it is missing"},
        {.expect = EXPECT_FLAT, .says = "tensor 'donors.predictor': its shape is [12], expected [4, 3]"},
        {.expect = EXPECT_TURNED, .says = "tensor 'donors.predictor': its shape is [3, 4], expected [4, 3]"},
        {.expect = EXPECT_MEAN,
         .set = ABSENT,
         .says = "tensor 'donors.predictor' must be means and, below, a symmetric positive definite matrix of 3"},
        {.expect = EXPECT_MEAN, .set = (double)INFINITY, .says = "tensor 'donors.predictor' must be means"},
        {.expect = EXPECT_DIAGONAL, .set = 0, .says = "tensor 'donors.predictor' must be means"},
        {.expect = EXPECT_DIAGONAL, .set = -2, .says = "tensor 'donors.predictor' must be means"},
        {.expect = EXPECT_DIAGONAL, .set = ABSENT, .says = "tensor 'donors.predictor' must be means"},
        {.expect = EXPECT_DIAGONAL, .set = (double)INFINITY, .says = "tensor 'donors.predictor' must be means"},
        {.expect = EXPECT_LOWER, .set = 1e-3, .says = "tensor 'donors.predictor' must be means"},
        {.expect = EXPECT_BOTH, .set = 1e6, .says = "tensor 'donors.predictor' must be means"},
        {.expected = EXPECTED_DROPPED, .says = "tensor 'donors.predicted': it is missing"},
        {.expected = EXPECTED_TURNED, .says = "tensor 'donors.predicted': its shape is [4, 7], expected [7, 4]"},
        {.expected = EXPECTED_NUMBER,
         .set = 1000001,
         .says = "tensor 'donors.predicted' is 1e+06 at row 3, column 0; expected a number from -1e+06 to 1e+06"},
        {.expected = EXPECTED_NUMBER, .set = -2e6, .says = "tensor 'donors.predicted' is -2e+06 at row 3, column 0"},
        {.expected = EXPECTED_NUMBER, .set = ABSENT, .says = "tensor 'donors.predicted'"},
        {.expected = EXPECTED_CLASS,
         .set = 0.5,
         .says = "tensor 'donors.predicted' is 0.5 at row 3, column 1; expected a number from 0 to 0"},
        {.expect = EXPECT_WHOLE, .says = "its dtype is I32, expected F32 or F64"},
        {.codes = CODES_WHOLE, .says = "its dtype is I32, expected F32 or F64"},
    };
    lab l;
    acf_safetensors *good;
    lab_open(&l, 900);
    assert_int_equal(acf_model_write(l.m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        acf_model *none = NULL;
        write_changed(good, &changes[i]);
        const int64_t live = acf_alloc_live();
        const acf_status status = acf_model_read(l.dev, other, &none);
        if (status != ACF_EMODEL || strncmp(acf_error(), other, strlen(other)) != 0 ||
            !strstr(acf_error(), changes[i].says))
            fail_msg("change %d: expected the file and '%s' in: %s", (int)i, changes[i].says, acf_error());
        assert_null(none);
        assert_int_equal(acf_alloc_live(), live);
    }
    acf_safetensors_close(good);
    lab_close(&l);
}

/* Reported before anything else of such a file is read. */
static void models_of_images_have_none(void **state) {
    (void)state;
    lab l;
    acf_safetensors *good;
    acf_model *none = NULL;
    acf_safetensors_text text[32];
    acf_safetensors_tensor list[256];
    char says[160];
    int64_t texts = 0;
    lab_open(&l, 0);
    acf_model_free(l.m->next), l.m->next = NULL;
    assert_int_equal(acf_model_write(l.m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    for (int64_t i = 0; i < acf_safetensors_count(good); i++) list[i] = *acf_safetensors_at(good, i);
    for (int64_t i = 0; i < acf_safetensors_text_count(good); i++) {
        text[texts] = *acf_safetensors_text_at(good, i);
        if (strcmp(text[texts].key, "kind") == 0) text[texts].value = "image";
        texts += strcmp(text[texts].key, "checksum") != 0;
    }
    assert_int_equal(acf_safetensors_write(other, list, acf_safetensors_count(good), text, texts), ACF_OK);
    assert_int_equal(acf_model_read(l.dev, other, &none), ACF_EMODEL);
    snprintf(says, sizeof says, "%s: it has 'donors'; expected none in a model of images", other);
    assert_string_equal(acf_error(), says);
    acf_safetensors_close(good);
    lab_close(&l);
}

/* Whatever the predicted values, weights are finite. */
static void check_finite(const acf_donors *a) {
    const double x[COLS] = {0.1, 2, 0, 8};
    acf_donor_search *r;
    assert_true((double)(acf_real)1e30 == a->predictor->mean[1]);
    assert_int_equal(acf_donor_search_create(a, &r), ACF_OK);
    for (int mask = 0; mask < 1 << COLS; mask++) {
        const uint8_t known[COLS] = {mask & 1, mask >> 1 & 1, mask >> 2 & 1, mask >> 3 & 1};
        assert_true(acf_donor_search_run(r, 0, x, known, 5) && r->n > 0 && isfinite(r->peak));
        for (int64_t k = 0; k < r->n; k++) assert_true(r->weight[k] > 0 && r->weight[k] <= 1);
    }
    acf_donor_search_free(r);
}

/* Changes that are accepted: other ids, and the code of a missing cell. */
static void harmless_changes_are_read(void **state) {
    (void)state;
    static const change changes[] = {
        {"\"ids\": [900,", "\"ids\": [281474976710655,"}, {.codes = CODES_SET, .set = -1},
        {"\"nearness\": 0.3", "\"nearness\": -3"},        {"\"near\": [1.875, ", "\"near\": [1000000, "},
        {"\"other\": [0.9375, ", "\"other\": [0, "},      {"\"agree\": 0.7", "\"agree\": -7"},
        {"\"apart\": 1.5", "\"apart\": 1000000"},         {.expect = EXPECT_MEAN, .set = 1e30},
        {.expected = EXPECTED_NUMBER, .set = -1e6}};
    lab l;
    acf_safetensors *good;
    lab_open(&l, 900);
    assert_int_equal(acf_model_write(l.m, path), ACF_OK);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    for (int i = 0; i < 9; i++) {
        acf_model *m = NULL;
        write_changed(good, &changes[i]);
        if (acf_model_read(l.dev, other, &m)) fail_msg("%s", acf_error());
        const acf_donors *a = m->donors;
        if (i == 0) assert_true(a->id[0] == 281474976710655 && a->id[1] == 901);
        if (i == 1)
            assert_true(a->code[ROWS + 2] == -1 && a->share[a->first[1]] == 2 / 5.0 &&
                        a->share[a->first[1] + 1] == 3 / 5.0);
        if (i == 2) assert_true(a->slope == -3);
        if (i == 3) assert_true(a->near[2 * COLS] == 1e6);
        if (i == 4) assert_true(a->other[2 * COLS] == 0);
        if (i == 5) assert_true(a->agree == -7);
        if (i == 6) assert_true(a->apart[0] == 1e6);
        if (i == 7) check_finite(a);
        if (i == 8) assert_true(a->predicted[3] == ACF_R(-1e6));
        acf_model_free(m);
    }
    acf_safetensors_close(good);
    lab_close(&l);
}

/* Class columns alone have no predictor: there is no such tensor, and one in the file is refused. */
static void classes_are_not_predicted(void **state) {
    (void)state;
    static const double x[] = {0, 1, 1, 0, 1, 2, 0, 1, 1, 0, 0, 2};
    static const acf_column column[2] = {{"k", 2}, {"l", 3}};
    static const acf_real gaussian[2] = {0, 1};
    lab l;
    acf_safetensors *good;
    acf_model *again = NULL, *none = NULL;
    acf_safetensors_tensor list[256];
    acf_safetensors_text text[32];
    int64_t texts = 0;
    assert_int_equal(acf_device_open_cpu(1, &l.dev), ACF_OK);
    assert_int_equal(acf_table_make(x, NULL, 6, 2, column, &l.table), ACF_OK);
    l.m = some_model(l.dev, l.table);
    assert_int_equal(acf_donors_make(l.table, l.m->encoder, NULL, 1, &l.m->donors), ACF_OK);
    if (acf_model_write(l.m, path) || acf_model_read(l.dev, path, &again)) fail_msg("%s", acf_error());
    assert_null(l.m->donors->predictor);
    same(l.m->donors, again->donors);
    assert_int_equal(acf_safetensors_open(path, &good), ACF_OK);
    assert_true(acf_safetensors_find(good, "donors.rows") && !acf_safetensors_find(good, "donors.predictor"));
    int64_t n = acf_safetensors_count(good);
    for (int64_t i = 0; i < n; i++) list[i] = *acf_safetensors_at(good, i);
    list[n++] = (acf_safetensors_tensor){.name = "donors.predictor",
                                         .dtype = ACF_SAFETENSORS_REAL,
                                         .ndim = 2,
                                         .dim = {2, 1},
                                         .data = gaussian,
                                         .bytes = sizeof gaussian};
    for (int64_t i = 0; i < acf_safetensors_text_count(good); i++) {
        text[texts] = *acf_safetensors_text_at(good, i);
        texts += strcmp(text[texts].key, "checksum") != 0;
    }
    assert_int_equal(acf_safetensors_write(other, list, n, text, texts), ACF_OK);
    assert_int_equal(acf_model_read(l.dev, other, &none), ACF_EMODEL);
    if (!strstr(acf_error(), "tensor 'donors.predictor' is no part of the network")) fail_msg("%s", acf_error());
    acf_safetensors_close(good);
    acf_model_free(again);
    lab_close(&l);
}

/* A text beyond the reader's limits is not written. */
static void too_many_values_are_not_written(void **state) {
    (void)state;
    lab l;
    acf_donors *m;
    json_t *none = NULL;
    lab_open(&l, 0);
    assert_int_equal(acf_donors_alloc(1, l.m->encoder, 1, &m), ACF_OK);
    m->first[COLS] = ACF_DONORS_VALUES + 1;
    assert_int_equal(acf_donors_to_json(m, &none), ACF_EUSAGE);
    assert_string_equal(acf_error(), "the donors have 2000001 different values; a file holds up to 2000000");
    assert_null(none);
    acf_donors_free(m);
    lab_close(&l);
}

static void memory_may_run_out(void **state) {
    (void)state;
    lab l;
    acf_model *again = NULL;
    acf_status status = ACF_EMEMORY;
    lab_open(&l, 900);
    assert_int_equal(acf_model_write(l.m, path), ACF_OK);
    const int64_t live = acf_alloc_live();
    for (int n = 1; !again; n++) {
        acf_alloc_fail_at(n);
        status = acf_model_read(l.dev, path, &again);
        acf_alloc_fail_at(0);
        if (status && status != ACF_EMEMORY) fail_msg("allocation %d: %s", n, acf_error());
        if (status) assert_int_equal(acf_alloc_live(), live);
    }
    acf_model_free(again);
    assert_int_equal(acf_alloc_live(), live);
    status = ACF_EMEMORY;
    for (int n = 1; status; n++) {
        acf_alloc_fail_at(n);
        status = acf_model_write(l.m, other);
        acf_alloc_fail_at(0);
        assert_true(status == ACF_OK || status == ACF_EMEMORY);
        assert_int_equal(acf_alloc_live(), live);
    }
    lab_close(&l);
}

ACF_TESTS(donor_file, cmocka_unit_test_setup_teardown(donors_are_saved_and_loaded, make_names, remove_files),
          cmocka_unit_test_setup_teardown(loaded_donors_answer_as_saved_ones, make_names, remove_files),
          cmocka_unit_test_setup_teardown(no_donors_leave_no_trace, make_names, remove_files),
          cmocka_unit_test_setup_teardown(wrong_donors_get_a_message, make_names, remove_files),
          cmocka_unit_test_setup_teardown(models_of_images_have_none, make_names, remove_files),
          cmocka_unit_test_setup_teardown(harmless_changes_are_read, make_names, remove_files),
          cmocka_unit_test(too_many_values_are_not_written),
          cmocka_unit_test_setup_teardown(classes_are_not_predicted, make_names, remove_files),
          cmocka_unit_test_setup_teardown(memory_may_run_out, make_names, remove_files))
