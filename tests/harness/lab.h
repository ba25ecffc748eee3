/* The lab tests operations: a case is data, and the harness runs seven jobs on it.
 *
 * A case applies an operation to random inputs and has the expected results:
 *
 *     static void build(acf_lab *l) {
 *         acf_tensor *x = acf_leaf(l, "x", -1, 1, 2, (int64_t[]){l->N, 5});       random, differentiable
 *         acf_tensor *w = acf_leaf(l, "w", -1, 1, 2, (int64_t[]){3, 5});
 *         acf_result(l, acf_linear(l->t, x, w, NULL, ACF_TANH));                  compared and differentiated
 *     }
 *     static void naive(const acf_lab *l, double *const *out) { ... l->leaf[0].value ... out[0][i] = ...; }
 *     static const acf_case cases[] = {{"tanh", build, naive, .variant = ACF_TANH}, ...};
 *     ACF_CASES(linear, cases)
 *
 * For every case and every size of its list the harness then
 *     values      runs it on poisoned memory and compares with the naive reference; every output must be finite
 *     gradients   (double) checks every input by finite differences, worst relative error 1e-6, and that they are
 *                 added to what other operations have sent back
 *     threads     compares outputs and gradients bit for bit on 1, 2 and 3 threads, at a size that is really threaded
 *     steady      counts allocations from the second step on: there are none
 *     faults      makes the n-th allocation fail, n = 1, 2, 3 ...: a clean ACF_EMEMORY, no leak, a usable tape
 *     nonfinite   puts NaN and infinities into each input: no crash, and a NaN is reported with operation, row, column
 * and, run with --device cuda,
 *     device      runs it on that device, on poisoned memory and with subsets that have spare capacity: results against
 *                 the naive reference, gradients against the CPU's and added to earlier ones, within the rounding of
 *                 its precision (jobs.c has the formula). Memory after the last packed element stays finite and gets no
 *                 gradient
 *
 * On such a device l->u is in its memory. A case that reads a subset uses l->host, the same subset on the host; arrays
 * that a case makes itself go to the device with acf_lab_copy. */
#ifndef ACF_HARNESS_LAB_H
#define ACF_HARNESS_LAB_H

#include "harness/check.h"
#include "ops/ops.h"

#define ACF_LAB_LEAVES 32
#define ACF_LAB_RESULTS 8

typedef enum acf_lab_mask {
    ACF_MASK_RANDOM, /* observed and missing cells at random */
    ACF_MASK_NONE,   /* nothing to model: |u| = 0 */
    ACF_MASK_ONE,    /* |u| = 1 */
    ACF_MASK_ALL     /* |u| = D */
} acf_lab_mask;

typedef struct acf_size {
    int64_t N, D;
    acf_lab_mask mask;
} acf_size;

typedef struct acf_lab acf_lab;

typedef struct acf_case {
    const char *name;
    void (*build)(acf_lab *l);
    void (*naive)(const acf_lab *l,
                  double *const *out); /* expected results; NULL where an identity test stands for it */
    int variant;                       /* what build and naive switch on */
    double tol;                        /* float tolerance of `values`, relative to 1 + |expected|; 0: 2e-5 */
    /* Each of the D steps uses the result of the one before, through this many products, so rounding adds up over them
     * on another device; 0: there are no steps. */
    int recurrent;
    bool no_grad;            /* has no derivative: skip `gradients` */
    const char *no_device;   /* why the job `device` cannot run it; NULL: it can */
    bool hides_nonfinite;    /* a NaN input may legitimately not reach the output */
    bool may_fail_nonfinite; /* the operation itself refuses non-finite input with another status */
    int64_t big_N, big_D;    /* size of `threads`; 0: 600 x 12 */
    const acf_size *sizes;   /* NULL: the common list; else ended by N = -1 */
} acf_case;

typedef struct acf_lab_leaf {
    const char *name;
    acf_real *value; /* on the host; survives runs */
    acf_real *grad;  /* of the last run */
    int64_t count;
    bool fixed, is_int, is_square;
    int32_t *ints;
} acf_lab_leaf;

struct acf_lab {
    acf_tape *t;
    acf_device *dev;
    const acf_case *c;
    int64_t N, D;           /* of the size being run */
    bool preset;            /* leaf gradients are not 0 when backward begins */
    bool big;               /* the `threads` run: make inner widths large enough to be threaded */
    const acf_subset *u;    /* a subset of that size; T = u->T. b and m are the masks it came from, (N,D) */
    const acf_subset *host; /* the same in host memory, with exact counts */
    acf_arena *mem;         /* of `host`, where that is not u */
    uint8_t *b, *m;
    uint64_t seed;

