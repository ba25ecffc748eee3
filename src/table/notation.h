/* Notation of a column's numbers: decimal mark, separator of thousands, and what is written before or after a number.
 *
 *     24.192,50 kg     comma, group ".", suffix " kg"          ->  24192.50
 *     -$1,234          group ",", prefix "$"                   ->  -1234
 *     53 %             suffix " %"                             ->  53
 *
 * The column's schema holds one description. Cells are read with it, and imputed values are written with it.
 * acf_calendar (calendar.h) describes how a column writes dates and times.
 *
 * 1.698 may be a number between one and two, or one thousand six hundred and ninety-eight. A survey counts what the
 * cells of a column show about that. The verdict comes from the column itself (192,4 or 1.698.000 in another cell),
 * from the caller's knowledge of the file, or stays open. A look at a cell costs about ten nanoseconds. */
#ifndef ACF_TABLE_NOTATION_H
#define ACF_TABLE_NOTATION_H

#include "base/text.h"
#include "table/number.h"

#define ACF_AFFIX_MAX 24 /* bytes of a prefix or suffix and its NUL */

/* All zeros: 1234.5, as programs write numbers. */
typedef struct acf_notation {
    bool comma;    /* the decimal mark is a comma */
    char group[4]; /* separator of thousands, one UTF-8 character; "": none */
    char prefix[ACF_AFFIX_MAX],
        suffix[ACF_AFFIX_MAX]; /* currency, percent sign, unit, with the blank beside the number */
} acf_notation;

static inline bool acf_notation_is_plain(const acf_notation *f) {
    return !f->comma && !*f->group && !*f->prefix && !*f->suffix;
}

/* May this text separate thousands; may it stand beside a number? For texts from a file. */
bool acf_notation_is_group(const char *text);
bool acf_notation_is_affix(const char *text);

#define ACF_PLAIN_MAX 64

/* Writes the number as a program would, "-1234.5", with a NUL. Returns its bytes; 0 if the text does not follow the
 * notation. Separators of thousands may be absent, and a blank beside the number may differ or be absent. out may still
 * not be a number: acf_number_parse decides. */
size_t acf_notation_strip(const acf_notation *f, const char *text, size_t n, char out[ACF_PLAIN_MAX]);

/* acf_number_parse of a text in this notation. */
bool acf_notation_read(const acf_notation *f, const char *text, size_t n, acf_number *out);

/* Appends plain, a number written as programs do, in this notation. */
void acf_notation_write(const acf_notation *f, const char *plain, acf_text *out);

/* ---- survey of a column ------------------------------------------------------------ */

#define ACF_NOTATION_FORMS 4 /* pairs of prefix and suffix that are counted, in order of appearance */
#define ACF_NOTATION_GAPS 6  /* blanks and apostrophes that separate thousands */

/* Number of cells in which a point, or a comma, can only be a decimal mark; can only separate thousands; can be
 * either. */
typedef struct acf_mark_counts {
    int64_t decimal, group, either;
} acf_mark_counts;

typedef struct acf_affixes {
    char prefix[ACF_AFFIX_MAX], suffix[ACF_AFFIX_MAX];
    int64_t cells;
} acf_affixes;

/* All zeros at the start. */
typedef struct acf_notation_survey {
    int64_t cells;           /* numbers in some notation */
    int64_t ungrouped;       /* of those, with four digits or more in a row before the decimal mark */
    acf_mark_counts mark[2]; /* for the point; for the comma */
    int64_t gap[ACF_NOTATION_GAPS];
    acf_affixes form[ACF_NOTATION_FORMS];
} acf_notation_survey;

/* Counts one cell; false: it is not a number in any notation. */
bool acf_notation_look(acf_notation_survey *s, const char *text, size_t n);

/* The same for a cell of so many digits and perhaps a sign, nothing else. */
static inline void acf_notation_look_digits(acf_notation_survey *s, int digits) {
    s->cells++;
    s->ungrouped += digits >= 4;
}

/* The decimal mark that the cells show: '.', ','; 0: they show none. */
char acf_notation_point(const acf_notation_survey *s);

typedef enum acf_notation_verdict {
    ACF_NOTATION_IS,      /* *out is the notation of the column */
    ACF_NOTATION_ASSUMED, /* the same, but only `point` decides it */
    ACF_NOTATION_EITHER,  /* a mark is either a decimal mark, as in *out, or separates thousands */
    ACF_NOTATION_MIXED,   /* some cells have a decimal point, others a decimal comma */
} acf_notation_verdict;

/* The notation of most of `observed` cells. point: the decimal mark of the file, '.', ','; 0: unknown. */
acf_notation_verdict acf_notation_most(const acf_notation_survey *s, int64_t observed, char point, acf_notation *out);

/* The other reading of an ambiguous column: its decimal mark separates thousands. */
acf_notation acf_notation_grouped(const acf_notation *f, bool comma_groups);

#endif
