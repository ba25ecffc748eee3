/* What dates and times have in common. Their members in a column's specification are when (the format), min, max,
 * step and other. */
#ifndef ACF_TABLE_KIND_CALENDAR_H
#define ACF_TABLE_KIND_CALENDAR_H

#include "table/typing.h"

extern const acf_kind acf_kind_date, acf_kind_time;

/* Whether all cells are dates (or times) of one format, except as few others as a column of numbers may contain
 * words. All of the others must be known. */
bool acf_calendar_holds(const acf_profile_column *c, bool dates);

/* Functions of acf_kind. */
acf_status acf_calendar_learn(acf_typing_column *t);
acf_cell_state acf_calendar_encode(const acf_field_spec *c, const char *text, size_t n, double *value);
acf_cell_state acf_calendar_encode_number(const acf_field_spec *c, double x, double *value);
double acf_calendar_decode(const acf_field_spec *c, double v);
void acf_calendar_format(const acf_field_spec *c, double v, acf_text *out);
void acf_calendar_describe(const acf_field_spec *c, acf_text *out);
void acf_calendar_expected(const acf_field_spec *c, acf_text *out);
void acf_calendar_to_json(acf_spec_writer *to, const acf_field_spec *c);
acf_status acf_calendar_from_json(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c);

#endif
