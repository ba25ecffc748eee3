/* Counts of distinct texts: see text_counts.h. Open addressing with linear probing, at most half full. */
#include "table/text_counts.h"

#include <string.h>

#define FIRST_ROOM 16

acf_status acf_text_arena(acf_arena **out) {
    acf_memory packed = acf_heap;
    packed.align = 1;
    return acf_arena_create(&packed, 0, out);
}

/* The NUL is for messages and strcmp; comparisons use the length. */
char *acf_text_keep(acf_arena *texts, const char *text, size_t n) {
    char *copy = acf_arena_alloc(texts, n + 1);
    if (!copy) return NULL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

/* 1 to 7 bytes as a number; with the length, which the caller mixes in, it is unique. Two overlapping loads replace a
 * copy of unknown length, because most texts of a table are this short. */
static uint64_t few_bytes(const char *p, size_t n) {
    uint32_t low, high;
    if (n < 4)
        return (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[n / 2] << 8 | (unsigned char)p[n - 1];
    memcpy(&low, p, 4);
    memcpy(&high, p + n - 4, 4);
    return (uint64_t)high << 32 | low;
}

/* Eight bytes at a time: the multiplication carries every bit upwards, the shift brings the upper bits down. */
static uint64_t hash(const char *text, size_t n) {
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t h = odd ^ n, word;
    for (; n >= 8; text += 8, n -= 8) {
        memcpy(&word, text, 8);
        h = (h ^ word) * odd;
        h ^= h >> 29;
    }
    if (n > 0) h = (h ^ few_bytes(text, n)) * odd;
    h ^= h >> 29;
    return h * odd >> 20;
}

/* No memory yet: a table of a thousand columns has two thousand of these, and most stay empty. */
acf_text_counts acf_text_counts_make(int64_t cap, acf_arena *texts) {
    ACF_ASSERT(cap <= (int64_t)1 << 30);
    return (acf_text_counts){.cap = cap, .texts = texts};
}

void acf_text_counts_clear(acf_text_counts *t) {
    acf_release(t->entry);
    acf_release(t->slot);
    *t = (acf_text_counts){0};
}

/* The slot of a text, or the free slot where it would go. There is always a free one. */
static int64_t slot_of(const acf_text_counts *t, const char *text, size_t n) {
    int64_t mask = 2 * t->capacity - 1, at = (int64_t)hash(text, n) & mask;
    for (; t->slot[at]; at = (at + 1) & mask) {
        const acf_text_counts_entry *e = &t->entry[t->slot[at] - 1];
        if (e->length == n && memcmp(e->text, text, n) == 0) break;
    }
    return at;
}

/* Doubles the capacity. The texts stay in place; the slots are recomputed. */
static acf_status grow(acf_text_counts *t) {
    int64_t capacity = t->capacity ? 2 * t->capacity : FIRST_ROOM;
    acf_text_counts_entry *entry = acf_alloc((size_t)capacity * sizeof *entry, "a list of distinct values");
    int32_t *slot = entry ? acf_alloc_zero((size_t)(2 * capacity) * sizeof *slot, "a list of distinct values") : NULL;
    if (!slot) {
        acf_release(entry);
        return ACF_EMEMORY;
    }
    if (t->n > 0) memcpy(entry, t->entry, (size_t)t->n * sizeof *entry);
    acf_release(t->entry);
    acf_release(t->slot);
    t->entry = entry, t->slot = slot, t->capacity = capacity;
    for (int64_t i = 0; i < t->n; i++) t->slot[slot_of(t, entry[i].text, entry[i].length)] = (int32_t)i + 1;
    return ACF_OK;
}

/* Grow before the search, so that the slot found stays valid. */
acf_status acf_text_counts_add(acf_text_counts *t, const char *text, size_t n, int64_t row) {
    if (t->n == t->capacity && t->n < t->cap) ACF_TRY(grow(t));
    int64_t at = t->capacity ? slot_of(t, text, n) : 0;
    if (t->capacity && t->slot[at]) {
        t->entry[t->slot[at] - 1].count++;
        return ACF_OK;
    }
    if (t->n == t->cap) {
        t->beyond++;
        return ACF_OK;
    }
    char *copy = acf_text_keep(t->texts, text, n);
    if (!copy) return ACF_EMEMORY;
    t->entry[t->n] = (acf_text_counts_entry){copy, n, 1, row};
    t->slot[at] = (int32_t)++t->n;
    return ACF_OK;
}

int64_t acf_text_counts_find(const acf_text_counts *t, const char *text, size_t n) {
    return t->capacity ? t->slot[slot_of(t, text, n)] - 1 : -1;
}
