/* A random order of n things that takes no memory: a function from position to thing.
 *
 * A Feistel network permutes the 2^k numbers of k bits, 2^(k-1) < n <= 2^k. In each round, a keyed hash of one half of
 * the bits changes the other half; a round can be undone whatever the hash is. A result of n or more goes through the
 * network again until it is below n (fewer than two times on average). The result is a permutation of 0..n-1.
 *
 * Sorting by random keys would need 16 bytes a row, a pass per epoch, and all of it again to resume in the middle. Here
 * the key gives the order of an epoch, any position takes about 20 ns, and every process that has (seed, epoch)
 * computes the same order. The order is pseudorandom; permute_test.c checks it. */
#ifndef ACF_TABLE_PERMUTE_H
#define ACF_TABLE_PERMUTE_H

#include "base/real.h"
#include "base/rng.h"

#define ACF_PERMUTE_ROUNDS 32 /* below 2^16 things, where halves are narrow and a round mixes little; above, 8 */

typedef struct acf_permutation {
    int64_t n;
    int low, high, rounds; /* bits of the halves, and rounds; all 0 for the identity */
    uint32_t key[ACF_PERMUTE_ROUNDS];
} acf_permutation;

/* The order of n things, 0 <= n <= 2^47, for (seed, stream, draw, n). Its key is drawn from columns that no table has
 * (2^31 and up), so it is independent of the draws of this stream for cells. */
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

/* The thing at position i, 0 <= i < n. */
ACF_BOTH int64_t acf_permutation_at(const acf_permutation *p, int64_t i) {
    if (p->low == 0) return i;
    uint64_t v = (uint64_t)i;
    do v = acf_permute_feistel(p, v);
    while (v >= (uint64_t)p->n);
    return (int64_t)v;
}

#endif