    acf_lab_leaf leaf[ACF_LAB_LEAVES];
    int n_leaves, leaf_at;
    acf_tensor *leaf_tensor[ACF_LAB_LEAVES];
    acf_tensor *result[ACF_LAB_RESULTS];
    int n_results;
};

/* An input with values uniform in [lo,hi], the same in every run of the case. Values nearer to 0 than a twentieth of
 * the range are moved away from it, so that finite differences never cross the kink of a relu. */
acf_tensor *acf_leaf(acf_lab *l, const char *name, double lo, double hi, int ndim, const int64_t *dim);
/* (T) or, with C > 0, (T,C): packed over l->u. */
acf_tensor *acf_leaf_packed(acf_lab *l, const char *name, double lo, double hi, int64_t C);
/* Like acf_leaf, but constant: it has no gradient. */
acf_tensor *acf_leaf_fixed(acf_lab *l, const char *name, double lo, double hi, int ndim, const int64_t *dim);
/* n integers uniform in [lo, hi], in device memory. */
const int32_t *acf_leaf_ints(acf_lab *l, const char *name, int32_t lo, int32_t hi, int64_t n);

/* The list of u's |u|x|u| matrices, elements uniform in [lo,hi] and `diagonal` added on it. */
acf_tensor *acf_leaf_square(acf_lab *l, const char *name, double lo, double hi, double diagonal);
/* Where row i's matrix begins in such a list. */
int64_t acf_lab_square(const acf_lab *l, int64_t i);

/* n integers for a case to fill, -1 at first; and given to the device, where they live on the tape (NULL after a
 * failure). */
int32_t *acf_lab_ints(int64_t n);
const int32_t *acf_lab_give_ints(acf_lab *l, int32_t *x, int64_t n);

/* A copy of host memory on the device, which lives on the tape; NULL after a failure. */
void *acf_lab_copy(acf_lab *l, const void *data, size_t bytes);
/* Where the CPU's element i of x is in x: (*count) positions, to be freed, or NULL if all are where they are on the
 * CPU. On another device a packed tensor has spare capacity after its elements, and matrices have a stride. */
int64_t *acf_lab_map(const acf_lab *l, const acf_tensor *x, int64_t *count);
/* n numbers of device memory, copied to the host; to be freed. */
acf_real *acf_lab_fetch(acf_device *dev, const acf_real *x, int64_t n);

/* Declares a result: compared with the reference, and part of the loss that is differentiated. */
void acf_result(acf_lab *l, acf_tensor *y);

/* The same for n integers in device memory, packed over u or with NULL plain: compared, as they have no derivative. */
void acf_result_ints(acf_lab *l, const int32_t *x, int64_t n, const acf_subset *u);

/* Registers a case list as tests of a suite. */
void acf_cases_add(const char *suite, const acf_case *cases, size_t n);
#define ACF_CASES(suite, cases)                                                                                        \
    __attribute__((constructor)) static void suite##_register_cases(void) {                                            \
        acf_cases_add(#suite, cases, sizeof(cases) / sizeof((cases)[0]));                                              \
    }

/* For other tests: a lab without a case. u is random with a seed; free with acf_lab_close. */
void acf_lab_open(acf_lab *l, int threads, int64_t N, int64_t D, acf_lab_mask mask, uint64_t seed);
void acf_lab_close(acf_lab *l);
/* The same on an open device, which stays open. */
void acf_lab_open_on(acf_lab *l, acf_device *dev, int64_t N, int64_t D, acf_lab_mask mask, uint64_t seed);
/* The device of --device; NULL without it. */
acf_device *acf_test_device(void);
/* --small: runs should be short, because a memory checker watches them. */
bool acf_test_small(void);
/* Begins a step again (the subset is rebuilt on the tape). */
void acf_lab_begin(acf_lab *l, bool record);
/* Uniform in [lo,hi], a function of its arguments. */
double acf_lab_random(uint64_t seed, int64_t i, double lo, double hi);
/* Asserts |a - b| <= tol (1 + |b|), with both in the message. */
void acf_assert_close(double a, double b, double tol, const char *what);

/* Operations that ran forward, and those whose gradients were checked; for the coverage test. */
extern bool acf_lab_ran[ACF_OP_COUNT], acf_lab_checked[ACF_OP_COUNT];

#endif
