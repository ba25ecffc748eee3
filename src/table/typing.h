/* Typing: from what a column holds (profile.h), its name and what the user wishes to what it is (schema.h).
 *
 * The rules, first match wins (docs/columns.md says the same to users):
 *
 *   1  no observed cell                                                   empty
 *   2  one value in all observed cells                                    constant
 *   3  all are dates or times of one format, day and month not in doubt   date, time
 *      Up to a tenth of the cells may hold up to 20 different other texts, which are kept and not modelled
 *   4  all are numbers: without a useless leading zero, written in one way (notation.h). Up to a tenth of the cells
 *      may hold up to 20 different words beside more than 20 different numbers: those words are kept and not modelled
 *        whole, every value once, consecutive from 0 or 1, none missing   identifier
 *        whole, at least 90 % different, and the name says id             identifier
 *        whole, two values, 0 and 1 or in at least 20 cells               category
 *        whole, 3 to 20 values, each 10 times on average                  ordinal
 *        whole                                                            integer
 *        else                                                             real
 *   5  text: at least 10 cells, 90 % different, or more than 256 values
 *      and more than half of the cells different, or prose              identifier
 *        else                                                             category */
#ifndef ACF_TABLE_TYPING_H
#define ACF_TABLE_TYPING_H

#include "table/profile.h"
#include "table/schema.h"
#include "table/warnings.h"

/* Makes the schema of a profiled file. name (columns): as they will be shown, unique. wish (columns), or NULL: what the user wants of each
 * column, an element of a schema of wishes or NULL. Markers are copied from the profile. Notes get a sentence for what the user should
 * know. Borrows all. Gives *out; free with acf_schema_free. file begins sentences.
 * There may be no column to model among them. Fails: ACF_EDATA (a wish that the data does not allow), ACF_EMEMORY. */
acf_status acf_typing(const char *file, const acf_profile *p, const char *const *name,
                      const acf_field_spec *const *wish, acf_warnings *warnings, acf_schema **out);

/* Is there a column to model? Fails, where there is none: ACF_EDATA, with what the columns are instead. */
acf_status acf_typing_learnable(const char *file, const acf_schema *s);

/* A column under way: what the learn function of a kind gets (kind.h). */
struct acf_typing_column {
    const char *file;
    const acf_profile_column *c;
    const acf_field_spec *user; /* what the user says of it; NULL: nothing */
    bool by_user;               /* its kind too, and the data may not allow it */
    acf_schema *s;
    acf_field_spec *out;
    acf_warnings *warnings;
    char where[ACF_FIELD_TEXT_MAX]; /* what sentences begin with */
};

#define ACF_TYPING_OTHERS 20 /* different texts of another kind that a column of numbers or dates may hold */
#define ACF_TYPING_SHARE 0.9 /* of the observed cells, at least, that are numbers or dates then */

/* Fails: ACF_EDATA, the column cannot be read as the user says, and why. */
acf_status acf_typing_refuse(const acf_typing_column *t, const char *why);

/* Does this name say that the column is a key: id, ID, patient_id, customerId, index, uuid, key? */
bool acf_typing_is_id_name(const char *name);

#endif
