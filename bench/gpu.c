/* Speed of a table model of d columns on a GPU: the paper's network, or the attention likelihood of 384 units and 6
 * blocks with mixtures of 64 Gaussians. bench/gpu compares it with PyTorch. This program measures one d and one batch,
 * and prints lines of comma-separated values as it goes:
 *
 *     rows,acflow,PRECISION,D,BATCH,JOB,ROWS_PER_SECOND,MS,TFLOP_PER_SECOND     the median of five blocks of runs
 *     kernels,acflow,PRECISION,D,BATCH,JOB,MS,LAUNCHES              of a run: time the device worked (trace.h)
 *     failed,acflow,PRECISION,D,BATCH,JOB,MESSAGE
 *
 *     bench-gpu [--model paper|attention] [--device cuda] [--d 6] [--batch 512] [--precision float,tf32,bf16]
 *               [--jobs train,...] [--seconds 0.7] [--cupti FILE]
 *
 * Jobs. train, guess: steps of the trainer that `acflow fit` runs, with clipping, without and with the best-guess loss,
 * which attention does not have; no dropout, as in the peers. The paper's network learns Bernoulli(1/2) masks.
 * Attention learns whole rows, with a moving average of the weights and weight decay, as its peer. loglik, sample: log
 * p and one draw of a batch on the host, results back to the host; Bernoulli(1/2) masks. score, impute: the same
 * through a session, which also encodes and decodes the cells; in float, as for users. If precision is a list, float
 * does no training unless it is the only one. */
#include "arithmetic.h"
#include "bench.h"
#include "infer/query_graph.h"
#include "infer/session.h"
#include "model/config.h"
#include "ops/ops.h"
#include "table/masks.h"
#include "table/table_on_device.h"
#include "trace.h"
#include "train/trainer.h"

/* A measured model: its options beside the common ones, ended by NULL. */
typedef struct model {
    const char *name;
    const char *set[9][2];
    double given; /* share of the cells that training gives */
} model;

static const model models[] = {
    {"paper", {{"preset", "paper"}, {"masks", "bernoulli:0.5"}, {"weight-decay", "0"}}, 0.5},
    {"attention", /* of the preset: no Gaussian mixture, columns standardised */
     {{"preset", "ar"},
      {"likelihood", "attention"},
      {"likelihood-units", "384"},
      {"likelihood-layers", "6"},
      {"components", "64"},
      {"masks", "joint"},
      {"ema", "0.999"},
      {"weight-decay", "0.01"}},
     0},
};

typedef struct bench {
    const model *of;
    const char *precisions, *jobs, *cupti;
    int64_t N, D;
    double seconds; /* of a measurement */
    acf_device *dev;
    acf_table *data, *batch_table; /* the training table; its first N rows */
    acf_model *model;
    bool tracing; /* this pass traces with CUPTI */
    /* of the current job */
    acf_precision precision;
    acf_trainer *tr;
    acf_session *session;
    acf_tape *t;
    acf_query_graph *graph; /* NULL on the CPU */
    acf_batch *batch;
    acf_query query;
    uint8_t *cells; /* (2,N,D): given cells, targets */
    double *result; /* (N,D) */
    acf_real *draw; /* (N,D) */
} bench;

static const char *const precision_name[] = {"float", "tf32", "bf16"};

/* ---- the model and its data -------------------------------------------------------------------------------------- */

/* Gives the options of the model and its training; the job sets the guess's weight and the precision. */
static acf_status make_options(const bench *b, double guess, acf_options **out) {
    char batch[32], weight[32];
    snprintf(batch, sizeof batch, "%lld", (long long)b->N);
    snprintf(weight, sizeof weight, "%g", guess);
    const char *const set[][2] = {{"batch", batch},
                                  {"guess-weight", weight},
                                  {"dropout", "0"},
                                  {"valid", "0"},
                                  {"precision", precision_name[b->precision]},
                                  {"refit", "false"},
                                  {"clip", "1"},
                                  {"lr", "1e-4"},
                                  {"steps", "1000000"}};
    acf_options *o;
    acf_status status = ACF_OK;
    ACF_TRY(acf_config_create(&o));
    for (const char *const(*s)[2] = b->of->set; (*s)[0] && !status; s++)
        status = acf_options_set_text(o, (*s)[0], (*s)[1]);
    for (size_t k = 0; k < sizeof set / sizeof set[0] && !status; k++)
        status = acf_options_set_text(o, set[k][0], set[k][1]);
    if (!status) status = acf_config_finish(o);
    if (status)
        acf_options_free(o);
    else
        *out = o;
    return status;
}

