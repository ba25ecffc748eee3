/* Is it worth looking rows up: see recall.h.
 *
 * Workload: an archive is made (archive_learn.h), and some hundred times the scores of up to 4,000 cells are added up. */
#include "train/recall.h"

#include "model/archive_file.h"

#include <math.h>
#include <string.h>

#define GOLDEN 0.6180339887498949
#define NARROW 24 /* a bracket after so many rounds is 1e-5 of what it was */
#define ROUNDS 8
#define LEAST_CHANCE 1e-9 /* 0 is for what was not asked */

/* Where a number is looked for, what is expected of it, and how surely. */
typedef struct hope {
    double least, most, expected, deviation;
} hope;

static hope hope_for(int k, bool of_class) {
    static const hope common[ACF_RECALL_WON] = {[ACF_RECALL_SHIFT] = {-15, 5, 0, 3},
                                                   [ACF_RECALL_SLOPE] = {0, 3, 0.3, 0.5},
                                                   [ACF_RECALL_AGREE] = {0, 3, 0.3, 0.5},
                                                   [ACF_RECALL_TOLD] = {0, 3, 0.7, 0.5}};
    if (k == ACF_RECALL_GIVEN) return (hope){0, 6, 1, 1};
    /* Networks are good at classes: they learn their probabilities and nothing else. */
    return k < ACF_RECALL_WON ? common[k] : (hope){-4, 4, of_class ? -2 : 0, 0.6};
}

static double trusted(const acf_asked_cell *c, const double *v) {
    const double logit = v[ACF_RECALL_SHIFT] + v[ACF_RECALL_SLOPE] * c->peak + v[ACF_RECALL_AGREE] * c->alike + v[ACF_RECALL_TOLD] * c->told +
                         v[ACF_RECALL_GIVEN] * c->given + v[ACF_RECALL_COLUMN + c->column];
    return fmin(1 / (1 + exp(-logit)), ACF_RECALL_MOST);
}

/* Some cells, and what their scores are multiplied by to be weighed against what is expected. */
typedef struct some {
    const acf_asked_cell *cell;
    int64_t n;
    double unit;
} some;

static double lost(some a, const double *v) {
    double sum = 0;
    for (int64_t i = 0; i < a.n; i++) sum += acf_recall_loss(&a.cell[i], trusted(&a.cell[i], v));
    return sum;
}

/* Scores of the network alone, and of how many cells: of those that are given all of their rows. What donors are worth is said of these, the questions of imputation. */
static double network(const acf_asked *a, int64_t *found) {
    double sum = 0;
    *found = 0;
    for (int64_t i = 0; i < a->n; i++)
        if (a->cell[i].found && !a->cell[i].in_part) sum += a->cell[i].off_net - 0.5 * a->cell[i].net_net, ++*found;
    return sum;
}

/* What v[k] = x costs: the cells that it is about, and that it is not what is expected. */
static double cost(some a, double *v, int k, double x) {
    const hope h = hope_for(k, a.n && a.cell[0].of_class);
    v[k] = x;
    return a.unit * lost(a, v) + 0.5 * pow((x - h.expected) / h.deviation, 2);
}

/* The best of one number, the others as they are: golden section. */
static void improve(some a, double *v, int k) {
    double low = hope_for(k, false).least, high = hope_for(k, false).most;
    for (int i = 0; i < NARROW; i++) {
        const double c = high - GOLDEN * (high - low), d = low + GOLDEN * (high - low);
        if (cost(a, v, k, c) < cost(a, v, k, d)) high = d;
        else low = c;
    }
    v[k] = 0.5 * (low + high);
}

/* What is won, and its deviation, in shares of the network's score. */
static void count_winnings(some a, double *v, double of_network) {
    double won = 0, square = 0, nats = 0, n = 0;
    for (int64_t i = 0; i < a.n; i++)
        if (!a.cell[i].in_part) won -= acf_recall_loss(&a.cell[i], trusted(&a.cell[i], v)), n += 1;
    for (int64_t i = 0; i < a.n; i++) {
        const double h = trusted(&a.cell[i], v);
        if (a.cell[i].in_part) continue;
        square += pow(-acf_recall_loss(&a.cell[i], h) - won / n, 2);
        if (a.cell[i].found) nats += log1p(h * (a.cell[i].better - 1));
    }
    v[ACF_RECALL_WON] = nats > 0 ? won / of_network : 0;
    v[ACF_RECALL_CHANCE] = fmax(sqrt(square) / of_network, LEAST_CHANCE);
}

