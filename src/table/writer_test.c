/* Tests of writer.h: observed cells come back byte for byte, imputed cells look like their column, and a file is
 * complete or absent. */
#include "table/writer.h"

#include "base/file.h"
#include "harness/table_file_lab.h"
#include "table/npy.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const acf_write_plan plain = {1, 0, 0}, stacked = {2, 1, 0}, with_intervals = {1, 0, 1};

static void completes(const char *file, const char *const *options, acf_write_plan plan, const char *expected) {
    acf_table *t = acf_table_file_lab_read(file, options, NULL);
    assert_string_equal(acf_table_file_lab_write(t, plan, acf_table_file_lab_constant), expected);
    acf_table_free(t);
}

/* ---- the file with its missing cells imputed --------------------------------------------------------------------- */

static void observed_cells_come_back_byte_for_byte(void **state) {
    (void)state;
    /* byte order mark, CRLF, unnecessary quotes, white space, quoted separators and line ends, no newline at the end */
    completes("\xef\xbb\xbf\"id\";\"age\"; sex ;visit;score;text\r\n"
              "1;\"41\"; M;25/12/2020;1,50;\"a;b\"\r\n"
              "2; ? ;F;03/01/2021; 2,25;\"two\r\nlines\"\r\n"
              "3;+39;\"NA\";;;\"say \"\"hi\"\"\"\r\n"
              "4;33e0;F;01/01/2021;3,75;\"a;b\"",
              NULL, plain,
              "\xef\xbb\xbf\"id\";\"age\"; sex ;visit;score;text\r\n"
              "1;\"41\"; M;25/12/2020;1,50;\"a;b\"\r\n"
              "2; 0 ;F;03/01/2021; 2,25;\"two\r\nlines\"\r\n"
              "3;+39;F;25/12/2020;0,30;\"say \"\"hi\"\"\"\r\n"
              "4;33e0;F;01/01/2021;3,75;\"a;b\"");
}

static void kinds_are_written_as_their_columns_are(void **state) {
    (void)state;
    completes("i,r,f,c,o,d,t,k,e,id\n"
              "7,0.125,1.50,b,3,2021-01-02,12:00,kg,,a1\n"
              "9,0.5,2.25,a,3,2021-01-05,13:30,kg,NA,?\n"
              "?,?,?,?,?,?,?,?,?,a3\n",
              OPTIONS("types=o=ordinal,id=identifier,k=constant"), plain,
              "i,r,f,c,o,d,t,k,e,id\n"
              "7,0.125,1.50,b,3,2021-01-02,12:00,kg,,a1\n"
              "9,0.5,2.25,a,3,2021-01-05,13:30,kg,NA,?\n" /* identifiers and empty columns keep their NA strings */
              "0,0.3,0.30,a,3,2021-01-02,12:00,kg,?,a3\n");
}

/* Row names and similar additions of programs come back too. */
static void additions_of_programs_come_back(void **state) {
    (void)state;
    completes("sep=;\r\nx;y\r\n1,5;a\r\n;b\r\n2,5;\r\n", NULL, plain, "sep=;\r\nx;y\r\n1,5;a\r\n0,3;b\r\n2,5;a\r\n");
    completes("x,y\n1.5,a,\n,b,\n2.5,,\n", NULL, plain, "x,y\n1.5,a,\n0.3,b,\n2.5,a,\n");
    completes("x,y\n1.5,a,\n,b,\n2.5,b,\n", NULL, (acf_write_plan){1, 1, 0},
              "x,y,.imp,.id\n1.5,a,0,1\nNA,b,0,2\n2.5,b,0,3\n1.5,a,1,1\n0.3,b,1,2\n2.5,b,1,3\n");
    completes("x y\nr1 1.5 a\nr2 NA b\nr3 2.5 b\n", NULL, plain, "x y\nr1 1.5 a\nr2 0.3 b\nr3 2.5 b\n");
    completes("x y\nr1 1.5 \"a\"\nr2 NA \"b\"\nr3 2.5 b\n", NULL, (acf_write_plan){1, 1, 0},
              "V1 x y .imp .id\nr1 1.5 \"a\" 0 1\nr2 NA \"b\" 0 2\nr3 2.5 b 0 3\nr1 1.5 \"a\" 1 1\nr2 0.3 \"b\" 1 "
              "2\nr3 2.5 b 1 3\n");
    completes("x,y\n25-Jan-2022,06:24 AM\n,\n26-Jan-2022,11:05 PM\n", NULL, plain,
              "x,y\n25-Jan-2022,06:24 AM\n25-Jan-2022,06:24 AM\n26-Jan-2022,11:05 PM\n");
    completes("x,y\n1.5,a\ninf,b\n2.5,\n", NULL, plain, "x,y\n1.5,a\n0.3,b\n2.5,a\n");
}

