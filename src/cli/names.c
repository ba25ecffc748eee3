/* Names that a user types: see names.h. The library has its own such functions for columns and options; they are not
 * public, and the command line is built on acflow.h alone. */
#include "cli/names.h"

#include <string.h>

#define NAME_BYTES 63

static char letter(char c) { return c == '_' ? '-' : c; }

bool cli_same_name(const char *a, const char *b) {
    while (*a && letter(*a) == letter(*b)) a++, b++;
    return *a == *b;
}

static int least(int a, int b) { return a < b ? a : b; }

/* Edits from a to b: a letter inserted, deleted, replaced, or two swapped. Three rows of the usual table: a swap looks
 * two back. */
static int distance(const char *a, const char *b) {
    int rows[3][NAME_BYTES + 1];
    int *two = rows[0], *one = rows[1], *now = rows[2];
    const int na = (int)strnlen(a, NAME_BYTES), nb = (int)strnlen(b, NAME_BYTES);
    for (int j = 0; j <= nb; j++) now[j] = j;
    for (int i = 1; i <= na; i++) {
        int *spare = two;
        two = one, one = now, now = spare;
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int replace = one[j - 1] + (letter(a[i - 1]) != letter(b[j - 1]));
            now[j] = least(replace, least(one[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && letter(a[i - 1]) == letter(b[j - 2]) && letter(a[i - 2]) == letter(b[j - 1]))
                now[j] = least(now[j], two[j - 2] + 1);
        }
    }
    return now[nb];
}

/* Too many names begin with the same letter for a hint. */
static bool begins(const char *word, const char *name) {
    size_t n = 0;
    for (; word[n]; n++)
        if (letter(word[n]) != letter(name[n])) return false;
    return n >= 2;
}

/* At most a third of the letters may differ. Among equals the first wins. */
int cli_nearest(const char *word, const char *const *names, int n) {
    int best = -1, best_distance = 0;
    for (int i = 0; i < n; i++) {
        const int d = distance(word, names[i]);
        const size_t longer = strlen(word) > strlen(names[i]) ? strlen(word) : strlen(names[i]);
        if ((d > (int)(longer + 2) / 3 || longer < 2) && !begins(word, names[i])) continue;
        if (best >= 0 && d >= best_distance) continue;
        best = i;
        best_distance = d;
    }
    return best;
}

char *cli_excerpt(char out[CLI_EXCERPT_MAX], const char *word) {
    size_t n = strlen(word), capacity = CLI_EXCERPT_MAX - 4;
    const bool cut = n > CLI_EXCERPT_MAX - 1;
    if (cut) n = capacity;
    while (cut && n > 0 && ((unsigned char)word[n] & 0xc0) == 0x80) n--; /* not inside a UTF-8 character */
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)word[i];
        /* U+0080..U+009F, written c2 80..c2 9f, are control characters, too. */
        const bool high = c >= 0x80 && c < 0xa0 && i > 0 && (unsigned char)word[i - 1] == 0xc2;
        out[i] = c < 0x20 || c == 0x7f || high ? '?' : word[i];
    }
    strcpy(out + n, cut ? "..." : "");
    return out;
}
