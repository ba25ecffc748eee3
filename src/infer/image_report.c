/* An evaluation of images as text and as JSON: see image_evaluate.h. */
#include "infer/image_evaluate.h"

#include <math.h>
#include <stddef.h>

const acf_fill_metric acf_fill_metrics[] = {
    {"psnr", "PSNR", offsetof(acf_fill_scores, psnr), true},
    {"psnr_hidden", "hidden", offsetof(acf_fill_scores, hidden), true},
    {"mse", "MSE", offsetof(acf_fill_scores, mse), false},
    {"recall", "recall", offsetof(acf_fill_scores, recall), true},
    {"precision", "precision", offsetof(acf_fill_scores, precision), true},
};
enum { METRICS = sizeof acf_fill_metrics / sizeof acf_fill_metrics[0] };

#define NAME_WIDTH 24  /* of the first column of a table */
#define FIELD_WIDTH 11 /* of the other columns */
#define CURVE_STEP 10  /* every so many angles of the curve are in the JSON */

const char *acf_fill_name(int fill) {
    static const char *const name[ACF_FILLS] = {"mean image",    "smooth filling", "best guess",
                                                "mean of draws", "single draws",   "completed images"};
    return fill >= 0 && fill < ACF_FILLS ? name[fill] : NULL;
}

static double score_of(const acf_image_evaluation *e, int fill, int metric) {
    return e->fill[fill].sets ? *(const double *)((const char *)&e->fill[fill] + acf_fill_metrics[metric].at) : NAN;
}

/* The better of two fillings; either may be -1: none. One without a score is never better. */
static int better(const acf_image_evaluation *e, int metric, int a, int b) {
    const double x = a < 0 ? NAN : score_of(e, a, metric), y = b < 0 ? NAN : score_of(e, b, metric);
    if (isnan(x)) return isnan(y) ? -1 : b;
    return !isnan(y) && (acf_fill_metrics[metric].high ? y > x : y < x) ? b : a;
}

