/* Dates: see civil.h. Years are counted from 1 March, so the leap day is the last of its year and the lengths of the
 * months follow one line, (153 m + 2) / 5. 400 years have 146,097 days; then everything repeats. */
#include "base/civil.h"

#define ERA_DAYS 146097
#define MARCH_0000 719468 /* days from 0000-03-01 to 1970-01-01 */

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

acf_civil acf_civil_of(int64_t days) {
    const int64_t z = days + MARCH_0000, era = floor_div(z, ERA_DAYS), day = z - era * ERA_DAYS;
    /* The three corrections take back the leap days of 4, 100 and 400 years. */
    const int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    const int64_t of_year = day - (365 * year + year / 4 - year / 100), m = (5 * of_year + 2) / 153;
    const int month = (int)(m < 10 ? m + 3 : m - 9);
    return (acf_civil){era * 400 + year + (month <= 2), month, (int)(of_year - (153 * m + 2) / 5 + 1)};
}

int64_t acf_civil_days(acf_civil date) {
    const int64_t months = date.month - 3, carry = floor_div(months, 12), m = months - carry * 12;
    const int64_t y = date.year + carry, era = floor_div(y, 400), year = y - era * 400;
    return era * ERA_DAYS + 365 * year + year / 4 - year / 100 + (153 * m + 2) / 5 + date.day - 1 - MARCH_0000;
}
