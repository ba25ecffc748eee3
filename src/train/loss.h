/* The loss of one training step on a batch whose masks are drawn:
 *
 *     mean over rows of  [ -log p(x_u | x_o)  +  guess_weight · |guess - x_u|² ] / c       c = 1, or |u| per column
 *
 * Rows with nothing modelled (all cells missing or held out) do not count. Both terms have the same divisor, so
 * guess_weight means the same either way. A composition: every derivative is in ops/. */
#ifndef ACF_TRAIN_LOSS_H
#define ACF_TRAIN_LOSS_H

#include "model/net.h"

typedef struct acf_loss {
    bool per_column;     /* divide each row's loss by its |u|: rows count alike, however much is modelled */
    double guess_weight; /* λ of the paper; 0: the best guess is not computed */
} acf_loss;

/* Cells of row i of the batch that are modelled: its |u|. */
int64_t acf_loss_modelled(const acf_batch *batch, int64_t i);

/* Rows of the batch with something modelled. */
int64_t acf_loss_rows(const acf_batch *batch);

/* A scalar; 0, which depends on no parameter, when no row counts. Borrows batch and pass until the next begin. */
acf_tensor *acf_loss_make(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass,
                          const acf_loss *cfg);

/* The same and its gradients, added to those of the parameters. The two terms share only the weights, so each uses the
 * tape alone from begin to backward: memory is that of the larger term, not of both. Fails as acf_tape_backward does.
 * */
acf_status acf_loss_backward(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass,
                             const acf_loss *cfg, double *loss);

/* The same for a batch in device memory, without waiting or checks on the host. terms (2) gets both terms, in device
 * memory. A batch in which no row counts has a loss and gradients of 0. */
acf_status acf_loss_enqueue(acf_tape *t, const acf_net *net, const acf_batch *batch, const acf_pass *pass,
                            const acf_loss *cfg, acf_real *terms);

#endif
