/* Tests of masks.h: the text form, the guarantees for every row, and the distributions. Draws depend on fixed
 * counters; thresholds correspond to events of probability one in a million or less. */
#include "table/masks.h"

#include "harness/check.h"

#include <math.h>
#include <string.h>

enum { N = 20000, D = 7 };
static uint8_t b[N * D], m[N * D];
static uint64_t id[N];

static acf_masks parsed(const char *text) {
    acf_masks masks;
    if (acf_masks_parse(text, &masks) != ACF_OK) fail_msg("%s", acf_error());
    return masks;
}

static acf_device *device(int threads) {
    acf_device *dev = NULL;
    assert_int_equal(acf_device_open_cpu(threads, &dev), ACF_OK);
    return dev;
}

/* Draws for N rows in which the columns of `holes` (a bit set) are missing. */
static void drawn(const char *text, unsigned missing, uint32_t draw) {
    acf_masks masks = parsed(text);
    acf_device *dev = device(2);
    for (int i = 0; i < N; i++) {
        id[i] = (uint64_t)i;
        for (int j = 0; j < D; j++) m[i * D + j] = missing >> j & 1 ? 0 : (uint8_t)(1 + j);
    }
    memset(b, 0xff, sizeof b);
    acf_masks_draw(dev, &masks, 20240607, draw, N, D, id, b, m);
    acf_device_close(dev);
}

/* A row as a number: bit j of u, or of b. */
static unsigned modelled(int i) {
    unsigned u = 0;
    for (int j = 0; j < D; j++) u |= (unsigned)(m[i * D + j] & !b[i * D + j]) << j;
    return u;
}
static unsigned given(int i) {
    unsigned o = 0;
    for (int j = 0; j < D; j++) o |= (unsigned)b[i * D + j] << j;
    return o;
}

/* Compares count (2^D) with probabilities (2^D): impossible sets do not occur, and chi-square is as expected. */
static void assert_fits(const int *count, const double *p) {
    double chi2 = 0.0;
    int cells = 0;
    for (unsigned s = 0; s < 1u << D; s++) {
        if (p[s] == 0.0) {
            if (count[s] != 0) fail_msg("set %#x cannot happen and came %d times", s, count[s]);
            continue;
        }
        chi2 += (count[s] - N * p[s]) * (count[s] - N * p[s]) / (N * p[s]);
        cells++;
    }
    double z = (chi2 - (cells - 1)) / sqrt(2.0 * fmax(cells - 1, 1));
    if (fabs(z) > 3.5 && cells > 1) fail_msg("chi-square %.1f in %d cells", chi2, cells);
}

static int size_of(unsigned set) { return __builtin_popcount(set); }

/* The probability that bernoulli:p over the present columns models exactly u, including the forced column. */
static void bernoulli_law(double p, unsigned present, double *law) {
    int n = size_of(present);
    for (unsigned u = 0; u < 1u << D; u++) {
        law[u] = 0.0;
        if (u & ~present) continue;
        if (u) law[u] = pow(1.0 - p, size_of(u)) * pow(p, n - size_of(u));
        if (size_of(u) == 1) law[u] += pow(p, n) / n;
    }
}

static void bernoulli_has_its_distribution(void **state) {
    (void)state;
    static const struct {
        const char *text;
        double p;
        unsigned missing;
    } cases[] = {{"bernoulli:0.5", 0.5, 0}, {"bernoulli:0.8", 0.8, 0x12}, {"bernoulli:0.1", 0.1, 0x78},
                 {"bernoulli:1", 1.0, 0x4}, {"bernoulli:0", 0.0, 0},      {"bernoulli:0.5", 0.5, 0x7e}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        unsigned present = 0x7f & ~cases[c].missing;
        int count[1 << D] = {0};
        double law[1 << D];
        drawn(cases[c].text, cases[c].missing, (uint32_t)c);
        for (int i = 0; i < N; i++) {
            assert_int_equal(modelled(i) | given(i), present); /* every present cell is one or the other */
            count[modelled(i)]++;
        }
        bernoulli_law(cases[c].p, present, law);
        assert_fits(count, law);
    }
}

