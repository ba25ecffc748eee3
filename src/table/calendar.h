/* Dates and times in text: recognises them, converts them to numbers, and writes them in the format of their column.
 *
 *     YYYY-MM-DD             2021-03-09                      a date: days since 1970-01-01
 *     DD/MM/YYYY  M/D/YYYY   09/03/2021  3/9/2021            likewise; separators / - .
 *     YYYY-MM-DD HH:MM:SS.f  2021-03-09 14:05:00.2           a time stamp: seconds since 1970-01-01; T or space between
 *     DD-Mon-YYYY            09-Mar-2021                     a date; also 9 March 2021, 2021-MAR-09, Mar 9, 2021
 *     HH:MM:SS               14:05:00                        a time of day: seconds since midnight
 *     HH:MM AM               02:05 PM                        likewise
 *
 * A clock has hours and minutes, and optionally seconds with up to 9 decimals. A final Z is allowed; texts with
 * other time zones are not recognised as dates. Years have four digits, because 03/04/05 is ambiguous. The calendar
 * is Gregorian, also for the years before its introduction, and has no leap seconds.
 *
 * 03/04/2021 is the third of April or the fourth of March. Only other cells of the column can decide
 * (acf_calendar_survey). */
#ifndef ACF_TABLE_CALENDAR_H
#define ACF_TABLE_CALENDAR_H

#include "base/text.h"

/* How a column writes its dates and times. By value. */
typedef struct acf_calendar {
    char order;      /* 'y': year, month, day; 'd': day first; 'm': month first; 0: a time of day, no date */
    char mark;       /* between the parts of a date: - / . or, with a month name, a space */
    char month;      /* 0: a number; 'b': Jan, 'B': January, in English */
    char letters;    /* case of the month: 't' Jan, 'u' JAN, 'l' jan */
    char half;       /* 0: 24 hours; 'P': AM and PM, 'p': am and pm */
    bool half_gap;   /* a space precedes AM or PM */
    char join;       /* between date and clock: T or a space; 0: only one of the two */
    bool padded;     /* day and month have two digits */
    bool hour2;      /* hours have two digits */
    bool seconds;    /* the clock has them */
    bool zulu;       /* Z at the end */
    int8_t decimals; /* of seconds, 0..9 */
} acf_calendar;

static inline bool acf_calendar_is_moment(acf_calendar f) { return f.join != 0; }
static inline bool acf_calendar_is_date(acf_calendar f) { return f.order != 0 && f.join == 0; }

/* ---- recognising a column ---------------------------------------------------------------------------------------- */

#define ACF_CALENDAR_FORMS 4 /* formats kept per column, in order of appearance; a cell in a further format fits none */

/* Cells of a column with the same form. */
typedef struct acf_calendar_form {
    int64_t fit;         /* their number */
    int64_t dmy, mdy;    /* of these, cells valid with the day first; with the month first */
    acf_calendar format; /* padded and hour2 hold until a cell contradicts them */
} acf_calendar_form;

/* What the cells of a column have in common. Starts as zeros. */
typedef struct acf_calendar_survey {
    int64_t cells; /* cells seen */
    acf_calendar_form form[ACF_CALENDAR_FORMS];
} acf_calendar_survey;

/* Adds one cell. Returns the form that it fits, or -1: not a date or time, or not in the calendar. */
int acf_calendar_look(acf_calendar_survey *s, const char *text, size_t n);

typedef enum acf_calendar_verdict { ACF_CALENDAR_NOT, ACF_CALENDAR_IS, ACF_CALENDAR_EITHER } acf_calendar_verdict;

/* The format of the most frequent form, whatever the other cells are; *fit: cells that are valid in this format.
 * NOT: no form, or some cells require the day first and others the month first. Up to a tenth of the deciding cells
 * may be errors. *out is then the likelier order. */
acf_calendar_verdict acf_calendar_most(const acf_calendar_survey *s, acf_calendar *out, int64_t *fit);

/* ---- one cell ---------------------------------------------------------------------------------------------------- */

/* Reads the number of a text. False if the text is not in this format, or is not a valid date, such as 2021-02-30.
 * The number of digits may vary: one or two for a day, with or without seconds. */
bool acf_calendar_read(acf_calendar f, const char *text, size_t n, double *out);

/* Writes a number in this format, rounded to the precision shown. Values outside the years 1 to 9999 are clamped. A
 * time of day stays between 00:00 and the last moment of the day. */
void acf_calendar_write(acf_calendar f, double value, acf_text *out);

/* The smallest step that the format shows: a day for dates (1), else 60, 1, or 0.1, 0.01 ... seconds. */
double acf_calendar_step(acf_calendar f);

/* ---- the format as text ------------------------------------------------------------------------------------------ */

#define ACF_CALENDAR_PATTERN_MAX 48

/* "DD/MM/YYYY", "D-Mon-YYYY" (MON, mon, Month, ...), "YYYY-MM-DDTHH:MM:SS.fffZ", "H:MM", "HH:MM AM". Returns out. */
char *acf_calendar_pattern(acf_calendar f, char out[ACF_CALENDAR_PATTERN_MAX]);

/* Parses such a pattern; false if it is not one. */
bool acf_calendar_from_pattern(const char *pattern, acf_calendar *out);

#endif
