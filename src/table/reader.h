/* Table files of any format behind one interface: columns are described once, rows come one after the other.
 *
 *     file --recognise--> format --open--> reader --next, next, ..., rewind, next, ...--> rows of cells (record.h)
 *
 *     ACF_TRY(acf_reader_open(path, wishes, &r));
 *     for (int64_t j = 0; j < r->columns; j++) acf_reader_column c = acf_reader_describe(r, j);
 *     while (acf_reader_next(r, &record) == ACF_OK && record.n) ...
 *     ACF_TRY(acf_reader_rewind(r));    the same rows again: types are found in one pass, values are read in the next
 *     acf_reader_close(r);
 *
 * A format is one file, reader_NAME.c, and one line in reader_list.h; docs/adding-a-reader.md adds one from nothing.
 * The calling code knows no format: what it needs to know of one is in the two structs below. A reader streams. It
 * keeps a row, or a block of rows, and never the file. A format that stores typed columns (dictionaries, bitmaps of
 * nulls) keeps its block as it is and fills one row of cells from it. */
#ifndef ACF_TABLE_READER_H
#define ACF_TABLE_READER_H

#include "table/csv.h"
#include "table/read_options.h"

#define ACF_READER_PEEK 512 /* bytes at the beginning of a file that a format recognises it by */

/* What the file itself says that a column holds. Cells decide what a column becomes (typing.h); this is for what cells
 * cannot tell. */
typedef enum acf_storage {
    ACF_STORAGE_ANY,        /* nothing is said: text that may be anything */
    ACF_STORAGE_TEXT,       /* texts */
    ACF_STORAGE_NUMBER,     /* cells are numbers, never text: how numbers are written (a decimal comma) is not asked */
    ACF_STORAGE_DATE,       /* days; cells are texts like 2021-03-09 */
    ACF_STORAGE_TIME,       /* points in time; cells are texts like 2021-03-09 14:05:00 */
    ACF_STORAGE_DICTIONARY, /* codes for texts; cells are these texts. A category, even where they look like numbers */
} acf_storage;

typedef struct acf_reader_column {
    const char *name; /* NULL or no bytes: it has none. Not NUL-terminated; valid until the reader is closed */
    size_t name_length;
    acf_storage storage;
} acf_reader_column;

/* How a completed table of this format is written (writer.h). */
typedef enum acf_completed {
    ACF_COMPLETED_COPY,   /* as text: all bytes are copied but those of filled cells. Fields have raw, the reader a
                             dialect and a header */
    ACF_COMPLETED_MATRIX, /* as a .npy matrix of numbers: no cell is text */
    ACF_COMPLETED_CSV,    /* as CSV that is written afresh, with all columns of the file. What stays missing is NA */
} acf_completed;

typedef struct acf_reader acf_reader;

#define ACF_ENDINGS_MAX 8

/* A format. All functions but recognise may fail, and then say file, place, what was found and what was expected. */
typedef struct acf_file_format {
    const char *name;                    /* "csv"; as in reader_list.h. The struct itself is called acf_format_csv */
    const char *what;                    /* "a text", "a matrix": its files in sentences */
    const char *ending[ACF_ENDINGS_MAX]; /* of its files' names, ".csv"; a NULL ends the list. Output of another format
                                            under such a name is refused */
    acf_completed completed;

    /* Is this a file of the format? By its name and its first n bytes: ACF_READER_PEEK or all of it; none where the
     * path is "-", a pipe, or cannot be read. */
    bool (*recognise)(const char *path, const unsigned char *begin, size_t n);

    /* Sets r->state and r's description of the table. Keeps r->path. When it fails, close is called all the same. */
    acf_status (*open)(acf_reader *r, const acf_read_options *w);

    /* Makes `again`, a copy of r in all but its state, another reader of the same table: for a pass, perhaps in another
     * thread. r has read the table to its end, and is neither read nor closed meanwhile. When it fails, close is
     * called. */
    acf_status (*again)(const acf_reader *r, acf_reader *again);

    acf_reader_column (*describe)(const acf_reader *r, int64_t j);

    /* The next row: r->columns fields, valid until the next call. n = 0 at the end. */
    acf_status (*next)(acf_reader *r, acf_record *out);

    /* Back to the first row. Fails where the file can be seen to have changed: types and values come from different
     * passes. */
    acf_status (*rewind)(acf_reader *r);

    void (*close)(acf_reader *r); /* frees r->state, which may be NULL or half made */
} acf_file_format;

/* One open file, used by one thread. */
struct acf_reader {
    const acf_file_format *format;
    const char *path;           /* as it was given; "-": standard input. Borrowed */
    void *state;                /* the format's own */
    int64_t columns;            /* >= 1 */
    bool named;                 /* the file names its columns */
    const acf_dialect *dialect; /* how its text is written; NULL: it is no text with separators */
    acf_record header;          /* with a dialect: the record of names; n = 0: there is none */
};

/* Opens a file in the format that recognises it. Keeps path, which must outlive the reader. Gives *out; close with
 * acf_reader_close. Fails: ACF_EIO, ACF_EDATA (not such a file, damaged, empty), ACF_EUSAGE (a read option that cannot
 * be granted), ACF_EMEMORY. */
acf_status acf_reader_open(const char *path, const acf_read_options *w, acf_reader **out);
acf_status acf_reader_open_as(const acf_file_format *format, const char *path, const acf_read_options *w,
                              acf_reader **out);

/* Another reader of the same table, at its first row, for a thread of its own. r has read the table to its end, and is
 * neither read nor closed meanwhile: any number of threads may ask for one at once. Gives *out. Fails: ACF_EIO (also:
 * the file has changed since), ACF_EMEMORY. */
acf_status acf_reader_again(const acf_reader *r, acf_reader **out);

acf_reader_column acf_reader_describe(const acf_reader *r, int64_t j);
acf_status acf_reader_next(acf_reader *r, acf_record *out);
acf_status acf_reader_rewind(acf_reader *r);
void acf_reader_close(acf_reader *r); /* NULL is allowed */

/* The file in sentences: its path, or "standard input". */
const char *acf_reader_name(const acf_reader *r);

/* Does the name, but for .gz, end so, in capitals or not? */
bool acf_reader_ends_in(const char *path, const char *ending);

/* Format k in the order of the list; NULL: there are no more. */
const acf_file_format *acf_reader_format(int k);

#endif
