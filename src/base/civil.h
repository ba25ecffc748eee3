/* Dates of the Gregorian calendar, counted forwards and backwards from 1970-01-01, without time zones. The C library's
 * functions are not used because they share static memory and read the environment. */
#ifndef ACF_BASE_CIVIL_H
#define ACF_BASE_CIVIL_H

#include <stdint.h>

typedef struct acf_civil {
    int64_t year;
    int month, day; /* from 1 */
} acf_civil;

/* The date that many days after 1970-01-01, and back. |days| < 2^50. A month beyond 12 runs into the next years. */
acf_civil acf_civil_of(int64_t days);
int64_t acf_civil_days(acf_civil date);

#endif