/* One value says nothing about a missing cell: men are not asked whether they are pregnant. */
static void constants_stay_as_they_are(void **state) {
    (void)state;
    const char *file = "x,y\n1.5,b\n2.5,\n,b\n";
    completes(file, NULL, plain, "x,y\n1.5,b\n2.5,\n0.3,b\n");
    completes(file, OPTIONS("fill-constants=true"), plain, "x,y\n1.5,b\n2.5,b\n0.3,b\n");
    acf_table *t = acf_table_file_lab_read(file, OPTIONS("fill-constants=true"), NULL), *fresh;
    fresh = acf_table_file_lab_read(file, NULL, t->file->schema); /* the model stores the option */
    assert_string_equal(acf_table_file_lab_write(fresh, plain, acf_table_file_lab_constant),
                        "x,y\n1.5,b\n2.5,b\n0.3,b\n");
    acf_table_free(fresh);
    acf_table_free(t);
    t = acf_table_file_lab_read(file, NULL, NULL);
    fresh = acf_table_file_lab_read(file, OPTIONS("fill-constants=true"), t->file->schema);
    assert_int_equal(acf_table_file_missing(fresh->file), 2);
    assert_string_equal(acf_table_file_lab_write(fresh, plain, acf_table_file_lab_constant),
                        "x,y\n1.5,b\n2.5,b\n0.3,b\n");
    acf_table_free(fresh);
    acf_table_free(t);
}

static void a_constant_on_request_is_the_most_frequent_value(void **state) {
    (void)state;
    completes("x,y\n1.5,b\n2.5,a\n3.5,a\n4.5,?\n", OPTIONS("types=y=constant"), plain,
              "x,y\n1.5,b\n2.5,a\n3.5,a\n4.5,a\n");
}

static void white_space_columns_keep_their_shape(void **state) {
    (void)state;
    completes("a1   1.5\t  x\na2     ?   y\na3 2.25     ?\n", OPTIONS("types=V1=identifier"), plain,
              "a1   1.5\t  x\na2     0.3   y\na3 2.25     x\n");
}

/* mammography writes its classes in single quotes, so imputed classes have them too. */
static void quotes_are_those_of_the_column(void **state) {
    (void)state;
    completes("1.5,'-1'\n2.5,'1'\n3.5,?\n?,'1'\n", OPTIONS("types=V2=category"), plain,
              "1.5,'-1'\n2.5,'1'\n3.5,'-1'\n0.3,'1'\n");
    completes("x,y\n1.5,\"a,b\"\n2.5,c\n3.5,?\n", NULL, plain, "x,y\n1.5,\"a,b\"\n2.5,c\n3.5,\"a,b\"\n");
}

static void words_among_numbers_stay(void **state) {
    (void)state;
    char file[4096], expected[4096];
    for (int k = 0; k < 2; k++) {
        acf_text t = acf_text_into(k ? expected : file, sizeof file);
        acf_text_add(&t, "x,y\n");
        for (int i = 0; i < 60; i++)
            acf_text_addf(&t, i == 20 ? "over,%d.5\n" : i == 30 ? (k ? "0,%d.5\n" : "?,%d.5\n") : "%d,3\n", i + 1);
    }
    completes(file, NULL, plain, expected);
}

static double nowhere(int64_t i, int64_t j, int64_t imputation) {
    (void)i, (void)j, (void)imputation;
    return (double)NAN;
}

static void nan_leaves_the_cell_missing(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("x,y\n1.5,a\n?,b\n2.5,NA\n", NULL, NULL);
    assert_string_equal(acf_table_file_lab_write(t, plain, nowhere), "x,y\n1.5,a\n?,b\n2.5,NA\n");
    acf_table_free(t);
}

static void unseen_categories_stay(void **state) {
    (void)state;
    acf_table *model = acf_table_file_lab_read("x,c\n1.5,a\n2.5,b\n", NULL, NULL);
    acf_table *t = acf_table_file_lab_read("name,c,x\nn1,Q,?\nn2,?,7\n", OPTIONS("types=name=id", "any-order=true"),
                                           model->file->schema);
    assert_string_equal(acf_table_file_lab_write(t, plain, acf_table_file_lab_constant),
                        "name,c,x\nn1,Q,0.3\nn2,a,7\n");
    acf_table_free(t);
    acf_table_free(model);
}

static void a_level_may_not_fit_a_file_without_quotes(void **state) {
    (void)state;
    acf_table *model = acf_table_file_lab_read("x,c\n1.5,\"a;b\"\n2.5,\"c;d\"\n", NULL, NULL);
    acf_table *t = acf_table_file_lab_read("x;c\n1.5;?\n", OPTIONS("quote=none"), model->file->schema);
    char path[] = "/tmp/acflow-write-XXXXXX";
    double v[2] = {1, 0};
    acf_writer *w;
    close(mkstemp(path));
    assert_int_equal(acf_writer_begin(t, path, plain, &w), ACF_OK);
    assert_int_equal(acf_writer_add(w, v, NULL, NULL), ACF_EDATA);
    assert_string_equal(acf_error(), "'a;b' cannot be written to this file, which has no quotes to put around it");
    acf_writer_abort(w);
    unlink(path);
    acf_table_free(t);
    acf_table_free(model);
}

