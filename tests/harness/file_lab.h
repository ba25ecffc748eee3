/* Files for tests: in memory with an ordinary path, because thousands are made and the disk is not tested; gzip made
 * from bytes; a locale that writes decimal commas. */
#ifndef ACF_HARNESS_FILE_LAB_H
#define ACF_HARNESS_FILE_LAB_H

#include "harness/check.h"

#include <stdbool.h>

typedef struct acf_memfile {
    int fd;
    char path[40];
} acf_memfile;

acf_memfile acf_memfile_create(void);
void acf_memfile_put(const acf_memfile *f, const void *bytes, size_t n); /* becomes these bytes */
void acf_memfile_free(const acf_memfile *f);

/* A folder of its own in /tmp, removed with its contents. */
typedef struct acf_lab_folder {
    char path[40];
} acf_lab_folder;

acf_lab_folder acf_lab_folder_make(void);
void acf_lab_folder_put(const acf_lab_folder *f, const char *name, const void *bytes, size_t n); /* a file */
int acf_lab_folder_entries(const acf_lab_folder *f); /* files and folders in it */
void acf_lab_folder_free(const acf_lab_folder *f);

/* One gzip member of these bytes to out (cap); returns its length. */
size_t acf_lab_gzip(const void *bytes, size_t n, void *out, size_t cap);

/* Sets LC_NUMERIC to a locale with a decimal comma, installed or compiled for this; false: neither is possible. The
 * caller sets it back to "C". */
bool acf_lab_comma_locale(void);

#endif