static acf_status make_tables(bench *b) {
    int64_t rows = acf_max(4 * b->N, 8192);
    double *x = acf_alloc((size_t)(rows * b->D) * sizeof *x, "a table");
    if (!x) return ACF_EMEMORY;
    for (int64_t i = 0; i < rows * b->D; i++)
        x[i] = acf_rng_normal((acf_rng_counter){.seed = 1, .row = (uint64_t)i, .stream = ACF_STREAM_SYNTH});
    acf_status status = acf_table_make(x, NULL, rows, b->D, NULL, &b->data);
    if (!status) status = acf_table_make(x, NULL, b->N, b->D, NULL, &b->batch_table);
    acf_release(x);
    return status;
}

static acf_status make_model(bench *b) {
    acf_options *o;
    acf_holdout *hold = NULL;
    acf_encoder *encoder;
    ACF_TRY(make_options(b, 0, &o));
    acf_status status = acf_train_prepare(b->data, NULL, o, &hold, &encoder);
    acf_holdout_free(hold); /* valid is 0 */
    if (status)
        acf_options_free(o);
    else
        status = acf_model_make(b->dev, o, encoder, 1, true, &b->model); /* takes ownership of both */
    return status;
}

/* Masks of the queries, drawn once, as in the peer; and memory for results. */
static acf_status make_query(bench *b) {
    int64_t cells = b->N * b->D;
    acf_masks masks;
    ACF_TRY(acf_masks_parse("bernoulli:0.5", &masks));
    ACF_TRY(acf_batch_stage(b->dev, b->N, b->D, &b->batch));
    b->cells = acf_alloc((size_t)(2 * cells), "masks");
    b->result = acf_alloc((size_t)cells * sizeof *b->result, "results");
    b->draw = acf_alloc((size_t)cells * sizeof *b->draw, "draws");
    if (!b->cells || !b->result || !b->draw) return ACF_EMEMORY;
    b->batch->N = b->N;
    for (int64_t i = 0; i < b->N; i++) b->batch->id[i] = (uint64_t)i;
    for (int64_t i = 0; i < cells; i++)
        b->batch->x[i] = (acf_real)b->batch_table->x[i], b->batch->code[i] = -1, b->batch->m[i] = 1;
    acf_masks_draw(b->dev, &masks, 1, 0, b->N, b->D, b->batch->id, b->batch->b, b->batch->m);
    for (int64_t i = 0; i < cells; i++) b->cells[i] = b->batch->b[i], b->cells[cells + i] = !b->batch->b[i];
    b->query = (acf_query){b->cells, b->cells + cells};
    return ACF_OK;
}

static acf_status open_bench(bench *b, const char *device) {
    ACF_TRY(acf_device_open(device, acf_ops_needed(true), 0, &b->dev));
    if (strncmp(device, "cuda", 4) == 0 && b->dev->kind != ACF_DEVICE_CUDA) {
        acf_choice c;
        ACF_TRY(acf_device_choose(device, acf_ops_needed(true), &c));
        return acf_fail(ACF_EDEVICE, "%s", c.why);
    }
    ACF_TRY(make_tables(b));
    ACF_TRY(make_model(b));
    return make_query(b);
}

static void close_bench(bench *b) {
    acf_batch_free(b->batch);
    acf_release(b->cells);
    acf_release(b->result);
    acf_release(b->draw);
    acf_model_free(b->model);
    acf_table_free(b->batch_table);
    acf_table_free(b->data);
    if (b->dev) acf_device_close(b->dev);
}

/* ---- the jobs ---------------------------------------------------------------------------------------------------- */

static acf_status start_training(bench *b, double guess) {
    acf_options *o;
    ACF_TRY(make_options(b, guess, &o));
    acf_status status =
        acf_trainer_create(b->model->net, &(acf_train_data){b->data, NULL, b->model->encoder, NULL}, o, &b->tr);
    acf_options_free(o);
    return status;
}

static acf_status start_train(bench *b) { return start_training(b, 0); }
static acf_status start_guess(bench *b) {
    if (acf_net_attends(b->model->net)) return acf_fail(ACF_EUSAGE, "the attention likelihood has no best-guess loss");
    return start_training(b, 1);
}

