/* One record of a table file: what a reader (reader.h) hands out row by row. */
#ifndef ACF_TABLE_RECORD_H
#define ACF_TABLE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A cell. It holds text, or a number, or nothing:
 *
 *     text, length     the text as it stands in the file; what it means is decided later, and it may be an NA string
 *     text NULL        number, which is NaN where the value is missing
 */
typedef struct acf_field {
    const char *text; /* the value: quotes removed, doubled quotes undone, white space around an unquoted one trimmed;
                         not NUL-terminated */
    size_t length;
    const char
        *raw; /* the bytes of the file between the separators, white space included: to be written back untouched. Of a
               * run of white space that separates, the first byte is the separator and the others begin the next
               * field's raw. Only where the format is copied (reader.h, ACF_COMPLETED_COPY) */
    size_t raw_length;
    bool quoted;   /* a quoted "NA" is text, and a quoted empty field an empty string, where the caller makes that
                      difference */
    double number; /* read only where text is NULL */
} acf_field;

typedef struct acf_record {
    int64_t n;    /* fields; 0 at the end of the file */
    int64_t row;  /* 0, 1, ...: data rows; -1 for the header */
    int64_t line; /* where it begins in the file, from 1; 0: the format has no lines */
    const acf_field *field;
    const char *end; /* the bytes that end it in the file: "\n", "\r\n", "\r" (alone), or nothing in a last line without
                      * one; before them a separator that ends the line without a field behind it */
    size_t end_length;
} acf_record;

#endif
