/* Ranges and ticks: see ticks.h. */
#include "plot/ticks.h"

#include "base/civil.h"
#include "base/real.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

#define NARROW 2e-13 /* relative to the numbers: two ticks of a narrower range would have the same label */
#define FAR 4e307    /* the width of -FAR..FAR is still a double, and so is the next round number */

/* Labels show at most 15 digits, so a range must be wider than the last digits of its numbers. A constant gets space on
 * both sides. */
acf_range acf_range_usable(double lo, double hi) {
    lo = fmin(fmax(lo, -FAR), FAR), hi = fmin(fmax(hi, -FAR), FAR);
    if (!(lo <= hi)) return (acf_range){0, 1};
    const double size = fmax(fabs(lo), fabs(hi));
    if (hi - lo > NARROW * size && hi - lo > 1e-300) return (acf_range){lo, hi};
    const double capacity = size > 1e-290 ? 0.05 * size : 0.5;
    return (acf_range){fmax(lo - capacity, -FAR), fmin(hi + capacity, FAR)};
}

acf_range acf_range_of(const double *v, int64_t n, int64_t stride) {
    double lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i * stride])) continue;
        lo = fmin(lo, v[i * stride]), hi = fmax(hi, v[i * stride]);
    }
    return lo <= hi ? acf_range_usable(lo, hi) : (acf_range){0, 1};
}

acf_range acf_range_middle(const double *sorted, int64_t n) {
    if (n == 0) return (acf_range){0, 1};
    const int64_t cut = (int64_t)(0.002 * (double)(n - 1)), far = (int64_t)(0.05 * (double)(n - 1));
    const double median = sorted[(n - 1) / 2], below = median - sorted[far], above = sorted[n - 1 - far] - median;
    double lo = sorted[cut], hi = sorted[n - 1 - cut];
    if (below > 0) lo = fmax(lo, median - 3 * below);
    if (above > 0) hi = fmin(hi, median + 3 * above);
    return acf_range_usable(lo, hi);
}

acf_range acf_range_padded(acf_range r, double part) {
    const double capacity = part * (r.hi - r.lo);
    return (acf_range){fmax(r.lo - capacity, -FAR), fmin(r.hi + capacity, FAR)};
}

/* ---- labels ------------------------------------------------------------------------------------------------------ */

/* printf writes the locale's decimal point, which may have several bytes: everything that is not part of a number
 * becomes '.'. */
static void plain_point(char *s) {
    char *out = s;
    for (const char *p = s; *p; p++) {
        bool number = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e';
        if (number)
            *out++ = *p;
        else if (out == s || out[-1] != '.')
            *out++ = '.';
    }
    *out = '\0';
}

/* Writes v divided by unit, with `digits` decimals. -0 becomes 0. */
static void fixed(char out[ACF_TICK_LABEL_MAX], double v, double unit, int digits, const char *suffix) {
    snprintf(out, ACF_TICK_LABEL_MAX, "%.*f", digits, v == 0 ? 0.0 : v / unit);
    plain_point(out);
    strncat(out, suffix, ACF_TICK_LABEL_MAX - 1 - strlen(out));
}

/* Exponent of a step that is 1, 2 or 5 times a power of ten. The small addition corrects a log10 that is slightly too
 * low. 0 counts as smaller than any number. */
static int exponent(double v) { return (int)floor(fmax(log10(v), -330) + 1e-9); }