/* ---- the other formats ------------------------------------------------------------------------------------------- */

static void imputations_are_stacked(void **state) {
    (void)state;
    completes("id,x,c,u\n11,1.5,a,k\n17,?,?,?\n?,2.5,b,k", OPTIONS("types=id=identifier"), stacked,
              "id,x,c,u,.imp,.id\n"
              "11,1.5,a,k,0,1\n17,NA,NA,NA,0,2\nNA,2.5,b,k,0,3\n"
              "11,1.5,a,k,1,1\n17,0.3,a,NA,1,2\nNA,2.5,b,k,1,3\n"
              "11,1.5,a,k,2,1\n17,0.3,a,NA,2,2\nNA,2.5,b,k,2,3\n");
    completes("1.5;a\r\n?;b\r\n2.5;?\r\n", NULL, (acf_write_plan){1, 1, 0},
              "V1;V2;.imp;.id\r\n1.5;a;0;1\r\nNA;b;0;2\r\n2.5;NA;0;3\r\n1.5;a;1;1\r\n0.3;b;1;2\r\n2.5;a;1;3\r\n");
}

static void intervals_follow_their_column(void **state) {
    (void)state;
    completes("x,\"n\",c\n1.5,5,a\n?,7,?\n2.5,?,b\n", NULL, with_intervals,
              "x,x.low,x.high,\"n\",\"n.low\",\"n.high\",c\n"
              "1.5,NA,NA,5,NA,NA,a\n"
              "0.3,-0.7,1.3,7,NA,NA,a\n"
              "2.5,NA,NA,0,-1,1,b\n");
    completes("1.5;a\n?;b\n2.5;b", NULL, with_intervals,
              "V1;V1.low;V1.high;V2\n1.5;NA;NA;a\n0.3;-0.7;1.3;b\n2.5;NA;NA;b");
}

static void new_columns_need_new_names(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("x,x.low,.imp\n1.5,2.5,1\n?,7.5,2\n3.5,1.5,4\n", NULL, NULL);
    acf_writer *w;
    assert_int_equal(acf_writer_begin(t, "/tmp/acflow-never", with_intervals, &w), ACF_EDATA);
    assert_string_equal(acf_error(), "intervals need a column 'x.low', and the table has one already; rename it");
    assert_int_equal(acf_writer_begin(t, "/tmp/acflow-never", stacked, &w), ACF_EDATA);
    assert_string_equal(acf_error(),
                        "the stacked format needs a column '.imp', and the table has one already; rename it");
    acf_table_free(t);
}

/* ---- tables from memory ------------------------------------------------------------------------------------------ */

static void tables_from_memory_are_plain_csv(void **state) {
    (void)state;
    const acf_column column[3] = {{"a, b", 0}, {NULL, 3}, {"n", 0}};
    const double nan = (double)NAN, x[9] = {1.25, 2, 4, nan, nan, nan, -3, 0, 1e6};
    acf_table *t;
    assert_int_equal(acf_table_make(x, NULL, 3, 3, column, &t), ACF_OK);
    assert_string_equal(acf_table_file_lab_write(t, plain, acf_table_file_lab_constant),
                        "\"a, b\",V2,n\n1.25,2,4\n0.3,0,0\n-3,0,1000000\n");
    assert_string_equal(acf_table_file_lab_write(t, (acf_write_plan){1, 1, 1}, acf_table_file_lab_constant),
                        "\"a, b\",\"a, b.low\",\"a, b.high\",V2,n,n.low,n.high,.imp,.id\n"
                        "1.25,NA,NA,2,4,NA,NA,0,1\nNA,NA,NA,NA,NA,NA,NA,0,2\n-3,NA,NA,0,1000000,NA,NA,0,3\n"
                        "1.25,NA,NA,2,4,NA,NA,1,1\n0.3,-0.7,1.3,0,0,-1,1,1,2\n-3,NA,NA,0,1000000,NA,NA,1,3\n");
    acf_table_free(t);
    const double third[2] = {1.0 / 3, nan};
    assert_int_equal(acf_table_make(third, NULL, 2, 1, NULL, &t), ACF_OK);
    assert_string_equal(acf_table_file_lab_write(t, plain, acf_table_file_lab_constant),
                        "V1\n0.3333333333333333\n0.3\n");
    acf_table_free(t);
}

