/* Reads the text form of masks, which tables (masks.h) and images (image_masks.h) share: parts NAME or
 * NAME:ARGUMENTS, each optionally followed by *WEIGHT, joined by '+'. Spaces are allowed around '+' and '*'.
 *
 * Every take function moves past what it reads. On failure the reader stays where the message should point. */
#ifndef ACF_TABLE_MASK_READER_H
#define ACF_TABLE_MASK_READER_H

#include "base/status.h"

/* The position of the reader; borrows the text. */
typedef struct acf_mask_reader {
    const char *text, *at;
} acf_mask_reader;

void acf_mask_skip_spaces(acf_mask_reader *r);
bool acf_mask_take(acf_mask_reader *r, char c);

/* Which of n names the lower-case word at this position is, or -1. */
int acf_mask_take_name(acf_mask_reader *r, const char *const *names, int n);

/* Reads a number without a sign. The sign of an exponent is part of it; a later '+' or '-' is not. */
bool acf_mask_take_number(acf_mask_reader *r, double *out);

/* Reads *WEIGHT; 1 if absent. Fails: ACF_EUSAGE. */
acf_status acf_mask_take_weight(acf_mask_reader *r, double *out);

/* ACF_EUSAGE: "masks 'bernoulli:2': at '2': expected ...". */
acf_status acf_mask_wrong(const acf_mask_reader *r, const char *expected);

#endif
