/* A column kind: how typing recognises it, what it is to the model, and how its cells are read and written.
 *
 *     recognise   what a column of a file holds   ->  is it of this kind?
 *     learn       the same                        ->  levels, range, format: the column's specification
 *     encode      "12.50"                         ->  12.5       a cell, as the model sees it
 *     decode      12.4987                         ->  12.5       the nearest value that the column can hold
 *     format      12.5                            ->  "12.50"    a value, as its file writes it
 *
 * A kind is one file, kind_NAME.c, which defines acf_kind_NAME, and one line in kind_list.h. Code outside of these
 * files does not test for a kind: it calls the kind's functions and reads its properties. Code shared by several
 * kinds is in kind_number.h, kind_levels.h and kind_calendar.h; the JSON members of a schema are in spec_json.h.
 * docs/adding-a-column-kind.md explains how to add a kind. */
#ifndef ACF_TABLE_KIND_H
#define ACF_TABLE_KIND_H

#include "base/json.h"
#include "table/profile.h"

typedef struct acf_kind acf_kind;
typedef struct acf_field_spec acf_field_spec;       /* schema.h */
typedef struct acf_schema acf_schema;               /* schema.h */
typedef struct acf_typing_column acf_typing_column; /* typing.h */
typedef struct acf_spec_writer acf_spec_writer;     /* spec_json.h */
typedef struct acf_spec_reader acf_spec_reader;     /* spec_json.h */

/* The role of a column in the model. */
typedef enum acf_role {
    ACF_ROLE_NONE,      /* not modelled */
    ACF_ROLE_NUMBER,    /* a number */
    ACF_ROLE_CLASS,     /* one of the classes 0..C-1 (acf_spec_classes) */
    ACF_ROLE_ROW_NAME,  /* not modelled: its cells name the rows, and none is imputed */
    ACF_ROLE_ONE_VALUE, /* not modelled: all cells have levels.entry[0], which missing cells get if the user wants it */
} acf_role;

/* Whether cells are plain numbers. If the user requests the kind, an ambiguous mark (1.698) is read so. */
typedef enum acf_kind_numbers {
    ACF_NO_NUMBERS,
    ACF_REAL_NUMBERS,  /* yes; the mark is a decimal mark */
    ACF_WHOLE_NUMBERS, /* yes; the mark separates thousands */
} acf_kind_numbers;

typedef enum acf_cell_state {
    ACF_CELL_MISSING, /* an NA string: to be imputed */
    ACF_CELL_PRESENT, /* *value is its value */
    ACF_CELL_KEPT,    /* missing to the model, and left unchanged in output */
    ACF_CELL_WRONG,   /* not valid in this column */
} acf_cell_state;

#define ACF_KIND_WORDS 4
#define ACF_EXPECTED_LEVEL "a level that the model has seen"

/* Members left out are zero. Functions may be NULL where this is stated. */
struct acf_kind {
    const char *name; /* in schemas, lists and messages */
    acf_role role;
    acf_kind_numbers numbers;
    bool clock;     /* its numbers are seconds, possibly recorded in minutes, quarters or hours */
    bool all_texts; /* learn needs all different texts of a column, also of numbers (acf_profile_want_levels) */

    /* The words of the user for this kind. */
    const char *words[ACF_KIND_WORDS]; /* in the option `types`; none: it cannot be requested */
    const char *alias;                 /* another word there, which messages do not list; or NULL */
    const char *implied_by;            /* a key of a schema file that implies the kind if no other is stated; or NULL */
    void (*from_word)(acf_field_spec *c, const char *word); /* applies what the word implies besides the kind; or
                                                             * NULL */

    /* Typing. Of the kinds that recognise a column, the one of lowest order is taken. */
    int order;
    bool (*recognise)(const acf_profile_column *c, const char *name); /* NULL: never */
    acf_status (*learn)(acf_typing_column *t);                        /* into t->out; NULL: nothing to learn */
    /* Learns from the values: x[i * stride], i < rows, NaN is missing. Of a modelled column; or NULL. */
    acf_status (*learn_values)(acf_field_spec *c, const double *x, int64_t rows, int64_t stride);

    /* Cells. Never called for an NA string. *value is NaN on entry, and stays so unless the cell is present. NULL:
     * cells are kept. */
    acf_cell_state (*encode)(const acf_field_spec *c, const char *text, size_t n, double *value);
    acf_cell_state (*encode_number)(const acf_field_spec *c, double x, double *value); /* of a matrix, not NaN */
    double (*decode)(const acf_field_spec *c, double v);                               /* v may be any number; NULL:
                                                                                        * v */
    void (*format)(const acf_field_spec *c, double v, acf_text *out);                  /* v is decoded; NULL: no text */
    double (*format_number)(const acf_field_spec *c, double v);                        /* for a matrix; NULL: NaN */

    /* The bounds of drawn values; false: none. NULL: none. */
    bool (*bounds)(const acf_field_spec *c, double *low, double *high);

    /* In words: what the column holds, for a list of columns; what a cell should be ("a number"; NULL: a level). */
    void (*describe)(const acf_field_spec *c, acf_text *out);
    void (*expected)(const acf_field_spec *c, acf_text *out);

    /* The kind's own members of a column in JSON (spec_json.h). NULL: none. */
    void (*to_json)(acf_spec_writer *to, const acf_field_spec *c);
    acf_status (*from_json)(const acf_spec_reader *at, const json_t *o, acf_schema *s, acf_field_spec *c);
};

static inline bool acf_kind_is_modelled(const acf_kind *k) {
    return k->role == ACF_ROLE_NUMBER || k->role == ACF_ROLE_CLASS;
}
static inline bool acf_kind_is_numeric(const acf_kind *k) { return k->role == ACF_ROLE_NUMBER; }

extern const acf_kind *const acf_kinds[]; /* all, then NULL */
extern const acf_kind acf_kind_auto;      /* the kind of a column that the user does not specify. Not among acf_kinds */
extern const acf_kind acf_kind_category;  /* the kind of a column from a file's dictionary */

/* The kind of this name; of this word of n bytes in the option `types`. NULL: none. */
const acf_kind *acf_kind_named(const char *name);
const acf_kind *acf_kind_from_word(const char *word, size_t n);

/* "real, integer, ... or empty": all names; all words of the option `types`. */
void acf_kind_add_names(acf_text *out);
void acf_kind_add_words(acf_text *out);

/* The kind that the rules give a column of this name. Never NULL. */
const acf_kind *acf_kind_recognise(const acf_profile_column *c, const char *name);

/* The kind of a column of a table in memory: with so many classes, or 0 for numbers, all of them whole or not. */
const acf_kind *acf_kind_in_memory(int32_t classes, bool whole);

#endif
