/* Tests of reader.h. The rules for every format are tested for every line of reader_list.h, on its file
 * tests/golden/tables/sample.NAME. A format of typed columns, defined in this file, shows that the interface supports
 * dictionaries, bitmaps of nulls and dates. */
#include "table/reader.h"

#include "base/file.h"
#include "harness/table_file_lab.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLE_MAX = 1 << 16, FLIPS = 1500 };

/* A sample in its own folder, where it can be damaged. */
typedef struct sample {
    const acf_file_format *format;
    acf_lab_folder folder;
    char path[80], name[32];
    char *bytes;
    size_t n;
    acf_read_options *read_options;
    acf_memfile file; /* for the thousands of damaged copies */
} sample;

static sample sample_open(int k) {
    sample s = {.format = acf_reader_format(k),
                .folder = acf_lab_folder_make(),
                .bytes = malloc(SAMPLE_MAX),
                .file = acf_memfile_create()};
    char golden[64];
    snprintf(s.name, sizeof s.name, "sample.%s", s.format->name);
    snprintf(golden, sizeof golden, "tests/golden/tables/%s", s.name);
    FILE *f = fopen(golden, "rb");
    if (!f) fail_msg("the format '%s' has no sample: write a small table to %s", s.format->name, golden);
    s.n = fread(s.bytes, 1, SAMPLE_MAX, f);
    fclose(f);
    assert_in_range(s.n, 1, SAMPLE_MAX - 1);
    acf_lab_folder_put(&s.folder, s.name, s.bytes, s.n);
    snprintf(s.path, sizeof s.path, "%s/%s", s.folder.path, s.name);
    assert_int_equal(acf_read_options_read(NULL, &s.read_options), ACF_OK);
    return s;
}

static void sample_close(sample *s) {
    acf_read_options_free(s->read_options);
    acf_lab_folder_free(&s->folder);
    acf_memfile_free(&s->file);
    free(s->bytes);
}

static acf_reader *sample_read(const sample *s) {
    acf_reader *r;
    if (acf_reader_open(s->path, s->read_options, &r) != ACF_OK) fail_msg("%s: %s", s->format->name, acf_error());
    return r;
}

static void each_format(void (*test)(sample *s)) {
    for (int k = 0; acf_reader_format(k); k++) {
        sample s = sample_open(k);
        test(&s);
        sample_close(&s);
    }
}

/* ---- one pass ---------------------------------------------------------------------------------------------------- */

/* The result of a pass: its rows, and a hash of every cell. */
typedef struct pass {
    int64_t rows;
    uint64_t hash;
} pass;

static void mix(pass *p, const void *bytes, size_t n) {
    for (const unsigned char *b = bytes; n-- > 0; b++) p->hash = (p->hash ^ *b) * 0x100000001b3u;
}

static void mix_cell(pass *p, const acf_field *f) {
    const double number = isnan(f->number) ? 0.125 : f->number;
    mix(p, f->text ? "t" : isnan(f->number) ? "m" : "n", 1);
    if (f->text)
        mix(p, &f->length, sizeof f->length), mix(p, f->text, f->length);
    else
        mix(p, &number, sizeof number);
}

static acf_status read_rows(acf_reader *r, int64_t most, pass *out) {
    acf_record record;
    *out = (pass){0, 0xcbf29ce484222325u};
    for (; out->rows < most; out->rows++) {
        ACF_TRY(acf_reader_next(r, &record));
        assert_int_equal(record.row, out->rows);
        if (record.n == 0) return ACF_OK;
        assert_int_equal(record.n, r->columns);
        for (int64_t j = 0; j < record.n; j++) mix_cell(out, &record.field[j]);
    }
    return ACF_OK;
}

static acf_status read_all(acf_reader *r, pass *out) { return read_rows(r, INT64_MAX, out); }

static void assert_same(const pass *a, const pass *b) {
    assert_int_equal(a->rows, b->rows);
    assert_true(a->hash == b->hash);
}

