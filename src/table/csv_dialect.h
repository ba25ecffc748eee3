/* The dialect of a text table, from its first block: which byte separates, which quotes, and whether the first record names the columns.
 *
 * Separator and quote. Each candidate (, ; tab | white space, each with " ' and no quote) cuts the block into records, and is judged by
 *
 *     the part of records that have as many fields as most have        a table is rectangular; a line that cannot be cut counts against it
 *   * the part of cells that look whole                                a cell with another separator, a stray quote or two numbers does not
 *   * 0.9 where the first record has another number of fields (0.4 where white space would cut all but the first: one column of
 *     texts under its name), 0.5 where most have one field only
 *
 * The best is taken; of equals the first, in the order above. So `39, State-gov` is cut at commas and not at spaces, `1,5;2,5` at
 * semicolons, and a table with some ragged rows is still cut where its other rows say, so that the ragged ones get their sentence.
 *
 * Header. Each column votes, the first record's cell against the cells under it (missing ones, `NA ? null ...`, left out):
 *
 *     figures below (numbers, dates, times)     a word above: +1; a figure or a missing cell above: -1
 *     words below                               the word above comes again further down: -1; it never does although the others keep
 *                                               coming: +1; a figure or a missing cell above: -1; otherwise: 0
 *     two columns with the same word above      -1, once
 *     years above, with one step between them   +1, once, where they stand over three or more columns and no record below has such years in them, or
 *                                               follow each other over two columns of which at most a tenth of the figures are years
 *     whole numbers above that rise             0, over three or more columns of which at most a tenth of the figures have no decimals
 *
 * More for than against: a header. As many: a header when the first record is nothing but words, each once, as most files have one. A first
 * record of two or more words, with one field fewer than every other record has, is a header as R writes it
 * (rownames). A first record 0, 1, 2, ... over five or more columns is a header too: pandas numbers nameless columns so. The user can always overrule. */
#ifndef ACF_TABLE_CSV_DIALECT_H
#define ACF_TABLE_CSV_DIALECT_H

#include "table/csv_scan.h"

/* Looks at text (n bytes, n >= 1, with ACF_SCAN_SLACK behind); eof: that is all of the input. Sets separator, quote,
 * header, rownames and padded of *out, keeps what want gives. Fails: ACF_EMEMORY. */
acf_status acf_dialect_detect(const char *text, size_t n, bool eof, const acf_csv_want *want, acf_dialect *out);

#endif
