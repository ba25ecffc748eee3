/* How a column writes its numbers: decimal mark, separator of thousands, and what stands in front of a number or behind
 * it.
 *
 *     24.192,50 kg     comma, group ".", suffix " kg"          ->  24192.50
 *     -$1,234          group ",", prefix "$"                   ->  -1234
 *     53 %             suffix " %"                             ->  53
 *
 * One description, held by the column in its schema: cells are read with it, and what is filled in is written with it.
 * How a column writes dates and times is acf_calendar (calendar.h).
 *
 * 1.698 is a number between one and two or one thousand six hundred and ninety-eight. A survey counts what the cells of
 * a column say about that, and a verdict is made of it: by the column itself (192,4 or 1.698.000 in another cell), by
 * what the caller knows of the file, or not at all. Looking at a cell costs some ten nanoseconds. */
#ifndef ACF_TABLE_NOTATION_H
#define ACF_TABLE_NOTATION_H

#include "base/text.h"
#include "table/number.h"

#define ACF_AFFIX_MAX 24 /* bytes of a prefix or suffix and its NUL */

/* All zeros: 1234.5, as programs write it. */
typedef struct acf_notation {
    bool comma;    /* the decimal mark is a comma */
    char group[4]; /* between thousands, one character of UTF-8; "": nothing */
    char prefix[ACF_AFFIX_MAX],
        suffix[ACF_AFFIX_MAX]; /* currency, percent sign, unit, with the blank beside the number */
} acf_notation;

static inline bool acf_notation_is_plain(const acf_notation *f) {
    return !f->comma && !*f->group && !*f->prefix && !*f->suffix;
}

/* Is this text one that may separate thousands; one that may stand beside a number? For what comes from a file. */
bool acf_notation_is_group(const char *text);
bool acf_notation_is_affix(const char *text);

#define ACF_PLAIN_MAX 64

/* The number as a program writes it, "-1234.5", with its NUL: its bytes; 0 when the text is not written so. A separator
 * of thousands may be absent, and a blank beside the number may be another one or none. out may still not be a number:
 * acf_number_parse decides. */
size_t acf_notation_strip(const acf_notation *f, const char *text, size_t n, char out[ACF_PLAIN_MAX]);

/* acf_number_parse of a text in this notation. */
bool acf_notation_read(const acf_notation *f, const char *text, size_t n, acf_number *out);

/* Appends a number that is written as programs do, in this notation. */
void acf_notation_write(const acf_notation *f, const char *plain, acf_text *out);

/* ---- what a column says ------------------------------------------------------------ */

#define ACF_NOTATION_FORMS 4 /* pairs of prefix and suffix that are told apart, in the order they come */
#define ACF_NOTATION_GAPS 6  /* blanks and apostrophes that separate thousands */

/* Cells in which a point, or a comma, can only be a decimal mark; can only separate thousands; can be either. */
typedef struct acf_mark_counts {
    int64_t decimal, group, either;
} acf_mark_counts;

typedef struct acf_affixes {
    char prefix[ACF_AFFIX_MAX], suffix[ACF_AFFIX_MAX];
    int64_t cells;
} acf_affixes;

/* Starts as zeros. */
typedef struct acf_notation_survey {
    int64_t cells;           /* numbers in some notation */
    int64_t ungrouped;       /* of those, with four digits or more in a row before the decimal mark */
    acf_mark_counts mark[2]; /* of the point; of the comma */
    int64_t gap[ACF_NOTATION_GAPS];
    acf_affixes form[ACF_NOTATION_FORMS];
} acf_notation_survey;

/* Looks at one cell; false: it is a number in no notation. */
bool acf_notation_look(acf_notation_survey *s, const char *text, size_t n);

/* The same of a cell that is known to be digits alone, so many, but for a sign. */
static inline void acf_notation_look_digits(acf_notation_survey *s, int digits) {
    s->cells++;
    s->ungrouped += digits >= 4;
}

/* The decimal mark that the cells themselves show: '.', ','; 0: they do not. */
char acf_notation_point(const acf_notation_survey *s);

typedef enum acf_notation_verdict {
    ACF_NOTATION_IS,      /* *out is how the column writes its numbers */
    ACF_NOTATION_ASSUMED, /* the same, but only `point` says so */
    ACF_NOTATION_EITHER,  /* a mark is a decimal one, as in *out, or separates thousands */
    ACF_NOTATION_MIXED,   /* some cells have a decimal point, others a decimal comma */
} acf_notation_verdict;

/* What most of `observed` cells are written in. point: the decimal mark of the file, '.', ','; 0: not known. */
acf_notation_verdict acf_notation_most(const acf_notation_survey *s, int64_t observed, char point, acf_notation *out);

/* The other reading of a column that can be read in two ways: its decimal mark separates thousands. */
acf_notation acf_notation_grouped(const acf_notation *f, bool comma_groups);

#endif
