/* Rotated and flipped images: see image_symmetry.h. */
#include "image/image_symmetry.h"

#include <string.h>

int acf_image_symmetries(bool rotate, bool flip, acf_image_symmetry out[ACF_IMAGE_SYMMETRIES]) {
    int n = 0;
    for (int m = 0; m <= flip; m++)
        for (int q = 0; q < (rotate ? 4 : 1); q++) out[n++] = (acf_image_symmetry){q, m};
    return n;
}

int64_t acf_image_moved(acf_image_symmetry s, int64_t H, int64_t W, int64_t p) {
    int64_t y = p / W, x = p % W;
    if (s.quarters >= 2) y = H - 1 - y, x = W - 1 - x;
    if (s.quarters % 2) {
        const int64_t up = W - 1 - x;
        x = y, y = up;
    }
    return y * W + (s.flip ? W - 1 - x : x);
}

void acf_image_move(acf_image_symmetry s, int64_t H, int64_t W, int64_t C, const uint8_t *in, uint8_t *out) {
    for (int64_t p = 0; p < H * W; p++) memcpy(out + acf_image_moved(s, H, W, p) * C, in + p * C, (size_t)C);
}

bool acf_image_symmetric(acf_image_symmetry s, int64_t H, int64_t W, const uint8_t *b) {
    for (int64_t p = 0; p < H * W; p++)
        if (!b[p] != !b[acf_image_moved(s, H, W, p)]) return false;
    return true;
}
