/* The kernels behind gru_kernels.h: those for H = 256 on Hopper, used if an image of the weights is given, and plain
 * ones. */
#ifndef ACF_OPS_GRU_FAST_H
#define ACF_OPS_GRU_FAST_H

#include "ops/gru_kernels.h"

/* How a batch is divided: clusters of C blocks; a tile of rows per cluster, divided among teams of 16·MT rows. */
typedef struct acf_gru_fast {
    int C, MT, teams, tiles;
    int buffers; /* of states, forward */
    int approx;  /* forward: gates by the hardware's tanh, error 2^-11; backward: partial sums cross as bf16 */
    int rows;    /* 16·MT·teams */
} acf_gru_fast;

/* narrow: gates are bf16. */
cudaError_t acf_gru_forward_fast(const acf_gru_forward *f, bool narrow, cudaStream_t stream);
cudaError_t acf_gru_backward_fast(const acf_gru_backward *b, bool narrow, cudaStream_t stream);

/* Any H, float. */
cudaError_t acf_gru_forward_plain(const acf_gru_forward *f, cudaStream_t stream);
cudaError_t acf_gru_backward_plain(const acf_gru_backward *b, cudaStream_t stream);

/* dbx, dbh (3H) += the sums of parts (P,4H), in the order of the parts; either may be NULL. */
cudaError_t acf_gru_add_parts(float *dbx, float *dbh, const float *parts, int P, int64_t H, cudaStream_t stream);

#endif
