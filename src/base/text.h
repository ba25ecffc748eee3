/* Text: writing into a caller's buffer, reading numbers strictly, finding the intended name.
 *
 * Used by everything that meets a person or a file: options, JSON, help, progress. Strings here are short (names,
 * values, help pages of a few kilobytes), so plain loops suffice. Nothing here depends on the locale: a decimal point
 * is always '.'. */
#ifndef ACF_BASE_TEXT_H
#define ACF_BASE_TEXT_H

#include "base/status.h"

/* ---- writing into a caller's buffer ----------------------------------------------------------------------------- */

/* A bounded writer: text that does not fit is counted and dropped, so one pass gives both the text and its size.
 *
 *     acf_text t = acf_text_into(out, cap);
 *     acf_text_addf(&t, "%d rows", n);
 *     return acf_text_done(&t, needed); */
typedef struct acf_text {
    char *out; /* NUL-terminated at all times when cap > 0; may be NULL when cap is 0 */
    size_t cap;
    size_t len; /* bytes wanted so far, without the NUL; may exceed cap */
} acf_text;

/* Borrows out until acf_text_done. */
acf_text acf_text_into(char *out, size_t cap);
void acf_text_add(acf_text *t, const char *s);
void acf_text_add_bytes(acf_text *t, const char *s, size_t n);
void acf_text_addf(acf_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Adds the words of s, wrapped before column `width` and indented by `indent`; `column` is the cursor's position. Ends
 * without a newline. A word longer than a line is not broken. */
void acf_text_wrap(acf_text *t, const char *s, size_t indent, size_t width, size_t column);

/* Sets *needed (NULL allowed) to the bytes the text takes with its NUL. Fails: ACF_ESPACE. */
acf_status acf_text_done(const acf_text *t, size_t *needed);

/* ---- quoting ---------------------------------------------------------------------------------------------------- */

#define ACF_EXCERPT_MAX 64

/* A short piece of untrusted text, safe to print in a message: control characters and broken UTF-8 become '?', long
 * text is cut with "...". Returns out. */
char *acf_text_excerpt(char out[ACF_EXCERPT_MAX], const char *s);

/* Is s (n bytes) well-formed UTF-8? Overlong forms, surrogates and values above U+10FFFF are not. */
bool acf_text_is_utf8(const char *s, size_t n);

/* Bytes of the UTF-8 character at s, of which n >= 1 bytes are available; 0 if it is malformed or cut. */
size_t acf_text_utf8_char(const char *s, size_t n);

/* ---- names ------------------------------------------------------------------------------------------------------ */

/* Equality of names; '-' and '_' are the same letter. */
bool acf_text_same_name(const char *a, const char *b);

/* Fewest insertions, deletions, replacements and swaps of neighbours that turn a into b; '-' equals '_'. Only the first
 * 63 bytes count: names are shorter. */
int acf_text_distance(const char *a, const char *b);

/* The index of the name in names[0..n) that `word` probably meant, or -1: at most a third of the letters differ, or the
 * word begins the name. */
int acf_text_nearest(const char *word, const char *const *names, int n);

/* ---- reading, strictly: the whole string or false ---------------------------------------------------------------- */

bool acf_text_to_int(const char *s, int64_t *out); /* [+-]digits */
bool acf_text_to_real(const char *s, double *out); /* decimal, finite; no hex, inf, nan or spaces */
bool acf_text_to_bool(const char *s, bool *out);   /* true yes on 1, false no off 0 */

/* ---- numbers for people and files -------------------------------------------------------------------------------- */

#define ACF_NUMBER_MAX 40

/* The shortest decimal that reads back as exactly v, always with '.'. v finite. Each returns out. */
char *acf_text_real(char out[ACF_NUMBER_MAX], double v);
char *acf_text_bytes(char out[ACF_NUMBER_MAX], uint64_t bytes);    /* "312 B", "1.5 MiB" */
char *acf_text_duration(char out[ACF_NUMBER_MAX], double seconds); /* "0.3 s", "42 s", "3m05s", "2h07m", "5d03h" */

#endif
