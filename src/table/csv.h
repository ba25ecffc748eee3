/* Reads text tables record by record: CSV, TSV and similar formats, from a file, a gzip file or standard input.
 *
 *     ACF_TRY(acf_csv_open(path, &want, &csv));               reads the first block: separator, quote, header
 *     while (acf_csv_next(csv, &record) == ACF_OK && record.n) ...
 *     ACF_TRY(acf_csv_rewind(csv));                           the same records again, for a second pass
 *     acf_csv_close(csv);
 *
 * Streaming: memory is one block plus the longest record, whatever the size of the file. Standard input is copied to
 * an unlinked temporary file while it is read, so every input can be read twice. A second pass checks that the file
 * has not changed (bytes and a checksum), because types come from the first pass and values from the second.
 *
 * A file is hostile input. Refused with file, line and what to do: a ragged row, a quote that never closes, a NUL
 * byte, invalid UTF-8 (UTF-16 is recognised and named), a truncated or corrupt gzip stream, a record above
 * ACF_CSV_RECORD_MAX bytes, more than ACF_CSV_FIELDS_MAX fields. */
#ifndef ACF_TABLE_CSV_H
#define ACF_TABLE_CSV_H

#include "base/status.h"
#include "table/record.h"

#define ACF_CSV_RECORD_MAX ((size_t)64 << 20)
#define ACF_CSV_FIELDS_MAX 1000000

typedef enum acf_choice3 { ACF_AUTO, ACF_NO, ACF_YES } acf_choice3;

/* What the caller specifies; zeros and AUTO are detected. */
typedef struct acf_csv_want {
    char separator;     /* 0: detect among , ; tab | and runs of white space; ' ' = runs of spaces and tabs; any other
                    * ASCII character */
    char quote;         /* 0: detect among " and '; '\n' = the file has no quoting; any other ASCII character */
    acf_choice3 header; /* the first record names the columns */
} acf_csv_want;

/* What was detected. Constant after open. */
typedef struct acf_dialect {
    char separator; /* ' ' = runs of spaces and tabs */
    char quote;     /* '\n' = none */
    bool header;
    bool guessed;  /* the header was detected, not specified */
    bool crlf;     /* records end in CR LF (as the first record does) */
    bool bom;      /* the file begins with a UTF-8 byte order mark */
    bool rownames; /* the header has one name fewer than the rows have cells, as R writes it: the first column has no
                    * name */
    char preamble[12]; /* Excel's first line, "sep=;" with its line end; "": none */
    bool padded;       /* most records have white space beside the separators (fields are always trimmed) */
} acf_dialect;

/* One reader, used by one thread. */
typedef struct acf_csv acf_csv;

/* Opens path ("-": standard input) and detects the dialect (csv_dialect.h). want NULL: detect everything. Blank
 * lines are skipped, except in a one-column table: below its header, or everywhere without a header, each is an
 * empty cell. The end of the file after the last line end is not a blank line. Gives *out; close with
 * acf_csv_close. Fails: ACF_EIO (open, read), ACF_EDATA (empty file, not text, ...), ACF_EUSAGE (an impossible
 * separator or quote), ACF_EMEMORY. */
acf_status acf_csv_open(const char *path, const acf_csv_want *want, acf_csv **out);

/* The same, reading `block` bytes (>= 1) at a time. For tests: records must not depend on block boundaries. */
acf_status acf_csv_open_blocks(const char *path, const acf_csv_want *want, size_t block, acf_csv **out);
void acf_csv_close(acf_csv *csv); /* NULL is allowed */

/* Opens another reader of the same table, before its first data record, for a thread of its own. csv has read the
 * table to its end and is neither read nor closed meanwhile; any number of threads may call this at once. Gives
 * *out. Fails: ACF_EIO (also: the file has changed since), ACF_EMEMORY. */
acf_status acf_csv_again(const acf_csv *csv, acf_csv **out);

const acf_dialect *acf_csv_dialect(const acf_csv *csv);
const char *acf_csv_path(const acf_csv *csv); /* as shown in messages: "standard input" for "-" */

/* "','", "tab", "white space": the name of a separator for messages. Returns out or a static text. */
#define ACF_SEPARATOR_NAME_MAX 16
const char *acf_separator_name(char c, char out[ACF_SEPARATOR_NAME_MAX]);

/* The header's fields, valid until close; n = 0 when there is none. */
acf_record acf_csv_header(const acf_csv *csv);

/* The number of columns: fields of the header (the first name is empty if rows have one more), or of the first
 * record. A row may end in one extra separator. */
int64_t acf_csv_columns(const acf_csv *csv);

/* Reads the next data record; its fields are valid until the next call. n = 0 at the end. Fails: ACF_EIO; ACF_EDATA
 * with file, line and, if known, column; ACF_EMEMORY. */
acf_status acf_csv_next(acf_csv *csv, acf_record *out);

/* Returns to the first data record. Fails: ACF_EIO (also: the file has changed since). */
acf_status acf_csv_rewind(acf_csv *csv);

/* Writes a value as one field of this dialect to out (cap), quoted if necessary. Returns its length, which exceeds
 * cap if it did not fit. An empty value is quoted, which distinguishes it from a missing one. A dialect without
 * quotes cannot hold every value: separators and line ends become '_'. *clean (may be NULL) is whether the field
 * reads back unchanged. */
size_t acf_csv_quote(const acf_dialect *d, const char *text, size_t length, char *out, size_t cap, bool *clean);

#endif
