/* Memory: see arena.h. Only this file and api/ call malloc. */
#include "base/arena.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ACF_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ACF_ASAN 1
#endif
#endif
#ifdef ACF_ASAN
#include <sanitizer/asan_interface.h>
#define ASAN_CLOSE(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define ASAN_OPEN(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#define REDZONE ((size_t)64) /* a closed gap after each allocation, so that an overrun inside a block is caught */
#else
#define ASAN_CLOSE(p, n) ((void)(p), (void)(n))
#define ASAN_OPEN(p, n) ((void)(p), (void)(n))
#define REDZONE ((size_t)0)
#endif

#define FIRST_BLOCK ((size_t)1 << 16)
#define MAX_BLOCKS 48 /* blocks double, so memory runs out before this is reached */

/* ---- the counted heap ------------------------------------------------------------------------------------------ */

static _Thread_local int64_t n_allocs, n_live, fail_at;

int64_t acf_alloc_count(void) { return n_allocs; }
int64_t acf_alloc_live(void) { return n_live; }
void acf_alloc_fail_at(int64_t n) { fail_at = n; }

/* The only call of the C library's allocator. Sizes are rounded up to whole cache lines: aligned_alloc requires it, and
 * vector loops may then run to the end of the last line. Zero bytes get a line too, so NULL always means failure. */
static void *heap_alloc(void *ctx, size_t bytes) {
    (void)ctx;
    n_allocs++;
    if (fail_at > 0 && --fail_at == 0) {
        fail_at = 1; /* and every later one */
        return NULL;
    }
    if (bytes > SIZE_MAX - ACF_HOST_ALIGN) return NULL;
    size_t rounded = (bytes + ACF_HOST_ALIGN - 1) / ACF_HOST_ALIGN * ACF_HOST_ALIGN;
    void *p = aligned_alloc(ACF_HOST_ALIGN, rounded ? rounded : ACF_HOST_ALIGN);
    if (p) n_live++;
    return p;
}

static void heap_free(void *ctx, void *p) {
    (void)ctx;
    if (!p) return;
    n_live--;
    free(p);
}

const acf_memory acf_heap = {NULL, heap_alloc, heap_free, ACF_HOST_ALIGN, true, NULL, NULL};

void *acf_alloc(size_t bytes, const char *what) {
    void *p = heap_alloc(NULL, bytes);
    if (!p) acf_fail(ACF_EMEMORY, "out of memory: %zu bytes for %s", bytes, what);
    return p;
}

void *acf_alloc_zero(size_t bytes, const char *what) {
    void *p = acf_alloc(bytes, what);
    if (p) memset(p, 0, bytes);
    return p;
}

char *acf_alloc_text(const char *text, const char *what) {
    size_t n = strlen(text) + 1;
    char *p = acf_alloc(n, what);
    if (p) memcpy(p, text, n);
    return p;
}

void acf_release(void *p) { heap_free(NULL, p); }

/* Counts come from files and users. A product that wraps around would become a small allocation and a large write. */
bool acf_bytes(int64_t n, size_t size, size_t *out) {
    if (n < 0 || __builtin_mul_overflow((size_t)n, size, out)) {
        acf_fail(ACF_EMEMORY, "out of memory: %lld elements of %zu bytes are more than can be addressed", (long long)n,
                 size);
        return false;
    }
    return true;
}

/* ---- the arena ------------------------------------------------------------------------------------------------ */

typedef struct block {
    char *data;
    size_t size, used;
} block;

struct acf_arena {
    acf_memory mem;
    block block[MAX_BLOCKS];
    int n_blocks, current;
    size_t first_size, below; /* below: bytes used in the blocks before `current` */
    size_t high_water;
};

/* Takes no block yet, because many arenas of a model are never used. */
acf_status acf_arena_create(const acf_memory *mem, size_t first_block, acf_arena **out) {
    acf_arena *a = acf_alloc_zero(sizeof *a, "an arena");
    if (!a) return ACF_EMEMORY;
    a->mem = mem ? *mem : acf_heap;
    a->first_size = first_block ? first_block : FIRST_BLOCK;
    *out = a;
    return ACF_OK;
}

/* The heap must get its memory back readable, or ASan would blame the next owner. */
static void open_again(block *b) { ASAN_OPEN(b->data, b->size); }

