/* Detects the dialect of a text table from its first block: the separator, the quote, and whether there is a header.
 *
 * Separator and quote. Each candidate (, ; tab | white space, each with " ' and no quote) splits the block into
 * records. Its score is the product of
 *
 *     the share of records with the most frequent number of fields     a table is rectangular; a line that cannot be
 *                                                                      split counts against it
 *   * the share of cells that look whole                               not whole: a cell with another separator, a
 *                                                                      stray quote or two numbers
 *   * 0.9 if the first record has another number of fields (0.4 if white space would split all but the first: one
 *     column of texts under its name), 0.5 if most records have one field only
 *
 * The best candidate is taken, and the first of equals in the order above. So `39, State-gov` is split at commas and
 * not at spaces, and `1,5;2,5` at semicolons. A table with some ragged rows is still split as its other rows
 * indicate, so the ragged ones are reported.
 *
 * Header. Each column votes by comparing the first record's cell with the cells below, except missing ones (`NA ?
 * null ...`):
 *
 *     figures below (numbers, dates, times)     a word above: +1; a figure or a missing cell above: -1
 *     words below                               the word above occurs again below: -1; it never does although the other
 *                                               words repeat: +1; a figure or a missing cell above: -1; otherwise: 0
 *     two columns with the same word above      -1, once
 *     years above, in equal steps               +1, once, over three or more columns if no record below has such years
 *                                               in them, or over two columns with consecutive years if at most a tenth
 *                                               of the figures are years
 *     whole numbers above that rise             0, over three or more columns of which at most a tenth of the figures
 *                                               have no decimals
 *
 * A positive sum is a header. A sum of 0 is a header if the first record is only words, each once, as most files
 * have one. A first record of two or more words, with one field fewer than every other record, is a header as R
 * writes it (rownames). A first record 0, 1, 2, ... over five or more columns is a header too: pandas numbers
 * nameless columns so. The user can always override the result. */
#ifndef ACF_TABLE_CSV_DIALECT_H
#define ACF_TABLE_CSV_DIALECT_H

#include "table/csv_scan.h"

/* Reads text (n bytes, n >= 1, with ACF_SCAN_SLACK after it); eof: that is all of the input. Sets separator, quote,
 * header, rownames and padded of *out, and keeps what want specifies. Fails: ACF_EMEMORY. */
acf_status acf_dialect_detect(const char *text, size_t n, bool eof, const acf_csv_want *want, acf_dialect *out);

#endif