static acf_status start_query(bench *b) {
    if (!acf_device_multiplies(b->dev, b->precision))
        return acf_fail(ACF_EDEVICE, "%s does not multiply in %s", b->dev->table->name, precision_name[b->precision]);
    ACF_TRY(acf_tape_create(b->dev, NULL, &b->t));
    return acf_query_graph_create(b->model->net, b->t, b->N, NULL, &b->graph);
}
static acf_status start_session(bench *b) { return acf_session_open(b->dev, b->model, b->N, &b->session); }

/* Runs `times` more steps of a continuing training, by the function that `acflow fit` calls. */
static acf_status run_steps(bench *b, int64_t times) {
    b->tr->set.steps = b->tr->state.step + times;
    return acf_trainer_run(b->tr, NULL, NULL);
}

static acf_status loglik(bench *b) {
    bool by_hand = true;
    if (b->graph) ACF_TRY(acf_query_graph_logp(b->graph, b->batch, b->draw, &by_hand));
    if (!by_hand) return ACF_OK;
    acf_tape_begin(b->t, false);
    acf_tensor *logp = acf_net_logp(b->t, acf_net_view(b->t, b->model->net, b->batch, NULL));
    ACF_TRY(acf_tape_check(b->t, logp));
    return acf_device_copy(b->dev, b->draw, logp->data, (size_t)b->N * sizeof *b->draw, ACF_TO_HOST);
}

static acf_status sample(bench *b) {
    bool by_hand = true;
    if (b->graph) ACF_TRY(acf_query_graph_answer(b->graph, b->batch, &(acf_draw){.seed = 1}, b->draw, &by_hand));
    if (!by_hand) return ACF_OK;
    acf_tape_begin(b->t, false);
    return acf_net_draw(b->t, acf_net_view(b->t, b->model->net, b->batch, NULL), &(acf_draw){.seed = 1}, b->draw);
}

static acf_status score(bench *b) { return acf_session_query_logp(b->session, b->batch_table, b->query, b->result); }
static acf_status impute(bench *b) {
    return acf_session_query_draw(b->session, b->batch_table, b->query, 1, 0, b->result);
}

typedef struct job {
    const char *name;
    acf_status (*start)(bench *);
    acf_status (*once)(bench *); /* NULL: steps of training */
    bool back;
    double passes; /* forward, or forward and backward, over the whole network */
    bool in_float; /* in float only */
} job;

static const job jobs[] = {
    {"train", start_train, NULL, true, 1, false},     {"guess", start_guess, NULL, true, 2, false},
    {"loglik", start_query, loglik, false, 1, false}, {"sample", start_query, sample, false, 1, false},
    {"score", start_session, score, false, 1, true},  {"impute", start_session, impute, false, 1, true},
};

