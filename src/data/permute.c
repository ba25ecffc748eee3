/* A random order without memory: see permute.h. */
#include "data/permute.h"

acf_permutation acf_permutation_identity(int64_t n) { return (acf_permutation){.n = n}; }

acf_permutation acf_permutation_make(int64_t n, uint64_t seed, acf_stream_id stream, uint32_t draw) {
    acf_permutation p = {.n = n};
    if (n < 2) return p;
    int bits = 64 - __builtin_clzll((unsigned long long)n - 1);
    if (bits < 2) bits = 2; /* a half needs a bit */
    p.low = bits / 2;
    p.high = bits - p.low;
    p.rounds = bits <= 16 ? ACF_PERMUTE_ROUNDS : 8;
    acf_place at = {seed, (uint64_t)n, (uint32_t)stream, 0x80000000u, draw};
    acf_rng_words(at, p.rounds, p.key);
    return p;
}

/* The 32-bit finaliser of MurmurHash3, keyed before and in the middle: every bit of v and key reaches every bit of the
 * result. */
static inline uint32_t mix(uint32_t v, uint32_t key) {
    v ^= key;
    v = (v ^ v >> 16) * 0x85ebca6bu;
    v += key;
    v = (v ^ v >> 13) * 0xc2b2ae35u;
    return v ^ v >> 16;
}

/* Halves of unequal width: even rounds change the low bits, odd rounds the high ones. */
static inline uint64_t feistel(const acf_permutation *p, uint64_t i) {
    uint32_t low = (uint32_t)(i & (((uint64_t)1 << p->low) - 1)), high = (uint32_t)(i >> p->low);
    for (int r = 0; r < p->rounds; r += 2) {
        low ^= mix(high, p->key[r]) >> (32 - p->low); /* the best bits of a product are its high ones */
        high ^= mix(low, p->key[r + 1]) >> (32 - p->high);
    }
    return (uint64_t)high << p->low | low;
}

int64_t acf_permutation_at(const acf_permutation *p, int64_t i) {
    if (p->low == 0) return i;
    uint64_t v = (uint64_t)i;
    do v = feistel(p, v);
    while (v >= (uint64_t)p->n);
    return (int64_t)v;
}
