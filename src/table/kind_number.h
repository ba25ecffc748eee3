/* What the kinds of numbers (real, integer, ordinal) have in common. Their members in a column's specification are
 * min, max, declared, decimals, fixed, digits, notation and other. */
#ifndef ACF_TABLE_KIND_NUMBER_H
#define ACF_TABLE_KIND_NUMBER_H

#include "table/typing.h"

/* ---- what a column holds ----------------------------------------------------------------------------------------- */

/* Whether this is a column of numbers. A few other texts are allowed. */
bool acf_kind_holds_numbers(const acf_profile_column *c);

/* The number of different values of such a column, not of texts: 3 and 3.0 are one. 0 if there are more than
 * SCALE_MAX. */
int64_t acf_kind_scale(const acf_profile_column *c);

/* Observed cells except infinities, which count as missing if the others are numbers. */
static inline int64_t acf_kind_finite_cells(const acf_profile_column *c) { return c->observed - c->infinite; }

/* Sets range and form of the numbers in t->out; texts that are not numbers go to `other`, with a warning. */
acf_status acf_kind_number_form(acf_typing_column *t);
acf_status acf_kind_number_others(acf_typing_column *t);

/* The observed range of a kind whose cells are read before the range is known. open_range begins it in learn.
 * learn_range is a learn_values and widens it to the values. observed_bounds keeps draws inside. */
void acf_kind_open_range(acf_typing_column *t);
acf_status acf_kind_learn_range(acf_field_spec *c, const double *x, int64_t rows, int64_t stride);
bool acf_kind_observed_bounds(const acf_field_spec *c, double *low, double *high);

/* ---- cells ------------------------------------------------------------------------------------------------------- */

/* A text that is not a value of the column: kept if training had it, else wrong. */
acf_cell_state acf_kind_encode_other(const acf_field_spec *c, const char *text, size_t n);

acf_cell_state acf_kind_encode_number(const acf_field_spec *c, const char *text, size_t n, double *value);
void acf_kind_format_number(const acf_field_spec *c, double v, acf_text *out);

/* v rounded to this number of significant digits; to decimals; clamped to the range that the user declared. */
double acf_kind_round_digits(double v, int digits);
double acf_kind_round_decimals(double v, int decimals);
double acf_kind_declared(const acf_field_spec *c, double v);

/* v, clamped to the range; NaN: min. */
static inline double acf_kind_clamp(double v, double min, double max) { return !(v > min) ? min : v > max ? max : v; }

/* ---- words, JSON ------------------------------------------------------------------------------------------------- */

void acf_kind_describe_range(const acf_field_spec *c, acf_text *out); /* "17 to 90" */
void acf_kind_expect_number(const acf_field_spec *c, acf_text *out);  /* "a number like 1.234,5" */

/* Functions of acf_kind that real and integer share. */
acf_status acf_kind_number_learn(acf_typing_column *t);
acf_cell_state acf_kind_number_present(const acf_field_spec *c, double x, double *value);
bool acf_kind_number_bounds(const acf_field_spec *c, double *low, double *high);
void acf_kind_number_to_json(acf_spec_writer *to, const acf_field_spec *c);
acf_status acf_kind_number_from_json(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c);

#endif
