/* Typing: decides the kind of a column (schema.h) from its profile (profile.h), its name and what the user says.
 *
 * The rules, first match wins (docs/columns.md has them for users):
 *
 *   1  no observed cell                                                   empty
 *   2  one value in all observed cells                                    constant
 *   3  all are dates or times of one format, day and month certain        date, time
 *      Up to a tenth of the cells may hold up to 20 different other texts, which are kept and not modelled
 *   4  all are numbers: without leading zeros, in one notation (notation.h). Up to a tenth of the cells
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

/* Makes the schema of a profiled file. name (columns): as shown to users, unique. wish (columns), or NULL: what the
 * user says of each column, an element of a schema from the read options or NULL. NA strings are copied from the
 * profile. Adds warnings that the user should read. Borrows all. Gives *out; free with acf_schema_free. Messages begin
 * with file. The schema may have no column to model. Fails: ACF_EDATA (the data contradicts what the user says),
 * ACF_EMEMORY. */
acf_status acf_typing(const char *file, const acf_profile *p, const char *const *name,
                      const acf_field_spec *const *wish, acf_warnings *warnings, acf_schema **out);

/* Is there a column to model? Otherwise fails: ACF_EDATA; the message gives the kinds of the columns. */
acf_status acf_typing_learnable(const char *file, const acf_schema *s);

/* A column that is being typed: the argument of a kind's learn function (kind.h). */
struct acf_typing_column {
    const char *file;
    const acf_profile_column *c;
    const acf_field_spec *user; /* what the user says of the column; NULL: nothing */
    bool by_user;               /* the user set its kind; the data may contradict it */
    acf_schema *s;
    acf_field_spec *out;
    acf_warnings *warnings;
    char where[ACF_FIELD_TEXT_MAX]; /* beginning of messages */
};

#define ACF_TYPING_OTHERS 20 /* different texts of another kind in a column of numbers or dates, at most */
#define ACF_TYPING_SHARE 0.9 /* least share of the observed cells that must then be numbers or dates */

/* Fails: ACF_EDATA with the reason why the column cannot be read as the user says. */
acf_status acf_typing_refuse(const acf_typing_column *t, const char *why);

/* Is this the name of a key: id, ID, patient_id, customerId, index, uuid, key? */
bool acf_typing_is_id_name(const char *name);

#endif
