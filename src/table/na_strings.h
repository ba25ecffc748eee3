/* NA strings: the texts that mean "missing value", the usual ones and those that the user names.
 *
 * Every cell of a file is compared with them. A test of the length and the first byte settles most cells. The cells of
 * a table and the search for its header share one list of usual NA strings. */
#ifndef ACF_TABLE_NA_STRINGS_H
#define ACF_TABLE_NA_STRINGS_H

#include "table/text_counts.h"

/* Compared byte for byte with a cell's text, after white space around it and quotes are removed. The list has what
 * pandas reads as missing by default, further spellings of NA, N/A, NULL and NaN, the \N of databases, and ? . - -- as
 * statistics programs and people write them. docs/columns.md has the list. */
#define ACF_NA_STRINGS_USUAL                                                                                           \
    {                                                                                                                  \
        "", "NA", "na", "Na", "<NA>", "#NA", "N/A", "n/a", "N/a", "#N/A", "#N/A N/A", "NaN", "nan", "NAN", "Nan",      \
            "-NaN", "-nan", "NULL", "null", "Null", "None", "\\N", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN", "?",    \
            ".", "-", "--"                                                                                             \
    }

/* Usual NA strings that may be values in a column of words: None, Mild, Severe; Na, the symbol of sodium; + and -. They
 * count as missing, with a warning. */
#define ACF_NA_STRINGS_DOUBTFUL                                                                                        \
    { "None", "Na", "-", "--" }

typedef struct acf_na_strings {
    /* in the order they were named; `first` is 1 for a usual one that the user did not name, else 0 */
    acf_text_counts list;
    /* by first byte: bit n is set if an NA string has n bytes; the last bit: that many or more. Bit 0 of byte 0: the
     * empty text */
    uint32_t length[256];
} acf_na_strings;

/* An empty list; borrows texts. Free with acf_na_strings_clear. */
acf_na_strings acf_na_strings_make(acf_arena *texts);
void acf_na_strings_clear(acf_na_strings *m);

/* Adds one text; adding it twice has no further effect. Fails: ACF_EMEMORY. */
acf_status acf_na_strings_add(acf_na_strings *m, const char *text, size_t n);

/* Add the usual NA strings; those of a comma-separated list, "-999,unknown" ("": none). Fail: ACF_EMEMORY. */
acf_status acf_na_strings_add_usual(acf_na_strings *m);
acf_status acf_na_strings_add_list(acf_na_strings *m, const char *list);

/* Is this text one of the usual NA strings? Needs no list. */
bool acf_na_strings_is_usual(const char *text, size_t n);

/* For a text that is an NA string: may it be a value, and did the user not name it? */
bool acf_na_strings_in_doubt(const acf_na_strings *m, const char *text, size_t n);

static inline bool acf_na_strings_has(const acf_na_strings *m, const char *text, size_t n) {
    if (!(m->length[n ? (unsigned char)*text : 0] >> (n < 31 ? n : 31) & 1)) return false;
    return acf_text_counts_find(&m->list, text, n) >= 0;
}

#endif
