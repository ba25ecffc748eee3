/* One record of a table file: a reader (reader.h) returns one for each row. */
#ifndef ACF_TABLE_RECORD_H
#define ACF_TABLE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cell: text, or a number, or nothing.
 *
 *     text, length     the text as it stands in the file; its meaning is decided later, and it may be an NA string
 *     text NULL        number, which is NaN if the value is missing */
typedef struct acf_field {
    /* the value: without quotes, doubled quotes undone, white space around an unquoted value trimmed; not
     * NUL-terminated */
    const char *text;
    size_t length;
    /* the bytes of the file between the separators, white space included, for writing back unchanged. If a run of white
     * space separates, its first byte is the separator and the others begin the next field's raw. Only if the format is
     * copied (reader.h, ACF_COMPLETED_COPY) */
    const char *raw;
    size_t raw_length;
    /* a quoted "NA" is text, and a quoted empty field an empty string, where the caller makes that difference */
    bool quoted;
    double number; /* read only if text is NULL */
} acf_field;

typedef struct acf_record {
    int64_t n;    /* fields; 0 at the end of the file */
    int64_t row;  /* 0, 1, ...: data rows; -1 for the header */
    int64_t line; /* where it begins in the file, from 1; 0: the format has no lines */
    const acf_field *field;
    /* the bytes that end it in the file: "\n", "\r\n", "\r" (alone), or nothing in a last line without one; before them
     * a separator that ends the line without a field after it */
    const char *end;
    size_t end_length;
} acf_record;

#endif
