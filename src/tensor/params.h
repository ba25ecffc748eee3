/* Parameters: declared once by name and shape, laid out in one slab, with further slabs of the same layout for the
 * gradient, Adam's two moments and the exponential moving average of the weights.
 *
 * The optimiser, the gradient norm, an all-reduce, a checkpoint or a finite check is therefore one loop over one
 * buffer:
 *
 *     value  [ w1 .. | w2 .. | gru.wh ..  | b1 | b2 | ... ]     decayed parameters first, then the others,
 *     grad   [ same layout                                ]     each aligned to 64 bytes; the gaps are zero
 *     m, v, ema                                                 and stay zero
 */
#ifndef ACF_TENSOR_PARAMS_H
#define ACF_TENSOR_PARAMS_H

#include "tensor/tape.h"

/* Initial values; `scale` of acf_param_add is explained with each. */
typedef enum acf_init {
    ACF_INIT_CONST,    /* every element = scale */
    ACF_INIT_IDENTITY, /* ones on the diagonal times scale, zero elsewhere; 2-D */
    ACF_INIT_UNIFORM,  /* uniform in +-scale / sqrt(fan_in), fan_in = elements per row: usual for linear layers */
    ACF_INIT_NORMAL,   /* normal with standard deviation scale */
    ACF_INIT_ORTHO     /* each square block of rows orthogonal, times scale: recurrent weights; 2-D */
} acf_init;

typedef struct acf_param {
    acf_tensor t; /* points into the slabs; pass &p->t, or acf_p(p), to operations */
    char *name;
    acf_init init;
    double scale;
    bool decay;     /* weight decay applies */
    int64_t offset; /* in the slab, in elements */
} acf_param;

/* Adam's constants in one step, rounded once: with c1 = 1/(1-β1^t) and c2 = 1/(1-β2^t) of the bias correction,
 *     w -= lr c1 m / (sqrt(c2 v) + eps)
 *        = rate m / (sqrt(v) + floor),   rate = lr c1 / sqrt(c2),  floor = eps / sqrt(c2)
 * which saves two multiplications an element. */
typedef struct acf_adam_constants {
    acf_real scale, beta1, beta2, left1, left2, rate, floor;
    acf_real keep; /* 1 - lr·decay */
} acf_adam_constants;

/* Results of a step that is captured in a CUDA graph. */
typedef struct acf_pace_record {
    double loss, norm;
    int64_t finite; /* 0: the step was not finite and changed nothing */
} acf_pace_record;

/* Values that change from step to step, in device memory, where a captured step reads them. */
typedef struct acf_pace {
    double lr;               /* set by the training schedule, or by the batch sampler (table/table_on_device.h) */
    int64_t step;            /* of Adam, counted from 1; incremented by each step that changes the weights */
    uint32_t now;            /* step of training: key of dropout */
    int64_t turn;            /* index of the step among those enqueued together */
    acf_pace_record *record; /* one per step, in device memory; NULL: none are kept, and turn is not incremented */
    acf_real loss[2];        /* its terms: a step with a non-finite loss is skipped, too */
    double norm;             /* of the last gradient */
    int64_t skipped;         /* number of steps that were not finite: they changed nothing */
    int64_t finite;          /* whether the last step was finite */
    acf_adam_constants constants;
    acf_real left; /* 1 - beta of the moving average; 0: it is not updated */
} acf_pace;

typedef struct acf_params {
    acf_device *dev;
    acf_param **list; /* in order of declaration */
    int n, cap;
    int64_t total;                        /* elements of a slab, gaps included */
    int64_t decayed;                      /* the first elements, to which weight decay applies */
    acf_real *value, *grad, *m, *v, *ema; /* ema..grad are NULL when built for inference */
    acf_pace *pace;                       /* on a GPU, for training; else NULL */
} acf_params;

/* Gives *out; free with acf_params_free. Keeps dev. */
acf_status acf_params_create(acf_device *dev, acf_params **out);
void acf_params_free(acf_params *ps);

/* Declares a parameter before the slabs are built. Borrows name. The pointer stays valid until acf_params_free. By
 * default weight decay applies to matrices, not to vectors and scalars (set p->decay before the build to change it).
 * NULL on failure: ACF_EMEMORY, ACF_EUSAGE (a name that exists, an invalid shape). */
acf_param *acf_param_add(acf_params *ps, const char *name, acf_init init, double scale, int ndim, const int64_t *dim);

/* Lays out and fills the slabs; values depend only on (seed, name, element). For inference (train = false) only
 * `value` is allocated. Fails: ACF_EMEMORY, ACF_EUSAGE. */
acf_status acf_params_build(acf_params *ps, uint64_t seed, bool train);

/* Allocates only the slab `value`, all 0, for a set whose values come from elsewhere, such as a file. No initial
 * values are computed. Fails: ACF_EMEMORY, ACF_EDEVICE. */
acf_status acf_params_allocate(acf_params *ps);

/* Resets the values to those of a new build with this seed; gradient and moments are zero again. Fails: ACF_EMEMORY;
 * then values are undefined. */
acf_status acf_params_restart(acf_params *ps, uint64_t seed);

/* ACF_EUSAGE unless the set was built for training; `who` begins the message. */
acf_status acf_params_trainable(const acf_params *ps, const char *who);

/* Clears the gradients; call before each step. Fails: ACF_EUSAGE (built for inference). */
acf_status acf_params_zero_grad(acf_params *ps);

/* By name, or NULL. */
acf_param *acf_params_find(const acf_params *ps, const char *name);

/* Which parameter, row and column the slab element i belongs to, for messages; NULL for a gap. */
const acf_param *acf_params_at(const acf_params *ps, int64_t i, int64_t *row, int64_t *column);

/* The tensor of a parameter; NULL for NULL, so that an optional bias can be passed straight through. */
static inline acf_tensor *acf_p(acf_param *p) { return p ? &p->t : NULL; }

#endif
