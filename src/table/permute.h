/* A random order of n things that takes no memory: position -> thing is a function.
 *
 * A Feistel network permutes the 2^k numbers of k bits, 2^(k-1) < n <= 2^k: many times over, one half of the bits is
 * changed by a keyed hash of the other half, which can be undone whatever the hash is. A number that comes out at n or
 * above goes through again until it falls below n (fewer than two turns on average), which makes it a permutation of
 * 0..n-1.
 *
 * Why not sort by random keys: that needs 16 bytes a row, a pass per epoch, and all of it again to resume in the
 * middle. Here the order of an epoch is its key, any position is reached at once (some 20 ns), and every process that
 * knows (seed, epoch) agrees on it. The price is a pseudorandom order; permute_test.c checks it. */
#ifndef ACF_TABLE_PERMUTE_H
#define ACF_TABLE_PERMUTE_H

#include "base/real.h"
#include "base/rng.h"

#define ACF_PERMUTE_ROUNDS 32 /* below 2^16 things, where halves are narrow and a round stirs little; above, 8 */

typedef struct acf_permutation {
    int64_t n;
    int low, high, rounds; /* bits of the halves, and rounds; all 0 for the identity */
    uint32_t key[ACF_PERMUTE_ROUNDS];
} acf_permutation;

/* The order of n things, 0 <= n <= 2^47, that belongs to (seed, stream, draw, n). Its key is drawn from columns that no
 * table has (2^31 and up), so it shares nothing with what the stream draws for cells. */
acf_permutation acf_permutation_make(int64_t n, uint64_t seed, acf_stream_id stream, uint32_t draw);

/* 0, 1, 2, ... n-1. */
acf_permutation acf_permutation_identity(int64_t n);

/* The 32-bit finaliser of MurmurHash3, keyed before and in the middle: every bit of v and key reaches every bit of the
 * result. */
ACF_BOTH uint32_t acf_permute_mix(uint32_t v, uint32_t key) {
    v ^= key;
    v = (v ^ v >> 16) * 0x85ebca6bu;
    v += key;
    v = (v ^ v >> 13) * 0xc2b2ae35u;
    return v ^ v >> 16;
}

/* Halves of unequal width: even rounds change the low bits, odd rounds the high ones. */
ACF_BOTH uint64_t acf_permute_feistel(const acf_permutation *p, uint64_t i) {
    uint32_t low = (uint32_t)(i & (((uint64_t)1 << p->low) - 1)), high = (uint32_t)(i >> p->low);
    for (int r = 0; r < p->rounds; r += 2) {
        low ^= acf_permute_mix(high, p->key[r]) >> (32 - p->low); /* the best bits of a product are its high ones */
        high ^= acf_permute_mix(low, p->key[r + 1]) >> (32 - p->high);
    }
    return (uint64_t)high << p->low | low;
}

/* What stands at position i, 0 <= i < n. */
ACF_BOTH int64_t acf_permutation_at(const acf_permutation *p, int64_t i) {
    if (p->low == 0) return i;
    uint64_t v = (uint64_t)i;
    do v = acf_permute_feistel(p, v);
    while (v >= (uint64_t)p->n);
    return (int64_t)v;
}

#endif
