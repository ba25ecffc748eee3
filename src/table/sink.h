/* The output of a written table: a file that appears once it is complete, plain or compressed, or standard output
 * directly. Buffered. */
#ifndef ACF_TABLE_SINK_H
#define ACF_TABLE_SINK_H

#include "base/status.h"

typedef struct acf_sink acf_sink;

/* path "-": standard output; *.gz: compressed (gzip). Gives *out; end with acf_sink_commit or acf_sink_abort.
 * Fails: ACF_EIO, ACF_EMEMORY. */
acf_status acf_sink_open(const char *path, acf_sink **out);
acf_status acf_sink_write(acf_sink *s, const void *data, size_t n);

/* Writes the rest and puts the file in place. On failure an existing file stays unchanged. Frees s in any case. */
acf_status acf_sink_commit(acf_sink *s);
void acf_sink_abort(acf_sink *s); /* NULL is allowed */

#endif
