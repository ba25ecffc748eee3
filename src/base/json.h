/* JSON: jansson with limits and sentences.
 *
 * Everything that comes in as JSON (config files, schemas, model metadata) is hostile input. Its size and depth are
 * bounded before it is parsed, duplicate keys are refused, and every failure names the source and the place or key.
 * Values are jansson's own json_t; release them with json_decref. */
#ifndef ACF_BASE_JSON_H
#define ACF_BASE_JSON_H

#include "base/text.h"

#include <jansson.h>

#define ACF_JSON_DEPTH_MAX 64

/* The source of a value: the begin of its error messages, and the status of a failure (ACF_EUSAGE for a config file,
 * ACF_EMODEL for a model). */
typedef struct acf_json_source {
    const char *name;
    acf_status status;
} acf_json_source;

/* Parses n bytes, at most `max`. Gives *out. Fails: from->status with source, line and column; ACF_EMEMORY. */
acf_status acf_json_parse(acf_json_source from, const char *text, size_t n, size_t max, json_t **out);

/* Converts a value to a type, or fails with a sentence: "options.json: 'lr' is text, expected a number". key names the
 * value; text is borrowed from it. An integer is accepted where a real is expected, not the other way round. */
acf_status acf_json_to_int(acf_json_source from, const char *key, const json_t *value, int64_t *out);
acf_status acf_json_to_real(acf_json_source from, const char *key, const json_t *value, double *out);
acf_status acf_json_to_bool(acf_json_source from, const char *key, const json_t *value, bool *out);
acf_status acf_json_to_text(acf_json_source from, const char *key, const json_t *value, const char **out);

/* The required member `key` of an object. *out is borrowed from the object. */
acf_status acf_json_member(acf_json_source from, const json_t *object, const char *key, json_t **out);

/* The same with a type: member and conversion in one. */
acf_status acf_json_int(acf_json_source from, const json_t *object, const char *key, int64_t *out);
acf_status acf_json_real(acf_json_source from, const json_t *object, const char *key, double *out);
acf_status acf_json_bool(acf_json_source from, const json_t *object, const char *key, bool *out);
acf_status acf_json_text(acf_json_source from, const json_t *object, const char *key, const char **out);

/* Writes a value: on one line when indent is 0, else one member a line. Members keep their order; reals are the
 * shortest text that reads back as the same double. Never allocates. */
void acf_json_write(acf_text *t, const json_t *value, int indent);

/* Writes a value, one member a line, to a caller's buffer (needed as in acf_text_done) and frees it. Fails:
 * ACF_ESPACE. */
acf_status acf_json_deliver(json_t *value, char *out, size_t cap, size_t *needed);

/* A string with quotes and escapes. */
void acf_json_write_text(acf_text *t, const char *s);

/* A list of n numbers, for json_decref. NULL without memory. */
json_t *acf_json_numbers(const double *x, int64_t n);

/* A source whose messages also name the place: "model.safetensors: column 3". from points into it. */
typedef struct acf_json_place {
    char name[512];
    acf_json_source from;
} acf_json_place;
void acf_json_place_column(acf_json_place *p, acf_json_source from, int64_t column);

#endif
