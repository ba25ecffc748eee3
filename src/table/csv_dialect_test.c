/* Tests of csv_dialect.h: each rule by itself, then real tables. */
#include "table/csv_dialect.h"

#include "harness/file_lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "separator quote header" of a text, as in "; \" header"; n for no quote, ~ for padded. */
static const char *dialect_of(const char *text, const acf_csv_want *want, bool eof) {
    static char out[32];
    static char padded[1 << 16];
    size_t n = strlen(text);
    assert_true(n + ACF_SCAN_SLACK <= sizeof padded);
    memcpy(padded, text, n + 1);
    acf_dialect d;
    assert_int_equal(acf_dialect_detect(padded, n, eof, want ? want : &(acf_csv_want){0}, &d), ACF_OK);
    snprintf(out, sizeof out, "%c %c %s%s", d.separator == '\t' ? 't' : d.separator, d.quote == '\n' ? 'n' : d.quote,
             d.header ? "header" : "data", d.padded ? " ~" : "");
    return out;
}

static void assert_dialect(const char *text, const char *expected) {
    const char *seen = dialect_of(text, NULL, true);
    if (strcmp(seen, expected) != 0) fail_msg("%s is expected, found %s for:\n%s", expected, seen, text);
}

static void separators(void **state) {
    (void)state;
    assert_dialect("a,b\n1,2\n3,4\n", ", \" header");
    assert_dialect("a;b\n1;2\n3;4\n", "; \" header");
    assert_dialect("a\tb\n1\t2\n3\t4\n", "t \" header");
    assert_dialect("a|b\n1|2\n3|4\n", "| \" header");
    assert_dialect("a b\n1 2\n3 4\n", "  \" header");
    assert_dialect("a   b\n1.5\t2\n 3   4 \n", "  \" header");
    assert_dialect("x\n1\n2\n", ", \" header"); /* one column: any separator */
    assert_dialect("name\nAnn Lee\nBob Ray\nCid Orr\nDan Fox\n", ", \" header");
    /* Punctuation of one dialect inside the values of another. */
    assert_dialect("39, State-gov, 77516\n50, Private, 83311\n", ", \" data ~");
    assert_dialect("\"a\", \"b\"\n\"c\", \"d\"\n", ", \" header ~");
    assert_dialect("a;b\n1,5;2,5\n3,25;4,75\n", "; \" header");
    assert_dialect("1,5;2,5\n3,25;4,75\n", "; \" data");
    assert_dialect("1,5 2,5\n3,25 4,75\n", "  \" data");
    assert_dialect("name;n\nSmith, John;5\nDoe, Jane;6\n", "; \" header");
    assert_dialect("when,x\n2020-01-01 10:00,1\n2020-01-02 11:30,2\n", ", \" header");
    assert_dialect("when;x\n2020-01-01 10:00;1,5\n2020-01-02 11:30;2,5\n", "; \" header");
    assert_dialect("tags,n\na|b,1\nc|d,2\ne|f,3\n", ", \" header");
    assert_dialect("city\tn\nNew York\t1\nLos Angeles\t2\n", "t \" header");
    assert_dialect("1 2\t3 4\n5 6\t7 8\n", "  \" data");
    assert_dialect("a\tb\tc\n1\t\t3\n4\t5\t\n", "t \" header"); /* empty cells keep their tabs */
    /* Thousands separators and units belong to numbers. */
    assert_dialect("x;y\n1 698;a\n24 192;b\n985;c\n", "; \" header");
    assert_dialect("w;x;y\n24;192,4;1.698\n30;180,1;985\n", "; \" header");
    assert_dialect("weight,price\n12 kg,$5\n13.5 kg,$6\n14 kg,$7\n", ", \" header");
    assert_dialect("12 kg,$5\n13.5 kg,$6\n14 kg,$7\n", ", \" data");
    assert_dialect("50 m,100 m\n6.5 s,11.2 s\n6.7 s,11.9 s\n", ", \" header");
    /* Ragged rows do not turn a table into one column; neither does a title, which is reported. */
    assert_dialect("a,b,c\n1,2,3\n4,5\n6,7,8\n", ", \" header");
    assert_dialect("My table\n\na,b,c\n1,2,3\n4,5,6\n7,8,9\n1,3,2\n5,4,4\n2,2,2\n", ", \" header");
    /* Texts with occasional commas are one column. */
    assert_dialect("remark\nwell, well\nno\nyes, no, perhaps\nnothing\nmuch\n", "; \" header");
}

