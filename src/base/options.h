/* Options: one table of definitions, and sets of values that obey it.
 *
 * The command line, config files, the C API and the model file all use it. So the name, range, default and help of an
 * option are written once, in a table (option_table.h has acflow's; tests bring their own).
 *
 *     table  { name, type, min, max, default, help, ... }   const, shared
 *       |
 *       v
 *     acf_options { value, origin } per row                 one per handle
 *
 * A value keeps its origin, and a farther origin never overwrites a nearer one: default < preset < environment < file <
 * user. So a config file may be read before or after the flags, with the same result. Names are spelled with dashes; an
 * underscore is taken as a dash. Tables have tens of rows, so searches are linear. */
#ifndef ACF_BASE_OPTIONS_H
#define ACF_BASE_OPTIONS_H

#include "base/json.h"

typedef enum acf_option_type {
    ACF_OPTION_INT,   /* whole number in [min, max], both within ±2^53 */
    ACF_OPTION_REAL,  /* finite number in [min, max] */
    ACF_OPTION_BOOL,  /* min, max not used */
    ACF_OPTION_TEXT,  /* UTF-8 of min to max bytes */
    ACF_OPTION_CHOICE /* one of `choices`; the value is its index */
} acf_option_type;

/* Flags. RECORDED: the file of a table model stores this option. IMAGE: the file of an image model does. AUTO: a whole
 * number above 0, or the word `auto`, which reads as ACF_INT_AUTO and is resolved by the code that uses the option.
 * ESSENTIAL: the short help of a command shows it. */
enum {
    ACF_OPTION_RECORDED = 1,
    ACF_OPTION_AUTO = 2,
    ACF_OPTION_IMAGE = 4,
    ACF_OPTION_BOTH = ACF_OPTION_RECORDED | ACF_OPTION_IMAGE,
    ACF_OPTION_ESSENTIAL = 8
};
#define ACF_INT_AUTO 0

/* Sections, in the order of the help. */
typedef enum acf_option_section {
    ACF_SECTION_NONE, /* in tables of tests */
    ACF_SECTION_INPUT,
    ACF_SECTION_MODEL,
    ACF_SECTION_DONORS,
    ACF_SECTION_TRAINING,
    ACF_SECTION_QUERIES,
    ACF_SECTION_EVALUATION,
    ACF_SECTION_IMAGES, /* how images are read */
    ACF_SECTION_IMAGE_MODEL,
    ACF_SECTION_IMAGE_QUERIES,
    ACF_SECTION_MACHINE
} acf_option_section;

/* The name of a section, as acf_option_info has it: "input", "image model", ... */
const char *acf_option_section_name(acf_option_section section);

typedef struct acf_option {
    const char *name;
    acf_option_type type;
    double min, max;
    const char *standard; /* the default, as a user would write it: it passes the same checks */
    const char *help;     /* sentences, the last without its full stop */
    const char *choices;  /* "a|b|c", for CHOICE */
    const char *env;      /* environment variable that supplies the default; only for facts of the machine; or NULL */
    unsigned flags;
    acf_option_section section;
} acf_option;

typedef enum acf_origin { ACF_FROM_DEFAULT, ACF_FROM_PRESET, ACF_FROM_ENV, ACF_FROM_FILE, ACF_FROM_USER } acf_origin;

/* The table of this build (option_table.h). */
extern const acf_option acf_option_table[];
extern const int acf_option_count;

/* Makes a set with every option at its default, or at its value in the environment. Keeps table. Gives *out; free it
 * with acf_options_free. Fails: ACF_EMEMORY, ACF_EUSAGE (a wrong value in the environment). */
acf_status acf_options_make(const acf_option *table, int n, acf_options **out);

/* Another set with the same values and origins. Gives *out; free it with acf_options_free. Fails: ACF_EMEMORY. */
acf_status acf_options_copy(const acf_options *o, acf_options **out);

/* Sets one option from text, with the origin USER. Fails: ACF_EUSAGE with the nearest name or the range;
 * ACF_EMEMORY. */
acf_status acf_options_set_text(acf_options *o, const char *name, const char *value);

/* The same with another origin: a preset sets options that no nearer origin has set. */
acf_status acf_options_set_from(acf_options *o, const char *name, const char *value, acf_origin origin);

/* The same with a whole number. */
acf_status acf_options_set_int(acf_options *o, const char *name, int64_t value, acf_origin origin);

/* Takes an object {"name": value}: all of it or, on failure, nothing. `origin` is FILE or USER.
 * Fails: from.status, ACF_EMEMORY. */
acf_status acf_options_from_json(acf_options *o, acf_json_source from, const json_t *object, acf_origin origin);

/* Which options to write: all, those set by a file or the user, or those that the file of a table model, or of an image
 * model, stores. */
typedef enum acf_options_which {
    ACF_OPTIONS_ALL,
    ACF_OPTIONS_CHANGED,
    ACF_OPTIONS_RECORDED,
    ACF_OPTIONS_IMAGE
} acf_options_which;

/* The values as an object that acf_options_from_json reads back exactly. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_options_to_json(const acf_options *o, acf_options_which which, json_t **out);

/* One value as text. Fails: ACF_EUSAGE (unknown name). */
acf_status acf_options_write(const acf_options *o, const char *name, acf_text *out);

/* Typed reading for library code: the name must be in the table with that type, otherwise it is our defect. Text is
 * borrowed until the option is set again. */
int64_t acf_options_int(const acf_options *o, const char *name);
double acf_options_real(const acf_options *o, const char *name);
bool acf_options_bool(const acf_options *o, const char *name);
int acf_options_choice(const acf_options *o, const char *name);
const char *acf_options_text(const acf_options *o, const char *name);
acf_origin acf_options_origin(const acf_options *o, const char *name);

/* The definition of a name, with its bounds, or NULL; and row i of the set's table, for listings. */
const acf_option *acf_options_find(const acf_options *o, const char *name);
const acf_option *acf_options_row(const acf_options *o, int i);

#endif
