/* Tests of csv.h against Python's csv module: acflow reads what Python writes, and Python reads what acflow writes.
 * tests/csv_peer.py makes and checks the files; skipped without Python. */
#include "table/csv.h"

#include "base/rng.h"
#include "harness/check.h"
#include "harness/file_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static acf_lab_folder folder;

static int set_up(void **state) {
    (void)state;
    folder = acf_lab_folder_make();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    acf_lab_folder_free(&folder);
    return 0;
}

static void need_python(void) {
    if (system("python3 -c 'import csv' >/dev/null 2>&1") != 0) acf_skip("no python3 to compare with");
}

static int python(const char *verb) {
    char command[160];
    snprintf(command, sizeof command, "python3 tests/csv_peer.py %s '%s'", verb, folder.path);
    return system(command);
}

static FILE *open_values(int number, const char *mode) {
    char path[128];
    snprintf(path, sizeof path, "%s/%d.values", folder.path, number);
    return fopen(path, mode);
}

/* Reads a number and a line end. */
static int64_t read_count(FILE *f) {
    long long n = -1;
    if (fscanf(f, "%lld", &n) != 1 || fgetc(f) != '\n') return -1;
    return n;
}

/* Python keeps white space around a value; acflow keeps it only inside quotes. */
static void assert_field(const acf_field *f, const char *value, size_t n) {
    if (!f->quoted) {
        while (n > 0 && (*value == ' ' || *value == '\t')) value++, n--;
        while (n > 0 && (value[n - 1] == ' ' || value[n - 1] == '\t')) n--;
    }
    if (f->length != n || memcmp(f->text, value, n) != 0)
        fail_msg("'%.*s', Python reads '%.*s'", (int)f->length, f->text, (int)n, value);
}

static void compare_with_python(int number, size_t block) {
    char path[128];
    int separator, quote;
    acf_csv *csv = NULL;
    acf_record r;
    FILE *values = open_values(number, "rb");
    assert_non_null(values);
    assert_int_equal(fscanf(values, "%d %d", &separator, &quote), 2);
    fgetc(values);
    snprintf(path, sizeof path, "%s/%d.csv", folder.path, number);
    acf_csv_want want = {(char)separator, (char)quote, ACF_NO};
    if (acf_csv_open_blocks(path, &want, block, &csv) != ACF_OK) fail_msg("%s", acf_error());
    assert_int_equal(acf_csv_dialect(csv)->bom, number % 5 == 0);
    for (int64_t n; (n = read_count(values)) > 0;) {
        if (acf_csv_next(csv, &r) != ACF_OK) fail_msg("%s", acf_error());
        assert_int_equal(r.n, n);
        for (int64_t j = 0; j < n; j++) {
            char value[64];
            int64_t length = read_count(values);
            assert_in_range(length, 0, sizeof value);
            assert_int_equal(fread(value, 1, (size_t)length, values), length);
            fgetc(values);
            assert_field(&r.field[j], value, (size_t)length);
        }
    }
    if (acf_csv_next(csv, &r) != ACF_OK) fail_msg("%s", acf_error());
    assert_int_equal(r.n, 0);
    assert_int_equal(r.row, 30);
    acf_csv_close(csv);
    fclose(values);
}

static void reads_what_python_writes(void **state) {
    (void)state;
    need_python();
    assert_int_equal(python("make"), 0);
    for (int number = 0; number < 120; number++) {
        compare_with_python(number, 1 << 18);
        compare_with_python(number, (size_t)(1 + number % 9));
    }
}

/* 20 rows of 4 values, in the dialect and as Python must read them. */
static void write_table(int number, const acf_dialect *d) {
    static const char *const piece[] = {",",  ";",  "\t",   "|", " ",   "\"",      "'",
                                        "\n", "\r", "\r\n", "a", "1.5", "\xc3\xa9"};
    char path[128];
    snprintf(path, sizeof path, "%s/%d.csv", folder.path, number);
    FILE *csv = fopen(path, "wb"), *values = open_values(number, "wb");
    assert_true(csv && values);
    fprintf(values, "%d %d\n", d->separator, d->quote);
    for (uint32_t cell = 0; cell < 80; cell++) {
        char value[16] = "", field[64];
        for (uint32_t k = 0; k < cell % 5; k++) {
            acf_rng_counter at = {.row = cell, .stream = ACF_STREAM_TEST, .column = k, .draw = (uint32_t)number};
            strcat(value, piece[acf_rng_below(at, sizeof piece / sizeof *piece)]);
        }
        size_t n = acf_csv_quote(d, value, strlen(value), field, sizeof field, NULL);
        assert_true(n <= sizeof field);
        fwrite(field, 1, n, csv);
        fprintf(csv, "%c", cell % 4 < 3 ? d->separator : '\n');
        fprintf(values, cell % 4 == 0 ? "4\n%zu\n%s\n" : "%zu\n%s\n", strlen(value), value);
    }
    fclose(csv);
    fclose(values);
}

static void python_reads_what_is_written(void **state) {
    (void)state;
    need_python();
    for (int number = 0; number < 40; number++)
        write_table(number, &(acf_dialect){.separator = ",;\t|"[number % 4], .quote = "\"'"[number / 4 % 2]});
    assert_int_equal(python("check"), 0);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
ACF_TESTS(csv, IN_FOLDER(reads_what_python_writes), IN_FOLDER(python_reads_what_is_written))