/* One format for all labels of an axis: largest is the largest |number|, step their difference. */
static void number_label(char out[ACF_TICK_LABEL_MAX], double v, double step, double largest) {
    static const struct {
        double unit, from; /* 2000, not 2k; 20k, not 20000; 2M, not 2000k */
        int power;
        const char *suffix;
    } units[] = {{1e9, 1e9, 9, "G"}, {1e6, 1e6, 6, "M"}, {1e3, 1e4, 3, "k"}, {1, 0, 0, ""}};
    const int fine = exponent(step);
    for (size_t k = 0; k < sizeof units / sizeof *units && largest < 1e12; k++) {
        const int digits = (int)acf_max(0, units[k].power - fine);
        if (largest < units[k].from || digits > (units[k].power ? 1 : 6)) continue;
        if (v == 0 && units[k].power)
            fixed(out, 0, 1, 0, "");
        else
            fixed(out, v, units[k].unit, digits, units[k].suffix);
        return;
    }
    if (largest < 1e15 && fine >= 0) {
        fixed(out, v, 1, 0, "");
        return;
    }
    int digits = (int)acf_min(acf_max(0, exponent(largest) - fine), 14);
    if (v == 0)
        snprintf(out, ACF_TICK_LABEL_MAX, "0");
    else
        snprintf(out, ACF_TICK_LABEL_MAX, "%.*e", (int)acf_max(0, digits - (exponent(largest) - exponent(fabs(v)))), v),
            plain_point(out);
}

char *acf_tick_number(char out[ACF_TICK_LABEL_MAX], double v, int digits) {
    if (v == 0 || !isfinite(v)) {
        snprintf(out, ACF_TICK_LABEL_MAX, "%s", v == 0 ? "0" : isnan(v) ? "NaN" : v > 0 ? "inf" : "-inf");
        return out;
    }
    double step = pow(10, exponent(fabs(v)) + 1 - digits), rounded = round(v / step) * step;
    if (!(step > 0) || !isfinite(rounded)) step = fabs(v), rounded = v;
    while (fmod(fabs(round(v / step)), 10) == 0 && step < fabs(v)) step *= 10; /* 12.0 is written 12 */
    number_label(out, rounded, step, fabs(rounded));
    return out;
}

char *acf_tick_count(char out[ACF_TICK_LABEL_MAX], int64_t n) {
    char digits[ACF_TICK_LABEL_MAX];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        out[at++] = digits[i];
        int left = length - 1 - i;
        if (left > 0 && left % 3 == 0 && digits[i] != '-') out[at++] = ',';
    }
    out[at] = '\0';
    return out;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

/* The smallest of 1, 2, 5 times a power of ten that is at least v. */
static double round_up(double v) {
    double power = pow(10, floor(log10(v)));
    if (!(power > 0)) return v; /* v is below the smallest power of ten that is a double */
    for (int k = 0; k < 3; k++) {
        double step = power * (double[]){1, 2, 5}[k];
        if (step >= v * (1 - 1e-9)) return step;
    }
    return 10 * power;
}

