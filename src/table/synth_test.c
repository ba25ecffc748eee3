/* Tests of synth.h: rows depend on their number alone, columns have the moments and ties of the formulas, missing cells
 * have their rate and depend only on what their mechanism says, files agree with the arrays. */
#include "table/synth.h"

#include "base/arena.h"
#include "harness/comma_locale.h"
#include "harness/lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 20000, D = ACF_SYNTH_COLUMNS_MAX };
enum { PATIENT, VISIT, CLINIC, AGE, SEX, SMOKING, HEALTH, BMI, PRESSURE, HBA1C, ALCOHOL, COST };

static double x[N * D];
static uint8_t present[N * D];

static void make(const char *set, acf_missingness missing, double rate) {
    acf_synth s;
    assert_int_equal(acf_synth_make(set, 5, missing, rate, &s), ACF_OK);
    for (int64_t i = 0; i < N; i++) acf_synth_row(&s, (uint64_t)i, x + i * s.set->D, present + i * s.set->D);
}

static double mean(int64_t d, int64_t j) {
    double sum = 0;
    for (int64_t i = 0; i < N; i++) sum += x[i * d + j];
    return sum / N;
}

static double covariance(int64_t d, int64_t a, int64_t b) {
    double sum = 0, ma = mean(d, a), mb = mean(d, b);
    for (int64_t i = 0; i < N; i++) sum += (x[i * d + a] - ma) * (x[i * d + b] - mb);
    return sum / N;
}