int acf_fill_winner(const acf_image_evaluation *e, int metric, int *best) {
    int baseline = -1, other = -1;
    for (int k = 0; k < ACF_FILLS; k++) {
        int *of = k < ACF_FILL_BASELINES ? &baseline : &other;
        *of = better(e, metric, *of, k);
    }
    *best = other;
    return other >= 0 && baseline >= 0 && better(e, metric, other, baseline) == baseline ? baseline : -1;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void add_number(acf_text *t, const char *format, double v) {
    char text[32];
    acf_text n = acf_text_into(text, sizeof text);
    if (isnan(v))
        acf_text_add(&n, "-");
    else
        acf_text_addf(&n, format, v);
    acf_text_addf(t, "%*s", FIELD_WIDTH, text);
}

/* "537.743 ± 3.120" */
static void add_mean(acf_text *t, acf_mean_deviation m) {
    acf_text_addf(t, "%.3f", m.mean);
    if (!isnan(m.deviation)) acf_text_addf(t, " ± %.3f", m.deviation);
}

static void add_what(const acf_image_evaluation *e, acf_text *t) {
    acf_text_addf(t, "%lld image%s of %lld x %lld pixels, %s, %d bits; ", (long long)e->N, e->N == 1 ? "" : "s",
                  (long long)e->W, (long long)e->H, e->C == 1 ? "grey" : "colour", e->bits);
    if (*e->masks)
        acf_text_addf(t, "masks %s, which hide %.0f %% of the pixels.", e->masks, 100 * e->share);
    else
        acf_text_add(t, "the masks are unknown; set them with --mask.");
    if (e->fitted)
        acf_text_addf(t, "\nThe model was fitted to %lld others.", (long long)e->trained);
    else if (e->model)
        acf_text_add(t, "\nThe model was given: its scores are too good if it was fitted to these images.");
    acf_text_addf(t, "\n%lld draw%s, ", (long long)e->fill[ACF_FILL_DRAW].sets,
                  e->fill[ACF_FILL_DRAW].sets == 1 ? "" : "s");
    if (e->model) acf_text_addf(t, "%lld mask%s, ", (long long)e->set.masks, e->set.masks == 1 ? "" : "s");
    acf_text_addf(t, "seed %llu.\n", (unsigned long long)e->set.seed);
    if (e->passes > 1)
        acf_text_addf(
            t, "Hidden pixels were predicted in %d passes, coarse ones first; --image-single-pass uses a single one.\n",
            e->passes);
    if (e->changed > 0)
        acf_text_addf(t,
                      "The completed images differ from the true ones in %.2g %% of the given numbers, too: "
                      "were they made with this --mask, --seed and --image-pad?\n",
                      100 * e->changed);
    acf_text_add(t, "\n");
}

static void add_likelihoods(const acf_image_evaluation *e, acf_text *t) {
    if (!e->model) return;
    if (!isnan(e->nll.mean)) {
        acf_text_add(t, "NLL of what is hidden: ");
        add_mean(t, e->nll);
        acf_text_add(t, " nats an image, ");
        add_mean(t, e->bpd);
        acf_text_add(t, " bits per dimension\n");
    }
    acf_text_addf(t, "NLL of whole images:   %.3f nats an image, %.3f bits per dimension\n\n", e->joint, e->joint_bpd);
}

static void add_name(const acf_image_evaluation *e, int fill, acf_text *t) {
    acf_text_addf(t, "%s%s", e->model && fill >= ACF_FILL_BASELINES ? "acflow, " : "", acf_fill_name(fill));
}

static void add_fills(const acf_image_evaluation *e, acf_text *t) {
    static const char *const format[METRICS] = {"%.3f", "%.3f", "%.2f", "%.3f", "%.3f"};
    acf_text_addf(t, "%*s", NAME_WIDTH, "");
    for (int k = 0; k < METRICS; k++) acf_text_addf(t, "%*s", FIELD_WIDTH, acf_fill_metrics[k].title);
    acf_text_add(t, "\n");
    for (int fill = 0; fill < ACF_FILLS; fill++) {
        if (!e->fill[fill].sets) continue;
        const size_t from = t->len;
        add_name(e, fill, t);
        acf_text_addf(t, "%*s", NAME_WIDTH - (int)(t->len - from), "");
        for (int k = 0; k < METRICS; k++) add_number(t, format[k], score_of(e, fill, k));
        acf_text_add(t, "\n");
    }
    acf_text_addf(t,
                  "\nPSNR: dB, of all pixels, given ones included, as the paper counts%s. Higher is better. "
                  "MSE: of %s pixels, 0..255; lower is better.\n",
                  *e->masks ? "; hidden: of hidden ones alone" : "", *e->masks ? "hidden" : "all");
    if (e->own_features)
        acf_text_addf(
            t,
            "Recall (F8) and precision (F1/8) of distributions, over %lld features that were made from these images: "
            "comparable with each other,\nnot with figures over other features.\n",
            (long long)e->features);
    else if (e->N < ACF_PRD_IMAGES)
        acf_text_addf(t, "Recall and precision of distributions take %d images or more.\n", ACF_PRD_IMAGES);
}

static void add_parts(const acf_image_evaluation *e, acf_text *t) {
    if (!e->parts) return;
    acf_text_addf(t, "\n%-*s%*s%*s%*s%*s%*s\n", NAME_WIDTH, "by mask", FIELD_WIDTH, "images", FIELD_WIDTH, "hidden",
                  FIELD_WIDTH, "nats", FIELD_WIDTH, "bits", FIELD_WIDTH, "PSNR");
    for (int k = 0; k < e->parts; k++) {
        const acf_mask_scores *p = &e->part[k];
        acf_text_addf(t, "%-*s%*lld", NAME_WIDTH, p->name, FIELD_WIDTH, (long long)p->images);
        add_number(t, "%.0f %%", 100 * p->hidden);
        add_number(t, "%.3f", p->nll);
        add_number(t, "%.3f", p->bits);
        add_number(t, "%.3f", p->psnr);
        acf_text_add(t, "\n");
    }
    acf_text_add(t,
                 "nats of what is hidden, an image; bits per dimension of it; PSNR of the best guess, all pixels.\n");
}

/* Appends where a baseline wins; returns in how many scores. */
static int add_wins(const acf_image_evaluation *e, acf_text *t) {
    int wins = 0, best;
    for (int k = 0; k < METRICS; k++) {
        const int winner = acf_fill_winner(e, k, &best);
        if (winner < 0) continue;
        wins++;
        acf_text_addf(t, "    %-10s %s, %.3f against %.3f of ", acf_fill_metrics[k].title, acf_fill_name(winner),
                      score_of(e, winner, k), score_of(e, best, k));
        add_name(e, best, t);
        acf_text_add(t, "\n");
    }
    return wins;
}

static void add_features(const acf_image_evaluation *e, acf_text *t) {
    const acf_fill_scores *f = &e->fill[ACF_FILL_OTHER];
    acf_text_addf(
        t,
        "recall (F8):      %.4f\nprecision (F1/8): %.4f\n\n"
        "Of %lld set%s of completions, over %lld features; %lld real images, %d clusters, %d runs, seed %llu.\n",
        f->recall, f->precision, (long long)f->sets, f->sets == 1 ? "" : "s", (long long)e->features,
        (long long)e->trained, ACF_PRD_CLUSTERS, ACF_PRD_RUNS, (unsigned long long)e->set.seed);
}

void acf_image_evaluation_text(const acf_image_evaluation *e, acf_text *t) {
    if (e->N == 0) {
        add_features(e, t);
        return;
    }
    add_what(e, t);
    add_likelihoods(e, t);
    add_fills(e, t);
    add_parts(e, t);
    if (!e->fill[ACF_FILL_MEAN].sets) return;
    acf_text unwritten = acf_text_into(NULL, 0);
    const char *who = e->model ? "acflow" : "the completed images";
    acf_text_addf(t,
                  add_wins(e, &unwritten) ? "\nA baseline is better than %s:\n"
                                          : "\nNo baseline is better than %s in any score.\n",
                  who);
    add_wins(e, t);
}

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

/* NaN becomes null: jansson has no NaN. */
static json_t *number(double v) { return isfinite(v) ? json_real(v) : json_null(); }

static json_t *fill_json(const acf_image_evaluation *e, int fill) {
    json_t *o = json_pack("{s:s, s:I, s:b}", "name", acf_fill_name(fill), "sets", (json_int_t)e->fill[fill].sets,
                          "baseline", fill < ACF_FILL_BASELINES);
    for (int k = 0; k < METRICS && o; k++)
        if (json_object_set_new(o, acf_fill_metrics[k].key, number(score_of(e, fill, k)))) {
            json_decref(o);
            o = NULL;
        }
    return o;
}

static json_t *part_json(const acf_mask_scores *p) {
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "mask", p->name, "images", (json_int_t)p->images, "hidden",
                     number(p->hidden), "nll", number(p->nll), "bits_per_dimension", number(p->bits), "psnr",
                     number(p->psnr));
}

