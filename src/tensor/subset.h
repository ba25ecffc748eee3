/* Which columns of which rows are modelled: ragged masks, and the packed layout that all operations share.
 *
 * Every row has its own set u = m·(1-b) of columns to model (b = 1: observed; m = 1: not missing). Modelled values
 * are stored packed and step-major, rows sorted by |u|, largest first. Step t is then a prefix of the rows, and
 * there is no padding:
 *
 *     row 0   u = {1}             rank 2             packed index   0 1 2 | 3 4 | 5
 *     row 1   u = {0,2,3}   ->    rank 0     ->      step           0 0 0 | 1 1 | 2
 *     row 2   u = {1,3}           rank 1             row            1 2 0 | 1 2 | 1
 *                                                    column         0 1 1 | 2 3 | 3
 *
 * The compact order inside a row is the order of the columns, or for a sequence (acf_subset_order) any order.
 *
 * On the CPU T is the exact count, and so are steps and S. On a GPU the masks are in its memory and the host never
 * reads them: N and D are exact; T and S are capacities; steps is D; every array is in device memory, and there
 * first[D] is the exact T and active[t] the rows of step t. Shapes therefore depend only on N, D and the capacity.
 * After the last element, up to T, the maps hold -1, packed tensors finite numbers, and gradients 0. Host code of
 * operations reads N, D, T, S and steps, and no array. */
#ifndef ACF_TENSOR_SUBSET_H
#define ACF_TENSOR_SUBSET_H

#include "base/arena.h"
#include "base/real.h"

typedef struct acf_subset {
    int64_t N, D;          /* rows of the batch, columns of the table */
    int64_t T;             /* packed elements, the sum of all |u| */
    int64_t S;             /* numbers in a list of the |u|x|u| matrices, one row after the other */
    int64_t steps;         /* largest |u| */
    const int32_t *size;   /* (N)   |u| of each row */
    const int32_t *row;    /* (N)   rank -> row; sizes decrease, ties by row */
    const int32_t *rank;   /* (N)   row -> rank */
    const int32_t *active; /* (D+1) rows that have a step t; 0 from `steps` on */
    const int32_t *first;  /* (D+1) packed index where step t begins; T from `steps` on */
    const int32_t *cols;   /* (N,D) columns of row i in compact order; the first size[i] are valid */
    const int32_t *row_of; /* (T)   row of a packed element */
    const int32_t *col_of; /* (T)   column of a packed element */
    const int32_t *cell;   /* (T)   row·D + column: its index in a (N,D) table */
    const int32_t *prev;   /* (T)   packed index of the row's previous modelled column, -1 at the first step */
    const int32_t *mirror; /* (T)   packed index of the same row's element, counted from the other end */
    const int32_t *parent; /* (T)   packed index in the subset this one was split from; NULL for a whole one */
    const int64_t *square; /* (N+1) start of row i's |u|x|u| matrix in a list of them; on a GPU the stride is D·D */
    const int32_t *place;  /* (N,D) packed index of a cell, -1: not modelled; on the CPU only from acf_subset_order */
    const struct acf_subset *whole; /* the subset this one was split from, and which half it is; NULL for a whole one */
    int parity;
    struct acf_counts *counts; /* on a GPU: host memory for acf_tape_steps; NULL on the CPU */
} acf_subset;

/* The steps of a subset for loops on the host: exact on every device. */
typedef struct acf_steps {
    int64_t n;                     /* steps; 0 also after a failure */
    const int32_t *active, *first; /* (D+1) each, as in acf_subset, in host memory */
} acf_steps;

/* The two functions are for the CPU; models call acf_tape_subset and acf_tape_half (tape.h). Builds the structure
 * from masks b and m, each (N,D), zero or not. NULL b means nothing observed, NULL m nothing missing. Memory comes
 * from the arena and lives as long as it. Fails: ACF_EMEMORY, ACF_ESHAPE (more than 2^31-1 cells). */
acf_status acf_subset_build(acf_arena *mem, const uint8_t *b, const uint8_t *m, int64_t N, int64_t D,
                            const acf_subset **out);

/* The order of a row's cells in a sequence: given cells first, then stage by stage; within each in the order of the
 * columns, or shuffled. Two orders with the same (seed, draw) shuffle alike. */
typedef struct acf_order {
    const int32_t *stage; /* of a column of the table, from 0 on, in device memory */
    bool shuffle;
    uint64_t seed;
    uint32_t draw;          /* index of the random order */
    const uint32_t *now;    /* the same in device memory, for a captured step; NULL: use `draw` */
    const uint64_t *row_id; /* (N) in device memory: every row has its own order; NULL: all have the same */
    const int32_t *column;  /* (D) in device memory: indices of a partial table's columns in the whole; NULL: whole */
    int64_t columns;        /* of the whole table, where column is given */
    bool modelled;          /* given cells are omitted */
} acf_order;

/* All present cells of every row, in this order; b and m as above. For the CPU; models call acf_tape_sequence
 * (tape.h). Fails: ACF_EMEMORY, ACF_ESHAPE. */
acf_status acf_subset_order(acf_arena *mem, const uint8_t *b, const uint8_t *m, const acf_order *o, int64_t N,
                            int64_t D, const acf_subset **out);

/* The elements at even (parity 0) or odd (parity 1) positions of each row's compact order, as a separate subset
 * whose `parent` points back into u. Fails: ACF_EMEMORY. */
acf_status acf_subset_split(acf_arena *mem, const acf_subset *u, int parity, const acf_subset **out);

/* ACF_ESHAPE if a batch of this size has more cells than 32 bits can count. */
acf_status acf_subset_fits(int64_t N, int64_t D);

/* Packed index of element t of row i; on the CPU. */
static inline int64_t acf_subset_at(const acf_subset *u, int64_t i, int64_t t) { return u->first[t] + u->rank[i]; }

#endif
