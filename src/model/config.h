/* Presets: one word for several options of a table or image model. The model file records the resulting options:
 * what a model is made of and how it was trained. */
#ifndef ACF_MODEL_CONFIG_H
#define ACF_MODEL_CONFIG_H

#include "base/options.h"
#include "table/table.h"

/* A set with every option of base/option_table.h at its default, which is preset `default`. Gives *out; free with
 * acf_options_free. */
acf_status acf_config_create(acf_options **out);

/* Such a set, with the values that the user set in o; o may have fewer options. Gives *out. Fails: ACF_EUSAGE,
 * ACF_EMEMORY. */
acf_status acf_config_copy(const acf_options *o, acf_options **out);

/* The same for reading a model's config. Options newer than the first model files are off, so a file without them
 * keeps its meaning. Add every new option that changes the network to that list. */
acf_status acf_config_create_old(acf_options **out);

/* Applies the option `preset` to every option that neither the user nor a file has set. Call it once all options are
 * set. Fails: ACF_EUSAGE (a preset of image models), ACF_EMEMORY. */
acf_status acf_config_finish(acf_options *o);

/* The same for a model of images: applies the options that all image models share, then the preset. Call it before
 * the images are read, because presets also set how they are read. Fails: ACF_EUSAGE (a preset of table models),
 * ACF_EMEMORY. */
acf_status acf_config_finish_images(acf_options *o);

/* Is the preset one of the paper's models (`paper`, `paper-2d`, `ar`)? model/paper.h lists what a model adds to it. */
bool acf_config_follows_paper(const acf_options *o);

/* Sets the options that depend on the width of the table, if neither the user nor a preset has set them. Call it
 * after acf_config_finish. With d real columns:
 *
 *     flow, rank    A conditional matrix W0 + W_c of a row (flow/flow.h) has d² numbers; its factorisation costs d³.
 *                   up to ACF_WIDTH_FULL   `linear`, W_c full: the GRUs cost more than that, and it learns best
 *                   up to ACF_WIDTH_BASE   `linear`, W_c of rank ACF_WIDTH_RANK: the network's output is d·r, not d²
 *                   above                  `lowrank`, W0 diagonal too: no d² numbers, and no cost above d·r²
 *     batch         acf_config_rows(D): fewer rows for wide tables, so that a step's memory is bounded
 *
 * The model file records the resulting values like any others, so later changes of this rule do not affect it.
 * Borrows column (D). Fails: ACF_EMEMORY. */
acf_status acf_config_width(acf_options *o, const acf_column *column, int64_t D);

#define ACF_WIDTH_FULL 32
#define ACF_WIDTH_BASE 512
#define ACF_WIDTH_RANK 16

/* Replaces `auto` of the option ensemble by a number: ACF_ENSEMBLE_AUTO for a table of fewer than ACF_ENSEMBLE_ROWS
 * rows and at most ACF_ENSEMBLE_COLUMNS columns, else 1. With many rows, averaging over seeds gains less. In a wide
 * table a few factors explain most of the data, and every seed finds the same ones (experiments/NOTES.md). Fails:
 * ACF_EMEMORY. */
acf_status acf_config_ensemble(acf_options *o, int64_t rows, int64_t columns);

#define ACF_ENSEMBLE_AUTO 3
#define ACF_ENSEMBLE_BEST 5 /* for effort=best */
#define ACF_ENSEMBLE_ROWS 2000
#define ACF_ENSEMBLE_COLUMNS 56

/* Sets the options that depend on the number of rows, if nobody has set them. Call it after acf_config_finish and
 * before acf_config_width.
 *
 *     on a GPU, ACF_LARGE_ROWS rows or more, ACF_LARGE_COLUMNS columns or fewer, effort normal or best, no likelihood
 *     or transformations chosen:
 *         the attention likelihood, larger and trained longer than the default on a CPU. For tables of numbers only it
 *         follows the Gaussian mixture. With categories, or more columns than such a mixture takes, it learns whole
 *         rows without one
 *     effort quick, more than ACF_QUICK_ROWS rows:
 *         no nearest-neighbour donors, which would take longer than everything else */
acf_status acf_config_height(acf_options *o, const acf_column *column, int64_t D, int64_t rows, bool gpu);

#define ACF_LARGE_ROWS 5000
#define ACF_LARGE_COLUMNS 128
#define ACF_QUICK_ROWS 2000

/* Rows of a batch for a table of D columns: ACF_BATCH_ROWS, or fewer so that a batch has at most ACF_BATCH_CELLS
 * cells, but at least 4. A training step of the default model keeps about 8 KB per modelled cell. */
#define ACF_BATCH_ROWS 256
#define ACF_BATCH_CELLS 65536
int64_t acf_config_rows(int64_t D);

#endif