/* New rows of a model: its modelled and constant columns, without identifiers. */
static void blank_tables_are_written(void **state) {
    (void)state;
    acf_table *model = acf_table_file_lab_read("id,x,c,u\n11,1.50,a,k\n17,2.25,b,k\n", OPTIONS("types=id=id"), NULL),
              *t;
    assert_int_equal(acf_table_file_blank(model->file->schema, 2, "c=b", &t), ACF_OK);
    assert_string_equal(acf_table_file_lab_write(t, plain, acf_table_file_lab_constant), "x,c,u\n0.30,b,k\n0.30,b,k\n");
    acf_table_free(t);
    assert_int_equal(acf_table_file_blank(model->file->schema, 1, "x=9.12500", &t),
                     ACF_OK); /* as given, whatever the column's notation */
    assert_string_equal(acf_table_file_lab_write(t, plain, acf_table_file_lab_constant), "x,c,u\n9.12500,a,k\n");
    acf_table_free(t);
    acf_table_free(model);
    model = acf_table_file_lab_read("x,u\n1.50,k\n2.25,\n", NULL, NULL); /* not every row had the value */
    assert_int_equal(acf_table_file_blank(model->file->schema, 1, NULL, &t), ACF_OK);
    assert_string_equal(acf_table_file_lab_write(t, plain, acf_table_file_lab_constant), "x,u\n0.30,NA\n");
    acf_table_free(t);
    acf_table_free(model);
}

/* 300 levels, few with a class of their own. A draw of the shared class is any of its levels, in proportion to their
 * counts; the order of rows does not matter. */
static double second_class(int64_t i, int64_t j, int64_t imputation) {
    (void)i, (void)imputation;
    return j == 1 ? 1 : 0.3;
}

static void levels_that_share_a_class_are_drawn(void **state) {
    (void)state;
    enum { HOLES = 3000 };
    static char file[200000], first[200000];
    acf_text f = acf_text_into(file, sizeof file);
    acf_text_add(&f, "x,c\n");
    for (int k = 0; k < 300; k++)
        for (int i = 0; i < (k == 0 ? 9 : k <= 100 ? 2 : 1); i++) acf_text_addf(&f, "%d.5,w%d\n", i, k);
    for (int i = 0; i < HOLES; i++) acf_text_add(&f, "0.5,\n");
    acf_table *t = acf_table_file_lab_read(file, OPTIONS("types=c=category"), NULL);
    assert_int_equal(acf_spec_classes(&t->file->schema->column[1]), 2);
    acf_write_plan plan = {.imputations = 1, .drawn = 1, .seed = 7};
    acf_text_add((acf_text[]){acf_text_into(first, sizeof first)}, acf_table_file_lab_write(t, plan, second_class));
    int often = 0, once = 0, seen[300] = {0}, differ = 0, k;
    const char *at = first;
    for (int i = 0; i < 9 + 200 + 199 + 1; i++) at = strchr(at, '\n') + 1;
    for (; sscanf(at, "0.5,w%d", &k) == 1; at = strchr(at, '\n') + 1) {
        assert_true(k > 0 && k < 300);
        *(k <= 100 ? &often : &once) += 1, differ += seen[k]++ == 0;
    }
    assert_int_equal(often + once, HOLES);
    assert_true(abs(often - HOLES * 200 / 399) < 100 && differ > 290);
    assert_string_equal(acf_table_file_lab_write(t, plan, second_class), first); /* the same seed */
    plan.seed = 8;
    assert_string_not_equal(acf_table_file_lab_write(t, plan, second_class), first);
    plan.drawn = 0;
    const char *sure = acf_table_file_lab_write(t, plan, second_class);
    assert_non_null(strstr(sure, "\n0.5,w1\n0.5,w1\n"));
    plan = (acf_write_plan){.imputations = 2, .stacked = 1, .drawn = 1, .seed = 7};
    const char *both = acf_table_file_lab_write(t, plan, second_class), *last = strstr(both, ",2,3408\n"),
               *before = strstr(both, ",1,3408\n");
    assert_true(last && before); /* imputations differ, and the first equals a single imputation */
    int as_alone = 0, as_other = 0, w[3];
    for (int i = 3209; i <= 3408; i++) {
        char tail[2][32];
        for (int m = 0; m < 2; m++) snprintf(tail[m], sizeof tail[m], ",%d,%d\n", m + 1, i);
        const char *a = strstr(both, tail[0]), *b = strstr(both, tail[1]);
        while (a[-1] != 'w') a--;
        while (b[-1] != 'w') b--;
        const char *alone = first;
        for (int line = 0; line < i; line++) alone = strchr(alone, '\n') + 1;
        assert_true(sscanf(a, "%d", &w[0]) == 1 && sscanf(b, "%d", &w[1]) == 1 && sscanf(alone, "0.5,w%d", &w[2]) == 1);
        as_alone += w[0] == w[2], as_other += w[0] == w[1];
    }
    assert_true(as_alone == 200 && as_other < 20);
    acf_table_free(t);
}

/* ---- matrices ---------------------------------------------------------------------------------------------------- */

