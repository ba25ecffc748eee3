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
#ifndef ACF_TABLE_PROFILE_H
#define ACF_TABLE_PROFILE_H

#include "table/calendar.h"
#include "table/na_strings.h"
#include "table/notation.h"

#define ACF_NUMBERS_KEPT 1024
#define ACF_LEVELS_KEPT 65536
#define ACF_ODD_KEPT 64
#define ACF_LEVEL_BYTES_MAX 1024 /* a longer text is prose, not a level */
#define ACF_TEXT_KEPT ((size_t)256 << 20)
#define ACF_DECIMALS_COUNTED 20 /* a double has 17 significant digits */

#define ACF_ENDS 4 /* different values at either end of a column that are counted */

typedef struct acf_end {
    double value;
    int64_t cells;
} acf_end;

typedef struct acf_profile_column {
    int64_t observed, missing;             /* cells: with a value, with a marker */
    int64_t numeric, whole;                /* observed cells that are numbers; of those, whole ones */
    int64_t infinite;                      /* observed cells that hold inf, and are words */
    double min, max;                       /* of the numbers */
    acf_end low[ACF_ENDS], high[ACF_ENDS]; /* the least values, the largest; cells 0: there are no more */
    int64_t decimals[ACF_DECIMALS_COUNTED +
                     1];  /* numbers with so many digits behind the point, the last: or more; 0 for a matrix */
    int digits;           /* most significant digits of a number */
    int64_t exponents;    /* numbers with an exponent */
    int64_t zeros;        /* numbers that begin with a 0 that says nothing, 007: codes rather than numbers */
    int64_t quoted;       /* observed cells in quotes */
    int64_t prose;        /* texts above ACF_LEVEL_BYTES_MAX */
    uint64_t fingerprint; /* sum of a hash of each whole number: the same for any order */
    acf_calendar_survey when;
    acf_text_counts numbers, words; /* distinct texts that are numbers; that are not */
    acf_text_counts
        odd; /* words that are not written as the first date or time of the column is: few, where it holds dates */
    acf_text_counts doubtful;     /* markers among the missing cells that may be values: see na_strings.h */
    acf_notation notation;        /* how its numbers are read */
    acf_notation_survey survey;   /* how its cells write numbers, whatever they are read as */
    acf_notation_verdict verdict; /* of the survey; IS where none was asked for. Both are set by the caller */
    bool levels;                  /* its distinct numbers are kept, too: see acf_profile_want_levels */
    const acf_na_strings
        *extra; /* markers of this column beside the common ones; NULL: none. Set by the caller, who keeps them */
} acf_profile_column;

typedef struct acf_profile {
    int64_t columns, rows;
    const acf_na_strings *na_strings;
    acf_profile_column *column; /* (columns) */
    acf_arena *texts;
} acf_profile;

/* Keeps markers. Gives *out; free with acf_profile_free. Fails: ACF_EMEMORY. */
acf_status acf_profile_create(int64_t columns, const acf_na_strings *na_strings, acf_profile **out);
void acf_profile_free(acf_profile *p); /* NULL is allowed */

/* Column j may be wanted as a category, whatever it holds: keep its distinct numbers too. To be called before the first row. */
void acf_profile_want_levels(acf_profile *p, int64_t j);

/* Forgets what was counted of column j but for the survey, to count all of it once more with its numbers read so. */
void acf_profile_again(acf_profile *p, int64_t j, const acf_notation *notation);

/* May its numbers be read in two ways, or are they written in two? Then they are text. */
static inline bool acf_profile_is_in_doubt(const acf_profile_column *c) {
    return (c->verdict == ACF_NOTATION_EITHER || c->verdict == ACF_NOTATION_MIXED) &&
           2 * c->survey.cells >= c->observed;
}

/* One cell. The caller counts rows. Fails: ACF_EMEMORY. */
acf_status acf_profile_text(acf_profile *p, int64_t j, int64_t row, const char *text, size_t n, bool quoted);
acf_status acf_profile_number(acf_profile *p, int64_t j, int64_t row, double value); /* NaN is missing */

/* The fewest digits behind the point that are enough for this part of the numbers: 1 for all of them; -1 for a matrix. */
int acf_profile_decimals(const acf_profile_column *c, double part);

/* Are these whole numbers min, min+1, ..., max, each once, in any order, and nothing else? */
bool acf_profile_is_key(const acf_profile_column *c);

/* Does a number begin with a 0 that says nothing: 007, but not 0, 0.7 or -0? n > 0. */
bool acf_profile_is_code(const char *text, size_t n);

#endif