void acf_arena_free(acf_arena *a) {
    if (!a) return;
    for (int i = 0; i < a->n_blocks; i++) {
        if (a->mem.host) open_again(&a->block[i]);
        a->mem.free(a->mem.ctx, a->block[i].data);
    }
    acf_release(a);
}

/* Makes memory unreadable. 0xFF bytes are a NaN in both float types, so a value that is used before it is written or
 * after it is released shows in every result. */
static void poison(const acf_arena *a, char *p, size_t bytes) {
#ifdef ACF_DEBUG
    if (!a->mem.host && a->mem.poison && bytes) a->mem.poison(a->mem.ctx, p, bytes);
#endif
    if (!a->mem.host) return;
#ifdef ACF_DEBUG
    ASAN_OPEN(p, bytes);
    memset(p, 0xFF, bytes);
#endif
    ASAN_CLOSE(p, bytes);
}

/* Moves to the next block with enough capacity. If there is none, adds one twice as large as the last. */
static acf_status next_block(acf_arena *a, size_t bytes) {
    while (a->current + 1 < a->n_blocks) {
        a->below += a->block[a->current].used;
        a->current++;
        if (a->block[a->current].size >= bytes) return ACF_OK;
    }
    size_t size = a->n_blocks ? a->block[a->n_blocks - 1].size * 2 : a->first_size;
    if (size < bytes) size = bytes;
    char *data = a->n_blocks < MAX_BLOCKS ? a->mem.alloc(a->mem.ctx, size) : NULL;
    if (!data && size > bytes && a->n_blocks < MAX_BLOCKS) data = a->mem.alloc(a->mem.ctx, size = bytes);
    if (!data && a->mem.refuse) return a->mem.refuse(a->mem.ctx, bytes, acf_arena_used(a));
    if (!data)
        return acf_fail(ACF_EMEMORY, "out of memory: %zu bytes asked for, %zu in use here; try a smaller batch", bytes,
                        acf_arena_used(a));
    if (a->n_blocks) a->below += a->block[a->current].used;
    a->current = a->n_blocks++;
    a->block[a->current] = (block){data, size, 0};
    poison(a, data, size);
    return ACF_OK;
}

/* The common case is an addition and a comparison. If the rest of a block is too small, the next block is used and the
 * rest stays empty until it is released. This is simpler than a search and wastes little, as blocks double. */
void *acf_arena_alloc(acf_arena *a, size_t bytes) {
    size_t align = a->mem.align;
    if (bytes > SIZE_MAX / 2) {
        acf_fail(ACF_EMEMORY, "out of memory: %zu bytes asked for at once", bytes);
        return NULL;
    }
    size_t capacity = (bytes + REDZONE + align - 1) / align * align;
    if (capacity == 0) capacity = align;
    if (a->n_blocks == 0 || a->block[a->current].size - a->block[a->current].used < capacity)
        if (next_block(a, capacity) != ACF_OK) return NULL;
    block *b = &a->block[a->current];
    char *p = b->data + b->used;
    b->used += capacity;
    size_t used = a->below + b->used;
    if (used > a->high_water) a->high_water = used;
    if (a->mem.host) ASAN_OPEN(p, bytes);
    return p;
}

/* A mark of an arena without blocks is the beginning of block 0, which exists later. */
acf_mark acf_arena_mark(const acf_arena *a) {
    return (acf_mark){a->current, a->n_blocks ? a->block[a->current].used : 0};
}

/* Walks back block by block, so that the contents of each are poisoned. A release inside one block is one step. */
void acf_arena_release(acf_arena *a, acf_mark mark) {
    if (a->n_blocks == 0) return;
    ACF_ASSERT(mark.block <= a->current);
    for (;;) {
        block *b = &a->block[a->current];
        size_t keep = a->current == mark.block ? mark.used : 0;
        ACF_ASSERT(keep <= b->used);
        poison(a, b->data + keep, b->used - keep);
        b->used = keep;
        if (a->current == mark.block) return;
        a->current--;
        a->below -= a->block[a->current].used;
    }
}

void acf_arena_reset(acf_arena *a) { acf_arena_release(a, (acf_mark){0, 0}); }

size_t acf_arena_used(const acf_arena *a) { return a->n_blocks ? a->below + a->block[a->current].used : 0; }

size_t acf_arena_high_water(const acf_arena *a) { return a->high_water; }

size_t acf_arena_reserved(const acf_arena *a) {
    size_t sum = 0;
    for (int i = 0; i < a->n_blocks; i++) sum += a->block[i].size;
    return sum;
}
