/* The affine coupling of images: scales and shifts part of the modelled numbers by the output of a network on all
 * others.
 *
 * Numbers of an image (N,H,W,C) are observed (b), modelled (u), or neither; the last are 0 and are not used. A
 * pattern splits the modelled numbers into those that are kept and those that move:
 *
 *     checker    kept where h + w is even (odd with `other`)
 *     quarter    kept in channel quarters 0 and 2 (1 and 3): upper and lower rows of squeezed squares (squeeze.h)
 *
 *     known k    = b or (u and kept)                  the network's input: [relu(kx) | relu(-kx) | k], (N,H,W,3C)
 *     moving v   = u and not kept
 *     forward    y = (x + t) e^s where v, else x      log|dy/dx| =  Σ_v s      s = g tanh(raw) + g0
 *     inverse    x = y e^-s - t where v, else y       log|dx/dy| = -Σ_v s
 *
 * The network's output is st (N,H,W,2C) = [raw | t]. g and g0 are learned numbers that bound the scale: |s| <= |g| +
 * |g0|. Kept and observed numbers are copied bit for bit. A mask is set where its number is above 1/2; masks have no
 * derivative. */
#ifndef ACF_OPS_COUPLE_H
#define ACF_OPS_COUPLE_H

#include "device/cpu.h"
#include "ops/ops.h"

typedef enum acf_pattern_kind { ACF_CHECKER, ACF_QUARTER } acf_pattern_kind;

typedef struct acf_pattern {
    acf_pattern_kind kind;
    bool other; /* exchanges kept and moving numbers */
} acf_pattern;

/* (N,H,W,3C) from x, b, u (N,H,W,C). */
acf_tensor *acf_couple_input(acf_tape *t, acf_tensor *x, acf_tensor *b, acf_tensor *u, acf_pattern p);

/* y (N,H,W,C) from x (N,H,W,C), st (N,H,W,2C), g and g0 (one number each); logdet (N) may be NULL. And the inverse. */
acf_tensor *acf_couple_forward(acf_tape *t, acf_tensor *x, acf_tensor *st, acf_tensor *g, acf_tensor *g0, acf_tensor *u,
                               acf_pattern p, acf_tensor **logdet);
acf_tensor *acf_couple_inverse(acf_tape *t, acf_tensor *y, acf_tensor *st, acf_tensor *g, acf_tensor *g0, acf_tensor *u,
                               acf_pattern p, acf_tensor **logdet);

/* ---- kernels --------------------------------------------------------------------------------------------------- */

typedef struct acf_couple_shape {
    int64_t N, H, W, C;
    acf_pattern p;
    bool inverse;
} acf_couple_shape;

static inline bool acf_pattern_keeps(acf_pattern p, int64_t h, int64_t w, int64_t c, int64_t C) {
    const int64_t odd = p.kind == ACF_CHECKER ? (h + w) % 2 : 4 * c / C % 2;
    return odd == p.other;
}
static inline bool acf_mask_on(acf_real m) { return m > ACF_R(0.5); }

void acf_couple_input_fwd_cpu(const acf_device *dev, acf_real *y, const acf_real *x, const acf_real *b,
                              const acf_real *u, const acf_couple_shape *s);
/* Adds to dx. */
void acf_couple_input_bwd_cpu(const acf_device *dev, acf_real *dx, const acf_real *dy, const acf_real *x,
                              const acf_real *b, const acf_real *u, const acf_couple_shape *s);

/* y and logdet (N; may be NULL). */
void acf_couple_fwd_cpu(const acf_device *dev, acf_real *y, acf_real *logdet, const acf_real *x, const acf_real *st,
                        acf_real g, acf_real g0, const acf_real *u, const acf_couple_shape *s);
/* Adds to dx, dst, dg (1), dg0 (1); NULL = not needed. dy, dlogdet (N) may be NULL. sums (2N) is scratch. */
void acf_couple_bwd_cpu(const acf_device *dev, acf_real *dx, acf_real *dst, acf_real *dg, acf_real *dg0,
                        const acf_real *dy, const acf_real *dlogdet, const acf_real *x, const acf_real *st, acf_real g,
                        acf_real g0, const acf_real *u, const acf_couple_shape *s, double *sums);

/* ---- for kernels on other devices; attribute: acf_couple_shape; inputs: x, b, u; and x, st, g, g0, u
 * ---------------- */

#endif
