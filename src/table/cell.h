/* Reads and writes one cell by its column's schema: from text to the number that the model sees, and back to text.
 *
 *     "12.50"   real       12.5              12.4987   ->  "12.50"     with the column's number of decimals
 *     "F"       category   0                 0         ->  "F"
 *     "?"       any        missing
 *     "Q"       category   kept              an unseen level: its text is kept, and the model treats it as missing
 *     "abc"     real       wrong             refused with file, line and column */
#ifndef ACF_TABLE_CELL_H
#define ACF_TABLE_CELL_H

#include "table/schema.h"

/* Reads a cell. *value is NaN unless present. */
acf_cell_state acf_cell_read(const acf_schema *s, const acf_field_spec *c, const char *text, size_t n, double *value);

/* The same for a number of a matrix; NaN is missing. */
acf_cell_state acf_cell_read_number(const acf_field_spec *c, double x, double *value);

/* The nearest value that the column can hold: an integer inside the observed range, a level, a class, a date. A real
 * is rounded to the column's decimals. */
double acf_cell_round(const acf_field_spec *c, double value);

/* Appends the text of a value, rounded first, without quotes. */
void acf_cell_write(const acf_field_spec *c, double value, acf_text *out);

/* The number of a value in a matrix: for a class, the number of its level. NaN: none. */
double acf_cell_write_number(const acf_field_spec *c, double value);

/* The level written for a class of a category. Levels that share a class are drawn by their counts, with u from 0 to
 * 1. */
int64_t acf_cell_level(const acf_field_spec *c, double value, double u);

/* "a number", "a date like 2021-03-09": what the column expects, for messages. Returns out. */
#define ACF_PREDICTED_MAX 96
char *acf_cell_expected(const acf_field_spec *c, char out[ACF_PREDICTED_MAX]);

#endif
