/* The bytes of an input, wherever they come from: a file, a gzip file, a pipe, standard input. Every one can be read twice.
 *
 *     regular file   pread ------------------------------.
 *     pipe, stdin    read, kept in an unlinked spool ----+--> checksum --> [inflate, when it begins as gzip does] --> caller
 *                    (pass two: pread of the spool)      |
 *                                                        `--> pass two: the same bytes as in pass one, or ACF_EIO
 *
 * Types of a table come from one pass and its values from another, so a file that someone writes to in between must be noticed: raw bytes
 * are summed (CRC-32) as they pass, and where pass one stopped pass two must have the same sum, and the same end. A spool has no name, so
 * that nothing stays behind after a crash; it lives in $TMPDIR or /tmp and is as large as what was piped in. */
#ifndef ACF_TABLE_SOURCE_H
#define ACF_TABLE_SOURCE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* One input, used by one thread. */
typedef struct acf_source acf_source;

/* Opens path; "-" is standard input, which may be opened once. Whether it is gzip is told by its first bytes, not by its name. Gives *out;
 * close with acf_source_close. Fails: ACF_EIO (missing, not readable, a folder), ACF_EDATA (compressed in a way that is not gzip),
 * ACF_EMEMORY. */
acf_status acf_source_open(const char *path, acf_source **out);
void acf_source_close(acf_source *s); /* NULL is allowed */

/* Another reader of the same bytes, at the first of them, for a thread of its own: it must meet what s has met. s has
 * come to the end of the input, and is not read meanwhile. Gives *out. Fails: ACF_EIO (no more file descriptors),
 * ACF_EMEMORY. */
acf_status acf_source_again(const acf_source *s, acf_source **out);

/* As it is shown in sentences: the path, or "standard input". */
const char *acf_source_name(const acf_source *s);
bool acf_source_is_gzip(const acf_source *s);

/* The next bytes, uncompressed: always cap of them, fewer only at the end of the input. Fails: ACF_EIO (also in a second pass that meets other
 * bytes than the first), ACF_EDATA (a gzip stream that is cut short or corrupt), ACF_EMEMORY. */
acf_status acf_source_read(acf_source *s, void *out, size_t cap, size_t *got);

/* Back to the first byte; allowed at any time. Fails: ACF_EIO when the file already has another size. */
acf_status acf_source_rewind(acf_source *s);

#endif