static void quotes(void **state) {
    (void)state;
    assert_dialect("\"a b\";\"c\"\n1;2\n", "; \" header");
    assert_dialect("1,'-1'\n2,'1'\n3,'-1'\n", ", ' data");
    assert_dialect("'a,b',1\n'c',2\n'd,e',3\n", ", ' data");
    assert_dialect("\"a;b\",1\n\"c;d\",2\n\"e\",3\n", ", \" data");
    assert_dialect("\"a\nb\",1\n\"c\",2\n", ", \" data");
    assert_dialect("x,y\nit's,1\n'90s,2\nold,3\n", ", \" header");     /* apostrophes in text */
    assert_dialect("x,y\n\"a,1\n\"b,2\n\"c,3\n\"d,4\n", ", n header"); /* quotes that never close */
    assert_dialect("\"a\" \"b c\"\n1 2\n3 4\n", "  \" header");
    /* A wrong line does not change the dialect of the others, and is reported. */
    assert_dialect("\"a,b\",1\n\"c,d\",2\n\"e\"f\",3\n\"g,h\",4\n", ", \" data");
}

static void names_above_figures(void **state) {
    (void)state;
    assert_dialect("x,y\n1,2\n3,4\n", ", \" header");
    assert_dialect("1,2\n3,4\n5,6\n", ", \" data");
    assert_dialect("1,2\n", ", \" data");
    assert_dialect("x,y\n", ", \" header"); /* only names */
    assert_dialect("M,0.5\nF,0.6\nM,0.7\n", ", \" data");
    assert_dialect("sex,length\nM,0.5\nF,0.6\nM,0.7\n", ", \" header");
    assert_dialect("day,n\n2020-01-01,1\n2020-01-02,3\n", ", \" header");
    assert_dialect("2020-01-01,10:30\n2020-01-02,11:00\n", ", \" data");
    assert_dialect("x,y\n1,?\nNA,4\n,5\n", ", \" header"); /* missing cells do not vote */
    assert_dialect("?,3\n1,4\n2,5\n", ", \" data");        /* a missing cell is not a name */
    assert_dialect("3,?,alfa\n1,164,audi\n2,158,audi\n", ", \" data");
    assert_dialect("id,value,value\n1,2,3\n4,5,6\n", ", \" header");    /* duplicate names are reported later; they
                                                                         * are not data */
    assert_dialect(",x,y\n0,1.5,2\n1,3.5,4\n", ", \" header");          /* pandas gives its row numbers no name */
    assert_dialect("0,1,2,3,4\n5,3,1,2,0\n4,3,1,1,0\n", ", \" header"); /* pandas numbers columns without names */
    assert_dialect(",0,1,2,3,4\n0,5,3,1,2,0\n1,4,3,1,1,0\n", ", \" header");
    assert_dialect("0,1,2,3\n5,3,1,2\n4,3,1,1\n", ", \" data");
    assert_dialect("1,2,3,4,5\n5,3,1,2,0\n4,3,1,1,0\n", ", \" data");
    assert_dialect("x1,x2\n1e5,-2.5E-3\n+4,$12\n", ", \" header");
    assert_dialect("rate,t\n5%,1:30\n7%,2:45\n", ", \" header");
}

