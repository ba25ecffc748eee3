/* The texts that say "no value here": the usual ones, and those the user names.
 *
 * Looked up for every cell of a file, so most cells must leave after a glance at their length and first byte. One list of the usual ones for
 * all that asks: the cells of a table, and the search for its header. */
#ifndef ACF_TABLE_NA_STRINGS_H
#define ACF_TABLE_NA_STRINGS_H

#include "table/text_counts.h"

/* Compared byte for byte with a cell's text: white space around it and quotes are gone by then. What pandas reads as missing unless told
 * otherwise, further ways to write NA, N/A, NULL and NaN, the \N of databases, and ? . - -- of statistics programs and people. docs/columns.md has the list. */
#define ACF_NA_STRINGS_USUAL                                                                                           \
    {                                                                                                                  \
        "", "NA", "na", "Na", "<NA>", "#NA", "N/A", "n/a", "N/a", "#N/A", "#N/A N/A", "NaN", "nan", "NAN", "Nan",      \
            "-NaN", "-nan", "NULL", "null", "Null", "None", "\\N", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN", "?",    \
            ".", "-", "--"                                                                                             \
    }

/* Those that may be values in a column of words: None, Mild, Severe; the symbol of sodium; + and -. They count as missing, and it is said. */
#define ACF_NA_STRINGS_DOUBTFUL                                                                                        \
    { "None", "Na", "-", "--" }

typedef struct acf_na_strings {
    acf_text_counts list; /* in the order they were named; `first` is 1 for the usual ones that nobody named, else 0 */
    uint32_t length
        [256]; /* bit n of the byte that some begin with: one has n bytes, the last bit: or more. Of byte 0 bit 0: the empty text */
} acf_na_strings;

/* None yet; keeps texts. Free with acf_na_strings_clear. */
acf_na_strings acf_na_strings_make(acf_arena *texts);
void acf_na_strings_clear(acf_na_strings *m);

/* Adds one; twice is once. Fails: ACF_EMEMORY. */
acf_status acf_na_strings_add(acf_na_strings *m, const char *text, size_t n);

/* Adds the usual ones; those of a list with commas between them, "-999,unknown" ("": none). Fail: ACF_EMEMORY. */
acf_status acf_na_strings_add_usual(acf_na_strings *m);
acf_status acf_na_strings_add_list(acf_na_strings *m, const char *list);

/* Is this one of the usual ones? Of any text, without a list of markers. */
bool acf_na_strings_is_usual(const char *text, size_t n);

/* Of a text that is a marker: is it one that may be a value, and that the user has not named? */
bool acf_na_strings_in_doubt(const acf_na_strings *m, const char *text, size_t n);

static inline bool acf_na_strings_has(const acf_na_strings *m, const char *text, size_t n) {
    if (!(m->length[n ? (unsigned char)*text : 0] >> (n < 31 ? n : 31) & 1)) return false;
    return acf_text_counts_find(&m->list, text, n) >= 0;
}

#endif
