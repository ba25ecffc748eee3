/* Memory: the only access to malloc, and arenas that are filled front to back and emptied at once.
 *
 * There are three lifetimes. What lives as long as a model is allocated once (parameter slabs). What lives for a
 * training step comes from the tape's arenas and is released at the next begin. What lives for a call lies between a
 * mark and a release. A reset arena keeps its blocks, so from the second step on nothing is allocated.
 *
 *     block 0 [######################......]     marks are (block, offset); release goes back to one,
 *     block 1 [##########..................]     reset goes back to the beginning of block 0
 *     block 2 [............................] */
#ifndef ACF_BASE_ARENA_H
#define ACF_BASE_ARENA_H

#include "base/status.h"

#define ACF_HOST_ALIGN 64

/* Where blocks come from: the heap, or the memory of a device. */
typedef struct acf_memory {
    void *ctx;
    void *(*alloc)(void *ctx, size_t bytes); /* aligned to `align`; NULL without memory */
    void (*free)(void *ctx, void *p);
    size_t align; /* every allocation is rounded up to this power of two */
    bool host;    /* the host may read and write it */
    /* For memory other than the host's; NULL: not done. poison is called in debug builds, so that reads before writes
     * show: every byte 0xFF. refuse makes the message if `bytes` cannot be had and an arena already holds `used`, and
     * returns ACF_EMEMORY. */
    void (*poison)(void *ctx, void *p, size_t bytes);
    acf_status (*refuse)(void *ctx, size_t bytes, size_t used);
} acf_memory;

/* The heap, 64-byte aligned. */
extern const acf_memory acf_heap;

/* Heap memory outside arenas, for handles and slabs. Without memory acf_alloc sets ACF_EMEMORY, with `what` in the
 * sentence, and returns NULL. acf_alloc_zero clears the memory. acf_release accepts NULL. */
void *acf_alloc(size_t bytes, const char *what);
void *acf_alloc_zero(size_t bytes, const char *what);
char *acf_alloc_text(const char *text, const char *what);
void acf_release(void *p);

/* n * size with overflow checked: false and ACF_EMEMORY when the product does not fit. */
bool acf_bytes(int64_t n, size_t size, size_t *out);

typedef struct acf_arena acf_arena;

typedef struct acf_mark {
    int block;
    size_t used;
} acf_mark;

/* Gives *out; free with acf_arena_free. first_block is a hint, 0 for the default. Keeps mem. Fails: ACF_EMEMORY. */
acf_status acf_arena_create(const acf_memory *mem, size_t first_block, acf_arena **out);
void acf_arena_free(acf_arena *a);

/* Uncleared memory, or NULL with ACF_EMEMORY set. Zero bytes give a valid pointer. */
void *acf_arena_alloc(acf_arena *a, size_t bytes);

acf_mark acf_arena_mark(const acf_arena *a);
void acf_arena_release(acf_arena *a, acf_mark mark);
void acf_arena_reset(acf_arena *a);

size_t acf_arena_used(const acf_arena *a);       /* bytes handed out now */
size_t acf_arena_high_water(const acf_arena *a); /* most bytes ever handed out at once */
size_t acf_arena_reserved(const acf_arena *a);   /* bytes held in blocks */

/* For tests: allocations of this thread so far, and how many of them it holds. Makes the n-th allocation from now (1 =
 * the next) and every later one fail; 0 = off. */
int64_t acf_alloc_count(void);
int64_t acf_alloc_live(void);
void acf_alloc_fail_at(int64_t n);

#endif
