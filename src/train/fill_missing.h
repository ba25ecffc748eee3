/* Rows whose holes are filled in, for a second pass (refit.h) over a table whose holes tell something.
 *
 * Masks choose what is given among the cells that a row has. So of all rows that have the cells o, those with more holes are asked about them more often, and rows without
 * any are the only ones that are ever asked given all others. Where holes come by chance that is no harm. Where men leave more questions out than women, a network learns that a row
 * of which little is given is a man's, and that one of which all is given is a woman's: right of rows in which the rest is missing, wrong where it was
 * not asked for: of samples, and of p(x_u | x_o) of columns that somebody chose.
 *
 * Then the second pass learns from rows whose holes have draws of the first pass's network in them, which saw all that is seen of the row: all rows are asked the same
 * questions. Under MAR that is a step of stochastic EM, from where the first pass ended (docs/math.md, 18). What is missing is filled in as well as before. */
#ifndef ACF_TRAIN_FILL_MISSING_H
#define ACF_TRAIN_FILL_MISSING_H

#include "train/trainer.h"

#define ACF_FILL_TABLES 5 /* tables with other draws, epochs in turn */

/* Does what is missing depend on what is seen? Of every column with holes and every other column: whether that one's values, or classes, have another mean where the first is
 * missing, at a level of one in a hundred for all pairs together. */
bool acf_fill_wanted(const acf_table *t, const acf_rows *rows, const acf_encoder *e);

/* tr->filled, by the best weights of the first pass. Fails: ACF_EMEMORY, ACF_EDEVICE, ACF_ENUMERIC. */
acf_status acf_fill_rows(acf_trainer *tr);

/* The table that training reads in this epoch. Borrows all. */
acf_table acf_fill_table(const acf_trainer *tr);

#endif
