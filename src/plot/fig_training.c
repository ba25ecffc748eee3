/* The course of training: see acf_plot_training in acflow.h. Two panels over one axis of steps, because the two scores
 * have different units: the loss is per row, validation per held-out cell.
 *
 *     loss        |·.:·.                     every step pale, the running median on top; of a second pass only the
 *                 |   '··.__.___             median, from step 1 again: it is short, and ends below the best step
 *     validation  |'.                        one point each, the best marked
 *                 |  '-._o__,--
 *                 0    2000   4000 steps */
#include "plot/figures.h"

#include "base/arena.h"
#include "base/real.h"
#include "base/text.h"
#include "plot/density.h"

#include <math.h>
#include <string.h>

#define WIDTH 720.0
#define HEIGHT 460.0
#define MEDIANS 200 /* windows of the running median, each at least ten steps */

/* The arguments of acf_figure_training. */
typedef struct curves {
    const double *step, *loss, *valid; /* (n) */
    int64_t n, first;
} curves;

/* The range from the lowest score to the 98 % quantile of the scores after the first tenth. The first steps, often ten
 * times as high, may leave the panel. Fluctuating scores and runs of a few reports are not cut further. */
static acf_range score_range(const double *step, const double *v, int64_t n, acf_range steps, double *scratch) {
    double least = INFINITY;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) continue;
        least = fmin(least, v[i]);
        if (step[i] >= steps.lo + 0.1 * (steps.hi - steps.lo)) scratch[kept++] = v[i];
    }
    if (kept < 5) { /* use all */
        memcpy(scratch, v, (size_t)n * sizeof *v);
        kept = n;
    }
    kept = acf_values_sort(scratch, kept);
    if (kept == 0) return (acf_range){0, 1};
    const int64_t high = kept < 50 ? kept - 1 : (int64_t)(0.98 * (double)(kept - 1));
    return acf_range_padded(acf_range_usable(least, scratch[high]), 0.06);
}

/* The median of each of at most MEDIANS windows of neighbours; windows without a finite value are left out. Returns
 * their number. */
static int running_median(const double *step, const double *v, int64_t n, double *scratch, double *at, double *median) {
    const int64_t windows = acf_min(MEDIANS, n / 10);
    int k = 0;
    for (int64_t w = 0; w < windows; w++) {
        const int64_t from = w * n / windows, to = (w + 1) * n / windows;
        memcpy(scratch, v + from, (size_t)(to - from) * sizeof *v);
        const int64_t kept = acf_values_sort(scratch, to - from);
        if (kept == 0) continue;
        at[k] = step[(from + to - 1) / 2], median[k++] = scratch[kept / 2];
    }
    return k;
}

static void draw_median(const acf_panel *p, const double *step, const double *loss, int64_t n, acf_ink ink,
                        double *scratch) {
    double at[MEDIANS], median[MEDIANS];
    const int k = running_median(step, loss, n, scratch, at, median);
    for (int i = 0; i < k; i++) at[i] = acf_panel_x(p, at[i]), median[i] = acf_panel_y(p, median[i]);
    acf_canvas_clip(p->c, p->box);
    acf_canvas_curve(p->c, at, median, k, (acf_pen){ink, 1.8, 0});
    acf_canvas_unclip(p->c);
}

static acf_status draw_loss(acf_canvas *c, acf_box box, acf_range steps, acf_axis up, const curves *v,
                            double *scratch) {
    const int64_t n = v->first;
    const acf_axis across = {.range = steps};
    acf_panel p = acf_panel_open(c, box, "Training loss", across, up);
    ACF_TRY(acf_panel_cloud(&p, v->step, v->loss, n, 1,
                            (acf_cloud_style){1, n > 2000 ? 0.25 : 0.5, true, acf_ink_faded(ACF_INK_DATA, 0.6)}));
    draw_median(&p, v->step, v->loss, n, ACF_INK_DATA, scratch);
    draw_median(&p, v->step + n, v->loss + n, v->n - n, ACF_INK_MODEL_LINE, scratch);
    return ACF_OK;
}

/* Reports between two validations repeat the last score; a point is drawn where it changes. */
static int64_t validations(const double *step, const double *valid, int64_t n, double *at, double *score) {
    int64_t k = 0;
    double last = NAN;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(valid[i]) || valid[i] == last) continue;
        at[k] = step[i], score[k++] = last = valid[i];
    }
    return k;
}

/* Any double is allowed: a value that is not a count of steps is written as a number. */
static char *step_text(char out[ACF_TICK_LABEL_MAX], double step) {
    return fabs(step) < 1e15 ? acf_tick_count(out, (int64_t)step) : acf_tick_number(out, step, 4);
}