/* ---- rules for every format -------------------------------------------------------------------------------------- */

static void has_a_place_and_a_name(sample *s) {
    acf_reader *r = sample_read(s);
    assert_ptr_equal(r->format, s->format); /* it recognises its own file, and no earlier format does */
    assert_string_equal(acf_reader_name(r), s->path);
    assert_non_null(s->format->what);
    assert_non_null(s->format->ending[0]);
    assert_int_equal(*s->format->ending[0], '.');
    assert_true((r->dialect != NULL) == (s->format->completed == ACF_COMPLETED_COPY));
    assert_true(r->columns >= 1);
    bool named = false;
    for (int64_t j = 0; j < r->columns; j++) named |= acf_reader_describe(r, j).name_length > 0;
    assert_true(named == r->named);
    acf_reader_close(r);
}

static void formats_recognise_their_files(void **state) {
    (void)state;
    each_format(has_a_place_and_a_name);
    int k = 0;
    while (acf_reader_format(k)) k++;
    assert_string_equal(acf_reader_format(k - 1)->name, "csv"); /* takes what no other format recognises */
    assert_null(acf_reader_format(-1));
    assert_true(acf_reader_ends_in("a.NPY.gz", ".npy") && acf_reader_ends_in("a.csv", ".csv"));
    assert_false(acf_reader_ends_in(".csv", ".csv") || acf_reader_ends_in("acsv", ".csv") ||
                 acf_reader_ends_in("csv", ".csv"));
}

static void repeats(sample *s) {
    acf_reader *r = sample_read(s), *other;
    acf_record record;
    pass first, half, second, third;
    assert_int_equal(read_all(r, &first), ACF_OK);
    assert_true(first.rows >= 2);
    assert_int_equal(acf_reader_next(r, &record), ACF_OK); /* a reader stays at the end */
    assert_int_equal(record.n, 0);
    assert_int_equal(acf_reader_rewind(r), ACF_OK);
    assert_int_equal(read_rows(r, first.rows / 2, &half), ACF_OK);
    assert_int_equal(acf_reader_rewind(r), ACF_OK);
    assert_int_equal(read_all(r, &second), ACF_OK);
    assert_same(&first, &second);
    assert_int_equal(acf_reader_again(r, &other), ACF_OK);
    assert_int_equal(read_all(other, &third), ACF_OK);
    assert_same(&first, &third);
    for (int64_t j = 0; j < r->columns; j++) {
        const acf_reader_column a = acf_reader_describe(r, j), b = acf_reader_describe(other, j);
        assert_true(a.storage == b.storage && a.name_length == b.name_length);
        if (a.name_length) assert_memory_equal(a.name, b.name, a.name_length);
    }
    acf_reader_close(other);
    acf_reader_close(r);
}

static void rows_are_read_twice_the_same(void **state) {
    (void)state;
    each_format(repeats);
}

static void keeps_to_its_storage(sample *s) {
    acf_reader *r = sample_read(s);
    acf_record record;
    while (acf_reader_next(r, &record) == ACF_OK && record.n)
        for (int64_t j = 0; j < record.n; j++) {
            if (acf_reader_describe(r, j).storage == ACF_STORAGE_NUMBER) assert_null(record.field[j].text);
            if (s->format->completed == ACF_COMPLETED_MATRIX) assert_null(record.field[j].text);
            if (s->format->completed == ACF_COMPLETED_COPY) assert_true(record.field[j].text && record.field[j].raw);
        }
    acf_reader_close(r);
}

static void cells_match_their_columns(void **state) {
    (void)state;
    each_format(keeps_to_its_storage);
}

/* A record as the file has it: raw bytes, and the separator before each field. */
static void add_record(acf_text *t, const acf_record *r) {
    for (int64_t j = 0; j < r->n; j++) {
        if (j > 0) acf_text_add_bytes(t, r->field[j].raw - 1, 1);
        acf_text_add_bytes(t, r->field[j].raw, r->field[j].raw_length);
    }
    acf_text_add_bytes(t, r->end, r->end_length);
}