/* In the job's precision; all work is done when it returns. */
static acf_status run(bench *b, const job *j, int64_t times) {
    acf_status status = ACF_OK;
    if (!j->once) {
        ACF_TRY(run_steps(b, times));
        return acf_device_sync(b->dev);
    }
    b->dev->precision = b->precision;
    for (int64_t k = 0; k < times && !status; k++) status = j->once(b);
    if (!status) status = acf_device_sync(b->dev);
    b->dev->precision = ACF_PRECISION_FLOAT;
    return status;
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

enum { WARM = 4, BLOCKS = 5, TRACED = 3 };

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Seconds of a run: the median of blocks, each of as many runs as fill its share of the time. */
static acf_status time_job(bench *b, const job *j, double *out) {
    double each[BLOCKS], t0 = now();
    ACF_TRY(run(b, j, 2));
    double guess = (now() - t0) / 2;
    int64_t times = (int64_t)fmax(1, fmin(b->seconds / BLOCKS / fmax(guess, 1e-6), 1e5));
    for (int k = 0; k < BLOCKS; k++) {
        t0 = now();
        ACF_TRY(run(b, j, times));
        each[k] = (now() - t0) / (double)times;
    }
    qsort(each, BLOCKS, sizeof each[0], by_value);
    *out = each[BLOCKS / 2];
    return ACF_OK;
}

static void label(const bench *b, const job *j, const char *what) {
    printf("%s,acflow,%s,%lld,%lld,%s,", what, precision_name[b->precision], (long long)b->D, (long long)b->N, j->name);
}

static acf_status measure(bench *b, const job *j) {
    double seconds;
    ACF_TRY(time_job(b, j, &seconds));
    const bench_work w = bench_work_mean(b->N, b->D, j->back ? b->of->given : 0.5);
    double work = j->passes * bench_flops(acf_net_params(b->model->net), w, j->back);
    label(b, j, "rows");
    printf("%.0f,%.4f,%.3f\n", (double)b->N / seconds, 1e3 * seconds, 1e-12 * work / seconds);
    return ACF_OK;
}

static acf_status trace(bench *b, const job *j) {
    size_t launches;
    if (!bench_trace_begin()) return acf_fail(ACF_EDEVICE, "CUPTI does not trace on this machine");
    acf_status status = run(b, j, TRACED);
    double seconds = bench_trace_end(&launches);
    ACF_TRY(status);
    if (launches == 0) return acf_fail(ACF_EDEVICE, "CUPTI saw no kernel");
    label(b, j, "kernels");
    printf("%.4f,%zu\n", 1e3 * seconds / TRACED, launches / TRACED);
    return ACF_OK;
}

/* One job from the start: a failure is printed as a line, and the next job begins anew. */
static void do_job(bench *b, const job *j) {
    acf_status status = j->start(b);
    if (!status) status = run(b, j, WARM); /* arenas, plans of products, CUDA graphs */
    if (!status) status = b->tracing ? trace(b, j) : measure(b, j);
    if (status) {
        label(b, j, "failed");
        printf("%s\n", acf_error());
    }
    acf_trainer_free(b->tr), acf_query_graph_free(b->graph), acf_tape_free(b->t), acf_session_free(b->session);
    b->tr = NULL, b->graph = NULL, b->t = NULL, b->session = NULL;
}

/* True if the comma-separated list has the word. */
static bool listed(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n])) return true;
    return false;
}

static bool wanted(const bench *b, const job *j) {
    bool alone = strcmp(b->precisions, "float") == 0, is_float = b->precision == ACF_PRECISION_FLOAT;
    if (!listed(b->precisions, precision_name[b->precision]) || !listed(b->jobs, j->name)) return false;
    return is_float ? j->once || alone : !j->in_float;
}

static void do_all(bench *b) {
    for (int p = 0; p < 3; p++) {
        b->precision = (acf_precision)p;
        for (size_t k = 0; k < sizeof jobs / sizeof jobs[0]; k++)
            if (wanted(b, &jobs[k])) do_job(b, &jobs[k]);
    }
}

static const model *model_named(const char *name) {
    for (size_t k = 0; k < sizeof models / sizeof models[0]; k++)
        if (strcmp(models[k].name, name) == 0) return &models[k];
    fprintf(stderr, "bench: there is no model '%s'; expected paper or attention\n", name);
    exit(2);
}

int main(int argc, char **argv) {
    const char *device = "cuda";
    bench b = {.of = &models[0],
               .precisions = "float,tf32,bf16",
               .jobs = "train,guess,loglik,sample,score,impute",
               .N = 512,
               .D = 6,
               .seconds = 0.7};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--device") == 0)
            device = value;
        else if (strcmp(name, "--model") == 0)
            b.of = model_named(value);
        else if (strcmp(name, "--d") == 0)
            b.D = acf_max(1, atoll(value));
        else if (strcmp(name, "--batch") == 0)
            b.N = acf_max(1, atoll(value));
        else if (strcmp(name, "--precision") == 0)
            b.precisions = value;
        else if (strcmp(name, "--jobs") == 0)
            b.jobs = value;
        else if (strcmp(name, "--seconds") == 0)
            b.seconds = atof(value);
        else if (strcmp(name, "--cupti") == 0)
            b.cupti = value;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* a time limit may end this process: printed lines count */
    need(open_bench(&b, device));
    do_all(&b);
    if (b.dev->kind == ACF_DEVICE_CUDA) {
        const char *why = bench_trace_open(b.cupti);
        b.tracing = true; /* last: it slows the host down */
        if (why)
            printf("failed,acflow,all,%lld,%lld,kernel time,no libcupti: %s\n", (long long)b.D, (long long)b.N, why);
        else
            do_all(&b);
    }
    close_bench(&b);
    return 0;
}
