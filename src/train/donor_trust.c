/* Fits the donors' weight: see donor_trust.h.
 *
 * Workload: donors are learned (donor_learn.h), and the scores of up to 4,000 cells are summed some hundred times. */
#include "train/donor_trust.h"

#include "donors/donor_file.h"
#include "train/valid.h"

#include <math.h>
#include <string.h>

#define GOLDEN 0.6180339887498949
#define NARROW 24 /* rounds that narrow a bracket to 1e-5 of its width */
#define ROUNDS 8
#define LEAST_CHANCE 1e-9 /* 0 means not fitted */

/* Bounds of a number, and the mean and deviation of its prior. */
typedef struct prior {
    double least, most, predicted, deviation;
} prior;

static prior prior_of(int k, bool of_class) {
    static const prior common[ACF_DONOR_TRUST_WON] = {[ACF_DONOR_TRUST_SHIFT] = {-15, 5, 0, 3},
                                                      [ACF_DONOR_TRUST_SLOPE] = {0, 5, 1, 1},
                                                      [ACF_DONOR_TRUST_AGREE] = {0, 3, 0.3, 0.5},
                                                      [ACF_DONOR_TRUST_OF_COLUMN] = {0, 3, 0.7, 0.5}};
    if (k == ACF_DONOR_TRUST_GIVEN) return (prior){0, 6, 1, 1};
    /* Networks predict classes well: class columns start with less weight for donors. */
    return k < ACF_DONOR_TRUST_WON ? common[k] : (prior){-4, 4, of_class ? -2 : 0, 0.6};
}

static double trusted(const acf_heldout_cell *c, const double *v) {
    const double logit = v[ACF_DONOR_TRUST_SHIFT] + v[ACF_DONOR_TRUST_SLOPE] * c->peak +
                         v[ACF_DONOR_TRUST_AGREE] * c->alike + v[ACF_DONOR_TRUST_OF_COLUMN] * c->told +
                         v[ACF_DONOR_TRUST_GIVEN] * c->given + v[ACF_DONOR_TRUST_COLUMN + c->column];
    return fmin(1 / (1 + exp(-logit)), ACF_DONOR_TRUST_MOST);
}

/* Some cells, and the factor that brings their scores to the scale of the penalty. */
typedef struct cell_range {
    const acf_heldout_cell *cell;
    int64_t n;
    double unit;
} cell_range;

static double total_loss(cell_range a, const double *v) {
    double sum = 0;
    for (int64_t i = 0; i < a.n; i++) sum += acf_heldout_loss(&a.cell[i], trusted(&a.cell[i], v));
    return sum;
}

/* Sum of the network's own scores, and the number of cells found, over cells that are given all of their rows. The gain
 * is reported for these, which are imputation's queries. */
static double network(const acf_heldout *a, int64_t *found) {
    double sum = 0;
    *found = 0;
    for (int64_t i = 0; i < a->n; i++)
        if (a->cell[i].found && !a->cell[i].in_part) sum += a->cell[i].off_net - 0.5 * a->cell[i].net_net, ++*found;
    return sum;
}

/* The objective at v[k] = x: the score of the cells concerned, and the penalty. */
static double cost(cell_range a, double *v, int k, double x) {
    const prior h = prior_of(k, a.n && a.cell[0].of_class);
    v[k] = x;
    return a.unit * total_loss(a, v) + 0.5 * pow((x - h.predicted) / h.deviation, 2);
}

/* Optimises one number with the others fixed: golden section. */
static void improve(cell_range a, double *v, int k) {
    double low = prior_of(k, false).least, high = prior_of(k, false).most;
    for (int i = 0; i < NARROW; i++) {
        const double c = high - GOLDEN * (high - low), d = low + GOLDEN * (high - low);
        if (cost(a, v, k, c) < cost(a, v, k, d))
            high = d;
        else
            low = c;
    }
    v[k] = 0.5 * (low + high);
}

/* The gain and its deviation, as shares of the network's score. */
static void count_gain(cell_range a, double *v, double of_network) {
    double won = 0, square = 0, nats = 0, n = 0;
    for (int64_t i = 0; i < a.n; i++)
        if (!a.cell[i].in_part) won -= acf_heldout_loss(&a.cell[i], trusted(&a.cell[i], v)), n += 1;
    for (int64_t i = 0; i < a.n; i++) {
        const double h = trusted(&a.cell[i], v);
        if (a.cell[i].in_part) continue;
        square += pow(-acf_heldout_loss(&a.cell[i], h) - won / n, 2);
        if (a.cell[i].found) nats += log1p(h * (a.cell[i].better - 1));
    }
    v[ACF_DONOR_TRUST_WON] = nats > 0 ? won / of_network : 0;
    v[ACF_DONOR_TRUST_CHANCE] = fmax(sqrt(square) / of_network, LEAST_CHANCE);
}