static void copies(sample *s) {
    if (s->format->completed != ACF_COMPLETED_COPY) return;
    acf_reader *r = sample_read(s);
    acf_record record;
    char *copy = malloc(SAMPLE_MAX);
    acf_text t = acf_text_into(copy, SAMPLE_MAX);
    add_record(&t, &r->header);
    while (acf_reader_next(r, &record) == ACF_OK && record.n) add_record(&t, &record);
    assert_int_equal(t.len, s->n);
    assert_memory_equal(copy, s->bytes, s->n);
    free(copy);
    acf_reader_close(r);
}

static void copies_are_byte_for_byte(void **state) {
    (void)state;
    each_format(copies);
}

/* A file of these bytes is read twice with the same result, or refused with a message that names it. Returns whether it
 * was read. */
static bool survives(sample *s, const char *bytes, size_t n) {
    const int64_t live = acf_alloc_live();
    acf_reader *r = NULL;
    pass first = {0}, second = {0};
    acf_memfile_put(&s->file, bytes, n);
    acf_status status = acf_reader_open_as(s->format, s->file.path, s->read_options, &r);
    if (status == ACF_OK) status = read_all(r, &first);
    if (status == ACF_OK) {
        assert_int_equal(acf_reader_rewind(r), ACF_OK);
        assert_int_equal(read_all(r, &second), ACF_OK);
        assert_same(&first, &second);
    } else {
        assert_true(status == ACF_EDATA || status == ACF_EIO);
        if (!strstr(acf_error(), s->file.path))
            fail_msg("%s: a sentence without the file: %s", s->format->name, acf_error());
    }
    acf_reader_close(r);
    assert_int_equal(acf_alloc_live(), live);
    return status == ACF_OK;
}

static void survives_cuts(sample *s) {
    int64_t refused = 0;
    for (size_t n = 0; n < s->n; n++) refused += !survives(s, s->bytes, n);
    assert_true(refused > 0); /* an empty file at least */
    if (s->format->completed == ACF_COMPLETED_MATRIX) assert_int_equal(refused, s->n);
}

static void a_file_may_be_cut_anywhere(void **state) {
    (void)state;
    each_format(survives_cuts);
}

static void survives_flips(sample *s) {
    char *bytes = malloc(s->n);
    uint32_t random = 1;
    for (int k = 0; k < FLIPS; k++) {
        memcpy(bytes, s->bytes, s->n);
        for (int i = 0; i <= k % 3; i++) {
            random = random * 1664525u + 1013904223u;
            bytes[(random >> 8) % s->n] ^= (char)(1u << (random >> 29));
        }
        survives(s, bytes, s->n);
    }
    free(bytes);
}

static void damaged_files_do_no_harm(void **state) {
    (void)state;
    each_format(survives_flips);
}

/* A file that becomes shorter between the passes is refused. */
static void notices_a_shorter_file(sample *s) {
    acf_reader *r = sample_read(s);
    pass p;
    assert_int_equal(read_all(r, &p), ACF_OK);
    assert_int_equal(truncate(s->path, (off_t)(s->n / 2)), 0);
    acf_status status = acf_reader_rewind(r);
    if (status == ACF_OK) status = read_all(r, &p);
    if (status != ACF_EIO)
        fail_msg("%s: a file that became shorter is read as if nothing had happened", s->format->name);
    assert_non_null(strstr(acf_error(), s->path));
    acf_reader_close(r);
}

static void a_file_that_changes_is_noticed(void **state) {
    (void)state;
    each_format(notices_a_shorter_file);
}