static void matrices_stay_matrices(void **state) {
    (void)state;
    const double nan = (double)NAN, x[12] = {1.5, 7, -1, 5, nan, nan, nan, nan, 2.5, 9, 1, 5};
    char in[] = "/tmp/acflow-matrix-XXXXXX", out[] = "/tmp/acflow-matrix-XXXXXX";
    acf_table_file_lab l;
    acf_table *t;
    close(mkstemp(in)), close(mkstemp(out));
    acf_table_file_lab_open(&l, "", OPTIONS("types=V3=category", "fill-constants=true"));
    assert_int_equal(acf_npy_write(in, x, 3, 4), ACF_OK);
    assert_int_equal(acf_table_file_read(in, l.read_options, &t), ACF_OK);
    const double value[9] = {nan, nan, nan, 0.123456789, 100, 1, nan, nan, nan}, low[9] = {0}, high[9] = {0};
    for (int k = 0; k < 2; k++) {
        acf_writer *w;
        acf_npy *back;
        double y[60];
        assert_int_equal(acf_writer_begin(t, out, k ? (acf_write_plan){1, 1, 1} : plain, &w), ACF_OK);
        assert_int_equal(acf_writer_add(w, value, low, high), ACF_OK);
        assert_int_equal(acf_writer_finish(w), ACF_OK);
        if (acf_npy_open(out, &back) != ACF_OK) fail_msg("%s", acf_error());
        assert_int_equal(acf_npy_rows(back), k ? 6 : 3);
        assert_int_equal(acf_npy_columns(back), k ? 10 : 4);
        assert_int_equal(acf_npy_read(back, 0, k ? 6 : 3, y), ACF_OK);
        acf_npy_close(back);
        const double done[4] = {0.123456789, 100, 1, 5}, wide[10] = {0.123456789, 0, 0, 100, 0, 0, 1, 5, 1, 2};
        if (k == 0) assert_memory_equal(y, x, 4 * sizeof *y);
        assert_memory_equal(k ? y + 40 : y + 4, k ? wide : done, (k ? 10 : 4) * sizeof *y);
        /* the original has its missing cells */
        if (k == 1) assert_true(isnan(y[10]) && isnan(y[17]) && y[18] == 0 && y[19] == 2);
    }
    acf_table_free(t);
    acf_table_file_lab_close(&l);
    unlink(in), unlink(out);
}

static void refuses_name(const acf_table *t, const char *path, const char *says) {
    acf_writer *w;
    assert_int_equal(acf_writer_check_plan(t, path, plain), says ? ACF_EUSAGE : ACF_OK);
    if (!says) return;
    if (!strstr(acf_error(), says)) fail_msg("%s: %s", path, acf_error());
    assert_int_equal(acf_writer_begin(t, path, plain, &w), ACF_EUSAGE);
}

/* A name must not promise another format; a name that promises none may be anything. */
static void names_match_the_format_of_a_file(void **state) {
    (void)state;
    const double x[4] = {1, 2, 3, 4};
    char in[] = "/tmp/acflow-matrix-XXXXXX";
    acf_table_file_lab l;
    acf_table *t;
    close(mkstemp(in));
    acf_table_file_lab_open(&l, "", NULL);
    assert_int_equal(acf_npy_write(in, x, 2, 2), ACF_OK);
    assert_int_equal(acf_table_file_read(in, l.read_options, &t), ACF_OK);
    static const char *const text[] = {"/tmp/y.csv", "/tmp/y.CSV", "/tmp/y.tsv", "/tmp/y.txt", "/tmp/y.tab.gz"};
    for (int k = 0; k < 5; k++) refuses_name(t, text[k], "is the name of a text; let it end in .npy");
    refuses_name(t, "/tmp/y.npy", NULL), refuses_name(t, "/tmp/y.npy.gz", NULL), refuses_name(t, "/tmp/y", NULL),
        refuses_name(t, "-", NULL);
    acf_table_free(t);
    t = acf_table_file_lab_read("x,y\n1.5,a\n?,b\n", NULL, NULL);
    refuses_name(t, "/tmp/y.npy", "is the name of a matrix; let it end in .csv");
    refuses_name(t, "/tmp/y.NPY.gz", "is the name of a matrix");
    refuses_name(t, "/tmp/y.csv", NULL), refuses_name(t, "/tmp/npy", NULL);
    acf_table_free(t);
    acf_table_file_lab_close(&l);
    unlink(in);
}

/* The check refuses what opening would refuse, without a file. */
static void a_check_refuses_what_opening_would(void **state) {
    (void)state;
    acf_table *t = acf_table_file_lab_read("x,x.low\n1.5,1\n?,2\n2.5,3\n", NULL, NULL);
    assert_int_equal(acf_writer_check_plan(t, "/nowhere/at/all", plain), ACF_OK); /* nothing is opened */
    assert_int_equal(acf_writer_check_plan(t, "-", with_intervals), ACF_EDATA);
    assert_non_null(strstr(acf_error(), "intervals need a column 'x.low'"));
    assert_int_equal(acf_writer_check_plan(t, "-", (acf_write_plan){0, 0, 0}), ACF_EUSAGE);
    acf_table_free(t);
}

/* ---- pipes ------------------------------------------------------------------------------------------------------- */