static void uniform_has_its_distribution(void **state) {
    (void)state;
    for (unsigned missing = 0; missing < 0x7f; missing += 0x15) {
        unsigned present = 0x7f & ~missing;
        int count[1 << D] = {0}, n = size_of(present);
        double law[1 << D] = {0};
        drawn("uniform", missing, 3);
        for (int i = 0; i < N; i++) {
            assert_int_equal(modelled(i) | given(i), present);
            count[given(i)]++;
        }
        for (unsigned o = 0; o < 1u << D; o++) {
            int k = size_of(o);
            double subsets = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1));
            if (!(o & ~present) && k < n) law[o] = 1.0 / n / subsets;
        }
        assert_fits(count, law);
    }
}

static void marginal_turns_the_given_into_missing(void **state) {
    (void)state;
    static uint8_t b0[sizeof b], m0[sizeof m];
    drawn("bernoulli:0.7", 0x10, 9);
    memcpy(b0, b, sizeof b), memcpy(m0, m, sizeof m);
    drawn("marginal:0.7", 0x10, 9);
    for (int k = 0; k < N * D; k++) {
        assert_int_equal(b[k], 0);
        assert_int_equal(m[k], m0[k] & !b0[k]);
    }
    drawn("marginal:1", 0x10, 9);
    for (int i = 0; i < N; i++) assert_int_equal(size_of(modelled(i)), 1);
}

/* Cells are given as by uniform. Of r others one is modelled, and each other with probability 1 - P, equally in all
 * columns. */
static void partial_leaves_some_missing(void **state) {
    (void)state;
    static uint8_t b0[sizeof b];
    const double p = 0.3;
    drawn("uniform", 0x10, 9);
    memcpy(b0, b, sizeof b);
    drawn("partial:0.3", 0x10, 9);
    assert_memory_equal(b, b0, sizeof b);
    int count[1 << D] = {0}, modelled_at[D] = {0}, all = 0;
    double law[1 << D] = {0};
    for (int i = 0; i < N; i++) {
        unsigned rest = 0x7f & ~0x10u & ~given(i);
        assert_true(modelled(i) && !(modelled(i) & ~rest));
        if (size_of(rest) == 4) count[size_of(modelled(i))]++, all++;
        for (int j = 0; j < D; j++) modelled_at[j] += (int)(modelled(i) >> j & 1);
    }
    for (int k = 0; k < 4; k++)
        law[k + 1] = exp(lgamma(4) - lgamma(k + 1) - lgamma(4 - k) + k * log(1 - p) + (3 - k) * log(p)) * all / N;
    assert_fits(count, law);
    for (int j = 0; j < D; j++)
        assert_true(j == 4 ? modelled_at[j] == 0 : fabs((double)(modelled_at[j] - modelled_at[0])) < 5 * sqrt(N * 0.5));
    drawn("partial:0", 0x10, 9);
    for (int i = 0; i < N; i++) assert_int_equal(modelled(i) | given(i), 0x6f);
    drawn("partial:1", 0x10, 9);
    for (int i = 0; i < N; i++) assert_int_equal(size_of(modelled(i)), 1);
}

static void joint_gives_nothing(void **state) {
    (void)state;
    drawn("joint", 0x21, 0);
    for (int i = 0; i < N; i++) assert_true(given(i) == 0 && modelled(i) == (0x7f & ~0x21));
}

/* Weights of 2 to 1 to 1; joint and leave-one-out masks are recognised by their sets. */
static void mixtures_choose_by_weight(void **state) {
    (void)state;
    drawn("joint*2 + bernoulli:1 + marginal:1", 0, 4);
    int count[1 << D] = {0};
    double law[1 << D] = {0};
    for (int i = 0; i < N; i++) count[size_of(given(i)) ? 1 : size_of(modelled(i))]++;
    law[D] = 0.5, law[1] = 0.5;
    assert_fits(count, law);
    int left_out = 0;
    for (int i = 0; i < N; i++) left_out += size_of(given(i)) == D - 1;
    assert_true(fabs(left_out - 0.25 * N) < 3.5 * sqrt(N * 0.25 * 0.75));
}

static void rows_without_cells_stay_empty(void **state) {
    (void)state;
    static const char *const texts[] = {"bernoulli:0.5", "uniform", "marginal:1", "joint", "partial:0.5"};
    for (int c = 0; c < 5; c++) {
        drawn(texts[c], 0x7f, 0);
        for (int k = 0; k < N * D; k++) assert_true(b[k] == 0 && m[k] == 0);
    }
}

