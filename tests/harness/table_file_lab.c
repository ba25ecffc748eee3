/* Setup for tests of tables from files: see table_file_lab.h. */
#include "harness/table_file_lab.h"

#include "base/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void acf_table_file_lab_open(acf_table_file_lab *l, const char *text, const char *const *options) {
    acf_options *o;
    l->file = acf_memfile_create();
    acf_memfile_put(&l->file, text, strlen(text));
    assert_int_equal(acf_options_make(acf_option_table, acf_option_count, &o), ACF_OK);
    for (; options && *options; options++) {
        char name[32];
        const char *value = strchr(*options, '=');
        assert_non_null(value);
        snprintf(name, sizeof name, "%.*s", (int)(value - *options), *options);
        if (acf_options_set_text(o, name, value + 1) != ACF_OK) fail_msg("%s", acf_error());
    }
    if (acf_read_options_read(o, &l->read_options) != ACF_OK) fail_msg("%s", acf_error());
    acf_options_free(o);
}

void acf_table_file_lab_close(acf_table_file_lab *l) {
    acf_read_options_free(l->read_options);
    acf_memfile_free(&l->file);
}

static acf_status read_it(const acf_table_file_lab *l, const acf_schema *known, acf_table **out) {
    return known ? acf_table_file_read_for(l->file.path, l->read_options, known, out)
                 : acf_table_file_read(l->file.path, l->read_options, out);
}

acf_table *acf_table_file_lab_read(const char *text, const char *const *options, const acf_schema *known) {
    acf_table_file_lab l;
    acf_table *t = NULL;
    acf_table_file_lab_open(&l, text, options);
    if (read_it(&l, known, &t) != ACF_OK) fail_msg("%s", acf_error());
    acf_table_file_lab_close(&l); /* the reader has the file open */
    return t;
}

/* The last error, in which FILE stands for the name of the file. */
static void name_file(const acf_table_file_lab *l, char *seen, size_t cap) {
    acf_text out = acf_text_into(seen, cap);
    for (const char *p = acf_error(); *p;) {
        size_t n = strlen(l->file.path);
        bool path = strncmp(p, l->file.path, n) == 0;
        acf_text_add_bytes(&out, path ? "FILE" : p, path ? 4 : 1);
        p += path ? n : 1;
    }
}

void acf_table_file_lab_refused(const char *text, const char *const *options, const acf_schema *known,
                                acf_status status, const char *sentence) {
    acf_table_file_lab l;
    acf_table *t = NULL;
    char seen[2 * ACF_SENTENCE_MAX];
    acf_table_file_lab_open(&l, text, options);
    int64_t live = acf_alloc_live();
    acf_status got = read_it(&l, known, &t);
    assert_int_equal(acf_alloc_live(), live);
    name_file(&l, seen, sizeof seen);
    acf_table_file_lab_close(&l);
    assert_null(t);
    assert_string_equal(seen, sentence);
    assert_int_equal(got, status);
}

void acf_table_file_lab_unlearnable(const char *text, const char *sentence) {
    acf_table_file_lab l;
    acf_table *t = NULL;
    char seen[2 * ACF_SENTENCE_MAX];
    acf_table_file_lab_open(&l, text, NULL);
    if (read_it(&l, NULL, &t) != ACF_OK) fail_msg("%s", acf_error());
    assert_int_equal(t->D, 0);
    assert_int_equal(acf_table_file_learnable(t), ACF_EDATA);
    name_file(&l, seen, sizeof seen);
    acf_table_free(t);
    acf_table_file_lab_close(&l);
    assert_string_equal(seen, sentence);
}

void acf_table_file_lab_kinds(const char *text, const char *const *options, const char *kinds) {
    char seen[512];
    acf_table *t = acf_table_file_lab_read(text, options, NULL);
    acf_text out = acf_text_into(seen, sizeof seen);
    const acf_schema *s = t->file->schema;
    for (int64_t j = 0; j < s->n; j++) acf_text_addf(&out, "%s%s", j ? " " : "", s->column[j].kind->name);
    acf_table_free(t);
    assert_string_equal(seen, kinds);
}

double acf_table_file_lab_constant(int64_t i, int64_t j, int64_t imputation) {
    (void)i, (void)j, (void)imputation;
    return 0.3;
}

const char *acf_table_file_lab_write(const acf_table *t, acf_write_plan plan,
                                     double (*value)(int64_t, int64_t, int64_t)) {
    static char *text = NULL;
    char path[] = "/tmp/acflow-write-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    size_t cells = (size_t)(t->N * t->D), length;
    double *v = malloc((3 * cells + 1) * sizeof *v);
    assert_non_null(v);
    acf_writer *w;
    if (acf_writer_begin(t, path, plan, &w) != ACF_OK) fail_msg("%s", acf_error());
    for (int k = 1; k <= plan.imputations; k++) {
        for (size_t c = 0; c < cells; c++) {
            v[c] = value((int64_t)c / t->D, (int64_t)c % t->D, k);
            v[cells + c] = v[c] - 1, v[2 * cells + c] = v[c] + 1;
        }
        bool ends = plan.intervals;
        if (acf_writer_add(w, v, ends ? v + cells : NULL, ends ? v + 2 * cells : NULL) != ACF_OK)
            fail_msg("%s", acf_error());
    }
    if (acf_writer_finish(w) != ACF_OK) fail_msg("%s", acf_error());
    free(v);
    acf_release(text);
    assert_int_equal(acf_file_read(path, (size_t)1 << 30, &text, &length), ACF_OK);
    unlink(path);
    return text;
}

const char *acf_lab_real_table(const char *name) {
    static char path[512];
    const char *folder = getenv("ACF_DATA");
    snprintf(path, sizeof path, "%s/tables/%s", folder ? folder : "../shared/data", name);
    if (access(path, R_OK) != 0) acf_skip("the real tables are not here (../shared/data, or ACF_DATA)");
    return path;
}