static acf_status try_all(const sample *s) {
    acf_reader *r = NULL, *other = NULL;
    pass p;
    acf_status status = acf_reader_open_as(s->format, s->path, s->read_options, &r);
    if (status == ACF_OK) status = read_all(r, &p);
    if (status == ACF_OK) status = acf_reader_rewind(r);
    if (status == ACF_OK) status = read_all(r, &p);
    if (status == ACF_OK) status = acf_reader_again(r, &other);
    if (status == ACF_OK) status = read_all(other, &p);
    acf_reader_close(other);
    acf_reader_close(r);
    return status;
}

static void survives_full_memory(sample *s) {
    const int64_t live = acf_alloc_live();
    for (int64_t i = 1;; i++) {
        acf_alloc_fail_at(i);
        acf_status status = try_all(s);
        acf_alloc_fail_at(0);
        assert_int_equal(acf_alloc_live(), live);
        if (status == ACF_OK) break;
        assert_int_equal(status, ACF_EMEMORY);
        assert_in_range(i, 1, 200);
    }
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    each_format(survives_full_memory);
}

typedef struct reading {
    const acf_reader *r;
    pass p;
    bool ok;
} reading;

static void *read_in_thread(void *ctx) {
    reading *w = ctx;
    w->ok = true;
    for (int k = 0; k < 20 && w->ok; k++) {
        acf_reader *r;
        pass p;
        w->ok = acf_reader_again(w->r, &r) == ACF_OK;
        if (!w->ok) break;
        w->ok = read_all(r, &p) == ACF_OK && p.rows == w->p.rows && p.hash == w->p.hash;
        acf_reader_close(r);
    }
    return NULL;
}

static void serves_threads(sample *s) {
    acf_reader *r = sample_read(s);
    pass p;
    pthread_t thread[2];
    reading work[2];
    assert_int_equal(read_all(r, &p), ACF_OK);
    for (int k = 0; k < 2; k++) {
        work[k] = (reading){r, p, false};
        assert_int_equal(pthread_create(&thread[k], NULL, read_in_thread, &work[k]), 0);
    }
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_join(thread[k], NULL), 0);
    assert_true(work[0].ok && work[1].ok);
    acf_reader_close(r);
}

static void threads_read_at_once(void **state) {
    (void)state;
    each_format(serves_threads);
}

/* ---- typed columns ----------------------------------------------------------------------------------------------- */

/* Columns in memory as a columnar format has them, four rows to a block:
 *
 *     id      texts in sequence, and where each begins
 *     grade   codes into a dictionary whose texts look like numbers
 *     score   doubles under a bitmap
 *     day     days since 1970 under a bitmap */
enum { BLOCK = 4, BLOCKS = 10, TYPED_ROWS = BLOCK * BLOCKS };

typedef struct typed {
    int64_t row;
    char day[16];
    acf_field cell[4];
} typed;

static const char *const grades[] = {"1", "2", "3"};
static const char ids[] = "a0b1c2d3"; /* of a block: two bytes each; all blocks are equal */

static bool is_null(int64_t row, int column) { return row % 7 == column; } /* bit of a bitmap */

static bool typed_recognise(const char *path, const unsigned char *begin, size_t n) {
    (void)path, (void)begin, (void)n;
    return false;
}

static acf_status typed_open(acf_reader *r, const acf_read_options *w) {
    (void)w;
    r->state = acf_alloc_zero(sizeof(typed), "a typed table");
    r->columns = 4;
    r->named = true;
    return r->state ? ACF_OK : ACF_EMEMORY;
}

static acf_status typed_again(const acf_reader *r, acf_reader *again) {
    (void)r;
    again->state = acf_alloc_zero(sizeof(typed), "a typed table");
    return again->state ? ACF_OK : ACF_EMEMORY;
}

static acf_reader_column typed_describe(const acf_reader *r, int64_t j) {
    static const acf_reader_column columns[] = {{"id", 2, ACF_STORAGE_TEXT},
                                                {"score", 5, ACF_STORAGE_NUMBER},
                                                {"grade", 5, ACF_STORAGE_DICTIONARY},
                                                {"day", 3, ACF_STORAGE_DATE}};
    (void)r;
    return columns[j];
}

