/* Tests of notation.h: numbers as people write them are read, told apart and written again. */
#include "table/notation.h"

#include "harness/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static acf_notation notation(bool comma, const char *group, const char *prefix, const char *suffix) {
    acf_notation f = {.comma = comma};
    strcpy(f.group, group);
    strcpy(f.prefix, prefix);
    strcpy(f.suffix, suffix);
    return f;
}

/* text is NUL-terminated; value NaN: it is not a number in this notation. */
static void reads(acf_notation f, const char *text, double value) {
    acf_number v = {.value = (double)NAN};
    const bool is = acf_notation_read(&f, text, strlen(text), &v);
    if (is == isnan(value) || (is && v.value != value)) fail_msg("'%s' is %g, expected %g", text, v.value, value);
}

static void writes(acf_notation f, const char *plain, const char *text) {
    char out[128];
    acf_text t = acf_text_into(out, sizeof out);
    acf_notation_write(&f, plain, &t);
    assert_string_equal(out, text);
    reads(f, text, strtod(plain, NULL));
}

static void numbers_are_read_as_their_column_writes_them(void **state) {
    (void)state;
    const double no = (double)NAN;
    const acf_notation point = notation(false, ",", "", ""), comma = notation(true, ".", "", ""),
                       none = notation(true, "", "", "");
    const acf_notation blank = notation(true, "\302\240", "", ""), swiss = notation(false, "'", "", "");
    reads(point, "1,698", 1698), reads(point, "-24,192.5", -24192.5), reads(point, "1,234,567", 1234567),
        reads(point, "985", 985);
    reads(point, "1234.5", 1234.5), reads(point, "1,69", no), reads(point, "1234,567", no), reads(point, "0,567", no);
    reads(point, "1,2345", no), reads(point, "1.5,000", no), reads(point, ",567", no), reads(point, "1,234,56", no),
        reads(point, "1,,234", no);
    reads(comma, "1.698", 1698), reads(comma, "192,4", 192.4), reads(comma, "1.234,567", 1234.567),
        reads(comma, "1.5", no), reads(comma, "1,5e3", 1500);
    reads(none, "1.698", no), reads(none, "1,698", 1.698), reads(none, ",5", 0.5), reads(none, "1,2,3", no),
        reads(none, "", no), reads(none, "x", no);
    reads(blank, "1 698", 1698), reads(blank, "1\302\240698,5", 1698.5), reads(blank, "1\342\200\257698", 1698),
        reads(blank, "12 34", no);
    reads(swiss, "1'698.50", 1698.5), reads(swiss, "1\342\200\231698", 1698), reads(swiss, "1 698", no);
    reads(notation(false, "", "", ""), "5.", 5);
}

static void signs_and_units_stand_beside_numbers(void **state) {
    (void)state;
    const double no = (double)NAN;
    const acf_notation kg = notation(false, "", "", " kg"), dollar = notation(false, ",", "$", ""),
                       euro = notation(true, ".", "EUR ", "");
    reads(kg, "12 kg", 12), reads(kg, "50.3kg", 50.3), reads(kg, "50.3\302\240kg", 50.3), reads(kg, "12", no),
        reads(kg, "12 lb", no), reads(kg, "12 kg x", no);
    reads(dollar, "-$1,205.50", -1205.5), reads(dollar, "$-5", -5), reads(dollar, "$ 5", 5), reads(dollar, "5", no),
        reads(dollar, "--$5", no);
    reads(euro, "EUR 1.698", 1698), reads(euro, "EUR-5,5", -5.5);
    writes(kg, "50.3", "50.3 kg"), writes(dollar, "-1205.50", "-$1,205.50"), writes(euro, "-1698.5", "EUR -1.698,5");
    writes(notation(false, "", "", ""), "-1234.5", "-1234.5"), writes(notation(true, "", "", ""), "1e-05", "1e-05");
    writes(notation(true, "\302\240", "", "%"), "1234567.25", "1\302\240234\302\240567,25%"),
        writes(notation(false, ",", "", ""), "985", "985");
}

