/* NA strings: see na_strings.h. */
#include "table/na_strings.h"

#include <string.h>

#define MARKERS_MAX 65536

/* Far more than a user would name. A hostile schema file may try more. */
acf_na_strings acf_na_strings_make(acf_arena *texts) {
    return (acf_na_strings){.list = acf_text_counts_make(MARKERS_MAX, texts)};
}

void acf_na_strings_clear(acf_na_strings *m) { acf_text_counts_clear(&m->list); }

/* usual: from the default list. A name given by the user takes precedence, whether it comes before or after. */
static acf_status add(acf_na_strings *m, const char *text, size_t n, bool usual) {
    const bool known = acf_text_counts_find(&m->list, text, n) >= 0;
    ACF_TRY(acf_text_counts_add(&m->list, text, n, usual));
    if (known && !usual) m->list.entry[acf_text_counts_find(&m->list, text, n)].first = 0;
    m->length[n ? (unsigned char)*text : 0] |= (uint32_t)1 << (n < 31 ? n : 31);
    return ACF_OK;
}

acf_status acf_na_strings_add(acf_na_strings *m, const char *text, size_t n) { return add(m, text, n, false); }

static const char *const usual_ones[] = ACF_NA_STRINGS_USUAL;
static const char *const doubtful[] = ACF_NA_STRINGS_DOUBTFUL;
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static bool is_in(const char *const *list, size_t count, const char *text, size_t n) {
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == n && memcmp(list[i], text, n) == 0) return true;
    return false;
}

acf_status acf_na_strings_add_usual(acf_na_strings *m) {
    for (size_t i = 0; i < COUNT(usual_ones); i++) ACF_TRY(add(m, usual_ones[i], strlen(usual_ones[i]), true));
    return ACF_OK;
}

bool acf_na_strings_is_usual(const char *text, size_t n) { return is_in(usual_ones, COUNT(usual_ones), text, n); }

bool acf_na_strings_in_doubt(const acf_na_strings *m, const char *text, size_t n) {
    if (!is_in(doubtful, COUNT(doubtful), text, n)) return false;
    const int64_t at = acf_text_counts_find(&m->list, text, n);
    return at >= 0 && m->list.entry[at].first == 1;
}

/* An item may be empty; it stands for the empty cell. */
acf_status acf_na_strings_add_list(acf_na_strings *m, const char *list) {
    while (*list) {
        size_t n = strcspn(list, ",");
        ACF_TRY(acf_na_strings_add(m, list, n));
        list += n + (list[n] == ',');
    }
    return ACF_OK;
}