/* [[recall, precision], ...] from the first angle to the last. */
static json_t *curve_json(const acf_prd *p) {
    json_t *list = json_array();
    for (int a = 0; a < ACF_PRD_ANGLES && p->curves && list; a += CURVE_STEP)
        if (json_array_append_new(
                list, json_pack("[f, f]", p->recall[a] / (double)p->curves, p->precision[a] / (double)p->curves))) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

static bool add_wins_json(const acf_image_evaluation *e, json_t *list) {
    for (int k = 0; k < METRICS; k++) {
        int best;
        const int winner = acf_fill_winner(e, k, &best);
        if (winner < 0) continue;
        if (json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "score", acf_fill_metrics[k].key, "baseline",
                                                  acf_fill_name(winner), "against", acf_fill_name(best))))
            return false;
    }
    return true;
}

/* A mask may be a path with any bytes. */
static const char *masks_of(const acf_image_evaluation *e) {
    size_t n = 0;
    while (e->masks[n]) n++;
    return n == 0 ? NULL : acf_text_is_utf8(e->masks, n) ? e->masks : "a file with an odd name";
}

static json_t *head_json(const acf_image_evaluation *e) {
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:i, s:s?, s:o, s:o, s:b, s:b, s:I, "
        "s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:b, s:i}",
        "images", (json_int_t)e->N, "width", (json_int_t)e->W, "height", (json_int_t)e->H, "channels", (json_int_t)e->C,
        "bits", e->bits, "mask", masks_of(e), "hidden", number(*e->masks ? e->share : NAN), "changed",
        number(e->changed), "model", e->model, "fitted", e->fitted, "draws", (json_int_t)e->fill[ACF_FILL_DRAW].sets,
        "masks", (json_int_t)e->set.masks, "seed", (json_int_t)e->set.seed, "nll", number(e->nll.mean), "nll_deviation",
        number(e->nll.deviation), "bits_per_dimension", number(e->bpd.mean), "bits_per_dimension_deviation",
        number(e->bpd.deviation), "joint_nll", number(e->joint), "joint_bits_per_dimension", number(e->joint_bpd),
        "features", (json_int_t)e->features, "own_features", e->own_features, "passes", e->passes);
}

acf_status acf_image_evaluation_json(const acf_image_evaluation *e, json_t **out) {
    json_t *o = head_json(e), *fills = json_array(), *parts = json_array(), *wins = json_array(),
           *curve = curve_json(&e->prd);
    bool ok = o && fills && parts && wins && curve && add_wins_json(e, wins);
    for (int k = 0; k < ACF_FILLS && ok; k++)
        if (e->fill[k].sets) ok = json_array_append_new(fills, fill_json(e, k)) == 0;
    for (int k = 0; k < e->parts && ok; k++) ok = json_array_append_new(parts, part_json(&e->part[k])) == 0;
    ok = ok && json_object_set(o, "methods", fills) == 0 && json_object_set(o, "by_mask", parts) == 0 &&
         json_object_set(o, "baseline_wins", wins) == 0 && json_object_set(o, "prd_curve", curve) == 0;
    json_decref(fills), json_decref(parts), json_decref(wins), json_decref(curve);
    if (ok)
        *out = o;
    else
        json_decref(o);
    return ok ? ACF_OK : acf_fail(ACF_EMEMORY, "out of memory: the report of an evaluation");
}