/* Years and other rising numbers may be names, if the cells below them differ in kind. */
static void names_that_are_numbers(void **state) {
    (void)state;
    assert_dialect("country,code,1990,1991,1992\nUtopia,UT,1675.04,,1949.59\nErewhon,ER,994.94,1003.82,1134.67\n",
                   ", \" header");
    assert_dialect("country,1990,1991,1992\nUtopia,1675,1990,1949\nErewhon,1994,2003,1634\n",
                   ", \" header"); /* no row below is a series */
    assert_dialect("country,1990,1995,2000\nUtopia,1,2,3\nErewhon,4,5,6\n", ", \" header");
    assert_dialect("region,2019,2020\nN,869,263\nS,655,522\nN,100,100\n", ", \" header");
    assert_dialect("id,2019,2020\n1,79,747\n2,492,149\n", ", \" header");
    assert_dialect("2019,2020,2021\n85,84,62\n63,8,56\n", ", \" header");
    assert_dialect("2021,2020,2019\n85,84,62\n63,8,56\n", ", \" header");
    /* Years that are data: rows like the first, or columns of years. */
    assert_dialect("Ann,1990,1991,1992\nBob,1890,1891,1892\nCid,3,4,6\n", ", \" data");
    assert_dialect("Ann,2019,2020\nBob,2015,2021\nCid,2001,2002\n", ", \" data");
    assert_dialect("Ann,1950,2010\nBob,3,7\nCid,8,11\n", ", \" data"); /* two years far apart are just two numbers */
    assert_dialect("N,2019,2020,x\nS,2018,2021,y\nS,2001,2002,y\nS,2011,2012,y\n", ", \" data");
    assert_dialect("1990,1992,1993\n5,6,7\n8,9,10\n", ", \" data"); /* unequal steps */
    assert_dialect("2300,2301,2302\n5,6,7\n8,9,10\n", ", \" data"); /* not years */
    assert_dialect("2019\n5\n8\n", ", \" data");
    /* Minutes, doses, items: with a word over figures beside them, and decimals below. */
    assert_dialect("subject,0,30,60,120\n1,1.5,2.5,2.25,1.5\n2,0.5,3.5,3.25,2.5\n", ", \" header");
    assert_dialect("subject,0,30,60,120\n1,1,2,2,1\n2,0,3,3,2\n", ", \" data");
    assert_dialect("subject,0,30,10,120\n1,1.5,2.5,2.25,1.5\n2,0.5,3.5,3.25,2.5\n", ", \" data");
    assert_dialect("1,2,3\n1.5,2.5,3.5\n0.5,1.5,2.5\n", ", \" data"); /* only rising numbers */
    assert_dialect("s,1,2\n1,1.5,2.5\n2,0.5,1.5\n", ", \" data");     /* two may rise by chance */
}

static void names_above_words(void **state) {
    (void)state;
    assert_dialect("p,x,s\ne,x,s\np,b,y\ne,b,s\np,x,y\n", ", \" data");
    assert_dialect("class,cap,smell\ne,x,s\np,b,y\ne,b,s\np,x,y\n", ", \" header");
    assert_dialect("Ann,Ann\nBob,Bo\nCid,Ci\n", ", \" data"); /* two equal words are unlikely names */
    assert_dialect("name,city\nAnn,London\nBob,Paris\nCid,Rome\n",
                   ", \" header"); /* nothing repeats: most such files have a header */
    assert_dialect("sex,colour,2020\nM,red,5\nF,blue,6\nM,red,7\nF,red,8\n",
                   ", \" header"); /* two names outvote a year */
    assert_dialect("Ann,5\nBob,6\nCid,7\n", ", \" data");
    assert_dialect("ADT1_YEAST  0.58  MIT\nADT2_YEAST  0.43  MIT\nADT3_YEAST  0.64  NUC\n", "  \" data");
}