/* cells are separated by |; expected has verdict and notation, "is ,[.][$][ kg]". */
static void says(const char *cells, char point, const char *expected) {
    static const char *const names[] = {"is", "assumed", "either", "mixed"};
    acf_notation_survey s = {0};
    acf_notation f;
    int64_t n = 0;
    char out[128];
    for (const char *p = cells;; p++, n++) {
        const size_t length = strcspn(p, "|");
        acf_notation_look(&s, p, length);
        if (!*(p += length)) break;
    }
    const acf_notation_verdict v = acf_notation_most(&s, n + 1, point, &f);
    acf_text t = acf_text_into(out, sizeof out);
    acf_text_addf(&t, "%s %c[%s][%s][%s]", names[v], f.comma ? ',' : '.', f.group, f.prefix, f.suffix);
    if (strcmp(out, expected) != 0) fail_msg("%s: %s, expected %s", cells, out, expected);
}

static void columns_show_their_notation(void **state) {
    (void)state;
    says("1.5|2|3.25", 0, "is .[][][]");
    says("1,5|2|3,25", 0, "is ,[][][]");
    says("192,4|1.698", 0, "is ,[.][][]");
    says("1.698|1.698.000", 0, "is ,[.][][]");
    says("1,698|2.5", 0, "is .[,][][]");
    says("1.698,5|1.698", '.', "is ,[.][][]"); /* the cells take precedence over the file */
    says("1.698|0.5", ',', "is .[][][]");
    says("1.698|1234", ',', "is .[][][]"); /* thousands would have a mark in all of them */
    says("1.698|985", 0, "either .[][][]");
    says("1.698|985", ',', "assumed ,[.][][]");
    says("1.698|985", '.', "assumed .[][][]");
    says("1,698|985", 0, "either ,[][][]");
    says("1,698|985", '.', "assumed .[,][][]");
    says("1,698|985", ',', "assumed ,[][][]");
    says("1,5|2.5", 0, "mixed .[][][]");
    says("1.698|1,698", 0, "mixed ,[][][]");
    says("1.5|2.5|3.5|4.5|5.5|6.5|7.5|8.5|9.5|1,5", 0, "is .[][][]"); /* one slip in ten */
    says("1 698|24 192,5", 0, "is ,[ ][][]");
    says("1'698|985", ',', "is .['][][]"); /* without a decimal mark */
    says("12|985", ',', "is .[][][]");
    says("1.5 kg|2kg|3.25 kg", 0, "is .[][][ kg]");
    says("1,5 kg|1.698 kg", 0, "is ,[.][][ kg]");
    says("5 kg|6 lb", 0, "is .[][][]");
    says("$5|-$6|$7.50", 0, "is .[][$][]");
}

static void most_texts_are_no_numbers(void **state) {
    (void)state;
    static const char *const words[] = {"",
                                        "x",
                                        "kg",
                                        "12:30",
                                        "2021-03-09",
                                        "25.12.2021",
                                        "192.168.0.1",
                                        "1.2.3",
                                        "12-15",
                                        "3A",
                                        "2nd",
                                        "1st place",
                                        "12 Elm Street",
                                        "$",
                                        "-",
                                        "+1 555 123 4567",
                                        "030 123 456",
                                        "5 pm",
                                        "1,,5",
                                        "1/2",
                                        "12 kg 5",
                                        "0x10",
                                        "1e",
                                        "12 -"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        acf_notation_survey s = {0};
        if (acf_notation_look(&s, words[i], strlen(words[i]))) fail_msg("'%s' is taken for a number", words[i]);
    }
}

static void what_a_file_says_is_checked(void **state) {
    (void)state;
    assert_true(acf_notation_is_group(".") && acf_notation_is_group("\342\200\257") && acf_notation_is_group("'"));
    assert_false(acf_notation_is_group("") || acf_notation_is_group("x") || acf_notation_is_group(".,"));
    assert_true(acf_notation_is_affix(" kg/m2") && acf_notation_is_affix("$") && acf_notation_is_affix("Rs."));
    assert_false(acf_notation_is_affix("") || acf_notation_is_affix(" ") || acf_notation_is_affix("5") ||
                 acf_notation_is_affix("a-b") || acf_notation_is_affix(".x"));
    assert_false(acf_notation_is_affix("a word that has more bytes than there is room for"));
}

ACF_TESTS(notation, cmocka_unit_test(numbers_are_read_as_their_column_writes_them),
          cmocka_unit_test(signs_and_units_stand_beside_numbers), cmocka_unit_test(columns_show_their_notation),
          cmocka_unit_test(most_texts_are_no_numbers), cmocka_unit_test(what_a_file_says_is_checked))
