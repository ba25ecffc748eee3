/* The schema: the kind of each column of a file, and how its cells are read and written. It comes from the data
 * (typing.h), from the user (read_options.h) or from a model file (schema_json.c). The model stores it, so that a file
 * read next year has the same meaning.
 *
 *     kind        in the table (double)                    written back as
 *     real        the number                               a number with the column's decimals
 *     integer     the number                               a whole number inside the observed range
 *     ordinal     the number, or the rank of a text        the nearest level
 *     category    class 0..C-1                             the class's text
 *     date        days since 1970-01-01                    a date in the column's format, inside the observed range
 *     time        seconds since 1970, or since midnight    likewise
 *     constant    not in the table                         not imputed; its one value if the user requests it
 *     identifier  not in the table                         never imputed
 *     empty       not in the table                         never imputed
 *
 * Each of these kinds is a file of its own (kind.h).
 *
 * A category with more than ACF_CLASSES_MAX levels keeps the frequent ones. The others share one class, the last. It is
 * written as the most frequent of them or, for a draw, as a random one. */
#ifndef ACF_TABLE_SCHEMA_H
#define ACF_TABLE_SCHEMA_H

#include "base/json.h"
#include "table/calendar.h"
#include "table/kind.h"
#include "table/na_strings.h"
#include "table/notation.h"
#include "table/table.h"

#define ACF_CLASSES_MAX 256 /* classes of a category, including the shared one */
#define ACF_LEVEL_RARE 3    /* in a category with too many levels, a level seen less often has no class of its own */
#define ACF_SCHEMA_COLUMNS_MAX 1000000

struct acf_field_spec {
    const char *name; /* V1, V2, ... where the file has none */
    const acf_kind *kind;
    int64_t place;             /* column of the table; -1: not modelled */
    int64_t observed, missing; /* cells of the file from which the schema was made */

    double min, max; /* real, integer, ordinal, date, time: of the observed cells */
    bool declared;   /* real, integer: the user set the range, and no draw exceeds it */
    int decimals;    /* real, integer: largest number of digits after the point; -1: as many as needed */
    bool fixed;      /* every number has that many: 88.60, not 88.6 */
    int digits; /* above 0: numbers are written with an exponent if that is shorter, with so many significant digits */
    acf_notation notation; /* how numbers are written: real, integer, ordinal */
    acf_calendar when;     /* how dates and times are written: date, time */
    double step; /* time: seconds that every observed cell is a multiple of, if more than the format's own; else 0 */

    /* ordinal and category: the texts with their counts, in the order of ranks or classes; constant: its text */
    acf_text_counts levels;
    double *value;  /* ordinal (levels.n): the number of each level: itself, or its rank 0, 1, ... for texts */
    int64_t pooled; /* category: the last so many levels share the last class */

    bool any_case; /* category: upper and lower case of a level are the same */
    bool fill;     /* constant: missing cells get its value, as the user requested */
    bool quoted;   /* every observed cell was in quotes, so written values are too */
    /* texts in a column of numbers, dates or times that are kept in the file and count as missing for the model */
    acf_text_counts other;
    acf_na_strings *na_strings; /* NA strings of this column, besides the common ones; NULL: none */

    bool has_range, has_format, has_notation; /* in read options: what the user set besides the kind */
};

struct acf_schema {
    int64_t n, D;           /* columns of the file; of the table */
    int64_t rows;           /* of the file from which the schema was made */
    bool named;             /* the names come from a header */
    acf_field_spec *column; /* (n) */
    acf_na_strings na_strings;
    acf_arena *texts, *memory; /* hold everything above except the lists of the counts */
};

/* n nameless columns without a kind (acf_kind_auto), without NA strings. Gives *out; free with acf_schema_free. Fails:
 * ACF_EMEMORY. */
acf_status acf_schema_create(int64_t n, acf_schema **out);
void acf_schema_free(acf_schema *s); /* NULL is allowed */

/* Numbers the modelled columns in their order and sets D. */
void acf_schema_place(acf_schema *s);

/* The column of this name, -1 for none; the column at `place` of the table, which must exist. Linear. */
int64_t acf_schema_find(const acf_schema *s, const char *name);
const acf_field_spec *acf_schema_at(const acf_schema *s, int64_t place);

/* Number of classes of the column in the table: 0 for numbers. */
static inline int32_t acf_spec_classes(const acf_field_spec *c) {
    if (c->kind->role != ACF_ROLE_CLASS) return 0;
    return (int32_t)(c->levels.n - c->pooled + (c->pooled > 0));
}

/* Can missing cells of the column be filled? */
static inline bool acf_spec_is_filled(const acf_field_spec *c) {
    return c->place >= 0 || (c->kind->role == ACF_ROLE_ONE_VALUE && c->fill);
}

/* Sets `fill` for all constant columns. */
void acf_schema_fill_constants(acf_schema *s);

/* Among the cells of the shared class, the share of its most frequent level; 1 if there is no shared class. */
double acf_spec_leading(const acf_field_spec *c);

/* The modelled columns in table order, with borrowed names: out (D). */
void acf_schema_columns(const acf_schema *s, acf_column *out);

/* Adds an NA string for this column only. Fails: ACF_EMEMORY. */
acf_status acf_spec_add_na_string(acf_schema *s, acf_field_spec *c, const char *text, size_t n);

/* Orders the levels of an ordinal column: as numbers if all are numbers and ascend, else by rank. Fails:
 * ACF_EMEMORY. */
acf_status acf_spec_rank(acf_schema *s, acf_field_spec *c);

/* "column 3 ('age')", counted from 1, for messages; name may be NULL. Returns out. */
#define ACF_FIELD_TEXT_MAX 112
char *acf_field_text(char out[ACF_FIELD_TEXT_MAX], const char *name, int64_t j);

/* ---- JSON: in model files, in descriptions of tables, and in schema files of users (docs/columns.md) --- */

/* Gives *out (json_decref). Fails: ACF_EMEMORY. */
acf_status acf_schema_to_json(const acf_schema *s, json_t **out);

/* Reads untrusted JSON. whole: a complete schema, as a model needs it; else what a user says, which may leave out
 * anything. Gives *out. Fails: from.status with the column and key, ACF_EMEMORY. */
acf_status acf_schema_from_json(acf_json_source from, const json_t *object, bool whole, acf_schema **out);

/* Copies a schema. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_schema_copy(const acf_schema *s, acf_schema **out);

#endif
