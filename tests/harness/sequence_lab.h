/* Shared by the tests of sequences: a shuffled order in three stages, its sequence on the lab's device, and the same on
 * the host. */
#ifndef ACF_HARNESS_SEQUENCE_LAB_H
#define ACF_HARNESS_SEQUENCE_LAB_H

#include "harness/lab.h"

enum { SEQUENCE_ROWS = 2048, SEQUENCE_COLUMNS = 256 };

/* With arrays in host memory; row numbers exceed 32 bits. */
static inline acf_order order_on_host(void) {
    static int32_t stage[SEQUENCE_COLUMNS];
    static uint64_t id[SEQUENCE_ROWS];
    for (int j = 0; j < SEQUENCE_COLUMNS; j++) stage[j] = (7 * j + 2) % 3;
    for (int i = 0; i < SEQUENCE_ROWS; i++) id[i] = 0x100000000007u + 5 * (uint64_t)i;
    return (acf_order){.stage = stage, .shuffle = true, .seed = 0x123456789abcdef, .draw = 6, .row_id = id};
}

/* The sequences of masks b and m (N,D) of host memory, on the lab's device; NULL after a failure. */
static inline const acf_subset *sequence_of(acf_lab *l, const uint8_t *b, const uint8_t *m, int64_t D) {
    acf_order o = order_on_host();
    assert_true(l->N <= SEQUENCE_ROWS && D <= SEQUENCE_COLUMNS);
    o.stage = acf_lab_copy(l, o.stage, (size_t)D * sizeof *o.stage);
    o.row_id = acf_lab_copy(l, o.row_id, (size_t)l->N * sizeof *o.row_id);
    const uint8_t *given = acf_lab_copy(l, b, (size_t)(l->N * D)), *present = acf_lab_copy(l, m, (size_t)(l->N * D));
    return acf_tape_sequence(l->t, given, present, &o, l->N, D);
}

static inline const acf_subset *sequence_of_lab(acf_lab *l) { return sequence_of(l, l->b, l->m, l->D); }

/* The same on the host, in memory that lives as long as the step. */
static inline const acf_subset *host_sequence_of(const acf_lab *l, const uint8_t *b, const uint8_t *m, int64_t D) {
    const acf_order o = order_on_host();
    const acf_subset *s;
    assert_int_equal(acf_subset_order(l->mem ? l->mem : l->t->mem, b, m, &o, l->N, D, &s), ACF_OK);
    return s;
}

static inline const acf_subset *host_sequence(const acf_lab *l) { return host_sequence_of(l, l->b, l->m, l->D); }

#endif