static acf_field text_cell(const char *text, size_t n) { return (acf_field){.text = text, .length = n}; }

static acf_status typed_next(acf_reader *r, acf_record *out) {
    typed *t = r->state;
    const int64_t i = t->row;
    *out = (acf_record){.row = i};
    if (i == TYPED_ROWS) return ACF_OK;
    const acf_field missing = {.number = (double)NAN};
    snprintf(t->day, sizeof t->day, "2021-03-%02d", (int)(1 + i * 11 % 28));
    t->cell[0] = text_cell(ids + 2 * (i % BLOCK), 2);
    t->cell[1] = is_null(i, 1) ? missing : (acf_field){.number = (double)(i * 37 % 101) / 8};
    t->cell[2] = is_null(i, 2) ? missing : text_cell(grades[i % 3], 1);
    t->cell[3] = is_null(i, 3) ? missing : text_cell(t->day, strlen(t->day));
    out->n = 4, out->field = t->cell;
    t->row++;
    return ACF_OK;
}

static acf_status typed_rewind(acf_reader *r) {
    ((typed *)r->state)->row = 0;
    return ACF_OK;
}

static void typed_close(acf_reader *r) { acf_release(r->state); }

static const acf_file_format typed_format = {"typed",         "a typed table", {".typed"},  ACF_COMPLETED_CSV,
                                             typed_recognise, typed_open,      typed_again, typed_describe,
                                             typed_next,      typed_rewind,    typed_close};

static acf_table *read_typed(const char *const *options) {
    acf_table_file_lab l;
    acf_table *t;
    acf_table_file_lab_open(&l, "", options);
    if (acf_table_file_read_as(&typed_format, "table.typed", l.read_options, &t) != ACF_OK) fail_msg("%s", acf_error());
    acf_table_file_lab_close(&l);
    return t;
}

static const char *kind_of(const acf_table *t, const char *name) {
    const acf_schema *s = t->file->schema;
    return s->column[acf_schema_find(s, name)].kind->name;
}

static void typed_columns_become_a_table(void **state) {
    (void)state;
    acf_table *t = read_typed(NULL);
    assert_int_equal(t->N, TYPED_ROWS);
    assert_int_equal(t->D, 4);
    assert_string_equal(kind_of(t, "score"), "real");
    assert_string_equal(kind_of(t, "grade"), "category");
    assert_string_equal(kind_of(t, "day"), "date");
    assert_int_equal(acf_table_file_missing(t->file), 3 * 6);
    for (int64_t i = 0; i < TYPED_ROWS; i++)
        for (int64_t j = 1; j < 4; j++) assert_int_equal(isnan(acf_table_row(t, i)[j]), is_null(i, (int)j));
    acf_table_free(t);
    t = read_typed((const char *const[]){"types=grade=integer", NULL}); /* the user's kind takes precedence */
    assert_string_equal(kind_of(t, "grade"), "integer");
    acf_table_free(t);
}

/* Line k of a text, from 0, in a static buffer. */
static const char *line(const char *text, int k) {
    static char out[256];
    while (k-- > 0) text = strchr(text, '\n') + 1;
    snprintf(out, sizeof out, "%.*s", (int)strcspn(text, "\n"), text);
    return out;
}

