/* Column profiles: everything that typing a column needs, gathered in one pass over the cells.
 *
 *     acf_profile_create(C, na_strings, &p)
 *     for each row, for each column   acf_profile_text(p, c, row, text, n, quoted)     a file of text
 *                                     acf_profile_number(p, c, row, v)                 a matrix
 *
 * Runs over every cell of a file. A cell costs a comparison with the NA strings, an attempt to read a number and one
 * hash. Memory grows with distinct values, not with rows, and is bounded: a column of numbers keeps NUMBERS_KEPT values
 * (enough to tell a scale from a measurement), a column with words LEVELS_KEPT, and all columns together TEXT_KEPT
 * bytes. Values that are not kept are still counted. */
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

#define ACF_ENDS 4 /* number of different values at each end that are counted */

typedef struct acf_end {
    double value;
    int64_t cells;
} acf_end;

typedef struct acf_profile_column {
    int64_t observed, missing;             /* cells with a value; missing cells */
    int64_t numeric, whole;                /* observed cells that are numbers; whole numbers among them */
    int64_t infinite;                      /* observed cells that hold inf; they count as words */
    double min, max;                       /* of the numbers */
    acf_end low[ACF_ENDS], high[ACF_ENDS]; /* the smallest and the largest values; cells 0: no more values */
    /* how many numbers have so many digits after the point, the last: or more; 0 for a matrix */
    int64_t decimals[ACF_DECIMALS_COUNTED + 1];
    int digits;           /* largest number of significant digits */
    int64_t exponents;    /* numbers with an exponent */
    int64_t zeros;        /* numbers with leading zeros, 007: codes rather than numbers */
    int64_t quoted;       /* observed cells in quotes */
    int64_t prose;        /* texts longer than ACF_LEVEL_BYTES_MAX */
    uint64_t fingerprint; /* sum of a hash of each whole number, independent of their order */
    acf_calendar_survey when;
    acf_text_counts numbers, words; /* distinct texts: numbers; words */
    /* words in a column of dates or times that are not written as its first one is: a few are kept */
    acf_text_counts odd;
    acf_text_counts doubtful;     /* NA strings among the missing cells that may be values: see na_strings.h */
    acf_notation notation;        /* how its numbers are read */
    acf_notation_survey survey;   /* counts of how its cells write numbers, independent of `notation` */
    acf_notation_verdict verdict; /* of the survey; IS if there was none. The caller sets both */
    bool levels;                  /* also keep its distinct numbers: see acf_profile_want_levels */
    /* NA strings of this column besides the common ones; NULL: none. Set and owned by the caller */
    const acf_na_strings *extra;
} acf_profile_column;

typedef struct acf_profile {
    int64_t columns, rows;
    const acf_na_strings *na_strings;
    acf_profile_column *column; /* (columns) */
    acf_arena *texts;
} acf_profile;

/* Borrows na_strings. Gives *out; free with acf_profile_free. Fails: ACF_EMEMORY. */
acf_status acf_profile_create(int64_t columns, const acf_na_strings *na_strings, acf_profile **out);
void acf_profile_free(acf_profile *p); /* NULL is allowed */

/* Column j may become a category, whatever it holds: keep its distinct numbers too. Call before the first row. */
void acf_profile_want_levels(acf_profile *p, int64_t j);

/* Clears the counts of column j except for the survey, so that the column can be counted again with this notation. */
void acf_profile_again(acf_profile *p, int64_t j, const acf_notation *notation);

/* Are its numbers ambiguous, or written in two notations? Then they count as text. */
static inline bool acf_profile_is_in_doubt(const acf_profile_column *c) {
    return (c->verdict == ACF_NOTATION_EITHER || c->verdict == ACF_NOTATION_MIXED) &&
           2 * c->survey.cells >= c->observed;
}

/* Counts one cell. The caller counts rows. Fails: ACF_EMEMORY. */
acf_status acf_profile_text(acf_profile *p, int64_t j, int64_t row, const char *text, size_t n, bool quoted);
acf_status acf_profile_number(acf_profile *p, int64_t j, int64_t row, double value); /* NaN is missing */

/* The fewest digits after the point that are enough for this part of the numbers: 1 for all of them; -1 for a
 * matrix. */
int acf_profile_decimals(const acf_profile_column *c, double part);

/* Are the values whole numbers min, min+1, ..., max, each once, in any order, and nothing else? */
bool acf_profile_is_key(const acf_profile_column *c);

/* Does a number have leading zeros: 007, but not 0, 0.7 or -0? n > 0. */
bool acf_profile_is_code(const char *text, size_t n);

#endif
