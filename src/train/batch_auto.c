/* Chooses the rows of a step by free memory: see batch_auto.h. */
#include "train/batch_auto.h"

#include "model/config.h"

#include <math.h>

#define PROBE_ROWS 8
#define SHARE 0.5 /* share of free memory that a step may take */

/* The first N rows of the data, repeated where there are fewer, with every cell present and modelled: the upper bound
 * of any masks. */
static void fill(acf_device *dev, acf_batch *b, const acf_train_data *data, int64_t *row, int64_t N) {
    const acf_rows rows = data->rows ? *data->rows : acf_rows_all(data->table->N);
    for (int64_t i = 0; i < N; i++) row[i] = acf_rows_at(&rows, i % rows.n);
    acf_batch_fill(dev, b, data->table, data->encoder, data->hold, ACF_BATCH_TRAIN, row, N);
    for (int64_t k = 0; k < N * b->D; k++) {
        b->m[k] = 1, b->b[k] = 0;
        if (data->table->column && data->table->column[k % b->D].classes > 0 && b->code[k] < 0) b->code[k] = 0;
    }
}

/* Peak memory of a step on N rows, from the arenas of a fresh tape. A loss that is not finite has no backward: *out is
 * 0. */
static acf_status probe(acf_net *net, const acf_train_data *data, const acf_train_settings *set, int64_t N,
                        double *out) {
    acf_device *dev = acf_net_params(net)->dev;
    acf_pass pass = {.dropout = set->dropout, .seed = set->seed};
    acf_tape *t = NULL;
    acf_batch *b = NULL;
    double loss;
    int64_t row[2 * PROBE_ROWS];
    acf_status status = ACF_OK;
    ACF_TRY_DONE(acf_tape_create(dev, NULL, &t));
    ACF_TRY_DONE(acf_batch_create(N, data->table->D, &b));
    fill(dev, b, data, row, N);
    dev->precision = set->precision;
    status = acf_loss_backward(t, net, b, &pass, &set->loss, &loss);
    dev->precision = ACF_PRECISION_FLOAT;
    size_t bytes = acf_arena_high_water(t->mem);
    if (dev->memory.host) bytes += acf_arena_high_water(t->host);
    *out = status == ACF_OK ? (double)bytes : 0;
    if (status == ACF_ENUMERIC) status = ACF_OK;
done:
    acf_batch_free(b);
    acf_tape_free(t);
    return status;
}

acf_status acf_step_memory_measure(acf_net *net, const acf_train_data *data, const acf_options *o,
                                   acf_step_memory *out) {
    acf_train_settings set;
    double few, more;
    ACF_TRY(acf_train_settings_read(o, &set));
    ACF_TRY(acf_params_trainable(acf_net_params(net), "batch auto"));
    ACF_TRY(probe(net, data, &set, PROBE_ROWS, &few));
    ACF_TRY(probe(net, data, &set, 2 * PROBE_ROWS, &more));
    double row = fmax(more - few, 0) / PROBE_ROWS;
    *out = few > 0 && more > 0 ? (acf_step_memory){fmax(few - row * PROBE_ROWS, 0), row} : (acf_step_memory){0, 0};
    return ACF_OK;
}

/* Memory of the trainer besides its steps: the best weights, and on a GPU the encoded table. */
static double kept(const acf_net *net, const acf_train_data *data) {
    const acf_params *ps = acf_net_params((acf_net *)(uintptr_t)net);
    double slab = data->hold || data->valid_rows ? (double)ps->total * sizeof(acf_real) : 0;
    double cells = (double)data->table->N * (double)data->table->D;
    return slab + (ps->dev->memory.host ? 0 : cells * (sizeof(acf_real) + sizeof(int32_t) + 1));
}

static double gib(double bytes) { return bytes / 0x1p30; }

acf_status acf_batch_auto(acf_net *net, const acf_train_data *data, const acf_options *o, int64_t *out) {
    acf_device *dev = acf_net_params(net)->dev;
    acf_step_memory need;
    size_t left, all;
    const int64_t n = data->rows ? data->rows->n : data->table->N, usual = acf_config_rows(data->table->D);
    int64_t rows =
        dev->kind == ACF_DEVICE_CUDA ? acf_max(usual, acf_min(ACF_AUTO_GPU_ROWS, n / ACF_AUTO_STEPS)) : usual;
    *out = acf_max(rows, 1);
    if (n < 1 || acf_net_columns(net) != data->table->D) return ACF_OK; /* the trainer reports the error */
    ACF_TRY(acf_step_memory_measure(net, data, o, &need));
    if (need.row <= 0) return ACF_OK;
    ACF_TRY(acf_device_memory(dev, &left, &all));
    double capacity = SHARE * fmax((double)left - kept(net, data), 0), fits = (capacity - need.fixed) / need.row;
    if (fits < 1)
        return acf_fail(
            ACF_EMEMORY,
            "out of memory on %s: a training step needs %.3f GiB and %.3f GiB a row; %.2f of %.2f GiB are free, of "
            "which it may have %.3f; try a smaller model",
            dev->table->name, gib(need.fixed), gib(need.row), gib((double)left), gib((double)all), gib(capacity));
    if (fits < (double)rows) rows = (int64_t)fits;
    *out = rows > 8 ? rows / 8 * 8 : rows;
    return ACF_OK;
}
