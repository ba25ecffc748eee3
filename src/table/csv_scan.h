/* Scans one record of a text table in memory into fields, and writes a value as a field. No file access, no
 * messages, and no state between records.
 *
 *     39, State-gov,"a ""b""",7\r\n            separator ','      \r\n, \n or a lone \r ends a record outside of quotes
 *     [ ][         ][       ] []               raw: everything between the separators
 *     [ ] [       ]  [      ] []               text: without white space and quotes
 *
 *      ADT1  0.58 \t0.61\n                     separator ' ': a run of spaces and tabs; white space at both ends of a
 *                                              line is ignored
 *     [   ] [   ] [    ]                       raw: the first byte of a run separates, the others belong to the next
 *
 * A quote opens a field only as its first byte that is not white space; elsewhere it is an ordinary character (5"
 * pipe). Inside quotes, a doubled quote stands for one, and line ends are text. The reader and the detection of
 * dialects share this code, so both follow the same rules. */
#ifndef ACF_TABLE_CSV_SCAN_H
#define ACF_TABLE_CSV_SCAN_H

#include "table/csv.h"

#define ACF_SCAN_SLACK 64 /* readable bytes after the text, with any content */

typedef enum acf_scan_end {
    ACF_SCAN_RECORD, /* a whole record */
    ACF_SCAN_MORE,   /* the text ends inside the record: call again with more (open: inside quotes) */
    ACF_SCAN_OPEN,   /* the input ends inside quotes, which open at `wrong` */
    ACF_SCAN_BEHIND, /* unexpected text at `wrong`, between a closing quote and the separator */
    ACF_SCAN_FIELDS, /* more than ACF_CSV_FIELDS_MAX fields */
    ACF_SCAN_MEMORY  /* no memory for the fields; ACF_EMEMORY is set */
} acf_scan_end;

typedef struct acf_scan {
    char separator, quote; /* as in acf_dialect */
    acf_field *field;      /* (n) owned; the text of an escaped field still has its doubled quotes: see
                            * acf_scan_unescape */
    int64_t n, cap;
    size_t bytes;      /* of the record, including its end */
    size_t end_length; /* of its end */
    int64_t lines;     /* line ends in it */
    int64_t escaped;   /* fields that contain a doubled quote */
    const char *wrong;
    bool open;
} acf_scan;

/* Scans the record at [begin, end), begin < end; eof: nothing follows. Borrows the text; fields point into it. A
 * blank line is a record without fields, or with one that is empty and not quoted. */
acf_scan_end acf_scan_record(acf_scan *s, const char *begin, const char *end, bool eof);
void acf_scan_free(acf_scan *s); /* frees the fields, not s */

bool acf_scan_blank(const acf_scan *s);

/* Undoes doubled quotes: escaped fields get their text in out, of at least s->bytes. */
void acf_scan_unescape(acf_scan *s, char *out);

#endif
