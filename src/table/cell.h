/* One cell under its column's schema: from text to the number the model sees, and from a number back to text.
 *
 *     "12.50"   real       12.5              12.4987   ->  "12.50"     as many decimals as the column has
 *     "F"       category   0                 0         ->  "F"
 *     "?"       any        missing
 *     "Q"       category   kept              a level that training never saw: its bytes stay, to the model it is missing
 *     "abc"     real       wrong             to be refused with file, line and column
 */
#ifndef ACF_TABLE_CELL_H
#define ACF_TABLE_CELL_H

#include "table/schema.h"

/* Reads a cell. *value is NaN unless present. */
acf_cell_state acf_cell_read(const acf_schema *s, const acf_field_spec *c, const char *text, size_t n, double *value);

/* The same for a number of a matrix; NaN is missing. */
acf_cell_state acf_cell_read_number(const acf_field_spec *c, double x, double *value);

/* The value nearest to this one that the column can hold: whole and inside the observed range for integers, a level, a class, a date. A
 * real is rounded to the column's decimals. */
double acf_cell_round(const acf_field_spec *c, double value);

/* Appends the text of a value, rounded first. No quotes. */
void acf_cell_write(const acf_field_spec *c, double value, acf_text *out);

/* The number that stands for a value in a matrix: a class is its level's. NaN: there is none. */
double acf_cell_write_number(const acf_field_spec *c, double value);

/* The level that a class of a category is written as; of the class that levels share the one that u, from 0 to 1, picks by their counts. */
int64_t acf_cell_level(const acf_field_spec *c, double value, double u);

/* "a number", "a date like 2021-03-09": what the column expects, for sentences. Returns out. */
#define ACF_PREDICTED_MAX 96
char *acf_cell_expected(const acf_field_spec *c, char out[ACF_PREDICTED_MAX]);

#endif
