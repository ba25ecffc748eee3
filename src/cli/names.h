/* Names that a user types: compared, quoted in a message, and guessed for "did you mean". */
#ifndef ACF_CLI_NAMES_H
#define ACF_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Equality of names; log_level and log-level are one name. */
bool cli_same_name(const char *a, const char *b);

/* The index of the name among n that the word probably means, or -1 if none is similar. */
int cli_nearest(const char *word, const char *const *names, int n);

#define CLI_EXCERPT_MAX 64
/* The begin of a foreign word, for a message: control characters become '?', as they could repaint a terminal. Returns
 * out. */
char *cli_excerpt(char out[CLI_EXCERPT_MAX], const char *word);

#endif
