/* The optimiser on the GPU: see adam.h.
 *
 * Workload: slabs of 1e5 to 1e8 elements, bound by memory: the norm reads 4 bytes an element, the step with
 * averaging moves 36 in one pass. All that changes from step to step is in ps->pace, so both can be captured in a
 * CUDA graph. */
#include "ops/adam.cuh"

extern "C" {
#include "ops/adam.h"
}

#define NORM_BLOCKS 256 /* at most: their sums are added by the last block, which has as many threads */

/* The constants of step pace->step at pace->lr, on gradients times `scale`: as constants_of in adam.c. */
static __device__ acf_adam_constants constants_of(const acf_adam &cfg, const acf_pace *pace, double scale) {
    const double bias1 = -expm1((double)pace->step * log(cfg.beta1)),
                 bias2 = -expm1((double)pace->step * log(cfg.beta2));
    return {(float)scale,
            (float)cfg.beta1,
            (float)cfg.beta2,
            (float)(1 - cfg.beta1),
            (float)(1 - cfg.beta2),
            (float)(pace->lr * sqrt(bias2) / bias1),
            (float)(cfg.eps * sqrt(bias2)),
            (float)(1 - pace->lr * cfg.decay)};
}

/* Sets what belongs to the current step. */
typedef struct due_step {
    bool is;
    acf_adam cfg;
    double max_norm, ema;
    acf_fault *fault;
} due_step;

/* A kernel that met a matrix it could not use recorded a fault: the step is skipped and the fault cleared. Other
 * faults are errors of the caller and stay for the host. */
static __device__ bool took_numeric_fault(acf_fault *f) {
    const int kind = f->kind;
    if (kind != ACF_FAULT_SINGULAR && kind != ACF_FAULT_CHOICE && kind != ACF_FAULT_COVARIANCE) return false;
    f->kind = ACF_FAULT_NONE;
    return true;
}

/* Sets pace->norm and what follows from it for the current step. */
static __device__ void finish_norm(acf_pace *pace, double sum, const due_step &due) {
    const double norm = sqrt(sum);
    pace->norm = norm;
    if (!due.is) return;
    const bool faulty = took_numeric_fault(due.fault);
    pace->finite = !faulty && isfinite(norm) && isfinite(pace->loss[0]) && isfinite(pace->loss[1]);
    if (pace->record) pace->record[pace->turn++] = {(double)pace->loss[0] + (double)pace->loss[1], norm, pace->finite};
    if (!pace->finite) {
        pace->skipped++;
        return;
    }
    pace->constants = constants_of(due.cfg, pace, due.max_norm > 0 && norm > due.max_norm ? due.max_norm / norm : 1.0);
    pace->left = due.ema > 0 ? (acf_real)(1 - acf_ema_beta(due.ema, pace->step)) : 0;
    pace->step++;
}

static __global__ void norm_of(acf_pace *pace, double *part, unsigned *ticket, const acf_real *__restrict__ grad,
                               int64_t n, due_step due) {
    const int64_t stride = (int64_t)gridDim.x * blockDim.x;
    double sum = 0;
    for (int64_t i = acf_thread(); i < n; i += stride) sum += (double)grad[i] * (double)grad[i];
    sum = acf_block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
    if (!acf_last_block(ticket, gridDim.x)) return;
    sum = acf_block_sum(threadIdx.x < gridDim.x ? __ldcg(&part[threadIdx.x]) : 0.0);
    if (threadIdx.x == 0) finish_norm(pace, sum, due);
}

acf_status acf_cuda_norm(const acf_params *ps, const acf_adam *cfg, double max_norm, double ema) {
    const unsigned blocks = (unsigned)acf_min(acf_each_blocks(ps->total), NORM_BLOCKS);
    const due_step due = {cfg != NULL, cfg ? *cfg : acf_adam{}, max_norm, ema, acf_cuda_fault(ps->dev)};
    norm_of<<<blocks, ACF_THREADS, 0, acf_cuda_stream(ps->dev)>>>(ps->pace, (double *)acf_cuda_scratch(ps->dev),
                                                                  acf_cuda_tickets(ps->dev), ps->grad, ps->total, due);
    return ACF_LAUNCHED("norm");
}

/* With pace->left, updates the moving average in the same pass. The second moment is capped: an infinite one would
 * stay, and stop its weight forever. */
static __global__ void adam_step(acf_real *__restrict__ value, acf_real *__restrict__ m, acf_real *__restrict__ v,
                                 acf_real *__restrict__ ema, const acf_real *__restrict__ grad, int64_t n,
                                 int64_t decayed, const acf_pace *__restrict__ pace) {
    if (!pace->finite) return;
    const acf_adam_constants c = pace->constants;
    const acf_real left = pace->left;
    ACF_EACH(i, n) {
        const acf_real g = c.scale * grad[i], first = c.beta1 * m[i] + c.left1 * g;
        const acf_real second = fminf(c.beta2 * v[i] + c.left2 * g * g, FLT_MAX);
        const acf_real w = (i < decayed ? c.keep : 1) * value[i] - c.rate * first / (sqrtf(second) + c.floor);
        m[i] = first, v[i] = second, value[i] = w;
        if (left > 0) ema[i] += left * (w - ema[i]);
    }
}

acf_status acf_cuda_adam(acf_params *ps) {
    adam_step<<<acf_each_blocks(ps->total), ACF_THREADS, 0, acf_cuda_stream(ps->dev)>>>(
        ps->value, ps->m, ps->v, ps->ema, ps->grad, ps->total, ps->decayed, ps->pace);
    return ACF_LAUNCHED("adam");
}

static __global__ void average_step(acf_real *__restrict__ ema, const acf_real *__restrict__ value, acf_real left,
                                    int64_t n) {
    ACF_EACH(i, n) ema[i] += left * (value[i] - ema[i]);
}

acf_status acf_cuda_average(acf_params *ps, double beta) {
    average_step<<<acf_each_blocks(ps->total), ACF_THREADS, 0, acf_cuda_stream(ps->dev)>>>(
        ps->ema, ps->value, (acf_real)(1 - beta), ps->total);
    return ACF_LAUNCHED("ema");
}
