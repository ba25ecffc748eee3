/* The clinic: see synth.h. The causal chain of a patient, drawn from top to bottom:
 *
 *     age, sex  ->  smoking, clinic  ->  bmi  ->  diabetes (hidden)  ->  hba1c, health, blood pressure, cost
 *                        |-> alcohol
 *
 * Diabetes and its treatment are drawn but not shown, so the other columns only hint at the modes of hba1c. Integers
 * are rounded here, reals when the row is finished (synth.c). */
#include "table/synth.h"

#include <math.h>

enum { PATIENT, VISIT, CLINIC, AGE, SEX, SMOKING, HEALTH, BMI, PRESSURE, HBA1C, ALCOHOL, COST };
enum { FEMALE, MALE };
enum { NEVER, FORMER, CURRENT };

static const char *const clinics[] = {"Harbour", "Old Town", "University", "Hillside", "Island"};
static const char *const sexes[] = {"F", "M"};
static const char *const smoking[] = {"never", "former", "current"};
static const char *const health[] = {"1", "2", "3", "4", "5"};

const acf_synth_column acf_clinic_column[ACF_SYNTH_COLUMNS_MAX] = {
    {"patient_id", ACF_SYNTH_ID, 0, 0, NULL, "number of the patient"},
    {"visit_date", ACF_SYNTH_DATE, 0, 0, NULL, "day of the visit; 2019 to 2023, workdays"},
    {"clinic", ACF_SYNTH_CATEGORY, 0, 5, clinics, "which of the five clinics; one is rare"},
    {"age", ACF_SYNTH_INTEGER, 0, 0, NULL, "years"},
    {"sex", ACF_SYNTH_CATEGORY, 0, 2, sexes, "as registered"},
    {"smoking", ACF_SYNTH_CATEGORY, 0, 3, smoking, "as told"},
    {"health", ACF_SYNTH_ORDINAL, 0, 5, health, "how patients rate it themselves, 1 poor to 5 excellent"},
    {"bmi", ACF_SYNTH_REAL, 1, 0, NULL, "body mass index, kg/m2"},
    {"blood_pressure", ACF_SYNTH_INTEGER, 0, 0, NULL, "systolic, mmHg"},
    {"hba1c", ACF_SYNTH_REAL, 1, 0, NULL, "blood sugar of three months, %; three modes"},
    {"alcohol", ACF_SYNTH_REAL, 1, 0, NULL, "units a week; a spike at zero"},
    {"cost", ACF_SYNTH_REAL, 2, 0, NULL, "of a year, euros; a heavy tail"},
};

static double logistic(double v) { return 1 / (1 + exp(-v)); }
static bool chance(acf_row_rng *r, double p) { return acf_row_uniform(r) < p; }
static double between(double v, double lo, double hi) { return fmin(fmax(v, lo), hi); }

/* A random index with these weights. */
static int pick(acf_row_rng *r, const double *weight, int n) {
    double sum = 0, u = acf_row_uniform(r);
    for (int k = 0; k < n; k++) sum += weight[k];
    for (int k = 0; k < n - 1; k++)
        if ((u -= weight[k] / sum) < 0) return k;
    return n - 1;
}

/* Days since 1970, recent ones more often; a weekend's visit moves to Monday. 1970-01-01 was a Thursday. */
static double visit_day(acf_row_rng *r) {
    double day =
        17897 + floor(1824 * pow(acf_row_uniform(r), 0.8)); /* 2019-01-01 onwards; the last is 2023-12-29, a Friday */
    double weekday = fmod(day + 3, 7);                      /* 0 is Monday */
    return weekday < 5 ? day : day + 7 - weekday;
}

/* Columns that do not depend on the state of health. Returns age in deviations (old). */
static double who(acf_row_rng *r, uint64_t row, double *x) {
    x[PATIENT] = (double)(row + 1);
    x[VISIT] = visit_day(r);
    x[AGE] = round(18 + 77 * logistic(0.1 + 0.85 * acf_row_normal(r)));
    x[SEX] = chance(r, 0.46) ? MALE : FEMALE;
    double old = (x[AGE] - 57) / 14, male = x[SEX];
    x[CLINIC] = pick(r, (double[]){0.34, 0.27 * exp(0.3 * old), 0.22, 0.13 * exp(0.9 * old), 0.04}, 5);
    x[SMOKING] = pick(r, (double[]){1, exp(-0.7 + 0.5 * male + 0.5 * old), exp(-0.9 + 0.4 * male - 0.6 * old)}, 3);
    return old;
}

/* 0 for patients who do not drink, at least a tenth for those who do. */
static double alcohol_units(acf_row_rng *r, const double *x, double old) {
    double male = x[SEX], current = x[SMOKING] == CURRENT;
    bool abstains = chance(r, logistic(-0.5 - 0.7 * male + 0.3 * old));
    double units = exp(1.5 + 0.5 * male + 0.4 * current + 0.7 * acf_row_normal(r));
    return abstains ? 0 : fmax(units, 0.1);
}

/* A lognormal body times a Pareto factor: the mean exists, the variance barely. */
static double year_cost(acf_row_rng *r, double old, bool diabetic, bool treated) {
    double body = exp(5.3 + 0.35 * old + 0.7 * diabetic + 0.4 * treated + 0.5 * acf_row_normal(r));
    return body * pow(acf_row_uniform(r), -1 / 2.2);
}

void acf_clinic_row(uint64_t seed, uint64_t row, double *x) {
    acf_row_rng r = {seed, row, 0};
    const double old = who(&r, row, x), current = x[SMOKING] == CURRENT;
    x[BMI] = between(exp(3.27 + 0.04 * old - 0.03 * current + 0.16 * acf_row_normal(&r)), 14, 60);
    double heavy = (x[BMI] - 26.7) / 4.5;
    bool diabetic = chance(&r, logistic(-1.1 + 1.1 * heavy + 0.8 * old)), treated = chance(&r, 0.6) && diabetic;
    double mode = !diabetic ? 5.3 : treated ? 7.0 : 9.6, width = !diabetic ? 0.3 : treated ? 0.45 : 0.8;
    x[HBA1C] = between(mode + width * acf_row_normal(&r), 3.8, 15);
    double pressure = 125 + 7 * old + 3.5 * heavy + 5 * current + 3 * x[SEX] + 10 * acf_row_normal(&r);
    x[PRESSURE] = between(round(pressure), 80, 230);
    double rating = 2.4 - 0.5 * old - 0.3 * heavy - 0.7 * diabetic - 0.4 * current + 0.8 * acf_row_normal(&r);
    x[HEALTH] = between(round(rating), 0, 4);
    x[ALCOHOL] = alcohol_units(&r, x, old);
    x[COST] = year_cost(&r, old, diabetic, treated);
}