/* A row gets the same masks alone, elsewhere in a batch, and with any number of threads; the next draw gives others. */
static void masks_do_not_depend_on_the_batch(void **state) {
    (void)state;
    enum { WIDE = 131, ROWS = 600 };
    static uint8_t b1[ROWS * WIDE], m1[ROWS * WIDE], b2[ROWS * WIDE], m2[ROWS * WIDE], one_b[WIDE], one_m[WIDE];
    uint64_t turned[ROWS];
    acf_masks masks = parsed("bernoulli:0.5 + uniform + marginal:0.3 + joint*0.5 + partial:0.4");
    acf_device *one = device(1), *two = device(2);
    for (uint64_t i = 0; i < ROWS; i++) id[i] = 7 * i + 3, turned[ROWS - 1 - i] = id[i];
    memset(m1, 1, sizeof m1), memset(m2, 1, sizeof m2);
    acf_masks_draw(one, &masks, 5, 1, ROWS, WIDE, id, b1, m1);
    acf_masks_draw(two, &masks, 5, 1, ROWS, WIDE, turned, b2, m2);
    for (int i = 0; i < ROWS; i++) {
        assert_memory_equal(b1 + i * WIDE, b2 + (ROWS - 1 - i) * WIDE, WIDE);
        assert_memory_equal(m1 + i * WIDE, m2 + (ROWS - 1 - i) * WIDE, WIDE);
        memset(one_m, 1, sizeof one_m);
        acf_masks_draw(one, &masks, 5, 1, 1, WIDE, id + i, one_b, one_m);
        assert_memory_equal(b1 + i * WIDE, one_b, WIDE);
        assert_memory_equal(m1 + i * WIDE, one_m, WIDE);
    }
    memset(m2, 1, sizeof m2);
    acf_masks_draw(one, &masks, 5, 2, ROWS, WIDE, id, b2, m2);
    assert_memory_not_equal(b1, b2, sizeof b1);
    memset(m2, 1, sizeof m2);
    acf_masks_draw(one, &masks, 6, 1, ROWS, WIDE, id, b2, m2);
    assert_memory_not_equal(b1, b2, sizeof b1);
    acf_device_close(one), acf_device_close(two);
}

/* Neighbouring columns (also across blocks of the generator), neighbouring rows and draws are independent. */
static void cells_are_independent(void **state) {
    (void)state;
    enum { WIDE = 200, ROWS = 1000 };
    static uint8_t bb[2][ROWS * WIDE], mm[ROWS * WIDE];
    acf_masks masks = parsed("bernoulli:0.5");
    acf_device *dev = device(1);
    for (uint64_t i = 0; i < ROWS; i++) id[i] = i;
    for (uint32_t k = 0; k < 2; k++) {
        memset(mm, 1, sizeof mm);
        acf_masks_draw(dev, &masks, 1, k, ROWS, WIDE, id, bb[k], mm);
    }
    static const int lags[] = {1, 4, 63, 64, WIDE}; /* the last: the row below */
    double root = sqrt(ROWS * WIDE);
    for (size_t l = 0; l < 5; l++) {
        double sum = 0.0;
        for (int k = 0; k + lags[l] < ROWS * WIDE; k++) sum += (bb[0][k] == bb[0][k + lags[l]]) - 0.5;
        assert_true(fabs(2.0 * sum) / root < 3.5);
    }
    double sum = 0.0;
    for (int k = 0; k < ROWS * WIDE; k++) sum += (bb[0][k] == bb[1][k]) - 0.5;
    assert_true(fabs(2.0 * sum) / root < 3.5);
    acf_device_close(dev);
}

/* What a batch models stays within the planned capacity and comes near it: in all columns, and in the first three. */
static void planned_capacity_suffices(void **state) {
    (void)state;
    static const char *const texts[] = {"bernoulli:0.5", "uniform", "marginal:0.3", "partial:0.6 + uniform*2",
                                        "bernoulli:0.9*3 + joint"};
    enum { ROWS = 100 };
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        const acf_masks masks = parsed(texts[k]);
        const double capacity[2] = {acf_masks_capacity(&masks, ROWS, D, D), acf_masks_capacity(&masks, ROWS, D, 3)};
        double most[2] = {0};
        drawn(texts[k], 0, 3);
        for (int i = 0; i < N; i += ROWS)
            for (int part = 0; part < 2; part++) {
                int64_t cells = 0, width = part ? 3 : D;
                for (int r = i; r < i + ROWS; r++)
                    for (int j = 0; j < width; j++) cells += m[r * D + j] && !b[r * D + j];
                most[part] = fmax(most[part], (double)cells / (double)(ROWS * width));
            }
        for (int part = 0; part < 2; part++)
            if (most[part] > capacity[part] || most[part] < capacity[part] - 0.25)
                fail_msg("%s: %.3f of the cells are modelled, there is room for %.3f", texts[k], most[part],
                         capacity[part]);
    }
    const acf_masks joint = parsed("joint");
    assert_true(acf_masks_capacity(&joint, 10, 4, 4) == 1);
}