static void mark_best(const acf_panel *p, double step, double score) {
    char text[80], a[ACF_TICK_LABEL_MAX], b[ACF_TICK_LABEL_MAX];
    const acf_type type = {ACF_SIZE_TEXT, .bold = 1, .ink = ACF_INK_MODEL_LINE};
    const double x = acf_panel_x(p, step), y = acf_panel_y(p, score);
    if (!(x >= p->box.x && x <= p->box.x + p->box.w)) return;
    acf_text t = acf_text_into(text, sizeof text);
    acf_text_addf(&t, "best: %s at step %s", acf_tick_number(a, score, 4), step_text(b, step));
    acf_canvas_line(p->c, x, p->box.y, x, p->box.y + p->box.h, (acf_pen){ACF_INK_MODEL_LINE, 1, 1});
    acf_canvas_dot(p->c, x, y, 4, ACF_INK_MODEL_LINE);
    /* Beside the line at the top, on the side with more space: validation is high only at the left, and the dot is at
     * the bottom. */
    const double w = acf_canvas_text_width(p->c, text, type) + 8;
    const bool left = x - p->box.x > p->box.w / 2;
    if ((left ? x - p->box.x : p->box.x + p->box.w - x) < w || p->box.h < 30) return;
    acf_canvas_text(p->c, left ? x - w + 2 : x + 6, p->box.y + 8, text, type);
}

/* at, score (k): of the validations; converted to page coordinates in place. */
static void draw_validation(acf_canvas *c, acf_box box, acf_range steps, acf_axis up, double *at, double *score,
                            int64_t k) {
    if (k == 0) return acf_chart_note(c, box, "there was no validation");
    const acf_axis across = {.range = steps, .name = "steps"};
    acf_panel p = acf_panel_open(c, box, "Validation", across, up);
    int64_t best = 0;
    for (int64_t i = 0; i < k; i++)
        if (score[i] < score[best]) best = i;
    const double best_at = at[best], best_score = score[best];
    for (int64_t i = 0; i < k; i++) at[i] = acf_panel_x(&p, at[i]), score[i] = acf_panel_y(&p, score[i]);
    acf_canvas_clip(c, p.box);
    acf_canvas_curve(c, at, score, k, (acf_pen){ACF_INK_TEXT, 1.4, 0});
    for (int64_t i = 0; i < k && k <= 120; i++) acf_canvas_dot(c, at[i], score[i], 2, ACF_INK_TEXT);
    acf_canvas_unclip(c);
    mark_best(&p, best_at, best_score);
}

/* Both panels. Their upright axes have the same width, so that a step has the same place in both. scratch (3n). */
static acf_status draw(acf_canvas *c, acf_box box, const curves *v, double *scratch) {
    const int64_t n = v->n;
    const acf_range steps = acf_range_of(v->step, n, 1);
    const acf_box upper = acf_chart_cell(box, 1, 2, 0, 14), lower = acf_chart_cell(box, 1, 2, 1, 14);
    double *at = scratch + n, *score = scratch + 2 * n;
    const int64_t k = validations(v->step, v->valid, v->first, at, score);
    acf_axis a = {.range = score_range(v->step, v->loss, n, steps, scratch), .name = "nats per row"};
    acf_axis b = {.range = score_range(at, score, k, steps, scratch), .name = "nats per held-out cell"};
    a.capacity = b.capacity = fmax(acf_axis_width(c, a, upper.h - 60), acf_axis_width(c, b, lower.h - 60));
    ACF_TRY(draw_loss(c, upper, steps, a, v, scratch));
    draw_validation(c, lower, steps, b, at, score, k);
    return ACF_OK;
}

/* "5,000 steps, then 336 over all cells (orange: ...); lower is better." */
static void say_steps(const curves *v, char *out, size_t cap) {
    char a[ACF_TICK_LABEL_MAX];
    acf_text t = acf_text_into(out, cap);
    if (v->first > 0)
        acf_text_addf(&t, "%s steps%s", step_text(a, v->step[v->first - 1]), v->n > v->first ? ", then " : "");
    if (v->n > v->first)
        acf_text_addf(&t, "%s over all cells (orange: a row has more of them, and more nats)",
                      step_text(a, v->step[v->n - 1]));
    acf_text_add(&t, "; lower is better.");
}

acf_status acf_figure_training(const char *path, const acf_plot_options *o, const double *step, const double *loss,
                               const double *valid, int64_t n, int64_t first) {
    const curves v = {step, loss, valid, n, first};
    acf_canvas *c = NULL;
    char facts[200];
    size_t bytes;
    if (n > INT64_MAX / 3 || !acf_bytes(3 * n, sizeof(double), &bytes)) return ACF_EMEMORY;
    double *scratch = acf_alloc(bytes, "scores of training");
    if (!scratch) return ACF_EMEMORY;
    acf_status status = ACF_OK;
    ACF_TRY_DONE(acf_figure_open(path, o, WIDTH, HEIGHT, &c));
    say_steps(&v, facts, sizeof facts);
    acf_box box = acf_chart_head(c, acf_figure_title(o, "Training"), n > 0 ? facts : "");
    if (n == 0)
        acf_chart_note(c, box, "nothing was reported");
    else
        ACF_TRY_DONE(draw(c, box, &v, scratch));
    status = acf_canvas_save(c);
    c = NULL;
done:
    acf_canvas_free(c);
    acf_release(scratch);
    return status;
}
