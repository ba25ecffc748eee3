/* Synthetic tables: see synth.h. This file has the list of sets, the missing cells, and the writing of text.
 *
 * Missing cells are drawn cell by cell with probability
 *
 *     MCAR   rate
 *     MAR    logistic(a_j + slope · cells of the row that are always observed)
 *     MNAR   logistic(a_j + 2 z_j)             z_j: the value itself, standardised: high values are missing more often
 *
 * The constants a_j are chosen so that the mean over a fixed sample of REFERENCE complete rows is the rate. They do not
 * depend on the table, so a row's missing cells do not either; the rate is met to about a hundredth. */
#include "table/synth.h"

#include "base/arena.h"
#include "base/civil.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

enum { DRAW_VALUES, DRAW_MISSING }; /* the first draw number of a row */

double acf_row_uniform(acf_row_rng *r) {
    return acf_rng_uniform((acf_rng_counter){r->seed, r->row, ACF_STREAM_SYNTH, r->k++, DRAW_VALUES});
}

double acf_row_normal(acf_row_rng *r) {
    return acf_rng_normal((acf_rng_counter){r->seed, r->row, ACF_STREAM_SYNTH, r->k++, DRAW_VALUES});
}

/* ---- the sets ---------------------------------------------------------------------------------------------------- */

static const acf_synth_column plane[] = {{"x1", ACF_SYNTH_REAL, 5, 0, NULL, "across"},
                                         {"x2", ACF_SYNTH_REAL, 5, 0, NULL, "up"}};

const acf_synth_set acf_synth_sets[] = {
    {"8gaussians", "eight clusters on a circle", 2, plane, acf_plane_8gaussians},
    {"2spirals", "two arms of a spiral", 2, plane, acf_plane_2spirals},
    {"checkerboard", "the dark squares of a 4 x 4 board", 2, plane, acf_plane_checkerboard},
    {"rings", "four circles around one centre", 2, plane, acf_plane_rings},
    {"moons", "two interleaved half circles", 2, plane, acf_plane_moons},
    {"pinwheel", "five bent blades", 2, plane, acf_plane_pinwheel},
    {"swissroll", "one spiral", 2, plane, acf_plane_swissroll},
    {"circles", "two circles around one centre", 2, plane, acf_plane_circles},
    {"clinic", "patients: an id, a date, categories, an ordinal, integers and reals that depend on each other",
     ACF_SYNTH_COLUMNS_MAX, acf_clinic_column, acf_clinic_row},
};
const int acf_synth_sets_n = (int)(sizeof acf_synth_sets / sizeof *acf_synth_sets);

const acf_synth_set *acf_synth_find(const char *name) {
    const char *names[sizeof acf_synth_sets / sizeof *acf_synth_sets];
    char shown[ACF_EXCERPT_MAX];
    for (int k = 0; k < acf_synth_sets_n; k++) {
        if (acf_text_same_name(name, acf_synth_sets[k].name)) return &acf_synth_sets[k];
        names[k] = acf_synth_sets[k].name;
    }
    int near = acf_text_nearest(name, names, acf_synth_sets_n);
    if (near >= 0)
        acf_fail(ACF_EUSAGE, "there is no made-up table '%s'; did you mean '%s'?", acf_text_excerpt(shown, name),
                 names[near]);
    else
        acf_fail(ACF_EUSAGE,
                 "there is no made-up table '%s'; expected 8gaussians, 2spirals, checkerboard, rings, moons, pinwheel, "
                 "swissroll, circles or clinic",
                 acf_text_excerpt(shown, name));
    return NULL;
}

/* ---- missing cells ----------------------------------------------------------------------------------------------- */

#define REFERENCE 4096
#define REFERENCE_SEED 0x6163666c6f77u
#define STEEP 2.0 /* slope of MNAR, per deviation */

enum { CLINIC_AGE = 3, CLINIC_SEX = 4 };

/* MAR in the clinic: id, date, clinic, age and sex are always recorded. Old patients skip the questions about habits
 * more often; young and healthy patients skip the measurements; men answer less than women. */
static const struct {
    double age, male;
} clinic_slope[ACF_SYNTH_COLUMNS_MAX] = {[5] = {1.5, 0.8},  [6] = {1.5, 0.8},  [7] = {-1.5, 0.4}, [8] = {-1.5, 0.4},
                                         [9] = {-1.5, 0.4}, [10] = {1.5, 0.8}, [11] = {-1.0, 0}};

static double standard(const acf_synth *s, const double *x, int64_t j) {
    return s->sd[j] > 0 ? (x[j] - s->mean[j]) / s->sd[j] : 0;
}

static bool may_be_missing(const acf_synth *s, int64_t j) {
    if (s->missing == ACF_MISSING_NONE || s->set->column[j].kind == ACF_SYNTH_ID) return false;
    return s->missing != ACF_MISSING_MAR || s->set->D == 2 || clinic_slope[j].age != 0;
}

