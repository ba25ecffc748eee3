/* A bench for answers with an archive (donors/donor_answers.h): a table whose rows repeat in part, a model that remembers them, and questions about them. */
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

/* Whole numbers, a category, measurements, a category, measurements. Rows 0 to FULL - 1 are complete and no two have the same measurements; of the others, all
 * repeat one of them in part. No row has the last class. Rows that are not remembered have ids from NEW on. */
typedef struct acf_donor_lab {
    acf_device *dev;
    acf_table *table; /* what is remembered */
    acf_model *m;
    acf_donors *a;        /* the model's */
    acf_donor_search *r;  /* look-ups by the tests */
    acf_session *s, *net; /* with the archive; of the networks alone */
    double x[CELLS];
} acf_donor_lab;

void acf_donor_lab_open(acf_donor_lab *b, int threads, int members, int64_t batch);
void acf_donor_lab_close(acf_donor_lab *b);

/* A session of b's model as it is with the archive, or without. */
acf_session *acf_donor_lab_ask(const acf_donor_lab *b, bool donors, int64_t batch);

/* How far rows are believed, of all columns alike whatever they say; and how often a cell of a donor differs. */
void acf_donor_lab_believe(acf_donor_lab *b, double shift, double differ);
/* Rows 0 to FULL - 1 alone are remembered, and those that differ from a row in a known cell are no donors where another does not. */
void acf_donor_lab_only_equal(acf_donor_lab *b);

/* h of column j of row i of t, looked up by these known cells; what the rows say can then be asked of b->r. */
double acf_donor_lab_trust(acf_donor_lab *b, const acf_table *t, int64_t i, int j, const uint8_t *known);

/* N rows of the bench's columns; N times a row, as rows that are not remembered; row i of t, alone: a view. */
acf_table *acf_donor_lab_table(const double *x, int64_t N, uint64_t first_id);
acf_table *acf_donor_lab_copies(const double *row, int64_t N);
acf_table acf_donor_lab_row(const acf_table *t, int64_t i);

/* Masks: a pattern of given and asked cells, of rows with none, one, some and all columns asked. */
void acf_donor_lab_masks(uint8_t *given, uint8_t *target, int64_t cells);

/* What q asks for and gives, as session.h says it. */
bool acf_donor_lab_asks(acf_query q, acf_purpose why, const acf_table *t, int64_t c);
bool acf_donor_lab_gives(acf_query q, acf_purpose why, const acf_table *t, int64_t c);

#endif
