/* The interval that draws of a number say: see interval.h. */
#include "infer/interval.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define ROUNDING 1e-9 /* 2 / 0.1 is 20, whatever the quotient of the doubles is */
#define MORE 1.2      /* times what is to be lost may be, where that is nearer to it than what is lost now */

/* Quantile q: the k-th (from 1) stands at k/(m+1), linear between; beyond the first and the last, these. */
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

/* One end, seen from outside. */
typedef struct end {
    int64_t out, at; /* draws beyond it, and draws that have its value; 0: it lies between two */
    bool shared;     /* the value is */
} end;

static bool is_shared(const acf_shared *s, double value, int64_t draws) {
    bool found = !s && draws > 1;
    for (int k = 0; s && !found && k < s->n; k++) found = s->value[k] == value;
    return found;
}

/* What is lost beyond an end, of m + 1 draws: a value that is shared is inside with all that have it, the more surely the more draws do; any other is a quantile, and the
 * truth may be as far out as it. An end between two draws is where the central interval put it. */
static double lost(end e, double central) { return e.at == 0 ? central : (double)e.out + (e.shared ? 1 / (double)e.at : (double)e.at); }

/* x[i] and what follows it, counted inwards: i = 0 is the outermost draw of this side. */
static double draw(const double *x, int64_t m, bool upper, int64_t i) { return x[upper ? m - 1 - i : i]; }

static end end_at(const double *x, int64_t m, bool upper, double value, const acf_shared *s) {
    end e = {0};
    while (e.out < m && (upper ? draw(x, m, upper, e.out) > value : draw(x, m, upper, e.out) < value)) e.out++;
    while (e.out + e.at < m && draw(x, m, upper, e.out + e.at) == value) e.at++;
    e.shared = is_shared(s, value, e.at);
    return e;
}

/* The next draw's value, or one beyond the other end. */
static double inwards(const double *x, int64_t m, bool upper, end e) {
    if (e.out + e.at < m) return draw(x, m, upper, e.out + e.at);
    return upper ? -INFINITY : INFINITY;
}

/* May an end go on, where `now` is lost and `then` would be, and this is to be? Values that many cells have go all at once: the nearest is as good as it gets, but not
 * much less may be inside than was promised. */
static bool may_go(double now, double then, double wanted) {
    return then <= wanted || (then <= MORE * wanted && then - wanted < wanted - now);
}

/* Of two values that may go the one with fewer draws does, and of equals the one that leaves a shorter interval. */
acf_interval acf_interval_of(const double *x, int64_t m, double level, const acf_shared *s) {
    acf_interval in = acf_interval_central(x, m, level);
    const double wanted = (1 - level) * (double)(m + 1), central = 0.5 * wanted;
    for (;;) {
        const end low = end_at(x, m, false, in.low, s), high = end_at(x, m, true, in.high, s);
        const double up = inwards(x, m, false, low), down = inwards(x, m, true, high);
        const double below = lost(low, central), above = lost(high, central);
        const bool may_rise = up <= in.high && may_go(below + above, lost(end_at(x, m, false, up, s), central) + above, wanted);
        const bool may_fall = down >= in.low && may_go(below + above, below + lost(end_at(x, m, true, down, s), central), wanted);
        if (!may_rise && !may_fall) return in;
        const bool rises = may_rise && (!may_fall || low.at < high.at || (low.at == high.at && up - in.low > in.high - down));
        if (rises) in.low = up;
        else in.high = down;
    }
}

int64_t acf_interval_draws(double level) { return (int64_t)ceil(2 / (1 - level) - 1 - ROUNDING); }
