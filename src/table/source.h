/* The bytes of an input: a file, a gzip file, a pipe or standard input. Each can be read twice.
 *
 *     regular file   pread ------------------------------.
 *     pipe, stdin    read, kept in an unlinked spool ----+--> checksum --> [inflate, if it is gzip] --> caller
 *                    (pass two: pread of the spool)      |
 *                                                        `--> pass two: the same bytes as in pass one, or ACF_EIO
 *
 * Types of a table come from one pass and its values from another, so a change of the file in between must be detected.
 * Raw bytes are summed (CRC-32) as they pass. Where pass one stopped, pass two must have the same sum, and the same
 * end. A spool has no name, so nothing stays after a crash; it is in $TMPDIR or /tmp and is as large as the piped
 * input. */
#ifndef ACF_TABLE_SOURCE_H
#define ACF_TABLE_SOURCE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* One input, used by one thread. */
typedef struct acf_source acf_source;

/* Opens path; "-" is standard input, which may be opened once. The first bytes, not the name, tell whether it is gzip.
 * Gives *out; close with acf_source_close. Fails: ACF_EIO (missing, not readable, a folder), ACF_EDATA (a compression
 * other than gzip), ACF_EMEMORY. */
acf_status acf_source_open(const char *path, acf_source **out);
void acf_source_close(acf_source *s); /* NULL is allowed */

/* Opens another reader of the same bytes, at the first of them, for another thread: it must read what s has read. s has
 * reached the end of the input, and is not read meanwhile. Gives *out. Fails: ACF_EIO (no more file descriptors),
 * ACF_EMEMORY. */
acf_status acf_source_again(const acf_source *s, acf_source **out);

/* The name in messages: the path, or "standard input". */
const char *acf_source_name(const acf_source *s);
bool acf_source_is_gzip(const acf_source *s);

/* Reads the next bytes, decompressed: always cap of them, fewer only at the end of the input. Fails: ACF_EIO (also if a
 * second pass finds other bytes than the first), ACF_EDATA (a gzip stream that is truncated or corrupt),
 * ACF_EMEMORY. */
acf_status acf_source_read(acf_source *s, void *out, size_t cap, size_t *got);

/* Returns to the first byte; allowed at any time. Fails: ACF_EIO if the size of the file has changed. */
acf_status acf_source_rewind(acf_source *s);

#endif
