/* Files: reads a whole file, or replaces one so that a reader never sees half of it.
 *
 * Used for config files, model headers and results. A new file is written beside its target under a temporary name,
 * synced, renamed over the target, and the folder is synced. After a crash there is the old file or the new one. On any
 * failure the old file is unchanged and the temporary one is removed. A character device (/dev/null) or a pipe cannot
 * be replaced and is written to directly. */
#ifndef ACF_BASE_FILE_H
#define ACF_BASE_FILE_H

#include "base/status.h"

/* Reads a whole file of at most `max` bytes, and adds a NUL that is not counted in *len. Gives *out; free it with
 * acf_release. Also works for pipes and /proc, whose size is not known before. Fails: ACF_EIO, ACF_EMEMORY. */
acf_status acf_file_read(const char *path, size_t max, char **out, size_t *len);

/* A file that is being replaced. */
typedef struct acf_outfile acf_outfile;

/* Starts replacing `path`, which must be absent, a regular file, a character device or a pipe. Waits until a pipe has a
 * reader. A link stays a link: its target is replaced, or made if it does not exist (as a shell's > does), so `latest`
 * may be set before the first run. Gives *out; end it with acf_outfile_commit or acf_outfile_abort. Fails: ACF_EIO,
 * ACF_EMEMORY. */
acf_status acf_outfile_open(const char *path, acf_outfile **out);
acf_status acf_outfile_write(acf_outfile *f, const void *data, size_t n);

/* Commit puts the new file in place; abort changes nothing. Both free f. */
acf_status acf_outfile_commit(acf_outfile *f);
void acf_outfile_abort(acf_outfile *f); /* NULL is allowed */

/* All three in one: replaces `path` by these bytes. */
acf_status acf_file_write(const char *path, const void *data, size_t n);

#endif