static acf_ticks number_ticks(acf_range r, int most) {
    acf_ticks t = {0};
    double step = round_up((r.hi - r.lo) / most);
    /* A range of `most` steps may hold one tick more. */
    while (floor(r.hi / step + 1e-9) - ceil(r.lo / step - 1e-9) + 1 > most) step = round_up(step * 1.01);
    const double first = ceil(r.lo / step - 1e-9), last = floor(r.hi / step + 1e-9);
    for (double k = first; k <= last && t.n < ACF_TICKS_MAX; k++) t.at[t.n++] = k * step;
    double largest = 0;
    for (int i = 0; i < t.n; i++) largest = fmax(largest, fabs(t.at[i]));
    for (int i = 0; i < t.n; i++) number_label(t.label[i], t.at[i], step, largest);
    return t;
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

#define DAY 86400.0

/* Steps below a month, in seconds. */
static const double spans[] = {1,    2,    5,    10,    15,    30,    60,  120,     300,     600,     900,
                               1800, 3600, 7200, 10800, 21600, 43200, DAY, 2 * DAY, 5 * DAY, 7 * DAY, 14 * DAY};

/* Times of day are seconds of 1970-01-01; padding may extend a range into the days around it. */
static bool is_time_of_day(acf_range r) { return r.lo > -DAY / 4 && r.hi < 1.25 * DAY; }

static void time_of_day_label(char out[ACF_TICK_LABEL_MAX], double seconds, double step) {
    const int all = (int)(seconds < 0 ? seconds + DAY : seconds); /* the end of the day is 24:00 */
    if (step >= 60)
        snprintf(out, ACF_TICK_LABEL_MAX, "%02d:%02d", all / 3600, all / 60 % 60);
    else
        snprintf(out, ACF_TICK_LABEL_MAX, "%02d:%02d:%02d", all / 3600, all / 60 % 60, all % 60);
}

static void time_label(char out[ACF_TICK_LABEL_MAX], double seconds, double step, int months) {
    const double day = floor(seconds / DAY), rest = seconds - day * DAY;
    acf_civil d = acf_civil_of((int64_t)day);
    const int hour = (int)(rest / 3600), minute = (int)(rest / 60) % 60, second = (int)rest % 60;
    if (months % 12 == 0 && months)
        snprintf(out, ACF_TICK_LABEL_MAX, "%lld", (long long)d.year);
    else if (months)
        snprintf(out, ACF_TICK_LABEL_MAX, "%lld-%02d", (long long)d.year, d.month);
    else if (step >= DAY)
        snprintf(out, ACF_TICK_LABEL_MAX, "%lld-%02d-%02d", (long long)d.year, d.month, d.day);
    else if (step >= 60)
        snprintf(out, ACF_TICK_LABEL_MAX, "%02d-%02d %02d:%02d", d.month, d.day, hour, minute);
    else
        snprintf(out, ACF_TICK_LABEL_MAX, "%02d:%02d:%02d", hour, minute, second);
}

/* Whole months or years differ in length, so they are counted in the calendar. */
static acf_ticks calendar_ticks(acf_range seconds, int most) {
    acf_ticks t = {0};
    static const int below[] = {1, 3, 6, 12};
    const double span = (seconds.hi - seconds.lo) / (30.44 * DAY);
    int64_t months = 0;
    for (size_t k = 0; k < sizeof below / sizeof *below && !months; k++)
        if (span / below[k] < most) months = below[k];
    if (!months) months = 12 * (int64_t)round_up(span / 12 / most);
    acf_civil from = acf_civil_of((int64_t)floor(seconds.lo / DAY));
    int64_t month = from.year * 12 + from.month - 1;
    for (month -= (month % months + months) % months; t.n < most; month += months) {
        const int64_t of_year = (month % 12 + 12) % 12;
        const double at = (double)acf_civil_days((acf_civil){(month - of_year) / 12, (int)of_year + 1, 1}) * DAY;
        if (at > seconds.hi) break;
        if (at < seconds.lo) continue;
        t.at[t.n] = at;
        time_label(t.label[t.n++], at, 0, (int)acf_min(months, 12));
    }
    return t;
}

/* Ticks in seconds. Years beyond the calendar are shown as numbers. */
static acf_ticks time_ticks(acf_range r, int most) {
    if (fabs(r.lo) > 1e13 || fabs(r.hi) > 1e13) return number_ticks(r, most);
    acf_ticks t = {0};
    const double want = (r.hi - r.lo) / most;
    if (want < 1) return number_ticks(r, most);
    for (size_t k = 0; k < sizeof spans / sizeof *spans; k++) {
        const double step = spans[k], first = ceil(r.lo / step), last = floor(r.hi / step);
        if (last - first + 1 > most) continue;
        for (double i = first; i <= last; i++, t.n++) {
            t.at[t.n] = i * step;
            if (is_time_of_day(r) && step < DAY)
                time_of_day_label(t.label[t.n], t.at[t.n], step);
            else
                time_label(t.label[t.n], t.at[t.n], step, 0);
        }
        return t;
    }
    return calendar_ticks(r, most);
}

acf_ticks acf_ticks_make(acf_range r, double unit, int most) {
    most = (int)acf_min(acf_max(most, 1), ACF_TICKS_MAX);
    if (!(unit > 0)) return number_ticks(r, most);
    const acf_range seconds = {r.lo * unit, r.hi * unit};
    if (!isfinite(seconds.hi - seconds.lo)) return number_ticks(r, most);
    acf_ticks t = time_ticks(seconds, most);
    for (int i = 0; i < t.n; i++) t.at[i] /= unit;
    return t;
}