static void typed_columns_are_completed_as_csv(void **state) {
    (void)state;
    acf_table *t = read_typed(NULL);
    const char *out = acf_table_file_lab_write(t, (acf_write_plan){1, 0, 0}, acf_table_file_lab_constant);
    assert_string_equal(line(out, 0), "id,score,grade,day");
    assert_string_equal(line(out, 1), "a0,0,1,2021-03-01");
    assert_string_equal(line(out, 2), "b1,0.3,2,2021-03-12");
    assert_string_equal(line(out, 3), "c2,9.25,1,2021-03-23");
    assert_string_equal(line(out, 5), "a0,5.875,2,2021-03-17");
    out = acf_table_file_lab_write(t, (acf_write_plan){1, 1, 1}, acf_table_file_lab_constant);
    assert_string_equal(line(out, 0), "id,score,score.low,score.high,grade,day,day.low,day.high,.imp,.id");
    assert_string_equal(line(out, 2), "b1,NA,NA,NA,2,2021-03-12,NA,NA,0,2");
    assert_string_equal(line(out, TYPED_ROWS + 1), "a0,0,NA,NA,1,2021-03-01,NA,NA,1,1");
    assert_string_equal(line(out, TYPED_ROWS + 2), "b1,0.3,-0.7,1.3,2,2021-03-12,NA,NA,1,2");
    assert_int_equal(acf_writer_check_plan(t, "/tmp/y.npy", (acf_write_plan){1, 0, 0}), ACF_EUSAGE);
    assert_string_equal(acf_error(),
                        "the output would be text, and '/tmp/y.npy' is the name of a matrix; let it end in .csv");
    assert_int_equal(acf_writer_check_plan(t, "/tmp/y.csv", (acf_write_plan){1, 0, 0}), ACF_OK);
    acf_table_free(t);
}

/* A schema file may set the notation of numbers; stored numbers have none. */
static void stored_numbers_have_no_notation(void **state) {
    (void)state;
    const char *schema = "{\"columns\": [{\"name\": \"score\", \"kind\": \"real\", \"comma\": true}]}";
    acf_lab_folder folder = acf_lab_folder_make();
    char option[80];
    acf_lab_folder_put(&folder, "schema.json", schema, strlen(schema));
    snprintf(option, sizeof option, "schema=%s/schema.json", folder.path);
    acf_table *t = read_typed((const char *const[]){option, NULL});
    const char *out = acf_table_file_lab_write(t, (acf_write_plan){1, 0, 0}, acf_table_file_lab_constant);
    assert_string_equal(line(out, 2), "b1,0.3,2,2021-03-12");
    acf_table_free(t);
    acf_lab_folder_free(&folder);
}

typedef struct told {
    const acf_table *t;
    int64_t cells, missing;
} told;

static acf_status tell(void *ctx, int64_t row, int64_t column, const char *text, size_t n) {
    told *w = ctx;
    w->cells++;
    w->missing += n == 0;
    if (column == 1 && row == 0) assert_string_equal(text, "0");
    if (column == 2 && row == 1) assert_memory_equal(text, "2", n);
    return ACF_OK;
}

static void typed_columns_are_described_and_drawn(void **state) {
    (void)state;
    acf_table *t = read_typed(NULL);
    told w = {.t = t};
    double x[TYPED_ROWS * 4];
    assert_int_equal(acf_table_file_texts(t, tell, &w), ACF_OK);
    assert_int_equal(w.cells, TYPED_ROWS * 4);
    assert_int_equal(w.missing, acf_table_file_missing(t->file));
    assert_int_equal(acf_table_file_pattern(t, x), ACF_OK);
    for (int64_t i = 0; i < TYPED_ROWS; i++)
        for (int j = 0; j < 4; j++) assert_int_equal(isnan(x[i * 4 + j]), j > 0 && is_null(i, j));
    acf_table_free(t);
}

ACF_TESTS(reader, cmocka_unit_test(formats_recognise_their_files), cmocka_unit_test(rows_are_read_twice_the_same),
          cmocka_unit_test(cells_match_their_columns), cmocka_unit_test(copies_are_byte_for_byte),
          cmocka_unit_test(a_file_may_be_cut_anywhere), cmocka_unit_test(damaged_files_do_no_harm),
          cmocka_unit_test(a_file_that_changes_is_noticed), cmocka_unit_test(every_allocation_may_fail),
          cmocka_unit_test(threads_read_at_once), cmocka_unit_test(typed_columns_become_a_table),
          cmocka_unit_test(typed_columns_are_completed_as_csv), cmocka_unit_test(stored_numbers_have_no_notation),
          cmocka_unit_test(typed_columns_are_described_and_drawn))
