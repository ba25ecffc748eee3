/* Text tables, record by record: CSV, TSV and their relatives, from a file, a gzip file or standard input.
 *
 *     ACF_TRY(acf_csv_open(path, &want, &csv));               looks at the first block: separator, quote, header
 *     while (acf_csv_next(csv, &record) == ACF_OK && record.n) ...
 *     ACF_TRY(acf_csv_rewind(csv));                           the same records again, for a second pass
 *     acf_csv_close(csv);
 *
 * Streaming: memory is one block plus the longest record, whatever the file's size. Standard input is spooled to an unlinked
 * temporary file while it is read, so that every input can be read twice. A second pass checks that the file is still the one it was
 * (bytes and a checksum), because types come from the first pass and values from the second.
 *
 * A file is hostile input. Refused with file, line and what to do: a ragged row, a quote that never closes, a NUL byte, invalid
 * UTF-8 (UTF-16 is recognised and named), a truncated or corrupt gzip stream, a record above ACF_CSV_RECORD_MAX bytes, more than
 * ACF_CSV_FIELDS_MAX fields. */
#ifndef ACF_TABLE_CSV_H
#define ACF_TABLE_CSV_H

#include "base/status.h"
#include "table/record.h"

#define ACF_CSV_RECORD_MAX ((size_t)64 << 20)
#define ACF_CSV_FIELDS_MAX 1000000

typedef enum acf_choice3 { ACF_AUTO, ACF_NO, ACF_YES } acf_choice3;

/* What the caller knows; zeros and AUTO mean: find out. */
typedef struct acf_csv_want {
    char
        separator; /* 0: detect among , ; tab | and runs of white space; ' ' = runs of spaces and tabs; any other ASCII character */
    char quote;         /* 0: detect among " and '; '\n' = the file has no quoting; any other ASCII character */
    acf_choice3 header; /* the first record names the columns */
} acf_csv_want;

/* What was found. Nothing in it changes after open. */
typedef struct acf_dialect {
    char separator; /* ' ' = runs of spaces and tabs */
    char quote;     /* '\n' = none */
    bool header;
    bool guessed;  /* the header was looked for, not given */
    bool crlf;     /* records end in CR LF (of the first record) */
    bool bom;      /* the file begins with a UTF-8 byte order mark */
    bool rownames; /* the header has one name fewer than rows have cells, as R writes it: the first column has none */
    char preamble[12]; /* Excel's first line, "sep=;" with its line end; "": none */
    bool padded;       /* white space stands beside the separators of most records (fields are trimmed in any case) */
} acf_dialect;

/* One reader, used by one thread. */
typedef struct acf_csv acf_csv;

/* Opens path ("-": standard input), finds the dialect (table/csv_dialect.h says how). want NULL: find out everything. Blank lines are
 * skipped; below the header of a table of one column, and in all of one without a header, each is a cell that is empty. What stands behind the
 * last line end is no line. Gives *out; close with acf_csv_close. Fails: ACF_EIO (open, read), ACF_EDATA (empty file, not text, ...), ACF_EUSAGE (a separator
 * or quote that cannot be one), ACF_EMEMORY. */
acf_status acf_csv_open(const char *path, const acf_csv_want *want, acf_csv **out);

/* The same, asking for `block` bytes (>= 1) at a time: for tests, as records must not depend on where blocks end. */
acf_status acf_csv_open_blocks(const char *path, const acf_csv_want *want, size_t block, acf_csv **out);
void acf_csv_close(acf_csv *csv); /* NULL is allowed */

/* Another reader of the same table, before its first data record, for a thread of its own. csv has read the table to
 * its end, and is neither read nor closed meanwhile: any number of threads may ask for one at once. Gives *out. Fails:
 * ACF_EIO (also: the file has changed since), ACF_EMEMORY. */
acf_status acf_csv_again(const acf_csv *csv, acf_csv **out);

const acf_dialect *acf_csv_dialect(const acf_csv *csv);
const char *acf_csv_path(const acf_csv *csv); /* as it is shown in sentences: "standard input" for "-" */

/* "','", "tab", "white space", for sentences; the name of a separator. Returns out or a text that lives on. */
#define ACF_SEPARATOR_NAME_MAX 16
const char *acf_separator_name(char c, char out[ACF_SEPARATOR_NAME_MAX]);

/* The header's fields, valid until close; n = 0 when there is none. */
acf_record acf_csv_header(const acf_csv *csv);

/* Columns: fields of the header (its first one is empty where rows have one more), or of the first record. A row may
 * end in one separator more. */
int64_t acf_csv_columns(const acf_csv *csv);

/* The next data record; its fields are valid until the next call. n = 0 at the end. Fails: ACF_EIO, ACF_EDATA with file, line and,
 * where there is one, column; ACF_EMEMORY. */
acf_status acf_csv_next(acf_csv *csv, acf_record *out);

/* Back to the first data record. Fails: ACF_EIO (also: the file has changed since). */
acf_status acf_csv_rewind(acf_csv *csv);

/* Writes a value as one field of this dialect to out (cap), quoted where it must be; returns its length, which is above cap when it did not
 * fit. An empty value is quoted, to tell it from a missing one. A dialect without quotes cannot hold every value: separators and line ends
 * become '_', and *clean (NULL allowed) says whether the field reads back as it was. */
size_t acf_csv_quote(const acf_dialect *d, const char *text, size_t length, char *out, size_t cap, bool *clean);

#endif
