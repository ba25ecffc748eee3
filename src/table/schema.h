/* The schema: what each column of a file is, and how its cells are read and written. It comes from the data (typing.h), from the user
 * (read_options.h) or from a model file (schema_json.c), and is stored in the model, so that a file read next year means the same.
 *
 *     kind        in the table (double)                    written back as
 *     real        the number                               a number with the column's decimals
 *     integer     the number                               a whole number inside the observed range
 *     ordinal     the number, or the rank of a text        the nearest level
 *     category    class 0..C-1                             the class's text
 *     date        days since 1970-01-01                    a date in the column's format, inside the observed range
 *     time        seconds since 1970, or since midnight    likewise
 *     constant    not in the table                         not made up; its one value where the user says so
 *     identifier  not in the table                         never made up
 *     empty       not in the table                         never made up
 *
 * Each of these kinds is a file of its own (kind.h).
 *
 * A category with more than ACF_CLASSES_MAX levels keeps those that are frequent; the others share one class, the last, which is written as one of them: the most
 * frequent or, where it was drawn, any by chance. */
#ifndef ACF_TABLE_SCHEMA_H
#define ACF_TABLE_SCHEMA_H

#include "base/json.h"
#include "table/calendar.h"
#include "table/kind.h"
#include "table/na_strings.h"
#include "table/notation.h"
#include "table/table.h"

#define ACF_CLASSES_MAX 256 /* classes of a category, the shared one among them */
#define ACF_LEVEL_RARE 3    /* in a category that has too many levels, one seen less often has no class of its own */
#define ACF_SCHEMA_COLUMNS_MAX 1000000

struct acf_field_spec {
    const char *name; /* V1, V2, ... where the file has none */
    const acf_kind *kind;
    int64_t place;             /* column of the table; -1: not modelled */
    int64_t observed, missing; /* cells of the file it was made from */

    double min, max; /* real, integer, ordinal, date, time: of the observed cells */
    bool declared;   /* real, integer: the user said so, and nothing is drawn beyond */
    int decimals;    /* real, integer: most digits behind the point; -1: as many as it takes */
    bool fixed;      /* every number has so many: 88.60, not 88.6 */
    int digits; /* above 0: numbers are written with an exponent where that is shorter, and so many significant digits */
    acf_notation notation; /* how numbers are written: real, integer, ordinal */
    acf_calendar when;     /* how dates and times are: date, time */
    double
        step; /* time: seconds that every observed cell is a multiple of, where those are more than the format's own; 0: they are not */

    acf_text_counts
        levels; /* ordinal and category: the texts with their counts, in the order of ranks or classes; constant: its text */
    double *value;  /* ordinal (levels.n): the number each level stands for: itself, or its rank 0, 1, ... for texts */
    int64_t pooled; /* category: so many levels, the last ones, share the last class */

    bool any_case; /* category: levels are the same in small and large letters */
    bool fill;     /* constant: missing cells get its value, because the user wants them to */
    bool quoted;   /* every observed cell was in quotes: so are the values written */
    acf_text_counts
        other; /* texts in a column of numbers, dates or times that are kept as they are and say nothing to the model */
    acf_na_strings *na_strings; /* of missing cells, beside the common ones; NULL: none */

    bool has_range, has_format, has_notation; /* in wishes: what was said beside the kind */
};

struct acf_schema {
    int64_t n, D;           /* columns of the file; of the table */
    int64_t rows;           /* of the file it was made from */
    bool named;             /* the names come from a header */
    acf_field_spec *column; /* (n) */
    acf_na_strings na_strings;
    acf_arena *texts, *memory; /* everything above lives there, but for the tallies' own lists */
};

/* n nameless columns without a kind (acf_kind_auto), no markers. Gives *out; free with acf_schema_free. Fails: ACF_EMEMORY. */
acf_status acf_schema_create(int64_t n, acf_schema **out);
void acf_schema_free(acf_schema *s); /* NULL is allowed */

/* Numbers the modelled columns in their order and sets D. */
void acf_schema_place(acf_schema *s);

/* The column of this name, -1 for none; the column that is number `place` in the table, which must be there. Linear. */
int64_t acf_schema_find(const acf_schema *s, const char *name);
const acf_field_spec *acf_schema_at(const acf_schema *s, int64_t place);

/* Classes of the column in the table: 0 for numbers. */
static inline int32_t acf_spec_classes(const acf_field_spec *c) {
    if (c->kind->role != ACF_ROLE_CLASS) return 0;
    return (int32_t)(c->levels.n - c->pooled + (c->pooled > 0));
}

/* Has a column something to write into its missing cells? */
static inline bool acf_spec_is_filled(const acf_field_spec *c) {
    return c->place >= 0 || (c->kind->role == ACF_ROLE_ONE_VALUE && c->fill);
}

/* Constants are to be filled, all of them. */
void acf_schema_fill_constants(acf_schema *s);

/* Of the cells in the class that levels share, the part that the most frequent of them has; 1 where none is shared. */
double acf_spec_leading(const acf_field_spec *c);

/* The modelled columns as a table has them, names borrowed: out (D). */
void acf_schema_columns(const acf_schema *s, acf_column *out);

/* Adds a marker of this column alone. Fails: ACF_EMEMORY. */
acf_status acf_spec_add_na_string(acf_schema *s, acf_field_spec *c, const char *text, size_t n);

/* Orders the levels of an ordinal column: as numbers where all are numbers and rise, else by rank. Fails: ACF_EMEMORY. */
acf_status acf_spec_rank(acf_schema *s, acf_field_spec *c);

/* "column 3 ('age')", counted from 1 as people do, for sentences; name may be NULL. Returns out. */
#define ACF_FIELD_TEXT_MAX 112
char *acf_field_text(char out[ACF_FIELD_TEXT_MAX], const char *name, int64_t j);

/* ---- JSON: in model files, in what describes a table, and in a schema file a user writes or edits (docs/columns.md) ------------- */

/* Gives *out (json_decref). Fails: ACF_EMEMORY. */
acf_status acf_schema_to_json(const acf_schema *s, json_t **out);

/* Trusts nothing. whole: all of a schema, as a model needs it; else the wishes of a user, in which anything may be left out.
 * Gives *out. Fails: from.status with the column and key, ACF_EMEMORY. */
acf_status acf_schema_from_json(acf_json_source from, const json_t *object, bool whole, acf_schema **out);

/* A copy. Fails: ACF_EMEMORY. */
acf_status acf_schema_copy(const acf_schema *s, acf_schema **out);

#endif