void acf_recall_choose(const acf_asked *a, int64_t D, double v[ACF_RECALL_NUMBERS]) {
    int64_t found;
    const double of_network = network(a, &found);
    memset(v, 0, ACF_RECALL_NUMBERS * sizeof *v);
    if (!(of_network > 0)) return;
    const some all = {a->cell, a->n, (double)found / of_network};
    for (int k = 0; k < ACF_RECALL_COLUMN + D; k++) v[k] = hope_for(k, false).expected;
    v[ACF_RECALL_GIVEN] = hope_for(ACF_RECALL_GIVEN, false).expected;
    for (int round = 0; round < ROUNDS; round++) {
        for (int k = 0; k < ACF_RECALL_WON; k++) improve(all, v, k);
        improve(all, v, ACF_RECALL_GIVEN);
        for (int64_t from = 0, to; from < a->n; from = to) {
            for (to = from; to < a->n && a->cell[to].column == a->cell[from].column; to++) continue;
            improve((some){a->cell + from, to - from, all.unit}, v, ACF_RECALL_COLUMN + a->cell[from].column);
        }
    }
    count_winnings(all, v, of_network);
}

void acf_recall_pool(const double (*found)[ACF_RECALL_NUMBERS], int n, double v[ACF_RECALL_NUMBERS]) {
    double asked = 0, square = 0;
    memset(v, 0, ACF_RECALL_NUMBERS * sizeof *v);
    for (int i = 0; i < n; i++) {
        if (!(found[i][ACF_RECALL_CHANCE] > 0)) continue;
        asked += 1, square += pow(found[i][ACF_RECALL_CHANCE], 2);
        for (int k = 0; k < ACF_RECALL_NUMBERS; k++) v[k] += found[i][k];
    }
    for (int k = 0; asked > 0 && k < ACF_RECALL_NUMBERS; k++) v[k] /= asked;
    v[ACF_RECALL_CHANCE] = asked > 0 ? sqrt(square) / asked : 0;
}

bool acf_recall_worth(const double *v) {
    return v[ACF_RECALL_CHANCE] > 0 && v[ACF_RECALL_WON] >= ACF_RECALL_LEAST && v[ACF_RECALL_WON] >= ACF_RECALL_SURE * v[ACF_RECALL_CHANCE];
}

acf_status acf_recall_fit(acf_trainer *tr) {
    const acf_table *t = tr->data.table;
    acf_archive *m = NULL;
    acf_asked a = {0};
    memset(tr->recall, 0, sizeof tr->recall);
    if (!tr->net || !tr->set.recall || !tr->data.hold || !tr->data.hold->held) return ACF_OK;
    if (t->N > ACF_ARCHIVE_ROWS || t->D < 2 || t->D > ACF_RECALL_COLUMNS || t->N * t->D > ACF_ARCHIVE_VALUES) return ACF_OK;
    acf_status status = acf_archive_make(t, tr->data.encoder, tr->data.hold, acf_net_params(tr->net)->dev->threads, &m);
    if (!status) status = acf_recall_ask(tr, m, &a);
    if (!status) acf_recall_choose(&a, t->D, tr->recall);
    if (status == ACF_ENUMERIC) {
        acf_error_clear();
        status = ACF_OK;
    }
    acf_recall_forget(&a);
    acf_archive_free(m);
    return status;
}

acf_status acf_recall_attach(acf_model *m, const acf_table *t) {
    double found[ACF_MEMBERS_MAX][ACF_RECALL_NUMBERS], v[ACF_RECALL_NUMBERS];
    int n = 0;
    for (const acf_model *one = m; one && n < ACF_MEMBERS_MAX; one = one->next)
        if (one->record.known) memcpy(found[n++], one->record.recall, sizeof *found);
    acf_recall_pool(found, n, v);
    if (!acf_recall_worth(v)) return ACF_OK;
    ACF_TRY(acf_archive_make(t, m->encoder, NULL, acf_net_params(m->net)->dev->threads, &m->archive));
    m->archive->slope = v[ACF_RECALL_SLOPE], m->archive->agree = v[ACF_RECALL_AGREE], m->archive->given = v[ACF_RECALL_GIVEN];
    for (int64_t j = 0; j < t->D; j++) m->archive->shift[j] = v[ACF_RECALL_SHIFT] + v[ACF_RECALL_COLUMN + j] + v[ACF_RECALL_TOLD] * acf_recall_told(m->archive, j);
    return ACF_OK;
}
