/* Presets: one word for several options of a model. What a model is made of and how it was trained is recorded in its file. */
#ifndef ACF_MODEL_CONFIG_H
#define ACF_MODEL_CONFIG_H

#include "base/options.h"
#include "data/table.h"

/* A set with every option of base/option_table.h at its default, which is preset `default`. Gives *out; free with acf_opts_free. */
acf_status acf_config_create(acf_options **out);

/* The same for reading a model's config: what came after the first model files is off, so that a file which does not say is the model
 * it was. A new option that changes the network enters the list there. */
acf_status acf_config_create_old(acf_options **out);

/* Fills in what the option `preset` stands for, wherever the user or a file has not said otherwise. To be called once all
 * options are set. Fails: ACF_EMEMORY. */
acf_status acf_config_finish(acf_options *o);

/* What depends on the width of the table, after acf_config_finish, again only where nobody has said otherwise:
 *
 *     flow, rank    up to ACF_FULL_COLUMNS real columns `linear` is a full matrix, one number for each pair of columns. A network
 *                   that puts one out for every row costs d² a row and unit, and the matrix d³ to factorise; above that every
 *                   `linear` of the default becomes `lowrank` with rank acf_config_rank(d): d·r numbers, d·r² to factorise.
 *     batch         acf_config_rows(d): fewer rows where the table is wide, so that a step's memory is bounded.
 *
 * The values found are recorded in the model like any other: a file says what its model is, whatever this rule becomes.
 * Borrows column (D). Fails: ACF_EMEMORY. */
acf_status acf_config_width(acf_options *o, const acf_column *column, int64_t D);

#define ACF_FULL_COLUMNS 24

/* Rank of conditional matrices of d columns. */
int64_t acf_config_rank(int64_t d);

/* Rows of a batch of tables with D columns: at most ACF_BATCH_ROWS of them, at most ACF_BATCH_CELLS cells (but 4 rows). */
#define ACF_BATCH_ROWS 256
#define ACF_BATCH_CELLS 65536
int64_t acf_config_rows(int64_t D);

#endif
