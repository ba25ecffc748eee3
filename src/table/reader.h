/* Table files of any format behind one interface: columns are described once, rows come one after the other.
 *
 *     file --recognise--> format --open--> reader --next, next, ..., rewind, next, ...--> rows of cells (record.h)
 *
 *     ACF_TRY(acf_reader_open(path, read_options, &r));
 *     for (int64_t j = 0; j < r->columns; j++) acf_reader_column c = acf_reader_describe(r, j);
 *     while (acf_reader_next(r, &record) == ACF_OK && record.n) ...
 *     ACF_TRY(acf_reader_rewind(r));    the same rows again: types are found in one pass, values are read in the next
 *     acf_reader_close(r);
 *
 * A format is one file, reader_NAME.c, and one line in reader_list.h; docs/adding-a-reader.md adds one from nothing.
 * Calling code depends on no format; the two structs below hold what it needs. A reader streams. It keeps a row, or a
 * block of rows, never the whole file. A format that stores typed columns (dictionaries, bitmaps of nulls) keeps its
 * block as it is and fills one row of cells from it. */
#ifndef ACF_TABLE_READER_H
#define ACF_TABLE_READER_H

#include "table/csv.h"
#include "table/read_options.h"

#define ACF_READER_PEEK 512 /* bytes at the beginning of a file by which a format is recognised */

/* What the file itself says about a column. The cells decide its kind (typing.h); this adds what cells cannot show. */
typedef enum acf_storage {
    ACF_STORAGE_ANY,        /* unspecified: text that may be anything */
    ACF_STORAGE_TEXT,       /* texts */
    ACF_STORAGE_NUMBER,     /* cells are numbers, never text, so they have no notation (decimal comma) */
    ACF_STORAGE_DATE,       /* days; cells are texts like 2021-03-09 */
    ACF_STORAGE_TIME,       /* date and time of day; cells are texts like 2021-03-09 14:05:00 */
    ACF_STORAGE_DICTIONARY, /* codes for texts; cells are these texts. A category, even if they look like numbers */
} acf_storage;

typedef struct acf_reader_column {
    const char *name; /* NULL or length 0: no name. Not NUL-terminated; valid until the reader is closed */
    size_t name_length;
    acf_storage storage;
} acf_reader_column;

/* How a completed table of this format is written (writer.h). */
typedef enum acf_completed {
    /* as text: all bytes are copied except those of imputed cells. Fields have raw, the reader a dialect and a
     * header */
    ACF_COMPLETED_COPY,
    ACF_COMPLETED_MATRIX, /* as a .npy matrix of numbers: no cell is text */
    ACF_COMPLETED_CSV,    /* as new CSV text, with all columns of the file. Cells that stay missing are NA */
} acf_completed;

typedef struct acf_reader acf_reader;

#define ACF_ENDINGS_MAX 8

/* A format. All functions except recognise may fail; the message then names the file, the place, what was found and
 * what was expected. */
typedef struct acf_file_format {
    const char *name; /* "csv", as in reader_list.h. The struct itself is called acf_format_csv */
    const char *what; /* "a text", "a matrix": names its files in messages */
    /* of its files' names, ".csv"; a NULL ends the list. Output of another format under such a name is refused */
    const char *ending[ACF_ENDINGS_MAX];
    acf_completed completed;

    /* Is this a file of the format? Decides by its name and its first n bytes: ACF_READER_PEEK, or the whole file if it
     * is shorter. n = 0 for the path "-", a pipe, or an unreadable file. */
    bool (*recognise)(const char *path, const unsigned char *begin, size_t n);

    /* Sets r->state and r's description of the table. Borrows r->path. After a failure close is called too. */
    acf_status (*open)(acf_reader *r, const acf_read_options *w);

    /* Turns `again`, a copy of r except for its state, into another reader of the same table, for another pass, perhaps
     * in another thread. r has read the table to its end, and is neither read nor closed meanwhile. After a failure
     * close is called too. */
    acf_status (*again)(const acf_reader *r, acf_reader *again);

    acf_reader_column (*describe)(const acf_reader *r, int64_t j);

    /* Reads the next row: r->columns fields, valid until the next call. n = 0 at the end. */
    acf_status (*next)(acf_reader *r, acf_record *out);

    /* Returns to the first row. Fails if the file is seen to have changed, because types and values come from different
     * passes. */
    acf_status (*rewind)(acf_reader *r);

    void (*close)(acf_reader *r); /* frees r->state, which may be NULL or incomplete */
} acf_file_format;

/* One open file, used by one thread. */
struct acf_reader {
    const acf_file_format *format;
    const char *path;           /* as given; "-": standard input. Borrowed */
    void *state;                /* the format's own */
    int64_t columns;            /* >= 1 */
    bool named;                 /* the file names its columns */
    const acf_dialect *dialect; /* how its text is written; NULL: it is not separated text */
    acf_record header;          /* with a dialect: the record of names; n = 0: none */
};

/* Opens a file in the format that recognises it. Borrows path, which must outlive the reader. Gives *out; close with
 * acf_reader_close. Fails: ACF_EIO, ACF_EDATA (not such a file, damaged, empty), ACF_EUSAGE (a read option that the
 * file cannot satisfy), ACF_EMEMORY. */
acf_status acf_reader_open(const char *path, const acf_read_options *w, acf_reader **out);
acf_status acf_reader_open_as(const acf_file_format *format, const char *path, const acf_read_options *w,
                              acf_reader **out);

/* Opens another reader of the same table, at its first row, for another thread. r has read the table to its end, and is
 * neither read nor closed meanwhile: several threads may call this at once. Gives *out. Fails: ACF_EIO (also: the file
 * has changed since), ACF_EMEMORY. */
acf_status acf_reader_again(const acf_reader *r, acf_reader **out);

acf_reader_column acf_reader_describe(const acf_reader *r, int64_t j);
acf_status acf_reader_next(acf_reader *r, acf_record *out);
acf_status acf_reader_rewind(acf_reader *r);
void acf_reader_close(acf_reader *r); /* NULL is allowed */

/* The name of the file in messages: its path, or "standard input". */
const char *acf_reader_name(const acf_reader *r);

/* Does the name, without .gz, end with this ending, in any case? */
bool acf_reader_ends_in(const char *path, const char *ending);

/* Format k in the order of the list; NULL after the last. */
const acf_file_format *acf_reader_format(int k);

#endif