static double correlation(int64_t d, int64_t a, int64_t b) {
    return covariance(d, a, b) / sqrt(covariance(d, a, a) * covariance(d, b, b));
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void a_row_depends_on_its_number_alone(void **state) {
    (void)state;
    for (int k = 0; k < acf_synth_sets_n; k++) {
        acf_synth a, b;
        double p[D], q[D];
        uint8_t m[D], n[D];
        const int64_t d = acf_synth_sets[k].D;
        int differ = 0;
        assert_int_equal(acf_synth_make(acf_synth_sets[k].name, 5, ACF_MISSING_MAR, 0.3, &a), ACF_OK);
        assert_int_equal(acf_synth_make(acf_synth_sets[k].name, 6, ACF_MISSING_MAR, 0.3, &b), ACF_OK);
        for (uint64_t i = 1000; i < 1100; i++) { /* alone, twice, and with another seed */
            acf_synth_row(&a, i, p, m), acf_synth_row(&a, i, q, n);
            assert_memory_equal(p, q, (size_t)d * sizeof *p);
            assert_memory_equal(m, n, (size_t)d);
            acf_synth_row(&b, i, q, NULL);
            differ += p[d - 1] != q[d - 1];
        }
        assert_true(differ > 50);
    }
}

static void missing_cells_do_not_change_values(void **state) {
    (void)state;
    acf_synth a, b;
    double p[D], q[D];
    uint8_t m[D];
    assert_int_equal(acf_synth_make("clinic", 5, ACF_MISSING_NONE, 0, &a), ACF_OK);
    assert_int_equal(acf_synth_make("clinic", 5, ACF_MISSING_MNAR, 0.4, &b), ACF_OK);
    for (uint64_t i = 0; i < 100; i++) {
        acf_synth_row(&a, i, p, m);
        for (int j = 0; j < D; j++) assert_int_equal(m[j], 1);
        acf_synth_row(&b, i, q, m);
        assert_memory_equal(p, q, sizeof p);
    }
}

static void the_plane_sets_are_centred_and_spread(void **state) {
    (void)state;
    for (int k = 0; k < acf_synth_sets_n; k++) {
        if (acf_synth_sets[k].D != 2) continue;
        make(acf_synth_sets[k].name, ACF_MISSING_NONE, 0);
        for (int j = 0; j < 2; j++) {
            assert_true(fabs(mean(2, j)) < 1.2);
            assert_true(covariance(2, j, j) > 0.8 && covariance(2, j, j) < 8);
            for (int64_t i = 0; i < N; i++) assert_true(fabs(x[i * 2 + j]) < 5.5);
        }
    }
}

/* Distances to the formula's centres and circles. */
static void the_plane_sets_have_their_shapes(void **state) {
    (void)state;
    make("8gaussians", ACF_MISSING_NONE, 0);
    int64_t at[8] = {0};
    for (int64_t i = 0; i < N; i++) {
        const double turn = atan2(x[2 * i + 1], x[2 * i]) / (3.14159265358979 / 4);
        const int k = ((int)lround(turn) + 8) % 8;
        const double cx = 3 * cos(k * 3.14159265358979 / 4), cy = 3 * sin(k * 3.14159265358979 / 4);
        assert_true(hypot(x[2 * i] - cx, x[2 * i + 1] - cy) < 1.2); /* six deviations */
        at[k]++;
    }
    for (int k = 0; k < 8; k++) assert_in_range(at[k], N / 8 - 250, N / 8 + 250);
    make("checkerboard", ACF_MISSING_NONE, 0);
    for (int64_t i = 0; i < N; i++)
        assert_int_equal(((int)floor((x[2 * i] + 4) / 2) + (int)floor((x[2 * i + 1] + 4) / 2)) & 1, 0);
    make("rings", ACF_MISSING_NONE, 0);
    for (int64_t i = 0; i < N; i++) {
        const double r = hypot(x[2 * i], x[2 * i + 1]);
        assert_true(fabs(r - round(r)) < 0.45 && round(r) >= 1 && round(r) <= 4);
    }
    make("circles", ACF_MISSING_NONE, 0);
    int64_t inner = 0;
    for (int64_t i = 0; i < N; i++) {
        const double r = hypot(x[2 * i], x[2 * i + 1]);
        assert_true(fabs(r - 1.5) < 0.7 || fabs(r - 3) < 0.7);
        inner += r < 2.25;
    }
    assert_in_range(inner, N / 2 - 400, N / 2 + 400);
}

/* ---- the clinic -------------------------------------------------------------------------------------------------- */

static void columns_of_the_clinic_depend_on_each_other(void **state) {
    (void)state;
    make("clinic", ACF_MISSING_NONE, 0);
    assert_true(correlation(D, AGE, PRESSURE) > 0.45 && correlation(D, AGE, PRESSURE) < 0.65);
    assert_true(correlation(D, BMI, PRESSURE) > 0.3);
    assert_true(correlation(D, HEALTH, AGE) < -0.45);
    assert_true(fabs(correlation(D, PATIENT, COST)) < 0.03);
    double zero = 0, modes[3] = {0}, gaps[2] = {0}, largest = 0, current_old = 0, old = 0, current_young = 0, young = 0;
    for (int64_t i = 0; i < N; i++) {
        const double *r = x + i * D;
        zero += r[ALCOHOL] == 0;
        modes[0] += fabs(r[HBA1C] - 5.3) < 0.35, modes[1] += fabs(r[HBA1C] - 7) < 0.35,
            modes[2] += fabs(r[HBA1C] - 9.6) < 0.35;
        gaps[0] += fabs(r[HBA1C] - 6.2) < 0.15, gaps[1] += fabs(r[HBA1C] - 8.2) < 0.15;
        largest = fmax(largest, r[COST]);
        if (r[AGE] > 70) old++, current_old += r[SMOKING] == 2;
        if (r[AGE] < 45) young++, current_young += r[SMOKING] == 2;
        assert_true(r[PATIENT] == (double)i + 1);
        assert_true(r[AGE] >= 18 && r[AGE] <= 95 && r[AGE] == round(r[AGE]));
        assert_true(r[PRESSURE] == round(r[PRESSURE]) && r[HEALTH] >= 0 && r[HEALTH] <= 4);
        assert_true(fabs(r[BMI] * 10 - round(r[BMI] * 10)) < 1e-9 && fabs(r[COST] * 100 - round(r[COST] * 100)) < 1e-5);
        const int weekday = (int)fmod(r[VISIT] + 3, 7); /* Monday 0 */
        assert_true(weekday < 5 && r[VISIT] >= 17897 && r[VISIT] <= 19722);
        for (int j = 0; j < D; j++)
            if (acf_clinic_column[j].classes)
                assert_true(r[j] >= 0 && r[j] < acf_clinic_column[j].classes && r[j] == round(r[j]));
    }
    acf_assert_close(zero / N, 0.32, 0.02, "who does not drink");
    assert_true(modes[0] > 2 * gaps[0] && modes[1] > 2 * gaps[0] &&
                modes[2] > 2 * gaps[1]);       /* per width: three modes */
    assert_true(largest > 20 * mean(D, COST)); /* a heavy tail */
    assert_true(current_young / young > 2 * current_old / old);
}

/* ---- missing cells ----------------------------------------------------------------------------------------------- */

static double missing_share(int64_t d, int64_t j) {
    double n = 0;
    for (int64_t i = 0; i < N; i++) n += !present[i * d + j];
    return n / N;
}

/* Mean of column `of` where column j is missing, minus where it is present, in deviations. */
static double shift(int64_t d, int64_t j, int64_t of) {
    double sum[2] = {0}, n[2] = {0};
    for (int64_t i = 0; i < N; i++) sum[present[i * d + j]] += x[i * d + of], n[present[i * d + j]]++;
    return (sum[0] / n[0] - sum[1] / n[1]) / sqrt(covariance(d, of, of));
}

static void missing_cells_have_their_rate(void **state) {
    (void)state;
    static const double rates[] = {0.05, 0.2, 0.5};
    for (int k = 0; k < acf_synth_sets_n; k++)
        for (int h = ACF_MISSING_MCAR; h <= ACF_MISSING_MNAR; h++)
            for (int r = 0; r < 3; r++) {
                const int64_t d = acf_synth_sets[k].D;
                make(acf_synth_sets[k].name, (acf_missingness)h, rates[r]);
                for (int64_t j = 0; j < d; j++) {
                    const bool never = d > 2 && (j == PATIENT || (h == ACF_MISSING_MAR && j <= SEX));
                    if (never)
                        assert_true(missing_share(d, j) == 0);
                    else
                        acf_assert_close(missing_share(d, j), rates[r], 0.02, "rate");
                }
            }
}

static void mcar_depends_on_nothing(void **state) {
    (void)state;
    make("clinic", ACF_MISSING_MCAR, 0.3);
    for (int64_t j = VISIT; j < D; j++)
        for (int64_t of = VISIT; of < D; of++) assert_true(fabs(shift(D, j, of)) < 0.08); /* five deviations */
    double both = 0;
    for (int64_t i = 0; i < N; i++) both += !present[i * D + BMI] && !present[i * D + COST];
    acf_assert_close(both / N, 0.09, 0.015, "holes of two columns are independent");
}

/* In the clinic, missingness depends on age and sex. Given those two, it does not depend on the value itself: tested
 * inside a narrow group. */
static void mar_depends_on_observed_cells(void **state) {
    (void)state;
    make("clinic", ACF_MISSING_MAR, 0.3);
    assert_true(shift(D, ALCOHOL, AGE) > 0.5 && shift(D, SMOKING, AGE) > 0.5 && shift(D, HEALTH, AGE) > 0.5);
    assert_true(shift(D, BMI, AGE) < -0.5 && shift(D, HBA1C, AGE) < -0.5 && shift(D, COST, AGE) < -0.3);
    assert_true(shift(D, ALCOHOL, SEX) > 0.1);
    double sum[2] = {0}, n[2] = {0}, square = 0;
    for (int64_t i = 0; i < N; i++) {
        const double *r = x + i * D;
        if (r[SEX] != 0 || r[AGE] < 55 || r[AGE] > 60) continue;
        sum[present[i * D + BMI]] += r[BMI], n[present[i * D + BMI]]++, square += (r[BMI] - 26.7) * (r[BMI] - 26.7);
    }
    const double sd = sqrt(square / (n[0] + n[1]));
    assert_true(n[0] > 100 && n[1] > 100);
    assert_true(fabs(sum[0] / n[0] - sum[1] / n[1]) < 4 * sd * sqrt(1 / n[0] + 1 / n[1]));
    /* In the plane it depends on the other column, and never both are missing. */
    make("moons", ACF_MISSING_MAR, 0.3);
    for (int64_t i = 0; i < N; i++) assert_true(present[2 * i] || present[2 * i + 1]);
    assert_true(shift(2, 0, 1) > 0.5 && shift(2, 1, 0) > 0.5);
}

static void mnar_depends_on_the_value_itself(void **state) {
    (void)state;
    make("clinic", ACF_MISSING_MNAR, 0.3);
    for (int64_t j = VISIT; j < D; j++) assert_true(shift(D, j, j) > (j == COST ? 0.2 : 0.8));
    make("circles", ACF_MISSING_MNAR, 0.3);
    assert_true(shift(2, 0, 0) > 0.8 && fabs(shift(2, 0, 1)) < 0.1);
}

static void wrong_arguments_are_refused(void **state) {
    (void)state;
    acf_synth s;
    assert_int_equal(acf_synth_make("clinik", 1, ACF_MISSING_NONE, 0, &s), ACF_EUSAGE);
    assert_string_equal(acf_error(), "there is no made-up table 'clinik'; did you mean 'clinic'?");
    assert_int_equal(acf_synth_make("xyzzy", 1, ACF_MISSING_NONE, 0, &s), ACF_EUSAGE);
    assert_non_null(strstr(acf_error(), "8gaussians, 2spirals"));
    static const double bad[] = {-0.1, 1, 2, NAN, INFINITY};
    for (int k = 0; k < 5; k++) assert_int_equal(acf_synth_make("clinic", 1, ACF_MISSING_MCAR, bad[k], &s), ACF_EUSAGE);
    assert_int_equal(acf_synth_make("rings", 1, ACF_MISSING_MAR, 0.51, &s), ACF_EUSAGE);
    assert_int_equal(acf_synth_make("rings", 1, (acf_missingness)7, 0.1, &s), ACF_EUSAGE);
    acf_alloc_fail_at(1);
    assert_int_equal(acf_synth_make("rings", 1, ACF_MISSING_MAR, 0.1, &s), ACF_EMEMORY);
    acf_alloc_fail_at(0);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void values_are_written(void **state) {
    (void)state;
    static const struct {
        int column;
        double v;
        const char *text;
    } cases[] = {{PATIENT, 42, "P000042"},
                 {PATIENT, 12345678, "P12345678"},
                 {VISIT, 19508, "2023-05-31"},
                 {VISIT, 18321, "2020-02-29"},
                 {CLINIC, 4, "Island"},
                 {SEX, 0, "F"},
                 {HEALTH, 4, "5"},
                 {AGE, 7, "7"},
                 {BMI, 25.25, "25.3"},
                 {BMI, 20, "20.0"},
                 {COST, 1234.05, "1234.05"},
                 {COST, 0.999, "1.00"}};
    char out[ACF_SYNTH_TEXT_MAX];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(acf_synth_text(&acf_clinic_column[cases[k].column], cases[k].v, out), strlen(cases[k].text));
        assert_string_equal(out, cases[k].text);
    }
    const acf_synth_column *plane = acf_synth_find("moons")->column;
    acf_synth_text(plane, -0.5, out), assert_string_equal(out, "-0.50000");
    acf_synth_text(plane, -0.000001, out), assert_string_equal(out, "0.00000"); /* not -0 */
}

/* Compares each line with the arrays; the decimal point is a point in any locale. */
static void files_agree_with_the_arrays(void **state) {
    (void)state;
    char folder[] = "/tmp/acflow-synth-XXXXXX", path[64], command[96], line[1024], cell[ACF_SYNTH_TEXT_MAX];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/t.csv", folder);
    const bool comma = use_comma_locale(folder);
    acf_synth s;
    assert_int_equal(acf_synth_make("clinic", 5, ACF_MISSING_MCAR, 0.2, &s), ACF_OK);
    assert_int_equal(acf_synth_csv(&s, 3000, path), ACF_OK);
    setlocale(LC_NUMERIC, "C");
    (void)comma; /* without such a locale the test is only weaker */
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    assert_string_equal(line,
                        "patient_id,visit_date,clinic,age,sex,smoking,health,bmi,blood_pressure,hba1c,alcohol,cost\n");
    for (uint64_t i = 0; i < 3000; i++) {
        double r[D];
        uint8_t m[D];
        acf_synth_row(&s, i, r, m);
        assert_non_null(fgets(line, sizeof line, f));
        char *at = line;
        for (int j = 0; j < D; j++) {
            char *end = at + strcspn(at, ",\n");
            *end = '\0';
            if (m[j])
                acf_synth_text(&acf_clinic_column[j], r[j], cell), assert_string_equal(at, cell);
            else
                assert_string_equal(at, "");
            if (m[j] && acf_clinic_column[j].kind == ACF_SYNTH_REAL)
                assert_true(strtod(at, NULL) == r[j]); /* bit for bit */
            at = end + 1;
        }
    }
    assert_null(fgets(line, sizeof line, f));
    fclose(f);
    assert_int_equal(acf_synth_csv(&s, 10, "/nonexistent/t.csv"), ACF_EIO);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

ACF_TESTS(synth, cmocka_unit_test(a_row_depends_on_its_number_alone),
          cmocka_unit_test(missing_cells_do_not_change_values), cmocka_unit_test(the_plane_sets_are_centred_and_spread),
          cmocka_unit_test(the_plane_sets_have_their_shapes),
          cmocka_unit_test(columns_of_the_clinic_depend_on_each_other), cmocka_unit_test(missing_cells_have_their_rate),
          cmocka_unit_test(mcar_depends_on_nothing), cmocka_unit_test(mar_depends_on_observed_cells),
          cmocka_unit_test(mnar_depends_on_the_value_itself), cmocka_unit_test(wrong_arguments_are_refused),
          cmocka_unit_test(values_are_written), cmocka_unit_test(files_agree_with_the_arrays))
