/* One record of a text table, in memory: cut into fields, and a field made from a value. No file, no sentence, no state between records.
 *
 *     39, State-gov,"a ""b""",7\r\n            separator ','      \r\n, \n or a lone \r ends a record that is not inside quotes
 *     [ ][         ][       ] []               raw: what stands between the separators
 *     [ ] [       ]  [      ] []               text: without white space and quotes
 *
 *      ADT1  0.58 \t0.61\n                     separator ' ': a run of spaces and tabs; white space at both ends of a line means nothing
 *     [   ] [   ] [    ]                       raw: the first byte of a run separates, the others belong to the field behind it
 *
 * A quote opens a field only as its first byte that is not white space; further in it is a letter like any other (5" pipe). Inside quotes a
 * doubled one stands for one, and line ends are text. Shared by the reader and by the detection of dialects, so that both mean the same. */
#ifndef ACF_TABLE_CSV_SCAN_H
#define ACF_TABLE_CSV_SCAN_H

#include "table/csv.h"

#define ACF_SCAN_SLACK 64 /* bytes behind the text that must be readable, whatever they hold */

typedef enum acf_scan_end {
    ACF_SCAN_RECORD, /* a whole record */
    ACF_SCAN_MORE,   /* the text ends inside it: come again with more (open says whether inside quotes) */
    ACF_SCAN_OPEN,   /* the input ends inside quotes, which open at `wrong` */
    ACF_SCAN_BEHIND, /* something stands at `wrong`, between a closing quote and the separator */
    ACF_SCAN_FIELDS, /* more than ACF_CSV_FIELDS_MAX fields */
    ACF_SCAN_MEMORY  /* no memory for the fields; ACF_EMEMORY is set */
} acf_scan_end;

typedef struct acf_scan {
    char separator, quote; /* as in acf_dialect */
    acf_field *field;      /* (n) owned; text of an escaped field still has its doubled quotes: see acf_scan_unescape */
    int64_t n, cap;
    size_t bytes;      /* of the record, with its end */
    size_t end_length; /* of its end */
    int64_t lines;     /* line ends in it */
    int64_t escaped;   /* fields with a doubled quote inside */
    const char *wrong;
    bool open;
} acf_scan;

/* Scans the record at [begin, end), begin < end; eof: nothing follows. Borrows the text; fields point into it. A blank line is a record
 * of no field, or of one that is empty and not quoted. */
acf_scan_end acf_scan_record(acf_scan *s, const char *begin, const char *end, bool eof);
void acf_scan_free(acf_scan *s); /* the fields, not s */

bool acf_scan_blank(const acf_scan *s);

/* Undoes doubled quotes: escaped fields get their text in out, which has room for s->bytes. */
void acf_scan_unescape(acf_scan *s, char *out);

#endif