/* The part of the log odds of a missing cell in column j besides its constant. In a 2-D set it comes from the other
 * column: in each row a coin decides which of the two is always observed, so the other is missing at twice the rate. */
static double score(const acf_synth *s, const double *x, int64_t j) {
    if (s->missing == ACF_MISSING_MNAR) return STEEP * standard(s, x, j);
    if (s->missing != ACF_MISSING_MAR) return 0;
    if (s->set->D == 2) return STEEP * standard(s, x, 1 - j);
    return clinic_slope[j].age * standard(s, x, CLINIC_AGE) + clinic_slope[j].male * x[CLINIC_SEX];
}

static double probability(double offset, double at) { return 1 / (1 + exp(-(offset + at))); }

/* The a for which the mean of logistic(a + at[i]) is the rate. The mean rises with a, so bisection finds it; beyond ±50
 * a probability is 0 or 1 to every digit. */
static double solve_offset(const double *at, double rate) {
    double lo = -50, hi = 50;
    for (int step = 0; step < 60; step++) {
        double middle = (lo + hi) / 2, sum = 0;
        for (int i = 0; i < REFERENCE; i++) sum += probability(middle, at[i]);
        *(sum < rate * REFERENCE ? &lo : &hi) = middle;
    }
    return (lo + hi) / 2;
}

/* Mean and deviation of each column, then the constants. scratch: x (REFERENCE,D), at (REFERENCE). */
static void calibrate(acf_synth *s, double *x, double *at) {
    const int64_t D = s->set->D;
    for (int64_t i = 0; i < REFERENCE; i++) s->set->row(REFERENCE_SEED, (uint64_t)i, x + i * D);
    for (int64_t j = 0; j < D; j++) {
        double sum = 0, square = 0;
        for (int64_t i = 0; i < REFERENCE; i++) sum += x[i * D + j];
        s->mean[j] = sum / REFERENCE;
        for (int64_t i = 0; i < REFERENCE; i++) square += (x[i * D + j] - s->mean[j]) * (x[i * D + j] - s->mean[j]);
        s->sd[j] = sqrt(square / REFERENCE);
    }
    double rate = s->missing == ACF_MISSING_MAR && D == 2 ? 2 * s->rate : s->rate;
    for (int64_t j = 0; j < D; j++) {
        if (!may_be_missing(s, j)) continue;
        for (int64_t i = 0; i < REFERENCE; i++) at[i] = score(s, x + i * D, j);
        s->offset[j] = solve_offset(at, rate);
    }
}

acf_status acf_synth_make(const char *set, uint64_t seed, acf_missingness missing, double rate, acf_synth *out) {
    acf_synth s = {.set = acf_synth_find(set), .seed = seed, .missing = missing, .rate = rate};
    if (!s.set) return ACF_EUSAGE;
    if (missing > ACF_MISSING_MNAR)
        return acf_fail(ACF_EUSAGE, "mechanism %d of missing cells is unknown", (int)missing);
    if (missing == ACF_MISSING_NONE || rate == 0) s.missing = ACF_MISSING_NONE;
    if (!(rate >= 0 && rate < 1))
        return acf_fail(ACF_EUSAGE, "a rate of missing cells of %g; expected 0 or more and less than 1", rate);
    if (s.missing == ACF_MISSING_MAR && s.set->D == 2 && rate > 0.5)
        return acf_fail(
            ACF_EUSAGE,
            "a rate of %g of cells missing at random; expected at most 0.5, because one of the two columns of '%s' "
            "is always observed",
            rate, s.set->name);
    if (s.missing == ACF_MISSING_MAR || s.missing == ACF_MISSING_MNAR) {
        double *x = acf_alloc((size_t)(REFERENCE * (s.set->D + 1)) * sizeof *x, "rows to calibrate missing cells");
        if (!x) return ACF_EMEMORY;
        calibrate(&s, x, x + REFERENCE * s.set->D);
        acf_release(x);
    }
    *out = s;
    return ACF_OK;
}

/* Random number j of the missing cells belongs to column j, number D to the coin. */
static void draw_missing_cells(const acf_synth *s, uint64_t i, const double *x, uint8_t *present) {
    acf_rng_counter at = {s->seed, i, ACF_STREAM_SYNTH, (uint32_t)s->set->D, DRAW_MISSING};
    int64_t seen = s->missing == ACF_MISSING_MAR && s->set->D == 2 ? (acf_rng_uniform(at) < 0.5) : -1;
    for (int64_t j = 0; j < s->set->D; j++) {
        at.column = (uint32_t)j;
        double p = s->missing == ACF_MISSING_MCAR ? s->rate : probability(s->offset[j], score(s, x, j));
        present[j] = !may_be_missing(s, j) || j == seen || acf_rng_uniform(at) >= p;
    }
}

