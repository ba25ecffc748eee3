/* Keys of a schema's column in JSON: schema_json.c and the kinds (kind.h) write and read them with these functions. */
#ifndef ACF_TABLE_SPEC_JSON_H
#define ACF_TABLE_SPEC_JSON_H

#include "table/schema.h"

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* jansson's setters take ownership of the value even if they fail, and fail on a NULL value. One flag collects all
 * failures. */
struct acf_spec_writer {
    json_t *o;
    bool ok;
};

void acf_spec_put(acf_spec_writer *to, const char *key, json_t *value); /* takes value */
void acf_spec_put_texts(acf_spec_writer *to, const char *key, const acf_text_counts *list);

/* A number, without a point if it is whole; a text of the counts. */
json_t *acf_spec_number(double v);
json_t *acf_spec_text(const acf_text_counts_entry *e);

void acf_spec_put_range(acf_spec_writer *to, const acf_field_spec *c);  /* min, max, declared */
void acf_spec_put_form(acf_spec_writer *to, const acf_field_spec *c);   /* decimals, fixed, digits, the notation */
void acf_spec_put_levels(acf_spec_writer *to, const acf_field_spec *c); /* levels, counts */

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* The beginning of messages, "model.safetensors, schema: column 3 ('age')", and how strict to be. */
struct acf_spec_reader {
    char name[256 + ACF_FIELD_TEXT_MAX];
    acf_json_source from;
    bool whole; /* a complete schema, as a model needs it; else what a user says, which may leave out anything */
};

/* All fail with at->from.status and a message. An optional key that is absent leaves *out unchanged. */

/* An integer from 0 to most; a flag, which is optional. */
acf_status acf_spec_get_int(const acf_spec_reader *at, const json_t *o, const char *key, bool needed, int64_t most,
                            int64_t *out);
acf_status acf_spec_get_flag(const acf_spec_reader *at, const json_t *o, const char *key, bool *out);

/* Is this text short enough to be a level? */
acf_status acf_spec_check_length(const acf_spec_reader *at, const char *key, const char *text);

/* Reads a list of at most so many different texts into empty counts, each 0; optional. */
acf_status acf_spec_get_texts(const acf_spec_reader *at, const json_t *o, const char *key, int64_t most,
                              acf_text_counts *out);

/* min and max, which a user may leave out; end reads one of them, NULL: they are numbers. Sets has_range. */
typedef acf_status (*acf_spec_end)(const acf_spec_reader *at, const json_t *o, const char *key, const acf_field_spec *c,
                                   double *out);
acf_status acf_spec_get_range(const acf_spec_reader *at, const json_t *o, acf_field_spec *c, acf_spec_end end);

/* decimals, fixed, digits. The notation is read for every kind, by schema_json.c. */
acf_status acf_spec_get_form(const acf_spec_reader *at, const json_t *o, acf_field_spec *c);

/* levels and counts; at least one level, unless a user leaves out levels. */
acf_status acf_spec_get_levels(const acf_spec_reader *at, const json_t *o, acf_field_spec *c);

#endif