static void text_round_trips(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"bernoulli:0.5", "bernoulli:0.5"},
        {"  uniform ", "uniform"},
        {"bernoulli:0.5*2 + uniform*1", "bernoulli:0.5*2 + uniform"},
        {"joint+marginal:1e-3 * 2.5e+2+uniform", "joint + marginal:0.001*250 + uniform"},
        {"bernoulli:.1 * 1e+30 + joint", "bernoulli:0.1*1e+30 + joint"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        acf_masks a = parsed(cases[c][0]), back;
        char out[200];
        acf_text t = acf_text_into(out, sizeof out);
        acf_masks_write(&a, &t);
        assert_string_equal(out, cases[c][1]);
        back = parsed(out);
        assert_int_equal(a.n, back.n);
        for (int k = 0; k < a.n; k++)
            assert_true(a.part[k].kind == back.part[k].kind && a.part[k].p == back.part[k].p &&
                        a.part[k].weight == back.part[k].weight);
    }
}

static void wrong_text_is_reported(void **state) {
    (void)state;
    static const char *const cases[][2] = {
        {"", "masks '': at the end: expected bernoulli:P, uniform, marginal:P, partial:P or joint"},
        {"bernouli:0.5",
         "masks 'bernouli:0.5': at 'bernouli:0.5': expected bernoulli:P, uniform, marginal:P, partial:P or joint"},
        {"bernoulli", "masks 'bernoulli': at the end: expected ':' and a probability, as in bernoulli:0.5"},
        {"bernoulli:1.5", "masks 'bernoulli:1.5': at '1.5': expected a probability from 0 to 1"},
        {"bernoulli:-1", "masks 'bernoulli:-1': at '-1': expected a probability from 0 to 1"},
        {"marginal:", "masks 'marginal:': at the end: expected a probability from 0 to 1"},
        {"uniform:0.5", "masks 'uniform:0.5': at ':0.5': expected '*' and a weight, '+' and another part, or the end"},
        {"uniform*0", "masks 'uniform*0': at '0': expected a weight above 0, at most 1e100"},
        {"uniform*inf", "masks 'uniform*inf': at 'inf': expected a weight above 0, at most 1e100"},
        {"uniform*1e101", "masks 'uniform*1e101': at '1e101': expected a weight above 0, at most 1e100"},
        {"uniform +", "masks 'uniform +': at the end: expected bernoulli:P, uniform, marginal:P, partial:P or joint"},
        {"uniform joint",
         "masks 'uniform joint': at 'joint': expected '*' and a weight, '+' and another part, or the end"},
        {"Uniform", "masks 'Uniform': at 'Uniform': expected bernoulli:P, uniform, marginal:P, partial:P or joint"},
        {"joint+joint+joint+joint+joint+joint+joint+joint+joint+joint+joint+joint+joint+joint+joint+joint+joint",
         "masks: more than 16 parts in one mixture"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        acf_masks masks = {.n = -1};
        assert_int_equal(acf_masks_parse(cases[c][0], &masks), ACF_EUSAGE);
        assert_string_equal(acf_error(), cases[c][1]);
        assert_int_equal(masks.n, -1);
    }
}

ACF_TESTS(masks, cmocka_unit_test(planned_capacity_suffices), cmocka_unit_test(bernoulli_has_its_distribution),
          cmocka_unit_test(uniform_has_its_distribution), cmocka_unit_test(marginal_turns_the_given_into_missing),
          cmocka_unit_test(joint_gives_nothing), cmocka_unit_test(partial_leaves_some_missing),
          cmocka_unit_test(mixtures_choose_by_weight), cmocka_unit_test(rows_without_cells_stay_empty),
          cmocka_unit_test(masks_do_not_depend_on_the_batch), cmocka_unit_test(cells_are_independent),
          cmocka_unit_test(text_round_trips), cmocka_unit_test(wrong_text_is_reported))
