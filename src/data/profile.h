/* What a column holds: everything that typing it needs, gathered in one pass over the cells.
 *
 *     acf_profile_create(C, markers, &p)
 *     for each row, for each column   acf_profile_text(p, c, row, text, n, quoted)     a file of text
 *                                     acf_profile_number(p, c, row, v)                 a matrix
 *
 * Runs over every cell of a file, so a cell costs a look at the markers, an attempt to read it as a number and one hash. Memory does
 * not grow with the rows beyond what distinct values take, and those are bounded: a column of numbers keeps NUMBERS_KEPT of them (enough
 * to tell a scale from a measurement), a column with words LEVELS_KEPT, and all of them together TEXT_KEPT bytes. What is not kept is
 * still counted. */
#ifndef ACF_DATA_PROFILE_H
#define ACF_DATA_PROFILE_H

#include "data/calendar.h"
#include "data/markers.h"
#include "data/number.h"

#define ACF_NUMBERS_KEPT 1024
#define ACF_LEVELS_KEPT 65536
#define ACF_ODD_KEPT 64
#define ACF_LEVEL_BYTES_MAX 1024         /* a longer text is prose, not a level */
#define ACF_TEXT_KEPT ((size_t)256 << 20)
#define ACF_DECIMALS_COUNTED 20          /* a double has 17 significant digits */

typedef struct acf_profile_column {
    int64_t observed, missing; /* cells: with a value, with a marker */
    int64_t numeric, whole;    /* observed cells that are numbers; of those, whole ones */
    double min, max;           /* of the numbers */
    int64_t decimals[ACF_DECIMALS_COUNTED + 1]; /* numbers with so many digits behind the point, the last: or more; 0 for a matrix */
    int digits;                /* most significant digits of a number */
    int64_t exponents;         /* numbers with an exponent */
    int64_t zeros;             /* numbers that begin with a 0 that says nothing, 007: codes rather than numbers */
    int64_t commas, points;    /* numbers with a decimal comma; with a point */
    int64_t commas_sure;       /* numbers whose comma can't separate thousands: 0,5 or 12,34 */
    int64_t quoted;            /* observed cells in quotes */
    int64_t prose;             /* texts above ACF_LEVEL_BYTES_MAX */
    uint64_t fingerprint;      /* sum of a hash of each whole number: the same for any order */
    acf_when_survey when;
    acf_tally numbers, words;  /* distinct texts that are numbers; that are not */
    acf_tally odd;             /* words that are not written as the first date or time of the column is: few, where it holds dates */
    acf_tally doubtful;        /* markers among the missing cells that may be values: see markers.h */
    const acf_markers *extra;  /* markers of this column beside the common ones; NULL: none. Set by the caller, who keeps them */
} acf_profile_column;

typedef struct acf_profile {
    int64_t columns, rows;
    bool comma;               /* a comma in a number is a decimal comma: it is not the separator of the file */
    const acf_markers *markers;
    acf_profile_column *column; /* (columns) */
    acf_arena *texts;
} acf_profile;

/* Keeps markers. Gives *out; free with acf_profile_free. Fails: ACF_EMEMORY. */
acf_status acf_profile_create(int64_t columns, const acf_markers *markers, acf_profile **out);
void acf_profile_free(acf_profile *p); /* NULL is allowed */

/* Column j may be wanted as a category, whatever it holds: keep its distinct numbers too. To be called before the first row. */
void acf_profile_want_levels(acf_profile *p, int64_t j);

/* One cell. The caller counts rows. Fails: ACF_EMEMORY. */
acf_status acf_profile_text(acf_profile *p, int64_t j, int64_t row, const char *text, size_t n, bool quoted);
acf_status acf_profile_number(acf_profile *p, int64_t j, int64_t row, double value); /* NaN is missing */

/* The fewest digits behind the point that are enough for this part of the numbers: 1 for all of them; -1 for a matrix. */
int acf_profile_decimals(const acf_profile_column *c, double part);

/* Are these whole numbers min, min+1, ..., max, each once, in any order, and nothing else? */
bool acf_profile_is_key(const acf_profile_column *c);

/* Does a number begin with a 0 that says nothing: 007, but not 0, 0.7 or -0? n > 0. */
bool acf_profile_is_code(const char *text, size_t n);

/* May the decimal marks be what they seem? Only thousands, or points beside commas, are in doubt. */
static inline bool acf_profile_marks_are_clear(const acf_profile_column *c) {
    return c->commas == 0 || (c->points == 0 && c->commas_sure > 0);
}

/* Reads a number with a decimal point or, where `comma` allows it, a decimal comma; *with_comma says which it was. */
bool acf_profile_read_number(const char *text, size_t n, bool comma, acf_number *out, bool *with_comma);

#endif
