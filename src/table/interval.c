/* The interval of a number from draws: see interval.h. */
#include "table/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define ROUNDING 1e-9 /* tolerance: 2 / 0.1 counts as 20, whatever the quotient of the doubles is */
#define OUTSIDE 0.5   /* share of a value's weight that counts as outside if cells do not share it */
#define MORE 1.2      /* maximum loss relative to the target, if that is nearer to the target than the current loss */

/* Quantile q: the k-th (from 1) is at k/(m+1), linear between; beyond the first and the last, these. */
static double weibull(const double *x, int64_t m, double q) {
    const double at = q * (double)(m + 1) - 1;
    if (at <= 0) return x[0];
    if (at >= (double)(m - 1)) return x[m - 1];
    const int64_t k = (int64_t)at;
    return x[k] + (at - (double)k) * (x[k + 1] - x[k]);
}

acf_interval acf_interval_central(const double *x, int64_t m, double level) {
    return (acf_interval){weibull(x, m, 0.5 - 0.5 * level), weibull(x, m, 0.5 + 0.5 * level)};
}

void acf_shared_count(acf_shared *s, double value, int64_t cells, int64_t all) {
    if (cells >= ACF_SHARED_CELLS && cells * ACF_SHARED_MOST >= all) s->value[s->n++] = value;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void acf_shared_of(acf_shared *s, double *x, int64_t n) {
    s->n = 0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int64_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && x[end] == x[i];) end++;
        acf_shared_count(s, x[i], end - i, n);
    }
}

/* ---- which values are inside ------------------------------------------------------------------------------------- */

/* n values, ascending: draws, where one more draw is to be covered, or a distribution. */
typedef struct sample {
    const double *value, *weight; /* NULL: 1 */
    int64_t n;
    double all, more; /* sum of the weights; weight of one more draw */
} sample;

/* Value i, counted inwards: i = 0 is the outermost value of this side. */
static int64_t place(const sample *v, bool upper, int64_t i) { return upper ? v->n - 1 - i : i; }
static double value_at(const sample *v, bool upper, int64_t i) { return v->value[place(v, upper, i)]; }
static double weight_at(const sample *v, bool upper, int64_t i) {
    return v->weight ? v->weight[place(v, upper, i)] : 1;
}

/* One end of the interval, counted from outside. */
typedef struct end {
    double value, out, at; /* the weight beyond it, and that of its value; 0: it lies between two values */
    int64_t next;          /* the first value further in */
    bool shared;           /* cells share the value */
} end;

static bool is_shared(const acf_shared *s, double value, int64_t times) {
    bool found = !s && times > 1;
    for (int k = 0; s && !found && k < s->n; k++) found = s->value[k] == value;
    return found;
}

/* e.next is the first value not outside of e.value: counts those equal to it. */
static end count_equal(const sample *v, bool upper, end e, const acf_shared *s) {
    const int64_t first = e.next;
    for (; e.next < v->n && value_at(v, upper, e.next) == e.value; e.next++) e.at += weight_at(v, upper, e.next);
    e.shared = is_shared(s, e.value, e.next - first);
    return e;
}

static end end_at(const sample *v, bool upper, double value, const acf_shared *s) {
    end e = {.value = value};
    for (; e.next < v->n && (upper ? value_at(v, upper, e.next) > value : value_at(v, upper, e.next) < value); e.next++)
        e.out += weight_at(v, upper, e.next);
    return count_equal(v, upper, e, s);
}

/* The next value inwards; beyond the other end if there is none. */
static end inwards(const sample *v, bool upper, end e, const acf_shared *s) {
    if (e.next == v->n) return (end){.value = upper ? -INFINITY : INFINITY};
    return count_equal(v, upper, (end){.value = value_at(v, upper, e.next), .out = e.out + e.at, .next = e.next}, s);
}

