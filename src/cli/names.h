/* Names that a user types: compared, quoted in a message, and guessed for "did you mean". */
#ifndef ACF_CLI_NAMES_H
#define ACF_CLI_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* log_level and log-level are one name. */
bool cli_same_name(const char *a, const char *b);

/* Which of the n names is the word likely to mean? Its index, or -1 if none is near. */
int cli_nearest(const char *word, const char *const *names, int n);

#define CLI_EXCERPT_MAX 64
/* The beginning of a word from outside, for a message: control characters become '?', as they could repaint a terminal.
 * Returns out. */
char *cli_excerpt(char out[CLI_EXCERPT_MAX], const char *word);

#endif
