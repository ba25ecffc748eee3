/* Warnings: messages that are not failures, about assumptions, omissions and oddities. A few for each table. */
#ifndef ACF_TABLE_WARNINGS_H
#define ACF_TABLE_WARNINGS_H

#include "base/arena.h"

#define ACF_WARNINGS_MAX 100 /* nobody would read more; the last place says how many are left out */

/* All zeros at the start. Free with acf_warnings_clear. */
typedef struct acf_warnings {
    int n;
    char *text[ACF_WARNINGS_MAX];
    int64_t left_out;
} acf_warnings;

/* Adds a warning; a long one is cut. Fails: ACF_EMEMORY. */
acf_status acf_warnings_addf(acf_warnings *warnings, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void acf_warnings_clear(acf_warnings *warnings);

#endif
