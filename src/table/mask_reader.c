/* The text form of masks: see mask_reader.h. */
#include "table/mask_reader.h"

#include "base/text.h"

#include <string.h>

void acf_mask_skip_spaces(acf_mask_reader *r) { r->at += strspn(r->at, " \t"); }

bool acf_mask_take(acf_mask_reader *r, char c) {
    if (*r->at != c) return false;
    r->at++;
    return true;
}

int acf_mask_take_name(acf_mask_reader *r, const char *const *names, int n) {
    const size_t length = strspn(r->at, "abcdefghijklmnopqrstuvwxyz");
    for (int k = 0; k < n; k++)
        if (strlen(names[k]) == length && strncmp(names[k], r->at, length) == 0) {
            r->at += length;
            return k;
        }
    return -1;
}

bool acf_mask_take_number(acf_mask_reader *r, double *out) {
    const char *digits = "0123456789.";
    size_t n = strspn(r->at, digits);
    if (n > 0 && (r->at[n] == 'e' || r->at[n] == 'E')) {
        n += 1;
        n += r->at[n] == '+' || r->at[n] == '-';
        n += strspn(r->at + n, digits);
    }
    char number[ACF_NUMBER_MAX];
    if (n == 0 || n >= sizeof number) return false;
    memcpy(number, r->at, n);
    number[n] = '\0';
    if (!acf_text_to_real(number, out)) return false;
    r->at += n;
    return true;
}

acf_status acf_mask_take_weight(acf_mask_reader *r, double *out) {
    *out = 1.0;
    acf_mask_skip_spaces(r);
    if (!acf_mask_take(r, '*')) return ACF_OK;
    acf_mask_skip_spaces(r);
    const acf_mask_reader start = *r;
    if (!acf_mask_take_number(r, out) || !(*out > 0.0 && *out <= 1e100))
        return acf_mask_wrong(&start, "a weight above 0, at most 1e100");
    acf_mask_skip_spaces(r);
    return ACF_OK;
}

acf_status acf_mask_wrong(const acf_mask_reader *r, const char *expected) {
    char whole[ACF_EXCERPT_MAX], rest[ACF_EXCERPT_MAX];
    acf_text_excerpt(whole, r->text);
    if (!*r->at) return acf_fail(ACF_EUSAGE, "masks '%s': at the end: expected %s", whole, expected);
    return acf_fail(ACF_EUSAGE, "masks '%s': at '%s': expected %s", whole, acf_text_excerpt(rest, r->at), expected);
}