void acf_donor_trust_choose(const acf_heldout *a, int64_t D, double v[ACF_DONOR_TRUST_NUMBERS]) {
    int64_t found;
    const double of_network = network(a, &found);
    memset(v, 0, ACF_DONOR_TRUST_NUMBERS * sizeof *v);
    if (!(of_network > 0)) return;
    const cell_range all = {a->cell, a->n, (double)found / of_network};
    for (int k = 0; k < ACF_DONOR_TRUST_COLUMN + D; k++) v[k] = prior_of(k, false).predicted;
    v[ACF_DONOR_TRUST_GIVEN] = prior_of(ACF_DONOR_TRUST_GIVEN, false).predicted;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < ACF_DONOR_TRUST_WON; k++) improve(all, v, k);
        improve(all, v, ACF_DONOR_TRUST_GIVEN);
        for (int64_t from = 0, to; from < a->n; from = to) {
            for (to = from; to < a->n && a->cell[to].column == a->cell[from].column; to++) continue;
            improve((cell_range){a->cell + from, to - from, all.unit}, v,
                    ACF_DONOR_TRUST_COLUMN + a->cell[from].column);
        }
    }
    count_gain(all, v, of_network);
}

void acf_donor_trust_pool(const double (*found)[ACF_DONOR_TRUST_NUMBERS], int n, double v[ACF_DONOR_TRUST_NUMBERS]) {
    double target = 0, square = 0;
    memset(v, 0, ACF_DONOR_TRUST_NUMBERS * sizeof *v);
    for (int i = 0; i < n; i++) {
        if (!(found[i][ACF_DONOR_TRUST_CHANCE] > 0)) continue;
        target += 1, square += pow(found[i][ACF_DONOR_TRUST_CHANCE], 2);
        for (int k = 0; k < ACF_DONOR_TRUST_NUMBERS; k++) v[k] += found[i][k];
    }
    for (int k = 0; target > 0 && k < ACF_DONOR_TRUST_NUMBERS; k++) v[k] /= target;
    v[ACF_DONOR_TRUST_CHANCE] = target > 0 ? sqrt(square) / target : 0;
}

bool acf_donor_trust_worth(const double *v) {
    return v[ACF_DONOR_TRUST_CHANCE] > 0 && v[ACF_DONOR_TRUST_WON] >= ACF_DONOR_TRUST_LEAST &&
           v[ACF_DONOR_TRUST_WON] >= ACF_DONOR_TRUST_SURE * v[ACF_DONOR_TRUST_CHANCE];
}

/* Copies these rows of t into a table of their own, with their ids. Gives *out (acf_table_free). */
static acf_status cut_rows(const acf_table *t, const acf_rows *rows, acf_table **out) {
    double *x = acf_alloc((size_t)acf_max(rows->n * t->D, 1) * sizeof *x, "the rows of a table");
    uint64_t *id = acf_alloc((size_t)acf_max(rows->n, 1) * sizeof *id, "the ids of a table");
    for (int64_t k = 0; x && id && k < rows->n; k++) {
        const int64_t row = acf_rows_at(rows, k);
        memcpy(x + k * t->D, acf_table_row(t, row), (size_t)t->D * sizeof *x);
        id[k] = acf_table_row_id(t, row);
    }
    acf_status status = x && id ? acf_table_take(x, rows->n, t->D, t->column, out) : ACF_EMEMORY;
    if (!x || !id) acf_release(x);
    if (status)
        acf_release(id);
    else
        (*out)->id = id;
    return status;
}

/* Donors from what training saw of these rows of t; NULL: of all. */
static acf_status make_donors(const acf_trainer *tr, const acf_table *t, const acf_rows *rows, acf_donors **out) {
    const int threads = acf_net_params(tr->net)->dev->threads;
    acf_table *part = NULL;
    if (!rows) return acf_donors_make(t, tr->data.encoder, tr->data.hold, threads, out);
    ACF_TRY(cut_rows(t, rows, &part));
    acf_status status = acf_donors_make(part, tr->data.encoder, NULL, threads, out);
    acf_table_free(part);
    return status;
}

