/* Numbers in the cells of a table: text to double and back, independent of the locale.
 *
 *     -12.50   ->   value -12.5, 2 decimals, not whole            1e3   ->   1000, 0 decimals, whole
 *
 * Every numeric cell is read here: about ten nanoseconds for what people and programs write (up to 19 digits), always
 * correctly rounded. The number of decimals is kept because an imputed value is written with as many as its column
 * has. */
#ifndef ACF_TABLE_NUMBER_H
#define ACF_TABLE_NUMBER_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

#define ACF_DECIMALS_MAX 99 /* a number with more is counted as having this many */

typedef struct acf_number {
    double value; /* finite, correctly rounded; below the smallest double: 0 */
    int decimals; /* digits after the point, with the exponent applied: 9.00 has 2, 1.5e-3 has 4, 1.5e3 has 0 */
    bool whole;   /* the value is an integer, however it was written: 3, 3.0, 3e2 */
} acf_number;

/* Reads all of text (length bytes, no NUL needed): a sign, digits with at most one point, an exponent. Not accepted:
 * white space, thousands separators, decimal commas, hexadecimal, "inf", "nan", a number too large for a double,
 * trailing characters. Writes *out only if it returns true. */
bool acf_number_parse(const char *text, size_t length, acf_number *out);

/* inf, -Inf, +Infinity, in any case: how programs write infinite results. */
bool acf_number_is_infinite(const char *text, size_t length);

/* Bytes for any finite double with ACF_DECIMALS_MAX decimals and its NUL. */
#define ACF_NUMBER_FIXED_MAX 448

/* v with this many decimals (0 to ACF_DECIMALS_MAX), correctly rounded, with '.', and "0.00" where C would write
 * "-0.00". v finite. Returns out. */
char *acf_number_fixed(char out[ACF_NUMBER_FIXED_MAX], double v, int decimals);

/* The shortest of 15, 16 and 17 digits that reads back as v (base/text.h: acf_text_real), and "0" for both zeros.
 * v finite. Returns out. */
char *acf_number_shortest(char out[ACF_NUMBER_MAX], double v);

#endif
