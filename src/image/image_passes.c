/* Coarse-to-fine passes over hidden pixels: see image_passes.h. */
#include "image/image_passes.h"

#include <math.h>

#define PASS_COLUMN 0xC0000000u /* beyond every column used by a mask (image_masks.c, image_pattern.c) */

int acf_image_pass_of(int passes, int64_t y, int64_t x) {
    const int first = passes - 1; /* the lattice of pass 0 */
    const uint64_t move = (uint64_t)1 << first / 2 >> 1, a = (uint64_t)y + move, b = (uint64_t)x + move;
    if ((a | b) == 0) return 0;
    const int l = __builtin_ctzll(a | b), lattice = 2 * l + (int)(a >> l & b >> l & 1);
    return lattice < first ? first - lattice : 0;
}

int64_t acf_image_pass(int passes, int k, int64_t H, int64_t W, const uint8_t *b, uint8_t *role) {
    int64_t target = 0;
    for (int64_t i = 0; i < H * W; i++) {
        const int own = b[i] ? -1 : acf_image_pass_of(passes, i / W, i % W);
        role[i] = own < k ? ACF_PIXEL_GIVEN : own == k ? ACF_PIXEL_ASKED : ACF_PIXEL_ABSENT;
        target += own == k;
    }
    return target;
}

double acf_image_pass_draw(int passes, acf_rng_counter at, int64_t H, int64_t W, uint8_t *b) {
    int64_t count[ACF_IMAGE_PASSES_MAX] = {0}, hidden = 0, with = 0, k = 0;
    uint32_t word[4];
    for (int64_t i = 0; i < H * W; i++)
        if (!b[i]) count[acf_image_pass_of(passes, i / W, i % W)]++, hidden++;
    for (int r = 0; r < passes; r++) with += count[r] > 0;
    at.column = PASS_COLUMN;
    acf_rng_bits(at, word);
    if (word[0] >> 30 == 0 || with == 0) return 1;
    for (int64_t left = (int64_t)((uint64_t)word[1] * (uint64_t)with >> 32); left > 0 || count[k] == 0; k++)
        left -= count[k] > 0;
    acf_image_pass(passes, (int)k, H, W, b, b);
    return pow((double)hidden / (double)count[k], 0.75);
}
