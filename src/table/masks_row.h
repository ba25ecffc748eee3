/* Draws the masks of one row. CPU and GPU share this code, so a row gets the same masks on both. See masks.h.
 *
 * One 32-bit word per cell, four columns per block of the generator. One more block per row, at a column that no
 * table has, serves decisions about the whole row. A row of 20 columns costs some 150 ns on a core. */
#ifndef ACF_TABLE_MASKS_ROW_H
#define ACF_TABLE_MASKS_ROW_H

#include "base/real.h"

#ifdef __CUDACC__
#include "base/rng.cuh"
extern "C" {
#include "table/masks.h"
}
#define ACF_MASKS_HERE static __device__ inline
#define ACF_MASK_WORDS 4 /* cells drawn at a time: a block */
#define acf_mask_unit acf_rng_unit_cuda
ACF_MASKS_HERE void acf_mask_bits(acf_rng_counter at, uint32_t out[4]) {
    const philox4x32_ctr_t w = acf_rng_bits_cuda(at);
    for (int k = 0; k < 4; k++) out[k] = w.v[k];
}
ACF_MASKS_HERE void acf_mask_words(acf_rng_counter at, int64_t n, uint32_t *out) {
    (void)n; /* at most a block, so all of it fits */
    acf_mask_bits(at, out);
}
#else
#include "table/masks.h"
#define ACF_MASKS_HERE static inline
#define ACF_MASK_WORDS 64 /* words that the vector form of the generator makes in one call */
#define acf_mask_unit acf_rng_unit
#define acf_mask_bits acf_rng_bits
#define acf_mask_words acf_rng_words
#endif

#define ACF_MASK_ROW_COLUMN 0x80000000u /* the block of a whole row: beyond every column */
#define ACF_MASK_DROP_COLUMN                                                                                           \
    0x40000000u /* the blocks that decide which cells become missing: also beyond every
                                          * column */

/* Maps a 32-bit word to an integer in [0, n), n < 2^31: its position in [0, 1) times n. */
ACF_MASKS_HERE int64_t acf_mask_scaled(uint32_t word, int64_t n) {
    return (int64_t)((uint64_t)word * (uint64_t)n >> 32);
}

/* Chooses a part by weight with the first two words of the row's block. */
ACF_MASKS_HERE const acf_mask_part *acf_mask_choose(const acf_masks *masks, const uint32_t row[4]) {
    double sum = 0.0;
    for (int k = 0; k < masks->n; k++) sum += masks->part[k].weight;
    double left = acf_mask_unit(row[0], row[1]) * sum;
    for (int k = 0; k < masks->n - 1; k++) {
        left -= masks->part[k].weight;
        if (left < 0.0) return &masks->part[k];
    }
    return &masks->part[masks->n - 1];
}

/* b (D): each present cell with probability p. Returns their number. 2^32 p as an integer makes p = 1 certain. */
ACF_MASKS_HERE int64_t acf_mask_bernoulli(acf_rng_counter at, double p, int64_t D, uint8_t *b, const uint8_t *m) {
    uint64_t below = (uint64_t)(p * 0x1p32);
    uint32_t words[ACF_MASK_WORDS];
    int64_t given = 0;
    for (int64_t j0 = 0; j0 < D; j0 += ACF_MASK_WORDS) {
        int64_t n = acf_min(ACF_MASK_WORDS, D - j0);
        at.column = (uint32_t)(j0 / 4);
        acf_mask_words(at, n, words);
        for (int64_t j = 0; j < n; j++) {
            b[j0 + j] = m[j0 + j] & (words[j] < below);
            given += b[j0 + j];
        }
    }
    return given;
}

/* b (D): k of the n present cells, every subset equally likely. A cell is chosen with probability (k - taken) / (n -
 * passed). */
ACF_MASKS_HERE void acf_mask_subset(acf_rng_counter at, int64_t k, int64_t n, int64_t D, uint8_t *b, const uint8_t *m) {
    uint32_t words[ACF_MASK_WORDS];
    for (int64_t j = 0; j < D; j++) {
        if (j % ACF_MASK_WORDS == 0) {
            at.column = (uint32_t)(j / 4);
            acf_mask_words(at, acf_min(ACF_MASK_WORDS, D - j), words);
        }
        b[j] = m[j] && acf_mask_scaled(words[j % ACF_MASK_WORDS], n) < k;
        k -= b[j];
        n -= m[j];
    }
}

/* Clears b at the which-th present column. */
ACF_MASKS_HERE void acf_mask_model_one(int64_t which, int64_t D, uint8_t *b, const uint8_t *m) {
    for (int64_t j = 0; j < D; j++)
        if (m[j] && which-- == 0) b[j] = 0;
}

/* m (D): of the present cells that are not given, the which-th stays; each other becomes missing with probability p. */
ACF_MASKS_HERE void acf_mask_drop(acf_rng_counter at, double p, int64_t which, int64_t D, const uint8_t *b,
                                  uint8_t *m) {
    uint64_t below = (uint64_t)(p * 0x1p32);
    uint32_t words[ACF_MASK_WORDS];
    for (int64_t j = 0; j < D; j++) {
        if (j % ACF_MASK_WORDS == 0) {
            at.column = ACF_MASK_DROP_COLUMN + (uint32_t)(j / 4);
            acf_mask_words(at, acf_min(ACF_MASK_WORDS, D - j), words);
        }
        if (m[j] && !b[j] && which-- != 0) m[j] = words[j % ACF_MASK_WORDS] >= below;
    }
}

/* m (D) marks the present cells of the row with this counter; b and m become its masks. */
ACF_MASKS_HERE void acf_masks_row(const acf_masks *masks, acf_rng_counter at, int64_t D, uint8_t *b, uint8_t *m) {
    int64_t present = 0;
    for (int64_t j = 0; j < D; j++) {
        m[j] = m[j] != 0;
        b[j] = 0;
        present += m[j];
    }
    uint32_t row[4];
    acf_rng_counter row_at = at;
    row_at.column = ACF_MASK_ROW_COLUMN;
    acf_mask_bits(row_at, row);
    const acf_mask_part *part = acf_mask_choose(masks, row);
    if (part->kind == ACF_MASK_JOINT || present == 0) return;
    if (part->kind == ACF_MASK_UNIFORM || part->kind == ACF_MASK_PARTIAL) {
        const int64_t given = acf_mask_scaled(row[2], present);
        acf_mask_subset(at, given, present, D, b, m);
        if (part->kind == ACF_MASK_PARTIAL)
            acf_mask_drop(at, part->p, acf_mask_scaled(row[3], present - given), D, b, m);
        return;
    }
    if (acf_mask_bernoulli(at, part->p, D, b, m) == present)
        acf_mask_model_one(acf_mask_scaled(row[3], present), D, b, m);
    if (part->kind == ACF_MASK_MARGINAL)
        for (int64_t j = 0; j < D; j++) m[j] ^= b[j], b[j] = 0;
}

#endif
