/* Presets: one word for several options of a model of tables or images. What a model is made of and how it was trained is recorded in its file. */
#ifndef ACF_MODEL_CONFIG_H
#define ACF_MODEL_CONFIG_H

#include "base/options.h"
#include "table/table.h"

/* A set with every option of base/option_table.h at its default, which is preset `default`. Gives *out; free with acf_options_free. */
acf_status acf_config_create(acf_options **out);

/* Such a set with what the user has said in o, which may know fewer options. Gives *out. Fails: ACF_EUSAGE, ACF_EMEMORY. */
acf_status acf_config_copy(const acf_options *o, acf_options **out);

/* The same for reading a model's config: what came after the first model files is off, so that a file which does not say is the model
 * it was. A new option that changes the network enters the list there. */
acf_status acf_config_create_old(acf_options **out);

/* Fills in what the option `preset` stands for, wherever the user or a file has not said otherwise. To be called once all
 * options are set. Fails: ACF_EUSAGE (a preset of image models), ACF_EMEMORY. */
acf_status acf_config_finish(acf_options *o);

/* The same for a model of images: what all of them have in common, then the preset. Before the images are read, as presets say how that is
 * done. Fails: ACF_EUSAGE (a preset of table models), ACF_EMEMORY. */
acf_status acf_config_finish_images(acf_options *o);

/* Is the preset one of the paper's models (`paper`, `paper-2d`, `ar`)? What is added to one says model/paper.h. */
bool acf_config_follows_paper(const acf_options *o);

/* What depends on the width of the table, after acf_config_finish, again only where nobody has said otherwise. With d real columns:
 *
 *     flow, rank    A conditional matrix W0 + W_c of a row (flow/flow.h) has d² numbers, and d³ operations factorise it.
 *                   up to ACF_WIDTH_FULL     `linear`, W_c full: the GRUs cost more than that, and it learns best
 *                   up to ACF_WIDTH_BASE     `linear`, W_c of rank ACF_WIDTH_RANK: the network's output is d·r and not d²
 *                   above                    `lowrank`, W0 diagonal too: nothing has d² numbers, nothing costs more than d·r²
 *     batch         acf_config_rows(D): fewer rows where the table is wide, so that a step's memory is bounded
 *
 * The values found are recorded in the model like any others: a file says what its model is, whatever becomes of this rule.
 * Borrows column (D). Fails: ACF_EMEMORY. */
acf_status acf_config_width(acf_options *o, const acf_column *column, int64_t D);

#define ACF_WIDTH_FULL 32
#define ACF_WIDTH_BASE 512
#define ACF_WIDTH_RANK 16

/* Puts a number in the place of the option members' `auto`: ACF_ENSEMBLE_AUTO for a table of fewer than ACF_ENSEMBLE_ROWS rows and of at most
 * ACF_ENSEMBLE_COLUMNS columns, else 1. What rows leave open, and what a seed decides, is worth less where there are many; and of a wide table a few factors
 * say most, the same from every seed (docs/RESULTS.md). Fails: ACF_EMEMORY. */
acf_status acf_config_ensemble(acf_options *o, int64_t rows, int64_t columns);

#define ACF_ENSEMBLE_AUTO 3
#define ACF_ENSEMBLE_BEST 5 /* where the option effort is best */
#define ACF_ENSEMBLE_ROWS 2000
#define ACF_ENSEMBLE_COLUMNS 56

/* What depends on how many rows there are; after acf_config_finish and before acf_config_width, only where nobody has
 * said otherwise.
 *
 *     on a GPU, ACF_LARGE_ROWS rows or more, ACF_LARGE_COLUMNS columns or fewer, effort normal or best, no likelihood or
 *     transformations chosen:
 *         the attention likelihood, larger and longer trained than the default on a CPU. Of numbers alone it stands
 *         behind the Gaussian mixture; where there are categories, or more columns than such a mixture takes, it learns
 *         whole rows by itself
 *     effort quick, more than ACF_QUICK_ROWS rows:
 *         rows are not looked up, which would take longer than all the rest
 */
acf_status acf_config_height(acf_options *o, const acf_column *column, int64_t D, int64_t rows, bool gpu);

#define ACF_LARGE_ROWS 5000
#define ACF_LARGE_COLUMNS 128
#define ACF_QUICK_ROWS 2000

/* Rows of a batch of a table with D columns: ACF_BATCH_ROWS, fewer where they would have more than ACF_BATCH_CELLS cells, but at
 * least 4. A training step of the default model keeps some 8 KB for each modelled cell. */
#define ACF_BATCH_ROWS 256
#define ACF_BATCH_CELLS 65536
int64_t acf_config_rows(int64_t D);

#endif
