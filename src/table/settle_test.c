/* Tests of settle.h: if the cells of a column do not show how its numbers are written, the file decides, and the
 * assumption is reported. */
#include "table/settle.h"

#include "harness/table_file_lab.h"

#include <math.h>
#include <string.h>

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Cell 0 of the first column, NaN if it is text, and the first warning ("": none). */
static void settles(const char *file, const char *const *options, double first, const char *note) {
    acf_table *t = acf_table_file_lab_read(file, options, NULL);
    const acf_field_spec *c = &t->file->schema->column[0];
    const bool number = acf_kind_is_numeric(c->kind);
    if (number == isnan(first) || (number && acf_table_row(t, 0)[0] != first))
        fail_msg("%s: %g (%s), expected %g", file, number ? acf_table_row(t, 0)[0] : (double)NAN, c->kind->name, first);
    assert_string_equal(t->file->warnings.n ? t->file->warnings.text[0] : "", note);
    acf_table_free(t);
}

#define COMMAS "numbers of other columns have a decimal comma"
#define POINTS "numbers of other columns have a decimal point"
#define ASSUMED(cell, number, why, what, other)                                                                        \
    "column 1 ('x'): '" cell "' is read as " number ", because " why ": the " what ". If that is wrong, say " other    \
    " in the option 'decimal'"
#define EITHER                                                                                                         \
    "column 1 ('x'): '1.698' may be 1.698, with a decimal point, or 1698, with a point between thousands, and no "     \
    "other column decides, so such numbers are read as "                                                               \
    "text (category); the option 'decimal' (point or comma) settles it for the file, real or integer in the option "   \
    "'types' for the column"

static void other_columns_decide(void **state) {
    (void)state;
    settles("x;y\n1.698;192,4\n985;170,25\n", NULL, 1698,
            ASSUMED("1.698", "1698", COMMAS, "point separates thousands", "point"));
    settles("x;y\n1.698;192.4\n985;170.25\n", NULL, 1.698, "");
    settles("x;y\n1,698;192,4\n985;170,25\n", NULL, 1.698,
            ASSUMED("1,698", "1.698", COMMAS, "comma is a decimal one", "point"));
    settles("x;y\n1,698;192.4\n985;170.25\n", NULL, 1698,
            ASSUMED("1,698", "1698", POINTS, "comma separates thousands", "comma"));
    settles("x;y;z\n1.698;192,4;1.5\n985;170,25;2.5\n", NULL, (double)NAN, EITHER); /* the other columns disagree */
    settles("x;y\n1.698;version 1,5\n985;b\n", NULL, (double)NAN, EITHER);
}

static void separators_decide(void **state) {
    (void)state;
    settles("x,y\n1.698,a\n985,b\n", NULL, 1.698, "");
    settles("x,y\n\"1,698\",a\n985,b\n", NULL, 1698,
            ASSUMED("1,698", "1698", "the columns are separated by commas", "comma separates thousands", "comma"));
    settles("x,y\n\"1,5\",a\n985,b\n", NULL, 1.5, "");
    settles("x y\n1.698 a\n985 b\n", OPTIONS("separator=space"), 1.698, "");
}

static void users_decide(void **state) {
    (void)state;
    const char *file = "x;y\n1.698;a\n985;b\n";
    settles(file, NULL, (double)NAN, EITHER);
    settles(file, OPTIONS("decimal=comma"), 1698, "");
    settles(file, OPTIONS("decimal=point"), 1.698, "");
    settles(file, OPTIONS("types=x=real"), 1.698, "");
    settles(file, OPTIONS("types=x=integer"), 1698, "");
    settles("x;y\n1.698;192,4\n985;170,25\n", OPTIONS("decimal=point"), 1.698, "");
    settles("x;y\n1.5;192,4\n985;170,25\n", OPTIONS("decimal=comma"), 1.5, ""); /* its own cells decide */
}

/* A missing cell is imputed in the column's notation, and a file that is read for the model keeps that notation. */
static void notations_are_kept(void **state) {
    (void)state;
    const char *file = "x;y;w\n24.192;192,40;12 kg\n985;170,25;50 kg\n;;\n2.345;180,00;70 kg\n";
    acf_table *t = acf_table_file_lab_read(file, NULL, NULL), *again;
    assert_string_equal(acf_table_file_lab_write(t, (acf_write_plan){1, 0, 0}, acf_table_file_lab_constant),
                        "x;y;w\n24.192;192,40;12 kg\n985;170,25;50 kg\n0;0,30;0 kg\n2.345;180,00;70 kg\n");
    again = acf_table_file_lab_read("x;y;w\n1.698;1,698;60kg\n", NULL, t->file->schema);
    assert_true(acf_table_row(again, 0)[0] == 1698 && acf_table_row(again, 0)[1] == 1.698 &&
                acf_table_row(again, 0)[2] == 60);
    acf_table_free(again);
    acf_table_file_lab_refused("x;y;w\n1.698;1.698;60kg\n", NULL, t->file->schema, ACF_EDATA,
                               "FILE, line 2, column 2 ('y'): '1.698' is not a number like 1234,50, which this column "
                               "(real) holds; correct it, or add it to the option "
                               "'missing' if it stands for a missing value");
    acf_table_free(t);
    t = acf_table_file_lab_read(file, OPTIONS("types=x=real"), NULL);
    acf_table_free(t);
}

ACF_TESTS(settle, cmocka_unit_test(other_columns_decide), cmocka_unit_test(separators_decide),
          cmocka_unit_test(users_decide), cmocka_unit_test(notations_are_kept))
