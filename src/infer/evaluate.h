/* Evaluation: how well does a model complete this table, and is it better than simple baselines?
 *
 *     table ── hide ──> shown ── fit ──> model ── impute, draw, score ──┐
 *       │                 └──── column means, chained regressions ──────┤
 *       └─────────────── the hidden cells, as they were ────────────────┴──> scores, per column and overall
 *
 * Some observed cells are hidden. The model is fitted to the others, and every method imputes the hidden ones and is
 * scored on the same cells (metrics.h). The model's likelihood of the hidden values is also scored, in nats. For
 * each of several masks, half of the hidden cells are targets and the other half are given like observed cells. So
 * the queries differ between masks, and the model has seen none of the answers. */
#ifndef ACF_INFER_EVALUATE_H
#define ACF_INFER_EVALUATE_H

#include "base/options.h"
#include "infer/session.h"

#define ACF_EVAL_LEVEL 0.9 /* of the intervals whose coverage is scored */

/* The options of evaluation (base/option_table.h) as a struct. */
typedef struct acf_eval_settings {
    double hide; /* fraction of the observed cells */
    int64_t masks, draws;
    uint64_t seed;
} acf_eval_settings;

acf_eval_settings acf_eval_settings_read(const acf_options *o);

/* Marks cells of t to hide, hidden (N,D), by seed: round(fraction × observed cells), all equally likely. The last
 * observed cell of a column stays, so there may be fewer. *n: how many. Fails: ACF_EUSAGE (fraction outside 0..1),
 * ACF_EMEMORY. */
acf_status acf_hide(const acf_table *t, double fraction, uint64_t seed, uint8_t *hidden, int64_t *n);

typedef struct acf_eval_job {
    const acf_table *truth; /* the true values */
    /* The same with missing cells, which are then the targets; NULL: hides cells as set.hide says. */
    const acf_table *shown;
    const acf_model *model; /* NULL: `fit` learns one from the shown cells */
    acf_status (*fit)(void *ctx, const acf_table *shown, acf_model **out);
    void *ctx;
    acf_eval_settings set;
} acf_eval_job;

/* Methods in the order of the report: two baselines, then the model by each of its estimates. */
enum { ACF_EVAL_MEAN, ACF_EVAL_LINEAR, ACF_EVAL_MODEL };

typedef struct acf_evaluation {
    int64_t rows, columns;
    int64_t observed, hidden; /* cells */
    acf_eval_settings set;
    bool fitted, chosen;       /* the model was fitted here; the cells were hidden here */
    acf_row_scores rows_alone; /* of all observed cells of the rows (row_score.h), if only a model was given */
    acf_column *column;        /* (columns) owned, like the rest */
    int methods;
    acf_scores *score; /* (methods, columns + 1); the last is over all columns */
} acf_evaluation;

/* Borrows the job. Gives *out; free with acf_evaluation_free. Fails: ACF_EDATA (nothing could be hidden), ACF_ESHAPE
 * (truth and shown differ in shape), and as fitting and queries do. */
acf_status acf_evaluate(const acf_eval_job *job, acf_evaluation **out);
void acf_evaluation_free(acf_evaluation *e); /* NULL is allowed */

/* The name of a method, NULL after the last; and its scores in a column, or over all for -1. */
const char *acf_evaluation_method(int method);
const acf_scores *acf_evaluation_scores(const acf_evaluation *e, int method, int64_t column);

/* ---- reports ----------------------------------------------------------------------------------------------------- */

/* The scores by name, lower is better (coverage: nearer to ACF_EVAL_LEVEL). */
typedef struct acf_metric {
    const char *key;   /* in JSON */
    const char *title; /* for people */
    size_t at;         /* of the double in acf_scores */
} acf_metric;
extern const acf_metric acf_metrics[];
extern const int acf_metric_count;

/* The baseline that beats the model in this score, in a column or over all (-1). With two, the better one; -1: none,
 * or by less than the three decimals shown. */
int acf_evaluation_winner(const acf_evaluation *e, int metric, int64_t column);

/* For people: the scores of each method and column, and a list of scores where a baseline wins. */
void acf_evaluation_text(const acf_evaluation *e, acf_text *out);

/* For machines: everything; a score that does not apply is null. Gives *out. Fails: ACF_EMEMORY. */
acf_status acf_evaluation_json(const acf_evaluation *e, json_t **out);

#endif