/* Standard input and standard output, as in a pipe: here both are files. */
static void pipes_work(void **state) {
    (void)state;
    acf_memfile in = acf_memfile_create(), out = acf_memfile_create();
    const char *file = "x,y\n1.5,a\n?,b\n2.5,?\n";
    char text[64] = "";
    const double v[6] = {0.3, 1, 0.3, 1, 0.3, 1};
    acf_memfile_put(&in, file, strlen(file));
    assert_int_equal(lseek(in.fd, 0, SEEK_SET), 0);
    acf_table_file_lab l;
    acf_table_file_lab_open(&l, "", NULL);
    fflush(stdout);
    int old_in = dup(STDIN_FILENO), old_out = dup(STDOUT_FILENO);
    dup2(in.fd, STDIN_FILENO), dup2(out.fd, STDOUT_FILENO);
    acf_table *t = NULL;
    acf_writer *w = NULL;
    acf_status status = acf_table_file_read("-", l.read_options, &t);
    if (status == ACF_OK) status = acf_writer_begin(t, "-", plain, &w);
    if (status == ACF_OK) status = acf_writer_add(w, v, NULL, NULL);
    if (status == ACF_OK) status = acf_writer_finish(w);
    dup2(old_in, STDIN_FILENO), dup2(old_out, STDOUT_FILENO);
    close(old_in), close(old_out);
    if (status != ACF_OK) fail_msg("%s", acf_error());
    assert_int_equal(pread(out.fd, text, sizeof text - 1, 0), 22);
    assert_string_equal(text, "x,y\n1.5,a\n0.3,b\n2.5,b\n");
    acf_table_free(t);
    acf_table_file_lab_close(&l);
    acf_memfile_free(&in), acf_memfile_free(&out);
}

/* ---- complete or absent ------------------------------------------------------------------------------------------ */

static void gzip_is_written(void **state) {
    (void)state;
    char path[] = "/tmp/acflow-write-XXXXXX.gz", text[64] = "";
    close(mkstemps(path, 3));
    acf_table *t = acf_table_file_lab_read("x,y\n1.5,a\n?,b\n2.5,b\n", NULL, NULL);
    const double v[6] = {0.3, 0, 0.3, 0, 0.3, 0};
    acf_writer *w;
    assert_int_equal(acf_writer_begin(t, path, plain, &w), ACF_OK);
    assert_int_equal(acf_writer_add(w, v, NULL, NULL), ACF_OK);
    assert_int_equal(acf_writer_finish(w), ACF_OK);
    gzFile z = gzopen(path, "rb");
    assert_int_equal(gzread(z, text, sizeof text - 1), 22);
    gzclose(z);
    assert_string_equal(text, "x,y\n1.5,a\n0.3,b\n2.5,b\n");
    unlink(path);
    acf_table_free(t);
}

/* A folder of its own, so that a leftover temporary file would be counted. */
static int files_in(const char *folder) {
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static void put_file(const char *path, const char *text) {
    assert_int_equal(acf_file_write(path, text, strlen(text)), ACF_OK);
}

static void the_output_is_not_the_input(void **state) {
    (void)state;
    char folder[] = "/tmp/acflow-folder-XXXXXX", path[64], link[64], hard[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/in.csv", folder);
    snprintf(link, sizeof link, "%s/link.csv", folder);
    snprintf(hard, sizeof hard, "%s/hard.csv", folder);
    put_file(path, "x,y\n1.5,a\n?,b\n2.5,b\n");
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(symlink("in.csv", hard), 0);
    acf_table_file_lab l;
    acf_table *t;
    acf_writer *w;
    acf_table_file_lab_open(&l, "", NULL);
    assert_int_equal(acf_table_file_read(path, l.read_options, &t), ACF_OK);
    const char *const same[] = {path, link, hard};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(acf_writer_begin(t, same[i], plain, &w), ACF_EUSAGE);
        assert_non_null(strstr(acf_error(), "is the input; choose another name"));
    }
    assert_int_equal(files_in(folder), 3);
    acf_table_free(t);
    acf_table_file_lab_close(&l);
    unlink(path), unlink(link), unlink(hard);
    assert_int_equal(rmdir(folder), 0);
}

/* The disk is full after 4000 bytes: nothing of the new file stays, and the old one is unchanged. */
static void a_full_disk_leaves_nothing(void **state) {
    (void)state;
    char folder[] = "/tmp/acflow-folder-XXXXXX", path[64], file[16384], *old;
    size_t n;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/out.csv", folder);
    acf_text text = acf_text_into(file, sizeof file);
    for (int i = 0; i < 1500; i++) acf_text_addf(&text, "%d.5,b%d\n", i, i % 3);
    acf_table *t = acf_table_file_lab_read(file, NULL, NULL);
    double *v = calloc((size_t)(t->N * t->D), sizeof *v);
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    small = before;
    small.rlim_cur = 4000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int there = 0; there < 2; there++) {
        acf_writer *w;
        if (there) put_file(path, "old");
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        assert_int_equal(acf_writer_begin(t, path, plain, &w), ACF_OK);
        acf_status status = acf_writer_add(w, v, NULL, NULL);
        if (status == ACF_OK)
            status = acf_writer_finish(w);
        else
            acf_writer_abort(w);
        setrlimit(RLIMIT_FSIZE, &before);
        assert_int_equal(status, ACF_EIO);
        assert_int_equal(files_in(folder), there);
    }
    signal(SIGXFSZ, handler);
    assert_int_equal(acf_file_read(path, 99, &old, &n), ACF_OK);
    assert_string_equal(old, "old");
    acf_release(old);
    free(v);
    acf_table_free(t);
    unlink(path);
    rmdir(folder);
}

