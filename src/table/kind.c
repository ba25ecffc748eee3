/* The list of column kinds: see kind.h. */
#include "table/kind.h"

#include <string.h>

#define LIST_MAX 64 /* maximum number of words listed in a message */

#define ACF_KIND(name) extern const acf_kind acf_kind_##name;
#include "table/kind_list.h"
#undef ACF_KIND

const acf_kind *const acf_kinds[] = {
#define ACF_KIND(name) &acf_kind_##name,
#include "table/kind_list.h"
#undef ACF_KIND
    NULL};

const acf_kind acf_kind_auto = {.name = "auto"};

const acf_kind *acf_kind_named(const char *name) {
    for (int k = 0; acf_kinds[k]; k++)
        if (strcmp(acf_kinds[k]->name, name) == 0) return acf_kinds[k];
    return NULL;
}

static bool is_word(const char *word, const char *text, size_t n) {
    return word && strlen(word) == n && memcmp(word, text, n) == 0;
}

const acf_kind *acf_kind_from_word(const char *word, size_t n) {
    for (int k = 0; acf_kinds[k]; k++) {
        if (is_word(acf_kinds[k]->alias, word, n)) return acf_kinds[k];
        for (int i = 0; i < ACF_KIND_WORDS; i++)
            if (is_word(acf_kinds[k]->words[i], word, n)) return acf_kinds[k];
    }
    return NULL;
}

static void add_list(acf_text *out, const char *const *word, int n) {
    for (int i = 0; i < n; i++) acf_text_addf(out, "%s%s", i == 0 ? "" : i == n - 1 ? " or " : ", ", word[i]);
}

void acf_kind_add_names(acf_text *out) {
    const char *name[LIST_MAX];
    int n = 0;
    for (int k = 0; acf_kinds[k] && n < LIST_MAX; k++) name[n++] = acf_kinds[k]->name;
    add_list(out, name, n);
}

void acf_kind_add_words(acf_text *out) {
    const char *word[LIST_MAX];
    int n = 0;
    for (int k = 0; acf_kinds[k]; k++)
        for (int i = 0; i < ACF_KIND_WORDS && n < LIST_MAX; i++)
            if (acf_kinds[k]->words[i]) word[n++] = acf_kinds[k]->words[i];
    add_list(out, word, n);
}

/* Tries every kind whose order is below the best so far, so the position in the list does not matter. By default a
 * column of numbers is an integer, and one of texts a category. */
const acf_kind *acf_kind_recognise(const acf_profile_column *c, const char *name) {
    const acf_kind *best = NULL;
    for (int k = 0; acf_kinds[k]; k++) {
        const acf_kind *is = acf_kinds[k];
        if (is->recognise && (!best || is->order < best->order) && is->recognise(c, name)) best = is;
    }
    ACF_ASSERT(best);
    return best;
}

const acf_kind *acf_kind_in_memory(int32_t classes, bool whole) {
    return classes > 0 ? &acf_kind_category : whole ? &acf_kind_integer : &acf_kind_real;
}