/* A number is the value of its text, so the table in memory and its file agree. */
static double as_written(const acf_synth_column *column, double v) {
    if (column->kind != ACF_SYNTH_REAL) return v;
    double unit = 1;
    for (int k = 0; k < column->decimals; k++) unit *= 10;
    return round(v * unit) / unit;
}

void acf_synth_row(const acf_synth *s, uint64_t i, double *x, uint8_t *present) {
    s->set->row(s->seed, i, x);
    for (int64_t j = 0; j < s->set->D; j++) x[j] = as_written(&s->set->column[j], x[j]);
    if (present) draw_missing_cells(s, i, x, present);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static size_t date_text(double days, char *out) {
    acf_civil date = acf_civil_of((int64_t)days);
    return (size_t)snprintf(out, ACF_SYNTH_TEXT_MAX, "%04lld-%02d-%02d", (long long)date.year, date.month, date.day);
}

/* printf uses the locale's decimal point, so the integer and the fraction are written separately. */
static size_t decimal_text(double v, int decimals, char *out) {
    double unit = pow(10, decimals), scaled = round(fabs(v) * unit);
    const char *sign = v < 0 && scaled > 0 ? "-" : "";
    int64_t whole = (int64_t)(scaled / unit), part = (int64_t)(scaled - (double)whole * unit);
    if (decimals == 0) return (size_t)snprintf(out, ACF_SYNTH_TEXT_MAX, "%s%lld", sign, (long long)whole);
    return (size_t)snprintf(out, ACF_SYNTH_TEXT_MAX, "%s%lld.%0*lld", sign, (long long)whole, decimals,
                            (long long)part);
}

size_t acf_synth_text(const acf_synth_column *column, double v, char out[ACF_SYNTH_TEXT_MAX]) {
    switch (column->kind) {
    case ACF_SYNTH_ID: return (size_t)snprintf(out, ACF_SYNTH_TEXT_MAX, "P%06lld", (long long)v);
    case ACF_SYNTH_DATE: return date_text(v, out);
    case ACF_SYNTH_CATEGORY:
    case ACF_SYNTH_ORDINAL: return (size_t)snprintf(out, ACF_SYNTH_TEXT_MAX, "%s", column->labels[(int)v]);
    default: return decimal_text(v, column->decimals, out);
    }
}

/* ---- a file ------------------------------------------------------------------------------------------------------ */

#define BUFFER ((size_t)1 << 16)
#define ROW_BYTES ((size_t)(ACF_SYNTH_TEXT_MAX + 1) * ACF_SYNTH_COLUMNS_MAX)

/* Writes to a file that appears once it is complete, or directly to standard output. */
static acf_status flush(acf_outfile *f, const char *text, size_t n) {
    if (f) return acf_outfile_write(f, text, n);
    while (n > 0) {
        ssize_t put = write(STDOUT_FILENO, text, n);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return acf_fail(ACF_EIO, "cannot write to standard output: %s", strerror(errno));
        text += put;
        n -= (size_t)put;
    }
    return ACF_OK;
}

static size_t row_text(const acf_synth *s, uint64_t i, char *out) {
    double x[ACF_SYNTH_COLUMNS_MAX];
    uint8_t present[ACF_SYNTH_COLUMNS_MAX];
    size_t n = 0;
    acf_synth_row(s, i, x, present);
    for (int64_t j = 0; j < s->set->D; j++) {
        if (j) out[n++] = ',';
        if (present[j]) n += acf_synth_text(&s->set->column[j], x[j], out + n);
    }
    out[n++] = '\n';
    return n;
}

static acf_status write_rows(const acf_synth *s, int64_t rows, acf_outfile *f, char *buffer) {
    size_t n = 0;
    for (int64_t j = 0; j < s->set->D; j++)
        n += (size_t)sprintf(buffer + n, "%s%s", j ? "," : "", s->set->column[j].name);
    buffer[n++] = '\n';
    for (int64_t i = 0; i < rows; i++) {
        if (n + ROW_BYTES > BUFFER) {
            ACF_TRY(flush(f, buffer, n));
            n = 0;
        }
        n += row_text(s, (uint64_t)i, buffer + n);
    }
    return flush(f, buffer, n);
}

acf_status acf_synth_csv(const acf_synth *s, int64_t rows, const char *path) {
    acf_outfile *f = NULL;
    char *buffer = acf_alloc(BUFFER, "lines of a table");
    if (!buffer) return ACF_EMEMORY;
    acf_status status = strcmp(path, "-") == 0 ? ACF_OK : acf_outfile_open(path, &f);
    if (status == ACF_OK) status = write_rows(s, rows, f, buffer);
    acf_release(buffer);
    if (!f) return status;
    if (status == ACF_OK) return acf_outfile_commit(f);
    acf_outfile_abort(f);
    return status;
}