/* The loss at an end: the weight that is outside. A shared value is inside with all its copies; for draws, the
 * probability of that rises with the number of copies. Any other end is a quantile, and half of its weight is
 * outside. Draws that repeat one donor's cell may all have the same error, so they count in full. An end between two
 * values is where the central interval put it. */
static double loss_beyond(const sample *v, end e, double central) {
    if (e.at == 0) return central;
    if (e.shared) return e.out + v->more / e.at;
    return e.out + (v->more > 0 ? e.at : OUTSIDE * e.at);
}

/* Whether an end may move inwards: `now` is the current loss, `then` the loss afterwards, `wanted` the target. A
 * value that many cells share moves as a whole. The nearest loss is chosen, but coverage may not fall much below the
 * level. */
static bool may_leave_out(double now, double then, double wanted) {
    return then <= wanted || (then <= MORE * wanted && then - wanted < wanted - now);
}

/* Shortens the central interval. Of two values that may be left out, the one of less weight is; of equals, the one
 * that leaves a shorter interval. */
static acf_interval shorten(const sample *v, acf_interval in, double level, const acf_shared *s) {
    const double wanted = (1 - level) * (v->all + v->more), central = 0.5 * wanted;
    end low = end_at(v, false, in.low, s), high = end_at(v, true, in.high, s);
    for (;;) {
        const end up = inwards(v, false, low, s), down = inwards(v, true, high, s);
        const double below = loss_beyond(v, low, central), above = loss_beyond(v, high, central);
        const bool may_rise =
            up.value <= high.value && may_leave_out(below + above, loss_beyond(v, up, central) + above, wanted);
        const bool may_fall =
            down.value >= low.value && may_leave_out(below + above, below + loss_beyond(v, down, central), wanted);
        if (!may_rise && !may_fall) return (acf_interval){low.value, high.value};
        const bool shorter = up.value - low.value > high.value - down.value;
        if (may_rise && (!may_fall || low.at < high.at || (low.at == high.at && shorter)))
            low = up;
        else
            high = down;
    }
}

acf_interval acf_interval_of(const double *x, int64_t m, double level, const acf_shared *s) {
    const sample v = {.value = x, .n = m, .all = (double)m, .more = 1};
    return shorten(&v, acf_interval_central(x, m, level), level, s);
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

void acf_weighted_add(acf_weighted *d, const double *value, int64_t n, double each) {
    int64_t i = d->n - 1, k = n - 1;
    d->n += n;
    for (int64_t to = d->n - 1; k >= 0; to--) {
        const bool own = i >= 0 && d->value[i] > value[k];
        d->value[to] = own ? d->value[i] : value[k], d->weight[to] = own ? d->weight[i] : each;
        if (own)
            i--;
        else
            k--;
    }
}

/* The value with the weight `tail` beyond it. A value stands at the middle of its weight. Between two values the
 * quantile is linear over the width of the lighter one, so there is a step at a heavy value. */
static double quantile(const sample *v, bool upper, double tail) {
    double passed = 0;
    for (int64_t i = 0; i < v->n - 1; i++) {
        const double w = weight_at(v, upper, i), x = value_at(v, upper, i);
        const double half = 0.5 * fmin(w, weight_at(v, upper, i + 1));
        passed += w;
        if (tail < passed - half) return x;
        if (tail < passed + half) return x + 0.5 * (tail - (passed - half)) / half * (value_at(v, upper, i + 1) - x);
    }
    return value_at(v, upper, v->n - 1);
}

acf_interval acf_interval_of_weighted(const acf_weighted *d, double level, const acf_shared *s) {
    sample v = {d->value, d->weight, d->n, 0, 0};
    for (int64_t i = 0; i < d->n; i++) v.all += d->weight[i];
    const double tail = 0.5 * (1 - level) * v.all;
    return shorten(&v, (acf_interval){quantile(&v, false, tail), quantile(&v, true, tail)}, level, s);
}

int64_t acf_interval_draws(double level) { return (int64_t)ceil(2 / (1 - level) - 1 - ROUNDING); }
