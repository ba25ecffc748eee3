/* Reading the text form of masks, which tables (masks.h) and images (image_masks.h) share: parts NAME or NAME:ARGUMENTS, each followed by
 * *WEIGHT or not, joined by '+'; spaces are allowed around '+' and '*'.
 *
 * Every take function moves on over what it takes, and leaves the reader where a sentence should point otherwise. */
#ifndef ACF_TABLE_MASK_READER_H
#define ACF_TABLE_MASK_READER_H

#include "base/status.h"

/* Where reading stands; borrows the text. */
typedef struct acf_mask_reader {
    const char *text, *at;
} acf_mask_reader;

void acf_mask_skip_spaces(acf_mask_reader *r);
bool acf_mask_take(acf_mask_reader *r, char c);

/* Which of n names the lower-case word here is, or -1. */
int acf_mask_take_name(acf_mask_reader *r, const char *const *names, int n);

/* A number without a sign. It ends where no more of it can follow: the sign of an exponent is part of it, a '+' or '-' after that is not. */
bool acf_mask_take_number(acf_mask_reader *r, double *out);

/* *WEIGHT, or nothing, which is 1. Fails: ACF_EUSAGE. */
acf_status acf_mask_take_weight(acf_mask_reader *r, double *out);

/* ACF_EUSAGE: "masks 'bernoulli:2': at '2': expected ...". */
acf_status acf_mask_wrong(const acf_mask_reader *r, const char *expected);

#endif
