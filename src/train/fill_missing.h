/* Imputes missing cells of the training rows for a second pass (refit.h), for tables whose missing cells depend on
 * observed ones (MAR, but not completely at random).
 *
 * Masks choose the given cells among the observed cells of a row. So, of all rows that have the cells o, those with
 * more missing cells are queried given o more often, and only complete rows are queried given all others. That is
 * harmless if cells are missing completely at random. If men leave more questions out than women, a network learns
 * that a row with few given cells is a man's and a complete one a woman's. That is right where the rest of the row is
 * missing. It is wrong where the rest is only not given: in samples, and in p(x_u | x_o) of columns chosen by a user.
 *
 * The second pass therefore learns from rows whose missing cells hold draws of the first pass's network, given all that
 * is observed of the row: all rows get the same queries. Under MAR that is a step of stochastic EM, from where the
 * first pass ended (docs/math.md, 18). Imputation of missing cells is as good as before. */
#ifndef ACF_TRAIN_FILL_MISSING_H
#define ACF_TRAIN_FILL_MISSING_H

#include "train/trainer.h"

#define ACF_FILL_TABLES 5 /* imputed tables, each with its own draws; epochs use them in rotation */

/* Do missing cells depend on observed ones? For every column with missing cells and every other column: does the
 * other's mean, or a class's share, differ where the first is missing? At level 0.01 for all pairs together
 * (Bonferroni). */
bool acf_fill_wanted(const acf_table *t, const acf_rows *rows, const acf_encoder *e);

/* Sets tr->filled by the best weights of the first pass. Fails: ACF_EMEMORY, ACF_EDEVICE, ACF_ENUMERIC. */
acf_status acf_fill_rows(acf_trainer *tr);

/* The table that training reads in the current epoch. Borrows all. */
acf_table acf_fill_table(const acf_trainer *tr);

#endif