static void a_changed_source_is_noticed(void **state) {
    (void)state;
    char folder[] = "/tmp/acflow-folder-XXXXXX", path[64], out[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/in.csv", folder);
    snprintf(out, sizeof out, "%s/out.csv", folder);
    put_file(path, "x,y\n1.5,a\n?,b\n2.5,b\n");
    acf_table_file_lab l;
    acf_table *t;
    acf_writer *w;
    const double v[6] = {0};
    acf_table_file_lab_open(&l, "", NULL);
    assert_int_equal(acf_table_file_read(path, l.read_options, &t), ACF_OK);
    FILE *f = fopen(path, "r+"); /* in place: the reader has the same file open */
    assert_non_null(f);
    fputs("x,y\n9.5,a", f);
    fclose(f);
    acf_status status = acf_writer_begin(t, out, plain, &w);
    if (status == ACF_OK) {
        status = acf_writer_add(w, v, NULL, NULL);
        acf_writer_abort(w);
    }
    assert_int_equal(status, ACF_EIO);
    assert_int_equal(files_in(folder), 1);
    acf_table_free(t);
    acf_table_file_lab_close(&l);
    unlink(path);
    rmdir(folder);
}

static void plans_are_kept(void **state) {
    (void)state;
    char path[] = "/tmp/acflow-write-XXXXXX";
    const double v[6] = {0};
    struct stat st;
    acf_writer *w;
    acf_table *t = acf_table_file_lab_read("x,y\n1.5,a\n?,b\n2.5,b\n", NULL, NULL);
    int64_t live = acf_alloc_live();
    close(mkstemp(path)), unlink(path);
    assert_int_equal(acf_writer_begin(t, path, (acf_write_plan){0, 0, 0}, &w), ACF_EUSAGE);
    assert_string_equal(acf_error(), "a plan to write 0 imputations; expected at least 1");
    assert_int_equal(acf_writer_begin(t, path, (acf_write_plan){2, 0, 0}, &w), ACF_EUSAGE);
    assert_string_equal(acf_error(), "a plan to write 2 imputations, which takes the stacked format");
    assert_int_equal(acf_writer_begin(t, path, stacked, &w), ACF_OK);
    assert_int_equal(acf_writer_add(w, v, NULL, NULL), ACF_OK);
    assert_int_equal(acf_writer_finish(w), ACF_EUSAGE);
    assert_string_equal(acf_error(), "1 of 2 imputations that were planned have been written");
    assert_true(stat(path, &st) != 0);
    assert_int_equal(acf_writer_begin(t, path, with_intervals, &w), ACF_OK);
    assert_int_equal(acf_writer_add(w, v, v, NULL), ACF_EUSAGE);
    assert_string_equal(acf_error(), "the plan has intervals, but their ends were not given");
    assert_int_equal(acf_writer_add(w, v, v, v), ACF_OK);
    assert_int_equal(acf_writer_add(w, v, v, v), ACF_EUSAGE);
    assert_string_equal(acf_error(), "all 1 imputations that were planned have been written");
    acf_writer_abort(w);
    assert_true(stat(path, &st) != 0);
    assert_int_equal(acf_writer_begin(t, "/nonexistent/out.csv", plain, &w), ACF_EIO);
    assert_int_equal(acf_alloc_live(), live);
    acf_table_free(t);
}

static void memory_may_run_out(void **state) {
    (void)state;
    char path[] = "/tmp/acflow-write-XXXXXX.gz";
    const double v[6] = {0};
    close(mkstemps(path, 3));
    acf_table *t = acf_table_file_lab_read("x,y\n1.5,a\n?,b\n2.5,b\n", NULL, NULL), *m;
    assert_int_equal(acf_table_make(v, NULL, 2, 3, NULL, &m), ACF_OK);
    int64_t live = acf_alloc_live();
    for (int64_t k = 0; k < 2; k++)
        for (int64_t n = 1;; n++) {
            acf_writer *w = NULL;
            acf_alloc_fail_at(n);
            acf_status status = acf_writer_begin(k ? m : t, path, plain, &w);
            if (status == ACF_OK && (status = acf_writer_add(w, v, NULL, NULL)) == ACF_OK)
                status = acf_writer_finish(w);
            else
                acf_writer_abort(w);
            acf_alloc_fail_at(0);
            assert_int_equal(acf_alloc_live(), live);
            if (status == ACF_OK) break;
            assert_int_equal(status, ACF_EMEMORY);
            assert_in_range(n, 1, 60);
        }
    acf_table_free(m);
    acf_table_free(t);
    unlink(path);
}

/* ---- real tables, real readers ----------------------------------------------------------------------------------- */

/* A table without missing cells comes back unchanged, whatever its dialect: these have spaces after commas, semicolons,
 * runs of spaces, quotes. */
static void real_tables_come_back(void **state) {
    (void)state;
    static const char *const file[] = {"abalone.csv", "winequality-white.csv", "yeast.data", "mammography.csv",
                                       "adult-train.csv"};
    for (size_t i = 0; i < sizeof file / sizeof file[0]; i++) {
        acf_table_file_lab l;
        acf_table *t;
        char *text;
        size_t n;
        acf_table_file_lab_open(&l, "", NULL);
        assert_int_equal(acf_file_read(acf_lab_real_table(file[i]), (size_t)1 << 26, &text, &n), ACF_OK);
        assert_int_equal(acf_table_file_read(acf_lab_real_table(file[i]), l.read_options, &t), ACF_OK);
        const char *done = acf_table_file_lab_write(t, plain, nowhere);
        if (strncmp(done, text, strlen(done)) != 0) fail_msg("%s did not come back as it was", file[i]);
        assert_int_equal(strspn(text + strlen(done), "\r\n"),
                         n - strlen(done)); /* blank lines at the end are not rows */
        acf_release(text);
        acf_table_free(t);
        acf_table_file_lab_close(&l);
    }
}

static double by_cell(int64_t i, int64_t j, int64_t imputation) {
    return (double)((i * 7 + j * 3 + imputation) % 5) / 2;
}

/* mice reads the stacked format and finds missing cells and imputations in the right places. */
static void mice_reads_the_stacked_format(void **state) {
    (void)state;
    if (system("Rscript -e 'library(mice)' >/dev/null 2>&1") != 0)
        acf_skip("R with the package mice is not here (apt-get install r-cran-mice)");
    char folder[] = "/tmp/acflow-folder-XXXXXX", path[64], command[1024];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/long.csv", folder);
    acf_table *t =
        acf_table_file_lab_read("id,x,n,c\n11,1.5,3,a\n17,?,7,?\n19,2.5,?,b\n23,?,9,b\n", OPTIONS("types=id=id"), NULL);
    put_file(path, acf_table_file_lab_write(t, (acf_write_plan){3, 1, 0}, by_cell));
    acf_table_free(t);
    snprintf(
        command, sizeof command,
        "Rscript -e 'suppressMessages(library(mice)); d <- read.csv(\"%s\", stringsAsFactors = TRUE); m <- "
        "as.mids(d);stopifnot(m$m == 3, sum(m$where) == 4, is.na(m$data$x[2]), is.na(m$data$c[2]), nrow(m$imp$x) == "
        "2, !anyNA(complete(m, 2)),isTRUE(all.equal(complete(m, 2)$x[4], d$x[d$.imp == 2][4])), complete(m, 1)$x[1] "
        "== 1.5)' 2>%s/log",
        path, folder);
    int status = system(command);
    if (status != 0) fail_msg("R refused it; see %s/log", folder);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

ACF_TESTS(writer, cmocka_unit_test(observed_cells_come_back_byte_for_byte),
          cmocka_unit_test(kinds_are_written_as_their_columns_are), cmocka_unit_test(additions_of_programs_come_back),
          cmocka_unit_test(constants_stay_as_they_are),
          cmocka_unit_test(a_constant_on_request_is_the_most_frequent_value),
          cmocka_unit_test(white_space_columns_keep_their_shape), cmocka_unit_test(quotes_are_those_of_the_column),
          cmocka_unit_test(words_among_numbers_stay), cmocka_unit_test(nan_leaves_the_cell_missing),
          cmocka_unit_test(unseen_categories_stay), cmocka_unit_test(a_level_may_not_fit_a_file_without_quotes),
          cmocka_unit_test(imputations_are_stacked), cmocka_unit_test(intervals_follow_their_column),
          cmocka_unit_test(new_columns_need_new_names), cmocka_unit_test(tables_from_memory_are_plain_csv),
          cmocka_unit_test(blank_tables_are_written), cmocka_unit_test(levels_that_share_a_class_are_drawn),
          cmocka_unit_test(matrices_stay_matrices), cmocka_unit_test(names_match_the_format_of_a_file),
          cmocka_unit_test(a_check_refuses_what_opening_would), cmocka_unit_test(gzip_is_written),
          cmocka_unit_test(pipes_work), cmocka_unit_test(the_output_is_not_the_input),
          cmocka_unit_test(a_full_disk_leaves_nothing), cmocka_unit_test(a_changed_source_is_noticed),
          cmocka_unit_test(plans_are_kept), cmocka_unit_test(memory_may_run_out),
          cmocka_unit_test(real_tables_come_back), cmocka_unit_test(mice_reads_the_stacked_format))