/* Queries held-out cells of the training rows. */
static acf_status query_cells(acf_trainer *tr, acf_heldout *a) {
    acf_donors *m = NULL;
    if (!tr->data.hold || !tr->data.hold->held) return ACF_OK;
    acf_status status = make_donors(tr, tr->data.table, NULL, &m);
    if (!status) status = acf_heldout_query(tr, m, a);
    acf_donors_free(m);
    return status;
}

/* Queries some cells of the validation rows, given their other cells; donors are the training rows. */
static acf_status query_valid_rows(acf_trainer *tr, acf_heldout *a) {
    const acf_train_data data = tr->data;
    const acf_rows rows = tr->rows;
    acf_holdout *hold = NULL;
    acf_donors *m = NULL;
    ACF_TRY(acf_holdout_create(data.valid_table, data.valid_rows, ACF_DONOR_TRUST_HELD, tr->set.seed, &hold));
    acf_status status = hold->held ? make_donors(tr, data.table, &tr->rows, &m) : ACF_OK;
    if (m) {
        tr->data.table = data.valid_table, tr->data.hold = hold, tr->rows = *data.valid_rows;
        status = acf_heldout_query(tr, m, a);
        tr->data = data, tr->rows = rows;
    }
    acf_donors_free(m);
    acf_holdout_free(hold);
    return status;
}

acf_status acf_donor_trust_fit(acf_trainer *tr) {
    const acf_table *t = tr->data.table;
    acf_heldout a = {0};
    memset(tr->donor_trust, 0, sizeof tr->donor_trust);
    if (!tr->net || !tr->set.donor_trust || acf_valid_cells(tr) == 0) return ACF_OK;
    if (t->N > ACF_DONORS_ROWS || t->D < 2 || t->D > ACF_DONOR_TRUST_COLUMNS || t->N * t->D > ACF_DONORS_VALUES)
        return ACF_OK;
    acf_status status = tr->data.valid_rows ? query_valid_rows(tr, &a) : query_cells(tr, &a);
    if (!status) acf_donor_trust_choose(&a, t->D, tr->donor_trust);
    if (status == ACF_ENUMERIC) {
        acf_error_clear();
        status = ACF_OK;
    }
    acf_heldout_free(&a);
    return status;
}

/* The rows that the first member of m learned from, as a table; *out stays NULL where it was all of t. */
static acf_status rows_learned(const acf_model *m, const acf_table *t, acf_table **out) {
    acf_train_settings set;
    acf_row_split split;
    ACF_TRY(acf_train_settings_read(m->config, &set));
    if (set.valid_on != ACF_VALID_ROWS || m->record.refit == ACF_REFIT_DONE) return ACF_OK;
    ACF_TRY(acf_valid_split(t, NULL, &set, &split));
    return cut_rows(t, &split.train, out);
}

acf_status acf_donors_attach(acf_model *m, const acf_table *t) {
    double found[ACF_ENSEMBLE_MAX][ACF_DONOR_TRUST_NUMBERS], v[ACF_DONOR_TRUST_NUMBERS];
    int n = 0;
    for (const acf_model *one = m; one && n < ACF_ENSEMBLE_MAX; one = one->next)
        if (one->record.known) memcpy(found[n++], one->record.donor_trust, sizeof *found);
    acf_donor_trust_pool(found, n, v);
    if (!acf_donor_trust_worth(v)) return ACF_OK;
    acf_table *part = NULL;
    ACF_TRY(rows_learned(m, t, &part));
    acf_status status =
        acf_donors_make(part ? part : t, m->encoder, NULL, acf_net_params(m->net)->dev->threads, &m->donors);
    acf_table_free(part);
    ACF_TRY(status);
    m->donors->slope = v[ACF_DONOR_TRUST_SLOPE], m->donors->agree = v[ACF_DONOR_TRUST_AGREE];
    m->donors->given = v[ACF_DONOR_TRUST_GIVEN];
    for (int64_t j = 0; j < t->D; j++)
        m->donors->shift[j] = v[ACF_DONOR_TRUST_SHIFT] + v[ACF_DONOR_TRUST_COLUMN + j] +
                              v[ACF_DONOR_TRUST_OF_COLUMN] * acf_donor_trust_of_column(m->donors, j);
    return ACF_OK;
}
