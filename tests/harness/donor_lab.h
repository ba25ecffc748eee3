/* Setup for tests of donor answers (donors/donor_answers.h): a table with partly repeated rows, a model with donors,
 * and queries. */
#ifndef ACF_HARNESS_DONOR_LAB_H
#define ACF_HARNESS_DONOR_LAB_H

#include "donors/donor_answers.h"
#include "infer/session.h"

#include <math.h>

enum {
    ROWS = 24,
    COLS = 5,
    CELLS = ROWS * COLS,
    WHOLE = 0,
    CLASS = 1,
    REAL = 2,
    COIN = 3,
    LAST = 4,
    CLASSES = 4,
    FULL = 8,
    NEW = 1000
};
#define ABSENT ((double)NAN)
extern const acf_column acf_donor_lab_columns[COLS];

/* Whole numbers, a category, measurements, a category, measurements. Rows 0 to FULL - 1 are complete, and no two have
 * the same measurements; each of the others repeats one of them in part. No row has the last class. Rows that are not
 * stored as donors have ids from NEW on. */
typedef struct acf_donor_lab {
    acf_device *dev;
    acf_table *table; /* the rows stored as donors */
    acf_model *m;
    acf_donors *a;        /* the model's */
    acf_donor_search *r;  /* searches by the tests */
    acf_session *s, *net; /* with donors; of the networks alone */
    double x[CELLS];
} acf_donor_lab;

void acf_donor_lab_open(acf_donor_lab *b, int threads, int members, int64_t batch);
void acf_donor_lab_close(acf_donor_lab *b);

/* A session of b's model, with its donors or without. */
acf_session *acf_donor_lab_ask(const acf_donor_lab *b, bool donors, int64_t batch);

/* Sets the trust in donors, the same for all columns, and the probability that a cell of a donor differs. */
void acf_donor_lab_believe(acf_donor_lab *b, double shift, double differ);
/* Only rows 0 to FULL - 1 are stored. A row that differs in a known cell is no donor if another one does not differ. */
void acf_donor_lab_only_equal(acf_donor_lab *b);

/* The trust h in the donors of column j of row i of t, searched by these known cells; b->r then has their answers. */
double acf_donor_lab_trust(acf_donor_lab *b, const acf_table *t, int64_t i, int j, const uint8_t *known);

/* N rows of the lab's columns; N copies of a row, as rows that are not stored; row i of t alone: a view. */
acf_table *acf_donor_lab_table(const double *x, int64_t N, uint64_t first_id);
acf_table *acf_donor_lab_copies(const double *row, int64_t N);
acf_table acf_donor_lab_row(const acf_table *t, int64_t i);

/* Masks: a pattern of given and target cells, with none, one, some and all columns of a row as targets. */
void acf_donor_lab_masks(uint8_t *given, uint8_t *target, int64_t cells);

/* The targets and given cells of q, in the form of session.h. */
bool acf_donor_lab_asks(acf_query q, acf_purpose why, const acf_table *t, int64_t c);
bool acf_donor_lab_gives(acf_query q, acf_purpose why, const acf_table *t, int64_t c);

#endif
