/* Synthetic tables of known distribution: the eight 2-D sets of the paper and a table of patients, complete or with
 * missing cells.
 *
 *     acf_synth s;
 *     ACF_TRY(acf_synth_make("clinic", 7, ACF_MISSING_MAR, 0.2, &s));
 *     acf_synth_row(&s, i, x, present);          row i of the table: values (D), and which of them are observed (D)
 *
 * A row is a function of (set, seed, row number), and its missing cells of (set, seed, row number, mechanism, rate).
 * Row i is the same in a table of any length, and any thread can make it alone. A million clinic rows take about a
 * second and a half.
 *
 * The 2-D sets (columns x1 and x2, all within about ±4.5):
 *     8gaussians    eight round clusters, standard deviation 0.2, on a circle of radius 3
 *     2spirals      two arms of one and a half turns, a half turn apart
 *     checkerboard  the eight dark squares, of side 2, of a 4 x 4 board
 *     rings         four circles of radius 1, 2, 3, 4, equally likely
 *     moons         two interleaved half circles
 *     pinwheel      five bent blades
 *     swissroll     one spiral of one and a half turns that begins away from the centre
 *     circles       two circles of radius 1.5 and 3, equally likely
 *
 * The clinic: twelve dependent columns. Older and heavier patients have diabetes more often. hba1c has one mode for
 * patients without it, one for the treated and one for the untreated. Blood pressure depends on age, weight and
 * smoking. A third drinks no alcohol (a spike at zero). The cost of a year has a heavy tail. docs/math.md has the
 * formulas of the missing cells. */
#ifndef ACF_TABLE_SYNTH_H
#define ACF_TABLE_SYNTH_H

#include "base/status.h"

#include <stdint.h>

#define ACF_SYNTH_COLUMNS_MAX 12

/* How a value is written: see acf_synth_kind in acflow.h. */
typedef struct acf_synth_set {
    const char *name, *about;
    int64_t D;
    const acf_synth_column *column; /* (D) */
    void (*row)(uint64_t seed, uint64_t row, double *x);
} acf_synth_set;

/* The sets, and the one of that name; NULL with ACF_EUSAGE and a message if there is none. */
extern const acf_synth_set acf_synth_sets[];
extern const int acf_synth_sets_n;
const acf_synth_set *acf_synth_find(const char *name);

/* A table to be made: passed by value, nothing to free. */
typedef struct acf_synth {
    const acf_synth_set *set;
    uint64_t seed;
    acf_missingness missing;
    double rate;
    /* Of each column, from a fixed sample of complete rows: mean, deviation, and the constant in the log odds of a
     * missing cell. */
    double mean[ACF_SYNTH_COLUMNS_MAX], sd[ACF_SYNTH_COLUMNS_MAX], offset[ACF_SYNTH_COLUMNS_MAX];
} acf_synth;

/* Fails: ACF_EUSAGE (an unknown set or mechanism, a rate outside [0,1), or above a half for MAR in a 2-D set). */
acf_status acf_synth_make(const char *set, uint64_t seed, acf_missingness missing, double rate, acf_synth *out);

/* Row i: x (D) is complete; present (D), NULL allowed, has a 0 for a missing cell. i < 2^47. */
void acf_synth_row(const acf_synth *s, uint64_t i, double *x, uint8_t *present);

/* Writes value v of a column as text with its NUL; returns its length. */
#define ACF_SYNTH_TEXT_MAX 64
size_t acf_synth_text(const acf_synth_column *column, double v, char out[ACF_SYNTH_TEXT_MAX]);

/* Writes a CSV file with a header, missing cells as empty fields; path "-" is standard output. Fails: ACF_EIO,
 * ACF_EMEMORY. */
acf_status acf_synth_csv(const acf_synth *s, int64_t rows, const char *path);

/* The rows of the sets; each is in synth_plane.c or synth_clinic.c. */
void acf_plane_8gaussians(uint64_t seed, uint64_t row, double *x);
void acf_plane_2spirals(uint64_t seed, uint64_t row, double *x);
void acf_plane_checkerboard(uint64_t seed, uint64_t row, double *x);
void acf_plane_rings(uint64_t seed, uint64_t row, double *x);
void acf_plane_moons(uint64_t seed, uint64_t row, double *x);
void acf_plane_pinwheel(uint64_t seed, uint64_t row, double *x);
void acf_plane_swissroll(uint64_t seed, uint64_t row, double *x);
void acf_plane_circles(uint64_t seed, uint64_t row, double *x);
void acf_clinic_row(uint64_t seed, uint64_t row, double *x);
extern const acf_synth_column acf_clinic_column[ACF_SYNTH_COLUMNS_MAX];

/* Random numbers of one row in sequence: the k-th number of a row is keyed by (seed, row, k). */
typedef struct acf_row_rng {
    uint64_t seed, row;
    uint32_t k;
} acf_row_rng;
double acf_row_uniform(acf_row_rng *r); /* on (0,1) */
double acf_row_normal(acf_row_rng *r);

#endif
