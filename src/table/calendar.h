/* Dates and times in text: recognised, turned into numbers, and written as their column writes them.
 *
 *     YYYY-MM-DD             2021-03-09                      a date: days since 1970-01-01
 *     DD/MM/YYYY  M/D/YYYY   09/03/2021  3/9/2021            likewise; separators / - .
 *     YYYY-MM-DD HH:MM:SS.f  2021-03-09 14:05:00.2           a moment: seconds since 1970-01-01 00:00; joined by T or a space
 *     DD-Mon-YYYY            09-Mar-2021                     a date; also 9 March 2021, 2021-MAR-09, Mar 9, 2021
 *     HH:MM:SS               14:05:00                        a time of day: seconds since midnight
 *     HH:MM AM               02:05 PM                        likewise
 *
 * A clock has minutes or minutes and seconds, the latter with up to 9 decimals; a final Z is allowed, other zones are not: their
 * texts are not dates here. Years have four digits: 03/04/05 could be anything. The calendar is the Gregorian one, also for the years
 * before it was introduced, and has no leap seconds.
 *
 * 03/04/2021 is the third of April or the fourth of March, which only other cells of the column can tell (see acf_calendar_survey). */
#ifndef ACF_TABLE_CALENDAR_H
#define ACF_TABLE_CALENDAR_H

#include "base/text.h"

/* How a column writes its dates and times. By value. */
typedef struct acf_calendar {
    char order;      /* 'y': year, month, day; 'd': day first; 'm': month first; 0: a time of day, no date */
    char mark;       /* between the parts of a date: - / . or, beside the name of a month, a space */
    char month;      /* 0: a number; 'b': Jan, 'B': January, in English */
    char letters;    /* of the month: 't' Jan, 'u' JAN, 'l' jan */
    char half;       /* 0: 24 hours; 'P': AM and PM, 'p': am and pm */
    bool half_gap;   /* a space stands before it */
    char join;       /* between date and clock: T or a space; 0: only one of them */
    bool padded;     /* day and month have two digits */
    bool hour2;      /* hours have two digits */
    bool seconds;    /* the clock has them */
    bool zulu;       /* Z at the end */
    int8_t decimals; /* of seconds, 0..9 */
} acf_calendar;

static inline bool acf_calendar_is_moment(acf_calendar f) { return f.join != 0; }
static inline bool acf_calendar_is_date(acf_calendar f) { return f.order != 0 && f.join == 0; }

/* ---- recognising a column --------------------------------------------------------------------------------------- */

#define ACF_CALENDAR_FORMS 4 /* formats that are told apart in a column, in the order they come; yet others fit none */

/* Cells of a column that are written alike. */
typedef struct acf_calendar_form {
    int64_t fit;         /* so many */
    int64_t dmy, mdy;    /* of those that can be read with the day first; with the month first */
    acf_calendar format; /* padded, hour2: as long as no cell says otherwise */
} acf_calendar_form;

/* What the cells of a column have in common. Starts as zeros. */
typedef struct acf_calendar_survey {
    int64_t cells; /* seen */
    acf_calendar_form form[ACF_CALENDAR_FORMS];
} acf_calendar_survey;

/* Looks at one cell. The form it fits, -1 for none: no date or time, or one that is not in the calendar. */
int acf_calendar_look(acf_calendar_survey *s, const char *text, size_t n);

typedef enum acf_calendar_verdict { ACF_CALENDAR_NOT, ACF_CALENDAR_IS, ACF_CALENDAR_EITHER } acf_calendar_verdict;

/* The same of the form that most have, whatever the others are; *fit: cells that can be read in the format. NOT: there is none, or day and
 * month stand first in one cell and in another (up to a tenth of those that decide it may be slips); *out is the likelier order then. */
acf_calendar_verdict acf_calendar_most(const acf_calendar_survey *s, acf_calendar *out, int64_t *fit);

/* ---- one cell --------------------------------------------------------------------------------------------------- */

/* The number a text stands for, false when it is not written in this format (digits may be more or fewer than usual: one or two
 * for a day, with or without seconds) or is no date at all, such as 2021-02-30. */
bool acf_calendar_read(acf_calendar f, const char *text, size_t n, double *out);

/* Writes a number in this format, rounded to what it shows; out of the years 1 to 9999, the nearest that is not. A time of day
 * stays between 00:00 and the last moment of the day. */
void acf_calendar_write(acf_calendar f, double value, acf_text *out);

/* The smallest step the format shows: a day for dates (1), else 60, 1, or 0.1, 0.01 ... seconds. */
double acf_calendar_step(acf_calendar f);

/* ---- the format as text ----------------------------------------------------------------------------------------- */

#define ACF_CALENDAR_PATTERN_MAX 48

/* "DD/MM/YYYY", "D-Mon-YYYY" (MON, mon, Month, ...), "YYYY-MM-DDTHH:MM:SS.fffZ", "H:MM", "HH:MM AM". Returns out. */
char *acf_calendar_pattern(acf_calendar f, char out[ACF_CALENDAR_PATTERN_MAX]);

/* Reads that text; false when it is none. */
bool acf_calendar_from_pattern(const char *pattern, acf_calendar *out);

#endif
