/* Hidden pixels in rounds: see image_rounds.h. */
#include "data/image_rounds.h"

#include <math.h>

#define ROUND_COLUMN 0xC0000000u /* beyond every column that a mask draws by (image_masks.c, image_pattern.c) */

int acf_image_round_of(int rounds, int64_t y, int64_t x) {
    const int64_t step = (int64_t)1 << (rounds - 1), both = (y + step / 2) | (x + step / 2);
    return rounds - 1 - (both % step == 0 ? rounds - 1 : __builtin_ctzll((uint64_t)both));
}

int64_t acf_image_round(int rounds, int k, int64_t H, int64_t W, const uint8_t *b, uint8_t *role) {
    int64_t asked = 0;
    for (int64_t i = 0; i < H * W; i++) {
        const int own = b[i] ? -1 : acf_image_round_of(rounds, i / W, i % W);
        role[i] = own < k ? ACF_PIXEL_GIVEN : own == k ? ACF_PIXEL_ASKED : ACF_PIXEL_ABSENT;
        asked += own == k;
    }
    return asked;
}

double acf_image_round_draw(int rounds, acf_place at, int64_t H, int64_t W, uint8_t *b) {
    int64_t count[ACF_IMAGE_ROUNDS_MAX] = {0}, hidden = 0, with = 0, k = 0;
    uint32_t word[4];
    for (int64_t i = 0; i < H * W; i++)
        if (!b[i]) count[acf_image_round_of(rounds, i / W, i % W)]++, hidden++;
    for (int r = 0; r < rounds; r++) with += count[r] > 0;
    at.column = ROUND_COLUMN;
    acf_rng_bits(at, word);
    if (word[0] >> 31 || with == 0) return 1;
    for (int64_t left = (int64_t)((uint64_t)word[1] * (uint64_t)with >> 32); left > 0 || count[k] == 0; k++) left -= count[k] > 0;
    acf_image_round(rounds, (int)k, H, W, b, b);
    return sqrt((double)hidden / (double)count[k]);
}