static void specified_dialects_are_kept(void **state) {
    (void)state;
    assert_string_equal(dialect_of("a,b\n1,2\n", &(acf_csv_want){.separator = ';'}, true), "; \" header");
    assert_string_equal(dialect_of("a,b\n1,2\n", &(acf_csv_want){.separator = '~'}, true), "~ \" header");
    assert_string_equal(dialect_of("'a','b'\n", &(acf_csv_want){.quote = '"'}, true), ", \" header");
    assert_string_equal(dialect_of("\"a\",\"b\"\n", &(acf_csv_want){.quote = '\n'}, true), ", n header");
    assert_string_equal(dialect_of("a,b\n1,2\n", &(acf_csv_want){.header = ACF_NO}, true), ", \" data");
    assert_string_equal(dialect_of("1,2\n1,2\n", &(acf_csv_want){.header = ACF_YES}, true), ", \" header");
    /* The block ends inside a record, which is ignored; unless it is inside quotes that were opened by mistake. */
    assert_string_equal(dialect_of("a,b\n1,2\n3,4\n5", NULL, false), ", \" header");
    assert_string_equal(dialect_of("a,b\n\"1,2\n3,4\n5,6\n7,8\n9,10\n11,12\n13,14\n", NULL, false), ", n header");
}

/* ---- real tables ------------------------------------------------------------------------------------------------- */

/* The folder of real tables, or NULL. */
static const char *tables(void) {
    const char *folder = getenv("ACF_DATA");
    static char path[512];
    snprintf(path, sizeof path, "%s/tables", folder ? folder : "../shared/data");
    return access(path, R_OK) == 0 ? path : NULL;
}

static void real_tables(void **state) {
    (void)state;
    static const struct {
        const char *name, *dialect;
        int64_t columns, rows;
        const char *first;
    } real[] = {{"adult-train.csv", ", \" data ~", 15, 32561, "39"},
                {"adult-test.csv", ", \" data ~", 15, 16281, "25"},
                {"winequality-white.csv", "; \" header", 12, 4898, "7"},
                {"yeast.data", "  \" data", 10, 1484, "ADT1_YEAST"},
                {"breast-cancer-wisconsin.data", ", \" data", 11, 699, "1000025"},
                {"mammography.csv", ", ' data", 7, 11183, "0.23001961"},
                {"auto_imports.csv", ", \" data", 26, 201, "3"},
                {"abalone.csv", ", \" data", 9, 4177, "M"},
                {"agaricus-lepiota.data", ", \" data", 23, 8124, "p"}};
    if (!tables()) acf_skip("no real tables in ../shared/data (set ACF_DATA to their folder)");
    for (size_t i = 0; i < sizeof real / sizeof *real; i++) {
        char path[1024], seen[32];
        acf_csv *csv = NULL;
        acf_record r = {.n = 1};
        snprintf(path, sizeof path, "%s/%s", tables(), real[i].name);
        if (acf_csv_open(path, NULL, &csv) != ACF_OK) fail_msg("%s", acf_error());
        const acf_dialect *d = acf_csv_dialect(csv);
        snprintf(seen, sizeof seen, "%c %c %s%s", d->separator, d->quote, d->header ? "header" : "data",
                 d->padded ? " ~" : "");
        assert_string_equal(seen, real[i].dialect);
        assert_int_equal(acf_csv_columns(csv), real[i].columns);
        while (r.n) {
            if (acf_csv_next(csv, &r) != ACF_OK) fail_msg("%s", acf_error());
            if (r.n && r.row == 0) assert_memory_equal(r.field[0].text, real[i].first, strlen(real[i].first));
        }
        assert_int_equal(r.row, real[i].rows);
        acf_csv_close(csv);
    }
}

ACF_TESTS(csv_dialect, cmocka_unit_test(separators), cmocka_unit_test(quotes), cmocka_unit_test(names_above_figures),
          cmocka_unit_test(names_that_are_numbers), cmocka_unit_test(names_above_words),
          cmocka_unit_test(specified_dialects_are_kept), cmocka_unit_test(real_tables))
