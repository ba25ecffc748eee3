/* The conditional linear transformation for wide tables: a diagonal plus a product of low rank,
 *
 *     W_i = diag(w)[u,u] + A_i[u,:] B_i[:,u],
 *
 * with the contract of lu.h but without forming a |u|x|u| matrix: apply and solve cost |u|·r, the factors |u|·r² +
 * r³, by the determinant lemma and Woodbury's identity on the inner matrix K = I + B_u diag(1/w_u) A_u (r,r). */
#ifndef ACF_OPS_LOWRANK_H
#define ACF_OPS_LOWRANK_H

#include "ops/ops.h"

/* Lives on the tape. logdet or solve factorises K on first use. Must not be used across an acf_tape_rewind to before
 * its first use. */
typedef struct acf_lowrank acf_lowrank;

/* w (D) or (N,D); a (N, D·r), row i is A_i (D,r); b (N, r·D), row i is B_i (r,D). NULL after a failure; the
 * operations below accept NULL. ACF_ENUMERIC, with the lowest such row and a column: an element of w, or a pivot of
 * K, that is not finite or not above size · epsilon · the largest. (A zero on the diagonal is refused even where A B
 * would make W regular: the identities divide by it.) */
acf_lowrank *acf_lowrank_factor(acf_tape *t, acf_tensor *w, acf_tensor *a, acf_tensor *b, int64_t r,
                                const acf_subset *u);

acf_tensor *acf_lowrank_apply(acf_tape *t, acf_lowrank *f, acf_tensor *x); /* z (T) = W x (T); needs no factors */
acf_tensor *acf_lowrank_logdet(acf_tape *t, acf_lowrank *f);               /* (N) log|det W|, 0 for |u| = 0 */
acf_tensor *acf_lowrank_solve(acf_tape *t, acf_lowrank *f, acf_tensor *z); /* x (T) with W x = z (T) */

/* The arguments of the kernels. w_stride is 0 for a diagonal shared by all rows, else D. k (N, r·r) and order (N, r)
 * are the factors of K; apply does not read them. */
typedef struct acf_lowrank_in {
    const acf_subset *u;
    int64_t r, w_stride;
    const acf_real *w, *a, *b, *k;
    const int32_t *order;
} acf_lowrank_in;

/* Outputs for gradients, each += and NULL = not needed. dw is always (N,D): contributions row by row. */
typedef struct acf_lowrank_grad {
    acf_real *dw, *da, *db;
} acf_lowrank_grad;

/* Fills k, order, bad (N) and largest (N). bad: -1; a position t < |u| whose w is invalid; or |u| + q for pivot q of
 * K. */
void acf_lowrank_factor_fwd_cpu(const acf_device *dev, acf_real *k, int32_t *order, int32_t *bad, acf_real *largest,
                                const acf_lowrank_in *in);

/* scratch, elements a thread: ACF_LOWRANK_SCRATCH(r, steps) for each of the following. */
#define ACF_LOWRANK_SCRATCH(r, steps) (3 * acf_pad(steps) + 4 * acf_pad(r) + acf_pad((r) * (r)) + (r)*ACF_DENSE_BLOCK)
void acf_lowrank_apply_fwd_cpu(const acf_device *dev, acf_real *z, const acf_lowrank_in *in, const acf_real *x,
                               acf_real *scratch);
void acf_lowrank_apply_bwd_cpu(const acf_device *dev, const acf_lowrank_grad *g, acf_real *dx, const acf_real *dz,
                               const acf_lowrank_in *in, const acf_real *x, acf_real *scratch);

void acf_lowrank_logdet_fwd_cpu(const acf_device *dev, acf_real *ld, const acf_lowrank_in *in, acf_real *scratch);
void acf_lowrank_logdet_bwd_cpu(const acf_device *dev, const acf_lowrank_grad *g, const acf_real *dld,
                                const acf_lowrank_in *in, acf_real *scratch);

void acf_lowrank_solve_fwd_cpu(const acf_device *dev, acf_real *x, const acf_lowrank_in *in, const acf_real *z,
                               acf_real *scratch);
void acf_lowrank_solve_bwd_cpu(const acf_device *dev, const acf_lowrank_grad *g, acf_real *dz, const acf_real *dx,
                               const acf_lowrank_in *in, const acf_real *x, acf_real *scratch);

/* ---- for kernels on other devices ------------------------------------------------------------------------------ */

struct acf_lowrank {
    acf_lowrank_in in; /* the arguments of the kernels; k and order are NULL until needed */
    acf_tensor *w, *a, *b, *k;
    int32_t *order;
};

/* Of all four. Inputs: w, a, b, then x or z (NULL for logdet), then k. */
typedef struct acf_lowrank_attrs {
    acf_lowrank *f;
} acf_lowrank_attrs;

#endif
